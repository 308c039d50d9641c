"""The clients of AG-UI and the AI SDK, unmodified, talk to our server and a backend behind it.

Live, taken up again in the middle of an attempt, reloaded, and asked for leave. Needs Node and
`npm ci --prefix tests/clients`; skips without them. Not here: what is shown (`test_ag_ui_client`,
`test_ai_sdk_client`).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from assembler import InputError
from assembler.server import StoreSource, create_app
from assembler.stores import MemoryStore
from definitions import Conversations, catalog
from definitions.protocols import AgUi, AiSdk, ui_messages
from tests.clients.conversations import HERE, PACKAGES, node_command
from tests.server.support import inside, listening, local

ARGUMENTS = ('{"path":', '"/a"}')


def piece(**delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta}]}


def called(call_id: str | None, name: str | None, arguments: str) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return piece(tool_calls=[{"index": 0, "id": call_id, "type": "function", "function": function}])


def finished(reason: str) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}


class Backend:
    """Answers with a call that asks for leave, and then with a text."""

    def __init__(self, conversations: Conversations) -> None:
        self.conversations = conversations
        self.half = asyncio.Event()
        """Set: the model goes on behind the half of a call."""
        self.heard: list[tuple[str, str]] = []
        self.running: set[asyncio.Task[None]] = set()

    async def hear(self, name: str, protocol: str, body: dict[str, Any]) -> None:
        conversation = await self.conversations.open(name)
        granted = self.granted(protocol, body)
        self.heard.append((protocol, "leave" if granted else "text"))
        for call_id, asked in granted:
            request_id = asked.removesuffix(f"@{call_id}")
            await conversation.answer(call_id, request_id, "allow")
        if not granted:
            said = body["messages"][-1]
            text = self.text(said)
            if text == "nonsense":
                raise InputError("messages: expected sense")
            task = asyncio.create_task(self.answer(conversation, text, said["id"]))
            self.running.add(task)
            task.add_done_callback(self.running.discard)

    @staticmethod
    def text(message: dict[str, Any]) -> str:
        return str(message["content"] if "content" in message else message["parts"][0]["text"])

    @staticmethod
    def granted(protocol: str, body: dict[str, Any]) -> list[tuple[str, str]]:
        """The calls that may run now, with the questions that were answered."""
        if protocol == "ag-ui":
            asked = [each["interruptId"] for each in body.get("resume", ())]
            return [(each.partition("@")[2], each) for each in asked]
        parts = body["messages"][-1].get("parts", ())
        answered = [part for part in parts if part.get("state") == "approval-responded"]
        return [(part["toolCallId"], part["approval"]["id"]) for part in answered]

    async def answer(self, conversation: Any, text: str, message_id: str) -> None:
        # An agent of AG-UI keeps what it has where it is, if it has the same id.
        async with conversation.turn(text, message_id=message_id) as turn:
            async with turn.step() as step:
                async with step.attempt(provider="openai_chat") as attempt:
                    attempt.feed(called("c1", "Read", ARGUMENTS[0]))
                    await self.half.wait()
                    attempt.feed(called(None, None, ARGUMENTS[1]))
                    attempt.feed(finished("tool_calls"))
                for call in step.calls:
                    async with step.dispatch(call) as tool:
                        await tool.ask(call.arguments)
                        tool.result("A")
            async with turn.step() as step, step.attempt(provider="openai_chat") as attempt:
                attempt.feed(piece(content="done"))
                attempt.feed(finished("stop"))


class Client:
    """A client in Node."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def do(self, action: str, said: Any = None, until: str = "idle") -> Any:
        """What it shows when that holds."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        asked = json.dumps({"action": action, "said": said, "until": until})
        self.process.stdin.write(asked.encode() + b"\n")
        answer = await self.process.stdout.readline()
        assert answer, (await self.process.communicate())[1].decode()
        return json.loads(answer)


@asynccontextmanager
async def talking(node: str, protocol: str) -> AsyncGenerator[tuple[Backend, Client]]:
    script = (HERE / "served_client.mjs").read_text("utf-8")
    async with MemoryStore() as store, Conversations(store, catalog()) as conversations:
        backend = Backend(conversations)
        app = create_app(
            StoreSource(conversations, empty=True),
            protocols={"ag-ui": AgUi, "ai-sdk": partial(AiSdk, hidden=("TodoWrite",))},
            hears=backend.hear,
        )
        async with app, listening(app) as port:
            url = f"http://127.0.0.1:{port}/conversations/c/protocols/{protocol}"
            process = await asyncio.create_subprocess_exec(
                node, "--input-type=module", "--eval", script, "--", protocol, url,
                cwd=PACKAGES, stdin=-1, stdout=-1, stderr=-1, limit=1 << 22,
            )  # fmt: skip
            try:
                yield backend, Client(process)
            finally:
                if process.returncode is None:
                    process.kill()
                await process.communicate()
                for task in backend.running:
                    task.cancel()
                await asyncio.gather(*backend.running, return_exceptions=True)


def tools(shown: Any) -> list[Any]:
    parts = [part for each in shown["messages"] for part in each.get("parts", ())]
    return [part for part in parts if part["type"].startswith("tool-")]


def texts(shown: Any) -> list[str]:
    parts = [part for each in shown["messages"] for part in each["parts"]]
    return [part["text"] for part in parts if part["type"] == "text"]


def test_a_chat_of_the_ai_sdk_talks_to_the_server() -> None:
    node = node_command("ai")

    @inside
    async def test() -> None:
        async with talking(node, "ai-sdk") as (backend, client):
            nothing = await client.do("look")
            assert (nothing["messages"], nothing["errors"]) == ([], [])
            shown = await client.do("send", "go", "preparing")
            assert tools(shown)[0]["state"] == "input-streaming"
            await client.do("stop")
            await client.do("look", until="preparing")
            backend.half.set()
            shown = await client.do("shown")
            assert [each["state"] for each in tools(shown)] == ["approval-requested"]
            assert tools(shown)[0]["input"] == {"path": "/a"}
            shown = await client.do("approve")
            assert [(each["state"], each["output"]) for each in tools(shown)] == [
                ("output-available", "A")
            ]
            assert texts(shown) == ["go", "done"]
            assert (shown["errors"], shown["status"]) == ([], "ready")
            assert [each["role"] for each in shown["messages"]] == ["user", "assistant"]
            assert [said for _, said in backend.heard] == ["text", "leave"]
            conversation = await backend.conversations.open("c")
            async with conversation.subscribe("chat") as view:
                begun = ui_messages(view.snapshot)
            await client.do("reload", begun)
            again = await client.do("look")
            assert again["errors"] == []
            assert texts(again) == ["go", "done"]
            assert len(again["messages"]) == 2
            shown = await client.do("send", "nonsense")
            assert "expected sense" in shown["errors"][0]

    test()


def test_a_second_turn_of_a_chat_tells_nothing_of_the_first_again() -> None:
    node = node_command("ai")

    @inside
    async def test() -> None:
        async with talking(node, "ai-sdk") as (backend, client):
            backend.half.set()
            await client.do("send", "go")
            await client.do("approve")
            shown = await client.do("send", "more")
            assert [each["role"] for each in shown["messages"]] == ["user", "assistant"] * 2
            assert shown["errors"] == []

    test()


def ag_ui_calls(shown: Any) -> list[Any]:
    return [call for each in shown["messages"] for call in each.get("toolCalls", ())]


def test_an_agent_of_ag_ui_talks_to_the_server() -> None:
    node = node_command("@ag-ui/client")

    @inside
    async def test() -> None:
        async with talking(node, "ag-ui") as (backend, client):
            shown = await client.do("send", "go", "preparing")
            assert [each["function"]["name"] for each in ag_ui_calls(shown)] == ["Read"]
            await client.do("stop")
            await client.do("look", until="preparing")
            backend.half.set()
            shown = await client.do("shown")
            assert [each["toolCallId"] for each in shown["interrupts"]] == ["c1"]
            shown = await client.do("approve")
            assert shown["interrupts"] == []
            roles = [each["role"] for each in shown["messages"]]
            assert roles == ["user", "assistant", "tool", "assistant"]
            assert shown["messages"][-1]["content"] == "done"
            assert [said for _, said in backend.heard] == ["text", "leave"]
            await client.do("reload")
            again = await client.do("look")
            assert [each["role"] for each in again["messages"]] == roles
            assert (again["errors"], again["noted"]) == ([], [])

    test()


@inside
async def test_who_only_looks_is_not_kept_waiting_and_headers_are_those_of_the_protocol() -> None:
    async with MemoryStore() as store, Conversations(store, catalog()) as conversations:
        source = StoreSource(conversations, empty=True)
        protocols = {"ai-sdk": partial(AiSdk, hidden=("TodoWrite",)), "ag-ui": AgUi}
        async with create_app(source, hosts=None, protocols=protocols) as app, local(app) as client:
            path = "/conversations/c/protocols/"
            for name in protocols:
                assert (await client.get(path + name)).status_code == 204
                assert (await client.post(path + name, json={})).status_code == 404
            conversation = await conversations.open("c")
            async with (
                conversation.turn("go") as turn,
                turn.step() as step,
                step.attempt(provider="openai_chat") as attempt,
            ):
                attempt.feed(piece(content="done"))
                attempt.feed(finished("stop"))
            answer = await client.get(path + "ai-sdk")
            assert answer.headers["x-vercel-ai-ui-message-stream"] == "v1"
            assert answer.text.endswith('"finishReason":"stop"}\n\ndata: [DONE]\n\n')
            answer = await client.get(path + "ag-ui")
            assert '"RUN_FINISHED"' in answer.text.splitlines()[-2]
