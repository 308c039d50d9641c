"""Recorded streams of others: read, compared with themselves and with what is said of them.

`digest` takes one file. What it is, its content says (`bodies`). An answer is read in every way in
which a network may cut it, and once more plainly (`answers`, `plainly`); a tool loop is compared
with what its client sent back (`exchanges`) and with what we would have sent (`contexts`), a log's
live half with its stored one (`logs`); each answer that a client recorded is read on its own
(`recorded`); the transcript of an agent is imported (`transcripts`); and all of them are compared
with a listing that lies beside them (`listing`). The command line finds this by entry point. Not
here: reading files, adapters, importers, and the table that people see.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from assembler.plugins import Digest, Odd
from definitions.digesting.answers import Answer, read_answer
from definitions.digesting.bodies import EXCHANGE, LOG, PROVIDERS, RECORDED, Body, body, format_of
from definitions.digesting.exchanges import Exchange, exchange
from definitions.digesting.listing import Row, compare, compare_together, row_of
from definitions.digesting.logs import log
from definitions.digesting.reasons import REASONS
from definitions.digesting.recorded import recorded
from definitions.digesting.transcripts import importer_of, transcript
from definitions.providers.reading import plain

__all__ = ["REASONS", "digest"]

NO_STREAM = "no stream"
"""What a file is called in which there is no JSON at all."""
_KNOWN = frozenset({*PROVIDERS, EXCHANGE, LOG, RECORDED})


def digest(path: str, data: bytes, row: Mapping[str, str] | None = None) -> Digest:
    """Give what stands in one recorded file, and all that is odd about it. Never raises.

    `row` is what a listing says of the file, column by column. A file that is none of the formats
    that are read here is called by the name of its folder. Linear in the file, a few times over.
    """
    found = _digest(path, data, None if row is None else row_of(row))
    odd = [
        Odd(each.where, each.field, plain(each.expected), plain(each.got), each.kind)
        for each in found.odd
    ]
    return Digest(found.format, found.is_read, found.counts, tuple(odd))


def _digest(path: str, data: bytes, listed: Row | None) -> Digest:
    found = body(data)
    importer = importer_of(found.chunks)
    if importer is not None:
        return transcript(importer, path, data, listed)
    name = format_of(found.chunks)
    if name == LOG:
        return _log(path, data, listed)
    if name == EXCHANGE:
        return _exchange(exchange(found), listed)
    if name == RECORDED:
        return _recorded(found, listed)
    if name is not None:
        return _answer(name, data, found, listed)
    expected = listed.format if listed and listed.format else _folder(path)
    if expected in PROVIDERS and found.chunks:
        odd = Odd("", "format", expected, None, "unrecognised")
        read = _answer(expected, data, found, listed)
        return Digest(read.format, counts=read.counts, odd=(odd, *read.odd))
    if expected in _KNOWN:
        return Digest(expected, odd=(Odd("", "format", expected, "none that is known"),))
    is_known = expected and (listed or found.chunks)
    return Digest(expected if is_known else NO_STREAM, is_read=False)


def _folder(path: str) -> str:
    return path.split("/")[-2] if "/" in path else ""


def _answer(name: str, data: bytes, found: Body, listed: Row | None) -> Digest:
    answer = read_answer(name, data, found)
    odd = [*answer.odd, *(compare(listed, [answer]) if listed else ()), *_format(name, listed)]
    return Digest(name, counts=_counts([answer]), odd=tuple(odd))


def _log(path: str, data: bytes, listed: Row | None) -> Digest:
    found = log(path, data)
    odd = [*found.differences(), *(found.compare(listed) if listed else ())]
    calls = len({*found.stored, *(call_id for _, call_id in found.streamed)})
    counts = {"answers": found.answers, "calls": calls}
    return Digest(LOG, counts=counts, odd=(*odd, *_format(LOG, listed)))


def _exchange(found: Exchange, listed: Row | None) -> Digest:
    if not found.answers:
        formats = " and ".join(sorted(set(filter(None, found.unread)))) or "what nobody knows"
        return Digest(f"{EXCHANGE} of {formats}", is_read=False)
    odd = [*found.odd, *_format(EXCHANGE, listed)]
    if found.unread:
        odd.append(Odd("", "answers", list(found.unread), None, "unread-line"))
    elif listed:
        odd += compare(listed, found.answers)
    counts = {**_counts(found.answers), **found.counts}
    return Digest(EXCHANGE, counts=counts, odd=tuple(odd))


def _recorded(found: Body, listed: Row | None) -> Digest:
    answers = recorded(found)
    odd = [odd for answer in answers for odd in answer.odd]
    if found.lost:
        odd.append(Odd("", "lines", "JSON", f"{found.lost} that cannot be read"))
    if listed:
        odd += compare_together(listed, answers)
    return Digest(RECORDED, counts=_counts(answers), odd=(*odd, *_format(RECORDED, listed)))


def _format(name: str, listed: Row | None) -> tuple[Odd, ...]:
    if listed is None or listed.format in ("", name):
        return ()
    return (Odd("", "format", listed.format, name),)


def _counts(answers: Sequence[Answer]) -> dict[str, int]:
    calls = sum(len(answer.response.calls) for answer in answers)
    return {"answers": len(answers), "calls": calls}
