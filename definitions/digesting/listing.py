"""What a listing beside the files says of one of them, and whether it was read so.

A listing is a table of tab-separated values; the columns that are looked at: `calls`, `call id=name
(first 6)`, `args parse as JSON`, `finish`, `event types`, and `provider / format`. Where its author
counted otherwise than we do there is a word for it (`reasons`), found by what stands in the row and
in the file, never by the file's name. Not here: reading the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from assembler.plugins import Odd
from definitions.digesting.answers import Answer
from definitions.digesting.bodies import Chunk
from definitions.providers import Call
from definitions.providers.reading import array, mapping, text

__all__ = ["Counting", "Row", "compare", "compare_calls", "compare_together", "row_of"]

Calls = Sequence[Call]

_CALLS_MAX = 6
"""So many calls of a file are named, the others counted."""
_NO_ID = "None"
_APPROVAL = "mcpr_"
"""Begins the id of an item that asks whether a call may run; the call has another id."""
_WHOLE = "full"
"""The finish of an answer that was not streamed; the listing does not look into it."""
_NOT_READ = re.compile(r"\?:\d+")
"""The event types of a format that the listing counts and does not read."""
_INSIDE = re.compile(r"(^|,)message:\d+")
"""The type of a message, where the listing has those of frames."""


class Row(Struct, frozen=True):
    """What the listing says of a file."""

    format: str
    count: int | None
    named: tuple[tuple[str, str], ...]
    parsed: Mapping[str, int]
    finish: tuple[str, ...]
    is_read: bool
    takes_insides: bool = False
    """Whether its author took the messages inside of frames for the frames."""


class Counting(Struct, frozen=True):
    """A way to count the calls of a file, and the word for it. `count`: where it is another one."""

    kind: str
    calls: Calls
    count: int | None = None
    broken: bool = False
    """Whether an answer among them was not whole, so that its calls are not ready."""

    @property
    def total(self) -> int:
        """How many calls it gives."""
        return len(self.calls) if self.count is None else self.count


def row_of(columns: Mapping[str, str]) -> Row:
    """Read the columns of a row; what is not there says nothing."""
    named = columns.get("call id=name (first 6)", "")
    entries = [entry for entry in named.split("; ") if "=" in entry]
    pairs = [entry.rpartition("=") for entry in entries]
    parsed = [word.partition(":") for word in columns.get("args parse as JSON", "").split(",")]
    count = columns.get("calls", "")
    return Row(
        columns.get("provider / format", "").rpartition("/")[2].strip(),
        int(count) if count.isdecimal() else None,
        tuple((call_id, name) for call_id, _, name in pairs),
        {word: int(many) for word, _, many in parsed if many.isdecimal()},
        tuple(columns.get("finish", "").split("|")),
        not _NOT_READ.fullmatch(columns.get("event types", "")),
        bool(_INSIDE.search(columns.get("event types", ""))),
    )


def compare(row: Row, answers: Sequence[Answer]) -> Iterator[Odd]:
    """Compare a row with all answers of its file, in order."""
    calls = [call for answer in answers for call in answer.response.calls]
    listed = [
        call
        for at, answer in enumerate(answers)
        for call in answer.response.calls
        if row.finish[at : at + 1] != (_WHOLE,)
    ]
    if len(listed) != len(calls):
        yield Odd("", "calls", row.count, len(calls), "whole-answer")
    if not row.is_read:
        yield Odd("", "calls", row.count, len(calls), "unread-listing")
        return
    yield from compare_calls(row, _countings(listed, answers))
    yield from _finish(row, answers)


def compare_together(row: Row, answers: Sequence[Answer]) -> Iterator[Odd]:
    """Compare a row that has the finish of several answers once, whichever of them it was."""
    calls = [call for answer in answers for call in answer.response.calls]
    yield from compare_calls(row, _countings(calls, answers))
    ours = {answer.response.stop_detail for answer in answers if answer.response.stop_detail}
    theirs = set(filter(None, row.finish))
    if ours != theirs:
        has_failed = any(answer.response.why == "stream-error" for answer in answers)
        kind = "failed" if has_failed and ours < theirs else ""
        yield Odd("", "finish", sorted(theirs), sorted(ours), kind)


def _countings(calls: Calls, answers: Sequence[Answer]) -> list[Counting]:
    """Give the ways in which the calls of a file may have been counted, the plainest first."""
    chunks = [chunk for answer in answers for chunk in answer.body.chunks]
    countings = [
        Counting("", calls),
        Counting("ran-by-provider", [call for call in calls if call.ran_by == "host"]),
    ]
    if pieces := sum("functionCall" in part for chunk in chunks for part in _parts(chunk)):
        countings.append(Counting("pieces", calls, pieces))
    begun = {text(chunk["response"].get("id")) for chunk in chunks if _begins(chunk)}
    if len(answers) == 1 and len(begun) > 1:
        countings += [Counting("first-answer", calls[:count]) for count in range(len(calls))]
    if any(answer.response.why for answer in answers):
        countings = [Counting(each.kind, each.calls, each.count, True) for each in countings]
    return countings


def _begins(chunk: Chunk) -> bool:
    return chunk.get("type") == "response.created" and isinstance(chunk.get("response"), dict)


def _parts(chunk: Chunk) -> Iterator[Mapping[str, Any]]:
    for candidate in array(chunk.get("candidates")):
        yield from map(mapping, array(mapping(candidate, "content").get("parts")))


def compare_calls(row: Row, countings: Sequence[Counting]) -> Iterator[Odd]:
    """Compare how many calls there are, their ids, names, and whether their arguments are JSON.

    The first counting has all of the calls; the next ones explain another number.
    """
    asked = [call_id for call_id, _ in row.named if call_id.startswith(_APPROVAL)]
    if asked:
        yield Odd("", "calls", asked, None, "approval")
    named = [pair for pair in row.named if pair[0] not in asked]
    known = [pair for pair in named if pair != (_NO_ID, _NO_ID)]
    count = None if row.count is None else row.count - len(asked)
    counting = next((each for each in countings if count in (None, each.total)), None)
    if counting is None or (len(known) < len(named) and counting.kind != "pieces"):
        yield Odd("", "calls", row.count, len(countings[0].calls))
        return
    if counting.kind:
        yield Odd("", "calls", row.count, len(countings[0].calls), counting.kind)
    is_first = counting.kind == "pieces" or len(row.named) >= _CALLS_MAX
    yield from _named(known, counting.calls[: len(known)] if is_first else counting.calls)
    if counting.kind != "pieces" and not asked:
        yield from _arguments(row, counting)


def _named(named: list[tuple[str, str]], calls: Calls) -> Iterator[Odd]:
    found = [(call.provider_call_id or call.call_id, call.name or _NO_ID) for call in calls]
    if found != named and sorted(found) == sorted(named):
        yield Odd("", "order of calls", named, found, "order")
        return
    if len(found) != len(named):
        yield Odd("", "calls", named, found)
        return
    for call, ours, theirs in zip(calls, found, named, strict=True):
        if theirs[0] == _NO_ID and call.provider_call_id is None:
            yield Odd("", "id of a call", None, call.call_id, "minted")
        elif ours[0] != theirs[0]:
            yield Odd("", "id of a call", theirs[0], ours[0])
        if ours[1] != theirs[1]:
            kind = "item-type" if theirs[1] == f"{ours[1]}_call" else ""
            yield Odd("", f"name of {ours[0]}", theirs[1], ours[1], kind)


def _arguments(row: Row, counting: Counting) -> Iterator[Odd]:
    """Compare how many calls have arguments that are JSON."""
    listed, broken = (row.parsed.get(word, 0) for word in ("True", "False"))
    ready = sum(call.ready for call in counting.calls)
    empty = sum(call.ready and not call.arguments for call in counting.calls)
    # It does not know of all of them.
    if listed <= ready and broken in (0, len(counting.calls) - ready):
        return
    kind = "not-whole" if counting.broken else ""
    if broken and broken <= empty and listed + broken <= ready:
        kind = "empty-arguments"
    yield Odd("", "calls with arguments", dict(row.parsed), ready, kind)


def _finish(row: Row, answers: Sequence[Answer]) -> Iterator[Odd]:
    if len(row.finish) != len(answers):
        yield Odd("", "answers", row.finish, len(answers))
        return
    for answer, theirs in zip(answers, row.finish, strict=True):
        ours = answer.response.stop_detail or ""
        if theirs not in (ours, _WHOLE):
            kind = "failed" if answer.response.why == "stream-error" else ""
            yield Odd(answer.where, "finish", theirs, ours, kind)
