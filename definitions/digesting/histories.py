"""What a client sent back to a provider: the calls and texts of the model in a request's history.

One reader for the requests of all formats: each spells an answer in the history as messages with a
role, as items, or as contents with parts, and no spelling is in another one's way. Not here: what
the history is compared with (`exchanges`).
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from definitions.providers.reading import array, mapping, text

__all__ = ["UNKNOWN", "History", "Sent", "history_of"]

UNKNOWN = "?"
"""Arguments that a spelling has in a place of their own (`operation`, `action`)."""

_MODEL = frozenset({"assistant", "model"})


class Sent(Struct, frozen=True):
    """A call in a history. `arguments`: decoded where they are text and JSON."""

    id: str
    name: str
    arguments: Any


class History(Struct, frozen=True):
    """The model's calls and texts in a request, oldest first; one text for each message."""

    calls: tuple[Sent, ...]
    texts: tuple[str, ...]


def history_of(request: object) -> History:
    """Read a request, whatever its format. Never raises; linear in it."""
    calls: list[Sent] = []
    texts: list[str] = []
    for field in ("messages", "input", "contents"):
        for entry in array(mapping(request).get(field)):
            calls += _calls(mapping(entry))
            texts.append(_text(mapping(entry)))
    return History(tuple(calls), tuple(filter(None, texts)))


def _calls(entry: Mapping[str, Any]) -> Iterator[Sent]:
    for made in array(entry.get("tool_calls")):
        function = mapping(made, "function")
        yield _sent(mapping(made).get("id"), function.get("name"), function.get("arguments"))
    if text(entry.get("type")).endswith("_call"):
        name = text(entry.get("name")) or text(entry["type"]).removesuffix("_call")
        said = entry.get("arguments", entry.get("input", UNKNOWN))
        yield _sent(entry.get("call_id") or entry.get("id"), name, said)
    for part in map(mapping, [*array(entry.get("content")), *array(entry.get("parts"))]):
        if text(part.get("type")).endswith("_use"):
            yield _sent(part.get("id"), part.get("name"), part.get("input"))
        used = mapping(part, "toolUse")
        if used:
            yield _sent(used.get("toolUseId"), used.get("name"), used.get("input"))
        called = mapping(part.get("functionCall") or part.get("function_call"))
        if called:
            yield _sent(called.get("id"), called.get("name"), called.get("args"))


def _sent(call_id: object, name: object, arguments: object) -> Sent:
    if isinstance(arguments, str) and arguments != UNKNOWN:
        with contextlib.suppress(ValueError, RecursionError):
            arguments = json.loads(arguments or "{}")
    return Sent(text(call_id), text(name), {} if arguments is None else arguments)


def _text(entry: Mapping[str, Any]) -> str:
    if text(entry.get("role")) not in _MODEL:
        return ""
    said = entry.get("content")
    if isinstance(said, str):
        return text(said)
    parts = map(mapping, [*array(said), *array(entry.get("parts"))])
    return "".join(text(part.get("text")) for part in parts if not part.get("thought"))
