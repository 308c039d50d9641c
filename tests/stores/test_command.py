"""`assembler store`, and the other commands that open a store: over SQLite and PostgreSQL."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from secrets import token_hex
from typing import Any

import psycopg
import pytest

from assembler import Draft
from assembler.cli import main, storing_whole
from assembler.cli.dispatch import dispatch
from assembler.recordings import read
from assembler.stores.addresses import store_at
from assembler.stores.base import SyncStore
from tests.postgres_server import PASSWORD, PostgresServer

ROOT = Path(__file__).parents[2]
RECORDING = ROOT / "recordings" / "parallel-writes.jsonl"


class Place:
    """A store that is not there yet, and how it is called on the command line."""

    def __init__(self, address: str, *options: str) -> None:
        self.address = address
        self.options = options
        self.schema = options[1] if options else "assembler"

    def open(self) -> SyncStore:
        return store_at(self.address, schema=self.schema).sync

    def write(self, name: str, count: int, *, behind: int = 0, **event: Any) -> None:
        drafts = [said(behind + at, **event) for at in range(1, count + 1)]
        with self.open() as store:
            store.append(name, drafts, behind)


def said(number: int, **event: Any) -> Draft:
    data = {"message_id": f"m{number}", "content": [{"type": "text", "text": f"word {number}"}]}
    return Draft("user/message", data, **{"time": number * 1_000, **event})


Ask = Callable[..., tuple[int, str, str]]


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    def ask(*argv: object) -> tuple[int, str, str]:
        status = dispatch([str(each) for each in argv])
        told = capsys.readouterr()
        assert PASSWORD not in told.out + told.err
        return status, told.out, told.err

    return ask


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "sqlite":
        return Place(str(tmp_path / "chat.db"))
    server: PostgresServer = request.getfixturevalue("postgres")
    return Place(server.dsn, "--schema", f"s{token_hex(6)}")


def store(ask: Ask, what: str, place: Place, *more: object) -> tuple[int, str, str]:
    return ask("store", what, place.address, *place.options, *more)


def lines(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


# init and list


def test_a_store_is_made_once(place: Place, ask: Ask) -> None:
    status, out, err = store(ask, "init", place)
    assert (status, err) == (0, "")
    assert out.endswith(": an empty store was made\n")
    assert store(ask, "list", place) == (0, "", "")
    place.write("demo", 1)
    assert store(ask, "init", place)[1].endswith(": is a store already\n")
    assert lines(store(ask, "init", place, "--json")[1])[0]["made"] is False
    assert store(ask, "list", place)[1].count("\n") == 1


def test_the_latest_conversation_is_listed_first(place: Place, ask: Ask) -> None:
    place.write("old", 2)
    place.write("new \x1b[2J", 3)
    with place.open() as opened:
        opened.append("old", [Draft("conversation/title", {"title": "Soup"}, time=2_500)], 2)
    status, out, _ = store(ask, "list", place)
    assert status == 0
    assert [line.split() for line in out.splitlines()] == [
        ["1970-01-01", "00:00", "3", "new", "\\e[2J"],
        ["1970-01-01", "00:00", "3", "old", "Soup"],
    ]
    assert lines(store(ask, "list", place, "--json", "--limit", 1)[1]) == [
        {
            "conversation": "new \x1b[2J",
            "title": None,
            "events": 3,
            "first_time": 1_000,
            "last_time": 3_000,
        }
    ]


def test_a_list_of_many_pages_has_each_once(
    place: Place, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assembler.cli.databases._LISTED_AT_ONCE", 2)
    for name in "abcde":
        place.write(name, 1)
    assert [each["conversation"] for each in lines(store(ask, "list", place, "--json")[1])] == [
        *"abcde"
    ]


# import and dump


def test_what_was_dumped_is_the_same_when_it_is_imported(
    place: Place, ask: Ask, tmp_path: Path
) -> None:
    names = ["demo", "a/b", "..", "%2E.", "über \U0001f600", "x" * 1_900, "x" * 1_900 + "y"]
    for name in names:
        place.write(name, 3, time=0)
    with place.open() as opened:
        opened.append(
            "demo", [Draft("odd", {"deep": [1, {"a": None}]}, id="i", v=3, more={"kept": 1})], 3
        )
    out = tmp_path / "out"
    status, told, _ = store(ask, "dump", place, "-o", out)
    assert (status, told) == (0, f"dumped 7 conversations, 22 events to {out}\n")
    assert len([*out.iterdir()]) == 7

    again = Place(str(tmp_path / "again.db"))
    for new in (22, 0):
        status, told, err = store(ask, "import", again, out)
        assert (status, err) == (0, "")
        assert told.endswith(f"{new} of the events are new\n")
    with place.open() as ours, again.open() as theirs:
        for name in names:
            assert [without_id(each) for each in theirs.read(name)] == [
                without_id(each) for each in ours.read(name)
            ]
        assert theirs.read("demo")[3] == ours.read("demo")[3]


def without_id(event: Any) -> tuple[Any, ...]:
    return event.seq, event.type, event.time, event.data, event.v, event.more


def test_a_dump_is_read_as_any_recording(place: Place, ask: Ask, tmp_path: Path) -> None:
    store(ask, "import", place, RECORDING)
    file = tmp_path / "one.jsonl"
    dumped = store(ask, "dump", place, "--conversation", "parallel-writes", "-o", file)
    assert dumped[0] == 0
    assert store(ask, "dump", place, "--conversation", "parallel-writes")[1] == file.read_text()
    assert read(file).title == "parallel-writes"
    for command in ("play", "verify", "state"):
        assert ask(command, file)[0] == 0
    shown = json.loads(ask("state", file, "--json")[1])["nodes"]
    recorded = json.loads(ask("state", RECORDING, "--json")[1])["nodes"]
    assert [node["key"] for node in shown] == [node["key"] for node in recorded]


def test_a_recording_of_a_part_does_not_go_into_a_store(
    place: Place, ask: Ask, tmp_path: Path
) -> None:
    part = tmp_path / "part.jsonl"
    part.write_text('{"recording":1}\n{"op":"load","events":[{"seq":5,"type":"x","data":{}}]}\n')
    status, _, err = store(ask, "import", place, part)
    assert status == 2
    assert err.startswith(f"{part}:1: events: expected all from 1 on, without a hole")
    assert store(ask, "list", place)[0] == 2  # nothing was made


def test_several_are_dumped_to_a_folder_alone(place: Place, ask: Ask, tmp_path: Path) -> None:
    place.write("a", 1)
    place.write("b", 1)
    expected = "store dump: expected -o FOLDER for several conversations\n"
    assert store(ask, "dump", place) == (2, "", expected)
    file = tmp_path / "file"
    file.write_text("mine")
    status, _, err = store(ask, "dump", place, "-o", file)
    assert (status, err.count("\n"), file.read_text()) == (2, 1, "mine")


def test_a_dump_that_fails_leaves_no_file(place: Place, ask: Ask, tmp_path: Path) -> None:
    place.write("demo", 1)
    out = tmp_path / "out"
    status, _, err = store(ask, "dump", place, "--conversation", "nobody", "-o", out)
    assert (status, err.endswith(": there is no conversation 'nobody'\n")) == (2, True)
    assert not out.exists()


# verify


def test_each_conversation_is_verified(place: Place, ask: Ask) -> None:
    store(ask, "import", place, RECORDING)
    place.write("demo", 3)
    place.write("empty words", 2)
    status, out, err = store(ask, "verify", place)
    assert (status, err) == (0, "")
    assert out.splitlines()[0] == "agree demo: 12 ways agree on 3 events"
    assert out.splitlines()[-1] == "3 agree, 0 do not"
    status, out, _ = store(ask, "verify", place, "--after", "demo", "--json")
    (told,) = lines(out)
    assert [each["name"] for each in told["conversations"]] == ["empty words", "parallel-writes"]
    status, out, _ = store(ask, "verify", place, "--conversation", "demo")
    assert out.splitlines()[1:] == ["1 agree, 0 do not"]


def test_a_difference_is_said(place: Place, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    place.write("demo", 3)
    verdict = {"outcome": "disagree", "path": "pages:2", "at": "nodes", "live": 1, "pages:2": 2}
    monkeypatch.setattr(
        storing_whole, "verdict_of", lambda recording, _: {"name": recording.name, **verdict}
    )
    status, out, _ = store(ask, "verify", place)
    assert status == 1
    assert out.splitlines() == [
        "disagree demo: nodes: live shows 1, pages:2 shows 2",
        "0 agree, 1 do not",
    ]


def test_verify_says_where_to_go_on_when_it_is_interrupted(
    place: Place, ask: Ask, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a b", "c"):
        place.write(name, 1)
    real = storing_whole.verdict_of

    def interrupted(recording: Any, known: Any) -> Any:
        if recording.name == "c":
            raise KeyboardInterrupt
        return real(recording, known)

    monkeypatch.setattr(storing_whole, "verdict_of", interrupted)
    assert main(["store", "verify", place.address, *place.options]) == 130
    assert capsys.readouterr().err == "to go on: --after 'a b'\n"


def test_a_damaged_conversation_does_not_keep_the_others_out(tmp_path: Path, ask: Ask) -> None:
    place = Place(str(tmp_path / "chat.db"))
    place.write("demo", 3)
    place.write("sound", 3)
    with sqlite3.connect(place.address) as damage:
        damage.execute("UPDATE events SET body = '{' WHERE seq = 2 AND conversation = 1")
    status, out, err = store(ask, "verify", place)
    assert status == 2
    assert err == f"demo: {place.address}: event 2 cannot be read: it is damaged\n"
    assert out.splitlines()[-1] == "1 agree, 0 do not, 1 could not be read"
    status, _, err = store(ask, "dump", place, "--conversation", "demo", "-o", tmp_path / "x.jsonl")
    assert (status, err.count("\n"), (tmp_path / "x.jsonl").exists()) == (2, 1, False)


# tail


def test_the_newest_events_are_shown(place: Place, ask: Ask) -> None:
    place.write("demo", 12)

    def seqs(*options: object) -> list[int]:
        status, out, _ = store(ask, "tail", place, "demo", "--until-idle", 0, "--json", *options)
        assert status == 0
        return [each["seq"] for each in lines(out)]

    assert seqs() == [*range(3, 13)]
    assert seqs("-n", 1) == [12]
    assert seqs("-n", 0) == []
    assert seqs("-n", 50) == [*range(1, 13)]
    assert seqs("--after", 10) == [11, 12]
    assert seqs("--after", 99) == []
    _, out, _ = store(ask, "tail", place, "demo", "--until-idle", 0, "-n", 1)
    assert re.fullmatch(r" {5}12  user/message {12}\{\"message_id\":\"m12\",.*\n", out)


def test_events_of_other_processes_are_shown_as_they_come(place: Place) -> None:
    place.write("demo", 1)

    async def run() -> None:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "assembler", "store", "tail", place.address, "demo", "--json"),
            *place.options,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": ""},
        )
        assert process.stdout is not None
        try:
            for seq in range(1, 4):
                assert json.loads(await process.stdout.readline())["seq"] == seq
                await asyncio.to_thread(place.write, "demo", 1, behind=seq)
        finally:
            process.send_signal(signal.SIGINT)
            _, err = await process.communicate()
        assert (process.returncode, err) == (130, b"")

    asyncio.run(asyncio.wait_for(run(), 60))


# What is wrong is said in one line


@pytest.mark.parametrize("what", ["list", "verify", "dump", "tail"])
def test_what_is_no_store_is_left_as_it_is(
    what: str, tmp_path: Path, ask: Ask, postgres: PostgresServer
) -> None:
    text, empty, other = (tmp_path / name for name in ("text.db", "empty.db", "other.db"))
    text.write_text("no database " * 100)
    empty.write_bytes(b"")
    with sqlite3.connect(other) as theirs:
        theirs.execute("CREATE TABLE theirs (x)")
    before = other.read_bytes()
    schema = f"s{token_hex(6)}"
    expected = {
        tmp_path / "none.db": "none.db: no such file",
        tmp_path: "unable to open database file",
        text: "text.db: file is not a database",
        empty: "empty.db: there is no store in it",
        other: "other.db: this database is of another program",
        postgres.dsn: f"PostgreSQL, schema {schema}: there is no store in it",
    }
    for address, told in expected.items():
        more = ["demo"] if what == "tail" else ["-o", tmp_path / "out"] if what == "dump" else []
        status, out, err = ask("store", what, address, "--schema", schema, *more)
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert told in err
    assert sorted(each.name for each in tmp_path.iterdir()) == ["empty.db", "other.db", "text.db"]
    assert (empty.read_bytes(), other.read_bytes()) == (b"", before)
    assert postgres.ask(f"SELECT 1 FROM pg_namespace WHERE nspname = '{schema}'") == []  # noqa: S608


@pytest.mark.parametrize("what", ["init", "list", "import"])
def test_another_version_is_left_alone(what: str, place: Place, ask: Ask) -> None:
    place.write("demo", 1)
    if place.options:
        with psycopg.connect(place.address) as theirs:
            theirs.execute(f"UPDATE {place.schema}.version SET number = 99".encode())  # noqa: S608
    else:
        with sqlite3.connect(place.address) as theirs:
            theirs.execute("PRAGMA user_version = 99")
    more = [RECORDING] if what == "import" else []
    status, out, err = store(ask, what, place, *more)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "99" in err


@pytest.mark.parametrize(
    "argv",
    [
        ("store", "list", "DSN"),
        ("store", "init", "DSN"),
        ("store", "import", "DSN", RECORDING),
        ("store", "tail", "DSN", "demo"),
        ("import", RECORDING, "--store", "DSN"),
        ("serve", "DSN", "--port", "0"),
        # mistakes, which are told with what was given
        ("store", "list", "file.db", "DSN"),
        ("store", "DSN", "list"),
        ("play", "DSN"),
        ("serve", "DSN", RECORDING),
        ("store", "list", "x", "--limit", "DSN"),
        ("import", "DSN", RECORDING),
    ],
)
@pytest.mark.parametrize(
    "dsn",
    [
        f"postgresql://u:{PASSWORD}@127.0.0.1:1/db",
        f"postgres://u:{PASSWORD}@@127.0.0.1:1/db",
        f"postgresql://127.0.0.1:1/db?user=u&password={PASSWORD}",
    ],
)
def test_a_database_that_is_not_reached_is_said_without_its_password(
    argv: tuple[object, ...], dsn: str, ask: Ask
) -> None:
    status, out, err = ask(*(dsn if each == "DSN" else each for each in argv))
    assert (status, out, err.count("\n")) == (2, "", 1)


def test_bad_numbers_are_refused(place: Place, ask: Ask) -> None:
    place.write("demo", 1)
    for options in (["-n", "x"], ["--after", "-1"], ["--until-idle", "nan"], ["--until-idle=-1"]):
        status, _, err = store(ask, "tail", place, "demo", *options)
        assert (status, err.count("\n")) == (2, 1)
    assert store(ask, "list", place, "--limit", "0")[0] == 2


def test_without_the_driver_it_says_what_to_install(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "assembler.stores.postgres", None)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.delitem(sys.modules, "assembler.stores.postgres")
    status, _, err = ask("store", "list", "postgresql://127.0.0.1/db")
    assert status == 2
    assert err == (
        "PostgresStore needs psycopg: install the extra `postgres`: "
        "pip install 'conversation-assembler[postgres]'\n"
    )


# The other commands that take a store


def test_an_import_goes_on_when_another_writes_meanwhile(
    place: Place, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = SyncStore.last
    others = iter([lambda: place.write("cancel", 1)])

    def late(opened: SyncStore, name: str) -> int:
        found = last(opened, name)
        next(others, lambda: None)()
        return found

    monkeypatch.setattr(SyncStore, "last", late)
    status, out, _ = store(ask, "import", place, RECORDING.with_name("cancel.jsonl"))
    assert (status, out.endswith("13 of the events are new\n")) == (0, True)
    with place.open() as opened:
        assert [event.seq for event in opened.read("cancel")] == [*range(1, 15)]


def test_import_takes_any_store(place: Place, ask: Ask) -> None:
    for new in (True, False):
        status, out, _ = ask("import", RECORDING, "--store", place.address, *place.options)
        assert status == 0
        assert out.endswith(" 0 of the events are new\n") != new
