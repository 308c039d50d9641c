"""An agent that runs by itself, followed: what it says becomes events of the log and live deltas.

Generators that ask for what they need (`asking`), as those of a turn. Here lives how the pieces of
an agent's adapter are written, each conversation of it by one writer. Not here: what an agent's
message means (`definitions.providers`), who waits (`facade`, `plain`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Any, TypeAlias

from assembler.engine.errors import ConflictError
from assembler.engine.events import Draft, Outcome
from assembler.live import LiveAttempt
from definitions.backend.asking import Decide, Work
from definitions.backend.desk import Desk
from definitions.backend.values import is_cancellation
from definitions.providers import Agent, AgentDelta, AgentEvent, AgentLines, AgentPiece

__all__ = ["MakeAgent", "SourceCore", "Writer"]

MakeAgent: TypeAlias = Callable[..., Agent]
"""Makes the adapter of an agent: given `turn`, the last one of the conversation so far."""


class Writer:
    """Writes what an agent says in one conversation. Meanwhile nobody else begins a turn in it."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._attempts: dict[str, LiveAttempt] = {}
        self._works = ExitStack()

    @property
    def number(self) -> int:
        """The turn that is open."""
        now = self._desk.session.open_now
        return 0 if now is None else now.turn

    def begin(self) -> Work[None]:
        """Close what a crash left, and learn what is older. `ConflictError` in a turn."""
        desk = self._desk
        desk.begin(self)
        try:
            yield from desk.closing_orphan()
            yield from desk.learning()
        except BaseException:
            self.release()
            raise
        self._works.enter_context(desk.session.working())

    def write(self, pieces: Iterable[AgentPiece]) -> Work[None]:
        """Store events, as many at once as come together, and show deltas, in order."""
        events: list[AgentEvent] = []
        for piece in pieces:
            if isinstance(piece, AgentEvent):
                events.append(piece)
                continue
            yield from self._store(events)
            events = []
            if isinstance(piece, AgentDelta):
                self._emit(piece)
            else:
                self._settle(piece.attempt, piece.outcome)
        yield from self._store(events)

    def _store(self, events: list[AgentEvent]) -> Work[None]:
        if events:
            yield Decide(lambda: self._drafts(events))

    def _drafts(self, events: list[AgentEvent]) -> list[Draft]:
        """Leave out what others wrote meanwhile: an end that is there, a question's answer."""
        begun = {_place(event) for event in events if event.type in ("turn/start", "step/start")}
        asked = {_asked(event) for event in events if event.type == "permission/request"}
        found = []
        for event in events:
            if event.type in ("turn/end", "step/end"):
                place = _place(event)
                if place not in begun and not self._desk.is_open(*place):
                    continue
            if event.type == "permission/answer":
                question = _asked(event)
                if question not in asked and not self._desk.known.is_pending(*question):
                    continue
            found.append(Draft(event.type, dict(event.data)))
        return found

    def _emit(self, piece: AgentDelta) -> None:
        live = self._attempts.get(piece.attempt)
        if live is None:
            live = self._attempts[piece.attempt] = self._desk.session.attempt(
                piece.turn, piece.step, number=piece.number, name=piece.attempt
            )
        if live.outcome is None:  # else all was closed meanwhile
            live.emit(piece.type, piece.data)

    def _settle(self, attempt: str, outcome: Outcome) -> None:
        live = self._attempts.pop(attempt, None)
        if live is not None:
            live.settle(outcome)

    def withdraw(self) -> None:
        """Show nothing live of it any more."""
        for attempt in list(self._attempts):
            self._settle(attempt, Outcome.INTERRUPTED)

    def release(self) -> None:
        """It writes no more."""
        self.withdraw()
        self._works.close()
        self._desk.end(self)


class SourceCore:
    """One agent, from `begin` to `end`."""

    def __init__(self, desk: Desk, make: MakeAgent) -> None:
        self.is_open = False
        self._desk = desk
        self._make = make
        self._main = Writer(desk)
        self._beside: dict[str, Writer] = {}
        self._lines = AgentLines()
        self._agent: Agent | None = None
        self._waiting: deque[AgentPiece] = deque()
        """What the agent said and was not written."""

    def begin(self) -> Work[None]:
        """The agent is followed from now on."""
        if self._agent is not None:
            msg = "an agent is followed once: make another source"
            raise ConflictError(msg, None, None)
        yield from self._main.begin()
        self._agent = self._make(turn=self._desk.session.last_turn)
        self.is_open = True

    def read(self, given: object) -> None:
        """Take what the agent says; nothing is written yet. Behind the end: nothing."""
        if self.is_open and self._agent is not None:
            for message in self._lines.take(given):
                self._waiting += self._agent.feed(message)

    def stop(self, error: BaseException | None) -> None:
        """Nothing more comes: a turn that is open ends with that."""
        if not self.is_open or self._agent is None:
            return
        self.is_open = False
        for message in self._lines.rest():
            self._waiting += self._agent.feed(message)
        why = "interrupted" if error is None else "error"
        cancelled = error is not None and is_cancellation(error)
        self._waiting += self._agent.finish("cancelled" if cancelled else why)

    def next(self) -> tuple[str | None, list[AgentPiece]] | None:
        """Take what is to be written next, of one conversation; None: nothing waits."""
        if not self._waiting:
            return None
        name, found = self._waiting[0].conversation, []
        while self._waiting and self._waiting[0].conversation == name:
            found.append(self._waiting.popleft())
        return name, found

    def write(self, pieces: Iterable[AgentPiece]) -> Work[None]:
        """Write what is of the main conversation."""
        yield from self._main.write(pieces)

    def writer(self, name: str) -> Writer | None:
        """Give who writes in a conversation beside the main one; None: nobody yet (`follow`)."""
        return self._beside.get(name)

    def follow(self, name: str, writer: Writer) -> None:
        """From now on that is who writes in the conversation beside the main one."""
        self._beside[name] = writer

    def end(self, error: BaseException | None) -> Work[None]:
        """Write what is left of the main conversation, and let go of all of them."""
        self.stop(error)
        left = [piece for piece in self._waiting if piece.conversation is None]
        self._waiting.clear()
        try:
            yield from self._main.write(left)
        finally:
            self.drop()

    def drop(self) -> None:
        """Nobody holds it any more, and nobody can write: what was live is withdrawn."""
        self.is_open = False
        for writer in (*self._beside.values(), self._main):
            writer.release()

    def withdraw(self) -> None:
        """Show nothing live of it any more, from now on."""
        for writer in (*self._beside.values(), self._main):
            writer.withdraw()


def _place(event: AgentEvent) -> tuple[Any, ...]:
    places = (event.data.get("turn"), event.data.get("step"))
    return tuple(number for number in places if number is not None)


def _asked(event: AgentEvent) -> tuple[str, str]:
    return str(event.data.get("call_id")), str(event.data.get("request_id"))
