"""What the coordinator decides, one rule at a time; all their orders are in `test_histories`."""

from __future__ import annotations

from typing import Any

import pytest

from assembler import InputError
from assembler.engine.events import Draft, Event
from assembler.engine.values import thaw
from definitions.describer import Core, Shown, Start, Stop, Write
from tests.definitions.support import event


def core(**given: Any) -> Core:
    return Core(lambda tool: tool != "secret", **given)


def starts(made: Core) -> list[Start]:
    return [action for action in made.actions() if isinstance(action, Start)]


def shown(made: Core) -> list[tuple[str, str | None]]:
    told = [action for action in made.actions() if isinstance(action, Shown)]
    return [(action.verdict, action.text) for action in told]


def written(made: Core) -> list[str]:
    drafts: list[Draft] = [each.draft for each in made.actions() if isinstance(each, Write)]
    return [draft.type for draft in drafts]


def described(made: Core, call_id: str = "c1", attempt: str | None = "a1") -> None:
    made.hint(call_id, "move", {"to": 1}, attempt)
    for start in starts(made):
        made.finished(start.job, "Moves it.")
    made.actions()


@pytest.mark.parametrize(
    "asked",
    [{"to": True}, {"to": 1.0}, {"to": "1"}, {}, {"to": 1, "by": None}, None, [1], {"To": 1}],
)
def test_what_is_not_equal_as_json_is_described_again(asked: Any) -> None:
    made = core()
    described(made)
    assert made.request("c1", "move", asked) == "again"
    assert thaw(starts(made)[0].input) == (asked or {})


def test_a_hint_that_is_changed_later_stays_what_it_was() -> None:
    given = {"to": 1, "by": ["hand"]}
    made = core()
    made.hint("c1", "move", given)
    given["by"].append("cart")  # type: ignore[attr-defined]
    assert made.request("c1", "move", {"to": 1, "by": ["hand"]}) == "wait"
    assert made.request("c1", "move", given) == "again"


def test_an_empty_request_asks_about_the_arguments_of_the_dispatched_call() -> None:
    made = core()
    described(made)
    made.hear(event(1, "tool/call", call_id="c1", name="move", arguments='{"to": 1}'))
    assert made.request("c1", "move", {}) == "reuse"
    made = core()
    made.request("c1", "move", {}, "p1")
    first = starts(made)[0]
    made.hear(event(1, "tool/call", call_id="c1", name="move", arguments='{"to": 1}'))
    second = starts(made)[0]
    assert second.input == {"to": 1}
    made.finished(first.job, "Moves nothing.")
    made.finished(second.job, "Moves it.")
    assert shown(made) == [("again", "Moves it.")]


def test_a_failed_description_of_a_hint_is_tried_again_once_when_somebody_waits() -> None:
    made = core()
    made.hint("c1", "move", {"to": 1})
    first = starts(made)[0]
    assert made.request("c1", "move", {"to": 1}) == "wait"
    made.actions()
    made.failed(first.job)
    actions = made.actions()
    second = next(action for action in actions if isinstance(action, Start))
    assert [each.verdict for each in actions if isinstance(each, Shown)] == ["again"]
    made.failed(second.job)
    assert shown(made) == [("again", None)]
    assert made.is_idle


def test_another_attempt_has_another_call() -> None:
    made = core()
    described(made)
    assert made.request("c1", "move", {"to": 1}, attempt="a2") == "again"
    made = core()
    described(made)
    made.abandon("a1")
    made.hint("c1", "move", {"to": 1}, "a1")  # its stream goes on speaking
    assert starts(made) == []
    made.hint("c1", "move", {"to": 1}, "a2")
    assert made.request("c1", "move", {"to": 1}, attempt="a2") == "wait"


@pytest.mark.parametrize("tool", ["secret", "move"])
def test_what_may_not_be_described_is_not(tool: str) -> None:
    made = core()
    described(made, "c0")
    made.hear(event(1, "tool/call", call_id="c0", name="move", arguments="{}"))
    no = {"call_id": "c0", "request_id": "1", "decision": "deny", "remember": True}
    made.hear(event(2, "permission/answer", **no))
    made.actions()
    made.hint("c1", tool, {"to": 1})
    assert made.request("c1", tool, {"to": 1}) == "none"
    assert starts(made) == []


def test_a_refusal_to_be_remembered_ends_what_is_described_of_its_tool() -> None:
    made = core()
    made.hint("c1", "move", {"to": 1})
    made.hint("c2", "move", {"to": 2})
    asks = starts(made)[1]
    made.ask(asks.job, "q1", "Which?")
    made.actions()
    made.request("c1", "move", {"to": 1}, "p1")
    no = {"call_id": "c1", "request_id": "p1", "decision": "deny", "remember": True}
    made.hear(event(2, "permission/answer", **no))
    assert written(made) == ["description/withdrawn", "inquiry/withdrawn", "description/withdrawn"]
    assert made.is_idle
    assert made.open_questions == ()


@pytest.mark.parametrize(
    "over",
    [
        event(9, "tool/result", call_id="c1", content=[]),
        event(9, "turn/end", turn=1, reason="cancelled"),
        event(9, "step/end", turn=1, step=1),
        event(9, "turn/start", turn=2),
        event(9, "llm/retry", turn=1, step=1, attempt="a1"),
    ],
    ids=lambda over: over.type,
)
def test_what_is_over_is_withdrawn_and_a_late_hint_starts_nothing(over: Event) -> None:
    made = core()
    made.hint("c1", "move", {"to": 1}, "a1")
    job = starts(made)[0].job
    made.ask(job, "q1", "Which?")
    made.actions()
    made.hear(over)
    actions = made.actions()
    assert Stop(job) in actions
    kinds = [action.draft.type for action in actions if isinstance(action, Write)]
    assert kinds == ["inquiry/withdrawn", "description/withdrawn"]
    if over.type != "turn/start":
        made.hint("c1", "move", {"to": 1}, "a1")
        assert starts(made) == []


def test_history_starts_nothing_and_is_known() -> None:
    made = core()
    log = [
        event(1, "tool/call", call_id="c1", name="move", arguments='{"to": 1}'),
        event(2, "permission/request", call_id="c1", request_id="1", input={"to": 1}),
        event(3, "description/started", call_id="c1", input={"to": 1}),
        event(4, "inquiry/opened", call_id="c1", inquiry_id="q1", question="Which?"),
        event(5, "permission/answer", call_id="c1", request_id="1", decision="deny", remember=True),
    ]
    for each in log:
        made.learn(each)
        assert made.actions() == []
    assert made.request("c2", "move", {"to": 2}) == "none"


def test_who_is_asked_about_goes_first_and_so_many_go_together() -> None:
    made = core(at_once=1)
    for number in (1, 2, 3):
        made.hint(f"c{number}", "move", {"to": number})
    first = starts(made)
    made.request("c3", "move", {"to": 3})
    assert starts(made) == []
    made.withdraw("c1")
    assert [start.call_id for start in first + starts(made)] == ["c1", "c3"]
    with pytest.raises(InputError):
        core(at_once=0)


def test_a_hint_that_is_none_says_nothing_and_a_request_that_is_none_raises() -> None:
    made = core()
    deep: Any = {}
    for _ in range(199):
        deep = {"a": deep}
    for odd in ([1], "text", None, {"a": object()}, {"a": float("nan")}, deep):
        made.hint("c1", "move", odd)
    assert made.actions() == []
    with pytest.raises(InputError):
        made.request("c1", "move", {"a": object()})
    assert made.actions() == []
    made.hint("c1", "move", {"to": 1})
    made.finished(starts(made)[0].job, "half \ud83d")
    assert written(made) == ["description/ready"]


def test_each_question_is_answered_once_and_goes_with_its_description() -> None:
    made = core()
    made.hint("c1", "move", {"to": 1})
    job = starts(made)[0].job
    assert made.ask(job, "q1", "Which?")
    assert not made.ask(job, "q1", "Which?")
    assert made.answer("q1", "left")
    assert not made.answer("q1", "right")
    made.ask(job, "q2", "How?")
    made.request("c1", "move", {"to": 2})
    assert not made.answer("q2", "so")
    assert written(made) == [
        "inquiry/opened",
        "inquiry/answered",
        "inquiry/opened",
        "inquiry/withdrawn",
        "description/withdrawn",
        "description/started",
    ]
    assert not made.ask(job, "q3", "Why?")
