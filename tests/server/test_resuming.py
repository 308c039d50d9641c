"""Our recordings, operation by operation: readers who are cut everywhere end with what is shown."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from assembler import Assembler
from assembler.live import Publisher, Subscription
from assembler.recordings import Recording, Run, read
from assembler.recordings.expecting import is_expectation
from assembler.server import Listing, ServerLimits, Source
from assembler.server.rooms import Room, Rooms
from assembler.server.streams import frames
from definitions import catalog
from tests.server.support import Reader, inside

ROOT = Path(__file__).parents[2]
RECORDINGS = sorted((ROOT / "recordings").glob("*.jsonl"))
VIEWS = ("chat", "trajectory")


class Operated:
    """An Assembler that is operated through its Publisher, whoever thinks to operate it."""

    def __init__(self, publisher: Publisher) -> None:
        self._publisher = publisher

    def __getattr__(self, name: str) -> Any:
        own = name in vars(Publisher) and name not in ("assembler", "statistics")
        return getattr(self._publisher if own else self._publisher.assembler, name)


class Playing(Source):
    """One conversation, which goes on when a test says so."""

    def __init__(self, recording: Recording) -> None:
        definitions = catalog()
        self.run = Run(recording, definitions)
        self.publisher = Publisher(Assembler(definitions, views=VIEWS), frame_ms=1_000_000)
        self.run.assembler = Operated(self.publisher)  # type: ignore[assignment]

    @property
    def views(self) -> Sequence[str]:
        return VIEWS

    async def conversations(
        self, *, search: str = "", before: str | None = None, limit: int = 50
    ) -> Listing:
        return Listing(())

    @asynccontextmanager
    async def open(self, conversation: str) -> AsyncGenerator[Playing]:
        yield self

    def subscribe(self, view: str = "chat") -> Subscription:
        return self.publisher.subscribe(view)

    async def older(self) -> bool:
        return False


async def reads_on(reader: Reader, room: Room, view: str, revision: int) -> None:
    """Come back, read as far as that revision, and be cut."""
    async with aclosing(frames(room, view, reader.cursor, 1_000_000)) as told:
        while reader.shown is None or reader.shown["revision"] < revision:
            reader.take((await anext(told)).decode().removesuffix("\n\n"))


@pytest.mark.parametrize("file", RECORDINGS, ids=lambda file: file.stem)
@pytest.mark.parametrize("kept", [1_000, 2])
def test_whoever_is_cut_after_every_operation_sees_what_is_shown(file: Path, kept: int) -> None:
    recording = read(file)
    if any(operation.name == "reconnect" for operation in recording.operations):
        pytest.skip("a recording of one who comes back has an Assembler of its own")

    @inside
    async def test() -> None:
        source = Playing(recording)
        limits = ServerLimits(log_patches_max=kept)
        rooms = Rooms(source, limits)
        # One comes back after each operation, one after every fifth, one only at the end.
        readers = {(view, every): Reader(None, "") for view in VIEWS for every in (1, 5, 10_000)}  # type: ignore[arg-type]
        async with rooms.enter("c") as room:
            for reader, (view, _) in zip(readers.values(), readers, strict=True):
                await reads_on(reader, room, view, 0)
            number = 0
            for operation in recording.operations:
                if is_expectation(operation):
                    continue
                source.run.do(operation)
                number += 1
                for (view, every), reader in readers.items():
                    shown = source.publisher.assembler.view(view).snapshot().to_json()
                    if number % every == 0:
                        await reads_on(reader, room, view, shown["revision"])
                        assert reader.shown == shown
            for (view, every), reader in readers.items():
                shown = source.publisher.assembler.view(view).snapshot().to_json()
                await reads_on(reader, room, view, shown["revision"])
                assert reader.shown == shown
                if kept == 1_000:
                    assert reader.snapshots == 1, (view, every)
        await rooms.aclose()
        source.publisher.close()

    test()
