"""What every store promises, as checks to run against yours.

`check_store(make_store)` runs them all; `store_checks` are the same, one by one, for a test
runner that wants to name them. What several processes may share is asked of two stores over one
log: `shared_store_checks`. Not here: writers that are killed; `tests/stores/test_crashes.py` shows
how to ask that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from threading import Barrier, Thread
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from assembler.engine.errors import AssemblerError, ConflictError, InputError, LimitError
from assembler.engine.events import Draft, Event
from assembler.stores import Feed, MemoryStore, Page, Store, StoreError, SyncStore

__all__ = ["check_store", "shared_store_checks", "store_checks"]

MakeStore = Callable[[], Store]
OpenAgain = Callable[[Store], Store]
SharedCheck = Callable[[Store, Store], Awaitable[None]]
Check = Callable[[Store], Awaitable[None]]

LONG_BYTES_MAX = 1 << 20
"""A store that takes longer events is not asked what it does with one that is too long."""

HANGS_S = 60
"""A check that waits longer has failed, so that a test run does not hang."""


def check_store(make_store: MakeStore, open_again: OpenAgain | None = None) -> None:
    """Fail with an `AssertionError` that names the promise which a store does not keep.

    `make_store()` gives a new store with nothing in it; it is called for every check, and often for
    the last one, which compares the store with a `MemoryStore` under random calls (Hypothesis).
    With small `Limits` these are reached as well. Not to be called from within an event loop.

    `open_again(store)` gives another store over the same log, for a store that processes share:
    then what they promise each other is checked too.
    """
    for check in store_checks:
        with _named(check):
            check(make_store)
    for shared in shared_store_checks if open_again is not None else ():
        with _named(shared):
            shared(make_store, open_again)


@contextmanager
def _named(check: Callable[..., None]) -> Iterator[None]:
    try:
        yield
    except AssertionError as error:
        error.add_note(f"broken promise: {check.__doc__}")
        raise


def _with_store(check: Check) -> Callable[[MakeStore], None]:
    """`check` as a plain function that runs it on a new store, inside a loop."""

    def run(make_store: MakeStore) -> None:
        async def inside() -> None:
            async with make_store() as store:
                await check(store)

        _run(inside)

    run.__name__ = check.__name__
    run.__doc__ = check.__doc__
    return run


def _with_two(check: SharedCheck) -> Callable[[MakeStore, OpenAgain | None], None]:
    """`check` as a plain function that runs it on two new stores over one log."""

    def run(make_store: MakeStore, open_again: OpenAgain | None) -> None:
        async def inside() -> None:
            assert open_again is not None
            async with make_store() as store, open_again(store) as other:
                await check(store, other)

        _run(inside)

    run.__name__ = check.__name__
    run.__doc__ = check.__doc__
    return run


def _run(inside: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def in_time() -> None:
        await asyncio.wait_for(inside(), HANGS_S)

    try:
        asyncio.run(in_time())
    except TimeoutError:
        raise AssertionError(f"it waits for ever (longer than {HANGS_S} s)") from None


def drafts(*words: str, **fields: Any) -> list[Draft]:
    """One draft for each word, which is its type and what it says."""
    return [Draft(word, {"word": word}, **fields) for word in words]


def _words(events: Sequence[Event]) -> str:
    return "".join(event.type for event in events)


def _seqs(events: Sequence[Event]) -> list[int]:
    return [event.seq for event in events]


async def _refused(
    kind: type[AssemblerError], call: Callable[[], Awaitable[object]], named: str = ""
) -> AssemblerError:
    try:
        await call()
    except kind as error:
        refused = error
    else:
        raise AssertionError(f"expected {kind.__name__}, and it was taken")
    assert named in str(refused), f"the error names no {named!r}: {refused}"
    return refused


# --- appending


async def _numbers(store: Store) -> None:
    """`append` numbers drafts from `expected_seq + 1`, and gives the events that are stored."""
    first = await store.append("c", drafts("a", "b"), 0)
    then = await store.append("c", drafts("c"), 2)
    assert _seqs([*first, *then]) == [1, 2, 3]
    assert await store.read("c") == [*first, *then]
    assert await store.append("c", [], 3) == []
    assert await store.last("c") == 3


async def _keeps_apart(store: Store) -> None:
    """Each conversation has its own numbers and ids."""
    await store.append("c", drafts("a", id="same"), 0)
    (other,) = await store.append("d", drafts("b", id="same"), 0)
    assert (other.seq, other.type) == (1, "b")
    assert _words(await store.read("c")) == "a"


async def _keeps_all(store: Store) -> None:
    """Types, fields and values that nobody knows come back as they were."""
    data = {
        "text": "\u00e9\U0001f600\x00\n",
        "numbers": [0, -1, 1.0, 1e300, 5e-324, 2**60, True, None],
        "deep": {"a": [{"b": []}], "": {}},
    }
    draft = Draft("strange/thing", data, -5, "\u00ef\u00f0", 7, {"later": {"x": [1]}})
    (given,) = await store.append("c", [draft], 0)
    (read,) = await store.read("c")
    assert given == read
    assert (read.seq, read.type, read.time, read.id, read.v) == (1, draft.type, -5, draft.id, 7)
    assert (read.data, read.more) == (draft.data, draft.more)
    assert await store.append("copy", [Draft.of(read)], 0) == [read]
    assert repr(read.data["numbers"]) == repr(draft.data["numbers"]), "1.0 and true stay theirs"


async def _takes_mappings(store: Store) -> None:
    """A mapping does for a draft; one with a field that no draft has does not."""
    (event,) = await store.append("c", [{"type": "a", "data": {"x": 1}, "id": "i"}], 0)
    assert event == Event(1, "a", {"x": 1}, 0, "i")
    await _refused(InputError, lambda: store.append("c", [{"type": "b", "seq": 2}], 1), "seq")


async def _takes_what_was_given(store: Store) -> None:
    """What the caller changes after the call is not stored."""
    batch: list[dict[str, Any]] = [{"type": "a", "data": {"list": [1]}}]
    append = store.append("c", batch, 0)
    waiting = asyncio.ensure_future(append)
    await asyncio.sleep(0)
    batch[0]["data"]["list"].append(2)
    batch.append({"type": "b"})
    await waiting
    assert [event.data["list"] for event in await store.read("c")] == [(1,)]


async def _conflicts(store: Store) -> None:
    """A writer who is not up to date gets `ConflictError(expected, actual)`, and writes nothing."""
    await store.append("c", drafts("a", "b"), 0)
    for expected in (0, 1, 3, 2**52):
        error: Any = await _refused(
            ConflictError, partial(store.append, "c", drafts("x"), expected)
        )
        assert (error.expected, error.actual) == (expected, 2)
    error = await _refused(ConflictError, lambda: store.append("new", drafts("x"), 1))
    assert (error.expected, error.actual) == (1, 0)
    assert _words(await store.read("c")) == "ab"
    assert await store.last("new") == 0
    assert [entry.conversation for entry in await store.conversations()] == ["c"]


async def _repeats(store: Store) -> None:
    """An append that was not acknowledged can be sent again: its stored events come back."""
    batch = [Draft("a", id="1"), Draft("b", id="2")]
    stored = await store.append("c", batch, 0)
    await store.append("c", drafts("c"), 2)
    assert await store.append("c", batch, 0) == stored
    assert await store.append("c", batch[::-1], 99) == stored[::-1]
    assert await store.append("c", [Draft("other", {"x": 1}, id="2")], 0) == stored[1:]
    assert _words(await store.read("c")) == "abc"


async def _repeats_in_part(store: Store) -> None:
    """Of a batch of which some ids are stored, the others are: in order, without a hole."""
    await store.append("c", [Draft("a", id="1")], 0)
    batch = [Draft("b", id="2"), Draft("a", id="1"), Draft("c"), Draft("again", id="2")]
    await _refused(ConflictError, lambda: store.append("c", batch, 0))
    assert _words(await store.read("c")) == "a"
    events = await store.append("c", batch, 1)
    assert [(event.seq, event.type) for event in events] == [(2, "b"), (1, "a"), (3, "c"), (2, "b")]
    assert _words(await store.read("c")) == "abc"


async def _is_atomic(store: Store) -> None:
    """A batch with one bad draft stores nothing, and the error says which."""
    good = Draft("a")
    cases: list[tuple[Any, type[AssemblerError], str]] = [
        (Draft(""), InputError, "drafts[1]: type"),
        (Draft("b", id=""), InputError, "drafts[1]: id"),
        (Draft("b", time=1.5), InputError, "drafts[1]: time"),  # type: ignore[arg-type]
        (Draft("b", v=0), InputError, "drafts[1]: v"),
        (Draft("b", more={"seq": 9}), InputError, "drafts[1]: more"),
        (None, InputError, "drafts[1]"),
        ({"type": "b", "data": {"x": {1}}}, InputError, "drafts[1]: data"),
    ]
    if store.limits.event_bytes_max <= LONG_BYTES_MAX:
        long = Draft("b", {"text": "x" * store.limits.event_bytes_max})
        cases.append((long, LimitError, "event_bytes_max"))
    for bad, kind, named in cases:
        await _refused(kind, partial(store.append, "c", [good, bad, good], 0), named)
    assert await store.last("c") == 0
    assert await store.conversations() == []
    assert _words(await store.append("c", [good], 0)) == "a"


async def _refuses(store: Store) -> None:
    """What is no conversation, number or sequence is an `InputError` that names the argument."""
    wrong: Any = "c"
    cases: list[tuple[str, Callable[[], Awaitable[object]]]] = [
        ("conversation", lambda: store.append("", drafts("a"), 0)),
        ("conversation", lambda: store.read(wrong.encode())),
        ("expected_seq", lambda: store.append("c", drafts("a"), -1)),
        ("expected_seq", lambda: store.append("c", drafts("a"), 10**400)),
        ("before", lambda: store.page("c", -(10**400))),
        ("expected_seq", lambda: store.append("c", drafts("a"), True)),
        ("drafts", lambda: store.append("c", wrong, 0)),
        ("drafts", lambda: store.append("c", drafts("a")[0], 0)),  # type: ignore[arg-type]
        ("before", lambda: store.page("c", 0)),
        ("limit", lambda: store.page("c", None, 0)),
        ("limit", lambda: store.read("c", 0, -1)),
        ("after", lambda: store.read("c", -1)),
        ("types", lambda: store.newest("c", wrong)),
        ("before", lambda: store.conversations(before=wrong)),
    ]
    for named, call in cases:
        await _refused(InputError, call, named)


async def _has_limits(store: Store) -> None:
    """Beyond a limit there is a `LimitError` that names it."""
    limits = store.limits
    batch = drafts(*"a" * (limits.batch_events_max + 1))
    await _refused(LimitError, lambda: store.append("c", batch, 0), "batch_events_max")
    most = limits.page_events_max
    await _refused(LimitError, lambda: store.page("c", None, most + 1), "page_events_max")
    most = limits.list_conversations_max
    await _refused(
        LimitError, lambda: store.conversations(limit=most + 1), "list_conversations_max"
    )
    assert len(await store.append("c", batch[1:], 0)) == limits.batch_events_max


# --- reading


async def _pages(store: Store) -> None:
    """Pages of every size, from every place, are the log cut there, and say if more is older."""
    assert await store.page("c") == Page((), has_more=False)
    log = await store.append("c", drafts(*"abcdefg"), 0)
    assert (await store.page("c")).events == tuple(log)
    for limit in range(1, min(9, store.limits.page_events_max) + 1):
        for before in (None, *range(1, 10), 2**52):
            end = min(len(log), (before or 99) - 1)
            first = max(0, end - limit)
            expected = Page(tuple(log[first:end]), has_more=first > 0)
            assert await store.page("c", before, limit) == expected, (before, limit)


async def _reads_on(store: Store) -> None:
    """`read` gives what is behind a seq, the first of it where there is a limit."""
    log = await store.append("c", drafts(*"abcde"), 0)
    for after in range(7):
        assert await store.read("c", after) == log[after:]
        for limit in range(1, 7):
            assert await store.read("c", after, limit) == log[after : after + limit]
    assert await store.read("nobody") == []


async def _finds_newest(store: Store) -> None:
    """`newest` finds the last event of a type, however far back, and leaves out what is not."""
    log = await store.append("c", drafts(*"abac"), 0)
    assert await store.newest("c", ["a", "b", "x"]) == {"a": log[2], "b": log[1]}
    assert await store.newest("c", []) == {}
    assert await store.newest("nobody", ["a"]) == {}


async def _lists(store: Store) -> None:
    """`conversations` lists by the time of the last event, page by page, with what was asked."""
    for at, name in enumerate("dbacfe"):
        times = (10 - at, 5 if name in "abc" else at)
        for seq, time in enumerate(times):
            word = "name" if seq == 0 else "other"
            await store.append(name, [Draft(word, {"is": name}, time)], seq)
    most = min(5, store.limits.list_conversations_max)
    listed = await store.conversations(limit=most, newest=["name", "x"])
    assert "".join(entry.conversation for entry in listed) == "abcef"[:most]
    first = listed[0]
    assert (first.events, first.first_time, first.last_time) == (2, 8, 5)
    assert {word: event.data["is"] for word, event in first.newest.items()} == {"name": "a"}
    assert not (await store.conversations())[0].newest
    for limit in range(1, most + 1):
        names, before = "", None
        while page := await store.conversations(limit=limit, before=before):
            assert len(page) <= limit
            names += "".join(entry.conversation for entry in page)
            before = page[-1]
        assert names == "abcefd"


# --- many at once


async def _lets_one_win(store: Store) -> None:
    """Of two writers who expect the same, one wins: no seq twice, no gap, nobody loses an event."""
    await _race(store, store)


async def _race(store: Store, other: Store) -> None:
    """Two writers, each through its own store, until both have written all."""
    written: list[Event] = []
    barrier = Barrier(2)

    def write(name: str, core: SyncStore) -> None:
        last = 0
        barrier.wait()
        for count in range(20):
            while True:
                try:
                    events = core.append("c", [Draft(name, {"n": count}), Draft(name)], last)
                except ConflictError as error:
                    last = int(str(error.actual))
                else:
                    break
            last = events[-1].seq
            written.extend(events)

    cores = (("a", store.sync), ("b", other.sync))
    threads = [Thread(target=write, args=each) for each in cores]
    for thread in threads:
        thread.start()
    await asyncio.to_thread(_join, threads)
    log = await store.read("c")
    assert _seqs(log) == list(range(1, 81))
    assert sorted(written, key=lambda event: event.seq) == log
    for name in "ab":
        counts = [event.data["n"] for event in log if event.type == name and event.data]
        assert counts == list(range(20)), "each writer's events stand in its order"


def _join(threads: Sequence[Thread]) -> None:
    for thread in threads:
        thread.join()


async def _takes_repeats_from_many(store: Store) -> None:
    """One draft with an id, sent by many at once, is stored once."""
    draft = Draft("a", id="one")
    answers = await asyncio.gather(*[store.append("c", [draft], 0) for _ in range(8)])
    assert all(events == answers[0] for events in answers)
    assert await store.last("c") == 1


async def _feeds(store: Store) -> None:
    """`subscribe` gives what is stored behind a seq and then what comes, each event once."""
    await store.append("c", drafts(*"abc"), 0)
    async with store.subscribe("c", after=1) as feed:
        heard = [await anext(feed), await anext(feed)]
        waiting = asyncio.ensure_future(anext(feed))
        await store.append("other", drafts("x"), 0)
        await store.append("c", drafts(*"defghijklmnopq"), 3)
        heard += [await waiting, *[await anext(feed) for _ in range(13)]]
        assert _words(heard) == "bcdefghijklmnopq"
        store.sync.append("c", drafts("r"), 17)
        assert _words([await anext(feed)]) == "r"


async def _feeds_on_after_cancelling(store: Store) -> None:
    """A reader of a feed that is cancelled has lost nothing: the next one goes on there."""
    heard: list[Event] = []
    async with store.subscribe("c") as feed:
        for at, word in enumerate("abc"):
            heard += await _cancelled(feed)  # waits for news
            await store.append("c", drafts(word), at)
            heard += await _cancelled(feed)  # is reading
        while len(heard) < len("abc"):
            heard.append(await anext(feed))
    assert _words(heard) == "abc"


async def _cancelled(feed: Feed) -> list[Event]:
    """Cancel a reader after a moment; what it had by then."""
    waiting = asyncio.ensure_future(anext(feed))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    return [] if waiting.cancelled() else [waiting.result()]


async def _ends_feeds(store: Store) -> None:
    """A feed ends when it is closed, and when the store is."""
    closed, left = store.subscribe("c"), store.subscribe("c")
    readers = [asyncio.ensure_future(_all_of(feed)) for feed in (closed, left)]
    await asyncio.sleep(0)
    await closed.aclose()
    assert await readers[0] == []
    await store.append("c", drafts("a"), 0)
    await store.close()
    assert _words(await readers[1]) in ("", "a")
    await _refused(StoreError, lambda: store.read("c"))
    await store.close()


async def _all_of(feed: Feed) -> list[Event]:
    return [event async for event in feed]


async def _tells_listeners(store: Store) -> None:
    """`listen` is told of each append that wrote something, until it stops; its errors stay."""
    heard: list[int] = []

    def hear(seq: int) -> None:
        heard.append(seq)
        raise KeyError

    stop = store.sync.listen("c", hear)
    await store.append("c", drafts("a", "b", id=None), 0)
    await store.append("c", [Draft("c", id="1")], 2)
    await store.append("c", [Draft("c", id="1")], 2)
    await _refused(ConflictError, lambda: store.append("c", drafts("x"), 0))
    stop()
    stop()
    await store.append("c", drafts("d"), 3)
    assert heard == [2, 3]


# --- several stores over one log


async def _hears_others(store: Store, other: Store) -> None:
    """A feed gives what another store appends, in order, each event once, and none is missed."""
    await other.append("c", drafts("a"), 0)
    async with store.subscribe("c") as feed:
        heard = [await anext(feed)]
        waiting = asyncio.ensure_future(anext(feed))
        await other.append("d", drafts("x"), 0)
        await other.append("c", drafts("b"), 1)
        heard.append(await waiting)
        for at, word in enumerate("cdefgh", 2):
            await (store, other)[at % 2].append("c", drafts(word), at)
        heard += [await anext(feed) for _ in range(6)]
        assert _words(heard) == "abcdefgh"


async def _tells_of_others(store: Store, other: Store) -> None:
    """`listen` is told of what another store appends: seqs that rise, up to the last one."""
    loop, heard = asyncio.get_running_loop(), []
    done = asyncio.Event()

    def hear(seq: int) -> None:
        heard.append(seq)
        if seq == 6:
            loop.call_soon_threadsafe(done.set)

    stop = store.sync.listen("c", hear)
    for at in range(0, 6, 2):
        await (other, store)[at == 2].append("c", drafts("a", "b"), at)
    await done.wait()
    assert heard == sorted(set(heard)), "no seq is told twice, none behind a later one"
    stop()
    await other.append("c", drafts("c"), 6)
    assert heard[-1] == 6


async def _sees_others(store: Store, other: Store) -> None:
    """What one store has acknowledged, the other reads, lists, repeats and conflicts with."""
    log = await store.append("c", [Draft("a", {"x": 1}, 5, "1"), Draft("b", id="2")], 0)
    assert await other.read("c") == log
    assert (await other.page("c", limit=1)).events == (log[1],)
    assert await other.newest("c", ["a"]) == {"a": log[0]}
    assert await other.append("c", [Draft("b", id="2"), Draft("a", id="1")], 7) == log[::-1]
    error: Any = await _refused(ConflictError, lambda: other.append("c", drafts("x"), 1))
    assert (error.expected, error.actual) == (1, 2)
    log += await other.append("c", drafts("c"), 2)
    assert await store.read("c") == log
    assert await store.conversations(newest=["b"]) == await other.conversations(newest=["b"])


async def _lets_one_store_win(store: Store, other: Store) -> None:
    """Of two stores that append at once, one wins: no seq twice, no gap, nobody loses an event."""
    await _race(store, other)


async def _takes_repeats_from_stores(store: Store, other: Store) -> None:
    """One batch with ids, sent through two stores at once, is stored once."""
    batch = [Draft("a", id="1"), Draft("b", id="2")]
    both = [(store, other)[at % 2].append("c", batch, 0) for at in range(8)]
    answers = await asyncio.gather(*both)
    assert all(events == answers[0] for events in answers)
    assert _words(await other.read("c")) == "ab"


async def _outlives_the_other(store: Store, other: Store) -> None:
    """When one store closes, the other goes on, and its feeds too."""
    async with store.subscribe("c") as feed:
        await other.append("c", drafts("a"), 0)
        await other.close()
        await store.append("c", drafts("b"), 1)
        assert _words([await anext(feed), await anext(feed)]) == "ab"


# --- the same as memory


FLOATS = st.floats(allow_nan=False, allow_infinity=False)


class _Both(RuleBasedStateMachine):
    """The store and a `MemoryStore`, asked the same: they answer the same."""

    make_store: MakeStore
    names = st.sampled_from(("c", "d", "\u00e9"))
    seqs = st.integers(0, 12)
    types = st.sampled_from(("a", "b", "c/d"))
    values = st.recursive(
        st.none() | st.booleans() | st.integers() | FLOATS | st.text(),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
        max_leaves=4,
    )

    def __init__(self) -> None:
        super().__init__()
        store = type(self).make_store()
        self.stores: list[SyncStore] = [
            store.sync,
            MemoryStore(limits=store.limits).sync,
        ]

    def teardown(self) -> None:
        for store in self.stores:
            store.close()

    def both(self, ask: Callable[[SyncStore], Any]) -> None:
        answers = [_answer(ask, store) for store in self.stores]
        assert answers[0] == answers[1]

    @rule(
        name=names,
        at=seqs | st.none(),
        batch=st.lists(
            st.builds(
                Draft,
                types,
                st.dictionaries(st.text(max_size=3), values, max_size=2),
                st.integers(-3, 3),
                st.none() | st.sampled_from(("1", "2", "3", "4")),
                st.integers(0, 2),
            ),
            max_size=4,
        ),
    )
    def append(self, name: str, at: int | None, batch: list[Draft]) -> None:
        expected = self.stores[1].last(name) if at is None else at
        self.both(lambda store: store.append(name, batch, expected))

    @rule(name=names, before=st.integers(1, 12) | st.none(), limit=st.integers(1, 11))
    def page(self, name: str, before: int | None, limit: int) -> None:
        self.both(lambda store: store.page(name, before, limit))

    @rule(name=names, after=seqs, limit=st.integers(1, 11) | st.none())
    def read(self, name: str, after: int, limit: int | None) -> None:
        self.both(lambda store: store.read(name, after, limit))

    @rule(name=names, wanted=st.lists(types, max_size=2))
    def look(self, name: str, wanted: list[str]) -> None:
        self.both(lambda store: (store.last(name), store.newest(name, wanted)))

    @rule(limit=st.integers(1, 5), wanted=st.lists(types, max_size=2), at=st.integers(0, 2))
    def conversations(self, limit: int, wanted: list[str], at: int) -> None:
        listed = self.stores[1].conversations()
        before = listed[at] if at < len(listed) else None
        self.both(lambda store: store.conversations(newest=wanted, limit=limit, before=before))


def _answer(ask: Callable[[SyncStore], Any], store: SyncStore) -> Any:
    try:
        return ask(store)
    except AssemblerError as error:
        return type(error), str(error)


def _agrees_with_memory(make_store: MakeStore) -> None:
    """Whatever is asked, in whatever order: the answers are those of a `MemoryStore`."""
    machine = type("Both", (_Both,), {"make_store": staticmethod(make_store)})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=25,
            stateful_step_count=15,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )


store_checks: tuple[Callable[[MakeStore], None], ...] = (
    *map(
        _with_store,
        (
            _numbers,
            _keeps_apart,
            _keeps_all,
            _takes_mappings,
            _takes_what_was_given,
            _conflicts,
            _repeats,
            _repeats_in_part,
            _is_atomic,
            _refuses,
            _has_limits,
            _pages,
            _reads_on,
            _finds_newest,
            _lists,
            _lets_one_win,
            _takes_repeats_from_many,
            _feeds,
            _feeds_on_after_cancelling,
            _ends_feeds,
            _tells_listeners,
        ),
    ),
    _agrees_with_memory,
)
"""Each promise as a function of `make_store`, with the promise as its docstring."""

shared_store_checks: tuple[Callable[[MakeStore, OpenAgain | None], None], ...] = tuple(
    map(
        _with_two,
        (
            _sees_others,
            _hears_others,
            _tells_of_others,
            _lets_one_store_win,
            _takes_repeats_from_stores,
            _outlives_the_other,
        ),
    )
)
"""Each promise of stores over one log, as a function of `make_store` and `open_again`."""
