"""Stopped anywhere: cancelled at every place where it waits, once and again, closed, or let go."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from definitions import Conversation
from definitions.backend import Dispatch
from tests.definitions.backend.support import (
    Awaiting,
    WaitingStore,
    answer,
    backend,
    boundaries,
    call,
    check_log,
    check_shown,
    inside,
    log,
    message,
    pump,
    text,
    types,
)

SCRIPT = [
    message(text("I will"), call("u1", at="sky"), end=False),
    message(text("I look"), call("u1", at="sky"), call("u2", index=2)),
    [*message(text("nearly"), end=False), OSError("reset")],
    message(text("done")),
]


async def asks(tool: Dispatch) -> None:
    tool.output("looking")
    await tool.ask()
    tool.result("seen")


async def allowing(some: Conversation) -> None:
    """Somebody who allows everything, in another task."""
    heard: asyncio.Queue[Any] = asyncio.Queue()
    some.session.listen(lambda event, own: heard.put_nowait(event))
    while True:
        event = await heard.get()
        if event.type == "permission/request":
            await some.answer(event.data["call_id"], event.data["request_id"], "allow")


async def struck(
    strike: Callable[[int], None],
) -> tuple[WaitingStore, Awaiting, BaseException | None]:
    """Run the whole script; `strike` may cancel it. What was stored and shown is right."""
    store = WaitingStore()
    error: BaseException | None = None
    async with backend(store) as conversations:
        some = await conversations.open("c")
        allows = asyncio.ensure_future(allowing(some))
        await asyncio.sleep(0)
        run = Awaiting(answer(some, SCRIPT, tool=asks), strike)

        async def runs() -> None:
            await run

        task = asyncio.ensure_future(runs())
        await asyncio.wait([task])
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        for node in some.view():
            assert node.data.get("stage") != "preparing", "when it ended, nothing was preparing"
        allows.cancel()
        await pump()
        check_log(log(store))
        check_shown(some)
        assert some.statistics()["session"]["attempts"] == 0
        assert some.statistics()["waiting_questions"] == 0
        assert some.statistics()["session"]["working"] == 0
        await answer(some, [message(text("again"))])
        check_log(log(store))
        check_shown(some)
    return store, run, error


def cancelling(at: int, *, again: bool) -> Callable[[int], None]:
    def strike(n: int) -> None:
        if n == at or (again and n > at):
            task = asyncio.current_task()
            assert task is not None
            task.cancel()

    return strike


@inside
async def test_the_script_as_a_whole() -> None:
    store, run, error = await struck(lambda n: None)
    assert error is None
    assert run.waits > 40
    assert types(store).count("llm/retry") == 2
    assert types(store).count("tool/result") == 2
    assert boundaries(store)[-5:-4] == ["completed"]


@pytest.mark.parametrize("again", [False, True], ids=["once", "again and again"])
def test_cancelled_wherever_it_waits(again: bool) -> None:
    """The log stays in order, the turn ends as cancelled, and what was read stays."""

    async def whole() -> int:
        _, run, _ = await struck(lambda n: None)
        return run.waits

    waits = asyncio.run(whole())
    ends: set[str] = set()
    kept = 0
    for at in range(1, waits + 1):
        store, _run, error = asyncio.run(struck(cancelling(at, again=again)))
        assert isinstance(error, asyncio.CancelledError), at
        reason = [each for each in boundaries(store) if not each.startswith(("step", "turn"))][0:-1]
        assert reason in (["cancelled"], ["completed"], []), at
        ends.update(reason)
        said = [event for event in log(store) if event.type == "assistant/message"]
        kept += sum(event.data.get("interrupted") is True for event in said)
        if reason == ["completed"]:
            assert at > waits - 4, "only at its very end"
    assert "cancelled" in ends
    assert kept > 5, "often somebody had read something"


def test_a_question_that_nobody_answers_is_forgotten_wherever_its_asker_is_stopped() -> None:
    async def asks_alone(tool: Dispatch) -> None:
        await tool.ask()

    async def run(at: int) -> bool:
        store = WaitingStore()
        async with backend(store) as conversations:
            some = await conversations.open("c")
            stopped = Awaiting(
                answer(some, [SCRIPT[1]], tool=asks_alone), cancelling(at, again=False)
            )

            async def runs() -> None:
                await stopped

            task = asyncio.ensure_future(runs())
            for _ in range(5):
                await pump()
            asked = not task.done()
            task.cancel()
            await asyncio.wait([task])
            await pump()
            assert some.statistics()["waiting_questions"] == 0, at
            check_log(log(store))
            check_shown(some)
        return asked

    at = 1
    while not asyncio.run(run(at)):
        at += 1
    assert at > 10


@inside
async def test_what_people_have_read_stays_and_the_rest_goes() -> None:
    store = WaitingStore()
    async with backend(store) as conversations:
        some = await conversations.open("c")
        async with some.turn("a") as turn:
            with pytest.raises(asyncio.CancelledError):
                async with turn.step() as step, step.attempt(provider="anthropic") as attempt:
                    for chunk in message(
                        text("hm", type="thinking"), text("I lo", 1), call("u1", index=2), end=False
                    ):
                        attempt.feed(chunk)
                    assert some.view()["tool:u1"].data["stage"] == "preparing"
                    raise asyncio.CancelledError
        said = next(event for event in log(store) if event.type == "assistant/message")
        assert said.data["interrupted"] is True
        assert said.data["stop_reason"] == "cancelled"
        assert [block["type"] for block in said.data["content"]] == ["reasoning", "text"]
        assert [node.key for node in some.view()][1:] == ["assistant:1.1", "turn-tail:1"]
        check_shown(some)


@inside
async def test_when_stopped_the_text_never_goes_away() -> None:
    store = WaitingStore()
    async with backend(store) as conversations:
        some = await conversations.open("c")
        shown: list[bool] = []
        task: asyncio.Task[None]

        async def follow() -> None:
            async with some.subscribe() as view:
                async for patch in view:
                    for op in patch.to_json()["ops"]:
                        key = op.get("key") or op.get("node", {}).get("key")
                        if key == "assistant:1.1":
                            shown.append(op["op"] != "remove")

        async def run() -> None:
            async with some.turn("a") as turn, turn.step() as step:
                async with step.attempt(provider="anthropic") as attempt:
                    for chunk in message(text("I look"), end=False):
                        attempt.feed(chunk)
                    await asyncio.Event().wait()

        follows = asyncio.ensure_future(follow())
        task = asyncio.ensure_future(run())
        await pump()
        task.cancel()
        await asyncio.wait([task])
        await pump()
        assert shown
        assert all(shown)
        follows.cancel()


@inside
async def test_a_cancelled_attempt_may_be_tried_again() -> None:
    """Somebody's own time limit: for the attempt a cancellation, for the step an error."""
    store = WaitingStore()
    async with backend(store) as conversations:
        some = await conversations.open("c")
        async with some.turn("a") as turn, turn.step() as step:
            try:
                async with asyncio.timeout(0), step.attempt(provider="anthropic") as attempt:
                    for chunk in message(text("slow"), end=False):
                        attempt.feed(chunk)
                    await asyncio.Event().wait()
            except TimeoutError as lost:
                await step.retry(lost)
            async with step.attempt(provider="anthropic") as attempt:
                for chunk in message(text("quick")):
                    attempt.feed(chunk)
        assert some.view()["assistant:1.1"].data["blocks"][0]["text"] == "quick"
        sent = some.messages("anthropic")
        assert "slow" not in str(sent)
        assert "quick" in str(sent)
        check_log(log(store))
        check_shown(some)


@inside
async def test_attempts_that_are_cancelled_again_and_again_leave_one_message() -> None:
    store = WaitingStore()
    async with backend(store) as conversations:
        some = await conversations.open("c")
        with pytest.raises(TimeoutError):
            async with some.turn("a") as turn, turn.step() as step:
                for said in ("one", "two", "three"):
                    try:
                        async with (
                            asyncio.timeout(0),
                            step.attempt(provider="anthropic") as attempt,
                        ):
                            for chunk in message(text(said), end=False):
                                attempt.feed(chunk)
                            await asyncio.Event().wait()
                    except TimeoutError as lost:
                        await step.retry(lost, at_most=3)
        check_log(log(store))
        check_shown(some)
        assert some.session.assembler.statistics()["anomalies"] == {}


@pytest.mark.parametrize("how", ["closed", "let go"])
def test_a_run_that_is_closed_or_let_go_wherever_it_waits(how: str) -> None:
    """Nothing stays preparing from that moment on, and the turn is closed as soon as can be."""

    async def run(at: int) -> bool:
        store = WaitingStore()
        async with backend(store) as conversations:
            some = await conversations.open("c")
            allows = asyncio.ensure_future(allowing(some))
            await asyncio.sleep(0)
            stands = answer(some, SCRIPT, tool=asks)
            over = await _send(stands, at)
            if how == "closed":
                stands.close()
            else:
                del stands
            if not over:
                for node in some.view():
                    assert node.data.get("stage") != "preparing", at
            await pump()
            allows.cancel()
            await pump()
            check_log(log(store), closed=False)
            await answer(some, [message(text("again"))])
            check_log(log(store))
            check_shown(some)
        return over

    at = 1
    while not asyncio.run(run(at)):
        at += 1
    assert at > 40


async def _send(coroutine: Coroutine[Any, Any, None], times: int) -> bool:
    """Drive it by hand to its `times`-th wait; whether it ended before."""
    for _ in range(times):
        try:
            waited = coroutine.send(None)
        except StopIteration:
            return True
        await asyncio.sleep(0)
        while waited is not None and not waited.done():
            await asyncio.sleep(0)
        if waited is not None:
            waited._asyncio_future_blocking = False
    return False


@inside
async def test_what_is_entered_by_hand_and_let_go_is_withdrawn() -> None:
    store = WaitingStore()
    async with backend(store) as conversations:
        some = await conversations.open("c")
        turn = await some.turn("a").__aenter__()
        step = await turn.step().__aenter__()
        attempt = await step.attempt(provider="anthropic").__aenter__()
        for chunk in message(text("I look"), call("u1"), end=False):
            attempt.feed(chunk)
        assert "tool:u1" in some.view()
        del attempt
        gc.collect()
        await pump()
        assert "tool:u1" not in some.view()
        del turn, step
        gc.collect()
        await pump()
        assert some.statistics()["session"]["working"] == 0
        await answer(some, [message(text("again"))])
        assert boundaries(store)[:4] == ["turn", "step start", "interrupted", "turn"]
        check_log(log(store))
        check_shown(some)
