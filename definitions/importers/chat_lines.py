"""Messages with a role and content, which most agents write, each with small words of its own.

Here live blocks, results and calls as they are spelled in Anthropic's manner, in OpenAI's and in
pi's, prompts with what the program put around them, and calls that have no id. Not here: which
record of a format is a message, and what else it says.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from definitions.importers.transcript import Operation, Transcript, arguments_text, text_block
from definitions.providers.reading import array, mapping, text

__all__ = [
    "Block",
    "Calls",
    "Names",
    "Record",
    "Result",
    "blocks_of",
    "call_of",
    "failed",
    "prompt",
    "rest",
    "results_of",
    "usage_of",
]

Block: TypeAlias = dict[str, Any]
Record: TypeAlias = Mapping[str, Any]

_CALLS = frozenset({"tool_use", "toolCall", "function", "tool_call"})
_RESULTS = frozenset({"tool_result"})
_REMINDER = re.compile(r"\s*<system-reminder>(.*?)</system-reminder>\s*", re.DOTALL)
_DATA_URL = re.compile(r"data:([^;,]+);base64,(.*)", re.DOTALL)


def rest(record: Record, *taken: str) -> Block:
    """Whatever has no counterpart; it keeps its name."""
    return {key: value for key, value in record.items() if key not in taken}


class Names:
    """Names of the records of a file: the id that a record has, or its line.

    An id that came before gets a number behind it. Memory: the ids.
    """

    def __init__(self) -> None:
        self._used: dict[str, int] = {}

    def of(self, record: Record, number: int) -> str:
        """Name a record that stands on line `number`."""
        told = text(record.get("id"))
        if not told:
            return str(number)
        count = self._used[told] = self._used.get(told, 0) + 1
        return told if count == 1 else f"{told}#{count}"


# -- content -----------------------------------------------------------------------------------


def blocks_of(content: object, provider: str, minted: str = "call") -> list[Block]:
    """Say content in blocks; a text alone is one of them. Results are left out (`results_of`).

    A call without an id is `minted`, with its place behind it; a part that has no counterpart is
    kept whole, as the `provider`'s.
    """
    if isinstance(content, str):
        return [text_block(text(content))] if content else []
    found = enumerate(array(content))
    return [
        _block(part, provider, f"{minted}.{at}")
        for at, part in found
        if text(mapping(part).get("type")) not in _RESULTS
    ]


def _block(told: object, provider: str, minted: str) -> Block:
    if isinstance(told, str):
        return text_block(text(told))
    part = mapping(told)
    kind = text(part.get("type"))
    if kind in _CALLS:
        return call_of(part, minted)
    if kind in ("thinking", "reasoning", "think"):
        return _reasoning(part)
    if isinstance(part.get("text"), str):
        return text_block(text(part["text"]))
    return _file(part) or {"type": "provider", "provider": provider, "raw": told}


def _reasoning(part: Record) -> Block:
    told = (text(part.get(key)) for key in ("thinking", "think", "text"))
    signs = (part.get(key) for key in ("signature", "thinkingSignature", "encrypted"))
    signature = next((sign for sign in signs if isinstance(sign, str)), None)
    made: Block = {"type": "reasoning", "text": next(filter(None, told), "")}
    return made if signature is None else made | {"signature": signature}


def _file(part: Record) -> Block | None:
    """Make a file of an image: one in base64, or one that stands at a URL; else None."""
    source = mapping(part.get("source")) or part
    link = part.get("image_url", source.get("url"))
    url = text(mapping(link).get("url") if isinstance(link, dict) else link)
    if match := _DATA_URL.fullmatch(url):
        return {"type": "file", "media_type": match[1], "data": match[2]}
    told = (text(source.get(key)) for key in ("media_type", "mimeType", "mediaType"))
    media_type = next(filter(None, told), "image/*")
    if isinstance(source.get("data"), str):
        return {"type": "file", "media_type": media_type, "data": source["data"]}
    return {"type": "file", "media_type": media_type, "url": url} if url else None


# -- calls and results -------------------------------------------------------------------------


def call_of(part: Record, minted: str) -> Block:
    """Say a call: its name and arguments stand in it, or in a `function` of its own."""
    function = mapping(part.get("function")) or part
    keys = ("input", "arguments", "args", "parameters")
    told = next((function[key] for key in keys if key in function), None)
    return {
        "type": "tool-call",
        "call_id": text(part.get("id")) or text(part.get("toolCallId")) or minted,
        "name": text(function.get("name")),
        "arguments": arguments_text(told),
    }


class Result(NamedTuple):
    """What came of a call, as a part of a message."""

    call_id: str
    content: list[Block]
    is_error: bool


def results_of(content: object, provider: str) -> list[Result]:
    """Read the results among the parts of a message."""
    parts = [mapping(part) for part in array(content)]
    return [
        Result(
            text(part.get("tool_use_id")),
            blocks_of(part.get("content"), provider),
            part.get("is_error") is True,
        )
        for part in parts
        if text(part.get("type")) in _RESULTS
    ]


class Calls:
    """Calls that wait for their results, for a format that does not say whose a result is.

    Memory: the calls of one answer.
    """

    def __init__(self) -> None:
        self._waiting: deque[str] = deque()

    def wait(self, blocks: Sequence[Block]) -> None:
        """Take the calls of the next answer; nobody waits for those before it."""
        calls = (block["call_id"] for block in blocks if block["type"] == "tool-call")
        self._waiting = deque(calls)

    def of(self, told: str = "") -> str:
        """The call that a result is of: the one it tells, else the first that waits, else ""."""
        if told in self._waiting:
            self._waiting.remove(told)
            return told
        return self._waiting.popleft() if self._waiting else told


# -- prompts -----------------------------------------------------------------------------------


def prompt(
    transcript: Transcript,
    blocks: Sequence[Block],
    *,
    wrapper: str = "",
    message_id: str | None = None,
    more: Record | None = None,
) -> Iterator[Operation]:
    """Write what a person said, and before it, as context, what the program reminds the model of.

    A text that stands in tags called `wrapper` is said without them. A message that is nothing but
    reminders opens no turn.
    """
    reminders: list[str] = []
    said: list[Block] = []
    for block in blocks:
        told, left = _reminded(block.get("text", ""))
        reminders += told
        if block["type"] != "text":
            said.append(block)
        elif unwrapped := _unwrapped(left, wrapper):
            said.append(text_block(unwrapped))
    if said or not reminders:
        yield from transcript.end_turn()
        yield from transcript.begin_turn()
    for reminder in reminders:
        yield transcript.message([text_block(reminder)], source={"kind": "reminder"})
    if said or not reminders:
        yield transcript.message(said, message_id=message_id, more=more)


def _reminded(told: str) -> tuple[list[str], str]:
    """Split off the reminders at the beginning of a text."""
    reminders = []
    while match := _REMINDER.match(told):
        reminders.append(match[1].strip())
        told = told[match.end() :]
    return reminders, told


def _unwrapped(told: str, wrapper: str) -> str:
    begin, end, bare = f"<{wrapper}>", f"</{wrapper}>", told.strip()
    if wrapper and bare.startswith(begin) and bare.endswith(end):
        return bare[len(begin) : -len(end)].strip()
    return told


def failed(transcript: Transcript, name: str, message: str) -> Iterator[Operation]:
    """Write an error of the program: it ends the turn, or is one by itself where none is open."""
    yield from transcript.begin_turn()
    yield from transcript.end_turn("error", {"name": name or "error", "message": message})


def usage_of(told: object, names: Mapping[str, str]) -> Block | None:
    """Name the usage as we do (`names`: theirs to ours), if there is one."""
    raw = mapping(told)
    if not raw:
        return None
    return {ours: raw[theirs] for theirs, ours in names.items() if theirs in raw} | {"raw": raw}
