"""What must hold of every Definition of the catalog, for any items whatsoever."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from assembler.engine.definition import UNNAMED, Definition, Match
from assembler.engine.events import Delta, Event, Position
from assembler.engine.locations import Status
from definitions import catalog
from definitions.events import DELTA_TYPES, EVENT_TYPES
from tests.definitions.payloads import DELTA_DATA, EVENT_DATA, FLAG
from tests.definitions.support import Looking, Seen, Surroundings, delta, event

DEFINITIONS = [each for each in catalog() if isinstance(each, Definition)]

WORD = st.sampled_from(["type", "text", "call_id", "kind"])
ODD = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "x", "{}", "tool-call"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORD, inner, max_size=2),
    max_leaves=4,
)

Item = Event | Delta


@st.composite
def streams(draw: st.DrawFn, *, most: int = 12) -> list[Item]:
    """Deltas of two attempts and events, in position order, of what a conversation is made of."""
    items: list[Item] = []
    seq = 0
    for index in range(1, draw(st.integers(1, most)) + 1):
        if draw(st.integers(0, 3)):
            type_ = draw(st.sampled_from(sorted(DELTA_DATA)))
            attempt = draw(st.sampled_from(["a", "a", "b"]))
            items.append(delta(index, type_, attempt, seq, **draw(DELTA_DATA[type_])))
        else:
            seq += 1
            type_ = draw(st.sampled_from(sorted(EVENT_DATA)))
            items.append(event(seq, type_, **draw(EVENT_DATA[type_])))
    return items


FIELDS = (
    *("call_id", "name", "arguments", "parent_call_id", "text", "block", "block_type", "value"),
    *("usage", "turn", "step", "content", "message_id", "source", "reason", "error", "is_error"),
    *("queue", "added", "claimed", "retry_id", "number", "delay_ms"),
    *("compaction_id", "before_seq", "command_id", "output", "stop_reason"),
    *("request_id", "input", "decision", "updated_input", "attempt", "interrupted", "synthetic"),
)


SAME = ("call_id", "message_id", "request_id", "retry_id", "compaction_id", "command_id")


@st.composite
def oddities(draw: st.DrawFn) -> list[Item]:
    """Items of every type whose fields are anything at all."""
    items: list[Item] = []
    for number in range(1, draw(st.integers(1, 5)) + 1):
        data = draw(st.dictionaries(st.sampled_from(FIELDS), ODD, max_size=6))
        if draw(FLAG):
            data.update(dict.fromkeys(SAME, "x"))
        if draw(FLAG):
            data["turn"] = data["step"] = 1
        type_ = draw(st.sampled_from(sorted(EVENT_TYPES | DELTA_TYPES | {"vendor/note"})))
        whole = draw(FLAG)
        items.append(
            event(number, type_, **data)
            if whole
            else Delta("a", 1, 1, type_, data, ordinal=number, after=number, index=1)
        )
    return items


def contexts(definition: Definition, items: list[Item]) -> list[Seen]:
    """The Contexts of all ids that these items speak of."""
    ids = {
        taken[0]
        for item in items
        if (item.type in definition.takes or UNNAMED in definition.takes)
        and (taken := definition.match(item)) is not None
    }
    return [Seen(definition, items, id_) for id_ in sorted(ids)]


@given(streams(), st.data())
def test_extend_equals_updates_one_by_one(items: list[Item], data: st.DataObject) -> None:
    for definition in DEFINITIONS:
        for context in contexts(definition, items):
            if context.start is None:
                continue
            rest = [match for match in context.matches if match is not context.start]
            state = definition.start(context.start, Looking())
            while rest:
                cut = data.draw(st.integers(1, len(rest)))
                state, rest = definition.extend(state, rest[:cut]), rest[cut:]
            assert state == context.state


@given(streams(most=8))
def test_a_state_has_any_number_of_futures(items: list[Item]) -> None:
    for definition in DEFINITIONS:
        for context in contexts(definition, items):
            if context.start is None:
                continue
            later = [match for match in context.matches if match is not context.start]
            state = definition.start(context.start, Looking())
            before = repr(state)
            first = definition.extend(state, later)
            as_it_was = repr(first)
            assert definition.extend(state, later) == first
            definition.extend(state, later[::-1])
            assert (repr(state), repr(first)) == (before, as_it_was)


@given(st.one_of(streams(), oddities()))
def test_matching_is_pure(items: list[Item]) -> None:
    for definition in DEFINITIONS:
        for item in items:
            before = repr(item)
            assert definition.match(item) == definition.match(item)
            assert repr(item) == before


@given(oddities(), st.sampled_from([None, True, False]), FLAG)
def test_nothing_that_is_written_makes_it_raise(
    items: list[Item],
    live: bool | None,
    more: bool,
) -> None:
    states = {
        (definition.kind, context.id): context.state
        for definition in DEFINITIONS
        for context in contexts(definition, items)
    }
    scope = Surroundings(
        states, live=live, complete=not more, closed=more, turn_status=Status.UNKNOWN
    )
    for definition in DEFINITIONS:
        for context in contexts(definition, items):
            for match in context.matches:
                assert isinstance(match, Match)
                definition.cadence(match)
            definition.notes(context, scope)
            node = definition.build(context, scope)
            if node is not None:
                node.placed(Position(0), 1, 1).to_json()
        for item in items:
            if isinstance(item, Event):
                definition.retires(item)
