"""The contract: all that an author of a Definition reads and implements.

A Definition says what one kind of business object is: which events and deltas belong to it
(`match`), what they add up to (`start`, `update`) and how it is shown (`build`). It holds no
mutable data, reads no clock, and never sees the engine. How the engine calls it is `contexts`
and `assembler`.
"""

from __future__ import annotations

import enum
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar, Protocol

from msgspec import Struct
from msgspec.structs import replace

from assembler.engine.events import Delta, Event, Item, Position, pair
from assembler.engine.locations import Status
from assembler.engine.values import NODE_DEPTH_MAX, Json, freeze_object, same, thaw

__all__ = [
    "FRAME",
    "NONE",
    "NOW",
    "START",
    "UNNAMED",
    "UPDATE",
    "Anomaly",
    "Cadence",
    "Context",
    "Definition",
    "Group",
    "GroupDefinition",
    "Match",
    "Members",
    "Node",
    "Reader",
    "Role",
    "Scope",
]


class Role(enum.Enum):
    """What an item is to the Context it belongs to."""

    START = "start"
    UPDATE = "update"


START = Role.START
UPDATE = Role.UPDATE


class Cadence(enum.IntEnum):
    """How soon people should see a change; the higher is the more urgent."""

    NONE = 0
    FRAME = 1
    NOW = 2


NONE = Cadence.NONE
FRAME = Cadence.FRAME
NOW = Cadence.NOW

UNNAMED = "*"
"""In `takes`: every event whose type no Definition names and the timeline does not read."""


class Match(Struct, frozen=True, gc=False, eq=False):
    """An event or delta that a Definition accepted."""

    position: Position
    item: Item
    role: Role

    @property
    def type(self) -> str:
        return self.item.type

    @property
    def data(self) -> Any:
        """The item's data: a read-only mapping of frozen JSON values."""
        return self.item.data

    @property
    def time(self) -> int:
        return self.item.time

    @property
    def durable(self) -> bool:
        """Whether it is an event (and not a delta)."""
        return type(self.item) is Event

    @property
    def attempt(self) -> str | None:
        """The attempt of a delta; None for an event."""
        item = self.item
        return item.attempt if type(item) is Delta else None

    def __eq__(self, other: object) -> bool:  # a State may keep Matches, and States are compared
        return self is other or (
            isinstance(other, Match)
            and self.position == other.position
            and self.role is other.role
            and self.item == other.item
        )

    def __ne__(self, other: object) -> bool:  # a Struct has one, which does not ask `==`
        return not self.__eq__(other)

    def __hash__(self) -> int:
        return hash((self.position, self.role))


class Context(Protocol):
    """All Matches of one `(kind, id)`, in position order; read-only."""

    @property
    def kind(self) -> str: ...
    @property
    def id(self) -> str: ...
    @property
    def key(self) -> str: ...
    @property
    def state(self) -> Any:
        """What the Matches fold to; None without a start."""

    @property
    def start(self) -> Match | None:
        """The earliest start."""

    @property
    def matches(self) -> Sequence[Match]:
        """O(their number) to ask for: better keep what you need in the State."""


class Reader(Protocol):
    """What `start` may look up: strictly backward, recorded, and asked again when it changes."""

    def previous(self, kind: str) -> tuple[str, Any] | None:
        """`(id, State)` of the nearest Context of `kind` that started before this one."""

    @property
    def complete(self) -> bool:
        """Whether no older history exists."""


class Scope(Protocol):
    """What `place`, `notes` and `build` may read beside their Context; every read is recorded."""

    @property
    def turn(self) -> int | None: ...
    @property
    def step(self) -> int | None: ...
    @property
    def turn_status(self) -> Status: ...
    @property
    def step_status(self) -> Status: ...
    @property
    def closed(self) -> bool:
        """Whether the step, or without a step the turn, is known to be over."""

    @property
    def live(self) -> bool | None:
        """Whether anybody still works on this conversation; None: not known."""

    @property
    def complete(self) -> bool:
        """Whether no older history exists."""

    def step_values(self, kind: str) -> Mapping[str, Any]:
        """What Contexts of `kind` published on this step (of all steps of the turn, where the
        scope has none): id -> value, in anchor order."""

    def turn_values(self, kind: str) -> Mapping[str, Any]:
        """What Contexts of `kind` published on this turn: id -> value, in anchor order."""

    def other(self, kind: str, id: str) -> Any:
        """The State of another Context, or None."""

    def has(self, kind: str, id: str) -> bool:  # the contract's word
        """Whether another Context has started; asked again only when that changes."""

    def turn_status_of(self, kind: str, id: str) -> Status | None:
        """The status of another Context's turn; None when it is not there or in no turn."""

    def unstarted(self, kind: str, id: str) -> Sequence[Match]:
        """The Matches of another Context that has no start (a result whose call is not
        loaded); empty when it has one, or is not there."""


class Node(Struct, frozen=True, gc=False, eq=False):
    """What a Context shows on one view target; immutable.

    `build` gives `kind`, `id` and `data` (a mapping of JSON values; `Text` for growing text);
    the engine sets the place: `position`, `turn`, `step`.
    """

    kind: str
    id: str
    data: Any
    key: str = ""
    position: Position = Position(0)
    turn: int | None = None
    step: int | None = None

    @property
    def anchor(self) -> tuple[int, int]:
        """`(after, index)`: where it stands."""
        return pair(self.position)

    def placed(self, position: Position, turn: int | None, step: int | None, key: str = "") -> Node:
        """This Node with frozen data at its place. `key`: its key, where it is made already."""
        key = key or f"{self.kind}:{self.id}"
        data = freeze_object(self.data, NODE_DEPTH_MAX)
        return replace(self, data=data, key=key, position=position, turn=turn, step=step)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and self.equals(other)

    def __ne__(self, other: object) -> bool:  # a Struct has one, which does not ask `==`
        return not self.__eq__(other)

    def __hash__(self) -> int:
        return hash((self.key, self.position))

    def equals(self, other: Node) -> bool:
        """All fields equal, data as JSON values."""
        return self is other or (
            self.key == other.key
            and self.position == other.position
            and self.turn == other.turn
            and self.step == other.step
            and same(self.data, other.data)
        )

    def to_json(self) -> dict[str, Any]:
        """Its wire form, as plain JSON values."""
        return {
            "key": self.key,
            "kind": self.kind,
            "id": self.id,
            "anchor": list(self.anchor),
            "turn": self.turn,
            "step": self.step,
            "data": thaw(self.data),
        }


class Anomaly(Struct, frozen=True, gc=False):
    """Something odd but survivable: `kind`, the key it is about, and where."""

    kind: str
    key: str
    position: Position

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "key": self.key, "position": list(pair(self.position))}


class Definition:
    """One kind of business object. Subclass it; an instance holds no mutable data.

    `kind` is unique and namespaces the ids. `target` is the one view it shows on, or None.
    `takes` are the event and delta types that reach `match`; `names` are further types that its
    vocabulary names although it does not take them, so that no fallback shows them. `shows` are
    the kinds of its Nodes where they differ from `kind`.
    """

    kind: ClassVar[str]
    target: str | None = None
    takes: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    shows: frozenset[str] = frozenset()

    def match(self, item: Any) -> tuple[str, Role] | None:
        """Whose item this is and in which role, read from the item alone; None: not ours."""
        raise NotImplementedError

    def start(self, match: Match, reader: Reader) -> Any:
        """The first State. `reader` may look strictly backward."""
        raise NotImplementedError

    def update(self, state: Any, match: Match) -> Any:
        """The next State (or the same object, when nothing changed)."""
        raise NotImplementedError

    def extend(self, state: Any, matches: Sequence[Match]) -> Any:
        """A run of updates at once; must equal them one by one."""
        for match in matches:
            state = self.update(state, match)
        return state

    def anchor(self, context: Context) -> Match:
        """Which Match gives the place; the default is the start, else the first Match."""
        return context.start or context.matches[0]

    def place(self, context: Context, scope: Scope) -> Any:
        """What it publishes: asked once for its step, then once for its turn (`scope.step` is
        None then). None: nothing. Compared field by field."""
        return None

    def notes(self, context: Context, scope: Scope) -> Sequence[tuple[str, Position]]:
        """What is odd about it: `(kind, position)`, entered as findings."""
        return ()

    def build(self, context: Context, scope: Scope) -> Node | None:
        """Its Node on `target`; None: not visible. `context.state` is None without a start."""
        return None

    def cadence(self, match: Match) -> Cadence:
        """How soon a change by this Match should be seen."""
        return NOW

    def retires(self, event: Event) -> str | None:
        """The name of the attempt that this event gives up; None: it gives up none."""
        return None


class Group(Struct, frozen=True, gc=False, eq=False):
    """Consecutive Nodes that are shown together.

    `members` are Node keys in view order; `data` is what its Group Definition summed up. The
    `key` is that of the group while a client is connected: it names the member that was first when
    the group was formed, so that the same history, loaded in another way, may give another one.
    """

    key: str
    kind: str
    members: tuple[str, ...]
    data: Json

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Group) and self.equals(other)

    def __ne__(self, other: object) -> bool:  # a Struct has one, which does not ask `==`
        return not self.__eq__(other)

    def __hash__(self) -> int:
        return hash((self.key, self.members))

    def equals(self, other: Group, *, keys: bool = True) -> bool:
        """Same members and data, and (unless `keys` is False) the same key."""
        mine, others = self.members, other.members
        # Tuples of other lengths are compared member by member, as long as they agree.
        return (
            (mine is others or (len(mine) == len(others) and mine == others))
            and self.kind == other.kind
            and (not keys or self.key == other.key)
            and same(self.data, other.data)
        )

    def to_json(self) -> dict[str, Any]:
        wire = {"key": self.key, "kind": self.kind, "members": list(self.members)}
        return {**wire, **thaw(self.data)}


class Members(Struct, frozen=True, gc=False, eq=False):
    """What a group is summed up from.

    `told`: how many members tell what, in no order; `first` and `last` of them; their number.
    """

    told: Mapping[Any, int]
    first: Node
    last: Node
    size: int


class GroupDefinition:
    """How consecutive Nodes of one target are kept together. Reads Nodes, never events.

    The engine calls it for what changed alone, whatever the size of the group. When nothing but
    the text of a Node grew it is asked `joins` again, and the others only if the answer is another
    one: they must not read growing text.
    """

    kind: ClassVar[str]
    target: ClassVar[str]

    def joins(self, node: Node) -> Hashable | None:
        """Neighbours with an equal bracket stand together; None: it separates."""
        raise NotImplementedError

    def tells(self, node: Node) -> Hashable | None:
        """What a member adds to the summary of its group; None: nothing. Equal answers are counted
        together, so that few different ones make a cheap summary."""
        return None

    def summary(self, members: Members) -> Mapping[str, Any]:
        """The group's data (JSON values)."""
        raise NotImplementedError
