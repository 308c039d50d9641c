"""What of a view a client may see: the Nodes by key, without hidden tools, and what changed.

Every encoder reads its view through this, or through the functions here: one filter of tools, one
rule for when a turn is over, one reading of what was added to a text. Not here: what any protocol
says of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping
from typing import Any, NamedTuple

from assembler.codec import encode
from assembler.engine.definition import Node
from assembler.engine.events import Position
from assembler.engine.patches import Patch, Put, Remove, Snapshot, TextOp, grown
from assembler.engine.values import Json, Object, Text, same, thaw
from definitions.arguments import InvalidArguments, complete, same_json

__all__ = [
    "Change",
    "Part",
    "Shown",
    "added",
    "added_text",
    "changes_of",
    "final_arguments",
    "is_unseen",
    "means_same",
    "ops_of",
    "parts_of",
    "spot",
    "text_of",
]


def is_unseen(name: str | None, hidden: Collection[str]) -> bool:
    """Whether a tool makes no frame. One without a name may be hidden: silent until it is known."""
    return name is None or name in hidden


def changes_of(
    ops: Iterable[Any],
    nodes: Mapping[str, Node],
    kinds: Container[str],
    heeds: Callable[[Node, TextOp], bool],
) -> tuple[list[str], dict[str, Node]]:
    """Which Nodes of these kinds went, and which are there new or changed; one that came again is
    in both. `heeds` says whether a text that grew is looked at. O(ops)."""
    gone: dict[str, None] = {}
    changed: dict[str, Node] = {}
    for op in ops:
        if type(op) is Put:
            if op.node.kind in kinds:
                changed[op.key] = op.node
        elif type(op) is Remove:
            changed.pop(op.key, None)
            gone[op.key] = None
        elif type(op) is TextOp:
            node = changed.get(op.key) or nodes.get(op.key)
            if node is not None and heeds(node, op):
                changed[op.key] = grown(node, op)
    return list(gone), changed


def ops_of(update: Snapshot | Patch, known: Iterable[str]) -> Iterable[Any]:
    """A Snapshot is a Patch from what is known: what is not in it went, the rest is put."""
    if isinstance(update, Patch):
        return update.ops
    keys = {node.key for node in update.nodes}
    removed = [Remove(key) for key in known if key not in keys]
    return [*removed, *(Put(node, None) for node in update.nodes)]


def spot(node: Node) -> tuple[Position, str]:
    """Where a Node stands in its view, for sorting."""
    return node.position, node.key


# -- texts ---------------------------------------------------------------------------------


def added(old: Json, new: Json) -> str | None:
    """What a block has behind an older one; None when it is no continuation. O(added), mostly."""
    if type(old) is not Object or type(new) is not Object:
        return None
    if old.get("type") != new.get("type"):
        return None
    before, after = old.get("text"), new.get("text")
    if type(before) in (str, Text) and type(after) in (str, Text):
        return added_text(before, after)
    return "" if same(old, new) else None


def added_text(before: Any, after: Any) -> str | None:
    """Give what a text has behind an older one; None when it is no continuation."""
    if before is after:
        return ""
    if type(before) is Text and type(after) is Text:
        suffix = after.suffix_of(before)
        if suffix is not None:
            return suffix
    start, whole = str(before), str(after)
    return whole[len(start) :] if whole.startswith(start) else None


def text_of(content: Json) -> str:
    """Give the text of a list of blocks, one behind the other: texts, values as JSON, addresses of
    files. What has none is left out."""
    if type(content) is not tuple:
        return ""
    said = (_said(block) for block in content if type(block) is Object)
    return "\n".join(str(text) for text in said if text)


def _said(block: Object) -> Any:
    kind = block.get("type")
    if kind in ("text", "reasoning"):
        text = block.get("text")
        return text if type(text) in (str, Text) else ""
    if kind == "json":
        return encode(block.get("value")).decode()
    url = block.get("url") if kind == "file" else None
    return url if type(url) is str else ""


class Part(NamedTuple):
    """One block of an answer, as far as it has come."""

    id: str
    """`turn.step.number`, the same on every way to it."""
    kind: str
    """`text`, `reasoning`, `file`."""
    text: Any
    """A `str` or `Text`; the block itself of a file."""
    is_done: bool


def parts_of(node: Node) -> list[Part]:
    """Give the blocks of an answer that have something to say."""
    blocks = node.data["blocks"]
    runs = node.data["status"] == "running"
    parts = []
    for at, block in enumerate(blocks):
        if type(block) is not Object:
            continue
        is_done = not runs or at < len(blocks) - 1
        kind = block.get("type")
        if kind == "file":
            parts.append(Part(f"{node.id}.{at}", "file", block, is_done))
        elif said := _said(block):
            kind = "reasoning" if kind == "reasoning" else "text"
            parts.append(Part(f"{node.id}.{at}", kind, said, is_done))
    return parts


# -- arguments -----------------------------------------------------------------------------


def final_arguments(data: Object) -> Any:
    """The text of the arguments of a call; once it is dispatched, of those that it runs with."""
    text = data["arguments_text"] or ""
    if data["arguments"] is None or means_same(text, data["arguments"]):
        return text
    return encode(data["arguments"]).decode()


def means_same(text: Any, value: Json) -> bool:
    """Whether a text is this object, as JSON."""
    try:
        return same_json(complete(str(text)), thaw(value))
    except InvalidArguments:
        return False


# -- the view ------------------------------------------------------------------------------

_USED = frozenset(
    {
        "assistant",
        "command",
        "compaction",
        "permission",
        "retry",
        "steering",
        "tool",
        "turn-error",
        "turn-limit",
        "turn-tail",
        "user",
    }
)
_PERSON = frozenset({"user", "steering"})


class Change(NamedTuple):
    """What an update changed."""

    lost: list[Node]
    """What must be forgotten: it was prepared or being said, and was given up."""
    changed: list[Node]
    """What is new or other, in View order. A call also when its permission or its turn changed."""


class Shown:
    """What a client may see of one view, kept up to date by `take`.

    What is merely out of sight (evicted) stays, as it does on the client.
    """

    def __init__(self, hidden: Collection[str]) -> None:
        self._hidden = frozenset(hidden)
        self.nodes: dict[str, Node] = {}
        self.names: dict[str, str] = {}
        """Of calls that are shown, by their ids."""
        self.closed = -1
        """The highest turn that is known to be over: its tail is shown, or a later one is open."""
        self.turn: int | None = None
        self.step: int | None = None
        """What is open now."""
        self._asked: dict[str, dict[str, Node]] = {}
        self._unseen: set[str] = set()
        """The ids of calls of hidden tools."""
        self._calls: dict[str, None] = {}
        """Keys of the calls without a result."""
        self._first: int | None = None

    def take(self, update: Snapshot | Patch) -> Change:
        """Take over an update. O(what changed)."""
        gone, changed = self._read(ops_of(update, self.nodes))
        page_end = self._begin_at(update.window)
        before = self.closed
        self._open(update.open, changed)
        lost = []
        for key in gone:
            node = self.nodes.get(key)
            if node is not None and key not in changed and _is_tentative(node):
                lost.append(self._forget(key))
        touched = [key for node in changed.values() for key in self._hear(node)]
        for node in changed.values():
            if self._is_to_see(node, page_end):
                self._keep(node)
                touched.append(node.key)
            elif node.kind == "tool" and node.key in self.nodes:
                lost.append(self._forget(node.key))
        if self.closed != before:
            touched += [key for key in self._calls if self.is_closed(self.nodes[key])]
        seen = {key: self.nodes[key] for key in touched if key in self.nodes}
        return Change(lost, sorted(seen.values(), key=spot))

    def is_closed(self, node: Node) -> bool:
        """Whether the turn of a Node is over."""
        return node.turn is not None and node.turn <= self.closed

    def is_unsettled(self, node: Node) -> bool:
        """Whether a call that was dispatched will not be told a result any more."""
        return node.data["stage"] == "start" and self.is_closed(node)

    def question(self, call_id: str) -> Node | None:
        """The newest permission that was asked for a call."""
        asked = self._asked.get(call_id)
        return max(asked.values(), key=spot) if asked else None

    def waiting(self, calls: Iterable[str]) -> frozenset[str]:
        """The keys of the permissions that everything waits for, of these calls that are not over;
        none while anything goes on."""
        answer = self.nodes.get(f"assistant:{self.turn}.{self.step}")
        if answer is not None and answer.data["status"] == "running":
            return frozenset()
        known = [self.nodes[f"tool:{call_id}"].data for call_id in calls]
        if any(data["stage"] != "start" or data["waiting"] is None for data in known):
            return frozenset()
        return frozenset(data["waiting"] for data in known)

    def parent(self, node: Node) -> str | None:
        """The call that a call was made in, unless that is hidden."""
        parent: str | None = node.data["parent"]
        return None if parent in self._unseen else parent

    def _read(self, ops: Iterable[Any]) -> tuple[list[str], dict[str, Node]]:
        # What a running tool prints is not told: it comes whole with the result.
        return changes_of(ops, self.nodes, _USED, lambda _, op: op.path[1:2] != ("output",))

    def _begin_at(self, window: Any) -> int:
        """When a page was put before the window, gives where that page ends, else 0."""
        old = self._first
        if "first" in window:
            self._first = window["first"]
        return old if old and self._first and self._first < old else 0

    def _open(self, open_now: Any, changed: dict[str, Node]) -> None:
        for node in changed.values():
            if node.kind == "turn-tail" and node.turn is not None:
                self.closed = max(self.closed, node.turn)
        if open_now is None:
            self.turn = self.step = None
        elif type(open_now) is Object and "turn" in open_now:
            self.turn, self.step = open_now["turn"], open_now["step"]
            self.closed = max(self.closed, open_now["turn"] - 1)

    def _hear(self, node: Node) -> list[str]:
        """Take over a permission; gives the key of its call."""
        if node.kind != "permission":
            return []
        call_id = node.data["call_id"]
        self._asked.setdefault(call_id, {})[node.key] = node
        return [f"tool:{call_id}"]

    def _is_to_see(self, node: Node, page_end: int) -> bool:
        """Whether a Node is shown. What is over and comes with an older page is not: no protocol
        can put it before what is there; it comes with a reload."""
        if node.kind == "permission":
            return False
        if node.kind == "tool":
            name = node.data["name"] or self.names.get(node.id)
            if is_unseen(name, self._hidden):
                if name is not None:
                    self._unseen.add(node.id)
                return False
        is_past = node.key not in self.nodes and node.anchor[0] < page_end
        return not (is_past and self._is_settled(node))

    def _is_settled(self, node: Node) -> bool:
        if node.kind == "tool":
            return node.data["stage"] == "result" or self.is_closed(node)
        return node.kind != "assistant" or node.data["status"] != "running"

    def _forget(self, key: str) -> Node:
        self._calls.pop(key, None)
        return self.nodes.pop(key)

    def _keep(self, node: Node) -> None:
        self.nodes[node.key] = node
        if node.kind in _PERSON:
            # It is one message also when it turns out to be the other kind.
            for kind in _PERSON - {node.kind}:
                self.nodes.pop(f"{kind}:{node.id}", None)
        if node.kind != "tool":
            return
        if node.data["name"]:
            self.names[node.id] = node.data["name"]
        if node.data["stage"] == "result":
            self._calls.pop(node.key, None)
        else:
            self._calls[node.key] = None


def _is_tentative(node: Node) -> bool:
    """Whether a Node that goes was given up. Everything else that goes is only out of sight."""
    if node.kind == "tool":
        return bool(node.data["stage"] == "preparing")
    return node.kind == "assistant" and node.data["status"] == "running"
