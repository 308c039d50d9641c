"""The one list of what a conversation is made of. Not here: any of its members."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

from assembler.engine.definition import Definition, GroupDefinition
from definitions.approval import Approval
from definitions.assistant import Assistant
from definitions.command import Command
from definitions.compaction import Compaction
from definitions.description import Description
from definitions.draft import Draft
from definitions.events import text_of
from definitions.fallback import Fallback
from definitions.inbox import Inbox
from definitions.message import Message
from definitions.permission import Permission
from definitions.process import Process
from definitions.quiet import QUIET
from definitions.request import Request
from definitions.retry import Retry
from definitions.tool import Tool
from definitions.turn_error import TurnError
from definitions.turn_limit import TurnLimit
from definitions.turn_tail import TurnTail

__all__ = ["MARKS", "TITLES", "catalog", "opening"]

_OPENING_CHARS = 80

MARKS = {
    "llm/retry": "retry",
    "llm/fallback": "retry",
    "permission/request": "permission",
}
"""The types of events that are marked on a timeline, and the word for each."""

TITLES = ("conversation/title",)
"""The types of events whose `title` is what a conversation is called."""


def opening(kind: str, data: Mapping[str, Any]) -> str | None:
    """What a conversation without a title is known by: what a person said first, on one line."""
    if kind != "user/message" or data.get("source"):
        return None
    content = data.get("content")
    blocks = content if isinstance(content, Sequence) and not isinstance(content, str) else ()
    texts = [text_of(block.get("text")) for block in blocks if isinstance(block, Mapping)]
    words = " ".join(" ".join(texts)[: 4 * _OPENING_CHARS].split())
    return words if len(words) <= _OPENING_CHARS else words[: _OPENING_CHARS - 1] + "…"


def catalog(*, quiet: Container[str] = QUIET) -> tuple[Definition | GroupDefinition, ...]:
    """Give all Definitions of a conversation.

    `quiet` are unknown event types that are kept and have no row.
    """
    return (
        Inbox(),
        Message(),
        Assistant(),
        Draft(),
        Tool(),
        Approval(),
        Permission(),
        Description(),
        Request(),
        Retry(),
        TurnError(),
        TurnLimit(),
        TurnTail(),
        Compaction(),
        Command(),
        Fallback(quiet=quiet),
        Process(),
    )
