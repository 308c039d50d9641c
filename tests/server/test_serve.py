"""`assembler serve` and `assembler types`, as they are called."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from secrets import token_hex

import httpx
import pytest

from assembler import Draft
from assembler.cli import main
from assembler.stores.addresses import store_at
from tests.server.support import Reader, inside, said, turn

ROOT = Path(__file__).parents[2]
RECORDINGS = str(ROOT / "recordings")


class Served:
    def __init__(self, process: asyncio.subprocess.Process, client: httpx.AsyncClient) -> None:
        self.process = process
        self.client = client
        self.rest = b""
        self.faults = b""

    async def end(self, how: signal.Signals = signal.SIGINT) -> int:
        self.process.send_signal(how)
        self.rest, self.faults = await self.process.communicate()
        return await self.process.wait()


@asynccontextmanager
async def serving(*arguments: str, **environment: str) -> AsyncGenerator[Served]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "assembler", "serve", "--port", "0", *arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )
    assert process.stdout is not None
    try:
        line = (await process.stdout.readline()).decode()
        assert line.startswith("serving at http://127.0.0.1:")
        base = line.removeprefix("serving at ").strip()
        async with httpx.AsyncClient(base_url=base, timeout=20, trust_env=False) as client:
            yield Served(process, client)
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_it_says_where_and_ends_at_once_though_streams_are_open(how: signal.Signals) -> None:
    @inside
    async def test() -> None:
        async with serving(RECORDINGS) as some:
            assert (await some.client.get("conversations")).json()["conversations"]
            reader = Reader(some.client, "conversations/cancel.jsonl/stream")
            async with reader.connected() as told:
                await reader.read(told)
                assert await some.end(how) == 0
                async for _ in told:
                    pass
            assert reader.reason == "closed"
            assert (some.rest, some.faults) == (b"", b"")

    test()


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_database_is_followed_while_another_process_writes_it(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    schema = f"s{token_hex(6)}"
    sqlite = kind == "sqlite"
    address = str(tmp_path / "chat.db") if sqlite else request.getfixturevalue("postgres").dsn

    @inside
    async def test() -> None:
        async with store_at(address, schema=schema) as store:
            title = Draft("conversation/title", {"title": "The folder"})
            await store.append("c", [turn(1), title, said("m1")], 0)
            async with serving(address, "--schema", schema) as some:
                listed = (await some.client.get("conversations")).json()["conversations"]
                assert [each["title"] for each in listed] == ["The folder"]
                reader = Reader(some.client, "conversations/c/stream")
                async with reader.connected() as told:
                    await reader.read(told)
                    await store.append("c", [said("m2")], 3)
                    while len(reader.shown["nodes"]) < 2:
                        await reader.read(told)
                body = {"drafts": [], "expected_seq": 4}
                answer = await some.client.post("conversations/c/append", json=body)
                assert answer.status_code == 403
                assert await some.end() == 0

    test()


def test_a_token_may_come_from_the_environment() -> None:
    @inside
    async def test() -> None:
        async with serving(RECORDINGS, ASSEMBLER_TOKEN="t" * 20) as some:
            assert (await some.client.get("health")).status_code == 401
            headers = {"authorization": "Bearer " + "t" * 20}
            assert (await some.client.get("health", headers=headers)).status_code == 200
            assert await some.end() == 0

    test()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.jsonl"], "nowhere.jsonl: expected a file or a folder"),
        ([RECORDINGS, "--host", "0.0.0.0"], "it needs a --token"),  # noqa: S104
        ([RECORDINGS, "--host", "example"], "it needs a --token"),
        ([RECORDINGS, "--token", ""], "--token: expected some text"),
        ([RECORDINGS, "--token", "\u00fc"], "--token: expected some text"),
        ([RECORDINGS, "--port", "70000"], "expected 0 to 65535"),
        ([RECORDINGS, "--port", "x"], "expected 0 to 65535"),
        ([RECORDINGS, "--view", "none"], "--view: expected one of chat"),
        ([RECORDINGS, "--catalog", "none"], "--catalog: expected one of"),
    ],
)
def test_what_cannot_be_served_is_said_in_one_line(
    arguments: list[str],
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("ASSEMBLER_TOKEN", raising=False)
    assert main(["serve", *arguments]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert said in told.err
    assert told.err.count("\n") == 1


@pytest.mark.parametrize("command", ["serve", "types"])
def test_without_the_extra_it_says_what_to_install(command: str) -> None:
    told = (
        "import sys; sys.modules['starlette'] = None; from assembler.cli import main; "
        f"sys.exit(main(['{command}']))"
    )
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", told],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 2
    assert "conversation-assembler[server]" in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_address_that_is_taken_is_said_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["serve", RECORDINGS, "--port", str(port)]) == 2
    told = capsys.readouterr().err
    assert f"127.0.0.1:{port}" in told
    assert told.count("\n") == 1
