"""The history as Anthropic Messages takes it.

https://docs.anthropic.com/en/api/messages ; field names as in the SDK `anthropic` 2.14. Users and
assistants alternate, results are the first blocks behind their calls, no text is blank, an answer
does not end in thinking, nor the last one in white space, and the result of a call that failed is
text alone. Not here: the system prompt.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from assembler.engine.values import Object, thaw
from definitions.events import named
from definitions.model_context.blocks import (
    COMMON_IMAGES,
    FOLLOWS,
    NO_OUTPUT,
    OPENING,
    argument_object,
    call_name,
    file_of,
    is_file,
    kept_raw,
    shown_text,
    unshown,
)
from definitions.model_context.ids import SentIds
from definitions.model_context.turns import Answer, Call, Input, Turn

__all__ = ["anthropic_messages"]

_OWN = frozenset({"anthropic", "claude_code"})
"""Claude Code carries the same blocks with the same signatures."""
_IDS = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_NAME_MAX = 128
_PDF = "application/pdf"
_THINKING = frozenset({"thinking", "redacted_thinking"})
_FILES = frozenset({"image", "document"})
_MODELLED = frozenset({"id", "name", "input"})

_Block = dict[str, Any]


def anthropic_messages(turns: Iterable[Turn]) -> list[dict[str, Any]]:
    """Give the `messages` of a request."""
    return _Writer(list(turns)).messages()


class _Writer:
    def __init__(self, turns: list[Turn]) -> None:
        self._turns = turns
        self._ids = SentIds(_IDS)
        self._answered = {
            named(block, "call_id")
            for turn in turns
            if isinstance(turn, Answer) and turn.is_of(_OWN)
            for block in turn.parts
            if isinstance(block, Object)
        }
        """Calls that Anthropic ran, and whose result stands in an answer."""
        self._sent: set[str] = set()
        """Those of them that are sent: their results, and calls made inside them, may follow."""

    def messages(self) -> list[dict[str, Any]]:
        said = _merged(self._said())
        for role, blocks in said:
            if role == "assistant":
                while blocks and blocks[-1]["type"] in _THINKING:
                    blocks.pop()
        said = _merged(said)
        if said and said[0][0] == "assistant":
            said.insert(0, ("user", [_text(OPENING)]))
        if said and said[-1][0] == "assistant" and said[-1][1][-1]["type"] == "text":
            last = said[-1][1].pop()
            said[-1][1].append({**last, "text": last["text"].rstrip()})
        return [{"role": role, "content": blocks} for role, blocks in said]

    def _said(self) -> Iterator[tuple[str, list[_Block]]]:
        for turn in self._turns:
            if isinstance(turn, Input):
                yield "user", list(_input(turn.blocks))
                continue
            answer, results = self._answer(turn)
            yield "assistant", answer
            yield "user", results

    def _answer(self, answer: Answer) -> tuple[list[_Block], list[_Block]]:
        """Give the blocks of an answer, and the results of its calls."""
        own, last = answer.is_of(_OWN), answer is self._turns[-1]
        blocks: list[_Block] = []
        results: list[_Block] = []
        behind: list[_Block] = []
        for part in answer.parts:
            if isinstance(part, Object):
                blocks += self._block(part, own=own)
            elif part.native:
                if own and _is_spelled(part) and (last or part.call_id in self._answered):
                    self._sent.add(part.call_id)
                    blocks.append(self._call(part, own=True))
            elif part.parent is None or (own and part.parent in self._sent):
                blocks.append(self._call(part, own=own))
                results.append(self._result(part, behind, own=own))
        return blocks, results + behind

    def _block(self, block: Object, *, own: bool) -> Iterator[_Block]:
        if block.get("type") == "reasoning":
            if own and named(block, "signature"):
                thinking, signature = block.get("text") or "", block["signature"]
                yield {"type": "thinking", "thinking": str(thinking), "signature": signature}
            return
        kept = _kept(block)
        if kept is not None:
            call_id = named(block, "call_id")
            if call_id is None:
                if "tool_use_id" not in kept:  # else it is the result of nobody's call
                    yield kept
            elif call_id in self._sent:
                yield {**kept, "tool_use_id": self._ids.find(call_id)}
            return
        text = shown_text(block)
        if text is not None:
            cited = thaw(block.get("citations")) if own else None
            yield {**_text(text), "citations": cited} if cited else _text(text)

    def _call(self, call: Call, *, own: bool) -> _Block:
        more = thaw(call.raw) if own and named(call.raw, "type") else {}
        return {
            **{field: value for field, value in more.items() if field not in _MODELLED},
            "type": call.raw["type"] if call.native else "tool_use",
            "id": self._ids.of(call, own=own),
            "name": call_name(call, "_-", _NAME_MAX),
            "input": argument_object(call),
        }

    def _result(self, call: Call, behind: list[_Block], *, own: bool) -> _Block:
        """Give the result of a call; what may not stand in it goes `behind` all results."""
        result: _Block = {"type": "tool_result", "tool_use_id": self._ids.of(call, own=own)}
        content = list(_input(call.result.blocks)) or [_text(NO_OUTPUT)]
        if call.result.is_error:
            result["is_error"] = True
            files = [each for each in content if each["type"] in _FILES]
            content = [_text(FOLLOWS) if each in files else _as_text(each) for each in content]
            if files:
                behind += [_text(f"Files of the result of {call.name}:"), *files]
        result["content"] = content
        if own and named(call.raw, "toolset_name"):
            result["toolset_name"] = call.raw["toolset_name"]
        return result


def _is_spelled(call: Call) -> bool:
    """Whether a call that the provider ran says which block it was (`server_tool_use`)."""
    return str(call.raw.get("type")).endswith("_tool_use")


def _merged(said: Iterable[tuple[str, list[_Block]]]) -> list[tuple[str, list[_Block]]]:
    """Put together what one side says in a row; leave out what is empty."""
    merged: list[tuple[str, list[_Block]]] = []
    for role, blocks in said:
        if not blocks:
            continue
        if merged and merged[-1][0] == role:
            merged[-1][1].extend(blocks)
        else:
            merged.append((role, blocks))
    return merged


def _input(blocks: Iterable[Object]) -> Iterator[_Block]:
    for block in blocks:
        kept = _kept(block)
        if kept is not None:
            yield kept
        elif is_file(block):
            yield _file(block)
        elif (text := shown_text(block)) is not None:
            yield _text(text)


def _kept(block: Object) -> _Block | None:
    kept = kept_raw(block, _OWN)
    return kept if kept is not None and type(kept.get("type")) is str else None


def _file(block: Object) -> _Block:
    file = file_of(block)
    if file is None:
        return _text(unshown(block))
    if file.as_text is not None:
        source = {"type": "text", "media_type": "text/plain", "data": file.as_text}
        return {"type": "document", "source": source}
    kind = {**dict.fromkeys(COMMON_IMAGES, "image"), _PDF: "document"}.get(file.media_type)
    if kind is None:
        return _text(unshown(block))
    if file.url is not None:
        return {"type": kind, "source": {"type": "url", "url": file.url}}
    source = {"type": "base64", "media_type": file.media_type, "data": file.data or ""}
    return {"type": kind, "source": source}


def _as_text(block: _Block) -> _Block:
    told = f"(A block of type {block['type']} is not shown here.)"
    return block if block["type"] == "text" else _text(told)


def _text(text: str) -> _Block:
    return {"type": "text", "text": text}
