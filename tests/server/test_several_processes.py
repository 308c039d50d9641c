"""The backend of `definitions/README.md` in two processes over PostgreSQL and NATS."""

from __future__ import annotations

import asyncio
import re
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from secrets import token_hex

import httpx
import pytest

from tests.nats_server import NatsServer
from tests.postgres_server import PostgresServer
from tests.server.support import Reader, inside

ROOT = Path(__file__).parents[2]
CODE = re.compile(
    r"```python\n(import asyncio\n(?:(?!```).)*?from fastapi import.*?)```\n", re.DOTALL
)
CHANGED = re.compile(r"#### In several processes\n.*?```text\n(.*?)```\n", re.DOTALL)
LINE = (
    "    async with SQLiteStore(FILE) as store, Conversations(store, catalog()) as conversations:\n"
)
# Here a model does not come to an end when it is asked to wait.
WAITS = (
    '            attempt.feed({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})\n'
)


def example(database: str, broker: str) -> str:
    text = (ROOT / "definitions/README.md").read_text("utf-8")
    code, changed = CODE.search(text), CHANGED.search(text)
    assert code is not None
    assert changed is not None
    for line in (LINE, WAITS):
        assert code[1].count(line) == 1
    made = code[1].replace(LINE, changed[1])
    made = made.replace(
        WAITS, f'            "wait" in text and await asyncio.Event().wait()\n{WAITS}'
    )
    made = made.replace("NatsLive(BROKER)", "NatsLive(BROKER, limits=NatsLimits(lease_ms=1_000))")
    made = made.replace("live import NatsLive", "live import NatsLimits, NatsLive")
    assert len([line for line in made.splitlines() if line.strip()]) <= 76
    return f"{made}\nDATABASE, BROKER = {database!r}, {broker!r}\n"


@asynccontextmanager
async def process(folder: Path) -> AsyncGenerator[tuple[asyncio.subprocess.Process, str]]:
    """One that serves, and where."""
    served = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "uvicorn", "several:backend", "--app-dir", str(folder)),
        *("--host", "127.0.0.1", "--port", "0", "--timeout-graceful-shutdown", "1"),
        stderr=asyncio.subprocess.PIPE,
    )
    assert served.stderr is not None
    told = ""
    try:
        while (found := re.search(r"running on (\S+)", told)) is None:
            line = await served.stderr.readline()
            assert line, told
            told += line.decode()
        yield served, found[1]
    finally:
        if served.returncode is None:
            served.send_signal(signal.SIGTERM)
        await served.communicate()


def texts(reader: Reader) -> list[object]:
    nodes = [node for node in reader.shown["nodes"] if node["kind"] == "assistant"]
    return [block["text"] for node in nodes for block in node["data"]["blocks"]]


def test_who_reads_at_one_process_sees_what_is_said_at_the_other(
    tmp_path: Path, postgres: PostgresServer, nats: NatsServer
) -> None:
    pytest.importorskip("fastapi")
    (tmp_path / "several.py").write_text(example(postgres.dsn, nats.url), encoding="utf-8")
    user = f"ann{token_hex(4)}"

    @inside
    async def test() -> None:
        async with (
            asyncio.timeout(60),
            process(tmp_path) as (first, writing),
            process(tmp_path) as (_, reading),
            httpx.AsyncClient(base_url=writing, cookies={"user": user}, trust_env=False) as writer,
            httpx.AsyncClient(
                base_url=reading, cookies={"user": user}, trust_env=False, timeout=30
            ) as other,
        ):
            path = f"/chat/conversations/{user}%2Fdemo"
            reader = Reader(other, f"{path}/stream")
            async with reader.connected() as told:
                await reader.read(told)
                assert (await writer.post("/say/demo", json={"text": "Hello?"})).is_success
                while "turn-tail" not in [node["kind"] for node in reader.shown["nodes"]]:
                    await reader.read(told)
                assert texts(reader) == ["You said: Hello?"]
                shown = (await writer.get(path)).json()["snapshot"]
                assert shown["nodes"] == reader.shown["nodes"]
                # What is being written is shown there too; and when its process is killed, no more.
                assert (await writer.post("/say/demo", json={"text": "Now wait."})).is_success
                while texts(reader) != ["You said: Hello?", "You said: Now wait."]:
                    await reader.read(told)
                steered = await other.post("/say/demo", json={"text": "And this."})
                assert steered.json()["message_id"], "the turn of the other process is steered"
                first.kill()
                while [node["kind"] for node in reader.shown["nodes"]].count("turn-tail") != 2:
                    await reader.read(told)
                assert reader.shown["nodes"][-1]["data"]["status"] == "interrupted"
                assert texts(reader) == ["You said: Hello?"]

    test()
