"""A store in memory: for tests, and for conversations that need not outlive their process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from assembler.engine.events import Draft, Event
from assembler.stores.base import Limits, Listed, SyncStore, answer, body
from assembler.stores.store import Store
from assembler.stores.upcasting import Upcasters

__all__ = ["MemoryStore"]

T = TypeVar("T")


class MemoryStore(Store):
    """Keeps every conversation in memory, and nothing when it is closed. Calls never wait."""

    def __init__(self, *, limits: Limits | None = None, upcasters: Upcasters | None = None) -> None:
        super().__init__(_Memory(limits, upcasters))

    async def run(self, ask: Callable[[SyncStore], T]) -> T:
        """What `ask` makes of the plain core, at once."""
        return ask(self.sync)

    async def close(self) -> None:
        """Forget everything. A second time changes nothing."""
        self.sync.close()


class _Log:
    """The events of one conversation, found by seq, by id and by type."""

    __slots__ = ("by_id", "events", "newest")

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.by_id: dict[str, Event] = {}
        self.newest: dict[str, Event] = {}

    def add(self, event: Event) -> None:
        self.events.append(event)
        self.newest[event.type] = event
        if event.id is not None:
            self.by_id[event.id] = event


_NOTHING = _Log()


class _Memory(SyncStore):
    def __init__(self, limits: Limits | None, upcasters: Upcasters | None) -> None:
        super().__init__(limits, upcasters)
        self._logs: dict[str, _Log] = {}

    def _open(self) -> None:
        pass

    def _close(self) -> None:
        self._logs.clear()

    def _log(self, conversation: str) -> _Log:
        return self._logs.get(conversation, _NOTHING)

    def _append(
        self, conversation: str, drafts: Sequence[Draft], expected_seq: int
    ) -> tuple[list[Event], int]:
        log = self._log(conversation)
        events, fresh = answer(drafts, log.by_id, len(log.events), expected_seq)
        for event in fresh:
            body(event, self.limits)  # what cannot be stored elsewhere is refused here too
        if fresh:
            log = self._logs.setdefault(conversation, _Log())
        for event in fresh:
            log.add(event)
        return events, len(fresh)

    def _page(self, conversation: str, before: int, limit: int) -> list[Event]:
        events = self._log(conversation).events
        end = min(before - 1, len(events))
        return events[max(0, end - limit) : end]

    def _read(self, conversation: str, after: int, limit: int | None) -> list[Event]:
        return self._log(conversation).events[after : None if limit is None else after + limit]

    def _last(self, conversation: str) -> int:
        return len(self._log(conversation).events)

    def _newest(self, conversation: str, types: Sequence[str]) -> dict[str, Event]:
        newest = self._log(conversation).newest
        return {each: newest[each] for each in types if each in newest}

    def _conversations(
        self, newest: Sequence[str], limit: int, before: Listed | None
    ) -> list[Listed]:
        entries = sorted((_order(name, log), name) for name, log in self._logs.items())
        if before is not None:
            end = -before.last_time, before.conversation
            entries = [entry for entry in entries if entry[0] > end]
        return [self._listed(name, newest) for _, name in entries[:limit]]

    def _listed(self, name: str, newest: Sequence[str]) -> Listed:
        events = self._logs[name].events
        first, last = events[0], events[-1]
        return Listed(name, len(events), first.time, last.time, self._newest(name, newest))


def _order(name: str, log: _Log) -> tuple[int, str]:
    return -log.events[-1].time, name
