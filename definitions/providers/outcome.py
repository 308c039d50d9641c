"""What an adapter gives: pieces while the answer is written, and the response when it is over.

Values alone. Not here: the envelope that makes a piece a Delta, nor which events follow from a
response (`definitions.answering`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from assembler.engine.values import Json, Object

__all__ = ["Call", "Hint", "Incident", "Piece", "Ran", "RanBy", "Response", "Why"]

RanBy = Literal["host", "provider"]

Why = Literal[
    "length",
    "content-filter",
    "stream-error",
    "no-terminal",
    "incomplete",
    "invalid-json",
    "no-name",
    "arguments-conflict",
]
"""Why a call is not ready: the first of these that holds. The first four speak of the response."""


class Piece(Struct, frozen=True):
    """A Delta without its envelope: attempt, ordinal, position and time are the driver's."""

    type: str
    data: Mapping[str, Any]


class Hint(Struct, frozen=True):
    """A call whose own arguments are complete, while its answer is still being written.

    It may be described. It may not run: the response can still fail.
    """

    call_id: str
    name: str
    arguments: dict[str, Any]


class Call(Struct, frozen=True):
    """A call of a response that is over, in the order of the message.

    `ready` speaks of arguments and response alone: only a ready call of the `host` is handed over.
    `arguments` is None when it is not ready, and then `why` says so. `arguments_text` is the JSON
    as it came.
    """

    call_id: str
    name: str | None
    ready: bool
    arguments: dict[str, Any] | None
    arguments_text: str
    why: Why | None = None
    ran_by: RanBy = "host"
    provider_call_id: str | None = None
    parent_call_id: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Give its form in recordings."""
        told = {"arguments": self.arguments} if self.ready else {"why": self.why}
        wire = {
            "call_id": self.call_id,
            "name": self.name,
            "ready": self.ready,
            **told,
            "arguments_text": self.arguments_text,
            "ran_by": self.ran_by,
        }
        for field in ("provider_call_id", "parent_call_id"):
            if getattr(self, field) is not None:
                wire[field] = getattr(self, field)
        return wire


class Ran(Struct, frozen=True):
    """What the provider did by itself: the type and the data of a durable event."""

    type: Literal["tool/call", "tool/result"]
    data: Mapping[str, Any]


class Incident(Struct, frozen=True):
    """What was odd and survivable about one call (`arguments-disagree`, `unparsed-arguments`)."""

    kind: str
    call_id: str


class Response(Struct, frozen=True):
    """How an answer ended.

    `why` is None when the response is `whole`. `content` are the blocks of the message; `said` are
    those that people have read, for an answer that is given up: text and reasoning, no calls.
    `source` is what the provider calls the response: its format's `name`, `message_id`, `model`.
    """

    why: Why | None
    message_id: str
    content: tuple[Object, ...] = ()
    said: tuple[Object, ...] = ()
    stop_reason: str | None = None
    stop_detail: str | None = None
    usage: Json = None
    source: Json = None
    calls: tuple[Call, ...] = ()
    ran: tuple[Ran, ...] = ()
    incidents: tuple[Incident, ...] = ()
    error: Json = None
    """What the provider said of its own fault."""

    @property
    def whole(self) -> bool:
        """Whether the provider itself said that the response ended well."""
        return self.why is None

    @property
    def cut(self) -> bool:
        """Whether it is an answer, and too short: its message stands, and nothing of it runs."""
        return self.why in ("length", "content-filter")
