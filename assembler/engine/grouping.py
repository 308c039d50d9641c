"""Groups of consecutive Nodes, found again only around what changed.

A run is what stands together now; what changed cuts runs into pieces, and neighbouring pieces of
one bracket are joined again. A group keeps its key while one of its members stays: on a split the
part with its earliest old member keeps it, on a merge the group that was formed first. Not here:
what belongs together and what a group says (a `GroupDefinition`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from itertools import chain, count
from types import MappingProxyType
from typing import Any

from msgspec import Struct
from sortedcontainers import SortedDict

from assembler.engine.definition import Anomaly, Group, GroupDefinition, Members, Node
from assembler.engine.errors import DefinitionError
from assembler.engine.values import Object, freeze_object

__all__ = ["Grouping", "Regrouped"]

Spot = tuple[int, str]
Tally = dict[Hashable, int]

_JOINED_BY_ADDING_MAX = 4
"""Up to so many pieces are joined by `+`, which copies them at once; more one by one."""


class _Asked(Struct, frozen=True, gc=False):
    """What the Definition said of one Node."""

    bracket: Hashable | None
    told: Hashable | None = None
    failed: bool = False


class _Run(Struct, frozen=True, gc=False):
    """Neighbours of one bracket, between `first` and `last`, and the group they are."""

    group: Group
    age: int
    bracket: Hashable
    first: Spot
    last: Spot
    tally: Tally
    """How many members tell what."""


class _Cut:
    """A run while it is looked at: who leaves it, where it is cut, who tells something else."""

    __slots__ = ("bars", "left", "retold", "run", "slices", "tally")

    def __init__(self, run: _Run) -> None:
        self.run = run
        self.left: list[int] = []
        self.bars: list[int] = []
        self.slices: list[tuple[str, ...]] = []
        self.retold = False
        self.tally = run.tally

    def tell(self, before: Hashable | None, now: Hashable | None) -> None:
        """Count what a member tells now, and no more what it told `before`."""
        if not self.retold:
            self.retold, self.tally = True, dict(self.tally)
        _count(self.tally, before, -1)
        _count(self.tally, now, 1)

    def slice(self) -> list[tuple[str, ...]]:
        """What is left of it, from left to right."""
        members = self.run.group.members
        ends = sorted({*((at, at) for at in self.bars), *((at, at + 1) for at in self.left)})
        starts = [0, *(end for _, end in ends)]
        stops = [*(start for start, _ in ends), len(members)]
        parts = (members[start:stop] for start, stop in zip(starts, stops, strict=True))
        self.slices = [part for part in parts if part]
        return self.slices


class _Piece(Struct, frozen=True, gc=False):
    """Members that stay together, from place `at` of the View on.

    `run` is where they were; `cut` is given for a part of it, not for a Node of its own.
    """

    at: int
    members: tuple[str, ...]
    bracket: Hashable
    run: _Run | None
    cut: _Cut | None = None


class Regrouped:
    """What one regrouping found: to be installed, or dropped as a whole."""

    __slots__ = ("asked", "cut", "dissolved", "gone", "put", "runs", "summed", "unsummed")

    def __init__(self, gone: set[str]) -> None:
        self.gone = gone
        self.asked: dict[str, _Asked] = {}
        self.cut: dict[str, _Cut] = {}
        """The runs that were looked at, by the key of their group."""
        self.runs: list[_Run] = []
        """What stands in their place."""
        self.put: list[Group] = []
        self.dissolved: list[str] = []
        self.summed: set[str] = set()
        """Groups that were summed up again."""
        self.unsummed: set[str] = set()
        """Those of them whose `summary` raised."""


class Grouping:
    """The groups of one Group Definition over one ordered View."""

    __slots__ = (
        "_asked",
        "_failed",
        "_formed",
        "_nodes",
        "_order",
        "_runs",
        "_strict",
        "_unsummed",
        "definition",
        "groups",
    )

    def __init__(
        self,
        definition: GroupDefinition,
        order: Any,
        nodes: dict[str, Node],
        *,
        strict: bool,
    ) -> None:
        self.definition = definition
        self._strict = strict
        self.groups: dict[str, Group] = {}
        self._order = order
        self._nodes = nodes
        self._asked: dict[str, _Asked] = {}
        """Of each member what the Definition said."""
        self._runs: Any = None
        """The runs by their first spot. Most conversations that are held have none, and no place
        for them."""
        self._failed: set[str] = set()
        self._unsummed: set[str] = set()
        self._formed = 0

    def grew(self, node: Node) -> bool:
        """Whether a Node whose text alone grew now belongs elsewhere."""
        old = self._asked.get(node.key)
        bracket, failed = self._bracket(node)
        if old is not None:
            return bracket != old.bracket
        return bracket is not None or failed != (node.key in self._failed)

    def findings(self) -> list[Anomaly]:
        """What this Group Definition raised at: Nodes, and the first members of groups."""
        keys = [*self._failed, *(self.groups[key].members[0] for key in self._unsummed)]
        return [Anomaly("definition-error", key, self._nodes[key].position) for key in keys]

    def regroup(self, touched: Iterable[str], seams: Iterable[Spot], gone: set[str]) -> Regrouped:
        """Find the groups around `touched` Nodes (present: new, changed or moved), the old
        places (`seams`) of what went or moved, and without what is `gone`.

        O(changes · log n), and the members of a group that falls apart. Changes nothing:
        `install` does.
        """
        found = Regrouped(gone)
        was = {key: (position, key) for position, key in seams}
        for spot in was.values():
            self._take_out(found, spot, was)
            self._look_around(found, spot)
        standing = [key for key in touched if self._stands_apart(found, key, was)]
        pieces = [self._single(found, key, was) for key in standing]
        for cut in found.cut.values():
            pieces += [self._slice(part, cut) for part in cut.slice()]
        self._name(_chains(pieces), found)
        return found

    # -- asking the Definition ---------------------------------------------------------------

    def _ask(self, node: Node) -> _Asked:
        bracket, failed = self._bracket(node)
        if bracket is None:
            return _Asked(None, failed=failed)
        try:
            told = self.definition.tells(node)
            hash(told)
        except Exception as error:
            if self._strict:
                raise self._blame(error, "tells", node.key) from error
            return _Asked(bracket, failed=True)
        return _Asked(bracket, told)

    def _bracket(self, node: Node) -> tuple[Hashable | None, bool]:
        """The bracket of a Node, and whether the Definition raised instead."""
        try:
            bracket = self.definition.joins(node)
            hash(bracket)
        except Exception as error:
            if self._strict:
                raise self._blame(error, "joins", node.key) from error
            return None, True
        return bracket, False

    def _blame(self, error: Exception, site: str, key: str) -> DefinitionError:
        kind, name = self.definition.kind, type(error).__name__
        return DefinitionError(
            f"Group Definition {kind!r} raised {name} in {site} at {key}: {error}"
        )

    # -- cutting -----------------------------------------------------------------------------

    def _stands_apart(self, found: Regrouped, key: str, was: Mapping[str, Spot]) -> bool:
        """Ask a touched Node where it belongs; whether it is a piece of its own until joined."""
        node = self._nodes[key]
        asked = found.asked[key] = self._ask(node)
        spot = node.position, key
        old = None if key in was else self._asked.get(key)
        if old is not None and old.bracket == asked.bracket:
            self._cut(found, self._run_at(spot)).tell(old.told, asked.told)
            return False
        if old is not None:
            self._take_out(found, spot, was)
        else:
            self._cut_through(found, spot, was)
        self._look_around(found, spot)
        return asked.bracket is not None

    def _cut(self, found: Regrouped, run: _Run) -> _Cut:
        key = run.group.key
        cut = found.cut.get(key)
        if cut is None:
            cut = found.cut[key] = _Cut(run)
        return cut

    def _run_at(self, spot: Spot) -> _Run:
        """The last run that begins at or before a spot; the first, where none does."""
        at = self._runs.bisect_right(spot) - 1
        run: _Run = self._runs.peekitem(max(0, at))[1]
        return run

    def _take_out(self, found: Regrouped, spot: Spot, was: Mapping[str, Spot]) -> None:
        """Let the member that stood at a spot leave its run."""
        old = self._asked.get(spot[1])
        if old is not None:
            cut = self._cut(found, self._run_at(spot))
            cut.left.append(self._index(cut.run, spot, was))
            cut.tell(old.told, None)

    def _cut_through(self, found: Regrouped, spot: Spot, was: Mapping[str, Spot]) -> None:
        """Cut the run that a Node came into the middle of."""
        if self._runs:
            run = self._run_at(spot)
            if run.first < spot < run.last:
                self._cut(found, run).bars.append(self._index(run, spot, was))

    def _index(self, run: _Run, spot: Spot, was: Mapping[str, Spot]) -> int:
        """How many members stood before a spot: as they stood, not where they moved to."""

        def stood(key: str) -> Spot:
            return was.get(key) or (self._nodes[key].position, key)

        return bisect_left(run.group.members, spot, key=stood)

    def _look_around(self, found: Regrouped, spot: Spot) -> None:
        """Look at the runs next to a spot: what comes or goes there may join them.

        A run that is looked at in vain stays what it is.
        """
        order = self._order
        at = order.bisect_left(spot)
        for place in order.islice(max(0, at - 1), at + 2):
            if place[1] in self._asked:
                self._cut(found, self._run_at(place))

    # -- joining -----------------------------------------------------------------------------

    def _single(self, found: Regrouped, key: str, was: Mapping[str, Spot]) -> _Piece:
        spot = self._nodes[key].position, key
        member = key in self._asked and key not in found.gone
        run = self._run_at(was.get(key, spot)) if member else None
        return _Piece(self._order.bisect_left(spot), (key,), found.asked[key].bracket, run)

    def _slice(self, members: tuple[str, ...], cut: _Cut) -> _Piece:
        at = self._order.bisect_left((self._nodes[members[0]].position, members[0]))
        return _Piece(at, members, cut.run.bracket, cut.run, cut)

    def _name(self, chains: list[list[_Piece]], found: Regrouped) -> None:
        """Give each chain of pieces its key, and make its group."""
        kept: dict[int, _Run] = {}
        used: set[str] = set()
        for at, pieces in enumerate(chains):
            runs = [piece.run for piece in pieces if piece.run is not None]
            free = [run for run in runs if run.group.key not in used]
            if free:
                kept[at] = min(free, key=lambda run: run.age)
                used.add(kept[at].group.key)
        formed = self._formed
        for at, pieces in enumerate(chains):
            if at in kept:
                key, age = kept[at].group.key, kept[at].age
            else:
                key = self._free(pieces, used, found)
                used.add(key)
                formed += 1
                age = formed
            found.runs.append(self._joined(key, age, pieces, found))
        found.dissolved = sorted(found.cut.keys() - used)

    def _free(self, pieces: list[_Piece], used: set[str], found: Regrouped) -> str:
        """A key for a new group: of its first member, unless another group still has it."""
        kind = self.definition.kind
        members = chain.from_iterable(piece.members for piece in pieces)
        first = pieces[0].members[0]
        names = chain(members, (f"{first}~{number}" for number in count(2)))
        return next(
            key
            for key in (f"{kind}:{name}" for name in names)
            if key not in used and (key in found.cut or key not in self.groups)
        )

    def _joined(self, key: str, age: int, pieces: list[_Piece], found: Regrouped) -> _Run:
        members = _concatenated([piece.members for piece in pieces])
        old = found.cut.get(key)
        if old is not None and not old.retold and members is old.run.group.members:
            return old.run
        tally = self._tally(pieces, found)
        group = self._group(key, members, tally, found)
        if old is not None and old.run.group.equals(group):
            group = old.run.group
        else:
            found.put.append(group)
        first, last = ((self._nodes[end].position, end) for end in (members[0], members[-1]))
        return _Run(group, age, pieces[0].bracket, first, last, tally)

    def _tally(self, pieces: list[_Piece], found: Regrouped) -> Tally:
        """How many members tell what. A run that is here whole is not counted again."""
        parts = Counter(piece.cut.run.group.key for piece in pieces if piece.cut is not None)
        tally: Tally = {}
        for piece in pieces:
            cut = piece.cut
            if cut is None or parts[cut.run.group.key] != len(cut.slices):
                self._count_members(tally, piece.members, found)
            elif piece.members is cut.slices[0]:
                for told, times in cut.tally.items():
                    _count(tally, told, times)
        return tally

    def _count_members(self, tally: Tally, members: tuple[str, ...], found: Regrouped) -> None:
        for member in members:
            asked = found.asked.get(member) or self._asked[member]
            _count(tally, asked.told, 1)

    def _group(self, key: str, members: tuple[str, ...], tally: Tally, found: Regrouped) -> Group:
        found.summed.add(key)
        first, last = self._nodes[members[0]], self._nodes[members[-1]]
        summed = Members(MappingProxyType(tally), first, last, len(members))
        try:
            data = freeze_object(self.definition.summary(summed))
        except Exception as error:
            if self._strict:
                raise self._blame(error, "summary", members[0]) from error
            found.unsummed.add(key)
            data = Object({}, ())
        return Group(key, self.definition.kind, members, data)

    # -- taking over -------------------------------------------------------------------------

    def install(self, found: Regrouped) -> None:
        """Take a regrouping over. Cannot fail."""
        for key in found.dissolved:
            del self.groups[key]
            self._unsummed.discard(key)
        for cut in found.cut.values():
            del self._runs[cut.run.first]
        for key in found.gone:
            self._asked.pop(key, None)
            self._failed.discard(key)
        for key, asked in found.asked.items():
            self._remember(key, asked)
        if found.runs and self._runs is None:
            self._runs = SortedDict()
        for run in found.runs:
            self._runs[run.first] = run
            self.groups[run.group.key] = run.group
            self._formed = max(self._formed, run.age)
        self._unsummed -= found.summed
        self._unsummed |= found.unsummed

    def _remember(self, key: str, asked: _Asked) -> None:
        if asked.failed:
            self._failed.add(key)
        else:
            self._failed.discard(key)
        if asked.bracket is None:
            self._asked.pop(key, None)
        else:
            self._asked[key] = asked

    def check(self) -> list[str]:
        """What is wrong with it, in words: every run once, no other."""
        kind = self.definition.kind
        runs: list[list[str]] = []
        last: Hashable = None
        for _, key in self._order:
            if key not in self._nodes:
                return [f"groups of {kind}: {key} is in order and not there"]
            mine, _ = self._bracket(self._nodes[key])
            if mine is not None and mine == last:
                runs[-1].append(key)
            elif mine is not None:
                runs.append([key])
            last = mine
        wrong = []
        held = sorted(group.members for group in self.groups.values())
        if held != sorted(map(tuple, runs)):
            wrong.append(f"groups of {kind}: {held} instead of {runs}")
        if set(self._asked) != set(chain.from_iterable(runs)):
            wrong.append(f"groups of {kind}: what a member told is not known")
        for spot, known in (self._runs or {}).items():
            group: Group = known.group
            if self.groups.get(group.key) is not group or known.first != spot:
                wrong.append(f"groups of {kind}: {group.key} is not where it is looked for")
            elif known.tally != self._counted(group.members):
                wrong.append(f"groups of {kind}: {group.key} is counted as {known.tally}")
        return wrong

    def _counted(self, members: tuple[str, ...]) -> Tally:
        tally: Tally = {}
        for member in members:
            _count(tally, self._ask(self._nodes[member]).told, 1)
        return tally


def _count(tally: Tally, told: Hashable | None, times: int) -> None:
    """Count what a member tells; None tells nothing."""
    if told is not None:
        now = tally.get(told, 0) + times
        if now:
            tally[told] = now
        else:
            del tally[told]


def _chains(pieces: list[_Piece]) -> list[list[_Piece]]:
    """Neighbouring pieces of one bracket together, from left to right."""
    chains: list[list[_Piece]] = []
    end, bracket = -1, None
    for piece in sorted(pieces, key=lambda piece: piece.at):
        if piece.at == end and piece.bracket == bracket:
            chains[-1].append(piece)
        else:
            chains.append([piece])
        end, bracket = piece.at + len(piece.members), piece.bracket
    return chains


def _concatenated(parts: list[tuple[str, ...]]) -> tuple[str, ...]:
    """All parts in one; the very same where there is one alone."""
    if len(parts) > _JOINED_BY_ADDING_MAX:
        return tuple(chain.from_iterable(parts))
    return sum(parts[1:], parts[0])
