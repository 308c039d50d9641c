"""ACP: `session/update` frames for editors, from what the `chat` view shows.

    preparing          `tool_call`, `pending`, `rawInput {}`, `_meta.phase` `preparing`
    waits for leave    `pending`, with its complete `rawInput`
    runs               `in_progress`, with its complete `rawInput`
    has its result     `completed` or `failed`
    never had one      `failed`, `_meta.unsettled`, when its turn is closed
    was given up       `failed`, `content []`, `_meta.preparationDiscarded`: remove the card

The first frame of a call is a `tool_call`, every other one a `tool_call_update`. Behind a terminal
frame nothing is sent, except that a call whose preparation was given up may come again. What a
frame says is read off the Node; kept is only what a client was told (`_Card`, `_Said`).

ACP takes no text back. Text that was given up stays with the client, and what comes in its place is
a new message: a `messageId` of its own. Not here: what ACP calls things (`acp_words`), permission
requests (they are asked, not told), plans, sockets.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from assembler.engine.definition import Node
from assembler.engine.patches import Patch, Snapshot
from assembler.engine.values import NODE_DEPTH_MAX, Json, Object, freeze_object, same, thaw
from definitions.protocols.acp_words import (
    block_of,
    blocks_of,
    kind_of,
    locations_of,
    output_of,
    title_of,
)
from definitions.protocols.frames import Frame
from definitions.protocols.shown import added, changes_of, is_unseen, ops_of, spot

__all__ = ["Acp"]

Attached = Callable[[Node], Mapping[str, Any]]

_PERSON = frozenset({"user", "steering"})
_SHOWN = frozenset({"tool", "permission", "assistant", "turn-tail", *_PERSON})
_NOT_ALLOWED = frozenset({"pending", "deny", "withdrawn"})


class _Card:
    """What a client was told of a call that is not over: its name, and the fields sent last."""

    __slots__ = ("name", "node", "sent")

    def __init__(self, name: str, node: Node, sent: Frame) -> None:
        self.name = name
        self.node = node
        self.sent = sent


class _Said:
    """What a client was told of one block: the block, and which message for it this is."""

    __slots__ = ("block", "number", "spoken")

    def __init__(self) -> None:
        self.block: Json = None
        self.number = 1
        self.spoken = False

    def say(self, block: Json) -> dict[str, Any] | None:
        """Give the ContentBlock of what was added; where it is no longer what was said, of all of
        it, and that is another message. None when nothing is new."""
        old, self.block = self.block, block
        if old is block:
            return None
        more = added(old, block)
        if more is None and self.spoken:
            self.number += 1
            self.spoken = False
        fresh = block_of(block) if more is None else {"type": "text", "text": more}
        if fresh is None or more == "":
            return None
        self.spoken = True
        return fresh


class Acp:
    """Says in ACP what a view shows; the `update` objects of `session/update` (`Encoder`).

    `hidden` are names of tools that make no frame at any stage. `meta` gives what the backend
    attached to a call, for `_meta`; it must not raise. `cwd` is put before relative paths in
    `locations`. A client shows by itself what was typed there: messages of persons are sent when it
    comes (of the first Snapshot), and later only with `echo` (others type as well).

    `feed` costs what changed.
    """

    def __init__(
        self,
        *,
        hidden: Collection[str] = (),
        meta: Attached | None = None,
        cwd: str | None = None,
        echo: bool = False,
    ) -> None:
        self._hidden = frozenset(hidden)
        self._attached = meta
        self._cwd = cwd
        self._echo = echo
        self._nodes: dict[str, Node] = {}
        self._cards: dict[str, _Card] = {}
        self._over: set[str] = set()
        """The ids of the calls that got their terminal frame."""
        self._said: dict[str, list[_Said]] = {}
        self._asked: dict[str, dict[str, Node]] = {}
        self._closed = -1
        """The highest turn that is known to be closed."""
        self._begun = False
        self._first: int | None = None
        """Where the window begins; None: nothing is loaded."""

    @staticmethod
    def notification(session_id: str, update: Frame) -> Frame:
        """The whole JSON-RPC message around an update."""
        params = {"sessionId": session_id, "update": update}
        return {"jsonrpc": "2.0", "method": "session/update", "params": params}

    def feed(self, update: Snapshot | Patch) -> list[Frame]:
        """The updates that a client needs now: removals first, the rest in View order."""
        echo = self._echo or (not self._begun and isinstance(update, Snapshot))
        self._begun = True
        gone, changed = self._read(ops_of(update, self._nodes))
        page_end = self._begin_at(update.window)
        frames = self._remove(gone, changed)
        new = changed.keys() - self._nodes.keys()
        self._nodes.update(changed)
        touched = dict(changed)
        for node in (*self._take_permissions(changed), *self._close(update.open, changed)):
            touched.setdefault(node.key, node)
        for node in sorted(touched.values(), key=spot):
            is_past = node.key in new and node.anchor[0] < page_end and node.id not in self._cards
            said = self._tell(node, echo=echo)
            if not (is_past and self._is_settled(node)):
                frames += said
        return frames

    # -- reading -----------------------------------------------------------------------------

    def _read(self, ops: Iterable[Any]) -> tuple[list[str], dict[str, Node]]:
        # Of the growing texts of a call, its arguments and its output, no frame speaks.
        return changes_of(ops, self._nodes, _SHOWN, lambda node, _: node.kind != "tool")

    def _begin_at(self, window: Any) -> int:
        """Take over where the window begins. When a page was put before it, gives where that page
        ends, else 0. ACP cannot show it before what is there: it stays with the reload."""
        old = self._first
        if "first" in window:
            self._first = window["first"]
        return old if old and self._first and self._first < old else 0

    def _take_permissions(self, changed: dict[str, Node]) -> list[Node]:
        """Take over what is asked about calls; gives the Nodes of those calls."""
        calls = {}
        for node in changed.values():
            if node.kind == "permission":
                call_id = node.data["call_id"]
                self._asked.setdefault(call_id, {})[node.key] = node
                calls[call_id] = self._nodes.get(f"tool:{call_id}")
        return [node for node in calls.values() if node is not None]

    def _close(self, open_now: Any, changed: dict[str, Node]) -> list[Node]:
        """Take over which turns are closed; gives the calls, not over yet, that this is news to."""
        before = self._closed
        for node in changed.values():
            if node.kind == "turn-tail" and node.turn is not None:
                self._closed = max(self._closed, node.turn)
        if type(open_now) is Object and "turn" in open_now:
            self._closed = max(self._closed, open_now["turn"] - 1)
        if self._closed == before:
            return []
        return [card.node for card in self._cards.values() if self._is_closed(card.node)]

    def _is_closed(self, node: Node) -> bool:
        return node.turn is not None and node.turn <= self._closed

    # -- calls -------------------------------------------------------------------------------

    def _remove(self, gone: list[str], changed: dict[str, Node]) -> list[Frame]:
        """Withdraw preparations that went. A dispatched call that went is only out of sight."""
        frames = []
        for key in gone:
            node = self._nodes.pop(key, None)
            card = self._cards.get(node.id) if node is not None and node.kind == "tool" else None
            now = changed.get(key)
            if card is None or card.node.data["stage"] != "preparing":
                continue
            if now is None or now.data["stage"] == "preparing":
                frames.append(self._discard(card))
        return frames

    def _discard(self, card: _Card) -> Frame:
        del self._cards[card.node.id]
        meta = self._meta(card.node, card.name, phase="preparing", preparationDiscarded=True)
        fields = {"status": "failed", "content": [], "_meta": meta}
        return _frame("tool_call_update", card.node.id, fields)

    def _tell(self, node: Node, *, echo: bool) -> list[Frame]:
        """What is new in a Node."""
        if node.kind == "tool":
            return self._tell_call(node)
        if node.kind == "assistant":
            return self._tell_answer(node)
        return self._tell_input(node, echo=echo) if node.kind in _PERSON else []

    def _tell_call(self, node: Node) -> list[Frame]:
        if node.id in self._over:
            return []
        card = self._cards.get(node.id)
        name = node.data["name"] or (card.name if card else None)
        if name is None or is_unseen(name, self._hidden):
            # A result without its call may be that of a hidden tool: silent until it is known.
            return [self._discard(card)] if card is not None and name is not None else []
        end = self._end(node, name)
        frames = []
        if card is None:
            card = self._cards[node.id] = _Card(name, node, self._fields(node, name))
            frames.append(_frame("tool_call", node.id, card.sent))
        else:
            card.name, card.node = name, node
            if end is None or node.data["started"] is not None:
                frames += self._changes(card)
        if end is not None:
            frames.append(end)
            self._over.add(node.id)
            self._asked.pop(node.id, None)
            del self._cards[node.id]
        return frames

    def _changes(self, card: _Card) -> list[Frame]:
        """One update of what differs from what was sent; none when nothing does."""
        old, new = card.sent, self._fields(card.node, card.name)
        if same(old, new):
            return []
        card.sent = new
        kept = {"status", "_meta"}
        if old["status"] != new["status"]:
            kept.add("rawInput")
        fields = {
            field: value
            for field, value in new.items()
            if field in kept or field not in old or not same(old[field], value)
        }
        if "locations" in old and "locations" not in new:
            fields["locations"] = []
        return [_frame("tool_call_update", card.node.id, fields)]

    def _fields(self, node: Node, name: str) -> Frame:
        """What is said of a call that is not over, as frozen values: equal ones cost nothing."""
        data = node.data
        dispatched = data["started"] is not None
        runs = dispatched and data["waiting"] is None and not self._is_refused(node.id)
        fields: Frame = {
            "title": title_of(name, data["row"], complete=dispatched),
            "kind": kind_of(name),
            "status": "in_progress" if runs else "pending",
            "rawInput": _arguments(data) if dispatched else self._asked_input(node.id),
        }
        places = locations_of(name, data["arguments"], self._cwd)
        if places:
            fields["locations"] = places
        phase = {"phase": "preparing"} if data["stage"] == "preparing" else {}
        fields["_meta"] = self._meta(node, name, **phase)
        return fields

    def _end(self, node: Node, name: str) -> Frame | None:
        """The terminal frame of a call; None when it is not over."""
        data = node.data
        if data["stage"] == "result":
            content = [{"type": "content", "content": said} for said in blocks_of(data["content"])]
            output = output_of(data)
            said = {} if output is None else {"rawOutput": output}
            status = "completed" if data["outcome"] == "succeeded" else "failed"
            meta = self._meta(node, name)
            fields = {"status": status, "content": content, **said, "_meta": meta}
            return _frame("tool_call_update", node.id, fields)
        out_of_sight = data["stage"] == "start" and node.key not in self._nodes
        if not (self._is_closed(node) and (data["outcome"] == "unsettled" or out_of_sight)):
            return None
        meta = self._meta(node, name, unsettled=True)
        return _frame("tool_call_update", node.id, {"status": "failed", "_meta": meta})

    def _meta(self, node: Node, name: str, **ours: Any) -> dict[str, Any]:
        """What the backend attached, and ours beside it."""
        parent = node.data["parent"]
        meta = {} if parent is None else {"parentToolCallId": parent}
        attached = {} if self._attached is None else self._attached(node)
        return {**meta, **attached, **ours, "toolName": name}

    def _newest_question(self, call_id: str) -> Node | None:
        asked = self._asked.get(call_id)
        return max(asked.values(), key=spot) if asked else None

    def _is_refused(self, call_id: str) -> bool:
        """Whether it was asked for and not allowed."""
        question = self._newest_question(call_id)
        return question is not None and question.data["decision"] in _NOT_ALLOWED

    def _asked_input(self, call_id: str) -> Json:
        """The input that people are, or were, asked about; `{}` when nobody asked."""
        question = self._newest_question(call_id)
        return {} if question is None else question.data["input"]

    # -- messages ----------------------------------------------------------------------------

    def _tell_answer(self, node: Node) -> list[Frame]:
        """What its blocks say that was not said yet."""
        blocks = node.data["blocks"]
        said = self._said.setdefault(node.key, [])
        said += [_Said() for _ in blocks[len(said) :]]
        frames = []
        for at, (told, block) in enumerate(zip(said, blocks, strict=False)):
            fresh = told.say(block)
            if fresh is None:
                continue
            again = f"~{told.number}" if told.number > 1 else ""
            is_thought = type(block) is Object and block.get("type") == "reasoning"
            kind = "agent_thought_chunk" if is_thought else "agent_message_chunk"
            frames.append(_chunk(kind, f"{node.id}.{at}{again}", fresh))
        return frames

    def _tell_input(self, node: Node, *, echo: bool) -> list[Frame]:
        """What a person said, once. Without `echo` their client has it already."""
        key = f"user:{node.id}"
        if key in self._said:
            return []
        self._said[key] = []
        if not echo:
            return []
        contents = blocks_of(node.data["content"])
        return [_chunk("user_message_chunk", node.id, content) for content in contents]

    def _is_settled(self, node: Node) -> bool:
        if node.kind == "tool":
            return node.id not in self._cards
        return node.kind != "assistant" or node.data["status"] != "running"


def _arguments(data: Json) -> Json:
    """The complete arguments of a dispatched call; their text, when they are no object."""
    if data["arguments"] is not None:
        return data["arguments"]
    return str(data["arguments_text"] or "") or {}


def _frame(kind: str, call_id: str, fields: Frame) -> Frame:
    """A frame of a call, which shares nothing with what is kept."""
    return {
        "sessionUpdate": kind,
        "toolCallId": call_id,
        **thaw(freeze_object(fields, NODE_DEPTH_MAX)),
    }


def _chunk(kind: str, message_id: str, content: dict[str, Any]) -> Frame:
    return {"sessionUpdate": kind, "messageId": message_id, "content": content}
