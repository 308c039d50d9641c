"""History that is summarised."""

from __future__ import annotations

from typing import Any

import pytest

from assembler.engine.definition import START, UPDATE
from assembler.engine.events import Event
from definitions.compaction import Compaction
from tests.definitions.bench import data_of, every_way, keys_of, live
from tests.definitions.support import delta, event, shown

COMPACTION = Compaction()


def part(seq: int, type_: str, /, **data: Any) -> Event:
    return event(seq, f"compaction/{type_}", compaction_id="k1", **data)


BEGUN = part(3, "start", before_seq=2)
SUMMARY = part(4, "summary", text="They met.", before_seq=3)
END = part(5, "end")


def test_its_start_or_its_summary_begins_it() -> None:
    roles = {"start": START, "summary": START, "end": UPDATE}
    for type_, role in roles.items():
        assert COMPACTION.match(part(3, type_)) == ("k1", role)
    assert COMPACTION.match(event(3, "compaction/start")) is None
    assert COMPACTION.match(delta(1, "compaction/end", compaction_id="k1")) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("items", "facts", "expected"),
    [
        ([BEGUN], {}, ("running", None, 2)),
        ([BEGUN], {"closed": True}, ("interrupted", None, 2)),
        ([BEGUN], {"live": False}, ("interrupted", None, 2)),
        ([BEGUN, SUMMARY], {}, ("done", "They met.", 3)),
        ([SUMMARY], {}, ("done", "They met.", 3)),
        ([BEGUN, SUMMARY, END], {"closed": True}, ("done", "They met.", 3)),
        ([BEGUN, END], {}, ("failed", None, 2)),
        ([BEGUN, SUMMARY, part(5, "end", is_error=True)], {}, ("failed", "They met.", 3)),
        ([BEGUN, SUMMARY, part(5, "end", error={"name": "x"})], {}, ("failed", "They met.", 3)),
        ([SUMMARY, END, part(6, "end", is_error=True)], {}, ("done", "They met.", 3)),
        ([part(3, "start", before_seq="2"), part(4, "summary", text=3)], {}, ("done", "", None)),
        ([SUMMARY, part(6, "summary", text="Again."), part(7, "end", before_seq=1)], {},
         ("done", "They met.", 3)),
    ],
)  # fmt: skip
def test_what_it_says(items: list[Event], facts: dict[str, Any], expected: Any) -> None:
    status, summary, before_seq = expected
    assert shown(COMPACTION, *items, **facts) == {
        "status": status,
        "summary": summary,
        "before_seq": before_seq,
    }


def test_its_end_alone_shows_nothing() -> None:
    assert shown(COMPACTION, END) is None


def test_it_shows_from_its_summary_until_its_start_is_loaded() -> None:
    bench = live(("load", [SUMMARY, END], True))
    assert keys_of(bench) == ["compaction:k1"]
    assert bench.assembler.view("chat")["compaction:k1"].anchor == (4, 0)
    bench.do("prepend", [BEGUN], True)
    bench.check()
    assert bench.assembler.view("chat")["compaction:k1"].anchor == (3, 0)
    assert bench.assembler.findings() == []


def test_every_way_to_arrive_says_the_same() -> None:
    turn = [event(1, "turn/start", turn=1), event(2, "user/message", message_id="m1")]
    done = event(6, "turn/end", turn=1, reason="completed")
    bench = every_way([*turn, BEGUN, SUMMARY, END, done])
    assert data_of(bench, "compaction:k1")["status"] == "done"
    bench = every_way([*turn, BEGUN, event(4, "turn/end", turn=1, reason="error")])
    assert data_of(bench, "compaction:k1")["status"] == "interrupted"
