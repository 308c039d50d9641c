"""One model call: how it may end, what is stored of it, retry and fallback, ids of calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from assembler import AssemblerError, ConflictError, InputError
from assembler.stores import MemoryStore, SyncStore
from definitions import AttemptLost, Conversation
from definitions.backend import Step
from tests.definitions.backend.support import (
    Naps,
    WaitingStore,
    answer,
    backend,
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
BROKEN = message(text("I look"), call("u1", at="sky"), end=False)


async def feed(step: Step, chunks: Any, **options: Any) -> Any:
    async with step.attempt(provider="anthropic", **options) as attempt:
        for chunk in chunks:
            if isinstance(chunk, BaseException):
                raise chunk
            attempt.feed(chunk)
    return attempt


def stored(store: MemoryStore, type: str) -> list[Any]:
    return [event.data for event in log(store) if event.type == type]


def keys(some: Conversation) -> list[str]:
    return [node.key for node in some.view() if node.kind not in ("user", "turn-tail")]


@inside
async def test_a_whole_answer_hands_over_its_ready_calls() -> None:
    store = MemoryStore()
    async with backend(store) as conversations:
        some = await conversations.open("c")
        async with some.turn("a") as turn, turn.step() as step:
            assert not step.answered
            assert step.calls == ()
            attempt = await feed(
                step, message(call("u1", at="sky"), raw_call("u2", "look", "{", 2))
            )
            assert step.answered
            assert attempt.why is None
            assert attempt.response.whole
            assert [each.call_id for each in step.calls] == ["u1"]
            assert step.calls[0].arguments == {"at": "sky"}
            assert keys(some) == ["tool:u1", "tool:u2"], "they keep their rows"
            with pytest.raises(ConflictError):
                await feed(step, HELLO)
        assert some.session.assembler.statistics()["anomalies"] == {"unparsed-arguments": 1}
        check_log(log(store))


@inside
async def test_a_cut_answer_is_stored_and_nothing_of_it_runs() -> None:
    store = MemoryStore()
    async with backend(store) as conversations:
        some = await conversations.open("c")
        async with some.turn("a") as turn, turn.step() as step:
            attempt = await feed(step, message(text("long"), call("u1"), stop="max_tokens"))
            assert step.answered
            assert step.calls == ()
            assert attempt.why == "length"
            with pytest.raises(ConflictError):
                async with step.dispatch(attempt.response.calls[0]):
                    pass
        (said,) = stored(store, "assistant/message")
        assert said["stop_reason"] == "length"
        assert "interrupted" not in said
        check_shown(some)


@pytest.mark.parametrize("error", [None, OSError("reset")], ids=["broken off", "an exception"])
@inside
async def test_an_answer_that_is_not_whole_is_withdrawn_at_once(error: Any) -> None:
    store = MemoryStore()
    async with backend(store) as conversations:
        some = await conversations.open("c")
        async with some.turn("a") as turn, turn.step() as step:
            chunks = BROKEN if error is None else [*BROKEN, error]
            with pytest.raises(AttemptLost if error is None else OSError) as caught:
                await feed(step, chunks)
            assert keys(some) == []
            assert not step.answered
            assert step.calls == ()
            if error is None:
                assert caught.value.why == "no-terminal"  # type: ignore[attr-defined]
            await step.retry(caught.value)
            assert "assistant/message" not in types(store)
            await feed(step, message(call("u1", at="sea")))
            assert [each.arguments for each in step.calls] == [{"at": "sea"}]
        assert len(stored(store, "assistant/message")) == 1
        check_log(log(store))
        check_shown(some)


@inside
async def test_a_fault_of_the_provider_is_told() -> None:
    fault = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    store = MemoryStore()
    async with backend(store) as conversations:
        some = await conversations.open("c")
        with pytest.raises(AttemptLost) as caught:
            await answer(some, [[*BROKEN, fault]] * 3)
        assert caught.value.why == "stream-error"
        assert stored(store, "turn/end")[0]["error"] == {
            "name": "AttemptLost",
            "message": "the answer is not whole: stream-error: Overloaded",
            "code": "overloaded_error",
        }
        check_shown(some)


@inside
async def test_what_people_have_read_stays_when_no_attempt_follows() -> None:
    store = MemoryStore()
    async with backend(store) as conversations:
        some = await conversations.open("c")
        with pytest.raises(OSError, match="reset"):
            await answer(some, [BROKEN, [*BROKEN, OSError("reset")], [*BROKEN, OSError("reset")]])
        (said,) = stored(store, "assistant/message")
        assert said["interrupted"] is True
        assert said["stop_reason"] == "error"
        assert said["content"] == ({"type": "text", "text": "I look"},)
        assert some.view()["assistant:1.1"].data["status"] == "interrupted"
        check_log(log(store))
        check_shown(some)


@inside
async def test_nothing_is_stored_of_an_answer_that_nobody_has_read() -> None:
    store = MemoryStore()
    async with backend(store) as conversations:
        some = await conversations.open("c")
        with pytest.raises(AttemptLost):
            async with some.turn("a") as turn, turn.step() as step:
                await feed(step, message(call("u1"), end=False))
        assert "assistant/message" not in types(store)
        check_log(log(store))


@inside
async def test_a_retry_is_written_waited_for_and_limited() -> None:
    store, naps = MemoryStore(), Naps()
    async with backend(store, sleep=naps) as conversations:
        some = await conversations.open("c")
        with pytest.raises(AttemptLost) as caught:
            async with some.turn("a") as turn, turn.step() as step:
                with pytest.raises(ConflictError):
                    await step.retry(OSError("no attempt was lost"))
                for number in (1, 2, 3):
                    try:
                        attempt = step.attempt(provider="anthropic")
                        async with attempt:
                            for chunk in BROKEN:
                                attempt.feed(chunk)
                    except AttemptLost as lost:
                        assert attempt.number == number
                        last = lost
                        await step.retry(lost, delay_ms=250 * number, at_most=3)
        assert caught.value is last
        assert naps.slept == [0.25, 0.5]
        first, second = stored(store, "llm/retry")
        assert (first["number"], second["number"]) == (1, 2)
        assert first["attempt"] != second["attempt"]
        assert first["retry_id"] == second["retry_id"]
        assert first["delay_ms"] == 250
        assert first["reason"] == "no-terminal"
        assert first["usage"]["input_tokens"] == 3
        row = next(node for node in some.view() if node.kind == "retry")
        assert [each["number"] for each in row.data["attempts"]] == [1, 2]


@inside
async def test_a_retry_says_what_it_is_given() -> None:
    store = MemoryStore()
    async with backend(store) as conversations:
        some = await conversations.open("c")
        async with some.turn("a") as turn, turn.step() as step:
            with pytest.raises(OSError, match="secret"):
                await feed(step, [OSError("secret")])
            with pytest.raises(InputError):
                await step.retry(OSError(), delay_ms=-1)
            await step.retry(OSError("secret"), reason="overloaded")
            with pytest.raises(OSError, match="secret"):
                await feed(step, [OSError("secret")])
            await step.retry(OSError("secret"))
            with pytest.raises(ConflictError):
                await step.retry(OSError("again"))
            await feed(step, HELLO)
        assert [each["reason"] for each in stored(store, "llm/retry")] == ["overloaded", "OSError"]
        assert "delay_ms" not in stored(store, "llm/retry")[0]


@inside
async def test_a_fallback_names_both_models() -> None:
    store = MemoryStore()
    async with backend(store) as conversations:
        some = await conversations.open("c")
        async with some.turn("a") as turn, turn.step() as step:
            with pytest.raises(AttemptLost) as caught:
                await feed(step, BROKEN)
            await step.fallback(caught.value, to_model="large")
            with pytest.raises(AttemptLost) as caught:
                await feed(step, BROKEN, model="large")
            await step.fallback(caught.value, to_model="huge")
            with pytest.raises(AttemptLost) as caught:
                await feed(step, BROKEN)
            with pytest.raises(AttemptLost):
                await step.fallback(caught.value, to_model="other", at_most=3)
            await feed(step, HELLO)
        told = [(each["from_model"], each["to_model"]) for each in stored(store, "llm/fallback")]
        assert told == [("small", "large"), ("large", "huge")]
        check_log(log(store))
        check_shown(some)


@inside
async def test_one_attempt_at_a_time_and_each_once() -> None:
    store = MemoryStore()
    async with backend(store) as conversations:
        some = await conversations.open("c")
        async with some.turn("a") as turn:
            async with turn.step() as step:
                with pytest.raises(InputError):
                    step.attempt(provider="nobody")
                async with step.attempt(provider="anthropic") as attempt:
                    with pytest.raises(ConflictError):
                        await feed(step, HELLO)
                    with pytest.raises(ConflictError):
                        async with attempt:
                            pass
                    for chunk in HELLO:
                        attempt.feed(chunk)
                attempt.feed(HELLO[0])
            with pytest.raises(ConflictError):
                await feed(step, HELLO)
        assert len(stored(store, "assistant/message")) == 1


@inside
async def test_no_attempt_begins_while_the_answer_of_another_is_stored() -> None:
    store = WaitingStore()
    async with backend(store) as conversations:
        some = await conversations.open("c")
        async with some.turn("a") as turn, turn.step() as step:

            async def another() -> None:
                refused = 0
                while not step.answered:
                    with pytest.raises(ConflictError, match="goes on"):
                        await feed(step, message(call("u2"), text("two")))
                    refused += 1
                    await asyncio.sleep(0)
                assert refused > 1, "it tried while the answer was stored"

            await asyncio.gather(feed(step, message(call("u1"))), another())
            assert [each.call_id for each in step.calls] == ["u1"]
        check_shown(some)
        check_log(log(store))


@inside
async def test_a_retry_after_a_timeout_that_came_too_late_is_none() -> None:
    store = WaitingStore()
    async with backend(store) as conversations:
        some = await conversations.open("c")
        async with some.turn("a") as turn, turn.step() as step:
            trying = asyncio.ensure_future(feed(step, HELLO))
            await asyncio.sleep(0)  # all is fed, and its answer is being stored
            trying.cancel()
            with pytest.raises(asyncio.CancelledError):
                await trying
            await step.retry(TimeoutError(), delay_ms=50, at_most=1)
            await step.fallback(TimeoutError(), to_model="large")
            assert step.answered
        assert "llm/retry" not in types(store)
        assert "llm/fallback" not in types(store)
        check_shown(some)
        check_log(log(store))


@inside
async def test_what_comes_after_all_was_withdrawn_is_nothing() -> None:
    store = MemoryStore()
    conversations = backend(store)
    some = await conversations.open("c")
    with pytest.raises(AssemblerError, match="closed"):
        async with some.turn("a") as turn, turn.step() as step:
            async with step.attempt(provider="anthropic") as attempt:
                for number, chunk in enumerate(HELLO):
                    if number == 3:
                        await conversations.close()
                    attempt.feed(chunk)


@inside
async def test_feed_takes_whatever_a_provider_sends() -> None:
    store = MemoryStore()
    async with backend(store) as conversations:
        some = await conversations.open("c")
        async with some.turn("a") as turn, turn.step() as step:
            with pytest.raises(AttemptLost):
                odd: list[Any] = [b"\xff\x00", "data: {", {}, {"type": 7}, {"delta": None}, []]
                await feed(step, [*odd, {"type": "content_block_delta", "index": "x"}])
            await step.retry(OSError())
            await feed(step, HELLO)
        check_shown(some)


@inside
async def test_ids_stay_unique_beyond_what_is_loaded() -> None:
    """A server that counts from 0 in every answer, and a conversation of which a page is loaded."""
    store = MemoryStore()
    for prefix in "abc":
        async with backend(store, prefix) as conversations:
            some = await conversations.open("c", page=1)
            await answer(some, [BROKEN, message(call("call_0")), message(call("call_0")), HELLO])
    ids = [data["call_id"] for data in stored(store, "tool/call")]
    assert len(set(ids)) == len(ids) == 6
    assert ids[0] == "call_0"
    assert {data["provider_call_id"] for data in stored(store, "tool/call")} == {"call_0"}
    check_log(log(store))


@inside
async def test_history_is_read_once() -> None:
    class Counting(MemoryStore):
        asked = 0

        async def run(self, ask: Callable[[SyncStore], Any]) -> Any:
            self.asked += 1
            return await super().run(ask)

    store = Counting()
    async with backend(store) as conversations:
        some = await conversations.open("c")
        for _ in range(3):
            await answer(some, [HELLO])
    async with backend(store, "m", history=False) as conversations:
        some = await conversations.open("c", page=1)
        costs = []
        for _ in range(3):
            before = store.asked
            await answer(some, [HELLO])
            costs.append(store.asked - before)
    assert costs[0] == costs[1] + 1 == costs[2] + 1


@inside
async def test_history_is_read_for_ids_also_when_it_is_not_loaded() -> None:
    store = MemoryStore()
    async with backend(store) as conversations:
        await answer(await conversations.open("c"), [message(call("call_0")), HELLO])
    async with backend(store, "m", history=False) as conversations:
        some = await conversations.open("c", page=1)
        await answer(some, [message(call("call_0")), message(call("call_1")), HELLO])
        assert some.session.assembler.window.has_more, "nothing was loaded for it"
    first, second, third = (data["call_id"] for data in stored(store, "tool/call"))
    assert first == "call_0" != second
    assert third == "call_1", "a new one is kept"


@inside
async def test_the_id_of_a_lost_attempt_is_free_again() -> None:
    store = MemoryStore()
    async with backend(store) as conversations:
        some = await conversations.open("c")
        await answer(some, [BROKEN, message(call("u1", at="sea")), HELLO])
        async with some.turn("a") as turn, turn.step() as step:
            with pytest.raises(AttemptLost):
                await feed(step, message(call("u2"), end=False))
            await feed(step, message(call("u2")))
            assert [each.call_id for each in step.calls] == ["u2"], "also without a retry"
        assert [data["call_id"] for data in stored(store, "tool/call")] == ["u1"]
        check_shown(some)


@inside
async def test_the_model_context_is_loaded_before_a_turn() -> None:
    store = MemoryStore()
    async with backend(store) as conversations:
        some = await conversations.open("c")
        for said in "abcd":
            await answer(some, [HELLO], said)
    async with backend(store, "m") as conversations:
        some = await conversations.open("c", page=2)
        async with some.turn("e"):
            sent = some.messages("anthropic")
    assert [each["content"][0]["text"] for each in sent if each["role"] == "user"] == list("abcde")
