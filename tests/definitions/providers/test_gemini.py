"""Gemini: what its chunks come to, by hand, by recorded streams, and when spoilt.

Both formats: `generateContent`, and further down Interactions.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assembler.codec import plain
from assembler.engine.values import same
from definitions.providers import Response
from definitions.providers.value_paths import ValuePaths
from tests.definitions.providers.support import (
    broken_off,
    cuts,
    emitted,
    json_values,
    named,
    read,
    sound,
    spoilt,
    spoilt_stream,
    texts,
    told,
)

Chunk = dict[str, Any]
SIGNED = {"thoughtSignature": "c2ln"}


def chunk(*parts: Chunk, finish: str | None = None, **more: Any) -> Chunk:
    candidate: Chunk = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "modelVersion": "toy-1", "responseId": "r1", **more}


def call(name: str | None = None, /, **fields: Any) -> Chunk:
    return {"functionCall": {**({"name": name} if name else {}), **fields}}


def at(path: str, *, goes_on: bool = False, **value: Any) -> Chunk:
    """A piece of a call: a value at a path, more of the call to come."""
    told = {"jsonPath": path, **value, **({"willContinue": True} if goes_on else {})}
    return call(partialArgs=[told], willContinue=True)


def response_to(*chunks: Chunk) -> Response:
    return read("gemini", chunks)[1]


GROUNDED = {"webSearchQueries": ["rain"]}
USAGE = {
    "promptTokenCount": 9,
    "cachedContentTokenCount": 4,
    "toolUsePromptTokenCount": 2,
    "candidatesTokenCount": 20,
    "thoughtsTokenCount": 6,
}
CODE = {"executableCode": {"language": "PYTHON", "code": "1+1"}}
RAN = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2"}}
ALL_KINDS: list[Chunk] = [
    chunk({"text": "Where? ", "thought": True}, usageMetadata={"promptTokenCount": 9}),
    chunk({"text": "There.", "thought": True}),
    chunk({"text": "It "}),
    chunk({"text": "rains."}),
    chunk({"text": "", **SIGNED}),
    chunk(CODE),
    chunk(RAN),
    chunk({"inlineData": {"mimeType": "image/png", "data": "aWk="}}),
    chunk({"fileData": {"mimeType": "audio/wav", "fileUri": "gs://a"}}),
    chunk({"hologram": 1}),
    chunk({**call("find", args={"q": 1}), **SIGNED}, call("find", args={"q": 2}, id="f2")),
    chunk(call("write", id="w1", willContinue=True)),
    chunk(at("$.rows[0].name", stringValue="R", goes_on=True)),
    chunk(at("$.rows[0].name", stringValue='o"', goes_on=True)),
    chunk(at("$.rows[0].name", stringValue="")),
    chunk(at("$.rows[0].size", numberValue=2)),
    chunk(at("$.rows[1]", nullValue="NULL_VALUE")),
    chunk(at("$['is new']", boolValue=True)),
    chunk(call()),
    {"candidates": [{"groundingMetadata": GROUNDED, "finishReason": "STOP", "index": 0}]},
    {"usageMetadata": USAGE},
]
WRITTEN = {"rows": [{"name": 'Ro"', "size": 2}, None], "is new": True}


def test_every_kind_of_part_once() -> None:
    pieces, response = read("gemini", ALL_KINDS)
    assert response.whole
    code_id, first_id = response.calls[0].call_id, response.calls[1].call_id
    assert plain(response.content) == [
        {"type": "reasoning", "text": "Where? There."},
        {"type": "text", "text": "It rains.", "signature": "c2ln"},
        {
            "type": "tool-call",
            "call_id": code_id,
            "name": "code_execution",
            "arguments": '{"language":"PYTHON","code":"1+1"}',
            "ran_by": "provider",
        },
        {"type": "provider", "provider": "gemini", "call_id": code_id, "raw": RAN},
        {"type": "file", "media_type": "image/png", "data": "aWk="},
        {"type": "file", "media_type": "audio/wav", "url": "gs://a"},
        {"type": "provider", "provider": "gemini", "raw": {"hologram": 1}},
        {
            "type": "tool-call",
            "call_id": first_id,
            "name": "find",
            "arguments": '{"q":1}',
            "signature": "c2ln",
        },
        {"type": "tool-call", "call_id": "f2", "name": "find", "arguments": '{"q":2}'},
        {
            "type": "tool-call",
            "call_id": "w1",
            "name": "write",
            "arguments": json.dumps(WRITTEN, separators=(",", ":")),
        },
        {"type": "provider", "provider": "gemini", "raw": {"groundingMetadata": GROUNDED}},
    ]
    assert [(each.type, each.data["call_id"]) for each in response.ran] == [
        ("tool/call", code_id),
        ("tool/result", code_id),
    ]
    assert [(each.name, each.arguments, each.ran_by) for each in response.calls] == [
        ("code_execution", {"language": "PYTHON", "code": "1+1"}, "provider"),
        ("find", {"q": 1}, "host"),
        ("find", {"q": 2}, "host"),
        ("write", WRITTEN, "host"),
    ]
    assert (response.stop_reason, response.stop_detail) == ("tool_use", "STOP")
    assert plain(response.source) == {"name": "gemini", "message_id": "r1", "model": "toy-1"}
    assert plain(response.usage) == {
        "input_tokens": 11,
        "output_tokens": 26,
        "cache_read_tokens": 4,
        "reasoning_tokens": 6,
        "raw": USAGE,
    }
    assert texts(pieces, "reasoning") == "Where? There."
    assert texts(pieces) == "It rains."
    assert named(pieces) == [(code_id, "code_execution"), ("f2", "find"), ("w1", "write")]


def test_what_is_streamed_shows_while_it_is_written() -> None:
    pieces, response = read("gemini", ALL_KINDS[:16])
    view = emitted(pieces).view()
    code_id = response.calls[0].call_id
    keys = ["assistant:1.1", f"tool:{code_id}", "tool:f2", "tool:w1"]
    assert [node.key for node in view.nodes] == keys
    written = "".join(each.data["arguments"] for each in pieces if each.data.get("call_id") == "w1")
    assert written == '{"rows":[{"name":"Ro\\"","size":2'


@pytest.mark.parametrize("fields", [{}, {"args": {}}, {"args": None}, {"args": ""}])
def test_no_arguments(fields: Chunk) -> None:
    (only,) = response_to(chunk(call("now", **fields), finish="STOP")).calls
    assert (only.ready, only.arguments) == (True, {})


def test_arguments_that_are_no_object() -> None:
    for args in ([], [1], 0, "x", True):
        (only,) = response_to(chunk(call("now", args=args), finish="STOP")).calls
        assert (only.why, only.arguments) == ("invalid-json", None)


def test_calls_without_ids_have_ids_of_their_own_that_come_again() -> None:
    chunks = [chunk(call("find", args={"q": 1}), call("find", args={"q": 1})), chunk(finish="STOP")]
    ids = [each.call_id for each in response_to(*chunks).calls]
    assert len({*ids}) == 2
    assert ids == [each.call_id for each in response_to(*chunks).calls]
    assert named(read("gemini", chunks)[0]) == []


@pytest.mark.parametrize(
    ("pieces", "why"),
    [
        ([at("$.a", stringValue="x"), call()], None),
        ([call(partialArgs=[{"jsonPath": "$.a", "stringValue": "x"}])], None),
        ([at("$.a", stringValue="x", goes_on=True), call(id="c")], None),
        ([at("$.a", stringValue="x"), call("write", id="c")], None),
        ([at("$.a", stringValue="x")], "incomplete"),
        ([at("$.a", stringValue="x"), call("next", willContinue=True), call()], "incomplete"),
        ([at("a", stringValue="x"), call()], "incomplete"),
        ([at("$", stringValue="x"), call()], "incomplete"),
        ([at("$.a[3]", stringValue="x"), call()], "incomplete"),
        ([at("$.a"), call()], "incomplete"),
        ([at("$.a.b", numberValue=1), at("$.a", stringValue="x"), call()], "incomplete"),
        ([at("$.a", stringValue=7), call()], "incomplete"),
        ([at("$.a", stringValue="x"), at("$.a.b", boolValue=True), call()], "incomplete"),
        (
            [at("$.a", stringValue="x"), call(partialArgs=7, willContinue=True), call()],
            "incomplete",
        ),
        ([at("$.a", stringValue="x"), {"functionCall": 7}, call()], "incomplete"),
        ([at("$.a" * 200, stringValue="x"), call()], "incomplete"),
        ([at("$.a", numberValue=10**5000), call()], "incomplete"),
    ],
)
def test_a_call_in_pieces_is_complete_at_its_end(pieces: list[Chunk], why: str | None) -> None:
    parts = [call("write", id="c", willContinue=True), *pieces]
    first, *_ = response_to(*map(chunk, parts), chunk(finish="STOP")).calls
    assert (first.why, first.arguments) == (why, None if why else {"a": "x"})


def test_an_end_of_nothing_is_no_call() -> None:
    assert response_to(chunk(call()), chunk(call(willContinue=True), finish="STOP")).calls == ()


def test_paths_out_of_order_show_wrong_and_are_right_in_the_end() -> None:
    parts = [
        call("write", id="c", willContinue=True),
        at("$.a.x", numberValue=1),
        at("$.b", numberValue=2),
        at("$.a.y", numberValue=3),
        at("$.b", numberValue=4),
        call(),
    ]
    pieces, response = read("gemini", [*map(chunk, parts), chunk(finish="STOP")])
    (only,) = response.calls
    assert only.arguments == {"a": {"x": 1, "y": 3}, "b": 4}
    assert only.arguments_text == '{"a":{"x":1,"y":3},"b":4}'
    assert "".join(each.data.get("arguments", "") for each in pieces) == '{"a":{"x":1},"b":2'
    assert pieces[-1].data["value"]["arguments"] == only.arguments_text
    assert response.incidents == ()


@pytest.mark.parametrize(
    ("reason", "ours", "why"),
    [
        ("STOP", "tool_use", None),
        ("MAX_TOKENS", "length", "length"),
        ("SAFETY", "content_filter", "content-filter"),
        ("RECITATION", "content_filter", "content-filter"),
        ("PROHIBITED_CONTENT", "content_filter", "content-filter"),
        ("MALFORMED_FUNCTION_CALL", None, "stream-error"),
        ("UNEXPECTED_TOOL_CALL", None, "stream-error"),
        ("TOO_MANY_TOOL_CALLS", None, "stream-error"),
        ("OTHER", None, "stream-error"),
        ("SOMETHING_NEW", None, "stream-error"),
        (None, None, "no-terminal"),
    ],
)
def test_finish_reasons(reason: str | None, ours: str | None, why: str | None) -> None:
    response = response_to(chunk(call("now")), chunk(finish=reason))
    assert response.why == why
    assert response.calls[0].ready is (why is None)
    if ours:
        assert (response.stop_reason, response.stop_detail) == (ours, reason)
    elif reason:
        assert plain(response.error)["code"] == reason


def test_a_finish_in_every_chunk_counts_at_the_end_alone() -> None:
    chunks = [chunk({"text": "a"}, finish="STOP"), chunk(call("now"), finish="STOP")]
    assert response_to(*chunks).calls[0].ready
    assert response_to(chunks[0], chunk(call("now"))).why == "no-terminal"


def test_a_prompt_that_is_blocked() -> None:
    response = response_to({"promptFeedback": {"blockReason": "SAFETY"}})
    assert (response.why, response.stop_detail) == ("content-filter", "SAFETY")


@pytest.mark.parametrize("position", [0, 1, 2])
def test_an_error_anywhere_is_an_error_of_all(position: int) -> None:
    chunks = [chunk(call("now")), chunk(finish="STOP")]
    chunks.insert(position, {"error": {"code": 503, "status": "UNAVAILABLE"}})
    response = response_to(*chunks)
    assert (response.why, response.calls[0].ready) == ("stream-error", False)
    assert plain(response.error)["code"] == 503


def test_what_the_answer_rests_on_may_come_late_and_again() -> None:
    rests = [{"candidates": [{"groundingMetadata": {"n": number}}]} for number in (1, 2)]
    response = response_to(chunk({"text": "a"}, finish="STOP"), *rests)
    assert response.whole
    assert plain(response.content[1]["raw"]) == {"groundingMetadata": {"n": 2}}


def test_other_candidates_are_not_this_answer() -> None:
    other = {"content": {"parts": [{"text": "b"}]}, "index": 1, "finishReason": "MAX_TOKENS"}
    both = chunk({"text": "a"}, finish="STOP")
    both["candidates"].append(other)
    assert response_to(both).whole
    assert [block["text"] for block in response_to(both).content] == ["a"]


def test_a_signature_belongs_to_the_text_before_it() -> None:
    parts = [{"text": "a", **SIGNED}, {"text": "b"}, call("now"), SIGNED]
    content = plain(response_to(chunk(*parts, finish="STOP")).content)
    assert [(block.get("text"), block.get("signature")) for block in content] == [
        ("a", "c2ln"),
        ("b", None),
        (None, None),
        ("", "c2ln"),
    ]


def test_pictures_of_a_thought_are_no_answer() -> None:
    part = {"inlineData": {"mimeType": "image/png", "data": "aWk="}, "thought": True}
    (block,) = response_to(chunk(part, finish="STOP")).content
    assert block["type"] == "provider"


def test_tools_that_the_provider_runs() -> None:
    parts = [
        {"toolCall": {"id": "t1", "toolType": "FILE_SEARCH", "args": {"q": 1}}, **SIGNED},
        {"toolResponse": {"id": "t1", "toolType": "FILE_SEARCH", "response": {"n": 2}}},
        {"executableCode": {"code": "1/0"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_FAILED", "output": "no"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK"}},
    ]
    response = response_to(chunk(*parts, finish="STOP"))
    search, found, code, failed = [plain(each.data) for each in response.ran]
    assert (search["name"], search["ran_by"]) == ("file_search", "provider")
    assert found == {"call_id": "t1", "content": [{"type": "json", "value": {"n": 2}}]}
    assert (failed["call_id"], failed["is_error"]) == (code["call_id"], True)
    assert "call_id" not in response.content[-1]
    assert response.stop_reason == "end_turn"


def test_objects_bytes_and_decoded_chunks_say_the_same() -> None:
    stream = "".join(f"data: {json.dumps(each)}\r\n\r\n" for each in ALL_KINDS)
    array = json.dumps(ALL_KINDS, indent=1)
    expected = told(*read("gemini", ALL_KINDS))
    for parts in (
        [stream.encode()],
        [array],
        ["".join(json.dumps(each) + "\n" for each in ALL_KINDS)],
        *cuts(stream.encode(), 37),
        *cuts(array.encode(), 97),
    ):
        assert told(*read("gemini", parts)) == expected


def test_broken_off_anywhere_no_call_is_ready() -> None:
    broken_off("gemini", ALL_KINDS, [len(ALL_KINDS) - 1])


# Values at paths


def paths_of(value: Any, path: str = "$") -> Iterator[Chunk]:
    """The values of an object as Gemini streams them, strings in two pieces."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from paths_of(inner, f"{path}['{name}']" if "." in name else f"{path}.{name}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from paths_of(inner, f"{path}[{index}]")
    elif isinstance(value, str):
        yield {"jsonPath": path, "stringValue": value[:2], "willContinue": True}
        yield {"jsonPath": path, "stringValue": value[2:]}
    elif value is None:
        yield {"jsonPath": path, "nullValue": "NULL_VALUE"}
    else:
        yield {"jsonPath": path, "boolValue" if isinstance(value, bool) else "numberValue": value}


names = st.sampled_from(["a", "b", "c.d", "e f", "é"])
scalars = st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5)
inner = st.recursive(
    scalars,
    lambda more: (
        st.lists(more, min_size=1, max_size=3)
        | st.dictionaries(names, more, min_size=1, max_size=3)
    ),
    max_leaves=8,
)
objects = st.dictionaries(names, inner, min_size=1, max_size=3)


@given(objects)
@settings(max_examples=100)
def test_an_object_in_order_is_written_as_it_comes(value: Chunk) -> None:
    paths = ValuePaths()
    written = "".join(map(paths.take, paths_of(value))) + paths.rest()
    assert (paths.is_broken, paths.is_in_order) == (False, True)
    assert same(json.loads(written), value)
    assert same(paths.value, value)


@given(st.lists(st.sampled_from(["$.a", "$.a.b", "$.a[0]", "$.a[1]", "$.c", "$"]) | json_values))
def test_no_path_raises(paths: list[Any]) -> None:
    values = ValuePaths()
    written = "".join(values.take({"jsonPath": path, "numberValue": 1}) for path in paths)
    written += values.rest()
    if not values.is_broken and values.is_in_order:
        assert same(json.loads(written), values.value)


# Recorded streams

FORMATS = {"google-generate": "gemini", "google-interactions": "gemini_interactions"}


def chunks_of(data: bytes) -> list[Chunk]:
    """The chunks of a recorded body, read naively."""
    body = data.decode()
    if body.lstrip().startswith("["):
        return list(json.loads(body))
    lines = [line.removeprefix("data:").strip() for line in body.splitlines()]
    return [json.loads(line) for line in lines if line.startswith("{")]


def parts_of(chunks: list[Chunk]) -> Iterator[Chunk]:
    for each in chunks:
        for candidate in each.get("candidates", ()):
            yield from candidate.get("content", {}).get("parts", ())


def put(value: Any, path: str, leaf: Any) -> None:
    """Put a leaf at a path, or add a piece to its text; read as simply as can be."""
    steps = [int(step) if step.isdigit() else step for step in re.findall(r"\w+", path)]
    for step, after in pairwise(steps):
        if isinstance(value, list) and step == len(value):
            value.append([] if isinstance(after, int) else {})
        elif isinstance(value, dict):
            value.setdefault(step, [] if isinstance(after, int) else {})
        value = value[step]
    if isinstance(value, list) and steps[-1] == len(value):
        value.append(leaf)
    else:
        is_more = isinstance(value, list) or steps[-1] in value
        value[steps[-1]] = value[steps[-1]] + leaf if is_more else leaf


def naive(chunks: list[Chunk]) -> list[tuple[str | None, str, Any]]:
    """The calls of a stream: a part with a name begins one, a part without adds to it."""
    calls: list[tuple[str | None, str, Any]] = []
    for part in (part["functionCall"] for part in parts_of(chunks) if "functionCall" in part):
        if "name" in part:
            calls.append((part.get("id"), part["name"], part.get("args", {})))
        for each in part.get("partialArgs", ()):
            leaf = next(each[name] for name in ("stringValue", "numberValue") if name in each)
            put(calls[-1][2], each["jsonPath"].removeprefix("$."), leaf)
    return calls


def check(name: str, data: bytes | list[Chunk]) -> Response:
    """Compare what the adapter reads with a naive reading."""
    chunks = chunks_of(data) if isinstance(data, bytes) else data
    pieces, response = read("gemini", [data])
    expected = naive(chunks)
    calls = [each for each in response.calls if each.ran_by == "host"]
    assert [(each.provider_call_id, each.name) for each in calls] == [
        (call_id, tool) for call_id, tool, _ in expected
    ], name
    if response.whole:
        assert same([each.arguments for each in calls], [args for *_, args in expected]), name
    said: dict[bool, str] = {False: "", True: ""}
    for part in parts_of(chunks):
        said[part.get("thought", False)] += part.get("text", "")
    assert (texts(pieces), texts(pieces, "reasoning")) == (said[False], said[True]), name
    for kind, thought in (("text", False), ("reasoning", True)):
        blocks = [block for block in response.content if block["type"] == kind]
        assert "".join(block["text"] for block in blocks) == said[thought], name
    signatures = [part["thoughtSignature"] for part in parts_of(chunks) if SIGNED.keys() & part]
    kept = [each for block in response.content for each in signatures_in(plain(block))]
    assert kept == signatures, name
    usage = {
        field: count for each in chunks for field, count in each.get("usageMetadata", {}).items()
    }
    assert plain(response.usage or {}).get("raw", {}) == usage, name
    assert response.incidents == (), name
    emitted(pieces)
    return response


def signatures_in(block: Chunk) -> list[str]:
    found = [block.get("signature"), block.get("raw", {}).get("thoughtSignature")]
    return [each for each in found if each]


def recorded(shared: Path, folder: str) -> list[Path]:
    return sorted((shared / "streams" / folder).iterdir())


def rows_of(shared: Path) -> dict[str, dict[str, str]]:
    with (shared / "streams" / "MANIFEST.tsv").open() as file:
        return {row["file"]: row for row in csv.DictReader(file, delimiter="\t")}


def test_recorded_streams_have_what_they_have(shared: Path) -> None:
    rows = rows_of(shared)
    for path in recorded(shared, "google-generate"):
        data = path.read_bytes()
        response = check(path.name, data)
        assert response.whole, path.name
        row = rows[path.name]
        # The manifest counts each part; those without a name are pieces of the call before.
        count = sum("functionCall" in part for part in parts_of(chunks_of(data)))
        assert int(row["calls"]) == count, path.name
        listed = re.findall(r"=(\w+)", row["call id=name (first 6)"])
        known = [name for name in listed if name != "None"]
        calls = [each.name for each in response.calls if each.ran_by == "host"]
        assert calls[: len(known)] == known, path.name
        assert response.stop_detail == row["finish"], path.name


def test_recorded_responses_of_tool_loops_have_what_they_have(shared: Path) -> None:
    count = compared = 0
    for path in recorded(shared, "exchange"):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        for row, after in [*pairwise(rows), (rows[-1], None)]:
            if row["format"] != "google-generate":
                continue
            count += 1
            response = check(path.name, row["response"].encode())
            assert response.whole, path.name
            sent = sent_back(after["request"] if after else None)
            for each in response.calls:
                if each.ready and each.ran_by == "host" and sent:
                    compared += 1
                    assert any(same([each.name, each.arguments], call) for call in sent), path.name
    assert (count, compared > 15) == (40, True)


def sent_back(request: Any) -> list[list[Any]]:
    """The calls in the history that a client sent with its next request: name, arguments."""
    contents = request.get("contents", []) if isinstance(request, dict) else []
    parts = [part for content in contents for part in content.get("parts", [])]
    calls = [part.get("functionCall") or part.get("function_call") for part in parts]
    return [[call["name"], call.get("args", {})] for call in calls if call]


def test_what_another_client_recorded(shared: Path) -> None:
    """Streams of a client, several in one file, each as a list of chunks."""
    count = 0
    for path in recorded(shared, "gemini-cli-responses"):
        for line in path.read_text().splitlines():
            row = json.loads(line) if line.strip() else {}
            if row.get("method") == "generateContentStream":
                count += check(path.name, row["response"]).whole
    assert count > 30


def test_recorded_streams_say_the_same_for_every_cut(shared: Path) -> None:
    for folder, provider in FORMATS.items():
        for path in recorded(shared, folder):
            data = path.read_bytes() + b"\n"  # some recordings lack their last line's end
            expected = told(*read(provider, [data]))
            assert told(*read(provider, chunks_of(data))) == expected, path.name
            for parts in cuts(data, max(1, len(data) // 20)):
                assert told(*read(provider, parts)) == expected, path.name


@pytest.mark.deep
def test_recorded_streams_say_the_same_for_really_every_cut(shared: Path) -> None:
    for folder, provider in FORMATS.items():
        for path in recorded(shared, folder):
            data = path.read_bytes() + b"\n"
            expected = told(*read(provider, [data]))
            for parts in cuts(data, 1 if len(data) < 2_600 else len(data) // 60):
                assert told(*read(provider, parts)) == expected, path.name


def test_recorded_streams_broken_off(shared: Path) -> None:
    for folder, provider in FORMATS.items():
        for path in recorded(shared, folder):
            chunks = chunks_of(path.read_bytes())
            broken_off(provider, chunks)
            error = {"error": {"message": "busy"}, "event_type": "error"}
            for count in range(len(chunks)):
                _, response = read(provider, [*chunks[:count], error])
                assert response.why == "stream-error", path.name
                assert not any(each.ready for each in response.calls), path.name


# Spoilt chunks


@given(spoilt_stream(ALL_KINDS))
@settings(max_examples=60)
def test_no_field_however_odd_raises_or_breaks_the_output(chunks: list[Any]) -> None:
    sound("gemini", chunks)


@given(st.integers(0, 10), st.data())
@settings(max_examples=60)
def test_one_odd_chunk_does_not_cost_the_call_behind_it(position: int, data: st.DataObject) -> None:
    odd = data.draw(
        spoilt(ALL_KINDS[position]).filter(
            lambda each: not re.search("error|finishReason|promptFeedback", str(each))
        )
    )
    before, after = ALL_KINDS[:position], ALL_KINDS[position + 1 :]
    chunks = [*before, *([odd] if isinstance(odd, dict) else []), *after]
    _, response = read("gemini", chunks)
    last = response.calls[-1].to_json()
    assert (last["name"], last.get("arguments")) == ("write", WRITTEN)


@given(st.lists(objects, min_size=2, max_size=4), st.data())
@settings(max_examples=50)
def test_no_fragment_crosses_into_another_call(values: list[Chunk], data: st.DataObject) -> None:
    """Calls of one name behind each other, whole or in pieces, cut into chunks anywhere."""
    parts: list[Chunk] = []
    for value in values:
        if data.draw(st.booleans()):
            parts.append(call("write", args=value))
            continue
        pieces = [call(partialArgs=[each], willContinue=True) for each in paths_of(value)]
        parts += [call("write", willContinue=True), *pieces, call()]
    chunks = []
    while parts:
        size = data.draw(st.integers(1, 4))
        chunks.append(chunk(*parts[:size]))
        del parts[:size]
    response = response_to(*chunks, chunk(finish="STOP"))
    assert same([each.arguments for each in response.calls], values)


@pytest.mark.deep
@given(st.permutations(ALL_KINDS).flatmap(spoilt_stream))
@settings(max_examples=50)
def test_no_order_of_spoilt_chunks_raises(chunks: list[Any]) -> None:
    pieces, response = read("gemini", chunks)
    emitted(pieces)
    told(pieces, response)


# Interactions


def step(index: int, type_: str, *deltas: Chunk, **fields: Any) -> list[Chunk]:
    begun = {"index": index, "step": {"type": type_, **fields}, "event_type": "step.start"}
    said = [{"index": index, "delta": each, "event_type": "step.delta"} for each in deltas]
    return [begun, *said, {"index": index, "event_type": "step.stop"}]


def over(status: str = "completed", **fields: Any) -> Chunk:
    interaction = {"id": "i1", "model": "toy-1", "status": status, **fields}
    return {"interaction": interaction, "event_type": "interaction.completed"}


COUNTS = {
    "total_input_tokens": 9,
    "total_cached_tokens": 4,
    "total_tool_use_tokens": 2,
    "total_output_tokens": 20,
    "total_thought_tokens": 6,
}
INTERACTION: list[Chunk] = [
    {"interaction": {"id": "i1", "model": "toy-1"}, "event_type": "interaction.created"},
    {"interaction_id": "i1", "status": "in_progress", "event_type": "interaction.status_update"},
    *step(
        0,
        "thought",
        {"type": "thought_summary", "content": {"type": "text", "text": "Where?"}},
        {"type": "thought_signature", "signature": "c2ln"},
    ),
    *step(
        1,
        "google_search_call",
        {"type": "google_search_call", "arguments": {"queries": ["rain"]}},
        id="s1",
        signature="c2Vh",
    ),
    *step(
        2,
        "google_search_result",
        {"type": "google_search_result", "result": [{"url": "a"}], "is_error": False},
        call_id="s1",
    ),
    *step(
        3,
        "model_output",
        {"type": "text", "text": "It "},
        {"type": "text", "text": "rains."},
        {"type": "text_annotation_delta", "annotations": [{"url": "a"}]},
        {"type": "image", "mime_type": "image/png", "data": "aWk="},
        {"type": "text", "text": "So."},
    ),
    *step(4, "hologram", {"type": "beam", "n": 1}, light=1),
    *step(
        5,
        "function_call",
        {"type": "arguments_delta", "arguments": '{"path":'},
        {"type": "arguments_delta", "arguments": '"a"}'},
        id="f1",
        name="read",
        arguments={},
    ),
    over("requires_action", usage=COUNTS),
]


def test_every_kind_of_step_once() -> None:
    pieces, response = read("gemini_interactions", INTERACTION)
    assert response.whole
    search = {"type": "google_search_result", "call_id": "s1", "result": [{"url": "a"}]}
    assert plain(response.content) == [
        {"type": "reasoning", "text": "Where?", "signature": "c2ln"},
        {
            "type": "tool-call",
            "call_id": "s1",
            "name": "google_search",
            "arguments": '{"queries":["rain"]}',
            "ran_by": "provider",
            "raw": {"type": "google_search_call", "signature": "c2Vh"},
        },
        {
            "type": "provider",
            "provider": "gemini_interactions",
            "call_id": "s1",
            "raw": {**search, "is_error": False},
        },
        {"type": "text", "text": "It rains.", "citations": [{"url": "a"}]},
        {"type": "file", "media_type": "image/png", "data": "aWk="},
        {"type": "text", "text": "So."},
        {
            "type": "provider",
            "provider": "gemini_interactions",
            "raw": {"type": "hologram", "light": 1, "deltas": [{"type": "beam", "n": 1}]},
        },
        {
            "type": "tool-call",
            "call_id": "f1",
            "name": "read",
            "arguments": '{"path":"a"}',
            "raw": {"type": "function_call"},
        },
    ]
    assert [each.type for each in response.ran] == ["tool/call", "tool/result"]
    assert (response.stop_reason, response.stop_detail) == ("tool_use", "requires_action")
    assert plain(response.usage) == {
        "input_tokens": 11,
        "output_tokens": 26,
        "cache_read_tokens": 4,
        "reasoning_tokens": 6,
        "raw": COUNTS,
    }
    assert named(pieces) == [("s1", "google_search"), ("f1", "read")]
    emitted(pieces)


def test_a_whole_interaction_says_the_same() -> None:
    steps: list[Chunk] = [{"type": "user_input", "content": []}]
    for each in INTERACTION:
        if each["event_type"] == "step.start":
            steps.append(dict(each["step"]))
        elif each["event_type"] == "step.delta":
            kind = each["delta"]["type"]
            if kind == steps[-1]["type"]:
                steps[-1] |= each["delta"]
            elif kind == "thought_signature":
                steps[-1]["signature"] = each["delta"]["signature"]
    summary = [{"type": "text", "text": "Where?"}]
    texts_ = [{"type": "text", "text": "It rains.", "annotations": [{"url": "a"}]}]
    picture = {"type": "image", "mime_type": "image/png", "data": "aWk="}
    steps[1]["summary"] = summary
    steps[4]["content"] = [*texts_, picture, {"type": "text", "text": "So."}]
    steps[5]["deltas"] = [{"type": "beam", "n": 1}]
    steps[6]["arguments"] = {"path": "a"}
    whole = {**INTERACTION[-1]["interaction"], "object": "interaction", "steps": steps}
    _, expected = read("gemini_interactions", INTERACTION)
    _, response = read("gemini_interactions", [whole])
    assert plain(response.content) == plain(expected.content)
    assert response.whole


@pytest.mark.parametrize(
    ("status", "ours", "why"),
    [
        ("completed", "tool_use", None),
        ("requires_action", "tool_use", None),
        ("requires_continuation", "pause", None),
        ("incomplete", "length", "length"),
        ("failed", None, "stream-error"),
        ("cancelled", None, "stream-error"),
        ("budget_exceeded", None, "stream-error"),
        ("in_progress", None, "no-terminal"),
        ("something_new", None, "no-terminal"),
    ],
)
def test_statuses(status: str, ours: str | None, why: str | None) -> None:
    chunks = [*step(0, "function_call", id="f1", name="now", arguments={"n": 1}), over(status)]
    _, response = read("gemini_interactions", chunks)
    assert response.why == why
    assert response.calls[0].ready is (why is None)
    if ours:
        assert (response.stop_reason, response.stop_detail) == (ours, status)


def test_a_step_that_never_stopped_is_incomplete() -> None:
    *begun, _ = step(0, "function_call", id="f1", name="now", arguments={"n": 1})
    _, response = read("gemini_interactions", [*begun, over()])
    assert response.calls[0].why == "incomplete"


def test_a_step_whose_start_cannot_be_read_is_not_the_one_before() -> None:
    *begun, _ = step(0, "function_call", id="f1", name="now", arguments={"n": 1})
    lost = {"index": 0, "step": 7, "event_type": "step.start"}
    piece = {"type": "arguments_delta", "arguments": '{"n":2}'}
    follows = step(0, "", piece)[1:]
    _, response = read("gemini_interactions", [*begun, lost, *follows, over()])
    assert [each.why for each in response.calls] == ["incomplete", "no-name"]
    assert [each.arguments_text for each in response.calls] == ["", '{"n":2}']


def test_a_delta_whose_step_nobody_began() -> None:
    deltas = [
        {"index": 0, "delta": {"type": "text", "text": "Hi"}, "event_type": "step.delta"},
        {"index": 7, "delta": {"type": "beam"}, "event_type": "step.delta"},
    ]
    _, response = read("gemini_interactions", [*deltas, over()])
    assert plain(response.content) == [{"type": "text", "text": "Hi"}]


def test_interactions_that_fail() -> None:
    for error in (
        {"event_type": "error", "error": {"code": "busy"}},
        {"event_type": "interaction.status_update", "status": "cancelled"},
        {"error": {"code": "busy"}},
        step(9, "model_output", error={"code": 1})[0],
    ):
        _, response = read("gemini_interactions", [*INTERACTION[:-1], error, INTERACTION[-1]])
        assert response.why == "stream-error"
        assert not any(each.ready for each in response.calls)


def test_recorded_interactions_have_what_they_have(shared: Path) -> None:
    for path in recorded(shared, "google-interactions"):
        chunks = chunks_of(path.read_bytes())
        pieces, response = read("gemini_interactions", [path.read_bytes()])
        deltas = [each["delta"] for each in chunks if "delta" in each]
        assert texts(pieces) == "".join(each.get("text", "") for each in deltas), path.name
        signatures = [block["signature"] for block in response.content if "signature" in block]
        signed = [each["signature"] for each in deltas if each["type"] == "thought_signature"]
        assert signatures == signed, path.name
        ran = [each["step"]["id"] for each in chunks if "id" in each.get("step", {})]
        assert [each.call_id for each in response.calls] == ran, path.name
        assert plain(response.usage)["raw"] == chunks[-1]["interaction"]["usage"], path.name
        assert (response.why, response.stop_detail) == (None, "completed"), path.name
        emitted(pieces)


@given(spoilt_stream(INTERACTION))
@settings(max_examples=50)
def test_no_field_of_an_interaction_raises(chunks: list[Any]) -> None:
    pieces, response = read("gemini_interactions", chunks)
    emitted(pieces)
    told(pieces, response)
    for each in response.calls:
        assert each.ready is (each.why is None)


@given(st.integers(1, len(INTERACTION) - 6), st.data())
@settings(max_examples=50)
def test_one_odd_event_does_not_cost_the_call_behind_it(position: int, data: st.DataObject) -> None:
    odd = data.draw(spoilt(INTERACTION[position]).filter(lambda each: "error" not in str(each)))
    before, after = INTERACTION[:position], INTERACTION[position + 1 :]
    chunks = [*before, *([odd] if isinstance(odd, dict) else []), *after]
    _, response = read("gemini_interactions", chunks)
    assert response.calls[-1].to_json()["arguments"] == {"path": "a"}
