"""What ACP calls things: kinds, titles, content blocks, places of calls.

Data, and functions of one value. The words are those of the Agent Client Protocol, version 1
(https://agentclientprotocol.com/protocol/v1/tool-calls and /content). Not here: when a frame is
sent (`acp`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assembler.codec import encode
from assembler.engine.values import Json, Object, Text, thaw
from definitions.families import GENERIC, category_of, family_of

__all__ = ["block_of", "blocks_of", "kind_of", "locations_of", "output_of", "title_of"]

_KINDS: Mapping[str, str] = {
    "read": "read",
    "read-image": "read",
    "write": "edit",
    "edit": "edit",
    "search": "search",
    "command": "execute",
    "code": "execute",
    "web-search": "fetch",
    "web-fetch": "fetch",
    "subagent": "think",
    "plan": "think",
}
"""From the category under which groups count a tool to ACP's kind; what is not here is `other`."""

_PATHS = ("path", "file_path", "filePath", "target_file", "absolute_path", "notebook_path", "file")
_LINES = ("line", "offset")


def kind_of(name: str) -> str:
    """Give the kind of a tool by its name alone. O(1)."""
    return _KINDS.get(category_of(name), "other")


def title_of(name: str, row: Json, *, complete: bool) -> str:
    """Give the title of a card: what its row says, or the tool's name.

    Before the arguments are `complete` nothing of them is in it. A generic row begins its summary
    with the tool's name, so its own title adds nothing.
    """
    generic = family_of(name) is GENERIC
    title = _said(row, "title")
    if not title or (generic and not complete):
        return name
    summary = _said(row, "summary") if complete else ""
    if generic:
        return summary or name
    return f"{title} {summary}" if summary else title


def _said(row: Json, field: str) -> str:
    value = row.get(field) if type(row) is Object else None
    return str(value) if type(value) in (str, Text) else ""


def locations_of(name: str, arguments: Json, cwd: str | None) -> list[dict[str, Any]]:
    """Give the file that a call reads or edits. ACP wants absolute paths: a relative one is put
    behind `cwd`, and left out without it."""
    if type(arguments) is not Object or kind_of(name) not in ("read", "edit"):
        return []
    path = next((arguments[field] for field in _PATHS if _is_text(arguments.get(field))), None)
    if path is None:
        return []
    if not _is_absolute(path):
        if cwd is None:
            return []
        path = f"{cwd.rstrip('/')}/{path.removeprefix('./')}"
    line = next((arguments[field] for field in _LINES if _is_line(arguments.get(field))), None)
    return [{"path": path}] if line is None else [{"path": path, "line": line}]


def _is_text(value: Json) -> bool:
    return type(value) is str and bool(value)


def _is_line(value: Json) -> bool:
    return type(value) is int and value >= 0


def _is_absolute(path: str) -> bool:
    return path.startswith(("/", "\\")) or path[1:3] in (":\\", ":/")


def blocks_of(content: Json) -> list[dict[str, Any]]:
    """Give the ContentBlocks of a list of blocks, without those that ACP has no words for."""
    if type(content) is not tuple:
        return []
    return [said for block in content if (said := block_of(block)) is not None]


def block_of(block: Json) -> dict[str, Any] | None:
    """Give the ContentBlock of one block; None for what has no words in ACP, or nothing to say."""
    if type(block) is not Object:
        return None
    kind = block.get("type")
    if kind in ("text", "reasoning"):
        text = block.get("text")
        said = str(text) if type(text) in (str, Text) else ""
        return {"type": "text", "text": said} if said else None
    if kind == "json":
        return {"type": "text", "text": encode(block.get("value")).decode()}
    return _file(block) if kind == "file" else None


def _file(block: Object) -> dict[str, Any] | None:
    """Say a file: as a link, a picture, a sound, or what is embedded."""
    url, data, media = block.get("url"), block.get("data"), block.get("media_type")
    media = media if _is_text(media) else "application/octet-stream"
    name = block.get("name") if _is_text(block.get("name")) else ""
    if _is_text(url):
        name = name or url.rstrip("/").rpartition("/")[2] or url
        return {"type": "resource_link", "uri": url, "name": name, "mimeType": media}
    if not _is_text(data):
        return None
    family = media.partition("/")[0]
    if family in ("image", "audio"):
        return {"type": family, "data": data, "mimeType": media}
    # An embedded resource has to have an address, and this one has none of its own.
    resource = {"uri": f"attachment:{name or media}", "blob": data, "mimeType": media}
    return {"type": "resource", "resource": resource}


def output_of(data: Object) -> Any:
    """Give what a result says beside its content: its error, the values of its JSON blocks; None
    when there is neither. Text is not said twice."""
    values = [
        thaw(block.get("value"))
        for block in data["content"]
        if type(block) is Object and block.get("type") == "json"
    ]
    value = values[0] if len(values) == 1 else values or None
    error = data.get("error")
    if error is None:
        return value
    return {"error": thaw(error)} if value is None else {"error": thaw(error), "value": value}
