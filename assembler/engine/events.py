"""Events, Deltas and the one order over both.

Values in: what a caller gives to the Assembler. Immutable from birth, so that nothing given in
can be changed later. Not here: reading them from bytes (`assembler.codec`).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from sys import intern
from typing import Any, NewType

from msgspec import Struct, field
from msgspec.structs import force_setattr

from assembler.engine.errors import InputError, LimitError
from assembler.engine.values import (
    Object,
    freeze,
    freeze_object,
    same,
)

__all__ = [
    "Delta",
    "Draft",
    "Event",
    "Item",
    "Outcome",
    "Position",
    "as_delta",
    "as_draft",
    "as_event",
    "as_page",
    "need_bool",
    "need_int",
    "need_text",
    "pair",
    "position",
    "same_event",
]

Position = NewType("Position", int)
"""A place in the single total order. One `int`, so that comparing is one machine step; on the
wire it is the pair `[after, index]` (`pair`)."""

INDEX_BITS = 32
INT_END = 1 << 53
"""Numbers of the envelope are below it, so that every client can read them."""


def position(after: int, index: int) -> Position:
    """The place behind durable event `after`, at live counter `index` (0: the event itself)."""
    return Position((after << INDEX_BITS) | index)


def pair(place: int) -> tuple[int, int]:
    """`(after, index)` of a position."""
    return place >> INDEX_BITS, place & ((1 << INDEX_BITS) - 1)


class Outcome(enum.Enum):
    """How an attempt ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    ABANDONED = "abandoned"


def _freeze_data(item: Any) -> None:
    """Make the data of an item immutable, once, when the item is made."""
    data = item.data
    if type(data) is dict:
        try:
            force_setattr(item, "data", freeze_object(data))
        except (InputError, LimitError) as error:
            raise _named("data", error) from None
    elif type(data) is not Object:
        force_setattr(item, "data", _frozen_data(data))


class Event(Struct, frozen=True, gc=False, eq=False, forbid_unknown_fields=True):
    """A durable fact of one conversation.

    `seq` counts from 1 without holes; `time` is in milliseconds since the epoch; `data` may be
    given as any mapping of JSON values and is frozen here. `v` is the version of the type.
    `more` are fields that a later version wrote and this one does not know: they are carried.
    """

    seq: int
    type: str
    data: Any = Object({}, ())
    time: int = 0
    id: str | None = None
    v: int = 1
    more: Any = field(default=None, name=" more")  # no field of the wire has this name

    def __post_init__(self) -> None:
        if self.more is not None:
            force_setattr(self, "more", _frozen_data(self.more, "more"))
        if type(self.type) is str:
            # A conversation has few types and many events.
            force_setattr(self, "type", intern(self.type))
        _freeze_data(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Event) and same_event(self, other)

    def __ne__(self, other: object) -> bool:  # a Struct has one, which does not ask `==`
        return not self.__eq__(other)

    def __hash__(self) -> int:
        return hash((self.seq, self.type))


class Draft(Struct, frozen=True, gc=False, eq=False, forbid_unknown_fields=True):
    """An event that has no `seq` yet: a store numbers it. The fields are those of `Event`."""

    type: str
    data: Any = Object({}, ())
    time: int = 0
    id: str | None = None
    v: int = 1
    more: Any = field(default=None, name=" more")

    def __post_init__(self) -> None:
        if self.more is not None:
            force_setattr(self, "more", _frozen_data(self.more, "more"))
        _freeze_data(self)

    @classmethod
    def of(cls, event: Event) -> Draft:
        """What was written of an event, to be stored again (a copy, an import)."""
        return cls(event.type, event.data, event.time, event.id, event.v, event.more)

    def numbered(self, seq: int) -> Event:
        """The event that it becomes as number `seq`."""
        return Event(seq, self.type, self.data, self.time, self.id, self.v, self.more)


class Delta(Struct, frozen=True, gc=False, eq=False, forbid_unknown_fields=True):
    """A transient piece of one attempt.

    `number` is which try of its step the attempt is: 1, after a retry 2, … (0: a side stream);
    `ordinal` counts the attempt's own deltas from 0, and one that came before is a repeat, whatever
    it carries; `after` is the last durable `seq` when it was emitted and `index >= 1` a live
    counter of the conversation, which rises with every delta.
    """

    attempt: str
    turn: int
    step: int
    type: str
    data: Any = Object({}, ())
    number: int = 1
    ordinal: int = 0
    after: int = 0
    index: int = 1
    time: int = 0

    def __post_init__(self) -> None:
        _freeze_data(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Delta) and same(_delta_fields(self), _delta_fields(other))

    def __ne__(self, other: object) -> bool:  # a Struct has one, which does not ask `==`
        return not self.__eq__(other)

    def __hash__(self) -> int:
        return hash((self.attempt, self.ordinal))

    @property
    def position(self) -> Position:
        """Where it stands."""
        return position(self.after, self.index)


def _delta_fields(delta: Delta) -> list[Any]:
    return [getattr(delta, name) for name in Delta.__struct_fields__]


Item = Event | Delta


def _named(name: str, error: InputError | LimitError) -> InputError | LimitError:
    return type(error)(f"{name}: {error}")


def _frozen_data(data: Any, name: str = "data") -> Object:
    try:
        if isinstance(data, Mapping):
            return freeze_object(dict(data))
    except (InputError, LimitError) as error:
        raise _named(name, error) from None
    raise InputError(f"{name}: expected an object, got {json_kind(data)}")


def need_int(name: str, value: object, least: int | None = None) -> None:
    """Raise `InputError` for what is no integer or below `least`, `LimitError` beyond 2**53."""
    if type(value) is not int:
        raise InputError(f"{name}: expected an integer, got {value!r}")
    told = value if abs(value) < 1 << 64 else "a longer number"  # which Python refuses to write out
    if least is not None and value < least:
        raise InputError(f"{name}: expected at least {least}, got {told}")
    if not -INT_END < value < INT_END:
        raise LimitError(f"{name}: expected less than 2**53, got {told}")


def need_text(name: str, value: object) -> None:
    """`InputError` for anything but a text that is not empty and that UTF-8 can carry."""
    if type(value) is not str or not value:
        raise InputError(f"{name}: expected a text that is not empty, got {value!r}")
    try:
        freeze(value)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def _from_mapping(cls: type[Any], value: object, name: str) -> Any:
    if not isinstance(value, Mapping):
        raise InputError(f"{name}: expected {cls.__name__} or a mapping, got {value!r:.80}")
    known = cls.__struct_fields__
    for field_name in value:
        if field_name not in known:
            raise InputError(f"{name}: unknown field {field_name!r} (fields: {', '.join(known)})")
    for field_name in known[: len(known) - len(cls.__struct_defaults__)]:
        if field_name not in value:
            raise InputError(f"{name}: the field {field_name!r} is missing")
    return cls(**value)


def as_event(value: Event | Mapping[str, Any]) -> Event:
    """A checked Event out of an Event or a mapping; `InputError` names the field."""
    event: Event = value if type(value) is Event else _from_mapping(Event, value, "event")
    if not (type(event.seq) is int and 0 < event.seq < INT_END):
        need_int("seq", event.seq, 1)
    if not (type(event.time) is int and -INT_END < event.time < INT_END):
        need_int("time", event.time)
    if not (type(event.type) is str and event.type.isascii() and event.type):
        need_text("type", event.type)
    if event.id is not None:
        need_text("id", event.id)
    if event.v != 1 or type(event.v) is not int:
        need_int("v", event.v, 1)
    return event


def as_draft(value: Draft | Mapping[str, Any]) -> Draft:
    """A checked Draft out of a Draft or a mapping; `InputError` names the field."""
    draft: Draft = value if type(value) is Draft else _from_mapping(Draft, value, "draft")
    as_event(draft.numbered(1))
    return draft


def as_delta(value: Delta | Mapping[str, Any]) -> Delta:
    """A checked Delta out of a Delta or a mapping; `InputError` names the field."""
    delta: Delta = value if type(value) is Delta else _from_mapping(Delta, value, "delta")
    need_text("attempt", delta.attempt)
    need_text("type", delta.type)
    for name, least in _DELTA_INTS:
        need_int(name, getattr(delta, name), least)
    if delta.index >> INDEX_BITS:
        raise LimitError(f"index: expected less than 2**{INDEX_BITS}, got {delta.index}")
    return delta


_DELTA_INTS = (
    ("turn", None),
    ("step", None),
    ("number", 0),
    ("ordinal", 0),
    ("after", 0),
    ("index", 1),
    ("time", None),
)


def json_kind(value: object) -> str:
    """What a value is called in JSON; its Python type where JSON has no word."""
    names = {bool: "a boolean", int: "a number", float: "a number", str: "a text"}
    if isinstance(value, (list, tuple)):
        return "an array"
    return "null" if value is None else names.get(type(value), type(value).__name__)


def as_page(values: Iterable[Event | Mapping[str, Any]]) -> list[Event]:
    """Checked Events out of an iterable; `InputError` names the field, and which event."""
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise InputError(f"events: expected a sequence of events, got {json_kind(values)}")
    page = []
    for at, value in enumerate(values):
        try:
            page.append(as_event(value))
        except (InputError, LimitError) as error:
            raise type(error)(f"events[{at}]: {error}") from None
    return page


def need_bool(name: str, value: object) -> None:
    """`InputError` for anything but true and false."""
    if type(value) is not bool:
        raise InputError(f"{name}: expected true or false, got {value!r}")


def same_event(left: Event, right: Event) -> bool:
    """Every field equal, data as JSON values."""
    return left is right or (
        left.seq == right.seq
        and left.type == right.type
        and left.time == right.time
        and left.id == right.id
        and left.v == right.v
        and same(left.data, right.data)
        and same(left.more, right.more)
    )
