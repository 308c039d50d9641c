"""Descriptions in a backend: begun when the model has written a call, shown when it asks."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from assembler import ConflictError
from assembler.engine.values import thaw
from assembler.stores import MemoryStore
from definitions import AttemptLost, Conversation
from definitions.describer import Job
from tests.definitions.backend.support import (
    answer,
    backend,
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


class Desk:
    """Who makes descriptions: each waits until it is told its text."""

    def __init__(self) -> None:
        self.made: list[tuple[str, Any]] = []
        self.waiting: dict[str, asyncio.Future[str]] = {}
        self.cancelled: list[str] = []

    async def __call__(self, job: Job) -> str:
        self.made.append((job.call_id, job.input))
        waits = self.waiting[job.call_id] = asyncio.get_running_loop().create_future()
        try:
            return await waits
        except asyncio.CancelledError:
            self.cancelled.append(job.call_id)
            raise


def description(some: Conversation, call_id: str = "u1") -> Any:
    node = some.view()[f"tool:{call_id}"]
    assert node is not None
    return thaw(node.data["description"])


CALLS = [call("u1", at="sky"), call("u2", at="sea", index=2)]


@inside
async def test_both_calls_are_described_while_the_model_still_writes() -> None:
    desk = Desk()
    async with backend(MemoryStore(), describe=desk, describes={"look"}) as conversations:
        some = await conversations.open("c")
        async with some.turn("a") as turn, turn.step() as step:
            async with step.attempt(provider="anthropic") as attempt:
                chunks = message(*CALLS)
                for chunk in chunks[:-2]:
                    attempt.feed(chunk)
                await pump()
                assert desk.made == [("u1", {"at": "sky"}), ("u2", {"at": "sea"})]
                assert [hint.call_id for hint in attempt.hints()] == ["u1", "u2"]
                for chunk in chunks[-2:]:
                    attempt.feed(chunk)
            desk.waiting["u2"].set_result("Look at the sea.")
            await pump()
            async with step.dispatch(step.calls[1]) as tool:
                asking = asyncio.ensure_future(tool.ask())
                await pump()
                shown = description(some, "u2")
                assert (shown["status"], shown["text"]) == ("ready", "Look at the sea.")
                await some.answer("u2", "1", "allow")
                await asking
                tool.result("waves")
            assert len(desk.made) == 2, "nothing was described again"
    assert desk.cancelled == ["u1"], "nobody asked, and the turn is over"


@inside
async def test_an_approval_of_another_input_shows_no_description_of_the_first() -> None:
    desk = Desk()
    async with backend(MemoryStore(), describe=desk, describes={"look"}) as conversations:
        some = await conversations.open("c")

        async def tool(dispatch: Any) -> None:
            desk.waiting["u1"].set_result("Look at the sky.")
            await pump()
            asking = asyncio.ensure_future(dispatch.ask({"at": "the sun"}))
            await pump()
            assert description(some)["text"] is None
            assert desk.made == [("u1", {"at": "sky"}), ("u1", {"at": "the sun"})]
            desk.waiting["u1"].set_result("Look at the sun.")
            await pump()
            shown = description(some)
            assert (shown["text"], shown["input"]) == ("Look at the sun.", {"at": "the sun"})
            await some.answer("u1", "1", "allow")
            await asking
            dispatch.result("bright")

        await answer(some, [message(CALLS[0]), message(text("done"))], tool=tool)
        check_shown(some)


@inside
async def test_a_call_that_asks_nothing_is_described_for_nothing_once() -> None:
    desk, store = Desk(), MemoryStore()
    async with backend(store, describe=desk, describes=lambda name: name == "look") as opened:
        some = await opened.open("c")
        await answer(some, [message(CALLS[0]), message(text("done"))])
    assert (len(desk.made), desk.cancelled) == (1, ["u1"])
    assert types(store).count("description/started") == 1
    assert types(store).count("description/withdrawn") == 1
    check_log(log(store))


@inside
async def test_what_is_not_named_is_not_described() -> None:
    desk = Desk()
    async with backend(MemoryStore(), describe=desk) as conversations:
        await answer(await conversations.open("c"), [message(CALLS[0]), message(text("done"))])
    assert desk.made == []


@inside
async def test_an_attempt_that_is_lost_takes_its_descriptions_along() -> None:
    desk, store = Desk(), MemoryStore()
    async with backend(store, describe=desk, describes={"look"}) as conversations:
        some = await conversations.open("c")
        async with some.turn("a") as turn, turn.step() as step:
            with pytest.raises(AttemptLost):
                async with step.attempt(provider="anthropic") as attempt:
                    for chunk in message(CALLS[0], end=False):
                        attempt.feed(chunk)
                    await pump()
            await pump()
            assert desk.cancelled == ["u1"]
            assert "description/withdrawn" in types(store)


@inside
async def test_a_description_asks_and_is_answered() -> None:
    heard = []

    async def describe(job: Job) -> str:
        heard.append(await job.ask("which sky?"))
        return f"Look at the {heard[0]} sky."

    store = MemoryStore()
    async with backend(store, describe=describe, describes={"look"}) as conversations:
        some = await conversations.open("c")

        async def tool(dispatch: Any) -> None:
            await pump()
            shown = description(some)
            assert shown["status"] == "questions-open"
            inquiry = shown["questions"][0]["inquiry_id"]
            some.reply(inquiry, "night")
            await pump()
            assert description(some)["text"] == "Look at the night sky."
            with pytest.raises(ConflictError):
                some.reply(inquiry, "day")
            dispatch.result("stars")

        await answer(some, [message(CALLS[0]), message(text("done"))], tool=tool)
    assert heard == ["night"]


@inside
async def test_history_starts_no_description_and_a_remembered_refusal_skips_it() -> None:
    desk, store = Desk(), MemoryStore()
    async with backend(store, describe=desk, describes={"look"}) as conversations:
        some = await conversations.open("c")

        async def refused(dispatch: Any) -> None:
            asking = asyncio.ensure_future(dispatch.ask())
            await pump()
            await some.answer("u1", "1", "deny", remember=True)
            await asking

        await answer(some, [message(CALLS[0]), message(text("done"))], tool=refused)
    made = len(desk.made)
    async with backend(store, "m", describe=desk, describes={"look"}) as conversations:
        some = await conversations.open("c")
        await pump()
        assert len(desk.made) == made

        async def asks(dispatch: Any) -> None:
            assert not (await dispatch.ask()).allowed

        await answer(some, [message(CALLS[1]), message(text("done"))], tool=asks)
    assert len(desk.made) == made


@inside
async def test_an_answer_that_came_first_ends_the_description() -> None:
    desk = Desk()
    async with backend(MemoryStore(), describe=desk, describes={"look"}) as conversations:
        some = await conversations.open("c")

        async def asks(dispatch: Any) -> None:
            asking = asyncio.ensure_future(dispatch.ask())
            await pump()
            await some.answer("u1", "1", "allow")
            await asking
            await pump()
            assert desk.cancelled == ["u1"], "before the call has its result"
            dispatch.result("stars")

        await answer(some, [message(CALLS[0]), message(text("done"))], tool=asks)


@inside
async def test_a_dispatch_that_is_cancelled_while_it_asks_leaves_nothing_described() -> None:
    desk, store = Desk(), MemoryStore()
    async with backend(store, describe=desk, describes={"look"}) as conversations:
        some = await conversations.open("c")

        async def asks(dispatch: Any) -> None:
            asking = asyncio.ensure_future(dispatch.ask())
            await pump()
            assert description(some)["status"] == "describing"
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            raise asyncio.CancelledError

        async def dispatched() -> None:
            async with step.dispatch(step.calls[0]) as tool:
                await asks(tool)

        async with some.turn("a") as turn, turn.step() as step:
            async with step.attempt(provider="anthropic") as attempt:
                for chunk in message(CALLS[0]):
                    attempt.feed(chunk)
            with pytest.raises(asyncio.CancelledError):
                await dispatched()
            await pump()
            assert desk.cancelled == ["u1"], "before the turn is over"
            assert description(some)["status"] == "withdrawn"
