"""What is said of one recorded file: what agrees, what differs, and what explains it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from assembler import codec
from assembler.plugins import Digest
from definitions.digesting import REASONS, answers, digest
from definitions.providers import Adapter, Piece, Response, adapter
from tests.definitions.streams import (
    FILES,
    Chunk,
    chat,
    cohere,
    converse,
    generate,
    json_lines,
    listed,
    log,
    loop,
    messages,
    ollama,
    recorded,
    responses,
    sent,
    sse,
)


def digested(text: str, row: Mapping[str, Any] | None = None) -> Digest:
    """What is said of a file, of which a row of a listing may say something as well."""
    columns = None if row is None else {name: str(value) for name, value in row.items()}
    return digest("/x/f", text.encode(), columns)


def differences(found: Digest) -> list[tuple[str, str]]:
    return [(odd.where, odd.field) for odd in found.odd if not odd.kind]


def explained(found: Digest, kind: str) -> None:
    """Nothing differs, and one of the findings is of this kind; every kind has its reason."""
    assert differences(found) == []
    assert kind in [odd.kind for odd in found.odd], found
    assert {odd.kind for odd in found.odd} <= REASONS.keys()


CUSTOM = {"type": "custom_tool_call", "call_id": "c1", "name": "sql", "input": "select 1"}
SEARCH = {"type": "web_search_call", "id": "w", "status": "completed", "action": {"q": "a"}}
PIECE = {"jsonPath": "$.n", "stringValue": "1"}
PIECES = generate(
    {"functionCall": {"name": "now", "willContinue": True}},
    {"functionCall": {"partialArgs": [PIECE]}},
    {"functionCall": {}},
)
FAILED = {"type": "response.failed", "response": {"status": "failed", "error": {"code": "busy"}}}
STREAMED = {"type": "tool-call-delta", "index": 2, "id": "c0", "name": "old", "argumentsDelta": ""}
NESTED = {"rootCallId": "c1", "parentCallId": "c1", "subCallId": "c1:code:1", "name": "in"}
NESTED["arguments"] = {"n": 2}  # an object, where the outer call has text
NO_CALL = {"calls": 0, "named": "", "parsed": ""}
CHAT = {"format": "p / openai-chat"}
STOPPED = {"finish": "STOP"}
DONE = {"finish": "completed"}
ABORTED = {"finish": "turn/end=aborted finish=tool-calls"}


@pytest.mark.parametrize(
    ("kind", "file", "columns"),
    [
        ("minted", sse(*generate()), {"named": "None=now", **STOPPED}),
        (
            "pieces",
            json.dumps(PIECES),
            {"calls": 3, "named": "None=now; None=None; None=None", **STOPPED, "parsed": "True:3"},
        ),
        ("item-type", sse(*responses(SEARCH)), {"named": "w=web_search_call", **DONE}),
        ("ran-by-provider", sse(*responses(SEARCH)), {**NO_CALL, **DONE}),
        ("approval", sse(*responses(CUSTOM)), {"calls": 2, "named": "mcpr_1=q; c1=sql", **DONE}),
        ("first-answer", sse(*responses(count=2)), DONE),
        (
            "order",
            sse(*chat()[:2], *chat(call_id="c0")),
            {"calls": 2, "named": "c0=now; c1=now", "parsed": "True:2"},
        ),
        ("empty-arguments", sse(*chat(arguments="")), {"parsed": "False:1"}),
        ("unread-listing", sse(*chat()), {**NO_CALL, "events": "?:4"}),
        ("failed", sse(FAILED), {**NO_CALL, "finish": "failed"}),
        ("not-whole", sse(*chat()[:2]), {"finish": "", "parsed": "True:1"}),
        ("unrecognised", sse({"error": {"code": "busy"}}), {**NO_CALL, "finish": "", **CHAT}),
        ("lost-chunk", 'data: {"\n\n' + sse(*chat()), {}),
        ("last-word", sse(*chat()[:2], last="data: [DONE]\n\n"), {"finish": ""}),
        ("nested", log({"type": "tool/code-dispatch-start", "data": NESTED}), ABORTED),
        (
            "only-streamed",
            log({"type": "assistant/chunk", "data": {"turn": 1, "step": 2, "chunk": STREAMED}}),
            ABORTED,
        ),
    ],
)
def test_what_explains_another_reading(kind: str, file: str, columns: Mapping[str, Any]) -> None:
    explained(digested(file, listed("f", **{"format": "", **columns})), kind)


OTHER = {"messages": [{"role": "user", "content": "Something else"}]}
BROKEN = [*chat()[:2], {"error": {"message": "busy"}}]
PROVIDER = {"type": "server_tool_use", "id": "s1", "name": "search", "input": {"q": "a"}}


@pytest.mark.parametrize(
    ("kind", "after", "first"),
    [
        ("other-loop", OTHER, ()),
        ("other-id", sent(call_id="fc_1"), ()),
        ("other-id", sent(call_id="r:c1"), ()),
        ("spelling", sent(text=" Hi\n"), ()),
        ("rewritten", sent(text="Hello"), ()),
        ("rewritten", sent('{"n": 2}'), ()),
        ("not-sent-back", {"messages": [{"role": "assistant", "content": "Hi"}]}, ()),
        ("not-sent-back", sent('{"n": 2}', "made", "Sorry"), BROKEN),
        (
            "provider-call",
            sent(),
            [
                {
                    "type": "message",
                    "role": "assistant",
                    "content": [
                        PROVIDER,
                        {"type": "text", "text": "Hi"},
                        {"type": "tool_use", "id": "c1", "name": "now", "input": {"n": 1}},
                    ],
                    "stop_reason": "tool_use",
                }
            ],
        ),
        ("unread-line", sent(), [{"type": "message-start"}]),
    ],
)
def test_what_a_client_sent_back(kind: str, after: Chunk, first: list[Chunk]) -> None:
    lines = loop(after, first).replace('"format": "openai-chat"', '"format": ""')
    explained(digested(lines), kind)


@pytest.mark.parametrize(
    ("after", "field"),
    [
        (sent('{"n": 2}'), "arguments of c1"),
        (sent(text="Hello"), "text in the history"),
        ({"messages": [{"role": "assistant", "content": "Hi"}]}, "call in the history"),
        ({"messages": [{"role": "assistant", "content": "Well"}]}, "history"),
    ],
)
def test_a_history_that_differs_and_a_reading_that_is_not_sure(after: Chunk, field: str) -> None:
    """Two readings must agree before the client is said to have changed something."""
    unsure = chat()
    unsure[0]["choices"][0]["delta"]["function_call"] = None
    found = differences(digested(loop(after, unsure)))
    assert ("line 1", field) in found
    assert {where for where, _ in found} <= {"line 1", "line 2"}


GIVEN = {"n": 1}
CALLED = {"functionCall": {"id": "c1", "name": "now", "args": GIVEN}}
USED = {"type": "tool_use", "id": "c1", "name": "now", "input": GIVEN}
CONVERSED = {"toolUse": {"toolUseId": "c1", "name": "now", "input": GIVEN}}
SAID = {"role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]}
ITEM = {"type": "function_call", "call_id": "c1", "name": "now", "arguments": '{"n": 1}'}
SPELLINGS = [
    ("messages", messages(), [{"role": "assistant", "content": [{"text": "Hi"}, USED]}]),
    ("input", responses(), [SAID, ITEM]),
    ("contents", generate(), [{"role": "model", "parts": [{"text": "Hi"}, CALLED]}]),
    ("messages", converse(), [{"role": "assistant", "content": [{"text": "Hi"}, CONVERSED]}]),
    ("messages", cohere(), sent(arguments='{"n": 1}')["messages"]),
    ("messages", ollama(), sent(arguments='{"n": 1}')["messages"]),
]


@pytest.mark.parametrize(("field", "first", "history"), SPELLINGS)
def test_each_spelling_of_a_history(field: str, first: list[Chunk], history: list[Any]) -> None:
    text = json.dumps({field: history})
    for after, kinds in (
        (text, {"other-id"} if field == "contents" else set()),
        (text.replace('"Hi"', '"Ho"'), {"rewritten"}),
        (text.replace('"now"', '"then"').replace('"Hi"', '" Hi"'), {"rewritten", "spelling"}),
        (text.replace("1}", "2}"), {"rewritten"}),
    ):
        lines = loop(json.loads(after), first).replace('"format": "openai-chat"', '"format": ""')
        found = digested(lines)
        assert differences(found) == []
        lost = field == "contents" and after != text  # nothing but an id holds it to the call
        assert {odd.kind for odd in found.odd} - {"other-id"} == kinds - {"other-id"} or lost


def test_arguments_that_a_history_has_in_a_place_of_their_own() -> None:
    patch = {"type": "apply_patch_call", "call_id": "c1", "operation": {"path": "a"}}
    lines = loop({"input": [patch]}, responses(patch))
    found = digested(lines.replace('"format": "openai-chat"', '"format": ""'))
    assert found.odd == ()


THOUGHT = {"type": "thinking", "thinking": "So.", "signature": "s"}
PARTS = [
    {"type": "thinking", "thinking": [{"type": "text", "text": "So."}]},
    {"type": "text", "text": "Hi"},
]
REFUSED = {"type": "message", "content": [{"type": "refusal", "refusal": "No."}]}
REASONED = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "So."}]}
STEPS = [
    {"type": "user_input", "content": [{"type": "text", "text": "Go"}]},
    {"type": "thought", "summary": [{"type": "text", "text": "So."}]},
    {"type": "model_output", "content": [{"type": "text", "text": "Hi"}]},
]
BLOCKS = [{"reasoningContent": {"reasoningText": {"text": "So."}}}, {"text": "Hi"}, CONVERSED]
PLAN = {"message": {"tool_plan": "So."}}
SPOKEN = {
    "content": [{"type": "thinking", "thinking": "So."}, {"type": "text", "text": "Hi"}],
    "tool_calls": [{"id": "c1", "function": {"name": "now", "arguments": '{"n":1}'}}],
}
WHOLE = {"stop_reason": "tool_use", "usage": {"output_tokens": 7}}


def saying(**fields: Any) -> list[Chunk]:
    return [{"choices": [{"index": 0, "delta": fields}]}, *chat()[2:]]


@pytest.mark.parametrize(
    "chunks",
    [
        messages("look"),
        [{"type": "message", "content": [THOUGHT, {"type": "text", "text": "Hi"}, USED], **WHOLE}],
        saying(content=PARTS),
        saying(reasoning="So.", content="Hi"),
        saying(tool_calls=[{"index": 0, "function": {"name": "now", "arguments": "{}"}}]),
        saying(reasoning_details=[{"type": "reasoning.text", "text": "So."}]),
        [*chat()[:2], *chat(arguments="")[1:]],  # id and name once more
        [{"index": 1, "choices": [{"index": 1, "delta": {"content": "Or"}}]}, *chat()],
        responses(REASONED, REFUSED, ITEM),
        [{"object": "response", "status": "completed", "output": [REASONED, REFUSED, ITEM]}],
        generate(
            {"text": "So.", "thought": True},
            {"text": "Hi"},
            CALLED,
            {"functionCall": {"name": "now"}},
        ),
        generate({"functionCall": {"name": "now"}}),
        generate({"functionCall": {"name": "now", "partialArgs": [PIECE]}}),
        [{"type": "message", "content": [{**USED, "input": {}}], **WHOLE}],
        [{"object": "interaction", "id": "i", "status": "completed", "steps": STEPS}],
        converse(""),
        [
            *({"type": name, **told} for each in converse() for name, told in each.items()),
        ],
        [{"contentBlockDelta": {"delta": {"reasoningContent": {"text": "So."}}}}, *converse()],
        [{"output": {"message": {"content": BLOCKS}}, "stopReason": "tool_use", "usage": {}}],
        [*cohere("")[:4], {"type": "tool-plan-delta", "delta": PLAN}, *cohere("")[4:]],
        [{"finish_reason": "TOOL_CALL", "message": {**SPOKEN, **PLAN["message"]}}],
        [{"message": {"content": "Hi", "thinking": "So."}, "done": True, "done_reason": "length"}],
    ],
)
def test_the_second_reading_says_the_same(chunks: list[Chunk]) -> None:
    found = digested(sse(*chunks))
    assert found.is_read
    assert differences(found) == []


def test_a_history_may_come_later() -> None:
    """Requests of another try may stand between an answer and what became of it."""
    first, between = loop(OTHER).splitlines()
    _, last = loop(sent('{"n": 2}')).splitlines()
    found = digested("\n".join([first, between, last]))
    assert [(odd.where, odd.kind) for odd in found.odd] == [
        ("line 1", "rewritten"),
        ("line 2", "other-loop"),
    ]


def test_a_line_of_a_loop_that_cannot_be_read() -> None:
    assert differences(digested(loop(sent()) + '{"i": 2')) == [("", "lines")]


def test_each_answer_of_a_loop_is_listed() -> None:
    first, last = loop({"input": [SAID, ITEM]}, responses()).splitlines()
    second = json.dumps({**json.loads(last), "response": sse(*responses(ITEM, count=2)[3:])})
    lines = f"{first}\n{second}".replace('"format": "openai-chat"', '"format": ""')
    row = listed("f", format="", finish="completed|completed", calls=2, parsed="True:2")
    named = "call id=name (first 6)"
    assert differences(digested(lines, {**row, named: "c1=now; c11=now"})) == []
    assert differences(digested(lines, {**row, "calls": 1})) == [("", "calls")]


def test_each_line_that_a_client_recorded_is_an_answer() -> None:
    file = recorded(generate({"text": "Hi"})[-1], generate(CALLED))
    others = json_lines({"method": "countTokens", "response": {"totalTokens": 3}})
    row = listed("f", format="gemini-cli / gemini-cli-responses", finish="STOP")
    for text in (file + others, others + file):
        found = digested(text, row)
        assert found.odd == ()
        assert found.counts == {"answers": 2, "calls": 1}
    assert differences(digested(file, {**row, "calls": 2})) == [("", "calls")]
    assert differences(digested(file, {**row, "finish": "STOP|SAFETY"})) == [("", "finish")]
    assert differences(digested(file + "{", row)) == [("", "lines")]


def test_an_answer_that_failed_among_those_that_a_client_recorded() -> None:
    failed = {"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL"}]}
    row = listed("f", format="p / gemini-cli-responses", finish="MALFORMED_FUNCTION_CALL|STOP")
    found = digested(recorded([failed], generate(CALLED)), row)
    assert [odd.where for odd in found.odd if odd.kind == "not-whole"] == ["line 1"]
    explained(found, "failed")


def test_a_line_that_only_says_what_it_is() -> None:
    lines = loop(OTHER, [{"error": {"code": "busy"}}])
    found = digested(lines)
    assert found.counts["answers"] == 2
    assert {odd.kind for odd in found.odd} == {"unrecognised", "not-whole"}


def test_answers_that_were_not_streamed_are_not_listed() -> None:
    call = {"id": "c1", "function": {"name": "now", "arguments": "{}"}}
    said = {"index": 0, "message": {"content": "Hi", "tool_calls": [call]}, "finish_reason": "stop"}
    lines = loop(sent(arguments="{}"), [{"object": "chat.completion", "choices": [said]}])
    row = listed("f", format="p / exchange", named="c2=now", finish="full|tool_calls")
    explained(digested(lines, row), "whole-answer")
    explained(digested(lines, {**row, "calls": 0, "event types": "?:1"}), "unread-listing")
    streamed = listed("f", format="p / exchange", calls=2, named="c1=now; c2=now", parsed="True:2")
    found = digested(loop(sent()), {**streamed, "finish": "tool_calls|tool_calls"})
    assert found.odd == ()


def test_places_that_disagree_are_a_finding() -> None:
    begun = {**ITEM, "id": "f", "arguments": ""}
    piece = {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "{}"}
    chunks = [
        responses()[0],
        {"type": "response.output_item.added", "output_index": 0, "item": begun},
        piece,
        *responses({**begun, "arguments": '{"n":2}'})[1:],
    ]
    explained(digested(sse(*chunks)), "not-ready")
    last = {"type": "response.function_call_arguments.done", "arguments": '{"n":2}'}
    majority = [*chunks[:3], {**last, "output_index": 0}, *chunks[3:]]
    explained(digested(sse(*majority)), "incident")


def test_arguments_that_are_no_json_are_listed_so() -> None:
    file = sse(*chat(arguments="{"))
    explained(digested(file, listed("f", parsed="False:1")), "not-ready")
    assert differences(digested(file, listed("f"))) == [("", "calls with arguments")]


def test_text_that_broke_off_is_not_doubted() -> None:
    begun = {"type": "response.output_item.added", "output_index": 0, "item": {"type": "message"}}
    piece = {"type": "response.output_text.delta", "output_index": 0, "delta": "Hi"}
    explained(digested(sse(responses()[0], begun, piece)), "not-whole")


def test_an_attempt_that_was_given_up_is_not_what_was_stored() -> None:
    place = {"turn": 1, "step": 1}
    tried = [
        {"type": "text-delta", "index": 0, "text": "Bad"},
        {"type": "finish", "reason": {"kind": "error"}},
    ]
    first, *rest = log().splitlines(keepends=True)
    chunks = ({"type": "assistant/chunk", "data": {**place, "chunk": each}} for each in tried)
    assert differences(digested(first + json_lines(*chunks) + "".join(rest))) == []


def test_a_payload_on_several_lines() -> None:
    lines = "".join(f"data: {line}\n" for line in json.dumps(chat()[0], indent=1).splitlines())
    found = digested(f"{lines}\n{sse(*chat()[1:])}")
    assert (found.counts, found.odd) == ({"answers": 1, "calls": 1}, ())


@pytest.mark.parametrize(
    ("chunk", "name"),
    [
        ({"usageMetadata": {}, "modelVersion": "m"}, "google-generate"),
        ({"usageMetadata": {}, "promptFeedback": {}}, "google-generate"),
        ({"usageMetadata": {}}, None),
        ({"modelVersion": "m"}, None),
        ({"done": True}, None),
        ({"message": {}}, None),
        ({"type": "message"}, None),
        ({"type": "user", "content": []}, None),
        ({"type": "message_start"}, None),
        ({"type": "session"}, None),
        ({"createdAt": 1}, None),
        ({"event_type": "interaction.created"}, None),
        ({"request": {}}, None),
        ({"type": "response_item"}, None),
    ],
)
def test_what_a_chunk_says_of_its_format(chunk: Chunk, name: str | None) -> None:
    found = digest("/misc/f", json.dumps(chunk).encode(), None)
    assert (found.format, found.is_read) == (name or "misc", name is not None)


def test_what_nobody_reads_has_the_name_that_it_is_listed_by() -> None:
    for text in ("nothing", "{}"):
        found = digested(text, listed("f", format="p / acp"))
        assert (found.format, found.is_read, found.odd) == ("acp", False, ())
    assert digested("nothing").format == "no stream"
    assert digested("{}").format == "x"


def test_the_first_six_calls_of_many() -> None:
    file = sse(*(chunk for at in range(8) for chunk in chat(call_id=f"c{at}")))
    first = "; ".join(f"c{at}=now" for at in range(6))
    row = listed("f", calls=8, named=f"{first}; +2", parsed="True:8")
    assert differences(digested(file, row)) == []
    other = {**row, "call id=name (first 6)": first.replace("c5", "c6")}
    assert differences(digested(file, other)) == [("", "id of a call")]


def test_a_line_that_is_in_another_format_than_it_says() -> None:
    lines = loop(sent()).replace('"format": "openai-chat"', '"format": "ollama-chat"', 1)
    assert differences(digested(lines)) == [("line 1", "format")]


@pytest.mark.parametrize(
    ("lines", "odd"),
    [
        (log(stored='{"n": 2}'), ("attempt 1.1.1", "arguments of c1")),
        (log(name="then"), ("attempt 1.1.1", "name of c1")),
        (log(said="Ho"), ("event 2", "text")),
        (log().replace("\n", "\n{\n", 1), ("line 2", "line")),
    ],
)
def test_a_log_whose_halves_differ(lines: str, odd: tuple[str, str]) -> None:
    assert differences(digested(log())) == []
    assert differences(digested(lines)) == [odd]


@pytest.mark.parametrize(
    "columns",
    [
        {"calls": 2},
        {"named": "c2=now"},
        {"named": "c1=then"},
        {"finish": "turn/end=completed finish=tool-calls"},
        {"format": "p / exchange"},
    ],
)
def test_a_log_and_its_listing(columns: Mapping[str, Any]) -> None:
    agreed = {"format": "p / dsh-session", **ABORTED}
    assert differences(digested(log(), listed("f", **agreed))) == []
    assert len(differences(digested(log(), listed("f", **{**agreed, **columns})))) == 1


class Cutting(Adapter):
    """A fault: it sees where its input was cut."""

    def feed(self, given: object) -> list[Piece]:
        pieces = super().feed(given)
        return pieces if isinstance(given, bytes) and b"[DONE]" in given else pieces[1:]


class Forgetting(Adapter):
    """A fault: what was counted is gone in the end."""

    def finish(self) -> Response:
        return replace(super().finish(), usage=None)


class Renaming(Adapter):
    """A fault: a call has another name in the end."""

    def finish(self) -> Response:
        response = super().finish()
        calls = tuple(replace(call, name="then") for call in response.calls)
        return replace(response, calls=calls)


class Doubling(Adapter):
    """A fault: what it settles is not what it said."""

    def feed(self, given: object) -> list[Piece]:
        return [piece for piece in super().feed(given) for _ in range(2)]


@pytest.mark.parametrize(
    ("fault", "field"),
    [
        (Cutting, "pieces, line by line"),
        (Cutting, "pieces, 1 bytes at a time"),
        (Doubling, "text"),
        (Forgetting, "usage"),
        (Renaming, "calls"),
    ],
)
def test_faults_of_an_adapter_are_found(
    monkeypatch: pytest.MonkeyPatch, fault: type[Adapter], field: str
) -> None:
    def broken(name: str, **envelope: Any) -> Adapter:
        made: Adapter = type("Broken", (fault, type(adapter(name))), {})(**envelope)
        return made

    monkeypatch.setattr(answers, "adapter", broken)
    found = digested(sse(*chat(), last="data: [DONE]\n\n"))
    assert ("", field) in differences(found)


SAYS = [
    ("text", lambda chunks: chunks[0]["choices"][0]["delta"].update(content="Ho")),
    ("finish", lambda chunks: chunks[2]["choices"][0].update(finish_reason="stop")),
    ("output tokens", lambda chunks: chunks[3]["usage"].update(completion_tokens=8)),
    ("calls", lambda chunks: chunks[1]["choices"][0]["delta"].update(tool_calls=[])),
    ("reasoning", lambda chunks: chunks[0]["choices"][0]["delta"].update(reasoning="So.")),
]


@pytest.mark.parametrize(("field", "change"), SAYS)
def test_a_second_reading_has_its_say(
    monkeypatch: pytest.MonkeyPatch, field: str, change: Callable[[Any], None]
) -> None:
    """It reads another stream here, as an adapter with a fault would."""
    other = chat()
    change(other)
    plainly = answers.plainly
    monkeypatch.setattr(answers, "plainly", lambda name, chunks: plainly(name, other))
    assert differences(digested(sse(*chat()))) == [("", f"{field}, read plainly")]


ODD = [
    b"",
    b"\xff\xfe",
    b"{",
    b"[" * 100_000,
    b"[1, null, {}]",
    b"[" + b'{"a":' * 5_000 + b"1" + b"}" * 5_000 + b"]",
    *(
        json_lines({**chunk, field: value}).encode()
        for text in FILES.values()
        for chunk in [json.loads(text.removeprefix("data: ").splitlines()[0])]
        if isinstance(chunk, dict)
        for field in chunk
        for value in (None, 1, float("nan"), 10**400, "\ud800", [], {}, "x", [[]], [{}], [None])
    ),
]


@pytest.mark.parametrize("row", [None, {"calls": "x", "call id=name (first 6)": "=; a"}])
def test_no_file_however_odd_raises(row: Mapping[str, str] | None) -> None:
    for data in ODD:
        for odd in digest("x/f", data, row).odd:
            codec.encode([odd.expected, odd.got])  # what it says can be shown
