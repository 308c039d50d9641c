"""One call that is taken over: stored before a permission is asked, and its outcome at the end.

Not here: running the tool (the backend does), how an answer reaches who waits (`facade`, `plain`).
"""

from __future__ import annotations

from collections.abc import Mapping
from json import dumps
from typing import Any

from assembler.engine.errors import ConflictError, InputError
from assembler.engine.events import Draft, Outcome, need_text
from assembler.engine.values import Json, freeze_object, thaw
from assembler.live import LiveAttempt
from definitions.answering import call_draft, result_draft
from definitions.backend.asking import Decide, Work
from definitions.backend.desk import Question, answer_draft
from definitions.backend.turns import StepCore
from definitions.backend.values import Answer, Content, blocks_of, error_of, is_cancellation
from definitions.ids import minted
from definitions.providers import Call

__all__ = ["DispatchCore"]

_DENIED = "The user refused this call."


class DispatchCore:
    """One call, from `begin` to `end`."""

    def __init__(
        self, step: StepCore, call: Call, *, errors: str, parent: DispatchCore | None = None
    ) -> None:
        if errors not in ("raise", "result"):
            msg = f"errors: expected raise or result, got {errors!r:.80}"
            raise InputError(msg)
        self.step = step
        self.desk = step.desk
        self.call = call
        self.arguments: dict[str, Any] = call.arguments or {}
        self.is_open = False
        self.denied = False
        self._parent = parent
        self._children = 0
        self._unanswered = False
        self._begun = False
        self._swallows = errors == "result"
        self._result: Draft | None = None
        self._output: LiveAttempt | None = None

    def begin(self) -> Work[None]:
        """Take the call over: `tool/call` is stored."""
        if self._begun:
            msg = "a dispatch is entered once"
            raise ConflictError(msg, None, None)
        self._begun = True
        call = self._take()
        try:
            draft = call_draft(call, self.step.turn.number, self.step.number)
            yield Decide(lambda: self._still([draft]))
        except BaseException:
            if self._parent is None:
                self.step.put_back(call)
            raise
        self.is_open = True
        self.desk.counts.calls += 1

    def _take(self) -> Call:
        """Whoever handed it over: the answer, or the call that it is made inside of."""
        if self._parent is None:
            return self.step.take(self.call)
        if not self._parent.is_open:
            msg = f"call {self._parent.call.call_id!r:.80} is not being dispatched"
            raise ConflictError(msg, None, None)
        return self.call

    def child(self, name: str, arguments: Mapping[str, Any], *, errors: str) -> DispatchCore:
        """A call that is made inside of this one."""
        need_text("name", name)
        plain = freeze_object(arguments)
        call = Call(
            call_id=minted(self.desk.name, self.call.call_id, self._children),
            name=name,
            ready=True,
            arguments=thaw(plain),
            arguments_text=dumps(thaw(plain), ensure_ascii=False),
            parent_call_id=self.call.call_id,
        )
        self._children += 1
        return DispatchCore(self.step, call, errors=errors, parent=self)

    def _still(self, drafts: list[Draft]) -> list[Draft]:
        self.desk.need_open(self.step.turn.number, self.step.number)
        return drafts

    def result(self, content: Content, *, is_error: bool) -> None:
        """Keep the outcome; it is stored when the block is left. Once."""
        if not self.is_open:
            msg = f"call {self.call.call_id!r:.80} is not being dispatched"
            raise ConflictError(msg, None, None)
        if self._result is not None:
            msg = f"call {self.call.call_id!r:.80} has its result"
            raise ConflictError(msg, None, None)
        self._result = self._outcome(blocks_of(content), is_error=is_error)

    def _outcome(self, blocks: Json, *, is_error: bool) -> Draft:
        if self.denied:  # whatever is told of it, it did not run
            error = {"name": "denied", "message": _DENIED}
            return result_draft(self.call.call_id, blocks, is_error=True, error=error)
        return result_draft(self.call.call_id, blocks, is_error=is_error)

    def output(self, text: str) -> None:
        """Show what the running tool has printed since. Never stored."""
        if not self.is_open or not text:
            return
        if self._output is None:
            name = f"output_{self.desk.names()}"
            turn, step = self.step.turn.number, self.step.number
            self._output = self.desk.session.attempt(turn, step, number=0, name=name)
        text = text.encode("utf-8", "replace").decode("utf-8")
        self._output.emit("tool-output", {"call_id": self.call.call_id, "text": text})

    # -- permission ----------------------------------------------------------------------

    def request(self, input: Any, request_id: str | None) -> Work[Question | Answer]:
        """Ask: the question is stored. An answer at once, when a refusal is remembered."""
        if not self.is_open:
            msg = f"call {self.call.call_id!r:.80} is not being dispatched"
            raise ConflictError(msg, None, None)
        call_id, known = self.call.call_id, self.desk.known
        request_id = request_id or self._next_request()
        if known.was_asked(call_id, request_id):
            msg = f"question {request_id!r:.80} about call {call_id!r:.80} was asked"
            raise ConflictError(msg, None, None)
        asked = freeze_object(self.arguments if input is None else input)
        data = {"call_id": call_id, "request_id": request_id, "input": asked}
        request = Draft("permission/request", data)
        if self.call.name is not None and known.refuses(self.call.name):
            answer = Answer("deny")
            both = [request, answer_draft(call_id, request_id, answer)]
            yield Decide(lambda: self._still(both))
            self.desk.counts.refused += 1
            self.answered(answer)
            return answer
        question = self.desk.ask(call_id, request_id)
        try:
            yield Decide(lambda: self._still([request]))
        except BaseException:
            self.desk.forget(question)
            raise
        if self.desk.describer is not None and question.is_open:
            self.desk.describer.asked(call_id, self.call.name, thaw(asked), request_id)
        return question

    def _next_request(self) -> str:
        call_id, known = self.call.call_id, self.desk.known
        number = known.asked(call_id) + 1
        while known.was_asked(call_id, str(number)):  # somebody named theirs so
            number += 1
        return str(number)

    def answered(self, answer: Answer | None) -> Answer:
        """Somebody decided: what runs is what the answer says. `ConflictError` when nobody did,
        and nobody will: its turn was closed, or the call left."""
        if answer is None:
            self._unanswered = True
            msg = f"nobody answers any more whether call {self.call.call_id!r:.80} may run"
            raise ConflictError(msg, None, None)
        self.denied = not answer.allowed
        if answer.allowed and answer.updated_input is not None:
            self.arguments = dict(answer.updated_input)
        return answer

    # -- leaving -------------------------------------------------------------------------

    def end(self, error: BaseException | None) -> Work[bool]:
        """It is left. Whether the exception is swallowed.

        A result that is there is stored, whatever follows it. Without one: an exception is the
        result, and so is a refusal; a cancellation is none, and neither is leaving (the real one
        may still come).
        """
        if not self.is_open:
            return False
        failed = error is not None and not is_cancellation(error)
        draft = self._result or self._fault(error)
        self.is_open = False
        try:
            if draft is not None:
                yield Decide(lambda: [draft])
                self.desk.counts.results += 1
        finally:
            self.drop()
        return failed and self._swallows

    def _fault(self, error: BaseException | None) -> Draft | None:
        if error is not None and (is_cancellation(error) or self._unanswered):
            return None
        if self.denied:
            return self._outcome(blocks_of(_DENIED), is_error=True)
        if error is None:
            return None
        told = error_of(error)
        text = f"{told['name']}: {told['message']}" if told["message"] else told["name"]
        return result_draft(self.call.call_id, blocks_of(text), is_error=True, error=told)

    def drop(self) -> None:
        """What it printed has been shown, and nobody waits for an answer: no more comes."""
        self.is_open = False
        self.desk.settle(self.call.call_id)
        if self.desk.describer is not None:
            self.desk.describer.withdraw(self.call.call_id)
        output, self._output = self._output, None
        if output is not None and output.outcome is None:
            output.settle(Outcome.COMPLETED)
