"""Files of what Claude Code printed: how frames stand in them, and what a cut one says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assembler import codec, plugins
from assembler.plugins import Sample
from assembler.recordings import Run
from assembler.recordings.arriving import disagreement
from assembler.recordings.format import read_lines
from definitions.digesting import digest
from definitions.importers import ImportFault
from definitions.importers.claude_code_stream import CLAUDE_CODE_STREAM
from tests.definitions.claude_code_frames import (
    allowed,
    asked,
    call,
    denied,
    ended,
    flat,
    init,
    prompt,
    returned,
    said,
    streamed,
    system,
    text,
)

Json = dict[str, Any]

STORY = list(
    flat(
        [
            prompt("Find it", uuid="p1"),
            init(),
            streamed("m0", text("I was"), end=False),
            streamed("m1", text("I look."), call("a1", "Task", prompt="look")),
            prompt("Faster", uuid="p2"),
            prompt("look", parent="a1"),
            said("s1", text("I look too."), parent="a1"),
            said("s1", call("c1", "Read", path="a"), parent="a1"),
            asked("r1", "c1", input={"path": "a"}),
            allowed("r1", updatedInput={"path": "b"}),
            returned("c1", "x", parent="a1"),
            returned("a1", "Found."),
            said("m2", text("And now")),
            said("m2", call("c2", command="rm")),
            asked("r2", "c2"),
            denied("r2"),
            returned("c2", "No.", is_error=True),
            system("compact_boundary"),
            prompt("This session is being continued from a previous conversation. All."),
            said("m3", text("There.")),
            ended(stop_reason="end_turn"),
            prompt("Thanks"),
            system("api_retry", attempt=1, error="overloaded"),
            streamed("m4", text("You are"), end=False),
            prompt("[Request interrupted by user]"),
            ended("error_during_execution"),
        ]
    )
)


def lines(*frames: Any) -> list[bytes]:
    return [json.dumps(each).encode() + b"\n" for each in frames]


def imported(*frames: Any) -> list[Json]:
    return list(CLAUDE_CODE_STREAM(lines(*frames), name="s.jsonl"))


def appended(operations: list[Json], beside: str | None = None) -> list[Json]:
    return [
        operation["event"]
        for operation in operations
        if operation.get("op") == "append" and operation.get("conversation") == beside
    ]


def known(*values: Any) -> bool:
    return CLAUDE_CODE_STREAM.recognises(Sample(tuple(values)))


@pytest.mark.parametrize(
    "wrap",
    [
        lambda frames: frames,
        lambda frames: [frames],
        lambda frames: [{"messages": frames}],
        lambda frames: [{"direction": "recv", "message": each} for each in frames],
        lambda frames: [{"messages": [{"direction": "send", "message": each} for each in frames]}],
        lambda frames: [{"type": "stdout", "data": each} for each in frames],
    ],
)
def test_frames_may_stand_in_a_file_in_many_ways(wrap: Any) -> None:
    alone = [event["data"] for event in appended(imported(*STORY))]
    assert [event["data"] for event in appended(imported(*wrap(STORY)))] == alone
    assert known(*wrap(STORY)[:20])


def test_what_stands_beside_the_frames_is_kept() -> None:
    operations = imported({"metadata": {"version": "1"}, "messages": STORY[:2]})
    (first, *_) = appended(operations)
    assert first["type"] == "claude-code/file"
    assert first["data"]["metadata"] == {"version": "1"}


@pytest.mark.parametrize("at", range(len(STORY)))
def test_each_kind_of_frame_is_known(at: int) -> None:
    frame = STORY[at]
    is_sure = frame["type"] in ("assistant", "user", "stream_event", "result", "control_request")
    assert known(frame) or not is_sure


@pytest.mark.parametrize(
    "value",
    [
        {"type": "user", "message": {"content": "x"}, "parentUuid": None, "isSidechain": False},
        {"type": "assistant", "message": {"content": []}},
        {"type": "system", "subtype": "init"},
        {"type": "result", "result": "x"},
        {"jsonrpc": "2.0", "method": "session/update", "params": {}},
        {"type": "message", "role": "user", "content": "x"},
    ],
)
def test_what_other_programs_write_is_not(value: Json) -> None:
    assert not known(value)


def test_a_subagent_has_a_recording_of_its_own() -> None:
    operations = imported(*STORY)
    headers = [each for each in operations if "recording" in each]
    assert [each.get("conversation") for each in headers] == [None, "a1"]
    said_beside = [event["type"] for event in appended(operations, "a1")]
    assert "assistant/message" in said_beside
    others = [each for each in operations if each.get("op") in ("delta", "settle")]
    steps = {(each["conversation"], each["attempt"]) for each in others if "conversation" in each}
    assert steps == {("a1", "1.1.1")}
    inner = [event for event in appended(operations) if event["data"].get("parent_call_id")]
    assert [event["data"]["call_id"] for event in inner] == ["c1"]


def test_times_are_those_of_the_log() -> None:
    at = {"timestamp": "2026-01-02T03:04:05Z"}
    operations = imported({**at, "message": prompt("Hi")}, {**ended(), "timestamp": 1_767_323_046})
    assert [event["time"] for event in appended(operations)][:2] == [1_767_323_045_000] * 2
    assert appended(operations)[-1]["time"] == 1_767_323_046_000


def lives(operation: Json) -> bool:
    return operation.get("op") not in ("liveness", "settle")


def conversations(operations: list[Json]) -> Iterator[tuple[str | None, list[Json]]]:
    for name in {operation.get("conversation") for operation in operations}:
        yield name, [each for each in operations if each.get("conversation") == name]


@pytest.mark.parametrize("at", range(1, len(STORY)))
def test_a_cut_file_says_the_beginning_of_the_whole_one(at: int) -> None:
    whole = dict(conversations(imported(*STORY)))
    for name, operations in conversations(imported(*STORY[:at])):
        told = [each for each in operations if not each.get("tail") and lives(each)]
        stays = [each for each in whole[name] if lives(each)]
        assert told == stays[: len(told)]


def test_what_the_end_brings_out_has_the_id_that_it_will_have() -> None:
    begun = imported(prompt("Hi"), said("m1", text("a")))
    whole = imported(prompt("Hi"), said("m1", text("a")), ended())
    names = [event["id"] for event in appended(begun)]
    assert names == [event["id"] for event in appended(whole)][: len(names)]
    tails = [each.get("tail") for each in begun if each.get("op") == "append"]
    assert tails == [None, None, None, "read"]
    called = imported(said("m1", call("c1")))
    tails = [each.get("tail") for each in called if each.get("op") == "append"]
    assert tails == [None, None, "unfinished", "unfinished"]


def test_no_id_is_used_twice() -> None:
    operations = imported(*STORY, *STORY, returned("c2"), returned("c2"))
    for _, told in conversations(operations):
        names = [each["event"]["id"] for each in told if each.get("op") == "append"]
        assert len(names) == len(set(names))


def test_what_is_no_json_is_told() -> None:
    with pytest.raises(ImportFault, match="s:2: line"):
        list(CLAUDE_CODE_STREAM([*lines(init()), b"{x\n", *lines(ended())], name="s"))


def test_what_a_listing_says_of_the_messages_inside_of_frames_is_explained() -> None:
    data = b"".join(lines({"messages": [said("m1", call("c1")), returned("c1")]}))
    told = [
        digest("x/f", data, {"calls": calls, "event types": types}).odd
        for calls, types in (("1", "assistant:1"), ("0", "message:2"), ("0", "assistant:1"))
    ]
    assert [[each.kind for each in odd] for odd in told] == [[], ["insides"], [""]]


def agree(*frames: Json) -> None:
    definitions = plugins.catalog()
    for name, operations in conversations(imported(*frames)):
        plain = [
            {key: each[key] for key in each if key not in ("tail", "conversation")}
            for each in operations
        ]
        for recording in read_lines([codec.encode(each) + b"\n" for each in plain], str(name)):
            run = Run(recording, definitions)
            for operation in recording.operations:
                run.do(operation)
            run.give_up()
            found = disagreement(run.assembler, run.facts(), definitions, run.views)
            assert found is None, found


def test_every_way_of_arriving_shows_the_same() -> None:
    agree(*STORY)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(STORY), max_size=25))
def test_whatever_order_frames_come_in(frames: list[Json]) -> None:
    agree(*frames)
