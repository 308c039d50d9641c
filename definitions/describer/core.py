"""Which call is described, when, and whether an approval may show it. No loop, no clock, no I/O.

A call's finished input is a hint, and is described before anybody asks for it; the description
counts only if what is asked about equals it as JSON. Facts go in, by methods; what is to be done
comes out of `actions`. Not here: making descriptions, waiting (`shell`), how they are shown
(`definitions/description.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from assembler.engine.errors import InputError, LimitError
from assembler.engine.events import Draft, Event
from assembler.engine.values import Json, freeze, freeze_object, same
from definitions.arguments import InvalidArguments, complete
from definitions.describer.values import Action, Counts, Shown, Start, Stop, Verdict, Write
from definitions.events import named

__all__ = ["AT_ONCE_MAX", "Core"]

AT_ONCE_MAX = 4
"""So many descriptions are made at once, unless told otherwise."""


class _Question:
    """Something a description asks before it goes on."""

    def __init__(self, inquiry_id: str, question: Json) -> None:
        self.inquiry_id = inquiry_id
        self.question = question
        self.is_open = True
        self.answer: Json = None

    def data(self, call_id: str) -> dict[str, Any]:
        return {"inquiry_id": self.inquiry_id, "call_id": call_id, "question": self.question}


class _Job:
    """One description: of one call, from one input."""

    def __init__(self, number: int, call: _Call, input: Json, *, from_hint: bool) -> None:
        self.number = number
        self.call = call
        self.input = input
        self.from_hint = from_hint
        self.is_begun = False
        self.is_shown = False
        self.text: str | None = None
        self.questions: list[_Question] = []


class _Call:
    """What is known of one call, from its hint or its request until it is over."""

    def __init__(self, call_id: str, tool: str | None, attempt: str | None) -> None:
        self.call_id = call_id
        self.tool = tool
        self.attempt = attempt
        self.is_requested = False
        self.asked: Json = None
        """The input of the newest request as it came; empty: the call's arguments are meant."""
        self.request_id = ""
        self.job: _Job | None = None
        self.pending: list[tuple[str, Verdict]] = []
        """The requests that wait for the description, each with what it was told last."""


class Core:
    """The coordinator of one conversation. Each method is O(what it changes).

    `allows` says whether a tool may be described unattended; `at_once` bounds how many
    descriptions run together. What the log says is told to `learn` (history: it starts nothing)
    or to `hear` (what happens now). After each method, do what `actions()` gives, in that order.
    """

    def __init__(self, allows: Callable[[str | None], bool], *, at_once: int = AT_ONCE_MAX) -> None:
        if at_once < 1:
            msg = f"at_once: expected at least 1, got {at_once}"
            raise InputError(msg)
        self._allows = allows
        self._at_once = at_once
        self.counts = Counts()
        self._calls: dict[str, _Call] = {}
        self._queue: list[_Job] = []
        self._running: dict[int, _Job] = {}
        self._jobs = 0
        self._actions: list[Action] = []
        self._arguments: dict[str, Json] = {}
        """Of calls that were dispatched and have no result."""
        self._names: dict[str, str] = {}
        self._refused: set[str] = set()
        self._gone: set[tuple[str | None, str]] = set()
        """Calls that will not come, with their attempt, and `(attempt, "")` for all of one. Kept
        until the next turn, since a stream may speak after its end."""
        self._is_closed = False

    def actions(self) -> list[Action]:
        """Give what is to be done now, once."""
        self._begin_waiting()
        actions, self._actions = self._actions, []
        return actions

    @property
    def open_questions(self) -> tuple[str, ...]:
        """The questions that nobody has answered or withdrawn."""
        return tuple(
            [
                question.inquiry_id
                for call in self._calls.values()
                if call.job is not None
                for question in call.job.questions
                if question.is_open
            ]
        )

    @property
    def is_idle(self) -> bool:
        """Whether no description is being made and none waits to be."""
        return not self._running and not self._queue

    # -- the two ways on which a call comes ----------------------------------------------

    def hint(self, call_id: str, tool: str | None, input: Any, attempt: str | None = None) -> None:
        """A call's input is complete. What is no object is no hint, and a hint never raises.

        The first hint of a call and attempt counts. Behind the request it has nothing left to do.
        """
        if call_id in self._calls or not self._may_come(call_id, attempt):
            return
        if not isinstance(input, Mapping) or not self._may_describe(tool):
            return
        try:
            given = _frozen(input)
        except (InputError, LimitError):
            return
        call = self._calls[call_id] = _Call(call_id, tool, attempt)
        self._describe(call, given, from_hint=True)

    def _may_come(self, call_id: str, attempt: str | None) -> bool:
        ends = ((attempt, call_id), (None, call_id), (attempt, ""))
        return not self._is_closed and self._gone.isdisjoint(ends)

    def _may_describe(self, tool: str | None) -> bool:
        return tool not in self._refused and self._allows(tool)

    def request(
        self,
        call_id: str,
        tool: str | None,
        input: Any,
        request_id: str = "",
        attempt: str | None = None,
    ) -> Verdict:
        """Somebody is asked whether the call may run. `InputError`: the input is no JSON
        value.

        `attempt` says whose call it is, where that is known: another attempt's hint is not its.
        """
        asked = _frozen(input)
        call = self._requested(call_id, tool, attempt)
        call.is_requested, call.asked, call.request_id = True, asked, request_id
        shown, job = self._shown(call), call.job
        if not self._may_describe(call.tool):
            self._discard(call)
            self._end_pending(call, "none")
            return self._tell(call, request_id, "none", is_last=True)
        if job is None or not same(job.input, shown):
            self._discard(call)
            self._end_pending(call, "none")
            self._describe(call, shown, from_hint=False)
            return self._wait(call, request_id, "again")
        if job.text is None:
            self._hurry(job)
            return self._wait(call, request_id, "wait")
        self._use(job)
        return self._tell(call, request_id, "reuse", job.text, is_last=True)

    def _requested(self, call_id: str, tool: str | None, attempt: str | None) -> _Call:
        call = self._calls.get(call_id)
        if call is not None and attempt is not None and call.attempt not in (attempt, None):
            self._withdraw(call)
            call = None
        if call is None:
            call = self._calls[call_id] = _Call(call_id, tool, attempt)
        call.tool = tool or call.tool or self._names.get(call_id)
        if call.tool:
            self._names.setdefault(call_id, call.tool)
        return call

    def _shown(self, call: _Call) -> Json:
        """What the approval shows: the same rule as its row's."""
        return call.asked or self._arguments.get(call.call_id) or {}

    def _again(self, call: _Call) -> None:
        """Describe anew what is asked about, for all that wait."""
        self._discard(call)
        self._describe(call, self._shown(call), from_hint=False)
        pending, call.pending = call.pending, []
        for request_id, told in pending:
            if told == "wait":
                self._tell(call, request_id, "again", after=told)
            call.pending.append((request_id, "again"))

    # -- what becomes of a description ---------------------------------------------------

    def finished(self, job: int, text: str) -> None:
        """A description is made. Of one that was let go it changes nothing."""
        found = self._running.pop(job, None)
        if found is None:
            return
        text = text.encode("utf-8", "replace").decode("utf-8")
        found.text, call = text, found.call
        for question in found.questions:  # whoever is done waits for no answer
            self._withdraw_question(call, question)
        data = {"call_id": call.call_id, "input": found.input, "text": text}
        told = [
            {**question.data(call.call_id), "answer": question.answer}
            for question in found.questions
            if question.answer is not None
        ]
        self._write("description/ready", {**data, "questions": told} if told else data)
        if call.is_requested:
            self._use(found)
            self._end_pending(call, None, text)

    def failed(self, job: int) -> None:
        """A description could not be made. One from a hint is tried again, once, when it is asked
        about; one that was asked for is left alone until the next request."""
        found = self._running.get(job)
        if found is None:
            return
        call = found.call
        self.counts.failed += 1
        self._discard(call, stop=False)
        if found.from_hint and call.pending:
            self._again(call)
        else:
            self._end_pending(call, "again")

    def ask(self, job: int, inquiry_id: str, question: Any) -> bool:
        """A description asks something. False: it was let go, or the id is in use."""
        found = self._running.get(job)
        if found is None or any(each.inquiry_id == inquiry_id for each in found.questions):
            return False
        new = _Question(inquiry_id, _frozen(question))
        found.questions.append(new)
        self.counts.opened += 1
        self._write("inquiry/opened", new.data(found.call.call_id))
        return True

    def answer(self, inquiry_id: str, answer: Any) -> bool:
        """Somebody answers. False: nobody asks that (any more); the first answer counts."""
        given = _frozen(answer)
        for job in self._running.values():
            for question in job.questions:
                if question.inquiry_id == inquiry_id and question.is_open:
                    question.is_open, question.answer = False, given
                    self.counts.answered += 1
                    data = question.data(job.call.call_id)
                    self._write("inquiry/answered", {**data, "answer": given})
                    return True
        return False

    # -- calls that are over -------------------------------------------------------------

    def withdraw(self, call_id: str) -> None:
        """The call will not come, or nobody asks about it any more."""
        call = self._calls.get(call_id)
        self._gone.add((None if call is None else call.attempt, call_id))
        if call is not None:
            self._withdraw(call)

    def abandon(self, attempt: str) -> None:
        """The attempt is given up, and all its calls with it. What it says later starts nothing."""
        self._gone.add((attempt, ""))
        for call in list(self._calls.values()):
            if call.attempt == attempt:
                self._withdraw(call)

    def close(self) -> None:
        """Nothing comes any more in this turn: all that is open ends."""
        self._is_closed = True
        for call_id in list(self._calls):
            self.withdraw(call_id)
        self._arguments.clear()

    def refuse(self, tool: str) -> None:
        """A refusal of this tool is to be remembered: none of its calls is described any more."""
        self._refused.add(tool)
        for call in list(self._calls.values()):
            if call.tool == tool and not (call.job is not None and call.job.is_shown):
                self.withdraw(call.call_id)

    def dispatched(self, call_id: str, arguments: Any) -> None:
        """The call was taken over: a request without an input asks about these arguments."""
        self._arguments[call_id] = _frozen(arguments)
        call = self._calls.get(call_id)
        if call is None or not call.is_requested or call.asked:
            return
        if call.job is not None and not same(call.job.input, self._shown(call)):
            self._again(call)

    # -- the log -------------------------------------------------------------------------

    def learn(self, event: Event) -> None:
        """Take an event of history: names and remembered refusals. It starts and ends nothing."""
        call_id, data = named(event.data, "call_id"), event.data
        if call_id is None:
            return
        if event.type == "tool/call" and (name := named(data, "name")):
            self._names.setdefault(call_id, name)
        elif event.type == "permission/answer" and _is_refusal(data):
            name = self._names.get(call_id)
            if name is not None:
                self._refused.add(name)

    def hear(self, event: Event) -> None:
        """Take an event that happens now. Requests come by `request`, from whoever asks."""
        self.learn(event)
        act = _HEARD.get(event.type)
        if act is not None:
            act(self, event.data)

    def _hear_call(self, data: Any) -> None:
        call_id = named(data, "call_id")
        try:
            arguments = complete(data.get("arguments"))
        except (InvalidArguments, TypeError):
            return
        if call_id is not None and call_id not in self._arguments:
            self.dispatched(call_id, arguments)

    def _hear_result(self, data: Any) -> None:
        call_id = named(data, "call_id") or ""
        self.withdraw(call_id)
        self._arguments.pop(call_id, None)

    def _hear_answer(self, data: Any) -> None:
        call_id = named(data, "call_id") or ""
        call = self._calls.get(call_id)
        if _is_refusal(data):
            name = self._names.get(call_id) or (call.tool if call else None)
            if name is not None:
                self.refuse(name)
        # The call stays known until its result, so that a hint that is late starts nothing.
        if call is not None and call.is_requested and call_id in self._calls:
            job = call.job
            if job is not None and not job.is_shown:
                self._let_go(job, is_withdrawn=True)
                call.job = None
            self._end_pending(call, "none")

    def _hear_given_up(self, data: Any) -> None:
        attempt = named(data, "attempt")
        if attempt is not None:
            self.abandon(attempt)

    def _hear_turn(self, data: Any) -> None:
        self._hear_step(data)
        self._gone.clear()

    def _hear_step(self, data: Any) -> None:
        self.close()  # a crash, then somebody types again
        self._is_closed = False

    def _hear_end(self, data: Any) -> None:
        self.close()

    # -- inside --------------------------------------------------------------------------

    def _describe(self, call: _Call, input: Json, *, from_hint: bool) -> None:
        self._jobs += 1
        call.job = job = _Job(self._jobs, call, input, from_hint=from_hint)
        self._queue.append(job)
        if not from_hint:
            self._hurry(job)

    def _hurry(self, job: _Job) -> None:
        """What somebody waits for goes before what is only expected, in the order of requests."""
        if job in self._queue:
            self._queue.remove(job)
            place = sum(1 for each in self._queue if each.call.is_requested)
            self._queue.insert(place, job)

    def _begin_waiting(self) -> None:
        while self._queue and len(self._running) < self._at_once:
            job = self._queue.pop(0)
            job.is_begun = True
            self._running[job.number] = job
            self.counts.started += 1
            data = {"call_id": job.call.call_id, "input": job.input}
            self._write("description/started", data)
            tool = job.call.tool
            self._actions.append(Start(job.number, job.call.call_id, tool, job.input))

    def _use(self, job: _Job) -> None:
        if not job.is_shown:
            job.is_shown = True
            self.counts.reused += 1

    def _tell(
        self,
        call: _Call,
        request_id: str,
        verdict: Verdict,
        text: str | None = None,
        *,
        after: Verdict | None = None,
        is_last: bool = False,
    ) -> Verdict:
        shown = self._shown(call)
        told = Shown(call.call_id, request_id, verdict, shown, text, after, is_last)
        self._actions.append(told)
        return verdict

    def _wait(self, call: _Call, request_id: str, verdict: Verdict) -> Verdict:
        call.pending.append((request_id, verdict))
        return self._tell(call, request_id, verdict)

    def _end_pending(self, call: _Call, verdict: Verdict | None, text: str | None = None) -> None:
        """Tell all that wait: here is the description (who waited for it reuses it), or none will
        come, as `verdict` says."""
        pending, call.pending = call.pending, []
        for request_id, told in pending:
            last = verdict or ("reuse" if told == "wait" else told)
            self._tell(call, request_id, last, text, after=told, is_last=True)

    def _withdraw(self, call: _Call) -> None:
        del self._calls[call.call_id]
        if call.job is not None:
            self._let_go(call.job, is_withdrawn=True)
            call.job = None
        self._end_pending(call, "none")

    def _discard(self, call: _Call, *, stop: bool = True) -> None:
        if call.job is not None:
            self._let_go(call.job, is_withdrawn=False, stop=stop)
            call.job = None

    def _let_go(self, job: _Job, *, is_withdrawn: bool, stop: bool = True) -> None:
        """End a description: its questions, its place, its count. One that was shown has ended."""
        if not job.is_begun:
            self._queue.remove(job)
            return
        is_running = self._running.pop(job.number, None) is not None
        if is_running and stop:
            self._actions.append(Stop(job.number))
        for question in job.questions:
            self._withdraw_question(job.call, question)
        if job.is_shown:
            return
        if is_withdrawn:
            self.counts.withdrawn += 1
        else:
            self.counts.discarded += 1
        self.counts.wasted += job.from_hint
        data = {"call_id": job.call.call_id, "input": job.input}
        self._write("description/withdrawn", data)

    def _withdraw_question(self, call: _Call, question: _Question) -> None:
        if question.is_open:
            question.is_open = False
            self.counts.questions_withdrawn += 1
            self._write("inquiry/withdrawn", question.data(call.call_id))

    def _write(self, kind: str, data: Mapping[str, Any]) -> None:
        self._actions.append(Write(Draft(kind, freeze_object(data))))


_AROUND_MAX = 3
"""So deep lies what is given here in the events that tell of it."""


def _frozen(value: Any) -> Json:
    """Freeze what is given, so that whoever changes it later changes nothing here. It must fit
    into an event: `LimitError` before anything has happened, not when it is written."""
    for _ in range(_AROUND_MAX):
        value = {"given": value}
    frozen = freeze(value)
    for _ in range(_AROUND_MAX):
        frozen = frozen["given"]
    return frozen


def _is_refusal(data: Any) -> bool:
    return data.get("decision") == "deny" and data.get("remember") is True


_HEARD: Mapping[str, Callable[[Core, Any], None]] = {
    "turn/start": Core._hear_turn,  # noqa: SLF001 - of this file
    "step/start": Core._hear_step,  # noqa: SLF001
    "step/end": Core._hear_end,  # noqa: SLF001
    "turn/end": Core._hear_end,  # noqa: SLF001
    "tool/call": Core._hear_call,  # noqa: SLF001
    "tool/result": Core._hear_result,  # noqa: SLF001
    "permission/answer": Core._hear_answer,  # noqa: SLF001
    "llm/retry": Core._hear_given_up,  # noqa: SLF001
    "llm/fallback": Core._hear_given_up,  # noqa: SLF001
}
