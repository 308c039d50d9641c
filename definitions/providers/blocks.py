"""The blocks of an answer while it is written: text, calls, and what is kept as it came.

Where a block stands and what is known of it; what it is in the message. Not here: what is told of
it, and when (`answer`), which calls are ready (`settling`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assembler.engine.values import Json, Object, freeze_object
from definitions.providers.outcome import RanBy
from definitions.providers.reading import Halves, array, is_object, plain, text
from definitions.providers.witnesses import Verdict, verdict_of

__all__ = ["Block", "CallBlock", "FileBlock", "RawBlock", "TextBlock", "blocks_of"]


class TextBlock:
    """Text or reasoning that grows. `extra` are more fields of the block (`signature`)."""

    __slots__ = ("closed", "extra", "fragments", "halves", "length", "number", "type")

    def __init__(self, number: int, type: str) -> None:
        self.number = number
        self.type = type
        self.fragments: list[str] = []
        self.length = 0
        self.halves = Halves()
        self.extra: dict[str, Any] = {}
        self.closed = False

    def value(self) -> Object:
        """Give the block as the message has it."""
        return freeze_object({"type": self.type, "text": "".join(self.fragments), **self.extra})


class RawBlock:
    """A block that we do not model: kept whole. With a `call` it is that call's result."""

    __slots__ = (
        "_grown",
        "call",
        "closed",
        "content",
        "deltas",
        "is_error",
        "number",
        "provider",
        "raw",
    )

    def __init__(self, number: int, provider: str, raw: Mapping[str, Any]) -> None:
        self.number = number
        self.provider = provider
        self.raw: dict[str, Json] = {text(name): plain(value) for name, value in raw.items()}
        self.call: str | None = None
        self.content: Json = ()
        self.is_error = False
        self.closed = False
        self.deltas: list[Json] = []
        self._grown: dict[str, list[str]] = {}

    def grow(self, field: str, fragment: str) -> None:
        """Add to a text of `raw` that comes in pieces."""
        if field not in self._grown:
            self._grown[field] = [text(self.raw.get(field))]
        self._grown[field].append(fragment)

    def value(self) -> Object:
        """Give the block as the message has it."""
        named = {} if self.call is None else {"call_id": self.call}
        raw = {**self.raw, **{name: "".join(parts) for name, parts in self._grown.items()}}
        if self.deltas:
            raw["deltas"] = self.deltas
        fields = {"type": "provider", "provider": self.provider, **named, "raw": plain(raw)}
        return freeze_object(fields)


class FileBlock(RawBlock):
    """A file that the answer holds: its fields are the block's own."""

    __slots__ = ()

    def value(self) -> Object:
        """Give the block as the message has it."""
        return freeze_object({"type": "file", **self.raw})


class CallBlock:
    """One call. The provider's `hint` is what it calls it; `id` is ours, None until it is known.

    `unsent` are arguments that wait for the announcement. `is_preview`: its pieces were shown, and
    say nothing of what its arguments are. `doubted`: a call of this answer had the
    hint before, and whether this is another one is known only at its end.
    """

    __slots__ = (
        "closed",
        "doubted",
        "extra",
        "halves",
        "hint",
        "id",
        "is_preview",
        "name",
        "number",
        "parent",
        "pieces",
        "place",
        "ran_by",
        "repeats",
        "snapshot_told",
        "snapshots",
        "told_name",
        "unsent",
        "verdict",
    )

    def __init__(self, number: int, place: int, ran_by: RanBy) -> None:
        self.number = number
        self.place = place
        self.ran_by = ran_by
        self.hint = ""
        self.name = ""
        self.told_name = ""
        self.id: str | None = None
        self.parent = ""
        self.doubted = False
        self.repeats = False
        self.halves = Halves()
        self.pieces: list[str] = []
        self.is_preview = False
        self.unsent: list[str] = []
        self.snapshots: list[str] = []
        self.snapshot_told = False
        self.extra: dict[str, Any] = {}
        self.verdict: Verdict | None = None
        self.closed = False

    def judge(self) -> Verdict:
        """Say what its arguments are, by what has been said so far."""
        if self.verdict is None:
            self.verdict = verdict_of([] if self.is_preview else self.pieces, self.snapshots)
        return self.verdict

    @property
    def has_arguments(self) -> bool:
        """Whether anything was said of its arguments."""
        return bool(self.pieces or self.snapshots)

    @property
    def is_nothing(self) -> bool:
        """Whether nobody said anything about it: no id, no name, no argument."""
        return not (self.hint or self.name or self.has_arguments)


Block = TextBlock | RawBlock | CallBlock


def blocks_of(content: object) -> Json:
    """Read what a provider gives as the content of a result: text, or blocks of its own."""
    if isinstance(content, str):
        return plain([{"type": "text", "text": content}])
    return plain([_result_block(block) for block in array(content)])


def _result_block(block: object) -> dict[str, Any]:
    if is_object(block) and block.get("type") == "text" and isinstance(block.get("text"), str):
        return {"type": "text", "text": block["text"]}
    return {"type": "json", "value": block}
