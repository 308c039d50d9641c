"""The conversation that an agent's adapter writes: turns, steps and answers, while they stream.

Here lives what is written whatever an agent's protocol calls it: numbers, the answer that grows by
deltas and is stored when it ends, the attempt that it was. Not here: calls, questions, and any
protocol (`acp_agent`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assembler.engine.events import Outcome
from definitions.providers.agent import AgentDelta, AgentEvent, AgentPiece, AgentSettle
from definitions.providers.reading import Halves

__all__ = ["AgentTurns"]

Block = dict[str, Any]


class _Said:
    """One block of the answer that grows: who says it, its pieces so far, and the block itself."""

    def __init__(self, kind: str, message_id: str | None, block: Block | None = None) -> None:
        self.kind = kind
        self.message_id = message_id
        self.pieces: list[str] = []
        self._block = block
        self._halves = Halves()

    def add(self, text: str) -> str:
        shown = self._halves.take(text)
        self.pieces.append(shown)
        return shown

    def block(self) -> Block | None:
        """The whole block; None for a text that says nothing."""
        if self._block is not None:
            return self._block
        text = "".join([*self.pieces, self._halves.rest()])
        return {"type": self.kind, "text": text} if text else None


class AgentTurns:
    """Writes one conversation behind turn `turn`. Memory: the answer at hand, and message ids."""

    def __init__(self, turn: int = 0) -> None:
        self.turn = turn
        self.step = 0
        self.is_in_turn = False
        self.is_in_step = False
        self._said: list[_Said] = []
        self._is_answered = False
        self._used: dict[str, int] = {}
        self._out: list[AgentPiece] = []

    def taken(self) -> list[AgentPiece]:
        """Give what was written since this was asked."""
        out, self._out = self._out, []
        return out

    def event(self, kind: str, data: Mapping[str, Any]) -> None:
        self._out.append(AgentEvent(kind, data))

    def delta(self, attempt: str, kind: str, data: Mapping[str, Any], number: int = 1) -> None:
        """Emit a delta of the step that is open."""
        self._out.append(AgentDelta(attempt, self.turn, self.step, kind, data, number))

    def settle(self, attempt: str, outcome: Outcome) -> None:
        self._out.append(AgentSettle(attempt, outcome))

    # -- turns and steps ---------------------------------------------------------------------

    def user(
        self,
        content: Sequence[Block],
        message_id: str | None,
        source: Mapping[str, Any] | None = None,
    ) -> None:
        """Write a message to the agent: into a turn that nothing was said in yet, else a new one.

        The turn before has ended. `source` says who sent it, when no person did.
        """
        if self.step:
            self.end_turn("completed")
        self.begin_turn()
        self.message(content, message_id, source)

    def message(
        self,
        content: Sequence[Block],
        message_id: str | None,
        source: Mapping[str, Any] | None = None,
    ) -> None:
        """Write a message to the agent where the conversation stands."""
        self.begin_turn()
        told = self.named(message_id or f"user-{self.turn}")
        data = {"message_id": told, "content": list(content)}
        self.event("user/message", data if source is None else {**data, "source": source})

    def begin_turn(self) -> None:
        if not self.is_in_turn:
            self.turn, self.step, self.is_in_turn = self.turn + 1, 0, True
            self.event("turn/start", {"turn": self.turn})

    def end_turn(
        self,
        reason: str,
        error: Mapping[str, Any] | None = None,
        usage: Mapping[str, Any] | None = None,
        **answer: Any,
    ) -> None:
        """Close the turn that is open; `answer` is what is known of how its answer ended.

        `usage` is that of the turn: its last answer carries it, or, when that is stored, its end.
        """
        rest = {} if usage is None else {"usage": usage}
        if self.is_in_step and not self._is_answered and self._said:
            rest = {}
            answer["usage"] = usage
        self.end_step(**answer)
        if self.is_in_turn:
            self.is_in_turn = False
            told = rest if error is None else {"error": error, **rest}
            self.event("turn/end", {"turn": self.turn, "reason": reason, **told})
            self.step = 0

    def begin_step(self) -> None:
        """Open a step when none is open."""
        if not self.is_in_step:
            self.begin_turn()
            self.step, self.is_in_step, self._is_answered = self.step + 1, True, False
            self.event("step/start", {"turn": self.turn, "step": self.step})

    def end_step(self, **answer: Any) -> None:
        """Close the step that is open, and store its answer."""
        if self.is_in_step:
            self.end_answer(**answer)
            self.is_in_step = False
            self.event("step/end", {"turn": self.turn, "step": self.step})

    # -- the answer --------------------------------------------------------------------------

    def is_next(self, kind: str, message_id: str | None) -> bool:
        """Whether what is said now is of another answer: behind a call, or in another message."""
        if not self.is_in_step or self._is_answered:
            return True
        texts = [said.message_id for said in self._said if said.kind == "text"]
        if message_id is None or not texts or texts[-1] is None:
            return False
        return message_id != (texts[-1] if kind == "text" else self._said[-1].message_id)

    def say(self, kind: str, text: str, message_id: str | None) -> None:
        """Add text or reasoning to the answer."""
        self.begin_step()
        last = self._said[-1] if self._said else None
        if last is None or (last.kind, last.message_id) != (kind, message_id):
            self._said.append(last := _Said(kind, message_id))
        shown = last.add(text)
        if shown:
            data = {"block": len(self._said) - 1, "text": shown}
            self.delta(self.attempt, kind, data)

    def says_whole(self, kind: str, text: str, message_id: str) -> bool:
        """Take the whole text of a message of the answer at hand; False: it is of none of these."""
        for at, said in enumerate(self._said):
            if (said.kind, said.message_id) != (kind, message_id):
                continue
            before = "".join(said.pieces)
            if at == len(self._said) - 1 and text.startswith(before):
                self.say(kind, text[len(before) :], message_id)
            elif text != before:
                said.pieces = [text]
                value = {"type": kind, "text": text}
                self.delta(self.attempt, "block-end", {"block": at, "value": value})
            return True
        return False

    def show(self, block: Block, message_id: str | None) -> None:
        """Add a block that is no text to the answer."""
        self.begin_step()
        self._said.append(_Said(block["type"], message_id, block))

    @property
    def attempt(self) -> str:
        """The attempt that the answer of the open step is."""
        return f"{self.turn}.{self.step}"

    def end_answer(
        self,
        stop: str = "end_turn",
        usage: Mapping[str, Any] | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        """Store the answer of the open step, once. Nothing was said: nothing is stored."""
        if self._is_answered or not self.is_in_step:
            return
        self._is_answered = True
        said, self._said = self._said, []
        blocks = [block for each in said if (block := each.block()) is not None]
        ids = [each.message_id for each in said]
        if not blocks:
            return
        texts = [each.message_id for each in said if each.kind == "text" and each.message_id]
        told = next(iter([*texts, *filter(None, ids)]), None)
        self.event(
            "assistant/message",
            {
                **(more or {}),
                "turn": self.turn,
                "step": self.step,
                "message_id": self.named(told or self.attempt),
                "content": blocks,
                "stop_reason": stop,
                **({} if usage is None else {"usage": usage}),
            },
        )
        if any(each.pieces for each in said):
            self.settle(self.attempt, Outcome.COMPLETED)

    def named(self, told: str) -> str:
        """Name something that is called so; what is called so again gets a name of its own."""
        count = self._used[told] = self._used.get(told, 0) + 1
        return told if count == 1 else f"{told}#{count}"
