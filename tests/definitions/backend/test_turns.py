"""Turns and steps: what is stored, how they end, when they are done, who may begin one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from assembler import AssemblerError, ConflictError, InputError, LimitError
from assembler.stores import MemoryStore
from definitions.backend import Step
from tests.definitions.backend.support import (
    answer,
    backend,
    boundaries,
    call,
    check_log,
    check_shown,
    inside,
    log,
    message,
    raw_call,
    text,
    types,
)

HELLO = message(text("hello"))


async def holds(step: Step, chunks: Any = HELLO) -> None:
    async with step.attempt(provider="anthropic") as attempt:
        for chunk in chunks:
            attempt.feed(chunk)


@inside
async def test_a_turn_from_its_input_to_its_end() -> None:
    store = MemoryStore()
    async with backend(store) as conversations:
        some = await conversations.open("c")
        await answer(some, [message(text("let me see"), call("u1", at="sky")), HELLO])
        assert types(store) == [
            "turn/start",
            "user/message",
            "step/start",
            "assistant/message",
            "tool/call",
            "tool/result",
            "step/end",
            "step/start",
            "assistant/message",
            "step/end",
            "turn/end",
        ]
        said = log(store)[1].data
        assert said["content"][0]["text"] == "hello"
        assert "source" not in said
        assert log(store)[-1].data == {"turn": 1, "reason": "completed"}
        check_log(log(store))
        check_shown(some)


@inside
async def test_an_input_has_the_id_and_the_source_that_it_is_given() -> None:
    store = MemoryStore()
    async with backend(store) as conversations:
        some = await conversations.open("c")
        blocks = [{"type": "file", "media_type": "image/png", "url": "a.png"}]
        await answer(some, [HELLO], blocks, message_id="m9", source={"kind": "timer"})
        assert log(store)[1].data == {
            "message_id": "m9",
            "content": (blocks[0],),
            "source": {"kind": "timer"},
        }
        await answer(some, [HELLO], None)
        assert types(store).count("user/message") == 1, "nobody said anything"
        with pytest.raises(InputError):
            some.turn(b"bytes")


@inside
async def test_how_a_turn_ends() -> None:
    store = MemoryStore()
    async with backend(store) as conversations:
        some = await conversations.open("c")
        with pytest.raises(KeyError):
            async with some.turn("a") as turn, turn.step():
                raise KeyError("gone")
        assert turn.reason == "error"
        assert log(store)[-1].data["error"] == {"name": "KeyError", "message": "'gone'"}
        with pytest.raises(asyncio.CancelledError):
            async with some.turn("b") as turn, turn.step():
                raise asyncio.CancelledError
        with pytest.raises(KeyboardInterrupt):
            async with some.turn("c"):
                raise KeyboardInterrupt
        async with some.turn("d") as turn:
            assert turn.reason is None
        closed = ["turn", "step start", "step end"]
        assert boundaries(store) == [
            *(*closed, "error"),
            *(*closed, "cancelled"),
            *("turn", "cancelled"),
            *("turn", "completed"),
        ]
        assert "error" not in log(store)[-3].data
        check_log(log(store))
        check_shown(some)


@inside
async def test_an_error_is_told_with_its_code_and_without_its_group() -> None:
    store = MemoryStore()
    error = OSError("half \udc80")
    error.code = "overloaded"  # type: ignore[attr-defined]
    async with backend(store) as conversations:
        some = await conversations.open("c")
        with pytest.raises(ExceptionGroup):
            async with some.turn("a"):
                raise ExceptionGroup("tools", [error])
    told = {"name": "OSError", "message": "half ?", "code": "overloaded"}
    assert log(store)[-1].data["error"] == told


@inside
async def test_a_turn_is_done_when_a_step_called_nothing() -> None:
    store = MemoryStore()
    async with backend(store) as conversations:
        some = await conversations.open("c")
        async with some.turn("a") as turn:
            assert not turn.done
            async with turn.step() as step:
                await holds(step, message(call("u1", index=0)))
            assert not turn.done
            async with turn.step() as step:
                await holds(step, message(text("wait"), stop="pause_turn"))
            assert not turn.done, "the provider wants to be asked again"
            async with turn.step() as step:
                await holds(step, message(raw_call("u2", "look", "{bad", 0)))
            assert step.calls == ()
            assert not turn.done, "the model hears that it cannot be read"
            async with turn.step() as step:
                await holds(step)
            assert turn.done
            async with turn.step() as step:
                await holds(step, message(call("u3", index=0), stop="max_tokens"))
            assert turn.done, "nothing of a cut answer runs"


@inside
async def test_at_most_so_many_steps() -> None:
    store = MemoryStore()
    calling = [message(call(f"u{at}", index=0)) for at in range(9)]
    async with backend(store) as conversations:
        some = await conversations.open("c")
        await answer(some, calling, limit=2)
        assert boundaries(store)[-1] == "limit"
        assert types(store).count("step/start") == 2
        await answer(some, [HELLO], limit=1)
        assert boundaries(store)[-1] == "completed", "it was done at its last step"
        async with some.turn("a", limit=1) as turn:
            async with turn.step():
                pass
            with pytest.raises(LimitError):
                async with turn.step():
                    pass
        with pytest.raises(InputError):
            some.turn("a", limit=0)


@inside
async def test_one_turn_and_one_step_at_a_time() -> None:
    store = MemoryStore()
    async with backend(store) as conversations:
        some = await conversations.open("c")
        async with some.turn("a") as turn:
            with pytest.raises(ConflictError):
                async with some.turn("b"):
                    pass
            async with turn.step():
                with pytest.raises(ConflictError):
                    async with turn.step():
                        pass
            with pytest.raises(ConflictError):
                async with turn:
                    pass
        with pytest.raises(ConflictError):
            async with turn.step():
                pass
        await answer(some, [HELLO])
        assert boundaries(store) == [
            *("turn", "step start", "step end", "completed"),
            *("turn", "step start", "step end", "completed"),
        ]


@inside
async def test_a_turn_that_somebody_else_closed_writes_no_second_end() -> None:
    store = MemoryStore()
    async with backend(store) as ours, backend(store, "m", elsewhere=None) as theirs:
        some, other = await ours.open("c"), await theirs.open("c")
        async with some.turn("a") as turn:
            async with turn.step() as step:
                await other.session.catch_up()
                with pytest.raises(ConflictError):
                    async with other.turn("b"):
                        pass
                await other.session.append({"type": "turn/end", "data": {"turn": 1, "reason": "x"}})
                await some.session.catch_up()
                with pytest.raises(ConflictError):
                    await holds(step)
            with pytest.raises(ConflictError):
                async with turn.step():
                    pass
        assert boundaries(store) == ["turn", "step start", "x"]


@inside
async def test_what_is_open_in_a_turn_is_closed_before_it() -> None:
    store = MemoryStore()
    async with backend(store) as conversations:
        some = await conversations.open("c")
        async with some.turn("a") as turn:
            step = await turn.step().__aenter__()
            attempt = await step.attempt(provider="anthropic").__aenter__()
            for chunk in message(text("I look"), call("u1"), end=False):
                attempt.feed(chunk)
        ends = ["assistant/message", "step/end", "turn/end"]
        assert types(store)[-3:] == ends
        check_log(log(store))
        check_shown(some)


@inside
async def test_an_owner_that_was_taken_for_dead_writes_into_no_closed_turn() -> None:
    store = MemoryStore()
    async with backend(store) as ours, backend(store, "m") as theirs:
        some = await ours.open("c")
        async with some.turn("a") as turn, turn.step() as step:
            await holds(step, message(call("u1", index=0), call("u2", index=1)))
            async with step.dispatch(step.calls[0]) as tool:
                await theirs.open("c")
                await some.session.catch_up()
                with pytest.raises(ConflictError):
                    await tool.ask()
                tool.result("seen")
            with pytest.raises(ConflictError):
                async with step.dispatch(step.calls[1]):
                    pass
        async with some.turn("b") as turn, turn.step() as step:
            with pytest.raises(ConflictError):
                async with step.attempt(provider="anthropic") as attempt:
                    for chunk in HELLO:
                        attempt.feed(chunk)
                    end = {"type": "turn/end", "data": {"turn": 2, "reason": "x"}}
                    await some.session.append(end)
            with pytest.raises(ConflictError):
                await step.retry(OSError())
        assert types(store)[4:8] == ["tool/call", "turn/end", "tool/result", "turn/start"]
        assert boundaries(store)[2:] == ["interrupted", "turn", "step start", "x"]
        assert types(store).count("assistant/message") == 1
        check_shown(some)


@inside
async def test_what_is_said_meanwhile_is_read_by_the_next_step() -> None:
    store = MemoryStore()
    async with backend(store) as conversations:
        some = await conversations.open("c")
        async with some.turn("a") as turn:
            async with turn.step() as step:
                await holds(step)
                first = await some.steer("faster")
                await some.steer("later", queue="next-turn", message_id="m2")
                await some.steer("stop?", message_id="m3")
            assert not turn.done, "somebody said something"
            async with turn.step() as step:
                await holds(step)
            assert turn.done
        kinds = {node.id: node.kind for node in some.view() if "content" in node.data}
        assert kinds[first] == kinds["m3"] == "steering"
        assert "m2" not in kinds
        said = [event.data["message_id"] for event in log(store) if event.type == "user/message"]
        assert said[1:] == [first, "m3"]
        check_log(log(store))
        check_shown(some)


@inside
async def test_what_waits_survives_a_crash_and_begins_the_next_turn() -> None:
    store = MemoryStore()
    async with backend(store) as conversations:
        some = await conversations.open("c")
        await some.steer("one", message_id="m1")
        await some.steer("two", queue="next-turn", message_id="m2")
        await answer(some, [HELLO], None)
        await some.steer("three", message_id="m3")
    async with backend(store, "m") as conversations:
        some = await conversations.open("c", page=1)
        await answer(some, [HELLO], "four", message_id="m4")
        said = [event.data["message_id"] for event in log(store) if event.type == "user/message"]
        assert said == ["m1", "m2", "m3", "m4"]
        with pytest.raises(InputError):
            await some.steer("five", queue="next-year")  # type: ignore[arg-type]


@inside
async def test_what_was_claimed_is_not_claimed_again_however_little_is_loaded() -> None:
    store = MemoryStore()
    async with backend(store) as conversations:
        some = await conversations.open("c")
        await some.steer("one", message_id="m1")
        await answer(some, [HELLO], None)
    before = log(store)
    for page in range(1, len(before) + 1):
        again = MemoryStore()
        await again.append("c", [{"type": each.type, "data": each.data} for each in before], 0)
        async with backend(again, "m") as conversations:
            await answer(await conversations.open("c", page=page), [HELLO], "two")
        said = [event.data["message_id"] for event in log(again) if event.type == "user/message"]
        assert len(said) == len(set(said)) == 2


@inside
async def test_a_store_that_fails_is_told_and_another_error_goes_on() -> None:
    store = MemoryStore()
    async with backend(store) as conversations:
        some = await conversations.open("c")
        with pytest.raises(AssemblerError):
            async with some.turn("a"):
                await store.close()
        other = MemoryStore()
    async with backend(other) as conversations:
        some = await conversations.open("c")
        with pytest.raises(KeyError):
            async with some.turn("a") as turn, turn.step() as step:
                async with step.attempt(provider="anthropic") as attempt:
                    for chunk in message(call("u1"), end=False):
                        attempt.feed(chunk)
                    await other.close()
                    raise KeyError
        assert all(node.kind != "tool" for node in some.view())
