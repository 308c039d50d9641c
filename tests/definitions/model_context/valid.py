"""What each provider refuses, as assertions: stricter than its published types.

Not here: tests, and what the messages should say.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

__all__ = ["VALID", "strings"]


def anthropic(messages: list[dict[str, Any]]) -> None:
    """Roles alternate from the user on; results stand first, directly behind their calls; nothing
    is blank; an answer does not end in thinking."""
    roles = [message["role"] for message in messages]
    assert roles == [("user", "assistant")[at % 2] for at in range(len(roles))]
    ids: list[str] = []
    ran: set[str] = set()
    asked: list[str] = []
    for message in messages:
        blocks = message["content"]
        assert blocks
        kinds = [block["type"] for block in blocks]
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        assert results == asked, "each call has its result directly behind it, in order"
        assert kinds[: len(results)] == ["tool_result"] * len(results)
        asked = []
        for block in blocks:
            _anthropic_block(block)
            if block["type"] == "tool_use":
                asked.append(block["id"])
            if block["type"].endswith("tool_use"):
                ids.append(block["id"])
                assert message["role"] == "assistant"
                assert isinstance(block["input"], dict)
                assert re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", block["id"])
                assert re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", block["name"])
            if block["type"].endswith("_tool_use"):
                ran.add(block["id"])
            if block["type"].endswith("_tool_result"):
                assert block["tool_use_id"] in ran
        assert kinds[-1] not in ("thinking", "redacted_thinking")
    assert not asked
    if messages and roles[-1] == "assistant":
        last = messages[-1]["content"][-1].get("text", "")
        assert last == last.rstrip()
    assert len(set(ids)) == len(ids)


def _anthropic_block(block: dict[str, Any]) -> None:
    if block["type"] == "text":
        assert block["text"].strip()
    if block["type"] == "thinking":
        assert block["signature"]
    if block["type"] == "tool_result":
        assert block["content"]
        for inner in block["content"]:
            assert inner["type"] in ("text", "image", "document")
            assert inner["type"] == "text" or not block.get("is_error")
            _anthropic_block(inner)


def openai_chat(messages: list[dict[str, Any]]) -> None:
    """The results of an answer stand directly behind it, each once, and nowhere else."""
    asked: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert message["content"].strip()
            assert asked
            assert message["tool_call_id"] == asked.pop(0)
            continue
        assert not asked
        assert message["role"] in ("user", "assistant")
        assert message["content"] or message.get("tool_calls")
        parts = message["content"] if isinstance(message["content"], list) else []
        assert all(part["type"] != "text" or part["text"].strip() for part in parts)
        for call in message.get("tool_calls", ()):
            asked.append(call["id"])
            assert re.fullmatch(r"\S{1,40}", call["id"])
            if call["type"] == "function":
                assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", call["function"]["name"])
                assert isinstance(json.loads(call["function"]["arguments"]), dict)
        assert len(set(asked)) == len(asked)
    assert not asked


def openai_responses(items: list[dict[str, Any]]) -> None:
    """Each call has one output before anything else is said; reasoning leads to something."""
    asked: list[str] = []
    ids: list[str] = []
    ran: set[str | None] = set()
    for item in items:
        kind = item["type"]
        if kind.endswith("_output"):
            call_id = item.get("call_id")
            if call_id in asked:
                asked.remove(call_id)
            else:
                assert call_id in ran
            continue
        if kind == "message" and item["role"] == "user":
            assert not asked
        if kind in ("program", "tool_search_call"):
            ran.add(item.get("call_id"))
        elif kind.endswith("_call") and "call_id" in item:
            asked.append(item["call_id"])
            ids.append(item["call_id"])
            assert re.fullmatch(r"\S{1,64}", item["call_id"])
        if kind == "function_call":
            assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", item["name"])
            assert isinstance(json.loads(item["arguments"]), dict)
        if kind == "message":
            content = item["content"]
            told = (
                [content]
                if isinstance(content, str)
                else [part.get("text", "x") for part in content]
            )
            assert told
            assert all(text.strip() for text in told)
    assert not asked
    assert len(set(ids)) == len(ids)
    for item, after in pairwise([*items, {"type": "end"}]):
        if item["type"] == "reasoning":
            assert item.get("id") or item.get("encrypted_content")
            assert after["type"] != "end"
            assert after.get("role") != "user"


def gemini(contents: list[dict[str, Any]]) -> None:
    """A user begins; calls are answered by the next content, which holds nothing but results."""
    asked: list[str] = []
    before = ""
    for content in contents:
        assert content["role"] in ("user", "model")
        assert before or content["role"] == "user"
        assert not (before == content["role"] == "model")
        before = content["role"]
        parts = content["parts"]
        assert parts
        answered = [
            part["functionResponse"]["name"] for part in parts if "functionResponse" in part
        ]
        assert answered == asked
        assert not answered or len(answered) == len(parts)
        asked = [part["functionCall"]["name"] for part in parts if "functionCall" in part]
        for part in parts:
            assert part.get("text") != "" or part.get("thoughtSignature")
        for name in asked:
            assert content["role"] == "model"
            assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name)
    assert not asked


VALID: Mapping[str, Callable[[list[dict[str, Any]]], None]] = {
    "anthropic": anthropic,
    "openai_chat": openai_chat,
    "openai_responses": openai_responses,
    "gemini": gemini,
}


def strings(value: Any) -> list[str]:
    """All texts of a JSON value."""
    if isinstance(value, dict):
        return [text for each in value.values() for text in strings(each)]
    if isinstance(value, list):
        return [text for each in value for text in strings(each)]
    return [value] if isinstance(value, str) else []
