"""The database of a `PostgresStore`: its address, its connections, its tables and their versions.

What PostgreSQL raises leaves this file as one line, without a password or contents. Not here: what
is asked of it (`postgres`), and what it says unasked (`postgres_notices`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus
from psycopg_pool import ConnectionPool, PoolTimeout

from assembler.engine.errors import InputError
from assembler.stores.base import StoreError, StoreMissing

__all__ = ["SCHEMA_VERSION", "Connection", "Database", "need_schema", "together"]

Connection = psycopg.Connection[tuple[Any, ...]]
T = TypeVar("T")

# What brings the tables from each version to the next; the first makes them. A step that has been
# published never changes. `last` is the seq of the last event, and so their number.
_STEPS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE SCHEMA.version (number integer NOT NULL)",
        "INSERT INTO SCHEMA.version VALUES (0)",
        """CREATE TABLE SCHEMA.conversations (
            number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            name bytea NOT NULL UNIQUE,
            last bigint NOT NULL,
            first_time bigint NOT NULL,
            last_time bigint NOT NULL
        )""",
        "CREATE INDEX conversations_by_time ON SCHEMA.conversations (last_time DESC, name)",
        """CREATE TABLE SCHEMA.events (
            conversation bigint NOT NULL REFERENCES SCHEMA.conversations,
            seq bigint NOT NULL,
            id bytea,
            type bytea NOT NULL,
            body bytea NOT NULL,
            PRIMARY KEY (conversation, seq)
        )""",
        "CREATE UNIQUE INDEX events_by_id ON SCHEMA.events (conversation, id) WHERE id IS NOT NULL",
        "CREATE INDEX events_by_type ON SCHEMA.events (conversation, type, seq)",
    ),
)
SCHEMA_VERSION = len(_STEPS)

_SCHEMA_NAME = re.compile(r"[a-z_][a-z0-9_]{0,39}")
_SETTINGS = """
    SELECT set_config('lock_timeout', %s, false),
        set_config('default_transaction_isolation', 'read committed', false),
        set_config('synchronous_commit', coalesce(
            nullif(current_setting('synchronous_commit'), 'off'), 'on'), false)
"""  # an append is acknowledged when it is on disk, whatever the server is used to
# Asked of the catalogue itself: `to_regclass` may remember what was before a wait for a lock.
_TABLES = """
    SELECT relname FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace n ON n.oid = relnamespace
    WHERE nspname = %s AND relname IN ('version', 'conversations', 'events')
"""
_NAMESPACE = "SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = %s"
_USUAL = {
    "fallback_application_name": "conversation-assembler",
    "client_encoding": "UTF8",
    "connect_timeout": 10,
    # a machine that is gone without a word is found out
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
}
_LINE_CHARS_MAX = 300
_CLOSE_S = 1.0


def need_schema(name: object) -> None:
    """`InputError` for what needs quotes as a name in PostgreSQL, or is too long for a channel."""
    if type(name) is not str or not _SCHEMA_NAME.fullmatch(name):
        raise InputError(
            "schema: expected at most 40 small letters, digits and underscores, "
            f"no digit first, got {name!r:.80}"
        )


class Database:
    """One schema of one database, and the pool of connections to it. For any thread."""

    def __init__(
        self,
        dsn: str,
        schema: str,
        connections_max: int,
        busy_timeout_ms: int,
        *,
        create: bool = True,
    ) -> None:
        self._settings = _settings(dsn)
        self._create = create
        self._schema = schema
        self._connections_max = connections_max
        self._busy_timeout_ms = busy_timeout_ms
        self._statements: dict[str, bytes] = {}
        self._pool: ConnectionPool[Connection] | None = None
        self.channel = f"{schema}_events"
        self.place = f"PostgreSQL, schema {schema}"

    def statement(self, query: str) -> bytes:
        """`query`, in which `SCHEMA` stands for that of this database."""
        made = self._statements.get(query)
        if made is None:
            made = query.replace("SCHEMA", f'"{self._schema}"').encode()
            self._statements[query] = made
        return made

    # -- life ----------------------------------------------------------------------------

    def open(self) -> None:
        """Make or migrate the tables where needed. Raises `StoreError`."""
        with self.explained():
            connection = self.connect()
            try:
                self._prepare(connection)
            finally:
                connection.close()
        self._pool = ConnectionPool(
            kwargs=self._settings | {"autocommit": True},
            connection_class=psycopg.Connection[tuple[Any, ...]],
            min_size=0,
            max_size=self._connections_max,
            timeout=self._busy_timeout_ms / 1000,
            configure=self._configure,
            open=True,
        )

    def close(self) -> None:
        if self._pool is not None:
            self._pool.close(timeout=_CLOSE_S)
            self._pool = None

    def connect(self) -> Connection:
        """A connection of its own, beside the pool. Raises what psycopg raises."""
        connection = psycopg.connect(**self._settings, autocommit=True)
        try:
            self._configure(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _configure(self, connection: Connection) -> None:
        connection.execute(_SETTINGS, (f"{self._busy_timeout_ms}ms",))

    def _prepare(self, connection: Connection) -> None:
        if self._version(connection) != SCHEMA_VERSION:
            with connection.transaction():
                # one process at a time, and whoever waited finds it done
                key = f"conversation-assembler {self._schema}"
                connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (key,))
                self._migrate(connection, self._version(connection))

    def _version(self, connection: Connection) -> int:
        """0 when there are no tables of ours."""
        found = {name for (name,) in connection.execute(_TABLES, (self._schema,))}
        if "version" in found:
            rows = connection.execute(self.statement("SELECT number FROM SCHEMA.version"))
            return int(rows.fetchall()[0][0])
        if found:
            raise StoreError(f"{self.place}: it has tables of another program")
        return 0

    def _migrate(self, connection: Connection, version: int) -> None:
        if version > SCHEMA_VERSION:
            raise StoreError(
                f"{self.place}: made by a newer version (its tables are {version}, "
                f"this one knows {SCHEMA_VERSION})"
            )
        if version == SCHEMA_VERSION:
            return
        if version == 0 and not self._create:
            raise StoreMissing(f"{self.place}: there is no store in it")
        exists = connection.execute(_NAMESPACE, (self._schema,)).fetchall()
        if not exists:  # (to ask first needs no right to make one)
            connection.execute(self.statement("create schema SCHEMA"))
        for step in _STEPS[version:]:
            for query in step:
                connection.execute(self.statement(query))
        connection.execute(
            self.statement("UPDATE SCHEMA.version SET number = %s"), (SCHEMA_VERSION,)
        )

    # -- asking --------------------------------------------------------------------------

    def ask(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """The rows of one statement that changes nothing."""
        statement = self.statement(query)
        return self.run(lambda given: given.execute(statement, values, binary=True).fetchall())

    def run(self, work: Callable[[Connection], T]) -> T:
        """What `work` makes of a connection; what it leaves uncommitted is undone.

        A connection that the server ended while nobody used it is found out by using it: then
        the work is done again on another, once.
        """
        with self.explained():
            try:
                return self._run(work)
            except _Lost:
                self._need_pool().check()
            try:
                return self._run(work)
            except _Lost as lost:
                raise lost.error from None

    def _run(self, work: Callable[[Connection], T]) -> T:
        with self._borrowed() as connection:
            try:
                return work(connection)
            except psycopg.Error as error:
                if connection.closed:
                    raise _Lost(error) from None
                raise
            finally:
                with suppress(psycopg.Error):
                    if connection.info.transaction_status != TransactionStatus.IDLE:
                        connection.rollback()

    @contextmanager
    def _borrowed(self) -> Iterator[Connection]:
        pool = self._need_pool()
        try:
            connection = pool.getconn()
        except PoolTimeout:
            raise self._unreachable() from None
        try:
            yield connection
        finally:
            pool.putconn(connection)

    def _need_pool(self) -> ConnectionPool[Connection]:
        if self._pool is None:
            raise StoreError("the store is closed")
        return self._pool

    def _unreachable(self) -> StoreError:
        """Why there was no connection in time: the pool does not say, a new one does."""
        try:
            self.connect().close()
        except psycopg.Error as error:
            return StoreError(f"{self.place}: {self._line(error)}")
        return StoreError(
            f"{self.place}: no connection is free: {self._connections_max} have been in use for "
            f"{self._busy_timeout_ms} ms"
        )

    # -- errors --------------------------------------------------------------------------

    @contextmanager
    def explained(self) -> Iterator[None]:
        """What psycopg raises, as a `StoreError` of one line; it never speaks of contents."""
        try:
            yield
        except psycopg.Error as error:
            raise StoreError(f"{self.place}: {self._line(error)}") from None

    def _line(self, error: psycopg.Error) -> str:
        """What the server says first (its details hold values), or why it was not reached."""
        line = " ".join((error.diag.message_primary or str(error)).split())
        for name in ("password", "sslpassword"):
            if secret := self._settings.get(name):
                line = line.replace(str(secret), "***")
        return line[:_LINE_CHARS_MAX] or type(error).__name__


class _Lost(Exception):  # noqa: N818 - never leaves this file
    def __init__(self, error: psycopg.Error) -> None:
        super().__init__()
        self.error = error


def together(connection: Connection) -> AbstractContextManager[object]:
    """Within it, statements are sent without waiting for the answer of the one before."""
    if psycopg.Pipeline.is_supported():
        return connection.pipeline()
    return nullcontext()


def _settings(dsn: object) -> dict[str, Any]:
    """A connection string taken apart. An error says nothing of it: it may hold a password."""
    if type(dsn) is not str or not dsn:
        raise InputError("dsn: expected a connection string or URI of PostgreSQL")
    try:
        given = conninfo_to_dict(dsn)
    except psycopg.Error:
        raise InputError("dsn: not a connection string or URI of PostgreSQL") from None
    # Where a password was written as it is, its rest stands here, and would be told in errors.
    host, port = str(given.get("host") or ""), str(given.get("port") or "")
    if "@" in host or not port.replace(",", "0").isdecimal() != (not port):
        raise InputError("dsn: its host or port is none; special letters of a password need %XX")
    return _USUAL | given
