"""Contexts: the Matches of one `(kind, id)` in position order, their start, and the fold.

Changing the Matches is done at once and cheaply; the State is folded when it is next asked for
(`Entry.fold`), from where the last fold stopped or, after a change before its end, from the
start. Not here: when that must happen (`assembler`), and who looks backward (`predecessors`).
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from msgspec import Struct

from assembler.engine.definition import START, Match, Reader
from assembler.engine.errors import DefinitionError
from assembler.engine.events import Delta, Event, Position
from assembler.engine.locations import Location
from assembler.engine.registry import Spec
from assembler.engine.values import alike

__all__ = ["ContextView", "Entry", "Failure", "Tables", "blame", "order_key"]

# A short tuple of leaves costs the garbage collector nothing, a list is followed for ever.
TUPLE_MAX = 6

REFOLD = -1


class NoReader:
    """What a fold that goes on is given: only a start looks backward."""

    complete = False

    def previous(self, kind: str) -> None:
        raise AssertionError(f"looked back at {kind} without a start")


NO_READER = NoReader()


class Failure(Struct, frozen=True, gc=False):
    """Where a Definition raised: the exception's name, the call, and the Match."""

    name: str
    site: str
    position: Position


def order_key(match: Match) -> tuple[int, str]:
    """Position order; Matches of two attempts at one position stand by attempt name."""
    item = match.item
    return match.position, item.attempt if isinstance(item, Delta) else ""


def blame(error: BaseException, spec: Spec, site: str, what: str) -> DefinitionError:
    """The error that `strict=True` raises for a Definition that raised."""
    return DefinitionError(
        f"Definition {spec.kind!r} raised {type(error).__name__} in {site} at "
        f"{what.removesuffix(':')}: {error}"
    )


class Entry(Struct, gc=False, eq=False):
    """One Context inside the engine. Mutable; nobody outside sees it (`ContextView`)."""

    spec: Spec
    id: str
    key: str
    matches: Any = ()
    last: int = -1
    """The position of the last match."""
    start_at: int | None = None
    """Index of the earliest start among the matches."""
    folded: int = REFOLD
    """How many matches the State holds; `REFOLD` after a change before its end."""
    state: Any = None
    failure: Failure | None = None
    turn: int | None = None
    step: int | None = None
    resolved: bool = True
    bracketed: bool = False
    """Its place comes from the boundaries around it, not from its own item."""
    anchor: Position = Position(0)
    stale: bool = False
    moved: bool = True
    """Its matches changed otherwise than at their end since the last settlement."""
    scans: bool = False
    """Its Definition reads `matches`, so that every new Match can change what it shows."""
    gone: bool = False
    indexed: Any = None
    """Its spot among the starts that others look back at."""
    asks: tuple[tuple[str, Any], ...] = ()
    """The kinds that its start looked back at, from `asked_at`, and the answers."""
    asked_at: Any = None
    anchor_failed: bool = False
    published: Any = None
    """Where it publishes values: the spots of its step and of its turn."""
    had_start: bool = False
    """Whether it had a start when it was last settled."""
    misplaced: int = 0
    """A bit for each phase in which `place` raised."""
    findings: Any = ()
    node_key: str | None = None
    reads: Any = None

    # -- matches -------------------------------------------------------------------------

    @property
    def start(self) -> Match | None:
        return None if self.start_at is None else self.matches[self.start_at]

    @property
    def lead(self) -> Match:
        """The start, else the first Match: whose place is the Context's place."""
        return self.matches[self.start_at or 0]  # type: ignore[no-any-return]

    def add(self, match: Match) -> None:
        """Put one Match into its place. O(1) at the end."""
        matches = self.matches
        if match.position > self.last or order_key(match) > order_key(matches[-1]):
            self.last = match.position
            if type(matches) is tuple and len(matches) < TUPLE_MAX and type(match.item) is Event:
                self.matches = (*matches, match)
            else:
                if type(matches) is tuple:
                    matches = self.matches = list(matches)
                matches.append(match)
            if match.role is START and self.start_at is None:
                self.start_at = len(self.matches) - 1
                self.folded = REFOLD
                self.moved = True
            elif self.start_at is None:
                self.moved = True
            return
        self._insert(match)

    def push(self, match: Match) -> None:
        """Put a delta's Match behind all others of a started Context. O(1)."""
        self.last = match.position
        if type(self.matches) is tuple:
            self.matches = list(self.matches)
        self.matches.append(match)

    def _insert(self, match: Match) -> None:
        place = order_key(match)
        low, high = 0, len(self.matches)
        while low < high:
            middle = (low + high) // 2
            if order_key(self.matches[middle]) < place:
                low = middle + 1
            else:
                high = middle
        matches = list(self.matches)
        matches.insert(low, match)
        self._replace(matches)

    def drop_event(self, seq: int) -> bool:
        """Forget the Matches of one event; whether any Match is left."""
        return self._replace(
            [m for m in self.matches if type(m.item) is not Event or m.item.seq != seq]
        )

    def drop_attempt(self, name: str) -> bool:
        """Forget the Matches of one attempt; whether any Match is left."""
        return self._replace(
            [m for m in self.matches if type(m.item) is Event or m.item.attempt != name]
        )

    def _replace(self, matches: list[Match]) -> bool:
        self.last = matches[-1].position if matches else -1
        self.start_at = next((i for i, m in enumerate(matches) if m.role is START), None)
        leaves = len(matches) <= TUPLE_MAX and all(type(m.item) is Event for m in matches)
        self.matches = tuple(matches) if leaves else matches
        self.folded = REFOLD
        self.moved = True
        return bool(matches)

    # -- the fold ------------------------------------------------------------------------

    def fold(self, reader: Reader, *, strict: bool, compare: bool = True) -> bool:
        """Bring the State up to date; whether it is another object now.

        A State that was folded again from the start, or with `compare` in any way, and that came
        out alike stays the same object.

        A Definition that raises leaves no State and a `Failure`, or under `strict` raises
        `DefinitionError` and leaves the Entry as it was.
        """
        matches = self.matches
        if self.start_at is None:
            changed = self.state is not None or self.failure is not None
            self.state = self.failure = None
            self.folded = len(matches)
            return changed
        if self.folded == REFOLD:
            state, failure = self._refold(reader, strict=strict)
            compare = True
        elif self.folded == len(matches) or self.failure is not None:
            self.folded = len(matches)
            return False
        else:
            state, failure = self._run(self.state, matches[self.folded :], strict=strict)
        if compare and alike(state, self.state):
            state = self.state
        changed = state is not self.state or failure != self.failure
        self.state, self.failure, self.folded = state, failure, len(matches)
        return changed

    def _refold(self, reader: Reader, *, strict: bool) -> tuple[Any, Failure | None]:
        at = self.start_at or 0
        match = self.matches[at]
        try:
            state = self.spec.start(match, reader)
        except Exception as error:
            if strict:
                raise blame(error, self.spec, "start", self.key) from error
            return None, Failure(type(error).__name__, "start", match.position)
        rest = self.matches[:at] + self.matches[at + 1 :]
        return self._run(state, rest, strict=strict)

    def _run(
        self, state: Any, matches: Sequence[Match], *, strict: bool
    ) -> tuple[Any, Failure | None]:
        if self.spec.extend is not None and len(matches) > 1:
            try:
                return self.spec.extend(state, tuple(matches)), None
            except Exception:  # noqa: S110 - one by one tells which Match it was
                pass
        update = self.spec.update
        for match in matches:
            try:
                state = update(state, match)
            except Exception as error:
                if strict:
                    raise blame(error, self.spec, "update", self.key) from error
                return None, Failure(type(error).__name__, "update", match.position)
        return state, None


class Tables(dict[str, dict[str, Entry]]):
    """The Contexts of each kind by id; the table of a known kind is made when first asked for."""

    __slots__ = ("kinds",)

    def __init__(self, kinds: Container[str]) -> None:
        super().__init__()
        self.kinds = kinds

    def __missing__(self, kind: str) -> dict[str, Entry]:
        if kind not in self.kinds:
            raise KeyError(kind)
        table: dict[str, Entry] = {}
        self[kind] = table
        return table

    def find(self, kind: str, ident: str) -> Entry | None:
        """One Context; None where there is none, or no such kind."""
        table = self.get(kind)
        return None if table is None else table.get(ident)


class ContextView:
    """A Context as Definitions and readers see it: read-only."""

    __slots__ = ("_entry",)

    def __init__(self, entry: Entry) -> None:
        self._entry = entry

    @property
    def kind(self) -> str:
        return self._entry.spec.kind

    @property
    def id(self) -> str:
        return self._entry.id

    @property
    def key(self) -> str:
        return self._entry.key

    @property
    def state(self) -> Any:
        return self._entry.state

    @property
    def start(self) -> Match | None:
        return self._entry.start

    @property
    def location(self) -> Location:
        entry = self._entry
        return Location(entry.turn, entry.step, entry.resolved)

    @property
    def matches(self) -> tuple[Match, ...]:
        self._entry.scans = True
        return tuple(self._entry.matches)

    def __repr__(self) -> str:
        return f"<Context {self.key} of {len(self._entry.matches)} matches>"
