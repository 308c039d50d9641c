"""Stores: the durable log of every conversation, and nothing else.

`base` is the contract, `store` its async face; `memory` and `sqlite` keep it. What an event means
is known to nobody here.
"""

from __future__ import annotations

from assembler.stores.base import Limits, Listed, Page, StoreError, SyncStore
from assembler.stores.feed import Feed
from assembler.stores.memory import MemoryStore
from assembler.stores.sqlite import SQLiteStore
from assembler.stores.store import Store

__all__ = [
    "Feed",
    "Limits",
    "Listed",
    "MemoryStore",
    "Page",
    "SQLiteStore",
    "Store",
    "StoreError",
    "SyncStore",
]
