"""The answer that a stream is telling: its pieces as deltas, and at its end the message and calls.

Here lives what streams of events for user interfaces have in common: parts that begin, grow and
end, several at a time; results that may come while other parts still grow. Not here: which event
begins or ends what (`ag_ui`, `ui_message_stream`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from attrs import Factory, define

from definitions.importers.reading import strict_json
from definitions.importers.transcript import Operation, Transcript
from definitions.providers.reading import Halves

__all__ = ["Streamed"]

Later = Callable[[], Iterator[Operation]]

_NAMED = ("call_id", "provider_call_id")
_CUT = frozenset({"length", "content_filter", "cancelled", "error"})


@define
class _Part:
    """A part of the answer, and what was told of it; `block` is what stands beside its text."""

    number: int
    kind: str
    block: dict[str, Any]
    texts: list[str] = Factory(list)
    halves: Halves = Factory(Halves)
    is_open: bool = True

    def value(self) -> dict[str, Any]:
        """The block that it is now."""
        said = "".join(self.texts)
        if self.kind == "tool-call":
            said = said if said.strip() or self.is_open else "{}"
            return {"type": self.kind, **self.block, "arguments": said}
        if self.kind in ("text", "reasoning"):
            return {"type": self.kind, "text": said, **self.block}
        return self.block

    def is_ready(self) -> bool:
        """Whether it is a call with all its arguments: it ended, or they are a whole object."""
        return self.kind == "tool-call" and (not self.is_open or _is_object("".join(self.texts)))


class Streamed:
    """The answers of one conversation, one after the other. Memory: the open answer.

    A part has a key, by which its events name it; the key of a call is its id as it was told.
    """

    def __init__(self, transcript: Transcript) -> None:
        self.message_ids: set[str] = set()
        """Ids under which events name the open answer."""
        self._transcript = transcript
        self._parts: list[_Part] = []
        self._by_key: dict[str, _Part] = {}
        self._later: list[tuple[str, Later]] = []
        self._told: list[str] = []
        """The ids of its calls, also of those that were withdrawn."""
        self._blocks = 0
        self._number = 1
        self._is_begun = False

    # -- what is known of it -----------------------------------------------------------------

    @property
    def is_begun(self) -> bool:
        """Whether an answer is open."""
        return self._is_begun

    @property
    def is_answered(self) -> bool:
        """Whether something came of one of its calls already."""
        return bool(self._later)

    def is_growing(self) -> bool:
        """Whether a part of it is open."""
        return any(part.is_open for part in self._parts)

    def has(self, key: str) -> bool:
        """Whether a part of that key is in the open answer."""
        return key in self._by_key

    def grows(self, key: str) -> bool:
        """Whether a part of that key is in the open answer, and is open."""
        return key in self._by_key and self._by_key[key].is_open

    def keys(self) -> tuple[str, ...]:
        """The keys of its parts that something may still be said of."""
        return tuple(self._by_key)

    def texts(self, kind: str) -> dict[str, str]:
        """What its parts of a kind say so far, by their keys."""
        parts = self._by_key.items()
        return {key: "".join(part.texts) for key, part in parts if part.kind == kind}

    def is_of_provider(self, key: str) -> bool:
        """Whether it has that call, and its provider runs it: the answer may go on behind it."""
        part = self._by_key.get(key)
        return part is not None and part.block.get("ran_by") == "provider"

    def says(self, *kinds: str) -> bool:
        """Whether it has a part of one of these kinds."""
        return any(part.kind in kinds for part in self._parts)

    # -- its parts ---------------------------------------------------------------------------

    def begin(
        self, key: str, kind: str, beside: Mapping[str, Any], **block: Any
    ) -> Iterator[Operation]:
        """Begin a part; `block`: what its block has beside the text, of a call the name."""
        yield from self._begun()
        if kind == "tool-call":
            block = {**self._transcript.new_call(key), **block}
        part = self._added(key, kind, block)
        told: dict[str, Any] = {"block": part.number}
        if kind == "tool-call":
            told |= {"call_id": block["call_id"], "name": block["name"], "arguments": ""}
        else:
            told["block_type"] = kind
        yield self._delta("tool-call" if kind == "tool-call" else "block-start", told, beside)

    def grow(self, key: str, fragment: str, beside: Mapping[str, Any]) -> Iterator[Operation]:
        """Add to a part that has begun."""
        part = self._by_key[key]
        said = part.halves.take(fragment)
        part.texts.append(said)
        told: dict[str, Any] = {"block": part.number, "text": said}
        if part.kind == "tool-call":
            told = {"block": part.number, "call_id": part.block["call_id"], "arguments": said}
        yield self._delta(part.kind, told, beside)

    def end_part(
        self, key: str, beside: Mapping[str, Any], *, whole: str | None = None, **block: Any
    ) -> Iterator[Operation]:
        """End a part that has begun; `whole` takes the place of the text so far."""
        part = self._by_key[key]
        part.texts.append(part.halves.rest())
        if whole is not None:
            part.texts = [whole]
        part.block |= block
        part.is_open = False
        told = {"block": part.number, "value": part.value()}
        yield self._delta("block-end", told, beside)

    def add(self, block: dict[str, Any], beside: Mapping[str, Any]) -> Iterator[Operation]:
        """Add a part that came whole: a file, or what we do not model."""
        yield from self._begun()
        part = self._added(f"whole:{self._blocks}", block["type"], block)
        part.is_open = False
        yield self._delta("block-end", {"block": part.number, "value": block}, beside)

    def mark(self, key: str, **block: Any) -> None:
        """Say more of a part, open or not: it is in the message."""
        self._by_key[key].block |= block

    def after(self, key: str, write: Later) -> None:
        """Write something of a call of the open answer as soon as that is over."""
        self._later.append((key, write))

    # -- its end -----------------------------------------------------------------------------

    def end(
        self, stop_reason: str | None = None, usage: Mapping[str, Any] | None = None
    ) -> Iterator[Operation]:
        """End the open answer, if one is. One that was cut hands over none of its calls, except
        those of which something came."""
        if not self._is_begun:
            return
        if not self._parts:  # withdrawn, and told by nobody again
            yield from self.drop()
            self._is_begun, self._number = False, 1
            return
        blocks = [part.value() for part in self._parts]
        blocks = [each for each in blocks if each.get("text") != ""]
        came = {self._by_key[key].block["call_id"] for key, _ in self._later}
        is_cut = stop_reason in _CUT
        ready = {part.block["call_id"] for part in self._parts if part.is_ready() and not is_cut}
        stop = stop_reason or ("tool_use" if self.says("tool-call") else "end_turn")
        message_id = min(self.message_ids, default=None)
        yield from self._transcript.streamed(
            self._number, blocks, ready | came, stop, message_id=message_id, usage=usage
        )
        later = self._later
        self._forget()
        self._is_begun, self._number = False, 1
        for _, write in later:
            yield from write()

    def drop(self) -> Iterator[Operation]:
        """Drop what the open answer said so far: it is told once more, in the same step."""
        if self._blocks:
            yield self._transcript.settle(self._number, "abandoned")
            for key in self._told:
                self._transcript.release(key)
            self._forget()
            self._number += 1

    def retell(self, said: Mapping[str, str]) -> Iterator[Operation]:
        """Say the open answer anew where it is another now: the texts of its parts by their keys.

        A part that is not in `said` is withdrawn. Nothing is written when it says that already.
        """
        if all(said.get(key) == "".join(part.texts) for key, part in self._by_key.items()):
            return
        parts = [(key, part) for key, part in self._by_key.items() if key in said]
        later = [(key, write) for key, write in self._later if key in said]
        ids = self.message_ids
        yield from self.drop()
        for key, part in parts:
            block = {name: each for name, each in part.block.items() if name not in _NAMED}
            yield from self.begin(key, part.kind, {}, **block)
            if said[key]:
                yield from self.grow(key, said[key], {})
            if not part.is_open:
                yield from self.end_part(key, {})
        self.message_ids, self._later = ids if parts else set(), later

    def withdraw(self, key: str) -> None:
        """Take a call out of the open answer; what it said stays where it was said."""
        self._parts.remove(self._by_key.pop(key))
        self._later = [(each, write) for each, write in self._later if each != key]

    def _forget(self) -> None:
        self._parts, self._by_key, self._later = [], {}, []
        self._told, self._blocks = [], 0
        self.message_ids = set()

    def _begun(self) -> Iterator[Operation]:
        if not self._is_begun:
            self._is_begun = True
            yield from self._transcript.begin_step()

    def _added(self, key: str, kind: str, block: dict[str, Any]) -> _Part:
        part = self._by_key[key] = _Part(self._blocks, kind, block)
        self._parts.append(part)
        self._blocks += 1
        if kind == "tool-call" and "call_id" in block:
            self._told.append(key)
        return part

    def _delta(self, kind: str, told: Mapping[str, Any], beside: Mapping[str, Any]) -> Operation:
        return self._transcript.delta(self._number, kind, {**beside, **told})


def _is_object(said: str) -> bool:
    try:
        return isinstance(strict_json(said), dict)
    except (ValueError, RecursionError):
        return False
