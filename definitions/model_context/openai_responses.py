"""The history as OpenAI Responses takes it: a flat list of items.

https://platform.openai.com/docs/api-reference/responses/create ; field names as in the SDK `openai`
3.57. What came as an item goes back as that item: reasoning with its id and its encrypted content,
calls with their item ids, what the provider ran. Reasoning with nothing behind it is refused, so
that it goes with what it led to. Not here: the instructions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from assembler.engine.values import Object, thaw
from definitions.events import named
from definitions.model_context.blocks import (
    argument_text,
    call_name,
    file_of,
    is_file,
    kept_raw,
    raw_of,
    result_text,
    shown_text,
)
from definitions.model_context.ids import SentIds
from definitions.model_context.turns import Answer, Call, Input, Turn

__all__ = ["openai_responses_input"]

_OWN = frozenset({"openai_responses"})
_IDS = re.compile(r"[!-~]{1,64}")
_NAME_MAX = 64
_CUSTOM = "custom_tool_call"
_KINDS = frozenset({"function_call", _CUSTOM})
_MESSAGE = frozenset({"id", "status", "phase"})

_Item = dict[str, Any]


def openai_responses_input(turns: Iterable[Turn]) -> list[dict[str, Any]]:
    """Give the `input` of a request."""
    ids = SentIds(_IDS)
    items: list[_Item] = []
    for turn in turns:
        if isinstance(turn, Input):
            parts = list(_parts(turn.blocks))
            if parts:
                items.append({"type": "message", "role": "user", "content": parts})
        else:
            items += _answer(turn, ids)
    return items


def _answer(answer: Answer, ids: SentIds) -> list[_Item]:
    own = answer.provider in _OWN
    items: list[_Item] = []
    results: list[_Item] = []
    for part in answer.parts:
        if isinstance(part, Object):
            _add(items, _own_item(part) if own else None, part)
        elif part.native:
            if own:
                _add_once(items, thaw(part.raw))
        elif part.is_ordinary:
            items.append(_call(part, ids, own=own))
            results.append(_result(part, ids, own=own))
    while items and items[-1]["type"] == "reasoning":
        items.pop()
    return items + results


def _add(items: list[_Item], own: _Item | None, block: Object) -> None:
    """Add a block of an answer: as the item that it came in, else as text."""
    if own is not None and own["type"] != "message":
        _add_once(items, own)
        return
    text = shown_text(block)
    if text is None:
        return
    if own is None:
        items.append({"type": "message", "role": "assistant", "content": text})
        return
    part = {"type": "output_text", "text": text, "annotations": []}
    if items and items[-1]["type"] == "message" and items[-1].get("id") == own["id"]:
        items[-1]["content"].append(part)
    else:
        items.append({**own, "role": "assistant", "content": [part]})


def _own_item(block: Object) -> _Item | None:
    """Give the item that a block came in; None when it is not known. A message is without its
    content: that are its blocks."""
    if block.get("type") == "provider":
        kept = kept_raw(block, _OWN)
        return kept if kept is not None and type(kept.get("type")) is str else None
    raw = raw_of(block)
    if raw is None or named(raw, "id") is None:
        return None
    item: _Item = thaw(raw)
    if block.get("type") == "reasoning":
        return {"summary": [], **item, "type": "reasoning"}
    told = {field: item[field] for field in sorted(_MESSAGE) if item.get(field) is not None}
    return {"type": "message", "status": "completed", **told}


def _add_once(items: list[_Item], item: _Item) -> None:
    """Add an item; several blocks may have come of one."""
    named_so = item.get("id")
    if named_so is None or all(each.get("id") != named_so for each in items):
        items.append(item)


def _call(call: Call, ids: SentIds, *, own: bool) -> _Item:
    kind = named(call.raw, "type") or "function_call"
    more = thaw(call.raw) if own and kind in _KINDS else {}
    item = {
        **more,
        "type": "function_call",
        "call_id": ids.of(call, own=own),
        "name": call_name(call, "_-", _NAME_MAX),
    }
    if own and _is_custom(call):
        return {**item, "type": _CUSTOM, "input": call.raw["input"]}
    return {**item, "arguments": argument_text(call)}


def _is_custom(call: Call) -> bool:
    """Whether its input is free text, no JSON."""
    return named(call.raw, "type") == _CUSTOM and type(call.raw.get("input")) is str


def _result(call: Call, ids: SentIds, *, own: bool) -> _Item:
    custom = own and _is_custom(call)
    return {
        "type": f"{_CUSTOM}_output" if custom else "function_call_output",
        "call_id": ids.of(call, own=own),
        "output": _output(call),
    }


def _output(call: Call) -> str | list[dict[str, Any]]:
    """Give a result as one text, or as parts when there is a file in it."""
    if not any(is_file(block) for block in call.result.blocks):
        return result_text(call.result, marked=True)
    return list(_parts(call.result.blocks))


def _parts(blocks: Iterable[Object]) -> Iterator[dict[str, Any]]:
    for block in blocks:
        part = _file_part(block) if is_file(block) else None
        text = shown_text(block) if part is None else None
        if part is not None:
            yield part
        elif text is not None:
            yield {"type": "input_text", "text": text}


def _file_part(block: Object) -> dict[str, Any] | None:
    """Give a file as a part; None when this API takes none of its kind."""
    file = file_of(block)
    if file is None:
        return None
    if file.media_type.startswith("image/"):
        return {"type": "input_image", "image_url": file.as_url, "detail": "auto"}
    if file.as_text is not None:
        return {"type": "input_text", "text": file.as_text}
    if file.media_type != "application/pdf":
        return None
    if file.url is not None:
        return {"type": "input_file", "file_url": file.url}
    told = {"filename": file.name or "file.pdf", "file_data": file.as_url}
    return {"type": "input_file", **told}
