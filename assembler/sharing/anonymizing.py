"""The lines of a recording without its words: the same shape, and nothing that anybody said.

All is replaced but what a catalog says is harmless (`plugins.Harmless`) and what the engine counts
with. Here lives which rule a value falls under; what a text becomes is `masking`. Not here: files,
and how a recording becomes lines of the engine alone (`recordings.lowering`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from assembler.plugins import Harmless
from assembler.sharing.masking import Masking

__all__ = ["anonymized"]

_EPOCH = 978_307_200_000
"""What the first event's time becomes: 2001 began then."""
_MADE_UP_MAX = 100_000_000_000
"""Times below are counted, not measured, and say nothing."""
_NUMBERS = frozenset({"seq", "number", "ordinal", "after", "index", "turn", "step"})
_FREE = ""
"""The scope of values that nobody knows: no field in them means anything."""

Line = Mapping[str, Any]


def anonymized(
    header: Line, lines: list[dict[str, Any]], harmless: Harmless, key: bytes, *, names: bool
) -> Iterator[dict[str, Any]]:
    """The header and the lines of a recording, replaced. O(size), twice over what is live.

    The lines are those of the engine's operations, with all their fields. With `names` names of
    what runs are replaced too. The same `key` gives the same again.
    """
    walk = _Walk(harmless, Masking(key), _shift(lines), names=names)
    walk.learn(lines)
    yield walk.header(header)
    for line in lines:
        yield walk.line(line)


def _shift(lines: Iterable[Line]) -> int:
    for line in lines:
        for event in (*line.get("events", ()), *filter(None, [line.get("event")]), line):
            if "time" in event:
                return _EPOCH - event["time"] if event["time"] > _MADE_UP_MAX else 0
    return 0


class _Walk:
    """The rules, applied to one recording."""

    def __init__(self, harmless: Harmless, masking: Masking, shift: int, *, names: bool) -> None:
        self._harmless = harmless
        self._masking = masking
        self._shift = shift
        self._names = names
        self._live: dict[tuple[str, ...], dict[int, str]] = {}
        self._made: dict[tuple[str, ...], dict[int, str]] = {}

    def header(self, header: Line) -> dict[str, Any]:
        """The first line."""
        found = {name: value for name, value in header.items() if name != "hidden_tools"}
        for name in ("title", "about"):
            if name in found:
                found[name] = self._masking.text(found[name])
        for name in header.keys() - found.keys():
            found[name] = [self._name(each) for each in header[name]]
        return found

    def line(self, line: Line) -> dict[str, Any]:
        """One operation."""
        found = dict(line)
        if "event" in line:
            found["event"] = self._event(line["event"])
        if "events" in line:
            found["events"] = [self._event(each) for each in line["events"]]
        if "attempt" in line:
            found["attempt"] = self._masking.text(line["attempt"])
        if line["op"] == "delta":
            found["time"] = line["time"] + self._shift
            found["data"] = self._delta(line)
            found["type"] = self._type(line["type"])
        return found

    def _event(self, event: Line) -> dict[str, Any]:
        found = {**event, "type": self._type(event["type"])}
        found["data"] = self._object(event["data"], event["type"])
        found["time"] = event["time"] + self._shift
        if event.get("id") is not None:
            found["id"] = self._masking.text(event["id"])
        return found

    def _type(self, kind: str) -> str:
        """A type that is known stays; of a foreign format's, the format's name."""
        if kind in self._harmless.types:
            return kind
        head, mark, rest = kind.partition("/")
        if mark and head in self._harmless.formats:
            return f"{head}/{self._masking.text(rest)}"
        return self._masking.text(kind)

    # -- what is live --------------------------------------------------------------------

    def learn(self, lines: Iterable[Line]) -> None:
        """Takes the pieces of texts together: a piece is replaced as a part of its whole."""
        for line in lines:
            found = self._piece(line)
            if found is not None:
                place, field = found
                self._live.setdefault(place, {})[line["ordinal"]] = line["data"][field]

    def _piece(self, line: Line) -> tuple[tuple[str, ...], str] | None:
        """Which text a delta continues, and in which field its piece stands."""
        if line["op"] != "delta":
            return None
        field = self._harmless.pieces.get(line["type"])
        if field is None or not isinstance(line["data"].get(field), str):
            return None
        named = (str(line["data"].get(name, "")) for name in self._harmless.wholes)
        return (line["attempt"], line["type"], *named), field

    def _delta(self, line: Line) -> dict[str, Any]:
        found = self._object(line["data"], line["type"])
        piece = self._piece(line)
        if piece is not None:
            place, field = piece
            found[field] = self._pieces(place, line["type"], field)[line["ordinal"]]
        return found

    def _pieces(self, place: tuple[str, ...], kind: str, field: str) -> dict[int, str]:
        made = self._made.get(place)
        if made is None:
            pieces = sorted(self._live.pop(place).items())
            whole = self._text("".join(text for _, text in pieces), kind, field)
            made, at = {}, 0
            for ordinal, text in pieces:
                made[ordinal] = whole[at : at + len(text)]
                at += len(text)
            self._made[place] = made
        return made

    # -- values --------------------------------------------------------------------------

    def _object(self, value: Line, scope: str) -> dict[str, Any]:
        """An object; where it says its own type, that is what its fields are fields of."""
        said = value.get("type")
        if scope is not _FREE and isinstance(said, str) and said in self._harmless.types:
            scope = said
        found: dict[str, Any] = {}
        for field, each in value.items():
            name = field if field in self._harmless.fields else self._masking.text(field)
            while name in found:
                name += "_"
            found[name] = self._value(each, scope, field)
        return found

    def _value(self, value: Any, scope: str, field: str) -> Any:
        if isinstance(value, str):
            return self._text(value, scope, field)
        if isinstance(value, Mapping):
            is_free = scope is _FREE or (field in self._harmless.free and not _is_block(value))
            return self._object(value, _FREE if is_free else field)
        if isinstance(value, (list, tuple)):
            return [self._value(each, scope, field) for each in value]
        if value is None or isinstance(value, bool):
            return value
        if scope is not _FREE and (field in _NUMBERS or field in self._harmless.numbers):
            return value
        return self._masking.number(value)

    def _text(self, value: str, scope: str, field: str) -> str:
        if self._is_word(value, field):
            return value
        if scope is not _FREE:
            if field in self._harmless.names.get(scope, ()):
                return self._name(value)
            if field in self._harmless.json_texts:
                return self._masking.json_text(value, self._is_kept)
        return self._masking.text(value)

    def _is_word(self, value: str, field: str) -> bool:
        return value in self._harmless.words.get(field, ())

    def _is_kept(self, text: str, key: str | None) -> bool:
        return text in self._harmless.fields if key is None else self._is_word(text, key)

    def _name(self, value: str) -> str:
        return self._masking.text(value) if self._names else value


def _is_block(value: Line) -> bool:
    return isinstance(value.get("type"), str)
