"""The format: what a line of a recording may say, and one clear error for what it may not.

Here live `Recording`, `Operation` and the tables of fields. A line is checked once, when it is
read, so that nothing runs of a file that is broken further down. Not here: files (`files`), what
an operation does (`running`), what an expectation means (`expecting`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, cast

from msgspec import Struct

from assembler import codec
from assembler.engine.errors import InputError, LimitError, RecordingError
from assembler.engine.events import INT_END, Event, Outcome, as_event
from assembler.engine.values import DEPTH_MAX, Object, freeze_object, is_plain
from assembler.plugins import Operations, operations
from assembler.recordings.matching import short

__all__ = [
    "VERSION",
    "Fields",
    "Operation",
    "Place",
    "Recording",
    "check_header",
    "check_operation",
    "encoded",
    "frozen",
    "is_sound_append",
    "read_lines",
    "time_of",
    "unexpected",
]

VERSION = 1
_FIRST_LINE = 'a first line {"recording": 1, …}'
# An operation holds an event, which holds its data: so much deeper may a line be than a value.
_LINE_DEPTH_MAX = DEPTH_MAX + 5
_BLOCK = 50
_DATABASE = b"SQLite format 3\0"

# What each field holds; a `?` behind it: the field may be left out.
_FIELDS: Mapping[str, Mapping[str, str]] = {
    "load": {"events": "events", "has_more": "boolean?"},
    "append": {"event": "event"},
    "prepend": {"events": "events", "has_more": "boolean"},
    "evict": {"before": "integer"},
    "delta": {
        "attempt": "text",
        "turn": "integer",
        "step": "integer",
        "type": "text",
        "data": "object?",
        "number": "integer?",
        "ordinal": "integer?",
        "after": "integer?",
        "index": "integer?",
        "time": "integer?",
    },
    "settle": {"attempt": "text", "outcome": "outcome"},
    "liveness": {"live": "boolean or null"},
    "raises": {"error": "text", "of": "operation", "missing": "first and last?"},
    "converges": {},
}

_ASKING = frozenset({"raises", "converges"})
"""The operations beside `expect` that change nothing."""

_EXPECTS: Mapping[str, str] = {
    "view": "text",
    "nodes": "list",
    "node": "text",
    "is": "object",
    "absent": "list",
    "groups": "list",
    "anomalies": "list",
}

_HEADER: Mapping[str, str] = {
    "recording": "integer",
    "title": "text?",
    "about": "text?",
    "hidden_tools": "texts?",
    "without": "texts?",
}


Fields = Mapping[str, Any]
"""What a line says: frozen, or plain where `is_sound_append` answers yes."""

Place = tuple[str, int]
"""A file and a line in it."""


class Operation(Struct, frozen=True):
    """One line: its number in the file, what it does, and its fields (frozen)."""

    line: int
    name: str
    fields: Fields


class Recording(Struct, frozen=True):
    """One recording: the file it came from, its header (frozen), and its operations in order."""

    source: str
    header: Fields
    operations: tuple[Operation, ...]
    line: int = 1

    @property
    def title(self) -> str:
        """What it shows; without a title, its file."""
        return str(self.header.get("title") or self.source)

    @property
    def without(self) -> frozenset[str]:
        """The kinds of Nodes that `nodes` leaves out."""
        return frozenset(self.header.get("without") or ())

    @property
    def name(self) -> str:
        """What to call it in a message: its file, and its line when it is not the first there."""
        return self.source if self.line == 1 else f"{self.source}:{self.line}"


def time_of(seq: int) -> int:
    """The `time` of an event that says none."""
    return seq * 1_000


# Reading


def read_lines(
    lines: Iterable[bytes], source: str, plugged: Operations | None = None
) -> Iterator[Recording]:
    """The recordings that stand one after another in `lines`, each beginning with its header.

    `RecordingError` names `source`, the line and the field. A recording is given out when the
    next one begins, so a stream of any length needs the memory of one.
    """
    plugged = operations() if plugged is None else plugged
    header: Operation | None = None
    found: list[Operation] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        place = source, number
        fields = _parsed(line, place)
        if "recording" in fields:
            if header:
                yield Recording(source, header.fields, tuple(found), header.line)
            header, found = check_header(fields, place), []
        elif header is None:
            raise unexpected(place, "recording", _FIRST_LINE, short(fields))
        else:
            found.append(check_operation(fields, plugged, place))
    if header is None:
        raise unexpected((source, 1), "recording", _FIRST_LINE, "an empty file")
    yield Recording(source, header.fields, tuple(found), header.line)


def _parsed(line: bytes, place: Place) -> Fields:
    try:
        fields = codec.decode(line)
        if isinstance(fields, dict):
            return frozen(fields)
    except (InputError, LimitError) as fault:
        if "truncated" in str(fault) and not line.endswith(b"\n"):
            said = f"only its beginning: {_quoted(line)}"
            raise unexpected(place, "line", "JSON", said) from None
        if line.startswith(_DATABASE):
            got = "a database (assembler serve shows it)"
            raise unexpected(place, "file", "a recording or a transcript", got) from None
        raise _at(place, f"{fault}; the line is {_quoted(line)}") from None
    raise unexpected(place, "line", "an object", short(fields))


def frozen(fields: Mapping[str, Any]) -> Fields:
    """The fields of a line, immutable."""
    return cast("Fields", freeze_object(fields, _LINE_DEPTH_MAX))


def _quoted(line: bytes) -> str:
    """The beginning of a line, so that nothing in it can reach a terminal as it is."""
    text = line[:_BLOCK].decode(errors="replace").strip()
    return ascii(text) + (" …" if len(line) > _BLOCK else "")


_APPEND = frozenset({"op", "event"})
_EVENT = frozenset({"seq", "type", "time", "data", "id"})


def is_sound_append(fields: Mapping[str, Any]) -> bool:
    """Whether plain fields surely are an `append` as it may stand in a recording.

    Quick, and without a copy: most lines of a transcript are one. False says no more than: freeze
    the fields and ask `check_operation`, which says what is wrong.
    """
    event = fields.get("event")
    if fields.keys() != _APPEND or fields.get("op") != "append" or type(event) is not dict:
        return False
    if not event.keys() <= _EVENT:
        return False
    seq, time, data = event.get("seq"), event.get("time", 0), event.get("data")
    numbers = type(seq) is int and 0 < seq < INT_END and type(time) is int and abs(time) < INT_END
    names = _is_name(event.get("type")) and _is_name(event.get("id", "-"))
    return numbers and names and type(data) is dict and is_plain(data)


def _is_name(value: Any) -> bool:
    return type(value) is str and value != "" and value.isascii()


def encoded(fields: Fields) -> bytes:
    """A line that was checked, as it stands in a file, with its end."""
    line = codec.encode_plain(fields) if type(fields) is dict else codec.encode(fields)
    return line + b"\n"


def check_header(fields: Fields, place: Place) -> Operation:
    """A first line as an Operation, or a `RecordingError` that names the field."""
    _check_fields(fields, _HEADER, place, "")
    if fields["recording"] != VERSION:
        got = str(fields["recording"])
        raise unexpected(place, "recording", f"version {VERSION}", got)
    return Operation(place[1], "recording", fields)


def check_operation(value: Fields, plugged: Operations, place: Place) -> Operation:
    """`value` as an Operation, or a `RecordingError` that names the field."""
    return Operation(place[1], _checked_name(value, plugged, place, ""), value)


def _checked_name(value: Fields, plugged: Operations, place: Place, path: str) -> str:
    name = value.get("op")
    if name == "expect" and not path:
        _check_expect(value, plugged, place)
        return "expect"
    known = {**plugged.fields, **_FIELDS}
    if path:
        # What asks changes nothing, so nothing of it could be refused.
        known = {each: known[each] for each in known.keys() - _ASKING}
    if not isinstance(name, str) or name not in known:
        expected = ", ".join(sorted(known if path else {"expect", *known}))
        raise unexpected(place, f"{path}op", f"one of {expected}", _said(value, "op"))
    _check_fields(value, known[name], place, path)
    _check_names(value, known[name], place, path)
    if name == "raises":
        _checked_name(value["of"], plugged, place, f"{path}of.")
    elif not path:
        _check_events(value, place)
    return name


def _check_expect(value: Fields, plugged: Operations, place: Place) -> None:
    known = {name: f"{kind}?" for name, kind in {**_EXPECTS, **plugged.expects}.items()}
    _check_fields(value, known, place, "")
    _check_names(value, known, place, "")
    if not value.keys() - {"op", "view"}:
        asked = ", ".join(name for name in known if name != "view")
        raise unexpected(place, "expect", f"one of {asked}", "nothing")
    if ("node" in value) is not ("is" in value):
        missing = "is" if "node" in value else "node"
        raise unexpected(place, missing, "a value beside the other one", "nothing")


def _check_fields(value: Fields, fields: Mapping[str, str], place: Place, path: str) -> None:
    """Every field that is there is what it should be, and none is missing."""
    for name, kind in fields.items():
        wanted = kind.rstrip("?")
        if name in value:
            if not _KINDS[wanted](value[name]):
                raise unexpected(place, path + name, _WORDS[wanted], short(value[name]))
        elif wanted == kind:
            raise unexpected(place, path + name, _WORDS[kind], "nothing")


def _check_names(value: Fields, fields: Mapping[str, str], place: Place, path: str) -> None:
    """No field is there that has no meaning: most of those are misspelt."""
    for name in value:
        if name not in fields and name != "op":
            known = f"one of {', '.join(fields)}" if fields else "no field"
            raise unexpected(place, f"{path}{value['op']}", known, short(name))


def _check_events(value: Fields, place: Place) -> None:
    """Whole events where they will be taken; inside `raises` they may be as wrong as they like."""
    if value["op"] == "append":
        _check_event(value["event"], place, "event", {"seq": 1})
    elif "events" in value and value["op"] in _FIELDS:
        for number, event in enumerate(value["events"]):
            _check_event(event, place, f"events[{number}]", {})


def _check_event(event: Fields, place: Place, path: str, default: Fields) -> None:
    fields = {**default, **event}
    # First what is there and means nothing: a misspelt field is also one that is missing.
    for name in event:
        if name not in Event.__struct_fields__:
            known = f"one of {', '.join(Event.__struct_fields__)}"
            raise unexpected(place, path, known, short(name))
    for name in ("seq", "type"):
        if name not in fields:
            raise unexpected(place, f"{path}.{name}", "a value", "nothing")
    try:
        as_event(fields)
    except InputError as fault:
        raise _at(place, f"{path}.{fault}") from None


def unexpected(place: Place, field: str, expected: str, got: str) -> RecordingError:
    """The one form that every error of the format has."""
    return _at(place, f"{field}: expected {expected}, got {got}")


def _at(place: Place, said: str) -> RecordingError:
    return RecordingError(f"{place[0]}:{place[1]}: {said}")


def _said(value: Fields, name: str) -> str:
    return short(value[name]) if name in value else "nothing"


def _is_integer(value: Any) -> bool:
    return type(value) is int


def _is_range(value: Any) -> bool:
    return isinstance(value, tuple) and list(map(type, value)) == [int, int]


_OUTCOMES = frozenset(outcome.value for outcome in Outcome)

_KINDS: Mapping[str, Callable[[Any], bool]] = {
    "any": lambda _: True,
    "boolean": lambda value: isinstance(value, bool),
    "boolean or null": lambda value: value is None or isinstance(value, bool),
    "event": lambda value: isinstance(value, Object),
    "events": lambda value: (
        isinstance(value, tuple) and all(isinstance(event, Object) for event in value)
    ),
    "first and last": _is_range,
    "integer": _is_integer,
    "list": lambda value: isinstance(value, tuple),
    "object": lambda value: isinstance(value, Object),
    "operation": lambda value: isinstance(value, Object),
    "outcome": lambda value: isinstance(value, str) and value in _OUTCOMES,
    "text": lambda value: isinstance(value, str),
    "texts": lambda value: (
        isinstance(value, tuple) and all(isinstance(text, str) for text in value)
    ),
}

# Where the word of the table is not what a reader of an error needs.
_WORDS: Mapping[str, str] = {
    "any": "a value",
    "boolean": "true or false",
    "boolean or null": "true, false or null",
    "event": "an event (an object)",
    "events": "a list of events (objects)",
    "first and last": "two integers",
    "integer": "an integer",
    "list": "a list",
    "object": "an object",
    "operation": "an operation (an object)",
    "outcome": f"one of {', '.join(sorted(_OUTCOMES))}",
    "text": "a text",
    "texts": "a list of texts",
}
