"""The README's backend, with the SDKs of two providers and a server on loopback that speaks them.

Live, cancelled, crashed, reloaded and continued. The example is read from the README, as it stands.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from assembler import apply
from assembler.stores import MemoryStore, SQLiteStore
from definitions import AttemptLost, Conversation, Conversations, catalog
from tests.clients.model_server import (
    ModelServer,
    Reply,
    anthropic_reply,
    failure,
    openai_reply,
)
from tests.definitions.backend.support import (
    boundaries,
    check_log,
    check_shown,
    log,
    pump,
    types,
)
from tests.definitions.model_context.valid import VALID

anthropic = pytest.importorskip("anthropic", reason="needs the SDK, of the extra `test`")
openai = pytest.importorskip("openai", reason="needs the SDK, of the extra `test`")

ROOT = Path(__file__).parents[2]
CODE = re.compile(r"```python\n(import asyncio.*?import anthropic.*?)```\n", re.DOTALL)


def example() -> Any:
    """The README's example, as a module."""
    found = CODE.search((ROOT / "README.md").read_text("utf-8"))
    assert found is not None
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(found[1], "README.md", "exec"), names)  # noqa: S102 - our own text
    return SimpleNamespace(**names, all=names)


class OpenAIBackend:
    """The same loop for the other SDK; another model when the first one is overloaded."""

    def __init__(self, toolbox: dict[str, Any]) -> None:
        self.toolbox = toolbox
        self.client: Any = None

    async def answer(self, conversation: Conversation, text: str) -> None:
        async with conversation.turn(text) as turn:
            while not turn.done:
                async with turn.step() as step:
                    model = "gpt-test"
                    while not step.answered:
                        try:
                            async with step.attempt(provider="openai_chat", model=model) as attempt:
                                async for chunk in await self.client.chat.completions.create(
                                    model=model,
                                    stream=True,
                                    messages=conversation.messages("openai_chat"),
                                ):
                                    attempt.feed(chunk)
                        except openai.InternalServerError as lost:
                            model = "gpt-other"
                            await step.fallback(lost, to_model=model, at_most=3)
                        except (AttemptLost, openai.APIError) as lost:
                            await step.retry(lost, at_most=3)
                    for call in step.calls:
                        async with step.dispatch(call, errors="result") as tool:
                            tool.result(await self.toolbox[call.name](**call.arguments))


class Backend:
    """One of the two, with the server that it asks."""

    def __init__(self, kind: str, server: ModelServer, toolbox: dict[str, Any]) -> None:
        self.kind = kind
        self.server = server
        self.example = example()
        if kind == "anthropic":
            self.example.all["TOOLBOX"].update(toolbox)
            self.client = anthropic.AsyncAnthropic(
                api_key="none", base_url=server.url, max_retries=0
            )
            self.example.all["claude"] = self.client
            self.example.all["MODEL"] = "claude-test"  # an SDK may warn of one that grew old
            self.answer = self.example.answer
        else:
            other = OpenAIBackend(toolbox)
            self.client = other.client = openai.AsyncOpenAI(
                api_key="none", base_url=server.url, max_retries=0
            )
            self.answer = other.answer

    def check_requests(self) -> None:
        """The provider would have taken every request."""
        name = "anthropic" if self.kind == "anthropic" else "openai_chat"
        for request in self.server.requests:
            VALID[name](request["messages"])


class Watcher:
    """A client: a snapshot, then patches."""

    def __init__(self) -> None:
        self.shown: Any = None
        self.stages: list[str] = []

    async def send(self, told: Any) -> None:
        self.shown = told if self.shown is None else apply(self.shown, told)
        for node in self.shown["nodes"]:
            if node["kind"] == "tool":
                self.stages.append(node["data"]["stage"])


async def looked(path: str) -> str:
    return f"{path}: a.txt"


Test = Callable[["Any", "Any"], Coroutine[Any, Any, None]]
REPLY: dict[str, Callable[..., Reply]] = {"anthropic": anthropic_reply, "openai": openai_reply}
CALL = ("call_abc123", "list_folder", {"path": "."})


@pytest.fixture(params=["anthropic", "openai"])
def kind(request: pytest.FixtureRequest) -> Any:
    return request.param


def play(
    kind: str, replies: list[Reply], test: Test, toolbox: Any = None, store: Any = None
) -> None:
    async def run() -> None:
        async with ModelServer(*replies) as server:
            backend = Backend(kind, server, toolbox or {"list_folder": looked})
            async with backend.client, store or MemoryStore() as kept:
                await test(backend, kept)
            backend.check_requests()

    asyncio.run(run())


def test_two_turns_live_and_reloaded(kind: str, tmp_path: Path) -> None:
    reply = REPLY[kind]
    replies = [reply("I look.", [CALL]), reply("One file."), reply("Gladly.")]

    async def test(backend: Backend, store: Any) -> None:
        async with Conversations(store, catalog()) as conversations:
            some = await conversations.open("demo", page=50)
            watcher = Watcher()
            watches = asyncio.ensure_future(backend.example.watch(some, watcher.send))
            await backend.answer(some, "What is in this folder?")
            await backend.answer(some, "Thank you!")
            shown = some.view().snapshot().to_json()
            check_log(log(store, "demo"))
            check_shown(some)
        await watches
        assert watcher.shown["nodes"] == shown["nodes"]
        stages = list(dict.fromkeys(watcher.stages))
        assert stages == ["preparing", "start", "result"]
        async with Conversations(store, catalog()) as conversations:
            again = await conversations.open("demo", page=50)
            assert again.view().snapshot().to_json()["nodes"] == shown["nodes"]
        said = backend.server.requests[1]["messages"]
        assert "a.txt" in str(said[-1])
        assert len(backend.server.requests[2]["messages"]) == len(said) + 2

    play(kind, replies, test, store=SQLiteStore(tmp_path / "chat.db"))


def test_an_error_before_the_answer_and_a_broken_answer_are_tried_again(kind: str) -> None:
    reply = REPLY[kind]
    replies = [
        failure(503, "overloaded_error"),
        reply("I lo", [CALL], end=False),
        reply("I look.", [CALL]),
        reply("One file."),
    ]

    async def test(backend: Backend, store: Any) -> None:
        async with Conversations(store, catalog()) as conversations:
            some = await conversations.open("demo")
            await backend.answer(some, "What is in this folder?")
            assert types(store, "demo").count("tool/call") == 1
            first = "llm/retry" if kind == "anthropic" else "llm/fallback"
            assert types(store, "demo")[3:5] == [first, "llm/retry"]
            if kind == "openai":
                models = [request["model"] for request in backend.server.requests]
                assert models == ["gpt-test", "gpt-other", "gpt-other", "gpt-test"]
            check_log(log(store, "demo"))
            check_shown(some)

    play(kind, replies, test)


def test_a_connection_that_breaks_in_mid_stream_is_tried_again() -> None:
    """With the README's example, whose SDK lets its HTTP client tell of it."""
    torn = replace(anthropic_reply("I lo", [CALL], end=False), breaks=True)

    async def test(backend: Backend, store: Any) -> None:
        async with Conversations(store, catalog()) as conversations:
            some = await conversations.open("demo")
            await backend.answer(some, "What is in this folder?")
            assert types(store, "demo").count("llm/retry") == 1
            assert some.view()["turn-tail:1"].data["status"] == "completed"
            check_shown(some)

    play("anthropic", [torn, anthropic_reply("Nothing.")], test)


def test_a_tool_that_nobody_has_is_told_to_the_model() -> None:
    """With the README's example: the turn goes on."""
    call = ("call_abc123", "no_such_tool", {})

    async def test(backend: Backend, store: Any) -> None:
        async with Conversations(store, catalog()) as conversations:
            some = await conversations.open("demo")
            await backend.answer(some, "What is in this folder?")
            assert some.view()["tool:call_abc123"].data["outcome"] == "failed"
            assert some.view()["turn-tail:1"].data["status"] == "completed"
            check_shown(some)

    play("anthropic", [anthropic_reply("", [call]), anthropic_reply("Sorry.")], test)


def test_an_error_that_stays_ends_the_turn_and_the_next_one_goes_on(kind: str) -> None:
    reply = REPLY[kind]
    replies = [reply("I lo", [CALL], end=False)] * 3 + [reply("Hello again.")]

    async def test(backend: Backend, store: Any) -> None:
        async with Conversations(store, catalog()) as conversations:
            some = await conversations.open("demo")
            with pytest.raises(AttemptLost):
                await backend.answer(some, "What is in this folder?")
            rows = [node.kind for node in some.view()]
            assert rows.count("tool") == 0
            assert "turn-error" in rows
            assert some.view()["assistant:1.1"].data["blocks"][0]["text"] == "I lo"
            await backend.answer(some, "Are you there?")
            check_log(log(store, "demo"))
            check_shown(some)

    play(kind, replies, test)


def test_stopped_in_the_middle_and_continued(kind: str) -> None:
    reply = REPLY[kind]
    replies = [reply("I lo", [CALL], end=False, hangs=True), reply("Good.")]

    async def test(backend: Backend, store: Any) -> None:
        async with Conversations(store, catalog()) as conversations:
            some = await conversations.open("demo")
            task = asyncio.ensure_future(backend.answer(some, "What is in this folder?"))
            await backend.server.hangs.wait()
            while "tool:call_abc123" not in some.view():
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            assert [node.key for node in some.view()][1:] == ["assistant:1.1", "turn-tail:1"]
            assert boundaries(store, "demo")[-1] == "cancelled"
            await backend.answer(some, "Never mind.")
            check_log(log(store, "demo"))
            check_shown(some)

    play(kind, replies, test)


def test_asked_before_it_runs(kind: str) -> None:
    reply = REPLY[kind]
    replies = [reply("I look.", [CALL]), reply("One file.")]

    async def test(backend: Backend, store: Any) -> None:
        async with Conversations(store, catalog()) as conversations:
            some = await conversations.open("demo")
            async with some.turn("What is in this folder?") as turn:
                while not turn.done:
                    async with turn.step() as step:
                        await _ask_model(backend, some, step)
                        for call in step.calls:
                            async with step.dispatch(call) as tool:
                                asked = asyncio.ensure_future(tool.ask())
                                await pump()
                                changed = {"path": "/srv"}
                                await some.answer(call.call_id, "1", "allow", updated_input=changed)
                                assert (await asked).allowed
                                tool.result(await looked(**tool.arguments))
            assert "/srv: a.txt" in str(some.view()["tool:call_abc123"].data["content"])
            check_log(log(store, "demo"))
            check_shown(some)

    play(kind, replies, test)


async def _ask_model(backend: Backend, some: Conversation, step: Any) -> None:
    if backend.kind == "anthropic":
        async with step.attempt(provider="anthropic") as attempt:
            async for event in await backend.client.messages.create(
                model="m", max_tokens=9, stream=True, messages=some.messages("anthropic")
            ):
                attempt.feed(event)
    else:
        async with step.attempt(provider="openai_chat") as attempt:
            async for event in await backend.client.chat.completions.create(
                model="m", stream=True, messages=some.messages("openai_chat")
            ):
                attempt.feed(event)


def test_crashed_anywhere_reopened_and_continued(kind: str) -> None:
    """After every event of a turn: the process is gone, the next one goes on."""
    reply = REPLY[kind]
    whole = MemoryStore()

    async def test(backend: Backend, store: Any) -> None:
        async with Conversations(whole, catalog()) as conversations:
            await backend.answer(await conversations.open("demo"), "What is in this folder?")

    play(kind, [reply("I look.", [CALL]), reply("One file.")], test)
    events = log(whole, "demo")

    for last in range(len(events) + 1):

        async def crashed(backend: Backend, store: Any, last: int = last) -> None:
            drafts = [{"type": each.type, "data": each.data} for each in events[:last]]
            await store.append("demo", drafts, 0)
            async with Conversations(store, catalog()) as conversations:
                some = await conversations.open("demo", page=2)
                await backend.answer(some, "Go on.")
                ends = [each for each in boundaries(store, "demo") if each == "interrupted"]
                assert len(ends) == (0 < last < len(events))
                check_log(log(store, "demo"))
                check_shown(some)

        play(kind, [reply("I go on.")], crashed)
