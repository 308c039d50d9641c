"""Whatever a log holds and however it arrives: what goes back to the model is valid.

Logs are written as backends write them, with what goes wrong in between: attempts that are given
up, crashes, results that are late, twice or missing, calls that nobody ran.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assembler import Assembler
from assembler.testing import Operation, conversations, operations
from definitions import catalog
from definitions.model_context import FORMATS, IncompleteHistoryError, model_context
from tests.definitions.model_context.support import Log, call, reasoning, text
from tests.definitions.model_context.valid import VALID, strings
from tests.definitions.payloads import DELTA_DATA, EVENTS, placed

IS_DEEP = settings.get_current_profile_name() == "deep"
MANY = settings(
    max_examples=1_000 if IS_DEEP else 50,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
WITHDRAWN = "of a withdrawn attempt"

PROVIDER = st.sampled_from(["anthropic", "openai_chat", "openai_responses", "gemini", None])
ARGUMENTS = st.sampled_from(["", "{}", '{"a": 1.0}', '{"a', "[]", '{"a":"\\ud800"}'])
CALL_ID = st.sampled_from(["c1", "c2", "c3", "f.look:0", "ä", "x" * 70, ""])
RAW = st.sampled_from(
    [
        {},
        {"type": "server_tool_use"},
        {"type": "tool_use", "caller": {"tool_id": "c1"}},
        {"type": "function_call", "id": "fc_1"},
        {"type": "custom_tool_call"},
        {"type": "web_search_call", "id": "ws_1"},
        {"type": "program", "id": "p_1"},
    ]
)
CALL = st.builds(
    lambda call_id, name, arguments, raw, more: call(call_id, name, arguments, raw=raw, **more),
    CALL_ID,
    st.sampled_from(["look", "a.b", ""]),
    ARGUMENTS,
    RAW,
    st.fixed_dictionaries(
        {},
        optional={
            "ran_by": st.just("provider"),
            "provider_call_id": st.sampled_from(["call_0", "toolu_1"]),
            "parent_call_id": CALL_ID,
            "signature": st.just("c2ln"),
        },
    ),
)
SAID = st.sampled_from(["", " ", "hello"])
FILE = st.builds(
    lambda media_type, where: {"type": "file", "media_type": media_type, **where},
    st.sampled_from(["image/png", "application/pdf", "text/plain", "audio/wav", "x/y", ""]),
    st.sampled_from([{"data": "aGk="}, {"url": "https://x/a"}, {"data": "?"}, {}]),
)
SHOWN = st.one_of(
    st.builds(text, SAID),
    FILE,
    st.just({"type": "json", "value": {"a": [1]}}),
    st.just({"type": "odd"}),
    st.just({}),
)
OWN = st.builds(
    lambda provider, raw, more: {"type": "provider", "provider": provider, "raw": raw, **more},
    PROVIDER.filter(bool),
    st.sampled_from(
        [
            {"type": "redacted_thinking", "data": "x"},
            {"type": "web_search_tool_result", "tool_use_id": "c1", "content": []},
            {"type": "program_output", "call_id": "c1"},
            {"type": "reasoning", "id": "rs_2", "summary": []},
            {"type": "x", "deltas": [{}]},
            {},
        ]
    ),
    st.sampled_from([{}, {"call_id": "c1"}, {"call_id": "c2"}]),
)
THOUGHT = st.builds(
    lambda told, more: reasoning(told, **more),
    SAID,
    st.sampled_from([{}, {"signature": "c2ln"}, {"raw": {"type": "reasoning", "id": "rs_1"}}]),
)
ANSWER = st.lists(st.one_of(CALL, CALL, st.builds(text, SAID), THOUGHT, OWN, FILE), max_size=4)
INPUT = st.lists(SHOWN, max_size=2)


def own_to(content: list[dict[str, Any]], provider: str | None) -> list[dict[str, Any]]:
    """Blocks that one answer can hold: kept ones are of its own provider, and what an Anthropic
    answer keeps is no item of OpenAI's."""
    kinds = {
        "anthropic": ("redacted_thinking", "web_search_tool_result", "x"),
        "openai_responses": ("program_output", "reasoning", "x"),
    }
    return [
        block
        for block in content
        if block.get("type") != "provider"
        or (
            block["provider"] == provider
            and block["raw"].get("type") in kinds.get(provider or "", ())
        )
    ]


@st.composite
def logs(draw: st.DrawFn, *, ids_are_new: bool = False) -> Log:
    """A log with turns, steps and what goes wrong in them."""
    log = Log()
    named: list[str] = []
    for _ in range(draw(st.integers(0, 3))):
        log.starts(*draw(INPUT))
        for _ in range(draw(st.integers(0, 3))):
            _one_step(draw, log, named, ids_are_new=ids_are_new)
            log.steps()
        if draw(st.booleans()):
            log.ends(draw(st.sampled_from(["completed", "cancelled", "error"])))
    return log


def _one_step(draw: st.DrawFn, log: Log, named: list[str], *, ids_are_new: bool) -> None:
    provider = draw(PROVIDER)
    content = own_to(draw(ANSWER), provider)
    if ids_are_new:
        content = [block for block in content if "raw" not in block or block["type"] != "provider"]
        for at, block in enumerate(content):
            if block["type"] == "tool-call":
                block["call_id"] = f"{block['call_id']}-{len(log.events)}-{at}"
                block.pop("parent_call_id", None)
    calls = [block for block in content if block["type"] == "tool-call" and block["call_id"]]
    named += [block["call_id"] for block in calls]
    for kind in draw(st.lists(st.sampled_from(_STEPS), max_size=6)):
        if kind == "retry":
            log.says(text(WITHDRAWN), interrupted=True)
            log.add("llm/retry", **log.place, retry_id="r", attempt="a", number=1, reason="x")
        elif kind == "message":
            log.says(*content, provider=provider, interrupted=draw(st.booleans()))
        elif kind == "call" and calls:
            made = draw(st.sampled_from(calls))
            log.calls(made["call_id"], made["name"], made["arguments"])
        elif kind == "result" and named:
            told = {"is_error": draw(st.booleans()), "synthetic": draw(st.booleans())}
            log.results(draw(st.sampled_from(named)), *draw(INPUT), **told)
        elif kind == "steer":
            log.user(*draw(INPUT))
        elif kind == "compact":
            _compact(draw, log)


_STEPS = ["retry", "message", "message", "call", "call", "result", "result", "steer", "compact"]


def _compact(draw: st.DrawFn, log: Log) -> None:
    name = {"compaction_id": f"k{len(log.events)}"}
    before = {"before_seq": draw(st.integers(1, len(log.events) + 1))}
    log.add("compaction/start", **name)
    if draw(st.booleans()):
        log.user("meanwhile")
    log.add("compaction/summary", **name, text="so far", **draw(st.sampled_from([{}, before])))


@MANY
@given(logs(), st.sampled_from([None, True, False]))
def test_every_log_gives_valid_messages_in_every_format(log: Log, live: bool | None) -> None:
    assembler = Assembler(catalog(), strict=True)
    assembler.load(log.events)
    assembler.liveness(live)
    for name in FORMATS:
        told = model_context(assembler, name)
        VALID[name](told)
        json.dumps(told).encode()
        assert not [each for each in strings(told) if WITHDRAWN in each]


@MANY
@given(logs(ids_are_new=True), st.data())
def test_a_window_gives_what_the_whole_log_gives_or_an_error(log: Log, data: st.DataObject) -> None:
    whole = Assembler(catalog())
    whole.load(log.events)
    first = data.draw(st.integers(0, max(len(log.events) - 1, 0)))
    window = Assembler(catalog())
    window.load(log.events[first:], has_more=first > 0)
    for name in FORMATS:
        try:
            told = model_context(window, name)
        except IncompleteHistoryError:
            assert first > 0
            continue
        assert told == model_context(whole, name)


MESSAGE = placed(
    st.fixed_dictionaries(
        {"content": ANSWER, "stop_reason": st.just("end_turn")},
        optional={"interrupted": st.booleans()},
    )
)
LIVE = {
    **DELTA_DATA,
    "text": st.just({"block": 0, "text": WITHDRAWN}),
    "reasoning": st.just({"block": 1, "text": WITHDRAWN}),
}


@MANY
@given(operations(conversations({**EVENTS, "assistant/message": MESSAGE}, LIVE, moments=7)))
def test_however_it_arrives_the_messages_are_valid(delivered: Sequence[Operation]) -> None:
    assembler = Assembler(catalog())
    for operation in delivered:
        operation.perform(assembler)
        for name in FORMATS:
            try:
                told = model_context(assembler, name)
            except IncompleteHistoryError:
                assert assembler.window.has_more
                continue
            VALID[name](told)
            assert not [each for each in strings(told) if WITHDRAWN in each]
