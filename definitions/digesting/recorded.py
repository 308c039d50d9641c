"""Answers of Gemini that a client recorded: each line a method, and the response it got.

A response is one chunk, or a list of those that were streamed; each line is an answer of its own.
Not here: what a chunk says (`definitions.providers`), and answers beside their requests
(`exchanges`).
"""

from __future__ import annotations

import json

from definitions.digesting.answers import Answer, read_answer
from definitions.digesting.bodies import Body

__all__ = ["recorded"]

_FORMAT = "google-generate"
_METHOD = "generateContent"
"""Begins the methods that give answers; others count tokens, or embed."""


def recorded(lines: Body) -> tuple[Answer, ...]:
    """Read the answer of each line, as if it came now. `where` is the line's place in the file."""
    return tuple(
        _answer(line.get("response"), f"line {number}")
        for number, line in enumerate(lines.chunks, 1)
        if str(line.get("method")).startswith(_METHOD)
    )


def _answer(response: object, where: str) -> Answer:
    sent = response if isinstance(response, list) else [response]
    chunks = tuple(chunk for chunk in sent if isinstance(chunk, dict))
    data = "".join(json.dumps(chunk) + "\n" for chunk in chunks)
    return read_answer(_FORMAT, data.encode(), Body(chunks), where)
