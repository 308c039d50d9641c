"""Stores: the durable log of every conversation, and nothing else.

`base` is the contract, `store` its async face; `memory`, `sqlite` and `postgres` keep it;
`addresses` says which of them an address names. What an event means is known to nobody here.
`PostgresStore` needs the extra `postgres`, and is imported when it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from assembler.stores.base import Limits, Listed, Page, StoreError, StoreMissing, SyncStore
from assembler.stores.feed import Feed
from assembler.stores.memory import MemoryStore
from assembler.stores.sqlite import SQLiteStore
from assembler.stores.store import Store
from assembler.stores.upcasting import Upcasters

if TYPE_CHECKING:
    from assembler.stores.postgres import PostgresStore as PostgresStore

__all__ = [
    "Feed",
    "Limits",
    "Listed",
    "MemoryStore",
    "Page",
    "SQLiteStore",
    "Store",
    "StoreError",
    "StoreMissing",
    "SyncStore",
    "Upcasters",
]


def __getattr__(name: str) -> Any:
    if name != "PostgresStore":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from assembler.stores.postgres import PostgresStore  # noqa: PLC0415 - an extra's package
    except ModuleNotFoundError as error:
        if error.name not in ("psycopg", "psycopg_pool"):
            raise
        raise ImportError(
            f"PostgresStore needs {error.name}: install the extra `postgres`"
        ) from error
    return PostgresStore
