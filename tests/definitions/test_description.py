"""What is described of a call, as its row shows it, however its log is read."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from assembler import Assembler, Event
from assembler.engine.values import same
from definitions import catalog
from tests.definitions.support import event

PLACE = {"turn": 1, "step": 1}
BEGIN = (("turn/start", {"turn": 1}), ("step/start", PLACE))
CALL = ("tool/call", {**PLACE, "call_id": "c1", "name": "move", "arguments": '{"to": 1}'})


def started(to: Any = 1) -> tuple[str, Any]:
    return "description/started", {"call_id": "c1", "input": {"to": to}}


def ready(to: Any = 1) -> tuple[str, Any]:
    return "description/ready", {"call_id": "c1", "input": {"to": to}, "text": f"to {to}"}


def withdrawn(to: Any = 1) -> tuple[str, Any]:
    return "description/withdrawn", {"call_id": "c1", "input": {"to": to}}


def asked(to: Any = 1, request: str = "p1") -> tuple[str, Any]:
    given = {} if to is None else {"to": to}
    return "permission/request", {"call_id": "c1", "request_id": request, "input": given}


def inquiry(word: str, **more: Any) -> tuple[str, Any]:
    return f"inquiry/{word}", {"call_id": "c1", "inquiry_id": "q1", "question": "How?", **more}


def log(*told: tuple[str, Any]) -> list[Event]:
    return [event(seq, kind, **data) for seq, (kind, data) in enumerate((*BEGIN, *told), 1)]


def shown(*told: tuple[str, Any], live: bool | None = None) -> Any:
    assembler = Assembler(catalog(), strict=True)
    assembler.load(log(*told), False)
    assembler.liveness(live)
    assembler.flush()
    return assembler.view()["tool:c1"].to_json()["data"]["description"]


@pytest.mark.parametrize(
    ("told", "status", "text"),
    [
        ([started()], "describing", None),
        ([started(), ready()], "ready", "to 1"),
        ([started(), ready(), asked()], "ready", "to 1"),
        ([started(), ready(), asked(None)], "ready", "to 1"),
        ([started(), ready(), asked(True)], "withdrawn", None),
        ([started(), ready(), asked(2), asked(1, "p2")], "ready", "to 1"),
        ([started(2), ready(2), asked(None)], "withdrawn", None),
        ([started(), withdrawn()], "withdrawn", None),
        ([started(), withdrawn(), ready()], "withdrawn", None),
        ([started(), withdrawn(), started(2), ready(1)], "describing", None),
        ([started(), withdrawn(), started(2), withdrawn(1), ready(2)], "ready", "to 2"),
        ([ready()], "ready", "to 1"),
        ([started(), inquiry("opened")], "questions-open", None),
        ([started(), inquiry("opened"), inquiry("answered")], "describing", None),
        ([inquiry("opened")], "questions-open", None),
        ([inquiry("opened"), inquiry("answered")], "none", None),
        ([started(), ("turn/end", {"turn": 1})], "withdrawn", None),
        ([started(), ("tool/result", {"call_id": "c1", "content": []})], "withdrawn", None),
        ([started(), ready(), ("turn/end", {"turn": 1})], "ready", "to 1"),
    ],
)
def test_what_its_status_is(told: Any, status: str, text: str | None) -> None:
    found = shown(CALL, *told)
    assert (found["status"], found["text"]) == (status, text)


def test_without_any_there_is_none() -> None:
    assert shown(CALL, asked()) is None
    assert shown(CALL, started(), live=False)["status"] == "withdrawn"


def test_questions_end_with_what_they_were_asked_for() -> None:
    def questions(*told: tuple[str, Any], live: bool | None = None) -> list[tuple[str, Any]]:
        found = shown(CALL, started(), *told, live=live)["questions"]
        return [(each["status"], each["answer"]) for each in found]

    opened, answered = inquiry("opened"), inquiry("answered", answer="so")
    assert questions(opened) == [("open", None)]
    assert questions(opened, answered, inquiry("answered", answer="no")) == [("answered", "so")]
    assert questions(opened, inquiry("withdrawn"), answered) == [("withdrawn", None)]
    assert questions(opened, withdrawn()) == [("withdrawn", None)]
    assert questions(opened, asked(2)) == [("withdrawn", None)]
    assert questions(opened, live=False) == [("withdrawn", None)]
    assert questions(opened, answered, withdrawn(), started(2)) == []
    assert questions(withdrawn(), opened) == [("open", None)]  # asked while it runs


def test_what_is_hinted_asked_changed_and_run_stays_apart() -> None:
    allow = {"call_id": "c1", "request_id": "p1", "decision": "allow", "updated_input": {"to": 9}}
    assembler = Assembler(catalog(), strict=True)
    assembler.load(log(CALL, started(), ready(), asked(1), ("permission/answer", allow)), False)
    assembler.flush()
    tool, permission = (assembler.view()[key].to_json() for key in ("tool:c1", "permission:p1@c1"))
    assert tool["data"]["description"]["input"] == {"to": 1}
    assert tool["data"]["arguments"] == {"to": 9}
    assert permission["data"]["input"] == {"to": 1}
    assert permission["data"]["updated_input"] == {"to": 9}


def test_in_every_order_and_at_every_point_a_text_is_of_what_is_asked() -> None:
    """Live, loaded and paged agree after each event, whatever order a log has."""
    told = [CALL, started(), ready(), started(2), ready(2), asked(None)]
    for order in permutations(told):
        if order.index(ready()) < order.index(started()):
            continue
        if order.index(ready(2)) < order.index(started(2)):
            continue
        live = Assembler(catalog(), strict=True)
        events = log(*order)
        for count, each in enumerate(events, 1):
            live.append(each)
            live.flush()
            _same_as_loaded(live, events[:count])
            _of_what_is_asked(live)


def _same_as_loaded(live: Assembler, events: list[Event]) -> None:
    loaded = Assembler(catalog(), strict=True)
    half = len(events) // 2
    loaded.load(events[half:], half > 0)
    loaded.prepend(events[:half], False)
    loaded.flush()
    assert list(loaded.view().nodes) == list(live.view().nodes)


def _of_what_is_asked(assembler: Assembler) -> None:
    nodes = {node.kind: node.data for node in assembler.view().nodes}
    described = nodes.get("tool", {}).get("description")
    if described is None or described["text"] is None or "permission" not in nodes:
        return
    assert same(described["input"], nodes["permission"]["input"])
    assert described["text"] == f"to {described['input']['to']}"
