"""Bedrock's ConverseStream: events by hand, recorded streams, spoilt events."""

from __future__ import annotations

import json
from collections.abc import Mapping
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
BEDROCK = "bedrock"


def start(index: int, **start: Any) -> Chunk:
    return {"contentBlockStart": {"contentBlockIndex": index, "start": start}}


def delta(index: int, **delta: Any) -> Chunk:
    return {"contentBlockDelta": {"contentBlockIndex": index, "delta": delta}}


def stop(index: int) -> Chunk:
    return {"contentBlockStop": {"contentBlockIndex": index}}


def end(reason: str = "tool_use") -> Chunk:
    return {"messageStop": {"stopReason": reason}}


def call(index: int, *pieces: str, **named: Any) -> list[Chunk]:
    use = {"toolUseId": f"k{index}", "name": "look", **named}
    made = [delta(index, toolUse={"input": piece}) for piece in pieces]
    return [start(index, toolUse=use), *made, stop(index)]


BEGIN: Chunk = {"messageStart": {"role": "assistant", "p": "abc"}}
USAGE = {"inputTokens": 9, "outputTokens": 5, "totalTokens": 16, "cacheReadInputTokens": 2}
ALL_KINDS: list[Chunk] = [
    BEGIN,
    delta(0, reasoningContent={"text": "Where? "}),
    delta(0, reasoningContent={"text": "There."}),
    delta(0, reasoningContent={"signature": "c2"}),
    delta(0, reasoningContent={"signature": "ln"}),
    stop(0),
    delta(1, reasoningContent={"redactedContent": "b3Bh"}),
    stop(1),
    delta(2, text="It "),
    delta(2, text="rains."),
    delta(2, citation={"title": "Sky", "source": "s"}),
    stop(2),
    *call(3, "", '{"n":', "1}"),
    *call(4, ""),
    end(),
    {"metadata": {"usage": USAGE, "metrics": {"latencyMs": 7}}},
]


def response_to(*chunks: Any) -> Response:
    return read(BEDROCK, chunks)[1]


def content_of(*chunks: Any) -> Any:
    return plain(response_to(*chunks).content)


def test_every_kind_of_event_once() -> None:
    pieces, response = read(BEDROCK, ALL_KINDS)
    assert response.whole
    assert (texts(pieces), texts(pieces, "reasoning")) == ("It rains.", "Where? There.")
    calls = [(each.call_id, each.name, each.arguments, each.ready) for each in response.calls]
    assert calls == [("k3", "look", {"n": 1}, True), ("k4", "look", {}, True)]
    assert named(pieces) == [("k3", "look"), ("k4", "look")]
    assert plain(response.content)[:3] == [
        {"type": "reasoning", "text": "Where? There.", "signature": "c2ln"},
        {
            "type": "provider",
            "provider": BEDROCK,
            "raw": {"deltas": [{"reasoningContent": {"redactedContent": "b3Bh"}}]},
        },
        {"type": "text", "text": "It rains.", "citations": [{"title": "Sky", "source": "s"}]},
    ]
    assert (response.stop_reason, response.stop_detail) == ("tool_use", "tool_use")
    assert plain(response.usage) == {
        "input_tokens": 9,
        "output_tokens": 5,
        "cache_read_tokens": 2,
        "raw": USAGE,
    }


@pytest.mark.parametrize("with_type", [True, False])
def test_an_event_may_be_named_beside_its_fields(with_type: bool) -> None:
    expected = told(*read(BEDROCK, ALL_KINDS))
    if with_type:
        flat = [{"type": name, **told} for each in ALL_KINDS for name, told in each.items()]
        assert told(*read(BEDROCK, flat)) == expected
    else:
        lines = "".join(
            f"event: {name}\ndata: {json.dumps(told)}\n\n"
            for each in ALL_KINDS
            for name, told in each.items()
        )
        assert told(*read(BEDROCK, [lines])) == expected


def test_a_call_is_told_when_it_begins_and_complete_when_its_block_stops() -> None:
    reads = adapter(BEDROCK)
    begun, *more, stopped = call(0, '{"n":1}')
    assert named(reads.feed(begun)) == [("k0", "look")]
    for each in more:
        reads.feed(each)
    assert reads.hints() == []
    reads.feed(stopped)
    assert [(hint.call_id, hint.arguments) for hint in reads.hints()] == [("k0", {"n": 1})]


@pytest.mark.parametrize(
    ("last", "why"),
    [
        (end(), None),
        (end("end_turn"), None),
        (end("stop_sequence"), None),
        (end("something_new"), None),
        (end("max_tokens"), "length"),
        (end("model_context_window_exceeded"), "length"),
        (end("guardrail_intervened"), "content-filter"),
        (end("content_filtered"), "content-filter"),
        (end("malformed_tool_use"), "stream-error"),
        ({"modelStreamErrorException": {"message": "gone"}}, "stream-error"),
        ({"type": "throttlingException", "message": "slow"}, "stream-error"),
        ({"error": {"message": "gone"}}, "stream-error"),
        ({"metadata": {"usage": USAGE}}, "no-terminal"),
    ],
)
def test_how_it_ends(last: Chunk, why: str | None) -> None:
    response = response_to(*call(0, "{}"), last)
    assert response.why == why
    assert response.calls[0].ready is (why is None)


def test_an_exception_says_which_one() -> None:
    response = response_to({"throttlingException": {"message": "slow"}})
    assert plain(response.error) == {"code": "throttlingException", "message": "slow"}


@pytest.mark.parametrize("after", [True, False])
def test_the_usage_may_stand_on_either_side_of_the_end(after: bool) -> None:
    usage = {"metadata": {"usage": USAGE}}
    response = response_to(*call(0), *([end(), usage] if after else [usage, end()]))
    assert response.whole
    assert response.usage["output_tokens"] == 5


def test_what_follows_the_end_takes_it_back() -> None:
    assert response_to(end(), delta(0, text="more")).why == "no-terminal"


def test_a_call_that_never_stops_is_not_ready_and_its_sibling_is() -> None:
    response = response_to(*call(0, "{}")[:-1], *call(1, "{}"), end())
    assert [(each.ready, each.why) for each in response.calls] == [
        (False, "incomplete"),
        (True, None),
    ]


def test_texts_of_different_blocks_stay_apart_without_a_start_or_a_stop() -> None:
    content = content_of(delta(0, text="One."), delta(1, text="Two."), end("end_turn"))
    assert content == [{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}]


def test_text_at_the_place_of_something_else_is_a_block_of_its_own() -> None:
    thought = delta(0, reasoningContent={"text": "So."})
    content = content_of(thought, delta(0, text="Hi"), end("end_turn"))
    assert [block["type"] for block in content] == ["reasoning", "text"]


def test_what_the_provider_ran_is_told_and_never_handed_over() -> None:
    result = {"toolUseId": "k0", "type": "search_result", "status": "success"}
    response = response_to(
        *call(0, '{"q":"rain"}', type="server_tool_use"),
        start(1, toolResult=result),
        delta(1, toolResult=[{"text": "It "}]),
        delta(1, toolResult=[{"json": {"wet": True}}]),
        stop(1),
        end("end_turn"),
    )
    assert [(each.ran_by, each.ready) for each in response.calls] == [("provider", True)]
    assert [ran.type for ran in response.ran] == ["tool/call", "tool/result"]
    assert plain(response.ran[1].data) == {
        "call_id": "k0",
        "content": [
            {"type": "text", "text": "It "},
            {"type": "json", "value": {"wet": True}},
        ],
    }
    assert response.stop_reason == "end_turn"


def test_bytes_of_an_sdk_are_kept_as_the_wire_has_them() -> None:
    given = delta(0, reasoningContent={"redactedContent": b"opa"})
    assert content_of(given, end("end_turn")) == [
        {
            "type": "provider",
            "provider": BEDROCK,
            "raw": {"deltas": [{"reasoningContent": {"redactedContent": "b3Bh"}}]},
        }
    ]


def test_what_is_not_modelled_is_kept() -> None:
    image = delta(0, image={"source": {"bytes": "aaaa"}})
    content = content_of(start(0, image={"format": "png"}), image, stop(0), end("end_turn"))
    assert content[0]["raw"] == {
        "image": {"format": "png"},
        "deltas": [{"image": {"source": {"bytes": "aaaa"}}}],
    }


def test_a_whole_answer_that_was_not_streamed() -> None:
    blocks = [
        {"reasoningContent": {"reasoningText": {"text": "So.", "signature": "c2ln"}}},
        {"text": "Hi"},
        {"citationsContent": {"content": [{"text": "It."}], "citations": [{"title": "Sky"}]}},
        {"toolUse": {"toolUseId": "k1", "name": "look", "input": {"n": 1}}},
        {"toolUse": {"toolUseId": "k2", "name": "look", "input": {}}},
        {"video": {"format": "mp4"}},
    ]
    whole = {
        "ResponseMetadata": {"RequestId": "r1"},
        "output": {"message": {"role": "assistant", "content": blocks}},
        "stopReason": "tool_use",
        "usage": USAGE,
    }
    response = response_to(whole)
    assert response.whole
    assert [each.arguments for each in response.calls] == [{"n": 1}, {}]
    assert plain(response.source) == {"name": BEDROCK, "message_id": "r1"}
    content = plain(response.content)
    assert content[0] == {"type": "reasoning", "text": "So.", "signature": "c2ln"}
    assert [block["text"] for block in content[1:3]] == ["Hi", "It."]
    assert content[-1]["raw"] == {"video": {"format": "mp4"}}
    assert response.usage["input_tokens"] == 9


def test_lines_say_the_same_for_every_cut_and_broken_off_nothing_is_ready() -> None:
    sent = "".join(json.dumps(each) + "\n" for each in ALL_KINDS)
    expected = told(*read(BEDROCK, ALL_KINDS))
    for parts in cuts(sent.encode(), 29):
        assert told(*read(BEDROCK, parts)) == expected
    broken_off(BEDROCK, ALL_KINDS, [len(ALL_KINDS) - 1])


def bodies(shared: Path) -> list[str]:
    streams = shared / "streams"
    found = [path.read_text() for path in sorted((streams / "bedrock-converse").iterdir())]
    for path in sorted((streams / "exchange").glob("*bedrock*")):
        rows = map(json.loads, path.read_text().splitlines())
        found += [row["response"] for row in rows if row["format"] == "bedrock-converse"]
    return found


def test_recorded_streams_say_what_a_naive_reader_finds(shared: Path) -> None:
    found = 0
    for body in bodies(shared):
        pieces, response = read(BEDROCK, [body])
        emitted(pieces)
        made: dict[int, list[str]] = {}
        said = ""
        for chunk in chunks_in(body.encode()):
            for fields in chunk.values():
                use: Mapping[str, Any] = fields.get("start", {}).get("toolUse", {})
                if use:
                    made[fields["contentBlockIndex"]] = [use["toolUseId"], use["name"], ""]
                piece = fields.get("delta", {})
                said += piece.get("text", "")
                if "toolUse" in piece:
                    made[fields["contentBlockIndex"]][2] += piece["toolUse"]["input"]
        assert texts(pieces) == said
        assert response.whole or response.stop_detail == "guardrail_intervened"
        assert [[each.call_id, each.name, each.arguments] for each in response.calls] == [
            [call_id, name, json.loads(arguments or "{}")]
            for call_id, name, arguments in made.values()
        ]
        found += len(made)
    assert found == 15


@given(spoilt_stream(ALL_KINDS))
@settings(max_examples=50)
def test_no_field_however_odd_raises_or_breaks_the_output(chunks: list[Any]) -> None:
    sound(BEDROCK, chunks)
