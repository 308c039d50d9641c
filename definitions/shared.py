"""State classes that more than one Definition reads.

All are frozen and hold frozen values alone. Not here: how they are folded (the file of their
Definition), what is made of them.
"""

from __future__ import annotations

from msgspec import Struct

from assembler.engine.events import Position
from assembler.engine.values import Json, Object, Text
from definitions.nodes import PartialReader
from definitions.rows import RowReader

__all__ = [
    "ApprovalState",
    "CallSummary",
    "DescriptionState",
    "DraftBlock",
    "DraftState",
    "GivenUp",
    "InboxState",
    "Preview",
    "Question",
    "RequestState",
    "StepMark",
    "StepUsage",
    "ToolState",
    "TurnState",
    "shown_input",
]


class Preview(Struct, frozen=True, gc=False):
    """What one attempt has said of a call so far."""

    attempt: str
    reader: PartialReader
    row: RowReader
    text: Text
    name: str | None = None
    parent: str | None = None


class ToolState(Struct, frozen=True, gc=False):
    """One call: what is being written of it, its dispatch, its outcome.

    `call` and `result` are the payloads that count, `arguments` the parsed ones of `call` (None:
    no object). With a `call` there are no `previews`: it replaces them. `odd` are findings.
    """

    call: Object | None = None
    arguments: Object | None = None
    result: Object | None = None
    call_at: Position = Position(0)
    result_at: Position = Position(0)
    prepared: int | None = None
    started: int | None = None
    finished: int | None = None
    output: Text | None = None
    previews: tuple[Preview, ...] = ()
    odd: tuple[tuple[str, Position], ...] = ()


class CallSummary(Struct, frozen=True, gc=False):
    """What a dispatched call publishes on its step: its name, whether it failed, the files that it
    wrote or changed, and where its `tool/call` and its result stand (0: no result)."""

    name: str | None
    failed: bool = False
    files: tuple[str, ...] = ()
    at: Position = Position(0)
    result_at: Position = Position(0)


class ApprovalState(Struct, frozen=True, gc=False):
    """What was asked and answered about one call: request ids in order, and what shall run."""

    asked: tuple[str, ...] = ()
    answered: tuple[str, ...] = ()
    updated_input: Object | None = None

    @property
    def unanswered(self) -> tuple[str, ...]:
        """The requests without an answer, in order."""
        return tuple([request for request in self.asked if request not in self.answered])


class Question(Struct, frozen=True, gc=False):
    """What was asked while a call was described or ran. `status`: open, answered, withdrawn."""

    inquiry_id: str
    question: Json = None
    status: str = "open"
    answer: Json = None


class DescriptionState(Struct, frozen=True, gc=False):
    """The newest description of one call, and what the newest permission asks about.

    `status` is None (nobody described it), `describing`, `ready` or `withdrawn`; `input` is what
    it was made from, `requested` what was asked (empty: the call's arguments).
    """

    status: str | None = None
    input: Json = None
    text: str | None = None
    questions: tuple[Question, ...] = ()
    is_requested: bool = False
    requested: Json = None


def shown_input(asked: Json, tool: ToolState | None) -> Json:
    """Give what an approval shows: the input that was asked about; where that is empty the
    arguments of the call, so that nobody is asked to sign a blank page."""
    return asked or ({} if tool is None or tool.arguments is None else tool.arguments)


class DraftBlock(Struct, frozen=True, gc=False):
    """A block of a running answer: where it began, and what it is as a whole, once it ended."""

    attempt: str
    block: Json
    at: Position
    ended: Position = Position(0)
    value: Object | None = None


class DraftState(Struct, frozen=True, gc=False):
    """What the stream of one step says beside its text: bounds of blocks, usage so far."""

    blocks: tuple[DraftBlock, ...] = ()
    usage: Object | None = None
    told: int = 0
    """How often usage was told."""
    shown: Object | None = None
    """The usage to show while the answer runs: that of the 1st, 2nd, 4th, 8th, … time. A server
    that tells it with every chunk would have the whole answer sent again with every chunk."""


class InboxState(Struct, frozen=True, gc=False):
    """The newest claims up to one splice: message id and the queue it was taken from."""

    claims: tuple[tuple[str, str], ...] = ()

    def queue_of(self, message_id: str) -> str | None:
        """The queue that the last claim of a message names; None: no claim of it is known."""
        return next((queue for name, queue in reversed(self.claims) if name == message_id), None)


class GivenUp(Struct, frozen=True, gc=False):
    """An attempt that is given up: since when, what it had used, and what the event says of it.

    `by` is `retry` or `fallback`, `model` and `next_model` are what a fallback names.
    """

    attempt: str | None
    at: Position
    usage: Object | None = None
    by: str = "retry"
    number: int | None = None
    reason: Json = None
    model: str | None = None
    next_model: str | None = None


class RequestState(Struct, frozen=True, gc=False):
    """The model call of one step.

    `spoke` is the highest number of an attempt that is held, `given_up` are those that a retry or a
    fallback names, each once, and `message` is the payload that counts. `first` is where the first
    event of the step stands (0: none is loaded), `started` and `ended` are the times of its
    boundaries.
    """

    spoke: int = 0
    given_up: tuple[GivenUp, ...] = ()
    message: Object | None = None
    message_at: Position = Position(0)
    first: Position = Position(0)
    started: int | None = None
    ended: int | None = None
    ended_at: Position = Position(0)


class StepUsage(Struct, frozen=True, gc=False):
    """What a step publishes: the usage of its message, and of each attempt that was given up."""

    usage: Object | None = None
    lost: tuple[Object, ...] = ()


class StepMark(Struct, frozen=True, gc=False):
    """What a step publishes on its turn, so that others find the next one: numbers may skip."""

    step: int
    started: int | None = None


class TurnState(Struct, frozen=True, gc=False):
    """When a turn began and ended, and the payload of its end."""

    started: int | None = None
    ended: int | None = None
    end: Object | None = None
