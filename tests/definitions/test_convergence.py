"""The whole catalog on the bench: conversations of its own events, delivered badly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assembler.testing import Operation, Spot, conversations, operations
from definitions import catalog
from tests.convergence.support import Bench
from tests.definitions.bench import VIEWS
from tests.definitions.test_folding import DELTA_DATA, EVENT_DATA

IS_DEEP = settings.get_current_profile_name() == "deep"
NAME = st.sampled_from(["x", "y"])
USAGE = st.fixed_dictionaries({"input_tokens": st.integers(0, 3)})


def placed(data: st.SearchStrategy[Any]) -> Any:
    """At the open step; between steps at a step that is not there, as a writer may do."""

    def at(spot: Spot) -> st.SearchStrategy[Any]:
        return data.map(lambda drawn: {**drawn, "turn": spot.turn or 1, "step": spot.step or 1})

    return at


def gives_up(data: dict[str, st.SearchStrategy[Any]]) -> Any:
    def at(spot: Spot) -> st.SearchStrategy[Any]:
        place = {"turn": st.just(spot.turn or 1), "step": st.just(spot.step or 1)}
        attempt = st.sampled_from(spot.attempts)
        told = {**data, **place, "attempt": attempt, "number": st.integers(1, 2)}
        return st.fixed_dictionaries(told, optional={"usage": USAGE})

    return at


EVENTS: dict[str, Any] = {
    **EVENT_DATA,
    "assistant/message": placed(
        st.fixed_dictionaries(
            {
                "content": st.just([{"type": "text", "text": "x"}]),
                "stop_reason": st.sampled_from(["end_turn", "length"]),
            },
            optional={"interrupted": st.booleans(), "usage": USAGE},
        )
    ),
    "tool/call": placed(
        st.fixed_dictionaries(
            {
                "call_id": st.sampled_from(["c1", "c2"]),
                "name": st.sampled_from(["read", "write"]),
                "arguments": st.sampled_from(["{}", '{"path":"a"}']),
            }
        )
    ),
    "llm/retry": gives_up({"retry_id": NAME}),
    "llm/fallback": gives_up({}),
    "user/message": st.fixed_dictionaries({"message_id": NAME}),
    "inbox/spliced": st.fixed_dictionaries(
        {
            "queue": st.sampled_from(["next-step", "next-turn"]),
            "claimed": st.lists(NAME, max_size=2),
        }
    ),
    "compaction/start": st.fixed_dictionaries({"compaction_id": NAME}),
    "compaction/summary": st.fixed_dictionaries({"compaction_id": NAME, "text": NAME}),
    "compaction/end": st.fixed_dictionaries({"compaction_id": NAME}),
    "command/run": st.fixed_dictionaries({"command_id": NAME, "name": NAME}),
    "command/done": st.fixed_dictionaries({"command_id": NAME, "output": NAME}),
    "vendor/note": st.just({}),
}


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
