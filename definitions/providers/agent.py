"""What an adapter of a whole agent gives: events to store, deltas to emit, attempts to settle.

An agent runs its own calls and asks its own questions, so what it says is more than one response:
a caller writes each of these down, in order. Values alone. Not here: any format.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from msgspec import Struct

from assembler.engine.events import Outcome

__all__ = ["AgentDelta", "AgentEvent", "AgentPiece", "AgentSettle"]


class AgentEvent(Struct, frozen=True):
    """A durable event: its type and data."""

    type: str
    data: Mapping[str, Any]


class AgentDelta(Struct, frozen=True):
    """A delta of an attempt; `number` 0 is one beside the answer, such as a tool's output."""

    attempt: str
    turn: int
    step: int
    type: str
    data: Mapping[str, Any]
    number: int = 1


class AgentSettle(Struct, frozen=True):
    """How an attempt ended."""

    attempt: str
    outcome: Outcome


AgentPiece: TypeAlias = AgentEvent | AgentDelta | AgentSettle
