"""What the commands share that open a store: its address, and opening it.

Not here: which stores there are (`stores.addresses`).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from assembler.engine.errors import InputError
from assembler.stores import Listed, SyncStore
from assembler.stores.addresses import SCHEMA, place_of, store_at

__all__ = ["add_schema", "add_store", "listed", "need_conversation", "opened_store", "wanted"]

_LISTED_AT_ONCE = 1_000


def add_store(parser: argparse.ArgumentParser) -> None:
    """The STORE argument, and its schema."""
    parser.add_argument(
        "store",
        metavar="STORE",
        help="a SQLite file, or the postgresql://… of a database (its password may stand in "
        "$PGPASSWORD or ~/.pgpass, which no list of processes shows)",
    )
    add_schema(parser)


def add_schema(parser: argparse.ArgumentParser) -> None:
    """Where a PostgreSQL database has its tables."""
    parser.add_argument(
        "--schema",
        default=SCHEMA,
        metavar="NAME",
        help=f"the schema of a PostgreSQL database (default: {SCHEMA})",
    )


@contextmanager
def opened_store(arguments: argparse.Namespace) -> Iterator[SyncStore]:
    """The store that was named, which must be there."""
    with store_at(arguments.store, schema=arguments.schema, create=False).sync as store:
        yield store


def listed(store: SyncStore, newest: Sequence[str] = ()) -> Iterator[Listed]:
    """All conversations, the one with the latest last event first."""
    before = None
    while True:
        part = store.conversations(newest=newest, limit=_LISTED_AT_ONCE, before=before)
        yield from part
        if len(part) < _LISTED_AT_ONCE:
            return
        before = part[-1]


def wanted(arguments: argparse.Namespace, store: SyncStore) -> list[str]:
    """The conversations that were named, or all of them by name. `InputError` for an unknown one.

    All names are taken at once, since a list by time changes while others write.
    """
    if not arguments.conversations:
        return sorted(each.conversation for each in listed(store))
    names = list(dict.fromkeys(arguments.conversations))
    for name in names:
        need_conversation(arguments, store, name)
    return names


def need_conversation(arguments: argparse.Namespace, store: SyncStore, name: str) -> int:
    """The number of its events. `InputError` when there are none."""
    last = store.last(name)
    if not last:
        place = place_of(arguments.store, arguments.schema)
        raise InputError(f"{place}: there is no conversation {name!r:.80}")
    return last
