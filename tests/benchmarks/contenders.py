"""What is measured: the floor, a minimal Definition, and one thing done by an Assembler each.

Every function here gives a `Prepare`: it makes a fresh Assembler, and gives what is to be timed.
Not here: sizes, goals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from assembler.codec import decode_delta, decode_event, decode_events
from assembler.engine.assembler import Assembler
from assembler.engine.definition import (
    FRAME,
    START,
    Cadence,
    Context,
    Definition,
    Match,
    Node,
    Reader,
    Role,
    Scope,
)
from assembler.engine.events import Delta
from assembler.engine.values import Text
from definitions.catalog import catalog
from tests.benchmarks.measure import Prepare, Run

__all__ = [
    "CATALOG",
    "MINIMAL",
    "Growing",
    "assembler_of",
    "floor",
    "folded",
    "live_calls",
    "paged",
    "read_each",
    "read_partial",
]

Line = bytes


class GrowingState(Struct, frozen=True):
    text: Text


class Growing(Definition):
    """The least that a stream needs: one Text by attempt, from one field of the data."""

    kind = "growing"
    target = "chat"
    takes = frozenset({"text", "tool-call"})

    def match(self, item: Delta) -> tuple[str, Role] | None:
        return item.attempt, START

    def start(self, match: Match, reader: Reader) -> GrowingState:
        return self.extend(GrowingState(Text()), (match,))

    def update(self, state: GrowingState, match: Match) -> GrowingState:
        return self.extend(state, (match,))

    def extend(self, state: GrowingState, matches: Sequence[Match]) -> GrowingState:
        field = "text" if matches[0].item.type == "text" else "arguments"
        return GrowingState(state.text.extend([match.item.data[field] for match in matches]))

    def build(self, context: Context, scope: Scope) -> Node | None:
        return Node("growing", context.id, {"text": context.state.text})

    def cadence(self, match: Match) -> Cadence:
        return FRAME


CATALOG = catalog()
MINIMAL = (Growing(),)


def assembler_of(definitions: Iterable[Any], *logs: Sequence[Line]) -> Assembler:
    """An Assembler that has loaded these lines."""
    assembler = Assembler(definitions)
    assembler.load(decode_events([line for log in logs for line in log]))
    assembler.flush()
    return assembler


def floor(lines: Sequence[Line]) -> Prepare:
    """Decode each line to plain objects, and nothing else."""

    def run() -> None:
        decode = msgspec.json.decode
        for line in lines:
            decode(line)

    return lambda: run


def folded(make: Callable[[], Assembler], lines: Sequence[Line]) -> Prepare:
    """Decode and emit each delta; fold and show once, at the end."""

    def prepare() -> Run:
        assembler = make()

        def run() -> None:
            emit = assembler.emit
            for line in lines:
                emit(decode_delta(line))
            assembler.flush()

        return run

    return prepare


def read_each(
    make: Callable[[], Assembler], lines: Sequence[Line], key: str, every: int = 1
) -> Prepare:
    """As `folded`, and the changed Node is shown and read after `every` deltas."""

    def prepare() -> Run:
        assembler = make()
        view = assembler.view()

        def run() -> None:
            emit, flush = assembler.emit, assembler.flush
            for at, line in enumerate(lines, 1):
                emit(decode_delta(line))
                if at % every == 0:
                    flush()
                    view[key]

        return run

    return prepare


def read_partial(make: Callable[[], Assembler], lines: Sequence[Line], key: str) -> Prepare:
    """As `read_each`, and the partial arguments are read: their keys and how long the text is."""

    def prepare() -> Run:
        assembler = make()
        view = assembler.view()

        def run() -> None:
            emit, flush = assembler.emit, assembler.flush
            for line in lines:
                emit(decode_delta(line))
                flush()
                node: Any = view[key]
                partial = node.partial
                for name in partial:
                    len(partial[name])

        return run

    return prepare


def live_calls(steps: Sequence[Sequence[tuple[str, Line]]], *, read: bool) -> Prepare:
    """Calls as they come; shown once at the end, or after each step just before it closes."""

    def prepare() -> Run:
        assembler = Assembler(CATALOG)

        def run() -> None:
            emit, append, flush = assembler.emit, assembler.append, assembler.flush
            for lines in steps:
                for what, line in lines:
                    if what == "delta":
                        emit(decode_delta(line))
                    else:
                        append(decode_event(line))
                if read:
                    flush()
            flush()

        return run

    return prepare


def paged(pages: Sequence[tuple[bytes, bool]]) -> Prepare:
    """Page after page, the newest first, each shown."""

    def prepare() -> Run:
        assembler = Assembler(CATALOG)

        def run() -> None:
            for page, has_more in pages:
                assembler.prepend(decode_events(page), has_more)
                assembler.flush()

        return run

    return prepare
