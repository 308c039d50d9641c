"""The same facade without a loop: the same log, the same view."""

from __future__ import annotations

from typing import Any

import pytest

from assembler import AssemblerError, ConflictError
from assembler.stores import MemoryStore
from definitions import AttemptLost, catalog
from definitions.backend import Answer, Question, SyncConversation, SyncConversations
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
    names,
    text,
    types,
)

SCRIPT = [
    message(text("I will"), call("u1"), end=False),
    message(text("I look"), call("u1", at="sky"), call("u2", index=2)),
    [*message(text("nearly"), end=False), OSError("reset")],
    message(text("done")),
]


def plain(store: MemoryStore, prefix: str = "n", **options: Any) -> SyncConversations:
    given = {"now": lambda: 1_000, "names": names(prefix), "sleep": lambda _: None, **options}
    return SyncConversations(store.sync, catalog(), **given)


def answer_plainly(some: SyncConversation, script: list[Any], said: Any = "hello") -> None:
    answers = iter(script)
    with some.turn(said) as turn:
        while not turn.done:
            with turn.step() as step:
                while not step.answered:
                    try:
                        with step.attempt(provider="anthropic", model="small") as attempt:
                            for chunk in next(answers):
                                if isinstance(chunk, BaseException):
                                    raise chunk
                                attempt.feed(chunk)
                    except (AttemptLost, OSError) as lost:
                        step.retry(lost, delay_ms=50, at_most=3)
                for each in step.calls:
                    with step.dispatch(each) as dispatch:
                        dispatch.result("seen")


@inside
async def test_it_stores_and_shows_what_the_other_one_does() -> None:
    one, other = MemoryStore(), MemoryStore()
    async with backend(one) as conversations:
        some = await conversations.open("c")
        await answer(some, SCRIPT)
        with plain(other) as plainly:
            same = plainly.open("c")
            assert plainly.open("c") is same
            answer_plainly(same, SCRIPT)
            assert log(one) == log(other) or [each.data for each in log(one)] == [
                each.data for each in log(other)
            ]
            shown = [node.to_json() for node in same.view()]
            assert shown == [node.to_json() for node in some.view()]
            check_shown(same)  # type: ignore[arg-type]


@inside
async def test_one_conversation_has_both_faces() -> None:
    store = MemoryStore()
    async with backend(store) as conversations:
        some = await conversations.open("c")
        answer_plainly(some.sync, SCRIPT)
        with some.sync.turn("a"):
            with pytest.raises(ConflictError):
                async with some.turn("b"):
                    pass
        await answer(some, [message(text("again"))])
        assert boundaries(store)[-4:] == ["turn", "step start", "step end", "completed"]
        check_log(log(store))
        check_shown(some)


@pytest.mark.parametrize(
    ("error", "reason"), [(KeyboardInterrupt, "cancelled"), (OSError, "error")]
)
def test_it_is_left_by_an_exception(error: Any, reason: str) -> None:
    store = MemoryStore()
    with plain(store) as conversations:
        some = conversations.open("c")
        broken = [*message(text("I look"), call("u1"), end=False), error()]
        with pytest.raises(error):
            answer_plainly(some, [broken] * 3)
        assert boundaries(store)[-1] == reason
        said = next(each for each in log(store) if each.type == "assistant/message")
        assert said.data["interrupted"] is True
        check_log(log(store))
        check_shown(some)  # type: ignore[arg-type]
        answer_plainly(some, [message(text("again"))])
        check_log(log(store))


def test_what_is_entered_by_hand_and_let_go_is_withdrawn() -> None:
    store = MemoryStore()
    with plain(store) as conversations:
        some = conversations.open("c")
        turn = some.turn("a").__enter__()
        step = turn.step().__enter__()
        attempt = step.attempt(provider="anthropic").__enter__()
        for chunk in message(text("I look"), call("u1"), end=False):
            attempt.feed(chunk)
        assert "tool:u1" in some.view()
        del attempt
        assert "tool:u1" not in some.view()
        del turn, step
        answer_plainly(some, [message(text("again"))])
        assert boundaries(store)[:4] == ["turn", "step start", "interrupted", "turn"]


def test_a_permission_is_asked_by_a_prompt() -> None:
    store = MemoryStore()
    with plain(store) as conversations:
        some = conversations.open("c")

        def allow(question: Question) -> Answer:
            assert types(store)[-1] == "permission/request"
            return Answer("allow", {"at": "sea"})

        def deny(question: Question) -> Answer:
            some.answer(question.call_id, question.request_id, "deny", remember=True)
            return Answer("allow")

        with some.turn("a") as turn, turn.step() as step:
            with step.attempt(provider="anthropic") as attempt:
                for chunk in message(*(call(f"u{at}", index=at) for at in range(1, 5))):
                    attempt.feed(chunk)
            first, second, third, fourth = step.calls
            with step.dispatch(first) as tool:
                assert tool.ask(prompt=allow).allowed
                assert tool.arguments == {"at": "sea"}
                tool.result("seen")
            with step.dispatch(second) as tool, pytest.raises(AssemblerError):
                tool.ask()
            with step.dispatch(third) as tool:
                assert not tool.ask(prompt=deny).allowed, "the first answer counts"
            with step.dispatch(fourth) as tool:
                assert not tool.ask().allowed, "a refusal that is remembered"
        assert some.statistics()["waiting_questions"] == 0
        check_log(log(store))


def test_steering_results_and_older_pages() -> None:
    store = MemoryStore()
    with plain(store) as conversations:
        some = conversations.open("c")
        some.steer("first", message_id="m1")
        answer_plainly(some, [message(call("u1", index=0)), message(text("done"))])
        some.result("u1", "again", is_error=True)
    with plain(store, "m") as conversations:
        some = conversations.open("c", page=1)
        while some.older(2):
            pass
        assert some.flush()["chat"].ops
        kinds = [node.kind for node in some.view()]
        assert kinds[0] == "steering"
        assert some.messages("anthropic")[0]["content"][0]["text"] == "first"
        assert conversations.statistics()["c"]["turns"] == 0
