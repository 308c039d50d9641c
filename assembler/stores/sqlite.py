"""A store in one SQLite file: the embedded default, without a server.

The file is in WAL mode. Each append is one transaction that takes the write lock first, so that
several processes may share the file: whoever is second gets a `ConflictError`, never half a batch.
Not here: what a call promises (`base`).
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic, sleep
from typing import Any, Literal

from assembler.engine.errors import InputError
from assembler.engine.events import Draft, Event
from assembler.stores.base import (
    Limits,
    Listed,
    StoreError,
    SyncStore,
    answer,
    body,
    contiguous,
    decoded,
)
from assembler.stores.store import Store

__all__ = ["SQLiteStore"]

APPLICATION_ID = 0x43_41_73_6D
"""Written into the head of the file, so that other programs' files are not taken for ours."""
SCHEMA_VERSION = 1

# `last` is the seq of the last event, and so their number.
_SCHEMA = (
    """CREATE TABLE conversations (
        number INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        last INTEGER NOT NULL,
        first_time INTEGER NOT NULL,
        last_time INTEGER NOT NULL
    )""",
    "CREATE INDEX conversations_by_time ON conversations (last_time DESC, name)",
    """CREATE TABLE events (
        conversation INTEGER NOT NULL REFERENCES conversations,
        seq INTEGER NOT NULL,
        id TEXT,
        type TEXT NOT NULL,
        body TEXT NOT NULL,
        UNIQUE (conversation, seq),
        UNIQUE (conversation, id)
    )""",
    "CREATE INDEX events_by_type ON events (conversation, type, seq)",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)
# As bytes: what is no text is then told of by us, without its contents.
_EVENTS = "SELECT seq, CAST(body AS BLOB) FROM events"
_ITS = "conversation = (SELECT number FROM conversations WHERE name = ?)"
_IDS_AT_ONCE = 500  # of one query; SQLite allows 999 and more
_BUSY_RETRY_S = 0.01
_BUSY_MAX_MS = 2**31 - 1  # SQLite's own


class SQLiteStore(Store):
    """Keeps all conversations in the SQLite file `path`, which is made when it is not there.

    `synchronous="full"`, the default, has each append written through to the disk: what was
    acknowledged survives a loss of power. `"normal"` does that at checkpoints alone: what was
    acknowledged survives the end of the process, however sudden, and may be lost with the power;
    appends are several times as fast. `busy_timeout_ms`: how long a call waits for a process that
    is writing before it raises `StoreError`.

    Other processes' events are read and conflict like any; a `Feed` hears of this one's alone.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        synchronous: Literal["full", "normal"] = "full",
        busy_timeout_ms: int = 10_000,
        limits: Limits | None = None,
    ) -> None:
        if synchronous not in ("full", "normal"):
            raise InputError(f"synchronous: expected 'full' or 'normal', got {synchronous!r:.80}")
        if type(busy_timeout_ms) is not int or not 0 <= busy_timeout_ms <= _BUSY_MAX_MS:
            raise InputError(
                f"busy_timeout_ms: expected an integer from 0 to {_BUSY_MAX_MS:,}, "
                f"got {busy_timeout_ms!r:.80}"
            )
        name = os.fsdecode(path)
        if not name or "\0" in name:  # SQLite keeps what has no name until it is closed
            raise InputError(f"path: expected the name of a file, got {name!r:.80}")
        super().__init__(_SQLite(name, synchronous, busy_timeout_ms, limits))


class _SQLite(SyncStore):
    def __init__(
        self, path: str, synchronous: str, busy_timeout_ms: int, limits: Limits | None
    ) -> None:
        super().__init__(limits)
        self._path = path
        self._synchronous = synchronous
        self._busy_timeout_ms = busy_timeout_ms
        self._connection: sqlite3.Connection | None = None

    # -- life ----------------------------------------------------------------------------

    def _open(self) -> None:
        with _explained(self._path):
            connection = sqlite3.connect(
                self._path,
                timeout=self._busy_timeout_ms / 1000,
                isolation_level=None,  # transactions begin where `_writing` begins them
                check_same_thread=False,  # the lock of the store is held at each call
            )
        try:
            with _explained(self._path):
                self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        self._connection = connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
            with _writing(connection):
                _make_schema(connection, self._path)
        self._check_schema(connection)
        self._until_free(lambda: connection.execute("PRAGMA journal_mode = WAL").fetchone())
        connection.execute(f"PRAGMA synchronous = {self._synchronous}")

    def _check_schema(self, connection: sqlite3.Connection) -> None:
        if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
            raise StoreError(f"{self._path}: this database is of another program")
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version != SCHEMA_VERSION:
            raise StoreError(
                f"{self._path}: made by another version (its schema is {version}, "
                f"this one knows {SCHEMA_VERSION})"
            )

    def _until_free(self, ask: Callable[[], object]) -> None:
        """Changing to WAL does not wait for a process that opens the file at the same moment."""
        deadline = monotonic() + self._busy_timeout_ms / 1000
        while True:
            try:
                ask()
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or monotonic() > deadline:
                    raise
                sleep(_BUSY_RETRY_S)
            else:
                return

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _ask(self, query: str, *values: object) -> list[Any]:
        if self._connection is None:
            raise StoreError("the store is closed")
        with _explained(self._path):
            return self._connection.execute(query, values).fetchall()

    # -- writing -------------------------------------------------------------------------

    def _append(
        self, conversation: str, drafts: Sequence[Draft], expected_seq: int
    ) -> tuple[list[Event], int]:
        connection = self._connection
        if connection is None:
            raise StoreError("the store is closed")
        with _explained(self._path), _writing(connection):
            stored = self._stored(conversation, [each.id for each in drafts if each.id is not None])
            last = self._last(conversation)
            events, fresh = answer(drafts, stored, last, expected_seq)
            if fresh:
                number = self._number(conversation, fresh)
                connection.executemany(
                    "INSERT INTO events (conversation, seq, id, type, body) VALUES (?, ?, ?, ?, ?)",
                    [
                        (number, each.seq, each.id, each.type, body(each, self.limits).decode())
                        for each in fresh
                    ],
                )
        return events, len(fresh)

    def _stored(self, conversation: str, ids: Sequence[str]) -> dict[str, Event]:
        """The events, by id, that the conversation has of these ids."""
        found: dict[str, Event] = {}
        for at in range(0, len(ids), _IDS_AT_ONCE):
            some = ids[at : at + _IDS_AT_ONCE]
            marks = ", ".join("?" * len(some))
            query = f"{_EVENTS} WHERE {_ITS} AND id IN ({marks})"
            events = [decoded(self._path, *row) for row in self._ask(query, conversation, *some)]
            found |= {event.id: event for event in events if event.id is not None}
        return found

    def _number(self, conversation: str, fresh: Sequence[Event]) -> int:
        """Note in the list what is about to be written; the conversation's number in the file."""
        query = """
            INSERT INTO conversations (name, last, first_time, last_time) VALUES (?, ?, ?, ?)
            ON CONFLICT (name) DO UPDATE SET last = excluded.last, last_time = excluded.last_time
            RETURNING number
        """
        last = fresh[-1]
        return int(self._ask(query, conversation, last.seq, fresh[0].time, last.time)[0][0])

    # -- reading -------------------------------------------------------------------------

    def _page(self, conversation: str, before: int, limit: int) -> list[Event]:
        query = f"{_EVENTS} WHERE {_ITS} AND seq < ? ORDER BY seq DESC LIMIT ?"
        rows = self._ask(query, conversation, before, limit)[::-1]
        return contiguous(self._path, rows, rows[0][0]) if rows else []

    def _read(self, conversation: str, after: int, limit: int | None) -> list[Event]:
        query = f"{_EVENTS} WHERE {_ITS} AND seq > ? ORDER BY seq LIMIT ?"
        rows = self._ask(query, conversation, after, -1 if limit is None else limit)
        return contiguous(self._path, rows, after + 1)

    def _last(self, conversation: str) -> int:
        rows = self._ask("SELECT last FROM conversations WHERE name = ?", conversation)
        return int(rows[0][0]) if rows else 0

    def _newest(self, conversation: str, types: Sequence[str]) -> dict[str, Event]:
        query = f"{_EVENTS} WHERE {_ITS} AND type = ? ORDER BY seq DESC LIMIT 1"
        found = {each: self._ask(query, conversation, each) for each in types}
        return {each: decoded(self._path, *rows[0]) for each, rows in found.items() if rows}

    def _conversations(
        self, newest: Sequence[str], limit: int, before: Listed | None
    ) -> list[Listed]:
        columns = "SELECT name, last, first_time, last_time FROM conversations"
        order = "ORDER BY last_time DESC, name LIMIT ?"
        if before is None:
            rows = self._ask(f"{columns} {order}", limit)
        else:
            behind = "WHERE last_time < ? OR (last_time = ? AND name > ?)"
            time = before.last_time
            rows = self._ask(f"{columns} {behind} {order}", time, time, before.conversation, limit)
        return [
            Listed(name, last, first_time, last_time, self._newest(name, newest))
            for name, last, first_time, last_time in rows
        ]


def _make_schema(connection: sqlite3.Connection, path: str) -> None:
    """Make the tables, unless another process was quicker."""
    if connection.execute("PRAGMA user_version").fetchone()[0] != 0:
        return
    if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise StoreError(f"{path}: this database is of another program")
    for statement in _SCHEMA:
        connection.execute(statement)


@contextmanager
def _writing(connection: sqlite3.Connection) -> Iterator[None]:
    """One transaction that may write, from its beginning on: all of it or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def _explained(path: str) -> Iterator[None]:
    """What SQLite raises, as a `StoreError` of one line; it never speaks of contents."""
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(f"{path}: {error}") from error
