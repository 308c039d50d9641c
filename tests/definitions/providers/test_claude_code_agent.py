"""Claude Code as an agent: what each frame of its stream-json brings about."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assembler.codec import plain
from definitions.providers import AgentEvent, AgentPiece, ClaudeCodeAgent
from tests.definitions.claude_code_frames import (
    allowed,
    answered,
    asked,
    call,
    deltas,
    denied,
    ended,
    events,
    flat,
    frame,
    init,
    prompt,
    read,
    returned,
    said,
    settled,
    streamed,
    system,
    text,
    types,
)

Json = dict[str, Any]

ONE_CALL = [
    "turn/start",
    "user/message",
    "step/start",
    "assistant/message",
    "tool/call",
    "tool/result",
    "step/end",
    "step/start",
    "assistant/message",
    "step/end",
    "turn/end",
]

STORY = [
    prompt("Look", uuid="p1"),
    init(),
    streamed("m1", text("I look."), call("c1", command="ls")),
    asked("r1", "c1", input={"command": "ls"}),
    allowed("r1", updatedInput={"command": "ls -a"}),
    returned("c1", "a\nb", tool_use_result={"stdout": "a\nb"}),
    streamed("m2", text("Two files.")),
    ended(result="Two files.", stop_reason="end_turn"),
]


def say(pieces: list[AgentPiece]) -> list[Json]:
    return [plain(piece.data) for piece in pieces if isinstance(piece, AgentEvent)]


def told(pieces: list[AgentPiece]) -> Any:
    """All that pieces say, for comparing two ways of reading."""
    named = ("type", "attempt", "turn", "step", "number", "conversation", "outcome")
    return [
        [
            type(piece).__name__,
            *(str(getattr(piece, name, None)) for name in named),
            plain(getattr(piece, "data", None)),
        ]
        for piece in pieces
    ]


# Answers


def test_a_streamed_turn_with_a_call() -> None:
    pieces = read(*STORY)
    asking = ["permission/request", "permission/answer"]
    assert types(pieces) == [*ONE_CALL[:5], *asking, *ONE_CALL[5:]]
    first, second = events(pieces, "assistant/message")
    assert [block["type"] for block in first["content"]] == ["text", "tool-call"]
    assert first["stop_reason"] == "tool_use"
    assert second["content"] == [text("Two files.")]
    assert first["usage"]["output_tokens"] == 9
    assert settled(pieces) == [("1.1.1", "completed"), ("1.2.1", "completed")]
    assert [delta["text"] for delta in deltas(pieces, "text")] == ["I look.", "Two files."]


def test_without_partial_messages_each_block_has_a_frame_of_one_message() -> None:
    pieces = read(
        prompt("Look"),
        said("m1", text("I look.")),
        said("m1", call("c1")),
        said("m1", call("c2")),
        returned("c1"),
        returned("c2"),
        said("m2", text("Done.")),
        ended(stop_reason="end_turn"),
    )
    first, second = events(pieces, "assistant/message")
    assert [block["type"] for block in first["content"]] == ["text", "tool-call", "tool-call"]
    assert first["usage"]["input_tokens"] == 3
    assert (first["stop_reason"], second["stop_reason"]) == ("tool_use", "end_turn")
    assert [each["call_id"] for each in events(pieces, "tool/call")] == ["c1", "c2"]
    assert [delta["text"] for delta in deltas(pieces, "text")] == ["I look.", "Done."]


def test_frames_of_a_message_that_was_streamed_say_nothing_new() -> None:
    late = [*streamed("m1", text("Hello")), said("m1", text("Hello"))]
    pieces = read(prompt("Hi"), late, ended())
    assert len(events(pieces, "assistant/message")) == 1
    assert types(pieces).count("step/start") == 1


def test_the_same_frame_again_is_no_second_message() -> None:
    pieces = read(said("m1", call("c1")), returned("c1"), said("m1", call("c1")), ended())
    assert len(events(pieces, "assistant/message")) == 1
    assert len(events(pieces, "tool/call")) == 1


def test_blocks_that_come_behind_a_result_are_an_answer_without_usage() -> None:
    pieces = read(
        said("m1", call("c1")), returned("c1"), said("m1", call("c2")), returned("c2"), ended()
    )
    first, second = events(pieces, "assistant/message")
    assert "usage" in first
    assert "usage" not in second
    assert [each["step"] for each in events(pieces, "tool/call")] == [1, 2]


def test_a_result_that_comes_while_its_answer_is_streamed_waits_for_it() -> None:
    whole = streamed("m1", call("c1"), text("And more."))
    pieces = read(whole[:5], returned("c1"), whole[5:], ended())
    assert types(pieces)[2:5] == ["assistant/message", "tool/call", "tool/result"]


def test_a_message_whose_stop_is_lost_is_whole_when_a_call_of_it_ran() -> None:
    whole = streamed("m1", call("c1"))
    pieces = read(whole[:-2], returned("c1"), streamed("m2", text("Done.")), ended())
    assert types(pieces) == ONE_CALL[:1] + ONE_CALL[2:]


def test_events_alone_tell_an_answer_and_its_calls() -> None:
    whole = [each for each in streamed("m1", call("c1", x=1)) if each["type"] == "stream_event"]
    for frames in (whole, whole[1:]):  # the beginning may not be seen
        pieces = read(frames[:-2], returned("c1"), frames[-2:], ended())
        assert types(pieces)[2:5] == ["assistant/message", "tool/call", "tool/result"]
        assert events(pieces, "tool/call")[0]["arguments"] == '{"x": 1}'
    assert types(read(whole[-2:])) == []


def test_a_frame_may_say_why_its_message_stopped() -> None:
    cut = said("m1", text("a"))
    cut["message"]["stop_reason"] = "max_tokens"
    (message,) = events(read(cut, ended(stop_reason="end_turn")), "assistant/message")
    assert message["stop_reason"] == "length"


# Attempts


def test_a_message_that_broke_off_gives_way_to_the_next() -> None:
    broken = streamed("m1", text("I was"), call("c1", command="rm"), end=False)
    pieces = read(prompt("Hi"), broken, streamed("m2", text("Hello")), ended())
    (retry,) = events(pieces, "llm/retry")
    assert (retry["attempt"], retry["number"], retry["reason"]) == ("1.1.1", 1, "no-terminal")
    assert settled(pieces) == [("1.1.1", "abandoned"), ("1.1.2", "completed")]
    assert events(pieces, "tool/call") == []
    assert len(events(pieces, "assistant/message")) == 1
    assert types(pieces).count("step/start") == 1


def test_with_another_model_that_is_a_fallback() -> None:
    broken = streamed("m1", text("I was"), end=False, model="large")
    pieces = read(broken, streamed("m2", text("Hello")), ended())
    (fallback,) = events(pieces, "llm/fallback")
    assert (fallback["from_model"], fallback["to_model"]) == ("large", "small")
    assert events(pieces, "llm/retry") == []


def test_an_answer_that_is_not_streamed_follows_one_that_broke_off() -> None:
    broken = streamed("m1", text("I was"), end=False)
    pieces = read(broken, said("m2", text("Hello")), ended())
    assert [each["content"] for each in events(pieces, "assistant/message")] == [[text("Hello")]]
    assert settled(pieces) == [("1.1.1", "abandoned"), ("1.1.2", "completed")]


def test_a_retry_that_the_program_tells() -> None:
    retry = system("api_retry", attempt=1, retry_delay_ms=500, error_status=529, error="overloaded")
    broken = streamed("m1", text("I was"), end=False)
    pieces = read(prompt("Hi"), retry, broken, retry, streamed("m2", text("Hello")), ended())
    told = [
        (each["retry_id"], each["number"], each["delay_ms"]) for each in events(pieces, "llm/retry")
    ]
    assert told == [("retry-1.1", 1, 500), ("retry-1.1", 2, 500)]
    assert events(pieces, "llm/retry")[0]["reason"] == "overloaded"
    assert settled(pieces) == [("1.1.2", "abandoned"), ("1.1.3", "completed")]


def test_what_people_have_read_stays_when_the_turn_fails() -> None:
    broken = streamed("m1", text("I was"), call("c1", x=1), end=False)
    pieces = read(prompt("Hi"), broken, ended("error_during_execution", errors=["gone"]))
    (message,) = events(pieces, "assistant/message")
    assert message["content"] == [text("I was")]
    assert (message["interrupted"], message["stop_reason"]) == (True, "error")
    assert settled(pieces) == [("1.1.1", "failed")]
    (end,) = events(pieces, "turn/end")
    assert end["error"] == {"name": "error_during_execution", "message": "gone"}


def test_an_answer_that_another_one_supersedes_is_withdrawn() -> None:
    refused = said("m1", text("I was"), call("c1"), uuid="f1")
    pieces = read(prompt("Hi"), refused, said("m2", text("Hello"), supersedes=["f1"]), ended())
    assert [each["content"] for each in events(pieces, "assistant/message")] == [[text("Hello")]]
    assert settled(pieces) == [("1.1.1", "abandoned"), ("1.1.2", "completed")]
    assert events(pieces, "llm/retry")[0]["reason"] == "superseded"


@pytest.mark.parametrize("begun", [[], streamed("m1", text("I w"), end=False)])
def test_an_answer_that_was_aborted_keeps_what_was_said(begun: list[Json]) -> None:
    cut = said("m1", text("I w"), aborted=True)
    pieces = read(prompt("Hi"), begun, cut, cut, ended(terminal_reason="aborted_streaming"))
    (message,) = events(pieces, "assistant/message")
    assert message["content"] == [text("I w")]
    assert message["interrupted"] is True
    assert settled(pieces) == [("1.1.1", "interrupted")]


# How a turn ends


def test_the_last_answer_has_the_usage_that_no_frame_told() -> None:
    usage = {"input_tokens": 9, "output_tokens": 50, "cache_read_input_tokens": 7}
    pieces = read(
        *(said("m1", call("c1")), returned("c1"), said("m2", text("a")), ended(usage=usage))
    )
    first, last = (each["usage"] for each in events(pieces, "assistant/message"))
    assert (first["input_tokens"], first["output_tokens"]) == (3, 1)
    assert (last["input_tokens"], last["output_tokens"]) == (6, 49)
    assert last["cache_read_tokens"] == 7
    exact = read(streamed("m1", text("a")), ended(usage=usage))
    assert events(exact, "assistant/message")[0]["usage"]["output_tokens"] == 9


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (ended(), "completed"),
        (ended("error_max_turns"), "limit"),
        (ended("error_max_budget_usd"), "limit"),
        (ended("error_during_execution"), "error"),
        (ended("success", is_error=True, result="API Error"), "error"),
        (ended("success", terminal_reason="aborted_streaming"), "cancelled"),
    ],
)
def test_a_result_ends_the_turn(result: Json, reason: str) -> None:
    pieces = read(prompt("Hi"), said("m1", text("Hello")), result)
    assert [end["reason"] for end in events(pieces, "turn/end")] == [reason]
    assert events(pieces, "claude-code/result") == [result]


def test_a_failed_request_is_the_error_of_its_turn() -> None:
    failed = said("m1", text("API Error: 529"), error="overloaded")
    pieces = read(prompt("Hi"), failed, ended(is_error=True, result="API Error: 529"))
    assert events(pieces, "assistant/message") == []
    error = {"name": "overloaded", "message": "API Error: 529"}
    assert events(pieces, "turn/end")[0]["error"] == error


def test_an_error_that_an_answer_follows_is_none() -> None:
    failed = said("m1", text("API Error"), error="rate_limit")
    pieces = read(prompt("Hi"), failed, said("m2", text("Hello")), ended())
    assert events(pieces, "turn/end") == [{"turn": 1, "reason": "completed"}]
    assert events(pieces, "claude-code/error") == [failed]


def test_an_error_without_a_turn_opens_one() -> None:
    pieces = read(init(), ended("error_during_execution", errors=["no key"]))
    assert types(pieces) == ["turn/start", "turn/end"]


def test_an_interruption_cancels_the_turn_once() -> None:
    request = {"type": "control_request", "request_id": "h1", "request": {"subtype": "interrupt"}}
    pieces = read(
        prompt("Hi"),
        streamed("m1", text("I was"), end=False),
        request,
        prompt([text("[Request interrupted by user]")]),
        ended("error_during_execution"),
        prompt("Again"),
    )
    assert events(pieces, "turn/end") == [{"turn": 1, "reason": "cancelled"}]
    assert events(pieces, "assistant/message")[0]["interrupted"] is True
    assert settled(pieces) == [("1.1.1", "interrupted")]
    assert len(events(pieces, "user/message")) == 2


def test_the_result_of_an_interrupted_turn_may_come_behind_the_next_prompt() -> None:
    pieces = read(
        *(prompt("Hi"), said("m1", text("a")), prompt("[Request interrupted by user]")),
        *(prompt("Again"), ended("error_during_execution"), said("m2", text("b")), ended()),
    )
    assert [end["reason"] for end in events(pieces, "turn/end")] == ["cancelled", "completed"]
    assert len(events(pieces, "user/message")) == 2


def test_a_conversation_that_was_reset_is_at_an_end() -> None:
    reset = frame("conversation_reset", new_conversation_id="n")
    pieces = read(prompt("Hi"), said("m1", text("a")), reset)
    assert events(pieces, "turn/end") == [{"turn": 1, "reason": "completed"}]
    assert events(pieces, "claude-code/conversation_reset") == [reset]


def test_a_request_to_interrupt_says_why_the_turn_failed() -> None:
    request = {"type": "control_request", "request_id": "h1", "request": {"subtype": "interrupt"}}
    pieces = read(prompt("Hi"), request, ended("error_during_execution"))
    assert events(pieces, "turn/end") == [{"turn": 1, "reason": "cancelled"}]


def test_a_program_that_was_begun_anew_left_its_turn() -> None:
    pieces = read(prompt("Hi"), init(), said("m1", call("c1")), init(), said("m2", text("Hello")))
    assert events(pieces, "turn/end") == [{"turn": 1, "reason": "interrupted"}]


def test_a_result_without_an_answer_is_the_answer() -> None:
    pieces = read(prompt("/cost"), ended(result="0.02 dollars"), ended(result="0.02 dollars"))
    assert events(pieces, "assistant/message")[0]["content"] == [text("0.02 dollars")]
    assert len(events(read(said("m1", text("a")), ended(result="a")), "assistant/message")) == 1


def test_finishing_ends_an_open_turn_when_a_reason_is_given() -> None:
    begun = [prompt("Hi"), streamed("m1", text("I was"), end=False)]
    assert events(read(*begun), "turn/end") == []
    pieces = read(*begun, reason="interrupted")
    assert events(pieces, "turn/end") == [{"turn": 1, "reason": "interrupted"}]
    assert events(pieces, "assistant/message")[0]["content"] == [text("I was")]


def test_names_that_are_made_depend_on_that_of_the_conversation() -> None:
    told = set()
    for name in ("", "a", "b"):
        agent = ClaudeCodeAgent(name=name)
        pieces = [*agent.feed(said("m1", text("a"))), *agent.feed(ended())]
        beside = [*agent.feed(said("m1", text("a"), parent="t1")), *agent.finish("error")]
        told |= {each["message_id"] for each in events(pieces, "assistant/message")}
        told |= {each["message_id"] for each in events(beside, "assistant/message", "t1")}
    assert len(told) == 6


# Prompts


def test_what_is_said_meanwhile_waits_for_the_next_step() -> None:
    pieces = read(
        prompt("Hi", uuid="p1"),
        streamed("m1", call("c1")),
        prompt("Faster", uuid="p2"),
        returned("c1"),
        streamed("m2", text("Done.")),
        ended(),
    )
    message = {"message_id": "p2", "content": [text("Faster")]}
    waits, taken = events(pieces, "inbox/spliced")
    queue = {"queue": "next-step", "added": ["p2"], "claimed": [], "messages": [message]}
    assert waits == queue
    assert taken == {"queue": "next-step", "added": [], "claimed": ["p2"]}
    assert events(pieces, "user/message")[1] == message
    at = types(pieces)
    assert at.index("inbox/spliced") < at.index("tool/result")
    assert at[-6:] == [
        "inbox/spliced",
        "user/message",
        "step/start",
        "assistant/message",
        "step/end",
        "turn/end",
    ]


def test_what_nobody_took_begins_the_next_turn() -> None:
    pieces = read(
        prompt("Hi"), said("m1", text("a")), prompt("And?"), ended(), said("m2", text("b"))
    )
    assert types(pieces)[-5:-2] == ["turn/start", "inbox/spliced", "user/message"]


def test_the_program_repeats_a_prompt_and_it_is_one() -> None:
    pieces = read(prompt("Hi"), prompt("Hi", uuid="p1", isReplay=True), said("m1", text("a")))
    assert len(events(pieces, "user/message")) == 1
    expanded = read(prompt("@a", uuid="p1"), prompt("a: x", uuid="p1", isReplay=True))
    assert len(events(expanded, "user/message")) == 1
    alone = read(prompt("Hi", uuid="p1", isReplay=True), said("m1", text("a")))
    assert len(events(alone, "user/message")) == 1


@pytest.mark.parametrize(
    ("block", "told"),
    [
        ("Hi", text("Hi")),
        (text("Hi"), text("Hi")),
        (
            {"type": "image", "source": {"data": "eA==", "media_type": "image/png"}},
            {"type": "file", "media_type": "image/png", "data": "eA=="},
        ),
        (
            {"type": "document", "source": {"data": "eA=="}},
            {"type": "file", "media_type": "application/octet-stream", "data": "eA=="},
        ),
        (
            {"type": "search_result", "x": 1},
            {
                "type": "provider",
                "provider": "anthropic",
                "raw": {"type": "search_result", "x": 1},
            },
        ),
    ],
)
def test_what_a_prompt_and_a_result_may_hold(block: Any, told: Json) -> None:
    pieces = read(prompt([block], uuid="p1"), said("m1", call("c1")), returned("c1", [block]))
    assert events(pieces, "user/message") == [{"message_id": "p1", "content": [told]}]
    assert events(pieces, "tool/result")[0]["content"] == [told]


def test_who_wrote_a_prompt_is_said_when_no_person_did() -> None:
    pieces = read(prompt("<task-notification>", origin={"kind": "task-notification"}))
    assert events(pieces, "user/message")[0]["source"] == {"kind": "task-notification"}


def test_what_the_program_wrote_for_the_model_shows_no_row() -> None:
    for mark in ("isSynthetic", "isMeta"):
        made_up = prompt("Base directory for this skill", **{mark: True})
        pieces = read(prompt("Hi"), made_up)
        assert len(events(pieces, "user/message")) == 1
        assert events(pieces, "claude-code/synthetic") == [made_up]


def test_a_frame_that_is_kept_says_what_it_was() -> None:
    beside = {**returned("c1"), "message": {"content": [*returned("c1")["message"]["content"]]}}
    beside["message"]["content"].append(text("A reminder."))
    answer = answered("h1", ok=True)
    kept = {
        "init": init(),
        "control_response": answer,
        "user": beside,
        "system": {"type": "system"},
        "odd": {"x": 1},
    }
    pieces = read(*kept.values(), "no frame")
    for kind in ("init", "control_response", "user", "system"):
        assert events(pieces, f"claude-code/{kind}") == [kept[kind]]
    assert events(pieces, "claude-code/odd") == [{"x": 1}, {"value": "no frame"}]


def test_what_a_command_printed() -> None:
    pieces = read(prompt("<local-command-stdout>Set model</local-command-stdout>"))
    assert events(pieces, "command/done")[0]["output"] == "Set model"
    pieces = read(system("local_command_output", content="Set model"))
    assert events(pieces, "command/done")[0]["output"] == "Set model"


def test_turns_go_on_behind_those_of_the_conversation() -> None:
    pieces = read(prompt("Hi"), said("m1", text("a")), ended(), turn=4)
    assert events(pieces, "turn/start") == [{"turn": 5}]
    assert events(pieces, "assistant/message")[0]["turn"] == 5


# Calls and questions


def test_a_question_and_what_is_run_instead() -> None:
    (request,) = events(read(*STORY), "permission/request")
    assert (request["call_id"], request["request_id"]) == ("c1", "r1")
    assert (request["tool_name"], request["input"]) == ("Bash", {"command": "ls"})
    (answer,) = events(read(*STORY), "permission/answer")
    assert (answer["decision"], answer["updated_input"]) == ("allow", {"command": "ls -a"})
    assert "remember" not in answer


def test_a_call_is_written_before_somebody_is_asked() -> None:
    pieces = read(said("m1", call("c1", command="ls")), asked("r1", "c1"))
    assert types(pieces)[-2:] == ["tool/call", "permission/request"]


def test_a_question_about_an_answer_that_is_still_streamed_is_asked_at_once() -> None:
    whole = streamed("m1", call("c1"))
    pieces = read(whole[:-2], asked("r1", "c1"), whole[-2:])
    assert types(pieces)[-3:] == ["permission/request", "assistant/message", "tool/call"]


def test_a_refusal_and_the_result_of_its_call() -> None:
    no = returned("c1", "No.", is_error=True)
    pieces = read(said("m1", call("c1")), asked("r1", "c1"), denied("r1"), no)
    (answer,) = events(pieces, "permission/answer")
    assert (answer["decision"], answer["message"]) == ("deny", "No.")
    (result,) = events(pieces, "tool/result")
    assert result["error"] == {"name": "denied", "message": "No."}
    assert result["is_error"] is True


def test_a_rule_for_the_future_is_remembered() -> None:
    rules = [{"type": "addRules", "rules": [{"toolName": "Bash"}]}]
    pieces = read(asked("r1", "c1"), allowed("r1", updatedPermissions=rules))
    (answer,) = events(pieces, "permission/answer")
    named = {"call_id": "c1", "request_id": "r1", "decision": "allow"}
    assert answer == {**named, "remember": True, "updated_permissions": rules}


def test_a_host_that_fails_to_answer_refuses() -> None:
    response = {"subtype": "error", "request_id": "r1", "error": "boom"}
    pieces = read(asked("r1", "c1"), {"type": "control_response", "response": response})
    (answer,) = events(pieces, "permission/answer")
    assert (answer["decision"], answer["error"]) == ("deny", "boom")


def test_a_question_that_was_taken_back_has_no_answer() -> None:
    back = {"type": "control_cancel_request", "request_id": "r1"}
    pieces = read(asked("r1", "c1"), back, allowed("r1"))
    assert events(pieces, "permission/answer") == []
    assert events(pieces, "claude-code/control_cancel_request") == [back]


def test_a_rule_refuses_a_call_without_a_question() -> None:
    refused = system("permission_denied", tool_name="Bash", tool_use_id="c1", message="No.")
    pieces = read(said("m1", call("c1")), refused, returned("c1", "No.", is_error=True))
    assert events(pieces, "tool/result")[0]["error"]["name"] == "denied"


def test_a_question_is_one_however_often_it_is_told() -> None:
    again = {"subtype": "success", "request_id": "h1", "pending_permission_requests": []}
    again["pending_permission_requests"] = [asked("r1", "c1"), asked("r2", "c2")]
    pieces = read(
        *(asked("r1", "c1"), asked("r1", "c1"), {"type": "control_response", "response": again})
    )
    named = [each["request_id"] for each in events(pieces, "permission/request")]
    assert named == ["r1", "r2"]


def test_request_numbers_that_start_again_name_new_questions() -> None:
    pieces = read(
        said("m1", call("c1"), call("c2")),
        *(asked("r1", "c1"), allowed("r1"), asked("r1", "c1"), denied("r1")),
        *(asked("r1", "c2"), allowed("r1")),
    )
    named = [(each["call_id"], each["request_id"]) for each in events(pieces, "permission/answer")]
    assert named == [("c1", "r1"), ("c1", "r1#2"), ("c2", "r1")]


def test_a_call_that_only_a_question_tells() -> None:
    pieces = read(asked("r1", "c1", "Read", input={"path": "a"}))
    (made,) = events(pieces, "tool/call")
    assert (made["name"], made["arguments"]) == ("Read", '{"path":"a"}')


def test_a_hook_shows_that_a_call_runs() -> None:
    told = {"subtype": "hook_callback", "callback_id": "h", "tool_use_id": "c1"}
    hook = {"type": "control_request", "request_id": "r1", "request": told}
    pieces = read(said("m1", call("c1")), hook)
    kinds = [piece.type for piece in pieces if isinstance(piece, AgentEvent)]
    assert kinds[-2:] == ["tool/call", "claude-code/hook_callback"]
    for subtype in ("hook_started", "hook_response"):
        one = system(subtype, hook_event="PreToolUse")
        assert events(read(one), f"claude-code/{subtype}") == [one]


def test_an_id_that_comes_again_is_another_call() -> None:
    pieces = read(
        *(said("m1", call("c1", x=1)), returned("c1"), said("m2", call("c1", x=2))),
        *(returned("c1", "2"), ended()),
    )
    first, second = events(pieces, "tool/call")
    assert first["call_id"] != second["call_id"]
    assert second["provider_call_id"] == "c1"
    assert events(pieces, "tool/result")[1]["call_id"] == second["call_id"]


def test_what_the_provider_ran_by_itself() -> None:
    ran = {"type": "server_tool_use", "id": "w1", "name": "web_search", "input": {"query": "x"}}
    found: Json = {"type": "web_search_tool_result", "tool_use_id": "w1", "content": []}
    pieces = read(said("m1", ran, found, text("Nothing.")), ended())
    (made,) = events(pieces, "tool/call")
    assert (made["ran_by"], made["turn"], made["step"]) == ("provider", 1, 1)
    assert events(pieces, "tool/result")[0]["call_id"] == "w1"


def test_a_result_keeps_what_the_program_knows_of_it() -> None:
    (result,) = events(read(*STORY), "tool/result")
    assert result["meta"] == {"tool_use_result": {"stdout": "a\nb"}}
    assert result["content"] == [text("a\nb")]


# Subagents


SUBAGENT = [
    prompt("Find it"),
    said("m1", call("a1", "Task", prompt="look")),
    prompt("look", parent="a1"),
    said("s1", text("I look."), parent="a1"),
    said("s1", call("c1", "Read", path="a"), parent="a1"),
    returned("c1", "x", parent="a1"),
    said("s2", text("Found."), parent="a1"),
    returned("a1", "Found."),
    said("m2", text("There.")),
    ended(),
]


def test_the_calls_of_a_subagent_stand_in_the_call_that_started_it() -> None:
    pieces = read(*SUBAGENT)
    outer, inner = events(pieces, "tool/call")
    assert (inner["call_id"], inner["parent_call_id"]) == ("c1", "a1")
    assert (inner["name"], inner["arguments"]) == ("Read", '{"path":"a"}')
    assert (inner["turn"], inner["step"]) == (outer["turn"], outer["step"])
    assert [each["call_id"] for each in events(pieces, "tool/result")] == ["c1", "a1"]
    assert len(events(pieces, "assistant/message")) == 2


def test_a_call_of_a_subagent_that_is_told_again_is_one() -> None:
    again = said("s1", call("c1", "Read", path="a"), parent="a1")
    for frames in ([again], [again, returned("c1", "x", parent="a1"), again]):
        pieces = read(said("m1", call("a1", "Task")), *frames, again)
        assert len(events(pieces, "tool/call")) == 2
    other = said("s2", call("c1", "Read", path="b"), parent="a1")
    pieces = read(said("m1", call("a1", "Task")), again, returned("c1", parent="a1"), other)
    assert [each["call_id"] for each in events(pieces, "tool/call")] == ["a1", "c1", "c1#2"]
    assert events(pieces, "tool/call")[2]["provider_call_id"] == "c1"


def test_what_a_subagent_says_is_a_conversation_of_its_own() -> None:
    pieces = read(*SUBAGENT)
    assert types(pieces, "a1") == ONE_CALL
    first, second = events(pieces, "assistant/message", "a1")
    assert first["content"][0] == text("I look.")
    assert second["content"] == [text("Found.")]
    assert events(pieces, "turn/end", "a1") == [{"turn": 1, "reason": "completed"}]


def test_a_call_inside_a_subagent_of_a_subagent_stands_at_the_outermost_step() -> None:
    pieces = read(
        said("m1", call("a1", "Task")),
        said("s1", call("a2", "Task"), parent="a1"),
        said("t1", call("c1"), parent="a2"),
        returned("c1", parent="a2"),
        returned("a2", parent="a1"),
        returned("a1"),
    )
    made = events(pieces, "tool/call")
    assert [each.get("parent_call_id") for each in made] == [None, "a1", "a2"]
    assert {each["step"] for each in made} == {1}
    assert types(pieces, "a2")[-1] == "turn/end"
    assert types(pieces, "a1")[-1] == "turn/end"


def test_a_streamed_subagent_shows_its_text_beside() -> None:
    pieces = read(streamed("m1", call("a1", "Task")), streamed("s1", text("I look."), parent="a1"))
    assert [piece.conversation for piece in pieces if getattr(piece, "type", "") == "text"] == [
        "a1"
    ]
    assert len(events(pieces, "assistant/message", "a1")) == 1


def test_a_question_about_a_call_inside_a_subagent() -> None:
    begun = system("task_started", task_id="t1", tool_use_id="a1")
    pieces = read(
        streamed("m1", call("a1", "Task")), begun, asked("r1", "c1", agent_id="t1"), allowed("r1")
    )
    assert events(pieces, "tool/call")[1]["parent_call_id"] == "a1"
    heard = said("s1", text("I look."), parent="a1", agent_id="t1")
    pieces = read(streamed("m1", call("a1", "Task")), heard, asked("r1", "c1", agent_id="t1"))
    assert events(pieces, "tool/call")[1]["parent_call_id"] == "a1"
    unknown = read(streamed("m1", call("a1", "Task")), asked("r1", "c1", agent_id="t1"))
    assert len(events(unknown, "tool/call")) == 1
    assert events(unknown, "permission/request")[0]["call_id"] == "c1"


def test_an_interruption_ends_the_subagents_too() -> None:
    pieces = read(*SUBAGENT[:4], prompt("[Request interrupted by user]"))
    assert events(pieces, "turn/end", "a1") == [{"turn": 1, "reason": "cancelled"}]


# Work in the background


def test_a_subagent_in_the_background_goes_on_behind_its_turn() -> None:
    began = {"status": "async_launched", "agentId": "t1"}
    pieces = read(
        streamed("m1", call("a1", "Task")),
        system("task_started", task_id="t1", tool_use_id="a1"),
        returned("a1", "Started.", tool_use_result=began),
        streamed("m2", text("It runs.")),
        ended(),
        said("s1", call("c1"), parent="a1"),
        returned("c1", parent="a1"),
        system("task_notification", task_id="t1", status="completed", summary="Done."),
    )
    assert events(pieces, "tool/call")[1]["step"] == 1
    assert types(pieces).count("turn/start") == 1
    assert types(pieces, "a1")[-1] == "turn/end"
    assert types(pieces, "a1").count("turn/start") == 1
    assert len(events(pieces, "claude-code/task_notification")) == 1
    results = [each for each in events(pieces, "tool/result") if each["call_id"] == "a1"]
    told = [(each["content"], each.get("synthetic", False)) for each in results]
    assert told == [([text("Started.")], True), ([text("Done.")], False)]


def test_a_command_in_the_background_has_its_notice_as_its_result() -> None:
    began = {"stdout": "", "backgroundTaskId": "t1"}
    pieces = read(
        streamed("m1", call("c1")),
        system("task_started", task_id="t1", tool_use_id="c1", is_backgrounded=True),
        returned("c1", "It runs.", tool_use_result=began),
        system("task_updated", task_id="t1", patch={"status": "failed"}),
        system("task_notification", task_id="t1", status="failed", summary="Exit 1."),
        ended(),
    )
    first, last = events(pieces, "tool/result")
    assert (first["synthetic"], last["is_error"]) == (True, True)
    assert last["content"] == [text("Exit 1.")]


def test_the_end_of_work_in_the_background_may_come_without_a_notice() -> None:
    began = {"backgroundTaskId": "t1"}
    story = [
        streamed("m1", call("c1")),
        system("task_started", task_id="t1", tool_use_id="c1"),
        returned("c1", "It runs.", tool_use_result=began),
        ended(),
        system("task_updated", task_id="t1", patch={"status": "completed"}),
    ]
    for last in (prompt("Well?"), ended(), []):
        results = events(read(*story, last), "tool/result")
        assert [each["content"] for each in results] == [[text("It runs.")], [text("completed")]]


@pytest.mark.parametrize("status", ["completed", "failed", "killed"])
def test_work_that_ends_without_a_result_is_its_result(status: str) -> None:
    ends = system("task_updated", task_id="t1", patch={"status": status})
    pieces = read(
        streamed("m1", call("c1")),
        system("task_started", task_id="t1", tool_use_id="c1"),
        ended(),
        ends,
    )
    at_once, last = events(pieces, "tool/result")
    assert (at_once.pop("synthetic"), at_once) == (True, last)
    assert last["content"] == [text(status)]
    assert last.get("is_error", False) is (status != "completed")


def test_work_that_failed_says_why() -> None:
    patch = {"status": "failed", "error": "No space."}
    story = [streamed("m1", call("c1")), system("task_started", task_id="t1", tool_use_id="c1")]
    pieces = read(*story, system("task_updated", task_id="t1", patch=patch), ended())
    assert events(pieces, "tool/result")[0]["content"] == [text("No space.")]


def test_the_real_result_of_work_that_ended_comes_first() -> None:
    pieces = read(
        streamed("m1", call("c1")),
        system("task_notification", task_id="t1", tool_use_id="c1", status="completed"),
        returned("c1", "real"),
        ended(),
    )
    assert [each["content"] for each in events(pieces, "tool/result")] == [[text("real")]]


# The program


def test_a_compaction_and_its_summary() -> None:
    boundary = system("compact_boundary", compact_metadata={"trigger": "auto", "pre_tokens": 9})
    summary = prompt("This session is being continued from a previous conversation. Cats.")
    pieces = read(prompt("Hi"), said("m1", text("a")), boundary, summary, said("m2", text("b")))
    assert types(pieces)[4:8] == [
        "compaction/start",
        "compaction/summary",
        "compaction/end",
        "step/end",
    ]
    assert events(pieces, "compaction/summary")[0]["text"].endswith("Cats.")
    assert events(pieces, "compaction/start")[0]["metadata"]["trigger"] == "auto"
    assert len(events(pieces, "user/message")) == 1


def test_things_without_names_have_different_ones() -> None:
    twice = [system("compact_boundary"), prompt("This session is being continued from"), said("m1")]
    named = events(read(*twice, *twice), "compaction/start")
    assert len({each["compaction_id"] for each in named}) == 2
    commands = events(read(*[system("local_command_output", content="x")] * 2), "command/run")
    assert len({each["command_id"] for each in commands}) == 2
    named = events(read(system("compact_boundary", uuid="b1")), "compaction/start")
    assert named[0]["compaction_id"] == "compaction-b1"


def test_a_summary_alone_is_a_compaction() -> None:
    told = prompt("Cats.", isCompactSummary=True)
    assert types(read(told)) == ["compaction/start", "compaction/summary", "compaction/end"]
    made_up = prompt("Cats.", isSynthetic=True)
    pieces = read(system("compact_boundary"), made_up)
    assert events(pieces, "compaction/summary")[0]["text"] == "Cats."


def test_a_compaction_without_a_summary_is_over_all_the_same() -> None:
    pieces = read(prompt("Hi"), system("compact_boundary"), said("m2", text("b")))
    assert types(pieces)[2:5] == ["compaction/start", "compaction/summary", "compaction/end"]


@pytest.mark.parametrize(
    "odd",
    [
        frame("rate_limit_event", rate_limit_info={"status": "allowed"}),
        system("status", status="compacting"),
        frame("what_comes_next", x=1),
        {"x": 1},
        "no frame",
        frame("user", message={"content": []}),
        answered("r9", ok=True),
    ],
)
def test_what_has_no_counterpart_is_kept_and_shows_no_row(odd: Any) -> None:
    begun = [prompt("Hi"), streamed("m1", text("a"), end=False)]
    with_it, without = read(*begun, odd), read(*begun)
    kept = [each for each in say(with_it) if each not in say(without)]
    assert kept == [odd if isinstance(odd, dict) else {"value": odd}]
    assert types(with_it) == types(without)


def test_a_sign_of_life_is_none() -> None:
    thinks = system("thinking_tokens", estimated_tokens=3)
    assert read({"type": "keep_alive"}, thinks, frame("tool_progress", tool_use_id="c1")) == []


def test_a_sign_of_life_of_a_call_shows_that_it_runs() -> None:
    pieces = read(said("m1", call("c1")), frame("tool_progress", tool_use_id="c1"), reason="error")
    assert "tool/call" in types(pieces)


# Any cut, any frames


def lines(*frames: Any) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in flat(frames))


@given(st.lists(st.integers(0, 4_000), max_size=8))
def test_bytes_may_be_cut_anywhere(cuts: list[int]) -> None:
    data = lines(*STORY, *SUBAGENT)
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    agent = ClaudeCodeAgent()
    pieces = []
    for start, stop in pairwise(places):
        pieces += agent.feed(data[start:stop])
    assert told([*pieces, *agent.finish()]) == told(read(*STORY, *SUBAGENT))


def test_every_cut_of_a_small_session_is_equal() -> None:
    data = lines(prompt("Grüß 👋"), streamed("m1", text("👋 é")), ended())
    whole = told(read(data))
    for at in range(len(data)):
        assert told(read(data[:at], data[at:])) == whole


def test_lines_need_no_line_break() -> None:
    told_whole = told(read(*STORY))
    assert told(read(*(json.dumps(each) for each in flat(STORY)))) == told_whole


FRAMES = st.sampled_from(
    [
        *flat([*STORY, *SUBAGENT, streamed("m3", text("x"), call("c3"), end=False)]),
        *(
            init(),
            system("api_retry"),
            system("compact_boundary"),
            prompt("[Request interrupted by"),
        ),
        *(
            asked("r2", "c3", agent_id="t1"),
            denied("r2", interrupt=True),
            frame("conversation_reset"),
        ),
        *(system("task_started", task_id="t1", tool_use_id="a1"), ended("error_max_turns")),
        system("task_updated", task_id="t1", patch={"status": "killed"}),
    ]
)


@settings(max_examples=200)
@given(st.lists(FRAMES, max_size=30), st.sampled_from([None, "interrupted", "error"]))
def test_whatever_order_frames_come_in_steps_and_turns_are_closed_in_order(
    frames: list[Json], reason: str | None
) -> None:
    pieces = read(*frames, reason=reason)
    for beside in {piece.conversation for piece in pieces}:
        open_now: list[str] = []
        calls: set[str] = set()
        for piece in pieces:
            if not isinstance(piece, AgentEvent) or piece.conversation != beside:
                continue
            what, _, how = piece.type.partition("/")
            if what in ("turn", "step") and how == "start":
                assert open_now == (["turn"] if what == "step" else [])
                open_now.append(what)
            elif what in ("turn", "step"):
                assert open_now.pop() == what
            elif piece.type == "assistant/message":
                assert open_now == ["turn", "step"]
            elif piece.type == "tool/call":
                assert piece.data["call_id"] not in calls
                calls.add(piece.data["call_id"])


@settings(max_examples=150)
@given(st.data())
def test_no_value_of_any_field_raises(data: st.DataObject) -> None:
    some: Any = st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=3), _nested
    )
    frames = data.draw(st.lists(FRAMES, max_size=8))
    spoilt = [json.loads(json.dumps(each)) for each in frames]
    for each in spoilt:
        _spoil(each, data.draw(st.integers(0, 6)), data.draw(some))
    read(*spoilt, data.draw(some), reason="error")


def _nested(inner: Any) -> Any:
    return st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2)


def _spoil(value: Any, at: int, other: Any) -> None:
    """Put another value in the place of one field, at some depth."""
    while isinstance(value, dict) and value:
        key = sorted(value)[at % len(value)]
        if not isinstance(value[key], (dict, list)) or at < 2:
            value[key] = other
            return
        value, at = value[key], at - 1
        if isinstance(value, list):
            value = value[0] if value else None
