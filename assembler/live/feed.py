"""What the subscribers of one view have not taken yet, in bounded memory.

A subscriber that keeps up has a queue of Patches. One whose queue is full when the view goes on
falls behind: from then on it costs nothing but the memory of what it will have seen when its
queue is empty (its *base*). When it comes back, its queue and the difference between base and
view are merged into one Patch. So nothing is lost, whoever is stalled for ever costs the
others nothing, and what it holds is at most `patches_max` Patches and one Snapshot.

Not here: waiting (`subscription`), and when to flush (`publisher`).
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence
from typing import Protocol

from assembler.engine.errors import ConflictError
from assembler.engine.patches import Patch, Remove, merge
from assembler.engine.views import View, difference
from assembler.live.shared import SharedPatch, SharedSnapshot

__all__ = ["Counts", "Feed", "Queue", "Waiter"]

_LOG = logging.getLogger("assembler.live")


class Counts:
    """What has happened so far, for an operator."""

    __slots__ = ("flushes", "merges", "patches")

    def __init__(self) -> None:
        self.flushes = 0
        self.patches = 0
        """Patches that changed something, of followed views."""
        self.merges = 0
        """How often a slow subscriber got one Patch for many."""


class Waiter(Protocol):
    """Somebody who waits for the next Patch: a future of asyncio."""

    def done(self) -> bool: ...
    def set_result(self, result: None, /) -> None: ...


class _Base:
    """The view at a revision at which subscribers fell behind, and what has gone since."""

    __slots__ = ("_patch", "holders", "keys", "snapshot", "went")

    def __init__(self, snapshot: SharedSnapshot) -> None:
        self._patch: Patch | None = None
        self.snapshot = snapshot
        self.keys = frozenset(node.key for node in snapshot.nodes)
        self.went: set[str] = set()
        """Its keys that were removed since: if they came again, they are other Nodes."""
        self.holders: dict[Queue, None] = {}

    def to(self, now: SharedSnapshot) -> Patch:
        """What leads from here to what is shown now. O(view · log), once for all holders."""
        patch = self._patch
        if patch is None or patch.revision_to != now.revision:
            patch = self._patch = difference(self.snapshot, now, self.went)
        return patch


class Queue:
    """The Patches that one subscriber has not taken yet."""

    __slots__ = ("__weakref__", "_feed", "base", "ended", "fault", "patches", "waiter")

    def __init__(self, feed: Feed) -> None:
        self._feed: Feed | None = feed
        self.patches: deque[SharedPatch] = deque()
        self.base: _Base | None = None
        """There when it fell behind: where its patches lead to."""
        self.ended = False
        """Nothing will follow what is queued."""
        self.fault: Exception | None = None
        """Why it ended, if not in order."""
        self.waiter: Waiter | None = None
        """To be woken when something comes, or the end."""

    def take(self) -> SharedPatch | None:
        """The next Patch; None: nothing yet. O(1), and O(view) for one that comes back."""
        patches = self.patches
        if not patches:
            return None
        feed = self._feed
        if feed is not None and len(patches) >= feed.patches_max:
            if self.base is not None:
                return feed.catch_up(self, self.base)
            feed.full.pop(self, None)
        return patches.popleft()

    def end(self, fault: Exception | None = None) -> None:
        self.ended, self.fault = True, fault
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)

    def leave(self) -> None:
        """Nobody takes any more: forget everything."""
        feed, self._feed = self._feed, None
        if feed is not None:
            feed.remove(self)
        self.end()


class Feed:
    """One view and its subscribers."""

    __slots__ = (
        "_bases",
        "_counts",
        "_queues",
        "_snapshot",
        "full",
        "patches_max",
        "revision",
        "view",
    )

    def __init__(self, view: View, patches_max: int, counts: Counts) -> None:
        self.view = view
        self.patches_max = patches_max
        self._counts = counts
        self._queues: dict[Queue, None] = {}
        """Those that keep up, in the order in which they came."""
        self.full: dict[Queue, None] = {}
        """Those that keep up so far, and have no room for another Patch."""
        self._bases: dict[int, _Base] = {}
        """By revision, for those that fell behind."""
        self._snapshot: SharedSnapshot | None = None
        self.revision = view.revision

    def __bool__(self) -> bool:
        """Whether anybody follows."""
        return bool(self._queues or self._bases)

    # -- following -----------------------------------------------------------------------

    def join(self) -> tuple[SharedSnapshot, Queue]:
        """What is shown now, and a queue for the Patches that lead on from it."""
        queue = Queue(self)
        self._queues[queue] = None
        return self.snapshot(), queue

    def snapshot(self) -> SharedSnapshot:
        """What is shown now. O(view) once per revision."""
        if self._snapshot is None:
            self._snapshot = SharedSnapshot.of(self.view.snapshot())
        return self._snapshot

    def remove(self, queue: Queue) -> None:
        self._queues.pop(queue, None)
        self.full.pop(queue, None)
        self._let_go(queue)

    # -- publishing ----------------------------------------------------------------------

    def make_room(self) -> None:
        """Before the view goes on: whoever has no room for another Patch falls behind.

        O(1) when everybody has, else O(view).
        """
        self._expect(self.view.revision)
        for queue in self.full:
            self._fall_behind(queue)
        self.full.clear()

    def publish(self, patch: Patch) -> Patch:
        """Queue a Patch for everybody who keeps up. O(their number)."""
        if not patch:
            return patch
        shared = SharedPatch.of(patch)
        self.revision = patch.revision_to
        self._counts.patches += 1
        if self._snapshot is not None:
            self._snapshot.forget_encoded()
            self._snapshot = None
        if self._bases:
            self._note_gone(patch)
        most = self.patches_max
        for queue in self._queues:
            patches = queue.patches
            patches.append(shared)
            if len(patches) >= most:
                self.full[queue] = None
            waiter = queue.waiter
            if waiter is not None and not waiter.done():
                waiter.set_result(None)
        return shared

    def end(self, fault: Exception | None = None) -> None:
        """No more Patches: everybody gets what is pending, and then the end (or the fault).

        O(subscribers), and O(view) once when one of them is behind.
        """
        behind = [queue for base in self._bases.values() for queue in base.holders]
        if behind and fault is None:
            self.snapshot()  # what they will be led to, whatever becomes of the view
        for queue in behind:
            if fault is not None:
                self._let_go(queue)
            queue.end(fault)
        for queue in self._queues:
            queue.end(fault)
        self._queues.clear()
        self.full.clear()

    def _expect(self, revision: int) -> None:
        """What somebody else flushed is missing in every queue, and never guessed over."""
        if revision != self.revision:
            self.end(
                ConflictError(
                    f"the view {self.view.name!r} is at revision {revision}, its publisher had "
                    f"brought it to {self.revision}: flush through the publisher alone",
                    self.revision,
                    revision,
                )
            )
            self.revision, self._snapshot = revision, None

    # -- falling behind ------------------------------------------------------------------

    def _fall_behind(self, queue: Queue) -> None:
        del self._queues[queue]
        base = self._bases.get(self.revision)
        if base is None:
            base = self._bases[self.revision] = _Base(self.snapshot())
        base.holders[queue] = None
        queue.base = base
        _LOG.debug("a subscriber of %s is behind at revision %d", self.view.name, self.revision)

    def _note_gone(self, patch: Patch) -> None:
        gone = [op.key for op in patch.ops if type(op) is Remove]
        if gone:
            for base in self._bases.values():
                base.went.update(base.keys.intersection(gone))

    def catch_up(self, queue: Queue, base: _Base) -> SharedPatch:
        """One Patch from what the subscriber has seen to what is shown now. It keeps up again.

        O(view · log + its queue · log): paid by the one who was slow.
        """
        parts: list[Patch] = list(queue.patches)
        if base.snapshot.revision != self.revision:
            parts.append(base.to(self.snapshot()))
        queue.patches.clear()
        self._let_go(queue)
        self._queues[queue] = None
        self._counts.merges += 1
        return SharedPatch.of(_merged(parts))

    def _let_go(self, queue: Queue) -> None:
        base, queue.base = queue.base, None
        if base is not None:
            del base.holders[queue]
            if not base.holders:
                del self._bases[base.snapshot.revision]

    # -- counting ------------------------------------------------------------------------

    def statistics(self) -> dict[str, int]:
        """Counts for an operator. O(subscribers)."""
        behind = [queue for base in self._bases.values() for queue in base.holders]
        return {
            "subscribers": len(self._queues) + len(behind),
            "behind": len(behind),
            "queued": sum(len(queue.patches) for queue in (*self._queues, *behind)),
        }


def _merged(patches: Sequence[Patch]) -> Patch:
    """One Patch for all, merged in pairs, so that growing text is not copied for each."""
    while len(patches) > 1:
        pairs = zip(patches[::2], patches[1::2], strict=False)
        rest = patches[len(patches) // 2 * 2 :]
        patches = [*(merge(first, second) for first, second in pairs), *rest]
    return patches[0]
