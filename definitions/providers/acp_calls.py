"""The calls of an agent that speaks ACP: when each is prepared, written and over.

A call is prepared while it is said to be pending. It is written when it runs, when people are asked
about it, or when something else is said, for then its arguments are whole. Its result is written at
the first card that says that it is over; where that says nothing of what came of it, at whatever
follows, for some agents tell it in the next card. Not here: what a card says (`acp_call`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assembler.engine.events import Outcome
from definitions.providers.acp_call import AcpCall
from definitions.providers.acp_content import terminals_of
from definitions.providers.agent_turns import AgentTurns
from definitions.providers.reading import mapping, text

__all__ = ["AcpCalls"]


class AcpCalls:
    """Writes calls to `turns`. Memory: every call of the conversation, its output while it runs.

    `clears`: null takes a field of a card back, as ACP 2 has it.
    """

    def __init__(self, turns: AgentTurns) -> None:
        self.clears = False
        self._turns = turns
        self._calls: dict[str, AcpCall] = {}
        self._numbers: dict[str, int] = {}
        self._prepared: dict[str, AcpCall] = {}
        """Calls that are shown and were not written yet."""
        self._held: dict[str, AcpCall] = {}
        """Calls of which something is written as soon as something else is said."""
        self._terminals: dict[str, AcpCall] = {}

    def take(self, kind: str, card: Mapping[str, Any]) -> bool:
        """Write what a card brought out; False: it says nothing of any call that is not over."""
        told = text(card.get("toolCallId"))
        call = self._calls.get(told)
        if call is not None and kind == "tool_call" and self._is_another(call, card):
            call = None
        if not told or (call is not None and call.is_done):
            return False
        if mapping(card.get("_meta")).get("preparationDiscarded") is True:
            self._discard(call)
            return True
        if call is None:
            call = self._begin(told)
        if kind == "tool_call_content_chunk":
            self.print(call, call.adds(card.get("content")))
        else:
            call.take(card, clears=self.clears)
        self._terminals.update(dict.fromkeys(terminals_of(call.content), call))
        self._go_on(call, card)
        return True

    def asked(self, card: Mapping[str, Any]) -> AcpCall:
        """Write the call that people are asked about, if it is not written; gives it."""
        told = text(card.get("toolCallId"))
        call = self._calls.get(told) or self._begin(told)
        if not call.is_done:
            call.take(card, clears=self.clears)
        self._dispatch(call)
        return call

    def of_terminal(self, terminal: str) -> AcpCall | None:
        """Give the running call that shows a terminal."""
        return self._terminals.get(terminal)

    def print(self, call: AcpCall, printed: str) -> None:
        """Emit what a running call printed since; between the steps nobody can see it."""
        if not printed or not call.is_called or call.is_over or not self._turns.is_in_step:
            return
        attempt = f"{call.id}.output@{self._turns.attempt}"
        call.outputs[attempt] = None
        self._turns.delta(attempt, "tool-output", {"call_id": call.id, "text": printed}, number=0)

    def let_go(self, but: str = "") -> None:
        """Something else is said: write calls that waited for another card of theirs."""
        for told in [each for each in self._held if each != but]:
            call = self._held.pop(told)
            self._dispatch(call)
            if call.is_over and not call.is_done:
                self._settle(call)

    def give_up(self) -> list[AcpCall]:
        """Take back what is only prepared; gives those calls."""
        given_up = list(self._prepared.values())
        for call in given_up:
            self._end_preparation(call, Outcome.ABANDONED)
        return given_up

    def prepare(self, call: AcpCall) -> None:
        """Show a call that does not run yet, and what is known of its arguments."""
        name, arguments = call.name, call.arguments if call.has_input else ""
        if call.attempt is None:
            self._turns.begin_step()
            call.attempt = f"{call.id}@{self._turns.attempt}"
            call.announced = ("", "")
            self._prepared[call.told] = call
        named = {"call_id": call.id, "name": name}
        if call.announced[0] != name:
            data = {"block": 0, **named, "arguments": "", **self._parent(call)}
            self._turns.delta(call.attempt, "tool-call", data, number=0)
        if arguments != call.announced[1]:
            value = {"type": "tool-call", **named, "arguments": arguments}
            self._turns.delta(call.attempt, "block-end", {"block": 0, "value": value}, number=0)
        call.announced = (name, arguments)

    # -- one call ----------------------------------------------------------------------------

    def _is_another(self, call: AcpCall, card: Mapping[str, Any]) -> bool:
        """Whether a card begins a new call under the id of an older one."""
        if call.is_done:
            return not call.is_replayed_by(card, self._turns.turn)
        return call.is_called and call.turn != self._turns.turn and call.differs_from(card)

    def _begin(self, told: str) -> AcpCall:
        """Begin a call: under its own id, or where that was used before under one of ours."""
        self._turns.begin_turn()
        number = self._numbers[told] = self._numbers.get(told, 0) + 1
        call_id = told if number == 1 else f"{told}#{number}"
        call = self._calls[told] = AcpCall(call_id, told, self._turns.turn)
        return call

    def _go_on(self, call: AcpCall, card: Mapping[str, Any]) -> None:
        if not call.is_called and not call.may_run:
            self.prepare(call)
            if call.has_input:
                self._held[call.told] = call
            return
        self._dispatch(call)
        self.print(call, call.news(card))
        if not call.is_over:
            return
        if call.meta.get("unsettled") is True:
            call.is_done = True  # whoever wrote this says that there was no result
        elif call.has_outcome:
            self._settle(call)
        else:
            self._held[call.told] = call

    def _dispatch(self, call: AcpCall) -> None:
        """Write that a call runs, or is about to: in the open step, or that of its parent."""
        if call.is_called:
            return
        call.is_called = True
        outer = self._calls.get(call.parent or "")
        if outer is not None and outer.is_called:
            call.place = outer.place
        else:
            self._turns.begin_step()
            self._turns.end_answer(stop="tool_use")
            call.place = (self._turns.turn, self._turns.step)
        named = {"call_id": call.id, "name": call.name, "arguments": call.arguments}
        where = {"turn": call.place[0], "step": call.place[1]}
        self._turns.event("tool/call", {**call.written(), **where, **named, **self._parent(call)})
        self._end_preparation(call, Outcome.COMPLETED)

    def _parent(self, call: AcpCall) -> dict[str, str]:
        """Name the call that a call was made in, as it is named here."""
        if call.parent is None or call.parent == call.told:
            return {}
        outer = self._calls.get(call.parent)
        return {"parent_call_id": call.parent if outer is None else outer.id}

    def _settle(self, call: AcpCall) -> None:
        """Write what came of a call."""
        call.is_done = True
        self._turns.event("tool/result", call.result())
        for attempt in call.outputs:
            self._turns.settle(attempt, Outcome.COMPLETED)
        for terminal in terminals_of(call.content):
            self._terminals.pop(terminal, None)
        call.forget()

    def _discard(self, call: AcpCall | None) -> None:
        """The agent took the preparation of a call back; the call may come again."""
        if call is None or call.is_called:
            return
        self._held.pop(call.told, None)
        self._end_preparation(call, Outcome.ABANDONED)
        del self._calls[call.told]
        self._numbers[call.told] -= 1

    def _end_preparation(self, call: AcpCall, outcome: Outcome) -> None:
        if call.attempt is not None:
            self._turns.settle(call.attempt, outcome)
            call.attempt = None
            del self._prepared[call.told]
