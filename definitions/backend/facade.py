"""The facade that a chat backend embeds, for an event loop: conversations, turns, steps, attempts.

Not here: who waits (`clerk`), one rule of what is stored or shown (`turns`, `attempts`,
`dispatches`), the same without a loop (`plain`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from types import TracebackType
from typing import Any, Literal, Self

from assembler.engine.definition import Definition, GroupDefinition
from assembler.engine.errors import AssemblerError, ConflictError
from assembler.engine.events import Draft
from assembler.live import Live, Open, Publisher, Session, Subscription, new_name, wall_clock
from assembler.stores import Store
from definitions.backend.attempts import AttemptCore
from definitions.backend.clerk import Clerk
from definitions.backend.desk import Desk
from definitions.backend.dispatches import DispatchCore
from definitions.backend.faces import (
    PAGE_EVENTS,
    AttemptFace,
    ConversationFace,
    DispatchFace,
    Hide,
    Redact,
    StepFace,
    TurnFace,
    assembling,
)
from definitions.backend.plain import SyncConversation
from definitions.backend.sources import MakeAgent, SourceCore, Writer
from definitions.backend.turns import StepCore, TurnCore
from definitions.backend.values import Answer, Content, Decision
from definitions.describer import Describer, Job
from definitions.providers import AgentPiece, Call

__all__ = ["AgentSource", "Attempt", "Conversation", "Conversations", "Dispatch", "Step", "Turn"]

Describe = Callable[[Job], Awaitable[str]]


class _Block:
    """What a block of the facade does, whichever it is: it is entered, and let go of."""

    _core: Any
    _clerk: Clerk

    async def __aenter__(self) -> Self:
        await self._clerk.enter(self._core.begin(), self._core.end)
        return self

    def __del__(self) -> None:
        if self._core.is_open:
            self._clerk.drop(self._core.drop)


class _LiveBlock(_Block):
    """One that has something live to withdraw when it is left."""

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        core = self._core
        await self._clerk.leave(
            lambda: core.end(error), error, drop=core.drop, withdraw=core.withdraw
        )


class Attempt(AttemptFace, _LiveBlock):
    """One model call: feed it what the provider sends.

    Leave the block and the answer counts. Whole: its message is stored and `step.calls` are its
    ready calls. Cut by length or a filter (`why`): its message is stored, and nothing of it runs.
    Not whole: all that it showed is withdrawn, and `AttemptLost` is raised.

    Left by an exception, all is withdrawn, and the exception goes on. Left by a cancellation
    likewise, and what people have read of it is stored.
    """

    def __init__(self, core: AttemptCore, clerk: Clerk) -> None:
        super().__init__(core)
        self._clerk = clerk

    async def __aenter__(self) -> Self:
        self._core.begin()
        return self


class Dispatch(DispatchFace, _Block):
    """One call that is taken over; entering stores `tool/call`.

        async with step.dispatch(call) as tool:
            answer = await tool.ask()
            if answer.allowed:
                tool.result(await TOOLBOX[call.name](**tool.arguments))

    Leaving stores the result. Without one: an exception is stored as the result, and goes on
    (unless `errors="result"`); a refusal is stored; a cancellation stores nothing.
    """

    def __init__(self, core: DispatchCore, clerk: Clerk) -> None:
        super().__init__(core)
        self._clerk = clerk

    async def ask(self, input: Any = None, *, request_id: str | None = None) -> Answer:
        """Ask somebody whether it may run, and wait for the answer (`Conversation.answer`).

        `input` is what they are shown (without it: the arguments). An answer may change it: what
        runs is `arguments` from then on. A name that was refused for ever is refused at once.

        `request_id` (a number is found without it) must be new for this call. Raises
        `ConflictError` when no answer can come any more: the turn was closed, the call has a
        result, or its block was left. Then it may not run, and nothing is stored of it.
        """
        asked = await self._clerk.do(self._core.request(input, request_id))
        if isinstance(asked, Answer):
            return asked
        if asked.is_open:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            asked.wake = partial(_wake, waiter)
            try:
                await waiter
            finally:
                self._core.desk.forget(asked)
        return self._core.answered(asked.answer)

    def dispatch(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        errors: Literal["raise", "result"] = "raise",
    ) -> Dispatch:
        """A call that this one makes (a subagent's, a script's), which names it as its parent."""
        return Dispatch(self._core.child(name, arguments, errors=errors), self._clerk)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        core = self._core
        return bool(await self._clerk.leave(lambda: core.end(error), error, drop=core.drop))


class Step(StepFace, _LiveBlock):
    """One model call that is answered in the end, and the calls of its answer."""

    def __init__(
        self, core: StepCore, clerk: Clerk, sleep: Callable[[float], Awaitable[Any]]
    ) -> None:
        super().__init__(core)
        self._clerk = clerk
        self._sleep = sleep

    def attempt(self, *, provider: str, model: str | None = None) -> Attempt:
        """One try of the model call. `provider` names the format of what it will be fed; `model`
        is told by a fallback. Raises `InputError` for a format that nobody reads."""
        return Attempt(AttemptCore(self._core, provider, model), self._clerk)

    async def retry(
        self,
        lost: BaseException,
        *,
        delay_ms: int = 0,
        at_most: int | None = None,
        reason: str | None = None,
    ) -> None:
        """Say that another attempt will follow the one that was lost, and wait `delay_ms`.

        With `at_most` attempts in this step (all of them counted), it raises `lost` instead.
        `reason` is what people read; without it, why it was lost, or the name of the exception.
        """
        await self._clerk.do(self._core.retry(lost, delay_ms, at_most, reason))
        if delay_ms:
            await self._sleep(delay_ms / 1_000)

    async def fallback(
        self,
        lost: BaseException,
        *,
        to_model: str,
        from_model: str | None = None,
        at_most: int | None = None,
        reason: str | None = None,
    ) -> None:
        """Say that another model will be asked. `from_model`: without it, the attempt's own."""
        await self._clerk.do(self._core.fallback(lost, to_model, from_model, at_most, reason))

    def dispatch(self, call: Call, *, errors: Literal["raise", "result"] = "raise") -> Dispatch:
        """Take over one of `calls`. Any number may go on at once."""
        return Dispatch(DispatchCore(self._core, call, errors=errors), self._clerk)


class Turn(TurnFace, _LiveBlock):
    """From an input to the end of its answer: steps until `done`.

    Leaving it closes what is open in it: `completed`, `cancelled`, `limit`, or by another exception
    `error`, which goes on.
    """

    def __init__(
        self, core: TurnCore, clerk: Clerk, sleep: Callable[[float], Awaitable[Any]]
    ) -> None:
        super().__init__(core)
        self._clerk = clerk
        self._sleep = sleep

    def step(self) -> Step:
        """The next step. Entering it stores `step/start`, and before it the input that waits."""
        return Step(StepCore(self._core), self._clerk, self._sleep)


class AgentSource(_LiveBlock):
    """An agent that runs by itself: feed it what the agent says, and the conversation shows it.

        async with conversation.agent(ClaudeCodeAgent) as source:
            async for line in process.stdout:
                await source.feed(line)

    What you send to the agent (prompts, answers to its questions) is fed as well: it is part of
    what is said. While the block goes on nobody else begins a turn. Left, a turn that is open ends:
    `interrupted`, `cancelled` by a cancellation, `error` by another exception, which goes on.
    """

    def __init__(
        self,
        core: SourceCore,
        clerk: Clerk,
        beside: Callable[[str], Awaitable[Conversation]],
    ) -> None:
        self._core = core
        self._clerk = clerk
        self._beside = beside
        self._order = asyncio.Lock()

    async def feed(self, given: object) -> None:
        """Take bytes or text of what the agent prints, cut anywhere, a line, or a decoded message.

        It is stored when this returns. Several tasks may feed what goes in and what comes out.
        Never raises for what an agent says; `StoreError` when it cannot be stored.
        """
        self._core.read(given)
        await self._write()

    async def _write(self) -> None:
        async with self._order:
            while (found := self._core.next()) is not None:
                name, pieces = found
                if name is None:
                    await self._clerk.do(self._core.write(pieces))
                else:
                    await self._write_beside(name, pieces)

    async def _write_beside(self, name: str, pieces: list[AgentPiece]) -> None:
        other = await self._beside(name)
        writer = self._core.writer(name)
        if writer is None:
            writer = Writer(other._desk)  # noqa: SLF001 - of this file
            self._core.follow(name, writer)
            await other._clerk.do(writer.begin())  # noqa: SLF001
        await other._clerk.do(writer.write(pieces))  # noqa: SLF001

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if not isinstance(error, GeneratorExit):
                self._core.stop(error)
                await self._write()
        finally:
            await super().__aexit__(kind, error, trace)


class Conversation(ConversationFace):
    """One conversation that a backend works on and people watch. Made by `Conversations.open`.

    `sync` is the same without a loop: its calls block while the store works. `session` holds it
    together, and takes events and deltas of your own (a title, what a Definition of yours takes).
    """

    def __init__(  # noqa: PLR0913 - given by name
        self,
        session: Session,
        store: Store,
        *,
        names: Callable[[], str],
        sleep: Callable[[float], Awaitable[Any]],
        history: bool,
        beside: Callable[[str], Awaitable[Conversation]],
        describe: Describe | None = None,
        describes: Hide = (),
    ) -> None:
        super().__init__(Desk(session.sync, names=names, history=history))
        self.session = session
        self._describer: Describer | None = None
        if describe is not None:
            allows = describes if callable(describes) else describes.__contains__
            self._describer = Describer(
                describe,
                allows=lambda name: name is not None and allows(name),
                write=self._write,
            )
            self._desk.describer = self._describer
        self.sync = SyncConversation(self._desk, session.sync, store.sync, time.sleep)
        self._sleep = sleep
        self._beside = beside
        self._clerk = Clerk(self._desk, session, store)
        session.on_orphan(self._orphaned)

    def _orphaned(self, _left: Open) -> None:
        self._clerk.begin(self._desk.closing_orphan())

    async def _write(self, draft: Draft) -> None:
        await self.session.decide(lambda: [draft])

    async def _open(self, page: int) -> None:
        await self.session.open(page)
        await self._clerk.do(self._desk.opened())

    def turn(
        self,
        content: Content = None,
        *,
        message_id: str | None = None,
        source: Mapping[str, Any] | None = None,
        limit: int | None = None,
    ) -> Turn:
        """Begin a turn with an input: text, blocks, or None (nobody said anything new).

        `source` says who sent it when it was no person. `limit`: at most so many steps. One turn at
        a time: entering a second one raises `ConflictError` (`steer` instead).
        """
        return Turn(self._turn(content, message_id, source, limit), self._clerk, self._sleep)

    def agent(self, make: MakeAgent) -> AgentSource:
        """Follow an agent that runs by itself: a class of `definitions.providers`, or whatever
        makes its adapter when it is given the conversation's last `turn`.

        What a subagent says is stored as a conversation beside this one, `name/call id`.
        """
        return AgentSource(SourceCore(self._desk, make), self._clerk, self._beside)

    async def steer(
        self,
        content: Content,
        *,
        queue: Literal["next-step", "next-turn"] = "next-step",
        message_id: str | None = None,
        source: Mapping[str, Any] | None = None,
    ) -> str:
        """Say something while a turn goes on: the next model call reads it, or the next turn.
        Gives its message id. What waits for a step that never comes begins the next turn."""
        message = self._desk.message(content, message_id, source)
        return await self._clerk.do(self._desk.steering(message, queue))

    async def answer(
        self,
        call_id: str,
        request_id: str,
        decision: Decision,
        *,
        remember: bool = False,
        updated_input: Mapping[str, Any] | None = None,
    ) -> None:
        """Decide about a call that asks for a permission. With `remember`, a refusal holds for the
        tool's name in this conversation. `ConflictError` when that question is not open: unknown,
        answered, or its call has its result or its turn is closed."""
        answer = Answer(decision, updated_input, remember)
        await self._clerk.do(self._desk.answering(call_id, request_id, answer))

    def reply(self, inquiry_id: str, answer: Any) -> None:
        """Answer what a description asks. `ConflictError` when nobody here asks it (any more);
        `InputError` for what is no JSON."""
        if self._describer is None or not self._describer.answer(inquiry_id, answer):
            msg = f"inquiry {inquiry_id!r:.80} is not open"
            raise ConflictError(msg, None, None)

    async def result(self, call_id: str, content: Content, *, is_error: bool = False) -> None:
        """Store the result of a call whose dispatch was left without one: a job in the
        background."""
        await self._clerk.do(self._desk.resulting(call_id, content, is_error=is_error))

    async def older(self, limit: int = PAGE_EVENTS) -> bool:
        """Load an older page; whether still older events exist. O(page)."""
        return await self.session.older(limit)

    def subscribe(self, view: str = "chat") -> Subscription:
        """Follow a view: a snapshot, then patches, without a gap or a repeat."""
        return self.session.subscribe(view)

    async def close(self) -> None:
        """Do what was begun, withdraw what is live here, and end every subscription."""
        if self._describer is not None:
            await self._describer.close()
        await self._clerk.close()
        await self.session.close()


class Conversations:
    """The conversations of one store, each opened once.

        async with Conversations(store, catalog()) as conversations:
            conversation = await conversations.open("demo", page=50)

    `redact(node)` stands before every view and patch: another Node, or None and nobody sees it;
    `hidden` names tools that have no row at any stage (or says so of a name). `elsewhere`: False,
    the default, says that whoever works on these conversations works here, so that a turn that is
    open when one is opened was left by a crash; None: not known, and it is left alone. `history`:
    whether a turn loads what the model context needs. `now` gives milliseconds, `names` unique
    names, `sleep` waits so many seconds. `frame_ms`: how long text may wait to be sent together.
    `live` tells the conversations of other processes what goes on here, and these what goes on
    there; then `elsewhere` is learned from it.
    `idle_max`: so many that nobody is `using` and nobody opened for good stay open, for the next
    one who asks.

    `await describe(job)` gives the text by which people understand a call that asks for their
    permission, from `job.tool` and `job.input`; `await job.ask(question)` waits for
    `Conversation.reply`. It begins as soon as the model has written the input, and it is shown only
    beside the same input (`description` of the call's row). It may run more often than it is
    needed, so only the tools that `describes` names (or says so of) are described.

    For one event loop. Leaving it closes them, and not the store.
    """

    def __init__(  # noqa: PLR0913 - given by name
        self,
        store: Store,
        definitions: Iterable[Definition | GroupDefinition],
        *,
        redact: Redact | None = None,
        hidden: Hide = (),
        elsewhere: bool | None = False,
        history: bool = True,
        now: Callable[[], int] = wall_clock,
        names: Callable[[], str] = new_name,
        sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
        frame_ms: float = 33,
        live: Live | None = None,
        describe: Describe | None = None,
        describes: Hide = (),
        idle_max: int = 50,
    ) -> None:
        self._store = store
        self._live = live
        self._frame_ms = frame_ms
        self._assembler = assembling(definitions, redact, hidden)
        self._elsewhere = elsewhere
        self._history = history
        self._now = now
        self._names = names
        self._sleep = sleep
        self._describing: dict[str, Any] = {"describe": describe, "describes": describes}
        self._open: dict[str, asyncio.Task[Conversation]] = {}
        self._kept: set[str] = set()
        """Those that were opened for good: somebody may hold them."""
        self._users: dict[str, int] = {}
        self._idle: dict[str, None] = {}
        """Those that are neither, the one that was left longest ago first."""
        self._idle_max = idle_max
        self._going: dict[str, asyncio.Task[None]] = {}
        self._closed = False

    async def open(self, name: str, *, page: int = PAGE_EVENTS) -> Conversation:
        """Open a conversation at its newest `page` events: new, stored, or already open here (then
        it is the same object). What a crash left open in it is closed. It stays open until `close`;
        a backend of many has each while it is `using` it. Raises `StoreError`."""
        conversation = await self._opened(name, page)
        self._kept.add(name)
        self._idle.pop(name, None)
        return conversation

    async def _opened(self, name: str, page: int) -> Conversation:
        while (going := self._going.get(name)) is not None:
            await asyncio.wait([going])
        if self._closed:
            msg = "the conversations are closed"
            raise AssemblerError(msg)
        opening = self._open.get(name)
        if opening is None or (opening.done() and _failed(opening)):
            opening = self._open[name] = asyncio.ensure_future(self._opening(name, page))
        return await asyncio.shield(opening)

    @property
    def store(self) -> Store:
        """Where they are kept. Its owner closes it."""
        return self._store

    @asynccontextmanager
    async def using(self, name: str, *, page: int = PAGE_EVENTS) -> AsyncGenerator[Conversation]:
        """The same as `open`, as long as the block goes on. Behind it a conversation in which
        nothing goes on is closed once `idle_max` others were left after it."""
        self._users[name] = self._users.get(name, 0) + 1
        self._idle.pop(name, None)
        try:
            yield await self._opened(name, page)
        finally:
            self._leave(name)

    @asynccontextmanager
    async def use(self, name: str) -> AsyncGenerator[Session]:
        """The Session of a conversation as long as the block goes on, as a server asks for it
        (`assembler.server.StoreSource`)."""
        async with self.using(name) as conversation:
            yield conversation.session

    def _leave(self, name: str) -> None:
        self._users[name] -= 1
        if self._users[name]:
            return
        del self._users[name]
        opening = self._open.get(name)
        if opening is not None and opening.done() and _failed(opening):
            del self._open[name]
        elif opening is not None and name not in self._kept:
            self._idle[name] = None
            self._let_go()

    def _gone(self, name: str, _: asyncio.Task[None]) -> None:
        del self._going[name]

    def _let_go(self) -> None:
        """Close those that were left longest ago; one in which something goes on stays."""
        for name in tuple(self._idle):
            if len(self._idle) <= self._idle_max:
                return
            del self._idle[name]
            opening = self._open[name]
            if not opening.done() or opening.result().session.busy:
                self._idle[name] = None
                continue
            going = self._going[name] = asyncio.ensure_future(self.close(name))
            going.add_done_callback(partial(self._gone, name))

    def awake(self, name: str) -> Session | None:
        """The Session of a conversation that is open here, for a look at it. O(1)."""
        opening = self._open.get(name)
        if opening is None or not opening.done() or _failed(opening):
            return None
        return opening.result().session

    async def _opening(self, name: str, page: int) -> Conversation:
        session = Session(
            self._store,
            name,
            Publisher(self._assembler(), frame_ms=self._frame_ms),
            now=self._now,
            names=self._names,
            elsewhere=self._elsewhere,
            live=self._live,
        )
        conversation = Conversation(
            session,
            self._store,
            names=self._names,
            sleep=self._sleep,
            history=self._history,
            beside=lambda call_id: self.open(f"{name}/{call_id}"),
            **self._describing,
        )
        try:
            await conversation._open(page)  # noqa: SLF001 - of this file
        except BaseException:
            await session.close()
            raise
        return conversation

    async def close(self, name: str | None = None) -> None:
        """Close one conversation, or all of them for good. The store stays open."""
        if name is None:
            self._closed = True
        for each in [name] if name is not None else list(self._open):
            self._kept.discard(each)
            self._idle.pop(each, None)
            opening = self._open.pop(each, None)
            if opening is None:
                continue
            await asyncio.wait([opening])
            if not _failed(opening):
                await opening.result().close()
        while name is None and self._going:
            await asyncio.wait(tuple(self._going.values()))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def statistics(self) -> dict[str, Any]:
        """Counts for an operator, of each conversation that is open, as plain JSON values."""
        return {
            name: opening.result().statistics()
            for name, opening in self._open.items()
            if opening.done() and not _failed(opening)
        }


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def _failed(task: asyncio.Task[Any]) -> bool:
    return task.cancelled() or task.exception() is not None
