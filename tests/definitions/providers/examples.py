"""One or two small streams for each format, written by hand: text, reasoning, calls, the end.

Not here: the quirks of servers, which the tests of each format have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

__all__ = ["ENDS", "OPENAI_CHAT", "STREAMS"]

Chunk = dict[str, Any]


def _block(index: int, block: Chunk, *deltas: Chunk) -> list[Chunk]:
    place = {"index": index}
    return [
        {"type": "content_block_start", **place, "content_block": block},
        *({"type": "content_block_delta", **place, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", **place},
    ]


def _written(*pieces: str) -> list[Chunk]:
    return [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]


ANTHROPIC: list[Chunk] = [
    {"type": "message_start", "message": {"id": "msg_1", "model": "m-1", "content": []}},
    {"type": "ping"},
    *_block(
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "Where is it?"},
        {"type": "signature_delta", "signature": "c2ln"},
    ),
    *_block(
        1,
        {"type": "text", "text": ""},
        {"type": "text_delta", "text": "Ich schau, \ud83d"},
        {"type": "text_delta", "text": "\ude00 gleich."},
    ),
    *_block(2, {"type": "tool_use", "id": "call_1", "name": "look", "input": {}}, *_written("{}")),
    *_block(
        3,
        {"type": "tool_use", "id": "call_2", "name": "read", "input": {}},
        *_written("", '{"path":', '"ä"}'),
    ),
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}},
    {"type": "message_stop"},
]
ANTHROPIC_SERVER: list[Chunk] = [
    ANTHROPIC[0],
    *_block(
        0,
        {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}},
        *_written('{"query":"rain"}'),
    ),
    *_block(
        1,
        {
            "type": "web_search_tool_result",
            "tool_use_id": "srv_1",
            "content": [{"type": "web_search_result", "url": "https://example.com/rain"}],
        },
    ),
    *_block(
        2,
        {"type": "text", "text": ""},
        {"type": "text_delta", "text": "It rains."},
        {"type": "citations_delta", "citation": {"url": "https://example.com/rain"}},
    ),
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}},
    {"type": "message_stop"},
]


def _choice(delta: Chunk, finish: str | None = None) -> Chunk:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "chat_1", "model": "m-1", "object": "chat.completion.chunk", "choices": [choice]}


def _entry(index: int, arguments: str, **first: str) -> Chunk:
    called = {"arguments": arguments}
    if "name" in first:
        called = {"name": first["name"], "arguments": arguments}
        return {"index": index, "id": first["id"], "type": "function", "function": called}
    return {"index": index, "function": called}


OPENAI_CHAT: list[Chunk] = [
    _choice({"role": "assistant", "content": ""}),
    _choice({"reasoning_content": "Where?"}),
    _choice({"content": "I "}),
    _choice({"content": "look."}),
    _choice({"tool_calls": [_entry(0, "", id="call_1", name="look")]}),
    _choice({"tool_calls": [_entry(0, '{"at":'), _entry(1, "", id="call_2", name="read")]}),
    _choice({"tool_calls": [_entry(0, '"sky"}'), _entry(1, '{"path":"ä"}')]}),
    _choice({}, "tool_calls"),
    {**_choice({}), "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 9}},
]
OPENAI_CHAT_AT_ONCE: list[Chunk] = [
    _choice(
        {
            "tool_calls": [
                _entry(0, '{"at":"sky"}', id="call_1", name="look"),
                _entry(1, '{"path":"a"}', id="call_2", name="read"),
            ]
        }
    ),
    _choice({}, "tool_calls"),
]


def _event(kind: str, **fields: Any) -> Chunk:
    return {"type": f"response.{kind}", **fields}


def _item(place: int, kind: str, *between: Chunk, **fields: Any) -> list[Chunk]:
    item = {"type": kind, "id": f"item_{place}", "status": "completed", **fields}
    begun = {**item, "status": "in_progress"}
    for empty in ("content", "arguments", "summary"):
        if empty in begun:
            begun[empty] = type(begun[empty])()
    at = {"output_index": place}
    return [
        _event("output_item.added", **at, item=begun),
        *({**chunk, **at, "item_id": f"item_{place}"} for chunk in between),
        _event("output_item.done", **at, item=item),
    ]


OPENAI_RESPONSES: list[Chunk] = [
    _event("created", response={"id": "resp_1", "model": "m-1", "status": "in_progress"}),
    *_item(
        0,
        "reasoning",
        _event("reasoning_summary_text.delta", summary_index=0, delta="Where?"),
        _event("reasoning_summary_text.done", summary_index=0, text="Where?"),
        summary=[{"type": "summary_text", "text": "Where?"}],
    ),
    *_item(
        1,
        "message",
        _event("output_text.delta", content_index=0, delta="I "),
        _event("output_text.delta", content_index=0, delta="look."),
        _event("output_text.done", content_index=0, text="I look."),
        content=[{"type": "output_text", "text": "I look.", "annotations": []}],
    ),
    *_item(
        2,
        "function_call",
        _event("function_call_arguments.delta", delta='{"at":'),
        _event("function_call_arguments.delta", delta='"sky"}'),
        _event("function_call_arguments.done", arguments='{"at":"sky"}'),
        call_id="call_1",
        name="look",
        arguments='{"at":"sky"}',
    ),
    *_item(
        3,
        "function_call",
        _event("function_call_arguments.delta", delta='{"path":"ä"}'),
        call_id="call_2",
        name="read",
        arguments='{"path":"ä"}',
    ),
    _event(
        "completed",
        response={
            "id": "resp_1",
            "status": "completed",
            "usage": {"input_tokens": 3, "output_tokens": 9},
        },
    ),
]


def _candidate(*parts: Chunk, **more: Any) -> Chunk:
    content = {"role": "model", "parts": list(parts)}
    return {"responseId": "g_1", "candidates": [{"content": content, "index": 0, **more}]}


def _call(name: str, **arguments: Any) -> Chunk:
    return {"functionCall": {"name": name, "args": arguments}}


GEMINI: list[Chunk] = [
    _candidate({"text": "Where?", "thought": True}),
    _candidate({"text": "I "}),
    _candidate({"text": "look."}),
    _candidate({**_call("look", at="sky"), "thoughtSignature": "c2ln"}, _call("read", path="ä")),
    {
        **_candidate({"text": ""}, finishReason="STOP"),
        "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 9},
    },
]


def _step(index: int, step: Chunk, *deltas: Chunk) -> list[Chunk]:
    return [
        {"event_type": "step.start", "index": index, "step": step},
        *({"event_type": "step.delta", "index": index, "delta": delta} for delta in deltas),
        {"event_type": "step.stop", "index": index},
    ]


def _arguments(piece: str) -> Chunk:
    return {"type": "arguments_delta", "arguments": piece}


GEMINI_INTERACTIONS: list[Chunk] = [
    {"event_type": "interaction.created", "interaction": {"id": "i_1", "model": "m-1"}},
    *_step(
        0,
        {"type": "thought"},
        {"type": "thought_summary", "content": {"type": "text", "text": "Where?"}},
        {"type": "thought_signature", "signature": "c2ln"},
    ),
    *_step(1, {"type": "model_output"}, {"type": "text", "text": "I look."}),
    *_step(
        2,
        {"type": "function_call", "id": "call_1", "name": "look", "arguments": {}},
        _arguments('{"at":'),
        _arguments('"sky"}'),
    ),
    *_step(
        3,
        {"type": "function_call", "id": "call_2", "name": "read", "arguments": {}},
        _arguments('{"path":"ä"}'),
    ),
    {
        "event_type": "interaction.completed",
        "interaction": {"id": "i_1", "status": "requires_action", "usage": {}},
    },
]


def _message(**fields: Any) -> Chunk:
    message = {"role": "assistant", "content": "", **fields}
    return {"model": "m-1", "message": message, "done": False}


def _called(name: str, **arguments: Any) -> Chunk:
    return {"function": {"name": name, "arguments": arguments}}


OLLAMA: list[Chunk] = [
    _message(thinking="Where?"),
    _message(content="I "),
    _message(content="look."),
    _message(tool_calls=[_called("look", at="sky"), _called("read", path="ä")]),
    {**_message(), "done": True, "done_reason": "stop", "prompt_eval_count": 3, "eval_count": 9},
]


def _converse(name: str, index: int, **fields: Any) -> Chunk:
    return {name: {"contentBlockIndex": index, **fields}}


def _tool_use(index: int, call_id: str, name: str, *pieces: str) -> list[Chunk]:
    start = {"toolUse": {"toolUseId": call_id, "name": name}}
    return [
        _converse("contentBlockStart", index, start=start),
        *(
            _converse("contentBlockDelta", index, delta={"toolUse": {"input": piece}})
            for piece in pieces
        ),
        _converse("contentBlockStop", index),
    ]


def _delta(index: int, **delta: Any) -> Chunk:
    return _converse("contentBlockDelta", index, delta=delta)


BEDROCK: list[Chunk] = [
    {"messageStart": {"role": "assistant"}},
    _delta(0, reasoningContent={"text": "Where?"}),
    _delta(0, reasoningContent={"signature": "c2ln"}),
    _converse("contentBlockStop", 0),
    _delta(1, text="I "),
    _delta(1, text="look."),
    _converse("contentBlockStop", 1),
    *_tool_use(2, "call_1", "look", "", '{"at":', '"sky"}'),
    *_tool_use(3, "call_2", "read", '{"path":"ä"}'),
    {"messageStop": {"stopReason": "tool_use"}},
    {"metadata": {"usage": {"inputTokens": 3, "outputTokens": 9, "totalTokens": 12}}},
]


def _cohere(kind: str, index: int | None = None, **message: Any) -> Chunk:
    place = {} if index is None else {"index": index}
    return {"type": kind, **place, **({"delta": {"message": message}} if message else {})}


def _tool_call(index: int, call_id: str, name: str, *pieces: str) -> list[Chunk]:
    function = {"name": name, "arguments": ""}
    begun = {"id": call_id, "type": "function", "function": function}
    return [
        _cohere("tool-call-start", index, tool_calls=begun),
        *(
            _cohere("tool-call-delta", index, tool_calls={"function": {"arguments": piece}})
            for piece in pieces
        ),
        _cohere("tool-call-end", index),
    ]


def _cohere_end(reason: str) -> Chunk:
    usage = {"tokens": {"input_tokens": 3, "output_tokens": 9}}
    return {"type": "message-end", "delta": {"finish_reason": reason, "usage": usage}}


COHERE: list[Chunk] = [
    {"id": "c_1", **_cohere("message-start", role="assistant")},
    _cohere("tool-plan-delta", tool_plan="I "),
    _cohere("tool-plan-delta", tool_plan="look."),
    *_tool_call(0, "call_1", "look", '{"at":', '"sky"}'),
    *_tool_call(1, "call_2", "read", '{"path":"ä"}'),
    _cohere_end("TOOL_CALL"),
]
COHERE_TEXT: list[Chunk] = [
    {"id": "c_1", **_cohere("message-start", role="assistant")},
    _cohere("content-start", 0, content={"type": "thinking", "thinking": ""}),
    _cohere("content-delta", 0, content={"thinking": "Where?"}),
    _cohere("content-end", 0),
    _cohere("content-start", 1, content={"type": "text", "text": ""}),
    _cohere("content-delta", 1, content={"text": "It "}),
    _cohere("content-delta", 1, content={"text": "rains."}),
    _cohere("content-end", 1),
    _cohere("citation-start", 0, citations={"start": 3, "end": 8, "text": "rains"}),
    _cohere("citation-end", 0),
    _cohere_end("COMPLETE"),
]


def _frame(message_id: str, *content: Chunk, **fields: Any) -> Chunk:
    usage = {"input_tokens": 5, "output_tokens": 2}
    message = {"id": message_id, "model": "m-1", "content": list(content), "usage": usage, **fields}
    return {"type": "assistant", "parent_tool_use_id": None, "message": message}


CLAUDE_CODE: list[Chunk] = [
    {"type": "system", "subtype": "init", "tools": ["look", "read"]},
    _frame("msg_1", {"type": "thinking", "thinking": "Where is it?", "signature": "c2ln"}),
    _frame("msg_1", {"type": "text", "text": "Ich schau, \U0001f600 gleich."}),
    _frame("msg_1", {"type": "tool_use", "id": "call_1", "name": "look", "input": {}}),
    _frame("msg_1", {"type": "tool_use", "id": "call_2", "name": "read", "input": {"path": "ä"}}),
    {
        "type": "user",
        "parent_tool_use_id": None,
        "message": {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": "seen"}],
        },
    },
]
CLAUDE_CODE_PARTIAL: list[Chunk] = [
    {"type": "stream_event", "parent_tool_use_id": None, "event": event} for event in ANTHROPIC
]


STREAMS: Mapping[str, Sequence[list[Chunk]]] = {
    "anthropic": [ANTHROPIC, ANTHROPIC_SERVER],
    "bedrock": [BEDROCK],
    "claude_code": [CLAUDE_CODE, CLAUDE_CODE_PARTIAL],
    "cohere": [COHERE, COHERE_TEXT],
    "gemini": [GEMINI],
    "gemini_interactions": [GEMINI_INTERACTIONS],
    "ollama": [OLLAMA],
    "openai_chat": [OPENAI_CHAT, OPENAI_CHAT_AT_ONCE],
    "openai_responses": [OPENAI_RESPONSES],
}

ENDS: Mapping[str, Callable[[Mapping[str, Any]], bool]] = {
    "anthropic": lambda chunk: chunk.get("type") == "message_stop",
    "bedrock": lambda chunk: "messageStop" in chunk,
    "claude_code": lambda chunk: chunk.get("type") == "user" or "message_stop" in str(chunk),
    "cohere": lambda chunk: chunk.get("type") == "message-end",
    "gemini": lambda chunk: "finishReason" in str(chunk),
    "gemini_interactions": lambda chunk: chunk.get("event_type") == "interaction.completed",
    "ollama": lambda chunk: chunk.get("done") is True,
    "openai_chat": lambda chunk: "'finish_reason': 'tool_calls'" in str(chunk),
    "openai_responses": lambda chunk: chunk.get("type") == "response.completed",
}
"""The provider's word that one of these responses is over."""
