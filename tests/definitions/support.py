"""What the engine gives to a Definition, in the smallest form: items, a Context, a Scope.

Not here: the engine itself, and tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from assembler.engine.definition import START, UNNAMED, Context, Definition, Match, Node, Reader
from assembler.engine.events import Delta, Event, Position
from assembler.engine.locations import Status

__all__ = ["Looking", "Seen", "Surroundings", "delta", "event", "fold", "matched", "seen", "shown"]

Item = Event | Delta


def event(seq: int, type_: str, /, **data: Any) -> Event:
    return Event(seq=seq, type=type_, data=data, time=seq * 1000)


def delta(index: int, type_: str, /, attempt: str = "a1", after: int = 0, **data: Any) -> Delta:
    return Delta(
        attempt=attempt,
        turn=1,
        step=1,
        type=type_,
        data=data,
        ordinal=index - 1,
        after=after,
        index=index,
        time=after * 1000 + index,
    )


def position(item: Item) -> Position:
    return item.position if isinstance(item, Delta) else Position(item.seq << 32)


def matched(definition: Definition, items: Iterable[Item], id_: str | None = None) -> list[Match]:
    """The Matches of one Context (the first one's, when no id is given), in position order."""
    found = []
    for item in items:
        reached = item.type in definition.takes or UNNAMED in definition.takes
        taken = definition.match(item) if reached else None
        if taken is not None and id_ in (None, taken[0]):
            id_ = taken[0]
            found.append(Match(position(item), item, taken[1]))
    return sorted(found, key=lambda match: (match.position, match.attempt or ""))


def fold(definition: Definition, matches: list[Match], reader: Reader | None = None) -> Any:
    """The State of these Matches, one by one; None without a start."""
    start = next((match for match in matches if match.role is START), None)
    if start is None:
        return None
    state = definition.start(start, reader or Looking())
    for match in matches:
        if match is not start:
            state = definition.update(state, match)
    return state


class Looking:
    """A Reader of what is given: by kind, the nearest Context before."""

    def __init__(self, *, complete: bool = True, **before: tuple[str, Any]) -> None:
        self.complete = complete
        self._before = before

    def previous(self, kind: str) -> tuple[str, Any] | None:
        return self._before.get(kind)


class Seen:
    """A Context."""

    def __init__(
        self,
        definition: Definition,
        items: Iterable[Item],
        id_: str | None = None,
        reader: Reader | None = None,
    ) -> None:
        items = list(items)
        self.matches = matched(definition, items, id_)
        self.kind = definition.kind
        taken = [definition.match(match.item) for match in self.matches]
        self.id = id_ or (taken[0][0] if taken and taken[0] else "")
        self.key = f"{self.kind}:{self.id}"
        self.start = next((match for match in self.matches if match.role is START), None)
        self.state = fold(definition, self.matches, reader)


class Surroundings:
    """A Scope that remembers in `read` what was asked of it."""

    def __init__(
        self,
        others: Mapping[tuple[str, str], Any] | None = None,
        unstarted: Mapping[tuple[str, str], Sequence[Match]] | None = None,
        turns: Mapping[tuple[str, str], Status] | None = None,
        values: Mapping[str, Mapping[str, Any]] | None = None,
        **facts: Any,
    ) -> None:
        self._others = others or {}
        self._unstarted = unstarted or {}
        self._turns = turns or {}
        self._values = values or {}
        self._facts = {
            "turn": 1,
            "step": 1,
            "turn_status": Status.OPEN,
            "step_status": Status.OPEN,
            "closed": False,
            "live": None,
            "complete": True,
            **facts,
        }
        self.read: list[str] = []

    def __getattr__(self, name: str) -> Any:
        try:
            fact = self._facts[name]
        except KeyError:
            raise AttributeError(name) from None
        self.read.append(name)
        return fact

    def step_values(self, kind: str) -> Mapping[str, Any]:
        self.read.append(f"step values of {kind}")
        return self._values.get(kind, {})

    def turn_values(self, kind: str) -> Mapping[str, Any]:
        self.read.append(f"turn values of {kind}")
        return {}

    def other(self, kind: str, id_: str) -> Any:
        self.read.append(f"{kind}:{id_}")
        return self._others.get((kind, id_))

    def has(self, kind: str, id_: str) -> bool:
        self.read.append(f"{kind}:{id_}")
        return self._others.get((kind, id_)) is not None

    def turn_status_of(self, kind: str, id_: str) -> Status | None:
        self.read.append(f"{kind}:{id_}")
        return self._turns.get((kind, id_))

    def unstarted(self, kind: str, id_: str) -> Sequence[Match]:
        self.read.append(f"{kind}:{id_}")
        return self._unstarted.get((kind, id_), ())


def seen(definition: Definition, *items: Item, id_: str | None = None) -> Context:
    return Seen(definition, items, id_)


def shown(
    definition: Definition,
    *items: Item,
    others: Iterable[tuple[Definition, Iterable[Item]]] = (),
    **facts: Any,
) -> dict[str, Any] | None:
    """The data of the Node that is made of these items; None: not visible."""
    states = {}
    for other, theirs in others:
        context = Seen(other, theirs)
        states[context.kind, context.id] = context.state
    scope = Surroundings(states, **facts)
    made: Node | None = definition.build(seen(definition, *items), scope)
    if made is None:
        return None
    data: dict[str, Any] = made.placed(Position(0), 1, 1).to_json()["data"]
    return data
