"""A recorded tool loop: each line an answer, and in the next line's request what became of it.

A client keeps an answer and sends it back as history, so the next request tells what another
program has read out of the same bytes. Not here: how histories are spelled (`histories`), and what
we would send in the place of that request (`contexts`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from assembler.engine.values import same
from assembler.plugins import Odd
from definitions.digesting.answers import Answer, read_answer, text_of
from definitions.digesting.bodies import PROVIDERS, Body, body, format_of
from definitions.digesting.contexts import contexts
from definitions.digesting.histories import UNKNOWN, History, Sent, history_of
from definitions.digesting.sent import squeezed
from definitions.providers import Call
from definitions.providers.reading import text

__all__ = ["Exchange", "exchange"]

_WHOLE = "-full"
"""Ends the name of a format when the answer was not streamed."""


class Exchange(Struct, frozen=True):
    """The answers of a tool loop. `unread`: the lines whose format nobody reads, by their name.
    `counts`: what was compared with what we would send."""

    answers: tuple[Answer, ...]
    odd: tuple[Odd, ...]
    unread: tuple[str, ...]
    counts: Mapping[str, int]


def exchange(lines: Body) -> Exchange:
    """Read all answers of a loop and compare each with the request behind it."""
    answers: list[Answer | None] = []
    unread: list[str] = []
    odd: list[Odd] = []
    if lines.lost:
        odd.append(Odd("", "lines", "JSON", f"{lines.lost} that cannot be read"))
    for number, line in enumerate(lines.chunks, 1):
        data = text(line.get("response")).encode()
        found = body(data)
        said = text(line.get("format")).removesuffix(_WHOLE)
        name = format_of(found.chunks)
        if name is None and said in PROVIDERS:
            name = said
            odd.append(Odd(f"line {number}", "format", said, None, "unrecognised"))
        if name is None or name not in PROVIDERS:
            answers.append(None)
            unread.append(said)
            continue
        if said and said != name:
            odd.append(Odd(f"line {number}", "format", said, name))
        answers.append(read_answer(name, data, found, f"line {number}"))
    known = tuple(each for each in answers if each)
    histories = [history_of(line.get("request")) for line in lines.chunks]
    for at, answer in enumerate(answers):
        if answer is not None:
            odd += [*answer.odd, *_sent_back(answer, known, histories[at], histories[at + 1 :])]
    sure = {at for at, answer in enumerate(answers, 1) if answer and answer.is_confirmed}
    proof = contexts(lines, sure)
    return Exchange(known, (*odd, *proof.odd), tuple(unread), proof.counts)


def _sent_back(
    answer: Answer, answers: Sequence[Answer], before: History, later: Sequence[History]
) -> Iterator[Odd]:
    """Compare an answer with the history in the first request behind it that holds it."""
    if not later or not (answer.response.calls or text_of(answer.response)):
        return
    history = later[0] if _alike(later[0], answer) else None
    history = history or next((each for each in later if _holds(each, answer)), None)
    if history is not None:
        yield from _compare(answer, history)
        return
    kind = _clients(answer, "not-sent-back") if _goes_on(before, later[0]) else "other-loop"
    if any(_holds(later[0], other) for other in answers if not _holds(before, other)):
        kind = "other-loop"
    if answer.response.why == "stream-error":
        kind = "not-sent-back"
    yield Odd(answer.where, "history", [call.call_id for call in answer.response.calls], None, kind)


def _goes_on(before: History, after: History) -> bool:
    """Whether a history has grown from another one."""
    grown = len(after.calls) > len(before.calls) or len(after.texts) > len(before.texts)
    return grown and after.calls[: len(before.calls)] == before.calls


def _holds(history: History, answer: Answer) -> bool:
    """Whether an answer is in a history, by an id or by its text."""
    ids = set().union(*map(_ids, answer.response.calls))
    said = squeezed(text_of(answer.response))
    return any(each.id in ids for each in history.calls) or (
        said != "" and said in map(squeezed, history.texts)
    )


def _alike(history: History, answer: Answer) -> bool:
    """Whether it is there at all, under whatever id."""
    return _holds(history, answer) or any(_find(call, history) for call in answer.response.calls)


def _compare(answer: Answer, history: History) -> Iterator[Odd]:
    where = answer.where
    for call in answer.response.calls:
        sent = _find(call, history)
        if sent is None:
            by_provider = call.ran_by == "provider"
            kind = "provider-call" if by_provider else _clients(answer, "not-sent-back")
            yield Odd(where, "call in the history", call.call_id, None, kind)
        else:
            yield from _compare_call(answer, call, sent)
    said = text_of(answer.response)
    if said and said not in history.texts:
        alike = squeezed(said) in map(squeezed, ("", *history.texts))
        kind = "spelling" if alike else _clients(answer, "rewritten")
        yield Odd(where, "text in the history", list(history.texts), said, kind)


def _clients(answer: Answer, kind: str) -> str:
    """Give a word for what a client did: only when it is sure what the answer was."""
    return kind if answer.is_confirmed else ""


def _ids(call: Call) -> set[str]:
    return {call.call_id, call.provider_call_id or call.call_id}


def _find(call: Call, history: History) -> Sent | None:
    """Find a call by an id that it has or had, else by name and arguments."""
    found = [
        each
        for each in history.calls
        if each.id in _ids(call) or each.id.rpartition(":")[2] in _ids(call)
    ] or [
        each
        for each in history.calls
        if each.name == call.name and same(each.arguments, call.arguments)
    ]
    return found[-1] if found else None


def _compare_call(answer: Answer, call: Call, sent: Sent) -> Iterator[Odd]:
    where = answer.where
    if sent.id not in _ids(call):
        yield Odd(where, f"id of {call.call_id}", sent.id or None, call.call_id, "other-id")
    if sent.name != call.name:
        kind = _clients(answer, "rewritten")
        yield Odd(where, f"name of {call.call_id}", sent.name, call.name, kind)
    known = sent.arguments != UNKNOWN
    if known and call.ready and not same(sent.arguments, call.arguments):
        kind = _clients(answer, "rewritten")
        yield Odd(where, f"arguments of {call.call_id}", sent.arguments, call.arguments, kind)
