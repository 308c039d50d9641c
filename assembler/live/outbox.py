"""The Outbox: what is on its way to a server that acknowledges, in order, many at a time.

Nothing is kept here for good: whoever gives something holds it himself, and gives it again when
`failed` was called. Not here: which server that is (`nats`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from msgspec import Struct

__all__ = ["Outbox"]

Publish = Callable[[str, bytes], Awaitable["asyncio.Future[object]"]]
Purge = Callable[[str, int], Awaitable[object]]


class _Item(Struct):
    """A record for a subject; None: the subject is to be purged to its last `keep` messages."""

    subject: str
    record: bytes | None
    keep: int = 0


class _Sent(Struct, eq=False):
    subject: str
    since: float
    ack: asyncio.Future[object]


class Outbox:
    """Sends what it is given: records of one subject that wait go together in one message.

    At most `acks_max` messages are on their way, each of at most `message_bytes_max` bytes.
    """

    def __init__(
        self,
        publish: Publish,
        purge: Purge,
        failed: Callable[[], None],
        *,
        acks_max: int,
        message_bytes_max: int,
    ) -> None:
        self._publish = publish
        self._purge = purge
        self._failed = failed
        self._acks_max = acks_max
        self._message_bytes_max = message_bytes_max
        self._queue: deque[_Item] = deque()
        self._sent: dict[_Sent, None] = {}
        self._wake = asyncio.Event()
        self._moved = asyncio.Event()
        """Set whenever an acknowledgement has come."""
        self._purges: set[asyncio.Task[None]] = set()
        self._task: asyncio.Task[None] | None = None
        self.messages = 0
        self.records = 0
        self.purged = 0
        self.failures = 0

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.ensure_future(self._run())

    def give(self, subject: str, record: bytes) -> None:
        self._queue.append(_Item(subject, record))
        self._wake.set()

    def purge(self, subject: str, keep: int = 0) -> None:
        """Purge a subject, behind all that was given before."""
        self._queue.append(_Item(subject, None, keep))
        self._wake.set()

    def clear(self) -> None:
        """Forget what is on its way, purges as well: it will be given again."""
        self._queue.clear()
        for sent in tuple(self._sent):
            del self._sent[sent]
            sent.ack.cancel()
        for purge in self._purges:
            purge.cancel()
        self._moved.set()

    @property
    def oldest(self) -> float | None:
        """Since when the oldest message waits for its acknowledgement, by the loop's clock."""
        return min((sent.since for sent in self._sent), default=None)

    @property
    def is_empty(self) -> bool:
        return not (self._queue or self._sent or self._purges)

    async def emptied(self) -> None:
        """Wait until nothing is on its way."""
        while not self.is_empty:
            self._moved.clear()
            await self._moved.wait()

    async def acknowledged(self, subject: str) -> None:
        """Wait until nothing of this subject is on its way."""
        while self._has(subject):
            self._moved.clear()
            await self._moved.wait()

    def _has(self, subject: str) -> bool:
        return any(each.subject == subject for each in self._queue) or any(
            each.subject == subject for each in self._sent
        )

    async def stop(self) -> None:
        tasks = [*self._purges, *([] if self._task is None else [self._task])]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        self.clear()

    # -- sending -------------------------------------------------------------------------

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._queue:
                if self._queue[0].record is None:
                    self._begin_purge(self._queue.popleft())
                elif len(self._sent) >= self._acks_max:
                    self._moved.clear()
                    await self._moved.wait()
                else:
                    await self._send()

    async def _send(self) -> None:
        subject, payload = self._next()
        try:
            ack = await self._publish(subject, payload)
        except Exception:
            self._fail()
            return
        self.messages += 1
        sent = _Sent(subject, asyncio.get_running_loop().time(), ack)
        self._sent[sent] = None
        ack.add_done_callback(lambda done: self._done(sent, done))

    def _next(self) -> tuple[str, bytes]:
        """The records at the front that go together."""
        parts: list[bytes] = []
        subject, size = self._queue[0].subject, 2
        while self._queue:
            item = self._queue[0]
            if item.record is None or item.subject != subject:
                break
            size += len(item.record) + 1
            if parts and size > self._message_bytes_max:
                break
            parts.append(item.record)
            self._queue.popleft()
        self.records += len(parts)
        return subject, b"[" + b",".join(parts) + b"]"

    def _done(self, sent: _Sent, ack: asyncio.Future[object]) -> None:
        was_sent = sent in self._sent
        self._sent.pop(sent, None)
        self._moved.set()
        if was_sent and (ack.cancelled() or ack.exception() is not None):
            self._fail()

    def _fail(self) -> None:
        self.failures += 1
        self.clear()
        self._failed()

    # -- purging -------------------------------------------------------------------------

    def _begin_purge(self, item: _Item) -> None:
        acks = [sent.ack for sent in self._sent if sent.subject == item.subject]
        task = asyncio.ensure_future(self._purge_behind(item, acks))
        self._purges.add(task)
        task.add_done_callback(self._purge_done)

    async def _purge_behind(self, item: _Item, acks: list[asyncio.Future[object]]) -> None:
        if acks:
            await asyncio.wait(acks)
        if not any(ack.cancelled() for ack in acks):
            await self._purge(item.subject, item.keep)

    def _purge_done(self, task: asyncio.Task[None]) -> None:
        self._purges.discard(task)
        self._moved.set()
        if not task.cancelled() and task.exception() is None:
            self.purged += 1
