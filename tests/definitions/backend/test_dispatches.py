"""Calls that are taken over: their results, what they print, permissions and refusals."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from assembler import ConflictError, InputError
from assembler.engine.values import thaw
from assembler.stores import MemoryStore, StoreError, SyncStore
from definitions import Conversation, Dispatch, Step
from tests.definitions.backend.support import (
    WaitingStore,
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

DONE = message(text("done"))


def stored(store: MemoryStore, type: str) -> list[Any]:
    return [event.data for event in log(store) if event.type == type]


async def calling(
    some: Conversation, then: Callable[[Step], Awaitable[None]], *calls: list[dict[str, Any]]
) -> None:
    """One step with these calls (or one), and what is done about them."""
    async with some.turn("a") as turn, turn.step() as step:
        async with step.attempt(provider="anthropic") as attempt:
            for chunk in message(*(calls or (call("u1", at="sky"),))):
                attempt.feed(chunk)
        await then(step)


async def result_of(content: Any, **options: Any) -> Any:
    store = MemoryStore()
    async with backend(store) as conversations:

        async def then(step: Step) -> None:
            async with step.dispatch(step.calls[0]) as tool:
                assert types(store)[-1] == "tool/call"
                tool.result(content, **options)
                assert types(store)[-1] == "tool/call", "stored when it is left"

        some = await conversations.open("c")
        await calling(some, then)
        check_log(log(store))
        check_shown(some)
    return stored(store, "tool/result")[0]


@inside
async def test_what_a_result_may_be() -> None:
    file = {"type": "file", "media_type": "image/png", "url": "a.png"}
    for content, blocks in [
        ("seen", [{"type": "text", "text": "seen"}]),
        (None, []),
        (file, [file]),
        ([file, file], [file, file]),
        ([], []),
        ({"a": 1}, [{"type": "json", "value": {"a": 1}}]),
        ([1, 2], [{"type": "json", "value": [1, 2]}]),
        (7, [{"type": "json", "value": 7}]),
    ]:
        told = thaw(await result_of(content))
        assert told == {"call_id": "u1", "content": blocks}
    assert (await result_of("no", is_error=True))["is_error"] is True


@inside
async def test_what_is_no_result() -> None:
    store = MemoryStore()
    async with backend(store) as conversations:

        async def then(step: Step) -> None:
            async with step.dispatch(step.calls[0]) as tool:
                with pytest.raises(InputError):
                    tool.result(b"bytes")
                with pytest.raises(InputError):
                    tool.result("\udc80")
                tool.result("first")
                with pytest.raises(ConflictError):
                    tool.result("second")
            with pytest.raises(ConflictError):
                tool.result("third")

        await calling(await conversations.open("c"), then)
        assert len(stored(store, "tool/result")) == 1


@pytest.mark.parametrize("errors", ["raise", "result"])
@inside
async def test_an_exception_is_a_result(errors: Any) -> None:
    store = MemoryStore()
    async with backend(store) as conversations:

        async def then(step: Step) -> None:
            async with step.dispatch(step.calls[0], errors=errors):
                raise OSError("no such file")

        some = await conversations.open("c")
        if errors == "raise":
            with pytest.raises(OSError, match="no such"):
                await calling(some, then)
        else:
            await calling(some, then)
        (told,) = stored(store, "tool/result")
        assert told["is_error"] is True
        assert told["error"] == {"name": "OSError", "message": "no such file"}
        assert told["content"] == ({"type": "text", "text": "OSError: no such file"},)
        assert some.view()["tool:u1"].data["outcome"] == "failed"
        check_shown(some)
        with pytest.raises(InputError):
            await calling(some, lambda step: step.dispatch(step.calls[0], errors="log"))  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize("error", [asyncio.CancelledError, KeyboardInterrupt, None])
@inside
async def test_left_without_a_result(error: type[BaseException] | None) -> None:
    store = MemoryStore()
    async with backend(store) as conversations:

        async def then(step: Step) -> None:
            async with step.dispatch(step.calls[0], errors="result"):
                if error is not None:
                    raise error

        some = await conversations.open("c")
        if error is not None:
            with pytest.raises(error):
                await calling(some, then)
        else:
            await calling(some, then)
        assert stored(store, "tool/result") == []
        assert some.view()["tool:u1"].data["outcome"] == "unsettled"
        check_shown(some)
        await some.result("u1", "at last")
        assert some.view()["tool:u1"].data["outcome"] == "succeeded", "the real one wins"


@pytest.mark.parametrize("error", [asyncio.CancelledError, OSError])
@inside
async def test_a_result_that_is_there_is_stored_whatever_follows(error: Any) -> None:
    store = MemoryStore()
    async with backend(store) as conversations:

        async def then(step: Step) -> None:
            async with step.dispatch(step.calls[0]) as tool:
                tool.result("seen")
                raise error

        with pytest.raises(error):
            await calling(await conversations.open("c"), then)
        assert [told.get("is_error") for told in stored(store, "tool/result")] == [None]


@inside
async def test_each_call_is_taken_over_once_and_in_its_step() -> None:
    store = MemoryStore()
    async with backend(store) as conversations:
        some = await conversations.open("c")
        taken: list[Any] = []

        async def then(step: Step) -> None:
            taken.extend(step.calls)
            async with step.dispatch(step.calls[0]) as tool:
                with pytest.raises(ConflictError):
                    async with step.dispatch(step.calls[0]):
                        pass
                with pytest.raises(ConflictError):
                    async with tool:
                        pass
                tool.result("seen")

        async def late(step: Step) -> None:
            with pytest.raises(ConflictError):
                async with step.dispatch(taken[0]):
                    pass

        await calling(some, then)
        await calling(some, late, call("u2"))
        assert types(store).count("tool/call") == 1
        check_log(log(store))


@inside
async def test_a_store_that_fails_once() -> None:
    """What was not stored has not happened, and may be done again."""

    class Failing(MemoryStore):
        fails = False

        async def run(self, ask: Callable[[SyncStore], Any]) -> Any:
            if self.fails:
                self.fails = False
                raise StoreError("not now")
            return await super().run(ask)

    store = Failing()
    async with backend(store) as conversations:
        some = await conversations.open("c")

        async def then(step: Step) -> None:
            store.fails = True
            with pytest.raises(StoreError):
                async with step.dispatch(step.calls[0]):
                    pass
            async with step.dispatch(step.calls[0]) as tool:
                store.fails = True
                with pytest.raises(StoreError):
                    await tool.ask()
                tool.result("seen")

        await calling(some, then)
        assert types(store).count("tool/call") == types(store).count("tool/result") == 1
        assert some.statistics()["waiting_questions"] == 0
        store.fails = True
        with pytest.raises(StoreError):
            async with some.turn("b"):
                pass
        async with some.turn("c") as turn:
            store.fails = True
            with pytest.raises(StoreError):
                async with turn.step():
                    pass
            assert not turn.done, "nobody was asked"
            async with turn.step() as step:
                with pytest.raises(StoreError):
                    async with step.attempt(provider="anthropic") as attempt:
                        for chunk in message(call("u2", index=0)):
                            attempt.feed(chunk)
                        store.fails = True
                assert "tool:u2" not in some.view()
        check_log(log(store))
        check_shown(some)


@inside
async def test_many_at_once() -> None:
    store = WaitingStore()
    async with backend(store) as conversations:

        async def run(step: Step, each: Any) -> None:
            async with step.dispatch(each, errors="result") as tool:
                await asyncio.sleep(0)
                tool.output(f"{each.call_id} ")
                if each.call_id == "u3":
                    raise OSError("no")
                tool.result(each.call_id)

        async def then(step: Step) -> None:
            async with asyncio.TaskGroup() as group:
                for each in step.calls:
                    group.create_task(run(step, each))

        some = await conversations.open("c")
        await calling(some, then, *(call(f"u{at}", index=at) for at in range(1, 6)))
        outcomes = [node.data["outcome"] for node in some.view() if node.kind == "tool"]
        assert outcomes == ["succeeded", "succeeded", "failed", "succeeded", "succeeded"]
        check_log(log(store))
        check_shown(some)


@inside
async def test_what_a_tool_prints_is_shown_and_never_stored() -> None:
    store = MemoryStore()
    async with backend(store) as conversations:
        some = await conversations.open("c")

        async def then(step: Step) -> None:
            async with step.dispatch(step.calls[0]) as tool:
                tool.output("one\n")
                tool.output("")
                tool.output("two \udc80\n")
                node = some.view()["tool:u1"]
                assert node.data["output"] == "one\ntwo ?\n"
                assert node.data["stage"] == "start"
                tool.result("seen")
            assert some.statistics()["session"]["attempts"] == 0
            tool.output("late")
            assert "late" not in str(some.view()["tool:u1"].data["output"])

        await calling(some, then)
        assert "two" not in str(log(store))
        assert some.statistics()["session"]["attempts"] == 0
        check_shown(some)


@inside
async def test_a_call_inside_a_call_names_its_parent() -> None:
    store = MemoryStore()
    async with backend(store) as conversations:
        some = await conversations.open("c")

        async def then(step: Step) -> None:
            async with step.dispatch(step.calls[0]) as tool:
                for at in range(2):
                    async with tool.dispatch("look", {"at": at, "for": "é"}) as inner:
                        async with inner.dispatch("touch", {}, errors="result"):
                            raise OSError
                        inner.result("seen")
                with pytest.raises(InputError):
                    tool.dispatch("", {})
                tool.result("done")
            with pytest.raises(ConflictError):
                async with tool.dispatch("look", {}):
                    pass

        await calling(some, then)
        one, *inner = stored(store, "tool/call")
        assert one["call_id"] == "u1"
        assert [each["name"] for each in inner] == ["look", "touch", "look", "touch"]
        assert inner[0]["parent_call_id"] == inner[2]["parent_call_id"] == "u1"
        assert inner[1]["parent_call_id"] == inner[0]["call_id"]
        assert json.loads(inner[2]["arguments"]) == {"at": 1, "for": "é"}
        assert len({each["call_id"] for each in inner}) == 4
        shown = some.view()[f"tool:{inner[0]['call_id']}"].data
        assert (shown["parent"], shown["outcome"]) == ("u1", "succeeded")
        check_log(log(store))
        check_shown(some)


# Permissions


async def asking(
    some: Conversation, decide: Callable[[], Awaitable[Any]], *calls: list[dict[str, Any]]
) -> list[Any]:
    """A call that asks, somebody who decides, and what was answered and run."""
    told: list[Any] = []

    async def run(step: Step, each: Any) -> None:
        async with step.dispatch(each) as tool:
            told.append(await tool.ask())
            if told[-1].allowed:
                told.append(tool.arguments)
                tool.result("seen")

    async def then(step: Step) -> None:
        runs = [asyncio.ensure_future(run(step, each)) for each in step.calls]
        await pump()
        await decide()
        await asyncio.gather(*runs)

    await calling(some, then, *calls)
    return told


@inside
async def test_a_permission_is_asked_answered_and_shown() -> None:
    store = WaitingStore()
    async with backend(store) as conversations:
        some = await conversations.open("c")

        async def allow() -> None:
            assert types(store)[-2:] == ["tool/call", "permission/request"]
            assert some.view()["permission:1@u1"].data["decision"] == "pending"
            assert some.view()["tool:u1"].data["waiting"] == "permission:1@u1"
            await some.answer("u1", "1", "allow")

        answered, ran = await asking(some, allow)
        assert answered.allowed
        assert ran == {"at": "sky"}
        assert stored(store, "permission/request")[0]["input"] == {"at": "sky"}
        with pytest.raises(ConflictError):
            await some.answer("u1", "1", "deny")
        with pytest.raises(ConflictError):
            await some.answer("u9", "1", "deny")
        check_log(log(store))
        check_shown(some)


@inside
async def test_an_answer_may_change_what_runs() -> None:
    store = WaitingStore()
    async with backend(store) as conversations:
        some = await conversations.open("c")
        _, ran = await asking(
            some, lambda: some.answer("u1", "1", "allow", updated_input={"at": "sea"})
        )
        assert ran == {"at": "sea"}
        assert some.view()["tool:u1"].data["arguments"] == {"at": "sea"}
        assert some.view()["permission:1@u1"].data["input"] == {"at": "sky"}


@inside
async def test_a_refused_call_says_so() -> None:
    store = WaitingStore()
    async with backend(store) as conversations:
        some = await conversations.open("c")
        (answered,) = await asking(some, lambda: some.answer("u1", "1", "deny"))
        assert not answered.allowed
        (told,) = stored(store, "tool/result")
        assert told["is_error"] is True
        assert told["error"]["name"] == "denied"
        assert some.view()["permission:1@u1"].data["decision"] == "deny"
        with pytest.raises(InputError):
            await some.answer("u1", "1", "perhaps")  # type: ignore[arg-type]


@inside
async def test_a_refusal_that_is_remembered_holds_beyond_what_is_loaded() -> None:
    store = WaitingStore()
    async with backend(store) as conversations:
        some = await conversations.open("c")
        await asking(some, lambda: some.answer("u1", "1", "deny", remember=True))
        await answer(some, [DONE])
    async with backend(store, "m", history=False) as conversations:
        some = await conversations.open("c", page=1)

        async def nobody() -> None:
            pass

        (answered,) = await asking(some, nobody, call("u2"))
        assert not answered.allowed
        assert types(store)[-5:-2] == ["permission/request", "permission/answer", "tool/result"]

        async def allow() -> None:
            await some.answer("u3", "1", "allow")

        assert len(await asking(some, allow, call("u3", "touch"))) == 2, "another tool is asked for"
        assert some.statistics()["refused"] == 1
        check_log(log(store))


@inside
async def test_the_first_answer_in_the_log_counts() -> None:
    store = WaitingStore()
    async with backend(store) as conversations:
        some = await conversations.open("c")
        await asking(some, lambda: some.answer("u1", "1", "allow"))
        late = {"call_id": "u1", "request_id": "1", "decision": "deny", "remember": True}
        await some.session.append({"type": "permission/answer", "data": late})
        answered, _ = await asking(some, lambda: some.answer("u2", "1", "allow"), call("u2"))
        assert answered.allowed


@inside
async def test_who_waits_for_an_answer_may_be_stopped() -> None:
    store = WaitingStore()
    async with backend(store) as conversations:
        some = await conversations.open("c")

        async def run(step: Step) -> None:
            async with step.dispatch(step.calls[0]) as tool:
                await tool.ask({"shown": True})

        task = asyncio.ensure_future(calling(some, run))
        await pump()
        assert some.view()["permission:1@u1"].data["input"] == {"shown": True}
        task.cancel()
        await asyncio.wait([task])
        assert some.view()["permission:1@u1"].data["decision"] == "withdrawn"
        assert some.statistics()["waiting_questions"] == 0
        check_shown(some)


@inside
async def test_two_questions_about_one_call() -> None:
    store = WaitingStore()
    async with backend(store) as conversations:
        some = await conversations.open("c")
        asked: list[Dispatch] = []

        async def run(step: Step) -> None:
            async with step.dispatch(step.calls[0]) as tool:
                asked.append(tool)
                await tool.ask()
                await tool.ask(request_id="mine")
                tool.result("seen")

        task = asyncio.ensure_future(calling(some, run))
        await pump()
        await some.answer("u1", "1", "allow")
        await pump()
        await some.answer("u1", "mine", "allow")
        await task
        with pytest.raises(ConflictError):
            await asked[0].ask()
        check_shown(some)


@inside
async def test_a_question_is_asked_once() -> None:
    store = MemoryStore()
    async with backend(store) as conversations:
        some = await conversations.open("c")

        async def then(step: Step) -> None:
            async with step.dispatch(step.calls[0]) as tool:
                first = asyncio.ensure_future(tool.ask(request_id="2"))
                await pump()
                again = asyncio.ensure_future(tool.ask(request_id="2"))
                await pump()
                assert again.done()
                assert isinstance(again.exception(), ConflictError)
                second = asyncio.ensure_future(tool.ask())
                await pump()
                asked = [each["request_id"] for each in stored(store, "permission/request")]
                assert len(set(asked)) == len(asked) == 2
                for each in asked:
                    await some.answer("u1", each, "allow")
                assert (await first).allowed
                assert (await second).allowed
                again = asyncio.ensure_future(tool.ask(request_id="2"))
                await pump()
                assert again.done()
                assert isinstance(again.exception(), ConflictError)
                tool.result("seen")

        await calling(some, then)
        check_shown(some)


@inside
async def test_nothing_runs_because_of_an_answer_that_comes_too_late() -> None:
    store = WaitingStore()
    ran = []
    async with backend(store) as conversations:
        some = await conversations.open("c")

        async def asks(step: Step) -> None:
            async with step.dispatch(step.calls[0]) as tool:
                await tool.ask()
                ran.append(tool.call.call_id)

        async def then(step: Step) -> None:
            waiting.append(asyncio.ensure_future(asks(step)))
            await pump()
            raise ValueError("another tool failed")

        waiting: list[asyncio.Future[None]] = []
        with pytest.raises(ValueError, match="another"):
            await calling(some, then)
        with pytest.raises(ConflictError, match="is not open"):
            await some.answer("u1", "1", "allow")
        await pump()
        assert waiting[0].done()
        with pytest.raises(ConflictError, match="nobody answers"):
            waiting[0].result()
        assert not ran
        assert types(store)[-1] == "turn/end"
        assert some.statistics()["waiting_questions"] == 0
        check_shown(some)


@inside
@pytest.mark.parametrize("how", ["left", "result"])
async def test_a_call_that_is_over_asks_no_more(how: str) -> None:
    store = MemoryStore()
    async with backend(store) as conversations:
        some = await conversations.open("c")

        async def then(step: Step) -> None:
            async with step.dispatch(step.calls[0]) as tool:
                asking = [asyncio.ensure_future(tool.ask()) for _ in "ab"]
                await pump()
                if how == "result":
                    await some.result("u1", "from elsewhere")
                    await pump()
                    assert all(each.done() for each in asking)
            await pump()
            for each in asking:
                with pytest.raises(ConflictError, match="nobody answers"):
                    each.result()
            if how == "result":
                with pytest.raises(ConflictError, match="is not open"):
                    await some.answer("u1", "1", "allow")

        await calling(some, then)
        assert some.statistics()["waiting_questions"] == 0
        check_shown(some)


@inside
async def test_what_an_answer_puts_in_place_of_the_input_is_an_object() -> None:
    store = MemoryStore()
    async with backend(store) as conversations:
        some = await conversations.open("c")

        async def then(step: Step) -> None:
            async with step.dispatch(step.calls[0]) as tool:
                asking = asyncio.ensure_future(tool.ask())
                await pump()
                odd: Any = ["sea"]
                with pytest.raises(InputError, match="updated_input"):
                    await some.answer("u1", "1", "allow", updated_input=odd)
                await some.answer("u1", "1", "allow", updated_input={"at": "sea"})
                await asking
                assert tool.arguments == {"at": "sea"}

        await calling(some, then)
