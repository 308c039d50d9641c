"""Messages of agents that speak ACP, as files hold them: logs, and snapshots of updates."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assembler import codec, plugins
from assembler.plugins import Sample
from assembler.recordings import Run
from assembler.recordings.arriving import disagreement
from assembler.recordings.format import read_lines
from assembler.recordings.transcripts import sample_of
from definitions.importers import IMPORTERS, ImportFault
from definitions.importers.acp import ACP

Json = dict[str, Any]

FILES = 76


def update(what: str, /, session: str = "s", **fields: Any) -> Json:
    params = {"sessionId": session, "update": {"sessionUpdate": what, **fields}}
    return {"jsonrpc": "2.0", "method": "session/update", "params": params}


def said(text: str, **fields: Any) -> Json:
    return update("agent_message_chunk", content={"type": "text", "text": text}, **fields)


def lines(*values: Any) -> list[bytes]:
    return [json.dumps(value).encode() + b"\n" for value in values]


def imported(*values: Any) -> list[Json]:
    return [dict(operation) for operation in ACP(lines(*values), name="s.jsonl")]


def events(operations: list[Json], kind: str) -> list[Json]:
    told = [each["event"] for each in operations if each.get("op") == "append"]
    return [event["data"] for event in told if event["type"] == kind]


LOG = [
    {"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": 1}},
    {"jsonrpc": "2.0", "id": 2, "result": {"sessionId": "s"}},
    said("Let me "),
    said("look."),
    update("tool_call", toolCallId="c1", kind="read", status="pending", rawInput={"path": "a"}),
    update("tool_call_update", toolCallId="c1", status="completed", rawOutput="red"),
    said("Red."),
    {"jsonrpc": "2.0", "id": 3, "result": {"stopReason": "end_turn"}},
]
CALL: Json = {"sessionUpdate": "tool_call", "toolCallId": "c1", "status": "completed"}


def test_a_log_of_what_an_agent_said() -> None:
    operations = imported(*LOG)
    texts = [each["content"][0]["text"] for each in events(operations, "assistant/message")]
    assert texts == ["Let me look.", "Red."]
    assert events(operations, "tool/result")[0]["content"] == [{"type": "text", "text": "red"}]
    assert events(operations, "turn/end") == [{"turn": 1, "reason": "completed"}]
    assert [each["data"]["text"] for each in operations if each.get("type") == "text"] == [
        *("Let me ", "look.", "Red."),
    ]
    assert len(events(operations, "acp/response")) == 2


@pytest.mark.parametrize(
    "values",
    [
        [CALL],
        [[CALL, {**CALL, "toolCallId": "c2"}]],
        [[{"type": "tool_call", "payload": CALL}]],
        [{"method": "sessionUpdate", "args": [{"sessionId": "s", "update": CALL}]}],
        [{"time": "2026-03-01T08:00:00Z", "message": update("tool_call", toolCallId="c1")}],
    ],
)
def test_how_files_hold_updates(values: list[Any]) -> None:
    text = "\n".join(json.dumps(value, indent=2) for value in values)
    for told in (lines(*values), [text.encode()], text.splitlines(keepends=True)):
        operations = [dict(each) for each in ACP(told, name="s")]
        assert events(operations, "tool/call")[0]["call_id"] == "c1"
    assert ACP.recognises(Sample(tuple(values)))


def test_when_it_was_said() -> None:
    operations = imported({"timestamp": "2026-03-01T08:00:00Z", "message": said("Hi")})
    assert operations[1]["event"]["time"] == 1_772_352_000_000


def test_another_session_is_another_conversation() -> None:
    prompt = {"jsonrpc": "2.0", "id": 9, "method": "session/prompt"}
    params = {"sessionId": "t", "prompt": [{"type": "text", "text": "Go"}]}
    stop = {"jsonrpc": "2.0", "id": 9, "result": {"stopReason": "end_turn"}}
    operations = imported(said("One"), {**prompt, "params": params}, said("Still one"), stop)
    other = [each for each in operations if each.get("conversation") == "t"]
    assert other[0]["recording"] == 1
    assert events(other, "turn/end") == [{"turn": 1, "reason": "completed"}]
    assert events(operations, "turn/start") == [{"turn": 1}, {"turn": 1}]


def test_what_waits_at_the_end_of_a_file_is_marked() -> None:
    call = update("tool_call", toolCallId="c1", status="pending", rawInput={"a": 1})
    waited = [each for each in imported(said("Hm"), call) if each.get("tail")]
    assert [(each["tail"], each["event"]["type"]) for each in waited if "event" in each] == [
        ("read", "assistant/message"),
        ("unfinished", "tool/call"),
    ]


def test_a_message_that_grows_keeps_its_id() -> None:
    def ids(*values: Any) -> list[str]:
        appended = [each["event"] for each in imported(*values) if each.get("op") == "append"]
        return [event["id"] for event in appended if event["type"] == "assistant/message"]

    assert ids(said("Hm")) == ids(said("Hm"), said(", well")) == ids(said("Hm"), LOG[-1])


def test_odd_values_are_kept() -> None:
    operations = imported(7, {"x": 1}, {"jsonrpc": "2.0", "method": "_vendor/thing"}, said("Hi"))
    assert events(operations, "acp/message") == [{"value": 7}, {"x": 1}]
    assert len(events(operations, "acp/_vendor/thing")) == 1
    assert len(events(operations, "assistant/message")) == 1


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (b"", None),
        (b'{"jsonrpc": "2.0"}\n{"json', None),
        (b'{\n"a": 1\n}\n{\n"b": ', None),
        (b"[\n{},\n", 2),
        (b"nothing", 1),
        (b'{\n"a": 1\n}\n{\n"b": nothing\n}', 5),
        (b'{"a": 1}\n{"b": nothing}\n{"c": 1}\n', 2),
    ],
)
def test_a_half_value_at_the_end_waits_and_another_is_a_fault(text: bytes, line: Any) -> None:
    told = text.splitlines(keepends=True)
    if line is None:
        assert list(ACP(told, name="s"))[-1] == {"op": "liveness", "live": False}
        return
    with pytest.raises(ImportFault) as fault:
        list(ACP(told, name="s"))
    assert fault.value.line == line


@pytest.mark.parametrize(
    "value",
    [
        {"type": "session", "sessionId": "s"},
        {"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2025-06-18"}},
        {"jsonrpc": "2.0", "method": "tools/call", "params": {}},
        {"method": "sessionUpdate"},
        {"message": {"role": "user"}},
    ],
)
def test_what_is_not_acp(value: Json) -> None:
    assert not ACP.recognises(Sample((value,)))


# -- files of others -----------------------------------------------------------------------------


def files(shared: Path) -> Iterator[Path]:
    yield from sorted((shared / "streams" / "acp").iterdir())


def operations_of(told: list[bytes]) -> list[Json]:
    return [{**each} for each in ACP(told, name="file")]


def lasting(operations: list[Json]) -> list[Json]:
    """What stays when the file goes on."""
    return [each for each in operations if not each.get("tail") and each.get("op") != "liveness"]


def test_every_file_reads_and_every_way_of_arriving_shows_the_same(shared: Path) -> None:
    known = plugins.catalog()
    found = list(files(shared))
    assert len(found) == FILES
    for path in found:
        operations = operations_of(path.read_bytes().splitlines(keepends=True))
        told = [{name: each[name] for name in each if name != "tail"} for each in operations]
        recording = next(read_lines([codec.encode(each) + b"\n" for each in told], path.name))
        run = Run(recording, known)
        for operation in recording.operations:
            run.do(operation)
        run.give_up()
        assert disagreement(run.assembler, run.facts(), known, run.views) is None, path.name
        assert list(run.assembler.findings()) == [], path.name


def test_a_cut_log_says_the_beginning_of_the_whole_one(shared: Path) -> None:
    found = [path for path in files(shared) if path.suffix == ".jsonl"]
    logs = [path.read_bytes().splitlines(keepends=True) for path in found]
    for told in [*logs, lines(*LOG)]:
        whole = lasting(operations_of(told))
        for at in range(1, len(told)):
            said_so_far = lasting(operations_of(told[:at]))
            assert said_so_far == whole[: len(said_so_far)]


def test_it_knows_its_own_files_and_no_others(shared: Path) -> None:
    for path in sorted((shared / "streams").rglob("*")):
        if not path.is_file() or path.parent == shared / "streams":
            continue
        with path.open("rb") as file:
            sample = sample_of(file)
        assert ACP.recognises(sample) is (path.parent.name == "acp"), path
        if path.parent.name == "acp":
            others = [name for name, each in IMPORTERS.items() if each.recognises(sample)]
            assert [name for name in others if name != "acp"] == [], path
