"""`check_provider`: our adapters pass it, and adapters with one fault each do not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from definitions.providers import ADAPTERS, Anthropic, OpenAIChat, Piece, Response
from definitions.testing import check_provider
from tests.definitions.providers import examples

# The examples to which all of it is shown; of the others the folder of recordings has hundreds.


@pytest.mark.parametrize("provider", ADAPTERS)
def test_our_adapters_pass(provider: str) -> None:
    check_provider(
        ADAPTERS[provider],
        examples.STREAMS[provider],
        ends=examples.ENDS[provider],
        max_examples=25,
    )


def test_without_a_word_for_the_end_they_pass_as_well() -> None:
    check_provider(Anthropic, examples.STREAMS["anthropic"], max_examples=1)


def test_bytes_are_examples_as_well() -> None:
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in examples.OPENAI_CHAT]
    data = "".join([": a comment\n\n", *lines, "data: [DONE]\n\n"]).encode()
    check_provider(OpenAIChat, [data], max_examples=5)


def test_an_example_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="expected readable chunks"):
        check_provider(Anthropic, [b'data: {"type": \n\n'])


FOLDERS = {
    "anthropic": "anthropic-messages",
    "bedrock": "bedrock-converse",
    "claude_code": "claude-code-stream-json",
    "cohere": "cohere-v2",
    "gemini": "google-generate",
    "gemini_interactions": "google-interactions",
    "ollama": "ollama-chat",
    "openai_chat": "openai-chat",
    "openai_responses": "openai-responses",
}
_SHORT = 6_000
_SAMPLE = 3


@pytest.mark.parametrize("provider", ADAPTERS)
def test_they_pass_over_recorded_streams(provider: str, shared: Path) -> None:
    files = sorted((shared / "streams" / FOLDERS[provider]).iterdir())
    short = [path for path in files if path.stat().st_size < _SHORT][:_SAMPLE]
    for path in short:
        check_provider(ADAPTERS[provider], [path.read_bytes()], max_examples=3)


# Faults


class NamesLate(Anthropic):
    """The first piece of a call has no name."""

    def feed(self, given: object) -> list[Piece]:
        pieces = super().feed(given)
        return [
            replace(piece, data={key: told for key, told in piece.data.items() if key != "name"})
            for piece in pieces
        ]


class TellsTwice(Anthropic):
    """Every piece of a call announces it."""

    def feed(self, given: object) -> list[Piece]:
        pieces = super().feed(given)
        calls = [piece for piece in pieces if piece.type == "tool-call"]
        return [*pieces, *(replace(call, data={**call.data, "name": "look"}) for call in calls)]


class EndsEarly(Anthropic):
    """A block that stops ends the response."""

    def take(self, chunk: Mapping[str, Any], event: str | None) -> None:
        super().take(chunk, event)
        if chunk.get("type") == "content_block_stop":
            self.answer.stop("tool_use", "tool_use")
            self.answer.end()


class EndsUnasked(OpenAIChat):
    """A stream that breaks off is over."""

    def close(self) -> None:
        self.answer.end()
        super().close()


class ForgetsErrors(Anthropic):
    """An error is no reason."""

    def take(self, chunk: Mapping[str, Any], event: str | None) -> None:
        if chunk.get("type") != "error":
            super().take(chunk, event)


class Trusting(Anthropic):
    """A field is there."""

    def take(self, chunk: Mapping[str, Any], event: str | None) -> None:
        if chunk.get("type") == "content_block_delta":
            assert chunk["delta"]["type"]
        super().take(chunk, event)


class CostsSiblings(OpenAIChat):
    """One odd entry, and the whole list is not read."""

    def take(self, chunk: Mapping[str, Any], event: str | None) -> None:
        for choice in chunk.get("choices") or ():
            delta = choice.get("delta") if isinstance(choice, dict) else None
            calls = delta.get("tool_calls") if isinstance(delta, dict) else None
            if isinstance(calls, list) and not all(isinstance(call, dict) for call in calls):
                return
        super().take(chunk, event)


class Quadratic(Anthropic):
    """Each chunk walks all that came before."""

    def __init__(self, **envelope: Any) -> None:
        super().__init__(**envelope)
        self.seen: list[Any] = []

    def take(self, chunk: Mapping[str, Any], event: str | None) -> None:
        self.seen.append(chunk)
        for each in self.seen:
            each.get("type")
        super().take(chunk, event)


class Forgetful(Anthropic):
    """Asked again, it makes another response."""

    def finish(self) -> Response:
        if self._response is None:
            return super().finish()
        return replace(super().finish(), calls=())


class SeesCuts(Anthropic):
    """What was fed at once is one text."""

    def feed(self, given: object) -> list[Piece]:
        pieces = super().feed(given)
        texts = [piece for piece in pieces if piece.type == "text"]
        if len(texts) < 2:
            return pieces
        joined = "".join(piece.data["text"] for piece in texts)
        first = replace(texts[0], data={**texts[0].data, "text": joined})
        others = [piece for piece in pieces if piece.type != "text"]
        return [*others[:1], first, *others[1:]]


class TakesIds(Anthropic):
    """An id of the provider is kept, whoever has it."""

    def __init__(self, **envelope: Any) -> None:
        super().__init__(**{**envelope, "in_use": ()})


class Counting(OpenAIChat):
    """Each response has other ids."""

    count = 0

    def __init__(self, **envelope: Any) -> None:
        Counting.count += 1
        super().__init__(**{**envelope, "attempt": f"a{Counting.count}"})


class HalfCharacters(Anthropic):
    """A text is passed on as it comes."""

    def take(self, chunk: Mapping[str, Any], event: str | None) -> None:
        super().take(chunk, event)
        delta = chunk.get("delta")
        if isinstance(delta, dict) and isinstance(delta.get("text"), str):
            for at, piece in enumerate(self.answer.pieces):
                if piece.type == "text":
                    said = {**piece.data, "text": delta["text"]}
                    self.answer.pieces[at] = replace(piece, data=said)


class LosesText(Anthropic):
    """What is told is not what is kept."""

    def finish(self) -> Response:
        return replace(super().finish(), content=())


FAULTS = {
    NamesLate: "the first piece of a call does not announce its name",
    TellsTwice: "announced twice",
    EndsEarly: "call_1 is ready",
    EndsUnasked: "broken off behind .* is ready",
    ForgetsErrors: "followed by an error behind .* is ready",
    Trusting: "raised KeyError",
    CostsSiblings: "it costs read, which is none of its own",
    Quadratic: "not linear",
    Forgetful: "finish, asked again, says something else",
    SeesCuts: "than as decoded chunks",
    TakesIds: "'call_1' is used again",
    Counting: "says something else",
    HalfCharacters: "half a surrogate pair",
    LosesText: "the text that was told is not that of the response",
}


@pytest.mark.parametrize("faulty", FAULTS, ids=lambda each: each.__name__)
def test_a_fault_is_found_and_said(faulty: Any) -> None:
    provider = faulty.provider
    with pytest.raises(AssertionError, match=FAULTS[faulty]):
        check_provider(faulty, examples.STREAMS[provider][:1], ends=examples.ENDS[provider])
