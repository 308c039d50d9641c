"""OpenAI Responses: what its events come to, by hand, by recorded streams, and when spoilt."""

from __future__ import annotations

import csv
import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assembler.codec import plain
from assembler.engine.values import same
from definitions.providers import Response
from tests.definitions.providers.support import (
    broken_off,
    chunks_in,
    cuts,
    emitted,
    named,
    read,
    sound,
    spoilt,
    spoilt_stream,
    texts,
    told,
)

Chunk = dict[str, Any]
FOLDER = "openai-responses"


def event(type_: str, /, **fields: Any) -> Chunk:
    return {"type": f"response.{type_}", **fields}


def created(id: str = "r1") -> Chunk:
    return event("created", response={"id": id, "model": "toy-1", "output": []})


def ended(status: str = "completed", **response: Any) -> Chunk:
    return event(status, response={"id": "r1", "status": status, "output": [], **response})


def added(at: int | None, type_: str, /, **item: Any) -> Chunk:
    return event("output_item.added", output_index=at, item={"type": type_, **item})


def done(at: int | None, type_: str, /, **item: Any) -> Chunk:
    return event("output_item.done", output_index=at, item={"type": type_, **item})


def delta(subject: str, at: int, piece: str, **fields: Any) -> Chunk:
    return event(f"{subject}.delta", output_index=at, delta=piece, **fields)


def call(at: int, *pieces: str, id: str = "call_1", name: str = "look") -> list[Chunk]:
    item = {"id": f"fc_{at}", "call_id": id, "name": name}
    written = "".join(pieces)
    return [
        added(at, "function_call", **item, arguments="", status="in_progress"),
        *(delta("function_call_arguments", at, piece, item_id=item["id"]) for piece in pieces),
        event(
            "function_call_arguments.done", output_index=at, item_id=item["id"], arguments=written
        ),
        done(at, "function_call", **item, arguments=written, status="completed"),
    ]


def message(at: int, *pieces: str, **item: Any) -> list[Chunk]:
    item = {"id": f"msg_{at}", "role": "assistant", **item}
    part = {"type": "output_text", "text": "".join(pieces), "annotations": []}
    return [
        added(at, "message", **item, content=[]),
        event("content_part.added", output_index=at, content_index=0, part={**part, "text": ""}),
        *(delta("output_text", at, piece, content_index=0) for piece in pieces),
        event("output_text.done", output_index=at, content_index=0, text=part["text"]),
        event("content_part.done", output_index=at, content_index=0, part=part),
        done(at, "message", **item, status="completed", content=[part]),
    ]


def response_to(*chunks: Chunk) -> Response:
    return read("openai_responses", chunks)[1]


USAGE = {
    "input_tokens": 9,
    "input_tokens_details": {"cached_tokens": 4},
    "output_tokens": 30,
    "output_tokens_details": {"reasoning_tokens": 6},
}
CITED = {"type": "url_citation", "url": "https://example.com"}
SEARCH = {"id": "ws_1", "action": {"type": "search", "query": "rain"}, "status": "completed"}
MCP = {
    "id": "mcp_1",
    "name": "ask",
    "server_label": "wiki",
    "arguments": '{"q":1}',
    "output": "yes",
    "error": None,
    "status": "completed",
}
ALL_KINDS: list[Chunk] = [
    created(),
    event("in_progress", response={"id": "r1"}),
    added(0, "reasoning", id="rs_0", summary=[], encrypted_content="b2xk"),
    delta("reasoning_summary_text", 0, "Where? ", summary_index=0),
    delta("reasoning_summary_text", 0, "There.", summary_index=0),
    event("reasoning_summary_text.done", output_index=0, summary_index=0, text="Where? There."),
    delta("reasoning_summary_text", 0, "So.", summary_index=1),
    done(
        0,
        "reasoning",
        id="rs_0",
        encrypted_content="c2ln",
        summary=[
            {"type": "summary_text", "text": "Where? There."},
            {"type": "summary_text", "text": "So."},
        ],
    ),
    added(1, "web_search_call", id="ws_1", status="in_progress"),
    event("web_search_call.searching", output_index=1, item_id="ws_1"),
    done(1, "web_search_call", **SEARCH),
    added(2, "mcp_call", **{**MCP, "arguments": "", "output": None, "status": "in_progress"}),
    delta("mcp_call_arguments", 2, '{"q":1}', item_id="mcp_1"),
    event("mcp_call_arguments.done", output_index=2, arguments='{"q":1}'),
    done(2, "mcp_call", **MCP),
    added(3, "custom_tool_call", id="ct_3", call_id="call_c", name="sql", input=""),
    delta("custom_tool_call_input", 3, 'say "'),
    delta("custom_tool_call_input", 3, 'hi"\n'),
    event("custom_tool_call_input.done", output_index=3, input='say "hi"\n'),
    done(3, "custom_tool_call", id="ct_3", call_id="call_c", name="sql", input='say "hi"\n'),
    *message(4, "It ", "rains.")[:-1],
    event("output_text.annotation.added", output_index=4, content_index=0, annotation=CITED),
    done(
        4,
        "message",
        id="msg_4",
        phase="commentary",
        content=[{"type": "output_text", "text": "It rains.", "annotations": [CITED]}],
    ),
    added(5, "compaction", id="cmp_5", encrypted_content="eA=="),
    done(5, "compaction", id="cmp_5", encrypted_content="eQ=="),
    *call(6, '{"path":', '"a"}', name="read"),
    ended(usage=USAGE),
]


def test_every_kind_of_item_once() -> None:
    pieces, response = read("openai_responses", ALL_KINDS)
    assert response.whole
    assert plain(response.content) == [
        {
            "type": "reasoning",
            "text": "Where? There.",
            "signature": "c2ln",
            "raw": {"type": "reasoning", "id": "rs_0"},
        },
        {"type": "reasoning", "text": "So.", "raw": {"type": "reasoning", "id": "rs_0"}},
        {
            "type": "tool-call",
            "call_id": "ws_1",
            "name": "web_search",
            "arguments": '{"type":"search","query":"rain"}',
            "ran_by": "provider",
            "raw": {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        },
        {
            "type": "provider",
            "provider": "openai_responses",
            "call_id": "ws_1",
            "raw": {"type": "web_search_call", **SEARCH},
        },
        {
            "type": "tool-call",
            "call_id": "mcp_1",
            "name": "ask",
            "arguments": '{"q":1}',
            "ran_by": "provider",
            "raw": {
                "type": "mcp_call",
                "id": "mcp_1",
                "server_label": "wiki",
                "error": None,
                "status": "completed",
            },
        },
        {
            "type": "provider",
            "provider": "openai_responses",
            "call_id": "mcp_1",
            "raw": {"type": "mcp_call", **MCP},
        },
        {
            "type": "tool-call",
            "call_id": "call_c",
            "name": "sql",
            "arguments": '{"input":"say \\"hi\\"\\n"}',
            "raw": {"type": "custom_tool_call", "id": "ct_3"},
        },
        {
            "type": "text",
            "text": "It rains.",
            "citations": [CITED],
            "raw": {"type": "message", "id": "msg_4", "phase": "commentary"},
        },
        {
            "type": "provider",
            "provider": "openai_responses",
            "raw": {"type": "compaction", "id": "cmp_5", "encrypted_content": "eQ=="},
        },
        {
            "type": "tool-call",
            "call_id": "call_1",
            "name": "read",
            "arguments": '{"path":"a"}',
            "raw": {"type": "function_call", "id": "fc_6", "status": "completed"},
        },
    ]
    assert [(each.type, each.data["call_id"]) for each in response.ran] == [
        ("tool/call", "ws_1"),
        ("tool/result", "ws_1"),
        ("tool/call", "mcp_1"),
        ("tool/result", "mcp_1"),
    ]
    assert plain(response.ran[3].data["content"]) == [{"type": "text", "text": "yes"}]
    assert [(each.name, each.arguments, each.ran_by) for each in response.calls] == [
        ("web_search", {"type": "search", "query": "rain"}, "provider"),
        ("ask", {"q": 1}, "provider"),
        ("sql", {"input": 'say "hi"\n'}, "host"),
        ("read", {"path": "a"}, "host"),
    ]
    assert (response.stop_reason, response.stop_detail) == ("tool_use", "completed")
    source = {"name": "openai_responses", "message_id": "r1", "model": "toy-1"}
    assert plain(response.source) == source
    assert plain(response.usage) == {
        "input_tokens": 9,
        "output_tokens": 30,
        "cache_read_tokens": 4,
        "reasoning_tokens": 6,
        "raw": USAGE,
    }
    assert texts(pieces, "reasoning") == "Where? There.So."
    assert texts(pieces) == "It rains."
    names = [("ws_1", "web_search"), ("mcp_1", "ask"), ("call_c", "sql"), ("call_1", "read")]
    assert named(pieces) == names
    assert response.incidents == ()


def test_what_is_streamed_shows_while_it_is_written() -> None:
    pieces, _ = read("openai_responses", ALL_KINDS)
    view = emitted(pieces).view()
    keys = ["assistant:1.1", "tool:ws_1", "tool:mcp_1", "tool:call_c", "tool:call_1"]
    assert [node.key for node in view.nodes] == keys
    written = [each for each in pieces if each.data.get("call_id") == "call_c"]
    assert len(written) == 4
    assert "".join(each.data["arguments"] for each in written) == '{"input":"say \\"hi\\"\\n"}'


OUTPUT = [chunk["item"] for chunk in ALL_KINDS if chunk["type"] == "response.output_item.done"]
WHOLE = {"id": "r1", "model": "toy-1", "status": "completed", "output": OUTPUT, "usage": USAGE}


@pytest.mark.parametrize(
    "chunks",
    [
        [event("completed", response=WHOLE)],
        [created(), event("completed", response=WHOLE)],
        [{"object": "response", **WHOLE}],
        [*ALL_KINDS[:-1], event("completed", response=WHOLE)],
        [
            created(),
            *[chunk for chunk in ALL_KINDS if chunk["type"].endswith("item.done")],
            ended(),
        ],
        [chunk for chunk in ALL_KINDS[:-1] if not chunk["type"].endswith("done")]
        + [event("completed", response=WHOLE)],
    ],
    ids=["alone", "begun", "not streamed", "once more", "items alone", "nothing done"],
)
def test_what_is_said_once_is_enough(chunks: list[Chunk]) -> None:
    expected = response_to(*ALL_KINDS)
    response = response_to(*chunks)
    blocks = {json.dumps(plain(block), sort_keys=True) for block in response.content}
    assert blocks == {json.dumps(plain(block), sort_keys=True) for block in expected.content}
    assert len(response.content) == len(expected.content)
    assert [each.to_json() for each in response.calls] == [
        each.to_json() for each in expected.calls
    ]
    assert response.whole
    assert response.incidents == ()
    ran = sorted(f"{each.type} {each.data['call_id']}" for each in response.ran)
    assert ran == ["tool/call mcp_1", "tool/call ws_1", "tool/result mcp_1", "tool/result ws_1"]


def test_a_response_in_the_background_is_not_over() -> None:
    for status in ("queued", "in_progress", None):
        response = response_to({"object": "response", **WHOLE, "status": status})
        assert response.why == "no-terminal"
        assert not any(each.ready for each in response.calls)


def test_an_item_is_known_by_its_place_whatever_its_id() -> None:
    """Every event of a gateway has another item id; two calls are written side by side."""
    first, second = call(0, '{"a":', "1}"), call(1, '{"b":', "2}", id="call_2")
    mixed = [chunk for pair in zip(first, second, strict=True) for chunk in pair]
    for at, chunk in enumerate(mixed):
        chunk["item_id"] = f"x{at}"
        if "item" in chunk:
            chunk["item"] = {**chunk["item"], "id": f"y{at}"}
    output = [{**chunk["item"], "id": f"z{at}"} for at, chunk in enumerate(mixed[-2:])]
    response = response_to(created(), *mixed, *message(2, "Hi"), ended(output=output))
    calls = [(each.call_id, each.arguments, each.ready) for each in response.calls]
    assert calls == [("call_1", {"a": 1}, True), ("call_2", {"b": 2}, True)]


def test_a_message_is_not_taken_twice_when_its_id_and_its_place_change() -> None:
    part = {"type": "output_text", "text": "Hi"}
    output = [{"type": "message", "id": "other", "content": [part]}]
    response = response_to(created(), *message(2, "Hi"), ended(output=output))
    assert [block["text"] for block in response.content] == ["Hi"]


def test_pieces_without_a_place_go_by_the_id() -> None:
    chunks = [*call(0, '{"a":', "1}"), *call(1, '{"b":', "2}", id="call_2")]
    for chunk in chunks:
        item_id = f"fc_{chunk.pop('output_index')}"
        chunk["item_id"] = item_id
    chunks = [chunk for pair in zip(chunks[:5], chunks[5:], strict=True) for chunk in pair]
    response = response_to(created(), *chunks, ended())
    assert [each.arguments for each in response.calls] == [{"a": 1}, {"b": 2}]


@pytest.mark.parametrize("has_item_ids", [True, False])
def test_one_call_id_for_two_calls(has_item_ids: bool) -> None:
    chunks = [*call(0, '{"a":1}'), *call(1, '{"a":2}')]
    for chunk in chunks if not has_item_ids else ():
        chunk.pop("item_id", None)
        chunk.get("item", {}).pop("id", None)
    output = [chunk["item"] for chunk in chunks if chunk["type"].endswith("item.done")]
    output = output[::-1] if has_item_ids else output
    response = response_to(created(), *chunks, ended(output=output))
    assert [each.arguments for each in response.calls] == [{"a": 1}, {"a": 2}]
    assert [each.provider_call_id for each in response.calls] == ["call_1", "call_1"]
    assert len({each.call_id for each in response.calls}) == 2
    assert response.incidents == ()


def test_one_item_id_for_all_is_no_name() -> None:
    first, second = call(0, '{"a":', "1}"), call(1, '{"b":', "2}", id="call_2")
    mixed = [chunk for pair in zip(first, second, strict=True) for chunk in pair]
    for chunk in mixed:
        chunk["item_id"] = "fc"
        if "item" in chunk:
            chunk["item"] = {**chunk["item"], "id": "fc"}
    response = response_to(created(), *mixed, ended())
    assert [each.arguments for each in response.calls] == [{"a": 1}, {"b": 2}]
    assert response.incidents == ()


def test_a_whole_item_in_a_wrong_place_does_not_take_it() -> None:
    begun, *rest = call(0, '{"a":', "1}")
    for chunk in rest:
        chunk.pop("item_id", None)
    other = {"id": "fc_9", "call_id": "call_9", "name": "look", "arguments": '{"b":2}'}
    chunks = [begun, rest[0], done(0, "function_call", **other), *rest[1:]]
    response = response_to(created(), *chunks, ended())
    assert [each.arguments for each in response.calls] == [{"a": 1}, {"b": 2}]
    assert response.incidents == ()


def test_one_call_id_for_two_calls_that_nobody_announced() -> None:
    chunks = [
        done(at, "function_call", call_id="c", name="look", arguments=f'{{"a":{at}}}')
        for at in range(2)
    ]
    response = response_to(created(), *chunks, ended())
    assert [each.arguments for each in response.calls] == [{"a": 0}, {"a": 1}]


def test_every_place_is_the_first() -> None:
    first, second = call(0, '{"a":', "1}"), call(1, '{"b":', "2}", id="call_2")
    mixed = [chunk for pair in zip(first, second, strict=True) for chunk in pair]
    response = response_to(created(), *({**chunk, "output_index": 0} for chunk in mixed), ended())
    assert [each.arguments for each in response.calls] == [{"a": 1}, {"b": 2}]


def test_a_response_behind_another_begins_anew() -> None:
    chunks = [
        created(),
        *call(0, '{"a":1}'),
        ended(usage=USAGE),
        created("r2"),
        *message(0, "Hi"),
        event("completed", response={"id": "r2", "usage": USAGE}),
    ]
    response = response_to(*chunks)
    assert [block["type"] for block in response.content] == ["tool-call", "text"]
    assert response.whole
    assert response.source["message_id"] == "r2"
    assert response.usage["input_tokens"] == 18
    for count in range(4 + len(call(0, "")), len(chunks)):
        assert response_to(*chunks[:count]).why == "no-terminal"


def test_messages_of_two_responses_are_two() -> None:
    chunks = [created(), *message(0, "One."), ended(), created("r2"), *message(0, "Two."), ended()]
    assert [block["text"] for block in response_to(*chunks).content] == ["One.", "Two."]


def test_reasoning_that_nobody_can_read_is_kept_for_the_way_back() -> None:
    item = {"id": "rs_1", "summary": [], "encrypted_content": "c2ln"}
    response = response_to(created(), done(0, "reasoning", **item), ended())
    raw = {"type": "reasoning", "id": "rs_1"}
    expected = {"type": "reasoning", "text": "", "signature": "c2ln", "raw": raw}
    assert plain(response.content) == [expected]
    assert response.said == ()


def test_what_an_item_encrypted_at_its_own_end_stays() -> None:
    item = {"id": "rs_1", "summary": [], "encrypted_content": "c2ln"}
    again = {**item, "type": "reasoning", "encrypted_content": "b3RoZXI="}
    response = response_to(created(), done(0, "reasoning", **item), ended(output=[again]))
    assert [block["signature"] for block in plain(response.content)] == ["c2ln"]


def test_reasoning_itself_is_told_from_its_summary() -> None:
    item = {
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "In short."}],
        "content": [{"type": "reasoning_text", "text": "At length."}],
    }
    response = response_to(created(), done(0, "reasoning", **item), ended())
    raw = {"type": "reasoning", "id": "rs_1"}
    assert [(block["text"], block["raw"]) for block in plain(response.content)] == [
        ("In short.", raw),
        ("At length.", {**raw, "part": "reasoning_text"}),
    ]


def test_a_call_that_nobody_completed() -> None:
    begun = added(0, "function_call", call_id="call_1", name="look", arguments="")
    piece = delta("function_call_arguments", 0, '{"a":1}')
    whole = {"call_id": "call_1", "name": "look", "arguments": "{}"}
    cases: list[tuple[list[Chunk], Any]] = [
        ([begun, piece, ended()], None),
        ([begun, ended()], "incomplete"),
        ([begun, ended(output=[{"type": "function_call", **whole}])], None),
        ([{**begun, "item": {**begun["item"], "arguments": "{}"}}, ended()], None),
        (
            [begun, piece, done(0, "function_call", **whole, status="incomplete"), ended()],
            "incomplete",
        ),
    ]
    for chunks, why in cases:
        (only,) = response_to(created(), *chunks).calls
        assert (only.call_id, only.name, only.why) == ("call_1", "look", why)


def test_a_call_whose_beginning_was_lost() -> None:
    _, *rest = call(0, '{"a":', "1}")
    (only,) = response_to(created(), *rest, ended()).calls
    assert (only.call_id, only.name, only.arguments) == ("call_1", "look", {"a": 1})
    (only,) = response_to(created(), *rest[:-1], ended()).calls
    assert only.why == "no-name"


def test_a_call_that_has_only_the_id_of_its_item() -> None:
    item = {"id": "fc_1", "name": "look"}
    chunks = [added(0, "function_call", **item), done(0, "function_call", **item, arguments="{}")]
    (only,) = response_to(created(), *chunks, ended()).calls
    assert (only.call_id, only.ready) == ("fc_1", True)


@pytest.mark.parametrize(
    ("item", "name", "arguments", "ran_by"),
    [
        (
            {"type": "apply_patch_call", "call_id": "c", "operation": {"type": "delete_file"}},
            "apply_patch",
            {"type": "delete_file"},
            "host",
        ),
        (
            {"type": "local_shell_call", "call_id": "c", "action": {"command": ["ls"]}},
            "local_shell",
            {"command": ["ls"]},
            "host",
        ),
        (
            {"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}},
            "shell",
            {"commands": ["ls"]},
            "host",
        ),
        (
            {
                "type": "shell_call",
                "call_id": "c",
                "action": {"commands": ["ls"]},
                "environment": {"type": "container_reference"},
            },
            "shell",
            {"commands": ["ls"]},
            "provider",
        ),
        (
            {"type": "computer_call", "call_id": "c", "action": {"type": "wait"}},
            "computer",
            {"action": {"type": "wait"}},
            "host",
        ),
        (
            {"type": "tool_search_call", "call_id": "c", "arguments": {"goal": "x"}},
            "tool_search",
            {"goal": "x"},
            "host",
        ),
        (
            {"type": "tool_search_call", "id": "c", "arguments": {}, "execution": "server"},
            "tool_search",
            {},
            "provider",
        ),
        ({"type": "program", "call_id": "c", "code": "1"}, "program", {"code": "1"}, "provider"),
        (
            {"type": "file_search_call", "id": "c", "queries": ["x"], "results": None},
            "file_search",
            {"queries": ["x"]},
            "provider",
        ),
        ({"type": "image_generation_call", "id": "c"}, "image_generation", {}, "provider"),
    ],
)
def test_items_that_are_calls(item: Chunk, name: str, arguments: Chunk, ran_by: str) -> None:
    response = response_to(created(), event("output_item.done", output_index=0, item=item), ended())
    (only,) = response.calls
    expected = ("c", name, arguments, ran_by)
    assert (only.call_id, only.name, only.arguments, only.ran_by) == expected


def test_the_id_of_a_tool_search_is_the_last_one() -> None:
    search = {"id": "tsc_1", "execution": "client"}
    chunks = [
        added(0, "tool_search_call", **search, call_id="call_old", arguments={}),
        done(0, "tool_search_call", **search, call_id="call_new", arguments={"goal": "x"}),
    ]
    pieces, response = read("openai_responses", [created(), *chunks, ended()])
    assert named(pieces) == [("call_new", "tool_search")]
    assert [each.arguments for each in response.calls] == [{"goal": "x"}]


def test_a_program_calls() -> None:
    caller = {"type": "program", "caller_id": "call_p"}
    item = {"call_id": "call_1", "name": "look", "caller": caller, "arguments": "{}"}
    output = {"id": "po", "call_id": "call_p", "result": "3", "status": "completed"}
    chunks = [
        done(0, "program", id="cm", call_id="call_p", code="look()", fingerprint="x"),
        done(1, "function_call", **item, status="in_progress"),
        done(2, "program_output", **output),
    ]
    whole = [chunk["item"] for chunk in chunks]
    pieces, response = read("openai_responses", [created(), *chunks, ended(output=whole)])
    assert [each.type for each in response.ran] == ["tool/call", "tool/result"]
    assert [(each.name, each.parent_call_id) for each in response.calls] == [
        ("program", None),
        ("look", "call_p"),
    ]
    assert plain(response.ran[-1].data) == {
        "call_id": "call_p",
        "content": [{"type": "text", "text": "3"}],
    }
    assert emitted(pieces).view()["tool:call_1"].to_json()["data"]["parent"] == "call_p"


def test_tools_that_the_provider_searched() -> None:
    search = {"id": "tsc_1", "call_id": None, "execution": "server", "arguments": {"paths": ["a"]}}
    output = {"id": "tso_1", "call_id": None, "execution": "server", "tools": [{"name": "a"}]}
    chunks = [done(0, "tool_search_call", **search), done(1, "tool_search_output", **output)]
    _, result = response_to(created(), *chunks, ended()).ran
    assert plain(result.data) == {
        "call_id": "tsc_1",
        "content": [{"type": "json", "value": {"name": "a"}}],
    }


@pytest.mark.parametrize(
    ("item", "content", "is_error"),
    [
        ({**MCP, "type": "mcp_call", "output": None, "error": "no"}, "no", True),
        ({**MCP, "type": "mcp_call", "status": "failed", "output": None}, None, True),
        (
            {
                "type": "code_interpreter_call",
                "id": "ci",
                "code": "1",
                "outputs": [{"type": "logs", "logs": "1"}],
                "status": "completed",
            },
            "1",
            False,
        ),
        (
            {
                "type": "image_generation_call",
                "id": "ig",
                "result": "aWk=",
                "output_format": "webp",
            },
            {"type": "file", "media_type": "image/webp", "data": "aWk="},
            False,
        ),
    ],
)
def test_results_that_stand_in_their_calls(item: Chunk, content: Any, is_error: bool) -> None:
    chunk = event("output_item.done", output_index=0, item=item)
    result = plain(response_to(created(), chunk, ended()).ran[1].data)
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else [content]
    assert result["content"] == (blocks if content else [])
    assert result.get("is_error", False) is is_error


def test_a_call_that_the_provider_did_not_finish_has_no_result() -> None:
    chunk = done(0, "mcp_call", **{**MCP, "status": "incomplete", "output": None})
    response = response_to(created(), chunk, ended("incomplete"))
    assert response.ran == ()
    chunk = done(0, "mcp_call", **{**MCP, "status": "calling", "output": None})
    response = response_to(created(), chunk, ended())
    assert [each.type for each in response.ran] == ["tool/call"]


@pytest.mark.parametrize("is_streamed", [True, False])
def test_a_refusal_is_text_that_ends_the_answer(is_streamed: bool) -> None:
    part = {"type": "refusal", "refusal": "I cannot."}
    chunks = [done(0, "message", id="m", content=[part])]
    if is_streamed:
        written = delta("refusal", 0, "I cannot.", content_index=0)
        chunks = [added(0, "message", id="m", content=[]), written, *chunks]
    response = response_to(created(), *chunks, *call(1, "{}"), ended())
    (text, _) = response.content
    expected = {"type": "message", "id": "m", "part": "refusal"}
    assert (text["text"], plain(text["raw"])) == ("I cannot.", expected)
    assert (response.stop_reason, response.why) == ("refusal", "content-filter")
    assert not response.calls[0].ready


@pytest.mark.parametrize(
    ("reason", "ours", "why"),
    [
        ("max_output_tokens", "length", "length"),
        ("max_messages", "length", "length"),
        (None, "length", "length"),
        ("content_filter", "content_filter", "content-filter"),
    ],
)
def test_an_incomplete_response_is_cut(reason: str | None, ours: str, why: str) -> None:
    details = {"reason": reason} if reason else None
    response = response_to(
        created(), *call(0, "{}"), ended("incomplete", incomplete_details=details)
    )
    assert (response.stop_reason, response.why) == (ours, why)
    assert response.stop_detail == (reason or "incomplete")
    assert not response.calls[0].ready


@pytest.mark.parametrize(
    "error",
    [
        event("failed", response={"status": "failed", "error": {"code": "busy"}}),
        event("failed", response={"status": "completed"}),
        event("failed"),
        {"object": "response", "status": "cancelled", "id": "r1"},
        {"type": "error", "code": "busy", "message": "Busy."},
        {"type": "error", "error": {"code": "busy"}},
        {"error": {"code": "busy"}},
    ],
)
@pytest.mark.parametrize("is_last", [True, False])
def test_an_error_anywhere_is_an_error_of_all(error: Chunk, is_last: bool) -> None:
    chunks = [created(), *call(0, "{}"), error]
    response = response_to(*chunks, *([] if is_last else [ended()]))
    assert response.why == "stream-error"
    assert response.error is not None
    assert not response.calls[0].ready


def test_text_that_no_delta_said_is_still_said() -> None:
    part = {"type": "output_text", "text": "Hello 😀!"}
    whole = done(0, "message", id="m", content=[part])
    for pieces in ([], ["Hello"], ["Hello ", "\ud83d"], ["Hello ", "\ud83d", "\ude00!"], ["Else"]):
        chunks = [delta("output_text", 0, piece, content_index=0) for piece in pieces]
        told_pieces, response = read("openai_responses", [created(), *chunks, whole, ended()])
        expected = "Else" if pieces == ["Else"] else "Hello 😀!"
        assert response.content[0]["text"] == texts(told_pieces) == expected


def test_the_name_of_the_event_counts_when_the_chunk_has_no_type() -> None:
    rows = [(chunk["type"], {k: chunk[k] for k in chunk if k != "type"}) for chunk in ALL_KINDS]
    stream = "".join(f"event: {name}\ndata: {json.dumps(chunk)}\n\n" for name, chunk in rows)
    assert same(
        [*read("openai_responses", [stream])[1].content], [*response_to(*ALL_KINDS).content]
    )


class Event:
    """As the SDK gives its events."""

    def __init__(self, chunk: Chunk) -> None:
        self.chunk = chunk

    def model_dump(self, **how: Any) -> Chunk:
        return self.chunk


def test_objects_bytes_and_decoded_chunks_say_the_same() -> None:
    stream = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in ALL_KINDS)
    expected = told(*read("openai_responses", ALL_KINDS))
    for parts in (
        [stream.encode()],
        [Event(each) for each in ALL_KINDS],
        ["".join(json.dumps(each) + "\n" for each in ALL_KINDS)],
        *cuts(stream.encode(), 97),
    ):
        assert told(*read("openai_responses", parts)) == expected


def test_broken_off_anywhere_no_call_is_ready() -> None:
    broken_off("openai_responses", ALL_KINDS)


# Recorded streams

UNFINISHED = {
    "parallel-tool-call-wrapper.1": "no-terminal",  # its last line is no JSON
    "openai-error.1": "stream-error",
}
RAN_BY_PROVIDER = {"program", "mcp_call", "web_search_call", "file_search_call"} | {
    "code_interpreter_call",
    "image_generation_call",
}


def naive(chunks: list[Chunk]) -> list[tuple[str, str, Any]]:
    """The calls of a stream, read as simply as can be: id, name, arguments."""
    calls = []
    for item in (each["item"] for each in chunks if each["type"] == "response.output_item.done"):
        kind = item["type"]
        arguments = item.get("arguments", item.get("action", item.get("operation")))
        if isinstance(arguments, str):
            arguments = json.loads(arguments)
        for field in ("input", "code", "queries"):
            if field in item:
                arguments = {field: item[field]}
        if kind == "program" or kind.endswith("_call"):
            name = item.get("name") or kind.removesuffix("_call")
            calls.append((item.get("call_id") or item["id"], name, arguments))
    return calls


def written(chunks: list[Chunk], *kinds: str) -> str:
    """The text of the complete items: of one recording not all the deltas were kept."""
    items = [each["item"] for each in chunks if each["type"] == "response.output_item.done"]
    parts = [part for item in items for part in item.get("summary", ()) or ()]
    parts += [part for item in items for part in item.get("content", ()) or ()]
    return "".join(part["text"] for part in parts if part["type"] in kinds)


def spent(chunks: list[Chunk]) -> Counter[str]:
    total: Counter[str] = Counter()
    for chunk in chunks:
        usage = chunk["type"] == "response.completed" and chunk["response"].get("usage")
        for name in ("input_tokens", "output_tokens") if usage else ():
            total[name] += usage[name]
    return total


def recorded(shared: Path) -> list[Path]:
    return sorted((shared / "streams" / FOLDER).iterdir())


def exchanged(shared: Path) -> list[tuple[Path, Chunk, Chunk]]:
    """Each recorded response of a tool loop, and the row behind it."""
    rows = []
    for path in sorted((shared / "streams" / "exchange").iterdir()):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        pairs = [*pairwise(lines), (lines[-1], {})] if lines else []
        rows += [
            (path, row, after)
            for row, after in pairs
            if (row["format"] or "").startswith("openai-responses")
        ]
    return rows


def check(name: str, data: bytes) -> Response:
    """Compare what the adapter reads with a naive reading."""
    chunks = chunks_in(data)
    pieces, response = read("openai_responses", [data])
    is_whole = response.whole
    expected = naive(chunks)
    assert [(each.call_id, each.name) for each in response.calls] == [
        (call_id, tool) for call_id, tool, _ in expected
    ], name
    ready = [each.arguments for each in response.calls] if is_whole else []
    assert same(ready, [arguments for *_, arguments in expected] if is_whole else []), name
    assert [each for each, _ in named(pieces)] == [each for each, *_ in expected], name
    assert texts(pieces) == written(chunks, "output_text"), name
    thought = written(chunks, "summary_text", "reasoning_text")
    assert texts(pieces, "reasoning") == thought, name
    for type_ in ("text", "reasoning"):
        blocks = [block for block in response.content if block["type"] == type_]
        assert "".join(block["text"] for block in blocks) == texts(pieces, type_), name
    if is_whole:
        assert {each: response.usage[each] for each in spent(chunks)} == spent(chunks), name
    assert response.incidents == (), name
    emitted(pieces)
    return response


def test_recorded_streams_have_what_they_have(shared: Path) -> None:
    with (shared / "streams" / "MANIFEST.tsv").open() as file:
        rows = {row["file"]: row for row in csv.DictReader(file, delimiter="\t")}
    for path in recorded(shared):
        response = check(path.name, path.read_bytes())
        why = next((why for name, why in UNFINISHED.items() if name in path.name), None)
        assert response.why == why, path.name
        row = rows[path.name]
        listed = [
            (call_id, tool.removesuffix("_call"))
            for call_id, _, tool in (
                each.partition("=") for each in row["call id=name (first 6)"].split("; ") if each
            )
            # it asks whether a call may run: nothing that runs, and a block of its own
            if not call_id.startswith(("+", "mcpr_"))
        ]
        known = [(each.call_id, each.name) for each in response.calls[:6]]
        # of several responses in one file the manifest lists the calls of the first
        assert known[:1] == listed if "encrypted-content" in path.name else known == listed
        ran_by_provider = {each.name for each in response.calls if each.ran_by == "provider"}
        items = {
            chunk["item"].get("name") or chunk["item"]["type"].removesuffix("_call")
            for chunk in chunks_in(path.read_bytes())
            if chunk.get("item", {}).get("type") in RAN_BY_PROVIDER
        }
        assert ran_by_provider == items, path.name
        finish = None if why else row["finish"]
        assert response.stop_detail == finish, path.name


def test_recorded_responses_of_tool_loops_have_what_they_have(shared: Path) -> None:
    count = 0
    for path, row, _ in exchanged(shared):
        if row["format"] == "openai-responses":
            assert check(path.name, row["response"].encode()).whole, path.name
        else:
            whole = json.loads(row["response"])
            items = [
                {"type": "response.output_item.done", "item": each} for each in whole["output"]
            ]
            _, response = read("openai_responses", [whole])
            calls = [(each.call_id, each.name, each.arguments) for each in response.calls]
            assert response.whole, path.name
            assert same(calls, naive(items)), path.name
        count += 1
    assert count > 60


def test_what_clients_sent_back_is_what_was_read(shared: Path) -> None:
    compared = 0
    for path, row, after in exchanged(shared):
        request = after.get("request")
        history = request.get("input") if isinstance(request, dict) else None
        sent = {
            each["call_id"]: each["arguments"]
            for each in (history if isinstance(history, list) else ())
            if each.get("type") == "function_call"
        }
        body = row["response"] if row["framing"] == "sse" else json.loads(row["response"])
        for each in read("openai_responses", [body])[1].calls:
            if each.call_id in sent:
                compared += 1
                assert same(each.arguments, json.loads(sent[each.call_id])), path.name
    assert compared > 10


def test_recorded_streams_say_the_same_for_every_cut(shared: Path) -> None:
    for path in recorded(shared):
        data = path.read_bytes() + b"\n"  # some recordings lack their last line's end
        if len(data) > 40_000:
            continue
        expected = told(*read("openai_responses", [data]))
        if "parallel" not in path.name:  # two of its lines are no JSON
            assert told(*read("openai_responses", chunks_in(data))) == expected, path.name
        for parts in cuts(data, max(1, len(data) // 3)):
            assert told(*read("openai_responses", parts)) == expected, path.name


@pytest.mark.deep
def test_recorded_streams_say_the_same_for_really_every_cut(shared: Path) -> None:
    for path in recorded(shared):
        data = path.read_bytes()
        expected = told(*read("openai_responses", [data]))
        for parts in cuts(data, 1 if len(data) < 2_900 else max(1, len(data) // 12)):
            assert told(*read("openai_responses", parts)) == expected, path.name


def test_recorded_streams_broken_off(shared: Path) -> None:
    for path in recorded(shared):
        chunks = chunks_in(path.read_bytes())
        ends = [at + 1 for at, chunk in enumerate(chunks) if chunk["type"] == "response.completed"]
        if len(chunks) < 40 and "openai-error" not in path.name:
            broken_off("openai_responses", chunks, ends)
            for at in range(len(chunks)):
                _, response = read("openai_responses", [*chunks[:at], {"type": "error"}])
                assert response.why == "stream-error"


# Spoilt chunks


@given(spoilt_stream(ALL_KINDS))
@settings(max_examples=60)
def test_no_field_however_odd_raises_or_breaks_the_output(chunks: list[Any]) -> None:
    sound("openai_responses", chunks)


@given(st.integers(1, len(ALL_KINDS) - 7), st.data())
@settings(max_examples=60)
def test_one_odd_chunk_does_not_cost_the_call_behind_it(at: int, data: st.DataObject) -> None:
    odd = data.draw(spoilt(ALL_KINDS[at]).filter(lambda each: "error" not in str(each)))
    chunks = [*ALL_KINDS[:at], *([odd] if isinstance(odd, dict) else []), *ALL_KINDS[at + 1 :]]
    _, response = read("openai_responses", chunks)
    assert response.calls[-1].to_json()["arguments"] == {"path": "a"}


@given(st.lists(st.sampled_from([0, 1, 2]), max_size=12), st.data())
@settings(max_examples=60)
def test_no_fragment_crosses_into_another_call(order: list[int], data: st.DataObject) -> None:
    """Three calls written side by side in any order; each has the arguments it was given."""
    left = [
        call(at, '{"n":', f'"{at}', f'{at}"', "}", id=f"call_{at}", name=f"tool_{at}")
        for at in range(3)
    ]
    chunks = [left[at].pop(0) for at in order if left[at]]
    chunks += [chunk for rest in data.draw(st.permutations(left)) for chunk in rest]
    response = response_to(created(), *chunks, ended())
    calls = sorted((each.call_id, each.name, each.arguments) for each in response.calls)
    assert calls == [(f"call_{at}", f"tool_{at}", {"n": f"{at}{at}"}) for at in range(3)]


@given(st.permutations([0, 1, 2] * 5), st.integers(0, 14), st.data())
@settings(max_examples=80)
def test_one_odd_chunk_costs_no_sibling(order: list[int], odd_at: int, data: st.DataObject) -> None:
    """Calls side by side, and one chunk with another place, or spoilt in any way."""
    left = [
        call(at, f'{{"n":"{at}', f'{at}"}}', id=f"call_{at}", name=f"tool_{at}") for at in range(3)
    ]
    chunks = [left[at].pop(0) for at in order]
    sound = chunks[odd_at]
    moved = st.sampled_from([0, 1, 2, 7, None]).map(lambda place: {**sound, "output_index": place})
    odd = data.draw(moved | spoilt(sound).filter(lambda each: "error" not in str(each)))
    chunks[odd_at : odd_at + 1] = [odd] if isinstance(odd, dict) else []
    response = response_to(created(), *chunks, ended())
    ready = {each.call_id: each.arguments for each in response.calls if each.ready}
    siblings = {f"call_{at}": {"n": f"{at}{at}"} for at in {0, 1, 2} - {order[odd_at]}}
    assert {call_id: ready.get(call_id) for call_id in siblings} == siblings


@pytest.mark.deep
@given(st.permutations(ALL_KINDS).flatmap(spoilt_stream))
@settings(max_examples=50)
def test_no_order_of_spoilt_chunks_raises(chunks: list[Any]) -> None:
    pieces, response = read("openai_responses", chunks)
    emitted(pieces)
    told(pieces, response)
