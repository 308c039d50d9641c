"""What a client sent to a model, whatever the provider: what it said since the last answer.

Each provider spells a request as messages with a role, as items, or as contents with parts, and no
spelling is in another one's way. Not here: the answers (`model_answers`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from attrs import frozen

from definitions.importers.transcript import text_block
from definitions.providers.reading import array, mapping, text

__all__ = ["Prompt", "Returned", "said_last", "unmarked"]

_MODEL = frozenset({"assistant", "model"})
_HARNESS = frozenset({"system", "developer"})
_TEXTS = ("text", "input_text", "output_text")

Block: TypeAlias = dict[str, Any]


@frozen
class Prompt:
    """A message of the user."""

    content: list[Block]


@frozen
class Returned:
    """The result of a call; `call_id` empty: the client keeps none, it is the next call's."""

    call_id: str
    content: list[Block]
    is_error: bool = False


def said_last(
    request: Mapping[str, Any], before: Mapping[str, Any] | None = None
) -> list[Prompt | Returned]:
    """Give the prompts and results behind the last answer in a request. Never raises; linear.

    `before` is the request that the last answer came to: where this one goes on from it, all that
    is new counts, whatever answers stand in between that nobody recorded.
    """
    said: list[Prompt | Returned] = []
    for field in ("messages", "input", "contents"):
        told = request.get(field)
        if isinstance(told, str):
            return [Prompt([text_block(told)])]
        entries = list(array(told))
        known = list(array(before.get(field))) if before else []
        new = entries[len(known) :] if known and _goes_on(entries, known) else None
        for entry in map(mapping, entries if new is None else new):
            if not _is_of_model(entry):
                said += _said(entry)
            elif new is None:
                said = []
    return said


def _goes_on(entries: list[Any], known: list[Any]) -> bool:
    return bool(unmarked(entries[: len(known)]) == unmarked(known))


def unmarked(value: Any) -> Any:
    """Give a part of a request without the marks that say what to cache: they move on."""
    if isinstance(value, dict):
        return {key: unmarked(each) for key, each in value.items() if key != "cache_control"}
    return [unmarked(each) for each in value] if isinstance(value, list) else value


def _is_of_model(entry: Mapping[str, Any]) -> bool:
    kind = text(entry.get("type"))
    if kind.endswith("_output") and entry.get("execution") == "server":
        return True  # what the provider itself found
    return text(entry.get("role")) in _MODEL or kind.endswith("_call") or kind == "reasoning"


def _said(entry: Mapping[str, Any]) -> Iterator[Prompt | Returned]:
    role, kind = text(entry.get("role")), text(entry.get("type"))
    if role in _HARNESS:
        return
    if role == "tool" and not array(entry.get("content")):
        yield Returned(_id(entry), _blocks(entry.get("content")))
    elif role == "tool" and not any(_is_result(mapping(part)) for part in entry["content"]):
        yield Returned(_id(entry), _blocks(entry["content"]))
    elif kind.endswith("_output"):
        yield Returned(_id(entry), _blocks(entry.get("output", entry.get("tools"))))
    else:
        yield from _parts(entry.get("content", entry.get("parts")))


def _parts(content: object) -> Iterator[Prompt | Returned]:
    """Results first, then what the user said beside them: so it was sent."""
    parts = [mapping(part) for part in array(content)]
    for part in parts:
        if _is_result(part):
            yield _result(part)
    prompt = content if isinstance(content, str) else [p for p in parts if not _is_result(p)]
    blocks = _blocks(prompt)
    if blocks:
        yield Prompt(blocks)


def _is_result(part: Mapping[str, Any]) -> bool:
    kinds = ("functionResponse", "function_response", "toolResult")
    return text(part.get("type")).endswith("_result") or any(kind in part for kind in kinds)


def _result(part: Mapping[str, Any]) -> Returned:
    inner = mapping(part.get("functionResponse") or part.get("function_response"))
    if inner:
        return Returned(text(inner.get("id")), _blocks(_answered(inner.get("response"))))
    inner = mapping(part.get("toolResult"))
    if inner:
        failed = inner.get("status") == "error"
        return Returned(text(inner.get("toolUseId")), _blocks(inner.get("content")), failed)
    return Returned(_id(part), _blocks(part.get("content")), part.get("is_error") is True)


def _answered(response: object) -> object:
    """Take a result out of the object that it is wrapped in, where nothing else is in there."""
    wrapped = {key: each for key, each in mapping(response).items() if key != "name"}
    words = ("output", "result", "content", "error")
    only = next(iter(wrapped)) if len(wrapped) == 1 else ""
    return wrapped[only] if only in words else response


def _id(entry: Mapping[str, Any]) -> str:
    names = ("tool_call_id", "tool_use_id", "call_id")
    return next(filter(None, (text(entry.get(name)) for name in names)), "")


def _blocks(content: object) -> list[Block]:
    """Say content in blocks: texts as texts, images as files, the rest as JSON."""
    if content is None or content == "":
        return []
    if isinstance(content, str):
        return [text_block(content)]
    parts = content if isinstance(content, list) else [content]
    return [_block(part) for part in parts]


def _block(part: object) -> Block:
    said = mapping(part)
    if isinstance(part, str):
        return text_block(part)
    if said.get("type") in (*_TEXTS, None) and isinstance(said.get("text"), str):
        return text_block(said["text"])
    url = said.get("image_url")
    url = mapping(url).get("url") if isinstance(url, dict) else url
    if isinstance(url, str):
        return {"type": "file", "media_type": "image/*", "url": url}
    source = mapping(said.get("source")) or mapping(said.get("inlineData"))
    media = source.get("media_type") or source.get("mimeType")
    if isinstance(media, str) and isinstance(source.get("data"), str):
        return {"type": "file", "media_type": media, "data": source["data"]}
    return {"type": "json", "value": json.loads(json.dumps(part, default=str))}
