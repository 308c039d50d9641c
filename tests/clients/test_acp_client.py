"""The SDK of editors reads every frame that we send, and reads it as it was sent.

Needs Node and `npm ci --prefix tests/clients`; skips without them. (CONVERSATION_CLIENTS names
another folder with those packages.) The SDK is unmodified, and forgives: what it does not
understand it drops or leaves out, so what it read is compared with what was sent.
Not here: which frames are right (`tests/definitions/protocols`).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from assembler import Assembler, Event
from assembler.recordings import Run, read_many
from definitions import catalog
from definitions.protocols import Acp

HERE = Path(__file__).parent
PACKAGES = Path(os.environ.get("CONVERSATION_CLIENTS") or HERE)
SDK = "@agentclientprotocol/sdk"
SCRIPT = (HERE / "acp_client.mjs").read_text("utf-8")


@pytest.fixture(scope="module")
def node() -> str:
    """Give the command of Node, or skip: it and its packages are not Python's."""
    command = shutil.which("node")
    if command is None:
        pytest.skip("needs Node")
    if not (PACKAGES / "node_modules" / SDK).is_dir():
        pytest.skip(f"needs {SDK}: npm ci --prefix tests/clients")
    return command


def read_by_sdk(node: str, updates: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """What a client gets that is sent these updates."""
    lines = [json.dumps(Acp.notification("s1", update)) + "\n" for update in updates]
    client = subprocess.run(  # noqa: S603 - Node, found above, and our own text
        [node, "--input-type=module", "--eval", SCRIPT],
        cwd=PACKAGES,
        input="".join(lines),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert client.stderr == ""
    got = [json.loads(line) for line in client.stdout.splitlines()]
    assert all(params["sessionId"] == "s1" for params in got)
    return [params["update"] for params in got]


def told(files: Iterable[Path]) -> list[dict[str, Any]]:
    """All frames of these recordings: live, and of a reload behind every tenth line."""
    frames: list[dict[str, Any]] = []
    for file in files:
        for recording in read_many(str(file)):
            run, live = Run(recording, catalog()), Acp(echo=True)
            for number, operation in enumerate(recording.operations):
                if operation.name in ("expect", "raises", "converges"):
                    continue
                run.do(operation)
                frames += live.feed(run.patches["chat"])
                if number % 10 == 0:
                    frames += Acp().feed(run.assembler.view().snapshot())
    return frames


def test_it_reads_what_our_recordings_send(node: str) -> None:
    sent = told(sorted((HERE.parents[1] / "recordings").glob("*.jsonl")))
    kinds = {update["sessionUpdate"] for update in sent}
    assert kinds == {
        "tool_call",
        "tool_call_update",
        "agent_message_chunk",
        "agent_thought_chunk",
        "user_message_chunk",
    }
    assert read_by_sdk(node, sent) == sent


def test_it_reads_every_kind_of_content(node: str) -> None:
    content = [
        {"type": "text", "text": "a"},
        {"type": "json", "value": [1, None]},
        {"type": "file", "media_type": "image/png", "data": "aa"},
        {"type": "file", "media_type": "audio/wav", "data": "aa"},
        {"type": "file", "media_type": "application/pdf", "data": "aa"},
        {"type": "file", "media_type": "text/html", "url": "https://example.org/a.html"},
    ]
    assembler, acp = Assembler(catalog()), Acp(cwd="/repo")
    call = {"turn": 1, "step": 1, "call_id": "c1", "name": "read"}
    assembler.load(
        [
            Event(1, "tool/call", {**call, "arguments": '{"path":"a","line":3}'}),
            Event(2, "tool/result", {"call_id": "c1", "content": content, "error": {"name": "x"}}),
        ]
    )
    sent = acp.feed(assembler.flush()["chat"])
    assert len(sent[1]["content"]) == len(content)
    assert read_by_sdk(node, sent) == sent


def test_a_frame_that_is_wrong_does_not_come_through(node: str) -> None:
    """So that the tests above can fail."""
    frame = {"sessionUpdate": "tool_call", "toolCallId": "c1", "title": "x", "status": "preparing"}
    assert read_by_sdk(node, [frame]) != [frame]
