"""Folding every State that is behind: earliest start first, each at most once.

A State that changed makes those stale who look back at it; they start later, so that one pass in
order of starts is enough.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from assembler.engine.contexts import NO_READER, REFOLD, Entry, order_key
from assembler.engine.derived import Derived
from assembler.engine.predecessors import Lookup

__all__ = ["settle"]


def settle(derived: Derived) -> None:
    """Fold every State that is behind, earliest start first, each once."""
    if not derived.stale:
        return
    stale, derived.stale = derived.stale, {}
    if len(stale) == 1 and _settle_one(derived, next(iter(stale))):
        return
    heap: list[tuple[tuple[int, str], int, Entry]] = []
    try:
        for entry in list(stale):
            entry.stale = False
            if entry.moved:
                derived.relocate(entry)
        queue = dict.fromkeys(stale)
        for entry in list(stale):
            queue.update(dict.fromkeys(derived.predecessors.moved(entry)))
        heap += [(order_key(entry.lead), number, entry) for number, entry in enumerate(queue)]
        heapify(heap)
        number = len(heap)
        while heap:
            entry = heap[0][2]
            for asker in _fold(derived, entry):
                if asker not in queue:
                    queue[asker] = None
                    heappush(heap, (order_key(asker.lead), number, asker))
                    number += 1
            heappop(heap)
    except BaseException:
        derived.distrust()
        raise


def _settle_one(derived: Derived, entry: Entry) -> bool:
    """The common case: one Context grew at its end, and nobody looks back at it."""
    if entry.moved or entry.folded == REFOLD or entry.spec.kind in derived.predecessors.kinds:
        return False
    entry.stale = False
    try:
        _fold(derived, entry)
    except BaseException:
        derived.distrust()
        raise
    return True


def _fold(derived: Derived, entry: Entry) -> list[Entry]:
    """Fold one Context; who may have to refold because of it."""
    complete = derived.facts.complete
    asks = bool(entry.asks) or entry in derived.predecessors.ask_complete
    if asks and derived.predecessors.answered_otherwise(entry, complete=complete):
        entry.folded = REFOLD
    if (asks and entry.folded == REFOLD) or entry.start_at is None:
        derived.predecessors.forget(entry, entry.asked_at)
    if entry.start_at is not None:
        entry.asked_at = order_key(entry.lead)
    appended = entry.folded not in (REFOLD, len(entry.matches))
    failed = entry.failure is not None
    if entry.folded == REFOLD and entry.start_at is not None:
        reader = Lookup(derived.predecessors, entry, complete=complete)
        changed = entry.fold(reader, strict=derived.strict)
        reader.close()
    else:
        asked = entry.spec.kind in derived.predecessors.kinds
        changed = entry.fold(NO_READER, strict=derived.strict, compare=asked)
    touched = changed or entry.moved or (appended and (entry.scans or entry.start_at is None))
    if touched:
        if entry.moved:
            derived.key_changed(f"place:{entry.key}")
        derived.touch(entry)
        entry.moved = False
    if entry.had_start is not (entry.start_at is not None):
        entry.had_start = entry.start_at is not None
        derived.key_changed(f"has:{entry.key}")
    if not changed:
        if touched and entry.start_at is None:
            derived.key_changed(f"other:{entry.key}")
        return []
    derived.key_changed(f"other:{entry.key}")
    if failed != (entry.failure is not None):
        return [*derived.predecessors.moved(entry), *derived.predecessors.changed(entry)]
    return list(derived.predecessors.changed(entry))
