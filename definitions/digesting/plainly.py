"""A second opinion: what an answer says, read as simply as can be, and not by an adapter.

It takes a whole file, joins what stands in the fields where a format has its text, its reasoning,
its reason to stop and its function calls, and knows nothing of errors, ids, cuts or what the
provider ran. Where it differs from an adapter, one of the two is wrong. Not here: the comparing
(`answers`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from definitions.digesting.bodies import Chunk
from definitions.providers.reading import array, mapping, natural, text, whole

__all__ = ["Plain", "decoded", "plainly"]


class Plain:
    """What was found. `calls`: name and arguments of the host's calls, decoded, as they came."""

    def __init__(self) -> None:
        self.text = ""
        self.reasoning = ""
        self.finish = ""
        self.tokens: int | None = None
        """Written by the model, reasoning included."""
        self.is_partial = False
        """Whether there are calls that are too hard to read plainly."""
        self._calls: list[list[Any]] = []
        self._latest: dict[str, list[Any]] = {}
        self._by_id: dict[str, list[Any]] = {}

    @property
    def calls(self) -> list[list[Any]]:
        """Name and arguments of each call."""
        return [[name, decoded(arguments)] for name, arguments in self._calls]

    def begin(self, place: object, name: object = None, call_id: object = None) -> None:
        """A call begins at a place of the answer, or goes on there when it has the same id."""
        call = self._by_id.get(text(call_id)) if call_id else None
        if call is None:
            call = self._by_id[text(call_id)] = ["", ""]
            self._calls.append(call)
        if call[0] != name:
            call[0] += text(name)
        self._latest[str(place)] = call

    def forget(self, place: object) -> None:
        """What comes at this place belongs to no call."""
        self._latest.pop(str(place), None)

    def argue(self, place: object, arguments: object) -> None:
        """Learn of the arguments of the latest call there: more text, or all of them."""
        call = self._latest.get(str(place))
        if call is not None and arguments is not None:
            is_more = isinstance(call[1], str) and isinstance(arguments, str)
            call[1] = call[1] + arguments if is_more else arguments

    def count(self, usage: object, *fields: str, adds: bool = False) -> None:
        """Learn how many tokens were written: the sum of the fields; the last word counts."""
        told = [natural(mapping(usage).get(field)) for field in fields]
        known = [number for number in told if number is not None]
        if known:
            self.tokens = sum(known) + ((self.tokens or 0) if adds else 0)

    def say(self, value: object, *, reasoning: bool = False) -> None:
        """Learn more of the text, or of the reasoning."""
        if reasoning:
            self.reasoning += value if isinstance(value, str) else ""
        else:
            self.text += value if isinstance(value, str) else ""


def plainly(name: str, chunks: Iterable[Chunk]) -> Plain:
    """Read the chunks of an answer in the format `name`."""
    found = Plain()
    for chunk in chunks:
        _READERS[name](found, chunk)
    found.text, found.reasoning = whole(found.text), whole(found.reasoning)
    return found


def decoded(arguments: object) -> Any:
    """Read arguments that came as text; as they are, where they are no text or no JSON."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        return arguments


def _messages(found: Plain, chunk: Chunk) -> None:
    message = chunk if chunk.get("type") == "message" else mapping(chunk, "message")
    for block in map(mapping, array(message.get("content"))):
        _block(found, None, block)
    if chunk.get("type") == "content_block_start":
        _block(found, chunk.get("index"), mapping(chunk, "content_block"))
    delta = mapping(chunk, "delta")
    if text(delta.get("type")) in ("text_delta", "thinking_delta"):
        found.say(delta.get("text"))
        found.say(delta.get("thinking"), reasoning=True)
    if delta.get("type") == "input_json_delta":
        found.argue(chunk.get("index"), delta.get("partial_json"))
    for said in (message, chunk):
        found.count(said.get("usage"), "output_tokens")
    found.finish = text(delta.get("stop_reason") or message.get("stop_reason")) or found.finish


def _block(found: Plain, key: object, block: Mapping[str, Any]) -> None:
    if text(block.get("type")) in ("text", "thinking"):
        found.say(block.get("text"))
        found.say(block.get("thinking"), reasoning=True)
    elif block.get("type") == "tool_use":
        found.begin(key, block.get("name"))
        found.argue(key, block.get("input") or None)  # an empty one is filled by what follows
    else:
        found.forget(key)


def _chat(found: Plain, chunk: Chunk) -> None:
    for usage in (chunk.get("usage"), mapping(chunk, "x_groq").get("usage")):
        found.count(usage, "completion_tokens")
    for choice in map(mapping, array(chunk.get("choices"))):
        if choice.get("index", 0) == 0:
            said = choice.get("delta") or choice.get("message")
            _said(found, mapping(said))
            found.finish = text(choice.get("finish_reason")) or found.finish


def _said(found: Plain, said: Mapping[str, Any]) -> None:
    found.say(said.get("content"))
    found.say(said.get("refusal"))
    details = [mapping(detail) for detail in array(said.get("reasoning_details"))]
    told = "".join(text(each.get("text") or each.get("summary")) for each in details)
    thought = said.get("reasoning_content") or said.get("reasoning") or told
    found.say(thought, reasoning=True)
    found.is_partial |= "function_call" in said
    for part in map(mapping, array(said.get("content"))):
        found.say(part.get("text"))
        for inner in map(mapping, array(part.get("thinking"))):
            found.say(inner.get("text"), reasoning=True)
    for at, call in enumerate(map(mapping, array(said.get("tool_calls")))):
        _called(found, call.get("index", at), call)


def _called(found: Plain, place: object, call: Mapping[str, Any]) -> None:
    function = mapping(call, "function")
    if call.get("id"):
        found.begin(place, function.get("name"), call["id"])
    elif function.get("name"):
        found.begin(place, function["name"])
    found.argue(place, function.get("arguments"))


def _responses(found: Plain, chunk: Chunk) -> None:
    is_whole = chunk.get("object") == "response"
    items = [*array(chunk.get("output") if is_whole else None)]
    if chunk.get("type") == "response.output_item.done":
        items.append(chunk.get("item"))
    for item in map(mapping, items):
        for field in ("content", "summary"):
            for part in map(mapping, array(item.get(field))):
                found.say(
                    part.get("text") or part.get("refusal"),
                    reasoning=item.get("type") == "reasoning",
                )
        if item.get("type") == "function_call":
            found.begin(None, item.get("name"))
            found.argue(None, item.get("arguments"))
        elif text(item.get("type")).endswith("_call"):
            found.is_partial = True
    ended = chunk if is_whole else mapping(chunk, "response")
    found.count(ended.get("usage"), "output_tokens", adds=True)  # a file may have several
    found.finish = text(ended.get("status")) or found.finish


def _generate(found: Plain, chunk: Chunk) -> None:
    usage = chunk.get("usageMetadata")
    found.count(usage, "candidatesTokenCount", "thoughtsTokenCount")
    for candidate in map(mapping, array(chunk.get("candidates"))):
        if candidate.get("index", 0) == 0:
            for part in map(mapping, array(mapping(candidate, "content").get("parts"))):
                found.say(part.get("text"), reasoning=part.get("thought") is True)
                _function(found, part)
            found.finish = text(candidate.get("finishReason")) or found.finish


def _function(found: Plain, part: Mapping[str, Any]) -> None:
    called = part.get("functionCall")
    if isinstance(called, Mapping):
        found.begin(None, called.get("name"))
        found.argue(None, called.get("args") or {})
        found.is_partial |= "name" not in called or "partialArgs" in called


def _interaction(found: Plain, chunk: Chunk) -> None:
    found.is_partial = True
    for step in map(mapping, array(chunk.get("steps"))):
        for field in ("content", "summary") if step.get("type") != "user_input" else ():
            for part in map(mapping, array(step.get(field))):
                found.say(part.get("text"), reasoning=field == "summary")
    delta = mapping(chunk, "delta")
    found.say(delta.get("text"), reasoning="thought" in text(delta.get("type")))
    ended = mapping(chunk, "interaction") or chunk
    found.count(ended.get("usage"), "total_output_tokens", "total_thought_tokens")
    found.finish = text(ended.get("status")) or found.finish


def _ollama(found: Plain, chunk: Chunk) -> None:
    message = mapping(chunk, "message")
    found.say(message.get("content"))
    found.say(message.get("thinking"), reasoning=True)
    for call in map(mapping, array(message.get("tool_calls"))):
        function = mapping(call, "function")
        found.begin(None, function.get("name"))
        found.argue(None, function.get("arguments"))
    found.count(chunk, "eval_count")
    if chunk.get("done") is True:
        found.finish = text(chunk.get("done_reason")) or "stop"  # old servers give none


def _converse(found: Plain, chunk: Chunk) -> None:
    told = {**chunk, **mapping(chunk.get(next(iter(chunk), "")))}
    delta, index = mapping(told, "delta"), told.get("contentBlockIndex")
    whole_blocks = array(mapping(told, "output", "message").get("content"))
    for block in (delta, *map(mapping, whole_blocks)):
        found.say(block.get("text"))
        thought = mapping(block, "reasoningContent")
        found.say(mapping(thought.get("reasoningText") or thought).get("text"), reasoning=True)
    for called in (mapping(told, "start"), *map(mapping, whole_blocks)):
        if "toolUse" in called:
            found.begin(index, mapping(called, "toolUse").get("name"))
            found.argue(index, mapping(called, "toolUse").get("input"))
    found.argue(index, mapping(delta, "toolUse").get("input"))
    found.count(told.get("usage"), "outputTokens")
    found.finish = text(told.get("stopReason")) or found.finish


def _cohere(found: Plain, chunk: Chunk) -> None:
    said = mapping(chunk, "delta", "message") or mapping(chunk, "message")
    found.say(said.get("tool_plan"), reasoning=True)
    contents = said.get("content")
    for content in map(mapping, contents if isinstance(contents, list) else [contents]):
        found.say(content.get("text"))
        found.say(content.get("thinking"), reasoning=True)
    calls = said.get("tool_calls")
    for call in map(mapping, calls if isinstance(calls, list) else [calls]):
        _called(found, chunk.get("index"), call)
    ended = mapping(chunk, "delta") or chunk
    found.count(mapping(ended, "usage", "tokens"), "output_tokens")
    found.finish = text(ended.get("finish_reason")) or found.finish


_READERS: Mapping[str, Callable[[Plain, Chunk], None]] = MappingProxyType(
    {
        "anthropic-messages": _messages,
        "bedrock-converse": _converse,
        "cohere-v2": _cohere,
        "google-generate": _generate,
        "google-interactions": _interaction,
        "ollama-chat": _ollama,
        "openai-chat": _chat,
        "openai-responses": _responses,
    }
)
