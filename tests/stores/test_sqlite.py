"""What only a store on disk can promise: a killed writer, two processes, other people's files."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from assembler import ConflictError, Draft, Event, InputError
from assembler.stores import MemoryStore, SQLiteStore, StoreError, SyncStore

# Appends batches of two for ever, and says after each what was acknowledged.
WRITER = """
import sys
from assembler import ConflictError, Draft
from assembler.stores import SQLiteStore

path, name = sys.argv[1:]
with SQLiteStore(path).sync as store:
    last = store.last("c")
    while True:
        batch = [Draft("first", {"by": name, "text": "x" * 3000}), Draft("second", {"by": name})]
        try:
            last = store.append("c", batch, last)[-1].seq
        except ConflictError as error:
            last = error.actual
        else:
            print(last, flush=True)
"""


def writer(path: Path, name: str) -> subprocess.Popen[str]:
    return subprocess.Popen(  # noqa: S603 - this Python, and the text above
        [sys.executable, "-c", WRITER, str(path), name], stdout=subprocess.PIPE, text=True
    )


def lines(process: subprocess.Popen[str], count: int) -> list[str]:
    assert process.stdout is not None
    return [process.stdout.readline() for _ in range(count)]


def kill(process: subprocess.Popen[str]) -> list[int]:
    """End it at once; what it had said until then."""
    process.kill()
    rest, _ = process.communicate()
    assert process.returncode == -signal.SIGKILL
    return [int(line) for line in rest.splitlines() if line.endswith(tuple("0123456789"))]


def check_log(path: Path, said: list[int]) -> list[Event]:
    with SQLiteStore(path).sync as store:
        log = store.read("c")
    assert [event.seq for event in log] == list(range(1, len(log) + 1))
    assert [event.type for event in log] == ["first", "second"] * (len(log) // 2)
    assert said == sorted(set(said))
    assert max(said) <= len(log), "what was acknowledged is there"
    return log


def test_a_killed_writer_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "chat.db"
    said: list[int] = []
    for round_ in range(4):
        process = writer(path, str(round_))
        said += map(int, lines(process, 1 + round_ * 7))
        said += kill(process)
        check_log(path, said)
    assert len(said) >= 4 + 42


def test_two_processes_share_one_file(tmp_path: Path) -> None:
    path = tmp_path / "chat.db"
    processes = [writer(path, name) for name in "ab"]  # both make the file, if need be
    said = sorted(int(line) for process in processes for line in lines(process, 10))
    for process in processes:
        said += kill(process)
    log = check_log(path, sorted(said))
    assert {event.data["by"] for event in log} == {"a", "b"}


def test_a_closed_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "chat.db"

    async def write() -> list[Event]:
        async with SQLiteStore(path) as store:
            return await store.append("c", [Draft("a", {"x": 1.0}, 5, "i", 2, {"new": [1]})], 0)

    async def read() -> list[Event]:
        async with SQLiteStore(str(path), synchronous="normal") as store:
            return await store.read("c")

    assert asyncio.run(write()) == asyncio.run(read())


def test_other_stores_of_one_file_conflict_and_read(tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "c.db").sync as one, SQLiteStore(tmp_path / "c.db").sync as two:
        one.append("c", [Draft("a")], 0)
        with pytest.raises(ConflictError) as refused:
            two.append("c", [Draft("b")], 0)
        assert (refused.value.expected, refused.value.actual) == (0, 1)
        two.append("c", [Draft("b")], 1)
        assert [event.type for event in one.read("c")] == ["a", "b"]


def test_an_append_of_nothing_new_writes_nothing(tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "c.db").sync as store:
        store.append("c", [Draft("a", id="i")], 0)
        wal = tmp_path / "c.db-wal"
        size = wal.stat().st_size
        store.append("c", [Draft("a", id="i")], 0)
        with pytest.raises(ConflictError):
            store.append("c", [Draft("b")], 0)
        assert wal.stat().st_size == size


@pytest.mark.parametrize("fault", ["text", "database", "newer", "folder", "nowhere"])
def test_a_file_that_is_none_of_ours_is_left_alone(tmp_path: Path, fault: str) -> None:
    path = tmp_path / "other.db"
    if fault == "text":
        path.write_text("no database at all, and long enough to be looked at" * 20)
    elif fault == "folder":
        path.mkdir()
    elif fault == "nowhere":
        path = tmp_path / "no" / "such" / "folder.db"
    else:
        if fault == "newer":
            with SQLiteStore(path).sync:
                pass
        with sqlite3.connect(path) as other:
            made = "PRAGMA user_version = 99" if fault == "newer" else "CREATE TABLE t (x)"
            other.execute(made)
        other.close()
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(StoreError, match=str(path)):
        SQLiteStore(path).sync.open()
    assert (path.read_bytes() if path.is_file() else None) == before


def test_a_store_that_could_not_open_tries_again(tmp_path: Path) -> None:
    path = tmp_path / "later" / "c.db"
    store = SQLiteStore(path).sync
    with pytest.raises(StoreError):
        store.read("c")
    path.parent.mkdir()
    assert store.read("c") == []
    store.close()


def test_full_is_the_default_and_normal_an_option(tmp_path: Path) -> None:
    def level(store: SQLiteStore) -> object:
        with store.sync as core:
            return core._ask("PRAGMA synchronous")[0][0]  # type: ignore[attr-defined]

    assert level(SQLiteStore(tmp_path / "c.db")) == 2
    assert level(SQLiteStore(tmp_path / "c.db", synchronous="normal")) == 1
    with pytest.raises(InputError, match="synchronous"):
        SQLiteStore(tmp_path / "c.db", synchronous="off")  # type: ignore[arg-type]


def test_a_writer_who_is_kept_waiting_too_long_is_told(tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "c.db", busy_timeout_ms=1).sync as store:
        store.open()
        other = sqlite3.connect(tmp_path / "c.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="locked"):
            store.append("c", [Draft("a")], 0)
        other.execute("ROLLBACK")
        other.close()
        assert [event.seq for event in store.append("c", [Draft("a")], 0)] == [1]


def test_a_loop_goes_on_while_the_disk_is_waited_for(tmp_path: Path) -> None:
    async def run() -> None:
        async with SQLiteStore(tmp_path / "c.db") as store:
            busy = threading.Event()
            waiting = asyncio.ensure_future(store.run(lambda core: busy.wait(20)))
            append = asyncio.ensure_future(store.append("c", [Draft("a")], 0))
            await asyncio.sleep(0)
            assert not waiting.done()
            busy.set()
            assert [event.seq for event in await append] == [1]
            assert waiting.done(), "calls run one after the other"

    asyncio.run(run())


def test_closing_waits_for_the_calls_before_it(tmp_path: Path) -> None:
    others = {*threading.enumerate()}  # of stores that other tests have not let go of yet

    async def run() -> None:
        async with SQLiteStore(tmp_path / "c.db") as store:
            begun, go_on = threading.Event(), threading.Event()

            def append(core: SyncStore) -> list[Event]:
                begun.set()
                go_on.wait(20)
                return core.append("c", [Draft("a")], 0)

            waiting = [asyncio.ensure_future(store.run(append))]
            await asyncio.to_thread(begun.wait, 20)
            waiting.append(asyncio.ensure_future(store.append("c", [Draft("b")], 1)))
            await asyncio.sleep(0)
            closing = asyncio.ensure_future(store.close())
            await asyncio.sleep(0)
            with pytest.raises(StoreError, match="closed"):
                await store.read("c")
            assert not closing.done()
            go_on.set()
            assert [[event.seq for event in events] for events in await gathered(waiting)] == [
                [1],
                [2],
            ]
            await closing
            left = [each.name for each in {*threading.enumerate()} - others]
            assert not [name for name in left if name.startswith("assembler-store")]
        with SQLiteStore(tmp_path / "c.db").sync as again:
            assert again.last("c") == 2

    asyncio.run(run())


async def gathered(waiting: list[asyncio.Future[list[Event]]]) -> list[list[Event]]:
    return await asyncio.gather(*waiting)


def test_a_cancelled_append_is_stored_whole_or_not_at_all(tmp_path: Path) -> None:
    async def run() -> None:
        async with SQLiteStore(tmp_path / "c.db") as store:
            begun, go_on = threading.Event(), threading.Event()

            def append(core: object) -> None:
                begun.set()
                go_on.wait(20)
                store.sync.append("c", [Draft("a"), Draft("b")], 0)

            append_it = asyncio.ensure_future(store.run(append))
            never = asyncio.ensure_future(store.append("c", [Draft("never")], 2))
            await asyncio.to_thread(begun.wait, 20)
            append_it.cancel()
            never.cancel()
            await asyncio.wait([append_it, never])
            go_on.set()
            assert [event.type for event in await store.read("c")] == ["a", "b"]

    asyncio.run(run())


def test_memory_forgets_and_a_closed_store_says_so() -> None:
    async def run() -> None:
        store = MemoryStore()
        await store.append("c", [Draft("a")], 0)
        await store.close()
        for call in (store.read("c"), store.append("c", [Draft("a")], 0)):
            with pytest.raises(StoreError, match="closed"):
                await call
        with pytest.raises(StoreError, match="closed"):
            store.subscribe("c")

    asyncio.run(run())


DAMAGES = {
    "no JSON": "UPDATE events SET body = '{secret' WHERE seq = 2",
    "no UTF-8": "UPDATE events SET body = CAST(x'7b22736563726574ff' AS TEXT) WHERE seq = 2",
    "no text": "UPDATE events SET body = x'00ff' WHERE seq = 2",
    "another event": 'UPDATE events SET body = \'{"seq":9,"type":"secret"}\' WHERE seq = 2',
    "a hole": "DELETE FROM events WHERE seq = 2",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_told_of_and_never_read_over(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "c.db"
    with SQLiteStore(path).sync as store:
        store.append("c", [Draft("a", id=str(seq)) for seq in range(1, 4)], 0)
        with sqlite3.connect(path) as other:
            other.execute(DAMAGES[damage])
        other.close()
        for read in (lambda: store.read("c"), lambda: store.page("c")):
            with pytest.raises(StoreError, match=f"{path}: event 2 ") as told:
                read()
            assert "secret" not in str(told.value)
        assert [event.seq for event in store.read("c", 2)] == [3]


@pytest.mark.parametrize("wrong", [-1, 2**31, 1.5, "10", None, True])
def test_a_wait_that_is_none_is_refused(tmp_path: Path, wrong: object) -> None:
    with pytest.raises(InputError, match="busy_timeout_ms"):
        SQLiteStore(tmp_path / "c.db", busy_timeout_ms=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("path", ["", b"", "a\0b"])
def test_a_file_without_a_name_is_refused(path: str) -> None:
    with pytest.raises(InputError, match="path"):
        SQLiteStore(path)


# Files of others


NOBODY = 65_534


@pytest.fixture
def theirs() -> Iterator[Path]:
    """Give a folder that everybody may look into, and only its owner write."""
    folder = Path(tempfile.mkdtemp(prefix="theirs-"))
    try:
        yield folder
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


@contextmanager
def as_reader(folder: Path) -> Iterator[None]:
    """Without the right to write there, whoever we are."""
    for path in [*folder.iterdir(), folder]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    with as_nobody():
        yield


@contextmanager
def as_nobody() -> Iterator[None]:
    """Without the rights of root, where we have them."""
    we = os.geteuid()
    if we == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(we)


def check_is_read(path: Path, log: list[Event]) -> None:
    with SQLiteStore(path).sync as store:
        assert store.read("c") == log
        with pytest.raises(StoreError, match="readonly"):
            store.append("c", [Draft("b")], len(log))
        assert store.read("c") == log
    assert log


def test_a_file_that_we_may_not_write_is_read(theirs: Path) -> None:
    with SQLiteStore(theirs / "c.db").sync as store:
        log = store.append("c", [Draft("a")], 0)
    with as_reader(theirs):
        check_is_read(theirs / "c.db", log)
        assert [path.name for path in theirs.iterdir()] == ["c.db"]
        with pytest.raises(StoreError, match="unable to open"):
            SQLiteStore(theirs / "other.db").sync.open()


def test_a_file_that_its_owner_is_writing_is_read_with_what_is_new(theirs: Path) -> None:
    with SQLiteStore(theirs / "c.db").sync as store:
        log = store.append("c", [Draft("a")], 0)
        with as_reader(theirs):
            check_is_read(theirs / "c.db", log)


def test_a_file_whose_newest_events_cannot_be_read_is_refused(theirs: Path, tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "c.db").sync as store:
        store.append("c", [Draft("a")], 0)
        for name in ("c.db", "c.db-wal"):  # as after a crash, and without what goes with them
            shutil.copyfile(tmp_path / name, theirs / name)
    with (
        as_reader(theirs),
        pytest.raises(StoreError, match="its -wal may hold events: copy both to another place"),
    ):
        SQLiteStore(theirs / "c.db").sync.open()
    theirs.chmod(0o755)
    for path in theirs.iterdir():
        path.chmod(0o644)
    with SQLiteStore(theirs / "c.db").sync as store:
        assert store.last("c") == 1


def test_a_folder_that_may_not_be_looked_into_is_told_of(theirs: Path) -> None:
    theirs.chmod(0)
    with as_nobody():
        for create in (True, False):
            with pytest.raises(StoreError, match="unable to open"):
                SQLiteStore(theirs / "c.db", create=create).sync.open()
