"""Transcripts that are digested: where a listing counts otherwise there is a word for it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from definitions.digesting import digest
from tests.definitions.streams import json_lines, listed

Json = dict[str, Any]

CALL = {"function": {"name": "now", "arguments": "{}"}, "type": "function"}


def acted(action: str, *call_ids: str) -> tuple[Json, Json]:
    """A step of SWE-agent with the answer that it came from."""
    step = {"action": action, "observation": "12:00", "thought": "so"}
    calls = [{**CALL, "id": call_id} for call_id in call_ids]
    answer = {"role": "assistant", "content": "so", "action": action}
    return step, {**answer, **({"tool_calls": calls} if calls else {})}


def run(*steps: tuple[Json, Json], **beside: Any) -> str:
    trajectory = [{**step, **beside} for step, _ in steps]
    return json.dumps({"trajectory": trajectory, "history": [answer for _, answer in steps]})


def events(*, snapshot: bool) -> str:
    """A run of AG-UI with one call in pieces, and one that a snapshot tells whole."""
    run = {"threadId": "t", "runId": "r"}
    told = {"id": "m2", "role": "assistant", "toolCalls": [{**CALL, "id": "c2"}]}
    whole = {"type": "MESSAGES_SNAPSHOT", "messages": [told]}
    return json_lines(
        {"type": "RUN_STARTED", **run},
        {"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "now"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": "{}"},
        {"type": "TOOL_CALL_END", "toolCallId": "c1"},
        *([whole] if snapshot else []),
        {"type": "RUN_FINISHED", **run},
    )


def kinds(file: str, calls: int) -> Sequence[str]:
    columns: Mapping[str, Any] = listed("f", format="", calls=calls, named="", parsed="")
    found = digest("x/f", file.encode(), {key: str(each) for key, each in columns.items()})
    return [each.kind for each in found.odd if each.field == "calls"]


AGAIN = {"messages": [{"role": "assistant", "tool_calls": [CALL]}]}


@pytest.mark.parametrize(
    ("kind", "file", "calls", "odd"),
    [
        ("told-again", run(acted("now", "c1"), **AGAIN), 2, 3),
        ("without-id", run(acted("now", "c1"), acted("ls")), 1, 0),
        ("told-whole", events(snapshot=True), 1, 3),
    ],
)
def test_another_way_of_counting_has_a_word(kind: str, file: str, calls: int, odd: int) -> None:
    assert kinds(file, calls) == [kind]
    assert kinds(file, odd) == [""]


def test_who_counts_as_we_do_says_nothing_else() -> None:
    assert kinds(run(acted("now", "c1"), acted("ls")), 2) == []
    assert kinds(events(snapshot=False), 1) == []


TITLED = {"sessionUpdate": "tool_call", "toolCallId": "c1", "kind": "read", "status": "pending"}
RENAMED = {
    "sessionUpdate": "tool_call_update",
    "toolCallId": "c1",
    "title": "Read b",
    "status": "completed",
}


@pytest.mark.parametrize(
    ("name", "kind"), [("Read b", "title"), ("Read a", "first-title"), ("Read c", "")]
)
def test_a_title_that_is_listed_for_a_name_has_a_word(name: str, kind: str) -> None:
    file = json_lines({**TITLED, "title": "Read a"}, RENAMED)
    columns = listed("f", format="", named=f"c1={name}", parsed="")
    found = digest("x/f", file.encode(), {key: str(each) for key, each in columns.items()})
    assert [(each.field, each.kind) for each in found.odd] == [("name of c1", kind)]


def answered(**fields: Any) -> Json:
    return {
        "type": "assistant",
        "content": "so",
        "model_fingerprint": "f",
        "tool_calls": [],
        **fields,
    }


def chunked(kind: str, **data: Any) -> Json:
    return {"type": kind, "id": kind, "timestamp": "", "parentId": None, "data": data}


def received(kind: str, seq: int, **data: Any) -> Json:
    event = {"type": kind, "seq": seq, "time": 0, "data": {"turn": 1, "step": 1, **data}}
    return {"type": "session_event", "sessionId": "s", "event": event}


SEARCHED = {"type": "backend_tool_call", "kind": {"id": "w1", "tool_type": "search"}}
INNER = {"rootCallId": "c1", "parentCallId": "c1", "subCallId": "c1:code:1", "name": "now"}
ASKED = {"sessionId": "s", "toolCall": {"toolCallId": "c1", "kind": "edit"}, "options": []}


@pytest.mark.parametrize(
    ("kind", "file", "ours"),
    [
        ("ran-by-provider", json_lines(SEARCHED, answered()), 1),
        ("only-asked", json_lines({"method": "requestPermission", "args": [ASKED]}), 1),
        ("own-words", json_lines(chunked("tool.execution_start", toolCallId="c1")), 1),
    ],
)
def test_calls_that_a_listing_leaves_out_have_a_word(kind: str, file: str, ours: int) -> None:
    assert kinds(file, ours) == []
    assert kinds(file, 0) == [kind]
    assert kinds(file, 7) == [""]


def test_the_calls_of_a_subagent_that_a_listing_leaves_out_have_words() -> None:
    asks = [{"toolCallId": "c1", "name": "task", "arguments": {}}]
    inner = [{"toolCallId": "c2", "name": "now", "arguments": {}}]
    file = json_lines(
        chunked("assistant.message", content="", toolRequests=asks),
        chunked("assistant.message", content="", toolRequests=inner, parentToolCallId="c1"),
    )
    assert kinds(file, 2) == []
    assert kinds(file, 1) == ["beside"]
    nested = json_lines(
        received("tool/call", 0, callId="c1", name="run", arguments="{}"),
        received("tool/code-dispatch-start", 1, **INNER),
    )
    assert kinds(nested, 2) == []
    assert kinds(nested, 1) == ["nested"]
