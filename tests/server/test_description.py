"""The description of the interface: the server does what it says, and says all that it does."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings

from assembler import Delta
from assembler.cli import main
from assembler.codec import plain
from assembler.recordings import Run, read
from assembler.recordings.expecting import is_expectation
from assembler.server import wire
from assembler.server.schemas import schemas
from assembler.server.typescript import typescript
from definitions import catalog
from tests.server.support import desk, inside, listening, local, said, turn

ROOT = Path(__file__).parents[2]
CLIENTS = [
    Path(place) / "node_modules/.bin"
    for place in (ROOT / "tests/clients", os.environ.get("CONVERSATION_CLIENTS", ""))
]


@pytest.mark.parametrize(
    "file", sorted((ROOT / "recordings").glob("*.jsonl")), ids=lambda f: f.stem
)
def test_every_snapshot_and_patch_is_of_the_types_that_stand_there(file: Path) -> None:
    run = Run(read(file), catalog())
    for operation in run.recording.operations:
        if is_expectation(operation):
            continue
        run.do(operation)
        for view, patch in run.patches.items():
            msgspec.convert(plain(patch), wire.Patch)
            msgspec.convert(plain(run.assembler.view(view).snapshot()), wire.Snapshot)


def test_drafts_deltas_and_events_are_of_the_types_that_stand_there() -> None:
    msgspec.convert(plain(turn(1)), wire.Draft)
    msgspec.convert(plain(turn(1).numbered(1)), wire.Event)
    msgspec.convert(plain(Delta("a", 1, 1, "text")), wire.Delta)


@inside
async def test_every_answer_is_of_its_type() -> None:
    async with desk(source={"writes": True}) as some, local(some.app) as client:
        await some.store.append("c", [turn(1), said("m1")], 0)
        for kind, answer in (
            (wire.Health, await client.get("/health")),
            (wire.Listing, await client.get("/conversations")),
            (wire.Shown, await client.get("/conversations/c")),
            (wire.Older, await client.post("/conversations/c/older")),
            (wire.Refusal, await client.get("/conversations/nothing/nothing")),
        ):
            msgspec.json.decode(answer.content, type=kind)
        description = (await client.get("/openapi.json")).json()
        assert description["openapi"] == "3.1.0"
        assert set(description["paths"]) == {
            "/health",
            "/conversations",
            *(
                f"/conversations/{{conversation}}{action}"
                for action in (
                    "",
                    "/stream",
                    "/protocols/{protocol}",
                    "/older",
                    "/append",
                    "/emit",
                    "/settle",
                )
            ),
        }


def test_the_schemas_refer_to_nothing_that_is_missing() -> None:
    known = schemas()
    text = json.dumps(known)
    referred = {part.split('"', 1)[0] for part in text.split("#/$defs/")[1:]}
    assert referred <= set(known)
    assert {"Snapshot", "Patch", "Put", "Text", "Node", "Refusal"} <= set(known)


# Types for clients


def test_types_are_printed_for_clients(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["types"]) == 0
    told = capsys.readouterr().out
    assert told == typescript()
    assert 'op: "text";' in told
    assert "ops: (Put | Text | Move | Remove | PutGroup | RemoveGroup)[];" in told
    assert "  from: number;" in told
    assert "  live?: boolean | null;" in told
    assert main(["types", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)["$defs"]) == set(schemas())


def test_every_type_is_declared_once_and_every_name_that_is_used() -> None:
    told = typescript()
    declared = [line.split()[2] for line in told.splitlines() if line.startswith("export type ")]
    assert sorted(declared) == sorted(schemas())
    assert told.count("{") == told.count("}")


CLIENT = """
import type { Patch, Snapshot, Listing } from "./wire";
export function last(patch: Patch): string {
  const op = patch.ops[0];
  switch (op.op) {
    case "put": return op.node.key + (op.after ?? "");
    case "text": return op.text + String(op.at);
    case "move": return String(op.anchor[1]);
    case "remove": return op.key;
    case "put-group": return op.group.members.join();
    case "remove-group": return op.key;
  }
}
export const keys = (snapshot: Snapshot): string[] => snapshot.nodes.map((node) => node.key);
export const next = (listing: Listing): string | null => listing.next;
"""


def test_a_client_that_is_written_against_them_compiles(tmp_path: Path) -> None:
    tsc = shutil.which("tsc", path=os.pathsep.join([*map(str, CLIENTS), os.environ["PATH"]]))
    if tsc is None:
        pytest.skip("needs the compiler of TypeScript, tsc")
    (tmp_path / "wire.ts").write_text(typescript())
    (tmp_path / "client.ts").write_text(CLIENT)
    options = ["--noEmit", "--strict", "--target", "es2022", "--moduleResolution", "bundler"]
    done = subprocess.run(  # noqa: S603
        [tsc, *options, "--module", "es2022", "client.ts"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


# Schemathesis


@contextmanager
def running() -> Iterator[str]:
    """The application on loopback, in a thread of its own; gives its address."""
    ready = threading.Event()
    held: dict[str, Any] = {}

    async def serve() -> None:
        held["loop"], held["end"] = asyncio.get_running_loop(), asyncio.Event()
        async with desk(source={"writes": True}) as some:
            await some.store.append("c", [turn(1), said("m1")], 0)
            async with listening(some.app) as port:
                held["port"] = port
                ready.set()
                await held["end"].wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        assert ready.wait(20)
        yield f"http://127.0.0.1:{held['port']}"
    finally:
        held["loop"].call_soon_threadsafe(held["end"].set)
        thread.join()


def whole(value: Any) -> Any:
    """With 1 for 1.0, which JSON Schema calls an integer and we do not."""
    if isinstance(value, dict):
        return {key: whole(item) for key, item in value.items()}
    if isinstance(value, list):
        return [whole(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def test_the_server_answers_as_it_is_described() -> None:
    with running() as address:
        described = schemathesis.openapi.from_url(f"{address}/openapi.json")
        # A stream does not end by itself, so that it has tests of its own.
        found = [
            each.ok()
            for each in described.exclude(path_regex="/stream$|/protocols/").get_all_operations()
        ]
        assert len(found) == 7
        for operation in found:

            @settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
            @given(case=operation.as_strategy())
            def answers(case: Any) -> None:
                case.body = whole(case.body)
                case.call_and_validate(base_url=address)

            answers()
