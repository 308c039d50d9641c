"""Ollama's own chat format: chunks by hand, recorded streams, spoilt chunks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from assembler.codec import plain
from definitions.providers import Response, adapter
from tests.definitions.providers.support import (
    broken_off,
    chunks_in,
    cuts,
    emitted,
    named,
    read,
    spoilt_stream,
    texts,
    told,
)

Chunk = dict[str, Any]
OLLAMA = "ollama"


def said(**fields: Any) -> Chunk:
    return {"model": "toy-1", "message": {"role": "assistant", "content": "", **fields}}


def call(arguments: Any, **fields: Any) -> Chunk:
    name = fields.pop("name", "look")
    return {**fields, "function": {"index": 0, "name": name, "arguments": arguments}}


def end(**fields: Any) -> Chunk:
    return {**said(), "done": True, "done_reason": "stop", **fields}


ALL_KINDS: list[Chunk] = [
    said(thinking="Where? "),
    said(thinking="There."),
    said(content="It "),
    said(content="rains."),
    said(tool_calls=[call({"n": 1}, id="k1")]),
    said(tool_calls=[call({}, id="k2"), call({"n": 2})]),
    end(prompt_eval_count=9, eval_count=5, total_duration=7),
]


def response_to(*chunks: Any) -> Response:
    return read(OLLAMA, chunks)[1]


def test_every_kind_of_chunk_once() -> None:
    pieces, response = read(OLLAMA, ALL_KINDS)
    assert response.whole
    assert (texts(pieces), texts(pieces, "reasoning")) == ("It rains.", "Where? There.")
    calls = [(each.provider_call_id, each.name, each.arguments) for each in response.calls]
    assert calls == [("k1", "look", {"n": 1}), ("k2", "look", {}), (None, "look", {"n": 2})]
    assert all(each.ready for each in response.calls)
    assert named(pieces) == [("k1", "look"), ("k2", "look")]
    assert (response.stop_reason, response.stop_detail) == ("tool_use", "stop")
    assert plain(response.source) == {"name": OLLAMA, "model": "toy-1"}
    assert plain(response.usage) == {
        "input_tokens": 9,
        "output_tokens": 5,
        "raw": {"prompt_eval_count": 9, "eval_count": 5, "total_duration": 7},
    }


def test_a_call_is_complete_when_it_comes() -> None:
    reads = adapter(OLLAMA)
    reads.feed(ALL_KINDS[:5])
    assert [(hint.call_id, hint.arguments) for hint in reads.hints()] == [("k1", {"n": 1})]


@pytest.mark.parametrize(
    ("last", "why"),
    [
        (end(), None),
        (end(done_reason=None), None),
        (end(done_reason="something_new"), None),
        (end(done_reason="length"), "length"),
        ({"error": "out of memory"}, "stream-error"),
        ({**end(), "error": "out of memory"}, "stream-error"),
        (said(content="", done=False), "no-terminal"),
    ],
)
def test_how_it_ends(last: Chunk, why: str | None) -> None:
    response = response_to(said(tool_calls=[call({}, id="k1")]), last)
    assert response.why == why
    assert response.calls[0].ready is (why is None)


def test_what_follows_the_end_takes_it_back() -> None:
    assert response_to(end(), said(content="more")).why == "no-terminal"


def test_a_whole_answer_that_was_not_streamed() -> None:
    whole = {**said(content="Hi", tool_calls=[call('{"n":1}')]), "done": True}
    response = response_to(whole)
    assert response.whole
    assert response.calls[0].arguments == {"n": 1}


def test_lines_say_the_same_for_every_cut_and_broken_off_nothing_is_ready() -> None:
    sent = "".join(json.dumps(each) + "\n" for each in ALL_KINDS)
    expected = told(*read(OLLAMA, ALL_KINDS))
    for parts in cuts(sent.encode(), 7):
        assert told(*read(OLLAMA, parts)) == expected
    broken_off(OLLAMA, ALL_KINDS)


def bodies(shared: Path) -> list[str]:
    streams = shared / "streams"
    found = [path.read_text() for path in sorted((streams / "ollama-chat").iterdir())]
    for path in sorted((streams / "exchange").glob("*ollama*")):
        rows = map(json.loads, path.read_text().splitlines())
        found += [row["response"] for row in rows if row["format"] == "ollama-chat"]
    return found


def test_recorded_streams_say_what_a_naive_reader_finds(shared: Path) -> None:
    found = 0
    for body in bodies(shared):
        chunks = chunks_in(body.encode())
        pieces, response = read(OLLAMA, [body.rstrip() + "\n"])
        emitted(pieces)
        assert response.whole
        messages = [chunk["message"] for chunk in chunks]
        assert texts(pieces) == "".join(each["content"] for each in messages)
        assert texts(pieces, "reasoning") == "".join(each.get("thinking", "") for each in messages)
        made = [each for message in messages for each in message.get("tool_calls", [])]
        assert [(each.call_id, each.name, each.arguments) for each in response.calls] == [
            (each["id"], each["function"]["name"], each["function"]["arguments"]) for each in made
        ]
        found += len(made)
        assert response.usage["output_tokens"] == chunks[-1]["eval_count"]
    assert found == 3


@given(spoilt_stream(ALL_KINDS))
@settings(max_examples=50)
def test_no_field_however_odd_raises_or_breaks_the_output(chunks: list[Any]) -> None:
    pieces, response = read(OLLAMA, chunks)
    emitted(pieces)
    told(pieces, response)
    for each in response.calls:
        assert each.ready is (each.why is None)
