"""One answer as Codex shows it while it comes: pieces of text and thoughts, then the whole text.

Here lives an answer from its first piece to its message. Not here: which events tell of it
(`codex_tui_log`), calls (`codex_tui_calls`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from definitions.importers.transcript import Operation, Transcript

__all__ = ["Answer"]

_STOPPED = {"cancelled": "interrupted", "error": "failed"}


class _Block:
    """A block of an answer; `label` is what its events are called."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.pieces: list[str] = []
        self.is_whole = False

    def said(self) -> dict[str, str]:
        kind = "text" if self.label == "agent_message" else "reasoning"
        return {"type": kind, "text": "".join(self.pieces)}


class Answer:
    """The answer of the step that it opened. Memory: its text.

    `is_whole`: its text was told to the end, so what follows begins another.
    """

    def __init__(self, transcript: Transcript, record: str) -> None:
        self.is_whole = False
        self.usage: Mapping[str, Any] | None = None
        self._transcript = transcript
        self._record = record
        self._blocks: list[_Block] = []
        self._open: _Block | None = None

    def piece(self, label: str, text: str, time: int | None) -> Operation:
        """Say the next piece; another label than before begins another block."""
        if self._open is None or self._open.label != label:
            self._open = _Block(label)
            self._blocks.append(self._open)
        self._open.pieces.append(text)
        at = len(self._blocks) - 1
        return self._delta(self._open.said()["type"], {"block": at, "text": text}, time)

    def close(self) -> None:
        """End the block at hand: the next piece begins another."""
        self._open = None

    def whole(self, label: str, text: str, time: int | None) -> Iterator[Operation]:
        """Say the whole text of a block: of the first whose pieces alone were told, or a new one.

        The texts of several blocks come together, behind the pieces of all of them.
        """
        waiting = [block for block in self._blocks if block.label == label and not block.is_whole]
        if not waiting:
            self.close()
            yield self.piece(label, text, time)
        block = waiting[0] if waiting else self._blocks[-1]
        block.pieces, block.is_whole = [text], True
        if block is self._open:
            self.close()
        told = {"block": self._blocks.index(block), "value": block.said()}
        yield self._delta("block-end", told, time)
        self.is_whole = label == "agent_message"

    def message(self, stop_reason: str) -> Iterator[Operation]:
        """Write the answer as its step's message, however it ended."""
        transcript = self._transcript
        was_cut = stop_reason in _STOPPED
        transcript.at(f"{self._record}-answer")
        told: dict[str, Any] = {
            "turn": transcript.turn,
            "step": transcript.step,
            "message_id": f"message-{self._record}",
            "content": [block.said() for block in self._blocks],
            "stop_reason": stop_reason,
        }
        told |= {} if self.usage is None else {"usage": self.usage}
        told |= {"interrupted": True} if was_cut else {}
        yield transcript.event("assistant/message", told)
        outcome = _STOPPED.get(stop_reason, "completed")
        yield {"op": "settle", "attempt": self._attempt(), "outcome": outcome}

    def _delta(self, kind: str, data: Mapping[str, Any], time: int | None) -> Operation:
        place = {"turn": self._transcript.turn, "step": self._transcript.step}
        when = {} if time is None else {"time": time}
        where = {"attempt": self._attempt(), "number": 1, **place, **when}
        return {"op": "delta", **where, "type": kind, "data": dict(data)}

    def _attempt(self) -> str:
        return f"{self._transcript.turn}.{self._transcript.step}.1"
