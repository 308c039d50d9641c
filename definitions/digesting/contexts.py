"""A recorded tool loop, played: what we would send for each next answer, and what its client sent.

The lines of a loop become a conversation as the importer writes it; before each answer the model
context in that provider's format is held against the recorded request. Not here: how histories are
taken apart (`sent`), what two pieces say alike (`alike`), and how the answer itself is compared
(`exchanges`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import SequenceMatcher
from typing import Any

from msgspec import Struct

from assembler.engine.assembler import Assembler
from assembler.engine.events import as_event
from assembler.engine.values import same
from assembler.plugins import Odd
from definitions.catalog import catalog
from definitions.digesting.alike import Aliases, differences, id_of, is_nothing
from definitions.digesting.bodies import PROVIDERS, Body
from definitions.digesting.sent import FIELDS, Unit, call_of, history, parsed, squeezed, units
from definitions.importers.model_answers import Conversation, format_said
from definitions.importers.requests import unmarked
from definitions.model_context import model_context
from definitions.providers.reading import mapping, text

__all__ = ["Proof", "contexts"]

_APPROVAL = "mcp_approval_response"
_THOUGHT = "<think>"
_RESULT = "result"
_MODEL = frozenset({"assistant", "model"})


class Proof(Struct, frozen=True):
    """What came of a loop: how many requests and messages were compared, how many of those say the
    same, value by value, and what was odd."""

    counts: Mapping[str, int]
    odd: tuple[Odd, ...]


def contexts(lines: Body, sure: Collection[int]) -> Proof:
    """Play a loop and compare each request with what we would send in its place.

    `sure`: the numbers of lines whose answer two readings agree about, so that a client that says
    something else has changed it.
    A request that does not go on from the one before begins a conversation of its own. Lines in a
    format that no model context is spelled in are left out.
    """
    counts: Counter[str] = Counter(exchanges=0, messages=0, agree=0)
    odd: list[Odd] = []
    loop: _Loop | None = None
    for number, line in enumerate(lines.chunks, 1):
        name = format_said(line)
        spelled = PROVIDERS.get(name or "", "")
        if name is None or spelled not in FIELDS:
            loop = None
            continue
        request = mapping(line.get("request"))
        goes_on = loop is not None and loop.goes_on(request, spelled)
        if loop is None or not goes_on:
            loop = _Loop(spelled, request)
        loop.ask(request)
        if goes_on:
            odd += loop.compare(f"line {number}", counts)
        loop.answer(name, text(line.get("response")).encode(), is_sure=number in sure)
    return Proof(counts, tuple(odd))


class _Loop:
    """One conversation of a file, as far as it was played."""

    def __init__(self, format: str, first: Mapping[str, Any]) -> None:
        self._format = format
        self._conversation = Conversation()
        self._assembler = Assembler(catalog())
        self._assembler.load([])
        self._earlier = len(history(first, format))
        self._theirs: list[Any] = []
        self._compared = 0
        self._failed = False
        self._recorded: set[int] = set()
        """Which of their messages are of an answer that stands in a line."""
        self._calls_unrecorded = False
        self._settled: list[Any] = []
        self._told: set[tuple[int, str, str]] = set()
        self._ids = Aliases()

    def goes_on(self, request: Mapping[str, Any], format: str) -> bool:
        """Whether a request is the one before with more behind it."""
        theirs, before = history(request, format), self._theirs
        is_longer = format == self._format and len(theirs) > len(before) > 0
        return is_longer and bool(unmarked(theirs[: len(before)]) == unmarked(before))

    def ask(self, request: Mapping[str, Any]) -> None:
        """Take what a client said since the last answer."""
        at = len(self._theirs)
        self._theirs = history(request, self._format)
        while at < len(self._theirs) and self._is_of_model(at):
            self._recorded.add(at)
            at += 1
        self._append(self._conversation.say(request))

    def _is_of_model(self, at: int) -> bool:
        return all(unit.role in _MODEL for unit in units(self._theirs[at], self._format))

    def answer(self, name: str, response: bytes, *, is_sure: bool) -> None:
        """Take an answer in that format, as it was settled."""
        for operation in self._append(self._conversation.answer(name, response)):
            self._failed |= operation.get("outcome") == "failed"
            event = mapping(operation.get("event"))
            if is_sure and event.get("type") == "assistant/message":
                self._settled += [_said(block) for block in event["data"]["content"]]

    def _append(self, operations: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        found = list(operations)
        for operation in found:
            if operation.get("op") == "append":
                self._assembler.append(as_event({"time": 0, **operation["event"]}))
        return found

    def compare(self, where: str, counts: Counter[str]) -> Iterator[Odd]:
        """Hold the whole history against ours; what was told of an earlier request is not again."""
        sent = model_context(self._assembler, self._format)
        ours = [unit for message in sent for unit in units(message, self._format)]
        theirs = [
            (at, unit)
            for at, message in enumerate(self._theirs)
            for unit in units(message, self._format)
        ]
        differing: set[int] = set()
        for at, odd in self._differences(theirs, ours):
            differing.add(at)
            known = (at, odd.field, odd.kind)
            if known not in self._told:
                self._told.add(known)
                yield Odd(where, odd.field, odd.expected, odd.got, odd.kind)
        new = range(self._compared, len(self._theirs))
        self._compared = len(self._theirs)
        counts.update(exchanges=1, messages=len(new), agree=len({*new} - differing))

    def _differences(
        self, theirs: list[tuple[int, Unit]], ours: list[Unit]
    ) -> Iterator[tuple[int, Odd]]:
        """Give each difference, and in which of their messages, or before which."""
        matcher = SequenceMatcher(None, *_keys([unit for _, unit in theirs], ours), autojunk=False)
        for tag, begin, end, our_begin, our_end in matcher.get_opcodes():
            mine = ours[our_begin:our_end]
            if tag == "equal":
                for (at, unit), own in zip(theirs[begin:end], mine, strict=True):
                    for odd in differences(unit, own, self._ids):
                        kind = odd.kind or self._rewritten(own)
                        yield at, Odd("", odd.field, odd.expected, odd.got, kind)
                continue
            for at, unit in theirs[begin:end]:
                kind = self._theirs_alone(at, unit)
                kind = kind or (mine and self._rewritten(mine[0])) or ""
                yield at, Odd("", f"{unit.kind}, theirs", unit.body, None, kind)
            place = theirs[begin][0] if begin < len(theirs) else len(self._theirs) - 1
            kinds = {unit.kind for _, unit in theirs[begin:end]}
            for own in mine:
                kind = "" if own.kind == _RESULT and _RESULT in kinds else self._ours_alone(own)
                yield place, Odd("", f"{own.kind}, ours", None, own.body, kind)

    def _theirs_alone(self, at: int, unit: Unit) -> str:
        """Give the word for why we do not say what a client says."""
        if at < self._earlier:
            return "earlier"
        if is_nothing(unit.key or unit.body.get("text", "?")):
            return "says-nothing"
        if unit.key.startswith(_THOUGHT):
            return "thought-as-text"
        if unit.kind == _APPROVAL:
            return "no-event"
        if self._failed:
            return "failed-answer"
        return "unrecorded" if at not in self._recorded and self._is_between(unit) else ""

    def _is_between(self, unit: Unit) -> bool:
        """Whether it is of an answer that stands in no line, or the result of its call."""
        self._calls_unrecorded |= unit.role in _MODEL and unit.kind == "call"
        return unit.role in _MODEL or (unit.kind == _RESULT and self._calls_unrecorded)

    def _ours_alone(self, unit: Unit) -> str:
        """Give the word for why a client does not say what we say."""
        if unit.kind == "reasoning":
            return "no-reasoning"
        if unit.kind == _RESULT:
            return "no-result"
        return self._rewritten(unit, "not-sent-back")

    def _rewritten(self, ours: Unit, kind: str = "rewritten") -> str:
        """Give a word for what a client did: only when we send what was surely answered."""
        if self._failed:
            return "failed-answer"
        said = call_of(ours) if ours.kind == "call" else ours.key
        is_settled = any(same(said, each) for each in self._settled)
        return kind if is_settled and ours.kind in ("call", "text") else ""


_Keys = list[tuple[str, str, str]]


def _keys(theirs: list[Unit], ours: list[Unit]) -> tuple[_Keys, _Keys]:
    """Give what pieces are found again by: an id that both sides have, and their name or words."""
    ids = [{id_of(unit.body) for unit in side} for side in (theirs, ours)]
    both = ids[0] & ids[1]
    told, mine = (
        [(each.kind, each.key, own if (own := id_of(each.body)) in both else "") for each in side]
        for side in (theirs, ours)
    )
    return told, mine


def _said(block: Mapping[str, Any]) -> Any:
    """Give a block of an answer as its piece in a history would be found."""
    if block.get("type") == "tool-call":
        return [block.get("name"), parsed(block.get("arguments"))]
    return squeezed(text(block.get("text")))
