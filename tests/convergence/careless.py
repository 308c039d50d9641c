"""A careful Definition, and careless ones: each makes one mistake that authors make.

`MISTAKES` says which sentence must come of each. Not here: checking them.
"""

from __future__ import annotations

import os
import random
import time
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from time import monotonic
from typing import Any, NamedTuple

from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace

from assembler import (
    FRAME,
    NOW,
    START,
    UPDATE,
    Definition,
    GroupDefinition,
    Node,
    Text,
)
from assembler.engine.definition import Members

__all__ = ["DELTAS", "EVENTS", "MISTAKES", "Ledger", "Mistake", "Parcel", "Shelf"]

NAME = st.sampled_from(["p1", "p2"])
EVENTS: dict[str, Any] = {
    "parcel/packed": st.fixed_dictionaries({"parcel": NAME, "weight": st.integers(0, 9)}),
    "parcel/moved": st.fixed_dictionaries(
        {"parcel": NAME, "to": st.sampled_from(["depot", "van"])}
    ),
    "parcel/lost": [{"parcel": "p1"}, {"parcel": "p2"}],
}
DELTAS: dict[str, Any] = {"parcel-label": st.fixed_dictionaries({"parcel": NAME, "text": NAME})}


class ParcelState(Struct, frozen=True):
    weight: int = 0
    label: Text = Text()
    stops: tuple[str, ...] = ()
    lost: bool = False


class Parcel(Definition):
    """What must be fine."""

    kind = "parcel"
    target = "chat"
    takes = frozenset({*EVENTS, *DELTAS})

    def match(self, item: Any) -> Any:
        starts = item.type in {"parcel/packed", "parcel-label"}
        return item.data["parcel"], START if starts else UPDATE

    def start(self, match: Any, reader: Any) -> Any:
        return self.update(ParcelState(), match)

    def update(self, state: Any, match: Any) -> Any:
        if match.type == "parcel/packed":
            return replace(state, weight=match.data["weight"])
        if match.type == "parcel/moved":
            return replace(state, stops=(*state.stops, match.data["to"]))
        if match.type == "parcel/lost":
            return state if state.lost else replace(state, lost=True)
        return replace(state, label=state.label.append(match.data["text"]))

    def extend(self, state: Any, matches: Sequence[Any]) -> Any:
        if any(match.type != "parcel-label" for match in matches):
            return super().extend(state, matches)
        texts = [match.data["text"] for match in matches]
        return replace(state, label=state.label.extend(texts))

    def anchor(self, context: Any) -> Any:
        return context.matches[0]

    def place(self, context: Any, scope: Any) -> Any:
        return None if context.state is None else context.state.weight

    def notes(self, context: Any, scope: Any) -> Any:
        if context.state is not None and context.state.lost:
            yield "lost-parcel", context.start.position

    def cadence(self, match: Any) -> Any:
        return NOW if match.durable else FRAME

    def build(self, context: Any, scope: Any) -> Any:
        state = context.state
        return None if state is None else Node(self.kind, context.id, self.shown(state, scope))

    def shown(self, state: Any, scope: Any) -> Any:
        return {
            "label": state.label,
            "stops": state.stops,
            "together": sum(scope.turn_values(self.kind).values()),
            "closed": scope.closed,
        }


# --- asking what must not be asked


class Stamped(Parcel):
    def update(self, state: Any, match: Any) -> Any:
        state = super().update(state, match)
        if match.type != "parcel/moved":
            return state
        return replace(state, weight=int(time.time()))


class StampedByImport(Parcel):
    def shown(self, state: Any, scope: Any) -> Any:
        return {"age": 0 if scope.closed else int(monotonic()) // 1_000_000}


class Dated(Parcel):
    def start(self, match: Any, reader: Any) -> Any:
        return replace(super().start(match, reader), weight=today())


def today() -> int:
    return datetime.now(UTC).year


class Unique(Parcel):
    def start(self, match: Any, reader: Any) -> Any:
        return replace(super().start(match, reader), stops=(str(uuid.uuid4()),))


class Lucky(Parcel):
    def shown(self, state: Any, scope: Any) -> Any:
        return {"lucky": random.random() > 2}  # noqa: S311


class AtHome(Parcel):
    def shown(self, state: Any, scope: Any) -> Any:
        return {"home": os.environ.get("HOME")}


class Hashed(Parcel):
    def match(self, item: Any) -> Any:
        return str(hash(item.data["parcel"])), super().match(item)[1]


# --- changing what is not theirs


class InPlace(Parcel):
    def start(self, match: Any, reader: Any) -> Any:
        return {"stops": [], "name": match.data["parcel"]}

    def update(self, state: Any, match: Any) -> Any:
        if match.type == "parcel/moved":
            state["stops"].append(match.data["to"])
        return {**state}

    extend = Definition.extend

    def place(self, context: Any, scope: Any) -> Any:
        return None

    def notes(self, context: Any, scope: Any) -> Any:
        return ()

    def shown(self, state: Any, scope: Any) -> Any:
        return {"stops": state["stops"]}


class TakenOut(InPlace):
    def update(self, state: Any, match: Any) -> Any:
        return state

    def shown(self, state: Any, scope: Any) -> Any:
        return {"name": state.pop("name", None)}


class Handed(InPlace):
    """It writes into the State of its predecessor."""

    def start(self, match: Any, reader: Any) -> Any:
        before = reader.previous("parcel")
        if before is not None:
            before[1]["next"] = match.data["parcel"]
        return {"stops": []}

    def update(self, state: Any, match: Any) -> Any:
        return state


class Pool:
    def __init__(self) -> None:
        self.names: list[str] = []


class Pooled(InPlace):
    """All States share one list, which nobody sees in an argument."""

    pool = Pool()

    def start(self, match: Any, reader: Any) -> Any:
        self.pool.names[:] = [match.data["parcel"]]
        return {"stops": self.pool.names}

    def update(self, state: Any, match: Any) -> Any:
        return state


class Counted(Parcel):
    def __init__(self) -> None:
        self.count = 0

    def start(self, match: Any, reader: Any) -> Any:
        self.count += 1
        return replace(super().start(match, reader), weight=self.count)


class Numbered(Parcel):
    numbers: dict[str, int] = {}  # noqa: RUF012 - the mistake

    def match(self, item: Any) -> Any:
        number = self.numbers.setdefault(item.data["parcel"], len(self.numbers))
        return str(number), super().match(item)[1]


ARRIVED: list[Any] = []


class Arrival(Parcel):
    """An order of arrival, kept in the module."""

    def update(self, state: Any, match: Any) -> Any:
        ARRIVED.append(match.position)
        return replace(super().update(state, match), weight=len(ARRIVED))


class Latest:
    """What an author hides in an object, so that it looks like a constant."""

    def __init__(self) -> None:
        self.name = ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Latest)

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "Latest()"


class Guessed(Parcel):
    """A label belongs to the parcel that was packed last."""

    def __init__(self) -> None:
        self.latest = Latest()

    def match(self, item: Any) -> Any:
        if item.type == "parcel/packed":
            self.latest.name = item.data["parcel"]
        found = self.latest.name if item.type == "parcel-label" else item.data["parcel"]
        return found, super().match(item)[1]


# --- not what was asked for


class Heap(Parcel):
    def match(self, item: Any) -> Any:
        return "all", super().match(item)[1]


class Speechless(Parcel):
    def update(self, state: Any, match: Any) -> Any:
        if match.type != "parcel/lost":
            return super().update(state, match)
        replace(state, lost=True)
        return None


class Trusting(Parcel):
    def match(self, item: Any) -> Any:
        return item.data["name"], START


class Unstarted(Parcel):
    """It shows what nobody has told it about yet."""

    def build(self, context: Any, scope: Any) -> Any:
        return Node(self.kind, context.id, {"stops": context.state.stops})


class Curious(InPlace):
    """It keeps the Reader and asks it later."""

    def start(self, match: Any, reader: Any) -> Any:
        return {"reader": reader, "stops": []}

    def update(self, state: Any, match: Any) -> Any:
        return {**state, "first": state["reader"].complete}


class Question:
    """Asks a Reader when somebody wants to know."""

    def __init__(self, reader: Any) -> None:
        self._ask = lambda: reader.complete

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Question)

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "Question()"

    def answer(self) -> bool:
        return bool(self._ask())


class Later(Curious):
    def start(self, match: Any, reader: Any) -> Any:
        return {"question": Question(reader), "stops": []}

    def update(self, state: Any, match: Any) -> Any:
        return {**state, "first": state["question"].answer()}


class Hasty(Parcel):
    """Its `extend` takes the newest piece of a run alone."""

    def extend(self, state: Any, matches: Sequence[Any]) -> Any:
        return self.update(state, matches[-1])


class Box:
    def __init__(self, weight: int) -> None:
        self.weight = weight


class Boxed(Parcel):
    target = None

    def start(self, match: Any, reader: Any) -> Any:
        return Box(0)

    def update(self, state: Any, match: Any) -> Any:
        return state

    def place(self, context: Any, scope: Any) -> Any:
        return None

    def notes(self, context: Any, scope: Any) -> Any:
        return ()


class Unordered(Parcel):
    def shown(self, state: Any, scope: Any) -> Any:
        return {"stops": set(state.stops)}


class Renamed(Parcel):
    def build(self, context: Any, scope: Any) -> Any:
        return None if context.state is None else Node("parcel", context.id.upper(), {})


class Urgent(Parcel):
    def cadence(self, match: Any) -> Any:
        return match.durable


class Elsewhere(Parcel):
    def anchor(self, context: Any) -> Any:
        return context.matches[0].position


class Ledger(Definition):
    """Beside: it keeps a sum where others can read it."""

    kind = "ledger"
    takes = frozenset({"parcel/packed"})
    sums: list[int] = []  # noqa: RUF012 - the mistake

    def match(self, item: Any) -> Any:
        return "all", START

    def start(self, match: Any, reader: Any) -> Any:
        return self.update(0, match)

    def update(self, state: Any, match: Any) -> Any:
        self.sums.append(state)
        return state + 1


class Nosy(Parcel):
    """It reads another Definition's list."""

    def shown(self, state: Any, scope: Any) -> Any:
        return {"sums": len(Ledger.sums)}


class Located(Parcel):
    def shown(self, state: Any, scope: Any) -> Any:
        return {"in": os.getcwd()}


class Listed(Parcel):
    def shown(self, state: Any, scope: Any) -> Any:
        return {"files": len(os.listdir())}


class Foreign(Parcel):
    """It takes a place that is none of its own."""

    def anchor(self, context: Any) -> Any:
        return replace(context.matches[0], position=0)


class Averaged(Parcel):
    def shown(self, state: Any, scope: Any) -> Any:
        return {"weight": float("nan")}


class Bottomless(Parcel):
    def shown(self, state: Any, scope: Any) -> Any:
        nested: list[Any] = []
        for _ in range(3_000):
            nested = [nested]
        return {"nested": nested}


class Yielding(Parcel):
    def build(self, context: Any, scope: Any) -> Any:
        yield Node("parcel", context.id, {})


class Postponed(Parcel):
    def start(self, match: Any, reader: Any) -> Any:
        return lambda: reader.previous("parcel")

    def update(self, state: Any, match: Any) -> Any:
        return state

    def shown(self, state: Any, scope: Any) -> Any:
        return {}


class Promised(Parcel):
    def place(self, context: Any, scope: Any) -> Any:
        return lambda: scope.turn

    def shown(self, state: Any, scope: Any) -> Any:
        return {}


class CachedClock(Parcel):
    @cached_property
    def made(self) -> float:
        return time.time()

    def shown(self, state: Any, scope: Any) -> Any:
        return {"made": self.made}


# --- groups


class Shelf(GroupDefinition):
    """What must be fine."""

    kind = "shelf"
    target = "chat"

    def joins(self, node: Node) -> Any:
        return "closed" if node.data["closed"] else "open"

    def tells(self, node: Node) -> Any:
        return node.data["stops"]

    def summary(self, members: Members) -> Mapping[str, Any]:
        return {"size": members.size, "most": max(members.told.values())}


class Reading(Shelf):
    def tells(self, node: Node) -> Any:
        return len(str(node.data["label"]))


class Listing(Shelf):
    def tells(self, node: Node) -> Any:
        return node.id

    def summary(self, members: Members) -> Mapping[str, Any]:
        return {"ids": list(members.told)}


class Bare(Shelf):
    def summary(self, members: Members) -> Any:
        return [members.size]


class Fickle(Shelf):
    def __init__(self) -> None:
        self.seen: set[str] = set()

    def joins(self, node: Node) -> Any:
        self.seen.add(node.key)
        return len(self.seen) > 1


class Mistake(NamedTuple):
    """A careless Definition, and what must be said about it."""

    careless: type[Any]
    problem: str
    method: str
    says: str
    beside: tuple[type[Any], ...] = ()


MISTAKES = (
    Mistake(Stamped, "clock", "update", "Take the time from `match.time`"),
    Mistake(StampedByImport, "clock", "build", "time.monotonic"),
    Mistake(Dated, "clock", "start", "datetime.now"),
    Mistake(Unique, "randomness", "start", "Take names and ids from the item"),
    Mistake(Lucky, "randomness", "build", "random.random"),
    Mistake(AtHome, "surroundings", "build", "os.environ"),
    Mistake(Hashed, "process", "match", "another number in every process"),
    Mistake(InPlace, "changed-state", "update", "Give a new State instead"),
    Mistake(TakenOut, "changed-state", "build", "Give a new State instead"),
    Mistake(Handed, "changed-other", "start", "only read it"),
    Mistake(Pooled, "changed-earlier-state", "start", "shared between States"),
    Mistake(Counted, "changed-itself", "start", "`self.count`"),
    Mistake(Numbered, "changed-itself", "match", "`Numbered.numbers`"),
    Mistake(Arrival, "changed-itself", "start", "`ARRIVED`"),
    Mistake(Guessed, "remembers", "match", "Read the id from the item alone"),
    Mistake(Heap, "forgets-id", "match", "Take the id from a field of the item"),
    Mistake(Speechless, "no-state", "update", "forget to `return`"),
    Mistake(Trusting, "raised", "match", "KeyError: 'name'"),
    Mistake(Unstarted, "raised-without-state", "build", "`if context.state is None: return None`"),
    Mistake(Curious, "kept-reader", "start", "Ask it there, and keep the answer"),
    Mistake(Later, "late-read", "start", "`reader.complete` was used after `start`"),
    Mistake(Hasty, "extend", "extend", "however the run is cut"),
    Mistake(Boxed, "opaque-state", "start", "the class Box"),
    Mistake(Unordered, "no-json", "build", "set is no JSON value"),
    Mistake(Renamed, "wrong-kind", "build", "the id 'p"),
    Mistake(Urgent, "wrong-kind", "cadence", "NOW, FRAME or NONE"),
    Mistake(Elsewhere, "wrong-kind", "anchor", "one of `context.matches`"),
    Mistake(Located, "surroundings", "build", "os.getcwd"),
    Mistake(Listed, "surroundings", "build", "os.listdir"),
    Mistake(Foreign, "wrong-kind", "anchor", "one of `context.matches`"),
    Mistake(Averaged, "no-json", "build", "nan is no JSON number"),
    Mistake(Bottomless, "no-json", "build", "nested deeper"),
    Mistake(Yielding, "wrong-kind", "build", "a Node, or None"),
    Mistake(Postponed, "kept-reader", "start", "keeps the reader"),
    Mistake(Promised, "kept-reader", "place", "keeps the scope"),
    Mistake(CachedClock, "changed-itself", "build", "`self.made`"),
    Mistake(Nosy, "differs", "", "read it from another Definition", (Ledger,)),
    Mistake(Reading, "reads-text", "tells", "Let `build` put what it needs", (Parcel,)),
    Mistake(Listing, "reads-order", "summary", "sort it", (Parcel,)),
    Mistake(Bare, "wrong-kind", "summary", "a mapping of JSON values", (Parcel,)),
    Mistake(Fickle, "changed-itself", "joins", "`self.seen`", (Parcel,)),
)
