"""Every store keeps every promise of the contract (`assembler.testing.check_store`)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from secrets import token_hex

import pytest

from assembler.stores import Limits, MemoryStore, PostgresStore, SQLiteStore, Store
from assembler.testing import check_store, store_checks
from tests.postgres_server import PostgresServer

MakeStore = Callable[[], Store]
# Small, so that they are reached.
SMALL = Limits(
    batch_events_max=20, page_events_max=10, event_bytes_max=10_000, list_conversations_max=5
)


def in_memory(_request: pytest.FixtureRequest) -> MakeStore:
    return lambda: MemoryStore(limits=SMALL)


def in_a_file(request: pytest.FixtureRequest) -> MakeStore:
    path: Path = request.getfixturevalue("tmp_path")
    number = count()
    # "normal": the same code, and the disk is not what is asked here
    return lambda: SQLiteStore(path / f"{next(number)}.db", synchronous="normal", limits=SMALL)


def in_a_schema(request: pytest.FixtureRequest) -> MakeStore:
    server: PostgresServer = request.getfixturevalue("postgres")
    return lambda: PostgresStore(server.dsn, schema=f"s{token_hex(8)}", limits=SMALL)


STORES = {"memory": in_memory, "sqlite": in_a_file, "postgres": in_a_schema}


@pytest.mark.parametrize("check", store_checks, ids=lambda check: check.__name__.strip("_"))
@pytest.mark.parametrize("kind", STORES)
def test_promise(
    kind: str, check: Callable[[MakeStore], None], request: pytest.FixtureRequest
) -> None:
    check(STORES[kind](request))


def test_a_store_with_its_usual_limits_keeps_them_too() -> None:
    check_store(MemoryStore)


def test_a_broken_promise_is_named() -> None:
    class Forgetful(MemoryStore):
        async def last(self, conversation: str) -> int:
            return 0

    with pytest.raises(AssertionError) as broken:
        check_store(Forgetful)
    assert broken.value.__notes__[0].startswith("broken promise: `append` numbers drafts")
