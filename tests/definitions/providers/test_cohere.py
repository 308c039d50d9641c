"""Cohere's chat stream (v2): events by hand, recorded streams, spoilt events."""

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
    sound,
    spoilt_stream,
    texts,
    told,
)

Chunk = dict[str, Any]
COHERE = "cohere"


def event(kind: str, index: int | None = None, **message: Any) -> Chunk:
    place = {} if index is None else {"index": index}
    return {"type": kind, **place, **({"delta": {"message": message}} if message else {})}


def content(index: int, kind: str, *pieces: str) -> list[Chunk]:
    return [
        event("content-start", index, content={"type": kind, kind: ""}),
        *(event("content-delta", index, content={kind: piece}) for piece in pieces),
        event("content-end", index),
    ]


def call(index: int, *pieces: str, call_id: str = "") -> list[Chunk]:
    function = {"name": "look", "arguments": ""}
    begun = {"id": call_id or f"k{index}", "type": "function", "function": function}
    more = [{"function": {"arguments": piece}} for piece in pieces]
    return [
        event("tool-call-start", index, tool_calls=begun),
        *(event("tool-call-delta", index, tool_calls=each) for each in more),
        event("tool-call-end", index),
    ]


def end(reason: str | None = "TOOL_CALL", **more: Any) -> Chunk:
    return {"type": "message-end", "delta": {"finish_reason": reason, **more}}


CITATION = {"start": 3, "end": 8, "text": "rains", "sources": [{"type": "tool", "id": "t:0"}]}
USAGE = {
    "billed_units": {"input_tokens": 7, "output_tokens": 4},
    "tokens": {"input_tokens": 9, "output_tokens": 5},
    "cached_tokens": 2,
}
ALL_KINDS: list[Chunk] = [
    {"id": "m1", **event("message-start", role="assistant", content=[], tool_plan="")},
    *content(0, "thinking", "Where? ", "There."),
    *content(1, "text", "It ", "rains."),
    event("citation-start", 0, citations=CITATION),
    event("citation-end", 0),
    event("tool-plan-delta", tool_plan="I "),
    event("tool-plan-delta", tool_plan="look."),
    *call(0, '{"n":', "1}"),
    *call(1),
    end(usage=USAGE),
]


def response_to(*chunks: Any) -> Response:
    return read(COHERE, chunks)[1]


def test_every_kind_of_event_once() -> None:
    pieces, response = read(COHERE, ALL_KINDS)
    assert response.whole
    assert (texts(pieces), texts(pieces, "reasoning")) == ("It rains.", "Where? There.I look.")
    calls = [(each.call_id, each.name, each.arguments, each.ready) for each in response.calls]
    assert calls == [("k0", "look", {"n": 1}, True), ("k1", "look", {}, True)]
    assert named(pieces) == [("k0", "look"), ("k1", "look")]
    assert plain(response.content)[:3] == [
        {"type": "reasoning", "text": "Where? There."},
        {"type": "text", "text": "It rains.", "citations": [CITATION]},
        {"type": "reasoning", "text": "I look."},
    ]
    assert (response.stop_reason, response.stop_detail) == ("tool_use", "TOOL_CALL")
    assert plain(response.source) == {"name": COHERE, "message_id": "m1"}
    assert plain(response.usage) == {
        "input_tokens": 9,
        "output_tokens": 5,
        "cache_read_tokens": 2,
        "raw": USAGE,
    }


def test_an_event_may_be_named_by_its_stream() -> None:
    sent = ""
    for each in ALL_KINDS:
        fields = {name: value for name, value in each.items() if name != "type"}
        sent += f"event: {each['type']}\ndata: {json.dumps(fields)}\n\n"
    assert told(*read(COHERE, [sent])) == told(*read(COHERE, ALL_KINDS))


def test_a_text_is_told_again_with_what_it_rests_on() -> None:
    pieces, _ = read(COHERE, ALL_KINDS)
    told_whole = [piece.data["value"] for piece in pieces if piece.type == "block-end"]
    assert plain(told_whole) == [{"type": "text", "text": "It rains.", "citations": [CITATION]}]


def test_a_citation_names_the_content_it_belongs_to() -> None:
    response = response_to(
        *content(0, "text", "One."),
        *content(1, "text", "Two."),
        event("citation-start", 0, citations={**CITATION, "content_index": 0}),
        end("COMPLETE"),
    )
    assert ["citations" in block for block in plain(response.content)] == [True, False]


def test_a_call_is_told_when_it_begins_and_complete_when_it_ends() -> None:
    reads = adapter(COHERE)
    begun, *more, ended = call(0, '{"n":1}')
    assert named(reads.feed(begun)) == [("k0", "look")]
    for each in more:
        reads.feed(each)
    assert reads.hints() == []
    reads.feed(ended)
    assert [(hint.call_id, hint.arguments) for hint in reads.hints()] == [("k0", {"n": 1})]


@pytest.mark.parametrize(
    ("last", "why"),
    [
        (end(), None),
        (end("COMPLETE"), None),
        (end("STOP_SEQUENCE"), None),
        (end("SOMETHING_NEW"), None),
        (end("MAX_TOKENS"), "length"),
        (end("ERROR_LIMIT"), "length"),
        (end("ERROR_TOXIC"), "content-filter"),
        (end("ERROR", error="gone"), "stream-error"),
        (end("TIMEOUT"), "stream-error"),
        (end(None), "no-terminal"),
        ({"error": "gone"}, "stream-error"),
        ("event: error\ndata: gone\n\n", "stream-error"),
        ('event: error\ndata: {"message": "gone"}\n\n', "stream-error"),
        ("data: [DONE]\n\n", "no-terminal"),
    ],
)
def test_how_it_ends(last: Any, why: str | None) -> None:
    response = response_to(*call(0, "{}"), last)
    assert response.why == why
    assert response.calls[0].ready is (why is None)


def test_what_follows_the_end_takes_it_back() -> None:
    assert response_to(end(), event("tool-plan-delta", tool_plan="so")).why == "no-terminal"


def test_contents_and_calls_are_counted_apart() -> None:
    response = response_to(
        event("content-start", 0, content={"type": "text", "text": ""}),
        *call(0, "{}"),
        event("content-delta", 0, content={"text": "Hi"}),
        end(),
    )
    assert [block["type"] for block in plain(response.content)] == ["text", "tool-call"]
    assert response.calls[0].arguments == {}


def test_calls_that_come_in_turns_stay_apart() -> None:
    one, other = call(0, '{"n":', "1}"), call(1, '{"n":', "2}")
    mixed = [each for pair in zip(one, other, strict=True) for each in pair]
    assert [each.arguments for each in response_to(*mixed, end()).calls] == [{"n": 1}, {"n": 2}]


def test_a_call_that_never_ends_is_not_ready_and_its_sibling_is() -> None:
    response = response_to(*call(0, "{}")[:-1], *call(1, "{}"), end())
    assert [(each.ready, each.why) for each in response.calls] == [
        (False, "incomplete"),
        (True, None),
    ]


def test_pieces_whose_start_was_lost() -> None:
    response = response_to(
        *content(0, "text", "Hi")[1:], *content(1, "thinking", "So.")[1:], end("COMPLETE")
    )
    assert plain(response.content) == [
        {"type": "text", "text": "Hi"},
        {"type": "reasoning", "text": "So."},
    ]


def test_a_call_whose_start_was_lost_has_no_name_and_costs_nobody_anything() -> None:
    response = response_to(*call(0, '{"n":', "1}")[1:], *call(1, "{}"), end())
    assert [(each.arguments_text, each.why) for each in response.calls] == [
        ('{"n":1}', "no-name"),
        ("{}", None),
    ]


def test_text_at_the_place_of_reasoning_is_a_block_of_its_own() -> None:
    thought, *_ = content(0, "thinking")
    text = event("content-delta", 0, content={"text": "Hi"})
    response = response_to(thought, text, text, end("COMPLETE"))
    assert plain(response.content) == [{"type": "text", "text": "HiHi"}]


def test_what_is_not_modelled_is_kept() -> None:
    picture = {"type": "image", "image": {"url": "u"}}
    response = response_to(
        event("content-start", 0, content=picture),
        event("content-delta", 0, content={"more": 1}),
        event("content-end", 0),
        end("COMPLETE"),
    )
    assert plain(response.content)[0]["raw"] == {**picture, "deltas": [{"more": 1}]}


def test_a_whole_answer_that_was_not_streamed() -> None:
    function = {"name": "look", "arguments": '{"n":1}'}
    message = {
        "role": "assistant",
        "tool_plan": "I look.",
        "content": [{"type": "thinking", "thinking": "So."}, {"type": "text", "text": "It rains."}],
        "tool_calls": [{"id": "k1", "type": "function", "function": function}],
        "citations": [CITATION],
    }
    response = response_to(
        {"id": "m1", "finish_reason": "TOOL_CALL", "message": message, "usage": USAGE}
    )
    assert response.whole
    assert [(each.call_id, each.arguments) for each in response.calls] == [("k1", {"n": 1})]
    assert plain(response.content)[:3] == [
        {"type": "reasoning", "text": "I look."},
        {"type": "reasoning", "text": "So."},
        {"type": "text", "text": "It rains.", "citations": [CITATION]},
    ]
    assert response.usage["output_tokens"] == 5


def test_what_is_to_be_paid_is_counted_where_nothing_else_is() -> None:
    response = response_to(end(usage={"billed_units": USAGE["billed_units"]}))
    assert (response.usage["input_tokens"], response.usage["output_tokens"]) == (7, 4)


def test_events_say_the_same_for_every_cut_and_broken_off_nothing_is_ready() -> None:
    sent = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in ALL_KINDS)
    expected = told(*read(COHERE, ALL_KINDS))
    for parts in cuts(sent.encode(), 29):
        assert told(*read(COHERE, parts)) == expected
    broken_off(COHERE, ALL_KINDS)


def bodies(shared: Path) -> list[str]:
    streams = shared / "streams"
    found = [path.read_text() for path in sorted((streams / "cohere-v2").iterdir())]
    for path in sorted((streams / "exchange").glob("*cohere*")):
        rows = map(json.loads, path.read_text().splitlines())
        found += [row["response"] for row in rows if row["format"] == "cohere-v2"]
    return found


def test_recorded_streams_say_what_a_naive_reader_finds(shared: Path) -> None:
    found = 0
    for body in bodies(shared):
        pieces, response = read(COHERE, [body])
        emitted(pieces)
        assert response.whole
        made: dict[int, list[str]] = {}
        said = thought = ""
        for chunk in chunks_in(body.encode()):
            message = chunk.get("delta", {}).get("message", {})
            told_content = message.get("content") or {}
            said += told_content.get("text", "")
            thought += told_content.get("thinking", "") + message.get("tool_plan", "")
            calls = message.get("tool_calls") or {}
            if "id" in calls:
                made[chunk["index"]] = [calls["id"], calls["function"]["name"], ""]
            if calls:
                made[chunk["index"]][2] += calls["function"]["arguments"]
        assert (texts(pieces), texts(pieces, "reasoning")) == (said, thought)
        assert [[each.call_id, each.name, each.arguments] for each in response.calls] == [
            [call_id, name, json.loads(arguments or "{}")]
            for call_id, name, arguments in made.values()
        ]
        found += len(made)
    assert found == 5


@given(spoilt_stream(ALL_KINDS))
@settings(max_examples=50)
def test_no_field_however_odd_raises_or_breaks_the_output(chunks: list[Any]) -> None:
    sound(COHERE, chunks)
