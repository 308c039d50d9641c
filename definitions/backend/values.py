"""What the facade says and is told: a lost attempt, an answer to a permission, blocks of content.

Values alone. Not here: when any of them comes about (`turns`, `attempts`, `dispatches`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from assembler.engine.errors import InputError
from assembler.engine.events import Event
from assembler.engine.values import Json, freeze, thaw
from definitions.providers import Response, Why

__all__ = [
    "Answer",
    "AttemptLost",
    "Content",
    "Decision",
    "Loss",
    "answer_of",
    "blocks_of",
    "error_of",
    "is_cancellation",
]

Decision = Literal["allow", "deny"]
Content = Any
"""A text, one block, a list of blocks, or any other JSON value (which becomes a `json` block)."""


class AttemptLost(Exception):  # noqa: N818 - it says what happened
    """A model call ended, and its response is not whole: nothing of it runs.

    `why` is the reason (`no-terminal`, `stream-error`, …), `error` what the provider said of its
    own fault, `response` all that came. Try again (`step.retry`, `step.fallback`), or let it go on
    and the turn ends with it.
    """

    def __init__(self, why: Why, response: Response) -> None:
        self.why: Why = why
        self.response = response
        said = self.error.get("message") if isinstance(self.error, dict) else None
        told = f": {said}" if isinstance(said, str) and said else ""
        super().__init__(f"the answer is not whole: {why}{told}")

    @property
    def error(self) -> Any:
        """What the provider said of its own fault, as plain JSON; None: nothing."""
        return thaw(self.response.error)

    @property
    def code(self) -> str:
        """The provider's name for its fault; without one, `why`."""
        said = self.error.get("type") if isinstance(self.error, dict) else None
        return said if isinstance(said, str) and said else self.why


class Loss(Struct, frozen=True):
    """An attempt that was lost: its name and number, its model, all that came, and whether it
    failed or somebody stopped it."""

    attempt: str
    number: int
    model: str | None
    response: Response
    reason: Literal["error", "cancel"]


class Answer(Struct, frozen=True):
    """What somebody decided about a call."""

    decision: str
    updated_input: Mapping[str, Any] | None = None
    remember: bool = False

    @property
    def allowed(self) -> bool:
        """Whether it may run. Only the word `allow` allows."""
        return self.decision == "allow"


def answer_of(event: Event) -> Answer:
    """Read a `permission/answer`."""
    data = thaw(event.data)
    updated, decision = data.get("updated_input"), data.get("decision")
    return Answer(
        decision if isinstance(decision, str) else "deny",
        updated if isinstance(updated, dict) else None,
        data.get("remember") is True,
    )


def blocks_of(content: Content) -> tuple[Json, ...]:
    """Give content as blocks. Raises `InputError` for what is no JSON."""
    if content is None:
        return ()
    if isinstance(content, str):
        return (freeze({"type": "text", "text": content}),)
    if isinstance(content, (bytes, bytearray)):
        msg = "content: expected text, blocks or another JSON value, got bytes"
        raise InputError(msg)
    if _is_block(content):
        return (freeze(content),)
    if isinstance(content, (list, tuple)) and all(_is_block(each) for each in content):
        return tuple(freeze(each) for each in content)
    return (freeze({"type": "json", "value": content}),)


def _is_block(value: object) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("type"), str)


def error_of(error: BaseException) -> dict[str, Any]:
    """Give an exception as events tell it: `{name, message, code?}`. A group of one is that one."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    told: dict[str, Any] = {"name": type(error).__name__, "message": _speakable(str(error))}
    code = getattr(error, "code", None)
    if code is None:
        code = getattr(error, "status_code", None)
    if isinstance(code, str):
        told["code"] = _speakable(code)
    elif type(code) is int:
        told["code"] = code
    return told


def _speakable(text: str) -> str:
    """Half characters, which an exception may hold, cannot be stored."""
    return text.encode("utf-8", "replace").decode("utf-8")


def is_cancellation(error: BaseException) -> bool:
    """Whether somebody stopped it and nothing failed: cancelled, Ctrl-C, a closed generator."""
    return not isinstance(error, Exception)
