"""A store in one SQLite file: the embedded default, without a server.

The file is in WAL mode. Each append is one transaction that takes the write lock first, so that
several processes may share the file: whoever is second gets a `ConflictError`, never half a batch.
Not here: what a call promises (`base`), and when other processes' events are looked for
(`sqlite_polling`).
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import Enum
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Literal

from assembler.engine.errors import InputError
from assembler.engine.events import Draft, Event
from assembler.stores.base import (
    Limits,
    Listed,
    StoreError,
    StoreMissing,
    SyncStore,
    answer,
    body,
    contiguous,
    decoded,
)
from assembler.stores.sqlite_polling import Polling
from assembler.stores.store import Store
from assembler.stores.upcasting import Upcasters

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
_LAST = "SELECT last FROM conversations WHERE name = ?"
_IDS_AT_ONCE = 500  # of one query; SQLite allows 999 and more
_BUSY_RETRY_S = 0.01
_MS_MAX = 2**31 - 1  # SQLite's own
_CANNOT_WRITE = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)


class _Access(Enum):
    """How the file is opened, as SQLite has it said."""

    WRITE = ""
    READ = "mode=ro"
    READ_ALONE = "mode=ro&immutable=1"


class SQLiteStore(Store):
    """Keeps all conversations in the SQLite file `path`, which is made when it is not there.

    With `create=False` nothing is made: what is no store yet is a `StoreMissing`.

    `synchronous="full"`, the default, has each append written through to the disk: what was
    acknowledged survives a loss of power. `"normal"` does that at checkpoints alone: what was
    acknowledged survives the end of the process, however sudden, and may be lost with the power;
    appends are several times as fast. `busy_timeout_ms`: how long a call waits for a process that
    is writing before it raises `StoreError`.

    Several processes of one machine may share the file (not over a network: see SQLite's WAL).
    What others wrote is found within `poll_ms`, by a thread that looks while somebody listens.

    A file that cannot be written, or is on a medium that cannot, is opened for reading: an append
    raises `StoreError`. On such a medium the file must be whole by itself: with a `-wal` beside it,
    which may hold its newest events, it is refused.
    """

    def __init__(  # noqa: PLR0913 - options, each by its name
        self,
        path: str | os.PathLike[str],
        *,
        create: bool = True,
        synchronous: Literal["full", "normal"] = "full",
        busy_timeout_ms: int = 10_000,
        poll_ms: int = 100,
        limits: Limits | None = None,
        upcasters: Upcasters | None = None,
    ) -> None:
        if synchronous not in ("full", "normal"):
            raise InputError(f"synchronous: expected 'full' or 'normal', got {synchronous!r:.80}")
        _need_ms("busy_timeout_ms", busy_timeout_ms, 0)
        _need_ms("poll_ms", poll_ms, 1)
        name = os.fsdecode(path)
        if not name or "\0" in name:  # SQLite keeps what has no name until it is closed
            raise InputError(f"path: expected the name of a file, got {name!r:.80}")
        core = _SQLite(name, limits, upcasters)
        core.create = create
        core.synchronous = synchronous
        core.busy_timeout_ms = busy_timeout_ms
        core.poll_ms = poll_ms
        super().__init__(core)


def _need_ms(name: str, value: object, least: int) -> None:
    if type(value) is not int or not least <= value <= _MS_MAX:
        raise InputError(
            f"{name}: expected an integer from {least} to {_MS_MAX:,}, got {value!r:.80}"
        )


class _SQLite(SyncStore):
    create: bool
    synchronous: str
    busy_timeout_ms: int
    poll_ms: int

    def __init__(self, path: str, limits: Limits | None, upcasters: Upcasters | None) -> None:
        super().__init__(limits, upcasters)
        self._path = path
        self._watchable = True
        self._connection: sqlite3.Connection | None = None
        self._polling: Polling | None = None

    # -- life ----------------------------------------------------------------------------

    def _open(self) -> None:
        if not self.create:
            self._need_file()
        with _explained(self._path):
            try:
                self._connection = self._prepared(_Access.WRITE)
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF not in _CANNOT_WRITE or not self._is_file():
                    raise
                self._connection = self._opened_for_reading()

    def _need_file(self) -> None:
        with suppress(OSError):  # what else is wrong SQLite says
            if not Path(self._path).exists():
                raise StoreMissing(f"{self._path}: no such file")

    def _is_file(self) -> bool:
        with suppress(OSError):  # in a folder that may not be looked into
            return Path(self._path).is_file()
        return False

    def _opened_for_reading(self) -> sqlite3.Connection:
        try:
            return self._prepared(_Access.READ)
        except sqlite3.OperationalError as error:
            # The files that go with a WAL cannot be made here. Without them SQLite reads what it
            # is told that nobody changes.
            if error.sqlite_errorcode & 0xFF not in _CANNOT_WRITE:
                raise
            for ending in ("-wal", "-journal"):
                beside = Path(self._path + ending)
                if beside.exists() and beside.stat().st_size:
                    raise StoreError(
                        f"{self._path}: it cannot be read where nothing can be written, as its "
                        f"{ending} may hold events: copy both to another place"
                    ) from error
        return self._prepared(_Access.READ_ALONE)

    def _prepared(self, access: _Access) -> sqlite3.Connection:
        connection = self._connect(access)
        try:
            if access is _Access.WRITE:
                self._prepare(connection)
            else:
                self._check_schema(connection)
        except BaseException:
            connection.close()
            raise
        self._watchable = access is not _Access.READ_ALONE
        return connection

    def _connect(self, access: _Access) -> sqlite3.Connection:
        path = self._path
        if access is not _Access.WRITE:
            path = f"{Path(path).absolute().as_uri()}?{access.value}"
        return sqlite3.connect(
            path,
            uri=access is not _Access.WRITE,
            timeout=self.busy_timeout_ms / 1000,
            isolation_level=None,  # transactions begin where `_writing` begins them
            check_same_thread=False,  # the lock of the store is held at each call
        )

    def _prepare(self, connection: sqlite3.Connection) -> None:
        if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
            with _writing(connection):
                _make_schema(connection, self._path, create=self.create)
        self._check_schema(connection)
        self._until_free(lambda: connection.execute("PRAGMA journal_mode = WAL").fetchone())
        connection.execute(f"PRAGMA synchronous = {self.synchronous}")

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
        deadline = monotonic() + self.busy_timeout_ms / 1000
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

    def close(self) -> None:
        """Close it for good; a second time changes nothing. What listens hears a 0."""
        with self._lock:
            polling, self._polling = self._polling, None
            self._watchable = False
        if polling is not None:
            # Not within the lock, which its thread may wait for; and first, since whoever closes
            # the file last must be able to write its WAL back into it.
            polling.end()
        super().close()

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
        try:
            return self._append_on(connection, conversation, drafts, expected_seq)
        finally:
            if connection.in_transaction:  # it could not even be undone: begin anew
                self._close()
                self._opened = False

    def _append_on(
        self,
        connection: sqlite3.Connection,
        conversation: str,
        drafts: Sequence[Draft],
        expected_seq: int,
    ) -> tuple[list[Event], int]:
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
        rows = self._ask(_LAST, conversation)
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

    # -- what other processes write --------------------------------------------------------

    def _watch(self) -> None:
        if self._polling is None and self._watchable and self._is_file():
            self._polling = Polling(
                lambda: self._connect(_Access.READ), self._look, self._listened, self.poll_ms
            )

    def _listened(self) -> bool:
        """Whether somebody listens; when not, the thread that asks ends."""
        with self._lock:
            if not self._listeners:
                self._polling = None
            return bool(self._listeners)

    def _look(self, connection: sqlite3.Connection) -> None:
        """Tell how far each conversation is that somebody listens to."""
        with self._lock:
            names = [*self._listeners]
        for name in names:
            for (last,) in connection.execute(_LAST, (name,)).fetchall():
                self._tell(name, last)


def _make_schema(connection: sqlite3.Connection, path: str, *, create: bool) -> None:
    """Make the tables, unless another process was quicker."""
    if connection.execute("PRAGMA user_version").fetchone()[0] != 0:
        return
    if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise StoreError(f"{path}: this database is of another program")
    if not create:
        raise StoreMissing(f"{path}: there is no store in it")
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
            with suppress(sqlite3.Error):  # what went wrong first is told
                connection.execute("ROLLBACK")
        raise


@contextmanager
def _explained(path: str) -> Iterator[None]:
    """What SQLite raises, as a `StoreError` of one line; it never speaks of contents."""
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(f"{path}: {error}") from error
