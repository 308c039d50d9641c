"""What an adapter of a whole agent gives: events to store, deltas to emit, attempts to settle.

An agent runs its own calls and asks its own questions, so what it says is more than one response:
a caller writes each of these down, in order. `conversation` names the one beside the main one that
a piece belongs to: that of a subagent, by the call that started it. Values alone. Not here: any
format.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from assembler.engine.events import Outcome

__all__ = ["Agent", "AgentDelta", "AgentEvent", "AgentPiece", "AgentSettle"]


class AgentEvent(Struct, frozen=True):
    """A durable event: its type and data."""

    type: str
    data: Mapping[str, Any]
    conversation: str | None = None


class AgentDelta(Struct, frozen=True):
    """A delta of an attempt; `number` 0 is one beside the answer, such as a tool's output."""

    attempt: str
    turn: int
    step: int
    type: str
    data: Mapping[str, Any]
    number: int = 1
    conversation: str | None = None


class AgentSettle(Struct, frozen=True):
    """How an attempt ended."""

    attempt: str
    outcome: Outcome
    conversation: str | None = None


AgentPiece: TypeAlias = AgentEvent | AgentDelta | AgentSettle


class Agent(Protocol):
    """What every adapter of an agent is: fed what the agent says, it gives what to write."""

    def feed(self, message: object, /) -> list[AgentPiece]:
        """Take one decoded message; never raises for what an agent sends."""
        ...

    def finish(self, reason: str | None = None) -> list[AgentPiece]:
        """No more comes. With a `reason` the turn that is open ends with it."""
        ...
