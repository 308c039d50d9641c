"""What requests and answers look like, as types: the one place that the description of the
interface and the types of clients are made from.

The server itself encodes Snapshots and Patches once for all readers (`live.shared`); a test holds
those bytes to the types here. Not here: routes (`routes`, `openapi`).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

Json = dict[str, Any]
Name = Annotated[str, Meta(min_length=1)]
Whole = Annotated[int, Meta(gt=-(2**53), lt=2**53)]
Counted = Annotated[int, Meta(ge=0, lt=2**53)]
Milliseconds = Annotated[
    int, Meta(gt=-(2**53), lt=2**53, description="milliseconds since the Unix epoch")
]
Seq = Annotated[
    int, Meta(ge=0, lt=2**53, description="the number of an event, counted from 1; 0: none")
]


class Node(Struct, forbid_unknown_fields=True):
    """One thing that a view shows. What its `data` holds, its `kind` says."""

    key: str
    kind: str
    id: str
    anchor: Annotated[list[int], Meta(min_length=2, max_length=2)]
    turn: int | None
    step: int | None
    data: Json


class Group(Struct):
    """Consecutive Nodes that are shown together; beside these fields, what its kind adds."""

    key: str
    kind: str
    members: list[str]


class Window(Struct, forbid_unknown_fields=True):
    """Which events are loaded, and whether older ones exist."""

    first: int | None
    last: int | None
    has_more: bool


class Open(Struct, forbid_unknown_fields=True):
    """The newest turn that is open, and its newest open step."""

    turn: int
    step: int | None


class Snapshot(Struct, forbid_unknown_fields=True):
    """All that a view shows."""

    view: str
    revision: int
    nodes: list[Node]
    groups: list[Group]
    window: Window
    live: bool | None
    open: Json | None


class Put(Struct, tag_field="op", tag="put", forbid_unknown_fields=True):
    """A Node is new or changed, and stands behind the Node `after` (null: first)."""

    node: Node
    after: str | None


class Text(Struct, tag_field="op", tag="text", forbid_unknown_fields=True):
    """`text` is appended to the text at `path` of a Node, which has `at` UTF-16 units so far."""

    key: str
    path: list[str | int]
    at: int
    text: str


class Move(Struct, tag_field="op", tag="move", forbid_unknown_fields=True):
    """A Node stands behind `after` now; `anchor` is its new place."""

    key: str
    after: str | None
    anchor: Annotated[list[int], Meta(min_length=2, max_length=2)]


class Remove(Struct, tag_field="op", tag="remove", forbid_unknown_fields=True):
    """A Node is gone."""

    key: str


class PutGroup(Struct, tag_field="op", tag="put-group", forbid_unknown_fields=True):
    """A group is new or changed."""

    group: Group


class RemoveGroup(Struct, tag_field="op", tag="remove-group", forbid_unknown_fields=True):
    """A group is gone."""

    key: str


class Patch(Struct, forbid_unknown_fields=True):
    """What leads a view from one revision to another: `ops`, to be done in order."""

    view: str
    revision_from: int = field(name="from")
    revision_to: int = field(name="to")
    ops: list[Put | Text | Move | Remove | PutGroup | RemoveGroup]
    window: Window | UnsetType = UNSET
    live: bool | UnsetType | None = UNSET
    open: Json | UnsetType | None = UNSET


class End(Struct, forbid_unknown_fields=True):
    """Why the server ends a stream."""

    reason: Literal["closed", "slow", "error"]


class Entry(Struct, forbid_unknown_fields=True):
    """One conversation in a list; null: not known (yet). `fault`: why it cannot be opened."""

    conversation: str
    title: str | None
    events: int | None
    first_time: Milliseconds | None
    last_time: Milliseconds | None
    live: bool | None
    fault: str | None


class Listing(Struct, forbid_unknown_fields=True):
    """A part of the list; it goes on with `before=` `next` (null: that was all)."""

    conversations: list[Entry]
    next: str | None


class Shown(Struct, forbid_unknown_fields=True):
    """What a view shows now, and the cursor with which a stream goes on from here."""

    snapshot: Snapshot
    cursor: str
    has_more: bool


class Older(Struct, forbid_unknown_fields=True):
    """Whether still older events exist."""

    has_more: bool


class Draft(Struct, forbid_unknown_fields=True):
    """An event that has no number yet."""

    type: Name
    data: Json = {}
    time: Milliseconds = 0
    id: Name | None = None
    v: Annotated[int, Meta(ge=1, lt=2**53)] = 1


class Event(Struct):
    """A durable fact; beside these fields, those that a later version wrote."""

    seq: Seq
    type: str
    time: Milliseconds
    data: Json
    id: str | UnsetType = UNSET
    v: int | UnsetType = UNSET


class Delta(Struct, forbid_unknown_fields=True):
    """A transient piece of one attempt; its place (`after`, `index`, `time`) the server says."""

    attempt: Name
    turn: Whole
    step: Whole
    type: Name
    data: Json = {}
    number: Counted = 1
    ordinal: Counted = 0
    after: Seq = 0
    index: Annotated[int, Meta(ge=1, lt=2**32)] = 1
    time: Milliseconds = 0


class Appending(Struct, forbid_unknown_fields=True):
    """Drafts to be stored behind event `expected_seq`, all or none."""

    drafts: list[Draft]
    expected_seq: Seq


class Appended(Struct, forbid_unknown_fields=True):
    """An event for each draft."""

    events: list[Event]


class Emitting(Struct, forbid_unknown_fields=True):
    """Deltas to be shown."""

    deltas: list[Delta]


class Settling(Struct, forbid_unknown_fields=True):
    """How an attempt ended."""

    attempt: Name
    outcome: Literal["completed", "failed", "interrupted", "abandoned"]


class Taken(Struct, forbid_unknown_fields=True):
    """How many were taken."""

    taken: int


class Problem(Struct, forbid_unknown_fields=True):
    """What is wrong with a request. `expected` and `actual` are there in a conflict."""

    code: str
    message: str
    expected: Any | UnsetType = UNSET
    actual: Any | UnsetType = UNSET


class Refusal(Struct, forbid_unknown_fields=True):
    """The body of every answer that is none of 2xx."""

    error: Problem


class Health(Struct, forbid_unknown_fields=True):
    """That the server answers, and what it is busy with."""

    status: Literal["ok"]
    version: str
    rooms: int
    readers: int
    streams: int
    views: list[str]
    writable: bool
