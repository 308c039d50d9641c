"""The one list of what a conversation is made of. Not here: any of its members."""

from __future__ import annotations

from collections.abc import Container

from assembler.engine.definition import Definition, GroupDefinition
from definitions.approval import Approval
from definitions.assistant import Assistant
from definitions.command import Command
from definitions.compaction import Compaction
from definitions.description import Description
from definitions.draft import Draft
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

__all__ = ["MARKS", "TITLES", "catalog"]

MARKS = {
    "llm/retry": "retry",
    "llm/fallback": "retry",
    "permission/request": "permission",
}
"""The types of events that are marked on a timeline, and the word for each."""

TITLES = ("conversation/title",)
"""The types of events whose `title` is what a conversation is called."""


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
