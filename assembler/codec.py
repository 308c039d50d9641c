"""Bytes to events, deltas, snapshots and patches, and anything frozen to bytes.

Here lives all JSON text of the library: one line, one value. Unknown types are kept, as the data
of an event is never looked into. Not here: the format of recordings (`assembler.recordings`) and
what an event means.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from assembler.engine.errors import InputError, LimitError
from assembler.engine.events import Delta, Draft, Event, Outcome
from assembler.engine.patches import Patch, Snapshot
from assembler.engine.values import Object, Text, freeze, thaw

__all__ = [
    "decode",
    "decode_delta",
    "decode_event",
    "decode_events",
    "decode_patch",
    "decode_snapshot",
    "encode",
    "encode_plain",
    "plain",
]

_ANY = msgspec.json.Decoder()
_EVENT = msgspec.json.Decoder(Event)
_DELTA = msgspec.json.Decoder(Delta)
_ENCODER = msgspec.json.Encoder()

_decode_event = _EVENT.decode
_decode_delta = _DELTA.decode

_EVENT_FIELDS = frozenset(Event.__struct_fields__) - {"more"}

_FAULTS = (msgspec.DecodeError, RecursionError)
# "Expected `int`, got `str` - at `$.seq`", as msgspec says it.
_EXPECTED = re.compile(r"Expected `(?P<want>.+?)`, got `(?P<got>.+?)`(?: - at `\$\.?(?P<at>.*)`)?")
_MISSING = re.compile(r"Object missing required field `(?P<name>.+?)`")
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>.*?)`", re.DOTALL)


def decode_event(line: bytes | str) -> Event:
    """One event out of one JSON text; `InputError` names the field. O(size).

    Fields that this version does not know are carried in `Event.more`.
    """
    return _event(line, "")


def _event(line: bytes | str, place: str) -> Event:
    try:
        return _decode_event(line)
    except _FAULTS as fault:
        if _UNKNOWN.match(str(fault)) is None:
            raise _explained(fault, "event", place) from None
    value = _ANY.decode(line)
    more = {name: value.pop(name) for name in [*value] if name not in _EVENT_FIELDS}
    try:
        return replace(msgspec.convert(value, Event), more=more)
    except _FAULTS as fault:
        raise _explained(fault, "event", place) from None


def decode_delta(line: bytes | str) -> Delta:
    """One delta out of one JSON text; `InputError` names the field. O(size)."""
    try:
        return _decode_delta(line)
    except _FAULTS as fault:
        raise _explained(fault, "delta") from None


def decode_events(lines: bytes | Iterable[bytes | str]) -> list[Event]:
    """Events out of JSON lines, given as one text or line by line; an error names the line."""
    if isinstance(lines, bytes):
        try:
            return _EVENT.decode_lines(lines)
        except _FAULTS:
            lines = [line for line in lines.split(b"\n") if line.strip()]
    events = []
    for number, line in enumerate(lines, 1):
        events.append(_event(line, f"line {number}: "))
    return events


def decode_snapshot(line: bytes | str) -> Snapshot:
    """One snapshot out of one JSON text; `InputError` names the field. O(size)."""
    return Snapshot.from_json(_decode_object(line, "snapshot"))


def decode_patch(line: bytes | str) -> Patch:
    """One patch out of one JSON text; `InputError` names the field. O(size)."""
    return Patch.from_json(_decode_object(line, "patch"))


def _decode_object(line: bytes | str, what: str) -> dict[str, Any]:
    value = decode(line)
    if not isinstance(value, dict):
        raise _unexpected(what, "an object", type(value).__name__)
    return value


def decode(line: bytes | str) -> Any:
    """Any JSON text as plain Python values; `InputError` says what is wrong with it."""
    try:
        return _ANY.decode(line)
    except _FAULTS as fault:
        raise _explained(fault, "line") from None


def encode(value: Any) -> bytes:
    """`value` as one JSON text without a line end.

    Takes events, deltas, whatever has a `to_json()` (Nodes, Groups, Snapshots, Patches,
    anomalies), frozen values, plain ones, and any mix of them. O(size).
    """
    try:
        return _ENCODER.encode(plain(value))
    except (UnicodeEncodeError, TypeError, RecursionError) as fault:
        what = "value"
        raise _unexpected(what, "what JSON can say", fault) from None


def encode_plain(value: dict[str, Any] | list[Any]) -> bytes:
    """As `encode`, of what `engine.values.is_plain` takes: quick, and without a check."""
    return _ENCODER.encode(value)


def plain(value: Any) -> Any:
    """`value` as plain dicts, lists and scalars: what `encode` writes. O(size)."""
    known = _PLAIN.get(type(value))
    if known is not None:
        return known(value)
    if hasattr(value, "to_json"):
        return plain(value.to_json())
    return _plain_mapping(value) if isinstance(value, Mapping) else thaw(freeze(value))


def _plain_mapping(value: Mapping[str, Any]) -> dict[str, Any]:
    return {key: plain(item) for key, item in value.items()}


def _plain_list(value: Iterable[Any]) -> list[Any]:
    return [plain(item) for item in value]


def _plain_event(event: Event) -> dict[str, Any]:
    return {"seq": event.seq, **_plain_draft(event)}


def _plain_draft(event: Event | Draft) -> dict[str, Any]:
    wire = {"type": event.type, "time": event.time, "data": thaw(event.data)}
    if event.id is not None:
        wire["id"] = event.id
    if event.v != 1:
        wire["v"] = event.v
    if event.more is not None:
        wire |= thaw(event.more)
    return wire


def _plain_delta(delta: Delta) -> dict[str, Any]:
    return {
        "attempt": delta.attempt,
        "number": delta.number,
        "ordinal": delta.ordinal,
        "after": delta.after,
        "index": delta.index,
        "turn": delta.turn,
        "step": delta.step,
        "time": delta.time,
        "type": delta.type,
        "data": thaw(delta.data),
    }


_PLAIN: dict[type, Callable[[Any], Any]] = {
    Object: thaw,
    Text: thaw,
    dict: _plain_mapping,
    list: _plain_list,
    tuple: _plain_list,
    Event: _plain_event,
    Draft: _plain_draft,
    Delta: _plain_delta,
    Outcome: lambda outcome: outcome.value,
    # The scalars; a number that JSON has no word for raises.
    str: lambda value: value,
    int: freeze,
    float: freeze,
    bool: lambda value: value,
    type(None): lambda value: value,
}


def _unexpected(field: str, expected: str, got: object) -> InputError:
    return InputError(f"{field}: expected {expected}, got {got}")


def _explained(fault: BaseException, what: str, place: str = "") -> InputError | LimitError:
    """What a decoder raised, as one line of ours: `field: expected ..., got ...`."""
    cause = fault.__cause__
    if isinstance(cause, (InputError, LimitError)):
        return type(cause)(f"{place}{cause}")
    if isinstance(fault, RecursionError):
        return LimitError(f"{place}{what}: expected JSON of some depth, got one nested too deeply")
    field, expected, got = _translated(str(fault))
    return _unexpected(place + (field or what), expected, got)


def _translated(said: str) -> tuple[str | None, str, str]:
    """The field (None: the whole), what was expected and what was there, of a decoder's words."""
    if "UTF-8" in said:
        return None, "UTF-8", "other bytes"
    if found := _EXPECTED.match(said):
        return found["at"], found["want"], found["got"]
    if found := _MISSING.match(said):
        return found["name"], "a value", "nothing"
    if found := _UNKNOWN.match(said):
        return None, "fields with a meaning", found["name"]
    return None, "JSON", f"something else ({said})"
