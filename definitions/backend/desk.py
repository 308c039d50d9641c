"""One conversation as its backend works on it: who has the turn, what is asked, what is remembered.

Both faces (with a loop and without) share it. Here are the rules that belong to no turn: reopening
after a crash, answers to permissions, input that waits. Not here: turns and what is inside them
(`turns`, `attempts`, `dispatches`), waiting (`asking`, `facade`, `plain`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import asdict

from assembler.engine.errors import ConflictError, InputError
from assembler.engine.events import Draft, Event
from assembler.engine.values import freeze
from assembler.live import SyncSession
from definitions.answering import result_draft
from definitions.backend.asking import Decide, Read, Work
from definitions.backend.known import Known, Waiting
from definitions.backend.values import Answer, Content, answer_of, blocks_of
from definitions.events import request_of

__all__ = ["QUEUES", "Counts", "Describes", "Desk", "Question"]

QUEUES = ("next-step", "next-turn")
"""Where input waits: to be read by the next model call of the turn, or to begin the next turn."""

_READ_EVENTS = 1_000
_log = logging.getLogger("definitions.backend")


class Counts(Struct):
    """What a conversation's backend has done here, for an operator."""

    turns: int = 0
    steps: int = 0
    attempts: int = 0
    held: int = 0
    """Attempts whose answer is stored."""
    lost: int = 0
    """Attempts that ended in any other way."""
    calls: int = 0
    """Calls that were taken over."""
    results: int = 0
    asked: int = 0
    refused: int = 0
    """Calls that a remembered refusal refused."""
    interrupted: int = 0
    """Turns of owners who are gone, closed here."""


class Going(Protocol):
    """A turn that goes on; 0 while it is beginning."""

    @property
    def number(self) -> int: ...


class Describes(Protocol):
    """Who describes calls ahead of their permissions, and is told what becomes of them."""

    def hint(self, call_id: str, tool: str | None, input: Any, attempt: str | None) -> None: ...

    def asked(self, call_id: str, tool: str | None, input: Any, request_id: str) -> None: ...

    def withdraw(self, call_id: str) -> None: ...

    def abandon(self, attempt: str) -> None: ...

    def learn(self, event: Event) -> None: ...

    def hear(self, event: Event) -> None: ...


class Question:
    """A permission that somebody waits for."""

    def __init__(self, call_id: str, request_id: str) -> None:
        self.call_id = call_id
        self.request_id = request_id
        self.answer: Answer | None = None
        self.is_open = True
        self.wake: Callable[[], None] | None = None

    def settle(self, answer: Answer | None) -> None:
        """Somebody decided, and the first answer counts; or (None) no answer will come."""
        if self.is_open:
            self.is_open = False
            self.answer = answer
            if self.wake is not None:
                self.wake()


class Desk:
    """What the faces of one conversation share. Nothing here waits."""

    def __init__(self, session: SyncSession, *, names: Callable[[], str], history: bool) -> None:
        self.session = session
        self.names = names
        self.history = history
        """Whether a turn loads what the model is sent back."""
        self.known = Known()
        self.counts = Counts()
        self.turn: Going | None = None
        """The turn that goes on here."""
        self.describer: Describes | None = None
        """None: nothing is described here."""
        self._questions: dict[tuple[str, str], Question] = {}
        self._learned_from: int | None = None
        """The first event that `known` has learned; None: nothing yet."""
        session.listen(self._hear)

    @property
    def name(self) -> str:
        return self.session.conversation

    # -- reopening -----------------------------------------------------------------------

    def opened(self) -> Work[None]:
        """Learn what is loaded, and close what a crash left open. Nothing else comes of history."""
        events = self.session.assembler.events
        for event in events:
            self._learn(event)
        self._learned_from = events[0].seq if events else 1
        yield from self.closing_orphan()

    def closing_orphan(self) -> Work[None]:
        """Close the turn that nobody works on any more: once, whoever comes first."""
        if self._orphan() is not None:
            written = yield Decide(lambda: list(self._closing_orphan()))
            self.counts.interrupted += len(written)
            _log.info("%s: closed %d abandoned turns", self.name, len(written))

    def _orphan(self) -> int | None:
        # Between turns of this desk nobody works, unless somebody else may. One that is
        # beginning has no number yet.
        session = self.session
        ours = self.turn is not None and self.turn.number > 0
        if ours or session.elsewhere is not False or session.open_now is None:
            return None
        return session.open_now.turn

    def _closing_orphan(self) -> Iterator[Draft]:
        turn = self._orphan()
        if turn is not None:
            yield Draft("turn/end", {"turn": turn, "reason": "interrupted"})

    def learning(self) -> Work[None]:
        """Learn what is older than what was loaded. O(older events), once."""
        if self._learned_from is None:
            return
        after, until = 0, self._learned_from - 1
        while after < until:
            events = yield Read(after, min(_READ_EVENTS, until - after))
            if not events:
                break
            for event in events:
                self._learn(event)
            after = events[-1].seq
        self._learned_from = None

    def _learn(self, event: Event) -> None:
        """Take an event of history."""
        self.known.learn(event)
        if self.describer is not None:
            self.describer.learn(event)

    # -- turns ---------------------------------------------------------------------------

    def begin(self, turn: Going) -> None:
        """Give the turn to somebody. `ConflictError` when another one goes on."""
        if self.turn is not None:
            msg = f"turn {self.turn.number or 'that is beginning'} of {self.name!r} goes on"
            raise ConflictError(msg, None, self.turn.number)
        self.turn = turn

    def end(self, turn: Going) -> None:
        """The turn is over."""
        if self.turn is turn:
            self.turn = None

    def is_open(self, turn: int, step: int | None = None) -> bool:
        """Whether a turn (and that step of it) is open, also as far as others wrote."""
        now = self.session.open_now
        return now is not None and now.turn == turn and (step is None or now.step == step)

    def need_open(self, turn: int, step: int | None = None) -> None:
        """Raise `ConflictError` when somebody else closed it."""
        if not self.is_open(turn, step):
            what = f"turn {turn}" if step is None else f"step {turn}.{step}"
            msg = f"{what} of {self.name!r} is closed"
            raise ConflictError(msg, None, None)

    # -- input ---------------------------------------------------------------------------

    def message(
        self, content: Content, message_id: str | None, source: Mapping[str, Any] | None
    ) -> Waiting:
        """Give an input as its event tells it."""
        told: Waiting = {
            "message_id": message_id or f"message_{self.names()}",
            "content": blocks_of(content),
        }
        if source is not None:
            told["source"] = freeze(source)
        return told

    def steering(self, message: Waiting, queue: str) -> Work[str]:
        """Put an input into a queue. Its content is stored at once; it is shown when claimed."""
        if queue not in QUEUES:
            msg = f"queue: expected one of {', '.join(QUEUES)}, got {queue!r:.80}"
            raise InputError(msg)
        message_id: str = message["message_id"]
        data = {"queue": queue, "added": [message_id], "claimed": [], "messages": [message]}
        yield Decide(lambda: [Draft("inbox/spliced", data)])
        return message_id

    def claims(self, queue: str) -> Iterator[Draft]:
        """Take all that waits in a queue."""
        waiting = self.known.waiting(queue)
        if waiting:
            claimed = [each["message_id"] for each in waiting]
            yield Draft("inbox/spliced", {"queue": queue, "added": [], "claimed": claimed})
            for each in waiting:
                yield Draft("user/message", each)

    # -- permissions and results ---------------------------------------------------------

    def ask(self, call_id: str, request_id: str) -> Question:
        """Somebody begins to wait for an answer."""
        question = self._questions[call_id, request_id] = Question(call_id, request_id)
        self.counts.asked += 1
        return question

    def settle(self, call_id: str) -> None:
        """A call is over: no question about it gets an answer any more."""
        for key in [key for key in self._questions if key[0] == call_id]:
            self._questions.pop(key).settle(None)

    def forget(self, question: Question) -> None:
        """Nobody waits for it any more."""
        self._questions.pop((question.call_id, question.request_id), None)

    def answering(self, call_id: str, request_id: str, answer: Answer) -> Work[None]:
        """Decide about a call. `ConflictError` when nobody asked, somebody has answered, or the
        call has its result or its turn is closed: nothing would come of it."""
        if answer.decision not in ("allow", "deny"):
            msg = f"decision: expected allow or deny, got {answer.decision!r:.80}"
            raise InputError(msg)
        updated: object = answer.updated_input
        if updated is not None and not isinstance(updated, Mapping):
            msg = f"updated_input: expected an object, got {type(updated).__name__}"
            raise InputError(msg)
        draft = answer_draft(call_id, request_id, answer)

        def drafts() -> list[Draft]:
            turn = self.known.turn_of(call_id)
            is_over = turn is not None and not self.is_open(turn)
            if is_over or not self.known.is_pending(call_id, request_id):
                msg = f"question {request_id!r:.80} about call {call_id!r:.80} is not open"
                raise ConflictError(msg, None, None)
            return [draft]

        yield from self.learning()
        yield Decide(drafts)

    def resulting(self, call_id: str, content: Content, *, is_error: bool) -> Work[None]:
        """Store a result that comes after its dispatch was left: of a background job."""
        draft = result_draft(call_id, blocks_of(content), is_error=is_error)
        yield Decide(lambda: [draft])
        self.counts.results += 1

    # -- the rest ------------------------------------------------------------------------

    def _hear(self, event: Event, own: bool) -> None:
        self.known.learn(event)
        if self.describer is not None:
            self.describer.hear(event)
        if event.type == "permission/answer":
            key = str(event.data.get("call_id")), request_of(event.data) or ""
            question = self._questions.pop(key, None)
            if question is not None:
                question.settle(answer_of(event))
        elif event.type == "tool/result":
            self.settle(str(event.data.get("call_id")))
        elif event.type == "turn/end":
            for call_id, _ in list(self._questions):
                turn = self.known.turn_of(call_id)
                if turn is None or not self.is_open(turn):
                    self.settle(call_id)

    def statistics(self) -> dict[str, Any]:
        """Counts, as plain JSON values."""
        return {
            **asdict(self.counts),
            "turn": None if self.turn is None else self.turn.number,
            "waiting_questions": len(self._questions),
            "session": self.session.statistics(),
        }


def answer_draft(call_id: str, request_id: str, answer: Answer) -> Draft:
    """Somebody decided about a call."""
    data: dict[str, Any] = {
        "call_id": call_id,
        "request_id": request_id,
        "decision": answer.decision,
    }
    if answer.remember:
        data["remember"] = True
    if answer.updated_input is not None:
        data["updated_input"] = answer.updated_input
    return Draft("permission/answer", data)
