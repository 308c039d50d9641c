"""Live over NATS JetStream: Sessions of many processes tell each other through one server.

A memory stream holds what is going on, under one subject for each attempt of a conversation; it
is purged when the attempt is over. What need not be held (leases, notices of what is stored) goes
beside it. The one file that knows NATS; it needs the extra `nats`. Not here: what is told and who
hears it (`base`), sending in order (`outbox`).
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections import deque
from collections.abc import Iterable
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from msgspec.structs import asdict
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, StorageType, StreamConfig
from nats.js.errors import APIError, NotFoundError

from assembler.codec import encode
from assembler.engine.errors import InputError, LimitError
from assembler.engine.events import Delta, Outcome, need_text
from assembler.live.base import (
    Claimed,
    Ended,
    Hears,
    Live,
    LiveError,
    Record,
    Released,
    Said,
    Seat,
    process_of,
)
from assembler.live.outbox import Outbox
from assembler.live.subjects import is_plain, token

__all__ = ["NatsLimits", "NatsLive"]

_RECORDS = msgspec.json.Decoder(list[Record])
_FAULTS = (NatsError, OSError, TimeoutError)
_POLL_S = 0.05  # how long nothing may come before the server is asked how much there is
_log = logging.getLogger("assembler.live")


class NatsLimits(Struct, frozen=True):
    """What is held, what is on its way, and how long anything is waited for."""

    held_bytes_max: int = 256 << 20
    """Of all conversations together, on the server; beyond it the oldest goes."""
    held_messages_max: int = 1_000_000
    """Likewise."""
    held_age_ms: int = 24 * 3_600_000
    """How long anything is held that nobody retires."""
    message_bytes_max: int = 512 << 10
    """One message; a delta that is longer as JSON is shown here alone, which is logged."""
    acks_max: int = 256
    """Messages on their way without an acknowledgement."""
    ack_ms: int = 5_000
    """How long one may wait for it before everything that is held here is told again."""
    lease_ms: int = 10_000
    """How long a process may be silent before it is taken for dead."""
    connect_ms: int = 5_000
    reconnect_ms: int = 250
    """Between two tries to reach a server that was lost."""
    heartbeat_ms: int = 5_000
    """How soon it is noticed that the last message for a seat was lost."""


class NatsLive(Live):
    """Sessions of all processes that use the same `name` on the same server hear each other.

        async with NatsLive("nats://127.0.0.1:4222") as live:
            async with Hub(store, catalog(), live=live) as hub:
                ...

    `name` is that of the stream and the first part of its subjects. `options` go to
    `nats.connect` (credentials, TLS). One connection; for each seat one consumer on the server.

    Disconnected, what goes on here goes on, others work elsewhere or not (`None`: not known), and
    nobody is taken for dead. When it is back, everything that is held is told and heard again; what
    was known is not shown twice. Memory: what goes on here, once more, encoded.
    """

    def __init__(
        self,
        url: str,
        *,
        name: str = "assembler",
        limits: NatsLimits | None = None,
        **options: Any,
    ) -> None:
        need_text("url", url)
        if not is_plain(name):
            raise InputError(f"name: expected letters, digits, - and _, got {name!r:.80}")
        self._url = url
        self._name = name
        self.limits = _checked(limits or NatsLimits())
        self._options = options
        self._process = uuid.uuid4().hex
        self._count = 0
        self._seats: dict[str, _NatsSeat] = {}
        self._nc: Client | None = None
        self._js: JetStreamContext | None = None
        self._connected = False
        self._closed = False
        self._born: Any = None
        """When the stream was made: another one holds nothing of what this one held."""
        self._alive: dict[str, float] = {}
        """When the lease of each other process ends, by the loop's clock."""
        self._listening_since = 0.0
        self._unpurged: dict[str, int] = {}
        """What is to be purged to its last so many messages, and may not be yet."""
        self._left_over: deque[tuple[float, str]] = deque()
        """The claims of Sessions that are closed, each with when it is to be purged."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._recovering: asyncio.Task[None] | None = None
        self._fault: str | None = None
        self._counts = {"reconnects": 0, "rereads": 0, "lost": 0, "too_long": 0, "undecoded": 0}
        limit = self.limits
        self._outbox = Outbox(
            self._publish,
            self._purge,
            self._told_failed,
            acks_max=limit.acks_max,
            message_bytes_max=limit.message_bytes_max,
        )

    # -- connecting ----------------------------------------------------------------------

    async def open(self) -> None:
        if self._closed:
            raise LiveError("the live backend is closed")
        if self._nc is not None:
            return
        self._nc = await self._connect()
        self._js = self._nc.jetstream(timeout=self.limits.ack_ms / 1_000)
        try:
            self._born = await self._ensure_stream()
            await self._nc.subscribe(f"{self._name}-alive", cb=self._hear_alive)
            await self._nc.flush()
        except _FAULTS as error:
            await self._nc.close()
            self._nc = None
            raise self._unreachable(error) from None
        self._connected = True
        self._listening_since = self._time()
        self._outbox.start()
        self._begin(self._keep_lease())

    async def _connect(self) -> Client:
        client = Client()
        try:
            async with asyncio.timeout(self.limits.connect_ms / 1_000):
                await client.connect(
                    self._url,
                    error_cb=self._on_error,
                    disconnected_cb=self._on_disconnected,
                    reconnected_cb=self._on_reconnected,
                    connect_timeout=max(1, self.limits.connect_ms // 1_000),
                    reconnect_time_wait=cast("int", self.limits.reconnect_ms / 1_000),
                    max_reconnect_attempts=-1,
                    **self._options,
                )
        except (*_FAULTS, ValueError) as error:
            await _close_quietly(client)
            raise self._unreachable(error) from None
        return client

    def _unreachable(self, error: BaseException) -> LiveError:
        """One line, without what may be secret in an address."""
        try:
            parts = urlsplit(self._url)
            where = f"{parts.hostname}:{parts.port}" if parts.port else f"{parts.hostname}"
        except ValueError:
            where = "its address"
        why = self._fault if isinstance(error, TimeoutError) and self._fault else _named(error)
        return LiveError(f"NATS at {where} cannot be used: {why}")

    async def _ensure_stream(self) -> Any:
        """When the stream was made that holds what goes on; made now, if it is not there."""
        js, limits = self._jetstream, self.limits
        config = StreamConfig(
            name=self._name,
            subjects=[f"{self._name}.>"],
            storage=StorageType.MEMORY,
            max_bytes=limits.held_bytes_max,
            max_msgs=limits.held_messages_max,
            max_age=limits.held_age_ms / 1_000,
        )
        try:
            info = await js.stream_info(self._name)
        except NotFoundError:
            try:
                info = await js.add_stream(config)
            except APIError:  # another process was quicker, with other limits
                info = await js.stream_info(self._name)
        return info.created

    @property
    def _jetstream(self) -> JetStreamContext:
        if self._js is None or self._closed:
            raise LiveError("the live backend is not open")
        return self._js

    @property
    def _client(self) -> Client:
        if self._nc is None or self._closed:
            raise LiveError("the live backend is not open")
        return self._nc

    @property
    def is_connected(self) -> bool:
        return self._connected and not self._closed

    async def _on_error(self, error: Exception) -> None:
        self._fault = _named(error)
        _log.info("NATS: %s", self._fault)

    async def _on_disconnected(self) -> None:
        if self._connected:
            self._connected = False
            _log.warning("NATS: the server is lost; what others do is not known until it is back")
            self._outbox.clear()
            for seat in tuple(self._seats.values()):
                seat.disconnected()

    async def _on_reconnected(self) -> None:
        self._counts["reconnects"] += 1
        self._recover()

    # -- recovering ----------------------------------------------------------------------

    def _told_failed(self) -> None:
        """Something that was told may not be held."""
        if self._connected:
            self._connected = False
            self._recover()

    def _recover(self) -> None:
        if self._closed or (self._recovering is not None and not self._recovering.done()):
            return
        self._recovering = self._begin(self._recovering_until_done())

    async def _recovering_until_done(self) -> None:
        while not self._closed:
            try:
                await self._recover_once()
            except (*_FAULTS, LiveError) as error:
                _log.warning("NATS: not recovered yet: %s", _named(error))
                await asyncio.sleep(self.limits.reconnect_ms / 1_000)
            else:
                return

    async def _recover_once(self) -> None:
        """Tell again all that goes on here, then hear again all that is held."""
        born = await self._ensure_stream()
        is_same, self._born = born == self._born, born
        self._listening_since = self._time()
        self._extend_leases()
        self._outbox.clear()
        self._connected = True
        await self._say_alive()
        for seat in tuple(self._seats.values()):
            seat.tell_again()
        for subject, keep in self._unpurged.items():
            self._outbox.purge(subject, keep)
        for seat in tuple(self._seats.values()):
            await seat.read_again(is_same=is_same)

    def reread(self, seat: _NatsSeat) -> None:
        """Something for one seat was lost on the way."""
        if seat.is_rereading or self._closed or not self._connected:
            return
        seat.is_rereading = True
        self._begin(self._reread(seat))

    async def _reread(self, seat: _NatsSeat) -> None:
        try:
            await seat.read_again(is_same=True)
        except (*_FAULTS, LiveError):
            self._told_failed()
        finally:
            seat.is_rereading = False

    # -- leases --------------------------------------------------------------------------

    async def _keep_lease(self) -> None:
        """Say that this process lives, and see who does not."""
        pause = self.limits.lease_ms / 3_000
        while True:
            due = self._time() + pause
            if self._connected:
                try:
                    await self._say_alive()
                except _FAULTS:
                    _log.info("NATS: a heartbeat was not sent")
            await asyncio.sleep(pause)
            if self._time() > due + pause:
                self._extend_leases()  # this process stood still, and has heard nobody
            self._look()

    async def _say_alive(self) -> None:
        await self._client.publish(f"{self._name}-alive", self._process.encode())

    async def _hear_alive(self, message: Msg) -> None:
        said = message.data.decode(errors="replace")
        process, _, left = said.partition(" ")
        if process == self._process:
            return
        if left:
            self._alive.pop(process, None)
            self._lose(process)
        else:
            self.heard(process)

    def heard(self, process: str) -> None:
        """A process lives."""
        self._alive[process] = self._time() + self.limits.lease_ms / 1_000

    def _extend_leases(self) -> None:
        for process in self._alive:
            self.heard(process)

    def is_dead(self, process: str) -> bool:
        """Nothing was heard of it for longer than a lease."""
        now, lease = self._time(), self.limits.lease_ms / 1_000
        if process == self._process or now < self._listening_since + lease:
            return False
        return self._alive.get(process, 0) < now

    def _look(self) -> None:
        """Withdraw what those had going whose lease has ended. O(seats)."""
        now = self._time()
        if not self._connected:
            return
        if now >= self._listening_since + self.limits.lease_ms / 1_000:
            owners = set[str]().union(*(seat.owners() for seat in self._seats.values()))
            for process in [each for each in owners if self.is_dead(each)]:
                self._lose(process)
            for seat in tuple(self._seats.values()):
                seat.drop_doubtful()
            for process in [name for name, until in self._alive.items() if until < now]:
                del self._alive[process]
        while self._left_over and self._left_over[0][0] < now:
            self.purge(self._left_over.popleft()[1])
        oldest = self._outbox.oldest
        if oldest is not None and now > oldest + self.limits.ack_ms / 1_000:
            self._outbox.clear()
            self._told_failed()

    def _lose(self, process: str) -> None:
        self._counts["lost"] += 1
        for seat in tuple(self._seats.values()):
            seat.lose(process)

    def _time(self) -> float:
        return asyncio.get_running_loop().time()

    # -- for its seats -------------------------------------------------------------------

    async def join(self, conversation: str, hears: Hears) -> Seat:
        need_text("conversation", conversation)
        await self.open()
        until = self._time() + self.limits.connect_ms / 1_000
        while True:
            await self._reconnected()
            try:
                return await self._seated(conversation, hears)
            except _FAULTS as error:
                # A server that is lost meanwhile, and comes back with nothing, is asked again.
                if self._closed or self._time() >= until:
                    raise self._unreachable(error) from None
            await asyncio.sleep(_POLL_S)

    async def _seated(self, conversation: str, hears: Hears) -> Seat:
        self._count += 1
        seat = _NatsSeat(self, conversation, f"{self._process}.{self._count}", hears)
        try:
            await seat.sit_down()
        except BaseException:
            await seat.leave()
            raise
        return seat

    async def _reconnected(self) -> None:
        """Wait for a server that was lost, as long as for one that is new."""
        try:
            async with asyncio.timeout(self.limits.connect_ms / 1_000):
                while not self._connected:
                    if self._closed:
                        raise LiveError("the live backend is closed")
                    await asyncio.sleep(_POLL_S)
        except TimeoutError as error:
            raise self._unreachable(error) from None

    def subject(self, conversation: str, kind: str, name: str) -> str:
        return f"{self._name}.{token(conversation)}.{kind}.{token(name)}"

    def give(self, subject: str, record: bytes) -> None:
        if self._connected:  # else it is given again when the server is back
            self._outbox.give(subject, record)

    def purge(self, subject: str, keep: int = 0) -> None:
        self._unpurged[subject] = keep
        if self._connected:
            self._outbox.purge(subject, keep)

    def purge_later(self, subject: str) -> None:
        """Once all who follow have surely read what was told there last."""
        self._left_over.append((self._time() + self.limits.lease_ms / 1_000, subject))

    def note_too_long(self) -> None:
        self._counts["too_long"] += 1
        _log.warning("a delta is not told to others: message_bytes_max is reached")

    def note_undecoded(self) -> None:
        self._counts["undecoded"] += 1
        _log.warning("a live message is not understood")

    def note_reread(self) -> None:
        self._counts["rereads"] += 1

    async def claimed(self, subject: str) -> None:
        try:
            async with asyncio.timeout(self.limits.ack_ms / 1_000):
                await self._outbox.acknowledged(subject)
        except TimeoutError:
            _log.warning("a claim is not acknowledged yet: others may not see that one works here")

    def notices_of(self, conversation: str) -> str:
        return f"{self._name}-stored.{token(conversation)}"

    async def notice(self, conversation: str, owner: str, seq: int) -> None:
        await self._client.publish(self.notices_of(conversation), f"{owner} {seq}".encode())

    async def _publish(self, subject: str, payload: bytes) -> asyncio.Future[object]:
        ack = await self._jetstream.publish_async(subject, payload, stream=self._name)
        return cast("asyncio.Future[object]", ack)

    async def _purge(self, subject: str, keep: int) -> None:
        await self._jetstream.purge_stream(self._name, subject=subject, keep=keep or None)
        if self._unpurged.get(subject) == keep:
            del self._unpurged[subject]

    async def consume(self, conversation: str, inbox: str) -> tuple[str, int]:
        """Have all that is held of a conversation, and all that comes, sent to `inbox`: the name
        of the consumer, and how much there is."""
        info = await self._jetstream.add_consumer(
            self._name,
            ConsumerConfig(
                deliver_subject=inbox,
                filter_subject=f"{self._name}.{token(conversation)}.>",
                ack_policy=AckPolicy.NONE,
                mem_storage=True,
                num_replicas=1,
                idle_heartbeat=self.limits.heartbeat_ms / 1_000,
            ),
        )
        return info.name, info.num_pending or 0

    async def progress(self, consumer: str) -> tuple[int, int]:
        """How much a consumer still has to send, and how much it has sent."""
        info = await self._jetstream.consumer_info(self._name, consumer)
        sent = 0 if info.delivered is None else info.delivered.consumer_seq
        return info.num_pending or 0, sent

    async def subscribe(self, subject: str, hear: Any) -> Subscription:
        return await self._client.subscribe(subject, cb=hear)

    def new_inbox(self) -> str:
        return self._client.new_inbox()

    async def stand_up(self, seat: _NatsSeat, consumer: str | None) -> None:
        self._seats.pop(seat.owner, None)
        if consumer is not None and self.is_connected:
            self._begin(self._delete_consumer(consumer))

    def sit_down(self, seat: _NatsSeat) -> None:
        self._seats[seat.owner] = seat

    async def _delete_consumer(self, consumer: str) -> None:
        try:
            await self._jetstream.delete_consumer(self._name, consumer)
        except (*_FAULTS, LiveError):
            _log.debug("NATS: a consumer was not deleted; it ends by itself")

    def _begin(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def begin(self, work: Any) -> None:
        """Do it soon; what fails is logged."""
        self._begin(_quietly(work))

    # -- the end -------------------------------------------------------------------------

    async def close(self) -> None:
        if self._closed:
            return
        for seat in tuple(self._seats.values()):
            await seat.leave()
        if self._nc is not None and self._connected:
            try:
                async with asyncio.timeout(self.limits.ack_ms / 1_000):
                    for _, subject in self._left_over:
                        self.purge(subject)  # the goodbye tells it as well
                    await self._outbox.emptied()
                    goodbye = f"{self._process} left".encode()
                    await self._client.publish(f"{self._name}-alive", goodbye)
                    await self._client.flush()
            except _FAULTS as error:
                _log.warning("NATS: not all was told: %s", _named(error))
        await self.die()

    async def die(self) -> None:
        """End as a process that is killed: nobody says goodbye."""
        self._closed = True
        self._connected = False
        for seat in tuple(self._seats.values()):
            seat.drop()
        self._seats.clear()
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._outbox.stop()
        if self._nc is not None:
            await _close_quietly(self._nc)

    def statistics(self) -> dict[str, Any]:
        """`connected`, the `seats`; how much was sent in `messages`, `records` in them, `purged`
        subjects, `failures`; `reconnects`, `rereads`, processes `lost`, deltas `too_long`, and
        messages `undecoded`."""
        outbox = self._outbox
        return {
            "connected": self.is_connected,
            "seats": len(self._seats),
            "messages": outbox.messages,
            "records": outbox.records,
            "purged": outbox.purged,
            "failures": outbox.failures,
            **self._counts,
        }


class _Reading:
    """One consumer, from the first thing that is held."""

    def __init__(self) -> None:
        self.consumer: str | None = None
        self.subscription: Subscription | None = None
        self.sequence = 0
        self.held: list[Record] | None = []
        """What has come; None: it is heard as it comes."""
        self.news = asyncio.Event()


class _NatsSeat(Seat):
    def __init__(self, live: NatsLive, conversation: str, owner: str, hears: Hears) -> None:
        super().__init__(conversation, owner, hears)
        self._live = live
        self._held: dict[str, list[bytes]] = {}
        """What goes on here, by subject, to be told again."""
        self._claim_subject = live.subject(conversation, "w", owner)
        self._reading: _Reading | None = None
        self._order = asyncio.Lock()
        self._notices: Subscription | None = None
        self._doubtful: set[str] = set()
        """Claims that the stream has lost, and that their owners have not told again."""
        self.is_rereading = False

    # -- reading -------------------------------------------------------------------------

    async def sit_down(self) -> None:
        live = self._live
        live.sit_down(self)
        self._notices = await live.subscribe(live.notices_of(self.conversation), self._hear_stored)
        self.take(self._living(await self._read()))

    async def read_again(self, *, is_same: bool) -> None:
        """Hear all that is held; what is known already is not heard twice. In a stream that is
        not the same one, what is missing may only not have been told again yet."""
        if self._left:
            return
        self._live.note_reread()
        held = await self._read()
        claims = {each.owner for each in held if type(each) is Claimed}
        missing = self._claims - claims
        if is_same:
            held += [Released(owner, owner) for owner in missing]
        else:
            self._doubtful |= missing
        self.take(self._living(held))
        self._hear(lambda: self._hears.stored(0))
        self._hear(self._hears.elsewhere)

    async def _read(self) -> list[Record]:
        """Begin to read, and give all that is held now. One at a time."""
        async with self._order:
            return await self._read_anew()

    async def _read_anew(self) -> list[Record]:
        await self._stop_reading()
        live, reading = self._live, _Reading()
        self._reading = reading
        inbox = live.new_inbox()

        async def hear(message: Msg) -> None:
            await self._hear_message(reading, message)

        reading.subscription = await live.subscribe(inbox, hear)
        reading.consumer, pending = await live.consume(self.conversation, inbox)
        if pending:
            await self._reach_end(reading)
        held, reading.held = reading.held or [], None
        return held

    async def _reach_end(self, reading: _Reading) -> None:
        """Wait until everything has come that the server has for this seat now, or it is read anew
        instead."""
        while reading is self._reading and reading.consumer is not None:
            pending, sent = await self._live.progress(reading.consumer)
            while reading.sequence < sent:
                reading.news.clear()
                try:
                    await asyncio.wait_for(reading.news.wait(), _POLL_S)
                except TimeoutError:
                    break
            if not pending and reading.sequence >= sent:
                return

    async def _hear_message(self, reading: _Reading, message: Msg) -> None:
        if reading is not self._reading or self._left:
            return
        if message.headers and message.headers.get("Status"):
            last = message.headers.get("Nats-Last-Consumer")
            if last is not None and int(last) != reading.sequence:
                self._live.reread(self)
            return
        sequence = message.metadata.sequence.consumer
        is_next = sequence == reading.sequence + 1
        reading.sequence = sequence
        reading.news.set()
        if not is_next:
            self._live.reread(self)
        self._hear_records(reading, message.data)

    def _hear_records(self, reading: _Reading, data: bytes) -> None:
        try:
            records = _RECORDS.decode(data)
        except (msgspec.DecodeError, ValueError):
            self._live.note_undecoded()
            return
        if reading.held is not None:
            reading.held += records
            return
        for process in {process_of(record.owner) for record in records}:
            self._live.heard(process)
        self.take(records)

    def take(self, records: Iterable[Record]) -> None:
        told = list(records)
        for record in told:
            if type(record) is Claimed:
                self._doubtful.discard(record.owner)
        super().take(told)

    def _living(self, held: list[Record]) -> list[Record]:
        """Without what those had going who are dead; for others it is withdrawn."""
        over = {each.attempt for each in held if type(each) is Ended}
        dead = {process_of(each.owner) for each in held}
        dead = {process for process in dead if self._live.is_dead(process)}
        kept: list[Record] = []
        lost: dict[str, Delta] = {}
        for record in held:
            if process_of(record.owner) not in dead or type(record) is Ended:
                kept.append(record)
            elif type(record) is Claimed:
                self._tell_claim(Released(record.owner, self.owner))
            elif type(record) is Said:
                delta = record.delta
                if delta.attempt in over:
                    kept.append(record)
                else:
                    lost[delta.attempt] = delta
        for delta in lost.values():
            self.withdraw(delta)
        return kept

    def drop_doubtful(self) -> None:
        """Claims that were not told again within a lease are none any more."""
        doubtful, self._doubtful = self._doubtful, set()
        if doubtful:
            self.take([Released(owner, owner) for owner in doubtful])

    async def _hear_stored(self, message: Msg) -> None:
        owner, _, seq = message.data.decode(errors="replace").partition(" ")
        if owner != self.owner and seq.isdecimal() and not self._left:
            self._hear(lambda: self._hears.stored(int(seq)))

    async def _stop_reading(self) -> None:
        reading, self._reading = self._reading, None
        if reading is not None and reading.subscription is not None:
            await _unsubscribe(reading.subscription)

    def disconnected(self) -> None:
        self._hear(self._hears.elsewhere)

    # -- what the contract asks ----------------------------------------------------------

    @property
    def is_connected(self) -> bool:
        return self._live.is_connected and not self._left

    def stored(self, seq: int) -> None:
        if self.is_connected:
            self._live.begin(self._live.notice(self.conversation, self.owner, seq))

    async def claimed(self) -> None:
        if self._claiming and self.is_connected:
            await self._live.claimed(self._claim_subject)

    async def fence(self) -> None:
        reading: _Reading | None = None
        try:
            while reading is None or reading is not self._reading:
                async with self._order:
                    reading = self._reading
                if reading is None or not self.is_connected:
                    raise LiveError("what others tell cannot be heard now")
                await self._reach_end(reading)
        except _FAULTS as error:
            raise LiveError(f"what others tell cannot be heard now: {_named(error)}") from None

    async def leave(self) -> None:
        if self._left:
            return
        if self._claiming:
            self.claim(busy=False)
        if self._claim_subject in self._held:
            self._live.purge_later(self._claim_subject)
        consumer = None if self._reading is None else self._reading.consumer
        self._left = True
        await self._stop_reading()
        if self._notices is not None:
            await _unsubscribe(self._notices)
        await self._live.stand_up(self, consumer)

    def drop(self) -> None:
        """Hear and tell nothing more, and say nothing about it."""
        self._left = True

    def tell_again(self) -> None:
        for subject, records in self._held.items():
            for record in records:
                self._live.give(subject, record)

    def _tell_attempt(self, record: Said | Ended) -> None:
        name = record.delta.attempt if type(record) is Said else cast("Ended", record).attempt
        subject = self._live.subject(self.conversation, "a", name)
        told = _told(record)
        if len(told) > self._live.limits.message_bytes_max:
            self._live.note_too_long()
            return
        given_up = type(record) is Ended and record.outcome is not Outcome.COMPLETED
        if given_up:
            self._held[subject] = [told]
        else:
            self._held.setdefault(subject, []).append(told)
        self._live.give(subject, told)
        if given_up:
            self._live.purge(subject, keep=1)

    def _tell_claim(self, record: Claimed | Released) -> None:
        subject = self._live.subject(self.conversation, "w", record.owner)
        told = _told(record)
        if record.owner == self.owner:
            self._held[subject] = [told]
        self._live.give(subject, told)
        self._live.purge(subject, keep=1)

    def _forget(self, attempts: Iterable[str]) -> None:
        for name in attempts:
            subject = self._live.subject(self.conversation, "a", name)
            self._held.pop(subject, None)
            self._live.purge(subject)


def _checked(limits: NatsLimits) -> NatsLimits:
    for name, value in asdict(limits).items():
        if type(value) is not int or value < 1:
            raise LimitError(f"{name}: expected 1 or more, got {value!r:.80}")
    return limits


def _told(record: Record) -> bytes:
    """A record as JSON text; the values of a delta are written as everywhere else."""
    if type(record) is Said:
        owner = msgspec.json.encode(record.owner)
        return b'{"type":"said","owner":%b,"delta":%b}' % (owner, encode(record.delta))
    return msgspec.json.encode(record)


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


async def _close_quietly(client: Client) -> None:
    try:
        await client.close()
    except Exception as error:
        _log.debug("NATS: closing: %s", type(error).__name__)


async def _unsubscribe(subscription: Subscription) -> None:
    try:
        await subscription.unsubscribe()
    except Exception as error:
        _log.debug("NATS: unsubscribing: %s", type(error).__name__)


async def _quietly(work: Any) -> None:
    try:
        await work
    except (*_FAULTS, LiveError) as error:
        _log.info("NATS: %s", type(error).__name__)
