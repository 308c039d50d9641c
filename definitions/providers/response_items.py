"""The items of an OpenAI response, said to an `Answer`: messages, reasoning, calls, and the rest.

https://platform.openai.com/docs/api-reference/responses ; field names as in the SDK `openai` 3.57.
An item begins, parts of it come, it is complete; or it is complete from the start. What has no row
in these tables is kept as it came. Not here: which event belongs to which item
(`openai_responses`), how blocks and calls add up (`answer`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from assembler.engine.values import Json
from definitions.providers.answer import Answer
from definitions.providers.blocks import CallBlock, RawBlock, TextBlock, blocks_of
from definitions.providers.outcome import RanBy
from definitions.providers.reading import array, is_object, mapping, plain, text
from definitions.providers.witnesses import as_text

__all__ = ["Call", "Item", "Items", "Prose", "ids_of"]

_GOES_ON = frozenset(
    {"in_progress", "incomplete", "calling", "searching", "interpreting", "generating"}
)
"""Statuses of an item that has no result yet."""

_BLOCK_TYPES = {"message": "text", "reasoning": "reasoning"}
_TEXTS = {
    "output_text": "text",
    "refusal": "refusal",
    "summary_text": "text",
    "reasoning_text": "text",
}
"""Where the parts of an item have their text."""


class CallKind(Struct, frozen=True):
    """How a type of item is a call.

    `name` is the tool's when the item names none. Its arguments stand in the first of the fields
    `whole` that says something, or are the object of the fields `parts`; what comes in pieces is
    their JSON, or the plain text of the one argument `written`. `answers`: it holds its own result,
    in the field `result` when it shows one. `late`: its id is not the last before it is complete.
    """

    name: str = ""
    ran_by: RanBy = "host"
    whole: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    written: str = ""
    answers: bool = False
    result: str = ""
    late: bool = False


_CALLS: Mapping[str, CallKind] = {
    "function_call": CallKind(whole=("arguments",)),
    "custom_tool_call": CallKind(parts=("input",), written="input"),
    "apply_patch_call": CallKind("apply_patch", whole=("operation",), written="diff"),
    "local_shell_call": CallKind("local_shell", whole=("action",)),
    "shell_call": CallKind("shell", whole=("action",)),
    "computer_call": CallKind("computer", parts=("action", "actions")),
    "tool_search_call": CallKind("tool_search", whole=("arguments",), late=True),
    "program": CallKind("program", "provider", parts=("code",)),
    "mcp_call": CallKind("", "provider", ("arguments",), answers=True, result="output"),
    "web_search_call": CallKind("web_search", "provider", ("arguments", "action"), answers=True),
    "file_search_call": CallKind(
        "file_search", "provider", parts=("queries",), answers=True, result="results"
    ),
    "code_interpreter_call": CallKind(
        "code_interpreter", "provider", (), ("code",), "code", answers=True, result="outputs"
    ),
    "image_generation_call": CallKind(
        "image_generation", "provider", parts=("revised_prompt",), answers=True, result="result"
    ),
}


def ids_of(raw: Mapping[str, Any]) -> list[str]:
    """Give what an item is called: the id of its call, then the id of the item."""
    return [each for each in (text(raw.get("call_id")), text(raw.get("id"))) if each]


class Item:
    """One item. `raw` is the newest that was said of all of it."""

    def __init__(self, answer: Answer, raw: Mapping[str, Any]) -> None:
        self.answer = answer
        self.raw = raw

    @property
    def type(self) -> str:
        return text(self.raw.get("type"))

    def is_told_by(self, raw: Mapping[str, Any]) -> bool:
        """Whether `raw`, said of the same place, is this item.

        Item ids change; the id of a call changes only when that of its item does not.
        """
        mine, theirs = text(self.raw.get("call_id")), text(raw.get("call_id"))
        differs = mine and theirs and not {*ids_of(self.raw)} & {*ids_of(raw)}
        return text(raw.get("type")) == self.type and not differs

    def complete(self, raw: Mapping[str, Any]) -> None:
        """Learn all of it: one more witness, and its end."""
        self.raw = raw

    def settle(self) -> None:
        """The response is over, and perhaps nobody said that the item is complete."""


class Items:
    """The items of one response, in the order of their first event."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.all: list[Item] = []
        self._latest: dict[str, Call] = {}

    def begin(self, raw: Mapping[str, Any]) -> Item:
        """Begin an item; what `raw` says of its contents may still be empty."""
        item = self._of(raw)
        self.all.append(item)
        return item

    def _of(self, raw: Mapping[str, Any]) -> Item:
        kind = text(raw.get("type"))
        if kind in _BLOCK_TYPES:
            return Prose(self.answer, raw)
        if kind in _CALLS:
            call = self._latest[kind] = Call(self.answer, raw, _CALLS[kind])
            return call
        asked = self._latest.get(kind.removesuffix("_output") + "_call")
        if kind.endswith("_output") and (text(raw.get("call_id")) or asked):
            return Output(self.answer, raw, asked)
        return Kept(self.answer, raw)


class Prose(Item):
    """A message or reasoning: each of its parts is a block."""

    def __init__(self, answer: Answer, raw: Mapping[str, Any]) -> None:
        super().__init__(answer, raw)
        self._parts: dict[tuple[str, int], TextBlock] = {}
        self._refused: set[tuple[str, int]] = set()
        self._is_sealed = False

    def say(self, field: str, index: int, value: object) -> None:
        """Add to the part at `index` of the item's `field` (`content`, `summary`)."""
        if text(value):
            self.answer.say(self._part(field, index), value)

    def say_whole(self, field: str, index: int, value: object) -> None:
        """Learn the whole text of a part."""
        if text(value):
            self.answer.say_whole(self._part(field, index), value)

    def cite(self, field: str, index: int, citation: object) -> None:
        """Add a citation to a part."""
        if citation is not None:
            self._part(field, index).extra.setdefault("citations", []).append(plain(citation))

    def refuse(self, field: str, index: int) -> None:
        """Learn that a part says why there is no answer."""
        self._refused.add((field, index))

    @property
    def has_refused(self) -> bool:
        return bool(self._refused)

    def complete(self, raw: Mapping[str, Any]) -> None:
        """Learn all of it. What its own end encrypted stays, with the id that it belongs to: the
        end of the response encrypts it anew, and OpenAI wants the first one back."""
        if not self._is_sealed:
            super().complete(raw)
        self._is_sealed = bool(text(self.raw.get("encrypted_content")))
        for field in ("summary", "content"):
            for index, part in enumerate(array(raw.get(field))):
                if is_object(part):
                    self._take_part(field, index, part)
        self.settle()

    def _take_part(self, field: str, index: int, part: Mapping[str, Any]) -> None:
        kind = text(part.get("type"))
        if kind == "refusal":
            self.refuse(field, index)
        self.say_whole(field, index, part.get(_TEXTS.get(kind, "text")))
        citations = [plain(each) for each in array(part.get("annotations"))]
        if citations:
            self._part(field, index).extra["citations"] = citations

    def settle(self) -> None:
        more = {name: self.raw[name] for name in self.raw if name not in ("summary", "content")}
        signature = text(more.pop("encrypted_content", None))
        if self.type == "reasoning" and not self._parts:  # nothing to read, and needed back
            self._part("summary", 0)
        for at, block in self._parts.items():
            block.extra["raw"] = plain({**more, **self._kind_of(at)})
            if signature:
                block.extra["signature"], signature = signature, ""
            self.answer.close(block)

    def _kind_of(self, at: tuple[str, int]) -> dict[str, str]:
        """Give what a part is, where its block does not say so: reasoning itself, no summary."""
        if at in self._refused:
            return {"part": "refusal"}
        is_reasoning = self.type == "reasoning" and at[0] == "content"
        return {"part": "reasoning_text"} if is_reasoning else {}

    def _part(self, field: str, index: int) -> TextBlock:
        block = self._parts.get((field, index))
        if block is None:
            block = self._parts[field, index] = self.answer.open_text(_BLOCK_TYPES[self.type])
        return block


class Call(Item):
    """A call of the host's tools or of the provider's own."""

    def __init__(self, answer: Answer, raw: Mapping[str, Any], kind: CallKind) -> None:
        super().__init__(answer, raw)
        self.kind = kind
        self._is_quoting = self._is_answered = self._is_cut = False
        caller = mapping(raw, "caller").get("caller_id")
        self.block: CallBlock = answer.open_call(parent=caller, ran_by=self._ran_by())
        if text(raw.get("call_id")) or kind.ran_by == "provider":
            self._identify(is_last=not kind.late)

    def _identify(self, *, is_last: bool = True) -> None:
        hint = next(iter(ids_of(self.raw)), None) if is_last else None
        name = text(self.raw.get("name")) or self.kind.name
        self.answer.identify(self.block, hint=hint, name=name)

    def _ran_by(self) -> RanBy:
        place = text(mapping(self.raw, "environment").get("type")) or "local"
        elsewhere = self.raw.get("execution") == "server" or place != "local"
        return "provider" if elsewhere else self.kind.ran_by

    def write(self, value: object) -> None:
        """Add a piece of what comes in pieces."""
        if not (isinstance(value, str) and value):
            return
        if self.kind.written:
            head = "" if self._is_quoting else self._head()
            self._is_quoting = True
            value = head + json.dumps(value, ensure_ascii=False)[1:-1]
        self.answer.argue(self.block, value)

    def _head(self) -> str:
        """Give the JSON of the arguments up to the opening quote of the one that is written."""
        others = as_text(self._others()) or "{}"
        comma = "" if others == "{}" else ","
        return f'{others[:-1]}{comma}"{self.kind.written}":"'

    def _others(self) -> dict[str, Any]:
        told = _arguments(self.raw, self.kind)
        others = told if is_object(told) else {}
        return {name: others[name] for name in others if name != self.kind.written}

    def write_whole(self, value: object) -> None:
        """Learn all of what comes in pieces."""
        if self.kind.written and isinstance(value, str):
            value = {**self._others(), self.kind.written: value}
        self.answer.argue_whole(self.block, value)

    def complete(self, raw: Mapping[str, Any]) -> None:
        super().complete(raw)
        self.block.ran_by = self._ran_by()
        self._identify()
        self.answer.argue_whole(self.block, _arguments(raw, self.kind))
        self._is_cut = text(raw.get("status")) == "incomplete"
        if not self._is_cut:
            self._close()
            if self.kind.answers and not self._is_answered:
                self._answer_itself()

    def settle(self) -> None:
        """Close it when something was said of its arguments: a place that is empty says nothing."""
        if self.block.closed or self._is_cut:
            return
        if text(self.raw.get("status")) == "completed":
            self.complete(self.raw)
            return
        if not self._is_argued:
            self.answer.argue_whole(self.block, text(self.raw.get("arguments")))
        if self._is_argued:
            self._identify()
            self._close()

    @property
    def _is_argued(self) -> bool:
        return bool(self.block.pieces or self.block.snapshots)

    def _close(self) -> None:
        kind = self.kind
        told = {"call_id", "name", kind.result, *kind.whole, *kind.parts}
        more = {name: self.raw[name] for name in self.raw if name not in told}
        self.block.extra["raw"] = plain(more)
        if self._is_quoting:
            self.answer.argue(self.block, '"}')
            self._is_quoting = False
        self.answer.close(self.block)

    def _answer_itself(self) -> None:
        status, error = text(self.raw.get("status")), self.raw.get("error")
        if status in _GOES_ON:
            return
        self._is_answered = True
        content = _content(error or self.raw.get(self.kind.result))
        if self.kind.name == "image_generation" and not error:
            content = _picture(self.raw)
        is_error = bool(error) or status == "failed"
        hint = self.block.id or self.block.hint
        self.answer.close(self.answer.keep_result(hint, self.raw, content, is_error=is_error))


class Output(Item):
    """The result of a call that the provider ran, as an item of its own."""

    def __init__(self, answer: Answer, raw: Mapping[str, Any], asked: Call | None) -> None:
        super().__init__(answer, raw)
        self._asked = asked
        self._is_told = False

    def complete(self, raw: Mapping[str, Any]) -> None:
        super().complete(raw)
        if self._is_told:
            return
        self._is_told = True
        asked = self._asked.block if self._asked else None
        hint = text(raw.get("call_id")) or (asked and (asked.id or asked.hint))
        fields = (raw.get(name) for name in ("result", "output", "tools"))
        told = next((value for value in fields if value is not None), None)
        is_error = text(raw.get("status")) in ("failed", "incomplete")
        kept = self.answer.keep_result(hint, raw, _content(told), is_error=is_error)
        self.answer.close(kept)


class Kept(Item):
    """What we do not model."""

    def __init__(self, answer: Answer, raw: Mapping[str, Any]) -> None:
        super().__init__(answer, raw)
        self.block: RawBlock = answer.keep(raw)

    def complete(self, raw: Mapping[str, Any]) -> None:
        super().complete(raw)
        self.block.raw.update({text(name): plain(value) for name, value in raw.items()})
        self.settle()

    def settle(self) -> None:
        self.answer.close(self.block)


def _arguments(raw: Mapping[str, Any], kind: CallKind) -> object:
    """Give the arguments as the item has them: text or an object; None when it says nothing."""
    for field in kind.whole:
        if raw.get(field) not in (None, ""):
            return raw[field]
    return {name: raw[name] for name in kind.parts if raw.get(name) is not None} or None


def _content(told: object) -> Json:
    """Give the blocks of a result."""
    if told is None or isinstance(told, (str, list, tuple)):
        return blocks_of([_shown(each) for each in told] if isinstance(told, list) else told)
    return blocks_of([told])


def _shown(part: object) -> object:
    if is_object(part) and part.get("type") == "logs":
        return {"type": "text", "text": part.get("logs")}
    return part


def _picture(raw: Mapping[str, Any]) -> Json:
    if not text(raw.get("result")):
        return ()
    media_type = f"image/{text(raw.get('output_format')) or 'png'}"
    return plain([{"type": "file", "media_type": media_type, "data": raw["result"]}])
