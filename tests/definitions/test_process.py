"""What stands together between what an assistant says, and how it is summed up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from assembler.engine.definition import Members, Node
from assembler.engine.events import Position
from assembler.engine.values import Text
from definitions.families import CATEGORIES
from definitions.nodes import node
from definitions.process import WORDS, Process

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


def summed(*members: Node) -> Mapping[str, Any]:
    told = Counter(PROCESS.tells(member) for member in members)
    return PROCESS.summary(Members(told, members[0], members[-1], len(members)))


def test_a_member_that_failed_to_build_is_still_one() -> None:
    failed = Node("tool", "c1", {"error": {"name": "ValueError", "in": "build"}}, turn=1)
    assert PROCESS.joins(failed) == 1
    assert summed(failed) == {"counts": {}, "status": "closed", "title": "Working"}


def test_tools_with_a_name_are_counted_by_category() -> None:
    members = [tool("bash"), tool("Read"), tool(None), answer(("reasoning", "x")), tool("read")]
    counts = summed(*members)["counts"]
    assert list(counts.items()) == [("read", 2), ("command", 1)]


def test_every_category_has_its_words() -> None:
    assert WORDS.keys() == CATEGORIES


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
    assert summed(tool(), member)["status"] == status
    assert summed(member)["status"] == status


RUNNING = {"stage": "start"}
WRITTEN = {"stage": "preparing"}
THINKING = answer(("reasoning", "x"))
THOUGHT = answer(("reasoning", "x"), status="settled")


@pytest.mark.parametrize(
    ("title", "members"),
    [
        ("Read a file", [tool()]),
        ("Read 2 files and ran a command", [tool("bash"), tool(), THOUGHT, tool("Read")]),
        ("Ran code 2 times, wrote a file and edited a file", "python write edit python"),
        ("Read a file, ran a search, wrote a file and more", "bash write grep read"),
        ("Used 2 tools and searched the web", "one web_search two"),
        ("Looked at 2 images and updated the plan", "view_image todo_write view_image"),
        ("Fetched a page, ran a subagent and asked a question", "ask web_fetch task"),
        ("Running a command", [tool(), tool(), tool("bash", **RUNNING)]),
        ("Reading 2 files and running a search", [tool(**RUNNING)] * 2 + [tool("ls", **RUNNING)]),
        ("Running a command", [tool("bash", **RUNNING), tool("write", **WRITTEN), THINKING]),
        ("Preparing to write a file", [tool("bash"), tool("write", **WRITTEN), THINKING]),
        ("Preparing to run 2 commands", [tool("bash", **WRITTEN)] * 2),
        (
            "Waiting for permission",
            [tool("bash", **RUNNING), placed("permission", decision="pending")],
        ),
        ("Waiting for permission", [tool("bash", waiting="permission:p1@c1", **RUNNING)]),
        ("Thinking", [tool(), THINKING]),
        ("Thinking", [THINKING]),
        ("Trying again", [tool(), placed("retry", status="waiting"), THINKING]),
        ("Trying again", [placed("retry", status="running")]),
        ("Thought", [THOUGHT]),
        ("Tried again", [THOUGHT, placed("retry", status="done")]),
        ("Asked for permission", [placed("permission", decision="deny")]),
        ("Read a file", [tool(**RUNNING, outcome="unsettled")]),
        ("Working", [tool(None, **RUNNING)]),
    ],
)
def test_its_title_says_what_goes_on_else_what_was_done(title: str, members: Any) -> None:
    if isinstance(members, str):
        members = [tool(name) for name in members.split()]
    assert summed(*members)["title"] == title
    assert summed(*reversed(members))["title"] == title


def test_growing_text_is_never_joined_to_group_it() -> None:
    text = Text("a")
    for _ in range(3):
        text = text.append("b")
    PROCESS.joins(answer(("text", text)))
    assert text._joined is None
