"""Memory, SQLite and PostgreSQL are asked the same, in any order: they answer the same.

Each is asked through one of two stores over its log, so that what one wrote the other must know;
those on disk are closed and opened again. Here names and ids are any text, which a store of its
own (`assembler.testing`) is asked less of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from secrets import token_hex
from typing import Any, ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)

from assembler import AssemblerError, Draft
from assembler.stores import Limits, MemoryStore, PostgresStore, SQLiteStore, Store, SyncStore
from tests.postgres_server import PostgresServer

LIMITS = Limits(
    batch_events_max=5,
    page_events_max=10,
    event_bytes_max=500,
    name_bytes_max=30,
    list_conversations_max=6,
)
UPCASTERS = {"old": [lambda data: {"was": data}, lambda data: {"newer": data}]}

SOME = st.sampled_from(("c", "d", "\u00e9", "\0", "e\0", "'", "\U0001f600"))
NAMES = SOME | st.text(min_size=0, max_size=35)
TYPES = st.sampled_from(("a", "b", "old", "\0/\u00fc")) | st.text(max_size=3)
IDS = st.none() | st.sampled_from(("1", "2", "3", "\0", "4")) | st.text(max_size=2)
DATA = st.dictionaries(
    st.text(max_size=3),
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=300),
    max_size=2,
)
DRAFTS = st.builds(
    Draft, TYPES, DATA, st.integers(-3, 3) | st.integers(), IDS, st.integers(0, 3)
) | st.builds(Draft, TYPES, id=IDS, more=st.dictionaries(st.text(max_size=4), st.integers()))
SEQS = st.integers(-1, 12) | st.sampled_from((2**53 - 1, 2**53, 2**80))

Open = Callable[[], Store]


class Agreement(RuleBasedStateMachine):
    """Three logs, each with two stores over it."""

    logs: ClassVar[Callable[[], tuple[Open, Open, Open]]]

    def __init__(self) -> None:
        super().__init__()
        self.opens = type(self).logs()
        memory = self.opens[0]().sync
        self.stores: list[list[SyncStore]] = [
            [memory, memory],
            *([each().sync, each().sync] for each in self.opens[1:]),
        ]

    def teardown(self) -> None:
        for pair in self.stores:
            for store in pair:
                store.close()

    def all(self, at: int, ask: Callable[[SyncStore], Any]) -> None:
        answers = [answer(ask, pair[at]) for pair in self.stores]
        assert answers[0] == answers[1], "SQLite"
        assert answers[0] == answers[2], "PostgreSQL"

    @rule(
        name=NAMES, batch=st.lists(DRAFTS, max_size=6), seq=SEQS | st.none(), at=st.integers(0, 1)
    )
    def append(self, name: str, batch: list[Draft], seq: int | None, at: int) -> None:
        expected = self.stores[0][0].last(name) if seq is None and name else seq or 0
        self.all(at, lambda store: store.write(name, batch, expected))

    @rule(name=NAMES, before=SEQS | st.none(), limit=SEQS | st.none(), at=st.integers(0, 1))
    def page(self, name: str, before: int | None, limit: int | None, at: int) -> None:
        self.all(at, lambda store: store.page(name, before, limit))

    @rule(name=NAMES, after=SEQS, limit=SEQS | st.none(), at=st.integers(0, 1))
    def read(self, name: str, after: int, limit: int | None, at: int) -> None:
        self.all(at, lambda store: store.read(name, after, limit))

    @rule(name=NAMES, wanted=st.lists(TYPES, max_size=3), at=st.integers(0, 1))
    def look(self, name: str, wanted: list[str], at: int) -> None:
        self.all(at, lambda store: (store.last(name), store.newest(name, wanted)))

    @rule(
        limit=st.integers(0, 7) | st.none(),
        wanted=st.lists(TYPES, max_size=3),
        entry=st.integers(0, 6),
        at=st.integers(0, 1),
    )
    def conversations(self, limit: int | None, wanted: list[str], entry: int, at: int) -> None:
        listed = self.stores[0][0].conversations(limit=6)
        before = listed[entry] if entry < len(listed) else None
        self.all(at, lambda store: store.conversations(newest=wanted, limit=limit, before=before))

    @rule(log=st.integers(1, 2), at=st.integers(0, 1))
    def open_again(self, log: int, at: int) -> None:
        self.stores[log][at].close()
        self.stores[log][at] = self.opens[log]().sync

    @invariant()
    def lists_are_equal(self) -> None:
        self.all(0, lambda store: store.conversations(newest=["old", "a"], limit=6))


def answer(ask: Callable[[SyncStore], Any], store: SyncStore) -> Any:
    try:
        return ask(store)
    except AssemblerError as error:
        return type(error), str(error)


def logs(folder: Path, server: PostgresServer, numbers: Iterator[int]) -> tuple[Open, Open, Open]:
    path, schema = folder / f"{next(numbers)}.db", f"s{token_hex(8)}"
    options: dict[str, Any] = {"limits": LIMITS, "upcasters": UPCASTERS}
    return (
        lambda: MemoryStore(**options),
        lambda: SQLiteStore(path, synchronous="normal", **options),
        lambda: PostgresStore(server.dsn, schema=schema, pool_connections_max=1, **options),
    )


def test_three_stores_agree(tmp_path: Path, postgres: PostgresServer) -> None:
    numbers = count()
    machine = type(
        "ThreeStores",
        (Agreement,),
        {"logs": staticmethod(lambda: logs(tmp_path, postgres, numbers))},
    )
    deep = settings().max_examples > settings.get_profile("fast").max_examples
    few = settings(max_examples=settings().max_examples if deep else 40, stateful_step_count=20)
    run_state_machine_as_test(machine, settings=few)


@pytest.mark.parametrize("name", ["\0", "a" * 30, "\u00e9" * 15, "a\\b", "%00", "' --"])
def test_any_text_is_a_name(name: str, tmp_path: Path, postgres: PostgresServer) -> None:
    for opened in logs(tmp_path, postgres, count()):
        with opened().sync as store:
            (event,) = store.append(name, [Draft(name, id=name)], 0)
            assert store.append(name, [Draft("b", id=name)], 9) == [event]
            assert store.newest(name, [name]) == {name: event}
            assert [entry.conversation for entry in store.conversations()] == [name]
