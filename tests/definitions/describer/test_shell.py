"""The coordinator in an event loop: what is awaited, what is cancelled, and what is left behind."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from assembler import Assembler, ConflictError
from assembler.engine.events import Draft
from definitions import catalog
from definitions.describer import Describer, Job, example

Describe = Callable[[Job], Awaitable[str]]


class Log:
    """What was written, and the conversation that comes of it."""

    def __init__(self) -> None:
        self.types: list[str] = []
        self.assembler = Assembler(catalog(), strict=True)
        call = {"turn": 1, "step": 1, "call_id": "c1", "name": "move", "arguments": '{"to": 1}'}
        self.append("turn/start", {"turn": 1})
        self.append("step/start", {"turn": 1, "step": 1})
        self.append("tool/call", call)

    async def write(self, draft: Draft) -> None:
        await asyncio.sleep(0)
        self.types.append(draft.type)
        self.append(draft.type, draft.data)

    def append(self, kind: str, data: Any) -> None:
        seq = self.assembler.statistics()["events"] + 1
        self.assembler.append({"seq": seq, "type": kind, "time": seq, "data": data})

    def description(self) -> Any:
        self.assembler.flush()
        return self.assembler.view()["tool:c1"].to_json()["data"]["description"]


def run(work: Callable[[Describer, Log], Coroutine[Any, Any, None]], describe: Describe) -> Log:
    """Run it to its end: nothing is left behind, neither a task nor an open question."""
    log = Log()

    async def whole() -> None:
        async with Describer(describe, allows=lambda _: True, write=log.write) as describer:
            try:
                await work(describer, log)
            finally:
                await describer.close()
                assert asyncio.all_tasks() == {asyncio.current_task()}
                assert describer.open_questions == ()
                counts = describer.counts
                ended = counts.reused + counts.discarded + counts.withdrawn
                assert counts.started == ended
                assert counts.opened == counts.answered + counts.questions_withdrawn

    asyncio.run(whole(), debug=True)
    return log


async def turns(number: int = 10) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


async def at_once(job: Job) -> str:
    return f"Moves it to {job.input['to']}."


async def never(job: Job) -> str:
    await asyncio.Event().wait()
    return "never"


async def asking(job: Job) -> str:
    return f"Moves it {await job.ask('How?')}."


def test_a_request_finds_what_its_hint_began() -> None:
    async def work(describer: Describer, log: Log) -> None:
        describer.hint("c1", "move", {"to": 1}, "a1")
        await turns()
        assert log.description()["text"] == "Moves it to 1."
        found = await describer.request("c1", "move", {"to": 1})
        assert (found.verdict, found.text) == ("reuse", "Moves it to 1.")
        found = await describer.request("c2", "move", {"to": 2})
        assert (found.verdict, found.text) == ("again", "Moves it to 2.")

    assert run(work, at_once).types[:2] == ["description/started", "description/ready"]


def test_a_question_is_asked_and_answered_while_nobody_is_prompted() -> None:
    async def work(describer: Describer, log: Log) -> None:
        describer.hint("c1", "move", {"to": 1})
        await turns()
        assert log.description()["status"] == "questions-open"
        (question,) = describer.open_questions
        assert describer.answer(question, "slowly")
        assert not describer.answer(question, "fast")
        found = await describer.request("c1", "move", {"to": 1})
        assert found.text == "Moves it slowly."
        await turns()
        assert log.description()["questions"][0]["answer"] == "slowly"

    run(work, asking)


@pytest.mark.parametrize("describe", [never, asking])
@pytest.mark.parametrize("after", range(6))
def test_closing_at_any_moment_leaves_nothing(describe: Describe, after: int) -> None:
    async def work(describer: Describer, log: Log) -> None:
        describer.hint("c1", "move", {"to": 1})
        waits = asyncio.ensure_future(describer.request("c1", "move", {"to": 1}))
        await turns(after)
        await describer.close()
        assert (await asyncio.gather(waits, return_exceptions=True)) != []
        assert waits.done()

    log = run(work, describe)
    assert log.types.count("inquiry/opened") == log.types.count("inquiry/withdrawn")
    assert log.types.count("description/started") == log.types.count("description/withdrawn")
    assert (log.description() or {"text": None})["text"] is None


@pytest.mark.parametrize("after", range(6))
def test_who_is_cancelled_while_asking_withdraws_the_call(after: int) -> None:
    async def work(describer: Describer, log: Log) -> None:
        waits = asyncio.ensure_future(describer.request("c1", "move", {"to": 1}))
        await turns(after)
        waits.cancel()
        await asyncio.wait([waits])
        assert waits.cancelled()
        await turns()
        assert describer.open_questions == ()
        assert describer.counts.started == describer.counts.withdrawn

    log = run(work, asking)
    assert log.types.count("description/started") == log.types.count("description/withdrawn")


def test_a_description_that_fails_is_none_and_another_input_cancels_it() -> None:
    cancelled = []

    async def describe(job: Job) -> Any:
        if job.input["to"] == 3:
            return 3
        try:
            return await never(job)
        except asyncio.CancelledError:
            cancelled.append(job.input)
            raise

    async def work(describer: Describer, log: Log) -> None:
        describer.hint("c1", "move", {"to": 1})
        await turns()
        found = await describer.request("c1", "move", {"to": 3})
        assert (found.verdict, found.text) == ("again", None)
        await turns()
        assert cancelled == [{"to": 1}]

    run(work, describe)


def test_when_somebody_ends_all_tasks_none_is_begun() -> None:
    async def work(describer: Describer, log: Log) -> None:
        for number in range(9):
            describer.hint(f"c{number}", "move", {"to": number})
        await turns()
        mine = asyncio.current_task()
        for task in asyncio.all_tasks():
            if task is not mine:
                task.cancel()
        await turns()

    assert run(work, never).types.count("description/started") == 4


def test_who_is_closed_is_asked_in_vain_and_a_store_that_fails_ends_nothing() -> None:
    async def whole() -> None:
        async def write(draft: Draft) -> None:
            raise ConflictError("somebody else was quicker", None, None)

        describer = Describer(at_once, allows=lambda _: True, write=write)
        found = await describer.request("c1", "move", {"to": 1})
        assert found.text == "Moves it to 1."
        await describer.close()
        assert describer.lost == 2
        describer.hint("c2", "move", {"to": 1})
        with pytest.raises(ConflictError):
            await describer.request("c1", "move", {"to": 1})

    asyncio.run(whole(), debug=True)


def test_the_example_shows_the_second_prompt_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert example.run(hints=False) == [8, 8]
    assert example.run(hints=True) == [5, 0]
    example.main()
    assert "3.2 times less" in capsys.readouterr().out
