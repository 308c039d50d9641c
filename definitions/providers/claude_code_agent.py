"""Claude Code as an agent: all that `--output-format stream-json` prints, as events and deltas.

Fed the frames of one session, and where there are any those that its host sends, it says what
happened: turns, answers, calls and results, questions, subagents. Facts are those of
`claude-agent-sdk` 0.2.189. Here lives which frame says what. Not here: how a conversation is
written (`claude_code_chat`), the answer alone, for a host that runs the calls (`claude_code`).

Every call of a subagent stands in the main conversation too, in the call that started it; what it
says is a conversation of its own, named by that call. A frame without a counterpart is kept as an
event `claude-code/…`, which shows no row.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from definitions.providers.agent import AgentPiece
from definitions.providers.agent_lines import AgentLines
from definitions.providers.claude_code_chat import ClaudeCodeChat
from definitions.providers.claude_code_words import (
    content_of,
    ending_of,
    goes_on,
    is_interruption,
    is_result,
    is_summary,
    output_of,
    said_in,
)
from definitions.providers.reading import array, is_object, mapping, plain, text

__all__ = ["ClaudeCodeAgent"]

Frame = Mapping[str, Any]

_GOES_ON = frozenset({"assistant", "stream_event", "result"})
"""Frames that show that no summary of what was before comes any more."""
_NO_NEWS = frozenset({"keep_alive", "tool_progress"})
_NO_NEWS_OF_SYSTEM = frozenset({"thinking_tokens"})
"""Signs of life: they come again and again, and nothing of them need be known later."""
_ECHOES_MAX = 32
"""So many messages may wait for the program to repeat them."""
_SUMMARISED = "What was said before this point was summarised."
"""Stands for a summary that the program does not tell."""


class _Question(Struct, frozen=True):
    """What a request of the program asks about: the call as it names it, and our names."""

    told: str
    call_id: str
    request: str


class ClaudeCodeAgent:
    """Reads one session. Pure: no I/O, no clock; the same frames give the same pieces.

    `turn` is the last turn of the conversation so far, `name` what it is called: names that the
    program does not give are made of it. Nothing in a frame is relied on, and none raises.
    Cost: what a frame says. Memory: ids, and the answers at hand.
    """

    def __init__(self, *, turn: int = 0, name: str = "") -> None:
        self._name = name
        self._lines = AgentLines()
        self._main = ClaudeCodeChat(turn, name)
        self._beside: dict[str, ClaudeCodeChat] = {}
        """Conversations of subagents, by the call that started each, as the program names it."""
        self._running: dict[str, ClaudeCodeChat] = {}
        """Those among them whose call is not over."""
        self._spoke: dict[str, ClaudeCodeChat] = {}
        """Those that may have something to write."""
        self._background: set[str] = set()
        """The calls among them whose result says only that they began."""
        self._tasks: dict[str, str] = {}
        """Task id -> the call that began it."""
        self._questions: dict[str, _Question] = {}
        self._echoes: deque[tuple[str, Any]] = deque(maxlen=_ECHOES_MAX)
        """What was sent to the program and did not come back: uuid and content."""
        self._compaction: str | None = None
        self._names = 0
        """How many names were made here."""
        self._is_interrupted = False
        self._has_ended = False
        """Whether the turn was over before the program said so: somebody interrupted it."""
        self._error: Frame | None = None
        """What the program said of a failed request, until an answer comes all the same."""
        self._on: Mapping[str, Callable[[Frame], None]] = {
            "assistant": self._on_assistant,
            "user": self._on_user,
            "stream_event": self._on_stream,
            "result": self._on_end,
            "system": self._on_system,
            "control_request": self._on_request,
            "control_response": self._on_response,
            "control_cancel_request": self._on_cancel,
            "tool_progress": self._on_progress,
            "conversation_reset": self._on_reset,
        }

    def feed(self, given: object, /) -> list[AgentPiece]:
        """Take bytes or text of the stream, cut anywhere, or a decoded frame, of either side.

        Gives what to write, in order.
        """
        return [piece for frame in self._lines.take(given) for piece in self._read(frame)]

    def finish(self, reason: str | None = None) -> list[AgentPiece]:
        """No more comes: gives what waited for more. With a `reason` (`interrupted`, `cancelled`,
        `error`), the turn that is open ends with it; without one it stays open."""
        last = [piece for frame in self._lines.rest() for piece in self._read(frame)]
        self._end_compaction()
        self._main.calls.end_tasks(all_of_them=reason is not None)
        self._spoke |= self._running
        for chat in (*self._running.values(), self._main):
            if reason is not None:
                chat.end_turn(reason)
            else:
                chat.end_told()
        return last + self._taken()

    def _read(self, frame: object) -> list[AgentPiece]:
        self._take(frame)
        return self._taken()

    def _taken(self) -> list[AgentPiece]:
        found = self._main.turns.taken()
        for told, chat in self._spoke.items():
            name = self._main.calls.id_of(told)
            found += [replace(piece, conversation=name) for piece in chat.turns.taken()]
        self._spoke.clear()
        return found

    def _take(self, frame: object) -> None:
        if not is_object(frame):
            self._keep("odd", {"value": frame})
            return
        kind = text(frame.get("type"))
        if kind in _GOES_ON:
            self._end_compaction()
        if kind not in ("system", *_NO_NEWS):
            self._main.calls.end_tasks(all_of_them=False)
        handler = self._on.get(kind)
        if handler is not None:
            handler(frame)
        elif kind not in _NO_NEWS:
            self._keep(kind or "odd", frame)

    def _keep(self, kind: str, frame: Frame) -> None:
        """Keep a frame as it is."""
        self._main.turns.event(f"claude-code/{kind}", plain(frame))

    # -- conversations -----------------------------------------------------------------------

    def _chat(self, frame: Frame) -> ClaudeCodeChat:
        """Give the conversation that a frame is of."""
        parent = text(frame.get("parent_tool_use_id"))
        if not parent:
            return self._main
        self._main.runs(parent)
        if agent := text(frame.get("agent_id")):
            self._tasks[agent] = parent
        if parent not in self._beside:
            self._beside[parent] = ClaudeCodeChat(name=f"{self._name}/{parent}")
        chat = self._spoke[parent] = self._running[parent] = self._beside[parent]
        return chat

    def _end_beside(self, told: str, reason: str) -> None:
        chat = self._running.pop(told, None)
        if chat is not None:
            self._spoke[told] = chat
            self._background.discard(told)
            chat.end_turn(reason)

    # -- what the model says -----------------------------------------------------------------

    def _on_stream(self, frame: Frame) -> None:
        self._chat(frame).event(frame)

    def _on_assistant(self, frame: Frame) -> None:
        chat = self._chat(frame)
        if frame.get("error"):
            self._error = {"name": text(frame["error"]), "message": said_in(content_of(frame))}
            self._keep("error", frame)
            return
        self._error = None
        chat.message(frame)
        parent = text(frame.get("parent_tool_use_id"))
        if parent:
            for block in chat.calls_in(frame):
                told, name = text(block.get("id")), text(block.get("name"))
                if told:
                    self._main.calls.alone(told, name, block.get("input"), parent)

    # -- what is said to it ------------------------------------------------------------------

    def _on_user(self, frame: Frame) -> None:
        chat, content = self._chat(frame), content_of(frame)
        results = [block for block in content if is_result(block)]
        others = [block for block in content if not is_result(block)]
        for block in results:
            self._on_result(chat, block, frame)
        if results:
            self._end_compaction()
            if others:
                self._keep("user", frame)
        elif chat is not self._main:
            chat.prompt(frame)
        elif others:
            self._on_said(frame, said_in(others))
        else:
            self._keep("user", frame)

    def _on_result(self, chat: ClaudeCodeChat, block: Frame, frame: Frame) -> None:
        chat.result(block, frame)
        if chat is not self._main:
            self._main.result(block, frame)
        told = text(block.get("tool_use_id"))
        if goes_on(frame.get("tool_use_result")):
            self._background.add(told)
        else:
            self._end_beside(told, "error" if block.get("is_error") is True else "completed")

    def _on_said(self, frame: Frame, said: str) -> None:
        """Write what stands in a message of the user's side, if somebody says it."""
        if is_summary(frame, said) or (self._compaction is not None and _is_made_up(frame)):
            self._on_summary(said)
            return
        self._end_compaction()
        printed = output_of(said)
        if is_interruption(said):
            self._keep("interrupted", frame)
            self._end_turn("cancelled")
            self._has_ended = True
        elif frame.get("isReplay") is True and self._is_echo(frame):
            self._main.claim()
        elif printed is not None:
            self._on_printed(frame, printed[0], is_error=printed[1])
        elif _is_made_up(frame):
            self._keep("synthetic", frame)
        else:
            if frame.get("isReplay") is not True:
                self._echoes.append(_sent(frame))
            self._main.prompt(frame)

    def _is_echo(self, frame: Frame) -> bool:
        """Whether the program only repeats what was sent to it; that, it has taken."""
        uuid, content = _sent(frame)
        for sent in self._echoes:
            if (uuid and sent[0] == uuid) or sent[1] == content:
                self._echoes.remove(sent)
                return True
        return False

    def _named(self, what: str, frame: Frame) -> str:
        """Name what a frame tells."""
        self._names += 1
        return f"{what}-{text(frame.get('uuid')) or f'{self._main.turns.turn}.{self._names}'}"

    def _on_printed(self, frame: Frame, output: str, *, is_error: bool) -> None:
        name = self._named("command", frame)
        self._main.turns.event("command/run", {"command_id": name, "name": "command"})
        told: dict[str, Any] = {"command_id": name, "output": output}
        self._main.turns.event("command/done", told | ({"is_error": True} if is_error else {}))

    # -- the program -------------------------------------------------------------------------

    def _on_end(self, frame: Frame) -> None:
        """The program is through with a turn."""
        main, said = self._main, text(frame.get("result"))
        reason, error = ending_of(frame, interrupted=self._is_interrupted)
        if self._has_ended and not main.has_answered:
            self._has_ended = False
            self._keep("result", frame)
            return
        if reason in ("completed", "limit"):
            main.end_answer(text(frame.get("stop_reason")), frame.get("usage"))
            if said and not main.has_answered:
                main.tell(said)
        if error is not None:
            main.turns.begin_turn()
        self._keep("result", frame)
        self._end_turn(reason, (error and self._error) or error)

    def _end_turn(self, reason: str, error: Frame | None = None) -> None:
        for told in list(self._running):
            if told not in self._background:
                self._end_beside(told, "interrupted" if reason == "completed" else reason)
        self._main.end_turn(reason, error)
        self._is_interrupted, self._has_ended, self._error = False, False, None

    def _on_system(self, frame: Frame) -> None:
        subtype = text(frame.get("subtype"))
        if subtype == "init":
            self._questions.clear()
            if self._main.has_answered:  # the program was begun anew
                self._end_turn("interrupted")
            self._keep("init", frame)
        elif subtype == "api_retry":
            self._main.retry(frame)
        elif subtype == "compact_boundary":
            self._on_boundary(frame)
        elif subtype.startswith("task_"):
            self._on_task(frame, subtype)
        elif subtype == "local_command_output":
            self._on_printed(frame, text(frame.get("content")), is_error=False)
        elif subtype == "permission_denied":
            self._main.calls.deny(text(frame.get("tool_use_id")))
            self._keep(subtype, frame)
        elif subtype not in _NO_NEWS_OF_SYSTEM:
            self._keep(subtype or "system", frame)

    def _on_boundary(self, frame: Frame) -> None:
        self._main.end_answer()
        self._compaction = self._named("compaction", frame)
        told = plain(mapping(frame.get("compact_metadata")))
        start = {"compaction_id": self._compaction, "metadata": told}
        self._main.turns.event("compaction/start", start)

    def _on_summary(self, said: str) -> None:
        if self._compaction is None:
            self._on_boundary({})
        self._end_compaction(said)

    def _end_compaction(self, summary: str = _SUMMARISED) -> None:
        compaction, self._compaction = self._compaction, None
        if compaction is not None:
            named = {"compaction_id": compaction}
            self._main.turns.event("compaction/summary", {**named, "text": summary})
            self._main.turns.event("compaction/end", named)

    def _on_task(self, frame: Frame, subtype: str) -> None:
        """Work of a call goes on beside the answers, or ended."""
        task = text(frame.get("task_id"))
        told = text(frame.get("tool_use_id")) or self._tasks.get(task, "")
        if task and told:
            self._tasks[task] = told
        self._main.runs(told)
        self._keep(subtype, frame)
        if self._main.calls.task_ended(told, frame) and told in self._background:
            self._end_beside(told, "completed")

    def _on_progress(self, frame: Frame) -> None:
        self._main.runs(text(frame.get("tool_use_id")))

    def _on_reset(self, frame: Frame) -> None:
        self._end_turn("completed")
        self._keep("conversation_reset", frame)

    # -- questions ---------------------------------------------------------------------------

    def _on_request(self, frame: Frame) -> None:
        request = mapping(frame.get("request"))
        subtype = text(request.get("subtype"))
        self._main.runs(text(request.get("tool_use_id")))
        if subtype == "can_use_tool":
            self._ask(text(frame.get("request_id")), request)
            return
        if subtype == "interrupt":
            self._is_interrupted = True
        self._keep(subtype or "control_request", frame)

    def _ask(self, name: str, request: Frame) -> None:
        """Write that people are asked about a call, and before that the call."""
        told = text(request.get("tool_use_id")) or f"asked-{name or len(self._questions)}"
        tool, agent = text(request.get("tool_name")), text(request.get("agent_id"))
        main = self._main
        known = self._questions.get(name)
        if known is not None and known.told == told:
            return  # it is asked again, of somebody who came later
        call_id = main.calls.id_of(told)
        if main.calls.get(told) is None and not main.tells(told):
            parent = self._tasks.get(agent) if agent else None
            if parent or not agent:
                main.end_told()
                call_id = main.calls.alone(told, tool, request.get("input"), parent)
        asked = main.calls.ask(call_id, name or "request", request)
        self._questions[name] = _Question(told, call_id, asked)

    def _on_response(self, frame: Frame) -> None:
        response = mapping(frame.get("response"))
        for each in map(mapping, array(response.get("pending_permission_requests"))):
            self._on_request(each)
        question = self._questions.pop(text(response.get("request_id")), None)
        if question is None:
            self._keep("control_response", frame)
            return
        answer = mapping(response.get("response")) or {"error": text(response.get("error"))}
        if answer.get("interrupt") is True:
            self._is_interrupted = True
        self._main.calls.decide(question.told, question.call_id, question.request, answer)

    def _on_cancel(self, frame: Frame) -> None:
        """The program takes a question back: no answer to it counts any more."""
        self._questions.pop(text(frame.get("request_id")), None)
        self._keep("control_cancel_request", frame)


def _is_made_up(frame: Frame) -> bool:
    """Whether the program wrote a message for the model by itself."""
    return frame.get("isSynthetic") is True or frame.get("isMeta") is True


def _sent(frame: Frame) -> tuple[str, Any]:
    return text(frame.get("uuid")), plain(content_of(frame))
