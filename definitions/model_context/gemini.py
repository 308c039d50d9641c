"""The history as Gemini takes it: `contents` of `generateContent`, in the spelling of its REST API.

https://ai.google.dev/api/caching#Content ; field names as in the SDK `google-genai` 3.6. Results
are found by name and order, ids are optional, and a turn of results holds nothing else. Thought
signatures go back at the part that they came with. Not here: the system instruction.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from assembler.engine.values import Object
from definitions.events import named
from definitions.model_context.blocks import (
    OPENING,
    argument_object,
    call_name,
    file_of,
    is_file,
    kept_raw,
    result_text,
    shown_text,
)
from definitions.model_context.ids import SentIds
from definitions.model_context.turns import Answer, Call, Input, Turn

__all__ = ["gemini_contents"]

_OWN = frozenset({"gemini"})
_IDS = re.compile(r"[!-~]{1,128}")
_NAME_MAX = 64
_SIGNATURE = "thoughtSignature"
_CODE = "code_execution"
_ABOUT = "Metadata"
"""What ends so speaks of the answer (where it is from), and is no part of it."""
_DOCUMENT = "application/pdf"
_IMAGES = frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"})
"""https://ai.google.dev/gemini-api/docs/image-understanding#supported-formats ; it refuses a
request with any other."""
_TAKEN = ("audio/", "video/")

_Part = dict[str, Any]


def gemini_contents(turns: Iterable[Turn]) -> list[dict[str, Any]]:
    """Give the `contents` of a request."""
    ids = SentIds(_IDS)
    contents: list[dict[str, Any]] = []
    for turn in turns:
        if isinstance(turn, Input):
            _say(contents, "user", list(_input(turn.blocks)))
            continue
        ids.forget_used()
        own = turn.is_of(_OWN)
        calls = [call for call in turn.calls if call.is_ordinary]
        _say(contents, "model", _answer(turn, ids, own=own))
        _say(contents, "user", [_result(call, ids, own=own) for call in calls])
        _say(contents, "user", list(_files_of(calls)))
    if contents and contents[0]["role"] == "model":
        contents.insert(0, {"role": "user", "parts": [{"text": OPENING}]})
    return contents


def _say(contents: list[dict[str, Any]], role: str, parts: list[_Part]) -> None:
    """Add what one side says to what it said before; results stay among themselves."""
    if not parts:
        return
    last = contents[-1] if contents else None
    if (
        last is not None
        and last["role"] == role
        and _are_results(last["parts"]) == _are_results(parts)
    ):
        last["parts"].extend(parts)
    else:
        contents.append({"role": role, "parts": parts})


def _are_results(parts: list[_Part]) -> bool:
    return "functionResponse" in parts[0]


def _answer(answer: Answer, ids: SentIds, *, own: bool) -> list[_Part]:
    """Give the parts of an answer; none when there is nothing but thoughts."""
    parts: list[_Part] = []
    for part in answer.parts:
        if isinstance(part, Object):
            parts += _block(part, own=own)
        elif part.is_ordinary:
            parts.append(_call(part, ids, own=own))
        elif part.native and own:
            parts.append(_ran(part))
    return [] if all(part.get("thought") for part in parts) else parts


def _block(block: Object, *, own: bool) -> Iterator[_Part]:
    kept = kept_raw(block, _OWN)
    if kept is not None:
        if not all(field.endswith(_ABOUT) for field in kept):
            yield kept
        return
    signature = named(block, "signature") if own else None
    signed = {} if signature is None else {_SIGNATURE: signature}
    if block.get("type") == "reasoning":
        text = block.get("text")
        if own and type(text) is str and (text or signed):
            yield {"text": text, "thought": True, **signed}
        return
    if is_file(block):
        part = _file(block)
        yield {**({"text": shown_text(block)} if part is None else part), **signed}
        return
    shown = shown_text(block)
    if shown is not None or signed:
        yield {"text": shown or "", **signed}


def _call(call: Call, ids: SentIds, *, own: bool) -> _Part:
    told = {"name": _name(call), "args": argument_object(call), **_id(call, ids, own=own)}
    return {"functionCall": told, **(_signed(call) if own else {})}


def _ran(call: Call) -> _Part:
    """Give the part of a call that Gemini ran: code, or another of its tools."""
    if call.name == _CODE:
        return {"executableCode": argument_object(call), **_signed(call)}
    given = {} if call.provider_call_id is None else {"id": call.provider_call_id}
    told = {"toolType": call.name.upper(), "args": argument_object(call), **given}
    return {"toolCall": told, **_signed(call)}


def _signed(call: Call) -> _Part:
    return {} if call.signature is None else {_SIGNATURE: call.signature}


def _result(call: Call, ids: SentIds, *, own: bool) -> _Part:
    field = "error" if call.result.is_error else "output"
    response = {field: result_text(call.result, behind=_file)}
    told = {"name": _name(call), "response": response, **_id(call, ids, own=own)}
    return {"functionResponse": told}


def _name(call: Call) -> str:
    return call_name(call, "_-", _NAME_MAX)


def _id(call: Call, ids: SentIds, *, own: bool) -> dict[str, str]:
    """Give the id of a call, where the provider gave it one."""
    return {"id": ids.of(call, own=True)} if own and call.provider_call_id else {}


def _files_of(calls: Iterable[Call]) -> Iterator[_Part]:
    """Give the files of results as input behind them, each under the name of its tool."""
    for call in calls:
        shown = [
            part
            for block in call.result.blocks
            if is_file(block) and (part := _file(block)) is not None
        ]
        if shown:
            yield {"text": f"Files of the result of {call.name}:"}
            yield from shown


def _input(blocks: Iterable[Object]) -> Iterator[_Part]:
    for block in blocks:
        kept = kept_raw(block, _OWN)
        part = _file(block) if kept is None and is_file(block) else kept
        text = shown_text(block) if part is None else None
        if part is not None:
            yield part
        elif text is not None:
            yield {"text": text}


def _file(block: Object) -> _Part | None:
    """Give a file as a part; None when this API takes none of its kind."""
    file = file_of(block)
    if file is None:
        return None
    if file.as_text is not None:
        return {"text": file.as_text}
    is_taken = file.media_type.startswith(_TAKEN) or file.media_type in (*_IMAGES, _DOCUMENT)
    if not is_taken:
        return None
    if file.url is not None:
        return {"fileData": {"mimeType": file.media_type, "fileUri": file.url}}
    return {"inlineData": {"mimeType": file.media_type, "data": file.data}}
