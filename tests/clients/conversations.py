"""Conversations to tell a client: each recording live, reloaded, and taken up again at cuts.

Here lives what the tests of clients share: what a view gives while a recording runs, what of it a
client should have in the end, and Node. Not here: tests.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from assembler import Patch, Snapshot
from assembler.recordings import Recording, Run, read_many
from definitions import catalog
from definitions.protocols import Encoder, Frame
from definitions.testing import ANEW, About, check_encoder

HERE = Path(__file__).parent
PACKAGES = Path(os.environ.get("CONVERSATION_CLIENTS") or HERE)
OURS = sorted((HERE.parents[1] / "recordings").glob("*.jsonl"))

Update = Snapshot | Patch


def node_command(package: str) -> str:
    """Give the command of Node, or skip: it and its packages are not Python's."""
    command = shutil.which("node")
    if command is None:
        pytest.skip("needs Node")
    if not (PACKAGES / "node_modules" / package).is_dir():
        pytest.skip(f"needs {package}: npm ci --prefix tests/clients")
    return command


def ask_client(node: str, script: str, asked: Any) -> list[Any]:
    """What a client script answers, one value for each line."""
    client = subprocess.run(  # noqa: S603 - Node, found above, and our own text
        [node, "--input-type=module", "--eval", (HERE / script).read_text("utf-8")],
        cwd=PACKAGES,
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert client.returncode == 0, client.stderr
    return [json.loads(line) for line in client.stdout.splitlines()]


class Told(NamedTuple):
    """One recording, as its view told it."""

    name: str
    hidden: frozenset[str]
    connections: list[list[Update]]
    """What the clients get that come one after the other, each when the one before is gone."""
    snapshots: list[list[Snapshot]]
    """For each update of them, the view behind it."""
    is_whole: bool
    """Whether all of it was there from the beginning to the end: nothing came in pages or went."""

    @property
    def last(self) -> Snapshot:
        return self.snapshots[-1][-1]


def told(recording: Recording) -> Told:
    """Run a recording; a new Assembler in it is a client that comes back."""
    run = Run(recording, catalog())
    assembler = run.assembler
    connections: list[list[Update]] = [[]]
    snapshots: list[list[Snapshot]] = [[]]
    names = set()
    for operation in recording.operations:
        if operation.name in ("expect", "raises", "converges"):
            continue
        names.add(operation.name)
        run.do(operation)
        view = run.assembler.view().snapshot()
        if run.assembler is assembler:
            connections[-1].append(run.patches["chat"])
        else:
            assembler = run.assembler
            connections.append([view])
            snapshots.append([])
        snapshots[-1].append(view)
    hidden = frozenset(recording.header.get("hidden_tools") or ())
    is_whole = not names & {"prepend", "evict", "load", "reconnect"}
    return Told(recording.source, hidden, connections, snapshots, is_whole)


def all_told(files: Iterable[Path]) -> list[Told]:
    """Every recording in these files that has anything to tell."""
    every = [told(recording) for file in files for recording in read_many(str(file))]
    return [each for each in every if any(each.connections)]


def ways(
    each: Told,
    make: Callable[[], Encoder],
    again: Callable[[], Encoder] | None = None,
    *,
    cuts: int = 5,
) -> Iterable[tuple[str, list[list[Frame]]]]:
    """The ways to the end of a recording: for each connection of a client, the frames it gets.

    `again` makes the encoder of a client that was there before; `make` where there is none.
    """

    def frames(updates: Iterable[Update], *, is_back: bool = False) -> list[Frame]:
        encoder = again() if is_back and again is not None else make()
        return [frame for update in updates for frame in encoder.feed(update)]

    before = [frames(gone, is_back=at > 0) for at, gone in enumerate(each.connections)]
    yield "live", before
    yield "reload", [frames([each.last])]
    updates, views = each.connections[-1], each.snapshots[-1]
    step = max(1, len(updates) // cuts)
    for cut in range(0, len(updates), step):
        first = frames(updates[: cut + 1], is_back=len(before) > 1)
        second = frames([views[cut], *updates[cut + 1 :]], is_back=True)
        yield f"again at {cut}", [*before[:-1], first, second]


def calls_of(view: Snapshot, hidden: Iterable[str]) -> dict[str, tuple[Any, ...]]:
    """What of each call a client should have: name, arguments, how it ended, what it said."""
    calls = {}
    for node in view.nodes:
        if node.kind != "tool" or node.data["name"] is None or node.data["name"] in set(hidden):
            continue
        data = node.to_json()["data"]
        said = "\n".join(filter(None, map(said_of, data["content"] or [])))
        calls[node.id] = (data["name"], data["arguments"], data["outcome"], said)
    return calls


def said_of(block: dict[str, Any]) -> str:
    if block.get("type") == "json":
        return json.dumps(block["value"], ensure_ascii=False, separators=(",", ":"))
    return str(block.get("text") or block.get("url") or "")


def texts_of(view: Snapshot) -> list[str]:
    """What the model said, block by block."""
    nodes = [node.to_json() for node in view.nodes if node.kind == "assistant"]
    blocks = [block for node in nodes for block in node["data"]["blocks"]]
    return [said for block in blocks if (said := said_of(block)) and block["type"] != "file"]


def made_up(make: Callable[[frozenset[str]], Encoder], *, max_examples: int) -> list[list[Frame]]:
    """What `check_encoder` tells clients in conversations that it makes up: the frames of each."""
    every: list[list[Frame]] = []

    class Listener:
        calls: dict[str, Any] = {}  # noqa: RUF012 - nothing is ever in it
        texts: dict[str, Any] = {}  # noqa: RUF012

        def __init__(self) -> None:
            self.frames: list[Frame] = []
            every.append(self.frames)

        def take(self, frame: Frame) -> About | None:
            self.frames.append(json.loads(json.dumps(frame)))
            return ANEW

    check_encoder(make, Listener, max_examples=max_examples, smallest=False)
    return [frames for frames in every if frames]
