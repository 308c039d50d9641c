"""Events, Deltas and Drafts: what is refused and by which name, immutability, the one order."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assembler.engine.assembler import Assembler
from assembler.engine.errors import AssemblerError, ConflictError, GapError, InputError, LimitError
from assembler.engine.events import (
    Delta,
    Draft,
    Event,
    Outcome,
    as_delta,
    as_event,
    as_page,
    pair,
    position,
    same_event,
)
from assembler.engine.values import Object, freeze_object, thaw
from tests.engine.support import Toy, delta, event, everything, shown

EVENT = {"seq": 1, "type": "toy", "data": {"id": "x"}, "time": 5, "id": "w1", "v": 2}
DELTA = {"attempt": "a", "turn": 1, "step": 1, "type": "toy-piece", "data": {"id": "x"}}
DELTA |= {"number": 1, "ordinal": 0, "after": 0, "index": 1, "time": 5}

NO_INT = ("1", True, 1.0, None, math.nan, [1])
NO_TEXT = ("", 5, None, ["x"], "\ud83d", b"x")
NO_OBJECT = ([1], None, "x", 5, {1: 2}, {"x": math.nan}, {"x": {1}}, {"x": "\ud83d"})

WRONG_EVENTS = [
    *(("seq", value) for value in (*NO_INT, 0, -1)),
    *(("type", value) for value in NO_TEXT),
    *(("data", value) for value in NO_OBJECT),
    *(("time", value) for value in NO_INT),
    *(("id", value) for value in NO_TEXT if value is not None),
    *(("v", value) for value in (*NO_INT, 0)),
]
WRONG_DELTAS = [
    *(("attempt", value) for value in NO_TEXT),
    *(("type", value) for value in NO_TEXT),
    *(("data", value) for value in NO_OBJECT),
    *((name, value) for name in ("turn", "step", "time") for value in NO_INT),
    *((name, value) for name in ("number", "ordinal", "after") for value in (*NO_INT, -1)),
    *(("index", value) for value in (*NO_INT, 0, -1)),
]


def refused(call: Callable[[Any], Any], cls: type[Any], fields: dict[str, Any], name: str) -> None:
    """Given as a mapping and as a Struct: one `InputError` that names the field."""
    for make in (dict, lambda given: cls(**given)):
        with pytest.raises(InputError, match=rf"\b{name}\b") as caught:
            call(make(fields))
        assert type(caught.value) is InputError


@pytest.mark.parametrize(("name", "value"), WRONG_EVENTS, ids=repr)
def test_a_wrong_field_of_an_event_is_named(name: str, value: Any) -> None:
    refused(as_event, Event, {**EVENT, name: value}, name)


@pytest.mark.parametrize(("name", "value"), WRONG_DELTAS, ids=repr)
def test_a_wrong_field_of_a_delta_is_named(name: str, value: Any) -> None:
    refused(as_delta, Delta, {**DELTA, name: value}, name)


@pytest.mark.parametrize(("name", "value"), WRONG_DELTAS, ids=repr)
def test_emit_refuses_a_wrong_delta_also_in_the_middle_of_an_attempt(name: str, value: Any) -> None:
    assembler = Assembler([Toy()])
    for ordinal in (0, 1):
        assembler.emit(delta(ordinal))
    assembler.flush()
    before = everything(assembler)
    fields = {**DELTA, "ordinal": 2, "index": 3, name: value}
    refused(assembler.emit, Delta, fields, name)
    assert everything(assembler) == before


def test_every_operation_refuses_a_wrong_event_whole() -> None:
    wrong = {**EVENT, "seq": 3, "time": "now"}
    assembler = Assembler([Toy()])
    assembler.load([event(2)], True)
    assembler.flush()
    before = everything(assembler)
    for call in (
        lambda: assembler.append(wrong),
        lambda: assembler.load([event(1), event(2), wrong]),
        lambda: assembler.prepend([{**wrong, "seq": 1}], False),
    ):
        with pytest.raises(InputError, match="time"):
            call()
        assert everything(assembler) == before


@pytest.mark.parametrize(("check", "fields"), [(as_event, EVENT), (as_delta, DELTA)])
def test_an_unknown_field_is_named(check: Callable[[Any], Any], fields: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="'tiem'"):
        check({**fields, "tiem": 1})


@pytest.mark.parametrize(
    ("check", "fields", "name"),
    [
        (as_event, EVENT, "seq"),
        (as_event, EVENT, "type"),
        (as_delta, DELTA, "attempt"),
        (as_delta, DELTA, "turn"),
        (as_delta, DELTA, "step"),
        (as_delta, DELTA, "type"),
    ],
)
def test_a_missing_field_is_named(
    check: Callable[[Any], Any], fields: dict[str, Any], name: str
) -> None:
    with pytest.raises(InputError) as caught:
        check({key: value for key, value in fields.items() if key != name})
    # Named as the missing one, not only in a list of all fields.
    assert name in str(caught.value).partition("(")[0]


@pytest.mark.parametrize(
    ("check", "given_in", "sentence"),
    [
        (as_event, {**EVENT, "seq": "1"}, "seq: expected an integer, got '1'"),
        (as_event, {**EVENT, "seq": 0}, "seq: expected at least 1, got 0"),
        (as_event, {**EVENT, "seq": 2**53}, f"seq: expected less than 2**53, got {2**53}"),
        (as_event, {**EVENT, "time": None}, "time: expected an integer, got None"),
        (as_event, {**EVENT, "type": ""}, "type: expected a text that is not empty, got ''"),
        (as_event, {**EVENT, "v": 0}, "v: expected at least 1, got 0"),
        (as_event, {**EVENT, "data": [1]}, "data: expected an object, got an array"),
        (as_event, {**EVENT, "data": (1,)}, "data: expected an object, got an array"),
        (as_event, {**EVENT, "data": None}, "data: expected an object, got null"),
        (as_event, {**EVENT, "data": True}, "data: expected an object, got a boolean"),
        (as_event, {**EVENT, "data": 1}, "data: expected an object, got a number"),
        (as_event, {**EVENT, "data": 0.5}, "data: expected an object, got a number"),
        (as_event, {**EVENT, "data": "x"}, "data: expected an object, got a text"),
        (as_event, {**EVENT, "data": {1}}, "data: expected an object, got set"),
        (as_event, {**EVENT, "data": {"x": {1}}}, "data: set is no JSON value"),
        (as_event, {**EVENT, "data": OrderedDict(x={1})}, "data: set is no JSON value"),
        (
            as_event,
            {**EVENT, "id": "\ud83d"},
            "id: a text holds half a surrogate pair, which no UTF-8 can carry",
        ),
        (as_event, 5, "event: expected Event or a mapping, got 5"),
        (as_event, ["x" * 200], "event: expected Event or a mapping, got ['" + "x" * 78),
        (
            as_event,
            {"seq": 1, "tiem": 1},
            "event: unknown field 'tiem' (fields: seq, type, data, time, id, v, more)",
        ),
        (as_event, {"type": "t"}, "event: the field 'seq' is missing"),
        (as_delta, {"attempt": "a"}, "delta: the field 'turn' is missing"),
        (as_delta, None, "delta: expected Delta or a mapping, got None"),
        (as_event, {**EVENT, "id": 5}, "id: expected a text that is not empty, got 5"),
        (as_event, {**EVENT, "v": None}, "v: expected an integer, got None"),
        (as_delta, {**DELTA, "attempt": 5}, "attempt: expected a text that is not empty, got 5"),
        (as_delta, {**DELTA, "type": None}, "type: expected a text that is not empty, got None"),
        (as_delta, {**DELTA, "number": -1}, "number: expected at least 0, got -1"),
        (as_delta, {**DELTA, "index": 0}, "index: expected at least 1, got 0"),
        (as_delta, {**DELTA, "index": 2**32}, f"index: expected less than 2**32, got {2**32}"),
        (as_page, 5, "events: expected a sequence of events, got a number"),
        (as_page, {"seq": 1}, "events: expected a sequence of events, got dict"),
        (as_page, "text", "events: expected a sequence of events, got a text"),
        (as_page, b"x", "events: expected a sequence of events, got bytes"),
        (as_page, [EVENT, {"type": "t"}], "events[1]: event: the field 'seq' is missing"),
        (as_page, [{**EVENT, "seq": 0}], "events[0]: seq: expected at least 1, got 0"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_refused_is_told_in_a_sentence(
    check: Callable[[Any], Any], given_in: Any, sentence: str
) -> None:
    with pytest.raises((InputError, LimitError)) as caught:
        check(given_in)
    assert str(caught.value) == sentence


@pytest.mark.parametrize("value", [1 - 2**53, -1, 0, 2**53 - 1])
def test_numbers_of_the_envelope_reach_to_53_bits(value: int) -> None:
    assert as_event({**EVENT, "time": value}).time == value
    assert as_delta({**DELTA, "turn": value, "step": value}).turn == value
    for beyond in (2**53, -(2**53)):
        for check, fields in ((as_event, EVENT), (as_delta, DELTA)):
            with pytest.raises(LimitError, match="time"):
                check({**fields, "time": beyond})


@pytest.mark.parametrize("value", [None, 5, "text", [1], object()])
def test_what_is_no_item_at_all_is_an_input_error(value: Any) -> None:
    for check in (as_event, as_delta):
        with pytest.raises(InputError):
            check(value)


def test_fields_that_may_be_missing_have_the_documented_defaults() -> None:
    bare = as_event({"seq": 1, "type": "t"})
    assert (bare.data, bare.time, bare.id, bare.v) == ({}, 0, None, 1)
    piece = as_delta({"attempt": "a", "turn": 1, "step": 2, "type": "t"})
    assert (piece.data, piece.number, piece.ordinal, piece.time) == ({}, 1, 0, 0)


def test_a_draft_is_made_of_a_mapping_and_takes_a_seq_later() -> None:
    fields = {key: value for key, value in EVENT.items() if key != "seq"}
    draft = Draft(**fields)
    assert (draft.type, draft.data, draft.time, draft.id, draft.v) == (*fields.values(),)
    with pytest.raises(InputError, match="data"):
        Draft("t", [1])


@pytest.mark.parametrize("item", [event(1), delta(), Draft("t", {"a": 1})], ids=repr)
def test_items_cannot_be_changed(item: Any) -> None:
    for name in item.__struct_fields__:
        with pytest.raises(AttributeError):
            setattr(item, name, 2)
    with pytest.raises(TypeError):
        item.data["id"] = "y"


# --- nothing given in is kept where the caller could change it


def test_data_of_an_item_is_frozen_when_it_is_made() -> None:
    for make in (
        lambda data: Event(1, "t", data),
        lambda data: Draft("t", data),
        lambda data: Delta("a", 1, 1, "t", data),
    ):
        data = {"list": [1, {"deep": 2}]}
        item = make(data)
        data["list"][1]["deep"] = 3
        data["list"].append(4)
        data["more"] = 5
        assert item.data == {"list": (1, {"deep": 2})}


@pytest.mark.parametrize("mapping", [dict, OrderedDict, MappingProxyType, freeze_object])
def test_data_may_be_any_mapping(mapping: Callable[[Any], Any]) -> None:
    held = {"list": [1], "text": "\u00e9"}
    for item in (
        Event(1, "t", mapping(held)),
        Draft("t", mapping(held)),
        Delta("a", 1, 1, "t", mapping(held)),
    ):
        assert type(item.data) is Object
        assert thaw(item.data) == {"list": [1], "text": "\u00e9"}


def test_fields_of_a_later_version_are_carried_and_frozen() -> None:
    more = {"tags": ["a"]}
    carried = Event(1, "t", more=more)
    more["tags"].append("b")
    assert thaw(carried.more) == {"tags": ["a"]}
    assert carried == Event(1, "t", more={"tags": ["a"]})
    assert carried != Event(1, "t")
    assert carried != Event(1, "t", more={"tags": []})
    for wrong in ([1], {"tags": {1}}):
        with pytest.raises(InputError, match=r"^more: "):
            Event(1, "t", more=wrong)


@pytest.mark.parametrize("as_struct", [False, True])
@pytest.mark.parametrize("call", ["append", "load", "prepend", "emit"])
def test_changing_what_was_given_changes_nothing(call: str, as_struct: bool) -> None:
    assembler = Assembler([Toy(update=lambda state, match: (*state, match.data["v"]))])
    data: dict[str, Any] = {"id": "x", "v": [1, {"deep": [2]}]}
    fields = {**(DELTA if call == "emit" else EVENT), "data": data}
    item: Any = fields if not as_struct else (Delta if call == "emit" else Event)(**fields)
    page = [item]
    if call == "prepend":
        assembler.load([event(2, "toy/more", v=1)], True)
    {
        "append": lambda: assembler.append(item),
        "emit": lambda: assembler.emit(item),
        "load": lambda: assembler.load(page),
        "prepend": lambda: assembler.prepend(page, False),
    }[call]()
    data["v"][1]["deep"].append("changed")
    data["v"].append("changed")
    data["id"] = "y"
    fields["seq" if "seq" in fields else "ordinal"] = 9
    page.clear()
    assert [*shown(assembler)] == ["x"]
    assert shown(assembler)["x"]["v"][0] == [1, {"deep": [2]}]
    assert assembler.audit() == []


def test_a_page_may_be_any_iterable() -> None:
    assembler = Assembler([Toy()])
    assembler.load((event(seq) for seq in (3, 4)), True)
    assembler.prepend(iter([event(1), event(2)]), False)
    assert [each.seq for each in assembler.events] == [1, 2, 3, 4]


@pytest.mark.parametrize("page", [5, None])
def test_what_is_no_page_is_an_input_error(page: Any) -> None:
    assembler = Assembler([Toy()])
    for call in (assembler.load, assembler.prepend):
        with pytest.raises(InputError):
            call(page, False)


def test_calls_with_a_wrong_argument_are_input_errors_that_name_it() -> None:
    assembler = Assembler([Toy()])
    for call, name in (
        (lambda: assembler.evict("3"), "before"),  # type: ignore[arg-type]
        (lambda: assembler.evict(True), "before"),
        (lambda: assembler.settle("", "failed"), "attempt"),
        (lambda: assembler.settle(5, "failed"), "attempt"),  # type: ignore[arg-type]
        (lambda: assembler.settle("\ud83d", "failed"), "attempt"),
        (lambda: assembler.settle("a", "gone"), "outcome"),
        (lambda: assembler.settle("a", None), "outcome"),  # type: ignore[arg-type]
        (lambda: assembler.liveness(1), "live"),  # type: ignore[arg-type]
        (lambda: assembler.load([], "yes"), "has_more"),  # type: ignore[arg-type]
        (lambda: assembler.prepend([], None), "has_more"),  # type: ignore[arg-type]
    ):
        with pytest.raises(InputError, match=name):
            call()
    assert everything(assembler) == everything(Assembler([Toy()]))


def test_outcomes_may_be_given_by_name() -> None:
    for outcome in Outcome:
        assembler = Assembler([Toy()])
        assembler.emit(delta())
        assembler.settle("a", outcome.value)
        assert bool(assembler.deltas) is (outcome is Outcome.COMPLETED)


# --- the one order


@given(st.integers(0, 2**53), st.integers(0, 2**32 - 1))
def test_a_position_is_its_pair(after: int, index: int) -> None:
    assert pair(position(after, index)) == (after, index)


@given(*[st.tuples(st.integers(0, 5), st.integers(0, 2**32 - 1))] * 2)
def test_positions_sort_like_their_pairs(one: tuple[int, int], other: tuple[int, int]) -> None:
    assert (position(*one) < position(*other)) is (one < other)


def test_deltas_stand_behind_the_event_they_followed_and_before_the_next() -> None:
    places = [
        position(1, 0),
        delta(after=1, index=1).position,
        delta(after=1, index=2**32 - 1).position,
        position(2, 0),
    ]
    assert all(a < b for a, b in pairwise(places))


def test_an_index_beyond_its_bits_is_a_limit_with_a_name() -> None:
    assembler = Assembler([Toy()])
    for given_in in ({**DELTA, "index": 2**32}, Delta(**{**DELTA, "index": 2**32})):
        with pytest.raises(LimitError, match="index"):
            assembler.emit(given_in)
    assembler.emit({**DELTA, "index": 2**32 - 2})
    with pytest.raises(LimitError, match="index"):
        assembler.emit(delta(1, index=2**32))
    assembler.emit(delta(1, index=2**32 - 1))
    assert len(assembler.deltas) == 2


def test_errors_of_input_are_value_errors_too() -> None:
    for error in (InputError, LimitError):
        assert issubclass(error, ValueError)
        assert issubclass(error, AssemblerError)


@pytest.mark.parametrize(
    ("field", "value"),
    [("type", "u"), ("time", 6), ("id", "w2"), ("id", None), ("v", 3), ("data", {"id": "y"})],
)
def test_two_events_are_the_same_by_every_field(field: str, value: Any) -> None:
    assert same_event(Event(**EVENT), Event(**EVENT))
    assert not same_event(Event(**EVENT), Event(**{**EVENT, field: value}))


def test_two_events_are_the_same_by_json_equality() -> None:
    one = Event(1, "t", {"a": 1, "b": [True]})
    assert same_event(one, Event(1, "t", {"b": [True], "a": 1}))
    assert not same_event(one, Event(1, "t", {"a": 1.0, "b": [True]}))
    assert not same_event(one, Event(1, "t", {"a": 1, "b": [1]}))


def test_equal_is_what_has_equal_content() -> None:
    one, same_one = (as_event({"seq": 1, "type": "x", "data": {"a": 1}}) for _ in range(2))
    assert one == same_one
    assert hash(one) == hash(same_one)
    assert one != as_event({"seq": 1, "type": "x", "data": {"a": True}})
    assert as_delta(DELTA) == as_delta(DELTA)
    assert as_delta(DELTA) != as_delta({**DELTA, "time": 99})
    assert not event(1) == delta()  # noqa: SIM201 - another method than !=
    assert not delta() == event(1)  # noqa: SIM201


def test_hashes_tell_items_apart() -> None:
    items = [event(1), event(2), event(1, "other"), delta(), delta(1), delta(attempt="b")]
    assert len({hash(item) for item in items}) == len(items)
    assert len({*items, *(type(item)(**fields_of(item)) for item in items)}) == len(items)


def fields_of(item: Any) -> dict[str, Any]:
    return {name: getattr(item, name) for name in item.__struct_fields__}


def test_an_error_says_what_disagrees() -> None:
    error = ConflictError("two writers", 3, 4)
    assert (str(error), error.expected, error.actual) == ("two writers", 3, 4)
    assert str(GapError(3, 3)) == "event 3 is missing"
    gap = GapError(3, 5)
    assert (str(gap), gap.first, gap.last) == ("events 3 to 5 are missing", 3, 5)


@pytest.mark.parametrize("number", [10**5000, -(10**5000)], ids=["high", "low"])
def test_a_number_that_python_does_not_write_out_is_refused_like_any(number: int) -> None:
    for told in ({"seq": number}, {"seq": 1, "time": number}, {"seq": 1, "v": number}):
        with pytest.raises((InputError, LimitError), match="longer number"):
            as_event({"type": "a", "data": {}, **told})
