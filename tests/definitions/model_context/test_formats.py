"""What is of one provider: ids, signatures, files, its own tools."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from tests.definitions.model_context.support import Log, call, given, reasoning, text

PNG = {"type": "file", "media_type": "image/png", "data": "aGk="}
PDF = {"type": "file", "media_type": "application/pdf", "data": "aGk=", "name": "a.pdf"}


def file(media_type: str, **where: str) -> dict[str, Any]:
    return {"type": "file", "media_type": media_type, **where}


def raw(provider: str, told: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "provider", "provider": provider, "raw": told, **more}


# Ids


def test_a_provider_gets_its_own_ids_back() -> None:
    log = Log().starts("go").says(call("c1", provider_call_id="call_0"), provider="openai_chat")
    log.calls("c1", provider_call_id="call_0").results("c1", "x")
    log.steps().says(call("c2"), provider="openai_chat").calls("c2", provider_call_id="call_0")
    told = given(log, "openai_chat")
    assert [told[at]["tool_calls"][0]["id"] for at in (1, 3)] == ["call_0", "call_0"]
    assert [told[at]["tool_call_id"] for at in (2, 4)] == ["call_0", "call_0"]
    ours = given(log, "anthropic")
    assert [ours[at]["content"][0]["id"] for at in (1, 3)] == ["c1", "c2"]


def test_two_calls_of_one_answer_never_share_an_id() -> None:
    twins = [call(each, provider_call_id="0") for each in ("c1", "c2")]
    told = given(Log().starts("go").says(*twins, provider="openai_chat"), "openai_chat")
    assert [each["id"] for each in told[1]["tool_calls"]] == ["0", "c2"]


@pytest.mark.parametrize("odd", ["functions.look:0", "ä", "a b", "x" * 200])
def test_an_id_that_a_provider_refuses_becomes_another_the_same_each_time(odd: str) -> None:
    log = Log().starts("go").says(call(odd)).calls(odd).results(odd, "x")
    told = given(log, "anthropic")
    assert told[1]["content"][0]["id"] == told[2]["content"][0]["tool_use_id"]
    assert told[1]["content"][0]["id"].startswith("call_")
    assert told == given(log, "anthropic")


def test_ids_that_are_long_are_cut_for_those_who_count() -> None:
    log = Log().starts("go").says(call("x" * 50))
    assert len(given(log, "openai_chat")[1]["tool_calls"][0]["id"]) <= 40
    assert given(log, "openai_responses")[1]["call_id"] == "x" * 50


def test_names_hold_what_a_provider_takes() -> None:
    log = Log().starts("go").says(call("c1", name="mcp/look at.it" + "x" * 90))
    assert given(log, "openai_chat")[1]["tool_calls"][0]["function"]["name"] == (
        "mcp_look_at_it" + "x" * 50
    )
    response = given(log, "gemini")[2]["parts"][0]["functionResponse"]
    assert response["name"] == given(log, "gemini")[1]["parts"][0]["functionCall"]["name"]


# Anthropic


def test_anthropic_takes_all_results_of_a_step_and_what_follows_in_one_message() -> None:
    log = Log().starts("go").says(call("c1"), call("c2")).results("c1", "1").results("c2", PNG)
    log.user("and", PDF)
    told = given(log, "anthropic")
    assert [message["role"] for message in told] == ["user", "assistant", "user"]
    assert [block["type"] for block in told[2]["content"]] == [
        *("tool_result", "tool_result", "text", "document")
    ]
    assert told[2]["content"][1]["content"] == [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    ]


def test_anthropic_gets_its_thinking_back_and_nobody_else_does() -> None:
    content = [
        reasoning("I think", signature="sig"),
        raw("anthropic", {"type": "redacted_thinking", "data": "xx"}),
        text("So", citations=[{"type": "char_location", "cited_text": "s"}]),
        reasoning("unsigned"),
        call("c1", raw={"type": "tool_use", "caller": {"type": "direct"}}),
    ]
    log = Log().starts("go").says(*content, provider="anthropic")
    told = given(log, "anthropic")[1]["content"]
    assert told == [
        {"type": "thinking", "thinking": "I think", "signature": "sig"},
        {"type": "redacted_thinking", "data": "xx"},
        {
            "type": "text",
            "text": "So",
            "citations": [{"type": "char_location", "cited_text": "s"}],
        },
        {"type": "tool_use", "id": "c1", "name": "look", "input": {}, "caller": {"type": "direct"}},
    ]
    for other in ("openai_chat", "openai_responses", "gemini"):
        there = str(given(log, other))
        assert not [each for each in ("think", "sig", "xx", "direct", "cited") if each in there]


def test_anthropic_gets_nothing_signed_by_another() -> None:
    log = Log().starts("go").says(reasoning("I think", signature="s"), "So", provider="gemini")
    assert given(log, "anthropic")[1]["content"] == [{"type": "text", "text": "So"}]


def test_an_answer_of_thoughts_alone_is_left_out() -> None:
    log = Log().starts("go").says(reasoning("I think", signature="s"), provider="anthropic")
    log.user("still there?")
    assert given(log, "anthropic") == [
        {
            "role": "user",
            "content": [{"type": "text", "text": told} for told in ("go", "still there?")],
        }
    ]


def test_anthropic_gets_the_result_of_a_call_that_failed_as_text_alone() -> None:
    log = Log().starts("go").says(call("c1"), call("c2"), provider="anthropic")
    kept = raw("anthropic", {"type": "search_result", "source": "x"})
    log.calls("c1").results("c1", "broke", PNG, kept, is_error=True)
    log.calls("c2").results("c2", PNG).user("and?")
    first, second, named, image, asked = given(log, "anthropic")[2]["content"]
    assert [block["text"] for block in first["content"]] == [
        "broke",
        "(A file, which follows.)",
        "(A block of type search_result is not shown here.)",
    ]
    assert second["content"][0]["type"] == "image"
    assert named["text"] == "Files of the result of look:"
    assert (image["type"], asked["text"]) == ("image", "and?")


def test_anthropic_gets_no_answer_to_go_on_with_that_ends_in_white_space() -> None:
    log = Log().starts("go").says("one \n", "two \n", provider="anthropic")
    assert given(log, "anthropic")[1]["content"] == [text("one \n"), text("two")]
    log.user("more")
    assert given(log, "anthropic")[1]["content"] == [text("one \n"), text("two \n")]


def test_anthropic_begins_with_the_user() -> None:
    log = Log().steps().says("Welcome")
    assert [message["role"] for message in given(log, "anthropic")] == ["user", "assistant"]


SEARCH = {"type": "server_tool_use", "caller": {"type": "direct"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srv1", "content": []}


def searched() -> Log:
    log = Log().starts("go")
    return log.says(
        call("srv1", "web_search", '{"query":"x"}', ran_by="provider", raw=SEARCH),
        raw("anthropic", FOUND, call_id="srv1"),
        "Found",
        provider="anthropic",
    )


def test_anthropic_gets_the_tools_back_that_it_ran() -> None:
    told = given(searched().calls("srv1", ran_by="provider").results("srv1", "x"), "anthropic")
    assert told[1]["content"] == [
        {**SEARCH, "id": "srv1", "name": "web_search", "input": {"query": "x"}},
        FOUND,
        {"type": "text", "text": "Found"},
    ]


@pytest.mark.parametrize("format", ["openai_chat", "openai_responses", "gemini"])
def test_what_a_provider_ran_in_its_own_way_is_not_in_the_context_of_others(format: str) -> None:
    assert "web_search" not in str(given(searched(), format))


def test_a_tool_of_anthropic_that_never_answered_is_left_out_unless_it_goes_on() -> None:
    log = Log().starts("go")
    log.says(
        "I search", call("srv1", "web_search", ran_by="provider", raw=SEARCH), provider="anthropic"
    )
    assert len(given(log, "anthropic")[1]["content"]) == 2
    assert len(given(log.user("well?"), "anthropic")[1]["content"]) == 1


@pytest.mark.parametrize("named", [{"call_id": "srv1"}, {}])
def test_a_result_of_anthropic_without_its_call_is_left_out(named: dict[str, str]) -> None:
    log = Log().starts("go").says("So", raw("anthropic", FOUND, **named), provider="anthropic")
    assert given(log, "anthropic")[1]["content"] == [{"type": "text", "text": "So"}]


def test_calls_made_by_code_that_anthropic_runs_go_back_to_it_alone() -> None:
    caller = {"type": "code_execution_20260120", "tool_id": "srv1"}
    ran = {"type": "code_execution_tool_result", "tool_use_id": "srv1", "content": {}}
    log = (
        Log()
        .starts("go")
        .says(
            call("srv1", "code_execution", ran_by="provider", raw={"type": "server_tool_use"}),
            call("c1", raw={"type": "tool_use", "caller": caller}, parent_call_id="srv1"),
            provider="anthropic",
        )
    )
    log.calls("c1", parent_call_id="srv1").results("c1", "x").steps()
    log.says(raw("anthropic", ran, call_id="srv1"), "Done", provider="anthropic")
    told = given(log, "anthropic")
    assert [block["type"] for message in told for block in message["content"]] == [
        *("text", "server_tool_use", "tool_use", "tool_result"),
        *("code_execution_tool_result", "text"),
    ]
    assert told[1]["content"][1]["caller"] == caller
    assert [message["role"] for message in given(log, "openai_chat")] == ["user", "assistant"]


def test_a_call_made_inside_a_tool_of_anthropic_is_not_its_own_when_no_message_tells_of_it() -> (
    None
):
    log = searched().calls("c1", parent_call_id="srv1").results("c1", "inner")
    assert given(log, "anthropic") == given(searched(), "anthropic")


def test_a_call_made_inside_another_of_the_host_goes_back_to_nobody() -> None:
    content = [call("c1"), call("c2", parent_call_id="c1")]
    log = Log().starts("go").says(*content, provider="anthropic").results("c2", "x")
    told = given(log, "anthropic")
    assert [block["id"] for block in told[1]["content"]] == ["c1"]


def test_what_an_agent_ran_by_itself_has_its_results_between_what_it_said() -> None:
    ran = {"ran_by": "provider"}
    log = Log().starts("go").says(
        "First", call("c1", **ran), call("c2", **ran), "Then", call("c3", **ran), "Last",
        provider="claude_code",
    )  # fmt: skip
    for each in ("c1", "c2", "c3"):
        log.calls(each, ran_by="provider").results(each, each.upper())
    assert [
        block.get("text") or block.get("id") or block["tool_use_id"]
        for message in given(log, "anthropic")
        for block in message["content"]
    ] == ["go", "First", "c1", "c2", "c1", "c2", "Then", "c3", "c3", "Last"]


def test_what_anthropic_ran_for_an_agent_goes_back_as_anthropics_own() -> None:
    log = (
        Log()
        .starts("go")
        .says(
            call("srv1", "web_search", ran_by="provider", raw=SEARCH),
            raw("claude_code", FOUND, call_id="srv1"),
            "Found",
            provider="claude_code",
        )
    )
    told = given(log, "anthropic")[1]["content"]
    assert [block["type"] for block in told] == [SEARCH["type"], FOUND["type"], "text"]


# OpenAI Chat


def test_chat_gets_reasoning_back_in_the_field_it_came_in() -> None:
    def told(**source: Any) -> dict[str, Any]:
        log = Log().starts("go").says(reasoning("I "), "So", reasoning("think"))
        log.events[-1]["data"]["provider"] = {"name": "openai_chat", **source}
        message: dict[str, Any] = given(log, "openai_chat")[1]
        return message

    said = {"role": "assistant", "content": "So"}
    assert told() == said
    assert told(reasoning_field="reasoning_content") == {**said, "reasoning_content": "I think"}
    assert told(reasoning_field="reasoning") == {**said, "reasoning": "I think"}
    details = [{"type": "reasoning.encrypted", "data": "xx"}]
    assert told(reasoning_field="reasoning", reasoning_details=details) == {
        **said,
        "reasoning_details": details,
    }


def test_chat_gets_back_what_else_stood_at_a_call() -> None:
    more = {"extra_content": {"google": {"thought_signature": "s"}}}
    log = Log().starts("go").says(
        call("c1", raw=more), call("c2", arguments="free", raw={"type": "custom"}),
        provider="openai_chat",
    )  # fmt: skip
    first, second = given(log, "openai_chat")[1]["tool_calls"]
    assert first["extra_content"] == more["extra_content"]
    assert second == {"id": "c2", "type": "custom", "custom": {"name": "look", "input": "free"}}
    assert "extra_content" not in str(given(log, "openai_responses"))


def test_chat_gets_files_of_results_behind_them() -> None:
    log = Log().starts(PNG, PDF).says(call("c1"), call("c2")).results("c1", "a", PNG)
    log.results("c2", "b").user("well?")
    told = given(log, "openai_chat")
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    pdf = {"filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk="}
    assert told[0]["content"] == [image, {"type": "file", "file": pdf}]
    assert [message["role"] for message in told[2:]] == ["tool", "tool", "user", "user"]
    assert told[2]["content"] == "a\n(A file, which follows.)"
    assert told[4]["content"] == [
        {"type": "text", "text": "Files of the result of look:"},
        image,
    ]


# OpenAI Responses


def test_responses_gets_its_items_back() -> None:
    item = {"type": "reasoning", "id": "rs_1", "status": None}
    log = (
        Log()
        .starts("go")
        .says(
            reasoning("I ", raw=item, signature="enc"),
            reasoning("think", raw=item),
            text("So", raw={"type": "message", "id": "msg_1", "phase": "commentary"}),
            text("No", raw={"type": "message", "id": "msg_1", "part": "refusal"}),
            reasoning("long", raw={"type": "reasoning", "id": "rs_2", "part": "reasoning_text"}),
            call("call_1", raw={"type": "function_call", "id": "fc_1", "status": "completed"}),
            call(
                "call_2",
                arguments='{"input":"x y"}',
                raw={"type": "custom_tool_call", "id": "ct_1"},
            ),
            provider="openai_responses",
        )
    )
    log.results("call_1", "1").results("call_2", "2", PNG)
    assert given(log, "openai_responses")[1:] == [
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [
                {"type": "summary_text", "text": "I "},
                {"type": "summary_text", "text": "think"},
            ],
            "encrypted_content": "enc",
        },
        {
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "id": "msg_1",
            "phase": "commentary",
            "content": [
                {"type": "output_text", "text": "So", "annotations": []},
                {"type": "refusal", "refusal": "No"},
            ],
        },
        {
            "type": "reasoning",
            "id": "rs_2",
            "summary": [],
            "content": [{"type": "reasoning_text", "text": "long"}],
        },
        {
            "type": "function_call",
            "id": "fc_1",
            "status": "completed",
            "call_id": "call_1",
            "name": "look",
            "arguments": "{}",
        },
        {
            "type": "custom_tool_call",
            "id": "ct_1",
            "call_id": "call_2",
            "name": "look",
            "input": "x y",
        },
        {"type": "function_call_output", "call_id": "call_1", "output": "1"},
        {
            "type": "custom_tool_call_output",
            "call_id": "call_2",
            "output": [
                {"type": "input_text", "text": "2"},
                {
                    "type": "input_image",
                    "image_url": "data:image/png;base64,aGk=",
                    "detail": "auto",
                },
            ],
        },
    ]
    elsewhere = str([given(log, each) for each in ("anthropic", "openai_chat", "gemini")])
    assert not [each for each in ("rs_1", "enc", "fc_1", "msg_1", "think") if each in elsewhere]


def test_responses_gets_no_reasoning_that_led_to_nothing() -> None:
    log = Log().starts("go")
    log.says("So", reasoning("I think", raw={"id": "rs_1"}), provider="openai_responses")
    assert [item["type"] for item in given(log, "openai_responses")] == ["message", "message"]


def test_responses_gets_the_tools_back_that_it_ran() -> None:
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {}}
    program = {"type": "program", "id": "p_1", "fingerprint": "f"}
    output = {"type": "program_output", "call_id": "call_p", "id": "o_1", "result": "3"}
    caller = {"type": "program", "caller_id": "call_p"}
    ran = {"ran_by": "provider"}
    log = (
        Log()
        .starts("go")
        .says(
            call("ws_1", "web_search", **ran, raw={"type": "web_search_call", "id": "ws_1"}),
            raw("openai_responses", search, call_id="ws_1"),
            call("call_p", "program", '{"code":"1+2"}', **ran, raw=program),
            call("c1", raw={"type": "function_call", "caller": caller}, parent_call_id="call_p"),
            provider="openai_responses",
        )
    )
    log.results("c1", "x").steps().says(
        raw("openai_responses", output, call_id="call_p"), "Three", provider="openai_responses"
    )
    told = given(log, "openai_responses")
    assert told[1] == search
    assert told[2] == {**program, "call_id": "call_p", "code": "1+2"}
    assert told[3]["caller"] == told[4]["caller"] == caller
    assert told[5] == output
    assert [item["type"] for item in given(log, "anthropic")[1]["content"]] == ["text"]


@pytest.mark.parametrize("kind", ["function", "custom_tool", "shell", "apply_patch"])
def test_responses_is_told_with_an_output_who_made_its_call(kind: str) -> None:
    caller = {"type": "program", "caller_id": "call_p"}
    item = {"type": f"{kind}_call", "caller": caller}
    log = Log().starts("go").says(call("c1", raw=item), provider="openai_responses")
    told = given(log.results("c1", "x"), "openai_responses")
    assert [each["type"] for each in told[1:]] == [f"{kind}_call", f"{kind}_call_output"]
    assert told[1]["caller"] == told[2]["caller"] == caller


def test_responses_is_told_no_caller_of_a_call_that_it_cannot_have_made() -> None:
    item = {"type": "tool_use", "caller": {"tool_id": "c2"}}
    log = Log().starts("go").says(call("c1", raw=item), provider="openai_responses")
    told = given(log.results("c1", "x"), "openai_responses")
    assert not any("caller" in each for each in told)


def test_responses_gets_its_other_calls_back_as_what_they_were() -> None:
    log = (
        Log()
        .starts("go")
        .says(
            call("c1", "apply_patch", '{"type":"delete_file"}', raw={"type": "apply_patch_call"}),
            call("c2", "shell", '{"commands":["ls"]}', raw={"type": "shell_call"}),
            call("c3", "computer", '{"action":{}}', raw={"type": "computer_call", "id": "cu_1"}),
            provider="openai_responses",
        )
    )
    log.results("c1", "no", is_error=True).results("c2", "a b").results("c3", "ok")
    told = given(log, "openai_responses")[1:]
    assert told == [
        {"type": "apply_patch_call", "call_id": "c1", "operation": {"type": "delete_file"}},
        {"type": "shell_call", "call_id": "c2", "action": {"commands": ["ls"]}},
        {
            "type": "function_call",
            "call_id": "c3",
            "name": "computer",
            "arguments": '{"action":{}}',
        },
        {"type": "apply_patch_call_output", "call_id": "c1", "status": "failed", "output": "no"},
        {
            "type": "shell_call_output",
            "call_id": "c2",
            "output": [
                {"stdout": "a b", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}
            ],
        },
        {"type": "function_call_output", "call_id": "c3", "output": "ok"},
    ]


def test_responses_gets_the_tools_back_that_a_search_of_the_host_found() -> None:
    item = {"type": "tool_search_call", "execution": "client", "id": "ts_1"}
    log = Log().starts("go")
    log.says(call("c1", "tool_search", '{"q":"a"}', raw=item), provider="openai_responses")
    found = {"type": "function", "name": "rate"}
    log.results("c1", {"type": "json", "value": found})
    assert given(log, "openai_responses")[1:] == [
        {**item, "call_id": "c1", "arguments": {"q": "a"}},
        {
            "type": "tool_search_output",
            "call_id": "c1",
            "execution": "client",
            "status": "completed",
            "tools": [found],
        },
    ]


@pytest.mark.parametrize("told", ["denied", {"type": "json", "value": ["a"]}])
def test_responses_is_told_in_words_of_a_search_that_found_no_tools(told: Any) -> None:
    item = {"type": "tool_search_call", "execution": "client", "id": "ts_1"}
    log = Log().starts("go")
    log.says(call("c1", "tool_search", "{}", raw=item), provider="openai_responses")
    kinds = [each["type"] for each in given(log.results("c1", told), "openai_responses")]
    assert kinds[1:] == ["function_call", "function_call_output"]


# Gemini


def test_gemini_gets_signatures_back_at_the_part_they_came_with() -> None:
    log = (
        Log()
        .starts("go")
        .says(
            reasoning("I think"),
            text("So", signature="s1"),
            call("c1", signature="s2", provider_call_id="p1"),
            call("c2"),
            text("", signature="s3"),
            raw("gemini", {"executableCode": {"code": "1"}}),
            provider="gemini",
        )
    )
    log.calls("c1").calls("c2").results("c1", "x").results("c2", "y", PNG).user("and?")
    told = given(log, "gemini")
    assert told[1]["parts"] == [
        {"text": "I think", "thought": True},
        {"text": "So", "thoughtSignature": "s1"},
        {
            "functionCall": {"name": "look", "args": {}, "id": "p1"},
            "thoughtSignature": "s2",
        },
        {"functionCall": {"name": "look", "args": {}}},
        {"text": "", "thoughtSignature": "s3"},
        {"executableCode": {"code": "1"}},
    ]
    assert [part["functionResponse"] for part in told[2]["parts"]] == [
        {"name": "look", "response": {"output": "x"}, "id": "p1"},
        {"name": "look", "response": {"output": "y\n(A file, which follows.)"}},
    ]
    assert told[3]["parts"][1:] == [
        {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
        {"text": "and?"},
    ]
    elsewhere = str([given(log, each) for each in ("anthropic", "openai_chat")])
    assert not [each for each in ("think", "s1", "s2", "executable") if each in elsewhere]


def test_gemini_hears_what_one_side_said_in_a_row_at_once() -> None:
    log = Log().starts("go").says("I beg", interrupted=True).steps().says("I begin", call("c1"))
    told = given(log, "gemini")
    assert [content["role"] for content in told] == ["user", "model", "user"]
    assert given(Log().steps().says("Welcome"), "gemini")[0]["role"] == "user"


# Files


def kinds(block: dict[str, Any]) -> list[Any]:
    """What a file is in each format, as input."""
    log = Log().starts(block)
    anthropic = given(log, "anthropic")[0]["content"][0]
    chat = given(log, "openai_chat")[0]["content"]
    gemini = given(log, "gemini")[0]["parts"][0]
    return [
        anthropic["type"],
        "text" if isinstance(chat, str) else chat[0]["type"],
        given(log, "openai_responses")[0]["content"][0]["type"],
        next(iter(gemini)),
    ]


HELLO = b64encode(b"hello").decode()


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (PNG, ["image", "image_url", "input_image", "inlineData"]),
        (PDF, ["document", "file", "input_file", "inlineData"]),
        (file("image/png", url="https://x/a"), ["image", "image_url", "input_image", "fileData"]),
        (
            file("application/pdf", url="https://x/a"),
            ["document", "text", "input_file", "fileData"],
        ),
        (file("text/x-python", data=HELLO), ["document", "text", "input_text", "text"]),
        (file("audio/wav", data="aGk="), ["text", "input_audio", "input_text", "inlineData"]),
        (file("image/svg+xml", data=HELLO), ["document", "text", "input_text", "text"]),
        (file("image/svg+xml", url="https://x/a"), ["text"] * 2 + ["input_text", "text"]),
        (file("image/bmp", data="aGk="), ["text"] * 2 + ["input_text", "text"]),
        (file("image/gif", data="aGk="), ["image", "image_url", "input_image", "text"]),
        (file("image/heic", data="aGk="), ["text", "text", "input_text", "inlineData"]),
        (file("application/zip", data="aGk="), ["text"] * 2 + ["input_text", "text"]),
        (file("text/plain", data="no base64"), ["text"] * 2 + ["input_text", "text"]),
        ({"type": "file", "data": "aGk="}, ["text"] * 2 + ["input_text", "text"]),
        (
            {"type": "file", "url": "data:image/png;base64,aGk="},
            ["image", "image_url", "input_image", "inlineData"],
        ),
        ({"type": "file", "url": "data:text/plain,hi"}, ["text"] * 2 + ["input_text", "text"]),
    ],
)
def test_a_file_is_what_the_format_has_for_it(block: dict[str, Any], expected: list[str]) -> None:
    assert kinds(block) == expected


def test_a_file_that_cannot_be_shown_says_what_and_where_it_is() -> None:
    told = given(Log().starts(file("application/zip", url="https://x/a.zip")), "openai_chat")
    assert told[0]["content"] == (
        "(A file of type application/zip is not shown here: https://x/a.zip.)"
    )


def test_one_type_of_file_is_written_in_one_way() -> None:
    log = Log().starts(file("IMAGE/jpg; q=1", data="aGk="))
    source = given(log, "anthropic")[0]["content"][0]["source"]
    assert source == {"type": "base64", "media_type": "image/jpeg", "data": "aGk="}
    assert given(log, "gemini")[0]["parts"][0]["inlineData"]["mimeType"] == "image/jpeg"


def test_a_text_file_is_its_text() -> None:
    told = given(Log().starts(file("text/plain", data=HELLO)), "anthropic")[0]["content"]
    source = {"type": "text", "media_type": "text/plain", "data": "hello"}
    assert told == [{"type": "document", "source": source}]


def test_a_file_in_an_answer_is_named_where_answers_are_text() -> None:
    log = Log().starts("draw").says(PNG)
    said = "(A file of type image/png is not shown here.)"
    assert given(log, "anthropic")[1]["content"] == [{"type": "text", "text": said}]
    assert given(log, "openai_chat")[1]["content"] == said
    assert "inlineData" in given(log, "gemini")[1]["parts"][0]
