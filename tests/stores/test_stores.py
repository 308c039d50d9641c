"""Every store keeps every promise of the contract (`assembler.testing.check_store`)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assembler.stores import MemoryStore, SQLiteStore, Store
from assembler.testing import store_checks

MakeStore = Callable[..., Store]


def in_memory(path: Path) -> MakeStore:
    return MemoryStore


def in_a_file(path: Path) -> MakeStore:
    made: list[int] = []

    def make(**more: Any) -> Store:
        made.append(1)
        # "normal": the same code, and the disk is not what is asked here
        return SQLiteStore(path / f"{len(made)}.db", synchronous="normal", **more)

    return make


STORES = {"memory": in_memory, "sqlite": in_a_file}


@pytest.mark.parametrize("check", store_checks, ids=lambda check: check.__name__.strip("_"))
@pytest.mark.parametrize("kind", STORES)
def test_promise(kind: str, check: Callable[[MakeStore], None], tmp_path: Path) -> None:
    check(STORES[kind](tmp_path))
