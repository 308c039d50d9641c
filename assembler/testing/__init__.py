"""The public kit for people who test their Definitions; the extra `testing` brings what it needs.

`check_definition` and `check_convergence` are one line in a test. What they are made of is public
too: `conversations` and `operations` are Hypothesis strategies, `delivery` is one faulty delivery
by its seed, `Oracle` is the naive engine, and `compare` says in words where two of them differ.
`check_store` asks a store for all that it promises, `check_live` a live backend.
"""

from __future__ import annotations

try:
    from assembler.testing.compare import compare
    from assembler.testing.convergence import check_convergence
    from assembler.testing.definitions import check_definition
    from assembler.testing.delivery import FAULTS, delivery
    from assembler.testing.failures import CheckFailed
    from assembler.testing.live import away_live_checks, check_live, live_checks
    from assembler.testing.oracle import Oracle
    from assembler.testing.scripts import Conversation, Operation
    from assembler.testing.stores import check_store, shared_store_checks, store_checks
    from assembler.testing.strategies import Spot, conversations, located, operations
except ModuleNotFoundError as error:
    if error.name != "hypothesis":
        raise
    raise ModuleNotFoundError(
        "assembler.testing needs Hypothesis: pip install 'conversation-assembler[testing]'",
        name=error.name,
    ) from None

__all__ = [
    "FAULTS",
    "CheckFailed",
    "Conversation",
    "Operation",
    "Oracle",
    "Spot",
    "away_live_checks",
    "check_convergence",
    "check_definition",
    "check_live",
    "check_store",
    "compare",
    "conversations",
    "delivery",
    "live_checks",
    "located",
    "operations",
    "shared_store_checks",
    "store_checks",
]
