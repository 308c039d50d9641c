"""The contract of every store: what it promises, checked once for all of them.

Here stands the plain core, without a loop: what a call may be given is checked and told here, and
a backend implements the `_methods`. Not here: the async face (`store`), where events are kept
(`memory`, `sqlite`, `postgres`), and how old versions are read (`upcasting`).
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from types import TracebackType
from typing import Any, Self

from msgspec import Struct
from msgspec.structs import replace

from assembler.codec import decode_event, encode
from assembler.engine.errors import AssemblerError, ConflictError, InputError, LimitError
from assembler.engine.events import INT_END, Draft, Event, as_draft, json_kind, need_text
from assembler.stores.upcasting import Chains, Upcasters

__all__ = [
    "Limits",
    "Listed",
    "Page",
    "StoreClosed",
    "StoreError",
    "StoreMissing",
    "SyncStore",
    "answer",
    "body",
    "contiguous",
    "decoded",
]

Hear = Callable[[int], None]
Drafts = Iterable[Draft | Mapping[str, Any]]

_FIELDS = frozenset(Event.__struct_fields__) - {"more"}
_log = logging.getLogger("assembler.stores")


class StoreError(AssemblerError):
    """The store cannot do it: it is closed, its file is none of ours, its disk is full."""


class StoreClosed(StoreError):  # noqa: N818 - a state, told as an error
    """The store is closed, for good."""

    def __init__(self) -> None:
        super().__init__("the store is closed")


class StoreMissing(StoreError):  # noqa: N818 - a state, told as an error
    """There is no store there, and none was to be made (`create=False`)."""


class Limits(Struct, frozen=True):
    """What a store takes at most; beyond it `LimitError` names the limit."""

    batch_events_max: int = 10_000
    """Drafts of one `append`."""
    page_events_max: int = 10_000
    """The `limit` of one `page`, and events that a `Feed` reads at once."""
    event_bytes_max: int = 64 << 20
    """One event as JSON."""
    name_bytes_max: int = 2_000
    """The name of a conversation, the type and the id of an event, each as UTF-8, when written."""
    list_conversations_max: int = 10_000
    """The `limit` of one `conversations`."""


class Page(Struct, frozen=True):
    """Contiguous events, oldest first, and whether older ones exist."""

    events: tuple[Event, ...]
    has_more: bool


class Listed(Struct, frozen=True):
    """One conversation in a list.

    `events` is their number, and so the `seq` of the last one. `first_time` and `last_time` are
    those of its first and last event, in milliseconds. `newest` are the newest events of the types
    that were asked for, by type: that of a title, for one.
    """

    conversation: str
    events: int
    first_time: int
    last_time: int
    newest: Mapping[str, Event]


class SyncStore(ABC):
    """The plain core of a store: the same promises, without a loop.

    For any thread. A call waits for the one before it, except where a store has a connection for
    each. A context manager: entering opens it (as does the first use), leaving closes it for good.

    `upcasters` say how events of old versions are read (`Upcasters`). They work on whatever is
    given back; what is stored stays as it was written.

    Every call raises `InputError` or `LimitError` for what it cannot take, and `StoreError` when
    the store is closed or fails.
    """

    def __init__(self, limits: Limits | None = None, upcasters: Upcasters | None = None) -> None:
        self.limits = limits or Limits()
        self._chains = Chains({} if upcasters is None else upcasters)
        self._lock = Lock()
        self._opened = False
        self._closed = False
        self._listeners: dict[str, list[Hear]] = {}
        self._told: dict[str, int] = {}  # of whom somebody listens to: the last seq that was told

    # -- writing -------------------------------------------------------------------------

    def append(self, conversation: str, drafts: Drafts, expected_seq: int) -> list[Event]:
        """Store `drafts` behind event `expected_seq` (0: the conversation is new), all or none.

        Gives one event for each draft, in their order. What is given back is on disk.

        A draft whose `id` the conversation has already is not stored again: the stored event
        stands in its place, whatever the draft says. (So an append that was not acknowledged can
        be sent again as it is.) The others are numbered from `expected_seq + 1`, without a hole.
        When there are any, and the last event is not `expected_seq`, another writer was quicker:
        `ConflictError` with `expected` and `actual`, and nothing is stored.

        O(their size · log events).
        """
        return self.write(conversation, drafts, expected_seq)[0]

    def write(
        self, conversation: str, drafts: Drafts, expected_seq: int
    ) -> tuple[list[Event], int]:
        """`append`, which also says how many of the events are new: 0 for a repeat.

        The new ones are `expected_seq + 1` and so on.
        """
        need_text("conversation", conversation)
        _need_seq("expected_seq", expected_seq)
        checked = self.checked(drafts)
        if not checked:
            return [], 0
        self._need_short("conversation", conversation)
        if self._chains:
            for draft in checked:  # what nobody could read is not stored
                self._upcast(draft.numbered(1), "a draft")
        with self._call():
            events, wrote = self._append(conversation, checked, expected_seq)
        if wrote:
            self._tell(conversation, expected_seq + wrote)
        return self._read_as_now(events), wrote

    def checked(self, drafts: Drafts) -> list[Draft]:
        """Drafts that nobody can change any more. Raises `InputError`, `LimitError`."""
        if isinstance(drafts, (str, bytes, Mapping, Draft)) or not isinstance(drafts, Iterable):
            raise InputError(f"drafts: expected a sequence of drafts, got {json_kind(drafts)}")
        checked: list[Draft] = []
        for at, value in enumerate(drafts):
            if at >= self.limits.batch_events_max:
                raise LimitError(f"drafts: more than batch_events_max = {at}")
            try:
                checked.append(self._checked_draft(value))
            except (InputError, LimitError) as error:
                raise type(error)(f"drafts[{at}]: {error}") from None
        return checked

    def _checked_draft(self, value: Draft | Mapping[str, Any]) -> Draft:
        draft = as_draft(value)
        for name in draft.more or ():
            if name in _FIELDS:
                raise InputError(f"more: {name!r} is a field of its own")
        if draft.more is not None and not draft.more:
            draft = replace(draft, more=None)  # as it is read again
        self._need_short("type", draft.type)
        if draft.id is not None:
            self._need_short("id", draft.id)
        return draft

    def _need_short(self, name: str, text: str) -> None:
        most = self.limits.name_bytes_max
        if len(text) > most or len(text.encode()) > most:
            raise LimitError(f"{name}: longer than name_bytes_max = {most}")

    # -- reading -------------------------------------------------------------------------

    def page(self, conversation: str, before: int | None = None, limit: int | None = None) -> Page:
        """The newest `limit` (50) events, or the newest below seq `before`.

        O(limit + log events).

        A conversation that nobody wrote to has an empty page.
        """
        need_text("conversation", conversation)
        if before is not None:
            _need_seq("before", before, 1)
        most = self.limits.page_events_max
        limit = _count("limit", limit, 50, "page_events_max", most)
        with self._call():
            events = self._page(conversation, INT_END if before is None else before, limit)
        events = self._read_as_now(events)
        return Page(tuple(events), bool(events) and events[0].seq > 1)

    def read(self, conversation: str, after: int = 0, limit: int | None = None) -> list[Event]:
        """The events behind seq `after`, oldest first; the first `limit` of them.

        O(what is read + log events).
        """
        need_text("conversation", conversation)
        _need_seq("after", after)
        if limit is not None:
            _need_seq("limit", limit, 1)
        with self._call():
            events = self._read(conversation, after, limit)
        return self._read_as_now(events)

    def last(self, conversation: str) -> int:
        """The seq of the last event; 0 when there is none. O(log conversations)."""
        need_text("conversation", conversation)
        with self._call():
            return self._last(conversation)

    def newest(self, conversation: str, types: Iterable[str]) -> dict[str, Event]:
        """The newest event of each type that the conversation has, by type.

        O(types · log events), however far back they are.
        """
        need_text("conversation", conversation)
        wanted = _types("types", types)
        with self._call():
            found = self._newest(conversation, wanted)
        return dict(zip(found, self._read_as_now([*found.values()]), strict=True))

    def conversations(
        self,
        *,
        newest: Iterable[str] = (),
        limit: int | None = None,
        before: Listed | None = None,
    ) -> list[Listed]:
        """The first `limit` (50) conversations, the one with the latest last event first, equal
        ones by name.

        A list goes on behind the entry `before`. `newest` are types of which each entry brings
        the newest event along. O(limit · types · log events).
        """
        wanted = _types("newest", newest)
        if before is not None and type(before) is not Listed:
            raise InputError(f"before: expected an entry of a list, got {json_kind(before)}")
        most = self.limits.list_conversations_max
        limit = _count("limit", limit, 50, "list_conversations_max", most)
        with self._call():
            found = self._conversations(wanted, limit, before)
        return [self._listed_as_now(entry) for entry in found] if self._chains else found

    def _listed_as_now(self, entry: Listed) -> Listed:
        newest = zip(entry.newest, self._read_as_now([*entry.newest.values()]), strict=True)
        return replace(entry, newest=dict(newest))

    def _read_as_now(self, events: list[Event]) -> list[Event]:
        """Events as the upcasters have them."""
        if not self._chains:
            return events
        return [self._upcast(event, f"event {event.seq}") for event in events]

    def _upcast(self, event: Event, what: str) -> Event:
        try:
            return self._chains.upcast(event)
        except Exception as error:  # whose words may hold contents
            raise StoreError(
                f"{what} of type {event.type!r:.80}, version {event.v}: "
                f"an upcaster raised {type(error).__name__}"
            ) from error

    # -- following -----------------------------------------------------------------------

    def listen(self, conversation: str, hear: Hear) -> Callable[[], None]:
        """Have `hear(seq)` called after each append to `conversation`; gives what ends it.

        It is called after the commit, with the seq of the last event written, in the thread of
        the writer, or in the store's own when another process wrote. Each seq that is told is
        greater than the one before; of several appends it may hear the last alone. It must be
        quick and must not raise (what it raises is logged). When the store closes it is called
        once more, with 0.
        """
        need_text("conversation", conversation)
        with self._lock:
            if self._closed:
                raise StoreClosed
            self._listeners.setdefault(conversation, []).append(hear)
            if self._opened:
                self._watch()

        def stop() -> None:
            with self._lock:
                heard = self._listeners.get(conversation, [])
                if hear in heard:
                    heard.remove(hear)
                if not heard:
                    self._listeners.pop(conversation, None)
                    self._told.pop(conversation, None)

        return stop

    def _tell(self, conversation: str, seq: int) -> None:
        with self._lock:
            listeners = tuple(self._listeners.get(conversation, ()))
            if seq and listeners:
                if seq <= self._told.get(conversation, 0):
                    return
                self._told[conversation] = seq
        for hear in listeners:
            try:
                hear(seq)
            except Exception as error:  # whose words may hold contents
                _log.error("a listener raised %s at event %d", type(error).__name__, seq)

    # -- life ----------------------------------------------------------------------------

    @property
    def closed(self) -> bool:
        return self._closed

    def open(self) -> None:
        """Open it now, and learn now if that fails; without it, the first use does."""
        with self._lock:
            self._ready()

    def close(self) -> None:
        """Close it for good; a second time changes nothing. What listens hears a 0."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            heard = [name for name, listeners in self._listeners.items() if listeners]
            try:
                if self._opened:
                    self._close()
            finally:
                self._opened = False
        for name in heard:
            self._tell(name, 0)

    @contextmanager
    def _call(self) -> Iterator[None]:
        """Around whatever a store implements: it is open, and no other call is in it."""
        with self._lock:
            self._ready()
            yield

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _ready(self) -> None:
        if self._closed:
            raise StoreClosed
        if not self._opened:
            self._open()
            self._opened = True
            if self._listeners:
                self._watch()

    # -- what a store implements: called with checked values, the lock held, and open ----

    @abstractmethod
    def _open(self) -> None:
        """Get ready, or raise `StoreError` and be called again next time."""

    @abstractmethod
    def _close(self) -> None: ...

    def _watch(self) -> None:  # noqa: B027 - most stores have nothing to do
        """Somebody listens: see to it that the events of other processes are told (`_tell`).

        It is called again for each listener.
        """

    @abstractmethod
    def _append(
        self, conversation: str, drafts: Sequence[Draft], expected_seq: int
    ) -> tuple[list[Event], int]:
        """What `answer` says, stored as one; and how many events were written."""

    @abstractmethod
    def _page(self, conversation: str, before: int, limit: int) -> list[Event]:
        """The newest `limit` events below `before`, oldest first."""

    @abstractmethod
    def _read(self, conversation: str, after: int, limit: int | None) -> list[Event]: ...

    @abstractmethod
    def _last(self, conversation: str) -> int: ...

    @abstractmethod
    def _newest(self, conversation: str, types: Sequence[str]) -> dict[str, Event]: ...

    @abstractmethod
    def _conversations(
        self, newest: Sequence[str], limit: int, before: Listed | None
    ) -> list[Listed]: ...


def answer(
    drafts: Iterable[Draft], stored: Mapping[str, Event], last: int, expected_seq: int
) -> tuple[list[Event], list[Event]]:
    """What `append` answers, and which events of it are to be written.

    `stored` are the events, by id, that the conversation has of these drafts' ids; `last` is the
    seq of its last event. Raises `ConflictError`.
    """
    known = dict(stored)
    events: list[Event] = []
    fresh: list[Event] = []
    for draft in drafts:
        event = None if draft.id is None else known.get(draft.id)
        if event is None:
            event = draft.numbered(expected_seq + len(fresh) + 1)
            fresh.append(event)
            if draft.id is not None:
                known[draft.id] = event
        events.append(event)
    if fresh and last != expected_seq:
        raise ConflictError(
            f"expected the last event to be {expected_seq}, and it is {last}", expected_seq, last
        )
    return events, fresh


def body(event: Event, limits: Limits) -> bytes:
    """An event as it is stored; `LimitError` when it is too long."""
    text = encode(event)
    if len(text) > limits.event_bytes_max:
        raise LimitError(
            f"an event of type {event.type!r:.80} has {len(text)} bytes, more than "
            f"event_bytes_max = {limits.event_bytes_max}"
        )
    return text


def contiguous(place: str, rows: Iterable[Sequence[Any]], first: int) -> list[Event]:
    """The events of rows of seq and body, without a hole; `StoreError` when one is not there,
    which somebody else took."""
    events = []
    for expected, (seq, text) in enumerate(rows, first):
        if seq != expected:
            raise StoreError(f"{place}: event {expected} is missing")
        events.append(decoded(place, seq, text))
    return events


def decoded(place: str, seq: int, text: bytes) -> Event:
    """The event that was stored as `text`; `StoreError` when it is not number `seq`."""
    try:
        event = decode_event(text)
    except AssemblerError:  # whose words may hold contents
        event = None
    if event is None or event.seq != seq:
        raise StoreError(f"{place}: event {seq} cannot be read: it is damaged")
    return event


def _need_seq(name: str, value: object, least: int = 0) -> None:
    if type(value) is not int:
        raise InputError(f"{name}: expected an integer, got {value!r:.80}")
    if not least <= value < INT_END:
        told = value if abs(value) <= INT_END else "a longer number"
        raise InputError(f"{name}: expected {least} to 2**53, got {told}")


def _count(name: str, value: int | None, usual: int, limit: str, most: int) -> int:
    """`value` where it may stand; without one, what is usual."""
    if value is None:
        return min(usual, most)
    _need_seq(name, value, 1)
    if value > most:
        raise LimitError(f"{name}: expected at most {limit} = {most}, got {value}")
    return value


def _types(name: str, types: Iterable[str]) -> tuple[str, ...]:
    if isinstance(types, (str, bytes)) or not isinstance(types, Iterable):
        raise InputError(f"{name}: expected types, got {json_kind(types)}")
    wanted = tuple(dict.fromkeys(types))
    for each in wanted:
        need_text(name, each)
    return wanted
