"""A store in a PostgreSQL database: for several processes and machines.

Each append is one transaction that locks the row of its conversation first, so that whoever is
second sees what the first wrote. Here stand the statements; not here: what a call promises
(`base`), tables and connections (`postgres_database`), news of other processes
(`postgres_notices`).

Names, types, ids and bodies are kept as the bytes of their UTF-8 (`bytea`), whatever the encoding
and the collation of the database. To read them by hand: `convert_from(body, 'UTF8')`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from secrets import token_hex
from typing import Any

import psycopg

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
from assembler.stores.postgres_database import Connection, Database, need_schema, together
from assembler.stores.postgres_notices import Notices, notice
from assembler.stores.store import Store
from assembler.stores.upcasting import Upcasters

__all__ = ["PostgresStore"]

# `SCHEMA` is filled in by the database (`postgres_database`), the other words in capitals here.
_LOCK = "SELECT number, last FROM SCHEMA.conversations WHERE name = %b FOR UPDATE"
_BEGIN = """
    INSERT INTO SCHEMA.conversations (name, last, first_time, last_time) VALUES (%b, 0, %b, 0)
    ON CONFLICT (name) DO NOTHING RETURNING number
"""
_INSERT = """
    INSERT INTO SCHEMA.events (conversation, seq, id, type, body)
    SELECT %b, * FROM unnest(%b::bigint[], %b::bytea[], %b::bytea[], %b::bytea[])
"""
_NOTE = "UPDATE SCHEMA.conversations SET last = %b, last_time = %b WHERE number = %b"
_TELL = "SELECT pg_notify(%s, %s)"
_LAST = "SELECT last FROM SCHEMA.conversations WHERE name = %b"
_LASTS = "SELECT name, last FROM SCHEMA.conversations WHERE name = ANY(%b::bytea[])"

_ITS = """
    SELECT seq, body FROM SCHEMA.events
    WHERE conversation = (SELECT number FROM SCHEMA.conversations WHERE name = %b)
"""
_STORED = _ITS + "AND id = ANY(%b::bytea[])"
_PAGE = _ITS + "AND seq < %b ORDER BY seq DESC LIMIT %b"
_READ = _ITS + "AND seq > %b ORDER BY seq LIMIT %b"

# The newest of each wanted type of conversation c, each by a look into the index.
_NEWEST_OF_C = """(
    SELECT found.* FROM unnest(%b::bytea[]) AS wanted (type) CROSS JOIN LATERAL (
        SELECT seq, body FROM SCHEMA.events
        WHERE conversation = c.number AND type = wanted.type ORDER BY seq DESC LIMIT 1
    ) AS found
)"""
_NEWEST = """
    SELECT newest.* FROM SCHEMA.conversations AS c CROSS JOIN LATERAL NEWEST_OF_C AS newest
    WHERE c.name = %b
""".replace("NEWEST_OF_C", _NEWEST_OF_C)
_LISTED = """
    SELECT c.name, c.last, c.first_time, c.last_time, newest.seq, newest.body FROM (
        SELECT * FROM SCHEMA.conversations BEHIND ORDER BY last_time DESC, name LIMIT %b
    ) AS c LEFT JOIN LATERAL NEWEST_OF_C AS newest ON true
    ORDER BY c.last_time DESC, c.name
""".replace("NEWEST_OF_C", _NEWEST_OF_C)
_LISTED_FIRST = _LISTED.replace("BEHIND", "")
_LISTED_ON = _LISTED.replace("BEHIND", "WHERE last_time <= %b AND (last_time < %b OR name > %b)")

_NAME_BYTES_MAX = 2_500  # what an index of PostgreSQL takes, and a notice of a name
_INSERT_BYTES = 8 << 20  # about so much in one statement; PostgreSQL refuses 1 GB
_MS_MAX = 2**31 - 1


class PostgresStore(Store):
    """Keeps all conversations in the schema `schema` of the PostgreSQL database `dsn`.

    `dsn` is a connection string or URI of libpq. Schema and tables are made when they are not
    there (with `create=False` that is a `StoreMissing`), and brought to this version when they are
    older. At most `pool_connections_max`
    connections are open at a time, each opened when it is needed, and one more while somebody
    listens; so many calls go on side by side, the others wait. `busy_timeout_ms`: how long a call
    waits for a connection, and then for a writer to the same conversation, before it raises
    `StoreError`.

    Events of other processes are heard with their commit (`NOTIFY`). `listen_check_ms`: how often
    it is asked whether a notice was missed; a listening connection that was lost is made again,
    and then all are asked for that somebody listens to.

    An append whose connection is lost while it is being stored is a `StoreError`: it may be
    stored, or not. Read, or append again under the same ids. No error and no log holds a
    password, a name or an event.
    """

    def __init__(  # noqa: PLR0913 - options, each by its name
        self,
        dsn: str,
        *,
        schema: str = "assembler",
        create: bool = True,
        pool_connections_max: int = 4,
        busy_timeout_ms: int = 10_000,
        listen_check_ms: int = 15_000,
        limits: Limits | None = None,
        upcasters: Upcasters | None = None,
    ) -> None:
        need_schema(schema)
        _need_count("pool_connections_max", pool_connections_max, 1_000)
        _need_count("busy_timeout_ms", busy_timeout_ms, _MS_MAX)
        _need_count("listen_check_ms", listen_check_ms, _MS_MAX)
        if limits is not None and limits.name_bytes_max > _NAME_BYTES_MAX:
            raise InputError(f"limits: name_bytes_max: expected at most {_NAME_BYTES_MAX}")
        database = Database(dsn, schema, pool_connections_max, busy_timeout_ms, create=create)
        core = _Postgres(database, listen_check_ms, limits, upcasters)
        super().__init__(core, pool_connections_max)


def _need_count(name: str, value: object, most: int) -> None:
    if type(value) is not int or not 1 <= value <= most:
        raise InputError(f"{name}: expected an integer from 1 to {most:,}, got {value!r:.80}")


class _Postgres(SyncStore):
    def __init__(
        self,
        database: Database,
        listen_check_ms: int,
        limits: Limits | None,
        upcasters: Upcasters | None,
    ) -> None:
        super().__init__(limits, upcasters)
        self._database = database
        self._listen_check_ms = listen_check_ms
        self._writer = token_hex(8)
        """Whose notices are not heard, since they were told already."""
        self._notices: Notices | None = None

    # -- life ----------------------------------------------------------------------------

    def _open(self) -> None:
        self._database.open()

    def _close(self) -> None:
        self._database.close()

    def close(self) -> None:
        """Close it for good; a second time changes nothing. What listens hears a 0."""
        super().close()
        notices = self._notices
        if notices is not None:  # not within the lock, which its thread may wait for
            notices.end()

    @contextmanager
    def _call(self) -> Iterator[None]:
        with self._lock:
            self._ready()
        yield

    # -- writing -------------------------------------------------------------------------

    def _append(
        self, conversation: str, drafts: Sequence[Draft], expected_seq: int
    ) -> tuple[list[Event], int]:
        return self._database.run(
            lambda connection: self._append_on(connection, conversation, drafts, expected_seq)
        )

    def _append_on(
        self,
        connection: Connection,
        conversation: str,
        drafts: Sequence[Draft],
        expected_seq: int,
    ) -> tuple[list[Event], int]:
        name = conversation.encode()
        ids = [each.id.encode() for each in drafts if each.id is not None]
        connection.execute("BEGIN")
        number = None
        while True:
            found, stored = self._locked(connection, name, ids)
            number, last = found or (None, 0)
            events, fresh = answer(drafts, stored, last, expected_seq)
            if not fresh:
                return events, 0
            if number is None:
                number = self._begun(connection, name, fresh[0].time)
            if number is not None:
                break  # else another made it meanwhile: look again
        self._store(connection, number, conversation, fresh)
        return events, len(fresh)

    def _locked(
        self, connection: Connection, name: bytes, ids: Sequence[bytes]
    ) -> tuple[tuple[int, int] | None, dict[str, Event]]:
        """The conversation's number and last seq, which nobody else changes until the commit, and
        the events, by id, that it has of these ids."""
        statement = self._database.statement
        with together(connection):
            found = connection.execute(statement(_LOCK), (name,), binary=True)
            stored = (
                connection.execute(statement(_STORED), (name, ids), binary=True) if ids else None
            )
            row = found.fetchone()
            rows = stored.fetchall() if stored is not None else []
        events = [decoded(self._database.place, *each) for each in rows]
        by_id = {event.id: event for event in events if event.id is not None}
        return (None if row is None else (row[0], row[1])), by_id

    def _begun(self, connection: Connection, name: bytes, time: int) -> int | None:
        """The number of a new conversation; None when another writer was quicker."""
        statement = self._database.statement(_BEGIN)
        row = connection.execute(statement, (name, time), binary=True).fetchone()
        return None if row is None else int(row[0])

    def _store(
        self, connection: Connection, number: int, conversation: str, fresh: Sequence[Event]
    ) -> None:
        """Write and commit, and have the others told with the commit."""
        batches = [*self._batches(fresh)]  # here, so that one that is too long is not sent
        last = fresh[-1]
        statement = self._database.statement
        told = notice(self._writer, last.seq, conversation)
        try:
            with together(connection):
                for columns in batches:
                    connection.execute(statement(_INSERT), (number, *columns))
                connection.execute(statement(_NOTE), (last.seq, last.time, number))
                connection.execute(_TELL, (self._database.channel, told))
                connection.execute("COMMIT")
        except psycopg.Error:
            if connection.closed:
                raise StoreError(
                    f"{self._database.place}: the connection was lost while events were being "
                    "stored: they may be stored, or not"
                ) from None
            raise

    def _batches(self, fresh: Sequence[Event]) -> Iterator[tuple[list[object], ...]]:
        """The columns of what is written, a statement at a time."""
        rows: list[tuple[object, ...]] = []
        size = 0
        for event in fresh:
            text = body(event, self.limits)
            if rows and size + len(text) > _INSERT_BYTES:
                yield _columns(rows)
                rows, size = [], 0
            id_ = None if event.id is None else event.id.encode()
            rows.append((event.seq, id_, event.type.encode(), text))
            size += len(text)
        yield _columns(rows)

    # -- reading -------------------------------------------------------------------------

    def _page(self, conversation: str, before: int, limit: int) -> list[Event]:
        rows = self._database.ask(_PAGE, conversation.encode(), before, limit)[::-1]
        return contiguous(self._database.place, rows, rows[0][0]) if rows else []

    def _read(self, conversation: str, after: int, limit: int | None) -> list[Event]:
        rows = self._database.ask(_READ, conversation.encode(), after, limit)
        return contiguous(self._database.place, rows, after + 1)

    def _last(self, conversation: str) -> int:
        rows = self._database.ask(_LAST, conversation.encode())
        return int(rows[0][0]) if rows else 0

    def _newest(self, conversation: str, types: Sequence[str]) -> dict[str, Event]:
        wanted = [each.encode() for each in types]
        rows = self._database.ask(_NEWEST, wanted, conversation.encode())
        found = [decoded(self._database.place, *row) for row in rows]
        return {event.type: event for event in found}

    def _conversations(
        self, newest: Sequence[str], limit: int, before: Listed | None
    ) -> list[Listed]:
        wanted = [each.encode() for each in newest]
        if before is None:
            rows = self._database.ask(_LISTED_FIRST, limit, wanted)
        else:
            time, name = before.last_time, before.conversation.encode()
            rows = self._database.ask(_LISTED_ON, time, time, name, limit, wanted)
        return self._listed(rows)

    def _listed(self, rows: Iterable[tuple[Any, ...]]) -> list[Listed]:
        """Of rows of conversations, one for each newest event of theirs, or one without any."""
        found: dict[bytes, tuple[str, int, int, int]] = {}
        newest: dict[bytes, dict[str, Event]] = {}
        for name, last, first_time, last_time, seq, text in rows:
            found[name] = (name.decode(), last, first_time, last_time)
            its = newest.setdefault(name, {})
            if seq is not None:
                event = decoded(self._database.place, seq, text)
                its[event.type] = event
        return [Listed(*entry, newest[name]) for name, entry in found.items()]

    # -- what other processes write --------------------------------------------------------

    def _watch(self) -> None:
        if self._notices is None:
            self._notices = Notices(
                self._database, self._writer, self._tell, self._catch_up, self._listen_check_ms
            )

    def _catch_up(self, connection: Connection) -> None:
        with self._lock:
            names = [each.encode() for each in self._listeners]
        statement = self._database.statement(_LASTS)
        for name, last in connection.execute(statement, (names,), binary=True).fetchall():
            if last:
                self._tell(name.decode(), last)


def _columns(rows: Sequence[tuple[object, ...]]) -> tuple[list[object], ...]:
    return tuple([*column] for column in zip(*rows, strict=True))
