"""The calls of one conversation of Claude Code: handed over, asked about, over.

A call is written when the answer that made it is stored, for the program runs it by itself; when
somebody is asked about one that no answer told, then. Not here: answers (`claude_code_chat`), which
conversation a call is of (`claude_code_agent`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assembler.codec import encode
from definitions.providers.agent_turns import AgentTurns
from definitions.providers.claude_code_words import blocks_of, goes_on, said_in
from definitions.providers.outcome import Call
from definitions.providers.reading import is_object, mapping, plain, text
from definitions.providers.settling import call_data

__all__ = ["ClaudeCodeCall", "ClaudeCodeCalls"]

Frame = Mapping[str, Any]

_FAILED = frozenset({"failed", "killed", "stopped"})
_ENDED = frozenset({"completed", *_FAILED})
_NOT_TOLD = frozenset({"subtype", "tool_use_id", "input", "agent_id"})
"""What a question says in words of ours."""


class ClaudeCodeCall:
    """What is known of one call. `id` is its id here."""

    def __init__(self, call_id: str, arguments: str, place: tuple[int, int]) -> None:
        self.id = call_id
        self.arguments = arguments
        self.place = place
        """The turn and the step that it stands in: those of its outermost call."""
        self.is_done = False
        self.is_put_off = False
        """Whether its result said only that it goes on in the background."""
        self.task: Frame = {}
        """How its work in the background ended, while no result of it is known."""


class ClaudeCodeCalls:
    """Writes calls to `turns`. Memory: the ids of every call of the conversation."""

    def __init__(self, turns: AgentTurns) -> None:
        self._turns = turns
        self._calls: dict[str, ClaudeCodeCall] = {}
        """The last call of each id that the program has."""
        self._ids: set[str] = set()
        self._requests: set[tuple[str, str]] = set()
        self._denied: set[str] = set()
        self._ended: dict[str, ClaudeCodeCall] = {}
        """Calls whose work ended and whose results may still come."""

    def __contains__(self, call_id: object) -> bool:
        """Whether an id of ours is in use."""
        return call_id in self._ids

    def get(self, told: str) -> ClaudeCodeCall | None:
        """Give the last call that the program calls so."""
        return self._calls.get(told)

    def id_of(self, told: str) -> str:
        """Name a call as it is named here."""
        call = self._calls.get(told)
        return told if call is None else call.id

    # -- calls -------------------------------------------------------------------------------

    def hand_over(self, call: Call, step: tuple[int, int]) -> None:
        """Write a call of an answer that is stored, when it is ready."""
        told = call.provider_call_id or call.call_id
        made = ClaudeCodeCall(call.call_id, call.arguments_text, step)
        self._calls[told] = made
        self._ids.add(made.id)
        if call.ready:
            self._write(made, call_data(call))

    def alone(self, told: str, name: str, given: object, parent: str | None = None) -> str:
        """Write a call that no answer of this conversation told: of a subagent, or one that is
        asked about. Gives its id; told again, it is the same."""
        arguments = encode(plain(given if is_object(given) else {})).decode()
        known = self._calls.get(told)
        if known is not None and not self._is_another(known, arguments):
            return known.id
        outer = self._calls.get(parent or "")
        if outer is None:
            self._turns.begin_step()
        place = (self._turns.turn, self._turns.step) if outer is None else outer.place
        call = ClaudeCodeCall(self._new(told), arguments, place)
        self._calls[told] = call
        data: dict[str, Any] = {"call_id": call.id, "name": name, "arguments": arguments}
        data |= {} if call.id == told else {"provider_call_id": told}
        self._write(call, data | ({"parent_call_id": self.id_of(parent)} if parent else {}))
        return call.id

    def _is_another(self, known: ClaudeCodeCall, arguments: str) -> bool:
        return known.is_done and known.arguments != arguments

    def _new(self, told: str) -> str:
        number, name = 1, told
        while name in self._ids:
            number += 1
            name = f"{told}#{number}"
        self._ids.add(name)
        return name

    def _write(self, call: ClaudeCodeCall, data: Mapping[str, Any]) -> None:
        self._turns.event("tool/call", {"turn": call.place[0], "step": call.place[1], **data})

    # -- results -----------------------------------------------------------------------------

    def result(self, block: Frame, more: object = None) -> None:
        """Write what came of a call. `more` is what the program knows of it beside that."""
        told = text(block.get("tool_use_id"))
        call = self._calls.get(told)
        content = blocks_of(block.get("content"))
        data: dict[str, Any] = {"call_id": self.id_of(told), "content": content}
        if block.get("is_error") is True:
            data["is_error"] = True
            if told in self._denied:
                data["error"] = {"name": "denied", "message": said_in(content)}
        if more is not None and not isinstance(more, str):
            data["meta"] = {"tool_use_result": plain(more)}
        if goes_on(more):
            data["synthetic"] = True
        self._turns.event("tool/result", data)
        if call is not None:
            call.is_done = call.is_put_off = True
            if not goes_on(more):
                call.is_put_off = False
                self._ended.pop(told, None)

    def deny(self, told: str) -> None:
        """A call was refused: so its result will say."""
        self._denied.add(told)

    def task_ended(self, told: str, frame: Frame) -> bool:
        """Take a frame about the work of a call; whether the work ended with it.

        While its turn goes on, the call's own result may be about to come. Later, and for a call
        that was put off, the program's notice is its result; what says less than a notice holds
        the place of one.
        """
        status = text(frame.get("status")) or text(mapping(frame.get("patch")).get("status"))
        call = self._calls.get(told)
        if status not in _ENDED or call is None or (call.is_done and not call.is_put_off):
            return status in _ENDED
        call.task = {**call.task, **frame, "status": status}
        self._ended[told] = call
        if text(frame.get("subtype")) == "task_notification":
            self.end_tasks(all_of_them=False)
        elif not call.is_put_off and self._is_over(call):
            self._write_end(call, {"synthetic": True})
        return True

    def end_tasks(self, *, all_of_them: bool = True) -> None:
        """Write the results of calls whose work ended without one: of all, or of those that were
        put off or whose turn is over."""
        for told, call in list(self._ended.items()):
            if all_of_them or call.is_put_off or self._is_over(call):
                self._write_end(call, {})
                call.is_done, call.is_put_off = True, False
                del self._ended[told]

    def _is_over(self, call: ClaudeCodeCall) -> bool:
        return not self._turns.is_in_turn or call.place[0] != self._turns.turn

    def _write_end(self, call: ClaudeCodeCall, more: Frame) -> None:
        task = call.task
        status = text(task.get("status"))
        said = text(task.get("summary")) or text(mapping(task.get("patch")).get("error"))
        data: dict[str, Any] = {"call_id": call.id, "content": blocks_of(said or status), **more}
        if status in _FAILED:
            data["is_error"] = True
        self._turns.event("tool/result", data)

    # -- questions ---------------------------------------------------------------------------

    def ask(self, call_id: str, request: str, told: Frame) -> str:
        """Write that people are asked about a call; gives the name of the question."""
        number, name = 1, request
        while (call_id, name) in self._requests:
            number += 1
            name = f"{request}#{number}"
        self._requests.add((call_id, name))
        more = {key: plain(value) for key, value in told.items() if key not in _NOT_TOLD}
        shown = {"call_id": call_id, "request_id": name, "input": plain(mapping(told, "input"))}
        self._turns.event("permission/request", {**more, **shown})
        return name

    def decide(self, told: str, call_id: str, request: str, answer: Frame) -> None:
        """Write what was decided: `answer` is the response to a question, or says `error`."""
        is_allowed = answer.get("behavior") == "allow"
        data: dict[str, Any] = {"call_id": call_id, "request_id": request}
        data["decision"] = "allow" if is_allowed else "deny"
        if is_allowed and is_object(answer.get("updatedInput")):
            data["updated_input"] = plain(answer["updatedInput"])
        if answer.get("updatedPermissions"):
            data |= {"remember": True, "updated_permissions": plain(answer["updatedPermissions"])}
        for name in ("message", "error"):
            if text(answer.get(name)):
                data[name] = text(answer[name])
        self._turns.event("permission/answer", data)
        if not is_allowed:
            self.deny(told)
