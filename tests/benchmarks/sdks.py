"""What the providers' own packages spend on the same streams, as they are published.

Each is given the bytes by a transport in this process, in the parts in which they come, and its
current message is read after each event. A package that is not installed is left out. Not here:
the streams and our side (`providing`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from importlib.util import find_spec
from typing import Any

from tests.benchmarks.measure import Prepare, Run

__all__ = ["SDKS", "installed"]

_ASKED: Any = {"model": "m-1", "messages": [{"role": "user", "content": "?"}]}


def _client(make: Callable[..., Any], parts: list[bytes], *, waits: bool = False) -> Any:
    """A client of an SDK whose server answers with these bytes."""
    import httpx2  # noqa: PLC0415 - the SDKs bring it

    class Parts(httpx2.SyncByteStream, httpx2.AsyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            return iter(parts)

        async def __aiter__(self) -> AsyncIterator[bytes]:
            for part in parts:
                yield part

    def answer(_request: Any) -> Any:
        head = {"content-type": "text/event-stream"}
        return httpx2.Response(200, headers=head, stream=Parts())

    transport = httpx2.MockTransport(answer)
    http = httpx2.AsyncClient(transport=transport) if waits else httpx2.Client(transport=transport)
    return make(api_key="none", http_client=http)


def _anthropic(parts: list[bytes]) -> Prepare:
    from anthropic import Anthropic  # noqa: PLC0415

    def prepare() -> Run:
        client = _client(Anthropic, parts)

        def run() -> None:
            with client.messages.stream(max_tokens=9, **_ASKED) as stream:
                for _ in stream:
                    message = stream.current_message_snapshot
            assert message.stop_reason

        return run

    return prepare


def _anthropic_events(parts: list[bytes]) -> Prepare:
    from anthropic import Anthropic  # noqa: PLC0415

    def prepare() -> Run:
        client = _client(Anthropic, parts)

        def run() -> None:
            for event in client.messages.create(max_tokens=9, stream=True, **_ASKED):
                last = event
            assert last.type == "message_stop"

        return run

    return prepare


def _openai_chat(parts: list[bytes]) -> Prepare:
    from openai import OpenAI  # noqa: PLC0415

    def prepare() -> Run:
        client = _client(OpenAI, parts)

        def run() -> None:
            with client.chat.completions.stream(**_ASKED) as stream:
                for _ in stream:
                    completion = stream.current_completion_snapshot
            assert completion.choices[0].finish_reason

        return run

    return prepare


def _openai_chat_events(parts: list[bytes]) -> Prepare:
    from openai import OpenAI  # noqa: PLC0415

    def prepare() -> Run:
        client = _client(OpenAI, parts)

        def run() -> None:
            for chunk in client.chat.completions.create(stream=True, **_ASKED):
                last = chunk
            assert last.choices[0].finish_reason

        return run

    return prepare


def _openai_responses(parts: list[bytes]) -> Prepare:
    from openai import OpenAI  # noqa: PLC0415

    def prepare() -> Run:
        client = _client(OpenAI, parts)

        def run() -> None:
            written = None
            with client.responses.stream(model="m-1", input="?") as stream:
                for event in stream:
                    written = getattr(event, "snapshot", None) or written
                assert written

        return run

    return prepare


def _pydantic_ai(parts: list[bytes]) -> Prepare:
    from anthropic import AsyncAnthropic  # noqa: PLC0415
    from pydantic_ai.direct import model_request_stream  # noqa: PLC0415
    from pydantic_ai.messages import ModelRequest  # noqa: PLC0415
    from pydantic_ai.models.anthropic import AnthropicModel  # noqa: PLC0415
    from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: PLC0415

    def prepare() -> Run:
        client = _client(AsyncAnthropic, parts, waits=True)
        model = AnthropicModel("m-1", provider=AnthropicProvider(anthropic_client=client))

        async def read() -> None:
            asked = [ModelRequest.user_text_prompt("?")]
            async with model_request_stream(model, asked) as stream:
                async for _ in stream:
                    message = stream.get()
            assert message.parts

        return lambda: asyncio.run(read())

    return prepare


SDKS: Mapping[str, Mapping[str, tuple[str, Callable[[list[bytes]], Prepare]]]] = {
    "anthropic": {
        "SDK": ("anthropic", _anthropic),
        "SDK's events alone": ("anthropic", _anthropic_events),
        "pydantic-ai": ("pydantic_ai", _pydantic_ai),
    },
    "openai_chat": {
        "SDK": ("openai", _openai_chat),
        "SDK's events alone": ("openai", _openai_chat_events),
    },
    "openai_responses": {"SDK": ("openai", _openai_responses)},
}
"""By provider: what it is called, the package that it needs, and how it reads."""


def installed(provider: str) -> dict[str, Callable[[list[bytes]], Prepare]]:
    """Those that can be measured here."""
    found = SDKS.get(provider, {})
    return {name: how for name, (package, how) in found.items() if find_spec(package)}
