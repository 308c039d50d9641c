"""What AG-UI calls things: messages, results, activities, ends of runs.

Data, and functions of one value. The words are those of the Agent-User Interaction Protocol, 1.0.
Not here: when an event is sent (`ag_ui`).
"""

from __future__ import annotations

from typing import Any

from assembler.engine.definition import Node
from assembler.engine.values import Object, Text, thaw
from definitions.protocols.shown import text_of

__all__ = [
    "ACTIVITIES",
    "Book",
    "activity_of",
    "content_of",
    "end_of",
    "error_of",
    "interrupt_of",
    "question_of",
    "result_of",
    "withdrawal",
]

ACTIVITIES = ("command", "compaction", "retry", "turn-limit")
"""Kinds of Nodes that are activities: shown beside the messages, never sent to a model."""

_GAVE_UP = frozenset({"cancelled", "interrupted"})


def activity_of(node: Node) -> dict[str, Any]:
    """Give the activity message of a Node."""
    content = thaw(node.data)
    return {"id": node.key, "role": "activity", "activityType": node.kind, "content": content}


def content_of(node: Node) -> str | list[dict[str, Any]]:
    """Give what a person said: a text, or parts where files are among it."""
    blocks = [block for block in node.data["content"] if type(block) is Object]
    if not any(block.get("type") == "file" for block in blocks):
        return text_of(node.data["content"])
    parts = [_file(block) if block.get("type") == "file" else _text(block) for block in blocks]
    return [part for part in parts if part is not None]


def _text(block: Object) -> dict[str, Any] | None:
    text = text_of((block,))
    return {"type": "text", "text": text} if text else None


def _file(block: Object) -> dict[str, Any] | None:
    media, url, data = block.get("media_type"), block.get("url"), block.get("data")
    mime = media if type(media) is str and media else "application/octet-stream"
    if type(url) is str and url:
        source = {"type": "url", "value": url, "mimeType": mime}
    elif type(data) in (str, Text) and data:
        source = {"type": "data", "value": str(data), "mimeType": mime}
    else:
        return None
    family = mime.partition("/")[0]
    return {
        "type": family if family in ("image", "audio", "video") else "document",
        "source": source,
    }


def result_of(node: Node) -> dict[str, Any]:
    """Give what a tool message says of a call that is over: `content` and `metadata`."""
    data = node.data
    if data["stage"] != "result":
        return {"content": "", "metadata": {"outcome": "unsettled"}}
    metadata = {"outcome": data["outcome"]}
    if data["error"] is not None:
        metadata["error"] = thaw(data["error"])
    return {"content": text_of(data["content"]), "metadata": metadata}


def question_of(node: Node) -> dict[str, Any]:
    """Give what is said of a permission."""
    data = node.data
    return {
        "id": node.id,
        "toolCallId": data["call_id"],
        "input": thaw(data["input"]),
        "decision": data["decision"],
    }


def interrupt_of(node: Node, name: str) -> dict[str, Any]:
    """Give the interrupt that waits for an answer to a permission."""
    metadata = {"toolName": name, "input": thaw(node.data["input"])}
    ids = {"id": node.id, "toolCallId": node.data["call_id"]}
    return {**ids, "reason": "tool_call", "metadata": metadata}


def end_of(tail: Node | None) -> dict[str, Any]:
    """Give the outcome of a run from the tail of its turn; a turn that has none broke off."""
    if tail is None or tail.data["status"] in _GAVE_UP:
        return {"type": "cancelled"}
    return {"type": "success"}


def error_of(node: Node) -> dict[str, Any]:
    """Give `message` and `code` of the error that ended a turn."""
    error = node.data["error"]
    if type(error) is not Object:
        return {"message": "error"}
    name, code = error.get("name"), error.get("code")
    said = error.get("message") or name or "error"
    told = code if code is not None else name
    return {"message": str(said)} if told is None else {"message": str(said), "code": str(told)}


def withdrawal(call_id: str) -> dict[str, Any]:
    """Give the result of a call that was given up, which the next snapshot removes with it."""
    ids = {"messageId": f"result:{call_id}", "toolCallId": call_id, "role": "tool"}
    return {**ids, "content": "", "metadata": {"outcome": "withdrawn"}}


class Book:
    """The messages of a conversation as they are written down, in the order of a client's."""

    def __init__(self) -> None:
        self._messages: dict[str, dict[str, Any]] = {}
        self._results: dict[str, list[dict[str, Any]]] = {}

    def add(self, message: dict[str, Any]) -> None:
        self._messages[message["id"]] = message

    def say(self, message_id: str, kind: str, text: str) -> None:
        """A text of the model, also in a message that has calls already."""
        role = "reasoning" if kind == "reasoning" else "assistant"
        message = self._messages.setdefault(message_id, {"id": message_id, "role": role})
        message["content"] = text

    def call(
        self, home: str, call_id: str, name: str, arguments: str, metadata: dict[str, Any]
    ) -> None:
        message = self._messages.setdefault(home, {"id": home, "role": "assistant"})
        function = {"name": name, "arguments": arguments}
        call: dict[str, Any] = {"id": call_id, "type": "function", "function": function}
        if metadata:
            call["metadata"] = metadata
        message.setdefault("toolCalls", []).append(call)

    def result(self, home: str, message: dict[str, Any]) -> None:
        self._results.setdefault(home, []).append(message)

    def messages(self) -> list[dict[str, Any]]:
        """All of them; results behind the message with their calls."""
        return [
            message
            for name, first in self._messages.items()
            for message in (first, *self._results.get(name, ()))
        ]
