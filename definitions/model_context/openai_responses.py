"""The history as OpenAI Responses takes it: a flat list of items.

https://platform.openai.com/docs/api-reference/responses/create ; field names as in the SDK `openai`
3.57. What came as an item goes back as that item: reasoning with its id and its encrypted content,
calls with their item ids, what the provider ran. Reasoning with nothing behind it is refused, so
that it goes with what it led to. Not here: the instructions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from assembler.engine.values import Object, thaw
from definitions.events import named
from definitions.model_context.blocks import (
    COMMON_IMAGES,
    argument_object,
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
from definitions.model_context.turns import Answer, Call, Turn

__all__ = ["openai_responses_input"]

_OWN = frozenset({"openai_responses"})
_IDS = re.compile(r"[!-~]{1,64}")
_NAME_MAX = 64
_FUNCTION = "function_call"
_MESSAGE = frozenset({"id", "status", "phase"})
_OUTPUT = "_output"
_SEARCH = "tool_search_call"

_Item = dict[str, Any]


def openai_responses_input(turns: Iterable[Turn]) -> list[dict[str, Any]]:
    """Give the `input` of a request."""
    return _Writer(list(turns)).items()


class _Writer:
    def __init__(self, turns: list[Turn]) -> None:
        self._turns = turns
        self._ids = SentIds(_IDS)
        self._sent: set[str] = set()
        """Calls that the provider ran and that are sent: outputs, and calls made inside them, may
        follow."""

    def items(self) -> list[_Item]:
        items: list[_Item] = []
        for turn in self._turns:
            if isinstance(turn, Answer):
                items += self._answer(turn)
                continue
            parts = list(_parts(turn.blocks))
            if parts:
                items.append({"type": "message", "role": "user", "content": parts})
        return items

    def _answer(self, answer: Answer) -> list[_Item]:
        """Give the items of an answer, and behind them the results of its calls."""
        own = answer.is_of(_OWN)
        items: list[_Item] = []
        results: list[_Item] = []
        for part in answer.parts:
            if isinstance(part, Object):
                self._add(items, part, own=own)
            elif part.native:
                if own and named(part.raw, "type") in _RAN:
                    self._sent.add(part.call_id)
                    items.append(_ran(part))
            elif part.parent is None or (own and part.parent in self._sent):
                call_id = self._ids.of(part, own=own)
                items.append(_call(part, call_id, own=own))
                results.append(_result(part, call_id, own=own))
        while items and items[-1]["type"] == "reasoning":
            items.pop()
        return items + results

    def _add(self, items: list[_Item], block: Object, *, own: bool) -> None:
        """Add a block of an answer: to the item that it came in, else as text."""
        kept = kept_raw(block, _OWN)
        raw = raw_of(block) if own else None
        if kept is not None:
            if self._is_wanted(kept, named(block, "call_id")):
                items.append(kept)
        elif block.get("type") == "reasoning":
            if raw is not None:
                _think(items, block, raw)
        elif (text := shown_text(block)) is not None:
            if raw is not None and named(raw, "id") is not None:
                _say(items, block, raw, text)
            else:
                items.append({"type": "message", "role": "assistant", "content": text})

    def _is_wanted(self, kept: _Item, call_id: str | None) -> bool:
        """Whether an item may stand by itself: an output may not, without its call."""
        kind = kept.get("type")
        if type(kind) is not str:
            return False
        return not kind.endswith(_OUTPUT) or call_id in self._sent


def _think(items: list[_Item], block: Object, raw: Object) -> None:
    """Add a part of reasoning to its item."""
    signature, text = named(block, "signature"), named(block, "text")
    item = _same_item(items, "reasoning", raw)
    if item is None:
        if named(raw, "id") is None and signature is None:
            return
        told = {name: value for name, value in thaw(raw).items() if value is not None}
        told.pop("part", None)
        item = {**told, "type": "reasoning", "summary": []}
        items.append(item)
    if signature is not None:
        item["encrypted_content"] = signature
    if text is None:
        return
    if named(raw, "part") == "reasoning_text":
        item.setdefault("content", []).append({"type": "reasoning_text", "text": text})
    else:
        item["summary"].append({"type": "summary_text", "text": text})


def _say(items: list[_Item], block: Object, raw: Object, text: str) -> None:
    """Add a part of a message to its item."""
    item = _same_item(items, "message", raw)
    if item is None:
        told = {name: raw[name] for name in sorted(_MESSAGE) if raw.get(name) is not None}
        item = {"type": "message", "role": "assistant", "status": "completed", **told}
        item["content"] = []
        items.append(item)
    if named(raw, "part") == "refusal":
        item["content"].append({"type": "refusal", "refusal": text})
        return
    cited = block.get("citations")
    annotations = thaw(cited) if type(cited) is tuple else []
    item["content"].append({"type": "output_text", "text": text, "annotations": annotations})


def _same_item(items: list[_Item], kind: str, raw: Object) -> _Item | None:
    """Give the newest item when the block is another part of it."""
    last = items[-1] if items else None
    same = last is not None and last["type"] == kind and last.get("id") == named(raw, "id")
    return last if same else None


# -- calls -------------------------------------------------------------------------------------


def _call(call: Call, call_id: str, *, own: bool) -> _Item:
    kind = _kind(call, own=own)
    more = {name: value for name, value in thaw(call.raw).items() if value is not None}
    item: _Item = {**(more if own and _is_spelled(call) else {}), "type": kind, "call_id": call_id}
    if kind in _NAMED:
        item["name"] = call_name(call, "_-", _NAME_MAX)
    return {**item, **_FIELDS[kind](call)}


def _result(call: Call, call_id: str, *, own: bool) -> _Item:
    kind = _kind(call, own=own)
    item: _Item = {"type": _OUTPUT_TYPES.get(kind, kind + _OUTPUT), "call_id": call_id}
    if own and _is_spelled(call) and call.raw.get("caller"):
        item["caller"] = thaw(call.raw["caller"])
    return {**item, **_OUTPUTS[kind](call)}


def _kind(call: Call, *, own: bool) -> str:
    """Give the type of its item. One that we cannot spell is a function to the model."""
    return (named(call.raw, "type") or _FUNCTION) if own and _is_spelled(call) else _FUNCTION


def _is_spelled(call: Call) -> bool:
    kind = named(call.raw, "type")
    if kind == _SEARCH and _tools(call) is None:
        return False
    return kind == _FUNCTION or (kind in _FIELDS and call.arguments is not None)


def _tools(call: Call) -> list[Any] | None:
    """Give the tools that a search of the host found; None when its result is anything else."""
    blocks = call.result.blocks
    values = [block.get("value") for block in blocks if block.get("type") == "json"]
    are_tools = len(values) == len(blocks) and all(type(each) is Object for each in values)
    return [thaw(each) for each in values] if are_tools and not call.result.is_error else None


def _ran(call: Call) -> _Item:
    """Give the item of a call that the provider ran, and that has its output elsewhere."""
    item: _Item = thaw(call.raw)
    told = call.provider_call_id or call.call_id
    if told != item.get("id"):
        item["call_id"] = told
    return {**item, **_RAN[item["type"]](call)}


def _arguments(call: Call) -> _Item:
    return {"arguments": argument_text(call)}


def _parsed_arguments(call: Call) -> _Item:
    return {"arguments": argument_object(call)}


def _input(call: Call) -> _Item:
    return {"input": str(argument_object(call).get("input", call.text))}


def _action(call: Call) -> _Item:
    return {"action": argument_object(call)}


def _operation(call: Call) -> _Item:
    return {"operation": argument_object(call)}


_FIELDS: Mapping[str, Callable[[Call], _Item]] = {
    _FUNCTION: _arguments,
    "custom_tool_call": _input,
    "apply_patch_call": _operation,
    "shell_call": _action,
    _SEARCH: _parsed_arguments,
}
"""Calls of the host by the type of their item: how their arguments are spelled."""

_NAMED = frozenset({_FUNCTION, "custom_tool_call"})

_OUTPUT_TYPES = {_SEARCH: "tool_search_output"}
"""Outputs that are not named after the item of their call."""

_RAN: Mapping[str, Callable[[Call], _Item]] = {
    "program": argument_object,
    _SEARCH: _parsed_arguments,
    "shell_call": _action,
}
"""Calls of the provider whose output is an item of its own; all others hold it."""


def _output(call: Call) -> _Item:
    """Give a result as one text, or as parts when there is a file in it."""
    if not any(is_file(block) for block in call.result.blocks):
        return {"output": result_text(call.result, marked=True)}
    marked = [{"type": "input_text", "text": "Error:"}] if call.result.is_error else []
    return {"output": [*marked, *_parts(call.result.blocks)]}


def _patched(call: Call) -> _Item:
    status = "failed" if call.result.is_error else "completed"
    return {"status": status, "output": result_text(call.result)}


def _printed(call: Call) -> _Item:
    """What a shell printed. Its exit code is not known to us: whether it failed is."""
    text, failed = result_text(call.result), call.result.is_error
    outcome = {"type": "exit", "exit_code": int(failed)}
    printed = {"stdout": "", "stderr": text} if failed else {"stdout": text, "stderr": ""}
    return {"output": [{**printed, "outcome": outcome}]}


def _found(call: Call) -> _Item:
    return {"execution": "client", "status": "completed", "tools": _tools(call) or []}


_OUTPUTS: Mapping[str, Callable[[Call], _Item]] = {
    _SEARCH: _found,
    _FUNCTION: _output,
    "custom_tool_call": _output,
    "apply_patch_call": _patched,
    "shell_call": _printed,
}

# -- parts -------------------------------------------------------------------------------------


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
    if file.media_type in COMMON_IMAGES:
        return {"type": "input_image", "image_url": file.as_url, "detail": "auto"}
    if file.as_text is not None:
        return {"type": "input_text", "text": file.as_text}
    if file.media_type != "application/pdf":
        return None
    if file.url is not None:
        return {"type": "input_file", "file_url": file.url}
    told = {"filename": file.name or "file.pdf", "file_data": file.as_url}
    return {"type": "input_file", **told}
