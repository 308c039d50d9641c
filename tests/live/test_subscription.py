"""What one subscriber sees, how slowly it may look, and that nothing of it stays behind."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Any

import pytest

from assembler import AssemblerError, Text, apply, codec
from assembler.engine.definition import Node
from assembler.live import Publisher, Subscription
from tests.engine.support import Band, delta, event
from tests.live.support import Client, Clock, Said, publisher, say, take, takes

run: Callable[[Coroutine[Any, Any, None]], None] = asyncio.run


def shown(live: Publisher) -> Any:
    return live.assembler.view().snapshot().to_json()


def growing() -> Said:
    """One Node whose text grows with every delta."""
    return Said(
        start=lambda match, _reader: Text(match.data["v"]),
        update=lambda text, match: text.append(match.data["v"]),
        build=lambda context, _scope: Node("toy", context.id, {"text": context.state}),
    )


# --- a snapshot, then patches


def test_a_snapshot_then_patches_without_gap_or_repeat() -> None:
    async def main() -> None:
        live = publisher()
        say(live, 1, v="before")
        live.flush()
        say(live, 2, v="not flushed yet")
        async with live.subscribe() as view:
            assert view.snapshot.nodes[0].data["v"] == ("before", "not flushed yet")
            assert take(view) is None
            revisions = [view.snapshot.revision]
            for seq in range(3, 6):
                say(live, seq)
                live.flush()
                live.flush()  # nothing changed: nothing is sent
            for patch in takes(view):
                assert patch.revision_from == revisions[-1]
                revisions.append(patch.revision_to)
            assert revisions == [2, 3, 4, 5]

    run(main())


def test_the_example_of_the_contract() -> None:
    sent: list[Any] = []

    async def send(what: Any) -> None:
        sent.append(what)

    async def watch(live: Publisher) -> None:
        async with live.subscribe("chat") as view:
            await send(view.snapshot.to_json())
            async for patch in view:
                await send(patch.to_json())

    async def main() -> None:
        live = publisher()
        task = asyncio.create_task(watch(live))
        await asyncio.sleep(0)
        say(live, 1)
        live.close()
        await task
        assert apply(*sent) == shown(live)

    run(main())


def test_the_bytes_are_made_once_for_all() -> None:
    async def main() -> None:
        live = publisher()
        async with live.subscribe() as one, live.subscribe() as other:
            assert one.snapshot.encoded is other.snapshot.encoded
            say(live, 1)
            live.flush()
            mine, theirs = await anext(one), await anext(other)
            assert mine.encoded is theirs.encoded
            assert mine.encoded == codec.encode(mine.to_json())
            assert one.snapshot.encoded == codec.encode(other.snapshot.to_json())

    run(main())


def test_it_waits_until_something_comes() -> None:
    async def main() -> None:
        live = publisher()
        async with live.subscribe() as view:
            waiting = asyncio.create_task(anext(view))  # type: ignore[arg-type]
            await asyncio.sleep(0)
            assert not waiting.done()
            for seq in (1, 2):
                say(live, seq)
                live.flush()
            assert (await waiting).revision_to == 1  # type: ignore[attr-defined]
            assert (await anext(view)).revision_to == 2

    run(main())


def test_it_is_entered_once_and_read_by_one() -> None:
    async def main() -> None:
        live = publisher()
        view = live.subscribe()
        with pytest.raises(AssemblerError, match="before it is entered"):
            _ = view.snapshot
        async with view:
            first = asyncio.create_task(anext(view))  # type: ignore[arg-type]
            await asyncio.sleep(0)
            with pytest.raises(AssemblerError, match="another task"):
                take(view)
            say(live, 1)
            live.flush()
            assert (await first).revision_to == 1  # type: ignore[attr-defined]
        with pytest.raises(StopAsyncIteration):
            await anext(view)
        with pytest.raises(AssemblerError, match="entered once"):
            async with view:
                pass

    run(main())


# --- slow ones


@pytest.mark.parametrize("most", [1, 2, 5])
def test_a_slow_one_gets_one_patch_for_many(most: int) -> None:
    async def main() -> None:
        live = publisher(queue_patches_max=most)
        async with live.subscribe() as view:
            client = Client(view)
            for seq in range(1, most + 1):
                say(live, seq)
                live.flush()
            client.catch_up()
            assert len(client.patches) == most  # its queue is just large enough
            for seq in range(most + 1, 3 * most + 1):
                say(live, seq, id=f"n{seq % 3}", band="b")
                live.flush()
            client.catch_up()
            assert len(client.patches) == most + (1 if most > 0 else 0)
            assert client.shown == shown(live)
            assert live.statistics()["merges"] == 1
            say(live, 3 * most + 1)
            live.flush()
            client.catch_up()
            assert client.shown == shown(live)
            assert live.statistics()["merges"] == 1

    run(main())


def test_one_that_takes_in_time_is_not_behind() -> None:
    async def main() -> None:
        live = publisher(queue_patches_max=2)
        async with live.subscribe() as view:
            client = Client(view)
            for seq in range(1, 6):
                say(live, seq)
                live.flush()
                if seq > 1:
                    client.take(await anext(view))
            client.catch_up()
            assert len(client.patches) == 5
            assert live.statistics()["merges"] == 0

    run(main())


def test_growing_text_is_sent_as_text_to_a_slow_one_too() -> None:
    async def main() -> None:
        live = publisher(Clock(), growing(), queue_patches_max=3)
        live.emit(delta(v="0"))
        async with live.subscribe() as view:
            for ordinal in range(1, 100):
                live.emit(delta(ordinal, v=f" {ordinal}"))
                live.flush()
            (patch,) = takes(view)
            (op,) = patch.to_json()["ops"]
            assert (op["op"], op["at"]) == ("text", 1)
            assert op["text"] == "".join(f" {ordinal}" for ordinal in range(1, 100))

    run(main())


def test_what_went_and_came_again_is_removed_for_a_slow_one_too() -> None:
    async def main() -> None:
        live = publisher(queue_patches_max=1)
        live.emit(delta(number=0, v=1))
        async with live.subscribe() as view:
            say(live, 1, id="other")
            live.flush()
            for call in (
                lambda: live.settle("a", "failed"),
                lambda: live.emit(delta(attempt="b", number=0, index=5, v=1)),
            ):
                call()
                live.flush()
            (patch,) = takes(view)
            ops = [op.to_json()["op"] for op in patch.ops if op.key == "toy:x"]
            assert ops == ["remove", "put"]

    run(main())


def test_one_that_is_stalled_for_ever_costs_nobody_anything() -> None:
    """A hundred follow; what the stalled one holds does not grow, however long it goes on."""

    async def main() -> None:
        live = publisher(queue_patches_max=8)
        async with AsyncExitStack() as stack:
            stalled = Client(await stack.enter_async_context(live.subscribe()))
            views = [await stack.enter_async_context(live.subscribe()) for _ in range(99)]
            clients = [Client(view) for view in views]
            held = []
            for seq in range(1, 401):
                say(live, seq, id=f"n{seq}", v="x" * 100)
                if seq > 10:
                    live.evict(seq - 9)
                live.flush()
                clients[0].catch_up()
                for view in views[1:]:
                    assert len(takes(view)) == 1
                if seq in (20, 400):
                    held.append(holdings(stalled.view))
                    chat = {"subscribers": 100, "behind": 1, "queued": 8}
                    assert live.statistics()["views"]["chat"] == chat
            assert held[0] == held[1]
            assert held[0]["nodes"] < 20
            assert len(clients[0].patches) == 400
            stalled.catch_up()
            assert len(stalled.patches) == 1
            for client in (stalled, clients[0]):
                assert client.shown == shown(live)
            # Its queue, and the difference: however much it missed.
            assert len(stalled.patches[0].encoded) < 3 * len(codec.encode(shown(live)))

    run(main())


def holdings(view: Subscription) -> dict[str, int]:
    """How much can be reached from what a subscriber has not taken: its Patches and its base."""
    queue = view._queue
    assert queue is not None
    assert queue.base is not None
    base = queue.base
    nodes = {id(node) for node in base.snapshot.nodes}
    nodes |= {id(op.node) for patch in queue.patches for op in patch.ops if hasattr(op, "node")}
    ops = sum(len(patch.ops) for patch in queue.patches)
    cached = [each._encoded for each in (*queue.patches, base.snapshot)]
    return {
        "patches": len(queue.patches),
        "ops": ops,
        "nodes": len(nodes),
        "went": len(base.went),
        "bytes": sum(len(each or b"") for each in cached),
    }


# --- leaving


def test_one_that_fails_does_not_stop_the_others() -> None:
    async def fail(view: Subscription) -> None:
        async for _ in view:
            raise ZeroDivisionError

    async def main() -> None:
        live = publisher()
        async with live.subscribe() as bad, live.subscribe() as good:
            task, client = asyncio.create_task(fail(bad)), Client(good)
            follower = asyncio.create_task(client.follow())
            await asyncio.sleep(0)
            for seq in (1, 2):
                say(live, seq)
                live.flush()
                await asyncio.sleep(0)
            with pytest.raises(ZeroDivisionError):
                await task
            live.close()
            await follower
            assert [patch.revision_to for patch in client.patches] == [1, 2]

    run(main())


@pytest.mark.parametrize("news", [False, True])
def test_cancelling_a_wait_loses_nothing(news: bool) -> None:
    async def main() -> None:
        live = publisher()
        async with live.subscribe() as view:
            waiting = asyncio.create_task(anext(view))  # type: ignore[arg-type]
            await asyncio.sleep(0)
            if news:  # it is on its way when the task is cancelled
                say(live, 1)
                live.flush()
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            if not news:
                say(live, 1)
                live.flush()
            assert [patch.revision_to for patch in takes(view)] == [1]

    run(main())


async def reads(view: Subscription) -> None:
    async for _ in view:
        pass


async def reads_nothing(_view: Subscription) -> None:
    await asyncio.get_running_loop().create_future()


async def reads_one(view: Subscription) -> None:
    async for _ in view:
        break


async def fails(view: Subscription) -> None:
    await anext(view)
    raise ZeroDivisionError


@pytest.mark.parametrize("patches", [0, 1, 5])
@pytest.mark.parametrize("how", [reads, reads_nothing, reads_one, fails])
def test_whoever_leaves_leaves_nothing_behind(
    how: Callable[[Subscription], Coroutine[Any, Any, None]], patches: int
) -> None:
    gone: list[weakref.ref[Any]] = []

    async def follow(live: Publisher) -> None:
        async with live.subscribe("side") as view:
            gone.extend((weakref.ref(view), weakref.ref(view._queue)))
            await how(view)

    async def main() -> None:
        clock = Clock()
        live = publisher(clock, Said(), Said("side", target="side"), Band(), queue_patches_max=2)
        task = asyncio.create_task(follow(live))
        await asyncio.sleep(0)
        for seq in range(1, patches + 1):
            live.append(event(seq, "side"))
            live.flush()
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled() or isinstance(task.exception(), ZeroDivisionError | None)
        del task
        gc.collect()
        assert [ref() for ref in gone] == [None, None]
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert clock.waiting == 0
        assert live.statistics()["views"] == {}
        assert sorted(live.assembler.statistics()["nodes"]) == ["chat"]

    run(main())


def test_leaving_ends_the_wait_of_another_task() -> None:
    async def main() -> None:
        live = publisher()
        async with live.subscribe() as view:
            task = asyncio.create_task(reads(view))
            await asyncio.sleep(0)
        await task

    run(main())


def test_a_generator_around_it_may_be_left_at_any_time() -> None:
    async def patches(live: Publisher) -> AsyncIterator[bytes]:
        async with live.subscribe() as view:
            yield view.snapshot.encoded
            async for patch in view:
                yield patch.encoded

    async def main() -> None:
        live = publisher()
        stream = patches(live)
        await anext(stream)
        say(live, 1)
        live.flush()
        await anext(stream)
        assert live.statistics()["views"]["chat"]["subscribers"] == 1
        await stream.aclose()  # type: ignore[attr-defined]
        assert live.statistics()["views"] == {}

    run(main())


def test_a_publisher_that_nobody_holds_goes() -> None:
    async def main() -> weakref.ref[Any]:
        live = Publisher(publisher().assembler)
        async with live.subscribe() as view:
            say(live, 1)
            await asyncio.sleep(0)
            takes(view)
        live.close()
        return weakref.ref(live)

    ref = asyncio.run(main())
    gc.collect()
    assert ref() is None
