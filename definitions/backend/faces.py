"""What both faces of the facade say without waiting: reading, feeding, showing.

Not here: entering and leaving (`facade` with a loop, `plain` without), the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any

from assembler.engine.assembler import Assembler
from assembler.engine.definition import Definition, GroupDefinition, Node
from assembler.engine.views import View
from assembler.live import redacted
from definitions.backend.attempts import AttemptCore
from definitions.backend.desk import Desk
from definitions.backend.dispatches import DispatchCore
from definitions.backend.turns import StepCore, TurnCore
from definitions.backend.values import Content
from definitions.model_context import model_context
from definitions.providers import Call, Hint, Response, Why

__all__ = [
    "PAGE_EVENTS",
    "AttemptFace",
    "ConversationFace",
    "DispatchFace",
    "Hide",
    "Redact",
    "StepFace",
    "TurnFace",
    "assembling",
]

PAGE_EVENTS = 50
Redact = Callable[[Node], Node | None]
Hide = Container[str] | Callable[[str], bool]


def assembling(
    definitions: Iterable[Definition | GroupDefinition], redact: Redact | None, hidden: Hide
) -> Callable[[], Assembler]:
    """Give what makes Assemblers, which share the tables of these Definitions. The filter stands
    before `redact`."""
    hides = hidden if callable(hidden) else hidden.__contains__

    def shown(node: Node) -> Node | None:
        if node.kind == "tool" and hides(node.data["name"] or ""):
            return None
        if node.kind == "turn-tail":
            node = _without(node, hides)
        return node if redact is None else redact(node)

    plain = redact is None and hidden == ()
    kept = list(definitions) if plain else redacted(definitions, shown)
    return lambda: Assembler(kept)


def _without(tail: Node, hides: Callable[[str], bool]) -> Node:
    """Leave hidden tools out of what a turn counts by name."""
    calls = {name: number for name, number in tail.data["calls"].items() if not hides(name)}
    if len(calls) == len(tail.data["calls"]):
        return tail
    return Node(tail.kind, tail.id, {**tail.data, "calls": calls})


class AttemptFace:
    """Reading one model call, and feeding it."""

    def __init__(self, core: AttemptCore) -> None:
        self._core = core

    def feed(self, given: object) -> None:
        """Take bytes or text of the stream, cut anywhere, a decoded chunk, or an SDK's object.

        Rows appear and grow. Never raises for what a provider sends.
        """
        self._core.feed(given)

    def hints(self) -> list[Hint]:
        """Give the calls whose arguments have become complete since this was asked. They may be
        described; they may not run."""
        return self._core.hints()

    @property
    def name(self) -> str:
        return self._core.name

    @property
    def number(self) -> int:
        """Which try of its step it is."""
        return self._core.number

    @property
    def response(self) -> Response | None:
        """How the answer ended; None before the block is left."""
        return self._core.response

    @property
    def why(self) -> Why | None:
        """Why the response is not whole; None: it is, or goes on."""
        return self._core.why


class DispatchFace:
    """Reading one dispatched call, and telling its outcome."""

    def __init__(self, core: DispatchCore) -> None:
        self._core = core

    @property
    def call(self) -> Call:
        return self._core.call

    @property
    def arguments(self) -> dict[str, Any]:
        """What runs: the call's arguments, or what an answer put in their place."""
        return self._core.arguments

    def result(self, content: Content, *, is_error: bool = False) -> None:
        """Tell the outcome: text, blocks, or any JSON value. Stored when the block is left.

        Raises `InputError` for what is no JSON, `ConflictError` the second time.
        """
        self._core.result(content, is_error=is_error)

    def output(self, text: str) -> None:
        """Show what the tool has printed since. Live alone: it is never stored."""
        self._core.output(text)


class StepFace:
    """Reading one step."""

    def __init__(self, core: StepCore) -> None:
        self._core = core

    @property
    def number(self) -> int:
        return self._core.number

    @property
    def answered(self) -> bool:
        """Whether an attempt held: its message is stored."""
        return self._core.answered

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls to dispatch: complete, parsed, of the attempt that held, in its order."""
        return self._core.calls


class TurnFace:
    """Reading one turn."""

    def __init__(self, core: TurnCore) -> None:
        self._core = core

    @property
    def number(self) -> int:
        return self._core.number

    @property
    def done(self) -> bool:
        """Whether nothing is left to ask the model: its last step called nothing and nobody has
        said anything since, or the limit is reached."""
        return self._core.done

    @property
    def reason(self) -> str | None:
        """How it ended; None: it goes on."""
        return self._core.reason


class ConversationFace:
    """Reading one conversation."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    @property
    def name(self) -> str:
        return self._desk.name

    def view(self, name: str = "chat") -> View:
        """A view, as of now. O(what changed)."""
        return self._desk.session.view(name)

    def messages(self, format: str) -> list[dict[str, Any]]:
        """The history to send back to the model, in a `format` of `definitions.model_context`.

        A turn has loaded what it needs; outside of one it may raise `IncompleteHistoryError`.
        O(what is loaded).
        """
        return model_context(self._desk.session.assembler, format)

    def statistics(self) -> dict[str, Any]:
        """Counts for an operator, as plain JSON values."""
        return self._desk.statistics()

    def _turn(
        self,
        content: Content,
        message_id: str | None,
        source: Mapping[str, Any] | None,
        limit: int | None,
    ) -> TurnCore:
        message = None
        if content is not None:
            message = self._desk.message(content, message_id, source)
        return TurnCore(self._desk, message, limit)
