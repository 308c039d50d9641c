"""What importing costs and promises: lines that are checked without a copy, and memory."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from assembler import codec
from assembler.cli.importing_to import One
from assembler.engine.errors import AssemblerError, InputError
from assembler.engine.values import DEPTH_MAX, freeze, is_plain
from assembler.plugins import operations
from assembler.recordings.format import check_operation, encoded, frozen, is_sound_append
from assembler.recordings.transcripts import checked
from definitions.importers import IMPORTERS

Json = dict[str, Any]


def nested(depth: int) -> Json:
    value: Json = {}
    for _ in range(depth - 1):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    "value",
    [{}, [], {"a": [1, 2.5, None, True, "x", "ä\U0001f600", {"b": []}]}, nested(DEPTH_MAX)],
)
def test_what_is_plain_is_written_as_it_is_when_frozen(value: Any) -> None:
    assert is_plain(value)
    assert codec.encode_plain(value) == codec.encode(freeze(value))


@pytest.mark.parametrize(
    "odd",
    [
        float("nan"),
        float("inf"),
        {1, 2},
        b"x",
        "\ud800",
        {1: 2},
        {"\ud800": 1},
        pytest.param(1 << 20_000, id="long number"),
        object(),
        nested(DEPTH_MAX),
    ],
)
def test_what_cannot_be_frozen_is_not_plain(odd: Any) -> None:
    assert not is_plain({"a": [odd]})
    with pytest.raises(AssemblerError):
        freeze({"a": [odd]})


EVENT: Json = {"seq": 1, "type": "note", "time": 5, "id": "n", "data": {"a": 1}}
ODD = [
    {"seq": 0},
    {"seq": "1"},
    {"seq": True},
    {"seq": 1 << 53},
    {"type": ""},
    {"type": 3},
    {"time": "5"},
    {"time": -(1 << 53)},
    {"id": ""},
    {"id": 4},
    {"data": [1]},
    {"data": {"a": float("nan")}},
    {"other": 1},
]


def test_a_sound_append_is_one_that_the_format_takes() -> None:
    line = {"op": "append", "event": EVENT}
    assert is_sound_append(line)
    check_operation(frozen(line), operations(), ("f", 1))
    assert encoded(line) == encoded(frozen(line))
    assert not is_sound_append({**line, "x": 1})
    assert not is_sound_append({**line, "op": "evict"})


@pytest.mark.parametrize("odd", ODD)
def test_an_event_that_an_importer_got_wrong_is_one_line_and_never_written(odd: Json) -> None:
    line = {"op": "append", "event": {**EVENT, **odd}}
    assert not is_sound_append(line)

    def importer(_lines: Iterable[bytes], *, name: str) -> Iterator[Json]:
        yield {"recording": 1, "title": name}
        yield line

    made = checked(importer, [], "f.jsonl")
    next(made)
    with pytest.raises(InputError) as fault:
        next(made)
    assert "\n" not in str(fault.value)


# Memory


def transcript(answers: int, size: int = 4_000) -> Iterator[bytes]:
    """A transcript of Claude Code: calls and their results, each of some kilobytes."""
    told = "word " * (size // 5)
    for number in range(answers):
        base = {"parentUuid": None, "isSidechain": False, "uuid": f"u{number}"}
        use = {"type": "tool_use", "id": f"c{number}", "name": "Read", "input": {"path": told}}
        said = {"id": f"m{number}", "role": "assistant", "content": [use]}
        yield line_of({**base, "type": "assistant", "message": said})
        result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": told}
        back = {"role": "user", "content": [result]}
        yield line_of({**base, "uuid": f"r{number}", "type": "user", "message": back})


def line_of(record: Json) -> bytes:
    return json.dumps(record).encode() + b"\n"


def rollout(answers: int, size: int = 4_000) -> Iterator[bytes]:
    """A rollout of Codex, likewise."""
    told = "word " * (size // 5)
    for number in range(answers):
        call = {"type": "function_call", "name": "shell", "call_id": f"c{number}"}
        yield item({**call, "arguments": json.dumps({"path": told})})
        yield item({"type": "function_call_output", "call_id": f"c{number}", "output": told})


def item(payload: Json) -> bytes:
    record = {"timestamp": "2025-09-01T00:00:00Z", "type": "response_item", "payload": payload}
    return line_of(record)


def peak(name: str, lines: Iterable[bytes], path: Path) -> int:
    """The most bytes that an import into a file held at once."""
    output = One(str(path))
    tracemalloc.start()
    try:
        output.take("t", checked(IMPORTERS[name], lines, "t"))
        output.keep()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        output.close()


@pytest.mark.parametrize(("name", "made"), [("claude-code", transcript), ("codex", rollout)])
def test_an_import_holds_ids_and_no_contents(
    name: str, made: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assembler.cli.importing_to._SPOOL_BYTES", 1 << 16)
    few, many = 150, 600
    more = sum(map(len, made(many))) - sum(map(len, made(few)))
    peak(name, made(few), tmp_path / "warm")
    grown = peak(name, made(many), tmp_path / "many") - peak(name, made(few), tmp_path / "few")
    assert grown < more / 10
