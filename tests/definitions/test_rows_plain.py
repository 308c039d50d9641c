from __future__ import annotations

from typing import Any

import pytest

from assembler import Node, Text, plugins
from definitions.nodes import ToolNode
from definitions.rows import RowReader, row_of
from definitions.rows_plain import row_text


def reads(kind: str, **data: Any) -> tuple[str, str, str]:
    return row_text(Node(kind, "1", data).placed(0, None, None))  # type: ignore[arg-type]


CALL = {"name": "weather", "waiting": None, "content": None, "error": None, "output": ""}
DONE = {**CALL, "stage": "result", "arguments": {"p": "a", "n": [1, None, True]}}
STEP = {
    "status": "running",
    "error": None,
    "started": 1_000,
    "ended": None,
    "request": {"provider": None, "model": None, "stop_reason": None},
    "usage": None,
    "attempts": [],
    "calls": [],
    "events": None,
}
TRIED = [
    {"number": 1, "outcome": "fallback", "reason": "busy", "model": "small"},
    {"number": 2, "outcome": "interrupted", "reason": None, "model": None},
    {"number": 3, "outcome": "completed", "reason": None, "model": None},
]
ROWS: list[tuple[str, dict[str, Any], tuple[str, str, str]]] = [
    ("user", {"content": [{"type": "text", "text": "hi"}]}, ("", "user", "hi")),
    (
        "context",
        {"content": [{"type": "file", "url": "u"}]},
        ("", "context", "[file u]"),
    ),
    (
        "user",
        {
            "content": [
                {"type": "file", "media_type": "image/png", "url": "data:image/png;base64,AAAA"},
                {"type": "file", "media_type": "text/plain", "name": "a.txt", "data": "QUFB"},
                {"type": "provider", "provider": "p", "raw": {"type": "input_image", "detail": 1}},
                {"type": "provider", "provider": "p", "raw": 7},
            ]
        },
        (
            "",
            "user",
            "[image/png]  [text/plain a.txt]  [input_image]  {type: provider  provider: p  raw: 7}",
        ),
    ),
    (
        "tool",
        {**DONE, "outcome": "succeeded", "content": [{"type": "json", "value": {"warm": True}}]},
        ("succeeded", "weather", "p: a  n: [1, null, true]  → {warm: true}"),
    ),
    (
        "assistant",
        {"status": "running", "blocks": [{"type": "reasoning", "text": "hm"}]},
        ("running", "assistant", "(thinking) hm"),
    ),
    ("assistant", {"status": "settled", "blocks": []}, ("", "assistant", "")),
    (
        "tool",
        {**DONE, "outcome": "succeeded", "content": [{"type": "text", "text": "x"}]},
        ("succeeded", "weather", "p: a  n: [1, null, true]  → x"),
    ),
    (
        "tool",
        {**DONE, "outcome": "failed", "error": {"name": "E"}, "output": "out"},
        ("failed", "weather", "p: a  n: [1, null, true]  → out  ! E"),
    ),
    (
        "tool",
        {**CALL, "stage": "start", "outcome": None, "arguments": None, "arguments_text": "[1"},
        ("running", "weather", "[1"),
    ),
    (
        "tool",
        {**CALL, "stage": "start", "outcome": None, "waiting": "x", "arguments": {}},
        ("waiting", "weather", "{}"),
    ),
    ("step", STEP, ("running", "step 1", "")),
    ("step", {**STEP, "status": None, "events": [3, 9]}, ("", "step 1", "events 3 to 9")),
    (
        "step",
        {
            **STEP,
            "status": "failed",
            "error": {"name": "E"},
            "ended": 2_500,
            "request": {"provider": "acme", "model": "large", "stop_reason": "length"},
            "usage": {"input_tokens": 1_200, "lost": None},
            "attempts": TRIED,
            "calls": ["c1", "c2"],
            "events": [3, 9],
        },
        (
            "failed",
            "step 1",
            "1.5 s  acme/large  (try 1 of small → fallback: busy)  (try 2 → interrupted)  length  "
            "2 calls  tokens 1,200 in  ! E  events 3 to 9",
        ),
    ),
    ("permission", {"decision": "pending", "input": {}}, ("pending", "permission", "")),
    ("turn-error", {"error": {"name": "E", "code": None}}, ("failed", "turn-error", "E")),
    (
        "retry",
        {"status": "waiting", "attempts": [{"number": 1, "reason": "busy", "state": "waiting"}]},
        ("waiting", "retry", "busy, after try 1"),
    ),
    (
        "retry",
        {"status": "running", "attempts": [{"number": 2, "reason": None, "delay_ms": 1500}]},
        ("running", "retry", "no reason given, after try 2; waits 1.5 s"),
    ),
    (
        "turn-error",
        {"error": {"name": "Error", "message": "no credit", "code": 402}},
        ("failed", "turn-error", "Error: no credit  code: 402"),
    ),
    ("steering", {"content": [{"type": "text", "text": "hi"}]}, ("", "steering", "hi")),
    (
        "turn-limit",
        {"stop_reason": "length"},
        ("failed", "turn-limit", "the answer was cut: it became too long"),
    ),
    (
        "turn-tail",
        {"status": "completed", "duration_ms": 5, "usage": None, "files": ["a"]},
        ("completed", "turn", "0.0 s  wrote a"),
    ),
    (
        "turn-tail",
        {
            "status": "error",
            "duration_ms": 61_200,
            "calls": {"ls": 2},
            "failed": 1,
            "usage": {"input_tokens": 1_200, "output_tokens": None},
        },
        ("error", "turn", "61.2 s  2 ls  1 failed  tokens 1,200 in"),
    ),
    (
        "turn-tail",
        {"status": "completed", "duration_ms": None, "usage": None, "calls": None, "files": None},
        ("completed", "turn", ""),
    ),
    ("compaction", {"status": "running", "summary": None}, ("running", "compaction", "")),
    ("compaction", {"status": "done", "summary": "so"}, ("done", "compaction", "so")),
    (
        "command",
        {"name": "model", "arguments": "small", "status": "done", "output": "ok"},
        ("done", "/model", "small  → ok"),
    ),
    (
        "command",
        {"name": None, "arguments": None, "status": "failed", "output": None},
        ("failed", "/?", ""),
    ),
    ("unknown", {"type": "a/b", "data": {"x": 1.5}}, ("", "a/b", "x: 1.5")),
    ("something", {"x": False}, ("", "something", "x: false")),
]


@pytest.mark.parametrize(("kind", "data", "row"), ROWS)
def test_how_a_node_reads(kind: str, data: dict[str, Any], row: tuple[str, str, str]) -> None:
    assert reads(kind, **data) == row


def said(arguments: dict[str, Any], **fields: Any) -> str:
    stage = {"stage": "result", "outcome": "succeeded"}
    return reads("tool", **with_row({**CALL, **stage, **fields, "arguments": arguments}))[2]


def with_row(data: dict[str, Any]) -> dict[str, Any]:
    return {**data, "row": row_of({"arguments_text": None, **data})}


def test_the_catalog_reads_so() -> None:
    assert plugins.row_text() is row_text


def test_a_call_of_a_family_reads_by_its_row() -> None:
    done = {**CALL, "stage": "result", "outcome": "succeeded", "name": "grep"}
    found = [{"type": "text", "text": "a.py:1: x"}]
    data = with_row({**done, "arguments": {"path": "src", "pattern": "x", "n": 1}})
    row = ("succeeded", "Search", "x in src  → a.py:1: x")
    assert reads("tool", **{**data, "content": found}) == row


def test_a_result_whose_call_is_not_loaded_says_what_it_is() -> None:
    done = {**CALL, "stage": "result", "outcome": "succeeded", "name": None, "arguments": None}
    data = with_row({**done, "content": [{"type": "text", "text": "it rains"}]})
    assert reads("tool", **data) == ("succeeded", "Tool", "→ it rains")


def test_a_call_of_an_unknown_tool_says_all_and_what_it_is_about_without_the_name() -> None:
    assert said({"path": "a", "limit": 4}) == "a  limit: 4"
    assert said({"command": None, "pattern": "x|y", "path": "src"}) == "x|y  path: src"
    assert said({"limit": 4, "path": "a"}) == "limit: 4  path: a"


WRITTEN = [
    ("a\nb", "2 lines, 3 B"),
    ("a\n", "1 line, 2 B"),
    ("é\n" * 400, "400 lines, 1.2 kB"),
]


@pytest.mark.parametrize(
    ("content", "size"), [("one", "one"), ("x" * 300, "x" * 119 + "…"), *WRITTEN]
)
def test_what_an_unknown_tool_writes_is_said_as_a_size(content: str, size: str) -> None:
    assert said({"path": "a", "content": content}) == f"a  content: {size}"
    asked = reads("permission", decision="allow", input={"path": None, "content": content})
    assert asked[2] == f"content: {size}"


@pytest.mark.parametrize(("content", "size"), WRITTEN)
def test_what_a_call_writes_is_said_as_a_size(content: str, size: str) -> None:
    assert said({"path": "a", "content": content}, name="write") == f"a  content: {size}"
    assert said({"path": "a", "content": "one"}, name="write") == "a"


def test_that_it_was_written_is_not_said_once_more() -> None:
    written, done = {"path": "a", "content": "b\nc"}, [{"type": "text", "text": "done"}]
    for name in ("write", "weather"):
        assert said(written, name=name, content=done) == "a  content: 2 lines, 3 B"
        failed = said(written, name=name, content=done, outcome="failed")
        assert failed == "a  content: 2 lines, 3 B  → done"
        assert said({"path": "a"}, name=name, content=done) == "a  → done"


def test_a_half_written_call_grows_as_a_size() -> None:
    text = Text('{"path": "a", "content": "b\\nc')
    data = {**CALL, "stage": "preparing", "outcome": None, "arguments": None, "name": "write"}
    row = RowReader().row(text, "write")
    node = ToolNode("tool", "1", {**data, "arguments_text": text, "row": row})
    assert row_text(node) == ("preparing", "Write", "a  content: 2 lines, 3 B")


def test_a_thought_is_short_when_something_was_said_behind_it() -> None:
    thought, answer = ({"type": kind, "text": kind * 30} for kind in ("reasoning", "text"))
    alone = reads("assistant", status="running", blocks=[thought])
    assert alone[2] == "(thinking) " + "reasoning" * 30
    both = reads("assistant", status="settled", blocks=[thought, answer])
    assert both[2] == f"(thinking) {('reasoning' * 30)[:59]}…  {'text' * 30}"


def test_a_text_of_megabytes_is_its_beginning_and_its_end() -> None:
    content = [{"type": "text", "text": f"begin{'x' * 5_000_000}end"}]
    text = reads("user", content=content)[2]
    assert len(text) < 5_000
    assert (text[:5], text[-3:]) == ("begin", "end")


@pytest.mark.parametrize(
    ("length", "said"),
    [
        (4_096, "a" * 4_096),
        (4_097, "a" * 2_048 + " … " + "a" * 2_048),
    ],
)
def test_a_long_text_keeps_its_beginning_and_its_end(length: int, said: str) -> None:
    content = [{"type": "text", "text": "a" * length}]
    assert reads("user", content=content) == ("", "user", said)


def test_a_long_argument_keeps_its_beginning() -> None:
    asked = {"status": "pending", "decision": "pending"}
    for text, said in (("b" * 120, "b" * 120), ("b" * 118 + " " + "c" * 9, "b" * 118 + "…")):
        _, _, line = reads("permission", **asked, input={"note": text})
        assert said in line
        assert f"{said}b" not in line
