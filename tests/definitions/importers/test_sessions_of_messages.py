"""Sessions that are messages with roles: Antigravity, Cursor, Droid, Grok, Hermes and OpenClaw."""

from __future__ import annotations

import json
from typing import Any

import pytest

from assembler.plugins import Importer, Sample
from definitions.importers import IMPORTERS
from definitions.importers.antigravity import ANTIGRAVITY
from definitions.importers.cursor import CURSOR
from definitions.importers.droid import DROID
from definitions.importers.grok import GROK
from definitions.importers.hermes import HERMES
from definitions.importers.openclaw import OPENCLAW

Json = dict[str, Any]


def imported(importer: Importer, *records: Any) -> list[Json]:
    return list(importer([json.dumps(each).encode() + b"\n" for each in records], name="s.jsonl"))


def events(operations: list[Json], kind: str) -> list[Json]:
    return [
        operation["event"]["data"]
        for operation in operations
        if operation.get("op") == "append" and operation["event"]["type"] == kind
    ]


def told(operations: list[Json]) -> list[Any]:
    """What was said, called and came of it, in order."""
    found: list[Any] = []
    for operation in operations:
        event = operation.get("event", {"type": "", "data": {}})
        data = event["data"]
        if event["type"] in ("user/message", "assistant/message"):
            said = [text_of(block) for block in data["content"]]
            source = data.get("source", {}).get("kind")
            found.append((source or event["type"].partition("/")[0], *filter(None, said)))
        elif event["type"] == "tool/call":
            found.append(("call", data["call_id"], data["name"], data["arguments"]))
        elif event["type"] == "tool/result":
            failed = ("failed",) if data.get("is_error") else ()
            found.append(("result", data["call_id"], *map(text_of, data["content"]), *failed))
        elif event["type"] == "turn/end":
            found.append(("end", data["reason"]))
    return found


def text_of(block: Json) -> Any:
    return block.get("text", block.get("value", "" if block["type"] == "tool-call" else block))


def text(said: str) -> Json:
    return {"type": "text", "text": said}


# -- Antigravity -----------------------------------------------------------------------------


def step(kind: str, source: str, content: Any = "", **fields: Any) -> Json:
    about = {"step_index": 0, "source": source, "type": kind, "status": "DONE"}
    return {**about, "created_at": "2026-01-02T03:04:05Z", "content": content, **fields}


def test_a_step_of_antigravity_is_the_result_of_the_call_that_waits() -> None:
    calls = [{"name": "list", "args": {"at": 1}}, {"name": "view", "args": {"at": 2}}]
    operations = imported(
        ANTIGRAVITY,
        step("USER_INPUT", "USER", "<USER_REQUEST>\nLook\n</USER_REQUEST>"),
        step("PLANNER_RESPONSE", "MODEL", "So", thinking="Hm", tool_calls=calls),
        step("LIST_DIRECTORY", "MODEL", "a b"),
        step("VIEW_FILE", "MODEL", "no", status="ERROR"),
        step("BROWSER_NAVIGATE", "MODEL", "page"),
        step("CHECKPOINT", "SYSTEM", "kept"),
    )
    assert told(operations) == [
        ("user", "Look"),
        ("assistant", "Hm", "So"),
        ("call", "call-2.0", "list", '{"at":1}'),
        ("call", "call-2.1", "view", '{"at":2}'),
        ("result", "call-2.0", "a b"),
        ("result", "call-2.1", "no", "failed"),
        ("call", "call-5", "browser_navigate", "{}"),
        ("result", "call-5", "page"),
        ("system", "kept"),
    ]


def test_a_plan_of_antigravity_that_failed_hands_over_nothing() -> None:
    plan = step("PLANNER_RESPONSE", "MODEL", tool_calls=[{"name": "list"}], status="ERROR")
    operations = imported(ANTIGRAVITY, step("USER_INPUT", "USER", "Go"), plan)
    assert events(operations, "tool/call") == []
    assert events(operations, "assistant/message")[0]["stop_reason"] == "error"


# -- Cursor ----------------------------------------------------------------------------------


def cursor(role: str, *content: Json) -> Json:
    return {"role": role, "message": {"content": list(content)}}


def test_calls_of_cursor_have_no_id_and_get_their_results_in_order() -> None:
    calls = [{"type": "tool_use", "name": name, "input": {}} for name in ("Bash", "Read")]
    results = [{"type": "tool_result", "content": said} for said in ("one", "two")]
    operations = imported(
        CURSOR,
        cursor("user", text("<user_query>\nGo\n</user_query>")),
        cursor("assistant", text("So"), *calls),
        cursor("user", *results),
        cursor("assistant", text("Done")),
    )
    assert told(operations) == [
        ("user", "Go"),
        ("assistant", "So"),
        ("call", "call-2.1", "Bash", "{}"),
        ("call", "call-2.2", "Read", "{}"),
        ("result", "call-2.1", "one"),
        ("result", "call-2.2", "two"),
        ("assistant", "Done"),
    ]


# -- Droid -----------------------------------------------------------------------------------

REMINDED = "<system-reminder>\nBe safe.\n</system-reminder>\n\nList"


def droid(kind: str, **fields: Any) -> Json:
    return {"type": kind, "sessionId": "s", "timestamp": 1_767_812_640_000, **fields}


def test_what_droid_stored() -> None:
    call = {"type": "tool_use", "id": "c1", "name": "Execute", "input": {"command": "ls"}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "a", "is_error": True}

    def stored(own: str, role: str, *content: Json) -> Json:
        return {"type": "message", "id": own, "message": {"role": role, "content": list(content)}}

    operations = imported(
        DROID,
        {"type": "session_start", "id": "s", "title": "Listing", "cwd": "/p"},
        stored("m1", "user", text(REMINDED)),
        stored("m2", "assistant", text("So"), call),
        stored("m3", "user", result),
        stored("m4", "assistant", text("Done")),
    )
    assert told(operations) == [
        ("reminder", "Be safe."),
        ("user", "List"),
        ("assistant", "So"),
        ("call", "c1", "Execute", '{"command":"ls"}'),
        ("result", "c1", "a", "failed"),
        ("assistant", "Done"),
    ]
    assert events(operations, "conversation/title") == [{"title": "Listing"}]


def streamed(final: str) -> list[Json]:
    return imported(
        DROID,
        droid("system", subtype="init", cwd="/p"),
        droid("message", role="user", text="List", id="m1"),
        droid("tool_call", id="c1", toolId="Execute", toolName="Execute", parameters={"at": 1}),
        droid("tool_result", id="c1", toolId="Execute", value="a"),
        droid("message", role="assistant", text="Done", id="m2"),
        droid("completion", finalText=final, usage={"input_tokens": 3}, id="end"),
        droid("error", message="late"),
    )


def test_what_droid_streamed() -> None:
    operations = streamed("Done")
    assert told(operations) == [
        ("user", "List"),
        ("call", "c1", "Execute", '{"at":1}'),
        ("result", "c1", "a"),
        ("assistant", "Done"),
        ("end", "completed"),
        ("end", "error"),
    ]


def test_the_final_text_of_droid_is_an_answer_where_no_message_said_it() -> None:
    operations = streamed("Done, all of it")
    last = events(operations, "assistant/message")[-1]
    assert last["content"] == [text("Done, all of it")]
    assert last["usage"] == {"input_tokens": 3, "raw": {"input_tokens": 3}}


# -- Grok ------------------------------------------------------------------------------------

SEARCHED = {
    "tool_type": "web_search",
    "action": {"type": "search", "query": "q", "sources": [{"url": "u"}]},
    "id": "w1",
    "status": "completed",
}


def test_what_stands_before_an_answer_of_grok_is_part_of_it() -> None:
    operations = imported(
        GROK,
        {"type": "system", "content": "Be brief."},
        {"type": "user", "content": "Go", "prompt_index": 0},
        {"type": "reasoning", "summary": [{"text": "Hm"}], "encrypted_content": "e"},
        {"type": "backend_tool_call", "kind": SEARCHED},
        {
            "type": "assistant",
            "content": "So",
            "tool_calls": [{"id": "c1", "name": "read", "arguments": "{}"}],
        },
        {"type": "tool_result", "tool_call_id": "c1", "content": "a"},
        {"type": "user", "content": "Else", "prior_turn_interrupt": "mid_turn_abort"},
        {"type": "user", "content": "Told", "synthetic_reason": "environment"},
        {"type": "reasoning", "summary": [{"text": "Never answered"}]},
    )
    first = events(operations, "assistant/message")[0]["content"]
    assert first[0] == {"type": "reasoning", "text": "Hm", "signature": "e"}
    assert (first[1]["call_id"], first[1]["ran_by"]) == ("w1", "provider")
    assert told(operations) == [
        ("system", "Be brief."),
        ("user", "Go"),
        ("assistant", "Hm", "So"),
        ("call", "w1", "web_search", '{"query":"q"}'),
        ("call", "c1", "read", "{}"),
        ("result", "w1", [{"url": "u"}]),
        ("result", "c1", "a"),
        ("end", "cancelled"),
        ("user", "Else"),
        ("environment", "Told"),
        ("assistant", "Never answered"),
    ]
    tails = [each.get("tail") for each in operations if each.get("tail")]
    assert set(tails) == {"unfinished"}


SUMMARY = {"info": {"id": "s"}, "chat_format_version": 1, "generated_title": "Reading"}


@pytest.mark.parametrize("indent", [None, 1])
def test_a_summary_of_grok_says_what_to_call_a_conversation(indent: int | None) -> None:
    lines = json.dumps(SUMMARY, indent=indent).encode().splitlines(keepends=True)
    operations = list(GROK(lines, name="s.json"))
    assert events(operations, "conversation/title") == [{"title": "Reading"}]
    assert events(operations, "grok/summary") == [SUMMARY]


# -- Hermes ----------------------------------------------------------------------------------


def test_a_session_of_hermes() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "shell", "arguments": "{}"}}
    session = {
        "session_id": "s",
        "session_start": "2026-01-02T03:04:05",
        "title": "Looking",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Look"},
            {"role": "assistant", "reasoning": "Hm", "tool_calls": [call], "finish_reason": "stop"},
            {"role": "tool", "tool_call_id": "c1", "content": "a"},
            {"role": "assistant", "content": "Done", "finish_reason": "stop"},
            {"role": "stranger"},
        ],
    }
    lines = json.dumps(session, indent=1).encode().splitlines(keepends=True)
    operations = list(HERMES(lines, name="s.json"))
    assert told(operations) == [
        ("system", "Be brief."),
        ("user", "Look"),
        ("assistant", "Hm"),
        ("call", "c1", "shell", "{}"),
        ("result", "c1", "a"),
        ("assistant", "Done"),
        ("end", "completed"),
    ]
    assert events(operations, "conversation/title") == [{"title": "Looking"}]
    assert events(operations, "hermes/stranger") == [{"role": "stranger"}]


# -- OpenClaw --------------------------------------------------------------------------------


def message(role: str, *content: Json, **fields: Any) -> Json:
    inner = {"role": role, "content": list(content), **fields}
    return {"type": "message", "id": role, "parentId": "elsewhere", "message": inner}


def test_openclaw_writes_what_pi_does_and_more_and_its_parents_are_no_tree() -> None:
    call = {"type": "toolCall", "id": "c1", "name": "probe", "arguments": {"at": 1}}
    odd = {"type": "compact", "id": "o", "parentId": "system", "agent": "openclaw"}
    operations = imported(
        OPENCLAW,
        {"type": "session", "id": "openclaw-1", "cwd": "/p"},
        message("user", text("Go")),
        message("assistant", call, stopReason="toolUse"),
        message("toolResult", text("a"), toolCallId="c1"),
        message("system", text("Noted")),
        {"type": "compaction", "id": "k", "summary": "Short"},
        odd,
    )
    assert told(operations) == [
        ("user", "Go"),
        ("assistant",),
        ("call", "c1", "probe", '{"at":1}'),
        ("result", "c1", "a"),
        ("system", "Noted"),
    ]
    assert [each["text"] for each in events(operations, "compaction/summary")] == ["Short"]
    assert events(operations, "openclaw/compact") == [odd]
    assert events(operations, "command/run") == []


# -- all of them -----------------------------------------------------------------------------

ODD: list[Any] = [[], {}, 7, None, "x", [1], [{}], {"type": []}, "\ud800"]
FORMATS = ["antigravity", "copilot", "cursor", "droid", "grok", "kimi", "openclaw"]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("odd", ODD)
def test_what_is_no_record_is_kept(name: str, odd: Any) -> None:
    operations = imported(IMPORTERS[name], odd)
    kept = [each for each in operations if each.get("op") == "append"]
    assert len(kept) == 1
    assert kept[0]["event"]["type"].partition("/")[0] == name


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize(
    "record",
    [
        step("PLANNER_RESPONSE", "MODEL"),
        cursor("user", text("x")),
        droid("tool_call", toolId="x", parameters={}),
        {"type": "assistant", "content": "x", "tool_calls": [], "model_fingerprint": "f"},
        {"session_id": "s", "session_start": "", "messages": [{"role": "user", "content": []}]},
        message("assistant", text("x"), provider="openclaw"),
    ],
)
def test_no_odd_value_in_a_record_stops_it(record: Json, odd: Any) -> None:
    assert [name for name, each in IMPORTERS.items() if each.recognises(Sample((record,)))]
    for name in [*FORMATS, "hermes"]:
        for key in [*record, "type", "role"]:
            changed = {**record, key: odd}
            IMPORTERS[name].recognises(Sample((changed,)))
            imported(IMPORTERS[name], changed)
