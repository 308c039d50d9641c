"""What an AG-UI client shows: the published one, said again in a few lines, its verifier included.

The published one itself stands in `tests/clients`. Not here: tests.
"""

from __future__ import annotations

import json
from typing import Any

from definitions.protocols import Frame
from definitions.testing import ANEW, About

__all__ = ["Agent"]

OPENS = ("TEXT_MESSAGE", "REASONING", "REASONING_MESSAGE", "TOOL_CALL", "STEP")


class Agent:
    """A client that refuses what the verifier refuses."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.open: set[tuple[str, str]] = set()
        self.runs = False

    def take(self, frame: Frame) -> About | None:
        kind = frame["type"]
        if kind == "RUN_STARTED":
            assert not self.runs, "a run in a run"
            self.runs = True
            return None
        assert self.runs, f"{kind} outside of a run"
        if kind in ("RUN_FINISHED", "RUN_ERROR"):
            assert not self.open, f"open at the end of a run: {self.open}"
            self.runs = False
            return ANEW if frame.get("outcome", {}).get("type") == "interrupt" else None
        if kind == "MESSAGES_SNAPSHOT":
            self._replace(frame["messages"])
            return ANEW
        what, _, action = kind.rpartition("_")
        if what in OPENS:
            self._follow(what, action, frame)
        return self._apply(kind, frame)

    def _follow(self, what: str, action: str, frame: Frame) -> None:
        name = frame.get("stepName") or frame.get("toolCallId") or frame.get("messageId")
        entity = (what, name)
        if action in ("START", "STARTED"):
            assert entity not in self.open, f"opened twice: {entity}"
            self.open.add(entity)
        elif action in ("CONTENT", "ARGS", "END", "FINISHED"):
            assert entity in self.open, f"not open: {entity}"
            if action in ("END", "FINISHED"):
                self.open.discard(entity)

    def _replace(self, messages: list[dict[str, Any]]) -> None:
        new = {message["id"]: message for message in messages}
        assert len(new) == len(messages), "an id twice"
        roles = {message["role"] for message in messages}
        kept = [
            new.pop(old["id"], old)
            for old in self.messages
            if old["id"] in new or (old["role"] == "reasoning" and "reasoning" not in roles)
        ]
        self.messages = [*kept, *new.values()]

    def _message(self, name: str, role: str) -> dict[str, Any]:
        for message in self.messages:
            if message["id"] == name:
                return message
        self.messages.append({"id": name, "role": role})
        return self.messages[-1]

    def _call(self, call_id: str) -> dict[str, Any] | None:
        calls = (call for message in self.messages for call in message.get("toolCalls", ()))
        return next((call for call in calls if call["id"] == call_id), None)

    def _apply(self, kind: str, frame: Frame) -> About | None:
        if kind in ("TEXT_MESSAGE_START", "REASONING_MESSAGE_START"):
            self._message(frame["messageId"], frame["role"])
        elif kind in ("TEXT_MESSAGE_CONTENT", "REASONING_MESSAGE_CONTENT"):
            message = self._message(frame["messageId"], "none")
            message["content"] = (message.get("content") or "") + frame["delta"]
        elif kind == "ACTIVITY_SNAPSHOT":
            message = self._message(frame["messageId"], "activity")
            message.update(activityType=frame["activityType"], content=frame["content"])
        elif kind == "CUSTOM" and "toolCallId" in frame["value"]:
            return About(frame["value"]["toolCallId"])
        elif kind.startswith("TOOL_CALL_"):
            return self._apply_call(kind, frame)
        return None

    def _apply_call(self, kind: str, frame: Frame) -> About:
        call_id = frame["toolCallId"]
        call = self._call(call_id)
        if kind == "TOOL_CALL_START" and call is None:
            function = {"name": frame["toolCallName"], "arguments": ""}
            home = self._message(frame["parentMessageId"], "assistant")
            home.setdefault("toolCalls", []).append({"id": call_id, "function": function})
        elif kind == "TOOL_CALL_ARGS":
            assert call is not None
            call["function"]["arguments"] += frame["delta"]
        elif kind == "TOOL_CALL_RESULT":
            assert call is not None, "a result of nothing"
            self.messages.append({**frame, "id": frame["messageId"]})
            return About(call_id, frame["metadata"]["outcome"] != "withdrawn")
        return About(call_id)

    @property
    def calls(self) -> dict[str, Any]:
        results = {m["toolCallId"]: m for m in self.messages if m["role"] == "tool"}
        shown = {}
        for message in self.messages:
            for call in message.get("toolCalls", ()):
                result = results.get(call["id"])
                said = result and (result["content"], result["metadata"])
                function = call["function"]
                arguments = _parsed(function["arguments"])
                shown[call["id"]] = (message["id"], function["name"], arguments, said)
        return shown

    @property
    def texts(self) -> dict[str, Any]:
        said = {message["id"]: message for message in self.messages if message.get("content")}
        return {
            name: (message["role"], message["content"])
            for name, message in said.items()
            if message["role"] != "tool"
        }


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
