"""What stands together between what an assistant says, and how it is summed up."""

from __future__ import annotations

from typing import Any

import pytest

from assembler.engine.definition import Node
from assembler.engine.events import Position
from assembler.engine.values import Text
from definitions.nodes import node
from definitions.process import Process

PROCESS = Process()


def placed(kind: str, turn: int | None = 1, /, **fields: Any) -> Node:
    return node(kind, "x", fields).placed(Position(0), turn, 1)


def tool(name: str | None = "read", stage: str = "result", **fields: Any) -> Node:
    outcome = "succeeded" if stage == "result" else None
    return placed("tool", **{"name": name, "stage": stage, "outcome": outcome, **fields})


def answer(*blocks: tuple[str, Any], status: str = "running") -> Node:
    content = [{"type": kind, "text": text} for kind, text in blocks]
    return placed("assistant", status=status, blocks=content)


def test_who_belongs() -> None:
    for stage in ("preparing", "start", "result"):
        assert PROCESS.joins(tool(stage=stage, parent="c0")) == 1
    assert PROCESS.joins(placed("permission", 2)) == 2
    assert PROCESS.joins(Node("retry", "r1", {}, turn=3)) == 3
    assert PROCESS.joins(answer(("reasoning", "hm"))) == 1
    assert PROCESS.joins(answer(("text", "\n"), ("reasoning", Text("hm")))) == 1


def test_everything_else_separates() -> None:
    assert PROCESS.joins(placed("tool", None)) is None
    for kind in ("user", "context", "turn-error", "unknown"):
        assert PROCESS.joins(placed(kind)) is None
    assert PROCESS.joins(answer(("text", "so"))) is None
    assert PROCESS.joins(answer(("reasoning", "hm"), ("text", Text("so")))) is None
    assert PROCESS.joins(answer()) is None


def test_a_member_that_failed_to_build_is_still_one() -> None:
    failed = Node("tool", "c1", {"error": {"name": "ValueError", "in": "build"}}, turn=1)
    assert PROCESS.joins(failed) == 1
    assert PROCESS.summary([failed])["counts"] == {}


def test_tools_with_a_name_are_counted_by_category() -> None:
    members = [tool("bash"), tool("Read"), tool(None), answer(("reasoning", "x")), tool("read")]
    assert PROCESS.summary(members)["counts"] == {"command": 1, "read": 2}
    assert list(PROCESS.summary(members)["counts"]) == ["command", "read"]


@pytest.mark.parametrize(
    ("member", "status"),
    [
        (tool(stage="preparing"), "open"),
        (tool(stage="start"), "open"),
        (tool(stage="start", outcome="unsettled"), "closed"),
        (tool(stage="start", outcome="unsettled", waiting="permission:p1@c1"), "open"),
        (tool(), "closed"),
        (placed("permission", decision="pending"), "open"),
        (placed("permission", decision="withdrawn"), "closed"),
        (answer(("reasoning", "x")), "open"),
        (answer(("reasoning", "x"), status="settled"), "closed"),
        (Node("retry", "r", {"status": "waiting"}), "open"),
        (Node("retry", "r", {"status": "done"}), "closed"),
    ],
)
def test_it_is_open_while_a_member_goes_on(member: Node, status: str) -> None:
    assert PROCESS.summary([tool(), member])["status"] == status
    assert PROCESS.summary([member])["title"] is None


def test_growing_text_is_never_joined_to_group_it() -> None:
    text = Text("a")
    for _ in range(3):
        text = text.append("b")
    PROCESS.joins(answer(("text", text)))
    assert text._joined is None
