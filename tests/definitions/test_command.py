"""What a user told the program to do."""

from __future__ import annotations

from typing import Any

import pytest

from assembler.engine.definition import START, UPDATE
from assembler.engine.events import Event
from definitions.command import Command
from tests.definitions.bench import data_of, every_way, keys_of, live
from tests.definitions.support import delta, event, shown

COMMAND = Command()


def run(seq: int = 2, **data: Any) -> Event:
    return event(seq, "command/run", command_id="k1", **{"name": "model", **data})


def done(seq: int = 3, **data: Any) -> Event:
    return event(seq, "command/done", command_id="k1", **{"output": "small", **data})


def test_its_run_begins_it() -> None:
    assert COMMAND.match(run()) == ("k1", START)
    assert COMMAND.match(done()) == ("k1", UPDATE)
    assert COMMAND.match(event(3, "command/run", name="model")) is None
    assert COMMAND.match(delta(1, "command/run", command_id="k1")) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("items", "facts", "expected"),
    [
        ([run()], {}, ("model", None, "running", None)),
        ([run()], {"closed": True}, ("model", None, "running", None)),
        ([run()], {"live": False}, ("model", None, "interrupted", None)),
        ([run(arguments="a b"), done()], {"live": False}, ("model", "a b", "done", "small")),
        ([run(), done(is_error=True)], {}, ("model", None, "failed", "small")),
        ([run(), done(is_error=False)], {}, ("model", None, "done", "small")),
        ([run(), run(4, name="x"), done(), done(6, output="x")], {},
         ("model", None, "done", "small")),
        ([done(name="model")], {"complete": False}, ("model", None, "done", "small")),
        ([done()], {"complete": False}, (None, None, "done", "small")),
    ],
)  # fmt: skip
def test_what_it_says(items: list[Event], facts: dict[str, Any], expected: Any) -> None:
    fields = ("name", "arguments", "status", "output")
    assert shown(COMMAND, *items, **facts) == dict(zip(fields, expected, strict=True))


def test_an_end_without_a_run_is_hidden_when_no_older_history_exists() -> None:
    assert shown(COMMAND, done()) is None
    bench = live(("load", [event(2, "x"), done()], True))
    assert "command:k1" in keys_of(bench)
    bench.do("prepend", [event(1, "y")], False)
    bench.check()
    assert "command:k1" not in keys_of(bench)


def test_every_way_to_arrive_says_the_same() -> None:
    turn = event(1, "turn/start", turn=1)
    bench = every_way([turn, run(), event(3, "turn/end", turn=1, reason="completed"), done(4)])
    assert keys_of(bench) == ["command:k1", "turn-tail:1"]
    assert data_of(bench, "command:k1")["output"] == "small"
    node = bench.assembler.view("chat")["command:k1"]
    assert (node.anchor, node.turn) == ((2, 0), 1)
