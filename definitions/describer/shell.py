"""The coordinator in an event loop: descriptions are tasks, requests and questions are awaited.

Not here: what is described, reused or withdrawn, and when (`core`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Self

from msgspec import Struct

from assembler.engine.errors import ConflictError
from assembler.engine.events import Draft, Event
from assembler.engine.values import Json, thaw
from definitions.describer.core import AT_ONCE_MAX, Core
from definitions.describer.values import Counts, Shown, Start, Stop, Verdict, Write

__all__ = ["Described", "Describer", "Job"]


class Described(Struct, frozen=True):
    """What a request comes to. `text` was made from `input` and nothing else; None: there is none
    (it failed, the tool does not allow it, or nobody asks any more)."""

    verdict: Verdict
    input: Json
    text: str | None


class Job:
    """One description that is being made: of a call of `tool`, from `input` (plain JSON)."""

    def __init__(self, describer: Describer, start: Start) -> None:
        self.call_id = start.call_id
        self.tool = start.tool
        self.input: Any = thaw(start.input)
        self._describer = describer
        self._number = start.job
        self._asked = 0

    async def ask(self, question: Any) -> Any:
        """Ask people something, and wait for `Describer.answer`. Recorded when it is asked, when
        it is answered, and when the description is let go."""
        self._asked += 1
        name = f"{self.call_id}/{self._number}/{self._asked}"
        return await self._describer._ask(self._number, name, question)  # noqa: SLF001 - its own


class Describer:
    """Describes the calls of one conversation ahead of their requests. For one event loop.

    `describe` makes one description; it is cancelled when nobody needs it any more. `allows` says
    whether a tool may be described unattended. `write` appends an event: one after the other, in
    order. Use it as `async with`: leaving it ends every task and every question.
    """

    def __init__(
        self,
        describe: Callable[[Job], Awaitable[str]],
        *,
        allows: Callable[[str | None], bool],
        write: Callable[[Draft], Awaitable[object]],
        at_once: int = AT_ONCE_MAX,
    ) -> None:
        self._describe = describe
        self._write = write
        self._core = Core(allows, at_once=at_once)
        self._jobs: dict[int, asyncio.Task[str]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._requests: dict[str, asyncio.Future[Described]] = {}
        self._questions: dict[str, asyncio.Future[Any]] = {}
        self._unwritten: deque[Draft] = deque()
        self._writer: asyncio.Task[None] | None = None
        self._asked = 0
        self._is_closed = False
        self.lost = 0
        """Events that `write` refused; what they told is lost, the rest goes on."""

    @property
    def counts(self) -> Counts:
        """What became of the descriptions so far."""
        return self._core.counts

    @property
    def open_questions(self) -> tuple[str, ...]:
        """The ids of the questions that wait for an answer."""
        return self._core.open_questions

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # -- what happens --------------------------------------------------------------------

    def hint(self, call_id: str, tool: str | None, input: Any, attempt: str | None = None) -> None:
        """A call's input is complete, long before anybody asks for it. Never raises."""
        if not self._is_closed:
            self._core.hint(call_id, tool, input, attempt)
            self._act()

    async def request(
        self, call_id: str, tool: str | None, input: Any, attempt: str | None = None
    ) -> Described:
        """The permission channel asks: wait for the description that the approval may show.

        Cancelled, the call is withdrawn. `ConflictError`: closed; `InputError`: not JSON.
        """
        if self._is_closed:
            msg = "nothing is described any more"
            raise ConflictError(msg, None, None)
        self._asked += 1
        name = str(self._asked)
        waits: asyncio.Future[Described] = asyncio.get_running_loop().create_future()
        self._requests[name] = waits
        try:
            self._core.request(call_id, tool, input, name, attempt)
            self._act()
            return await waits
        except asyncio.CancelledError:
            self.withdraw(call_id)
            raise
        finally:
            self._requests.pop(name, None)

    def asked(
        self,
        call_id: str,
        tool: str | None,
        input: Any,
        request_id: str,
        attempt: str | None = None,
    ) -> None:
        """`request`, for one who does not wait: what it comes to is read from the call's row."""
        if not self._is_closed:
            self._core.request(call_id, tool, input, f"asked:{request_id}", attempt)
            self._act()

    def answer(self, inquiry_id: str, answer: Any) -> bool:
        """Answer a question. False: nobody asks it (any more)."""
        if not self._core.answer(inquiry_id, answer):
            return False
        waits = self._questions.pop(inquiry_id, None)
        if waits is not None and not waits.done():
            waits.set_result(answer)
        self._act()
        return True

    def withdraw(self, call_id: str) -> None:
        """The call will not come."""
        self._core.withdraw(call_id)
        self._act()

    def abandon(self, attempt: str) -> None:
        """The attempt is given up, with all its calls."""
        self._core.abandon(attempt)
        self._act()

    def learn(self, event: Event) -> None:
        """Take an event of history: it starts nothing."""
        self._core.learn(event)

    def hear(self, event: Event) -> None:
        """Take an event that happens now."""
        self._core.hear(event)
        self._act()

    async def close(self) -> None:
        """End all: each task is cancelled and awaited, each question withdrawn and recorded."""
        self._is_closed = True
        self._core.close()
        self._act()
        while self._tasks:
            await asyncio.wait(tuple(self._tasks))

    # -- doing it ------------------------------------------------------------------------

    def _act(self) -> None:
        for action in self._core.actions():
            if isinstance(action, Start):
                self._start(action)
            elif isinstance(action, Stop):
                task = self._jobs.pop(action.job, None)
                if task is not None:
                    task.cancel()
            elif isinstance(action, Write):
                self._unwritten.append(action.draft)
            else:
                self._resolve(action)
        if self._unwritten and self._writer is None:
            self._writer = self._task(self._write_all())

    def _task(self, work: Any) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _start(self, start: Start) -> None:
        task = self._jobs[start.job] = self._task(self._made(Job(self, start)))
        task.add_done_callback(lambda done: self._ended(start.job, done))

    async def _made(self, job: Job) -> str:
        text: object = await self._describe(job)
        if not isinstance(text, str):
            msg = f"a description: expected a text, got {type(text).__name__}"
            raise TypeError(msg)
        return text

    def _ended(self, job: int, task: asyncio.Task[str]) -> None:
        """A description is done, or failed; one that was let go says nothing any more."""
        error = None if task.cancelled() else task.exception()
        if self._jobs.pop(job, None) is None:
            return
        if task.cancelled() and task.cancelling():
            self._is_closed = True  # somebody ends all tasks: begin no other
            self._core.close()
        elif task.cancelled() or error is not None:
            self._core.failed(job)
        else:
            self._core.finished(job, task.result())
        self._act()

    def _resolve(self, shown: Shown) -> None:
        waits = self._requests.get(shown.request_id)
        if shown.is_last and waits is not None and not waits.done():
            waits.set_result(Described(shown.verdict, shown.input, shown.text))

    async def _ask(self, job: int, name: str, question: Any) -> Any:
        waits: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if not self._core.ask(job, name, question):
            raise asyncio.CancelledError
        self._questions[name] = waits
        try:
            self._act()
            return await waits
        finally:
            self._questions.pop(name, None)

    async def _write_all(self) -> None:
        try:
            while self._unwritten:
                try:
                    await self._write(self._unwritten.popleft())
                except Exception:
                    self.lost += 1
        finally:
            self._writer = None
