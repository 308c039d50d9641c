"""The backend of `definitions/README.md` that mounts ours, run as it stands there."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from tests.server.support import Reader, inside

ROOT = Path(__file__).parents[2]
CODE = re.compile(
    r"```python\n(import asyncio\n(?:(?!```).)*?from fastapi import.*?)```\n", re.DOTALL
)


def example(file: Path) -> dict[str, Any]:
    found = CODE.search((ROOT / "definitions/README.md").read_text("utf-8"))
    assert found is not None
    assert len([line for line in found[1].splitlines() if line.strip()]) <= 66
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(found[1], "README.md", "exec"), names)  # noqa: S102 - our own text
    names["FILE"] = str(file)
    return names


@asynccontextmanager
async def running(names: dict[str, Any], user: str = "ann") -> AsyncGenerator[httpx.AsyncClient]:
    config = uvicorn.Config(
        names["backend"], log_level="warning", ws="none", timeout_graceful_shutdown=5
    )
    server = uvicorn.Server(config)
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    with socket.socket() as at:
        at.bind(("127.0.0.1", 0))
        at.listen()
        serving = asyncio.ensure_future(server.serve(sockets=[at]))
        base = f"http://127.0.0.1:{at.getsockname()[1]}"
        async with httpx.AsyncClient(
            base_url=base, cookies={"user": user}, timeout=20, trust_env=False
        ) as client:
            try:
                yield client
            finally:
                server.should_exit = True
                await serving


def test_two_people_talk_and_neither_sees_the_other(tmp_path: Path) -> None:
    names = example(tmp_path / "chat.db")

    @inside
    async def test() -> None:
        async with running(names) as ann:
            path = "/chat/conversations/ann%2Fdemo/stream"
            reader = Reader(ann, path)
            async with reader.connected() as told:
                await reader.read(told)
                assert reader.shown["nodes"] == []
                assert (await ann.post("/say/demo", json={"text": "Hello?"})).status_code == 200
                while "turn-tail" not in [node["kind"] for node in reader.shown["nodes"]]:
                    await reader.read(told)
            said = {node["kind"]: node["data"] for node in reader.shown["nodes"]}
            assert said["assistant"]["blocks"][0]["text"] == "You said: Hello?"
            listed = (await ann.get("/chat/conversations")).json()["conversations"]
            assert [each["conversation"] for each in listed] == ["ann/demo"]
            ann.cookies.set("user", "bob")
            assert (await ann.get("/chat/conversations")).json()["conversations"] == []
            assert (await ann.get(path)).status_code == 404
            wrong = {"call_id": "c", "request_id": "r", "decision": "allow"}
            assert (await ann.post("/decide/demo", json=wrong)).status_code == 409
            assert (await ann.post("/cancel/demo")).status_code == 200

    test()


def test_what_was_said_is_there_after_a_restart(tmp_path: Path) -> None:
    @inside
    async def test() -> None:
        file = tmp_path / "chat.db"
        names = example(file)
        async with running(names) as ann:
            await ann.post("/say/demo", json={"text": "Hello?"})
            while names["running"]:
                await asyncio.sleep(0)
        async with running(example(file)) as ann:
            shown = (await ann.get("/chat/conversations/ann%2Fdemo")).json()["snapshot"]
            assert [node["kind"] for node in shown["nodes"]] == ["user", "assistant", "turn-tail"]

    test()
