"""When a Publisher flushes, which views it keeps active, and how it ends."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from assembler import (
    FRAME,
    NONE,
    NOW,
    Assembler,
    AssemblerError,
    Cadence,
    ConflictError,
    DefinitionError,
    InputError,
)
from assembler.live import Publisher
from tests.engine.support import Toy, delta, event
from tests.live.support import Client, Clock, Said, publisher, say, takes


def revision(live: Publisher) -> int:
    return live.assembler.view().revision


# --- cadence


def test_what_is_urgent_is_flushed_once_per_turn() -> None:
    clock = Clock()
    live = publisher(clock)
    assert say(live, 1) is NOW
    assert say(live, 2, how="frame") is FRAME
    assert say(live, 3, how="none") is NONE
    assert say(live, 4) is NOW
    assert (revision(live), clock.waiting) == (0, 1)
    clock.turn()
    assert (revision(live), clock.waiting) == (1, 0)
    assert live.assembler.view().nodes[0].data["v"] == (None,) * 4


def test_a_frame_gathers_what_comes_within_it() -> None:
    clock = Clock()
    live = publisher(clock)
    say(live, 1, how="frame")
    clock.turn(32)
    say(live, 2, how="frame")
    assert revision(live) == 0
    clock.turn(1)
    assert revision(live) == 1
    clock.turn(33)
    assert (revision(live), clock.waiting) == (1, 0)
    say(live, 3, how="frame")
    clock.turn(33)
    assert revision(live) == 2


def test_the_frame_is_an_option() -> None:
    clock = Clock()
    live = publisher(clock, frame_ms=5)
    say(live, 1, how="frame")
    clock.turn(4)
    assert revision(live) == 0
    clock.turn(1)
    assert revision(live) == 1


def test_what_becomes_urgent_does_not_wait_for_the_frame() -> None:
    clock = Clock()
    live = publisher(clock)
    say(live, 1, how="frame")
    say(live, 2)
    assert clock.waiting == 1
    clock.turn()
    assert (revision(live), clock.waiting) == (1, 0)


def test_what_is_not_urgent_goes_with_the_next_flush() -> None:
    clock = Clock()
    live = publisher(clock)
    say(live, 1, how="none")
    assert clock.waiting == 0
    say(live, 2, how="frame")
    clock.turn(33)
    assert len(live.assembler.view().nodes[0].data["v"]) == 2


def test_cadence_never_delays_the_engine() -> None:
    live = publisher()
    say(live, 1, how="none", v=1)
    assert live.assembler.state("toy", "x") == (1,)
    assert live.flush()["chat"]


def test_a_flush_by_hand_is_not_repeated() -> None:
    clock = Clock()
    live = publisher(clock)
    say(live, 1)
    live.flush()
    assert clock.waiting == 0


def test_every_operation_is_passed_on_and_scheduled() -> None:
    clock = Clock()
    live = publisher(clock, Said(cadence=lambda _match: FRAME))

    def asked(urgent: Cadence) -> Cadence:
        """What is scheduled after an operation must be as urgent as it said."""
        clock.turn()
        soon = live.statistics()["flushes"]
        clock.turn(33)
        late = live.statistics()["flushes"]
        flushed.append({(1, 1): NOW, (0, 1): FRAME, (0, 0): NONE}[soon - told[-1], late - told[-1]])
        told.append(late)
        return urgent

    told, flushed = [0], list[Cadence]()
    said = [
        asked(live.load([event(2), event(3)], True)),
        asked(live.prepend([event(1)], False)),
        asked(live.append(event(4, "turn/start", turn=1))),
        asked(live.emit(delta(after=4))),
        asked(live.append(event(5))),
        asked(live.settle("a", "failed")),
        asked(live.liveness(True)),
        asked(live.evict(3)),
    ]
    assert said == flushed == [NOW, NOW, NONE, FRAME, FRAME, NOW, NOW, NOW]
    assert (live.assembler.window.first, live.assembler.window.last) == (3, 5)


@pytest.mark.parametrize("options", [{"frame_ms": -1}, {"frame_ms": float("nan")}])
def test_a_frame_is_no_time_before(options: Any) -> None:
    with pytest.raises(InputError, match="frame_ms"):
        publisher(**options)


def test_a_queue_holds_something() -> None:
    with pytest.raises(InputError, match="queue_patches_max"):
        publisher(queue_patches_max=0)


# --- in a loop


def test_the_running_loop_is_the_default() -> None:
    async def main() -> list[Any]:
        seen = []
        async with (
            Publisher(Assembler([Said()]), frame_ms=0) as live,
            live.subscribe() as view,
        ):
            for seq, how in enumerate(("now", "frame"), 1):
                say(live, seq, how=how, v=seq)
                patch = await anext(view)
                seen.append([op.to_json()["node"]["data"]["v"] for op in patch.ops])
        return seen

    assert asyncio.run(main()) == [[[1]], [[1, 2]]]


def test_before_a_loop_runs_nothing_is_lost() -> None:
    live = Publisher(Assembler([Said()]))
    say(live, 1, v=1)

    async def main() -> Any:
        async with live.subscribe() as view:
            return view.snapshot.to_json()["nodes"][0]["data"]

    assert asyncio.run(main()) == {"v": [1]}


# --- errors


def refuse(_match: Any, _reader: Any) -> Any:
    raise ZeroDivisionError


def test_an_operation_that_raises_is_as_if_it_had_not_been() -> None:
    clock = Clock()
    live = Publisher(Assembler([Said(start=refuse)], strict=True), scheduler=clock)
    with pytest.raises(DefinitionError):
        say(live, 1)
    with pytest.raises(InputError):
        live.append({"seq": "one"})
    assert clock.waiting == 0
    assert live.assembler.window.last is None


def test_a_flush_that_raises_does_so_in_the_loop_and_is_tried_again() -> None:
    broken = [True]

    def build(context: Any, _scope: Any) -> Any:
        if broken:
            raise ZeroDivisionError
        return Toy.build(Said(), context, _scope)

    async def main() -> None:
        clock = Clock()
        live = Publisher(Assembler([Said(build=build)], strict=True), scheduler=clock)
        async with live.subscribe() as view:
            client = Client(view)
            say(live, 1)
            with pytest.raises(DefinitionError):
                clock.turn()
            with pytest.raises(DefinitionError):
                live.flush()
            broken.clear()
            say(live, 2)
            clock.turn()
            client.catch_up()
            assert client.shown == live.assembler.view().snapshot().to_json()
            assert len(client.shown["nodes"][0]["data"]["v"]) == 2

    asyncio.run(main())


def test_a_flush_that_raises_lets_nobody_half_in() -> None:
    async def main() -> None:
        live = Publisher(
            Assembler([Said(kind="side", target="side", build=refuse)], (), strict=True),
            scheduler=Clock(),
        )
        live.append(event(1, "side"))
        with pytest.raises(DefinitionError):
            async with live.subscribe("side"):
                raise AssertionError
        assert live.statistics()["views"] == {}
        assert live.assembler.statistics()["nodes"] == {}

    asyncio.run(main())


def test_somebody_else_who_flushes_is_found_out() -> None:
    async def main() -> None:
        live = publisher()
        async with live.subscribe() as view, live.subscribe() as slow:
            say(live, 1)
            live.flush()
            assert takes(view)
            say(live, 2)
            live.assembler.flush()
            say(live, 3)
            live.flush()
            with pytest.raises(ConflictError, match="through the publisher"):
                await anext(view)
            assert [patch.revision_to for patch in (await anext(slow),)] == [1]
            with pytest.raises(ConflictError):
                await anext(slow)
            async with live.subscribe() as first, live.subscribe() as again:
                assert first.snapshot.to_json() == live.assembler.view().snapshot().to_json()
                client = Client(again)
                say(live, 4)
                live.flush()
                client.catch_up()
                assert client.shown == live.assembler.view().snapshot().to_json()
        assert live.statistics()["views"] == {}

    asyncio.run(main())


def test_a_newcomer_sees_what_somebody_else_flushed() -> None:
    async def main() -> None:
        live = publisher()
        async with live.subscribe():
            say(live, 1)
            live.assembler.flush()
            async with live.subscribe() as view:
                client = Client(view)
                assert client.shown == live.assembler.view().snapshot().to_json()
                say(live, 2)
                live.flush()
                client.catch_up()
                assert client.shown == live.assembler.view().snapshot().to_json()

    asyncio.run(main())


def test_somebody_else_who_flushes_is_found_out_by_a_slow_one_too() -> None:
    async def main() -> None:
        live = publisher(queue_patches_max=1)
        async with live.subscribe() as full, live.subscribe() as behind:
            for seq in range(1, 4):
                say(live, seq)
                live.flush()
                if seq == 2:
                    takes(full)
            say(live, 4)
            live.assembler.flush()
            live.flush()
            for view, revision in ((full, 3), (behind, 1)):
                assert (await anext(view)).revision_to == revision
                with pytest.raises(ConflictError):
                    await anext(view)

    asyncio.run(main())


@pytest.mark.parametrize("again", [False, True])
def test_a_view_that_somebody_else_deactivates_is_over(again: bool) -> None:
    async def main() -> None:
        live = publisher()
        async with live.subscribe() as view:
            say(live, 1)
            live.flush()
            live.assembler.deactivate("chat")
            if again:
                live.assembler.activate("chat")
            async with live.subscribe() as other:
                client = Client(other)
                say(live, 2)
                live.flush()
                client.catch_up()
                assert client.shown == live.assembler.view().snapshot().to_json()
            await anext(view)
            with pytest.raises(AssemblerError, match="deactivated"):
                await anext(view)

    asyncio.run(main())


# --- views


def test_a_view_is_active_while_somebody_follows_it() -> None:
    side = Said(kind="side", target="side")

    def active() -> list[str]:
        return sorted(live.assembler.statistics()["nodes"])

    live = publisher(Clock(), Said(), side)
    live.append(event(1, "side", v=1))

    async def main() -> None:
        assert active() == ["chat"]
        async with live.subscribe("side") as first:
            assert [node.kind for node in first.snapshot.nodes] == ["side"]
            async with live.subscribe("side"), live.subscribe("chat"):
                assert active() == ["chat", "side"]
            assert active() == ["chat", "side"]
            live.append(event(2, "side", v=2))
            live.flush()
            assert len(takes(first)) == 1
        assert active() == ["chat"]

    asyncio.run(main())


def test_a_view_that_somebody_else_activated_stays_when_its_followers_leave() -> None:
    side = Said(kind="side", target="side")

    async def main() -> None:
        live = publisher(Clock(), Said(), side)
        async with live.subscribe("side"):
            live.assembler.deactivate("side")
            live.assembler.activate("side")
        assert sorted(live.assembler.statistics()["nodes"]) == ["chat", "side"]
        async with live.subscribe("chat"), live.subscribe("side"):
            pass
        assert sorted(live.assembler.statistics()["nodes"]) == ["chat", "side"]

    asyncio.run(main())


# --- the end


def test_closing_gives_everybody_what_is_pending_and_then_the_end() -> None:
    async def main() -> None:
        clock = Clock()
        live = publisher(clock, queue_patches_max=2)
        async with live.subscribe() as view, live.subscribe() as late, live.subscribe() as stalled:
            waiting, idle, behind = Client(view), Client(late), Client(stalled)
            follower = asyncio.create_task(waiting.follow())
            for seq in range(1, 6):
                say(live, seq)
                live.flush()
                idle.catch_up()
                await asyncio.sleep(0)
            say(live, 6, how="none")
            live.close()
            flushes = live.statistics()["flushes"]
            live.close()
            await live.aclose()
            assert live.statistics()["flushes"] == flushes
            await follower
            shown = live.assembler.view().snapshot().to_json()
            live.assembler.append(event(7))  # what becomes of it now is nobody's here
            live.assembler.flush()
            for client in (idle, behind):
                await client.follow()
                await client.follow()  # it stays at its end
            assert [client.shown for client in (waiting, idle, behind)] == [shown] * 3
            assert (clock.waiting, len(behind.patches)) == (0, 1)
        assert live.statistics()["views"] == {}

    asyncio.run(main())


def test_after_the_end_nothing_is_taken() -> None:
    live = publisher()
    view = live.subscribe()
    live.close()
    calls = (
        lambda: say(live, 1),
        lambda: live.load([]),
        lambda: live.emit(delta()),
        lambda: live.prepend([], False),
        lambda: live.evict(1),
        lambda: live.settle("a", "failed"),
        lambda: live.liveness(True),
        live.flush,
        lambda: asyncio.run(view.__aenter__()),  # type: ignore[arg-type]
    )
    for call in calls:
        with pytest.raises(AssemblerError, match="closed"):
            call()
    assert live.assembler.window.last is None


def test_closing_ends_subscriptions_even_when_its_flush_raises() -> None:
    async def main() -> None:
        live = Publisher(Assembler([Said(build=refuse)], strict=True), scheduler=Clock())
        async with live.subscribe() as view:
            say(live, 1)
            with pytest.raises(DefinitionError):
                live.close()
            with pytest.raises(StopAsyncIteration):
                await anext(view)

    asyncio.run(main())


# --- counting


def test_an_operator_sees_how_many_follow_and_how_slowly() -> None:
    async def main() -> None:
        live = publisher(queue_patches_max=2)
        async with live.subscribe() as view, live.subscribe() as slow:
            for seq in range(1, 5):
                say(live, seq)
                live.flush()
                takes(view)
            chat = {"subscribers": 2, "behind": 1, "queued": 2}
            told = {"views": {"chat": chat}, "flushes": 6, "patches": 4, "merges": 0}
            assert live.statistics() == told
            takes(slow)
            chat = {"subscribers": 2, "behind": 0, "queued": 0}
            assert live.statistics() == {**told, "views": {"chat": chat}, "merges": 1}

    asyncio.run(main())
