"""Recorded streams of our own: one answer in each format, a tool loop, a session log, a listing.

All of them say the same: a text, and a call of `now`. Not here: tests.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

Chunk = dict[str, Any]


def sse(*chunks: Chunk, last: str = "") -> str:
    return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + last


def json_lines(*chunks: Chunk) -> str:
    return "".join(json.dumps(chunk) + "\n" for chunk in chunks)


# One answer in each format: text, a call of `now` with {"n": 1}, and 7 tokens of output.


def chat(text: str = "Hi", arguments: str = '{"n": 1}', call_id: str = "c1") -> list[Chunk]:
    function = {"name": "now", "arguments": arguments}
    call = {"index": 0, "id": call_id, "type": "function", "function": function}
    return [
        {"id": "r", "choices": [{"index": 0, "delta": {"content": text}}]},
        {"id": "r", "choices": [{"index": 0, "delta": {"tool_calls": [call]}}]},
        {"id": "r", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
        {"id": "r", "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 7}},
    ]


def messages(name: str = "now") -> list[Chunk]:
    call = {"type": "tool_use", "id": "c1", "name": name, "input": {}}
    return [
        {"type": "message_start", "message": {"id": "m", "content": [], "usage": {}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": call},
        {
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "input_json_delta", "partial_json": '{"n": 1}'},
        },
        {"type": "content_block_stop", "index": 1},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use"},
            "usage": {"output_tokens": 7},
        },
        {"type": "message_stop"},
    ]


def responses(*items: Chunk, count: int = 1) -> list[Chunk]:
    call = {"type": "function_call", "id": "f", "call_id": "c1", "name": "now"}
    message = {"type": "message", "id": "m", "content": [{"type": "output_text", "text": "Hi"}]}
    made = items or (message, {**call, "arguments": '{"n": 1}'})
    usage = {"input_tokens": 3, "output_tokens": 7}
    return [
        chunk
        for number in range(count)
        for chunk in (
            {"type": "response.created", "response": {"id": f"r{number}", "status": "queued"}},
            *(
                {
                    "type": "response.output_item.done",
                    "output_index": at,
                    "item": _own(item, number),
                }
                for at, item in enumerate(made)
            ),
            {
                "type": "response.completed",
                "response": {"id": f"r{number}", "status": "completed", "usage": usage},
            },
        )
    ]


def _own(item: Chunk, number: int) -> Chunk:
    """The item of a later response has ids of its own."""
    ids = {name: f"{item[name]}{number or ''}" for name in ("id", "call_id") if name in item}
    return {**item, **ids}


def generate(*parts: Chunk) -> list[Chunk]:
    made = parts or ({"text": "Hi"}, {"functionCall": {"name": "now", "args": {"n": 1}}})
    usage = {"promptTokenCount": 3, "candidatesTokenCount": 7}
    return [
        *({"candidates": [{"content": {"parts": [part]}}]} for part in made),
        {"candidates": [{"finishReason": "STOP"}], "usageMetadata": usage},
    ]


def interactions() -> list[Chunk]:
    call = {"type": "function_call", "id": "c1", "name": "now", "arguments": {"n": 1}}
    usage = {"total_input_tokens": 3, "total_output_tokens": 7}
    return [
        {"event_type": "interaction.created", "interaction": {"id": "i", "status": "in_progress"}},
        {"event_type": "step.start", "index": 0, "step": {"type": "model_output"}},
        {"event_type": "step.delta", "index": 0, "delta": {"type": "text", "text": "Hi"}},
        {"event_type": "step.stop", "index": 0},
        {"event_type": "step.start", "index": 1, "step": call},
        {"event_type": "step.stop", "index": 1},
        {
            "event_type": "interaction.completed",
            "interaction": {"id": "i", "status": "completed", "usage": usage},
        },
    ]


def ollama() -> list[Chunk]:
    call = {"id": "c1", "function": {"name": "now", "arguments": {"n": 1}}}
    return [
        {"model": "m", "message": {"content": "Hi"}, "done": False},
        {"model": "m", "message": {"content": "", "tool_calls": [call]}, "done": False},
        {"model": "m", "message": {"content": ""}, "done": True, "eval_count": 7},
    ]


def converse(arguments: str = '{"n": 1}') -> list[Chunk]:
    use = {"toolUse": {"toolUseId": "c1", "name": "now"}}
    said: list[Chunk] = [{"text": "Hi"}, {"toolUse": {"input": arguments}}]
    return [
        {"messageStart": {"role": "assistant"}},
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": said[0]}},
        {"contentBlockStop": {"contentBlockIndex": 0}},
        {"contentBlockStart": {"contentBlockIndex": 1, "start": use}},
        {"contentBlockDelta": {"contentBlockIndex": 1, "delta": said[1]}},
        {"contentBlockStop": {"contentBlockIndex": 1}},
        {"messageStop": {"stopReason": "tool_use"}},
        {"metadata": {"usage": {"inputTokens": 3, "outputTokens": 7}}},
    ]


def cohere(arguments: str = '{"n": 1}') -> list[Chunk]:
    call = {"id": "c1", "type": "function", "function": {"name": "now", "arguments": ""}}
    more = {"function": {"arguments": arguments}}
    usage = {"tokens": {"input_tokens": 3, "output_tokens": 7}}

    def event(kind: str, **message: Any) -> Chunk:
        return {"type": kind, "index": 0, "delta": {"message": message}}

    return [
        {"id": "m", **event("message-start", role="assistant")},
        event("content-start", content={"type": "text", "text": ""}),
        event("content-delta", content={"text": "Hi"}),
        event("content-end"),
        event("tool-call-start", tool_calls=call),
        event("tool-call-delta", tool_calls=more),
        event("tool-call-end"),
        {"type": "message-end", "delta": {"finish_reason": "TOOL_CALL", "usage": usage}},
    ]


def recorded(*responses: Chunk | list[Chunk]) -> str:
    """What a client recorded: a response that came at once, and others that were streamed."""
    return json_lines(
        *(
            {
                "method": "generateContent" + ("Stream" if isinstance(each, list) else ""),
                "response": each,
            }
            for each in responses
        )
    )


def row(request: Chunk, body: str, format: str = "openai-chat") -> Chunk:
    return {"i": 0, "url": "u", "format": format, "request": request, "response": body}


def sent(arguments: str = '{"n": 1}', call_id: str = "c1", text: str = "Hi") -> Chunk:
    function = {"name": "now", "arguments": arguments}
    call = {"id": call_id, "type": "function", "function": function}
    said = {"role": "assistant", "content": text, "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": call_id, "content": "noon"}
    return {"messages": [{"role": "user", "content": "Go"}, said, result]}


def loop(after: Chunk, first: Iterable[Chunk] = ()) -> str:
    asked = {"messages": [{"role": "user", "content": "Go"}]}
    return json_lines(
        row(asked, sse(*(first or chat()))), row(after, sse(*chat("Bye", call_id="c2")))
    )


def log(*more: Chunk, stored: str = '{"n":1}', said: str = "Hi", name: str = "now") -> str:
    """A session log: an answer as it was streamed, and what was stored of it."""
    place = {"turn": 1, "step": 1}
    call = {"id": "c1", "name": "now", "argumentsDelta": '{"n": 1}'}
    content = [
        {"type": "text", "text": said},
        {"type": "tool-call", "id": "c1", "name": name, "arguments": stored},
    ]
    streamed = [
        {"type": "block-start", "index": 0, "blockType": "text"},
        {"type": "text-delta", "index": 0, "text": "Hi"},
        {"type": "block-start", "index": 1, "blockType": "tool-call"},
        {"type": "tool-call-delta", "index": 1, **call},
        {"type": "finish", "reason": {"kind": "tool-calls"}},
    ]
    message = {"role": "assistant", "id": "m1", "content": content}
    return json_lines(
        {"type": "session", "version": 0, "id": "s", "createdAt": 1, "cwd": "/w"},
        *({"type": "assistant/chunk", "data": {**place, "chunk": each}} for each in streamed),
        {"type": "assistant/message", "data": {**place, "message": message}},
        *more,
        {"type": "turn/end", "data": {"turn": 1, "reason": {"kind": "aborted"}}},
    )


FILES = {
    "anthropic-messages/a.sse": sse(*messages()),
    "bedrock-converse/b.jsonl": json_lines(*converse()),
    "cohere-v2/v.sse": sse(*cohere(), last="data: [DONE]\n\n"),
    "dsh-session/log.jsonl": log(),
    "exchange/loop.exchange.jsonl": loop(sent()),
    "gemini-cli-responses/r.jsonl": recorded(generate()),
    "google-generate/g.json": json.dumps(generate()),
    "google-interactions/i.chunks.txt": json_lines(*interactions()),
    "ollama-chat/o.jsonl": json_lines(*ollama()),
    "openai-chat/c.sse": sse(*chat(), last="data: [DONE]\n\n"),
    "openai-responses/r.sse": sse(*responses()),
}


def listed(file: str, **columns: Any) -> dict[str, Any]:
    """A row of a listing that agrees with the files above."""
    names = {
        "format": "provider / format",
        "named": "call id=name (first 6)",
        "parsed": "args parse as JSON",
        "events": "event types",
    }
    row = {"format": "p / openai-chat", "calls": 1, "named": "c1=now", "parsed": "True:1"}
    row |= {"finish": "tool_calls", "events": "chunk:4", **columns}
    return {"file": file, **{names.get(name, name): value for name, value in row.items()}}
