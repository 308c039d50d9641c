"""What goes in and out of the coordinator, as values. Not here: what follows from it (`core`)."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from assembler.engine.events import Draft
from assembler.engine.values import Json

__all__ = ["Action", "Counts", "Shown", "Start", "Stop", "Verdict", "Write"]

Verdict = Literal["reuse", "wait", "again", "none"]
"""What a request finds: a finished description of the same input; one that is still being made;
nothing it may use, so that the call is described from what was asked; or nothing is to be
described (the tool does not allow it, or a refusal is remembered)."""


class Start(Struct, frozen=True):
    """Begin to describe `input`. `job` names this description, and no other one."""

    job: int
    call_id: str
    tool: str | None
    input: Json


class Stop(Struct, frozen=True):
    """Let go of a description that was begun: nothing it says counts any more."""

    job: int


class Write(Struct, frozen=True):
    """Append this to the conversation."""

    draft: Draft


class Shown(Struct, frozen=True):
    """What a request comes to: at once, and again where it had to wait (`after`: what it was told
    before). With `is_last` no more comes.

    `text` is what the approval of `request_id` may show beside `input`; None: nothing (yet). `none`
    where it had to wait: nobody asks any more, or something else.
    """

    call_id: str
    request_id: str
    verdict: Verdict
    input: Json
    text: str | None = None
    after: Verdict | None = None
    is_last: bool = False


Action = Start | Stop | Write | Shown


class Counts(Struct):
    """What became of the descriptions that were begun. Each ends in one of three ways."""

    started: int = 0
    reused: int = 0
    """Shown by an approval."""
    discarded: int = 0
    """Failed, or made from another input than what was asked."""
    withdrawn: int = 0
    """Of calls that nobody will ask about any more."""
    failed: int = 0
    """Those of the discarded that failed."""
    wasted: int = 0
    """Those begun from a hint that no approval showed."""
    opened: int = 0
    """Questions."""
    answered: int = 0
    questions_withdrawn: int = 0
