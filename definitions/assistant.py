"""The assistant's answer of one step: text and reasoning while they grow, then the message.

Not here: calls (`tool` has rows of its own for them), bounds of blocks and usage of the stream
(`draft`), what an answer costs (`turn_tail`).
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from assembler.engine.definition import (
    FRAME,
    NOW,
    START,
    Cadence,
    Context,
    Definition,
    Match,
    Node,
    Reader,
    Role,
    Scope,
)
from assembler.engine.events import Delta, Event, Position
from assembler.engine.values import Json, Object, Text
from definitions.events import shown_blocks, step_of, visible
from definitions.nodes import node
from definitions.shared import DraftBlock, DraftState

__all__ = ["Assistant", "AssistantState", "Block"]

_GROWING = ("text", "reasoning")


class Block(Struct, frozen=True, gc=False):
    """A block that grows: whose, of which type, and from which to which position it came."""

    attempt: str
    block: Json
    type: str
    text: Text
    at: Position
    last: Position
    blank: bool = True


class AssistantState(Struct, frozen=True, gc=False):
    """What is held of the answer.

    With a `message` there are no `blocks`: it replaces them. `streamed`: some were there.
    """

    message: Object | None = None
    blocks: tuple[Block, ...] = ()
    streamed: bool = False
    odd: tuple[tuple[str, Position], ...] = ()


class Assistant(Definition):
    """The answer of one step. The id is `turn.step`.

    Its place is that of its start: its first text or reasoning delta, blank or not, while deltas
    are held, else its message.
    """

    kind = "assistant"
    target = "chat"
    takes = frozenset({*_GROWING, "assistant/message"})

    def match(self, item: Event | Delta) -> tuple[str, Role] | None:
        if type(item) is Delta:
            return (f"{item.turn}.{item.step}", START) if item.type in _GROWING else None
        step = step_of(item) if item.type == "assistant/message" else None
        return None if step is None else (step, START)

    def start(self, match: Match, reader: Reader) -> AssistantState:
        return self.update(AssistantState(), match)

    def update(self, state: AssistantState, match: Match) -> AssistantState:
        return self.extend(state, (match,))

    def extend(self, state: AssistantState, matches: Sequence[Match]) -> AssistantState:
        at = 0
        while at < len(matches):
            if type(matches[at].item) is Event:
                state = _settle(state, matches[at])
                at += 1
                continue
            end, fragments, last = _run(matches, at)
            state = _grow(state, matches[at], fragments, last)
            at = end
        return state

    def notes(self, context: Context, scope: Scope) -> Sequence[tuple[str, Position]]:
        state: AssistantState | None = context.state
        return () if state is None else state.odd

    def build(self, context: Context, scope: Scope) -> Node | None:
        state: AssistantState | None = context.state
        if state is None:
            return None
        if state.message is not None:
            return _settled(context.id, state, state.message, scope)
        return _running(context.id, state, scope)

    def cadence(self, match: Match) -> Cadence:
        return NOW if type(match.item) is Event else FRAME


def _run(matches: Sequence[Match], at: int) -> tuple[int, list[str], Position]:
    """Read the run of deltas of one block that begins at `at`.

    Gives its end, its fragments, and where the last of them stands.
    """
    fragments: list[str] = []
    last = matches[at].position
    first: Delta = matches[at].item  # type: ignore[assignment]
    attempt, kind, block = first.attempt, first.type, first.data.get("block")
    for end in range(at, len(matches)):
        match = matches[end]
        item = match.item
        if type(item) is not Delta or item.attempt != attempt or item.type != kind:
            return end, fragments, last
        data = item.data
        if not _same(data.get("block"), block):
            return end, fragments, last
        text = data.get("text")
        if text and type(text) is str:
            fragments.append(text)
            last = match.position
    return len(matches), fragments, last


def _grow(
    state: AssistantState, first: Match, fragments: list[str], last: Position
) -> AssistantState:
    """Add a run of deltas to its block. Behind a message they say nothing new."""
    if state.message is not None:
        return state
    attempt, kind, block = first.attempt or "", first.type, first.data.get("block")
    blocks = state.blocks
    for at in range(len(blocks) - 1, -1, -1):
        old = blocks[at]
        if old.attempt == attempt and _same(old.block, block) and old.type == kind:
            if not fragments:
                return state
            new = _longer(old, fragments, last)
            return replace(state, blocks=(*blocks[:at], new, *blocks[at + 1 :]))
    empty = Block(attempt, block, kind, Text(), first.position, first.position)
    return replace(state, blocks=(*blocks, _longer(empty, fragments, last)), streamed=True)


def _longer(block: Block, fragments: list[str], last: Position) -> Block:
    """Put fragments behind a block; whether it is blank costs the new ones at most."""
    if not fragments:
        return block
    blank = block.blank and all(fragment.isspace() for fragment in fragments)
    text = block.text.extend(fragments)
    return Block(block.attempt, block.block, block.type, text, block.at, last, blank)


def _settle(state: AssistantState, match: Match) -> AssistantState:
    """Take the first message; an interrupted one gives way to one that is not."""
    message = state.message
    if message is not None and (not message.get("interrupted") or match.data.get("interrupted")):
        return replace(state, odd=(*state.odd, ("duplicate-message", match.position)))
    return replace(state, message=match.data, blocks=())


def _settled(step: str, state: AssistantState, message: Object, scope: Scope) -> Node | None:
    blocks = shown_blocks(message.get("content"))
    if not any(visible(block) for block in blocks):
        return None
    usage = message.get("usage")
    if usage is None and state.streamed:
        draft: DraftState | None = scope.other("draft", step)
        usage = draft.usage if draft is not None else None
    status = "interrupted" if message.get("interrupted") else "settled"
    stop_reason = message.get("stop_reason")
    fields = {"status": status, "blocks": blocks, "usage": usage, "stop_reason": stop_reason}
    return node("assistant", step, fields)


def _running(step: str, state: AssistantState, scope: Scope) -> Node | None:
    """Show what has come so far. With nobody at work any more nothing will follow it."""
    draft: DraftState | None = scope.other("draft", step)
    shown = _framed(state.blocks, draft.blocks if draft is not None else ())
    if not any(seen for _, seen in shown):
        return None
    over = scope.closed or scope.live is False
    fields = {
        "status": "interrupted" if over else "running",
        "blocks": tuple([block for block, _ in shown]),
        "usage": draft.shown if draft is not None else None,
    }
    return node("assistant", step, fields)


def _same(left: Json, right: Json) -> bool:
    """Whether two deltas are of one block. Blocks are numbers; 0 and false are not one."""
    return type(left) is type(right) and bool(left == right)


def _shown(block: Block) -> tuple[Json, bool]:
    return {"type": block.type, "text": block.text}, not block.blank


def _framed(blocks: tuple[Block, ...], bounds: tuple[DraftBlock, ...]) -> list[tuple[Json, bool]]:
    """Put blocks in the order of their first delta, whole values in the place of their pieces;
    with each, whether there is anything in it to see."""
    if not bounds:
        return [_shown(block) for block in blocks]
    known = {(bound.attempt, type(bound.block), bound.block): bound for bound in bounds}
    placed: list[tuple[Position, Json, bool]] = []
    grown = set()
    for block in blocks:
        key = (block.attempt, type(block.block), block.block)
        grown.add(key)
        bound = known.get(key)
        if bound is not None and bound.value is not None and bound.ended >= block.last:
            placed.append((min(block.at, bound.at), bound.value, visible(bound.value)))
        else:
            at = block.at if bound is None else min(block.at, bound.at)
            placed.append((at, *_shown(block)))
    placed += [
        (bound.at, bound.value, visible(bound.value))
        for key, bound in known.items()
        if key not in grown and bound.value is not None
    ]
    placed.sort(key=lambda entry: entry[0])
    return [(value, seen) for _, value, seen in placed]
