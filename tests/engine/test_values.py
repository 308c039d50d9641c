"""Frozen values: `freeze`, `thaw`, `same`, `Object`, and `Text` that grows."""

from __future__ import annotations

import copy
import enum
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from assembler.engine.definition import Group, Node
from assembler.engine.errors import InputError, LimitError
from assembler.engine.events import Delta, Event, Position
from assembler.engine.patches import Snapshot
from assembler.engine.values import (
    DEPTH_MAX,
    INT_BITS_MAX,
    Text,
    alike,
    freeze,
    freeze_object,
    same,
    thaw,
    utf16_units,
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | TEXTS
JSON = st.recursive(
    SCALARS | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


class Word(enum.StrEnum):
    ONE = "a key that no other test freezes"
    TWO = "another one"


class Number(enum.IntEnum):
    TWO = 2


class Half(float):
    pass


class Several(list[Any]):
    pass


class Pair(NamedTuple):
    one: Any
    two: Any


# --- freezing and thawing


@given(JSON)
def test_what_is_frozen_thaws_to_what_it_was(value: Any) -> None:
    assert same(thaw(freeze(value)), value)


@given(JSON)
def test_a_frozen_value_is_the_same_as_the_plain_one_both_ways(value: Any) -> None:
    assert same(freeze(value), value)
    assert same(value, freeze(value))


def test_changing_what_was_frozen_changes_nothing() -> None:
    inner = [1, {"deep": [2]}]
    given_in = {"list": inner}
    frozen = freeze(given_in)
    inner[1]["deep"].append(3)
    inner.append(4)
    given_in["more"] = True
    assert thaw(frozen) == {"list": [1, {"deep": [2]}]}


@pytest.mark.parametrize(
    "first",
    [1, 2**60, "a", "\u00e9", None, True, 0.5, Text("t"), (1,), freeze({"a": 1}), {"a": 1}, []],
    ids=repr,
)
def test_whatever_stands_before_it_a_list_is_frozen(first: Any) -> None:
    growing = [1]
    frozen = freeze({"first": first, "growing": growing, "last": freeze({})})
    growing.append(2)
    assert thaw(frozen["growing"]) == [1]
    assert same(frozen["first"], first)


def test_changing_what_was_thawed_changes_nothing() -> None:
    frozen = freeze({"list": [1, {"deep": [2]}]})
    plain = thaw(frozen)
    plain["list"][1]["deep"].append(3)
    plain["more"] = True
    assert thaw(frozen) == {"list": [1, {"deep": [2]}]}


def test_thawing_joins_text() -> None:
    assert thaw(freeze({"t": [Text("a").append("b")]})) == {"t": ["ab"]}
    assert type(thaw(Text("ab"))) is str


def test_what_is_frozen_already_is_not_copied() -> None:
    value, text = freeze({"a": [1]}), Text("growing")
    assert freeze(value) is value
    assert freeze_object(value) is value
    assert freeze({"in": value, "t": text})["in"] is value
    assert freeze({"t": text})["t"] is text
    array = freeze([1, [2], {"a": 1}])
    assert freeze(array) is array


@pytest.mark.parametrize(
    ("odd", "plain"),
    [
        (Word.ONE, str(Word.ONE)),
        (Number.TWO, 2),
        (Half(0.5), 0.5),
        (MappingProxyType({"a": 1}), {"a": 1}),
        (Several([1, [2]]), [1, [2]]),
        (Pair("a", Several()), ["a", []]),
        ({"deep": [Number.TWO]}, {"deep": [2]}),
    ],
)
def test_subclasses_become_the_plain_types(odd: Any, plain: Any) -> None:
    assert same(thaw(freeze(odd)), plain)


def test_a_key_of_a_subclass_becomes_plain_text() -> None:
    (key,) = freeze({Word.TWO: 1})
    assert type(key) is str


def test_a_key_of_a_subclass_is_treated_alike_however_often_it_comes() -> None:
    def outcome() -> str:
        try:
            return repr(freeze({Word.ONE: 1}))
        except InputError:
            return "refused"

    before = outcome()
    freeze({str(Word.ONE): 1})
    assert outcome() == before


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        -math.inf,
        "\ud83d",
        "fine \ude00 not",
        {"\ud83d": 1},
        {1, 2},
        b"bytes",
        range(2),
        {1: "key"},
        {None: "key"},
        {("a",): "key"},
        [{"deep": [math.nan]}],
        (1, {"a": {2}}),
    ],
    ids=repr,
)
def test_what_json_cannot_say_is_refused(value: Any) -> None:
    with pytest.raises(InputError):
        freeze(value)
    with pytest.raises(InputError):
        freeze({"in": value})


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (math.nan, "nan is no JSON number"),
        (2**INT_BITS_MAX, f"a number has more than int_bits_max = {INT_BITS_MAX} bits"),
        ({1, 2}, "set is no JSON value"),
        ({1: "key"}, "the key 1 of an object is no text"),
        ("\ud83d", "a text holds half a surrogate pair, which no UTF-8 can carry"),
    ],
)
def test_what_is_refused_is_told_in_a_sentence(value: Any, sentence: str) -> None:
    for wrapped in (value, {"in": value}, [value]):
        with pytest.raises((InputError, LimitError)) as caught:
            freeze(wrapped)
        assert str(caught.value) == sentence


def test_a_number_may_be_as_long_as_its_limit() -> None:
    for number in (2**INT_BITS_MAX - 1, 1 - 2**INT_BITS_MAX):
        assert freeze(number) == freeze({"n": number})["n"] == number
        with pytest.raises(LimitError):
            freeze({"n": number * 2})


def test_numbers_reach_to_64_bits() -> None:
    for number in (2**64 - 1, -(2**63), 2**53, -(2**53), 0):
        assert freeze({"n": number})["n"] == number


def test_a_whole_pair_of_surrogates_is_fine() -> None:
    assert freeze("\U0001f600") == "\U0001f600"


@pytest.mark.parametrize(
    "wrap",
    [
        lambda v: [v],
        lambda v: {"a": v},
        lambda v: (v,),
        lambda v: [{"a": v}],
        lambda v: {"a": 1, "b": (MappingProxyType({"c": v}), 2)},
    ],
)
def test_too_deep_is_a_limit_with_a_name_and_no_crash(wrap: Any) -> None:
    value: Any = "leaf"
    for _ in range(10_000):
        value = wrap(value)
    with pytest.raises(LimitError, match="depth_max"):
        freeze(value)


@pytest.mark.parametrize(
    "wraps",
    [
        [lambda v: [v]],
        [lambda v: (v,)],
        [lambda v: {"a": v}],
        [lambda v: {"a": 1, "b": v, "c": "last"}],
        [lambda v: [v], lambda v: {"a": v}],
        [lambda v: {"a": v}, lambda v: (v, 1)],
        [lambda v: MappingProxyType({"a": v}), lambda v: [0, v]],
        [lambda v: Several([v]), lambda v: Pair(1, v)],
        [lambda v: {"\u00e9": v, "a": 1}, lambda v: (v,)],
    ],
)
@pytest.mark.parametrize("leaf", ["leaf", "\u00e9", None, 2**60])
def test_as_deep_as_allowed_is_fine(leaf: Any, wraps: list[Any]) -> None:
    value = leaf
    for level in range(DEPTH_MAX):
        value = wraps[level % len(wraps)](value)
    frozen = freeze(value)
    assert same(frozen, value)
    for deeper in (*(wrap(value) for wrap in wraps), {"a": frozen}, {"a": 1, "b": frozen}):
        with pytest.raises(LimitError, match=f"nested deeper than depth_max = {DEPTH_MAX}"):
            freeze(deeper)


# --- one equality


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (True, 1),
        (1, 1.0),
        (False, 0),
        (0, None),
        ("1", 1),
        ("", None),
        ([], {}),
        ([], None),
        ([1], [1, 1]),
        ({"a": None}, {}),
        ({"a": 1}, {"b": 1}),
        ({"a": 1}, {"a": True}),
        ([[1]], [[1.0]]),
        ({"a": {"b": 1}}, {"a": {"b": 1.0}}),
    ],
    ids=repr,
)
def test_what_differs_by_type_or_value_is_not_the_same(left: Any, right: Any) -> None:
    for one in (left, freeze(left)):
        for other in (right, freeze(right)):
            assert not same(one, other)
            assert not same(other, one)


def test_the_order_of_keys_does_not_matter() -> None:
    assert same(freeze({"a": 1, "b": [2]}), freeze({"b": [2], "a": 1}))
    assert not same(freeze({"a": 1, "b": 2}), freeze({"b": 1, "a": 2}))


def test_text_is_the_same_as_its_characters() -> None:
    assert same(Text("ab"), "ab")
    assert same("ab", Text("a").append("b"))
    assert not same(Text("1"), 1)
    assert not same(Text(""), None)


# --- whether two States are the same


class Told(Struct, frozen=True):
    a: Any
    b: Any = None

    def __eq__(self, other: object) -> bool:
        return True  # `alike` does not ask it

    __hash__ = None  # type: ignore[assignment]


@attrs.frozen
class Attrs:
    a: Any
    b: Any = None


@dataclass(frozen=True)
class Data:
    a: Any
    b: Any = None


class Own:
    def __init__(self, a: Any) -> None:
        self.a = a

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


MADE: list[Callable[[Any], Any]] = [
    lambda v: v,
    lambda v: (0, v),
    lambda v: [v, 0],
    lambda v: {"k": v, "l": 0},
    lambda v: freeze({"k": v, "l": 0}) if not isinstance(v, (bytes, set)) else (v,),
    Told,
    lambda v: Told(0, v),
    lambda v: Attrs(0, v),
    lambda v: Data(0, v),
    lambda v: ({"deep": [Told(Attrs(v))]},),
]
PAIRS = [
    (1, 2),
    (1, True),
    (1, 1.0),
    (None, 0),
    ("a", "b"),
    (Text("a"), "a"),
    (b"a", b"b"),
    ([], ()),
    ([1], [1, 1]),
    ({"a": 1}, {"b": 1}),
    ({"a": 1}, {"a": 1, "b": 1}),
    ({"a": 1}, {}),
]


@pytest.mark.parametrize("make", MADE)
@pytest.mark.parametrize(("one", "other"), PAIRS, ids=repr)
def test_states_are_alike_through_and_through(
    make: Callable[[Any], Any], one: Any, other: Any
) -> None:
    assert alike(make(one), make(one))
    assert alike(make(other), make(copy.deepcopy(other)))
    if not same(one, other) or type(make(one)) is type(one):
        assert not alike(make(one), make(other))
        assert not alike(make(other), make(one))


def test_sets_of_scalars_are_alike_by_type_and_value() -> None:
    assert alike({1, "a", None}, {None, "a", 1})
    assert alike(frozenset({0.5}), frozenset({0.5}))
    for one, other in (({1}, {True}), ({1}, {1, 2}), ({1}, frozenset({1})), ({(1,)}, {(1,)})):
        assert not alike(one, other)
        assert not alike(other, one)


def test_what_nobody_can_look_into_is_alike_to_itself_alone() -> None:
    own = Own(1)
    assert alike(own, own)
    assert alike((own,), (own,))
    assert not alike(Own(1), Own(1))
    assert not alike(Told(1), Attrs(1))


def test_a_field_that_is_not_there_is_told_from_one_that_is() -> None:
    bare, full = object.__new__(Data), Data(1)
    assert alike(bare, object.__new__(Data))
    assert not alike(bare, full)


@pytest.mark.parametrize(
    "wrap", [lambda v: (v,), lambda v: [v], lambda v: {"a": v}, Told, Attrs, Data]
)
def test_what_is_nested_deeper_than_values_may_be_is_not_alike(wrap: Any) -> None:
    def deep(levels: int) -> Any:
        value: Any = int("1" * 30)  # another object each time
        for _ in range(levels):
            value = wrap(value)
        return value

    assert alike(deep(DEPTH_MAX - 1), deep(DEPTH_MAX - 1))
    assert not alike(deep(DEPTH_MAX), deep(DEPTH_MAX))


# --- Object


def test_an_object_is_a_mapping() -> None:
    value = freeze({"b": 1, "a": [2]})
    assert isinstance(value, Mapping)
    assert list(value) == list(value.keys()) == ["b", "a"]
    assert list(value.values()) == [1, (2,)]
    assert list(value.items()) == [("b", 1), ("a", (2,))]
    assert len(value) == 2
    assert "a" in value
    assert "c" not in value
    assert 1 not in value
    assert value.get("c") is None
    assert value.get("c", 5) == 5
    assert {**value} == {"b": 1, "a": (2,)}
    assert eval(repr(value), {"Object": dict}) == {"b": 1, "a": (2,)}  # noqa: S307 - our own repr
    with pytest.raises(KeyError):
        value["c"]


def test_an_object_matches_a_mapping_pattern() -> None:
    match freeze({"kind": "a", "more": 1}):
        case {"kind": str(kind)}:
            assert kind == "a"
        case _:
            pytest.fail("an Object is no mapping to `match`")


def test_equal_objects_hash_alike() -> None:
    one, other = freeze({"a": 1, "b": [Text("x")]}), freeze({"b": ["x"], "a": 1})
    assert one == other == {"a": 1, "b": ("x",)}
    assert hash(one) == hash(other)
    assert one != freeze({"a": 1})
    assert one != [("a", 1)]


def test_objects_differ_by_keys_and_by_values() -> None:
    one = freeze({"a": 1})
    for other in (freeze({"a": 2}), {"a": 2}, {"b": 1}, freeze({"b": 1}), {}, "a", ["a"], 1):
        assert one != other
        assert other != one
    assert len({hash(one), hash(freeze({"a": 2})), hash(freeze({"b": 1}))}) == 3


def test_nobody_can_change_an_object() -> None:
    value = freeze({"a": [1]})
    with pytest.raises(AttributeError):
        value.a = 2
    with pytest.raises(AttributeError):
        value._values = ()
    with pytest.raises(TypeError):
        value["a"] = 2
    with pytest.raises(TypeError):
        del value["a"]
    with pytest.raises(AttributeError):
        value["a"].append(2)
    assert value == {"a": (1,)}


def test_objects_of_one_shape_do_not_share_values() -> None:
    one, other = freeze({"a": 1, "b": 2}), freeze({"a": 3, "b": 4})
    assert (one["a"], one["b"], other["a"], other["b"]) == (1, 2, 3, 4)


# --- Text


def test_folding_twice_from_one_text_gives_two_right_answers() -> None:
    base = Text("once ")
    first = base.append("upon ")
    second = base.append("more ")
    third = first.append("a time")
    assert [str(t) for t in (base, first, second, third)] == [
        "once ",
        "once upon ",
        "once more ",
        "once upon a time",
    ]


def test_the_newest_text_shares_its_buffer_and_an_older_one_copies() -> None:
    base = Text("a")
    newest = base.append("b")
    assert newest._buffer is base._buffer
    assert base.append("c")._buffer is not base._buffer
    assert newest.append("d")._buffer is base._buffer


@given(st.lists(TEXTS, max_size=6), st.lists(TEXTS, max_size=6))
def test_extend_equals_append_one_by_one(head: list[str], tail: list[str]) -> None:
    at_once, one_by_one = Text("".join(head)).extend(tail), Text("".join(head))
    for fragment in tail:
        one_by_one = one_by_one.append(fragment)
    assert at_once == one_by_one == "".join(head + tail)
    assert at_once.units == one_by_one.units
    assert len(at_once) == len("".join(head + tail))


@given(st.lists(st.tuples(st.integers(0, 5), TEXTS), max_size=10))
def test_many_futures_of_one_text_never_meet(steps: list[tuple[int, str]]) -> None:
    texts, models = [Text("")], [""]
    for number, fragment in steps:
        older = number % len(texts)
        texts.append(texts[older].append(fragment))
        models.append(models[older] + fragment)
    assert [str(text) for text in texts] == models
    assert [text.units for text in texts] == [utf16_units(model) for model in models]


@pytest.mark.parametrize(
    ("text", "units"),
    [("", 0), ("ab", 2), ("\u00e9", 1), ("\uffff", 1), ("\U0001f600", 2), ("a\U0001f600b", 4)],
)
def test_units_are_those_of_utf_16(text: str, units: int) -> None:
    assert utf16_units(text) == len(text.encode("utf-16-le")) // 2 == units
    assert Text(text).units == Text().append(text).units == units


def test_suffix_of_says_what_was_added() -> None:
    base = Text("a")
    longer = base.append("b").append("").append("c")
    assert longer.suffix_of(base) == "bc"
    assert longer.suffix_of(longer) == ""
    assert base.suffix_of(longer) is None
    assert longer.append("d").suffix_of(longer) == "d"
    assert longer.suffix_of(base) == "bc"  # also when the buffer went on since


def test_fragments_of_one_buffer_know_each_other() -> None:
    base = Text("a")
    longer = base.append("b")
    (shared, own), (longest, all_of_it) = base.fragments, longer.fragments
    assert shared.is_of(longest)
    assert not shared.is_of(Text("a").fragments[0])
    assert (list(longest), own, all_of_it) == (["a", "b"], 1, 2)
    assert (longest[1], longest[:1], len(longest)) == ("b", ["a"], 2)
    assert Text().fragments[1] == 0


def test_a_text_with_nothing_added_is_the_same_text() -> None:
    text = Text("a").append("b")
    assert text.extend(()) == text
    assert text.append("") == text


def test_another_future_is_no_suffix() -> None:
    base = Text("a")
    one, other = base.append("b"), base.append("b")
    assert one == other
    assert other.suffix_of(one) is None
    assert Text("ab").suffix_of(Text("a")) is None


def test_text_compares_and_hashes_as_its_characters() -> None:
    text = Text("a").append("b")
    assert text == "ab" == text
    assert text != "abc"
    assert text != Text("b").append("a")
    assert text != 5
    assert hash(text) == hash("ab")
    assert repr(text) == "Text('ab')"
    assert (bool(Text()), bool(text)) == (False, True)


def test_reading_text_in_between_changes_nothing() -> None:
    text = Text("a")
    for letter in "bcd":
        str(text)
        text = text.append(letter)
    assert str(text) == "abcd"
    joined = str(text)
    assert str(text) is joined


def test_nobody_can_change_a_text() -> None:
    text = Text("a").append("b")
    with pytest.raises(AttributeError):
        text.units = 7
    with pytest.raises(AttributeError):
        text.more = 7
    with pytest.raises(TypeError):
        text[0] = "x"


EQUAL: list[Callable[[], Any]] = [
    lambda: freeze({"a": 1}),
    lambda: Event(1, "note", {"a": 1}),
    lambda: Delta("a1", 1, 1, "text", {"a": 1}),
    lambda: Node("note", "x", {"a": 1}).placed(Position(1), 1, None),
    lambda: Group("band:x", "band", ("x",), freeze({"n": 1})),
    lambda: Snapshot("chat", 1, (), (), freeze({"first": 1}), None, None),
]


@pytest.mark.parametrize("make", EQUAL, ids=lambda make: type(make()).__name__)
def test_what_is_equal_is_not_unequal(make: Callable[[], Any]) -> None:
    one, other = make(), make()
    assert one == other
    assert not one != other  # noqa: SIM202 - a Struct has a `!=` of its own
    assert one != 1
