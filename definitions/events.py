"""What is on the wire: the names of event and delta types, and how to read their payloads.

Data and small readers. Not here: Node payloads (`nodes`), what a Definition makes of an event.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeGuard

from assembler.engine.definition import Match
from assembler.engine.events import Delta, Event
from assembler.engine.values import Json, Object, Text

__all__ = [
    "DELTA_TYPES",
    "EVENT_TYPES",
    "VOCABULARY",
    "is_blank",
    "is_int",
    "named",
    "request_of",
    "runs",
    "shown_blocks",
    "step_of",
    "text_of",
    "total_usage",
    "visible",
]

EVENT_TYPES = frozenset(
    {
        "turn/start",
        "turn/end",
        "conversation/title",
        "step/start",
        "step/end",
        "user/message",
        "inbox/spliced",
        "assistant/message",
        "llm/retry",
        "llm/fallback",
        "tool/call",
        "tool/result",
        "permission/request",
        "permission/answer",
        "description/started",
        "description/ready",
        "description/withdrawn",
        "inquiry/opened",
        "inquiry/answered",
        "inquiry/withdrawn",
        "compaction/start",
        "compaction/summary",
        "compaction/end",
        "command/run",
        "command/done",
    }
)
"""Types of durable events."""

DELTA_TYPES = frozenset(
    {"block-start", "text", "reasoning", "tool-call", "block-end", "tool-output", "usage"}
)
"""Types of deltas."""

VOCABULARY = EVENT_TYPES | DELTA_TYPES
"""Every type that has a meaning here; what is not in it reaches the fallback."""

_COUNTED = (
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
)


def named(data: Object, field: str) -> str | None:
    """Give the text of a field that names something; None when it is missing, empty or no text."""
    value = data.get(field)
    return value if type(value) is str and value else None


def text_of(value: Json) -> str:
    """Give a text field as it is; what is no text counts as empty."""
    return value if type(value) is str else ""


def request_of(data: Object) -> str | None:
    """Give the name of a permission's question as text; writers use texts and numbers."""
    value = data.get("request_id")
    return str(value) if is_int(value) else named(data, "request_id")


def is_int(value: object) -> TypeGuard[int]:
    """Whether it is a number that can name a turn or step (a boolean cannot)."""
    return type(value) is int


def step_of(item: Event | Delta) -> str | None:
    """Give the id of the step that an item names: `turn.step`; None when it names none."""
    if type(item) is Delta:
        return f"{item.turn}.{item.step}"
    data = item.data
    turn, step = data.get("turn"), data.get("step")
    return f"{turn}.{step}" if is_int(turn) and is_int(step) else None


def total_usage(usages: Iterable[Object]) -> dict[str, int]:
    """Add up each number that was told; what a provider calls its own is not added up."""
    total: dict[str, int] = {}
    for usage in usages:
        for name in _COUNTED:
            told: Json = usage.get(name)
            if is_int(told):
                total[name] = total.get(name, 0) + told
    return {name: total[name] for name in _COUNTED if name in total}


def is_blank(text: str | Text) -> bool:
    """Whether there is nothing in it that can be seen. Costs its leading blanks alone.

    A growing text is never joined for this.
    """
    if type(text) is Text:
        fragments, count = text.fragments
        return all(not fragments[at] or fragments[at].isspace() for at in range(count))
    return not text or str(text).isspace()


def visible(block: Json) -> bool:
    """Whether a block gives people something to see.

    Text and reasoning do when they are not blank; a call has a row of its own; what a provider
    keeps for itself has nothing that we could show. Files, JSON and unknown blocks do.
    """
    if type(block) is not Object:
        return False
    kind = block.get("type")
    if kind in ("text", "reasoning"):
        text = block.get("text")
        return type(text) in (str, Text) and not is_blank(text)
    return kind not in ("tool-call", "provider")


def shown_blocks(content: Json) -> tuple[Json, ...]:
    """Give the blocks of a message without its calls and their results, in their order."""
    if type(content) is not tuple:
        return ()
    if any(_is_of_call(block) for block in content):
        return tuple([block for block in content if not _is_of_call(block)])
    return content


def _is_of_call(block: Json) -> bool:
    """Whether it has a row of its own: a call, or the result of one that the provider ran."""
    if type(block) is not Object:
        return False
    kind = block.get("type")
    return kind == "tool-call" or (kind == "provider" and named(block, "call_id") is not None)


def runs(matches: Sequence[Match]) -> Iterator[list[Match]]:
    """Cut Matches into runs that can be folded at once.

    A run is deltas of one type and attempt that follow each other; an event is alone.
    """
    run: list[Match] = []
    kind = attempt = ""
    for match in matches:
        item = match.item
        if type(item) is Delta:
            if item.type == kind and item.attempt == attempt:
                run.append(match)
                continue
            if run:
                yield run
            run, kind, attempt = [match], item.type, item.attempt
            continue
        if run:
            yield run
            run, kind = [], ""
        yield [match]
    if run:
        yield run
