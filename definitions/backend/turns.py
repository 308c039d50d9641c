"""A turn and its steps: how they begin, what closes them, what is kept of an attempt that failed.

Generators that ask for what they need (`asking`), so that nothing here waits or knows a loop. Each
end is written by one decision that looks at what is stored, so that it is right whoever else
wrote. Not here: one model call (`attempts`), one call of a tool (`dispatches`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any, Protocol

from assembler.engine.errors import ConflictError, InputError, LimitError
from assembler.engine.events import Draft
from definitions.answering import Ending, GivenUp, given_up
from definitions.backend.asking import Decide, Work
from definitions.backend.desk import QUEUES, Desk
from definitions.backend.known import Waiting
from definitions.backend.reaching import reaching
from definitions.backend.values import AttemptLost, Loss, error_of, is_cancellation
from definitions.providers import Call, Response, Why

__all__ = ["Going", "StepCore", "TurnCore"]


class Going(Protocol):
    """An attempt that goes on, as its step sees it."""

    @property
    def number(self) -> int: ...

    def give_up(self, error: BaseException | None) -> Work[None]: ...

    def drop(self) -> None: ...

    def withdraw(self) -> None: ...


class TurnCore:
    """One turn, from `begin` to `end`."""

    def __init__(self, desk: Desk, message: Waiting | None, limit: int | None) -> None:
        if limit is not None and (type(limit) is not int or limit < 1):
            msg = f"limit: expected 1 or more, got {limit!r:.80}"
            raise InputError(msg)
        self.desk = desk
        self.number = 0
        self.is_open = False
        self.reason: str | None = None
        """How it ended; None: it goes on."""
        self.step: StepCore | None = None
        """The step that goes on."""
        self._last: StepCore | None = None
        self._steps = 0
        self._message = message
        self._limit = limit
        self._begun = False
        self._works = ExitStack()

    @property
    def done(self) -> bool:
        """Whether nothing is left to ask the model."""
        return self._is_answered or self._is_limited

    @property
    def _is_answered(self) -> bool:
        last = self._last
        if last is None or last.goes_on:
            return False
        return not self.desk.known.waiting("next-step")

    @property
    def _is_limited(self) -> bool:
        return self._limit is not None and self._steps >= self._limit and self.step is None

    def begin(self) -> Work[None]:
        """Close what a crash left, learn what is older, and open the turn with its input."""
        if self._begun:
            msg = "a turn is entered once: begin another one"
            raise ConflictError(msg, None, None)
        self._begun = True
        self.desk.begin(self)
        try:
            yield from self._opening()
        except BaseException:
            self._leave()
            raise

    def _opening(self) -> Work[None]:
        yield from self.desk.closing_orphan()
        yield from self.desk.learning()
        if self.desk.history:
            yield from reaching(self.desk.session)
        self._works.enter_context(self.desk.session.working())
        started, *_ = yield Decide(self._start)
        self.number = started.data["turn"]
        self.is_open = True
        self.desk.counts.turns += 1

    def _start(self) -> list[Draft]:
        session = self.desk.session
        if session.open_now is not None:
            msg = f"turn {session.open_now.turn} of {self.desk.name!r} is open elsewhere"
            raise ConflictError(msg, None, session.open_now.turn)
        drafts = [Draft("turn/start", {"turn": session.last_turn + 1})]
        for queue in QUEUES:
            drafts += self.desk.claims(queue)
        if self._message is not None:
            drafts.append(Draft("user/message", self._message))
        return drafts

    def end(self, error: BaseException | None) -> Work[None]:
        """Close the turn, and before it what is open in it."""
        if not self.is_open:
            self._leave()
            return
        self.is_open = False
        self.reason = self._reason(error)
        step = self.step
        try:
            if step is not None:
                yield from step.end(error)
            yield Decide(lambda: list(self._ending(error)))
        finally:
            self._leave()

    def _reason(self, error: BaseException | None) -> str:
        if error is None:
            return "limit" if self._is_limited and not self._is_answered else "completed"
        return "cancelled" if is_cancellation(error) else "error"

    def _ending(self, error: BaseException | None) -> Iterator[Draft]:
        if self.desk.is_open(self.number):
            data: dict[str, Any] = {"turn": self.number, "reason": self.reason}
            if error is not None and self.reason == "error":
                data["error"] = error_of(error)
            yield Draft("turn/end", data)

    def drop(self) -> None:
        """Nobody holds it any more, and nobody can write: what was live is withdrawn."""
        self.is_open = False
        if self.step is not None:
            self.step.drop()
        self._leave()

    def withdraw(self) -> None:
        """Show nothing live of it any more, from now on."""
        if self.step is not None:
            self.step.withdraw()

    def _leave(self) -> None:
        self._works.close()
        self.desk.end(self)

    def begins(self, step: StepCore) -> None:
        """A step begins. `ConflictError` when another one goes on, `LimitError` beyond the last."""
        if not self.is_open:
            msg = f"turn {self.number} is over"
            raise ConflictError(msg, None, None)
        if self.step is not None:
            msg = f"step {self.number}.{self.step.number} goes on"
            raise ConflictError(msg, None, self.step.number)
        if self._is_limited:
            msg = f"steps: more than the limit of the turn, {self._limit}"
            raise LimitError(msg)
        self.step = step

    def begun(self) -> None:
        """The step has begun."""
        self._steps += 1

    def ends(self, step: StepCore) -> None:
        """The step is over."""
        if self.step is step:
            self.step = None
            if step.number:
                self._last = step


class StepCore:
    """One step: attempts until one holds, then its calls."""

    def __init__(self, turn: TurnCore) -> None:
        self.turn = turn
        self.desk = turn.desk
        self.number = 0
        self.is_open = False
        self.answered = False
        self.calls: tuple[Call, ...] = ()
        self.goes_on = False
        """Whether the model waits for more: it called something, or paused."""
        self.attempt: Going | None = None
        """The attempt that goes on."""
        self.attempts = 0
        self._kept = False
        self._newest: Going | None = None
        """The attempt that began last, whether it goes on or not."""
        self._handed: dict[str, Call] = {}
        self._lost: Loss | None = None
        """The last attempt, when it was lost and nothing has followed."""
        self._begun = False

    def begin(self) -> Work[None]:
        """Open the step; what waits for it is claimed before."""
        if self._begun:
            msg = "a step is entered once: begin another one"
            raise ConflictError(msg, None, None)
        self._begun = True
        self.turn.begins(self)
        try:
            *_, started = yield Decide(self._start)
        except BaseException:
            self.turn.ends(self)
            raise
        self.number = started.data["step"]
        self.is_open = True
        self.turn.begun()
        self.desk.counts.steps += 1

    def _start(self) -> list[Draft]:
        turn, session = self.turn.number, self.desk.session
        self.desk.need_open(turn)
        data = {"turn": turn, "step": session.last_step + 1}
        return [*self.desk.claims("next-step"), Draft("step/start", data)]

    def end(self, error: BaseException | None) -> Work[None]:
        """Close the step. What people have read of an attempt that nothing followed stays."""
        if not self.is_open:
            self.turn.ends(self)
            return
        self.is_open = False
        try:
            if self.attempt is not None:
                yield from self.attempt.give_up(error)
            yield Decide(lambda: list(self._ending()))
        finally:
            self._lost = None
            self.turn.ends(self)

    def _ending(self) -> Iterator[Draft]:
        if not self.desk.is_open(self.turn.number, self.number):
            return
        if self._lost is not None:
            yield from self._said(self._lost.response, self._lost.reason)
        yield Draft("step/end", {"turn": self.turn.number, "step": self.number})

    def keep(self, response: Response, reason: GivenUp) -> Work[None]:
        """Store what people have read of an attempt that somebody stopped."""

        def drafts() -> list[Draft]:
            here = self.desk.is_open(self.turn.number, self.number)
            return list(self._said(response, reason)) if here else []

        written = yield Decide(drafts)
        self._kept = self._kept or bool(written)

    def _said(self, response: Response, reason: GivenUp) -> Iterator[Draft]:
        # One such message in a step: of two, readers take the first.
        if not self._kept:
            yield from given_up(response, reason, self.turn.number, self.number).drafts

    def drop(self) -> None:
        """Nobody holds it any more, and nobody can write."""
        self.is_open = False
        if self.attempt is not None:
            self.attempt.drop()
        self.turn.ends(self)

    def withdraw(self) -> None:
        """Show nothing live of it any more, from now on."""
        if self._newest is not None:
            self._newest.withdraw()

    # -- attempts ------------------------------------------------------------------------

    def begins(self, attempt: Going) -> None:
        """An attempt begins; it follows the one that was lost."""
        place = f"step {self.turn.number}.{self.number}"
        if not self.is_open or self.answered:
            msg = f"{place} {'is over' if not self.is_open else 'has its answer'}"
            raise ConflictError(msg, None, None)
        if self.attempt is not None:
            msg = f"attempt {self.attempt.number} of {place} goes on"
            raise ConflictError(msg, None, self.attempt.number)
        self.desk.need_open(self.turn.number, self.number)
        self.attempt = self._newest = attempt
        self._lost = None
        self.attempts += 1

    def ends(self, attempt: Going) -> None:
        """The attempt is over, in one way or another."""
        if self.attempt is attempt:
            self.attempt = None

    def hold(self, ending: Ending, stop_reason: str | None) -> None:
        """The answer of an attempt is stored: its ready calls may be dispatched."""
        self.answered = True
        self.calls = ending.handed_over
        self._handed = {call.call_id: call for call in self.calls}
        wants = any(call.ran_by == "host" for call in ending.calls)
        self.goes_on = ending.why is None and (wants or stop_reason == "pause")

    def lose(self, loss: Loss) -> None:
        """An attempt failed. Whether another one follows is not known yet."""
        self._lost = loss

    def retry(
        self, lost: BaseException, delay_ms: int, at_most: int | None, reason: str | None
    ) -> Work[None]:
        """Give up the attempt that was lost; another will follow."""
        if (loss := self._loss(lost)) is None:
            return
        if type(delay_ms) is not int or delay_ms < 0:
            msg = f"delay_ms: expected 0 or more, got {delay_ms!r:.80}"
            raise InputError(msg)
        if at_most is not None and self.attempts >= at_most:
            raise lost
        data = {
            **self._given_up(loss),
            "retry_id": f"retry_{self.turn.number}.{self.number}",
            "number": loss.number,
            "reason": reason or _reason(lost),
        }
        if delay_ms:
            data["delay_ms"] = delay_ms
        yield from self._follow("llm/retry", data)

    def fallback(
        self,
        lost: BaseException,
        to_model: str,
        from_model: str | None,
        at_most: int | None,
        reason: str | None,
    ) -> Work[None]:
        """Give up the attempt that was lost; another model will follow."""
        if (loss := self._loss(lost)) is None:
            return
        if at_most is not None and self.attempts >= at_most:
            raise lost
        data = {
            **self._given_up(loss),
            "from_model": from_model or loss.model,
            "to_model": to_model,
            "reason": reason or _reason(lost),
        }
        yield from self._follow("llm/fallback", data)

    def _loss(self, lost: BaseException) -> Loss | None:
        """What was lost. None: nothing, after all. Whoever waited for the answer to be stored was
        stopped (a timeout), and it was stored behind their back."""
        if self.answered and not isinstance(lost, AttemptLost):
            return None
        if self._lost is None:
            msg = f"step {self.turn.number}.{self.number} has no attempt that was lost"
            raise ConflictError(msg, None, None) from lost
        return self._lost

    def _given_up(self, loss: Loss) -> dict[str, Any]:
        data = {"turn": self.turn.number, "step": self.number, "attempt": loss.attempt}
        if loss.response.usage is not None:
            data["usage"] = loss.response.usage
        return data

    def _follow(self, type: str, data: Mapping[str, Any]) -> Work[None]:
        def drafts() -> list[Draft]:
            self.desk.need_open(self.turn.number, self.number)
            return [Draft(type, data)]

        yield Decide(drafts)
        self._lost = None

    # -- calls ---------------------------------------------------------------------------

    def take(self, call: Call) -> Call:
        """Take over a call. `ConflictError` for one that this answer did not hand over, or that
        somebody took."""
        taken = self._handed.pop(call.call_id, None)
        if taken is None or not self.is_open:
            if taken is not None:
                self._handed[call.call_id] = taken
            msg = f"call {call.call_id!r:.80} is not to be taken over in this step"
            raise ConflictError(msg, None, None)
        return taken

    def put_back(self, call: Call) -> None:
        """A call could not be taken over after all."""
        self._handed[call.call_id] = call


def _reason(lost: BaseException) -> str:
    """Say why an attempt is given up. The words of an exception may hold contents; its name not."""
    why: Why | str = lost.why if isinstance(lost, AttemptLost) else type(lost).__name__
    return why
