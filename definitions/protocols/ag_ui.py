"""AG-UI: events for its clients, from what the `chat` view shows.

    a turn             a run; turns that break off, or are stopped, are `cancelled`
    a step             STEP_STARTED to STEP_FINISHED
    preparing          TOOL_CALL_START, and TOOL_CALL_ARGS as they come
    runs               the rest of its arguments, TOOL_CALL_END
    has its result     TOOL_CALL_RESULT, `metadata.outcome`
    never had one      the same, `unsettled`, when its turn is closed
    was given up       MESSAGES_SNAPSHOT without it
    all wait for leave RUN_FINISHED with `interrupt`; the run goes on with RUN_STARTED

AG-UI's events only add. What they cannot say (something went, or is no continuation of what was
sent) is said by a MESSAGES_SNAPSHOT, which a client puts in the place of what it has: so are a
reload and a client that comes in the middle. Kept is only what a client was told: what is open,
and how far. The calls of a step are in the message `turn.step`, those made inside a call in
`in:<call>`. Not here: what AG-UI calls things (`ag_ui_words`), sockets.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from assembler.codec import encode
from assembler.engine.definition import Node
from assembler.engine.patches import Patch, Snapshot
from assembler.engine.values import freeze_object, thaw
from definitions.protocols.ag_ui_words import (
    ACTIVITIES,
    Book,
    activity_of,
    content_of,
    end_of,
    error_of,
    interrupt_of,
    question_of,
    result_of,
    withdrawal,
)
from definitions.protocols.frames import Frame
from definitions.protocols.shown import (
    Change,
    Part,
    Shown,
    added_text,
    final_arguments,
    means_same,
    parts_of,
    spot,
    text_of,
)

__all__ = ["AgUi"]

Attached = Callable[[Node], Mapping[str, Any]]

_PERSON = frozenset({"user", "steering"})
_OWNED = {"@ag-ui/client": {"authoritativeActivityTypes": list(ACTIVITIES)}}
"""By this a snapshot without activities says that there are none."""


class _Text:
    """What a client was told of a message: how far, and whether it is open."""

    __slots__ = ("is_open", "kind", "text")

    def __init__(self, kind: str, text: Any = "") -> None:
        self.kind = kind
        self.text = text
        self.is_open = False


class _Call:
    """What a client was told of a call."""

    __slots__ = ("is_open", "is_over", "name", "text")

    def __init__(self, name: str, text: Any = "") -> None:
        self.name = name
        self.text = text
        self.is_open = False
        self.is_over = False


class AgUi:
    """Says in AG-UI what a view shows (`Encoder`).

    `hidden` are names of tools that make no frame at any stage. `thread_id` names the conversation;
    `run_id` the first run, where the client named it; others are named by their turn. `meta` gives
    what the backend attached to a call, for its `metadata`; it must not raise. With `echo` what
    persons say is told at once; a client that typed it has it already.

    `feed` costs what changed; on a Snapshot, or when something was taken back, what is shown.
    """

    HEADERS: Mapping[str, str] = {"content-type": "text/event-stream", "cache-control": "no-cache"}

    def __init__(
        self,
        *,
        hidden: Collection[str] = (),
        thread_id: str = "conversation",
        run_id: str | None = None,
        meta: Attached | None = None,
        echo: bool = False,
    ) -> None:
        self._shown = Shown(hidden)
        self._thread = thread_id
        self._first_run = run_id
        self._attached = meta
        self._echo = echo
        self._has_all = False
        """The client has what the first Snapshot shows, and waits for what follows."""
        self._run: tuple[int, str] | None = None
        """The open run: its turn and its name."""
        self._ended = -1
        """The highest turn whose end the client knows: it is no news."""
        self._step: tuple[int, int] | None = None
        self._texts: dict[str, _Text] = {}
        self._talking: dict[str, None] = {}
        """Those of them that are open."""
        self._of_node: dict[str, list[str]] = {}
        """The messages that were told of an answer, by its key."""
        self._calls: dict[str, _Call] = {}
        self._going: set[str] = set()
        """The ids of the calls that were told and are not over."""
        self._asked: dict[str, Any] = {}
        self._heard: set[str] = set()
        """The ids of what persons said, where it was told."""
        self._waits: frozenset[str] = frozenset()
        """The permissions that the last run was interrupted for."""
        self._frames: list[Frame] = []

    def respond(self, *, asked: bool) -> None:
        """One response follows, which ends with its run: to a client that `asked` and has
        everything, unless it came while a run was open; or to one that comes."""
        self._has_all = asked

    @staticmethod
    def is_last(frame: Frame) -> bool:
        """Whether an event ends a response."""
        return frame["type"] in ("RUN_FINISHED", "RUN_ERROR")

    @staticmethod
    def sse(frame: Frame) -> bytes:
        """An event as a server sends it (`HEADERS`)."""
        return b"data: " + encode(frame) + b"\n\n"

    def feed(self, update: Snapshot | Patch) -> list[Frame]:
        """The events that a client needs now, in order."""
        change = self._shown.take(update)
        self._frames = []
        is_lost = any(map(self._was_told, change.lost))
        if isinstance(update, Snapshot) or is_lost or not all(map(self._goes_on, change.changed)):
            self._show_all()
        else:
            for node in change.changed:
                self._tell(node)
        self._tell_questions(change)
        self._rest()
        frames, self._frames = self._frames, []
        has_all, self._has_all = self._has_all, False
        return [] if has_all and self._run is None else frames

    def _send(self, kind: str, **fields: Any) -> None:
        self._frames.append({"type": kind, **fields})

    # -- runs and steps ----------------------------------------------------------------------

    def _begin(self, turn: int) -> None:
        name, self._first_run = self._first_run or str(turn), None
        self._run, self._waits = (turn, name), frozenset()
        self._send("RUN_STARTED", threadId=self._thread, runId=name)

    def _finish(self, outcome: dict[str, Any] | None = None) -> None:
        """End the run, with what is known of the end of its turn or with `outcome`."""
        if self._run is None:
            return
        (turn, name), self._run = self._run, None
        for message_id in [*self._talking]:
            self._close_text(message_id, self._texts[message_id])
        for call_id in sorted(self._going):
            self._close_call(call_id, self._calls[call_id])
        self._enter_step(None)
        is_news = outcome is None and self._ended < turn <= self._shown.closed
        if is_news:
            self._ended = turn
        error = self._shown.nodes.get(f"turn-error:{turn}")
        if error is not None and is_news:
            self._send("RUN_ERROR", **error_of(error))
            return
        tail = self._shown.nodes.get(f"turn-tail:{turn}")
        outcome = outcome or (end_of(tail) if is_news else {"type": "success"})
        self._send("RUN_FINISHED", threadId=self._thread, runId=name, outcome=outcome)

    def _enter_step(self, step: tuple[int, int] | None) -> None:
        if self._step not in (None, step):
            self._send("STEP_FINISHED", stepName=_step_name(self._step))
            self._step = None
        if step is not None and self._step is None:
            self._send("STEP_STARTED", stepName=_step_name(step))
            self._step = step

    def _enter(self, node: Node) -> None:
        """Be where a Node is told: in the run of its turn and, when it is not past, in its step."""
        turn = node.turn
        if self._run is not None and turn is not None and turn > self._run[0]:
            self._finish()
        if self._run is None:
            self._begin(turn if turn is not None else self._shown.turn or 0)
        if turn is None or node.step is None or self._shown.is_closed(node):
            return
        if self._step is None or (turn, node.step) > self._step:
            self._enter_step((turn, node.step))

    def _rest(self) -> None:
        """Be where the view is: in the open turn and step, or in none."""
        shown = self._shown
        if self._run is not None and self._is_past(self._run[0]):
            self._finish()
        if shown.turn is None or self._is_interrupted():
            return
        if self._run is None:
            self._begin(shown.turn)
        self._enter_step(None if shown.step is None else (shown.turn, shown.step))
        waits = self._shown.waiting(self._going)
        if waits:
            self._interrupt(waits)

    def _is_past(self, turn: int) -> bool:
        """Whether a run is over: its turn is, or nobody knows of one and nothing is open."""
        if turn <= self._shown.closed:
            return True
        return self._shown.turn is None and not self._going and not self._talking

    def _is_interrupted(self) -> bool:
        return (
            self._run is None
            and bool(self._waits)
            and self._shown.waiting(self._going) == self._waits
        )

    # -- what waits for leave ----------------------------------------------------------------

    def _interrupt(self, waits: frozenset[str]) -> None:
        shown = self._shown
        asked = [question for call in self._going if (question := shown.question(call)) is not None]
        said = [
            interrupt_of(question, shown.names[question.data["call_id"]])
            for question in sorted(asked, key=spot)
        ]
        self._finish({"type": "interrupt", "interrupts": said})
        self._waits = waits

    def _tell_questions(self, change: Change) -> None:
        """Tell what became of permissions; nothing of a call that is over."""
        for node in change.changed:
            question = self._shown.question(node.id) if node.kind == "tool" else None
            if question is None or node.id not in self._going:
                continue
            value = question_of(question)
            if self._asked.get(node.id) != value:
                self._asked[node.id] = value
                self._enter(node)
                self._send("CUSTOM", name="permission", value=thaw(question_of(question)))

    # -- what continues ----------------------------------------------------------------------

    def _was_told(self, node: Node) -> bool:
        return node.id in self._calls if node.kind == "tool" else node.key in self._of_node

    def _goes_on(self, node: Node) -> bool:
        """Whether what is there continues what was told."""
        if node.kind == "tool":
            call = self._calls.get(node.id)
            if call is None or call.is_over:
                return True
            return call.name == self._shown.names[node.id] and _more(call, node) is not None
        if node.kind != "assistant" or node.key not in self._of_node:
            return True
        parts = dict(_messages_of(node))
        return all(
            name in parts and _added(self._texts[name], parts[name]) is not None
            for name in self._of_node[node.key]
        )

    # -- telling what is new -----------------------------------------------------------------

    def _tell(self, node: Node) -> None:
        if node.kind == "tool":
            self._tell_call(node)
        elif node.kind == "assistant":
            self._tell_answer(node)
        elif node.kind in _PERSON:
            self._tell_input(node)
        elif node.kind in ACTIVITIES:
            said = activity_of(node)
            self._enter(node)
            fields = {"activityType": said["activityType"], "content": said["content"]}
            self._send("ACTIVITY_SNAPSHOT", messageId=node.key, **fields)

    def _tell_answer(self, node: Node) -> None:
        for message_id, part in _messages_of(node):
            text = self._texts.get(message_id)
            more = str(part.text) if text is None else _added(text, part)
            if more:
                self._enter(node)
                if text is None:
                    text = self._know(node, message_id, part, "")
                self._open_text(message_id, text)
                self._send(_WORDS[part.kind] + "CONTENT", messageId=message_id, delta=more)
                text.text = part.text
            if text is not None and part.is_done:
                self._close_text(message_id, text)

    def _know(self, node: Node, message_id: str, part: Part, text: Any) -> _Text:
        self._of_node.setdefault(node.key, []).append(message_id)
        told = self._texts[message_id] = _Text(part.kind, text)
        return told

    def _open_text(self, message_id: str, text: _Text) -> None:
        if text.is_open:
            return
        text.is_open = True
        self._talking[message_id] = None
        if text.kind == "reasoning":
            self._send("REASONING_START", messageId=message_id)
        role = "reasoning" if text.kind == "reasoning" else "assistant"
        self._send(_WORDS[text.kind] + "START", messageId=message_id, role=role)

    def _close_text(self, message_id: str, text: _Text) -> None:
        if not text.is_open:
            return
        text.is_open = False
        self._talking.pop(message_id, None)
        self._send(_WORDS[text.kind] + "END", messageId=message_id)
        if text.kind == "reasoning":
            self._send("REASONING_END", messageId=message_id)

    def _tell_call(self, node: Node) -> None:
        call = self._calls.get(node.id)
        if call is not None and call.is_over:
            return
        self._enter(node)
        is_new = call is None
        if call is None:
            call = self._calls[node.id] = _Call(self._shown.names[node.id])
            self._going.add(node.id)
        more = _more(call, node)
        if is_new or more:
            self._open_call(node, call)
        if more:
            self._send("TOOL_CALL_ARGS", toolCallId=node.id, delta=more)
            call.text = _text_now(node)
        if node.data["stage"] != "preparing":
            self._close_call(node.id, call)
        if self._is_over(node):
            call.is_over = True
            self._going.discard(node.id)
            self._send("TOOL_CALL_RESULT", **_result(node))

    def _is_over(self, node: Node) -> bool:
        return node.data["stage"] == "result" or self._shown.is_unsettled(node)

    def _open_call(self, node: Node, call: _Call) -> None:
        if call.is_open:
            return
        call.is_open = True
        fields = {"toolCallId": node.id, "toolCallName": call.name}
        metadata = self._metadata(node)
        more = {"metadata": metadata} if metadata else {}
        self._send("TOOL_CALL_START", **fields, parentMessageId=self._home(node), **more)

    def _close_call(self, call_id: str, call: _Call) -> None:
        if call.is_open:
            call.is_open = False
            self._send("TOOL_CALL_END", toolCallId=call_id)

    def _home(self, node: Node) -> str:
        """The message that a call is in: that of its step, or of the call that made it."""
        parent = self._shown.parent(node)
        if parent is not None:
            return f"in:{parent}"
        return f"call:{node.id}" if node.step is None else f"{node.turn}.{node.step}"

    def _metadata(self, node: Node) -> dict[str, Any]:
        parent = self._shown.parent(node)
        metadata: dict[str, Any] = {} if parent is None else {"parentToolCallId": parent}
        if node.data["ran_by"] == "provider":
            metadata["ranBy"] = "provider"
        attached = {} if self._attached is None else self._attached(node)
        return {**metadata, **thaw(freeze_object(attached))}

    def _tell_input(self, node: Node) -> None:
        if node.id in self._heard:
            return
        self._heard.add(node.id)
        text = text_of(node.data["content"])
        if self._echo and text:
            self._enter(node)
            self._send("TEXT_MESSAGE_START", messageId=node.id, role="user")
            self._send("TEXT_MESSAGE_CONTENT", messageId=node.id, delta=text)
            self._send("TEXT_MESSAGE_END", messageId=node.id)

    # -- telling everything ------------------------------------------------------------------

    def _show_all(self) -> None:
        """Put everything that is shown in the place of what the client has."""
        nodes = sorted(self._shown.nodes.values(), key=spot)
        old_texts, old_calls = self._texts, self._calls
        if not old_texts and not old_calls and not any(map(_is_message, nodes)):
            return
        if self._run is None:
            turns = [node.turn for node in nodes if node.turn is not None]
            self._begin(self._shown.turn or max(turns, default=0))
            if not old_texts and not old_calls:
                # The client comes now: how it went before is no news.
                self._ended = self._shown.closed
        messages, growing = self._messages(nodes), _growing(nodes)
        open_texts = [*self._talking]
        for name in open_texts:
            if name not in growing:
                self._close_text(name, old_texts[name])
        open_calls = sorted(name for name, each in old_calls.items() if each.is_open)
        for name in open_calls:
            # So that a client does not count it among those that it has to answer itself.
            if name not in self._calls:
                self._send("TOOL_CALL_RESULT", **withdrawal(name))
        self._send("MESSAGES_SNAPSHOT", messages=messages, metadata=thaw(freeze_object(_OWNED)))
        for name in open_calls:
            # Behind the snapshot: a client that runs what has ended finds nothing to run.
            if f"tool:{name}" not in growing:
                self._close_call(name, old_calls[name])
        self._keep_open(growing, {*open_texts, *(f"tool:{name}" for name in open_calls)})

    def _keep_open(self, growing: dict[str, Node], was_open: set[str]) -> None:
        """Open what grows, unless it `was_open` and is."""
        for name, node in growing.items():
            told = self._calls[node.id] if node.kind == "tool" else self._texts[name]
            told.is_open = name in was_open
        for name, node in growing.items():
            self._enter(node)
            if node.kind == "tool":
                self._open_call(node, self._calls[node.id])
            else:
                self._open_text(name, self._texts[name])

    def _messages(self, nodes: list[Node]) -> list[dict[str, Any]]:
        """All messages, which from here on are what the client was told."""
        thought = [name for name, text in self._texts.items() if text.kind == "reasoning"]
        self._texts, self._of_node, self._calls = {}, {}, {}
        self._going, self._heard = set(), set()
        book = Book()
        for node in nodes:
            if node.kind == "tool":
                self._write_call(book, node)
            elif node.kind == "assistant":
                for message_id, part in _messages_of(node):
                    self._know(node, message_id, part, part.text)
                    book.say(message_id, part.kind, str(part.text))
            elif node.kind in _PERSON:
                self._heard.add(node.id)
                book.add({"id": node.id, "role": "user", "content": content_of(node)})
            elif node.kind in ACTIVITIES:
                book.add(activity_of(node))
        thought = [name for name in thought if name not in self._texts]  # else it is text now
        if thought and not any(text.kind == "reasoning" for text in self._texts.values()):
            # A client keeps its reasoning until a snapshot has some: an empty one takes it back.
            self._texts[thought[0]] = _Text("reasoning")
            book.say(thought[0], "reasoning", "")
        return book.messages()

    def _write_call(self, book: Book, node: Node) -> None:
        text = _text_now(node)
        call = self._calls[node.id] = _Call(self._shown.names[node.id], text)
        home = self._home(node)
        book.call(home, node.id, call.name, str(text), self._metadata(node))
        if not self._is_over(node):
            self._going.add(node.id)
            return
        call.is_over = True
        said = _result(node)
        said["id"] = said.pop("messageId")
        book.result(home, said)


_WORDS = {"text": "TEXT_MESSAGE_", "reasoning": "REASONING_MESSAGE_"}


def _step_name(step: tuple[int, int] | None) -> str:
    return "" if step is None else f"{step[0]}.{step[1]}"


def _is_message(node: Node) -> bool:
    return node.kind in ("tool", "assistant", *_PERSON, *ACTIVITIES)


def _messages_of(node: Node) -> list[tuple[str, Part]]:
    """The messages of an answer, by id. Its first text is in the message that has its calls."""
    parts = [part for part in parts_of(node) if part.kind in _WORDS]
    first = next((part.id for part in parts if part.kind == "text"), None)
    return [(node.id if part.id == first else part.id, part) for part in parts]


def _growing(nodes: list[Node]) -> dict[str, Node]:
    """What still grows: messages by id, calls by key."""
    growing = {}
    for node in nodes:
        if node.kind == "tool" and node.data["stage"] == "preparing":
            growing[node.key] = node
        elif node.kind == "assistant":
            growing.update({name: node for name, part in _messages_of(node) if not part.is_done})
    return growing


def _added(told: _Text, part: Part) -> str | None:
    return added_text(told.text, part.text) if told.kind == part.kind else None


def _text_now(node: Node) -> Any:
    if node.data["stage"] == "preparing":
        return node.data["arguments_text"] or ""
    return final_arguments(node.data)


def _more(call: _Call, node: Node) -> str | None:
    """What is to be added to the arguments; None when they are other ones. What was told may be
    spelled otherwise."""
    more = added_text(call.text, _text_now(node))
    arguments = node.data["arguments"]
    if more is None and arguments is not None and means_same(call.text, arguments):
        return ""
    return more


def _result(node: Node) -> dict[str, Any]:
    ids = {"messageId": f"result:{node.id}", "toolCallId": node.id}
    return {**ids, "role": "tool", **result_of(node)}
