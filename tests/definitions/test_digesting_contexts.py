"""What we would send for the next answer of a recorded loop, against what its client sent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from assembler.plugins import Digest
from definitions.digesting import REASONS, contexts, digest
from tests.definitions.streams import (
    Chunk,
    chat,
    generate,
    json_lines,
    loop,
    messages,
    responses,
    row,
    sent,
    sse,
)

USER = {"role": "user", "content": "Go"}
SAID = {"type": "text", "text": "Hi"}
USE = {"type": "tool_use", "id": "c1", "name": "now", "input": {"n": 1}}
RESULT = {"type": "tool_result", "tool_use_id": "c1", "content": "noon"}
CALL = {"type": "function_call", "id": "f", "call_id": "c1", "name": "now", "arguments": '{"n": 1}'}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "noon"}
MESSAGE = {"type": "message", "id": "m", "role": "assistant"}
PARTS = [{"type": "output_text", "text": "Hi"}]
FUNCTION = {"functionCall": {"name": "now", "args": {"n": 1}}}
ANSWERED = {"functionResponse": {"name": "now", "response": {"output": "noon"}}}
GO = {"role": "user", "parts": [{"text": "Go"}]}


def played(*lines: tuple[Chunk, list[Chunk]], format: str = "openai-chat") -> Digest:
    """What is said of a loop of requests and answers."""
    text = json_lines(*(row(request, sse(*answer), format) for request, answer in lines))
    return digest("/x/f", text.encode())


def kinds(found: Digest) -> list[str]:
    """The words for all that is odd, "" for a difference; each has its reason."""
    assert {odd.kind for odd in found.odd} <= {"", *REASONS}
    return [odd.kind for odd in found.odd]


@pytest.mark.parametrize(
    ("format", "answer", "first", "after"),
    [
        ("openai-chat", chat(), {"messages": [USER]}, sent()),
        (
            "anthropic-messages",
            messages(),
            {"messages": [USER]},
            {
                "messages": [
                    USER,
                    {"role": "assistant", "content": [SAID, USE]},
                    {"role": "user", "content": [RESULT]},
                ]
            },
        ),
        (
            "openai-responses",
            responses(),
            {"input": [USER]},
            {"input": [USER, {**MESSAGE, "content": PARTS}, CALL, OUTPUT]},
        ),
        (
            "google-generate",
            generate(),
            {"contents": [GO]},
            {
                "contents": [
                    GO,
                    {"role": "model", "parts": [{"text": "Hi"}, FUNCTION]},
                    {"role": "user", "parts": [ANSWERED]},
                ]
            },
        ),
    ],
)
def test_what_we_send_is_what_the_client_sent(
    format: str, answer: list[Chunk], first: Chunk, after: Chunk
) -> None:
    found = played((first, answer), (after, answer), format=format)
    assert set(kinds(found)) <= {"says-nothing", "other-id"}
    assert found.counts["exchanges"] == 1
    (told,) = [value for key, value in after.items() if key in ("messages", "input", "contents")]
    assert found.counts["messages"] == len(told)
    # An item of OpenAI has a status and annotations, which this client leaves out.
    assert found.counts["agree"] == len(told) - kinds(found).count("says-nothing") // 2


def changed(**more: Any) -> Chunk:
    """The request behind the answer, its call or its result said otherwise."""
    request = json.loads(json.dumps(sent()))
    said, result = request["messages"][1:]
    said["tool_calls"][0] |= more.get("call", {})
    said["tool_calls"][0]["function"] |= more.get("function", {})
    said |= more.get("said", {})
    result |= more.get("result", {})
    return request


@pytest.mark.parametrize(
    ("kind", "after"),
    [
        ("same-json", changed(function={"arguments": '{"n":1}'})),
        ("stream-index", changed(call={"index": 0})),
        ("says-nothing", changed(said={"refusal": None, "reasoning": ""}, call={"caller": None})),
        ("cache-mark", changed(result={"cache_control": {"type": "ephemeral"}})),
        ("other-id", changed(call={"id": "mine"}, result={"tool_call_id": "mine"})),
    ],
)
def test_a_client_may_say_the_same_otherwise(kind: str, after: Chunk) -> None:
    found = digest("/x/f", loop(after).encode())
    assert set(kinds(found)) == {kind}
    assert found.counts["agree"] < found.counts["messages"]


@pytest.mark.parametrize(
    ("after", "field"),
    [
        (changed(result={"content": "midnight"}), "result, content"),
        (changed(call={"type": "custom"}), "call, type"),
        (changed(function={"arguments": '{"n": 2}'}), "call, function.arguments"),
        (changed(result={"tool_call_id": "c9"}), "result, ours"),
    ],
)
def test_what_nothing_explains_is_a_difference(
    after: Chunk, field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contexts, "model_context", lambda *_: sent()["messages"])
    monkeypatch.setattr(contexts, "_said", lambda _: None)  # of no answer are we sure
    found = digest("/x/f", loop(after).encode())
    assert ("line 2", field, "") in [(odd.where, odd.field, odd.kind) for odd in found.odd]


def test_two_results_that_changed_places_are_a_difference() -> None:
    function = {"name": "now", "arguments": "{}"}
    two = [{"id": told, "type": "function", "function": function} for told in ("a", "b")]
    calls = [{**each, "index": at} for at, each in enumerate(two)]
    answer = [{"id": "r", "choices": [{"index": 0, "delta": {"tool_calls": calls}}]}, *chat()[2:]]
    said = {"role": "assistant", "content": None, "tool_calls": two}
    results = [
        {"role": "tool", "tool_call_id": told, "content": told} for told in ("other-a", "other-b")
    ]
    renamed = {**said, "tool_calls": [{**each, "id": f"other-{each['id']}"} for each in two]}
    straight = {"messages": [USER, renamed, *results]}
    crossed = {"messages": [USER, renamed, *results[::-1]]}
    bye = chat("Bye", call_id="c")
    assert set(kinds(played(({"messages": [USER]}, answer), (straight, bye)))) == {"other-id"}
    assert "" in kinds(played(({"messages": [USER]}, answer), (crossed, bye)))


def test_a_context_that_loses_a_text_of_the_answer_is_a_difference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = contexts.model_context

    def without_text(assembler: Any, format: str) -> list[dict[str, Any]]:
        return [
            {**each, "content": None} if each["role"] == "assistant" else each
            for each in told(assembler, format)
        ]

    monkeypatch.setattr(contexts, "model_context", without_text)
    found = digest("/x/f", loop(sent()).encode())
    assert [(odd.field, odd.kind) for odd in found.odd] == [("text, theirs", "")]


def test_an_answer_that_was_not_recorded_does_not_hide_what_was_said_before_it() -> None:
    between = [{"role": "assistant", "content": "Noon."}, {"role": "user", "content": "And?"}]
    after = {"messages": [*sent()["messages"], *between]}
    found = played(({"messages": [USER]}, chat()), (after, chat("Bye", call_id="c2")))
    assert kinds(found) == ["unrecorded"]
    assert found.counts["messages"] == 5


def test_a_call_that_was_not_recorded_and_its_result_are_told_once() -> None:
    between = sent(call_id="c5", text="More")["messages"][1:]
    after = {"messages": [*sent()["messages"], *between]}
    more = {"messages": [*after["messages"], *sent(call_id="c2", text="Bye")["messages"][1:]]}
    found = played(
        ({"messages": [USER]}, chat()),
        (after, chat("Bye", call_id="c2")),
        (more, chat("End", call_id="c3")),
    )
    assert kinds(found) == ["unrecorded", "unrecorded", "unrecorded"]
    assert found.counts["exchanges"] == 2


def test_what_was_said_before_the_first_line_is_told_as_that() -> None:
    early = [{"role": "user", "content": "Before"}, {"role": "assistant", "content": "Yes"}]
    after = {"messages": [*early, *sent()["messages"]]}
    found = played(({"messages": [*early, USER]}, chat()), (after, chat("Bye", call_id="c2")))
    assert kinds(found) == ["earlier", "earlier"]


def test_reasoning_that_a_client_leaves_out_and_a_result_that_it_has_not() -> None:
    thought = {"id": "r", "choices": [{"index": 0, "delta": {"reasoning_content": "Hm"}}]}
    said = {"messages": sent()["messages"][:2]}
    found = played(({"messages": [USER]}, [thought, *chat()]), (said, chat("Bye", call_id="c2")))
    assert sorted(kinds(found)) == ["no-reasoning", "no-result"]


def test_a_client_goes_its_own_way_behind_an_answer_that_failed() -> None:
    failed = [*chat()[:1], {"error": {"code": "busy", "message": "busy"}}]
    found = played(({"messages": [USER]}, failed), (sent(text="Sorry"), chat("Bye", call_id="c2")))
    assert "failed-answer" in kinds(found)
    assert "" not in kinds(found)


def test_a_request_of_another_conversation_is_not_compared() -> None:
    found = played(({"messages": [USER]}, chat()), ({"messages": [USER]}, chat(call_id="c2")))
    assert found.counts["exchanges"] == 0


def test_a_signature_in_the_other_alphabet_of_base64_is_the_same() -> None:
    signed = {**FUNCTION, "thoughtSignature": "a+/b"}
    back = {**FUNCTION, "thoughtSignature": "a-_b"}
    wrapped = {"functionResponse": {"name": "now", "response": {"result": "noon"}}}
    after = [GO, {"role": "model", "parts": [back]}, {"role": "user", "parts": [wrapped]}]
    found = played(
        ({"contents": [GO]}, generate(signed)),
        ({"contents": after}, generate()),
        format="google-generate",
    )
    assert sorted({*kinds(found)}) == ["base64", "other-id", "result-shape"]
