"""What an agent that speaks ACP says, as events to store and deltas to emit."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assembler import Assembler, Delta, Event
from assembler.codec import plain
from definitions import catalog
from definitions.protocols import Acp
from definitions.providers.acp_agent import AcpAgent
from definitions.providers.agent import AgentDelta, AgentEvent, AgentPiece

Json = dict[str, Any]


def update(what: str, /, session: str = "s", **fields: Any) -> Json:
    params = {"sessionId": session, "update": {"sessionUpdate": what, **fields}}
    return {"jsonrpc": "2.0", "method": "session/update", "params": params}


def said(what: str, text: str, /, **fields: Any) -> Json:
    return update(what, content={"type": "text", "text": text}, **fields)


def card(what: str = "tool_call", /, call: str = "c1", **fields: Any) -> Json:
    return update(what, toolCallId=call, **fields)


def request(method: str, number: Any = 1, /, **params: Any) -> Json:
    return {
        "jsonrpc": "2.0",
        "id": number,
        "method": method,
        "params": {"sessionId": "s", **params},
    }


def answer(number: Any = 1, /, **result: Any) -> Json:
    return {"jsonrpc": "2.0", "id": number, "result": result}


def ask(number: Any = 1, /, call: str = "c1", **fields: Any) -> Json:
    options = [
        {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
        {"optionId": "always", "name": "Always", "kind": "allow_always"},
        {"optionId": "no", "name": "No", "kind": "reject_once"},
    ]
    tool = {"toolCallId": call, **fields}
    return request("session/request_permission", number, toolCall=tool, options=options)


def shown(text: str) -> Json:
    return {"type": "content", "content": {"type": "text", "text": text}}


PROMPT = request("session/prompt", 7, prompt=[{"type": "text", "text": "Mow the lawn"}])
STOP = answer(7, stopReason="end_turn")
RUN: Json = {"kind": "execute", "status": "in_progress", "rawInput": {"command": "mow"}}


def pieces(*messages: Any, agent: AcpAgent | None = None) -> list[AgentPiece]:
    agent = agent or AcpAgent()
    return [piece for message in messages for piece in agent.feed(message)]


def events(found: list[AgentPiece], *kinds: str) -> list[Json]:
    told = [piece for piece in found if isinstance(piece, AgentEvent)]
    return [plain(piece.data) for piece in told if piece.type in kinds]


def deltas(found: list[AgentPiece], kind: str) -> list[Json]:
    told = [piece for piece in found if isinstance(piece, AgentDelta)]
    return [plain(piece.data) for piece in told if piece.type == kind]


def types(found: list[AgentPiece]) -> list[str]:
    return [piece.type for piece in found if isinstance(piece, AgentEvent)]


def conversation(found: list[AgentPiece]) -> Assembler:
    """What people see, once all of it is written."""
    assembler, seq, ordinals = Assembler(catalog(), strict=True), 0, dict[str, int]()
    for index, piece in enumerate(found, 1):
        if isinstance(piece, AgentEvent):
            seq += 1
            assembler.append(Event(seq, piece.type, piece.data, time=seq))
        elif isinstance(piece, AgentDelta):
            ordinal = ordinals[piece.attempt] = ordinals.get(piece.attempt, -1) + 1
            place = {"ordinal": ordinal, "after": seq, "index": index, "number": piece.number}
            where = (piece.attempt, piece.turn, piece.step, piece.type, piece.data)
            assembler.emit(Delta(*where, **place))
        else:
            assembler.settle(piece.attempt, piece.outcome)
    assembler.flush()
    return assembler


def tool(found: list[AgentPiece], call: str = "c1") -> Json | None:
    node = conversation(found).view("chat").get(f"tool:{call}")
    return None if node is None else plain(node.data)


# -- turns and answers ---------------------------------------------------------------------------


def test_a_prompt_is_a_turn_and_its_result_ends_it() -> None:
    found = pieces(
        PROMPT,
        said("agent_thought_chunk", "Dry?"),
        said("agent_message_chunk", "It is "),
        said("agent_message_chunk", "dry."),
        card(**RUN),
        card("tool_call_update", status="completed", content=[shown("mown")]),
        said("agent_message_chunk", "Done."),
        STOP,
    )
    assert types(found) == [
        *("turn/start", "user/message", "step/start", "assistant/message"),
        *("tool/call", "tool/result", "step/end", "step/start", "assistant/message"),
        *("step/end", "turn/end"),
    ]
    first, last = events(found, "assistant/message")
    assert first["content"] == [
        {"type": "reasoning", "text": "Dry?"},
        {"type": "text", "text": "It is dry."},
    ]
    assert [first["stop_reason"], last["stop_reason"]] == ["tool_use", "end_turn"]
    assert [each["text"] for each in deltas(found, "text")] == ["It is ", "dry.", "Done."]
    assert events(found, "turn/end") == [{"turn": 1, "reason": "completed"}]


@pytest.mark.parametrize(
    ("told", "stop", "reason"),
    [
        ("max_tokens", "length", "completed"),
        ("max_turn_requests", "end_turn", "limit"),
        ("refusal", "refusal", "completed"),
        ("cancelled", "cancelled", "cancelled"),
        ("_new", "other", "completed"),
    ],
)
def test_how_a_turn_ends(told: str, stop: str, reason: str) -> None:
    usage = {"inputTokens": 4, "outputTokens": 2, "totalTokens": 6}
    end = answer(7, stopReason=told, usage=usage)
    found = pieces(PROMPT, said("agent_message_chunk", "Mo"), end)
    message = events(found, "assistant/message")[0]
    assert message["stop_reason"] == stop
    assert message["usage"] == {"input_tokens": 4, "output_tokens": 2, "raw": usage}
    assert message.get("interrupted", False) is (reason == "cancelled")
    assert events(found, "turn/end")[0]["reason"] == reason


def test_an_error_ends_the_turn_and_what_was_read_stays() -> None:
    error = {"jsonrpc": "2.0", "id": 7, "error": {"code": -32603, "message": "no power"}}
    found = pieces(PROMPT, said("agent_message_chunk", "Mo"), error)
    assert events(found, "assistant/message")[0]["interrupted"] is True
    told = events(found, "turn/end")[0]
    assert told["reason"] == "error"
    assert told["error"] == {"name": "error", "message": "no power", "code": -32603}


def test_an_error_of_something_else_ends_no_turn() -> None:
    error = {"jsonrpc": "2.0", "id": 9, "error": {"code": -32601, "message": "no such mode"}}
    found = pieces(PROMPT, request("session/set_mode", 9), error, STOP)
    assert events(found, "turn/end") == [{"turn": 1, "reason": "completed"}]


def test_another_message_is_another_step() -> None:
    found = pieces(
        PROMPT,
        said("agent_message_chunk", "One", messageId="m1"),
        said("agent_message_chunk", "Two", messageId="m2"),
        STOP,
    )
    assert [each["message_id"] for each in events(found, "assistant/message")] == ["m1", "m2"]


def test_what_the_prompt_said_is_not_said_again() -> None:
    echo = said("user_message_chunk", "Mow the lawn")
    assert len(events(pieces(PROMPT, echo, STOP), "user/message")) == 1


def test_somebody_else_speaks_into_the_turn() -> None:
    found = pieces(
        PROMPT,
        said("agent_message_chunk", "Now"),
        said("user_message_chunk", "And rake it"),
        said("agent_message_chunk", "Both."),
        STOP,
    )
    assert types(found).count("turn/start") == 1
    nodes = [(node.kind, node.turn) for node in conversation(found).view("chat")]
    assert nodes[:4] == [("user", 1), ("assistant", 1), ("user", 1), ("assistant", 1)]


def test_half_a_character_waits_for_the_other_half() -> None:
    halves = [said("agent_message_chunk", text) for text in ("a\ud83e", "\ude81b")]
    found = pieces(PROMPT, *halves, STOP)
    assert "".join(each["text"] for each in deltas(found, "text")) == "a🪁b"
    assert events(found, "assistant/message")[0]["content"][0]["text"] == "a🪁b"


def test_pictures_stand_where_they_came() -> None:
    picture = {"type": "image", "data": "AA==", "mimeType": "image/png"}
    found = pieces(PROMPT, update("agent_message_chunk", content=picture), STOP)
    assert events(found, "assistant/message")[0]["content"] == [
        {"type": "file", "media_type": "image/png", "data": "AA=="}
    ]


# -- history -------------------------------------------------------------------------------------

HISTORY = [
    said("user_message_chunk", "Hi", messageId="u1"),
    said("user_message_chunk", "there", messageId="u1"),
    said("agent_message_chunk", "Hello"),
    said("user_message_chunk", "Bye", messageId="u2"),
    said("agent_message_chunk", "Bye"),
]


def test_replayed_history_makes_turns() -> None:
    found = pieces(request("session/load", 3), *HISTORY, answer(3))
    assert [len(each["content"]) for each in events(found, "user/message")] == [2, 1]
    assert [each["reason"] for each in events(found, "turn/end")] == ["completed"] * 2


def test_history_that_is_known_is_passed_over() -> None:
    agent = AcpAgent(turn=2)
    assert pieces(request("session/load", 3), *HISTORY, answer(3), agent=agent) == []
    assert events(pieces(PROMPT, agent=agent), "turn/start") == [{"turn": 3}]


def test_the_same_agent_loads_its_session_again() -> None:
    agent = AcpAgent()
    pieces(PROMPT, said("agent_message_chunk", "Yes"), STOP, agent=agent)
    found = pieces(request("session/load", 3), *HISTORY, answer(3), PROMPT, agent=agent)
    assert events(found, "turn/start") == [{"turn": 2}]


# -- calls ---------------------------------------------------------------------------------------


def test_a_pending_call_is_prepared_until_it_runs() -> None:
    begun = [
        PROMPT,
        card(kind="read", status="pending", rawInput={}),
        card("tool_call_update", status="pending", rawInput={"path": "a"}),
    ]
    prepared = tool(pieces(*begun))
    assert prepared is not None
    assert (prepared["stage"], prepared["name"]) == ("preparing", "read")
    assert prepared["arguments_text"] == '{"path":"a"}'
    found = pieces(*begun, card("tool_call_update", status="in_progress"))
    assert events(found, "tool/call")[0]["arguments"] == '{"path":"a"}'


def test_arguments_that_are_still_written_are_not_taken() -> None:
    found = pieces(
        PROMPT,
        card(kind="read", status="pending", rawInput={"path": "a"}),
        card("tool_call_update", status="pending", rawInput={"path": "a/b"}),
        said("agent_message_chunk", "Reading."),
    )
    assert [each["arguments"] for each in events(found, "tool/call")] == ['{"path":"a/b"}']


def test_a_call_that_is_still_prepared_goes_on_in_the_next_step() -> None:
    found = pieces(
        PROMPT,
        card(**RUN),
        card(call="c2", kind="read", status="pending"),
        said("agent_message_chunk", "Meanwhile"),
    )
    prepared = tool(found, "c2")
    assert prepared is not None
    assert prepared["stage"] == "preparing"


def test_a_call_that_was_only_prepared_goes_with_its_turn() -> None:
    found = pieces(PROMPT, card(kind="read", status="pending"), STOP)
    assert tool(found) is None
    assert events(found, "tool/call") == []


@pytest.mark.parametrize("kind", ["tool_call", "tool_call_update"])
def test_a_call_may_be_born_completed(kind: str) -> None:
    found = pieces(PROMPT, card(kind, title="Look", status="completed", rawOutput="three"))
    assert types(found)[-2:] == ["tool/call", "tool/result"]
    assert events(found, "tool/result")[0]["content"] == [{"type": "text", "text": "three"}]


def test_a_call_without_a_status_runs() -> None:
    found = pieces(PROMPT, card(title="Look around", kind="search"))
    call = events(found, "tool/call")[0]
    assert (call["name"], call["arguments"], call["title"]) == ("search", "{}", "Look around")
    node = tool(found)
    assert node is not None
    assert node["row"]["summary"] == "Look around"


def test_a_result_that_is_told_in_the_next_card() -> None:
    terminal = {"type": "terminal", "terminalId": "t1"}
    found = pieces(
        PROMPT,
        card(**RUN | {"status": "completed"}, content=[terminal]),
        card("tool_call_update", status="completed", rawOutput={"formatted_output": "mown"}),
        STOP,
    )
    results = events(found, "tool/result")
    assert [each["content"] for each in results] == [[{"type": "text", "text": "mown"}]]


def test_a_result_that_says_nothing_is_written_all_the_same() -> None:
    found = pieces(PROMPT, card(**RUN), card("tool_call_update", status="completed"), STOP)
    assert events(found, "tool/result") == [{"call_id": "c1", "content": []}]


def test_a_replayed_card_is_no_second_call() -> None:
    over = card(**RUN | {"status": "completed"}, content=[shown("ok")])
    found = pieces(PROMPT, card(**RUN), card(**RUN), over, over, card(**RUN))
    assert [len(events(found, kind)) for kind in ("tool/call", "tool/result")] == [1, 1]


def test_an_id_that_is_used_again_is_another_call() -> None:
    over = card("tool_call_update", status="completed", rawOutput="ok")
    found = pieces(PROMPT, card(**RUN), over, STOP, PROMPT, card(**RUN), over, STOP)
    calls = events(found, "tool/call")
    assert [each["call_id"] for each in calls] == ["c1", "c1#2"]
    assert calls[1]["provider_call_id"] == "c1"
    assert [each["call_id"] for each in events(found, "tool/result")] == ["c1", "c1#2"]
    assert list(conversation(found).findings()) == []


def test_an_id_of_a_call_that_never_ended_may_be_used_again() -> None:
    other = card(**RUN | {"rawInput": {"command": "rake"}})
    found = pieces(PROMPT, card(**RUN), STOP, PROMPT, other, STOP)
    assert [each["call_id"] for each in events(found, "tool/call")] == ["c1", "c1#2"]


def test_what_changed_since_the_call_stands_with_its_result() -> None:
    found = pieces(
        PROMPT,
        card(**RUN, title="Mow"),
        card("tool_call_update", title="Mown", rawInput={"command": "mow -s"}),
        card("tool_call_update", status="completed", content=[shown("ok")], rawOutput={"n": 1}),
    )
    assert events(found, "tool/call")[0]["arguments"] == '{"command":"mow"}'
    meta = {"title": "Mown", "rawInput": {"command": "mow -s"}, "rawOutput": {"n": 1}}
    assert events(found, "tool/result")[0]["meta"] == meta


def test_a_diff_and_what_failed() -> None:
    diff = {"type": "diff", "path": "a", "oldText": None, "newText": "x"}
    found = pieces(
        PROMPT,
        card(kind="edit", status="in_progress", content=[diff]),
        card("tool_call_update", status="failed", rawOutput={"error": {"message": "read-only"}}),
    )
    result = events(found, "tool/result")[0]
    assert result["content"] == [
        {"type": "json", "value": diff},
        {"type": "text", "text": "read-only"},
    ]
    assert result["is_error"] is True
    assert result["error"] == {"name": "error", "message": "read-only"}


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"kind": "execute", "title": "ls"}, "execute"),
        ({"kind": "other", "title": "spawnAgent"}, "spawnAgent"),
        ({"title": "Look"}, "Look"),
        ({}, "other"),
        ({"kind": "read", "name": "ReadFile"}, "ReadFile"),
        ({"kind": "read", "_meta": {"toolName": "view"}}, "view"),
        ({"kind": "read", "_meta": {"claudeCode": {"toolName": "Read"}}}, "Read"),
        (
            {
                "kind": "execute",
                "rawInput": {"server": "shed", "tool": "find", "arguments": {"what": "rake"}},
                "_meta": {"is_mcp_tool_call": True},
            },
            "mcp__shed__find",
        ),
    ],
)
def test_what_a_tool_is_called(fields: Json, name: str) -> None:
    found = pieces(PROMPT, card(status="in_progress", **fields))
    call = events(found, "tool/call")[0]
    assert call["name"] == name
    assert call["arguments"] == ('{"what":"rake"}' if "rawInput" in fields else "{}")


@pytest.mark.parametrize(
    ("told", "arguments"),
    [
        ('{"a": 1}', '{"a":1}'),
        ("mow", '{"input":"mow"}'),
        ([1], '{"input":[1]}'),
        (None, "{}"),
    ],
)
def test_arguments_are_always_an_object(told: Any, arguments: str) -> None:
    found = pieces(PROMPT, card(status="in_progress", rawInput=told))
    assert events(found, "tool/call")[0]["arguments"] == arguments


def test_a_call_that_was_made_in_a_call() -> None:
    meta = {"claudeCode": {"parentToolUseId": "c1", "toolName": "Grep"}}
    text = said("agent_message_chunk", "inside", _meta=meta)
    found = pieces(PROMPT, card(**RUN), card(call="c2", status="in_progress", _meta=meta), text)
    assert events(found, "tool/call")[1]["parent_call_id"] == "c1"
    assert deltas(found, "text") == []


# -- what a running call prints ------------------------------------------------------------------


def test_output_comes_as_it_is_printed() -> None:
    terminal = {"type": "terminal", "terminalId": "t1"}
    chunk = b64encode("grün".encode()[:3]).decode(), b64encode("grün".encode()[3:]).decode()
    printed = {"terminal_output_delta": {"data": "x", "terminal_id": "t1"}}
    found = pieces(
        PROMPT,
        card(**RUN, content=[terminal]),
        card("tool_call_update", _meta=printed),
        update("terminal_output_chunk", terminalId="t1", data=chunk[0]),
        update("terminal_output_chunk", terminalId="t1", data=chunk[1]),
        request("terminal/output", 5, terminalId="t1"),
        answer(5, output="xgrün!", truncated=False),
        card("tool_call_update", status="completed"),
        STOP,
    )
    assert "".join(each["text"] for each in deltas(found, "tool-output")) == "xgrün!"
    assert events(found, "tool/result")[0]["content"] == [{"type": "text", "text": "xgrün!"}]


def test_content_that_goes_on_is_printed_and_other_content_is_not() -> None:
    progress = [
        card("tool_call_update", content=[shown(text)]) for text in ("a", "ab", "other", "other!")
    ]
    found = pieces(PROMPT, card(**RUN), *progress)
    assert [each["text"] for each in deltas(found, "tool-output")] == ["a", "b", "!"]


# -- questions -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("yes", {"decision": "allow"}),
        ("always", {"decision": "allow", "remember": True}),
        ("no", {"decision": "deny"}),
    ],
)
def test_people_are_asked_and_answer(option: str, told: Json) -> None:
    found = pieces(
        PROMPT,
        ask(7, **RUN | {"status": "pending"}),  # each side numbers its own requests
        answer(7, outcome={"outcome": "selected", "optionId": option}),
        STOP,
    )
    told_first = ["step/start", "tool/call", "permission/request", "permission/answer"]
    assert types(found)[2:6] == told_first
    asked = events(found, "permission/request")[0]
    assert (asked["call_id"], asked["request_id"]) == ("c1", "7")
    assert asked["input"] == {"command": "mow"}
    answered = events(found, "permission/answer")[0]
    assert answered == {"call_id": "c1", "request_id": "7", "option_id": option, **told}
    assert types(found)[-1] == "turn/end"


def test_a_denied_call_says_so() -> None:
    found = pieces(
        PROMPT,
        ask(1, **RUN),
        answer(1, outcome={"outcome": "selected", "optionId": "no"}),
        card("tool_call_update", status="failed", content=[shown("Not allowed")]),
    )
    assert events(found, "tool/result")[0]["error"]["name"] == "denied"


def test_a_question_that_was_cancelled_has_no_answer() -> None:
    cancelled = answer(1, outcome={"outcome": "cancelled"})
    found = pieces(PROMPT, ask(1, **RUN), cancelled, answer(7, stopReason="cancelled"))
    assert events(found, "permission/answer") == []
    assert conversation(found).view("chat")["permission:1@c1"].data["decision"] == "withdrawn"


# -- version 2, and everything else --------------------------------------------------------------

BEGUN = answer(0, protocolVersion=2)


def test_null_takes_a_field_back() -> None:
    cleared = card("tool_call_update", title=None, content=None, status="completed")
    fields = {**RUN, "title": "Mow", "content": [shown("half")]}
    found = pieces(BEGUN, PROMPT, card("tool_call_update", **fields), cleared, STOP)
    assert events(found, "tool/result")[0]["content"] == []
    found = pieces(PROMPT, card("tool_call_update", **fields), cleared, STOP)
    assert events(found, "tool/result")[0]["content"] == [{"type": "text", "text": "half"}]


def test_content_comes_in_chunks() -> None:
    chunks = [card("tool_call_content_chunk", content=shown(text)) for text in ("a", "b")]
    over = card("tool_call_update", status="completed")
    found = pieces(BEGUN, PROMPT, card("tool_call_update", **RUN), *chunks, over)
    assert [each["text"] for each in deltas(found, "tool-output")] == ["a", "b"]
    assert [each["text"] for each in events(found, "tool/result")[0]["content"]] == ["a", "b"]


def test_messages_are_told_whole() -> None:
    def whole(*texts: str) -> Json:
        content = [{"type": "text", "text": text} for text in texts]
        return update("agent_message", messageId="m1", content=content)

    found = pieces(
        BEGUN,
        PROMPT,
        update("state_update", state="running"),
        said("agent_message_chunk", "Mo", messageId="m1"),
        whole("Mow", "n"),
        update("state_update", state="idle", stopReason="end_turn"),
        answer(7),
    )
    assert [each["text"] for each in deltas(found, "text")] == ["Mo", "wn"]
    assert [each["content"] for each in events(found, "assistant/message")] == [
        [{"type": "text", "text": "Mown"}]
    ]
    found = pieces(PROMPT, said("agent_message_chunk", "Mo", messageId="m1"), whole("No"), STOP)
    assert events(found, "assistant/message")[0]["content"][0]["text"] == "No"
    node = conversation(found[:-4]).view("chat")["assistant:1.1"]
    assert str(node.data["blocks"][0]["text"]) == "No"


def test_a_compaction() -> None:
    done = update("compaction_update", compactionId="k", status="completed", summary="All mown")
    found = pieces(PROMPT, update("compaction_update", compactionId="k", status="running"), done)
    assert types(found)[-3:] == ["compaction/start", "compaction/summary", "compaction/end"]


def test_the_rest_is_kept_and_shows_nothing() -> None:
    plan = update("plan", entries=[{"content": "Mow", "status": "pending"}])
    mode = update("current_mode_update", currentModeId="ask")
    title = update("session_info_update", title="Garden")
    found = pieces(PROMPT, plan, mode, title)
    assert types(found)[2:] == [
        *("acp/plan", "acp/current_mode_update"),
        *("conversation/title", "acp/session_info_update"),
    ]
    assert [node.kind for node in conversation(found).view("chat")] == ["user"]


def test_another_session_is_nobody_s() -> None:
    other = update("agent_message_chunk", session="t", content={"type": "text", "text": "x"})
    assert deltas(pieces(PROMPT, other), "text") == []


def test_a_lost_connection_ends_the_turn_when_it_is_said() -> None:
    agent = AcpAgent()
    pieces(PROMPT, said("agent_message_chunk", "Mo"), agent=agent)
    found = agent.finish("interrupted")
    assert events(found, "assistant/message")[0]["interrupted"] is True
    assert events(found, "turn/end") == [{"turn": 1, "reason": "interrupted"}]


def test_frames_of_our_own_are_read_back() -> None:
    """A preparation that was discarded is gone, a call with a result is as it was."""

    def frame(**fields: Any) -> Json:
        return Acp.notification("s", {"sessionUpdate": "tool_call_update", **fields})

    preparing = {"phase": "preparing", "toolName": "read_file"}
    first = card(status="pending", rawInput={}, kind="read", title="read_file", _meta=preparing)
    gone = card(
        "tool_call_update",
        status="failed",
        content=[],
        _meta={**preparing, "preparationDiscarded": True},
    )
    found = pieces(PROMPT, first)
    node = tool(found)
    assert node is not None
    assert (node["stage"], node["name"]) == ("preparing", "read_file")
    found = pieces(PROMPT, first, gone)
    assert tool(found) is None
    assert events(found, "tool/call", "tool/result") == []
    runs = frame(
        toolCallId="c1",
        status="in_progress",
        rawInput={"path": "a"},
        _meta={"toolName": "read_file"},
    )
    node = tool(pieces(PROMPT, first, gone, first, runs))
    assert node is not None
    assert (node["stage"], node["arguments"]) == ("start", {"path": "a"})
    unsettled = frame(toolCallId="c1", status="failed", _meta={"unsettled": True})
    assert events(pieces(PROMPT, first, runs, unsettled, STOP), "tool/result") == []


# -- anything ------------------------------------------------------------------------------------

ODD = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from(["", "c1", "x"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
    ),
    max_leaves=3,
)
STATUSES = st.sampled_from(["pending", "in_progress", "completed", "failed", "cancelled"])
KINDS = st.sampled_from(
    [
        *("tool_call", "tool_call_update", "tool_call_content_chunk", "agent_message_chunk"),
        *("agent_thought_chunk", "user_message_chunk", "agent_message", "user_message", "plan"),
        *("state_update", "terminal_update", "terminal_output_chunk", "compaction_update"),
    ]
)
CONTENT = st.one_of(
    ODD,
    st.just({"type": "text", "text": "t"}),
    st.just([shown("u"), {"type": "terminal", "terminalId": "c1"}]),
)
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "toolCallId": st.one_of(st.sampled_from(["c1", "c2"]), ODD),
        "messageId": ODD,
        "content": CONTENT,
        "status": st.one_of(STATUSES, ODD),
        "title": ODD,
        "kind": ODD,
        "locations": ODD,
        "rawInput": ODD,
        "rawOutput": ODD,
        "terminalId": ODD,
        "data": ODD,
        "output": ODD,
        "state": st.sampled_from(["running", "idle"]),
        "stopReason": ODD,
        "compactionId": ODD,
        "_meta": st.one_of(
            ODD, st.just({"preparationDiscarded": True}), st.just({"phase": "preparing"})
        ),
    },
)


def asking(fields: Json, number: int) -> Json:
    return ask(number, **{name: each for name, each in fields.items() if name != "toolCallId"})


MESSAGES = st.one_of(
    ODD,
    st.builds(lambda what, fields: update(what, **fields), KINDS, FIELDS),
    st.builds(asking, FIELDS, st.integers(1, 3)),
    st.sampled_from([PROMPT, STOP, request("session/load", 3), answer(3), request("initialize")]),
    st.builds(lambda name, result: {"id": name, "result": result}, st.integers(1, 7), ODD),
    st.just(answer(1, outcome={"outcome": "selected", "optionId": "no"})),
)


@given(st.lists(MESSAGES, max_size=14))
def test_nothing_that_is_sent_breaks_anything(messages: list[Any]) -> None:
    """Whatever an agent sends: nothing raises, nothing odd is found, steps and turns are closed in
    their order, and each call has one result at most."""
    agent = AcpAgent(keeps_all=True)
    found = pieces(*messages, agent=agent) + agent.finish("interrupted")
    assembler = conversation(found)
    odd = {finding.kind for finding in assembler.findings()}
    assert odd <= {"early-update"}
    opened: list[str] = []
    for kind in types(found):
        what, _, end = kind.partition("/")
        if what in ("turn", "step"):
            if end == "start":
                assert what not in opened
                opened.append(what)
            else:
                assert opened.pop() == what
    assert opened == []
