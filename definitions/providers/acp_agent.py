"""An agent that speaks ACP: its `session/update` traffic, as events to store and deltas to emit.

Fed every message of one connection, in both directions, it says what happened in one session:
turns, answers, calls, questions. The protocol: https://agentclientprotocol.com, versions 1 and 2.

ACP tells no model calls. An answer, and with it a step, ends where the agent speaks behind a call,
where it begins another message, or with the turn. Not here: calls (`acp_calls`), content blocks
(`acp_content`), how a conversation is numbered (`agent_turns`); ACP towards editors
(`definitions.protocols.acp`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from definitions.providers.acp_call import AcpCall
from definitions.providers.acp_calls import AcpCalls
from definitions.providers.acp_content import block_of, blocks_of, usage_of
from definitions.providers.agent import AgentPiece
from definitions.providers.agent_turns import AgentTurns
from definitions.providers.reading import array, is_object, mapping, plain, text

__all__ = ["AcpAgent"]

Frame = Mapping[str, Any]

_STOPS = {
    "end_turn": ("end_turn", "completed"),
    "max_tokens": ("length", "completed"),
    "max_turn_requests": ("end_turn", "limit"),
    "refusal": ("refusal", "completed"),
    "cancelled": ("cancelled", "cancelled"),
    "error": ("error", "error"),
}
"""From ACP's stop reason to that of the last answer, and how the turn ended."""

_OF_QUESTIONS = ("options", "title", "description")

_OVER = "over"
"""What a prompt asked for whose turn has ended before it was answered, as in ACP 2."""
_CLEARS = 2
"""From this version of the protocol on, null takes a field back."""


class AcpAgent:
    """Reads one session. Pure: no I/O, no clock; the same messages give the same pieces.

    `turn` is the last turn of the conversation so far: when there is one, history that the agent
    replays (`session/load`) is passed over. `session` is the session to read; without it the first
    that is spoken of. With `keeps_all`, messages without a counterpart are events too (`acp/…`);
    updates of a session are in any case (modes, plans, commands, usage).

    Nothing in a message is relied on, and none raises. Cost: what a message says.
    """

    def __init__(
        self, *, turn: int = 0, session: str | None = None, keeps_all: bool = False
    ) -> None:
        self._turns = AgentTurns(turn)
        self._calls = AcpCalls(self._turns)
        self._session = session
        self._keeps_all = keeps_all
        self._is_new = turn == 0
        self._requests: dict[str, str] = {}
        """What the client asked and was not answered: id -> method."""
        self._questions: dict[str, tuple[AcpCall, str, Frame]] = {}
        """What the agent asked: id -> call, request, options."""
        self._asked: dict[str, int] = {}
        self._outputs: dict[str, str] = {}
        """Requests for the output of a terminal: id -> terminal."""
        self._user: list[tuple[str | None, dict[str, Any]]] = []
        """The message to the agent that is told in chunks."""
        self._echo: list[Any] = []
        """What of the prompt may come again as chunks."""
        self._is_loading = False
        self._wrote: set[tuple[str, str]] = set()
        """What was spoken of before: messages, questions, compactions."""
        self._writers: Mapping[str, Callable[[Frame], None]] = {
            "user_message_chunk": self._on_user_chunk,
            "user_message": self._on_user_message,
            "agent_message_chunk": self._on_chunk,
            "agent_thought_chunk": self._on_chunk,
            "agent_message": self._on_message,
            "agent_thought": self._on_message,
            "state_update": self._on_state,
            "session_info_update": self._on_info,
            "compaction_update": self._on_compaction,
            "terminal_update": self._on_terminal,
            "terminal_output_chunk": self._on_terminal,
        }

    def feed(self, message: object) -> list[AgentPiece]:
        """Take one decoded JSON-RPC message of either side; gives what to write, in order."""
        if is_object(message):
            if "method" in message:
                self._on_call_of_method(message)
            elif "result" in message or "error" in message:
                self._on_answer(message)
            else:
                self._keep("message", message)
        elif self._keeps_all:
            self._keep("odd", {"value": message})
        return self._turns.taken()

    def finish(self, reason: str | None = None) -> list[AgentPiece]:
        """No more comes: gives what waited for more. With a `reason` (`interrupted`, `cancelled`,
        `error`), the turn that is open ends with it; without one it stays open."""
        if reason is None:
            self._end_user()
            self._calls.let_go()
            self._turns.end_answer()
        else:
            self._end_turn("error" if reason == "error" else "cancelled", reason, interrupted=True)
        return self._turns.taken()

    def waits_for(self, message: object) -> bool:
        """Whether a message is the answer to a request that was seen here."""
        told = text(_name(mapping(message).get("id")))
        return told in self._requests or told in self._questions or told in self._outputs

    # -- messages ----------------------------------------------------------------------------

    def _on_call_of_method(self, message: Frame) -> None:
        method, params = text(message.get("method")), mapping(message.get("params"))
        if not self._is_mine(params):
            self._keep(method, message)
            return
        name = _name(message.get("id"))
        if method == "session/update":
            self._on_update(mapping(params.get("update")), message)
        elif method == "session/request_permission":
            self._calls.let_go()
            self._ask(name, params)
        else:
            self._calls.let_go()
            self._on_request(method, name, params, message)

    def _is_mine(self, params: Frame) -> bool:
        told = text(params.get("sessionId"))
        if told and self._session is None:
            self._session = told
        return not told or told == self._session

    def _on_request(self, method: str, name: str, params: Frame, message: Frame) -> None:
        if method == "initialize":
            self._reconnect()
        if name:
            self._requests[name] = method
        if method == "session/prompt":
            self._prompt(params)
        elif method == "session/load":
            self._end_turn("end_turn", "interrupted")
            self._is_loading = not self._is_new
        else:
            if method == "terminal/output" and name:
                self._outputs[name] = text(params.get("terminalId"))
            self._keep(method, message)

    def _reconnect(self) -> None:
        """The program began anew: nobody answers what was asked before."""
        self._requests.clear()
        self._questions.clear()
        self._outputs.clear()
        self._is_loading = False
        self._end_turn("cancelled", "interrupted", interrupted=True)

    def _on_answer(self, message: Frame) -> None:
        name, result = _name(message.get("id")), mapping(message.get("result"))
        self._calls.let_go()
        if "outcome" in result or (name in self._questions and name not in self._requests):
            self._on_decision(name, result, message)
            return
        if name in self._outputs and "output" in result:
            self._requests.pop(name, None)
            call = self._calls.of_terminal(self._outputs.pop(name))
            if call is not None:
                self._calls.print(call, call.prints_all(text(result["output"])))
            return
        method = self._requests.pop(name, "")
        if type(result.get("protocolVersion")) is int:
            self._calls.clears = result["protocolVersion"] >= _CLEARS
        if text(result.get("sessionId")) and self._session is None:
            self._session = text(result["sessionId"])
        if method == "session/load":
            self._is_loading = False
            self._end_turn("end_turn", "completed")
            self._keep("response", message)
        elif "stopReason" in result and method != _OVER:
            self._on_stop(text(result["stopReason"]), result.get("usage"))
        elif "error" in message and self._ends_turn(method):
            self._on_error(mapping(message.get("error")))
        else:
            self._keep("response", message)

    def _ends_turn(self, method: str) -> bool:
        """Whether an error answers a prompt. Where requests are not seen: once there is a session,
        nothing else is asked that often."""
        return method == "session/prompt" or (not method and self._session is not None)

    # -- turns -------------------------------------------------------------------------------

    def _prompt(self, params: Frame) -> None:
        self._is_loading, self._is_new = False, False
        self._end_user()
        prompts = sum(method == "session/prompt" for method in self._requests.values())
        content, told = blocks_of(params.get("prompt")), text(params.get("messageId")) or None
        if prompts > 1 and self._turns.is_in_turn:
            self._turns.end_answer()
            self._turns.message(content, told)
        else:
            self._end_turn("end_turn", "completed")
            self._turns.user(content, told)
        self._echo = [*array(params.get("prompt"))]

    def _on_stop(self, told: str, usage: object) -> None:
        stop, reason = _STOPS.get(told, ("other", "completed"))
        if "session/prompt" in self._requests.values():
            return  # another prompt is being answered in this turn
        self._turns.begin_turn()
        more: dict[str, Any] = {} if stop == told else {"stop_detail": told}
        self._end_turn(stop, reason, usage=usage_of(usage), more=more)

    def _on_error(self, error: Frame) -> None:
        told = {"name": "error", "message": text(error.get("message"))}
        for key in ("code", "data"):
            if error.get(key) is not None:
                told[key] = plain(error[key])
        self._turns.begin_turn()
        self._end_turn("error", "error", error=told, interrupted=True)

    def _end_turn(
        self,
        stop: str,
        reason: str,
        *,
        error: Frame | None = None,
        usage: Frame | None = None,
        more: dict[str, Any] | None = None,
        interrupted: bool = False,
    ) -> None:
        """End the turn that is open, if one is: calls that did not run are given up."""
        self._end_user()
        self._calls.let_go()
        self._calls.give_up()
        told = dict(more or {})
        if interrupted or reason == "cancelled":
            told["interrupted"] = True
        self._turns.end_turn(reason, error, usage, stop=stop, more=told)
        self._echo = []

    # -- updates -----------------------------------------------------------------------------

    def _on_update(self, update: Frame, message: Frame) -> None:
        kind = text(update.get("sessionUpdate"))
        if self._is_loading:
            self._keep_all(kind, update)
            return
        if kind in ("tool_call", "tool_call_update", "tool_call_content_chunk"):
            self._end_user()
            self._calls.let_go(text(update.get("toolCallId")))
            self._is_new, self._echo = False, []
            if not self._calls.take(kind, update):
                self._keep_all(kind, update)
            return
        self._calls.let_go()
        write = self._writers.get(kind)
        if write is None:
            self._keep(kind or "odd", update or message)
        else:
            write(update)

    def _on_user_chunk(self, update: Frame) -> None:
        content = update.get("content")
        block = block_of(content)
        if content in self._echo:
            self._echo.remove(content)
            return
        if block is None:
            return
        told = text(update.get("messageId")) or None
        if self._user and self._user[-1][0] != told:
            self._end_user()
        self._user.append((told, block))

    def _on_user_message(self, update: Frame) -> None:
        """A whole message (version 2), in the place of what was told of it."""
        told = text(update.get("messageId"))
        if ("user", told) in self._wrote or [*array(update.get("content"))] == self._echo != []:
            self._echo = []
            return
        if self._user and self._user[-1][0] != told:
            self._end_user()
        self._user = [(told, block) for block in blocks_of(update.get("content"))]

    def _end_user(self) -> None:
        """Write the message to the agent that was told in chunks: of a person who speaks in
        another client while the agent answers, or of history."""
        if not self._user:
            return
        told, blocks = self._user[0][0], [block for _, block in self._user]
        self._user = []
        self._is_new = False
        self._wrote.add(("user", told or ""))
        if "session/prompt" in self._requests.values():
            self._turns.end_answer()
            self._turns.message(blocks, told)
            return
        if self._turns.step:
            self._end_turn("end_turn", "completed")
        self._turns.user(blocks, told)

    def _on_chunk(self, update: Frame) -> None:
        kind = "text" if update.get("sessionUpdate") == "agent_message_chunk" else "reasoning"
        if self._is_of_subagent(update):
            self._keep_all(text(update.get("sessionUpdate")), update)
            return
        told = text(update.get("messageId")) or None
        content = mapping(update.get("content"))
        said = content.get("text") if content.get("type") == "text" else None
        if said == "":
            return
        block = None if isinstance(said, str) else block_of(content)
        if block is None and not isinstance(said, str):
            return
        self._speak(kind, told)
        if block is None:
            self._turns.say(kind, said or "", told)
        else:
            self._turns.show(block, told)
        self._wrote.add((kind, told or ""))

    def _is_of_subagent(self, update: Frame) -> bool:
        meta = mapping(update.get("_meta"))
        return bool(text(mapping(meta.get("claudeCode")).get("parentToolUseId")))

    def _on_message(self, update: Frame) -> None:
        """A whole message (version 2): says what was told of it already, and more, or something
        else; null takes it back."""
        kind = "text" if update.get("sessionUpdate") == "agent_message" else "reasoning"
        told = text(update.get("messageId"))
        if "content" not in update:
            return
        blocks = blocks_of(update["content"])
        said = "".join(text(block.get("text")) for block in blocks)
        if self._turns.says_whole(kind, said, told):
            return
        if (kind, told) in self._wrote:
            self._keep(text(update.get("sessionUpdate")), update)
        elif blocks:
            self._speak(kind, told)
            for block in blocks:
                if block["type"] == "text":
                    self._turns.say(kind, block["text"], told)
                else:
                    self._turns.show(block, told)
            self._wrote.add((kind, told))

    def _speak(self, kind: str, told: str | None) -> None:
        """The agent says something: in the open answer, or in one of its own."""
        self._end_user()
        self._is_new, self._echo = False, []
        if self._turns.is_next(kind, told):
            self._next_step()

    def _next_step(self) -> None:
        """Close the step; calls that are still being prepared go on in the next one."""
        going_on = self._calls.give_up()
        self._turns.end_step()
        self._turns.begin_step()
        for call in going_on:
            self._calls.prepare(call)

    def _on_state(self, update: Frame) -> None:
        """Version 2: whether the agent is at work."""
        state = text(update.get("state"))
        if state == "running":
            self._end_user()
            self._turns.begin_turn()
        elif state == "idle" and self._turns.is_in_turn and "stopReason" in update:
            for name, method in self._requests.items():
                if method == "session/prompt":
                    self._requests[name] = _OVER
            self._on_stop(text(update["stopReason"]), update.get("usage"))
        self._keep_all("state_update", update)

    def _on_info(self, update: Frame) -> None:
        if text(update.get("title")):
            told = {"title": text(update["title"]), "source": {"kind": "agent"}}
            self._turns.event("conversation/title", told)
        self._keep("session_info_update", update)

    def _on_compaction(self, update: Frame) -> None:
        named = {"compaction_id": text(update.get("compactionId")) or "compaction"}
        status, summary = text(update.get("status")), text(update.get("summary"))
        begun = ("compaction", named["compaction_id"])
        self._turns.end_answer()
        if begun not in self._wrote:
            self._wrote.add(begun)
            self._turns.event("compaction/start", named)
        if summary:
            self._turns.event("compaction/summary", {**named, "text": summary})
        if status in ("completed", "failed", "cancelled"):
            error = {"error": plain(update["error"])} if update.get("error") else {}
            self._turns.event("compaction/end", {**named, **error})

    def _on_terminal(self, update: Frame) -> None:
        call = self._calls.of_terminal(text(update.get("terminalId")))
        if call is None:
            self._keep_all(text(update.get("sessionUpdate")), update)
        elif update.get("sessionUpdate") == "terminal_output_chunk":
            self._calls.print(call, call.prints_bytes(update.get("data")))
        else:
            self._calls.print(call, call.prints_all(text(update.get("output"))))

    # -- questions ---------------------------------------------------------------------------

    def _ask(self, name: str, params: Frame) -> None:
        """Write that people are asked about a call, which is written before that."""
        self._end_user()
        call = self._calls.asked(_asked_card(params, name))
        self._turns.end_answer(stop="tool_use")
        number = self._asked[call.id] = self._asked.get(call.id, 0) + 1
        request = name or f"request-{number}"
        if (call.id, request) in self._wrote:
            request = f"{request}#{number}"
        self._wrote.add((call.id, request))
        told = map(mapping, array(params.get("options")))
        options = {text(each.get("optionId")): each for each in told}
        if name:
            self._questions[name] = (call, request, options)
        more = {key: plain(params[key]) for key in _OF_QUESTIONS if key in params}
        shown = {"call_id": call.id, "request_id": request, "input": call.input}
        self._turns.event("permission/request", {**more, **shown})

    def _on_decision(self, name: str, result: Frame, message: Frame) -> None:
        """Write what people decided. A question that was cancelled has no answer: it ends with its
        turn."""
        asked = self._questions.pop(name, None)
        outcome = mapping(result.get("outcome"))
        told = text(outcome.get("optionId"))
        if asked is None or outcome.get("outcome") != "selected":
            self._keep("response", message)
            return
        call, option = asked[0], mapping(asked[2].get(told))
        kind = text(option.get("kind")) or told
        is_allowed = kind.startswith(("allow", "approve", "accept", "proceed", "yes"))
        call.is_denied = not is_allowed
        data: dict[str, Any] = {"call_id": call.id, "request_id": asked[1], "option_id": told}
        data["decision"] = "allow" if is_allowed else "deny"
        if kind.endswith("always"):
            data["remember"] = True
        self._turns.event("permission/answer", data)

    # -- what has no counterpart -------------------------------------------------------------

    def _keep(self, kind: str, told: Frame) -> None:
        """Keep an update as it is; other messages only when they are asked for."""
        if "sessionUpdate" in told or self._keeps_all:
            self._turns.event(f"acp/{kind or 'odd'}", plain(told))

    def _keep_all(self, kind: str, told: Frame) -> None:
        """Keep what says nothing new only when everything is asked for."""
        if self._keeps_all:
            self._keep(kind, told)


def _asked_card(params: Frame, name: str) -> Frame:
    """Give the card that a question is about: ACP 2 has it in a subject, which may be a command."""
    card = mapping(params.get("toolCall")) or mapping(params, "subject", "toolCall")
    subject = mapping(params.get("subject"))
    if text(card.get("toolCallId")):
        return card
    if text(subject.get("toolCallId")):
        return subject
    told = {key: value for key, value in subject.items() if key not in ("type", "_meta")}
    kind = "execute" if "command" in told else "other"
    title = text(params.get("title"))
    return {"toolCallId": f"asked-{name}", "kind": kind, "title": title, "rawInput": told, **card}


def _name(told: object) -> str:
    """Name a request; JSON-RPC numbers them, or gives them a text."""
    return str(told) if type(told) is int else text(told)
