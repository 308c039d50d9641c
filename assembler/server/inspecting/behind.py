"""What is behind one Node at one moment: its events and deltas, its State, how it came to be so.

Plain JSON values. The State is asked of an Assembler that is made again from the facts of the
moment, so that nothing here can show what the engine would not. Not here: HTTP (`routes`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import attrs
import msgspec

from assembler.codec import plain
from assembler.engine.assembler import Assembler
from assembler.engine.definition import Match, Node
from assembler.engine.errors import AssemblerError
from assembler.engine.events import Delta, pair
from assembler.engine.values import Object, Text, same
from assembler.recordings.matching import short
from assembler.server.inspecting.encoding import Encoding
from assembler.server.inspecting.travel import Travel

__all__ = ["Behind"]

_ITEMS_MAX = 500
"""So many events and deltas of one Node are listed: the first and the last."""
_CHANGES_MAX = 200
_FIELDS_MAX = 12
_DEPTH_MAX = 12


class Behind:
    """Looks behind the Nodes of one Travel. Keeps the Assembler of the last moment that was asked
    for, so that looking at its Nodes one after another makes it once. For any number of threads."""

    def __init__(self, travel: Travel) -> None:
        self.travel = self._travel = travel
        self.encoding = Encoding()
        self._kept: tuple[int, str, Assembler] | None = None
        self._lock = threading.Lock()

    def node(self, key: str, moment: int, view: str) -> dict[str, Any] | None:
        """All that can be said of a Node at a moment; None when no such Node was shown by then.

        The first of a moment costs a `load` of its facts.
        """
        shown = self._travel.shown[view]
        changes = shown.changed(key, moment)
        if not changes:
            return None
        node = changes[-1][1]
        told = {
            "key": key,
            "moment": moment,
            "node": None if node is None else node.to_json(),
            "changes": self._changes(changes),
            "changed": len(changes),
            "anomalies": [
                {**odd.to_json(), "moment": at}
                for at, odd in self._travel.anomalies
                if odd.key == key and at <= moment
            ],
        }
        return told if node is None else {**told, **self._context(key, moment, view)}

    def _context(self, key: str, moment: int, view: str) -> dict[str, Any]:
        with self._lock:
            assembler = self._assembler(moment, view)
            context = assembler.behind(view, key)
            if context is None:
                return {"items": [], "items_count": 0}
            matches, state, place = context.matches, context.state, context.location
        return {
            "context": context.key,
            "location": {"kind": place.kind, "turn": place.turn, "step": place.step},
            "state": None if state is None else told(state),
            "items": [_item(match) for match in _ends(matches)],
            "items_count": len(matches),
        }

    def _assembler(self, moment: int, view: str) -> Assembler:
        if self._kept is None or self._kept[:2] != (moment, view):
            travel = self._travel
            made = travel.facts.assembler(moment, travel.definitions, [view])
            self._kept = moment, view, made
        return self._kept[2]

    def _changes(self, changes: list[tuple[int, Node | None]]) -> list[dict[str, Any]]:
        """How the Node came to be so; a run of mere growth is one change."""
        said: list[dict[str, Any]] = []
        for (_, old), (at, new) in pairwise([(0, None), *changes]):
            fields = _differences(old, new)
            grew = bool(fields) and all("grew" in each for each in fields)
            if grew and said and said[-1]["grew"] and _same_fields(said[-1]["fields"], fields):
                for kept, now in zip(said[-1]["fields"], fields, strict=True):
                    kept["grew"] += now["grew"]
                said[-1] |= {"to": at, "times": said[-1]["times"] + 1}
                continue
            what = "gone" if new is None else "came" if old is None else "changed"
            said.append(
                {"at": at, "to": at, "what": what, "times": 1, "grew": grew, "fields": fields}
            )
        moments = self._travel.moments
        for each in said:
            each["time"] = moments[each["at"]].time
        return said[-_CHANGES_MAX:]


def _same_fields(left: list[dict[str, Any]], right: list[dict[str, Any]]) -> bool:
    return [each["name"] for each in left] == [each["name"] for each in right]


def _differences(old: Node | None, new: Node | None) -> list[dict[str, Any]]:
    """The fields of its data that changed, each with both values in short."""
    if old is None or new is None:
        return []
    found = []
    if old.position != new.position:
        before, after = (str(list(node.anchor)) for node in (old, new))
        found.append({"name": "anchor", "before": before, "after": after})
    found += _fields(old.data, new.data, "")
    return found[:_FIELDS_MAX]


def _fields(old: Mapping[str, Any], new: Mapping[str, Any], within: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for name in dict.fromkeys([*old, *new]):
        before, after, path = old.get(name), new.get(name), within + name
        if before is after:
            continue
        grew = _growth(before, after)
        if grew is not None:
            found += [{"name": path, "grew": grew}] if grew else []
        elif isinstance(before, Mapping) and isinstance(after, Mapping) and not within:
            found += _fields(before, after, f"{path}.")
        elif not same(before, after):
            found.append({"name": path, "before": short(before), "after": short(after)})
    return found


def _growth(before: Any, after: Any) -> int | None:
    """By how many UTF-16 units all texts in it grew; None when anything else is another value."""
    if type(before) is Text and type(after) is Text:
        suffix = after.suffix_of(before)
        return None if suffix is None else after.units - before.units
    if type(before) is not type(after):
        return None
    if isinstance(after, tuple) and len(before) == len(after):
        parts = [_growth(*each) for each in zip(before, after, strict=True)]
    elif isinstance(after, Mapping) and before.keys() == after.keys():
        parts = [_growth(before[name], after[name]) for name in after]
    else:
        return 0 if before == after else None
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


def _ends(matches: tuple[Match, ...]) -> Iterator[Match]:
    if len(matches) <= _ITEMS_MAX:
        yield from matches
        return
    half = _ITEMS_MAX // 2
    yield from matches[:half]
    yield from matches[-half:]


def _item(match: Match) -> dict[str, Any]:
    item = match.item
    said = {
        "position": list(pair(match.position)),
        "role": match.role.value,
        "type": item.type,
        "time": item.time,
        "data": plain(item.data),
    }
    if isinstance(item, Delta):
        return {
            **said,
            "is": "delta",
            "attempt": item.attempt,
            "number": item.number,
            "ordinal": item.ordinal,
        }
    return {**said, "is": "event", "seq": item.seq, "id": item.id, "v": item.v}


def told(value: Any, depth: int = 0) -> Any:
    """A State as plain JSON values; what has no such form as what it says of itself.

    Values of any depth, in time linear in what is said.
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if depth > _DEPTH_MAX:
        return "…"
    if isinstance(value, (Object, Text)):
        return plain(value)
    if attrs.has(type(value)):
        names = [field.name for field in attrs.fields(type(value))]
        return {name: told(getattr(value, name), depth + 1) for name in names}
    if isinstance(value, msgspec.Struct):
        return {name: told(getattr(value, name), depth + 1) for name in value.__struct_fields__}
    if isinstance(value, Mapping):
        return {str(name): told(each, depth + 1) for name, each in value.items()}
    if isinstance(value, (tuple, list, set, frozenset)):
        return [told(each, depth + 1) for each in value]
    try:
        return plain(value)
    except (AssemblerError, TypeError, ValueError):
        return str(value)
