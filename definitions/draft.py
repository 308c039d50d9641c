"""What the stream of a running answer says beside its text: bounds of blocks, and usage.

State alone, by step, shown by nobody; `assistant` reads it while it has no message. It stands
apart because these deltas start no answer and often come before its first text: as Matches of the
assistant every ordinary stream would be a finding. Not here: text and reasoning (`assistant`), the
blocks of calls (`tool`).
"""

from __future__ import annotations

from msgspec.structs import replace

from assembler.engine.definition import NONE, START, Cadence, Definition, Match, Reader, Role
from assembler.engine.events import Delta, Event
from assembler.engine.values import Json, Object
from definitions.arguments import same_json
from definitions.events import step_of
from definitions.shared import DraftBlock, DraftState

__all__ = ["Draft"]


class Draft(Definition):
    """The frame of what is being written in one step. The id is `turn.step`."""

    kind = "draft"
    takes = frozenset({"block-start", "block-end", "usage"})

    def match(self, item: Event | Delta) -> tuple[str, Role] | None:
        if type(item) is not Delta or _is_call(item):
            return None
        step = step_of(item)
        return None if step is None else (step, START)

    def start(self, match: Match, reader: Reader) -> DraftState:
        return self.update(DraftState(), match)

    def update(self, state: DraftState, match: Match) -> DraftState:
        if match.type == "usage":
            return _count(state, match.data.get("usage"))
        attempt, block = match.attempt or "", match.data.get("block")
        value = match.data.get("value") if match.type == "block-end" else None
        if type(value) is not Object:
            value = None
        for at, old in enumerate(state.blocks):
            if old.attempt == attempt and same_json(old.block, block):
                if value is None:
                    return state
                new = DraftBlock(attempt, block, old.at, match.position, value)
                return replace(state, blocks=(*state.blocks[:at], new, *state.blocks[at + 1 :]))
        new = DraftBlock(attempt, block, match.position, match.position, value)
        return replace(state, blocks=(*state.blocks, new))

    def cadence(self, match: Match) -> Cadence:
        return NONE


def _count(state: DraftState, usage: Json) -> DraftState:
    """Take the usage so far: the last one counts."""
    if type(usage) is not Object:
        return state
    told = state.told + 1
    shown = usage if told & (told - 1) == 0 else state.shown
    return replace(state, usage=usage, told=told, shown=shown)


def _is_call(delta: Delta) -> bool:
    """Whether it bounds the block of a call, which is no part of the answer's text."""
    value = delta.data.get("value")
    of_value = type(value) is Object and value.get("type") == "tool-call"
    return bool(of_value or delta.data.get("block_type") == "tool-call")
