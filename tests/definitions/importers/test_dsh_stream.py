"""What clients of DeepSeek Harness receive: two envelopes, several sessions, events told twice."""

from __future__ import annotations

import json
from typing import Any

import pytest

from definitions.importers import ImportFault
from definitions.importers.dsh_stream import DSH_STREAM

Json = dict[str, Any]


def notified(kind: str, **params: Any) -> Json:
    return {"method": kind, "params": params}


def event(kind: str, seq: int, data: Json, session: str = "s") -> Json:
    about = {"type": kind, "seq": seq, "time": 0, "data": data}
    return notified("session.event", sessionId=session, event=about)


def started(seq: int, session: str = "s") -> Json:
    return event("turn/start", seq, {"turn": 1}, session)


def title(seq: int, said: str, session: str = "s") -> Json:
    return event("session/title", seq, {"title": said}, session)


def lines(*records: Any) -> list[bytes]:
    return [json.dumps(each).encode() + b"\n" for each in records]


def imported(*records: Any) -> list[Json]:
    return list(DSH_STREAM(lines(*records), name="s.jsonl"))


def types(operations: list[Json], conversation: str | None = None) -> list[str]:
    return [
        each["event"]["type"]
        for each in operations
        if each.get("op") == "append" and each.get("conversation") == conversation
    ]


def test_both_envelopes_say_the_same() -> None:
    received = (started(0), title(1, "Going"))
    printed = [{"type": "session_event", **each["params"]} for each in received]
    assert imported(*received) == imported(*printed)
    assert len(types(imported(*received))) == 2


def test_events_that_were_received_before_are_not_said_again() -> None:
    once = imported(started(0), title(1, "Going"))
    assert imported(started(0), started(0), title(1, "Going"), started(0)) == once


def test_another_session_is_a_conversation_beside() -> None:
    operations = imported(started(0), started(0, "child"), title(1, "Going"))
    assert len(types(operations)) == 2
    assert types(operations, "child") == types(imported(started(0)))
    headers = [each.get("conversation") for each in operations if "recording" in each]
    assert headers == [None, "child"]


def test_a_subagent_under_the_same_name_is_a_conversation_of_its_own() -> None:
    operations = imported(
        started(0),
        title(1, "Going"),
        notified("subagent.started", parentSessionId="s", childSessionId="s"),
        started(0),
        title(1, "Child"),
        title(2, "Child again"),
        title(2, "Parent"),
    )
    assert len(types(operations, "s#2")) == 3
    assert types(operations) == [
        "turn/start",
        "conversation/title",
        "dsh-stream/subagent.started",
        "conversation/title",
    ]


@pytest.mark.parametrize(("status", "live"), [("running", True), ("idle", False)])
def test_whether_a_session_is_at_work(status: str, live: bool) -> None:
    told = notified("session.status", sessionId="s", status=status)
    operations = imported(started(0), told)
    assert {"op": "liveness", "live": live} in operations[:-1]
    assert operations[-1] == {"op": "liveness", "live": False}


def test_what_else_comes_is_kept_and_does_not_count_as_of_the_log() -> None:
    result = {"type": "result", "sessionId": "s", "output": "Done \ud83d"}
    operations = imported(started(0), result, title(1, "Going"))
    kept = [each["event"] for each in operations if each.get("op") == "append"]
    assert kept[1]["type"] == "dsh-stream/result"
    assert kept[1]["data"]["output"] == "Done \ufffd"
    assert [each["seq"] for each in kept] == [1, 2, 3]


def test_a_file_without_events_has_one_conversation() -> None:
    operations = imported(notified("session.status", sessionId="s", status="odd"))
    assert types(operations) == ["dsh-stream/session.status"]
    assert [each for each in imported() if "recording" in each]


def test_a_last_line_that_was_cut_is_left_out() -> None:
    whole = lines(started(0), title(1, "Going"))
    cut = [*whole[:1], whole[1][:30]]
    assert list(DSH_STREAM(cut, name="s")) == list(DSH_STREAM(whole[:1], name="s"))


def test_an_envelope_without_its_event_is_a_fault_with_its_place() -> None:
    with pytest.raises(ImportFault) as fault:
        imported(started(0), notified("session.event", sessionId="s"))
    assert (fault.value.line, fault.value.field) == (2, "params.event")
