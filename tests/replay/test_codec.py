from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assembler import Assembler, Delta, Draft, Event, InputError, LimitError, Outcome, Text, plugins
from assembler.codec import (
    decode,
    decode_delta,
    decode_event,
    decode_events,
    decode_patch,
    decode_snapshot,
    encode,
)
from assembler.engine.events import same_event
from assembler.engine.values import freeze, same, thaw

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
NUMBER = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBER | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
DATA = st.dictionaries(TEXT, JSON, max_size=4)
NAME = TEXT.filter(bool)


@given(JSON)
def test_any_value_comes_back_as_it_was(value: Any) -> None:
    assert same(decode(encode(value)), value)
    assert same(decode(encode(freeze(value))), value)


@given(st.builds(Event, st.integers(1), NAME, DATA, st.integers(0, 2**50), st.none() | NAME))
def test_an_event_of_any_type_comes_back_as_it_was(event: Event) -> None:
    assert same_event(decode_event(encode(event)), event)
    (again,) = decode_events(encode(event) + b"\n")
    assert same_event(again, event)


@given(st.builds(Delta, NAME, st.integers(0, 9), st.integers(0, 9), NAME, DATA))
def test_a_delta_comes_back_as_it_was(delta: Delta) -> None:
    again = decode_delta(encode(delta))
    assert encode(again) == encode(delta)
    assert same(thaw(again.data), thaw(delta.data))


def test_the_wire_form() -> None:
    assert encode(Event(3, "t", {"a": [1, None]}, time=5)) == (
        b'{"seq":3,"type":"t","time":5,"data":{"a":[1,null]}}'
    )
    assert encode(Event(3, "t", id="e", v=2)) == (
        b'{"seq":3,"type":"t","time":0,"data":{},"id":"e","v":2}'
    )
    assert encode(Draft("t")) == b'{"type":"t","time":0,"data":{}}'
    assert encode(Delta("a", 1, 2, "text", {"text": "x"}, ordinal=4, after=9, index=7)) == (
        b'{"attempt":"a","number":1,"ordinal":4,"after":9,"index":7,"turn":1,"step":2,'
        b'"time":0,"type":"text","data":{"text":"x"}}'
    )
    assert encode({"o": Outcome.FAILED, "t": (Text("a").append("b"),)}) == (
        b'{"o":"failed","t":["ab"]}'
    )


def test_snapshots_and_patches_come_back() -> None:
    assembler = Assembler(plugins.catalog())
    before = assembler.view("chat").snapshot()
    content = [{"type": "text", "text": "hi"}]
    assembler.append(Event(1, "user/message", {"message_id": "m", "content": content}))
    patch = assembler.flush()["chat"]
    after = assembler.view("chat").snapshot()
    for snapshot in (before, after):
        assert decode_snapshot(encode(snapshot)).to_json() == snapshot.to_json()
    assert decode_patch(encode(patch)).to_json() == patch.to_json()
    for read in (decode_snapshot, decode_patch):
        with pytest.raises(InputError, match="expected an object, got list"):
            read(b"[]")
        with pytest.raises(InputError, match="'view'"):
            read(b"{}")


FAULTS: list[tuple[bytes, type[Exception], str]] = [
    (b"", InputError, "event: expected JSON, got something else"),
    (b'{"seq":1', InputError, "event: expected JSON, got something else"),
    (b'{"type":"t"}', InputError, "seq: expected a value, got nothing"),
    (b'{"seq":"1","type":"t"}', InputError, "seq: expected int, got str"),
    (b'{"seq":1.5,"type":"t"}', InputError, "seq: expected int, got float"),
    (b'{"seq":true,"type":"t"}', InputError, "seq: expected int, got bool"),
    (b"[1]", InputError, "event: expected object, got array"),
    (b'{"seq":1,"type":"t","data":[]}', InputError, "data: expected an object, got an array"),
    (b'{"seq":1,"type":"t","data":{"a":"\xff"}}', InputError, "event: expected UTF-8"),
    (b'{"seq":1,"type":"t","data":{"a":"\\ud800"}}', InputError, "event: expected JSON, got"),
    (b'{"seq":1,"type":"t","data":{"a":NaN}}', InputError, "event: expected JSON, got"),
    (b'{"seq":1,"type":"t","data":{"a":%d}}' % 10**4_250, LimitError, "int_bits_max"),
    (b'{"seq":1,"type":"t","data":{"a":%s}}' % (b"[" * 250 + b"]" * 250), LimitError, "depth_max"),
    (b'{"seq":1,"type":"t","data":{"a":%s}}' % (b"[" * 10_000), LimitError, "nested too deeply"),
]


@pytest.mark.parametrize(("line", "error", "message"), FAULTS)
def test_a_line_that_is_none_has_one_clear_error(
    line: bytes, error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as caught:
        decode_event(line)
    assert message in str(caught.value)
    good = encode(Event(1, "t"))
    for lines in ([good, line or b"x"], good + b"\n" + (line or b"x")):
        with pytest.raises((InputError, LimitError), match=r"^line 2: "):
            decode_events(lines)


def test_what_json_cannot_say() -> None:
    for value in ({1, 2}, "\ud800", object(), b"x", [float("nan")]):
        with pytest.raises(InputError):
            encode(value)
    with pytest.raises(LimitError, match="int_bits_max"):
        encode({"a": 2**15_000})


def test_a_number_may_be_larger_than_64_bits() -> None:
    for number in (2**64, -(2**63) - 1, 10**4_000):
        event = Event(1, "t", {"a": number})
        assert decode_event(encode(event)).data == event.data


@pytest.mark.parametrize("name", ["", "\n", "a\nb", "`", "seq "])
def test_unknown_fields_of_an_event_are_carried_whatever_they_are_called(name: str) -> None:
    event = Event(1, "note", {}, more={name: 1})
    assert decode_event(encode(event)) == event
