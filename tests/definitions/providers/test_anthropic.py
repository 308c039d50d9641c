"""Anthropic Messages: what its events come to, by hand, by recorded streams, and when spoilt."""

from __future__ import annotations

import csv
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assembler.codec import plain
from assembler.engine.values import same
from definitions.providers import Response
from tests.definitions.providers.support import (
    broken_off,
    chunks_in,
    cuts,
    emitted,
    named,
    read,
    sound,
    spoilt,
    spoilt_stream,
    texts,
    told,
)

Chunk = dict[str, Any]
FOLDER = "anthropic-messages"


def start(index: int, type_: str, /, **fields: Any) -> Chunk:
    block = {"type": type_, **fields}
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, type_: str, /, **fields: Any) -> Chunk:
    return {"type": "content_block_delta", "index": index, "delta": {"type": type_, **fields}}


def stop(index: int) -> Chunk:
    return {"type": "content_block_stop", "index": index}


def begin(**message: Any) -> Chunk:
    return {"type": "message_start", "message": {"id": "m1", "content": [], **message}}


def end(reason: str | None = "end_turn", **usage: int) -> list[Chunk]:
    said: Chunk = {"type": "message_delta", "delta": {"stop_reason": reason}}
    if usage:
        said["usage"] = usage
    return [said, {"type": "message_stop"}]


def call(index: int, *pieces: str, **fields: Any) -> list[Chunk]:
    fields = {"id": "u1", "name": "look", "input": {}, **fields}
    return [
        start(index, "tool_use", **fields),
        *(delta(index, "input_json_delta", partial_json=piece) for piece in pieces),
        stop(index),
    ]


def response_to(*chunks: Chunk) -> Response:
    return read("anthropic", chunks)[1]


USAGE = {"input_tokens": 9, "cache_read_input_tokens": 4, "output_tokens": 1}
RESULT = {"type": "web_search_result", "url": "https://example.com", "title": "Rain"}
ALL_KINDS: list[Chunk] = [
    begin(model="toy-1", usage=USAGE),
    {"type": "ping"},
    start(0, "thinking", thinking="", signature=""),
    delta(0, "thinking_delta", thinking="Where? "),
    delta(0, "thinking_delta", thinking="There."),
    delta(0, "signature_delta", signature="c2ln"),
    stop(0),
    start(1, "redacted_thinking", data="c2VjcmV0"),
    stop(1),
    start(2, "server_tool_use", id="s1", name="web_search", input={}),
    delta(2, "input_json_delta", partial_json=""),
    delta(2, "input_json_delta", partial_json='{"query":"rain"}'),
    stop(2),
    start(
        3,
        "web_search_tool_result",
        tool_use_id="s1",
        content=[RESULT],
    ),
    stop(3),
    start(4, "text", text="", citations=[]),
    delta(4, "text_delta", text="It "),
    delta(4, "citations_delta", citation={"type": "page", "cited_text": "rain"}),
    delta(4, "text_delta", text="rains."),
    stop(4),
    *call(5, "", '{"path":', '"a"}', id="u1", name="read", caller={"type": "direct"}),
    *end("tool_use", output_tokens=30),
]


def test_every_kind_of_block_once() -> None:
    pieces, response = read("anthropic", ALL_KINDS)
    assert response.whole
    assert plain(response.content) == [
        {"type": "reasoning", "text": "Where? There.", "signature": "c2ln"},
        {
            "type": "provider",
            "provider": "anthropic",
            "raw": {"type": "redacted_thinking", "data": "c2VjcmV0"},
        },
        {
            "type": "tool-call",
            "call_id": "s1",
            "name": "web_search",
            "arguments": '{"query":"rain"}',
            "ran_by": "provider",
            "raw": {"type": "server_tool_use"},
        },
        {
            "type": "provider",
            "provider": "anthropic",
            "call_id": "s1",
            "raw": ALL_KINDS[13]["content_block"],
        },
        {
            "type": "text",
            "text": "It rains.",
            "citations": [{"type": "page", "cited_text": "rain"}],
        },
        {
            "type": "tool-call",
            "call_id": "u1",
            "name": "read",
            "arguments": '{"path":"a"}',
            "raw": {"type": "tool_use", "caller": {"type": "direct"}},
        },
    ]
    assert [(each.type, plain(each.data)) for each in response.ran] == [
        (
            "tool/call",
            {
                "call_id": "s1",
                "name": "web_search",
                "arguments": '{"query":"rain"}',
                "provider_call_id": "s1",
                "ran_by": "provider",
            },
        ),
        (
            "tool/result",
            {
                "call_id": "s1",
                "content": [{"type": "json", "value": RESULT}],
            },
        ),
    ]
    assert [(each.name, each.ready, each.ran_by) for each in response.calls] == [
        ("web_search", True, "provider"),
        ("read", True, "host"),
    ]
    assert (response.stop_reason, response.stop_detail) == ("tool_use", "tool_use")
    assert plain(response.source) == {"name": "anthropic", "message_id": "m1", "model": "toy-1"}
    assert plain(response.usage) == {
        "input_tokens": 9,
        "output_tokens": 30,
        "cache_read_tokens": 4,
        "raw": {**USAGE, "output_tokens": 30},
    }
    assert texts(pieces, "reasoning") == "Where? There."
    assert named(pieces) == [("s1", "web_search"), ("u1", "read")]


def test_what_the_provider_wants_back_is_kept_in_the_source() -> None:
    said = {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use", "container": {"id": "b1"}},
    }
    source = plain(response_to(begin(), *call(0), said, end()[1]).source)
    assert source == {"name": "anthropic", "message_id": "m1", "container": {"id": "b1"}}


def test_what_is_streamed_shows_while_it_is_written() -> None:
    pieces, _ = read("anthropic", ALL_KINDS)
    view = emitted(pieces).view()
    assert [node.key for node in view.nodes] == ["assistant:1.1", "tool:s1", "tool:u1"]
    blocks = view["assistant:1.1"].to_json()["data"]["blocks"]
    assert [block["type"] for block in blocks] == ["reasoning", "provider", "text"]


def test_a_fragment_never_joins_another_block_or_message() -> None:
    chunks = [
        begin(),
        *call(0, '{"a":1}', id="u1"),
        *end("tool_use"),
        begin(id="m2"),
        delta(0, "text_delta", text="of the second"),
        *call(1, '{"a":2}', id="u2"),
        *end("tool_use"),
    ]
    response = response_to(*chunks)
    assert [each.arguments for each in response.calls] == [{"a": 1}, {"a": 2}]
    assert response.content[1]["text"] == "of the second"


def test_blocks_may_be_written_side_by_side() -> None:
    first, second = call(0, '{"a":', "1}", id="u1"), call(1, '{"b":', "2}", id="u2")
    mixed = [chunk for pair in zip(first, second, strict=True) for chunk in pair]
    calls = response_to(begin(), *mixed, *end("tool_use")).calls
    assert [each.arguments for each in calls] == [{"a": 1}, {"b": 2}]


def test_an_index_that_comes_again_leaves_the_first_block_unfinished() -> None:
    chunks = [begin(), *call(0, '{"a":', id="u1")[:-1], *call(0, "1}", id="u2"), *end("tool_use")]
    assert [each.why for each in response_to(*chunks).calls] == ["incomplete", "invalid-json"]


def test_a_block_that_never_closed_is_incomplete_in_a_whole_answer() -> None:
    (only,) = response_to(begin(), *call(0, "{}")[:-1], *end("tool_use")).calls
    assert (only.ready, only.why, only.arguments_text) == (False, "incomplete", "{}")


def test_a_call_that_stands_whole_in_the_message_start() -> None:
    block = {"type": "tool_use", "id": "u1", "name": "roll", "input": {"player": "p1"}}
    inside = {"caller": {"type": "code_execution_20250825", "tool_id": "s0"}}
    message = begin(content=[{**block, **inside}, {"type": "text", "text": "So."}])
    pieces, response = read("anthropic", [message, {"type": "message_stop"}])
    (only,) = response.calls
    assert (only.call_id, only.arguments, only.parent_call_id) == ("u1", {"player": "p1"}, "s0")
    assert response.whole
    assert named(pieces) == [("u1", "roll")]
    assert texts(pieces) == "So."


def test_a_whole_message_that_was_not_streamed() -> None:
    block = {"type": "tool_use", "id": "u1", "name": "roll", "input": {"n": 1}}
    message = {"type": "message", "content": [block], "stop_reason": "tool_use"}
    (only,) = response_to(message).calls
    assert only.arguments == {"n": 1}


@pytest.mark.parametrize(
    ("given_input", "pieces", "arguments", "why"),
    [
        ({}, [], {}, None),
        ({}, [""], {}, None),
        (None, [], {}, None),
        ({"a": 1}, [], {"a": 1}, None),
        ({"a": 1}, ["", '{"a":', "1}"], {"a": 1}, None),
        ({"a": 1}, ['{"a":2}'], None, "arguments-conflict"),
        ('{"a":1}', [], {"a": 1}, None),
        ([1], [], None, "invalid-json"),
        ([], [], {}, None),
        (False, [], None, "invalid-json"),
        (0, [], None, "invalid-json"),
    ],
)
def test_the_input_of_the_block_start(
    given_input: Any, pieces: list[str], arguments: Any, why: str | None
) -> None:
    (only,) = response_to(begin(), *call(0, *pieces, input=given_input), *end("tool_use")).calls
    assert (only.arguments, only.why) == (arguments, why)


@pytest.mark.parametrize(
    ("reason", "ours", "why"),
    [
        ("end_turn", "tool_use", None),
        ("stop_sequence", "tool_use", None),
        ("pause_turn", "pause", None),
        (None, "tool_use", None),
        ("something_new", "tool_use", None),
        ("max_tokens", "length", "length"),
        ("model_context_window_exceeded", "length", "length"),
        ("refusal", "refusal", "content-filter"),
    ],
)
def test_stop_reasons(reason: str | None, ours: str, why: str | None) -> None:
    response = response_to(begin(), *call(0, "{}"), *end(reason))
    assert (response.stop_reason, response.stop_detail, response.why) == (ours, reason, why)
    assert response.calls[0].ready is (why is None)


@pytest.mark.parametrize(
    "error",
    [
        {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}},
        {"error": {"type": "overloaded_error", "message": "busy"}},
        {"type": "error"},
    ],
)
@pytest.mark.parametrize("behind", [0, 1, 2])
def test_an_error_anywhere_is_an_error_of_all(error: Chunk, behind: int) -> None:
    last = end("tool_use")
    chunks = [begin(), *call(0, "{}"), *last[:behind], error, *last[behind:]]
    response = response_to(*chunks)
    assert response.why == "stream-error"
    assert not response.calls[0].ready


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({"input_tokens": 0}, {"input_tokens": 0}),
        ({"input_tokens": None, "output_tokens": -1}, {}),
        ({"input_tokens": True, "output_tokens": "7"}, {}),
        ({"output_tokens": 1 << 53}, {}),
        ({"cache_creation_input_tokens": 5}, {"cache_write_tokens": 5}),
        ({"output_tokens_details": {"thinking_tokens": 6}}, {"reasoning_tokens": 6}),
    ],
)
def test_only_counts_are_counted(counts: Chunk, expected: dict[str, int]) -> None:
    usage = plain(response_to(begin(usage={"speed": "fast", **counts}), *end()).usage)
    assert usage.pop("raw")["speed"] == "fast"
    assert usage == expected


def test_the_name_of_the_event_counts_when_the_chunk_has_no_type() -> None:
    stream = 'event: error\ndata: {"message": "busy"}\n\n'
    assert read("anthropic", [stream])[1].why == "stream-error"


@pytest.mark.parametrize("at", range(1, 8))
def test_a_chunk_that_cannot_be_read_may_be_a_hole(at: int) -> None:
    chunks = [json.dumps(each) for each in (begin(), *call(0, '{"a":', "1}"), *end("tool_use"))]
    chunks.insert(at, '{"type": "content_blo')
    response = read("anthropic", ["".join(f"data: {each}\n\n" for each in chunks)])[1]
    assert response.why == (None if at == len(chunks) - 1 else "stream-error")
    assert response.calls[0].ready is response.whole


def test_unknown_blocks_are_kept_with_what_belongs_to_them() -> None:
    chunks = [
        start(0, "hologram", light=1),
        delta(0, "hologram_delta", beam=[1]),
        delta(0, "hologram_delta", beam=[2]),
        stop(0),
    ]
    (block,) = response_to(begin(), *chunks, *end()).content
    assert plain(block["raw"]) == {
        "type": "hologram",
        "light": 1,
        "deltas": [
            {"type": "hologram_delta", "beam": [1]},
            {"type": "hologram_delta", "beam": [2]},
        ],
    }


def test_a_summary_comes_in_pieces() -> None:
    chunks = [
        start(0, "compaction", content=None),
        delta(0, "compaction_delta", content="Earlier: "),
        delta(0, "compaction_delta", content="rain.", encrypted_content="x"),
        stop(0),
    ]
    (block,) = response_to(begin(), *chunks, *end()).content
    expected = {"type": "compaction", "content": "Earlier: rain.", "encrypted_content": "x"}
    assert plain(block["raw"]) == expected


def test_a_call_that_some_new_tool_of_the_provider_runs() -> None:
    chunks = [start(0, "advisor_tool_use", id="s1", name="advise", input={"q": 1}), stop(0)]
    (only,) = response_to(begin(), *chunks, *end()).calls
    assert (only.ran_by, only.arguments) == ("provider", {"q": 1})


@pytest.mark.parametrize(
    ("content", "is_error", "expected"),
    [
        ([{"type": "text", "text": "seven"}], False, [{"type": "text", "text": "seven"}]),
        ("seven", False, [{"type": "text", "text": "seven"}]),
        ([{"type": "text", "text": "no"}], True, [{"type": "text", "text": "no"}]),
        (
            {"type": "web_search_tool_result_error", "error_code": "unavailable"},
            None,
            [
                {
                    "type": "json",
                    "value": {"type": "web_search_tool_result_error", "error_code": "unavailable"},
                }
            ],
        ),
        (None, None, []),
    ],
)
def test_results_of_calls_that_the_provider_ran(
    content: Any, is_error: bool | None, expected: Any
) -> None:
    block = {"tool_use_id": "s0", "content": content, "is_error": is_error}
    response = response_to(begin(), start(0, "mcp_tool_result", **block), stop(0), *end())
    (result,) = response.ran
    data = plain(result.data)
    assert (data["call_id"], data["content"]) == ("s0", expected)
    assert data.get("is_error", False) is (is_error is not False and expected != [])


def test_a_delta_whose_start_nobody_sent_opens_its_block() -> None:
    chunks = [
        delta(0, "text_delta", text="Hi"),
        delta(1, "input_json_delta", partial_json="{}"),
        stop(1),
    ]
    response = response_to(*chunks, *end())
    assert response.content[0]["text"] == "Hi"
    assert [each.why for each in response.calls] == ["no-name"]


class Event:
    """As the SDK gives its events."""

    def __init__(self, chunk: Chunk) -> None:
        self.chunk = chunk

    def model_dump(self, **how: Any) -> Chunk:
        return self.chunk


def test_objects_bytes_and_decoded_chunks_say_the_same() -> None:
    stream = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in ALL_KINDS)
    expected = told(*read("anthropic", ALL_KINDS))
    for parts in (
        [stream.encode()],
        [Event(each) for each in ALL_KINDS],
        ["".join(json.dumps(each) + "\n" for each in ALL_KINDS)],
        [json.dumps(ALL_KINDS, indent=1)],
        *cuts(stream.encode(), 7),
    ):
        assert told(*read("anthropic", parts)) == expected


def test_broken_off_anywhere_no_call_is_ready() -> None:
    broken_off("anthropic", ALL_KINDS)


# Recorded streams


def naive(chunks: list[Chunk]) -> list[tuple[str, str, Any]]:
    """The calls of a stream, read as simply as can be: id, name, arguments."""
    calls: list[dict[str, Any]] = []
    open_: dict[int, dict[str, Any]] = {}
    for chunk in chunks:
        if chunk["type"] == "message_start":
            blocks = chunk["message"]["content"]
        elif chunk["type"] == "content_block_start":
            blocks = [chunk["content_block"]]
        else:
            blocks = []
            written = chunk.get("delta", {}).get("partial_json")
            if written is not None:
                open_[chunk["index"]]["text"] += written
        for block in blocks:
            if block["type"].endswith("tool_use"):
                calls.append({**block, "text": ""})
                if "index" in chunk:
                    open_[chunk["index"]] = calls[-1]
    return [
        (each["id"], each["name"], json.loads(each["text"]) if each["text"] else each["input"])
        for each in calls
    ]


def recorded(shared: Path) -> list[Path]:
    return sorted((shared / "streams" / FOLDER).iterdir())


def test_recorded_streams_have_the_calls_that_they_have(shared: Path) -> None:
    with (shared / "streams" / "MANIFEST.tsv").open() as file:
        rows = {row["file"]: row for row in csv.DictReader(file, delimiter="\t")}
    for path in recorded(shared):
        pieces, response = read("anthropic", [path.read_bytes()])
        calls = [(each.call_id, each.name, each.arguments) for each in response.calls]
        assert same(calls, naive(chunks_in(path.read_bytes()))), path.name
        row = rows[path.name]
        first = "; ".join(f"{call_id}={name}" for call_id, name, _ in calls[:6])
        assert row["call id=name (first 6)"].partition("; +")[0] == first, path.name
        assert int(row["calls"]) == len(calls), path.name
        assert response.stop_detail == row["finish"], path.name
        assert response.whole or response.stop_detail == "refusal", path.name
        assert [each for each, _ in named(pieces)] == [each for each, _, _ in calls], path.name
        assert response.incidents == ()
        emitted(pieces)


def test_recorded_streams_say_the_same_for_every_cut(shared: Path) -> None:
    for path in recorded(shared):
        data = path.read_bytes()
        expected = told(*read("anthropic", [data]))
        assert told(*read("anthropic", chunks_in(data))) == expected, path.name
        for parts in cuts(data, max(1, len(data) // 5)):
            assert told(*read("anthropic", parts)) == expected, path.name


@pytest.mark.deep
def test_recorded_streams_say_the_same_for_really_every_cut(shared: Path) -> None:
    for path in recorded(shared):
        data = path.read_bytes()
        expected = told(*read("anthropic", [data]))
        for parts in cuts(data, 1 if len(data) < 1_050 else len(data) // 10):
            assert told(*read("anthropic", parts)) == expected, path.name


def test_recorded_streams_broken_off(shared: Path) -> None:
    for path in recorded(shared):
        chunks = chunks_in(path.read_bytes())
        ends = [at + 1 for at, chunk in enumerate(chunks) if chunk["type"] == "message_stop"]
        if len(chunks) < 80 and not path.name.endswith("refusal.chunks.txt"):
            stopped = [at + 1 for at, chunk in enumerate(chunks) if "refusal" in str(chunk)]
            broken_off("anthropic", chunks, [*ends, *stopped])


def sent_back(request: Any) -> dict[str, Any]:
    """The calls in the history that a client sent with its next request: their input by id."""
    messages = request.get("messages", []) if isinstance(request, dict) else []
    lists = [each["content"] for each in messages if isinstance(each.get("content"), list)]
    blocks = [block for content in lists for block in content]
    return {block["id"]: block["input"] for block in blocks if block["type"].endswith("_use")}


def test_what_clients_sent_back_is_what_was_read(shared: Path) -> None:
    compared = 0
    for path in sorted((shared / "streams" / "exchange").glob("*anthropic*")):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        for row, after in pairwise(rows):
            if "anthropic" not in (row["format"] or ""):
                continue
            history = sent_back(after["request"])
            for each in read("anthropic", [row["response"]])[1].calls:
                if each.call_id in history:
                    compared += 1
                    assert same(each.arguments, history[each.call_id]), path.name
    assert compared > 10


# Spoilt chunks


@given(spoilt_stream(ALL_KINDS))
@settings(max_examples=50)
def test_no_field_however_odd_raises_or_breaks_the_output(chunks: list[Any]) -> None:
    sound("anthropic", chunks)


@given(st.integers(0, len(ALL_KINDS) - 8), st.data())
@settings(max_examples=40)
def test_one_odd_chunk_does_not_cost_the_call_behind_it(at: int, data: st.DataObject) -> None:
    odd = data.draw(spoilt(ALL_KINDS[at]).filter(lambda each: "error" not in str(each)))
    chunks = [*ALL_KINDS[:at], *([odd] if isinstance(odd, dict) else []), *ALL_KINDS[at + 1 :]]
    _, response = read("anthropic", chunks)
    assert response.calls[-1].to_json()["arguments"] == {"path": "a"}


@pytest.mark.deep
@given(st.permutations(ALL_KINDS).flatmap(spoilt_stream))
@settings(max_examples=50)
def test_no_order_of_spoilt_chunks_raises(chunks: list[Any]) -> None:
    pieces, response = read("anthropic", chunks)
    emitted(pieces)
    told(pieces, response)
