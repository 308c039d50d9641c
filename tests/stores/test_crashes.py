"""Writers and servers that are killed at any moment, disks that are full: nothing is lost.

Of each crash it is asked: what was acknowledged is there, no seq twice, no gap, no half of a
batch, and whoever comes next goes on. `--kills N` sets how many writers of each kind are killed.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from secrets import token_hex

import pytest

from assembler import Draft
from assembler.stores import PostgresStore, SQLiteStore, StoreError, SyncStore
from tests.postgres_server import PostgresServer

# Writes batches of two for ever, and says after each what was acknowledged. It begins with a word
# of ours, so that it is there, with all that it imports, before it is to be killed.
WRITER = """
import sys
from assembler import ConflictError, Draft
from assembler.stores import PostgresStore, SQLiteStore

kind, place, schema, name = sys.argv[1:]
if kind == "sqlite":
    made = SQLiteStore(place, synchronous="normal")
else:
    made = PostgresStore(place, schema=schema)
print("ready", flush=True)
sys.stdin.readline()
with made.sync as store:
    last = store.last("c")
    count = 0
    while True:
        word = f"{name}.{count}"
        batch = [Draft("first", {"text": "x" * 300}, id=word), Draft("second", id=f"{word}'")]
        try:
            last = store.append("c", batch, last)[-1].seq
        except ConflictError as error:
            last = error.actual
        else:
            print(last, word, flush=True)
            count += 1
"""


class Writers:
    """Processes that write to one store, each killed in its turn."""

    def __init__(self, *where: str) -> None:
        self.where = where
        self.acknowledged: dict[str, int] = {}
        self.kills = 0

    def start(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", WRITER, *self.where, f"w{self.kills}.{token_hex(3)}"]
        return subprocess.Popen(  # noqa: S603 - this Python, and the text above
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, process: subprocess.Popen[str], after_s: float) -> None:
        """Let it write, kill it after so long, and take in what it said."""
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.stdin.write("go\n")
        process.stdin.flush()
        threading.Event().wait(after_s)
        process.kill()
        rest, _ = process.communicate()
        assert process.returncode == -signal.SIGKILL
        self.kills += 1
        for line in rest.splitlines(keepends=True):
            if line.endswith("\n"):
                last, word = line.split()
                self.acknowledged[word] = int(last)

    def check(self, store: SyncStore) -> int:
        """What was acknowledged stands where it was said to; how many events there are."""
        last = store.last("c")
        log = store.read("c")
        # a server may still be storing what a writer sent before it was killed
        assert last <= len(log)
        assert [event.seq for event in log] == [*range(1, len(log) + 1)]
        assert [event.type for event in log] == ["first", "second"] * (len(log) // 2)
        by_id = {event.id: event.seq for event in log}
        assert len(by_id) == len(log), "no draft is stored twice"
        for word, seq in self.acknowledged.items():
            assert (by_id[word], by_id[f"{word}'"]) == (seq - 1, seq)
        return len(log)


def kill_many(
    writers: Writers, kills: int, opened: Callable[[], SyncStore], longest_s: float = 0.03
) -> int:
    """Kill `kills` writers, two at a time, after no time to a few appends, and look after each."""
    chance = random.Random(7)  # noqa: S311 - which moments, the same ones each time
    events = 0
    waiting = [writers.start(), writers.start()]
    while writers.kills < kills:
        pair, waiting = waiting, [writers.start(), writers.start()]  # the next ones get ready
        moments = [chance.uniform(0, longest_s) for _ in pair]
        threads = [
            threading.Thread(target=writers.run, args=each)
            for each in zip(pair, moments, strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with opened() as store:
            events = writers.check(store)
    for process in waiting:
        process.kill()
        process.communicate()
    return events


@pytest.fixture
def kills(pytestconfig: pytest.Config) -> int | None:
    given = pytestconfig.getoption("kills")
    return given if isinstance(given, int) else None


def test_killed_writers_of_a_file_lose_nothing(tmp_path: Path, kills: int | None) -> None:
    path = tmp_path / "c.db"
    writers = Writers("sqlite", str(path), "")
    events = kill_many(writers, kills or 100, lambda: SQLiteStore(path).sync)
    assert events
    with SQLiteStore(path).sync as store:
        check_goes_on(store)
    print(f"{writers.kills} kills, {events} events, {len(writers.acknowledged)} acknowledged")


def check_goes_on(store: SyncStore) -> None:
    last = store.last("c")
    assert [event.seq for event in store.append("c", [Draft("on")], last)] == [last + 1]


def test_killed_writers_of_a_schema_lose_nothing(
    postgres: PostgresServer, kills: int | None
) -> None:
    schema = f"s{token_hex(8)}"
    writers = Writers("postgres", postgres.dsn, schema)
    opened = lambda: PostgresStore(postgres.dsn, schema=schema).sync  # noqa: E731
    assert kill_many(writers, kills or 20, opened, 0.3)  # to connect takes longer
    with opened() as store:
        check_goes_on(store)


def test_a_killed_server_loses_nothing_and_the_store_goes_on() -> None:
    with PostgresServer() as server, PostgresStore(server.dsn, busy_timeout_ms=5_000).sync as store:
        acknowledged = 0
        for _ in range(3):
            for _ in range(5):
                acknowledged = store.append("c", [Draft("a"), Draft("b")], acknowledged)[-1].seq
            server.kill()
            server.start()
            assert [event.seq for event in store.read("c")] == [*range(1, acknowledged + 1)]
        server.kill()
        with pytest.raises(StoreError):
            store.append("c", [Draft("a")], acknowledged)
        server.start()
        check_goes_on(store)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """Give a file system of 1 MB, where one can be mounted."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    try:
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - see above
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("cannot mount a small file system (needs root)")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)  # noqa: S603, S607 - ours


def test_a_full_disk_is_told_of_and_the_store_goes_on(small: Path) -> None:
    ballast = small / "ballast"
    ballast.write_bytes(b"x" * 400_000)
    with SQLiteStore(small / "c.db").sync as store:
        last = 0

        def fill() -> None:
            nonlocal last
            while True:
                last = store.append("c", [Draft("a", {"x": "y" * 5_000})], last)[-1].seq

        with pytest.raises(StoreError, match="full"):
            fill()
        assert [event.seq for event in store.read("c")] == [*range(1, last + 1)]
        ballast.unlink()
        check_goes_on(store)


def test_a_medium_that_cannot_be_written_is_read(small: Path) -> None:
    with SQLiteStore(small / "c.db").sync as store:
        log = store.append("c", [Draft("a")], 0)
    remount(small, "ro")
    try:
        with SQLiteStore(small / "c.db").sync as store:
            assert store.read("c") == log
            with pytest.raises(StoreError, match="readonly"):
                store.append("c", [Draft("b")], 1)
            assert store.read("c") == log
    finally:
        remount(small, "rw")


def remount(folder: Path, how: str) -> None:
    command = ["mount", "-o", f"remount,{how}", str(folder)]
    subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - ours
