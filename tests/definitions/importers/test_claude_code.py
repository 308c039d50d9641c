"""Transcripts of Claude Code: what each record says, message by message, subagent by subagent."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from definitions.importers import ImportFault
from definitions.importers.claude_code import CLAUDE_CODE, CLAUDE_CODE_WRAPPED

Json = dict[str, Any]


def record(kind: str, /, **fields: Any) -> Json:
    return {
        "type": kind,
        "uuid": f"{kind}-uuid",
        "parentUuid": None,
        "isSidechain": False,
        **fields,
    }


def user(content: Any, /, **fields: Any) -> Json:
    return record("user", message={"role": "user", "content": content}, **fields)


def answer(message_id: str, *blocks: Json, stop: Any = None, **fields: Any) -> Json:
    message = {
        "id": message_id,
        "content": list(blocks),
        "stop_reason": stop,
        "usage": {"input_tokens": 3, "output_tokens": 1},
    }
    return record("assistant", message=message, **fields)


def said(text: str) -> Json:
    return {"type": "text", "text": text}


def use(call_id: str, name: str = "Bash", **arguments: Any) -> Json:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def result(call_id: str, content: Any = "ok", **fields: Any) -> Json:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **fields}


def imported(*records: Any) -> list[Json]:
    lines = [json.dumps(each).encode() + b"\n" for each in records]
    return list(CLAUDE_CODE(lines, name="s.jsonl"))


def events(operations: list[Json], kind: str, of: str | None = None) -> list[Json]:
    return [
        operation["event"]["data"]
        for operation in operations
        if operation.get("op") == "append"
        and operation["event"]["type"] == kind
        and operation.get("conversation") == of
    ]


def types(operations: list[Json], of: str | None = None) -> list[str]:
    return [
        operation["event"]["type"]
        for operation in operations
        if operation.get("op") == "append" and operation.get("conversation") == of
    ]


def test_one_message_over_several_records_is_one_answer() -> None:
    operations = imported(
        user("Go"),
        answer("m1", said("I look.")),
        answer("m1", use("c1", command="ls")),
        user([result("c1")]),
        answer("m1", use("c2", command="pwd")),
        user([result("c2", [said("/")], is_error=True)], toolUseResult={"code": 1}),
        answer("m2", said("Done."), stop="end_turn"),
    )
    first, second = events(operations, "assistant/message")
    assert [block["type"] for block in first["content"]] == ["text", "tool-call", "tool-call"]
    assert first["usage"]["output_tokens"] == 1
    assert (first["step"], second["step"], second["stop_reason"]) == (1, 2, "end_turn")
    assert types(operations)[4:9] == [
        "tool/call",
        "tool/call",
        "tool/result",
        "tool/result",
        "step/end",
    ]
    assert events(operations, "tool/result")[1] == {
        "call_id": "c2",
        "content": [said("/")],
        "is_error": True,
        "meta": {"tool_use_result": {"code": 1}},
    }


def test_the_same_message_twice_is_said_once() -> None:
    operations = imported(
        user("Go"), answer("m1", said("a")), user("On"), answer("m1", said("a"), uuid="other")
    )
    assert len(events(operations, "assistant/message")) == 1


def test_a_message_that_goes_on_later_is_another_answer() -> None:
    operations = imported(
        user("Go"), answer("m1", said("a")), user("On"), answer("m1", said("a"), said("b"))
    )
    told = [
        (each["message_id"], each["content"]) for each in events(operations, "assistant/message")
    ]
    assert told == [("m1", [said("a")]), ("m1#2", [said("b")])]


def test_progress_between_the_records_of_a_message_does_not_break_it() -> None:
    operations = imported(
        user("Go"),
        answer("m1", said("I look.")),
        record("progress", data={"seen": 1}),
        answer("m1", use("c1")),
    )
    (told,) = events(operations, "assistant/message")
    assert [block["type"] for block in told["content"]] == ["text", "tool-call"]
    assert len(events(operations, "claude-code/progress")) == 1


def test_a_message_that_a_subagent_breaks_is_paid_once() -> None:
    operations = imported(
        user("Go"),
        answer("m1", use("c1", "Task", prompt="A")),
        user("A", isSidechain=True, uuid="s1"),
        answer("m1", use("c2", "Task", prompt="B")),
        user("B", isSidechain=True, uuid="s2"),
    )
    told = events(operations, "assistant/message")
    assert ["usage" in each for each in told] == [True, False]


def test_the_messages_of_a_sync_server_are_paid_once(shared: Path) -> None:
    path = shared / "streams" / "claude-code-wrapped" / "happy__trace_0.json"
    paid = [
        each["message_id"].partition("#")[0]
        for each in events(
            list(map(dict, CLAUDE_CODE_WRAPPED([path.read_bytes()], name="s"))), "assistant/message"
        )
        if "usage" in each
    ]
    assert paid
    assert len(paid) == len(set(paid))


def test_what_was_said_instead_stands_behind_a_rewind() -> None:
    operations = imported(
        user("One", uuid="u1"),
        answer("m1", said("a"), uuid="a1", parentUuid="u1"),
        user("Two", uuid="u2", parentUuid="a1"),
        answer("m2", use("c1"), use("c2"), uuid="a2", parentUuid="u2"),
        user([result("c1")], uuid="r1", parentUuid="a2"),
        user([result("c2")], uuid="r2", parentUuid="a2"),
        user("Two, but other", uuid="u3", parentUuid="a1"),
    )
    assert [each["name"] for each in events(operations, "command/run")] == ["rewind"]
    assert types(operations)[-5:] == [
        "turn/end",
        "command/run",
        "command/done",
        "turn/start",
        "user/message",
    ]
    assert len(events(operations, "user/message")) == 3


def test_a_resumed_session_s_copy_of_its_history_is_said_once() -> None:
    history = [
        user("One", uuid="u1"),
        answer("m1", use("c1"), uuid="a1"),
        user([result("c1")], uuid="r1"),
    ]
    operations = imported(*history, *history, user("One", uuid="u2"))
    assert [each["message_id"] for each in events(operations, "user/message")] == ["u1", "u2"]
    assert len(events(operations, "tool/result")) == 1


def test_an_image_at_an_address_is_a_file_and_a_told_error_is_kept() -> None:
    source = {"type": "url", "url": "https://example.org/a.png"}
    operations = imported(
        user([{"type": "image", "source": source}]),
        answer("m1", use("c1"), use("c2")),
        user([result("c1", "no")], uuid="r1", toolUseResult="Error: no"),
        user([result("c2", "yes")], uuid="r2", toolUseResult="yes"),
    )
    assert events(operations, "user/message")[0]["content"] == [
        {"type": "file", "media_type": "image/*", "url": "https://example.org/a.png"}
    ]
    assert [each.get("meta") for each in events(operations, "tool/result")] == [
        {"tool_use_result": "Error: no"},
        None,
    ]


def test_subagents_that_are_through_leave_nothing_in_memory() -> None:
    def session(agents: int) -> Iterator[bytes]:
        for at in range(agents):
            prompt = f"Look {at} " + "x" * 10_000
            for each in (
                answer(f"m{at}", use(f"c{at}", "Task", prompt=prompt)),
                user(prompt, isSidechain=True, uuid=f"s{at}"),
                answer(f"n{at}", said("y" * 10_000), isSidechain=True, parentUuid=f"s{at}"),
                user([result(f"c{at}")], uuid=f"r{at}"),
            ):
                yield json.dumps(each).encode() + b"\n"

    def held(agents: int) -> int:
        tracemalloc.start()
        try:
            for _ in CLAUDE_CODE(session(agents), name="s"):
                pass
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    held(1)
    assert held(200) - held(20) < 180 * 10_000


@pytest.mark.parametrize(
    ("blocks", "tail"),
    [
        ([said("a")], "read"),
        ([use("c1")], "unfinished"),
        ([{"type": "thinking", "thinking": "Hm"}], "unfinished"),
    ],
)
def test_what_may_still_grow_says_so(blocks: list[Json], tail: str) -> None:
    operations = imported(user("Go"), answer("m1", *blocks))
    tails = {
        operation.get("tail")
        for operation in operations
        if operation.get("op") == "append" and "step" in operation["event"]["data"]
    }
    assert tails == {tail}
    assert operations[-1] == {"op": "liveness", "live": False}


def test_a_subagent_is_a_conversation_of_its_own_and_its_calls_are_children() -> None:
    side: Json = {"isSidechain": True}
    operations = imported(
        user("Go"),
        answer("m1", use("c1", "Task", prompt="Look around")),
        user("Look around", **side, uuid="s1"),
        answer("m2", use("c2", "Task", prompt="Look deeper"), **side, uuid="s2", parentUuid="s1"),
        user("Look deeper", **side, uuid="d1"),
        answer("m3", use("c3", command="ls"), **side, uuid="d2", parentUuid="d1"),
        user([result("c3")], **side, uuid="d3", parentUuid="d2"),
        answer("m4", said("Deep."), **side, uuid="d4", parentUuid="d3"),
        user([result("c2", "Deep.")], **side, uuid="s3", parentUuid="s2"),
        user([result("c1", "All seen.")]),
        answer("m5", said("Thanks.")),
    )
    calls = {each["call_id"]: each for each in events(operations, "tool/call")}
    assert {name: each.get("parent_call_id") for name, each in calls.items()} == {
        "c1": None,
        "c2": "c1",
        "c3": "c2",
    }
    assert {each["step"] for each in calls.values()} == {1}
    assert [each["call_id"] for each in events(operations, "tool/result")] == ["c3", "c2", "c1"]
    assert [each["content"] for each in events(operations, "user/message", "c1")] == [
        [said("Look around")]
    ]
    assert [each["content"][0] for each in events(operations, "assistant/message", "c2")][
        1
    ] == said("Deep.")


def test_a_subagent_s_own_file_is_a_conversation() -> None:
    operations = imported(
        user("Look", isSidechain=True), answer("m", said("Seen"), isSidechain=True)
    )
    assert events(operations, "user/message")[0]["content"] == [said("Look")]


def test_commands_their_output_and_shell_lines() -> None:
    operations = imported(
        user("<command-name>/review</command-name><command-args>all</command-args>"),
        user("<local-command-stdout>Fine</local-command-stdout>"),
        user("<bash-input>ls</bash-input>"),
        user("<bash-stdout></bash-stdout><bash-stderr>No such</bash-stderr>"),
        user("<command-name>/clear</command-name>"),
        user("Go"),
        answer("m", said("Yes")),
        user("On"),
    )
    runs = events(operations, "command/run")
    assert [(each["name"], each.get("arguments")) for each in runs] == [
        ("review", "all"),
        ("!", "ls"),
        ("clear", None),
    ]
    done = events(operations, "command/done")
    assert [(each.get("output"), each.get("is_error")) for each in done] == [
        ("Fine", None),
        ("No such", True),
        (None, None),
    ]


def test_compaction_interrupts_errors_titles_and_steering() -> None:
    operations = imported(
        {"type": "summary", "summary": "Looking", "leafUuid": "x"},
        user("Go"),
        record("system", subtype="compact_boundary", compactMetadata={"trigger": "auto"}),
        user("In short: go", isCompactSummary=True),
        user("Again"),
        record("attachment", attachment={"type": "queued_command", "prompt": "Faster"}),
        user([said("[Request interrupted by user]")]),
        user("Once more"),
        answer("e", said("Overloaded"), isApiErrorMessage=True, error="overloaded"),
        user("Hidden", isMeta=True),
    )
    assert events(operations, "conversation/title")[0]["title"] == "Looking"
    assert events(operations, "compaction/summary")[0]["text"] == "In short: go"
    assert events(operations, "inbox/spliced")[0]["queue"] == "next-step"
    ends = [(each["reason"], each.get("error")) for each in events(operations, "turn/end")]
    assert ends == [
        ("completed", None),
        ("cancelled", None),
        ("error", {"name": "overloaded", "message": "Overloaded"}),
    ]
    assert len(events(operations, "claude-code/meta")) == 1


def test_odd_records_are_kept_and_lose_nobody() -> None:
    operations = imported(
        user("Go"),
        42,
        "odd",
        [1],
        {"silly": 1},
        user(None),
        record("user", message="no"),
        user("On"),
    )
    assert len(events(operations, "user/message")) == 2
    kept = [kind for kind in types(operations) if kind.startswith("claude-code/")]
    assert len(kept) == 6


def test_a_half_written_last_line_is_left_out() -> None:
    whole = json.dumps(user("Go")).encode() + b"\n"
    half = list(CLAUDE_CODE([whole, b'{"type": "us'], name="s"))
    assert half == list(CLAUDE_CODE([whole], name="s"))
    for lines in ([whole, b'{"type": "us\n', whole], [b"{"]):
        with pytest.raises(ImportFault, match=r"^s:\d: line: expected a JSON value"):
            list(CLAUDE_CODE(lines, name="s"))


def test_half_characters_find_each_other() -> None:
    line = json.dumps(user("x")).replace('"x"', '"\\ud83d\\ude00 \\ud83d"').encode()
    operations = list(CLAUDE_CODE([line], name="s"))
    assert events(operations, "user/message")[0]["content"] == [said("\U0001f600 \ufffd")]


def test_a_sync_server_s_list_is_sorted_by_time() -> None:
    def kept(content: Json, at: int) -> Json:
        return {"id": f"k{at}", "localId": None, "content": content, "createdAt": at}

    late = {**answer("m", said("Yes")), "timestamp": "2025-01-01T00:00:09Z"}
    listed = [
        kept({"role": "agent", "content": {"type": "output", "data": late}}, 1_735_689_609_500),
        kept({"role": "user", "content": {"type": "text", "text": "Go"}}, 1_735_689_601_000),
    ]
    operations = list(CLAUDE_CODE_WRAPPED([json.dumps(listed).encode()], name="s"))
    assert types(operations) == [
        "turn/start",
        "user/message",
        "step/start",
        "assistant/message",
    ]
    with pytest.raises(ImportFault, match=r"^s:1: line: expected a JSON value; the text ends"):
        list(CLAUDE_CODE_WRAPPED([b"[{"], name="s"))


def test_what_a_subagent_says_behind_its_result_is_still_its_own() -> None:
    operations = imported(
        user("Go"),
        answer("m1", use("c1", "Task", prompt="A")),
        user("A", isSidechain=True, uuid="s1"),
        user([result("c1")], uuid="r1"),
        answer("n1", said("The end."), isSidechain=True, parentUuid="s1", uuid="s2"),
        answer("n2", said("Really."), isSidechain=True, parentUuid="s2"),
    )
    assert [each["message_id"] for each in events(operations, "assistant/message")] == ["m1"]
    beside = events(operations, "assistant/message", "c1")
    assert [each["message_id"] for each in beside] == ["n1", "n2"]
