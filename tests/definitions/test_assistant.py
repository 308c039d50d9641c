"""The answer of a step: while it grows, and when its message is there."""

from __future__ import annotations

from typing import Any

import pytest

from assembler.engine.definition import FRAME, NOW, START, Match
from assembler.engine.events import Delta, Event
from assembler.engine.values import Text
from definitions.assistant import Assistant
from definitions.draft import Draft
from tests.definitions.support import Surroundings, delta, event, fold, matched, seen, shown

ASSISTANT = Assistant()


def text(index: int, words: str, block: int = 0, **data: Any) -> Delta:
    return delta(index, "text", **{"block": block, "text": words, **data})


def reasoning(index: int, words: str, block: int = 0, **data: Any) -> Delta:
    return delta(index, "reasoning", **{"block": block, "text": words, **data})


def message(seq: int = 5, *content: Any, **data: Any) -> Event:
    given = {"turn": 1, "step": 1, "message_id": "m1", "content": list(content)}
    return event(seq, "assistant/message", **{**given, "stop_reason": "end_turn", **data})


def said(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def blocks(*items: Any, bounds: Any = (), **facts: Any) -> Any:
    data = shown(ASSISTANT, *items, others=[(Draft(), bounds)] if bounds else (), **facts)
    return None if data is None else data["blocks"]


def notes(*items: Any) -> list[tuple[str, int]]:
    found = ASSISTANT.notes(seen(ASSISTANT, *items), Surroundings())
    return [(kind, at >> 32) for kind, at in found]


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (text(1, " "), ("1.1", START)),
        (reasoning(1, ""), ("1.1", START)),
        (message(), ("1.1", START)),
        (message(turn=2, step=3), ("2.3", START)),
        (message(turn=None), None),
        (message(step=True), None),
        (event(1, "text", block=0, text="x"), None),
        (event(1, "text", turn=1, step=1, text="x"), None),
        (delta(1, "assistant/message"), None),
    ],
)
def test_matching_reads_the_item_alone(item: Any, expected: Any) -> None:
    assert ASSISTANT.match(item) == expected


def test_text_grows_while_it_runs() -> None:
    items = [reasoning(1, "A sum."), text(2, "It ", 1), text(3, "is 4.", 1)]
    assert shown(ASSISTANT, *items) == {
        "status": "running",
        "blocks": [{"type": "reasoning", "text": "A sum."}, said("It is 4.")],
        "usage": None,
        "stop_reason": None,
    }
    context = seen(ASSISTANT, *items)
    made = ASSISTANT.build(context, Surroundings())
    assert made is not None
    assert isinstance(made.data["blocks"][1]["text"], Text)


def test_blocks_stand_in_the_order_of_their_first_delta() -> None:
    items = [text(1, "b", 1), text(2, "a", 0), text(3, "B", 1)]
    assert blocks(*items) == [said("bB"), said("a")]
    start = delta(1, "block-start", block=0, block_type="text")
    later = [text(2, "b", 1), text(3, "a", 0)]
    assert blocks(*later, bounds=[start]) == [said("a"), said("b")]


def test_attempts_side_by_side_are_never_glued() -> None:
    items = [text(1, "Ne"), text(2, "New", attempt="b"), text(3, "w")]
    assert blocks(*items) == [said("New"), said("New")]


def test_text_and_reasoning_of_one_number_are_two_blocks() -> None:
    assert blocks(reasoning(1, "hm"), text(2, "so")) == [
        {"type": "reasoning", "text": "hm"},
        said("so"),
    ]


def test_the_whole_block_replaces_its_text() -> None:
    value = {"type": "reasoning", "text": "Whole.", "signature": "s"}
    end = delta(3, "block-end", block=0, value=value)
    assert blocks(reasoning(1, "Who"), text(4, "x", 1), bounds=[end]) == [value, said("x")]
    assert blocks(reasoning(1, "Who"), reasoning(4, "ever"), bounds=[end]) == [
        {"type": "reasoning", "text": "Whoever"}
    ]


def test_a_whole_block_without_pieces_is_in_its_place() -> None:
    value = {"type": "provider", "provider": "p", "raw": {"x": 1}}
    end = delta(2, "block-end", block=1, value=value)
    assert blocks(text(1, "a", 0), text(3, "b", 2), bounds=[end]) == [said("a"), value, said("b")]


@pytest.mark.parametrize("blank", ["", "\n\n", " \t"])
def test_a_blank_answer_is_not_visible(blank: str) -> None:
    assert shown(ASSISTANT, text(1, blank)) is None
    assert shown(ASSISTANT, reasoning(1, blank), text(2, blank, 1)) is None
    call = {"type": "tool-call", "call_id": "c1", "name": "ls", "arguments": "{}"}
    assert shown(ASSISTANT, message(5, said(blank), call)) is None
    assert shown(ASSISTANT, message(5, call)) is None
    assert shown(ASSISTANT, message(5)) is None
    assert blocks(text(1, blank), text(2, "x")) == [said(f"{blank}x")]


def test_what_is_there_to_see() -> None:
    file = {"type": "file", "media_type": "image/png", "url": "u"}
    for block in (file, {"type": "json", "value": 1}, {"type": "vendor", "x": 1}):
        assert blocks(message(5, block)) == [block]
    assert blocks(message(5, {"type": "provider", "provider": "p", "raw": {}})) is None


def test_calls_are_no_blocks_of_an_answer_and_the_rest_is_kept() -> None:
    call = {"type": "tool-call", "call_id": "c1", "name": "ls", "arguments": "{}"}
    odd = {"type": "vendor/thing", "x": [1]}
    assert blocks(message(5, said("\n"), call, odd, said("a"))) == [said("\n"), odd, said("a")]


def test_the_message_replaces_what_was_streamed() -> None:
    items: list[Any] = [
        text(1, "The sky "),
        message(5, said("The sky is blue."), usage={"input_tokens": 1}),
    ]
    assert shown(ASSISTANT, *items) == {
        "status": "settled",
        "blocks": [said("The sky is blue.")],
        "usage": {"input_tokens": 1},
        "stop_reason": "end_turn",
    }
    context = seen(ASSISTANT, *items)
    assert context.start is not None
    assert context.start.type == "text"


def test_deltas_behind_the_message_change_nothing() -> None:
    state = fold(ASSISTANT, matched(ASSISTANT, [message(5, said("x"))]))
    for match in matched(ASSISTANT, [text(1, "y", after=5)]):
        assert ASSISTANT.update(state, match) is state


def test_an_interrupted_message_says_so() -> None:
    data = shown(ASSISTANT, message(5, said("Half"), interrupted=True))
    assert data is not None
    assert data["status"] == "interrupted"


@pytest.mark.parametrize(
    ("facts", "status"),
    [
        ({}, "running"),
        ({"live": True}, "running"),
        ({"live": False}, "interrupted"),
        ({"closed": True}, "interrupted"),
    ],
)
def test_running_is_derived(facts: dict[str, Any], status: str) -> None:
    data = shown(ASSISTANT, text(1, "x"), **facts)
    assert data is not None
    assert data["status"] == status


def test_of_two_messages_the_first_stays() -> None:
    items: list[Any] = [
        message(5, said("a")),
        message(6, said("b")),
        message(7, said("c"), interrupted=True),
    ]
    assert blocks(*items) == [said("a")]
    assert notes(*items) == [("duplicate-message", 6), ("duplicate-message", 7)]


def test_an_interrupted_message_gives_way_to_a_whole_one() -> None:
    half, half_too = [message(seq, said("a"), interrupted=True) for seq in (5, 6)]
    items: list[Any] = [half, half_too, message(7, said("b")), message(8, said("c"))]
    data = shown(ASSISTANT, *items)
    assert data is not None
    assert (data["status"], data["blocks"]) == ("settled", [said("b")])
    assert notes(*items) == [("duplicate-message", 6), ("duplicate-message", 8)]


def test_usage_is_the_message_s_else_the_last_delta_s() -> None:
    def usage(*items: Any) -> Any:
        used = [delta(i, "usage", usage={"output_tokens": i}) for i in (1, 2)]
        data = shown(ASSISTANT, *items, others=[(Draft(), used)])
        assert data is not None
        return data["usage"]

    assert usage(text(3, "x")) == {"output_tokens": 2}
    assert usage(text(3, "x"), message(5, said("x"))) == {"output_tokens": 2}
    own = {"output_tokens": 9}
    assert usage(text(3, "x"), message(5, said("x"), usage=own)) == own


def test_what_is_settled_reads_nothing() -> None:
    scope = Surroundings()
    context = seen(ASSISTANT, message(5, said("x")))
    ASSISTANT.build(context, scope)
    ASSISTANT.notes(context, scope)
    assert scope.read == []


def test_growing_text_may_wait_for_the_next_frame() -> None:
    for item, cadence in ((text(1, "x"), FRAME), (message(), NOW)):
        assert ASSISTANT.cadence(Match(0, item, START)) is cadence  # type: ignore[arg-type]


def test_what_is_replaced_by_nothing_is_not_shown() -> None:
    empty = delta(2, "block-end", block=0, value={"type": "text", "text": ""})
    said = delta(1, "text", block=0, text="A")
    drafted = [(Draft(), [empty])]
    assert shown(ASSISTANT, said, others=drafted) is None


def test_usage_while_running_is_shown_ever_more_rarely() -> None:
    # With each telling the whole Node is sent again, so that it must not be every one.
    told = [delta(at, "usage", usage={"output_tokens": at}) for at in range(2, 12)]
    seen_usage = []
    for count in range(1, len(told) + 1):
        data = shown(ASSISTANT, delta(1, "text", text="A"), others=[(Draft(), told[:count])])
        assert data is not None
        seen_usage.append(data["usage"]["output_tokens"] - 1)
    assert seen_usage == [1, 2, 2, 4, 4, 4, 4, 8, 8, 8]


def test_a_block_that_was_empty_so_far_is_shown_whole_when_it_ends() -> None:
    whole = {"type": "text", "text": "whole"}
    ended = delta(2, "block-end", block=0, value=whole)
    assert blocks(text(1, ""), bounds=[ended]) == [whole]
    later = delta(1, "block-end", block=0, value=whole)
    assert blocks(text(2, "later"), bounds=[later]) == [said("later")]
