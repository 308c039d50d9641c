"""There and back: a recorded answer is read, stored, and sent back as its own client sent it back.

Each line of an exchange holds a request and the answer to it; the next line's request holds what
the client made of that answer, with the results of its calls. What we make of it must say the same:
calls, arguments, results, text, and what the provider signed. Reasons why a client may say it in
other words are `ALIKE`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from assembler import Assembler
from assembler.codec import plain
from definitions import catalog
from definitions.answering import call_draft, ended, result_draft
from definitions.model_context import model_context
from definitions.providers import ADAPTERS, adapter
from tests.definitions.model_context.valid import VALID

FORMATS = {
    "anthropic": ("anthropic-messages", "messages"),
    "openai_chat": ("openai-chat", "messages"),
    "openai_responses": ("openai-responses", "input"),
    "gemini": ("google-generate", "contents"),
}

ALIKE = {
    "fantasy__anthropic__TestAnthropicComputerUse": "the result is an image",
    "fantasy__avian__": "told its reasoning in two fields; details go back before text",
    "langchain_openai-1.7.4__openai__cassettes-test_apply_patch": "goes on from another answer",
    "langchain_openai-1.7.4__openai__cassettes-test_mcp_builtin_zdr": "approves a tool that OpenAI "
    "runs, for which no event stands",
    "pydantic-ai__groq__": "the client writes reasoning back as text in <think>",
    "pydantic-ai__openai__test_openai_responses-test_openai_responses_phase": "quotes are "
    "written otherwise in the recorded request",
}
"""Where a client says something else, and why."""

Said = tuple[Any, ...]


def loops(shared: Path, name: str) -> Iterator[tuple[str, str, list[Any]]]:
    """The answers that a client sent back: file, raw answer, and what its next request added."""
    spelled, field = FORMATS[name]
    for path in sorted((shared / "streams" / "exchange").glob("*.jsonl")):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        for row, after in pairwise(rows):
            if row["format"] != spelled:
                continue
            before, then = (history(each["request"], field) for each in (row, after))
            if [*map(strip, then[: len(before)])] == [*map(strip, before)] and len(then) > len(
                before
            ):
                yield f"{path.name}:{row['i']}", row["response"], then[len(before) :]


def history(request: Any, field: str) -> list[Any]:
    told = request.get(field) if isinstance(request, dict) else None
    return told if isinstance(told, list) else []


def strip(message: Any) -> Any:
    """A message without what is told anew with each request."""
    text = json.dumps(message, sort_keys=True)
    return text.replace('"cache_control": {"type": "ephemeral"}, ', "")


def sent_back(name: str, raw: str, results: list[str]) -> list[dict[str, Any]]:
    """What we send back of an answer: read, stored, and asked for."""
    reads = adapter(name, conversation="c1", attempt="a1")
    reads.feed(raw)
    ending = ended(reads.finish(), 1, 1)
    drafts = [*ending.drafts]
    for made, told in zip(ending.handed_over, results, strict=False):
        content = [{"type": "text", "text": told}]
        drafts += [call_draft(made, 1, 1), result_draft(made.call_id, content)]
    log = [{"type": "user/message", "data": {"message_id": "u", "content": "go"}}]
    log += [{"type": draft.type, "data": plain(draft.data)} for draft in drafts]
    assembler = Assembler(catalog(), strict=True)
    assembler.load([{"seq": seq, "time": 0, **each} for seq, each in enumerate(log, 1)])
    told = model_context(assembler, name)
    VALID[name](told)
    return told[1:]


# What messages say, format by format, in one list of (kind, …)


def said(name: str, messages: list[Any]) -> list[Said]:
    """What is said, in the words that two clients can be compared in."""
    told = [each for message in messages for each in SAID[name](message)]
    return [each for each in told if len(each) > 2 or plainly(each[1])]


def of_the_answer(told: list[Said]) -> list[Said]:
    """What a client sent back of one answer: not what was said after its results."""
    kinds = [each[0] for each in told]
    last = max((at for at, kind in enumerate(kinds) if kind == "result"), default=len(told))
    return [each for each in told[: last + 1] if each[0] != "user"]


def plainly(value: Any) -> Any:
    """A value without fields that are null, or that clients add to what they got."""
    if isinstance(value, dict):
        told = {key: plainly(each) for key, each in value.items() if key not in ADDED}
        return {key: each for key, each in told.items() if each not in (None, "", [])}
    if isinstance(value, list):
        return [plainly(each) for each in value]
    return value.strip() if isinstance(value, str) else value


ADDED = ("caller", "cache_control", "status", "citations", "annotations", "retrieved_at")


def words(content: Any) -> str:
    """The text of content in any of its spellings."""
    if isinstance(content, str):
        return content.strip()
    if isinstance(content, list):
        return "".join(words(each) for each in content)
    if isinstance(content, dict):
        return words(content.get("text") or content.get("content") or "")
    return ""


def told_arguments(arguments: Any) -> Any:
    return json.loads(arguments or "{}") if isinstance(arguments, str) else arguments or {}


def _anthropic(message: Any) -> Iterator[Said]:
    if isinstance(message["content"], str):
        yield message["role"], message["content"].strip()
        return
    for block in message["content"]:
        kind = block["type"]
        if kind == "text":
            yield message["role"], block["text"].strip()
        elif kind == "thinking":
            yield kind, block["thinking"], block["signature"]
        elif kind == "tool_result":
            yield "result", block["tool_use_id"], words(block.get("content"))
        elif kind.endswith("tool_use"):
            yield kind, block["id"], block["name"], told_arguments(block["input"])
        else:
            yield kind, plainly(block)


def _openai_chat(message: Any) -> Iterator[Said]:
    if message["role"] == "tool":
        yield "result", message["tool_call_id"], words(message["content"])
        return
    for field in ("reasoning_content", "reasoning", "reasoning_details"):
        if message.get(field):
            yield "reasoning", plainly(message[field]), field
    yield message["role"], words(message.get("content"))
    for call in message.get("tool_calls") or ():
        called = call["function"]
        yield "tool_use", call["id"], called["name"], told_arguments(called["arguments"])


def _openai_responses(item: Any) -> Iterator[Said]:
    kind = item.get("type", "message")
    if kind == "message":
        yield item["role"], words(item["content"])
    elif kind == "function_call":
        yield "tool_use", item["call_id"], item["name"], told_arguments(item["arguments"])
    elif kind.endswith("_call_output"):
        yield "result", item["call_id"], words(item["output"])
    elif kind == "reasoning":
        told = words(item["summary"]), words(item.get("content"))
        yield kind, *told, item.get("encrypted_content")
    else:
        yield kind, plainly(item)


def _gemini(content: Any) -> Iterator[Said]:
    for part in content["parts"]:
        # Python's SDK writes base64 in its other alphabet.
        signature = (part.get("thoughtSignature") or "").replace("-", "+").replace("_", "/")
        called = part.get("functionCall") or part.get("function_call")
        told = part.get("functionResponse") or part.get("function_response")
        if called:
            yield "tool_use", "", called["name"], told_arguments(called.get("args")), signature
        elif told:
            result = told["response"]
            yield "result", told["name"], words(result.get("output", json.dumps(result)))
        elif "text" in part:
            yield "thought" if part.get("thought") else content["role"], part["text"].strip()
        else:
            yield "part", plainly(part)


SAID = {
    "anthropic": _anthropic,
    "openai_chat": _openai_chat,
    "openai_responses": _openai_responses,
    "gemini": _gemini,
}
OURS_ALONE = ("reasoning", "thought", "thinking", "assistant", "model")
"""What clients leave out when they write an answer down: reasoning, and a text beside calls."""


def is_of_another(ours: list[Said], theirs: list[Said]) -> bool:
    """Whether a client goes on from another answer than the recorded one: no call is the same."""
    names = [
        {each[1:3] for each in side if each[0].endswith("tool_use")} for side in (ours, theirs)
    ]
    return bool(names[0] | names[1]) and not names[0] & names[1]


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_sent_back_says_what_clients_sent_back(name: str, shared: Path) -> None:
    if name not in ADAPTERS:
        pytest.skip(f"no adapter reads {name} yet")
    compared = 0
    odd = {}
    for where, raw, after in loops(shared, name):
        theirs = of_the_answer(said(name, after))
        results = [each[2] for each in theirs if each[0] == "result"]
        ours = said(name, sent_back(name, raw, results))
        if is_of_another(ours, theirs):
            continue
        compared += 1
        missing = [each for each in theirs if each not in ours]
        added = [each for each in ours if each not in theirs and each[0] not in OURS_ALONE]
        if (missing or added) and not where.startswith(tuple(ALIKE)):
            odd[where] = {"missing": missing, "added": added}
    assert odd == {}
    assert compared > 10
