"""OpenAI Chat Completions, as OpenAI streams it and as the servers do that speak its format.

https://platform.openai.com/docs/api-reference/chat-streaming ; field names as in the SDK `openai`
3.57 and, for what others have added, as in recorded streams of theirs. Here: what the fields of a
chunk mean, and which call an entry of `tool_calls` belongs to. Not here: how text and calls add up,
their ids, and what their arguments are (`answer`).

`<think>` in a text stays text: only the server knows whether its model thinks in tags, and it has
fields of its own for what it knows to be reasoning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeGuard

from definitions.providers.adapter import Adapter
from definitions.providers.blocks import Block, CallBlock, RawBlock, TextBlock
from definitions.providers.reading import array, is_object, mapping, natural, plain, text
from definitions.providers.witnesses import as_text, key_of, verdict_of

__all__ = ["OpenAIChat"]

_STOP_REASONS = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",  # Mistral
    "model_context_window_exceeded": "length",  # Z.ai
    "content_filter": "content_filter",
    "sensitive": "content_filter",  # Z.ai
}
_FAULTS = frozenset(
    {
        "error",  # OpenRouter, Mistral
        "abort",  # vLLM, SGLang
        "insufficient_system_resource",  # DeepSeek
        "network_error",  # Z.ai
        "function_call_filter",  # Gemini: a call of the model that was none
    }
)
"""Finish reasons of a response that did not end well."""

_NAMES = (("message_id", "id"), ("model", "model"))
_REASONING = ("reasoning_content", "reasoning")
_DETAILS = {"reasoning.text": "text", "reasoning.summary": "summary"}
"""Kinds of OpenRouter's `reasoning_details` that come in pieces, and the field that does."""

_AUDIO = ("data", "transcript")
_MODELLED = frozenset({"index", "id", "function", "custom"})

_OnField = Callable[["OpenAIChat", Any], None]


class OpenAIChat(Adapter):
    """Reads a stream of `chat.completion.chunk`, or one whole `chat.completion`.

    Of several choices it reads the first. Chunks do not say where a block ends: all of them end
    with the response. Its end is a `finish_reason` behind which nothing comes; where a server never
    sends one, `[DONE]`.
    """

    provider = "openai_chat"

    def __init__(self, **envelope: Any) -> None:
        super().__init__(**envelope)
        self._routes = _Routes()
        self._details: list[RawBlock] = []
        self._kept: dict[str, RawBlock] = {}
        self._has_finished = self._has_refused = False

    def take(self, chunk: Mapping[str, Any], event: str | None) -> None:
        self._name(chunk)
        for place, choice in enumerate(array(chunk.get("choices"))):
            if is_object(choice) and not (natural(choice.get("index", place)) or 0):
                self._on_choice(choice)
        if chunk.get("usage") or "x_groq" in chunk:
            self._count(mapping(chunk, "usage") or mapping(chunk, "x_groq", "usage"))
        error = chunk.get("error")
        if error or event == "error" or chunk.get("object") == "error":
            self.answer.fail(error or chunk)

    def done(self) -> None:
        if not self._has_finished:
            self.answer.end()

    def close(self) -> None:
        details = [detail.value()["raw"] for detail in self._details]
        self.answer.name(reasoning_details=details)
        if not self.answer.ended:
            return
        for block in self.answer.blocks:
            # `[DONE]` does not say that the answer was not cut: no arguments may be lost arguments.
            if self._has_finished or not isinstance(block, CallBlock) or block.has_arguments:
                self.answer.close(block)

    # -- a chunk ---------------------------------------------------------------------------

    def _name(self, chunk: Mapping[str, Any]) -> None:
        """The first id stays: some servers give the last chunks another one."""
        for ours, theirs in _NAMES:
            if ours not in self.answer.source:
                self.answer.name(**{ours: text(chunk.get(theirs))})
        if "citations" in chunk:  # Perplexity: what [1] in the text is
            self.answer.name(citations=chunk["citations"])

    def _on_choice(self, choice: Mapping[str, Any]) -> None:
        delta = choice.get("delta")
        if not is_object(delta):
            delta = mapping(choice, "message")
        self._on_reasoning(delta)
        told = [field for field in delta if field in _ORDER and delta[field]]
        for field in sorted(told, key=_ORDER.__getitem__) if len(told) > 1 else told:
            self._FIELDS[field](self, delta[field])
        self._count(mapping(choice, "usage"))
        self._stop(text(choice.get("finish_reason")))
        if choice.get("error"):
            self.answer.fail(choice["error"])

    def _stop(self, label: str) -> None:
        if not label:
            return
        self._has_finished = True
        kind = label.partition(":")[0].strip().casefold()  # Gemini: `content_filter: SAFETY`
        if kind in _FAULTS:
            self.answer.fail(self.answer.error or {"finish_reason": label})
            return
        reason = _STOP_REASONS.get(kind, "other")
        if self._has_refused and reason == "end_turn":
            reason = "refusal"
        self.answer.stop(reason, label)
        self.answer.end()

    def _count(self, usage: Mapping[str, Any]) -> None:
        """Each usage is all so far."""
        if not usage:
            return
        asked = mapping(usage, "prompt_tokens_details")
        cached = (
            asked.get("cached_tokens"),
            usage.get("prompt_cache_hit_tokens"),  # DeepSeek
            usage.get("cached_tokens"),  # Moonshot
        )
        told = {
            "input_tokens": natural(usage.get("prompt_tokens")),
            "output_tokens": natural(usage.get("completion_tokens")),
            "cache_read_tokens": next(filter(_is_told, map(natural, cached)), None),
            "cache_write_tokens": natural(asked.get("cache_write_tokens")),
            "reasoning_tokens": natural(
                mapping(usage, "completion_tokens_details").get("reasoning_tokens")
            ),
        }
        self.answer.count(told, usage)

    # -- fields of a delta, or of a whole message ----------------------------------------------

    def _on_reasoning(self, delta: Mapping[str, Any]) -> None:
        """Several fields may say the same; which one it was is kept for the way back."""
        for field in _REASONING:
            if delta.get(field) and isinstance(delta[field], str):
                self.answer.flow(delta[field], "reasoning")
                self.answer.name(reasoning_field=field)
                break
        else:
            for detail in array(delta.get("reasoning_details")):
                self.answer.flow(_piece_of(detail), "reasoning")

    def _on_details(self, details: Any) -> None:
        """Keep what the server wants to see again, unchanged; pieces of one detail are joined."""
        for detail in filter(is_object, array(details)):
            last = self._details[-1] if self._details else None
            field = _DETAILS.get(text(detail.get("type")))
            if last is None or field is None or not _continues(last, detail):
                self._details.append(RawBlock(0, self.provider, detail))
                continue
            last.grow(field, text(detail.get(field)))
            more = {name: plain(told) for name, told in detail.items() if told is not None}
            last.raw |= {name: told for name, told in more.items() if name != field}

    def _on_content(self, content: Any) -> None:
        if isinstance(content, str):
            self.answer.flow(content)
        for part in array(content):  # Mistral
            self._on_part(part)

    def _on_part(self, part: Any) -> None:
        kind = text(mapping(part).get("type"))
        if kind == "text":
            self.answer.flow(part.get("text"))
        elif kind == "thinking":
            thinking = part.get("thinking")
            self.answer.flow(thinking, "reasoning")
            for inner in array(thinking):
                self.answer.flow(mapping(inner).get("text"), "reasoning")
        elif is_object(part):
            self.answer.keep(part)

    def _on_refusal(self, refusal: Any) -> None:
        if isinstance(refusal, str):
            self.answer.flow(refusal)
            self._has_refused = True

    def _on_annotations(self, annotations: Any) -> None:
        """They belong to the text; its newest block stands for it."""
        told = [plain(each) for each in array(annotations)]
        texts = filter(_is_text, reversed(self.answer.blocks))
        block = next(texts, None) or self.answer.open_text()
        block.extra.setdefault("citations", []).extend(told)

    def _on_images(self, images: Any) -> None:
        for image in filter(is_object, array(images)):
            self.answer.keep(image)

    def _on_audio(self, audio: Any) -> None:
        """Sound and what is said in it come in pieces."""
        block = self._keep_one("audio")
        for name, told in mapping(audio).items():
            if name in _AUDIO:
                block.grow(name, text(told))
            else:
                block.raw[name] = plain(told)

    def _on_executed_tools(self, tools: Any) -> None:
        """Groq tells what it ran by itself before and, all of it once more, behind."""
        ran = self._keep_one("executed_tools").raw.setdefault("tools", {})
        for place, tool in enumerate(array(tools)):
            ran[str(mapping(tool).get("index", place))] = plain(tool)

    def _keep_one(self, type: str) -> RawBlock:
        if type not in self._kept:
            self._kept[type] = self.answer.keep({"type": type})
        self.answer.goes_on()
        return self._kept[type]

    def _on_tool_calls(self, entries: Any) -> None:
        self._routes.begin()
        for place, entry in enumerate(array(entries)):
            if is_object(entry):
                self._on_call(entry, place)

    def _on_function_call(self, called: Any) -> None:
        """The format before `tool_calls`: one call, without an id."""
        if is_object(called):
            kind = "function_call"
            self._on_call({"index": kind, "type": kind, "function": called}, 0)

    def _on_call(self, entry: Mapping[str, Any], place: int) -> None:
        called = _called(entry)
        call = self._routes.find(entry, place)
        if call is None:
            call = self.answer.open_call()
        self._routes.lead(entry, place, call)
        if entry.get("id"):
            self.answer.identify(call, hint=entry["id"])
        if called.get("name"):
            self.answer.name_more(call, called["name"])
        self.answer.argue(call, called.get("arguments"))
        if not _MODELLED.issuperset(entry):
            more = {name: told for name, told in entry.items() if _is_more(name, told)}
            if more:
                call.extra["raw"] = plain({**call.extra.get("raw", {}), **more})

    _FIELDS: ClassVar[Mapping[str, _OnField]] = {
        "reasoning_details": _on_details,
        "content": _on_content,
        "refusal": _on_refusal,
        "annotations": _on_annotations,
        "images": _on_images,
        "audio": _on_audio,
        "executed_tools": _on_executed_tools,
        "tool_calls": _on_tool_calls,
        "function_call": _on_function_call,
    }


_ORDER = {field: place for place, field in enumerate(OpenAIChat._FIELDS)}  # noqa: SLF001 - its own
"""In which order the fields of one delta are read."""


class _Routes:
    """Which call an entry belongs to.

    Its index, its place in the list and its id are hints, and each may be missing or wrong. An id
    decides against an index that has another one; an index that is new is another call, even under
    an id that is known. Without an index, the place stands for it.
    """

    __slots__ = ("_by_id", "_by_index", "_by_place", "_in_list")

    def __init__(self) -> None:
        self._by_index: dict[int | str, CallBlock] = {}
        self._by_place: dict[int, CallBlock] = {}
        self._by_id: dict[str, CallBlock] = {}
        self._in_list: set[int] = set()

    def begin(self) -> None:
        """Another list of entries begins."""
        self._in_list = set()

    def find(self, entry: Mapping[str, Any], place: int) -> CallBlock | None:
        """Give the call that the entry goes on with; None when it begins one."""
        index, hint = _index(entry), text(entry.get("id"))
        here = self._by_place.get(place) if index is None else self._by_index.get(index)
        if here is not None:
            if hint and here.hint == hint:
                return here
            if not (hint and here.hint):
                names_its_place = index is not None and here.number not in self._in_list
                return None if _is_another(here, entry, names_its_place) else here
        elif index is not None:
            return None
        found = self._by_id.get(hint)
        return None if found is None or found.number in self._in_list else found

    def lead(self, entry: Mapping[str, Any], place: int, call: CallBlock) -> None:
        """Let what the entry says of itself lead to the call from now on."""
        index, hint = _index(entry), text(entry.get("id"))
        if index is not None:
            self._by_index[index] = call
        if hint:
            self._by_id[hint] = call
        self._by_place[place] = call
        self._in_list.add(call.number)


def _index(entry: Mapping[str, Any]) -> int | str | None:
    index = entry.get("index")
    return index if type(index) in (int, str) else None


def _is_another(call: CallBlock, entry: Mapping[str, Any], names_its_place: bool) -> bool:
    """Whether an entry begins another call, though no id says so.

    It does when the call has all its arguments and the entry names another tool, or, where no index
    says that it is the same call, the same tool with other complete arguments.
    """
    called = _called(entry)
    named = text(called.get("name"))
    if not (named and call.name and call.has_arguments):
        return False
    if named != call.name:
        return call.judge().arguments is not None
    told = as_text(called.get("arguments"))
    other = verdict_of((), (told,)).arguments if told and not names_its_place else None
    known = call.judge().arguments if other is not None else None
    return known is not None and other is not None and key_of(other) != key_of(known)


def _called(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give name and arguments; what a custom tool takes is text of any kind."""
    custom = mapping(entry, "custom")
    if custom:
        return {"name": custom.get("name"), "arguments": custom.get("input")}
    return mapping(entry, "function")


def _is_more(name: str, told: object) -> bool:
    """Whether a field of an entry is kept for the way back (Gemini's `extra_content`)."""
    return name not in _MODELLED and bool(told) and (name, told) != ("type", "function")


def _piece_of(detail: object) -> Any:
    told = mapping(detail)
    return told.get(_DETAILS.get(text(told.get("type")), ""))


def _continues(last: RawBlock, detail: Mapping[str, Any]) -> bool:
    return all(last.raw.get(name) == detail.get(name) for name in ("type", "index"))


def _is_text(block: Block) -> TypeGuard[TextBlock]:
    return isinstance(block, TextBlock) and block.type == "text"


def _is_told(count: int | None) -> bool:
    return count is not None
