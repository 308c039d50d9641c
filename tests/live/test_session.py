"""A Session: continuity, conflicts, gaps, cancellation, attempts, and reopening after a crash."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assembler import (
    Assembler,
    AssemblerError,
    ConflictError,
    Delta,
    Draft,
    Event,
    GapError,
    InputError,
    LimitError,
    Outcome,
    apply,
)
from assembler.live import Open, Session, SyncSession
from assembler.stores import MemoryStore, SQLiteStore, Store, StoreError, SyncStore
from tests.engine.support import Toy, same_as_fresh
from tests.live.desk import GatedStore, counting, pump, session, toy, toys
from tests.live.support import takes

Test = Callable[[], Coroutine[Any, Any, None]]
TURN = Draft("turn/start", {"turn": 1}, 5)
STEP = Draft("step/start", {"turn": 1, "step": 1}, 6)
END = Draft("turn/end", {"turn": 1, "reason": "interrupted"})


def inside(test: Test) -> Callable[[], None]:
    """Run a test in a loop of its own."""

    def run() -> None:
        asyncio.run(test())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


def said(some: Session | SyncSession) -> dict[str, Any]:
    """What is shown: `v` of each toy by id."""
    return {node.id: node.to_json()["data"]["v"] for node in some.view().nodes}


def types(store: Store, name: str = "c") -> list[str]:
    return [event.type for event in store.sync.read(name)]


async def shows_what_is_stored(some: Session) -> None:
    """All of the log, taken once each, as a fresh load shows it."""
    while await some.older():
        pass
    log = some._store.sync.read(some.conversation)
    assert some.assembler.events == log
    some.publisher.flush()
    same_as_fresh(some.assembler, toys())


# --- opening, appending, paging


@inside
async def test_what_is_appended_is_stored_and_shown() -> None:
    store = MemoryStore()
    async with session(store) as some:
        assert some.last == 0
        first, second = await some.append(toy(1), Draft("toy", {"id": "y"}, 7, "mine"))
        assert store.sync.read("c") == [first, second]
        assert [first.seq, second.seq, some.last] == [1, 2, 2]
        assert [first.time, second.time] == [1_000, 7], "without a time it is now"
        assert await some.append({"type": "toy", "data": {"id": "z", "v": 3}}) != []
        assert said(some) == {"x": [1], "y": [None], "z": [3]}


@inside
async def test_an_opening_loads_the_newest_page_and_older_ones_on_demand() -> None:
    store = MemoryStore()
    await store.append("c", [toy(v, id=str(v)) for v in range(10)], 0)
    for page in range(1, 12):
        some = session(store)
        await some.open(page=page)
        assert list(said(some)) == [str(v) for v in range(10)][-page:]
        more = some.assembler.window.has_more
        assert more == (page < 10)
        while more:
            more = await some.older(page)
        assert not await some.older(page)
        await shows_what_is_stored(some)
        await some.close()


@inside
async def test_what_is_forgotten_comes_again_with_an_older_page() -> None:
    store = MemoryStore()
    await store.append("c", [toy(v, id=str(v)) for v in range(6)], 0)
    async with session(store) as some:
        some.evict(4)
        assert list(said(some)) == ["3", "4", "5"]
        some.evict(99)
        assert said(some) == {}
        assert await some.older(2)
        assert list(said(some)) == ["4", "5"]
        await shows_what_is_stored(some)


@inside
async def test_a_page_that_is_cut_meanwhile_is_read_again() -> None:
    store = GatedStore()
    store.sync.append("c", [toy(v, id=str(v)) for v in range(6)], 0)
    some = session(store)
    await some.open(page=2)
    store.behind.clear()
    paging = asyncio.ensure_future(some.older(2))
    await pump()
    some.evict(6)
    store.behind.set()
    assert await paging
    assert list(said(some)) == ["3", "4", "5"]
    await shows_what_is_stored(some)
    await some.close()


@inside
async def test_opening_again_loads_what_is_stored_now() -> None:
    store = MemoryStore()
    some = session(store)
    await some.open()
    stop = some._stop
    assert stop is not None
    stop()
    await store.append("c", [toy(1), TURN], 0)
    await some.open()
    assert (said(some), some.last, some.last_turn) == ({"x": [1]}, 2, 1)
    await some.close()


@inside
async def test_nothing_is_taken_of_what_is_no_draft() -> None:
    store = MemoryStore()
    async with session(store) as some:
        wrong: Any = [Draft(""), None, "toy", 3]
        for bad in wrong:
            with pytest.raises(InputError):
                await some.append(toy(1), bad)
        assert (some.last, said(some), types(store)) == (0, {}, [])
        assert await some.append() == []


@inside
async def test_before_opening_and_after_closing_nothing_is_done() -> None:
    store = MemoryStore()
    some = session(store)
    with pytest.raises(AssemblerError, match="not open yet"):
        await some.append(toy(1))
    with pytest.raises(AssemblerError, match="not open yet"):
        some.attempt(1, 1)
    await some.open()
    await some.close()
    await some.close()
    calls: list[Callable[[], Any]] = [lambda: some.append(toy(1)), some.open, some.catch_up]
    for call in calls:
        with pytest.raises(AssemblerError, match="closed"):
            await call()
    assert types(store) == []
    await store.append("c", [toy(1)], 0)
    with pytest.raises(InputError, match="conversation"):
        session(store, "")
    with pytest.raises(InputError, match="conflicts_max"):
        session(store, conflicts_max=0)


# --- other writers


@inside
async def test_what_another_session_writes_comes_by_itself() -> None:
    store = MemoryStore()
    async with session(store) as one, session(store) as two:
        await one.append(toy(1), toy(2))
        await pump()
        assert said(two) == {"x": [1, 2]}
        await two.append(toy(3))
        await asyncio.to_thread(store.sync.append, "c", [toy(4)], 3)
        await pump()
        assert said(one) == said(two) == {"x": [1, 2, 3, 4]}
        assert list(one.assembler.anomalies) == list(two.assembler.anomalies) == []


@inside
async def test_what_comes_while_the_store_is_asked_is_shown_after_it() -> None:
    store = GatedStore()
    store.sync.append("c", [toy(v, id=str(v)) for v in range(4)], 0)
    some = session(store)
    await some.open(page=1)
    store.behind.clear()
    paging = asyncio.ensure_future(some.older(1))
    await pump()
    store.sync.append("c", [toy(4, id="4")], 4)
    await pump()
    store.behind.set()
    await paging
    await pump()
    assert list(said(some)) == ["2", "3", "4"]
    await some.close()


@inside
async def test_another_conversation_is_not_heard() -> None:
    store = MemoryStore()
    async with session(store) as one, session(store, "other") as two:
        await one.append(toy(1))
        await pump()
        assert (two.last, two.statistics()["repaired"]) == (0, 0)


@inside
async def test_a_writer_who_was_too_late_learns_what_is_new() -> None:
    store = GatedStore()
    one, two = session(store), session(store)
    await one.open()
    await two.open()
    store.before.clear()
    first = asyncio.ensure_future(one.append(toy("one")))
    late = asyncio.ensure_future(two.append(toy("two")))
    again = asyncio.ensure_future(two.append(toy("again"), retry=True))
    await pump()
    store.before.set()
    await first
    with pytest.raises(ConflictError) as refused:
        await late
    assert (refused.value.expected, refused.value.actual) == (0, 1)
    assert [event.seq for event in await again] == [2]
    assert said(two) == {"x": ["one", "again"]}
    assert two.assembler.anomalies.counts == {"seq-conflict": 1}
    assert two.statistics()["conflicts"] == 1
    await shows_what_is_stored(one)
    await shows_what_is_stored(two)
    await one.close()
    await two.close()


class Rival(MemoryStore):
    """Another writer is quicker, `times` times."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    async def run(self, ask: Callable[[SyncStore], Any]) -> Any:
        if self.times and "write" in ask.__code__.co_names:
            self.times -= 1
            self.sync.append("c", [toy("rival")], self.sync.last("c"))
        return ask(self.sync)


@inside
async def test_a_decision_is_made_again_for_each_rival() -> None:
    store = Rival(3)
    async with session(store) as some:
        seen: list[Any] = []

        def decide() -> Draft:
            seen.append(said(some).get("x", []))
            return toy(len(seen))

        await some.decide(decide)
        assert seen == [["rival"] * rivals for rivals in range(4)]
        assert said(some) == {"x": ["rival", "rival", "rival", 4]}
        assert await some.decide(lambda: None) == []
        assert await some.decide(list) == []


@inside
async def test_retrying_has_an_end() -> None:
    store = Rival(99)
    async with session(store, conflicts_max=3) as some:
        with pytest.raises(ConflictError):
            await some.append(toy(1), retry=True)
        assert store.times == 96
        assert said(some) == {"x": ["rival"] * 3}


@inside
async def test_a_log_that_lost_its_end_is_told_and_not_retried() -> None:
    store = MemoryStore()
    async with session(store) as some:
        await some.append(toy(1), toy(2))
        some._store = store = MemoryStore()
        await store.append("c", [toy(1)], 0)
        with pytest.raises(ConflictError) as refused:
            await some.append(toy(3), retry=True)
        assert (refused.value.expected, refused.value.actual) == (2, 1)
        assert some.statistics()["conflicts"] == 1


@inside
async def test_a_draft_that_is_stored_already_is_shown_once() -> None:
    store = MemoryStore()
    async with session(store) as one:
        await one.append(toy(1))
        mine = Draft("toy", {"id": "x", "v": 2}, id="mine")
        (first,) = await one.append(mine)
        await one.append(toy("between"))
        assert await one.append(mine) == [first]
        assert one.last == 3
        await one.append(toy("on"))
        assert said(one) == {"x": [1, 2, "between", "on"]}
        two = session(store)
        await two.open(page=1)
        heard: list[int] = []
        two.listen(lambda event, own: heard.append(event.seq))
        assert await two.append(mine, toy(3)) == [first, *store.sync.read("c", 4)]
        assert (said(two), heard) == ({"x": ["on", 3]}, [5])
        await two.close()


@inside
async def test_a_stored_draft_from_beyond_what_is_loaded_is_no_gap() -> None:
    store = MemoryStore()
    some = session(store)
    await some.open()
    heard: list[tuple[int, bool]] = []
    some.listen(lambda event, own: heard.append((event.seq, own)))
    store.sync._listeners.clear()  # as if another process wrote it
    mine = Draft("toy", {"id": "x", "v": 3}, id="mine")
    store.sync.append("c", [toy(1), toy(2), mine, toy(4)], 0)
    (event,) = await some.append(mine)
    assert (event.seq, some.last) == (3, 3)
    assert said(some) == {"x": [1, 2, 3]}
    assert heard == [(1, False), (2, False), (3, False)]
    await some.append(toy(5), retry=True)
    assert heard[3:] == [(4, False), (5, True)]
    await shows_what_is_stored(some)
    await some.close()


# --- gaps


@inside
async def test_a_gap_is_filled_from_the_store() -> None:
    store = MemoryStore()
    some = session(store)
    await some.open()
    store.sync._listeners.clear()
    log = await store.append("c", [toy(v) for v in range(6)], 0)
    await some.receive(log[3])
    assert said(some) == {"x": [0, 1, 2, 3]}
    await some.receive(log[1])
    await some.receive(log[3])
    await some.receive(log[4])
    await some.catch_up()
    await shows_what_is_stored(some)
    with pytest.raises(GapError) as missing:
        await some.receive(Event(9, "toy", {"id": "x"}))
    assert (missing.value.first, missing.value.last, some.last) == (7, 8, 6)
    with pytest.raises(ConflictError):
        await some.receive(Event(6, "toy", {"id": "x", "v": "another"}))
    await some.close()
    async with session(store, "empty") as some:
        with pytest.raises(GapError) as missing:
            await some.receive(Event(3, "toy", {"id": "x"}))
        assert (missing.value.first, missing.value.last, said(some)) == (1, 2, {})


@inside
async def test_many_missing_events_are_read_piece_by_piece() -> None:
    store = MemoryStore()
    some = session(store)
    await some.open()
    store.sync._listeners.clear()
    for start in range(0, 2_500, 500):
        await store.append("c", [toy(v, id=str(v)) for v in range(start, start + 500)], start)
    (last,) = await store.append("c", [toy("last")], 2_500)
    await some.receive(last)
    assert (some.last, len(some.assembler.events)) == (2_501, 2_501)
    await some.close()


# --- cancellation


@inside
async def test_an_append_cancelled_in_the_store_is_shown_all_the_same() -> None:
    store = GatedStore()
    some = session(store)
    await some.open()
    for gate in (store.before, store.behind):
        gate.clear()
        append = asyncio.ensure_future(some.append(toy(1), toy(2)))
        await pump()
        append.cancel()
        await asyncio.wait([append])
        assert append.cancelled(), "the caller need not wait"
        gate.set()
        await some.append(toy("next"))
        await shows_what_is_stored(some)
    assert said(some) == {"x": [1, 2, "next"] * 2}
    assert some.assembler.anomalies.total == 0
    await some.close()


@inside
async def test_a_call_cancelled_before_its_turn_does_nothing() -> None:
    store = GatedStore()
    some = session(store)
    await some.open()
    store.before.clear()
    first = asyncio.ensure_future(some.append(toy(1)))
    second = asyncio.ensure_future(some.append(toy("never")))
    third = asyncio.ensure_future(some.append(toy(3)))
    await pump()
    second.cancel()
    await asyncio.wait([second])
    store.before.set()
    await asyncio.gather(first, third)
    assert said(some) == {"x": [1, 3]}
    await some.close()


@pytest.mark.parametrize("gate", ["before", "behind"])
def test_an_append_that_dies_with_its_task_is_found_by_the_next_call(gate: str) -> None:
    async def run() -> None:
        store = GatedStore()
        some = session(store)
        await some.open()
        store.sync._listeners.clear()  # nobody tells it
        getattr(store, gate).clear()
        caller = asyncio.ensure_future(some.append(Draft("toy", {"id": "x", "v": 1}, id="mine")))
        await pump()
        for task in some._tasks:  # what the end of a loop does
            task.cancel()
        await asyncio.wait([caller])
        getattr(store, gate).set()
        await some.append(Draft("toy", {"id": "x", "v": 1}, id="mine"), toy(2))
        assert said(some) == {"x": [1, 2]}
        await shows_what_is_stored(some)
        await some.close()

    asyncio.run(run())


@inside
async def test_a_store_that_fails_after_storing_is_asked_again() -> None:
    class Failing(MemoryStore):
        fails = False

        async def run(self, ask: Callable[[SyncStore], Any]) -> Any:
            answer = ask(self.sync)
            if self.fails:
                self.fails = False
                raise StoreError("the line broke")
            return answer

    store = Failing()
    some = session(store)
    await some.open()
    store.sync._listeners.clear()
    store.fails = True
    with pytest.raises(StoreError):
        await some.append(toy(1))
    assert said(some) == {}
    await some.append(toy(2))
    assert said(some) == {"x": [1, 2]}
    assert some.assembler.anomalies.total == 0, "no conflict with itself"
    await some.close()


@inside
async def test_closing_waits_for_what_goes_on_behind_a_cancelled_caller() -> None:
    store = GatedStore()
    some = session(store)
    await some.open()
    store.before.clear()
    append, later = (asyncio.ensure_future(some.append(toy(v))) for v in (1, 2))
    await pump()
    append.cancel()
    closing = asyncio.ensure_future(some.close())
    await pump()
    assert not closing.done()
    store.before.set()
    await closing
    with pytest.raises(AssemblerError, match="closed"):
        await later
    assert [event.data["v"] for event in store.sync.read("c")] == [1]
    assert said_by(some) == {"x": [1]}


def said_by(some: Session) -> dict[str, Any]:
    return {node.id: node.to_json()["data"]["v"] for node in some.assembler.view().nodes}


def _hold(held: threading.Event, go_on: threading.Event, _: SyncStore) -> None:
    held.set()
    go_on.wait(20)


def test_a_thread_that_commits_while_its_caller_is_cancelled(tmp_path: Path) -> None:
    async def run() -> None:
        async with SQLiteStore(tmp_path / "c.db", synchronous="normal") as store:
            some = session(store)
            await some.open()
            for number in range(5):
                held, go_on = threading.Event(), threading.Event()
                hold = asyncio.ensure_future(store.run(partial(_hold, held, go_on)))
                await asyncio.to_thread(held.wait, 20)
                append = asyncio.ensure_future(some.append(toy(number)))
                await pump()
                append.cancel()
                go_on.set()
                await asyncio.wait([append, hold])
            await some.append(toy("end"))
            assert said(some) == {"x": [0, 1, 2, 3, 4, "end"]}
            await shows_what_is_stored(some)
            await some.close()

    asyncio.run(run())


# --- attempts


@inside
async def test_deltas_get_their_place_from_the_session() -> None:
    store = MemoryStore()
    async with session(store) as some:
        await some.append(TURN, STEP)
        one, side = some.attempt(1, 1), some.attempt(1, 1, number=0)
        given = [one.emit("toy-piece", {"id": "x", "v": 1}), side.emit("toy-piece", {"id": "y"})]
        await some.append(toy("y", id="z"))
        given += [one.emit("toy-more", {"id": "x", "v": 2})]
        fields = ("attempt", "number", "ordinal", "after", "index", "time")
        assert [[getattr(delta, name) for name in fields] for delta in given] == [
            ["a1", 1, 0, 2, 1, 1_000],
            ["a2", 0, 0, 2, 2, 1_000],
            ["a1", 1, 1, 3, 3, 1_000],
        ]
        assert some.assembler.deltas == given
        assert said(some) == {"x": [1, 2], "y": [None], "z": ["y"]}
        await shows_what_is_stored(some)


@inside
async def test_an_attempt_that_is_given_up_is_withdrawn() -> None:
    async with session(MemoryStore()) as some:
        await some.append(TURN, STEP)
        for outcome in ("failed", Outcome.INTERRUPTED, "abandoned"):
            attempt = some.attempt(1, 1)
            attempt.emit("toy-piece", {"id": "x"})
            assert said(some) == {"x": [None]}
            attempt.settle(outcome)
            assert (said(some), some.attempts) == ({}, [])
            with pytest.raises(ConflictError, match="has ended"):
                attempt.emit("toy-piece", {"id": "x"})
        attempt = some.attempt(1, 1)
        attempt.emit("toy-piece", {"id": "x"})
        attempt.settle()
        assert said(some) == {"x": [None]}
        attempt.settle("failed")
        assert said(some) == {}
        with pytest.raises(InputError):
            attempt.settle("elsewhere")
        assert attempt.outcome is Outcome.FAILED


@inside
async def test_attempts_of_a_step_are_numbered_and_named() -> None:
    async with session(MemoryStore()) as some:
        await some.append(TURN, STEP)
        one, two = some.attempt(1, 1), some.attempt(1, 1)
        nine = some.attempt(1, 1, number=9, name="mine")
        assert [(each.name, each.number) for each in (one, two, nine, some.attempt(1, 1))] == [
            ("a1", 1),
            ("a2", 2),
            ("mine", 9),
            ("a3", 10),
        ]
        assert some.attempt(1, 2).number == 1
        assert some.attempts[2] is nine
        with pytest.raises(ConflictError):
            some.attempt(1, 3, name="mine")
        wrong: Any = "1"
        for call in (
            lambda: some.attempt(wrong, 1),
            lambda: some.attempt(1, 1, number=wrong),
            lambda: some.attempt(1, 1, number=-1),
            lambda: some.attempt(1, 1, name=""),
        ):
            with pytest.raises(InputError):
                call()
        for call in (
            lambda: some.attempt(2**53, 1),
            lambda: some.attempt(1, -(10**5000)),
            lambda: some.attempt(1, 1, number=2**53),
        ):
            with pytest.raises(LimitError):
                call()
        assert len(some.attempts) == 5
        assert some.attempt(1, 1).number == 11


@inside
async def test_a_piece_that_is_refused_leaves_no_hole() -> None:
    async with session(MemoryStore()) as some:
        await some.append(TURN, STEP)
        attempt = some.attempt(1, 1)
        attempt.emit("toy-piece", {"id": "x", "v": 1})
        wrong: Any = {"id": "x", "v": {1}}
        with pytest.raises(InputError):
            attempt.emit("toy-more", wrong)
        with pytest.raises(InputError):
            attempt.emit("", {"id": "x"})
        assert attempt.emit("toy-more", {"id": "x", "v": 2}).ordinal == 1
        assert said(some) == {"x": [1, 2]}


@inside
async def test_a_closed_step_takes_its_attempts_along() -> None:
    async with session(MemoryStore()) as some:
        await some.append(TURN, STEP)
        attempt = some.attempt(1, 1)
        attempt.emit("toy-piece", {"id": "x"})
        await some.append(END)
        assert (said(some), some.attempts, some.live) == ({}, [], False)
        attempt.emit("toy-piece", {"id": "x"})
        assert said(some) == {}
        assert some.assembler.anomalies.counts == {"late-delta": 1}
        late = some.attempt(1, 1)
        assert (some.attempts, late.number) == ([], 1)
        attempt.settle("failed")


@inside
async def test_attempts_of_another_process_are_shown_and_counted() -> None:
    async with session(MemoryStore()) as some:
        await some.append(TURN, STEP)
        theirs = [
            Delta("b", 1, 1, "toy-piece", {"id": "x", "v": at}, 4, at, after=2, index=7 + at)
            for at in range(2)
        ]
        for delta in (*theirs, theirs[0]):
            some.receive_delta(delta)
        assert said(some) == {"x": [0, 1]}
        side = some.attempt(1, 1, number=0)
        assert side.emit("toy-piece", {"id": "y"}).index == 9
        assert some.attempt(1, 1).number == 5
        some.receive_settlement("b", "failed")
        assert said(some) == {"y": [None]}


# --- who works on it


@inside
async def test_somebody_works_here_while_they_say_so_or_an_attempt_goes_on() -> None:
    async with session(MemoryStore()) as some:
        assert (some.live, some.assembler.live) == (False, False)
        with some.working():
            with some.working():
                assert some.assembler.live is True
            assert some.assembler.live is True
            await some.append(TURN, STEP)
            attempt = some.attempt(1, 1)
        assert some.assembler.live is True
        attempt.settle()
        assert some.assembler.live is False
        some.elsewhere = None
        assert some.assembler.live is None
        some.elsewhere = True
        assert some.assembler.live is True
        some.elsewhere = False
        with pytest.raises(KeyError), some.working():
            raise KeyError
        assert some.assembler.live is False
        wrong: Any = 1
        with pytest.raises(InputError):
            some.elsewhere = wrong


@inside
async def test_closing_withdraws_what_goes_on_here() -> None:
    some = session(MemoryStore())
    await some.open()
    await some.append(TURN, STEP)
    attempt = some.attempt(1, 1)
    attempt.emit("toy-piece", {"id": "x"})
    async with some.subscribe() as view:
        with some.working():
            await some.close()
        assert [patch.live for patch in [each async for each in view]][-1] is False
    assert attempt.outcome is Outcome.INTERRUPTED
    assert (said_by(some), some.assembler.live, some.live) == ({}, False, False)


# --- reopening after a crash


def crashed(middle: int = 0, extra: tuple[Draft, ...] = ()) -> MemoryStore:
    """A log whose owner died in step 1.1, `middle` events after it had begun."""
    store = MemoryStore()
    store.sync.append("c", [TURN, STEP, *[toy(v) for v in range(middle)], *extra], 0)
    return store


def closing(some: Session) -> Callable[[], Draft | None]:
    """What a business might write."""

    def decide() -> Draft | None:
        orphan = some.orphan
        return orphan and Draft("turn/end", {"turn": orphan.turn, "reason": "interrupted"})

    return decide


@inside
async def test_an_orphan_is_found_however_little_is_loaded() -> None:
    for middle in (0, 1, 100):
        some = session(crashed(middle))
        await some.open(page=1)
        assert some.orphan == some.open_now == Open(1, 1, since=5)
        assert (some.last_turn, some.last_step) == (1, 1)
        await some.close()


@inside
async def test_what_is_written_while_a_session_opens_is_not_overlooked() -> None:
    class Busy(MemoryStore):
        """Another writer goes on, behind the first answer."""

        async def run(self, ask: Callable[[SyncStore], Any]) -> Any:
            answer = await super().run(ask)
            if self.sync.last("c") == 1:
                later = [END, Draft("turn/start", {"turn": 2}, 9), toy(1), toy(2)]
                self.sync.append("c", later, 1)
            return answer

    store = Busy()
    store.sync.append("c", [TURN], 0)
    some = session(store)
    await some.open(page=1)
    assert (some.last_turn, some.open_now) == (2, Open(2, None, 9))
    await some.catch_up()
    await shows_what_is_stored(some)
    await some.close()


@inside
async def test_an_attempt_whose_step_was_closed_unseen_is_over_once_that_is_loaded() -> None:
    gated = GatedStore()
    async with session(gated) as some:
        await some.append(TURN, STEP)
        attempt = some.attempt(1, 1)
        attempt.emit("toy-piece", {"id": "x"})
        gated.sync._append("c", [END], 2)  # as another process does: nobody is told
        await some.open()
        assert (said(some), some.attempts, some.live, some.orphan) == ({}, [], False, None)
        attempt.settle()
        assert some.attempts == []


@inside
async def test_an_orphan_is_closed_once_by_whoever_comes_first() -> None:
    store = crashed(3)
    gated = GatedStore()
    gated.sync = store.sync
    sessions = [session(gated) for _ in range(3)]
    for some in sessions:
        await some.open(page=2)
    gated.before.clear()
    closings = [asyncio.ensure_future(some.decide(closing(some))) for some in sessions]
    await pump()
    gated.before.set()
    written = await asyncio.gather(*closings)
    assert sorted(map(len, written)) == [0, 0, 1]
    assert types(store).count("turn/end") == 1
    for some in sessions:
        await pump()
        assert some.orphan is some.open_now is None
        assert await some.decide(closing(some)) == []
        await shows_what_is_stored(some)
        await some.close()


@inside
async def test_what_somebody_works_on_is_no_orphan() -> None:
    some = session(crashed(), elsewhere=None)
    await some.open()
    assert (some.open_now, some.orphan) == (Open(1, 1, 5), None)
    some.elsewhere = True
    assert some.orphan is None
    some.elsewhere = False
    assert some.orphan is not None
    with some.working():
        assert some.orphan is None
    attempt = some.attempt(1, 1)
    assert some.orphan is None
    attempt.settle()
    assert some.orphan is not None
    await some.close()


@pytest.mark.parametrize(
    ("more", "expected", "last"),
    [
        ([], Open(1, 1, 5), (1, 1)),
        ([Draft("step/end", {"turn": 1, "step": 1})], Open(1, None, 5), (1, 1)),
        ([Draft("step/start", {"turn": 1, "step": 2})], Open(1, 2, 5), (1, 2)),
        ([END], None, (1, 1)),
        ([END, Draft("turn/start", {"turn": 2}, 9)], Open(2, None, 9), (2, 0)),
        ([Draft("step/start", {"turn": 3, "step": 4}, 8)], Open(3, 4, 8), (3, 4)),
        ([Draft("turn/start", {"turn": "no number"})], Open(1, 1, 5), (1, 1)),
    ],
)
def test_the_open_place_is_that_of_the_log(
    more: list[Draft], expected: Open | None, last: tuple[int, int]
) -> None:
    with SyncSession(crashed(0, tuple(more)).sync, "c", Assembler(toys())).open(page=1) as paged:
        assert (paged.open_now, (paged.last_turn, paged.last_step)) == (expected, last)
    with SyncSession(MemoryStore().sync, "c", Assembler(toys())) as live:
        assert (live.open_now, live.last_turn, live.orphan) == (None, 0, None)
        for draft in (TURN, STEP, *more):
            live.append(draft)
        assert (live.open_now, (live.last_turn, live.last_step)) == (expected, last)


# --- what is history and what is news


@inside
async def test_history_is_never_heard_and_news_once() -> None:
    store = MemoryStore()
    await store.append("c", [toy(v) for v in range(5)], 0)
    async with session(store) as one, session(store) as two:
        heard: list[tuple[int, bool]] = []
        stop = one.listen(lambda event, own: heard.append((event.seq, own)))
        await one.open(page=2)
        await one.older()
        assert heard == []
        await one.append(toy(5), toy(6))
        await two.append(toy(7), retry=True)
        await pump()
        await one.catch_up()
        await one.receive(store.sync.read("c")[7])
        assert heard == [(6, True), (7, True), (8, False)]
        stop()
        stop()
        await one.append(toy(8))
        assert len(heard) == 3


def test_who_raises_on_hearing_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        async with session(MemoryStore()) as some:
            heard: list[int] = []

            def bad(event: Event, own: bool) -> None:
                raise KeyError("a secret")

            some.listen(bad)
            some.listen(lambda event, own: heard.append(event.seq))
            assert len(await some.append(toy(1), toy(2))) == 2
            assert heard == [1, 2]

    asyncio.run(run())
    assert "KeyError at event 2" in caplog.text
    assert "secret" not in caplog.text, "logs hold no contents"


# --- following


@inside
async def test_a_follower_who_reconnects_sees_what_a_fresh_load_shows() -> None:
    async with session(MemoryStore()) as some:
        await some.append(TURN, STEP)
        attempt = some.attempt(1, 1)
        attempt.emit("toy-piece", {"id": "x", "v": 1})
        for _ in range(2):
            async with some.subscribe("chat") as view:
                client = view.snapshot.to_json()
                attempt.emit("toy-more", {"id": "x", "v": 2})
                await some.append(toy(3, id="y"))
                some.publisher.flush()
                for patch in takes(view):
                    client = apply(client, patch.to_json())
                assert client == some.view().snapshot().to_json()


HAPPENS = ("append", "append", "rival", "piece", "piece", "settle", "step", "finish", "decide")
HAPPENS += ("older", "evict", "reopen", "receive", "cancel")
OPERATIONS = st.lists(st.tuples(st.sampled_from(HAPPENS), st.integers(0, 5)), max_size=25)


class Life:
    """What can happen to a Session, one thing after another, while somebody follows it."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.store.sync.append("c", [TURN, STEP, *[toy(v, id=str(v)) for v in range(4)]], 0)
        self.turn, self.step = 1, 1
        self.asked: list[str] = []

    async def run(self, operations: list[tuple[str, int]]) -> None:
        self.some = await session(self.store).open(page=3)
        self.rival = await session(self.store, names=counting("b")).open(page=2)
        async with self.some.subscribe() as view:
            client = view.snapshot.to_json()
            for name, number in operations:
                await getattr(self, f"on_{name}")(number)
                await pump()
                self.some.publisher.flush()
                same_as_fresh(self.some.assembler, toys())
            await self.some.catch_up()
            assert self.some.last == self.rival.last == self.store.sync.last("c")
            assert [event.data["v"] for event in self.log() if event.id] == self.asked
            await self.some.close()
            async for patch in view:
                client = apply(client, patch.to_json())
            assert client == self.some.assembler.view().snapshot().to_json()
        await self.rival.close()

    def log(self) -> list[Event]:
        return self.store.sync.read("c")

    def mine(self, number: int) -> Draft:
        """A toy that is to be stored exactly once."""
        self.asked.append(f"v{len(self.asked)}")
        return Draft("toy", {"id": str(number), "v": self.asked[-1]}, id=self.asked[-1])

    async def on_append(self, number: int) -> None:
        await self.some.append(self.mine(number), retry=True)

    async def on_rival(self, number: int) -> None:
        await self.rival.append(toy(number, id=str(number)), retry=True)

    async def on_cancel(self, number: int) -> None:
        mine = self.mine(number)
        append = asyncio.ensure_future(self.some.append(mine, retry=True))
        for _ in range(number):
            await asyncio.sleep(0)
        append.cancel()
        await asyncio.wait([append])
        await self.some.append(mine, retry=True)

    async def on_piece(self, number: int) -> None:
        if not self.some.attempts or number == 0:
            self.some.attempt(self.turn, self.step)
        for attempt in self.some.attempts[-1:]:
            attempt.emit("toy-piece", {"id": str(number), "v": "piece"})

    async def on_settle(self, number: int) -> None:
        for attempt in self.some.attempts[:1]:
            attempt.settle(list(Outcome)[number % 4])

    async def on_step(self, number: int) -> None:
        self.step += 1
        await self.some.append(
            Draft("step/start", {"turn": self.turn, "step": self.step}),
            self.mine(number),
            retry=True,
        )

    async def on_older(self, number: int) -> None:
        await self.some.older(number + 1)

    async def on_evict(self, number: int) -> None:
        self.some.evict(number * 2)

    async def on_reopen(self, number: int) -> None:
        await self.some.open(page=number + 1)

    async def on_decide(self, number: int) -> None:
        """Both would begin the same turn: one does."""
        turn = self.rival.last_turn + 1

        def begin(some: Session) -> Draft | None:
            return Draft("turn/start", {"turn": turn}) if some.last_turn < turn else None

        both = (self.some, self.rival)
        written = await asyncio.gather(*[each.decide(partial(begin, each)) for each in both])
        assert sorted(map(len, written)) == [0, 1]
        self.turn, self.step = turn, 0

    async def on_finish(self, number: int) -> None:
        await self.rival.append(Draft("turn/end", {"turn": self.turn}), retry=True)

    async def on_receive(self, number: int) -> None:
        await self.some.receive(self.log()[-1 - number])


@settings(max_examples=40)
@given(OPERATIONS)
def test_through_it_all_a_session_shows_what_a_fresh_load_shows(
    operations: list[tuple[str, int]],
) -> None:
    asyncio.run(Life().run(operations))


# --- without a loop


def test_without_a_loop_it_is_the_same(tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "c.db", synchronous="normal").sync as store:
        with SyncSession(store, "c", Assembler(toys()), names=counting()) as some:
            some.append(TURN, STEP, toy(1))
            attempt = some.attempt(1, 1)
            attempt.emit("toy-more", {"id": "x", "v": 2})
            assert {op.to_json()["op"] for op in some.flush()["chat"].ops} >= {"put"}
            attempt.settle("abandoned")
            assert said(some) == {"x": [1]}
            store.append("c", [toy(3)], 3)
            with pytest.raises(ConflictError):
                some.append(toy(4))
            some.append(toy(4), retry=True)
            some.receive(store.append("c", [toy(5), toy(6)], 5)[1])
            assert said(some) == {"x": [1, 3, 4, 5, 6]}
        assert store.last("c") == 7, "the store stays open"
        again = SyncSession(store, "c", Assembler(toys())).open(page=2)
        assert said(again) == {"x": [5, 6]}
        assert again.older(3)
        assert not again.older(3)
        assert said(again) == {"x": [1, 3, 4, 5, 6]}
        assert len(again.decide(lambda: again.orphan and END)) == 1
        again.catch_up()
        again.close()


@inside
async def test_both_faces_are_one_session() -> None:
    store = GatedStore()
    some = session(store)
    await some.open()
    store.before.clear()
    waiting = asyncio.ensure_future(some.append(toy("waiting"), retry=True))
    await pump()
    some.sync.append(toy("at once"))
    store.before.set()
    await waiting
    assert said(some) == said(some.sync) == {"x": ["at once", "waiting"]}
    await shows_what_is_stored(some)
    await some.close()


# --- a bad Definition


@inside
async def test_an_engine_that_refuses_loses_nothing_that_is_stored() -> None:
    refuses = True

    def match(item: Any) -> None:
        if refuses:
            raise KeyError("bad")

    bad = Toy("bad", match=match)
    store = MemoryStore()
    some = Session(store, "c", Assembler([*toys(), bad], strict=True))
    await some.open()
    with pytest.raises(AssemblerError):
        await some.append(toy(1), Draft("bad"), toy(2))
    assert (types(store), some.last) == (["toy", "bad", "toy"], 1)
    refuses = False
    await some.append(toy(3))
    assert (some.last, said(some)) == (4, {"x": [1, 2, 3]})
    await some.close()
