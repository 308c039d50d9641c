"""How a Node reads on one line of a terminal or a log: `row_text`.

Plain and complete enough to follow a conversation. Not here: the rows of a graphical client, with
icons and families.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from assembler.engine.definition import Node
from assembler.engine.values import Object, Text, thaw
from definitions.nodes import ToolNode

__all__ = ["row_text"]

_TEXT_MAX = 4_096
"""So much of one text is looked at: its first half and its last, where it grows."""


def row_text(node: Node) -> tuple[str, str, str]:
    """Give the stage (one word or none), the title and the summary of a Node's row."""
    reads = _READS.get(node.kind)
    if reads is None:
        return "", node.kind, _pairs(node.data)
    return reads(node)


def _message(node: Node) -> tuple[str, str, str]:
    return "", node.kind, _content(node.data["content"])


def _assistant(node: Node) -> tuple[str, str, str]:
    status = node.data["status"]
    return "" if status == "settled" else status, node.kind, _content(node.data["blocks"])


def _tool(node: Node) -> tuple[str, str, str]:
    data = node.data
    said = [_arguments(node)]
    if data["output"]:
        said.append(f"→ {_clipped(data['output'])}")
    elif data["content"]:
        said.append(f"→ {_content(data['content'])}")
    if data["error"]:
        said.append(f"! {_pairs(data['error'])}")
    return _tool_stage(data), str(data["name"] or "?"), "  ".join(filter(None, said))


def _tool_stage(data: Mapping[str, Any]) -> str:
    if data["waiting"] is not None:
        return "waiting"
    if data["stage"] == "preparing":
        return "preparing"
    return data["outcome"] or "running"


def _arguments(node: Node) -> str:
    """The arguments that run; while they are being written, what of them can be read."""
    if node.data["arguments"] is not None:
        return _pairs(node.data["arguments"])
    if isinstance(node, ToolNode):
        return _pairs(node.partial)
    return _clipped(node.data["arguments_text"] or "")


def _permission(node: Node) -> tuple[str, str, str]:
    return str(node.data["decision"]), node.kind, _pairs(node.data["input"] or {})


def _turn_error(node: Node) -> tuple[str, str, str]:
    return "failed", node.kind, _pairs(node.data["error"] or {})


def _unknown(node: Node) -> tuple[str, str, str]:
    return "", str(node.data["type"]), _pairs(node.data["data"])


def _content(blocks: Iterable[Any]) -> str:
    """The text of content blocks; of others, what they are."""
    said = []
    for block in blocks:
        text = block.get("text") if isinstance(block, Object) else None
        if isinstance(text, (str, Text)):
            mark = "(thinking) " if block.get("type") == "reasoning" else ""
            said.append(mark + _clipped(text))
        else:
            said.append(_value(block))
    return "  ".join(filter(None, said))


def _pairs(fields: Any) -> str:
    """`name: value` of every field that has one; what is no object as it is."""
    if not isinstance(fields, Mapping):
        return _value(fields)
    return "  ".join(
        f"{name}: {_value(value)}" for name, value in fields.items() if value is not None
    )


def _value(value: Any) -> str:
    if isinstance(value, (str, Text)):
        return _clipped(value)
    if isinstance(value, Mapping):
        return f"{{{_pairs(value)}}}"
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(_value, value))}]"
    spoken = {None: "null", True: "true", False: "false"}
    plain = thaw(value)
    return spoken[plain] if plain is None or isinstance(plain, bool) else str(plain)


def _clipped(text: str | Text) -> str:
    text = str(text)
    if len(text) <= _TEXT_MAX:
        return text
    half = _TEXT_MAX // 2
    return f"{text[:half]} … {text[-half:]}"


_READS: Mapping[str, Callable[[Node], tuple[str, str, str]]] = {
    "user": _message,
    "steering": _message,
    "context": _message,
    "assistant": _assistant,
    "tool": _tool,
    "permission": _permission,
    "turn-error": _turn_error,
    "unknown": _unknown,
}
