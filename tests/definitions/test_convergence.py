"""The whole catalog on the bench: conversations of its own events, delivered badly."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import HealthCheck, given, settings

from assembler.testing import Operation, conversations, operations
from definitions import catalog
from tests.convergence.support import Bench
from tests.definitions.bench import VIEWS
from tests.definitions.payloads import DELTA_DATA, EVENTS

IS_DEEP = settings.get_current_profile_name() == "deep"


@settings(
    max_examples=2_000 if IS_DEEP else 60,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(operations(conversations(EVENTS, DELTA_DATA, moments=7)))
def test_the_catalog_converges(delivered: Sequence[Operation]) -> None:
    bench = Bench(catalog, VIEWS)
    for operation in delivered:
        bench.perform(operation)
        bench.check()
