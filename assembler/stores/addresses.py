"""Which store an address names: the URI of a PostgreSQL database, or else a SQLite file.

Not here: the stores, and one connection to them.
"""

from __future__ import annotations

from typing import Any, Literal

from assembler.engine.errors import InputError
from assembler.stores.sqlite import SQLiteStore
from assembler.stores.store import Store

__all__ = ["SCHEMA", "is_postgres", "place_of", "store_at"]

SCHEMA = "assembler"
"""Where a PostgreSQL database has its tables, unless another is named."""
_SCHEMES = ("postgresql://", "postgres://")


def is_postgres(address: str) -> bool:
    """Whether it is the URI of a PostgreSQL database; else it is the path of a file."""
    return address.startswith(_SCHEMES)


def place_of(address: str, schema: str = SCHEMA) -> str:
    """What to call it in messages: never a password."""
    return f"PostgreSQL, schema {schema}" if is_postgres(address) else address


def store_at(
    address: str,
    *,
    schema: str = SCHEMA,
    create: bool = True,
    synchronous: Literal["full", "normal"] = "full",
) -> Store:
    """The store at a path or `postgresql://` URI, not open yet; `synchronous` is for SQLite alone.

    Raises `InputError` for what is no address, and when PostgreSQL's driver is not installed. What
    else is wrong is found when it is opened.
    """
    if not is_postgres(address):
        return SQLiteStore(address, create=create, synchronous=synchronous)
    made: Any = _postgres()(address, schema=schema, create=create)
    store: Store = made
    return store


def _postgres() -> Any:
    from assembler import stores  # noqa: PLC0415 - which imports an extra's package when asked

    try:
        return stores.PostgresStore
    except ImportError as missing:
        raise InputError(f"{missing}: pip install 'conversation-assembler[postgres]'") from None
