"""How the data of our own events and deltas is drawn: few names, so that things meet.

`EVENT_DATA` and `DELTA_DATA` stand alone; `EVENTS` know where in a conversation they are drawn.
Not here: conversations of them (`assembler.testing`) and tests.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from assembler.testing import Spot

__all__ = ["DELTA_DATA", "EVENTS", "EVENT_DATA", "FLAG"]

CALL = st.sampled_from(["c1", "c1", "c1", "c2"])
NAME = st.sampled_from(["read", "bash", ""])
PIECE = st.sampled_from(["", "{", '{"a":1}', '{"a":1.0}', '"b', " "])
BLOCK = st.sampled_from([0, 1])
WHOLE_BLOCK = st.one_of(
    st.fixed_dictionaries({"type": st.just("text"), "text": PIECE}),
    st.fixed_dictionaries(
        {"type": st.just("tool-call"), "call_id": CALL, "name": NAME, "arguments": PIECE}
    ),
)
FLAG = st.booleans()

DELTA_DATA: dict[str, st.SearchStrategy[Any]] = {
    "text": st.fixed_dictionaries({"block": BLOCK, "text": PIECE}),
    "reasoning": st.fixed_dictionaries({"block": BLOCK, "text": PIECE}),
    "tool-call": st.fixed_dictionaries(
        {"block": BLOCK, "call_id": CALL, "arguments": PIECE},
        optional={"name": NAME, "parent_call_id": CALL},
    ),
    "tool-output": st.fixed_dictionaries({"call_id": CALL, "text": PIECE}),
    "block-start": st.fixed_dictionaries({"block": BLOCK, "block_type": st.just("text")}),
    "block-end": st.fixed_dictionaries({"block": BLOCK, "value": WHOLE_BLOCK}),
    "usage": st.fixed_dictionaries({"usage": st.fixed_dictionaries({"input_tokens": BLOCK})}),
}
CONTENT = st.lists(WHOLE_BLOCK, max_size=2)
INPUT = st.sampled_from([{}, {"a": 1}, {"a": 1.0}])
REQUEST = st.fixed_dictionaries(
    {"call_id": CALL, "request_id": st.sampled_from(["1", "2"])}, optional={"input": INPUT}
)
DESCRIBED = st.fixed_dictionaries({"call_id": CALL}, optional={"input": INPUT, "text": PIECE})
INQUIRY = st.fixed_dictionaries(
    {"call_id": CALL, "inquiry_id": CALL}, optional={"question": PIECE, "answer": PIECE}
)
EVENT_DATA: dict[str, st.SearchStrategy[Any]] = {
    "assistant/message": st.fixed_dictionaries(
        {"turn": st.just(1), "step": st.just(1), "content": CONTENT, "interrupted": FLAG}
    ),
    "tool/call": st.fixed_dictionaries(
        {"turn": st.just(1), "step": st.just(1), "call_id": CALL, "name": NAME, "arguments": PIECE}
    ),
    "tool/result": st.fixed_dictionaries(
        {"call_id": CALL, "content": CONTENT, "synthetic": FLAG, "is_error": FLAG}
    ),
    "permission/request": REQUEST,
    "permission/answer": REQUEST,
    **{f"description/{word}": DESCRIBED for word in ("started", "ready", "withdrawn")},
    **{f"inquiry/{word}": INQUIRY for word in ("opened", "answered", "withdrawn")},
    "user/message": st.fixed_dictionaries({"message_id": CALL}),
    "llm/retry": st.fixed_dictionaries(
        {
            "turn": st.just(1),
            "step": st.just(1),
            "retry_id": CALL,
            "attempt": CALL,
            "number": BLOCK,
        },
        optional={"usage": st.fixed_dictionaries({"input_tokens": BLOCK})},
    ),
    "inbox/spliced": st.fixed_dictionaries(
        {
            "queue": st.sampled_from(["next-step", "next-turn"]),
            "claimed": st.lists(CALL, max_size=2),
        }
    ),
}

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
    "turn/end": [
        {"reason": "completed"},
        {"reason": "error", "error": {"name": "Overloaded", "message": "later"}},
        {},
    ],
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
