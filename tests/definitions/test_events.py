"""How payloads are read: what can be seen, what names something, what can be folded at once."""

from __future__ import annotations

from typing import Any

import pytest

from assembler.engine.definition import START, Match
from assembler.engine.values import Text, freeze, freeze_object
from definitions.events import (
    is_blank,
    is_int,
    named,
    request_of,
    runs,
    shown_blocks,
    step_of,
    text_of,
    visible,
)
from tests.definitions.support import delta, event, position


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ({"type": "text", "text": "x"}, True),
        ({"type": "text", "text": Text("x")}, True),
        ({"type": "text", "text": " \n"}, False),
        ({"type": "text", "text": ""}, False),
        ({"type": "text", "text": 5}, False),
        ({"type": "text"}, False),
        ({"type": "reasoning", "text": "x"}, True),
        ({"type": "reasoning", "text": " "}, False),
        ({"type": "tool-call", "call_id": "c1"}, False),
        ({"type": "provider", "raw": {}}, False),
        ({"type": "file", "url": "x"}, True),
        ({"type": "json", "value": None}, True),
        ({"type": "of-tomorrow"}, True),
        ({}, True),
        ("text", False),
        (None, False),
        (["x"], False),
    ],
    ids=repr,
)
def test_what_can_be_seen_of_a_block(block: Any, expected: bool) -> None:
    assert visible(freeze(block)) is expected


@pytest.mark.parametrize(
    ("fragments", "expected"),
    [([], True), ([""], True), ([" ", "\n\t"], True), ([" ", "x"], False), (["x", " "], False)],
)
def test_a_blank_text_is_blank_however_it_grew(fragments: list[str], expected: bool) -> None:
    assert is_blank("".join(fragments)) is expected
    base = Text()
    grown = base.extend(fragments)
    assert is_blank(grown) is expected
    grown.append("behind it")
    assert is_blank(grown) is expected
    assert is_blank(base) is True


def test_a_call_is_no_block_of_the_answer() -> None:
    said, call = {"type": "text", "text": "x"}, {"type": "tool-call", "call_id": "c1"}
    content = freeze([said, call, "odd", said])
    assert shown_blocks(content) == (content[0], "odd", content[3])
    whole = freeze([said, "odd"])
    assert shown_blocks(whole) is whole
    assert shown_blocks(freeze([call])) == ()
    for odd in (None, "text", freeze({"type": "text"})):
        assert shown_blocks(odd) == ()


def test_what_names_something_is_a_text_that_is_not_empty() -> None:
    data = freeze_object({"name": "x", "empty": "", "number": 5, "none": None})
    assert named(data, "name") == "x"
    assert [named(data, field) for field in ("empty", "number", "none", "missing")] == [None] * 4
    assert [text_of(data.get(field)) for field in ("name", "empty", "number")] == ["x", "", ""]


def test_a_question_is_named_by_a_text_or_a_number() -> None:
    for given, expected in (
        ("p1", "p1"),
        (3, "3"),
        (0, "0"),
        ("", None),
        (True, None),
        (1.5, None),
    ):
        assert request_of(freeze_object({"request_id": given})) == expected
    assert request_of(freeze_object({})) is None
    assert [is_int(given) for given in (0, -1, True, 1.0, "1", None)] == [True, True, *[False] * 4]


def test_a_step_is_named_by_two_numbers() -> None:
    assert step_of(event(1, "x", turn=2, step=3)) == "2.3"
    assert step_of(delta(1, "x", turn=9, step=9)) == "1.1"  # its own place, not what it carries
    for odd in ({"turn": 2}, {"step": 3}, {"turn": 2, "step": "3"}, {"turn": True, "step": 3}):
        assert step_of(event(1, "x", **odd)) is None


def test_a_run_is_deltas_of_one_type_and_attempt() -> None:
    items = [
        delta(1, "text"),
        delta(2, "text"),
        delta(3, "usage"),
        event(1, "text"),
        event(2, "text"),
        delta(4, "text", after=2),
        delta(5, "text", "a2", after=2),
        delta(6, "text", "a2", after=2),
        delta(7, "text", after=2),
        event(3, "text"),
        delta(8, "text", after=3),
    ]
    matches = [Match(position(item), item, START) for item in items]
    found = [[items.index(match.item) for match in run] for run in runs(matches)]
    assert found == [[0, 1], [2], [3], [4], [5], [6, 7], [8], [9], [10]]
    assert list(runs([])) == []
