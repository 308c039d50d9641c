"""One model call: what a provider sends goes in, and however it is left, nothing stays preparing.

Not here: which events follow from a response (`definitions.answering`), reading it (`providers`),
what becomes of an attempt that was lost (`turns`).
"""

from __future__ import annotations

from typing import Literal

from assembler.engine.definition import Anomaly
from assembler.engine.errors import ConflictError, InputError
from assembler.engine.events import Draft, Outcome, position
from assembler.live import LiveAttempt
from definitions.answering import Ending, ended
from definitions.backend.asking import Decide, Work
from definitions.backend.turns import StepCore
from definitions.backend.values import AttemptLost, Loss, is_cancellation
from definitions.providers import ADAPTERS, Adapter, Hint, Response, Why, adapter

__all__ = ["AttemptCore"]


class AttemptCore:
    """One model call, from `begin` to `end`."""

    def __init__(self, step: StepCore, provider: str, model: str | None) -> None:
        if provider not in ADAPTERS:
            known = ", ".join(sorted(ADAPTERS))
            msg = f"provider: expected one of {known}, got {provider!r:.80}"
            raise InputError(msg)
        self.step = step
        self.desk = step.desk
        self.provider = provider
        self.model = model
        self.response: Response | None = None
        self.why: Why | None = None
        self.is_open = False
        self._live: LiveAttempt | None = None
        self._adapter: Adapter | None = None
        self._hints: list[Hint] = []
        """Those that were described, for whoever asks for them."""

    @property
    def name(self) -> str:
        return "" if self._live is None else self._live.name

    @property
    def number(self) -> int:
        return 0 if self._live is None else self._live.number

    def begin(self) -> None:
        """It begins: nothing is stored."""
        if self._live is not None:
            msg = "an attempt is entered once: begin another one"
            raise ConflictError(msg, None, None)
        step, desk = self.step, self.desk
        step.begins(self)
        name = f"attempt_{desk.names()}"
        self._live = desk.session.attempt(step.turn.number, step.number, name=name)
        # One attempt at a time, so the ids in use are those of the log. What is lost claims none.
        self._adapter = adapter(
            self.provider,
            conversation=desk.name,
            attempt=name,
            in_use=desk.known.ids.outside(name),
        )
        self.is_open = True
        desk.counts.attempts += 1

    def feed(self, given: object) -> None:
        """Take what the provider sends and show what it tells. Once it is left: nothing."""
        live, reads = self._live, self._adapter
        if not self.is_open or live is None or reads is None:
            return
        for piece in reads.feed(given):
            if live.outcome is None:  # else its turn was left meanwhile, or all was closed
                live.emit(piece.type, piece.data)
        self._describe()

    def hints(self) -> list[Hint]:
        """Give the calls whose arguments have become complete since this was asked."""
        hints, self._hints = self._hints, []
        return hints if self._adapter is None else [*hints, *self._adapter.hints()]

    def _describe(self) -> None:
        """Have the calls described whose arguments have become complete."""
        describer = self.desk.describer
        if describer is None or self._adapter is None:
            return
        for hint in self._adapter.hints():
            self._hints.append(hint)
            describer.hint(hint.call_id, hint.name, hint.arguments, self.name)

    def end(self, error: BaseException | None) -> Work[None]:
        """It is left. Whole or cut, its answer is stored; else all is withdrawn.

        Raises `AttemptLost` when it was left as if all was well, and the response is not whole.
        """
        if not self.is_open:
            return
        if error is not None:
            yield from self.give_up(error)
            return
        response = self._finish()
        ending = ended(response, self.step.turn.number, self.step.number)
        if ending.outcome is not Outcome.COMPLETED:
            self._lose(response, "error")
            raise AttemptLost(ending.why or "no-terminal", response)
        yield from self._hold(ending, response)

    def give_up(self, error: BaseException | None) -> Work[None]:
        """It is left in the middle: nothing of it runs.

        Somebody stopped it: what people have read is stored before the rest is withdrawn. It
        failed: all is withdrawn now, and whether the text stays is decided when it is known
        whether another attempt follows.
        """
        if not self.is_open:
            return
        response = self._finish()
        if error is not None and not is_cancellation(error):
            self._lose(response, "error")
            return
        try:
            yield from self.step.keep(response, "cancel")
        finally:
            self._lose(response, "cancel")

    def drop(self) -> None:
        """Nobody holds it any more, and nobody can wait: all is withdrawn at once. If its step is
        still closed, that stores what people have read."""
        if self.is_open:
            self._lose(self._finish(), "cancel")

    def withdraw(self) -> None:
        """Show nothing of it any more, from now on. What is being stored of it is stored."""
        if self._live is not None:
            self._live.settle(Outcome.INTERRUPTED)
            self._abandon()

    def _finish(self) -> Response:
        """No more is taken. Its step is told when it is known what became of it: until then no
        other attempt may begin."""
        assert self._adapter is not None  # noqa: S101 - it is open
        self.is_open = False
        self.response = response = self._adapter.finish()
        self.why = response.why
        return response

    def _hold(self, ending: Ending, response: Response) -> Work[None]:
        outcome = Outcome.FAILED
        try:
            yield Decide(lambda: self._still(ending.drafts))
            outcome = Outcome.COMPLETED
        finally:
            self._settle(outcome)
            self.step.ends(self)
        self._describe()  # some formats complete their calls with the answer alone
        session = self.desk.session
        for incident in ending.incidents:
            place = position(session.last, 0)
            odd = Anomaly(incident.kind, f"tool:{incident.call_id}", place)
            session.assembler.anomalies.incident(odd)
        self.step.hold(ending, response.stop_reason)

    def _still(self, drafts: tuple[Draft, ...]) -> list[Draft]:
        self.desk.need_open(self.step.turn.number, self.step.number)
        return list(drafts)

    def _lose(self, response: Response, reason: Literal["error", "cancel"]) -> None:
        self._settle(Outcome.FAILED if reason == "error" else Outcome.INTERRUPTED)
        said = response.source
        model = self.model
        if model is None and said is not None and isinstance(said.get("model"), str):
            model = said["model"]
        self.step.ends(self)
        self.step.lose(Loss(self.name, self.number, model, response, reason))

    def _settle(self, outcome: Outcome) -> None:
        live = self._live
        if live is None or live.outcome is not None:
            return
        live.settle(outcome)
        if outcome is Outcome.COMPLETED:
            self.desk.counts.held += 1
        else:
            self.desk.counts.lost += 1
            self._abandon()

    def _abandon(self) -> None:
        """Nothing that was described of it is shown."""
        if self.desk.describer is not None:
            self.desk.describer.abandon(self.name)
