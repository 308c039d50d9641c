"""The same facade without an event loop: every call is done when it returns.

Not here: one rule of what is stored or shown (`turns`, `attempts`, `dispatches`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

from assembler.engine.definition import Definition, GroupDefinition
from assembler.engine.errors import AssemblerError
from assembler.engine.patches import Patch
from assembler.live import SyncSession, new_name, wall_clock
from assembler.stores import SyncStore
from definitions.backend.asking import Work, do
from definitions.backend.attempts import AttemptCore
from definitions.backend.desk import Desk, Question
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
from definitions.backend.sources import MakeAgent, SourceCore, Writer
from definitions.backend.turns import StepCore, TurnCore
from definitions.backend.values import Answer, Content, Decision
from definitions.providers import Call

__all__ = [
    "SyncAgentSource",
    "SyncAttempt",
    "SyncConversation",
    "SyncConversations",
    "SyncDispatch",
    "SyncStep",
    "SyncTurn",
]

T = TypeVar("T")
_log = logging.getLogger("definitions.backend")


class _Clerk:
    """Does the work of one conversation at once."""

    def __init__(
        self,
        desk: Desk,
        session: SyncSession,
        store: SyncStore,
        sleep: Callable[[float], Any],
    ) -> None:
        self.desk = desk
        self.sleep = sleep
        self._session = session
        self._store = store

    def do(self, work: Work[T]) -> T:
        return do(work, self._session, self._store)

    def leave(
        self, end: Callable[[], Work[T]], drop: Callable[[], None], error: BaseException | None
    ) -> T | None:
        """Leave a block. What fails while an exception is on its way is logged."""
        try:
            return self.do(end())
        except Exception as failed:
            drop()
            if error is None:
                raise
            _log.error("%s: an end was not stored: %s", self.desk.name, type(failed).__name__)
            return None

    def enter(self, begin: Work[T], end: Callable[[BaseException], Work[Any]]) -> T:
        """Enter a block. Stopped on the way (Ctrl-C), it is left."""
        try:
            return self.do(begin)
        except Exception:
            raise
        except BaseException as error:
            self.do(end(error))
            raise


class _Block:
    """What a block does, whichever it is: it is entered, and let go of."""

    _core: Any
    _clerk: _Clerk

    def __enter__(self) -> Self:
        self._clerk.enter(self._core.begin(), self._core.end)
        return self

    def __del__(self) -> None:
        if self._core.is_open:
            self._core.drop()


class _LeftBlock(_Block):
    """One that swallows no exception when it is left."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        core = self._core
        self._clerk.leave(lambda: core.end(error), core.drop, error)


class SyncAttempt(AttemptFace, _LeftBlock):
    """One model call: see `Attempt`."""

    def __init__(self, core: AttemptCore, clerk: _Clerk) -> None:
        super().__init__(core)
        self._clerk = clerk

    def __enter__(self) -> Self:
        self._core.begin()
        return self


class SyncDispatch(DispatchFace, _Block):
    """One call that is taken over: see `Dispatch`."""

    def __init__(self, core: DispatchCore, clerk: _Clerk) -> None:
        super().__init__(core)
        self._clerk = clerk

    def ask(
        self,
        input: Any = None,
        prompt: Callable[[Question], Answer] | None = None,
        *,
        request_id: str | None = None,
    ) -> Answer:
        """Ask whether it may run. `prompt` asks somebody and gives the answer, which is stored.

        Without it nobody waits here: the question stands, and the answer is that which somebody
        gave with `answer` while it was written; if there is none, `AssemblerError`.
        """
        asked = self._clerk.do(self._core.request(input, request_id))
        if isinstance(asked, Answer):
            return asked
        desk = self._core.desk
        try:
            if prompt is not None and asked.is_open:
                answer = prompt(asked)
                if asked.is_open:
                    self._clerk.do(desk.answering(asked.call_id, asked.request_id, answer))
        finally:
            desk.forget(asked)
        if asked.is_open:
            msg = f"nobody answered question {asked.request_id!r:.80}: give a `prompt`"
            raise AssemblerError(msg)
        return self._core.answered(asked.answer)

    def dispatch(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        errors: Literal["raise", "result"] = "raise",
    ) -> SyncDispatch:
        """A call that this one makes (a subagent's, a script's), which names it as its parent."""
        return SyncDispatch(self._core.child(name, arguments, errors=errors), self._clerk)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        core = self._core
        return bool(self._clerk.leave(lambda: core.end(error), core.drop, error))


class SyncStep(StepFace, _LeftBlock):
    """One model call that is answered in the end: see `Step`."""

    def __init__(self, core: StepCore, clerk: _Clerk) -> None:
        super().__init__(core)
        self._clerk = clerk

    def attempt(self, *, provider: str, model: str | None = None) -> SyncAttempt:
        """One try of the model call."""
        return SyncAttempt(AttemptCore(self._core, provider, model), self._clerk)

    def retry(
        self,
        lost: BaseException,
        *,
        delay_ms: int = 0,
        at_most: int | None = None,
        reason: str | None = None,
    ) -> None:
        """Say that another attempt will follow, and wait `delay_ms`; or raise `lost`."""
        self._clerk.do(self._core.retry(lost, delay_ms, at_most, reason))
        if delay_ms:
            self._clerk.sleep(delay_ms / 1_000)

    def fallback(
        self,
        lost: BaseException,
        *,
        to_model: str,
        from_model: str | None = None,
        at_most: int | None = None,
        reason: str | None = None,
    ) -> None:
        """Say that another model will be asked; or raise `lost`."""
        self._clerk.do(self._core.fallback(lost, to_model, from_model, at_most, reason))

    def dispatch(self, call: Call, *, errors: Literal["raise", "result"] = "raise") -> SyncDispatch:
        """Take over one of `calls`."""
        return SyncDispatch(DispatchCore(self._core, call, errors=errors), self._clerk)


class SyncTurn(TurnFace, _LeftBlock):
    """From an input to the end of its answer: see `Turn`."""

    def __init__(self, core: TurnCore, clerk: _Clerk) -> None:
        super().__init__(core)
        self._clerk = clerk

    def step(self) -> SyncStep:
        """The next step."""
        return SyncStep(StepCore(self._core), self._clerk)


class SyncAgentSource(_LeftBlock):
    """An agent that runs by itself: see `AgentSource`."""

    def __init__(
        self, core: SourceCore, clerk: _Clerk, beside: Callable[[str], SyncConversation]
    ) -> None:
        self._core = core
        self._clerk = clerk
        self._beside = beside

    def feed(self, given: object) -> None:
        """Take what the agent says. It is stored when this returns."""
        self._core.read(given)
        self._write()

    def _write(self) -> None:
        while (found := self._core.next()) is not None:
            name, pieces = found
            if name is None:
                self._clerk.do(self._core.write(pieces))
                continue
            other = self._beside(name)
            writer = self._core.writer(name)
            if writer is None:
                writer = Writer(other._desk)  # noqa: SLF001 - of this file
                self._core.follow(name, writer)
                other._clerk.do(writer.begin())  # noqa: SLF001
            other._clerk.do(writer.write(pieces))  # noqa: SLF001

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._core.stop(error)
            self._write()
        finally:
            super().__exit__(kind, error, trace)


class SyncConversation(ConversationFace):
    """One conversation without a loop: see `Conversation`. For one thread at a time."""

    def __init__(
        self,
        desk: Desk,
        session: SyncSession,
        store: SyncStore,
        sleep: Callable[[float], Any],
        beside: Callable[[str], SyncConversation] | None = None,
    ) -> None:
        super().__init__(desk)
        self.session = session
        self._beside = beside
        self._clerk = _Clerk(desk, session, store, sleep)

    def turn(
        self,
        content: Content = None,
        *,
        message_id: str | None = None,
        source: Mapping[str, Any] | None = None,
        limit: int | None = None,
    ) -> SyncTurn:
        """Begin a turn with an input."""
        return SyncTurn(self._turn(content, message_id, source, limit), self._clerk)

    def agent(self, make: MakeAgent) -> SyncAgentSource:
        """Follow an agent that runs by itself."""
        if self._beside is None:
            msg = "this is the `sync` of a conversation: follow the agent by the conversation"
            raise AssemblerError(msg)
        return SyncAgentSource(SourceCore(self._desk, make), self._clerk, self._beside)

    def steer(
        self,
        content: Content,
        *,
        queue: Literal["next-step", "next-turn"] = "next-step",
        message_id: str | None = None,
        source: Mapping[str, Any] | None = None,
    ) -> str:
        """Say something that the next step, or the next turn, reads."""
        message = self._desk.message(content, message_id, source)
        return self._clerk.do(self._desk.steering(message, queue))

    def answer(
        self,
        call_id: str,
        request_id: str,
        decision: Decision,
        *,
        remember: bool = False,
        updated_input: Mapping[str, Any] | None = None,
    ) -> None:
        """Decide about a call that asks for a permission."""
        answer = Answer(decision, updated_input, remember)
        self._clerk.do(self._desk.answering(call_id, request_id, answer))

    def result(self, call_id: str, content: Content, *, is_error: bool = False) -> None:
        """Store the result of a call whose dispatch was left without one."""
        self._clerk.do(self._desk.resulting(call_id, content, is_error=is_error))

    def older(self, limit: int = PAGE_EVENTS) -> bool:
        """Load an older page; whether still older events exist."""
        return self.session.older(limit)

    def flush(self) -> dict[str, Patch]:
        """What changed since the last flush: a Patch for each active view."""
        return self.session.flush()

    def open(self, page: int = PAGE_EVENTS) -> Self:
        """Load the newest page, and close what a crash left open."""
        self.session.open(page)
        self._clerk.do(self._desk.opened())
        return self

    def close(self) -> None:
        """Withdraw what is live here. The store stays open."""
        self.session.close()


class SyncConversations:
    """The conversations of one plain store, each opened once: see `Conversations`."""

    def __init__(  # noqa: PLR0913 - given by name
        self,
        store: SyncStore,
        definitions: Iterable[Definition | GroupDefinition],
        *,
        redact: Redact | None = None,
        hidden: Hide = (),
        elsewhere: bool | None = False,
        history: bool = True,
        now: Callable[[], int] = wall_clock,
        names: Callable[[], str] = new_name,
        sleep: Callable[[float], Any] = time.sleep,
    ) -> None:
        self._store = store
        self._assembler = assembling(definitions, redact, hidden)
        self._elsewhere = elsewhere
        self._history = history
        self._now = now
        self._names = names
        self._sleep = sleep
        self._opened: dict[str, SyncConversation] = {}

    def open(self, name: str, *, page: int = PAGE_EVENTS) -> SyncConversation:
        """Open a conversation at its newest `page` events, or give the one that is open."""
        found = self._opened.get(name)
        if found is None:
            session = SyncSession(
                self._store,
                name,
                self._assembler(),
                now=self._now,
                names=self._names,
                elsewhere=self._elsewhere,
            )
            desk = Desk(session, names=self._names, history=self._history)
            found = SyncConversation(
                desk,
                session,
                self._store,
                self._sleep,
                beside=lambda call_id: self.open(f"{name}/{call_id}"),
            ).open(page)
            self._opened[name] = found
        return found

    def close(self) -> None:
        """Close all of them."""
        while self._opened:
            self._opened.popitem()[1].close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def statistics(self) -> dict[str, Any]:
        """Counts of each conversation that is open."""
        return {name: each.statistics() for name, each in self._opened.items()}
