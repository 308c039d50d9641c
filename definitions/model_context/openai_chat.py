"""The history as OpenAI Chat Completions takes it, and the many servers that speak it.

https://platform.openai.com/docs/api-reference/chat/create ; field names as in the SDK `openai`
3.57. Calls are a list beside the text of an answer, results are messages of their own directly
behind it and hold text alone: files of results follow them, as input. Not here: the system message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from assembler.engine.values import Object, thaw
from definitions.events import named
from definitions.model_context.blocks import (
    COMMON_IMAGES,
    File,
    argument_text,
    call_name,
    file_of,
    is_file,
    result_text,
    shown_text,
    text_blocks,
)
from definitions.model_context.ids import SentIds
from definitions.model_context.turns import Answer, Call, Input, Turn

__all__ = ["openai_chat_messages"]

_OWN = frozenset({"openai_chat"})
_IDS = re.compile(r"[!-~]{1,40}")
"""A call's id has at most 40 characters. Servers use more of them than letters."""
_NAME_MAX = 64
_SOUNDS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}
_REASONING = frozenset({"reasoning_content", "reasoning"})
"""Fields in which servers give reasoning as text, and want it back by the same name."""
_CUSTOM = "custom"
_MODELLED = frozenset({"index", "id", "type", "function", "custom"})

_Message = dict[str, Any]


def openai_chat_messages(turns: Iterable[Turn]) -> list[dict[str, Any]]:
    """Give the `messages` of a request, without those of the system."""
    ids = SentIds(_IDS)
    messages: list[_Message] = []
    for turn in turns:
        if isinstance(turn, Input):
            messages += _input(turn.blocks)
        else:
            ids.forget_used()
            messages += _answer(turn, ids)
    return messages


def _answer(answer: Answer, ids: SentIds) -> Iterator[_Message]:
    own = answer.is_of(_OWN)
    blocks = [part for part in answer.parts if isinstance(part, Object)]
    calls = [call for call in answer.calls if call.is_ordinary]
    text = "".join(text_blocks(blocks))
    if not (text or calls):
        return
    message: _Message = {"role": "assistant", "content": text or None}
    if own:
        message.update(_reasoning(answer.source, blocks))
    if calls:
        message["tool_calls"] = [_call(call, ids, own=own) for call in calls]
    yield message
    for call in calls:
        content = result_text(call.result, marked=True, behind=_file_part)
        yield {"role": "tool", "tool_call_id": ids.of(call, own=own), "content": content}
    yield from _files_of(calls)


def _reasoning(source: Object, blocks: Iterable[Object]) -> dict[str, Any]:
    """Give reasoning in the field in which the server told it: it may want it back there. One that
    keeps details of its own gets those, as they came."""
    details, field = source.get("reasoning_details"), named(source, "reasoning_field")
    if details:
        return {"reasoning_details": thaw(details)}
    told = [block.get("text") for block in blocks if block.get("type") == "reasoning"]
    text = "".join([each for each in told if type(each) is str])
    return {field: text} if field in _REASONING and text else {}


def _call(call: Call, ids: SentIds, *, own: bool) -> dict[str, Any]:
    more = thaw(call.raw) if own else {}
    name = call_name(call, "_-", _NAME_MAX)
    is_custom = more.get("type") == _CUSTOM
    called: dict[str, Any] = {"name": name, "arguments": argument_text(call)}
    if is_custom:  # takes text of any kind
        called = {"name": name, "input": call.text}
    kind = _CUSTOM if is_custom else "function"
    return {
        **{field: value for field, value in more.items() if field not in _MODELLED},
        "id": ids.of(call, own=own),
        "type": kind,
        kind: called,
    }


def _files_of(calls: Iterable[Call]) -> Iterator[_Message]:
    """Give the files of results as input, each under the name of the tool that gave it."""
    parts: list[dict[str, Any]] = []
    for call in calls:
        shown = [part for block in call.result.blocks if (part := _file_part(block)) is not None]
        if shown:
            parts += [{"type": "text", "text": f"Files of the result of {call.name}:"}, *shown]
    if parts:
        yield {"role": "user", "content": parts}


def _input(blocks: Iterable[Object]) -> Iterator[_Message]:
    parts = [part for block in blocks if (part := _part(block)) is not None]
    if len(parts) == 1 and parts[0]["type"] == "text":
        yield {"role": "user", "content": parts[0]["text"]}
    elif parts:
        yield {"role": "user", "content": parts}


def _part(block: Object) -> dict[str, Any] | None:
    part = _file_part(block)
    if part is not None:
        return part
    text = shown_text(block)
    return None if text is None else {"type": "text", "text": text}


def _file_part(block: Object) -> dict[str, Any] | None:
    """Give a file as a part; None for what is none, or none that this API takes."""
    file = file_of(block) if is_file(block) else None
    if file is None:
        return None
    if file.media_type in COMMON_IMAGES:
        return {"type": "image_url", "image_url": {"url": file.as_url}}
    if file.data is None:
        return None
    if file.as_text is not None:
        return {"type": "text", "text": file.as_text}
    if file.media_type in _SOUNDS:
        sound = {"data": file.data, "format": _SOUNDS[file.media_type]}
        return {"type": "input_audio", "input_audio": sound}
    return _document(file)


def _document(file: File) -> dict[str, Any] | None:
    if file.media_type != "application/pdf":
        return None
    told = {"filename": file.name or "file.pdf", "file_data": file.as_url}
    return {"type": "file", "file": told}
