"""The public kit for people who test their Definitions: inputs, an oracle, and comparing.

`conversations` and `operations` are Hypothesis strategies; `Oracle` is the naive engine;
`compare` says in words where two of them differ. What is tested with them is the caller's.
"""

from __future__ import annotations

from assembler.testing.compare import compare
from assembler.testing.oracle import Oracle
from assembler.testing.strategies import (
    Conversation,
    Operation,
    Spot,
    conversations,
    operations,
)

__all__ = [
    "Conversation",
    "Operation",
    "Oracle",
    "Spot",
    "compare",
    "conversations",
    "operations",
]
