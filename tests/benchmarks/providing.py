"""Goals of the provider adapters: raw bytes to deltas, beside decoding their JSON, and beside SDKs.

The streams are made up here, a chunk to a word. Not here: what SDKs do (`sdks`), what folding the
deltas costs by itself (`goals`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import json

from definitions.providers import adapter
from tests.benchmarks.contenders import CATALOG, assembler_of
from tests.benchmarks.measure import Prepare, Row, Run, exponent, interleaved
from tests.benchmarks.sdks import installed
from tests.benchmarks.workloads import opened, word

__all__ = ["STREAMS", "beside_sdks", "given", "providing", "shown", "stream", "wire"]

PART = 1_400
"""Bytes that come at once: about a packet."""

Chunk = dict[str, Any]
Make = Callable[[Iterator[str]], list[Chunk]]


def _words(count: int) -> Iterator[str]:
    return map(word, range(count))


def _argument(count: int) -> Iterator[str]:
    """The text of one argument, a piece to a word, now and then an escape."""
    yield '{"path":"src/page.html","content":"'
    for at in range(1, count - 1):
        yield "\\n" if at % 32 == 0 else word(at)
    yield '"}'


# -- streams -------------------------------------------------------------------------------


def _anthropic(block: Chunk, deltas: Iterator[Chunk]) -> list[Chunk]:
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m-1"}
    usage = {"input_tokens": 3, "output_tokens": 1}
    ends = {"stop_reason": "end_turn", "stop_sequence": None}
    begun = {**message, "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    return [
        {"type": "message_start", "message": begun},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": ends, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ]


def _anthropic_text(words: Iterator[str]) -> list[Chunk]:
    deltas = ({"type": "text_delta", "text": text} for text in words)
    return _anthropic({"type": "text", "text": ""}, deltas)


def _anthropic_argument(pieces: Iterator[str]) -> list[Chunk]:
    block = {"type": "tool_use", "id": "call_1", "name": "write_file", "input": {}}
    return _anthropic(block, ({"type": "input_json_delta", "partial_json": one} for one in pieces))


def _completion(delta: Chunk, finish: str | None = None) -> Chunk:
    place = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_760_000_000}
    return {**head, "model": "m-1", "system_fingerprint": "fp_1", "choices": [place]}


def _completions(deltas: Iterator[Chunk], finish: str) -> list[Chunk]:
    begun = _completion({"role": "assistant", "content": ""})
    return [begun, *map(_completion, deltas), _completion({}, finish)]


def _chat_text(words: Iterator[str]) -> list[Chunk]:
    return _completions(({"content": text} for text in words), "stop")


def _chat_argument(pieces: Iterator[str]) -> list[Chunk]:
    def entries() -> Iterator[Chunk]:
        head = {"name": "write_file", "arguments": ""}
        yield {"index": 0, "id": "call_1", "type": "function", "function": head}
        for piece in pieces:
            yield {"index": 0, "function": {"arguments": piece}}

    return _completions(({"tool_calls": [entry]} for entry in entries()), "tool_calls")


def _responses(item: Chunk, kind: str, deltas: Iterator[str], **whole: Any) -> list[Chunk]:
    place = {"output_index": 0, "item_id": item["id"]}
    head = {"id": "resp_1", "object": "response", "created_at": 1_760_000_000, "model": "m-1"}
    head |= {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "output": []}
    usage = {"input_tokens": 3, "output_tokens": 9, "total_tokens": 12}
    usage |= {"input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0}}
    usage |= {"output_tokens_details": {"reasoning_tokens": 0}}
    done = {**item, **whole, "status": "completed"}
    part = {"type": "output_text", "text": "", "annotations": []}
    parts = [{"type": "response.content_part.added", **place, "content_index": 0, "part": part}]
    chunks = [
        {"type": "response.created", "response": {**head, "status": "in_progress"}},
        {"type": "response.output_item.added", **place, "item": item},
        *(parts if item["type"] == "message" else []),
        *({"type": kind, **place, "content_index": 0, "delta": delta} for delta in deltas),
        {"type": "response.output_item.done", **place, "item": done},
        {
            "type": "response.completed",
            "response": {**head, "status": "completed", "output": [done], "usage": usage},
        },
    ]
    return [{**chunk, "sequence_number": at} for at, chunk in enumerate(chunks)]


def _responses_text(words: Iterator[str]) -> list[Chunk]:
    said = list(words)
    item = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
    part = {"type": "output_text", "text": "".join(said), "annotations": []}
    kind = "response.output_text.delta"
    return _responses({**item, "status": "in_progress"}, kind, iter(said), content=[part])


def _responses_argument(pieces: Iterator[str]) -> list[Chunk]:
    said = list(pieces)
    call = {"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "write_file"}
    kind = "response.function_call_arguments.delta"
    return _responses({**call, "arguments": ""}, kind, iter(said), arguments="".join(said))


def _candidate(part: Chunk, **more: Any) -> Chunk:
    content = {"role": "model", "parts": [part]}
    return {
        "candidates": [{"content": content, "index": 0, **more}],
        "responseId": "g_1",
        "modelVersion": "m-1",
    }


def _gemini_text(words: Iterator[str]) -> list[Chunk]:
    return [*(_candidate({"text": text}) for text in words), _gemini_end()]


def _gemini_argument(pieces: Iterator[str]) -> list[Chunk]:
    def called(**fields: Any) -> Chunk:
        return _candidate({"functionCall": {**fields, "willContinue": True}})

    path = {"jsonPath": "$.content", "willContinue": True}
    return [
        called(name="write_file"),
        *(called(partialArgs=[{**path, "stringValue": piece}]) for piece in pieces),
        called(partialArgs=[{"jsonPath": "$.content", "stringValue": ""}]),
        _candidate({"functionCall": {}}),
        _gemini_end(),
    ]


def _gemini_end() -> Chunk:
    usage = {"promptTokenCount": 3, "candidatesTokenCount": 9}
    return {**_candidate({"text": ""}, finishReason="STOP"), "usageMetadata": usage}


def _interaction(step: Chunk, deltas: Iterator[Chunk]) -> list[Chunk]:
    interaction = {"id": "i_1", "model": "m-1", "status": "completed"}
    return [
        {"event_type": "interaction.created", "interaction": interaction},
        {"event_type": "step.start", "index": 0, "step": step},
        *({"event_type": "step.delta", "index": 0, "delta": delta} for delta in deltas),
        {"event_type": "step.stop", "index": 0},
        {"event_type": "interaction.completed", "interaction": interaction},
    ]


def _interactions_text(words: Iterator[str]) -> list[Chunk]:
    return _interaction({"type": "model_output"}, ({"type": "text", "text": one} for one in words))


def _interactions_argument(pieces: Iterator[str]) -> list[Chunk]:
    call = {"type": "function_call", "id": "call_1", "name": "write_file", "arguments": {}}
    return _interaction(call, ({"type": "arguments_delta", "arguments": one} for one in pieces))


def _ollama_text(words: Iterator[str]) -> list[Chunk]:
    def said(text: str) -> Chunk:
        message = {"role": "assistant", "content": text}
        return {"model": "m-1", "created_at": "2026-01-01", "message": message, "done": False}

    return [*map(said, words), {**said(""), "done": True, "done_reason": "stop"}]


STREAMS: Mapping[str, Mapping[str, Make]] = {
    "anthropic": {"text": _anthropic_text, "argument": _anthropic_argument},
    "openai_chat": {"text": _chat_text, "argument": _chat_argument},
    "openai_responses": {"text": _responses_text, "argument": _responses_argument},
    "gemini": {"text": _gemini_text, "argument": _gemini_argument},
    "gemini_interactions": {"text": _interactions_text, "argument": _interactions_argument},
    "ollama": {"text": _ollama_text},  # its calls come whole
}
_SOURCES: Mapping[str, Callable[[int], Iterator[str]]] = {"text": _words, "argument": _argument}


def stream(provider: str, what: str, count: int) -> list[bytes]:
    """The chunks of a stream of `count` words, as JSON."""
    return [json.encode(chunk) for chunk in STREAMS[provider][what](_SOURCES[what](count))]


def wire(payloads: list[bytes]) -> list[bytes]:
    """The event stream of these chunks, in the parts in which it comes."""
    events = []
    for payload in payloads:
        is_named = payload.startswith(b'{"type":"')
        named = b"event: %s\n" % payload.split(b'"')[3] if is_named else b""
        events.append(b"%sdata: %s\n\n" % (named, payload))
    data = b"".join(events)
    return [data[at : at + PART] for at in range(0, len(data), PART)]


# -- contenders ----------------------------------------------------------------------------


def decoded(payloads: list[bytes]) -> Prepare:
    """The floor: decode each chunk to plain objects, and nothing else."""

    def run() -> None:
        decode = json.decode
        for payload in payloads:
            decode(payload)

    return lambda: run


def given(provider: str, parts: list[bytes]) -> Prepare:
    """Feed an adapter; its deltas, and what the response is."""

    def run() -> None:
        reads = adapter(provider, conversation="c1", attempt="a1")
        for part in parts:
            reads.feed(part)
        assert reads.finish().whole

    return lambda: run


def shown(provider: str, payloads: list[bytes], key: str) -> Prepare:
    """As `given`, chunk by chunk; the deltas go through the engine, and the row is read after each.

    It is what an SDK does that keeps the current message, and more: rows, Patches.
    """
    parts = [b"".join(wire([payload])) for payload in payloads]

    def prepare() -> Run:
        assembler = assembler_of(CATALOG, opened())
        view = assembler.view()

        def run() -> None:
            reads, ordinal, node = adapter(provider, conversation="c1", attempt="a1"), 0, None
            for part in parts:
                for piece in reads.feed(part):
                    place = {"attempt": "a1", "turn": 1, "step": 1, "ordinal": ordinal, "after": 2}
                    ordinal += 1
                    given = {**place, "index": ordinal, "type": piece.type, "data": piece.data}
                    assembler.emit(given)
                assembler.flush()
                if key in view:
                    node = view[key]
            assert node is not None
            assert reads.finish().whole

        return run

    return prepare


def providing(sizes: Any) -> list[Row]:
    """Raw bytes to deltas: over decoding the same JSON, and how that grows with the length."""
    rows = []
    for provider, kinds in STREAMS.items():
        for what in kinds:
            payloads = stream(provider, what, sizes.words)
            few = stream(provider, what, sizes.few_words)
            times = interleaved(
                {
                    "floor": decoded(payloads),
                    "adapter": given(provider, wire(payloads)),
                    "few": given(provider, wire(few)),
                },
                sizes.rounds,
            )
            label = f"{provider}, {what} of {sizes.words:,} pieces"
            rows.append(times.row("14", f"{label}, over decoding", "adapter", "floor", 6))
            grows = exponent(
                times.best("few"), times.best("adapter"), sizes.words / sizes.few_words
            )
            rows.append(Row("14", f"{label}, exponent of its length", grows, 1.1))
    return rows


_KEYS = {"text": "assistant:1.1", "argument": "tool:call_1"}


def beside_sdks(sizes: Any) -> list[Row]:
    """Raw bytes to deltas, and to a row read after each chunk, over what SDKs spend on them."""
    rows = []
    for provider, kinds in STREAMS.items():
        found = installed(provider)
        for what in kinds if found else ():
            payloads = stream(provider, what, sizes.sdk_words)
            parts = wire(payloads)
            ours = {
                "deltas": given(provider, parts),
                "row": shown(provider, payloads, _KEYS[what]),
            }
            theirs = {name: how(parts) for name, how in found.items()}
            times = interleaved({**ours, **theirs}, sizes.rounds)
            for name in theirs:
                limit = None if "alone" in name else 1 / 3
                label = f"{provider}, {what} of {sizes.sdk_words:,} pieces, {{}} over {name}"
                rows += [times.row("14", label.format(mine), mine, name, limit) for mine in ours]
    return rows
