"""Every Definition of the catalog keeps its contract: `check_definition`, one by one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings

from assembler.engine.definition import UNNAMED, Definition
from assembler.testing import check_definition
from definitions import catalog
from tests.definitions.payloads import DELTA_DATA, EVENTS

EXAMPLES = 1_000 if settings.get_current_profile_name() == "deep" else 25
CATALOG = {each.kind: each for each in catalog()}
# Whose States and values each one reads, or whose Nodes it groups.
READS = {
    "message": ["inbox"],
    "assistant": ["draft"],
    "tool": ["approval", "permission", "description"],
    "permission": ["tool", "approval"],
    "request": ["tool", "turn-tail", "draft"],
    "retry": ["request"],
    "turn-limit": ["request"],
    "turn-tail": ["tool", "request"],
    "process": ["tool", "permission", "retry", "request", "assistant"],
}


@pytest.mark.parametrize("kind", CATALOG)
def test_it_keeps_its_contract(kind: str) -> None:
    beside = [CATALOG[name] for name in READS.get(kind, ())]
    taken = {name for each in [CATALOG[kind], *beside] for name in takes_of(each)}
    more = {"vendor/note"} if UNNAMED in taken else set()
    check_definition(
        CATALOG[kind],
        events={name: EVENTS[name] for name in EVENTS.keys() & (taken | more)},
        deltas={name: DELTA_DATA[name] for name in DELTA_DATA.keys() & taken},
        beside=beside,
        max_examples=EXAMPLES,
    )


def takes_of(definition: Any) -> frozenset[str]:
    return definition.takes if isinstance(definition, Definition) else frozenset()
