"""OpenAI Responses: the stream of one response, or several that follow each other, or a whole one.

https://platform.openai.com/docs/api-reference/responses-streaming ; event names as in the SDK
`openai` 3.57. Here is decided which item an event belongs to: by the id of an item that we know,
else by its place in the output, since some gateways make a new id for every event. Not here: what
the items mean (`response_items`).
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from definitions.providers.adapter import Adapter
from definitions.providers.reading import array, is_object, mapping, natural, text
from definitions.providers.response_items import Call, Item, Items, Prose, ids_of

__all__ = ["OpenAIResponses"]

_TEXTS = {
    f"response.{written}.{what}": (what, *place)
    for written, place in {
        "output_text": ("message", "content", "text"),
        "refusal": ("message", "content", "refusal"),
        "reasoning_text": ("reasoning", "content", "text"),
        "reasoning_summary_text": ("reasoning", "summary", "text"),
    }.items()
    for what in ("delta", "done")
}
"""Events of text: the type of their item, where in it they write, the field of the whole text."""

_ARGUMENTS = {
    f"response.{written}.{what}": (what, *place)
    for written, place in {
        "function_call_arguments": ("function_call", "arguments"),
        "custom_tool_call_input": ("custom_tool_call", "input"),
        "mcp_call_arguments": ("mcp_call", "arguments"),
        "code_interpreter_call_code": ("code_interpreter_call", "code"),
        "apply_patch_call_operation_diff": ("apply_patch_call", "diff"),
    }.items()
    for what in ("delta", "done")
}
"""Events of arguments: the type of their item, the field of the whole text."""

_ENDS = {"completed", "incomplete", "failed", "cancelled"}

_OnEvent = Callable[["OpenAIResponses", Mapping[str, Any]], None]


class OpenAIResponses(Adapter):
    """Reads a stream of events, or one whole response."""

    provider = "openai_responses"

    def __init__(self, **envelope: Any) -> None:
        super().__init__(**envelope)
        self._id = ""
        self._items = Items(self.answer)
        self._placed: dict[int | None, Item] = {}
        self._named: dict[str, Item | None] = {}
        self._spent: Counter[str] = Counter()
        self._spent_before: Counter[str] = Counter()

    def take(self, chunk: Mapping[str, Any], event: str | None) -> None:
        kind = text(chunk.get("type")) or event or ""
        if kind in _ARGUMENTS:
            self._on_arguments(chunk, *_ARGUMENTS[kind])
        elif kind in _TEXTS:
            self._on_text(chunk, *_TEXTS[kind])
        elif kind in self._EVENTS:
            self._EVENTS[kind](self, {**chunk, "type": kind})
        elif chunk.get("object") == "response":
            self._on_created({"response": chunk})
            self._on_end({"response": chunk})
        elif is_object(chunk.get("error")):
            self._on_error(chunk)

    # -- the response ----------------------------------------------------------------------

    def _on_created(self, chunk: Mapping[str, Any]) -> None:
        """Begin a response; the one before it stays a part of the answer."""
        told = text(mapping(chunk, "response").get("id"))
        if not (told and told == self._id):
            self._id = told
            self._items, self._placed, self._named = Items(self.answer), {}, {}
            self._spent_before = self._spent.copy()
            self.answer.goes_on()
        self._on_progress(chunk)

    def _on_progress(self, chunk: Mapping[str, Any]) -> None:
        response = mapping(chunk, "response")
        self.answer.name(message_id=response.get("id"), model=response.get("model"))

    def _on_end(self, chunk: Mapping[str, Any]) -> None:
        response = mapping(chunk, "response")
        self._on_progress(chunk)
        self._count(mapping(response, "usage"))
        self._take_output([each for each in array(response.get("output")) if is_object(each)])
        for item in self._items.all:
            item.settle()
        status = text(response.get("status"))
        if status not in _ENDS:
            status = text(chunk.get("type")).rpartition(".")[2]
        if status in _ENDS:
            self._stop(status, response)

    def _stop(self, status: str, response: Mapping[str, Any]) -> None:
        if status in ("failed", "cancelled"):
            self.answer.fail(response.get("error") or self.answer.error or {"code": status})
            return
        reason, detail = "end_turn", status
        if status == "incomplete":
            detail = text(mapping(response, "incomplete_details").get("reason")) or status
            reason = detail if detail == "content_filter" else "length"
        elif any(isinstance(item, Prose) and item.has_refused for item in self._items.all):
            reason = "refusal"
        self.answer.stop(reason, detail)
        self.answer.end()

    def _on_failed(self, chunk: Mapping[str, Any]) -> None:
        self._on_end({**chunk, "response": {**mapping(chunk, "response"), "status": "failed"}})

    def _on_error(self, chunk: Mapping[str, Any]) -> None:
        said = {name: chunk[name] for name in ("code", "message", "param") if name in chunk}
        self.answer.fail(chunk.get("error") or said)

    def _count(self, usage: Mapping[str, Any]) -> None:
        """Count a response; those before it in the same answer are counted as well."""
        if not usage:
            return
        read, written = (
            mapping(usage, "input_tokens_details"),
            mapping(usage, "output_tokens_details"),
        )
        told = {
            "input_tokens": natural(usage.get("input_tokens")),
            "output_tokens": natural(usage.get("output_tokens")),
            "cache_read_tokens": natural(read.get("cached_tokens")),
            "cache_write_tokens": natural(read.get("cache_write_tokens")),
            "reasoning_tokens": natural(written.get("reasoning_tokens")),
        }
        known = {name: number for name, number in told.items() if number is not None}
        self._spent = Counter(self._spent_before)
        self._spent.update(known)
        self.answer.count(self._spent, usage)

    def _take_output(self, output: list[Mapping[str, Any]]) -> None:
        """Take the output of a response that ends: of items that came, and of those that did not.

        Gateways change ids and places. So an item without a name that we know is new only when
        more of its type stand here than came.
        """
        named: dict[str, deque[Item]] = defaultdict(deque)
        for item in self._items.all:
            for name in ids_of(item.raw):
                named[name].append(item)
        unnamed = Counter(item.type for item in self._items.all)
        seen: set[Item] = set()
        rest = []
        for raw in output:
            known = _next_of([named[name] for name in reversed(ids_of(raw))], seen)
            if known is not None and known.is_told_by(raw):
                seen.add(known)
                unnamed[known.type] -= 1
                known.complete(raw)
            else:
                rest.append(raw)
        for raw in rest:
            unnamed[text(raw.get("type"))] -= 1
            if unnamed[text(raw.get("type"))] < 0:
                self._items.begin(raw).complete(raw)

    # -- items -----------------------------------------------------------------------------

    def _on_added(self, chunk: Mapping[str, Any]) -> None:
        raw, place = mapping(chunk, "item"), natural(chunk.get("output_index"))
        item = self._find(chunk) if place is None else self._placed.get(place)
        if raw and (item is None or not item.is_told_by(raw)):
            self._begin(chunk, raw, takes_place=True)

    def _on_done(self, chunk: Mapping[str, Any]) -> None:
        raw = mapping(chunk, "item")
        if raw:
            item = next((each for each in self._told(chunk, raw) if each.is_told_by(raw)), None)
            (item or self._begin(chunk, raw)).complete(raw)

    def _told(self, chunk: Mapping[str, Any], raw: Mapping[str, Any]) -> list[Item]:
        """Give the items that a whole one may be. The id of a call may be that of two calls."""
        place = natural(chunk.get("output_index"))
        named = [self._named.get(name) for name in reversed(ids_of(raw))]
        if place is not None and text(raw.get("call_id")):
            named = named[:-1]
        return [each for each in (*named, self._find(chunk)) if each is not None]

    def _begin(
        self, chunk: Mapping[str, Any], raw: Mapping[str, Any], *, takes_place: bool = False
    ) -> Item:
        item = self._items.begin(raw)
        place, item_id = natural(chunk.get("output_index")), text(chunk.get("item_id"))
        is_placed = place is not None or not (item_id or ids_of(raw))
        if is_placed and (takes_place or place not in self._placed):
            self._placed[place] = item
        for name in {item_id, *ids_of(raw)}:
            self._named[name] = None if name in self._named else item
        return item

    def _find(self, chunk: Mapping[str, Any]) -> Item | None:
        """Find the item of an event: by an id that one item has, else by its place.

        What has neither has a place of its own.
        """
        place, item_id = natural(chunk.get("output_index")), text(chunk.get("item_id"))
        named = self._named.get(item_id) if item_id else None
        if named is not None or (place is None and item_id):
            return named
        return self._placed.get(place)

    def _written(self, chunk: Mapping[str, Any], kind: str) -> Item:
        """Find the item that a piece belongs to; when its beginning was lost, it begins here."""
        return self._find(chunk) or self._begin(chunk, {"type": kind})

    def _on_text(
        self, chunk: Mapping[str, Any], what: str, kind: str, field: str, whole: str
    ) -> None:
        item = self._written(chunk, kind)
        if not isinstance(item, Prose) or item.type != kind:
            return
        index = natural(chunk.get(f"{field}_index")) or 0
        if whole == "refusal":
            item.refuse(field, index)
        if what == "delta":
            item.say(field, index, chunk.get("delta"))
        else:
            item.say_whole(field, index, chunk.get(whole))

    def _on_citation(self, chunk: Mapping[str, Any]) -> None:
        item = self._written(chunk, "message")
        if isinstance(item, Prose):
            index = natural(chunk.get("content_index")) or 0
            item.cite("content", index, chunk.get("annotation"))

    def _on_arguments(self, chunk: Mapping[str, Any], what: str, kind: str, whole: str) -> None:
        item = self._written(chunk, kind)
        if not isinstance(item, Call) or item.type != kind:
            return
        if what == "delta":
            item.write(chunk.get("delta"))
        else:
            item.write_whole(chunk.get(whole))

    _EVENTS: ClassVar[Mapping[str, _OnEvent]] = {
        "response.created": _on_created,
        "response.queued": _on_progress,
        "response.in_progress": _on_progress,
        "response.completed": _on_end,
        "response.incomplete": _on_end,
        "response.failed": _on_failed,
        "response.output_item.added": _on_added,
        "response.output_item.done": _on_done,
        "response.output_text.annotation.added": _on_citation,
        "error": _on_error,
    }


def _next_of(queues: list[deque[Item]], seen: set[Item]) -> Item | None:
    """Give the first item of the first queue that has one that was not seen."""
    for queue in queues:
        while queue and queue[0] in seen:
            queue.popleft()
        if queue:
            return queue[0]
    return None
