"""Every store keeps every promise of the contract (`assembler.testing.check_store`)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from secrets import token_hex

import pytest

from assembler.stores import Limits, MemoryStore, PostgresStore, SQLiteStore, Store
from assembler.testing import check_store, shared_store_checks, store_checks
from tests.postgres_server import PostgresServer

MakeStore = Callable[[], Store]
# Small, so that they are reached.
SMALL = Limits(
    batch_events_max=20, page_events_max=10, event_bytes_max=10_000, list_conversations_max=5
)


class InMemory:
    def __init__(self, _request: pytest.FixtureRequest) -> None: ...

    def make(self) -> Store:
        return MemoryStore(limits=SMALL)


class InFiles:
    def __init__(self, request: pytest.FixtureRequest) -> None:
        self.folder: Path = request.getfixturevalue("tmp_path")
        self.numbers = count()
        self.paths: dict[Store, Path] = {}

    def make(self) -> Store:
        return self.open(self.folder / f"{next(self.numbers)}.db")

    def again(self, store: Store) -> Store:
        return self.open(self.paths[store])

    def open(self, path: Path) -> Store:
        # "normal": the same code, and the disk is not what is asked here
        store = SQLiteStore(path, synchronous="normal", poll_ms=5, limits=SMALL)
        self.paths[store] = path
        return store


class InSchemas:
    def __init__(self, request: pytest.FixtureRequest) -> None:
        self.server: PostgresServer = request.getfixturevalue("postgres")
        self.schemas: dict[Store, str] = {}

    def make(self) -> Store:
        return self.open(f"s{token_hex(8)}")

    def again(self, store: Store) -> Store:
        return self.open(self.schemas[store])

    def open(self, schema: str) -> Store:
        # long: a notice that is not given is not found out by looking
        store = PostgresStore(self.server.dsn, schema=schema, listen_check_ms=600_000, limits=SMALL)
        self.schemas[store] = schema
        return store


STORES = {"memory": InMemory, "sqlite": InFiles, "postgres": InSchemas}
SHARED = {"sqlite": InFiles, "postgres": InSchemas}


def named(check: Callable[..., None]) -> str:
    return check.__name__.strip("_")


@pytest.mark.parametrize("check", store_checks, ids=named)
@pytest.mark.parametrize("kind", STORES)
def test_promise(
    kind: str, check: Callable[[MakeStore], None], request: pytest.FixtureRequest
) -> None:
    check(STORES[kind](request).make)


@pytest.mark.parametrize("check", shared_store_checks, ids=named)
@pytest.mark.parametrize("kind", SHARED)
def test_shared_promise(
    kind: str, check: Callable[..., None], request: pytest.FixtureRequest
) -> None:
    stores = SHARED[kind](request)
    check(stores.make, stores.again)


def test_a_promise_between_stores_is_named() -> None:
    with pytest.raises(AssertionError) as broken:
        check_store(MemoryStore, lambda store: MemoryStore())  # another log
    assert broken.value.__notes__[0].startswith("broken promise: What one store has acknowledged")


def test_a_store_with_its_usual_limits_keeps_them_too() -> None:
    check_store(MemoryStore)


def test_a_broken_promise_is_named() -> None:
    class Forgetful(MemoryStore):
        async def last(self, conversation: str) -> int:
            return 0

    with pytest.raises(AssertionError) as broken:
        check_store(Forgetful)
    assert broken.value.__notes__[0].startswith("broken promise: `append` numbers drafts")
