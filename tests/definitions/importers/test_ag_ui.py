"""AG-UI: what runs stream, where answers end, interrupts, histories, subagents."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from assembler.plugins import Sample
from definitions.importers import ImportFault
from definitions.importers.ag_ui import AG_UI

Json = dict[str, Any]

BEGIN: Json = {"type": "RUN_STARTED", "threadId": "t", "runId": "r"}
END: Json = {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}


def text(message: str, *said: str, **more: Any) -> list[Json]:
    return [
        {"type": "TEXT_MESSAGE_START", "messageId": message, **more},
        *({"type": "TEXT_MESSAGE_CONTENT", "messageId": message, "delta": each} for each in said),
        {"type": "TEXT_MESSAGE_END", "messageId": message},
    ]


def call(call_id: str, *said: str, name: str = "look", **more: Any) -> list[Json]:
    return [
        {"type": "TOOL_CALL_START", "toolCallId": call_id, "toolCallName": name, **more},
        *({"type": "TOOL_CALL_ARGS", "toolCallId": call_id, "delta": each} for each in said),
        {"type": "TOOL_CALL_END", "toolCallId": call_id},
    ]


def result(call_id: str, content: Any = "seen") -> Json:
    told = {"messageId": f"of-{call_id}", "toolCallId": call_id, "content": content}
    return {"type": "TOOL_CALL_RESULT", **told}


def imported(*told: Any) -> list[Json]:
    return list(AG_UI([json.dumps(list(told), indent=1)], name="run.json"))


def asked(*messages: Json, **more: Any) -> list[Json]:
    request = {"threadId": "t", "runId": "r", "messages": list(messages), **more}
    return list(AG_UI(["\ufeff" + json.dumps(request, indent=2)], name="request.json"))


def events(operations: list[Json], kind: str, conversation: str | None = None) -> list[Json]:
    return [
        each["event"]["data"]
        for each in operations
        if each.get("op") == "append"
        and each["event"]["type"] == kind
        and each.get("conversation") == conversation
    ]


def said(operations: list[Json]) -> list[list[str]]:
    """Of each answer the blocks: their text, or the id of the call."""
    return [
        [block.get("text") or block.get("call_id") for block in each["content"]]
        for each in events(operations, "assistant/message")
    ]


def ends(operations: list[Json]) -> list[str]:
    return [each["reason"] for each in events(operations, "turn/end")]


def kinds(operations: list[Json]) -> Iterator[str]:
    for each in operations:
        if each["op"] == "append" and not each["event"]["type"].startswith("ag-ui/"):
            yield each["event"]["type"]
        elif each["op"] == "delta":
            yield f"~{each['type']}"
        elif each["op"] == "settle":
            yield each["outcome"]


def test_an_answer_is_streamed_then_settled_then_its_calls() -> None:
    operations = imported(
        BEGIN, *text("m", "I ", "look."), *call("c", '{"at"', ": 1}"), result("c"), END
    )
    assert list(kinds(operations[1:])) == [
        *("turn/start", "step/start"),
        *("~block-start", "~text", "~text", "~block-end"),
        *("~tool-call", "~tool-call", "~tool-call", "~block-end"),
        *("assistant/message", "completed", "tool/call", "tool/result", "step/end", "turn/end"),
    ]
    assert said(operations) == [["I look.", "c"]]
    assert events(operations, "tool/call")[0]["arguments"] == '{"at": 1}'
    assert events(operations, "assistant/message")[0]["stop_reason"] == "tool_use"


def test_where_an_answer_ends() -> None:
    two = imported(BEGIN, *text("m1", "a"), *text("m2", "b"), END)
    assert said(two) == [["a"], ["b"]]
    one = imported(BEGIN, *call("c", parentMessageId="m"), *text("m", "a"), END)
    assert said(one) == [["c", "a"]]
    other = imported(BEGIN, *text("m", "a"), *call("c", parentMessageId="n"), END)
    assert said(other) == [["a"], ["c"]]
    behind = imported(BEGIN, *text("m", "a"), *call("c"), result("c"), *text("n", "b"), END)
    assert said(behind) == [["a", "c"], ["b"]]
    thought = {"type": "REASONING_MESSAGE_CHUNK", "messageId": "r", "delta": "Hm"}
    assert said(imported(BEGIN, *text("m", "a"), thought, END)) == [["a"], ["Hm"]]
    old = [{"type": "THINKING_CONTENT", "delta": "Hm"}, {"type": "THINKING_END"}]
    parted = imported(BEGIN, *old, *text("m1", "a"), *text("m2", "b"), END)
    assert said(parted) == [["Hm", "a"], ["b"]]


def test_an_empty_text_says_nothing() -> None:
    assert said(imported(BEGIN, *text("m", ""), *call("c"), END)) == [["c"]]


def test_parts_that_grow_together_are_of_one_answer() -> None:
    first, second = text("m1", "a"), text("m2", "b")
    mixed = [first[0], second[0], first[1], second[1], first[2], second[2]]
    assert said(imported(BEGIN, *mixed, END)) == [["a", "b"]]
    system = text("s", "c", role="system")
    operations = imported(BEGIN, first[0], system[0], first[1], *system[1:], first[2], END)
    assert said(operations) == [["a"]]
    assert events(operations, "user/message")[0]["source"] == {"kind": "system"}


def test_a_result_that_comes_while_another_call_grows() -> None:
    one, two = call("c1"), call("c2", "{}")
    operations = imported(BEGIN, *one, two[0], result("c1"), *two[1:], result("c2"), END)
    assert said(operations) == [["c1", "c2"]]
    for kind in ("tool/call", "tool/result"):
        assert [each["call_id"] for each in events(operations, kind)] == ["c1", "c2"]
    assert ends(operations) == ["completed"]


def test_a_result_of_the_run_before_is_kept_with_its_call() -> None:
    operations = imported(BEGIN, *call("c"), END, BEGIN, result("c"), *text("m", "a"), END)
    assert ends(operations) == ["completed"]
    assert events(operations, "tool/result")[0]["content"] == [{"type": "text", "text": "seen"}]
    alone = imported(BEGIN, result("c"), END)
    assert events(alone, "tool/result")[0]["call_id"] == "c"


def test_a_call_without_arguments_has_none() -> None:
    assert events(imported(BEGIN, *call("c"), END), "tool/call")[0]["arguments"] == "{}"


def test_a_call_that_is_not_whole_is_not_handed_over() -> None:
    operations = imported(BEGIN, *call("c", '{"at')[:-1], END)
    assert said(operations) == [["c"]]
    assert events(operations, "tool/call") == []


def test_an_error_ends_the_turn_and_runs_nothing() -> None:
    failed = {"type": "RUN_ERROR", "message": "no", "code": "C"}
    operations = imported(BEGIN, *text("m", "a"), *call("c", "{}"), failed, END)
    assert events(operations, "turn/end") == [
        {"turn": 1, "reason": "error", "error": {"name": "C", "message": "no"}}
    ]
    assert events(operations, "tool/call") == []
    whole = imported(BEGIN, *text("m", "a"), failed)
    assert events(whole, "assistant/message")[0]["stop_reason"] == "end_turn"


def test_a_run_that_was_cancelled() -> None:
    operations = imported(BEGIN, *text("m", "a")[:-1], END | {"outcome": {"type": "cancelled"}})
    assert events(operations, "assistant/message")[0]["stop_reason"] == "cancelled"
    assert ends(operations) == ["cancelled"]


def test_what_a_run_used_is_added_up() -> None:
    used = [{"inputTokens": 3, "outputTokens": 1}, {"inputTokens": 4, "cachedInputTokens": 2}]
    operations = imported(BEGIN, *text("m", "a"), END | {"usage": used})
    assert events(operations, "assistant/message")[0]["usage"] == {
        "input_tokens": 7,
        "output_tokens": 1,
        "cache_read_tokens": 2,
        "raw": used,
    }


def test_interrupts_ask_and_the_turn_waits() -> None:
    interrupts = [{"id": "i1", "toolCallId": "c", "message": "May it?"}, {"id": "i2"}]
    stopped = END | {"outcome": {"type": "interrupt", "interrupts": interrupts}}
    operations = imported(BEGIN, *call("c"), stopped, BEGIN, *call("c"), result("c"), END)
    (request,) = events(operations, "permission/request")
    assert (request["request_id"], request["call_id"]) == ("i1", "c")
    assert events(operations, "ag-ui/interrupt") == [{"id": "i2"}]
    assert len(events(operations, "tool/call")) == 1
    assert len(events(operations, "tool/result")) == 1
    assert ends(operations) == ["completed"]


def test_an_id_that_is_used_again_is_another_call() -> None:
    operations = imported(BEGIN, *call("c"), result("c"), *call("c"), result("c"), END)
    ids = [each["call_id"] for each in events(operations, "tool/call")]
    assert len(set(ids)) == 2
    assert [each["call_id"] for each in events(operations, "tool/result")] == ids


@pytest.mark.parametrize(
    "thought",
    [
        [
            {"type": "REASONING_MESSAGE_START", "messageId": "r"},
            {"type": "REASONING_MESSAGE_CONTENT", "messageId": "r", "delta": "Hm"},
            {"type": "REASONING_MESSAGE_CHUNK", "messageId": "r", "delta": "m."},
            {"type": "REASONING_MESSAGE_END", "messageId": "r"},
        ],
        [
            {"type": "THINKING_START", "title": "T"},
            {"type": "THINKING_TEXT_MESSAGE_START"},
            {"type": "THINKING_TEXT_MESSAGE_CONTENT", "delta": "Hmm."},
            {"type": "THINKING_TEXT_MESSAGE_END"},
            {"type": "THINKING_END"},
        ],
        [
            {"type": "THINKING_START"},
            {"type": "THINKING_CONTENT", "delta": "Hmm."},
            {"type": "THINKING_END"},
        ],
    ],
)
def test_thoughts_belong_to_the_answer_behind_them(thought: list[Json]) -> None:
    operations = imported(BEGIN, *thought, *text("m", "a"), END)
    blocks = events(operations, "assistant/message")[0]["content"]
    assert blocks == [{"type": "reasoning", "text": "Hmm."}, {"type": "text", "text": "a"}]


def test_a_thought_has_its_signature() -> None:
    sealed = {"subtype": "message", "entityId": "r", "encryptedValue": "x"}
    operations = imported(
        BEGIN,
        {"type": "REASONING_MESSAGE_CHUNK", "messageId": "r", "delta": "Hm"},
        {"type": "REASONING_ENCRYPTED_VALUE", **sealed},
        END,
    )
    assert events(operations, "assistant/message")[0]["content"][0]["signature"] == "x"


def test_chunks_have_no_beginning_and_no_end() -> None:
    operations = imported(
        BEGIN,
        {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "delta": "a"},
        {"type": "TEXT_MESSAGE_CHUNK", "delta": "b"},
        {"type": "TOOL_CALL_CHUNK", "toolCallId": "c", "toolCallName": "look", "delta": "{"},
        {"type": "TOOL_CALL_CHUNK", "delta": "}"},
        {"type": "TOOL_CALL_CHUNK", "toolCallId": "d", "toolCallName": "see", "delta": "{}"},
        END,
    )
    assert said(operations) == [["ab", "c", "d"]]
    told = [(each["name"], each["arguments"]) for each in events(operations, "tool/call")]
    assert told == [("look", "{}"), ("see", "{}")]


def test_halves_of_a_character_find_each_other() -> None:
    operations = imported(BEGIN, *text("m", "\ud83d", "\ude00"), END)
    assert said(operations) == [["\U0001f600"]]
    json.dumps(operations, ensure_ascii=False).encode()


def test_what_runs_say_beside_the_conversation_is_kept() -> None:
    others: list[Json] = [
        {"type": "STATE_DELTA", "delta": []},
        {"type": "CUSTOM", "name": "n", "value": 1},
        {"type": "RAW", "event": {"a": 1}},
        {"type": "STEP_STARTED", "stepName": "s"},
        {"type": "NEWEST", "x": 1},
    ]
    operations = imported(BEGIN, *others, END, 3)
    for each in others:
        assert events(operations, f"ag-ui/{each['type']}") == [each]
    assert events(operations, "ag-ui/odd") == [{"value": 3}]
    assert ends(operations) == []


USER: Json = {"id": "u", "role": "user", "content": "Go"}
CALL: Json = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
ANSWER: Json = {"id": "a", "role": "assistant", "content": "I look.", "toolCalls": [CALL]}
TOOL: Json = {"id": "o", "role": "tool", "toolCallId": "c", "content": "seen"}


def test_a_request_is_the_conversation_so_far() -> None:
    image = {"type": "image", "source": {"type": "url", "value": "x", "mimeType": "image/png"}}
    operations = asked(
        USER,
        {"role": "reasoning", "content": "Hm", "encryptedValue": "e"},
        ANSWER,
        TOOL | {"error": "no"},
        {"role": "developer", "content": "Be brief."},
        {"role": "activity", "content": {}},
        {"role": "user", "content": [image]},
        tools=[{"name": "look"}],
    )
    assert said(operations) == [["Hm", "I look.", "c"]]
    assert events(operations, "tool/result")[0]["error"]["message"] == "no"
    prompts = events(operations, "user/message")
    assert [each.get("source") for each in prompts] == [None, {"kind": "developer"}, None]
    file = {"type": "file", "media_type": "image/png", "url": "x"}
    assert prompts[-1]["content"] == [file]
    assert events(operations, "ag-ui/request")[0]["tools"] == [{"name": "look"}]
    assert len(events(operations, "ag-ui/message")) == 1


def test_a_request_may_answer_an_interrupt() -> None:
    allowed = {"approved": True, "toolCall": {"callId": "c"}}
    named = {"interruptId": "i2", "payload": {"name": "n"}}
    operations = asked(USER, resume=[{"interruptId": "i1", "payload": allowed}, named])
    (answer,) = events(operations, "permission/answer")
    assert (answer["request_id"], answer["call_id"], answer["decision"]) == ("i1", "c", "allow")
    assert events(operations, "ag-ui/resume") == [named]


def test_a_snapshot_says_only_what_is_new() -> None:
    first = {"type": "MESSAGES_SNAPSHOT", "messages": [USER, ANSWER, TOOL]}
    again = {"type": "MESSAGES_SNAPSHOT", "messages": [USER, ANSWER, TOOL, {**USER, "id": "v"}]}
    operations = imported(BEGIN, first, again, END)
    assert len(events(operations, "user/message")) == 2
    assert len(events(operations, "tool/result")) == len(said(operations)) == 1
    streamed = {"type": "MESSAGES_SNAPSHOT", "messages": [{**ANSWER, "id": "m"}, TOOL]}
    told = imported(BEGIN, *text("m", "I look."), *call("c"), result("c"), streamed, END)
    assert len(said(told)) == len(events(told, "tool/result")) == 1
    unnamed = {"type": "MESSAGES_SNAPSHOT", "messages": [ANSWER | {"id": None}]}
    assert len(said(imported(BEGIN, first, unnamed, END))) == 1


def test_what_a_run_was_asked_is_written_once() -> None:
    asks = BEGIN | {"input": {"messages": [USER], "tools": []}}
    operations = imported(asks, *text("m", "a"), END, asks, *text("n", "b"), END)
    assert len(events(operations, "user/message")) == 1
    assert events(operations, "ag-ui/RUN_STARTED")[0]["input"] == {"tools": []}


def test_a_subagent_is_a_conversation_of_its_own() -> None:
    def of(agent: str, told: list[Json]) -> list[Json]:
        return [{**each, "subagentRunId": agent} for each in told]

    begins = {"type": "SUBAGENT_STARTED", "subagentRunId": "s1", "name": "searcher"}
    deeper = {**begins, "subagentRunId": "s2", "parentSubagentRunId": "s1", "name": "inner"}
    operations = imported(
        BEGIN,
        *call("c", "{}"),
        begins | {"parentToolCallId": "c"},
        *of("s1", text("m1", "inside")),
        deeper,
        *of("s2", text("m2", "deep")),
        {"type": "SUBAGENT_ERROR", "subagentRunId": "s2", "message": "no"},
        {"type": "SUBAGENT_FINISHED", "subagentRunId": "s1"},
        result("c"),
        END,
    )
    headers = [each.get("conversation") for each in operations if "recording" in each]
    assert headers == [None, "c", "s2"]
    inside = events(operations, "assistant/message", "c")
    assert inside[0]["content"][0]["text"] == "inside"
    assert events(operations, "tool/call", "c")[0]["name"] == "inner"
    assert events(operations, "tool/result", "c")[0]["error"]["message"] == "no"
    assert events(operations, "turn/end", "s2")[0]["reason"] == "error"
    assert events(operations, "turn/end", "c")[0]["reason"] == "completed"
    assert said(operations) == [["c"]]
    settled = [each.get("outcome") for each in operations].index("completed")
    assert settled < [each.get("conversation") for each in operations].index("c")


def test_two_subagents_of_one_call() -> None:
    begins = {"type": "SUBAGENT_STARTED", "name": "searcher", "parentToolCallId": "c"}
    both = [{**begins, "subagentRunId": each} for each in ("s1", "s2")]
    operations = imported(BEGIN, *call("c"), *both, END)
    headers = [each.get("conversation") for each in operations if "recording" in each]
    assert headers == [None, "c", "s2"]


STREAM = [
    BEGIN,
    *text("m", "I ", "look."),
    *call("c", "{", "}"),
    result("c"),
    *text("n", "Done."),
    END | {"timestamp": 1_700_000_000_000},
]


def in_lines(told: list[Json]) -> list[str]:
    return [json.dumps(each) + "\n" for each in told]


def as_events(told: list[Json]) -> list[str]:
    return [
        line
        for each in told
        for line in (": sign of life\n", "event: x\r\n", f"data: {json.dumps(each)}\r\n", "\r\n")
    ]


def test_however_it_was_saved_it_says_the_same() -> None:
    whole = imported(*STREAM)[1:]
    assert list(AG_UI(in_lines(STREAM), name="run.json"))[1:] == whole
    assert list(AG_UI([*as_events(STREAM), "data: [DONE]\n", "\n"], name="x"))[1:] == whole
    named = {"first": STREAM[:4], "second": STREAM[4:]}
    assert said(list(AG_UI([json.dumps(named, indent=1)], name="x"))) == said(whole)


@pytest.mark.parametrize("written", [in_lines, as_events])
def test_a_stream_that_goes_on_says_the_same_and_more(written: Any) -> None:
    cuts = [written(STREAM[:count]) for count in range(1, len(STREAM) + 1)]
    found = [list(AG_UI([*cut, 'data: {"type": '], name="x"))[:-1] for cut in cuts]
    assert all(longer[: len(shorter)] == shorter for shorter, longer in pairwise(found))


def test_an_event_may_stand_on_several_lines() -> None:
    lines = ['data: {"type": "RUN_STARTED",\n', 'data: "threadId": "t", "runId": "r"}\n', "\n"]
    assert events(list(AG_UI(lines, name="x")), "ag-ui/RUN_STARTED") == [BEGIN]


def test_other_files_are_refused_in_one_line() -> None:
    for lines, said_of_it in (
        (['{"type": "message"}\n'], r"^x:1: type: expected an event of AG-UI"),
        (["Hello\n"], r"^x:1: line: expected JSON, or a line of an event stream"),
        (["data: {\n", "\n", "data: {}\n"], r"^x:1: data: expected a JSON value"),
        (['[{"type": "RUN_'], r"^x:1: line: expected a JSON value; the text ends"),
    ):
        with pytest.raises(ImportFault, match=said_of_it):
            list(AG_UI(lines, name="x"))


def test_it_is_known_by_its_events_and_requests() -> None:
    assert AG_UI.recognises(Sample((BEGIN,)))
    assert AG_UI.recognises(Sample(([END],)))
    assert AG_UI.recognises(Sample(({"run": [BEGIN], "other": [END]},)))
    assert AG_UI.recognises(Sample(({"threadId": "t", "runId": "r", "messages": []},)))
    assert not AG_UI.recognises(Sample(({"type": "RUN_STARTED"},)))
    assert not AG_UI.recognises(Sample(({"run": [], "other": []},)))


def withdrawn(call_id: str) -> Json:
    return {**result(call_id, ""), "metadata": {"outcome": "withdrawn"}}


def snapshot(*messages: Json) -> Json:
    return {"type": "MESSAGES_SNAPSHOT", "messages": list(messages)}


def test_a_snapshot_without_the_open_answer_takes_it_back() -> None:
    begun = [*text("a", "Let me", role="assistant"), *call("c", "{", parentMessageId="a")[:2]]
    again = [*text("a", "I look."), *call("c", "{}", parentMessageId="a"), result("c"), END]
    found = imported(BEGIN, *begun, snapshot(), *again)
    assert [each["outcome"] for each in found if each.get("op") == "settle"] == [
        "abandoned",
        "completed",
    ]
    (message,) = events(found, "assistant/message")
    assert [block.get("text") or block.get("arguments") for block in message["content"]] == [
        "I look.",
        "{}",
    ]
    assert [each["call_id"] for each in events(found, "tool/call")] == ["c"]


def test_a_withdrawn_call_never_runs_also_without_a_snapshot() -> None:
    found = imported(BEGIN, *call("c", "{}"), withdrawn("c"), END)
    assert events(found, "tool/call") == []
    assert events(found, "tool/result") == []
    assert events(found, "assistant/message") == []
    assert [each["reason"] for each in events(found, "turn/end")] == ["completed"]


def test_a_snapshot_may_say_another_text_for_the_open_answer() -> None:
    changed = snapshot({"id": "a", "role": "assistant", "content": "Hello"})
    begun = text("a", "Hallo", role="assistant")
    found = imported(BEGIN, *begun[:2], changed, *text("a", " you")[1:], END)
    (message,) = events(found, "assistant/message")
    assert message["content"] == [{"type": "text", "text": "Hello you"}]


def test_a_snapshot_that_says_the_same_changes_nothing() -> None:
    begun = [*text("a", "Hi", role="assistant"), *call("c", "{}", parentMessageId="a")]
    function = {"name": "look", "arguments": "{}"}
    calls = [{"id": "c", "type": "function", "function": function}]
    told = snapshot({"id": "a", "role": "assistant", "content": "Hi", "toolCalls": calls})
    found = [each for each in imported(BEGIN, *begun, told, END) if each.get("op") == "settle"]
    assert [each["outcome"] for each in found] == ["completed"]


def test_a_result_says_that_its_call_failed_or_had_none() -> None:
    failed = {**result("c", "torn"), "metadata": {"outcome": "failed"}}
    unsettled = {**result("d", ""), "metadata": {"outcome": "unsettled"}}
    found = imported(BEGIN, *call("c", "{}"), *call("d", "{}"), failed, unsettled, END)
    (came,) = events(found, "tool/result")
    assert (came["call_id"], came["is_error"]) == ("c", True)
    assert [each["reason"] for each in events(found, "turn/end")] == ["completed"]


def test_what_is_said_to_a_run_at_work_is_steering() -> None:
    meanwhile = text("m", "Faster.", role="user")
    found = imported(BEGIN, *text("a", "I go"), *meanwhile, *text("b", "Yes."), END)
    assert [each["added"] for each in events(found, "inbox/spliced")] == [["m"]]
    assert len(events(found, "turn/start")) == 1
