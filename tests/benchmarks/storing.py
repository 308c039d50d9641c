"""Stores: over the bare driver doing the same statements, and over logs of two lengths.

SQLite in this process, by the processor's time; PostgreSQL beside it, by the clock, since it is
waited for. Neither waits for the disk: `synchronous` is `normal`, the server is one for tests.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import count
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import psycopg
from msgspec import json

from assembler.codec import encode
from assembler.engine.events import Draft, Event
from assembler.stores import PostgresStore, SQLiteStore, SyncStore, postgres, sqlite
from tests.benchmarks.measure import Clock, Prepare, Row, Run, interleaved
from tests.postgres_server import PostgresServer

__all__ = ["in_postgres", "in_sqlite"]

_GOAL = "16"
_PAGE = 50
_BATCH = 100
_SCHEMA = "assembler"
_TEXT = "the quick brown fox jumps over a lazy dog and rests " * 5
_NAMES = count(1)

Bare = Callable[[str, Sequence[Event]], object]
"""Stores events behind what the conversation of that name has, by the driver alone."""
Select = Callable[[str], Sequence[tuple[int, bytes]]]
"""The newest page of a conversation, as rows."""
Fill = Callable[[str, int], object]
"""Makes a conversation of that name and of so many events, all at once."""


def in_sqlite(sizes: Any) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "chat.db")
        store = SQLiteStore(path, synchronous="normal").sync
        with store, closing(sqlite3.connect(path, isolation_level=None)) as bare:
            bare.execute("PRAGMA synchronous = normal")
            tools = _sqlite_append(bare), _sqlite_page(bare), _sqlite_fill(bare)
            return _rows("SQLite", store, tools, sizes, process_time)


def in_postgres(sizes: Any) -> list[Row]:
    with (
        PostgresServer() as server,
        PostgresStore(server.dsn, schema=_SCHEMA).sync as store,
        psycopg.connect(server.dsn, autocommit=True) as bare,
    ):
        tools = _postgres_append(bare), _postgres_page(bare), _postgres_fill(bare)
        return _rows("PostgreSQL", store, tools, sizes, perf_counter)


def _rows(
    what: str, store: SyncStore, tools: tuple[Bare, Select, Fill], sizes: Any, clock: Clock
) -> list[Row]:
    append, select, fill = tools
    rounds = sizes.store_rounds
    single = interleaved(_appending(store, append, sizes.appends, 1), rounds, clock)
    batches = interleaved(_appending(store, append, sizes.appends // 5, _BATCH), rounds, clock)
    lengths = {"few": sizes.few_stored, "many": sizes.stored}
    for name, length in lengths.items():
        fill(name, length)
    reading = interleaved(_reading(store, select, "few", sizes.reads), rounds, clock)
    long = interleaved(_far(store, lengths, sizes.reads), rounds, clock)
    over = f"{sizes.stored:,} events over {sizes.few_stored:,}"
    said = "over the bare driver"
    return [
        single.row(_GOAL, f"{what}: append of one event, {said}", "store", "bare", 2),
        batches.row(_GOAL, f"{what}: append of {_BATCH}, {said}", "store", "bare", 2),
        reading.row(_GOAL, f"{what}: a page of {_PAGE}, {said}", "store", "bare"),
        reading.row(_GOAL, f"{what}: the same, {said} and JSON", "store", "decoded", 2),
        long.row(_GOAL, f"{what}: the newest page, {over}", "newest many", "newest few", 1.25),
        long.row(_GOAL, f"{what}: a page in the middle, {over}", "middle many", "middle few", 1.25),
        long.row(_GOAL, f"{what}: append of one event, {over}", "append many", "append few", 1.25),
    ]


# Contenders


def _drafts(first: int, number: int) -> list[Draft]:
    return [
        Draft("note", {"text": _TEXT, "at": at}, id=f"id-{at}", time=1_000 + at)
        for at in range(first, first + number)
    ]


def _appending(store: SyncStore, append: Bare, appends: int, batch: int) -> Mapping[str, Prepare]:
    """Each round its own conversation."""

    def through_store() -> Run:
        name = f"store {next(_NAMES)}"
        batches = [(at, _drafts(at + 1, batch)) for at in range(0, appends * batch, batch)]

        def run() -> None:
            for expected, drafts in batches:
                store.append(name, drafts, expected)

        return run

    def by_driver() -> Run:
        name = f"bare {next(_NAMES)}"
        events = [draft.numbered(seq) for seq, draft in enumerate(_drafts(1, appends * batch), 1)]

        def run() -> None:
            for at in range(0, len(events), batch):
                append(name, events[at : at + batch])

        return run

    return {"store": through_store, "bare": by_driver}


def _reading(store: SyncStore, select: Select, name: str, reads: int) -> Mapping[str, Prepare]:
    def decoded() -> None:
        decode = json.Decoder().decode
        for _, body in select(name):
            decode(body)

    def times(read: Callable[[], object]) -> Prepare:
        def run() -> None:
            for _ in range(reads):
                read()

        return lambda: run

    return {
        "store": times(lambda: store.page(name, limit=_PAGE)),
        "bare": times(lambda: select(name)),
        "decoded": times(decoded),
    }


def _far(store: SyncStore, lengths: Mapping[str, int], reads: int) -> Mapping[str, Prepare]:
    """The same pages and appends of a short and of a long conversation."""

    def paging(name: str, before: int | None) -> Prepare:
        def run() -> None:
            for _ in range(reads):
                store.page(name, before, _PAGE)

        return lambda: run

    def appending(name: str) -> Prepare:
        def prepare() -> Run:
            last = store.last(name)
            batches = [(at, _drafts(at + 1, 1)) for at in range(last, last + reads)]

            def run() -> None:
                for expected, drafts in batches:
                    store.append(name, drafts, expected)

            return run

        return prepare

    contenders: dict[str, Prepare] = {}
    for name, length in lengths.items():
        contenders[f"newest {name}"] = paging(name, None)
        contenders[f"middle {name}"] = paging(name, length // 2)
        contenders[f"append {name}"] = appending(name)
    return contenders


# SQLite by its driver


def _sqlite_append(bare: sqlite3.Connection) -> Bare:
    stored = f"{sqlite._EVENTS} WHERE {sqlite._ITS} AND id IN"
    note = """
        INSERT INTO conversations (name, last, first_time, last_time) VALUES (?, ?, ?, ?)
        ON CONFLICT (name) DO UPDATE SET last = excluded.last, last_time = excluded.last_time
        RETURNING number
    """
    insert = "INSERT INTO events (conversation, seq, id, type, body) VALUES (?, ?, ?, ?, ?)"

    def append(name: str, events: Sequence[Event]) -> None:
        marks = ", ".join("?" * len(events))
        last = events[-1]
        bare.execute("BEGIN IMMEDIATE")
        bare.execute(f"{stored} ({marks})", (name, *(each.id for each in events))).fetchall()
        bare.execute(sqlite._LAST, (name,)).fetchall()
        row = bare.execute(note, (name, last.seq, events[0].time, last.time)).fetchall()[0]
        rows = [(row[0], e.seq, e.id, e.type, encode(e).decode()) for e in events]
        bare.executemany(insert, rows)
        bare.execute("COMMIT")

    return append


def _sqlite_page(bare: sqlite3.Connection) -> Select:
    query = f"{sqlite._EVENTS} WHERE {sqlite._ITS} AND seq < ? ORDER BY seq DESC LIMIT ?"
    return lambda name: bare.execute(query, (name, 2**53, _PAGE)).fetchall()


def _sqlite_fill(bare: sqlite3.Connection) -> Fill:
    def fill(name: str, length: int) -> None:
        bare.execute("BEGIN")
        bare.execute(
            "INSERT INTO conversations (name, last, first_time, last_time) VALUES (?, ?, ?, ?)",
            (name, length, 1_001, 1_000 + length),
        )
        number = bare.execute("SELECT max(number) FROM conversations").fetchone()[0]
        bare.executemany(
            "INSERT INTO events (conversation, seq, id, type, body) VALUES (?, ?, ?, ?, ?)",
            ((number, *row) for row in _filled(length)),
        )
        bare.execute("COMMIT")

    return fill


def _filled(length: int) -> Iterator[tuple[int, str, str, str]]:
    head, tail = encode(_drafts(0, 1)[0].numbered(1)).decode().split('"seq":1', 1)
    for seq in range(1, length + 1):
        yield seq, f"filled-{seq}", "note", f'{head}"seq":{seq}{tail}'


# PostgreSQL by its driver


def _statement(query: str) -> bytes:
    return query.replace("SCHEMA", f'"{_SCHEMA}"').encode()


def _postgres_append(bare: psycopg.Connection[Any]) -> Bare:
    lock, begin, stored = map(_statement, (postgres._LOCK, postgres._BEGIN, postgres._STORED))
    insert, note = map(_statement, (postgres._INSERT, postgres._NOTE))

    def append(name: str, events: Sequence[Event]) -> None:
        key, ids = name.encode(), [str(each.id).encode() for each in events]
        bare.execute("BEGIN")
        with bare.pipeline():
            found = bare.execute(lock, (key,), binary=True)
            bare.execute(stored, (key, ids), binary=True).fetchall()
            row = found.fetchone()
        if row is None:
            row = bare.execute(begin, (key, events[0].time), binary=True).fetchone()
        assert row is not None
        columns = (
            [each.seq for each in events],
            ids,
            [each.type.encode() for each in events],
            [encode(each) for each in events],
        )
        last = events[-1]
        with bare.pipeline():
            bare.execute(insert, (row[0], *columns))
            bare.execute(note, (last.seq, last.time, row[0]))
            bare.execute(postgres._TELL, (f"{_SCHEMA}_events", f"bare {last.seq} {name}"))
            bare.execute("COMMIT")

    return append


def _postgres_page(bare: psycopg.Connection[Any]) -> Select:
    query = _statement(postgres._PAGE)
    return lambda name: bare.execute(query, (name.encode(), 2**53, _PAGE), binary=True).fetchall()


def _postgres_fill(bare: psycopg.Connection[Any]) -> Fill:
    def fill(name: str, length: int) -> None:
        made = bare.execute(_statement(postgres._BEGIN), (name.encode(), 1_001)).fetchone()
        assert made is not None
        copy = "COPY SCHEMA.events (conversation, seq, id, type, body) FROM STDIN"
        with bare.cursor() as cursor, cursor.copy(_statement(copy)) as rows:
            for seq, id_, type_, body in _filled(length):
                rows.write_row((made[0], seq, id_.encode(), type_.encode(), body.encode()))
        bare.execute(_statement(postgres._NOTE), (length, 1_000 + length, made[0]))
        bare.execute(_statement("ANALYZE SCHEMA.events"))

    return fill
