"""Any run: whatever models, tools and people do, stopped or crashed anywhere.

The log is in order, and what is shown is what a reload shows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from definitions import AttemptLost, Conversation, Dispatch
from tests.definitions.backend.support import (
    Awaiting,
    WaitingStore,
    backend,
    call,
    check_log,
    check_shown,
    log,
    message,
    pump,
    raw_call,
    text,
)

ANSWERS: dict[str, Callable[[], list[Any]]] = {
    "text": lambda: message(text("hello")),
    "blank": lambda: message(text("  ")),
    "call": lambda: message(text("I look"), call("call_0", at="sky")),
    "two": lambda: message(call("call_0", index=0), call("call_1", index=1)),
    "same": lambda: message(call("call_0", "look", 0, a=1), call("call_0", "look", 1, a=2)),
    "unparsed": lambda: message(raw_call("call_0", "look", "{", 0)),
    "broken": lambda: message(text("I lo"), call("call_0"), end=False),
    "cut": lambda: message(text("I look"), call("call_0"), stop="max_tokens"),
    "reset": lambda: [*message(text("I lo"), call("call_0"), end=False), OSError("reset")],
    "refused": lambda: [OSError("refused")],
}
TOOLS = ["result", "raise", "ask", "leave", "print"]


class Play:
    """A backend that does what was drawn; when nothing is drawn any more, it says hello."""

    def __init__(
        self, some: Conversation, answers: list[str], tools: list[str], many: bool
    ) -> None:
        self.some = some
        self.answers = [ANSWERS[each]() for each in answers]
        self.tools = list(tools)
        self.many = many

    async def run(self) -> None:
        async with self.some.turn("hello", limit=4) as turn:
            while not turn.done:
                async with turn.step() as step:
                    while not step.answered:
                        try:
                            async with step.attempt(provider="anthropic") as attempt:
                                await self.feed(attempt.feed)
                        except (AttemptLost, OSError) as lost:
                            if self.many:
                                await step.retry(lost, delay_ms=9, at_most=3)
                            else:
                                await step.fallback(lost, to_model="large", at_most=2)
                    if self.many:
                        async with asyncio.TaskGroup() as group:
                            for each in step.calls:
                                group.create_task(self.use(step, each))
                    else:
                        for each in step.calls:
                            await self.use(step, each)

    async def feed(self, feed: Callable[[Any], None]) -> None:
        chunks = self.answers.pop(0) if self.answers else ANSWERS["text"]()
        for chunk in chunks:
            await asyncio.sleep(0)
            if isinstance(chunk, BaseException):
                raise chunk
            feed(chunk)

    async def use(self, step: Any, each: Any) -> None:
        how = self.tools.pop(0) if self.tools else "result"
        async with step.dispatch(each, errors="result" if self.many else "raise") as tool:
            await asyncio.sleep(0)
            await self.act(tool, how)

    async def act(self, tool: Dispatch, how: str) -> None:
        if how == "raise":
            raise ValueError("no")
        if how == "print":
            tool.output("out")
            await asyncio.sleep(0)
        if how == "ask" and not (await tool.ask()).allowed:
            return
        if how != "leave":
            tool.result("seen")


async def people(some: Conversation, decisions: list[str]) -> None:
    """They answer what is asked, and say something now and then."""
    heard: asyncio.Queue[Any] = asyncio.Queue()
    some.session.listen(lambda event, own: heard.put_nowait(event))
    while True:
        event = await heard.get()
        if event.type == "permission/request":
            decision = decisions.pop(0) if decisions else "allow"
            if decision == "steer":
                await some.steer("faster")
            if not some._desk.known.is_pending(event.data["call_id"], event.data["request_id"]):
                continue
            await some.answer(
                event.data["call_id"],
                event.data["request_id"],
                "deny" if decision.startswith("deny") else "allow",
                remember=decision == "deny for ever",
                updated_input={"at": "sea"} if decision == "change" else None,
            )


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    turns=st.lists(
        st.tuples(
            st.lists(st.sampled_from(sorted(ANSWERS)), max_size=5),
            st.lists(st.sampled_from(TOOLS), max_size=4),
            st.booleans(),
            st.sampled_from(["whole", "cancel", "cancel twice", "crash"]),
            st.integers(1, 60),
        ),
        min_size=1,
        max_size=4,
    ),
    decisions=st.lists(
        st.sampled_from(["allow", "deny", "deny for ever", "change", "steer"]), max_size=4
    ),
    page=st.integers(1, 12),
)
def test_any_run(turns: list[Any], decisions: list[str], page: int) -> None:
    asyncio.run(_any_run(turns, list(decisions), page))


async def _any_run(turns: list[Any], decisions: list[str], page: int) -> None:
    store = WaitingStore()
    left: list[Any] = []
    conversations = backend(store, "p0")
    some = await conversations.open("c", page=page)
    answering = asyncio.ensure_future(people(some, decisions))
    for number, (answers, tools, many, fate, at) in enumerate(turns):
        strike = striking(fate, at)
        task = asyncio.ensure_future(_await(Play(some, answers, tools, many).run(), strike))
        done, _ = await asyncio.wait([task, strike.frozen], return_when="FIRST_COMPLETED")
        if task in done:
            if not task.cancelled():
                assert isinstance(task.exception(), (AttemptLost, OSError, ValueError, type(None)))
            for node in some.view():
                assert node.data.get("stage") != "preparing"
            await pump()
            check_shown(some)
            check_log(log(store))
            continue
        # Its process stands still, and another one takes over. What it does later, it may not.
        left.append((conversations, answering, task))
        conversations = backend(store, f"p{number + 1}")
        some = await conversations.open("c", page=page)
        answering = asyncio.ensure_future(people(some, decisions))
        await Play(some, [], [], many=False).run()
        await some.session.catch_up()
        check_shown(some)
        check_log(log(store))
    for others, other_people, task in [*left, (conversations, answering, None)]:
        other_people.cancel()
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        await others.close()
    await pump()
    check_log(log(store))


class striking:  # noqa: N801 - read as a verb
    """What happens at the `at`-th wait."""

    def __init__(self, fate: str, at: int) -> None:
        self.fate = fate
        self.at = at
        self.frozen: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def __call__(self, n: int) -> None:
        task = asyncio.current_task()
        assert task is not None
        if (self.fate == "cancel" and n == self.at) or (
            self.fate == "cancel twice" and n in (self.at, self.at + 1)
        ):
            task.cancel()

    async def stands_still(self) -> None:
        self.frozen.set_result(None)
        await asyncio.Event().wait()


async def _await(coroutine: Any, strike: striking) -> None:
    run = Awaiting(coroutine, strike)
    if strike.fate == "crash":
        run.pauses = {strike.at: strike.stands_still}
    await run
