"""A history as it is sent to a provider, taken apart into what can be compared piece by piece.

A `Unit` is one text, one call, one result …, with the JSON that its format has for it. Spellings
that a format takes for the same (a text alone, or as a list of one part; the other case of a field)
are one here. Not here: what two histories say alike (`contexts`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from definitions.providers.reading import array, mapping, text

__all__ = ["FIELDS", "Unit", "call_of", "history", "parsed", "squeezed", "units", "words"]

FIELDS: Mapping[str, str] = {
    "anthropic": "messages",
    "openai_chat": "messages",
    "openai_responses": "input",
    "gemini": "contents",
}
"""Where the history stands in a request, by the names of the formats of `model_context`."""

_HARNESS = frozenset({"system", "developer"})
_REASONING = ("reasoning_content", "reasoning", "reasoning_details")
_WORDS = ("text", "output", "content", "result", "error", *_REASONING)
_GEMINI = {
    "function_call": "functionCall",
    "function_response": "functionResponse",
    "thought_signature": "thoughtSignature",
    "inline_data": "inlineData",
    "mime_type": "mimeType",
}
_QUOTES = str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"")


class Unit(Struct, frozen=True):
    """One piece: `kind` is text, reasoning, call, result or another word of its format.

    `key` is what it is found again by: its name or its words.
    """

    role: str
    kind: str
    key: str
    body: Any


def history(request: Mapping[str, Any], format: str) -> list[Any]:
    """Give the messages of a request, without what the harness says of itself."""
    told = request.get(FIELDS[format])
    if isinstance(told, str):
        return [{"role": "user", "content": told}]
    return [each for each in array(told) if mapping(each).get("role") not in _HARNESS]


def units(message: object, format: str) -> list[Unit]:
    """Take one message or item apart. Never raises; linear."""
    return list(_UNITS[format](mapping(message)))


def call_of(unit: Unit) -> Any:
    """Give the name and the arguments of a call, whatever its format; arguments as a value."""
    body = unit.body
    inner = mapping(body, "function") or mapping(body, "functionCall") or body
    told = next((inner[name] for name in ("arguments", "args", "input") if name in inner), None)
    return [unit.key, parsed(told)]


def parsed(value: Any) -> Any:
    """Give a value that may stand as JSON text, an empty text as `{}`."""
    try:
        return json.loads(value or "{}") if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return value


def words(content: Any) -> str:
    """Give the text of content, however it is wrapped."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(map(words, content))
    if isinstance(content, Mapping):
        inner = (content.get(key) for key in _WORDS)
        return next((words(each) for each in inner if each), "")
    return ""


def squeezed(said: str) -> str:
    """Give a text without what clients and recorders change in it: blanks, typographic quotes."""
    return "".join(said.translate(_QUOTES).split())


def _unit(role: object, kind: str, body: Any, key: str | None = None) -> Unit:
    return Unit(text(role), kind, squeezed(words(body)) if key is None else key, body)


def _anthropic(message: Mapping[str, Any]) -> Iterator[Unit]:
    role, content = message.get("role"), message.get("content")
    for block in _parts(content, "text"):
        kind = text(block.get("type"))
        if kind == "thinking":
            yield _unit(role, "reasoning", block, "")
        elif kind.endswith("tool_use"):
            yield _unit(role, "call", block, text(block.get("name")))
        elif kind == "tool_result":
            told = {**block, "content": _parts(block.get("content"), "text")}
            yield _unit(role, "result", told, "")
        else:
            yield _unit(role, kind, block)


def _openai_chat(message: Mapping[str, Any]) -> Iterator[Unit]:
    role = message.get("role")
    if role == "tool":
        yield _unit(role, "result", message, "")
        return
    for field in _REASONING:
        if message.get(field):
            yield _unit(role, "reasoning", {field: message[field]}, "")
    for part in _parts(message.get("content"), "text"):
        yield _unit(role, text(part.get("type")), part)
    for call in map(mapping, array(message.get("tool_calls"))):
        yield _unit(role, "call", call, text(mapping(call, "function").get("name")))


def _openai_responses(item: Mapping[str, Any]) -> Iterator[Unit]:
    kind = text(item.get("type")) or "message"
    if kind == "message":
        for part in _parts(item.get("content"), "text"):
            told = {**part, "type": text(part.get("type")).rpartition("_")[2]}
            more = {key: item[key] for key in ("id", "status", "phase") if key in item}
            yield _unit(item.get("role"), text(told["type"]), {**told, "message": more})
    elif kind == "reasoning":
        yield _unit("assistant", kind, item, "")
    elif kind.endswith(("_call", "program")):
        yield _unit("assistant", "call", item, text(item.get("name")) or kind)
    elif kind.endswith("_output"):
        yield _unit("tool", "result", item, "")
    else:
        yield _unit("assistant", kind, item)


def _gemini(content: Mapping[str, Any]) -> Iterator[Unit]:
    role = text(content.get("role")) or "user"
    for part in map(mapping, array(content.get("parts"))):
        told = {_GEMINI.get(key, key): value for key, value in part.items()}
        if "functionCall" in told:
            yield _unit("model", "call", told, text(mapping(told, "functionCall").get("name")))
        elif "functionResponse" in told:
            name = text(mapping(told, "functionResponse").get("name"))
            yield _unit("tool", "result", told, name)
        elif "text" in told:
            yield _unit(role, "reasoning" if told.get("thought") else "text", told)
        else:
            yield _unit(role, next(iter(told), ""), told)


def _parts(content: object, kind: str) -> list[Mapping[str, Any]]:
    """Give content as parts; a text alone is one."""
    if isinstance(content, str):
        return [{"type": kind, "text": content}] if content else []
    return [
        {"type": kind, "text": part} if isinstance(part, str) else mapping(part)
        for part in array(content)
    ]


_UNITS = {
    "anthropic": _anthropic,
    "openai_chat": _openai_chat,
    "openai_responses": _openai_responses,
    "gemini": _gemini,
}
