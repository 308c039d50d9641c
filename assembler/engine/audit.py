"""The slow self-check: every invariant of an Assembler, for tests and for looking into one.

It reads what the engine holds and changes nothing. It does not know what should be shown: that
is compared with an oracle (`assembler.testing`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from assembler.engine.contexts import Entry, order_key
from assembler.engine.definition import START
from assembler.engine.events import Event

__all__ = ["audit"]


def audit(assembler: Any) -> list[str]:
    """What is wrong with an Assembler, in words; empty when all is well. O(all it holds).

    What stands on something that is wrong already is not looked at.
    """
    for look in (_facts, _contexts, _derived, _views):
        wrong = list(look(assembler))
        if wrong:
            return wrong
    return []


def _facts(assembler: Any) -> Iterator[str]:
    yield from _window(assembler._window)
    yield from assembler._attempts.check()


def _contexts(assembler: Any) -> Iterator[str]:
    for table in assembler._derived.tables.values():
        for ident, entry in table.items():
            yield from _entry(assembler, ident, entry)


def _derived(assembler: Any) -> Iterator[str]:
    derived = assembler._derived
    yield from derived.facts.timeline.check(list(assembler._window.events()))
    yield from derived.facts.places.check(_entries(assembler))
    yield from derived.dependencies.check(_entries(assembler))
    if not derived.stale:
        yield from derived.predecessors.check()
    yield from _held(assembler)
    yield from _owned(assembler)


def _views(assembler: Any) -> Iterator[str]:
    wrong = [each for view in assembler._views.values() for each in view.check()]
    yield from wrong or _shown(assembler)


def _entries(assembler: Any) -> Iterator[Entry]:
    for table in assembler._derived.tables.values():
        yield from table.values()


def _window(window: Any) -> Iterator[str]:
    if not window.loaded:
        return
    if window.end is None or sorted(window.loaded) != list(range(window.first, window.end + 1)):
        yield "window: it is not contiguous"
    if window.first == 1 and window.has_more:
        yield "window: something is said to be older than event 1"


def _entry(assembler: Any, ident: str, entry: Entry) -> Iterator[str]:
    if not entry.matches:
        yield f"{entry.key}: it has no matches"
        return
    if entry.gone or ident != entry.id:
        yield f"{entry.key}: it is held although it is gone, or under another id"
    keys = [order_key(match) for match in entry.matches]
    if any(a >= b for a, b in pairwise(keys)):
        yield f"{entry.key}: its matches are not in order, or one is there twice"
    starts = [at for at, match in enumerate(entry.matches) if match.role is START]
    if (starts[0] if starts else None) != entry.start_at:
        yield f"{entry.key}: its start is not the earliest one"
    if entry.start_at is None and entry.state is not None:
        yield f"{entry.key}: a State without a start"
    if entry.stale != (entry in assembler._derived.stale):
        yield f"{entry.key}: stale in one place and not in the other"
    kept = assembler._derived.findings.expected()
    if any(finding not in kept for finding in entry.findings):
        yield f"{entry.key}: its findings are not kept"
    if not entry.stale:
        yield from _settled(assembler, entry)


def _settled(assembler: Any, entry: Entry) -> Iterator[str]:
    if entry.folded != len(entry.matches):
        yield f"{entry.key}: settled, but {entry.folded} of {len(entry.matches)} are folded"
    item = entry.lead.item
    if type(item) is Event:
        place = assembler._derived.facts.timeline.locate(
            item, assembler._window, complete=assembler._derived.facts.complete
        )
        if (place.turn, place.step, place.resolved) != (entry.turn, entry.step, entry.resolved):
            yield f"{entry.key}: it stands at {entry.turn}.{entry.step}, not {place}"


def _held(assembler: Any) -> Iterator[str]:
    """Every delta in a Context is held, and every Context knows its attempts."""
    for attempt in assembler._attempts.held.values():
        for entry in attempt.entries:
            if entry.gone:
                yield f"attempt {attempt.name}: it holds on to {entry.key}, which is gone"
    for table in assembler._derived.tables.values():
        for entry in table.values():
            for match in entry.matches:
                yield from _match_held(assembler, entry, match.item)


def _match_held(assembler: Any, entry: Entry, item: Any) -> Iterator[str]:
    if type(item) is Event:
        loaded = assembler._window.loaded.get(item.seq)
        if loaded is None or loaded.event is not item:
            yield f"{entry.key}: event {item.seq} is not loaded"
        elif entry not in _owners(loaded):
            yield f"{entry.key}: event {item.seq} does not know it"
        return
    attempt = assembler._attempts.held.get(item.attempt)
    if attempt is None or entry not in attempt.entries:
        yield f"{entry.key}: a delta of {item.attempt} is not held"
    elif item.ordinal >= len(attempt.deltas) or attempt.deltas[item.ordinal] is not item:
        yield f"{entry.key}: ordinal {item.ordinal} of {item.attempt} is not held"


def _owners(loaded: Any) -> tuple[Entry, ...]:
    owners = loaded.owners
    return owners if type(owners) is tuple else (() if owners is None else (owners,))


def _owned(assembler: Any) -> Iterator[str]:
    for seq, loaded in assembler._window.loaded.items():
        for entry in _owners(loaded):
            if entry.gone or not any(m.item is loaded.event for m in entry.matches):
                yield f"event {seq}: {entry.key} does not hold it"


def _shown(assembler: Any) -> Iterator[str]:
    """After a flush every visible Node belongs to one living Context."""
    if assembler._derived.stale or any(assembler._derived.dirty):
        return
    for name, view in assembler._views.items():
        owners = {
            entry.node_key
            for spec in assembler._registry.specs
            if spec.target == name
            for entry in assembler._derived.tables[spec.kind].values()
            if entry.node_key is not None
        }
        shown = {node.key for node in view.nodes}
        if owners != shown:
            yield f"view {name}: it shows {sorted(shown ^ owners)} without a Context, or not"
