"""What the stream of a step tells beside its text: bounds of blocks, usage so far."""

from __future__ import annotations

from typing import Any

import pytest

from assembler.engine.definition import NONE, START
from assembler.engine.events import Delta, pair
from assembler.engine.values import thaw
from definitions.draft import Draft
from definitions.shared import DraftState
from tests.definitions.support import Looking, delta, event, fold, matched

DRAFT = Draft()
TEXT = {"type": "text", "text": "whole"}
CALL = {"type": "tool-call", "call_id": "c1"}


def begun(index: int, block: Any = 0, **data: Any) -> Delta:
    return delta(index, "block-start", **{"block": block, "block_type": "text", **data})


def ended(index: int, value: Any = TEXT, block: Any = 0, **data: Any) -> Delta:
    return delta(index, "block-end", block=block, value=value, **data)


def usage(index: int, tokens: Any) -> Delta:
    told = tokens if isinstance(tokens, str) else {"output_tokens": tokens}
    return delta(index, "usage", usage=told)


def state(*items: Delta) -> DraftState:
    made: DraftState = fold(DRAFT, matched(DRAFT, items))
    return made


def blocks(*items: Delta) -> list[tuple[str, Any, tuple[int, int], Any]]:
    """Whose, which, the live counters of its begin and end, its value."""
    return [
        (block.attempt, block.block, (pair(block.at)[1], pair(block.ended)[1]), thaw(block.value))
        for block in state(*items).blocks
    ]


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (begun(1), ("1.1", START)),
        (ended(1), ("1.1", START)),
        (usage(1, 5), ("1.1", START)),
        (ended(1, "odd"), ("1.1", START)),
        (ended(1, {"type": "reasoning"}), ("1.1", START)),
        (begun(1, block_type="tool-call"), None),
        (ended(1, CALL), None),
        (ended(1, None, block_type="tool-call"), None),
        (event(1, "usage", turn=1, step=1), None),
        (event(1, "block-end", value=TEXT), None),
    ],
)
def test_matching_reads_the_item_alone(item: Any, expected: Any) -> None:
    assert DRAFT.match(item) == expected


def test_a_block_has_its_bounds_and_its_whole_value() -> None:
    assert blocks(begun(3)) == [("a1", 0, (3, 3), None)]
    assert blocks(begun(3), ended(7)) == [("a1", 0, (3, 7), TEXT)]
    assert blocks(ended(7)) == [("a1", 0, (7, 7), TEXT)]


def test_a_block_that_ends_again_has_its_last_value() -> None:
    other = {"type": "text", "text": "other"}
    assert blocks(begun(1), ended(2), ended(3, other)) == [("a1", 0, (1, 3), other)]


def test_what_comes_again_without_a_value_changes_nothing() -> None:
    once = state(begun(1), ended(2))
    for odd in (begun(3), begun(3, value=TEXT), ended(3, None), ended(3, "odd")):
        (match,) = matched(DRAFT, [odd])
        assert DRAFT.update(once, match) is once


def test_blocks_are_told_apart_by_attempt_and_number() -> None:
    items = [
        begun(1, 0),
        begun(2, 1),
        begun(3, False),
        begun(4, 0, attempt="a2"),
        begun(5, 2),
        ended(6, block=1),
    ]
    assert blocks(*items) == [
        ("a1", 0, (1, 1), None),
        ("a1", 1, (2, 6), TEXT),
        ("a1", False, (3, 3), None),
        ("a2", 0, (4, 4), None),
        ("a1", 2, (5, 5), None),
    ]
    assert [type(block) for _, block, _, _ in blocks(*items)][2] is bool


def test_the_last_usage_counts_and_not_all_of_them_are_shown() -> None:
    told = [usage(index, index * 10) for index in range(1, 10)]
    shown = []
    for upto in range(1, 10):
        now = state(*told[:upto])
        assert thaw(now.usage) == {"output_tokens": upto * 10}
        shown.append(now.shown["output_tokens"] if now.shown else None)
    assert shown == [10, 20, 20, 40, 40, 40, 40, 80, 80]


def test_what_is_no_usage_changes_nothing() -> None:
    once = state(usage(1, 5))
    (odd,) = matched(DRAFT, [usage(2, "odd")])
    assert DRAFT.update(once, odd) is once
    assert state(begun(1)).usage is None


def test_nobody_waits_for_it_and_it_shows_on_no_view() -> None:
    (match,) = matched(DRAFT, [begun(1)])
    assert DRAFT.cadence(match) is NONE
    assert DRAFT.target is None
    assert DRAFT.start(match, Looking()) == state(begun(1))
