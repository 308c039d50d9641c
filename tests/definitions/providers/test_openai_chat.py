"""OpenAI Chat Completions: chunks by hand, oddities of servers, recorded streams, spoilt chunks."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assembler.codec import plain
from assembler.engine.values import same
from definitions.providers import Call, Response, adapter
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
CHAT = "openai_chat"


def delta(finish: str | None = None, /, **fields: Any) -> Chunk:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def entry(arguments: Any = None, /, **fields: Any) -> Chunk:
    """An entry of `tool_calls`; `name` and arguments go into its function."""
    names = {"name": fields.pop("name")} if "name" in fields else {}
    return {**fields, "function": {**names, "arguments": arguments}}


def calls(*entries: Chunk, finish: str | None = None) -> Chunk:
    return delta(finish, tool_calls=list(entries))


def end(finish: str = "tool_calls") -> Chunk:
    return delta(finish)


def response_to(*chunks: Any) -> Response:
    return read(CHAT, chunks)[1]


def brief(response: Response) -> list[tuple[str | None, str | None, Any]]:
    return [(each.provider_call_id, each.name, each.arguments) for each in response.calls]


def stream(*chunks: Any) -> str:
    return "".join(f"data: {json.dumps(each)}\n\n" for each in chunks)


DONE = "data: [DONE]\n\n"
USAGE = {
    "prompt_tokens": 9,
    "completion_tokens": 5,
    "prompt_tokens_details": {"cached_tokens": 4},
    "completion_tokens_details": {"reasoning_tokens": 3},
}
ALL_KINDS: list[Chunk] = [
    {"id": "r1", "model": "toy-1", **delta(role="assistant", content="", refusal=None)},
    delta(reasoning="Where? ", reasoning_details=[{"type": "reasoning.text", "text": "Where? "}]),
    delta(reasoning="There.", reasoning_details=[{"type": "reasoning.text", "text": "There."}]),
    delta(reasoning_details=[{"type": "reasoning.text", "text": None, "signature": "c2ln"}]),
    delta(reasoning_details=[{"type": "reasoning.encrypted", "data": "eA==", "id": "k1"}]),
    delta(content="It "),
    delta(content="rains.", annotations=[{"type": "url_citation", "url": "u"}]),
    calls({"index": 0, "id": "k1", "type": "function", **entry("", name="read")}),
    calls(entry('{"path":', index=0)),
    calls(entry('"a"}', index=0), entry('{"n":', index=1, id="k2", name="look")),
    calls(entry("1}", index=1, extra_content={"google": {"thought_signature": "s"}})),
    end(),
    {"choices": [], "usage": USAGE},
]


def test_every_kind_of_chunk_once() -> None:
    pieces, response = read(CHAT, ALL_KINDS)
    assert response.whole
    assert plain(response.content) == [
        {"type": "reasoning", "text": "Where? There."},
        {
            "type": "text",
            "text": "It rains.",
            "citations": [{"type": "url_citation", "url": "u"}],
        },
        {"type": "tool-call", "call_id": "k1", "name": "read", "arguments": '{"path":"a"}'},
        {
            "type": "tool-call",
            "call_id": "k2",
            "name": "look",
            "arguments": '{"n":1}',
            "raw": {"extra_content": {"google": {"thought_signature": "s"}}},
        },
    ]
    assert (response.stop_reason, response.stop_detail) == ("tool_use", "tool_calls")
    assert plain(response.source) == {
        "name": CHAT,
        "message_id": "r1",
        "model": "toy-1",
        "reasoning_field": "reasoning",
        "reasoning_details": [
            {"type": "reasoning.text", "text": "Where? There.", "signature": "c2ln"},
            {"type": "reasoning.encrypted", "data": "eA==", "id": "k1"},
        ],
    }
    assert plain(response.usage) == {
        "input_tokens": 9,
        "output_tokens": 5,
        "cache_read_tokens": 4,
        "reasoning_tokens": 3,
        "raw": USAGE,
    }
    assert brief(response) == [("k1", "read", {"path": "a"}), ("k2", "look", {"n": 1})]
    assert named(pieces) == [("k1", "read"), ("k2", "look")]
    assert texts(pieces, "reasoning") == "Where? There."
    assert texts(pieces) == "It rains."


def test_what_is_streamed_shows_while_it_is_written() -> None:
    pieces, _ = read(CHAT, ALL_KINDS)
    view = emitted(pieces).view()
    assert [node.key for node in view.nodes] == ["assistant:1.1", "tool:k1", "tool:k2"]


def test_calls_are_complete_at_the_end_and_not_before() -> None:
    reads = adapter(CHAT)
    for chunk in ALL_KINDS:
        reads.feed(chunk)
    assert reads.hints() == []
    reads.finish()
    assert [(hint.call_id, hint.arguments) for hint in reads.hints()] == [
        ("k1", {"path": "a"}),
        ("k2", {"n": 1}),
    ]


@pytest.mark.parametrize("last", [end("length"), end("content_filter"), {"error": "busy"}, {}])
def test_a_call_that_will_not_run_is_never_complete(last: Chunk) -> None:
    reads = adapter(CHAT)
    reads.feed([calls(entry("{}", index=0, id="k1", name="rm")), last])
    reads.finish()
    assert reads.hints() == []


# Which entry belongs to which call


A, B = {"p": "a"}, {"p": "b"}
TWO = [("k1", "read", A), ("k2", "read", B)]

ROUTES: dict[str, tuple[list[Chunk], list[tuple[str | None, str | None, Any]]]] = {
    "the first index is not 0": (
        [calls(entry('{"p":', index=7, id="k1", name="read")), calls(entry('"a"}', index=7))],
        TWO[:1],
    ),
    "one index, calls side by side, told apart by their ids": (
        [
            calls(entry('{"p":', index=0, id="k1", name="read")),
            calls(entry('{"p":', index=0, id="k2", name="read")),
            calls(entry('"a"}', index=0, id="k1")),
            calls(entry('"b"}', index=0, id="k2")),
        ],
        TWO,
    ),
    "one index, both calls in one list": (
        [
            calls(
                entry('{"p":"a"}', index=0, id="k1", name="read"),
                entry('{"p":"b"}', index=0, id="k2", name="read"),
            )
        ],
        TWO,
    ),
    "no index, a call a chunk": (
        [
            calls(entry('{"p":"a"}', id="k1", name="read")),
            calls(entry('{"p":', id="k2", name="read")),
            calls(entry('"b"}')),
        ],
        TWO,
    ),
    "no index, ids come back in another place": (
        [
            calls(entry('{"p":', id="k1", name="read"), entry('{"p":', id="k2", name="read")),
            calls(entry('"b"}', id="k2")),
            calls(entry('"a"}', id="k1")),
        ],
        TWO,
    ),
    "the index comes once only": (
        [
            calls(entry('{"p":', index=3, id="k1", name="read")),
            calls(entry('"a"}')),
            calls(entry('{"p":', index=4, id="k2", name="read")),
            calls(entry('"b"}', index=None)),
        ],
        TWO,
    ),
    "the index is a text": (
        [
            calls(entry('{"p":', index="x", id="k1", name="read")),
            calls(entry('{"p":"b"}', index="y", id="k2", name="read")),
            calls(entry('"a"}', index="x")),
        ],
        TWO,
    ),
    "one id for two calls with an index of their own": (
        [
            calls(entry('{"p":', index=0, id="k1", name="read")),
            calls(entry('{"p":', index=1, id="k1", name="read")),
            calls(entry('"a"}', index=0), entry('"b"}', index=1)),
        ],
        [("k1", "read", A), ("k1", "read", B)],
    ),
    "one id for two calls of one list": (
        [
            calls(
                entry('{"p":"a"}', id="k1", name="read"),
                entry('{"p":"b"}', id="k1", name="read"),
            )
        ],
        [("k1", "read", A), ("k1", "read", B)],
    ),
    "one call said twice": (
        [
            calls(entry('{"p":"a"}', index=0, id="k1", name="read")),
            calls(entry('{"p": "a"}', index=1, id="k1", name="read")),
        ],
        TWO[:1],
    ),
    "the id comes last": (
        [
            calls(entry('{"p":', index=0, name="read")),
            calls(entry('"a"}', index=0)),
            calls(entry("", index=0, id="k1", name="read")),
        ],
        TWO[:1],
    ),
    "no ids, one index, other tools": (
        [
            calls(entry('{"p":"a"}', index=0, name="read")),
            calls(entry("", index=0, name="stat")),
            calls(entry('{"p":"b"}', index=0)),
        ],
        [(None, "read", A), (None, "stat", B)],
    ),
    "no ids, no index, one tool called twice": (
        [calls(entry(A, name="read")), calls(entry(B, name="read"))],
        [(None, "read", A), (None, "read", B)],
    ),
    "no ids, one index, one tool called twice in one list": (
        [calls(entry(A, index=0, name="read"), entry(B, index=0, name="read"))],
        [(None, "read", A), (None, "read", B)],
    ),
    "no ids, one call said twice": (
        [calls(entry('{"p":"a"}', name="read")), calls(entry('{"p":"a"}', name="read"))],
        [(None, "read", A)],
    ),
    "an id, then a call without one": (
        [
            calls(entry('{"p":"a"}', index=0, id="k1", name="read")),
            calls(entry('{"p":"b"}', index=0, id="", name="stat")),
        ],
        [("k1", "read", A), (None, "stat", B)],
    ),
    "the name behind the arguments": (
        [
            calls(entry('{"p":', index=0, id="k1", name="")),
            calls(entry('"a"}', index=0)),
            calls(entry(None, index=0, name="read")),
        ],
        TWO[:1],
    ),
    "no name in between": (
        [
            calls(entry('{"p":', index=0, id="k1", name="read")),
            calls(entry('"a"}', index=0, id="", type=None, name=None)),
        ],
        TWO[:1],
    ),
    "JSON in a text": (
        [calls(entry(json.dumps('{"p":"a"}'), index=0, id="k1", name="read"))],
        TWO[:1],
    ),
    "entries that are none": (
        [{"choices": [{"delta": {"tool_calls": [None, 7, entry(A, id="k1", name="read"), {}]}}]}],
        TWO[:1],
    ),
    "the format before": (
        [
            delta(function_call={"name": "read", "arguments": ""}),
            delta(function_call={"arguments": '{"p":'}),
            delta(function_call={"arguments": '"a"}'}),
        ],
        [(None, "read", A)],
    ),
    "a custom tool that takes JSON": (
        [calls({"index": 0, "id": "k1", "type": "custom", "custom": {"name": "read", "input": A}})],
        TWO[:1],
    ),
}


@pytest.mark.parametrize("name", ROUTES)
def test_fragments_find_their_call(name: str) -> None:
    chunks, expected = ROUTES[name]
    pieces, response = read(CHAT, [*chunks, end()])
    assert brief(response) == expected
    assert all(each.ready for each in response.calls)
    assert len({each.call_id for each in response.calls}) == len(expected)
    assert response.incidents == ()
    emitted(pieces)


def test_complete_arguments_that_differ_under_one_index_are_a_conflict() -> None:
    for call_id in ("k1", None):
        chunks = [calls(entry(given, index=0, id=call_id, name="read")) for given in (A, B)]
        (only,) = response_to(*chunks, end()).calls
        assert (only.ready, only.why) == (False, "arguments-conflict")


def test_text_of_a_custom_tool_is_no_json_and_is_kept() -> None:
    made = {"index": 0, "id": "k1", "type": "custom", "custom": {"name": "sql", "input": "SELECT"}}
    response = response_to(calls(made), end())
    (only,) = response.calls
    assert (only.why, only.arguments_text) == ("invalid-json", "SELECT")
    assert plain(response.content[0]["raw"]) == {"type": "custom"}


# How it ends


LOOK = calls(entry("{}", index=0, id="k1", name="look"))


@pytest.mark.parametrize(
    ("label", "ours", "why"),
    [
        ("stop", "tool_use", None),
        ("tool_calls", "tool_use", None),
        ("function_call", "tool_use", None),
        ("STOP", "tool_use", None),
        ("something_new", "tool_use", None),
        ("length", "length", "length"),
        ("model_length", "length", "length"),
        ("content_filter", "content_filter", "content-filter"),
        ("content_filter: RECITATION", "content_filter", "content-filter"),
        ("error", None, "stream-error"),
        ("abort", None, "stream-error"),
        ("insufficient_system_resource", None, "stream-error"),
        ("function_call_filter: MALFORMED_FUNCTION_CALL", None, "stream-error"),
    ],
)
def test_finish_reasons(label: str, ours: str | None, why: str | None) -> None:
    response = response_to(LOOK, end(label))
    assert response.why == why
    assert response.calls[0].ready is (why is None)
    if ours:
        assert (response.stop_reason, response.stop_detail) == (ours, label)
    else:
        assert plain(response.error) == {"finish_reason": label}


@pytest.mark.parametrize(
    ("behind", "why"),
    [
        ([end("tool_calls")], None),
        ([delta(content="")], None),
        ([delta(content="", tool_calls=[entry("", index=0, id="k1", name="look")])], None),
        ([{"choices": []}, {"choices": [], "usage": USAGE}], None),
        ([{"choices": None}, {"choices": [None, 3]}, {"choices": [{"delta": None}]}], None),
        ([{"choices": [{"index": 1, "delta": {"content": "another"}}]}], None),
        ([delta(content="more")], "no-terminal"),
        ([delta(reasoning="more")], "no-terminal"),
        ([calls(entry('{"n":', index=1, id="k2", name="look"))], "no-terminal"),
        ([delta(content="more"), end("stop")], None),
        ([delta(content="more"), end("length")], "length"),
    ],
)
def test_a_finish_counts_only_at_the_end(behind: list[Chunk], why: str | None) -> None:
    response = response_to(LOOK, end(), *behind)
    assert response.why == why
    assert response.calls[0].ready is (why is None)


def test_more_of_what_is_kept_takes_the_end_back() -> None:
    more = [delta(audio={"data": "AA"}), end("stop"), delta(audio={"data": "BB"})]
    assert response_to(*more).why == "no-terminal"


@pytest.mark.parametrize(
    "error",
    [
        {"error": {"message": "busy"}},
        {"error": "busy"},
        {"choices": [], "error": {"code": 500}},
        {"object": "error", "message": "busy", "code": 400},
        {"choices": [{"index": 0, "delta": {"content": ""}, "error": {"code": 502}}]},
        'event: error\ndata: {"message": "busy"}\n\n',
        "event: error\ndata: busy\n\n",
        'event: error\ndata: {"message": \n\n',
    ],
)
@pytest.mark.parametrize("behind", [0, 1])
def test_an_error_anywhere_is_no_success(error: Any, behind: int) -> None:
    first, last = ([LOOK, end()], []) if behind else ([LOOK], [end()])
    sent = [each if isinstance(each, str) else stream(each) for each in [*first, error, *last]]
    response = response_to(*sent, DONE)
    assert response.why == "stream-error"
    assert not response.calls[0].ready
    assert response.error


@pytest.mark.parametrize("none", [{"error": None}, {"error": {}}, {"object": "chat.completion"}])
def test_an_error_that_is_none(none: Chunk) -> None:
    assert response_to(LOOK, none, end()).whole


def test_a_server_without_finish_reasons_ends_with_the_last_word() -> None:
    chunks = [calls(entry("{}", index=0, id="k1", name="look")), delta(content="Hi")]
    assert response_to(stream(*chunks)).why == "no-terminal"
    response = response_to(stream(*chunks) + DONE)
    assert (response.why, response.stop_reason) == (None, "tool_use")
    assert response.calls[0].ready


def test_the_last_word_does_not_say_that_nothing_was_cut() -> None:
    chunks = [calls(entry("", index=0, id="k1", name="rm"))]
    (only,) = response_to(stream(*chunks) + DONE).calls
    assert (only.ready, only.why) == (False, "incomplete")
    cut = [LOOK, end("length"), delta(content="\n")]
    assert not response_to(stream(*cut) + DONE).calls[0].ready


def test_what_follows_the_last_word_takes_it_back() -> None:
    assert response_to(stream(LOOK) + DONE + stream(delta(content="x"))).why == "no-terminal"


# Text, reasoning and other content


def test_text_behind_a_call_is_a_new_block() -> None:
    response = response_to(delta(content="a"), LOOK, delta(content="b"), end())
    assert [block["type"] for block in response.content] == ["text", "tool-call", "text"]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_and_the_field_it_came_in(field: str) -> None:
    response = response_to(delta(**{field: "Hm"}), delta(content="So", **{field: "."}), end("stop"))
    assert [plain(each) for each in response.said] == [
        {"type": "reasoning", "text": "Hm."},
        {"type": "text", "text": "So"},
    ]
    assert response.source["reasoning_field"] == field


def test_reasoning_said_in_several_fields_is_said_once() -> None:
    both = delta(reasoning="Hm", reasoning_content="Hm", reasoning_details=[])
    assert texts(read(CHAT, [both])[0], "reasoning") == "Hm"


def test_reasoning_that_is_told_in_details_alone() -> None:
    details = [
        {"type": "reasoning.summary", "summary": "Sum.", "index": 0},
        {"type": "reasoning.text", "text": " So", "index": 1},
        {"type": "reasoning.encrypted", "data": "eA==", "index": 2},
        {"type": "reasoning.encrypted", "data": "eQ==", "index": 2},
    ]
    pieces, response = read(CHAT, [delta(reasoning_details=details), end("stop")])
    assert texts(pieces, "reasoning") == "Sum. So"
    assert plain(response.source)["reasoning_details"] == details


def test_tags_in_a_text_are_text() -> None:
    pieces, _ = read(CHAT, [delta(content="<think>Hm</think>So"), end("stop")])
    assert texts(pieces) == "<think>Hm</think>So"


def test_content_in_parts() -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}, None]},
        {"type": "thinking", "thinking": "."},
        {"type": "text", "text": "So"},
        {"type": "reference", "reference_ids": [1]},
        None,
        "text",
    ]
    content = response_to(delta(content=parts), end("stop")).content
    assert plain(content) == [
        {"type": "reasoning", "text": "Hm."},
        {"type": "text", "text": "So"},
        {"type": "provider", "provider": CHAT, "raw": parts[3]},
    ]


def test_annotations_belong_to_the_text_wherever_they_come() -> None:
    cited = delta(annotations=[{"type": "url_citation", "url": "u"}])
    said, thought = delta(content="So"), delta(reasoning="Hm")
    for chunks in (
        [cited, said],
        [said, cited],
        [said, thought, LOOK, cited],
        [thought, cited, said],
    ):
        blocks = plain(response_to(*chunks, end("stop")).content)
        (text,) = (block for block in blocks if block["type"] == "text")
        assert text["text"] == "So"
        assert text["citations"] == [{"type": "url_citation", "url": "u"}]


def test_a_refusal_is_said_and_nothing_runs() -> None:
    pieces, response = read(CHAT, [delta(refusal="I will "), delta(refusal="not."), end("stop")])
    assert texts(pieces) == "I will not."
    assert (response.why, response.stop_reason) == ("content-filter", "refusal")


def test_images_sound_and_what_the_provider_ran_are_kept() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:,"}}
    ran = {"index": 0, "type": "python", "arguments": "{}"}
    chunks = [
        delta(images=[image]),
        delta(audio={"id": "s1", "transcript": "Hel"}),
        delta(audio={"transcript": "lo", "data": "AA"}),
        delta(audio={"data": "BB", "expires_at": 7}),
        delta(executed_tools=[ran]),
        delta(executed_tools=[{**ran, "output": "7"}]),
        end("stop"),
    ]
    response = response_to(*chunks)
    assert [plain(block["raw"]) for block in response.content] == [
        image,
        {"type": "audio", "id": "s1", "transcript": "Hello", "data": "AABB", "expires_at": 7},
        {"type": "executed_tools", "tools": {"0": {**ran, "output": "7"}}},
    ]
    assert response.calls == ()


WHOLE = {
    "id": "r1",
    "object": "chat.completion",
    "model": "toy-1",
    "choices": [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": "So.",
                "reasoning_content": "Hm",
                "tool_calls": [
                    entry('{"p":"a"}', id="k1", type="function", name="read"),
                    entry('{"p":"b"}', id="k2", type="function", name="read"),
                ],
            },
            "finish_reason": "tool_calls",
        },
        {"index": 1, "message": {"content": "another"}, "finish_reason": "length"},
    ],
    "usage": USAGE,
}


def test_a_whole_completion_that_was_not_streamed() -> None:
    for body in (WHOLE, json.dumps(WHOLE), json.dumps(WHOLE, indent=2) + "\n"):
        response = response_to(body)
        assert response.whole
        assert brief(response) == TWO
        assert [block["text"] for block in response.said] == ["Hm", "So."]


def test_a_message_beside_the_delta_says_nothing() -> None:
    chunk = delta(content="Hi")
    chunk["choices"][0]["message"] = {"content": "Hi"}
    assert texts(read(CHAT, [chunk])[0]) == "Hi"


def test_of_several_choices_the_first_counts() -> None:
    chunks = [
        {"choices": [{"index": at, "delta": {"content": said}, "finish_reason": finish}]}
        for at, said, finish in [
            (1, "x", None),
            (0, "a", None),
            (1, "y", "length"),
            (0, "b", "stop"),
            (1, "z", None),
        ]
    ]
    pieces, response = read(CHAT, chunks)
    assert (texts(pieces), response.stop_detail) == ("ab", "stop")
    both = {"choices": [{"message": {"content": "a"}}, {"message": {"content": "x"}}]}
    assert texts(read(CHAT, [both])[0]) == "a"


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 3, "completion_tokens": None}, {"input_tokens": 3}),
        ({"prompt_cache_hit_tokens": 2}, {"cache_read_tokens": 2}),
        ({"cached_tokens": 2}, {"cache_read_tokens": 2}),
        ({"prompt_tokens_details": {"cached_tokens": 0}}, {"cache_read_tokens": 0}),
        ({"prompt_tokens_details": None, "completion_tokens": "7"}, {}),
        ({"prompt_tokens_details": {"cache_write_tokens": 2}}, {"cache_write_tokens": 2}),
    ],
)
def test_usage(usage: Chunk, expected: Chunk) -> None:
    in_a_choice = {"choices": [{"index": 0, "delta": {}, "usage": usage}]}
    for chunk in ({"usage": usage}, {"usage": None, "x_groq": {"usage": usage}}, in_a_choice):
        counted = plain(response_to(chunk, {"usage": None}, {"usage": {}}).usage)
        assert counted == {**expected, "raw": usage}


def test_the_last_usage_counts_and_the_first_name() -> None:
    chunks = [
        {"id": "", "model": "", "choices": [], "usage": {"completion_tokens": 1}},
        {"id": "r1", "model": "toy-1", **delta(content="a"), "usage": {"completion_tokens": 2}},
        {"id": "stub", "model": "toy-2", **end("stop"), "usage": {"completion_tokens": 3}},
    ]
    response = response_to(*chunks)
    assert plain(response.usage) == {"output_tokens": 3, "raw": {"completion_tokens": 3}}
    assert plain(response.source) == {"name": CHAT, "message_id": "r1", "model": "toy-1"}


def test_citations_of_the_whole_answer_are_kept() -> None:
    response = response_to({"citations": ["https://example.com"], **end("stop")})
    assert plain(response.source)["citations"] == ["https://example.com"]


class SdkChunk:
    """As the SDK gives its chunks."""

    def __init__(self, chunk: Chunk) -> None:
        self.chunk = chunk

    def model_dump(self, **how: Any) -> Chunk:
        return self.chunk


def test_objects_bytes_and_decoded_chunks_say_the_same() -> None:
    sent = ": OPENROUTER PROCESSING\n\n" + stream(*ALL_KINDS) + DONE
    expected = told(*read(CHAT, ALL_KINDS))
    for parts in (
        [sent],
        [SdkChunk(each) for each in ALL_KINDS],
        ["".join(json.dumps(each) + "\n" for each in ALL_KINDS)],
        [json.dumps(ALL_KINDS, indent=1)],
        *cuts(sent.encode(), 7),
    ):
        assert told(*read(CHAT, parts)) == expected


def test_halves_of_a_character_meet_in_text_reasoning_and_arguments() -> None:
    chunks = [
        *(delta(reasoning=half) for half in "\ud83d\udeb2"),
        *(delta(content=half) for half in "\ud83d\udeb2"),
        *(
            calls(entry(part, index=0, id="k1", name="look"))
            for part in ('{"s":"\ud83d', '\udeb2"}')
        ),
        end(),
    ]
    pieces, response = read(CHAT, chunks)
    assert (texts(pieces), texts(pieces, "reasoning")) == ("🚲", "🚲")
    assert response.calls[0].arguments == {"s": "🚲"}


def test_broken_off_anywhere_no_call_is_ready() -> None:
    broken_off(CHAT, ALL_KINDS, [len(ALL_KINDS) - 1])


@pytest.mark.parametrize("at", range(len(ALL_KINDS) + 1))
def test_an_error_at_any_place_withdraws_all_calls(at: int) -> None:
    response = response_to(*ALL_KINDS[:at], {"error": {"message": "busy"}}, *ALL_KINDS[at:])
    assert response.why == "stream-error"
    assert not any(each.ready for each in response.calls)


@pytest.mark.parametrize("at", range(len(ALL_KINDS) + 1))
def test_a_chunk_that_cannot_be_read_may_be_a_hole(at: int) -> None:
    sent = [stream(each) for each in ALL_KINDS]
    sent.insert(at, 'data: {"choices": [{"del\n\n')
    response = response_to("".join(sent) + DONE)
    assert response.whole is (at >= len(ALL_KINDS) - 1)


# Recorded streams


class Naive:
    """A stream read as simply as can be: what there is, field by field."""

    def __init__(self, chunks: list[Chunk]) -> None:
        self.text = self.reasoning = ""
        self.finish: str | None = None
        self.usage: Any = None
        found: dict[str, dict[str, str]] = {}
        latest: dict[int, str] = {}
        for chunk in chunks:
            groq = chunk.get("x_groq") or {}
            self.usage = chunk.get("usage") or groq.get("usage") or self.usage
            for choice in chunk.get("choices", []):
                if choice["index"] == 0:
                    self.finish = choice.get("finish_reason") or self.finish
                    self._read(choice["delta"], found, latest)
        self.calls = [
            (call_id, call["name"], json.loads(call["arguments"] or "{}"))
            for call_id, call in found.items()
        ]

    def _read(self, said: Chunk, found: dict[str, dict[str, str]], latest: dict[int, str]) -> None:
        content = said.get("content") or ""
        if isinstance(content, str):
            self.text += content
        else:
            self.text += "".join(each.get("text", "") for each in content)
            self.reasoning += "".join(
                inner["text"] for each in content for inner in each.get("thinking", [])
            )
        self.reasoning += said.get("reasoning") or said.get("reasoning_content") or ""
        for made in said.get("tool_calls") or []:
            function = made.get("function") or {}
            call_id = made.get("id") or latest[made["index"]]
            latest[made["index"]] = call_id
            call = found.setdefault(call_id, {"name": "", "arguments": ""})
            call["name"] += function.get("name") or ""
            call["arguments"] += function.get("arguments") or ""


OTHERWISE = {
    # The listing has the second of two calls under one index first; here they come as sent.
    "vercel-ai__cerebras__cererebras-structured-output-tools.1.chunks.txt": "order of the listing",
}
"""Recorded streams in which something differs from the listing, and why."""


def recorded(shared: Path) -> dict[str, bytes]:
    """Recorded streams by name. Some were stored without the end of their last line."""
    paths = sorted((shared / "streams" / "openai-chat").iterdir())
    return {path.name: path.read_bytes().rstrip() + b"\n\n" for path in paths}


def exchanged(shared: Path) -> Iterator[tuple[str, Any, Any]]:
    """The exchanges in this format: file, what came back, what was asked next."""
    for path in sorted((shared / "streams" / "exchange").iterdir()):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        for row, after in pairwise([*rows, {"request": None}]):
            if (row["format"] or "").startswith("openai-chat"):
                yield path.name, row["response"], after["request"]


def compare(name: str, naive: Naive, response: Response) -> None:
    said = dict.fromkeys(("text", "reasoning"), "")
    for block in response.content:
        if block["type"] in said:
            said[str(block["type"])] += str(block["text"])
    assert said == {"text": naive.text, "reasoning": naive.reasoning}, name
    assert same(brief(response), naive.calls), name
    assert response.stop_detail == naive.finish, name
    assert (response.usage or {"raw": None})["raw"] == naive.usage or same(
        plain(response.usage)["raw"], naive.usage
    ), name
    assert response.incidents == (), name


def test_recorded_streams_say_what_a_naive_reader_finds(shared: Path) -> None:
    with (shared / "streams" / "MANIFEST.tsv").open() as file:
        rows = {row["file"]: row for row in csv.DictReader(file, delimiter="\t")}
    for name, data in recorded(shared).items():
        pieces, response = read(CHAT, [data])
        naive = Naive(chunks_in(data))
        compare(name, naive, response)
        row = rows[name]
        listed = row["call id=name (first 6)"].partition("; +")[0].split("; ")
        found = [f"{each.call_id}={each.name}" for each in response.calls[:6]] or [""]
        assert sorted(found) == sorted(listed), name
        assert (found == listed) is (name not in OTHERWISE), name
        assert int(row["calls"]) == len(response.calls), name
        assert (response.stop_detail or "") == row["finish"], name
        assert response.why == ("length" if row["finish"] == "length" else None), name
        assert all(each.ready for each in response.calls), name
        assert [each for each, _ in named(pieces)] == [each for each, _, _ in naive.calls], name
        assert (texts(pieces), texts(pieces, "reasoning")) == (naive.text, naive.reasoning), name
        emitted(pieces)


def without_the_last_word(data: bytes) -> str | None:
    """What a stream ends with when nobody sees its `[DONE]`."""
    return None if b'finish_reason":"' in data.replace(b" ", b"") else "no-terminal"


def test_recorded_streams_say_the_same_for_every_cut(shared: Path) -> None:
    for name, data in recorded(shared).items():
        expected = told(*read(CHAT, [data]))
        if without_the_last_word(data) is None:
            assert told(*read(CHAT, chunks_in(data))) == expected, name
        else:
            assert read(CHAT, chunks_in(data))[1].why == "no-terminal", name
        for parts in cuts(data, max(1, len(data) // (4 if len(data) > 20_000 else 12))):
            assert told(*read(CHAT, parts)) == expected, name


@pytest.mark.deep
def test_recorded_streams_say_the_same_for_really_every_cut(shared: Path) -> None:
    for name, data in recorded(shared).items():
        expected = told(*read(CHAT, [data]))
        for parts in cuts(data, 1 if len(data) < 1_200 else len(data) // 25):
            assert told(*read(CHAT, parts)) == expected, name


def test_recorded_streams_broken_off_or_failed_hand_over_nothing(shared: Path) -> None:
    error = {"error": {"message": "busy"}}
    for name, data in recorded(shared).items():
        chunks = chunks_in(data)
        finishes = [
            at
            for at, chunk in enumerate(chunks)
            for each in chunk["choices"]
            if each.get("finish_reason")
        ]
        step = 1 if len(chunks) < 60 else len(chunks) // 8
        for count in range(0, len(chunks), step):
            _, response = read(CHAT, [*chunks[:count], error])
            assert response.why == "stream-error" or response.cut, (name, count)
            assert not any(each.ready for each in response.calls), (name, count)
            if count <= min(finishes, default=0):
                _, response = read(CHAT, chunks[:count])
                assert response.why == "no-terminal", (name, count)
                assert not any(each.ready for each in response.calls), (name, count)


def made_in(request: Any) -> dict[str, Any]:
    """The calls in the history that a client sent with its next request: arguments by id."""
    messages = request.get("messages", []) if isinstance(request, dict) else []
    found = [each for message in messages for each in message.get("tool_calls") or []]
    return {each["id"]: each["function"]["arguments"] for each in found}


def test_exchanges_say_what_a_naive_reader_finds_and_what_clients_sent_back(shared: Path) -> None:
    compared = 0
    for name, body, after in exchanged(shared):
        is_stream = body.lstrip()[:1] != "{"
        chunks = chunks_in(body.encode()) if is_stream else [json.loads(body)]
        pieces, response = read(CHAT, [body])
        emitted(pieces)
        if any("error" in chunk for chunk in chunks):
            assert response.why == "stream-error", name
            assert response.calls == (), name
            continue
        assert response.whole, name
        assert all(each.ready for each in response.calls), name
        if is_stream:
            compare(name, Naive(chunks), response)
        history = made_in(after)
        for each in response.calls:
            if each.call_id in history:
                compared += 1
                assert each.arguments == json.loads(history[each.call_id] or "{}"), name
    assert compared > 40


# Spoilt chunks


@given(spoilt_stream(ALL_KINDS))
@settings(max_examples=50)
def test_no_field_however_odd_raises_or_breaks_the_output(chunks: list[Any]) -> None:
    sound(CHAT, chunks)


@given(st.integers(0, 6), st.data())
@settings(max_examples=40)
def test_one_odd_chunk_does_not_cost_the_calls_behind_it(at: int, data: st.DataObject) -> None:
    odd = data.draw(spoilt(ALL_KINDS[at]).filter(_is_no_error))
    response = response_to(*ALL_KINDS[:at], odd, *ALL_KINDS[at + 1 :])
    assert brief(response)[-2:] == [("k1", "read", {"path": "a"}), ("k2", "look", {"n": 1})]


def _is_no_error(chunk: Any) -> bool:
    return isinstance(chunk, dict) and "error" not in str(chunk)


@st.composite
def written(draw: st.DrawFn) -> tuple[list[Chunk], list[Any]]:
    """Calls in pieces, side by side, as servers send them; and the arguments of each."""
    given_: list[dict[str, Any]] = draw(
        st.lists(
            st.dictionaries(st.text(max_size=3), st.integers(), max_size=2), min_size=1, max_size=4
        )
    )
    way = draw(st.sampled_from(["index", "id", "both", "index always 0", "place"]))
    given_ = [{**each, "n": at} for at, each in enumerate(given_)]
    waiting = []
    for arguments in given_:
        text = json.dumps(arguments)
        cut = sorted(draw(st.lists(st.integers(0, len(text)), max_size=3)))
        waiting.append([text[a:b] for a, b in pairwise([0, *cut, len(text)])])
    if way == "place":
        most = max(map(len, waiting))
        rows = [[each[at] if at < len(each) else "" for each in waiting] for at in range(most)]
        lists = [
            calls(*(_told(way, call, piece, is_first=at == 0) for call, piece in enumerate(row)))
            for at, row in enumerate(rows)
        ]
        return lists, given_
    order = draw(st.permutations([at for at, each in enumerate(waiting) for _ in each]))
    begun: set[int] = set()
    chunks = []
    for at in order:
        chunks.append(calls(_told(way, at, waiting[at].pop(0), is_first=at not in begun)))
        begun.add(at)
    first = list(dict.fromkeys(order))
    return chunks, [given_[at] for at in first]


def _told(way: str, at: int, piece: str, *, is_first: bool) -> Chunk:
    fields: dict[str, Any] = {"name": f"tool{at}"} if is_first else {}
    if way in ("index", "both"):
        fields["index"] = at + 1
    if way == "index always 0":
        fields["index"] = 0
    if is_first or way != "index":
        fields["id"] = f"k{at}"
    if way == "place" and not is_first:
        del fields["id"]
    return entry(piece, **fields)


@given(written())
def test_fragments_never_end_in_another_call(sent: tuple[list[Chunk], list[Any]]) -> None:
    chunks, expected = sent
    response = response_to(*chunks, end())
    assert [each.arguments for each in response.calls] == expected
    assert all(_is_of_its_tool(each) for each in response.calls)


def _is_of_its_tool(call: Call) -> bool:
    assert call.arguments is not None
    return call.call_id == f"k{call.arguments['n']}" and call.name == f"tool{call.arguments['n']}"


@pytest.mark.deep
@given(st.permutations(ALL_KINDS).flatmap(spoilt_stream))
@settings(max_examples=50)
def test_no_order_of_spoilt_chunks_raises(chunks: list[Any]) -> None:
    pieces, response = read(CHAT, chunks)
    emitted(pieces)
    told(pieces, response)
