"""AI SDK: chunks of the UI message stream, from what the `chat` view shows.

    a turn             one message, `start` to `finish`, `abort` or `error`
    a step             `start-step` to `finish-step`
    preparing          `tool-input-start`, `tool-input-delta` as it comes
    runs               `tool-input-available`
    waits for leave    `tool-approval-request`, then `tool-approval-response`
    has its result     `tool-output-available`, `-error`, `-denied`; `tool-input-error`
    never had one      `tool-output-error`, `toolMetadata.unsettled`, when its turn is closed
    was given up       `reset-step`, and what is left of the step again
    all wait for leave `finish`, so that a client may answer; the message goes on with `start`

The stream only adds, but for `reset-step`, which empties the last step. What went in a step that is
past stays with the client. Kept is only what a client was told: what is open, and how far. A stream
says nothing of what persons typed. Not here: what the AI SDK calls things (`ai_sdk_words`),
sockets.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal

from assembler.codec import encode
from assembler.engine.definition import Node
from assembler.engine.patches import Patch, Snapshot
from assembler.engine.values import Json, Object, freeze_object, same, thaw
from definitions.protocols.ai_sdk_words import (
    DATA,
    end_of,
    error_text,
    file_of,
    is_denied,
    output_of,
    steering_of,
)
from definitions.protocols.frames import Frame
from definitions.protocols.shown import Part, Shown, added_text, parts_of, spot

__all__ = ["AiSdk"]

_ANSWERS = ("allow", "deny")
_NO_STEP = (-1, -1)

Attached = Callable[[Node], Mapping[str, Any]]


class _Text:
    """What a client was told of a block: how far, which part for it this is, whether it is open."""

    __slots__ = ("is_open", "kind", "number", "text")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.text: Any = ""
        self.number = 1
        self.is_open = False


class _Call:
    """What a client was told of a call."""

    __slots__ = ("answered", "asked", "has_input", "input", "is_over", "name", "text")

    def __init__(self, name: str) -> None:
        self.name = name
        self.text: Any = None
        """Of its arguments, while they come; None before they do."""
        self.has_input = False
        self.input: Json = None
        self.asked: str | None = None
        self.answered = False
        self.is_over = False


class AiSdk:
    """Says as chunks of a UI message stream what a view shows (`Encoder`).

    `hidden` are names of tools that make no frame at any stage. `tells` is what a client is told of
    the first Snapshot: `all` turns; only the `newest` (it has the others: what `useChat` resumes);
    `nothing` (it has everything and goes on from there: it sent what it was asked for). `meta`
    gives what the backend attached to a call, for `toolMetadata`; it must not raise. With `dynamic`
    calls are of tools that the client has no types for.

    `feed` costs what changed; when something was taken back, what the step holds.
    """

    HEADERS: Mapping[str, str] = {
        "content-type": "text/event-stream",
        "cache-control": "no-cache",
        "x-vercel-ai-ui-message-stream": "v1",
        "x-accel-buffering": "no",
    }
    DONE = b"data: [DONE]\n\n"
    """What ends a response."""

    def __init__(
        self,
        *,
        hidden: Collection[str] = (),
        tells: Literal["all", "newest", "nothing"] = "all",
        meta: Attached | None = None,
        dynamic: bool = False,
    ) -> None:
        self._shown = Shown(hidden)
        self._tells: str = tells
        self._attached = meta
        self._dynamic = dynamic
        self._is_first = True
        self._ended = -1
        """The highest turn whose end the client knows: it is no news."""
        self._floor = -1
        """The highest turn that nothing is told of."""
        self._turn: int | None = None
        """The turn of the open message."""
        self._top: int | None = None
        """The turn of the newest message."""
        self._step: tuple[int, int] | None = None
        self._is_in_step = False
        self._texts: dict[str, _Text] = {}
        self._talking: dict[str, None] = {}
        """Those of them that are open."""
        self._of_node: dict[str, list[str]] = {}
        """The texts that were told of an answer, by its key."""
        self._calls: dict[str, _Call] = {}
        self._going: set[str] = set()
        """The ids of the calls that were told and are not over."""
        self._heard: set[str] = set()
        """The keys of other Nodes that were told."""
        self._in_step: dict[str, None] = {}
        """The keys of what was told since the last step began: what `reset-step` takes away."""
        self._waits: frozenset[str] = frozenset()
        """The permissions that the message was finished for."""
        self._frames: list[Frame] = []

    def respond(self, *, asked: bool) -> None:
        """One response follows, which ends with its message: to a client that `asked` and has
        everything, unless it came while a message was open; or to one that resumes."""
        self._tells = "what is open" if asked else "newest"

    @staticmethod
    def is_last(frame: Frame) -> bool:
        """Whether a chunk ends a response. What is `error` has its `finish` behind it."""
        return frame["type"] in ("finish", "abort")

    @staticmethod
    def sse(frame: Frame) -> bytes:
        """A chunk as a server sends it (`HEADERS`); behind the last one comes `DONE`."""
        return b"data: " + encode(frame) + b"\n\n"

    def feed(self, update: Snapshot | Patch) -> list[Frame]:
        """The chunks that a client needs now, in order."""
        change = self._shown.take(update)
        self._frames = []
        is_silent = self._come(update)
        nodes = change.changed
        broken = [node for node in nodes if not self._goes_on(node)]
        if any(node.key in self._in_step for node in (*change.lost, *broken)):
            nodes = self._reset(nodes)
        for node in change.lost:
            self._forget(node)
        for node in nodes:
            self._tell(node)
        self._rest()
        frames, self._frames = self._frames, []
        if self._tells == "what is open":
            self._tells, is_silent = "newest", self._turn is None
        return [] if is_silent else frames

    def _come(self, update: Snapshot | Patch) -> bool:
        """The client comes. Whether nothing is told now."""
        is_first, self._is_first = self._is_first, False
        if not (is_first and isinstance(update, Snapshot)):
            return False
        self._ended = self._shown.closed
        if self._tells in ("newest", "what is open"):
            turns = [node.turn for node in self._shown.nodes.values() if node.turn is not None]
            self._floor = (self._shown.turn or max(turns, default=0)) - 1
        return self._tells == "nothing"

    def _send(self, kind: str, **fields: Any) -> None:
        self._frames.append({"type": kind, **fields})

    # -- messages and steps ------------------------------------------------------------------

    def _begin(self, turn: int) -> None:
        if turn != self._top:
            self._in_step, self._step = {}, None
        self._turn = self._top = turn
        self._waits = frozenset()
        self._send("start", messageId=f"turn-{turn}")

    def _finish(self, *, waits: bool = False) -> None:
        turn, self._turn = self._turn, None
        if turn is None:
            return
        for name in [*self._talking]:
            self._close_text(name, self._texts[name])
        self._leave_step()
        nodes = self._shown.nodes
        if waits:
            self._send("finish", finishReason="tool-calls")
            return
        if turn > self._shown.closed:
            self._send("finish", finishReason="other")
            return
        tail, error = nodes.get(f"turn-tail:{turn}"), nodes.get(f"turn-error:{turn}")
        step = self._step[1] if self._step is not None else None
        answer = nodes.get(f"assistant:{turn}.{step}")
        stop = None if answer is None else answer.data["stop_reason"]
        self._frames += end_of(tail, error, stop, is_news=turn > self._ended)
        self._ended = max(self._ended, turn)

    def _enter_step(self, step: tuple[int, int]) -> None:
        if self._step == step:
            return
        self._leave_step()
        self._step, self._is_in_step, self._in_step = step, True, {}
        self._send("start-step")

    def _leave_step(self) -> None:
        if self._is_in_step:
            self._is_in_step = False
            self._send("finish-step")

    def _enter(self, node: Node) -> bool:
        """Be where a Node is told, in the message of its turn; False: it is past."""
        turn = node.turn if node.turn is not None else self._turn or self._shown.turn or 0
        if turn <= self._floor or turn < (self._top or 0):
            return False
        if self._turn is not None and turn > self._turn:
            self._finish()
        if self._turn is None:
            self._begin(turn)
        if node.step is not None and (turn, node.step) > (self._step or _NO_STEP):
            self._enter_step((turn, node.step))
        return True

    def _rest(self) -> None:
        """Be where the view is: in the open turn and step, or in none."""
        shown = self._shown
        if self._turn is not None and self._is_over(self._turn):
            self._finish()
        if shown.turn is None or self._is_waiting():
            return
        if self._turn is None:
            self._begin(shown.turn)
        if shown.step is None:
            self._leave_step()
        elif (shown.turn, shown.step) > (self._step or _NO_STEP):
            self._enter_step((shown.turn, shown.step))
        waits = shown.waiting(self._going)
        if waits:
            self._finish(waits=True)
            self._waits = waits

    def _is_over(self, turn: int) -> bool:
        """Whether a message is: its turn is, or nobody knows of one and nothing is open."""
        if turn <= self._shown.closed:
            return True
        return self._shown.turn is None and not self._going and not self._talking

    def _is_waiting(self) -> bool:
        is_asked = self._turn is None and bool(self._waits)
        return is_asked and self._shown.waiting(self._going) == self._waits

    # -- what continues ----------------------------------------------------------------------

    def _goes_on(self, node: Node) -> bool:
        """Whether what is there continues what was told."""
        if node.kind == "tool":
            call = self._calls.get(node.id)
            if call is None or call.is_over:
                return True
            if call.name != self._shown.names[node.id]:
                return False
            is_growing = node.data["stage"] == "preparing" and not call.has_input
            return not is_growing or _more(call, node) is not None
        if node.kind != "assistant" or node.key not in self._of_node:
            return True
        parts = {part.id: part for part in parts_of(node)}
        return all(
            name in parts and _continues(self._texts[name], parts[name])
            for name in self._of_node[node.key]
        )

    def _reset(self, changed: list[Node]) -> list[Node]:
        """Empty the last step. Gives what is to be told then, in View order."""
        if self._turn is None:
            self._begin(self._top or 0)
        self._send("reset-step")
        keys, self._in_step = self._in_step, {}
        left = {node.key: node for node in changed}
        for key in keys:
            node = self._shown.nodes.get(key)
            if node is not None:
                self._forget(node)
                left[key] = node
        return sorted(left.values(), key=spot)

    def _forget(self, node: Node) -> None:
        """What was told of a Node is no more."""
        if node.kind == "tool":
            self._calls.pop(node.id, None)
            self._going.discard(node.id)
        for name in self._of_node.pop(node.key, ()):
            del self._texts[name]
            self._talking.pop(name, None)
        self._heard.discard(node.key)

    # -- telling what is new -----------------------------------------------------------------

    def _tell(self, node: Node) -> None:
        if node.kind == "tool":
            self._tell_call(node)
        elif node.kind == "assistant":
            self._tell_answer(node)
        elif node.kind == "steering" and node.key not in self._heard and self._enter(node):
            self._hear(node)
            self._frames.append(steering_of(node))
        elif node.kind in DATA and node.turn is not None and self._enter(node):
            self._hear(node)
            self._send(f"data-{node.kind}", id=node.key, data=thaw(node.data))

    def _hear(self, node: Node) -> None:
        if node.key not in self._heard:
            self._heard.add(node.key)
            self._in_step[node.key] = None

    def _tell_answer(self, node: Node) -> None:
        for part in parts_of(node):
            text = self._texts.get(part.id)
            is_new = text is None or not _continues(text, part)
            more = str(part.text) if text is None or is_new else added_text(text.text, part.text)
            if (is_new or more) and not self._enter(node):
                return
            if is_new:
                text = self._know(node, part, text)
            if text is None:
                continue
            if part.kind == "file":
                self._tell_file(part, is_new=is_new)
            elif more:
                self._open_text(part.id, text)
                self._send(f"{part.kind}-delta", id=_text_id(part.id, text), delta=more)
            text.text = part.text
            if part.is_done:
                self._close_text(part.id, text)

    def _know(self, node: Node, part: Part, old: _Text | None) -> _Text:
        text = self._texts[part.id] = _Text(part.kind)
        if old is None:
            self._of_node.setdefault(node.key, []).append(part.id)
            self._in_step[node.key] = None
        else:
            # It stands in a step that is past: what was said stays, and this comes behind it.
            self._close_text(part.id, old)
            text.number = old.number + 1
        return text

    def _tell_file(self, part: Part, *, is_new: bool) -> None:
        said = file_of(part.text) if is_new else None
        if said is not None:
            self._frames.append(said)

    def _open_text(self, name: str, text: _Text) -> None:
        if not text.is_open:
            text.is_open = True
            self._talking[name] = None
            self._send(f"{text.kind}-start", id=_text_id(name, text))

    def _close_text(self, name: str, text: _Text) -> None:
        if text.is_open:
            text.is_open = False
            self._talking.pop(name, None)
            self._send(f"{text.kind}-end", id=_text_id(name, text))

    # -- calls -------------------------------------------------------------------------------

    def _tell_call(self, node: Node) -> None:
        call = self._calls.get(node.id)
        if (call is not None and call.is_over) or not self._enter(node):
            return
        if call is None:
            call = self._calls[node.id] = _Call(self._shown.names[node.id])
            self._going.add(node.id)
            self._in_step[node.key] = None
        question = self._shown.question(node.id)
        if node.data["stage"] == "preparing" and question is None:
            self._tell_draft(node, call)
            return
        self._tell_input(node, call, question)
        is_over = node.data["stage"] == "result" or self._shown.is_unsettled(node)
        if question is not None and (not is_over or question.data["decision"] in _ANSWERS):
            self._tell_question(node, call, question)
        if is_over:
            call.is_over = True
            self._going.discard(node.id)
            self._tell_end(node, call)

    def _tell_draft(self, node: Node, call: _Call) -> None:
        if call.has_input:
            return
        if call.text is None:
            self._send("tool-input-start", toolCallId=node.id, **self._about(node, call))
            call.text = ""
        more = _more(call, node)
        if more:
            self._send("tool-input-delta", toolCallId=node.id, inputTextDelta=more)
            call.text = node.data["arguments_text"]

    def _tell_input(self, node: Node, call: _Call, question: Node | None) -> None:
        """Its input, also when it is another one than was asked for. A client finds the part only
        in its last step."""
        value = _input_of(node, question)
        if call.has_input and (same(call.input, value) or node.key not in self._in_step):
            return
        call.has_input, call.input, call.asked = True, value, None
        fields = self._about(node, call)
        self._send("tool-input-available", toolCallId=node.id, input=thaw(value), **fields)

    def _tell_question(self, node: Node, call: _Call, question: Node) -> None:
        if call.asked != question.id:
            call.asked, call.answered = question.id, False
            self._send("tool-approval-request", approvalId=question.id, toolCallId=node.id)
        decision = question.data["decision"]
        if decision in _ANSWERS and not call.answered:
            call.answered = True
            is_allowed = decision == "allow"
            self._send("tool-approval-response", approvalId=question.id, approved=is_allowed)

    def _tell_end(self, node: Node, call: _Call) -> None:
        data, about = node.data, {"toolCallId": node.id}
        metadata = self._metadata(node)
        ran = {"providerExecuted": True} if data["ran_by"] == "provider" else {}
        if data["stage"] != "result":
            fields = {"errorText": "unsettled", "toolMetadata": {**metadata, "unsettled": True}}
            self._send("tool-output-error", **about, **ran, **fields)
        elif data["outcome"] == "succeeded":
            self._send("tool-output-available", **about, output=output_of(data["content"]), **ran)
        elif is_denied(data) and call.asked is not None:
            self._send("tool-output-denied", **about)
        else:
            said = error_text(data["content"], data["error"])
            if type(call.input) is Object or node.key not in self._in_step:
                self._send("tool-output-error", **about, errorText=said, **ran)
                return
            fields = self._about(node, call)
            value = thaw(call.input)
            self._send("tool-input-error", **about, input=value, errorText=said, **fields)

    def _about(self, node: Node, call: _Call) -> dict[str, Any]:
        about: dict[str, Any] = {"toolName": call.name}
        if self._dynamic:
            about["dynamic"] = True
        if node.data["ran_by"] == "provider":
            about["providerExecuted"] = True
        metadata = self._metadata(node)
        return {**about, "toolMetadata": metadata} if metadata else about

    def _metadata(self, node: Node) -> dict[str, Any]:
        parent = self._shown.parent(node)
        metadata = {} if parent is None else {"parentToolCallId": parent}
        attached = {} if self._attached is None else self._attached(node)
        return {**metadata, **thaw(freeze_object(attached))}


def _text_id(name: str, text: _Text) -> str:
    return name if text.number == 1 else f"{name}~{text.number}"


def _continues(told: _Text, part: Part) -> bool:
    """Whether a part is what was told and more; a text that was closed takes no more."""
    if told.kind != part.kind:
        return False
    if part.kind == "file":
        return same(told.text, part.text)
    more = added_text(told.text, part.text)
    return more is not None and (told.is_open or not more)


def _more(call: _Call, node: Node) -> str | None:
    return added_text(call.text or "", node.data["arguments_text"] or "")


def _input_of(node: Node, question: Node | None) -> Json:
    """What a call runs with, or is to run with; the text of what is no object."""
    data = node.data
    if data["arguments"] is not None:
        return data["arguments"]
    if data["stage"] == "preparing" and question is not None:
        return question.data["input"]
    return str(data["arguments_text"] or "") or Object({}, ())
