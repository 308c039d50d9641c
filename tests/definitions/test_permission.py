"""Questions before a call runs: one by one, and all of one call."""

from __future__ import annotations

from typing import Any

import pytest

from assembler.engine.definition import START, UPDATE
from assembler.engine.events import Event
from assembler.engine.locations import Status
from definitions.approval import Approval
from definitions.permission import Permission
from definitions.shared import ApprovalState
from definitions.tool import Tool
from tests.definitions.support import Surroundings, delta, event, fold, matched, seen, shown

PERMISSION = Permission()
APPROVAL = Approval()


def ask(seq: int = 4, request: Any = "p1", **data: Any) -> Event:
    given = {"call_id": "c1", "request_id": request, "input": {"c": "rm x"}}
    return event(seq, "permission/request", **{**given, **data})


def reply(seq: int = 5, decision: Any = "allow", request: Any = "p1", **data: Any) -> Event:
    given = {"call_id": "c1", "request_id": request, "decision": decision}
    return event(seq, "permission/answer", **{**given, **data})


def call(arguments: str = '{"c":"ls"}') -> Event:
    return event(3, "tool/call", turn=1, step=1, call_id="c1", name="bash", arguments=arguments)


def result() -> Event:
    return event(9, "tool/result", call_id="c1", content=[])


def test_both_ids_name_a_question() -> None:
    assert PERMISSION.match(ask()) == ("p1@c1", START)
    assert PERMISSION.match(reply()) == ("p1@c1", UPDATE)
    assert PERMISSION.match(ask(request=1)) == ("1@c1", START)
    assert APPROVAL.match(ask()) == ("c1", START)
    assert APPROVAL.match(reply()) == ("c1", START)
    for odd in (ask(request=""), ask(request=None), ask(request=True), ask(call_id="")):
        assert PERMISSION.match(odd) is None
        assert APPROVAL.match(odd) is None


@pytest.mark.parametrize(
    ("answers", "tool", "facts", "decision"),
    [
        ([], [], {}, "pending"),
        ([], [call()], {}, "pending"),
        ([], [call()], {"live": False}, "withdrawn"),
        ([], [call()], {"turn_status": Status.CLOSED}, "withdrawn"),
        ([], [call()], {"turn": None, "turn_status": Status.UNKNOWN}, "pending"),
        ([], [call(), result()], {"live": False, "turn_status": Status.CLOSED}, "closed"),
        ([reply()], [call(), result()], {"live": False}, "allow"),
        ([reply(decision="deny")], [call(), result()], {}, "deny"),
        ([reply(), reply(6, "deny")], [], {}, "allow"),
    ],
)
def test_what_became_of_it(answers: Any, tool: Any, facts: Any, decision: str) -> None:
    data = shown(PERMISSION, ask(), *answers, others=[(Tool(), tool)], **facts)
    assert data == {
        "call_id": "c1",
        "request_id": "p1",
        "input": {"c": "rm x"},
        "decision": decision,
        "updated_input": None,
    }


def test_a_question_that_comes_again_answers_nothing() -> None:
    assert shown(PERMISSION, ask(4), ask(5)) == shown(PERMISSION, ask(4))
    answered = shown(PERMISSION, ask(4), reply(5, "deny"), ask(6), reply(7, "allow"))
    assert answered is not None
    assert answered["decision"] == "deny"


def test_a_result_whose_call_is_not_loaded_closes_it_and_nothing_else_does() -> None:
    printed = delta(1, "tool-output", after=3, call_id="c1", text="x")
    for items, decision in (([printed], "pending"), ([printed, result()], "closed")):
        scope = Surroundings(unstarted={("tool", "c1"): matched(Tool(), items)})
        node = PERMISSION.build(seen(PERMISSION, ask()), scope)
        assert node is not None
        assert node.data["decision"] == decision


def test_an_answer_without_its_question_has_no_row() -> None:
    assert shown(PERMISSION, reply()) is None


def test_the_input_stays_what_was_asked() -> None:
    data = shown(PERMISSION, ask(), reply(updated_input={"c": "ls"}))
    assert data is not None
    assert (data["input"], data["updated_input"]) == ({"c": "rm x"}, {"c": "ls"})


@pytest.mark.parametrize("empty", [{}, None])
def test_an_empty_input_shows_the_known_arguments(empty: Any) -> None:
    def shown_input(*tool: Any) -> Any:
        data = shown(PERMISSION, ask(input=empty), reply(), others=[(Tool(), tool)])
        assert data is not None
        return data["input"]

    assert shown_input(call()) == {"c": "ls"}
    assert shown_input(call("[")) == {}
    assert shown_input() == {}


def test_what_is_answered_reads_nothing() -> None:
    scope = Surroundings()
    PERMISSION.build(seen(PERMISSION, ask(), reply()), scope)
    assert scope.read == []


def approval(*items: Event) -> ApprovalState:
    state = fold(APPROVAL, matched(APPROVAL, items))
    assert isinstance(state, ApprovalState)
    return state


def test_the_open_questions_of_a_call() -> None:
    assert approval(ask()).unanswered == ("p1",)
    assert approval(ask(4), ask(5, 2)).unanswered == ("p1", "2")
    assert approval(ask(4), ask(5, 2), reply(6)).unanswered == ("2",)
    assert approval(reply(4), ask(5)).unanswered == ()
    assert approval(reply(4)).unanswered == ()


def test_what_an_answer_makes_run() -> None:
    new, newer = {"c": "ls"}, {"c": "pwd"}
    assert approval(ask(), reply(updated_input=new)).updated_input == new
    assert approval(ask(), reply(updated_input="x")).updated_input is None
    assert approval(ask(), reply(decision="deny", updated_input=new)).updated_input is None
    both = [reply(5, updated_input=new), reply(6, request="p2", updated_input=newer)]
    assert approval(ask(), *both).updated_input == newer
    assert approval(ask(), both[0], reply(6, updated_input=newer)).updated_input == new
    assert approval(ask(), both[0], reply(6, request="p2")).updated_input == new


def test_where_its_turn_is_not_loaded_that_of_its_call_decides() -> None:
    nowhere = {"turn": None, "turn_status": Status.UNKNOWN}
    for status, decision in ((Status.CLOSED, "withdrawn"), (Status.OPEN, "pending")):
        turns = {("tool", "c1"): status}
        data = shown(PERMISSION, ask(), turns=turns, **nowhere)
        assert data is not None
        assert data["decision"] == decision
        data = shown(PERMISSION, ask(), turns=turns)
        assert data is not None
        assert data["decision"] == "pending"
