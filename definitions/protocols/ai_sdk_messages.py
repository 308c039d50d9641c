"""AI SDK: the messages that `useChat` begins with, from a Snapshot of the `chat` view.

They are what its client makes of the stream (`ai_sdk`), with what persons typed between. Not here:
what is streamed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from assembler.engine.definition import Node
from assembler.engine.patches import Snapshot
from definitions.arguments import partial
from definitions.protocols.ai_sdk import AiSdk
from definitions.protocols.ai_sdk_words import steering_of
from definitions.protocols.frames import Frame

__all__ = ["ui_messages"]

_STATES = {
    "tool-approval-request": "approval-requested",
    "tool-approval-response": "approval-responded",
    "tool-input-available": "input-available",
    "tool-input-error": "output-error",
    "tool-input-start": "input-streaming",
    "tool-output-available": "output-available",
    "tool-output-denied": "output-denied",
    "tool-output-error": "output-error",
}
_OF_A_CALL = ("input", "output", "errorText", "providerExecuted", "toolMetadata")


def ui_messages(snapshot: Snapshot, **options: Any) -> list[dict[str, Any]]:
    """Give the UIMessages of a view, in its order: each turn one of the assistant, beside those of
    persons. `options` are those of `AiSdk`. A client that has them resumes with
    `AiSdk(tells="newest")`. O(size).
    """
    messages: dict[str, dict[str, Any]] = {}
    for node in snapshot.nodes:
        name = _place(node)
        if name is not None and name not in messages:
            is_person = node.kind == "user"
            role = "user" if is_person else "assistant"
            parts = steering_of(node)["parts"] if is_person else []
            messages[name] = {"id": node.id if is_person else name, "role": role, "parts": parts}
    reader = _Reader(lambda name: messages.setdefault(name, _empty(name)))
    for frame in AiSdk(**options).feed(snapshot):
        reader.read(frame)
    return [message for message in messages.values() if message["parts"]]


def _place(node: Node) -> str | None:
    """By what the message is known in which a Node is; None of one in no turn."""
    if node.kind == "user":
        return node.key
    return None if node.turn is None else f"turn-{node.turn}"


def _empty(name: str) -> dict[str, Any]:
    return {"id": name, "role": "assistant", "parts": []}


class _Reader:
    """Makes parts of a stream that takes nothing back, as the published client does."""

    def __init__(self, message: Callable[[str], dict[str, Any]]) -> None:
        self._message = message
        self._parts: list[dict[str, Any]] = []
        self._texts: dict[str, dict[str, Any]] = {}
        self._calls: dict[str, dict[str, Any]] = {}
        self._asked: dict[str, dict[str, Any]] = {}

    def read(self, frame: Frame) -> None:
        kind = frame["type"]
        if kind == "start":
            self._parts = self._message(frame["messageId"])["parts"]
        elif kind == "start-step":
            self._parts.append({"type": "step-start"})
        elif kind in ("file", "steering-message") or kind.startswith("data-"):
            self._parts.append(frame)
        elif kind.startswith(("text-", "reasoning-")):
            self._read_text(frame, *kind.split("-"))
        elif kind.startswith("tool-"):
            self._read_call(kind, frame)

    def _read_text(self, frame: Frame, kind: str, action: str) -> None:
        if action == "start":
            ids = {"id": frame["id"]} if kind == "reasoning" else {}
            part = {"type": kind, **ids, "text": "", "state": "streaming"}
            self._texts[frame["id"]] = part
            self._parts.append(part)
        elif action == "delta":
            self._texts[frame["id"]]["text"] += frame["delta"]
        else:
            self._texts.pop(frame["id"])["state"] = "done"

    def _read_call(self, kind: str, frame: Frame) -> None:
        asked = frame.get("approvalId")
        part = self._asked.get(asked) if "toolCallId" not in frame and asked else None
        if part is None:
            part = self._calls.get(frame["toolCallId"]) or self._begin(frame)
        if kind == "tool-input-delta":
            part["rawInput"] = part.get("rawInput", "") + frame["inputTextDelta"]
            part["input"] = partial(part["rawInput"])
            return
        part["state"] = _STATES[kind]
        part.update({name: frame[name] for name in _OF_A_CALL if name in frame})
        if kind == "tool-input-available":
            part.pop("rawInput", None)
        elif kind == "tool-approval-request":
            part["approval"] = {"id": asked}
            self._asked[frame["approvalId"]] = part
        elif kind == "tool-approval-response":
            part["approval"]["approved"] = frame["approved"]

    def _begin(self, frame: Frame) -> dict[str, Any]:
        name = frame["toolName"]
        kind = {"type": f"tool-{name}"}
        if frame.get("dynamic"):
            kind = {"type": "dynamic-tool", "toolName": name}
        part: dict[str, Any] = {**kind, "toolCallId": frame["toolCallId"]}
        self._calls[frame["toolCallId"]] = part
        self._parts.append(part)
        return part
