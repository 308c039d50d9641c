"""What only PostgreSQL can do to us: lost connections, other people's tables, waits, passwords."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from secrets import token_hex
from typing import Any

import psycopg
import pytest

import assembler.stores
from assembler import ConflictError, Draft, InputError, LimitError
from assembler.stores import Limits, PostgresStore, StoreError, postgres_database
from tests.postgres_server import PASSWORD, PostgresServer


@pytest.fixture
def schema() -> str:
    return f"s{token_hex(8)}"


@pytest.fixture
def make(postgres: PostgresServer, schema: str) -> Callable[..., PostgresStore]:
    # long: what is found by a look now and then has not been heard
    def make(**options: Any) -> PostgresStore:
        return PostgresStore(
            postgres.dsn, **{"schema": schema, "listen_check_ms": 600_000} | options
        )

    return make


Make = Callable[..., PostgresStore]


def cut_off(server: PostgresServer, doing: str = "") -> int:
    """End the connections of all stores, or those whose last statement is `doing`."""
    query = """
        SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
        WHERE application_name = 'conversation-assembler' AND query LIKE '%DOING%'
    """
    return len(server.ask(query.replace("DOING", doing)))


@contextmanager
def locked(server: PostgresServer, schema: str) -> Iterator[None]:
    """Somebody is writing to conversation `c`, and does not come to an end."""
    with psycopg.connect(server.dsn) as other:
        query = f"SELECT 1 FROM {schema}.conversations WHERE name = 'c' FOR UPDATE"  # noqa: S608
        other.execute(query.encode())
        yield


# --- tables and their versions


def test_a_newer_version_is_left_alone(postgres: PostgresServer, make: Make, schema: str) -> None:
    with make().sync:
        postgres.ask(f"UPDATE {schema}.version SET number = 99")  # noqa: S608
    with pytest.raises(StoreError) as told:
        make().sync.open()
    assert str(told.value) == (
        f"PostgreSQL, schema {schema}: made by a newer version "
        f"(its tables are 99, this one knows {postgres_database.SCHEMA_VERSION})"
    )


def test_tables_of_another_program_are_left_alone(
    postgres: PostgresServer, make: Make, schema: str
) -> None:
    postgres.ask(f"CREATE SCHEMA {schema}")
    postgres.ask(f"CREATE TABLE {schema}.events (theirs text)")
    with pytest.raises(StoreError, match=f"schema {schema}: it has tables of another program"):
        make().sync.open()
    assert postgres.ask(f"SELECT * FROM {schema}.events") == []  # noqa: S608


def test_an_older_version_is_brought_on(
    postgres: PostgresServer, make: Make, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with make().sync as store:
        log = store.append("c", [Draft("a")], 0)
    step = ("ALTER TABLE SCHEMA.conversations ADD COLUMN note text",)
    monkeypatch.setattr(postgres_database, "_STEPS", (*postgres_database._STEPS, step))
    monkeypatch.setattr(postgres_database, "SCHEMA_VERSION", 2)
    for _ in range(2):
        with make().sync as store:
            assert store.read("c") == log
    assert postgres.ask(f"SELECT number FROM {schema}.version") == [(2,)]  # noqa: S608
    assert postgres.ask(f"SELECT note FROM {schema}.conversations") == [(None,)]  # noqa: S608


def test_a_step_that_fails_changes_nothing(
    make: Make, monkeypatch: pytest.MonkeyPatch, postgres: PostgresServer, schema: str
) -> None:
    with make().sync as store:
        log = store.append("c", [Draft("a")], 0)
    with monkeypatch.context() as patch:
        step = ("DROP TABLE SCHEMA.events", "no statement at all")
        patch.setattr(postgres_database, "_STEPS", (*postgres_database._STEPS, step))
        patch.setattr(postgres_database, "SCHEMA_VERSION", 2)
        with pytest.raises(StoreError, match="syntax error"):
            make().sync.open()
    with make().sync as store:
        assert store.read("c") == log


def test_many_open_a_new_schema_at_once(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    barrier, failed = threading.Barrier(8), []
    prepare = postgres_database.Database._prepare

    def together(database: Any, connection: Any) -> None:
        barrier.wait(20)
        prepare(database, connection)

    monkeypatch.setattr(postgres_database.Database, "_prepare", together)

    def write(name: str) -> None:
        try:
            with make().sync as store:
                store.append(name, [Draft("a")], 0)
        except StoreError as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(str(at),)) for at in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    monkeypatch.undo()
    with make().sync as store:
        assert len(store.conversations()) == 8


# --- connections


def test_a_store_goes_on_when_its_connections_were_ended(
    postgres: PostgresServer, make: Make
) -> None:
    with make().sync as store:
        store.append("c", [Draft("a")], 0)
        assert cut_off(postgres)
        assert [event.seq for event in store.append("c", [Draft("b")], 1)] == [2]
        assert cut_off(postgres)
        assert [event.type for event in store.read("c")] == ["a", "b"]


def test_a_feed_misses_nothing_when_its_connection_is_lost(
    postgres: PostgresServer, make: Make
) -> None:
    async def run() -> None:
        async with make() as store, make() as other, store.subscribe("c") as feed:
            for at in range(1, 9, 2):
                await other.append("c", [Draft("a")], at - 1)
                assert (await anext(feed)).seq == at
                # the last statement of the listening connection asks how far each log is
                ended = (
                    await asyncio.to_thread(cut_off, postgres, "name = ANY") for _ in range(500)
                )
                assert await anext(count async for count in ended if count)
                await other.append("c", [Draft("b")], at)
                assert (await anext(feed)).seq == at + 1

    asyncio.run(run())


def test_a_call_waits_for_a_writer_and_not_for_ever(
    postgres: PostgresServer, make: Make, schema: str
) -> None:
    with make(busy_timeout_ms=50).sync as store:
        store.append("c", [Draft("a")], 0)
        with locked(postgres, schema):
            with pytest.raises(StoreError, match="lock timeout"):
                store.append("c", [Draft("b")], 1)
            assert len(store.read("c")) == 1, "nobody who reads waits"
            assert store.append("d", [Draft("a")], 0), "nor does another conversation"
        assert [event.seq for event in store.append("c", [Draft("b")], 1)] == [2]


def test_calls_go_on_side_by_side(postgres: PostgresServer, make: Make, schema: str) -> None:
    async def run() -> None:
        async with make(pool_connections_max=2) as store:
            await store.append("c", [Draft("a")], 0)
            with locked(postgres, schema):
                waiting = asyncio.ensure_future(store.append("c", [Draft("b")], 1))
                await store.append("d", [Draft("a")], 0)
                assert len(await store.read("c")) == 1
                assert not waiting.done()
            assert [event.seq for event in await waiting] == [2]

    asyncio.run(run())


def test_when_no_connection_is_free_it_is_said(
    postgres: PostgresServer, make: Make, schema: str
) -> None:
    with make(pool_connections_max=1, busy_timeout_ms=300).sync as store:
        store.append("c", [Draft("a")], 0)
        with locked(postgres, schema):
            failed: list[Exception] = []

            def append() -> None:
                try:
                    store.append("c", [Draft("b")], 1)
                except StoreError as error:
                    failed.append(error)

            threads = [threading.Thread(target=append) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        told = {str(error).partition(": ")[2] for error in failed}
        assert "no connection is free: 1 have been in use for 300 ms" in told
        assert len(failed) == 3
        assert len(store.append("c", [Draft("b")], 1)) == 1


def test_closing_waits_for_the_calls_before_it(
    postgres: PostgresServer, make: Make, schema: str
) -> None:
    async def run() -> None:
        async with make() as store:
            await store.append("c", [Draft("a")], 0)
            with locked(postgres, schema):
                waiting = asyncio.ensure_future(store.append("c", [Draft("b")], 1))
                await store.last("c")
                closing = asyncio.ensure_future(store.close())
                await asyncio.sleep(0)
                with pytest.raises(StoreError, match="closed"):
                    await store.read("c")
                assert not closing.done()
            assert [event.seq for event in await waiting] == [2]
            await closing
        with make().sync as again:
            assert again.last("c") == 2

    asyncio.run(run())


def test_an_append_is_on_disk_whatever_the_server_is_used_to(
    postgres: PostgresServer, make: Make
) -> None:
    def level() -> object:
        with make().sync as store:
            return store._database.ask("SHOW synchronous_commit")[0][0]  # type: ignore[attr-defined]

    postgres.ask("ALTER ROLE postgres SET synchronous_commit = off")
    try:
        assert level() == "on"
        postgres.ask("ALTER ROLE postgres SET synchronous_commit = local")
        assert level() == "local"
    finally:
        postgres.ask("ALTER ROLE postgres RESET synchronous_commit")


def test_a_database_that_is_not_to_be_written_is_read(postgres: PostgresServer, make: Make) -> None:
    with make().sync as store:
        log = store.append("c", [Draft("a")], 0)
    postgres.ask("ALTER ROLE postgres SET default_transaction_read_only = on")
    try:
        with make().sync as store:
            assert store.read("c") == log
            with pytest.raises(StoreError, match="read-only transaction"):
                store.append("c", [Draft("b")], 1)
            assert store.read("c") == log
    finally:
        postgres.ask("SET default_transaction_read_only = off")
        with psycopg.connect(postgres.dsn, options="-c default_transaction_read_only=off") as own:
            own.execute("ALTER ROLE postgres RESET default_transaction_read_only")


# --- what is told


BROKEN = [
    f"postgresql://u:{PASSWORD}@@host/db",
    f"postgresql://u:{PASSWORD}/x@host/db",
    f"postgresql://u:{PASSWORD}@host:port/db",
    f"password={PASSWORD} nothing",
    f"password='{PASSWORD}",
    f"postgres://u:{PASSWORD}%@host",
    "",
    None,
]


@pytest.mark.parametrize("dsn", BROKEN, ids=range(len(BROKEN)))
def test_a_dsn_that_is_none_is_refused_and_not_repeated(dsn: Any) -> None:
    with pytest.raises(InputError, match="dsn: ") as told:
        PostgresStore(dsn)
    assert PASSWORD not in f"{told.value!r} {told.value.__cause__!r}"
    assert told.value.__suppress_context__ or told.value.__context__ is None


@pytest.mark.parametrize("fault", ["password", "database", "user", "port"])
def test_why_there_is_no_connection_is_told_without_the_password(
    postgres: PostgresServer, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    secret = "wr0ng-" + PASSWORD
    dsn = {
        "password": postgres.dsn.replace(PASSWORD, secret),
        "database": postgres.dsn.replace("/postgres", "/nowhere").replace(
            "//nowhere", "//postgres"
        ),
        "user": postgres.dsn.replace("//postgres", f"//{token_hex(4)}"),
        "port": postgres.dsn.replace(f":{postgres.port}", ":1"),
    }[fault]
    with caplog.at_level(logging.DEBUG):
        store = PostgresStore(dsn, busy_timeout_ms=200)
        with pytest.raises(StoreError, match="PostgreSQL, schema assembler: ") as told:
            store.sync.open()
    words = {"password": "authentication", "user": "authentication", "database": "nowhere"}
    assert words.get(fault, "refused") in str(told.value)
    everything = f"{told.value!r} {store!r} {store.sync!r} {caplog.text}"
    assert PASSWORD not in everything
    assert "\n" not in str(told.value)


def test_a_password_that_stands_elsewhere_too_is_not_told(postgres: PostgresServer) -> None:
    dsn = postgres.dsn.replace("/postgres", f"/{PASSWORD}").replace(f"//{PASSWORD}", "//postgres")
    assert dsn.endswith(f"/{PASSWORD}")
    with pytest.raises(StoreError, match=r'database "\*\*\*" does not exist'):
        PostgresStore(dsn).sync.open()


def test_no_error_holds_what_was_stored(
    make: Make, postgres: PostgresServer, schema: str, caplog: pytest.LogCaptureFixture
) -> None:
    with make().sync as store:
        store.append("c", [Draft("a", {"x": "secret"}, id="secret")], 0)
        # somebody else's hand: what the store takes for free is not
        postgres.ask(f"DELETE FROM {schema}.events WHERE seq = 1")  # noqa: S608
        postgres.ask(f"UPDATE {schema}.conversations SET last = 0")  # noqa: S608
        store.append("c", [Draft("a", {"x": "secret"}, id="other")], 0)
        postgres.ask(f"UPDATE {schema}.conversations SET last = 0")  # noqa: S608
        with pytest.raises(StoreError, match=r'duplicate key .* "events_pkey"$') as told:
            store.append("c", [Draft("a", {"x": "secret"}, id="secret")], 0)
        assert told.value.__suppress_context__
    assert "secret" not in caplog.text


DAMAGES = {
    "no JSON": "UPDATE SCHEMA.events SET body = '{secret' WHERE seq = 2",
    "no UTF-8": r"UPDATE SCHEMA.events SET body = '\x7b22736563726574ff' WHERE seq = 2",
    "another event": 'UPDATE SCHEMA.events SET body = \'{"seq":9,"type":"secret"}\' WHERE seq = 2',
    "a hole": "DELETE FROM SCHEMA.events WHERE seq = 2",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_table_is_told_of_and_never_read_over(
    make: Make, postgres: PostgresServer, schema: str, damage: str
) -> None:
    with make().sync as store:
        store.append("c", [Draft("a", id=str(seq)) for seq in range(1, 4)], 0)
        postgres.ask(DAMAGES[damage].replace("SCHEMA", schema))
        for read in (lambda: store.read("c"), lambda: store.page("c")):
            with pytest.raises(StoreError, match=f"{schema}: event 2 ") as told:
                read()
            assert "secret" not in str(told.value)
        assert [event.seq for event in store.read("c", 2)] == [3]


# --- what it takes


@pytest.mark.parametrize(
    "option",
    [
        {"schema": "Upper"},
        {"schema": 'x"; DROP'},
        {"schema": "x" * 41},
        {"schema": ""},
        {"pool_connections_max": 0},
        {"pool_connections_max": True},
        {"busy_timeout_ms": -1},
        {"listen_check_ms": 1.5},
        {"limits": Limits(name_bytes_max=2_501)},
    ],
    ids=str,
)
def test_an_option_that_is_none_is_refused(option: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"{next(iter(option))}: "):
        PostgresStore("postgresql://", **option)


def test_the_longest_names_fit_an_index(make: Make) -> None:
    # of letters that cannot be packed
    name = "".join(token_hex(1) for _ in range(1_250))
    with make(limits=Limits(name_bytes_max=2_500)).sync as store:
        (event,) = store.append(name, [Draft(name, id=name)], 0)
        assert store.append(name, [Draft("b", id=name)], 0) == [event]
        assert store.newest(name, [name]) == {name: event}
    with make().sync as store, pytest.raises(LimitError, match="name_bytes_max = 2000"):
        store.append(name, [Draft("a")], 0)


def test_a_batch_of_several_statements_is_one(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assembler.stores.postgres._INSERT_BYTES", 100)
    with make(limits=Limits(event_bytes_max=1_000)).sync as store:
        batch = [Draft("a", {"text": "x" * 30}) for _ in range(20)]
        with pytest.raises(LimitError, match="event_bytes_max"):
            store.append("c", [*batch, Draft("a", {"text": "x" * 1_000})], 0)
        assert store.last("c") == 0
        log = store.append("c", batch, 0)
        assert store.read("c") == log
        with pytest.raises(ConflictError):
            store.append("c", batch, 0)


def test_a_new_conversation_of_another_quick_writer_is_a_conflict(
    make: Make, postgres: PostgresServer, schema: str
) -> None:
    """Both find no such conversation; the second sees the row of the first when it is there."""
    results: list[object] = []
    with make().sync as store, psycopg.connect(postgres.dsn) as other:
        other.execute(
            f"INSERT INTO {schema}.conversations (name, last, first_time, last_time) "  # noqa: S608
            "VALUES ('c', 1, 0, 0)".encode()
        )

        def append() -> None:
            try:
                results.append(store.append("c", [Draft("a")], 0))
            except ConflictError as error:
                results.append((error.expected, error.actual))

        thread = threading.Thread(target=append)
        thread.start()
        waits = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        while not postgres.ask(waits):
            assert thread.is_alive()
        other.commit()
        thread.join()
    assert results == [(0, 1)]


def test_without_its_packages_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*sys.modules]:
        if name.startswith(("psycopg", "assembler.stores.postgres")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ImportError, match="install the extra `postgres`"):
        _ = assembler.stores.PostgresStore
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = assembler.stores.Nothing


def test_the_log_is_read_by_hand_as_its_file_says(
    make: Make, postgres: PostgresServer, schema: str
) -> None:
    with make().sync as store:
        store.append("c", [Draft("a", {"x": "\u00e9"})], 0)
    rows = postgres.ask(f"SELECT convert_from(body, 'UTF8')::json -> 'data' FROM {schema}.events")  # noqa: S608
    assert rows == [({"x": "\u00e9"},)]
