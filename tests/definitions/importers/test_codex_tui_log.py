"""What Codex showed in its terminal: pieces become answers, keys become prompts, events calls."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assembler import codec, plugins
from assembler.plugins import Sample
from assembler.recordings import Run
from assembler.recordings.arriving import disagreement
from assembler.recordings.format import read_lines
from assembler.recordings.transcripts import sample_of
from definitions.importers.codex_tui_log import CODEX_TUI

Json = dict[str, Any]

STARTED: Json = {"type": "task_started"}
COMPLETE: Json = {"type": "task_complete"}


def record(kind: str, **fields: Any) -> Json:
    return {"ts": "2025-08-10T03:12:26.500Z", "dir": "to_tui", "kind": kind, **fields}


def event(told: Json) -> Json:
    return record("codex_event", payload={"id": "1", "msg": told})


def op(kind: str, **fields: Any) -> Json:
    return record("op", payload={"type": kind, **fields}) | {"dir": "from_tui"}


def asks(said: str) -> Json:
    return op("user_input", items=[{"type": "text", "text": said}])


def key(code: str, *, held: str = "0x0", kind: str = "Press") -> Json:
    told = f"code: {code}, modifiers: KeyModifiers({held}), kind: {kind}"
    return record("key_event", event=f"KeyEvent {{ {told}, state: KeyEventState(0x0) }}")


def typed(said: str) -> Iterator[Json]:
    for character in said:
        yield key(f"Char('{character}')")
        yield key(f"Char('{character}')", kind="Release")


def piece(said: str, kind: str = "agent_message_delta") -> Json:
    return event({"type": kind, "delta": said})


def says(said: str) -> Json:
    return event({"type": "agent_message", "message": said})


def lines(*records: Json) -> list[bytes]:
    return [json.dumps(each).encode() + b"\n" for each in records]


def imported(*records: Json) -> list[Json]:
    return list(CODEX_TUI(lines(*records), name="log.jsonl"))


def events(operations: list[Json], kind: str) -> list[Json]:
    return [
        operation["event"]["data"]
        for operation in operations
        if operation.get("op") == "append" and operation["event"]["type"] == kind
    ]


def prompts(operations: list[Json]) -> list[str]:
    return [each["content"][0]["text"] for each in events(operations, "user/message")]


def agrees(operations: list[Json]) -> None:
    """See that every way of arriving at it shows the same."""
    told = [{name: each[name] for name in each if name != "tail"} for each in operations]
    recording = next(iter(read_lines([codec.encode(each) + b"\n" for each in told], "log")))
    definitions = plugins.catalog()
    run = Run(recording, definitions)
    for operation in recording.operations:
        run.do(operation)
    run.give_up()
    assert disagreement(run.assembler, run.facts(), definitions, run.views) is None


def test_an_answer_comes_in_pieces_and_is_said_once() -> None:
    operations = imported(
        asks("Hi"),
        event(STARTED),
        piece("Greet ", "agent_reasoning_delta"),
        piece("back", "agent_reasoning_delta"),
        event({"type": "agent_reasoning", "text": "Greet back."}),
        piece("Hel"),
        record("app_event", variant="Redraw"),
        piece("lo"),
        says("Hello"),
        event({"type": "token_count", "info": {"last_token_usage": {"input_tokens": 7}}}),
        event(COMPLETE | {"last_agent_message": "Hello"}),
    )
    deltas = [each for each in operations if each.get("type") in ("text", "reasoning")]
    assert [(each["type"], each["data"]["text"]) for each in deltas] == [
        ("reasoning", "Greet "),
        ("reasoning", "back"),
        ("text", "Hel"),
        ("text", "lo"),
    ]
    (answer,) = events(operations, "assistant/message")
    assert answer["content"] == [
        {"type": "reasoning", "text": "Greet back."},
        {"type": "text", "text": "Hello"},
    ]
    assert answer["usage"]["input_tokens"] == 7
    assert prompts(operations) == ["Hi"]
    assert events(operations, "turn/end") == [{"turn": 1, "reason": "completed"}]


def test_thoughts_told_whole_behind_all_their_pieces_keep_their_blocks() -> None:
    operations = imported(
        event(STARTED),
        piece("On", "agent_reasoning_delta"),
        event({"type": "agent_reasoning_section_break"}),
        piece("Tw", "agent_reasoning_delta"),
        event({"type": "agent_reasoning", "text": "One"}),
        event({"type": "agent_reasoning", "text": "Two"}),
        says("Done"),
        event(COMPLETE),
    )
    (answer,) = events(operations, "assistant/message")
    assert [block["text"] for block in answer["content"]] == ["One", "Two", "Done"]
    ends = [each["data"] for each in operations if each.get("type") == "block-end"]
    assert [(end["block"], end["value"]["text"]) for end in ends] == [
        (0, "One"),
        (1, "Two"),
        (2, "Done"),
    ]


def test_what_was_typed_is_the_prompt_when_the_log_does_not_say_it() -> None:
    operations = imported(
        *typed("hx"),
        key("Backspace"),
        *typed("i"),
        key("Enter", held="SHIFT"),
        *typed("you"),
        key("Enter"),
        event(STARTED),
        says("Hello"),
        event(COMPLETE),
        *typed("lost"),
        key("Char('c')", held="CONTROL"),
        *typed("A"),
        record("paste", text=" long text"),
        key("Enter"),
        event(STARTED),
    )
    assert prompts(operations) == ["hi\nyou", "A long text"]


@pytest.mark.parametrize("other", [key("Left"), key("Up"), key("Char('w')", held="CONTROL")])
def test_of_keys_that_change_a_text_elsewhere_no_prompt_is_made_up(other: Json) -> None:
    operations = imported(
        *typed("hi"),
        other,
        key("Enter"),
        event(STARTED),
        event(COMPLETE),
        *typed("yes"),
        key("Enter"),
        event(STARTED),
    )
    assert prompts(operations) == ["yes"]
    assert [each["turn"] for each in events(operations, "turn/start")] == [1, 2]


def test_what_was_sent_is_said_once_and_what_is_sent_meanwhile_steers() -> None:
    operations = imported(
        *typed("Hi"),
        key("Enter"),
        asks("Hi"),
        event(STARTED),
        event({"type": "user_message", "message": "Hi"}),
        asks("And?"),
        event({"type": "user_message", "message": "And?"}),
    )
    assert prompts(operations) == ["Hi", "And?"]
    steering = events(operations, "user/message")[1]["message_id"]
    assert events(operations, "inbox/spliced") == [
        {"queue": "next-step", "added": [steering], "claimed": [steering]}
    ]


def test_calls_begin_and_end_in_the_step_of_their_answer() -> None:
    begin = {"type": "exec_command_begin", "call_id": "c1", "command": ["ls"], "cwd": "/p"}
    operations = imported(
        asks("List"),
        event(STARTED),
        says("I look."),
        event(begin | {"parsed_cmd": []}),
        event({"type": "mcp_tool_call_begin", "call_id": "c2", "invocation": CALLED}),
        event({"type": "exec_command_end", "call_id": "c1", "stdout": "no", "exit_code": 2}),
        event({"type": "mcp_tool_call_end", "call_id": "c2", "result": {"Err": "gone"}}),
        says("Nothing."),
        event({"type": "web_search_begin", "call_id": "c3"}),
        event({"type": "web_search_end", "call_id": "c3", "query": "x"}),
        event(COMPLETE),
    )
    assert [
        (each["step"], each["name"], each["arguments"], each.get("ran_by"))
        for each in events(operations, "tool/call")
    ] == [
        (1, "shell", '{"command":["ls"],"cwd":"/p"}', None),
        (1, "mcp__files__look", '{"at":1}', None),
        (2, "web_search", '{"query":"x"}', "provider"),
    ]
    first, second, third = events(operations, "tool/result")
    assert first == {
        "call_id": "c1",
        "content": [{"type": "text", "text": "no"}],
        "is_error": True,
        "meta": {"exit_code": 2},
    }
    assert (second["is_error"], second["content"][0]["text"]) == (True, "gone")
    assert third == {"call_id": "c3", "content": []}
    stops = [each["stop_reason"] for each in events(operations, "assistant/message")]
    assert stops == ["end_turn", "end_turn"]
    agrees(operations)


CALLED: Json = {"server": "files", "tool": "look", "arguments": {"at": 1}}


@pytest.mark.parametrize(
    ("decision", "said", "is_denied"),
    [
        ("approved", "allow", False),
        ("approved_for_session", "allow", False),
        ("denied", "deny", True),
    ],
)
def test_a_call_waits_for_leave(decision: str, said: str, is_denied: bool) -> None:
    command = {"call_id": "c1", "command": ["rm", "a"]}
    operations = imported(
        asks("Clean"),
        event(STARTED),
        event({"type": "exec_approval_request", **command}),
        op("exec_approval", id="1", decision=decision),
        *([] if is_denied else [event({"type": "exec_command_begin", **command})]),
    )
    assert len(events(operations, "tool/call")) == 1
    (request,) = events(operations, "permission/request")
    (answer,) = events(operations, "permission/answer")
    assert answer["decision"] == said
    assert answer["request_id"] == request["request_id"]
    errors = [each["error"]["name"] for each in events(operations, "tool/result")]
    assert errors == (["denied"] if is_denied else [])
    agrees(operations)


@pytest.mark.parametrize(
    ("ended", "reason", "outcome"),
    [("turn_aborted", "cancelled", "interrupted"), ("error", "error", "failed")],
)
def test_an_answer_that_was_cut_says_how(ended: str, reason: str, outcome: str) -> None:
    operations = imported(
        asks("Hi"), event(STARTED), piece("Hel"), event({"type": ended, "message": "no"})
    )
    (answer,) = events(operations, "assistant/message")
    assert (answer["stop_reason"], answer["interrupted"]) == (reason, True)
    assert [each["outcome"] for each in operations if each.get("op") == "settle"] == [outcome]
    assert [each["reason"] for each in events(operations, "turn/end")] == [reason]
    agrees(operations)


def test_commands_and_records_that_say_nothing_to_us() -> None:
    operations = imported(
        *typed("/diff"), key("Enter"), record("slash_command", command="Diff"), event(STARTED)
    )
    assert events(operations, "command/run")[0]["name"] == "diff"
    assert prompts(operations) == []
    assert [each["variant"] for each in events(imported(ODD), "codex/app_event")] == ["Redraw"]
    assert len(events(list(CODEX_TUI([b"7\n"], name="log")), "codex/odd")) == 1


ODD = record("app_event", variant="Redraw")


def test_a_cut_log_says_the_beginning_of_the_whole_one(shared: Path) -> None:
    for path in logs(shared):
        records = path.read_bytes().splitlines(keepends=True)
        whole = [each for each in CODEX_TUI(records, name="log") if each.get("op") != "liveness"]
        for at in (*range(1, 40), *range(760, 840), *range(40, len(records), 997)):
            operations = CODEX_TUI(records[:at], name="log")
            cut = [each for each in operations if each.get("op") != "liveness"]
            stays = [each for each in cut if not each.get("tail")]
            assert stays == whole[: len(stays)], at


def test_it_knows_its_logs_alone(shared: Path) -> None:
    assert [path.parent.name for path in logs(shared)] == ["codex-tui-log"]
    assert not CODEX_TUI.recognises(Sample(({}, 1, {"kind": "chat"}, {"dir": "to_tui"})))


def test_a_recorded_session_reads_as_it_was(shared: Path) -> None:
    (path,) = logs(shared)
    operations = list(CODEX_TUI(path.read_bytes().splitlines(keepends=True), name="log"))
    assert prompts(operations) == ["hello", "hello again", "write write me a long story"]
    answers = events(operations, "assistant/message")
    kinds = [[block["type"] for block in answer["content"]] for answer in answers]
    assert kinds == [["reasoning", "text"]] * 3
    agrees(operations)


def logs(shared: Path) -> list[Path]:
    found = sorted(path for path in (shared / "streams").glob("*/*") if path.is_file())
    return [path for path in found if CODEX_TUI.recognises(beginning(path))]


def beginning(path: Path) -> Sample:
    with path.open("rb") as file:
        return sample_of(file)
