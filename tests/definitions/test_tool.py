"""The tool call: what its deltas and events add up to, and how that is shown."""

from __future__ import annotations

from typing import Any

import pytest

from assembler.engine.definition import FRAME, NOW, START, UPDATE, Match
from assembler.engine.events import Delta, Event
from assembler.engine.locations import Status
from definitions.approval import Approval
from definitions.nodes import FIELDS, ToolNode
from definitions.tool import Tool
from tests.definitions.support import Surroundings, delta, event, fold, matched, seen, shown

TOOL = Tool()


def piece(index: int, arguments: str = "", /, **data: Any) -> Delta:
    return delta(index, "tool-call", **{"call_id": "c1", "arguments": arguments, **data})


def call(seq: int = 3, arguments: Any = '{"p":1}', /, **data: Any) -> Event:
    given = {"turn": 1, "step": 1, "call_id": "c1", "name": "read", "arguments": arguments}
    return event(seq, "tool/call", **{**given, **data})


def result(seq: int = 4, text: str = "done", /, **data: Any) -> Event:
    content = [{"type": "text", "text": text}]
    return event(seq, "tool/result", **{"call_id": "c1", "content": content, **data})


def output(index: int, text: str, after: int = 3) -> Delta:
    return delta(index, "tool-output", attempt="out", after=after, call_id="c1", text=text)


def row(title: str, stage: str, summary: str = "", *, expandable: bool = True) -> Any:
    """The row of a call; how it reads in all its forms is `test_rows`."""
    icon = {"Read": "file", "Tool": "tool"}[title]
    said = {"icon": icon, "title": title, "summary": summary}
    return {**said, "expandable": expandable, "stage": stage}


def notes(*items: Any, complete: bool = True) -> list[tuple[str, int]]:
    scope = Surroundings(complete=complete)
    found = TOOL.notes(seen(TOOL, *items), scope)
    return [(kind, at >> 32) for kind, at in found]


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (piece(1), ("c1", START)),
        (call(), ("c1", START)),
        (result(), ("c1", UPDATE)),
        (output(1, "x"), ("c1", UPDATE)),
        (piece(1, call_id=""), None),
        (piece(1, call_id=7), None),
        (delta(1, "tool-call", arguments="{"), None),
        (delta(1, "block-end", value={"type": "tool-call", "call_id": "c1"}), ("c1", UPDATE)),
        (delta(1, "block-end", value={"type": "text", "text": "c1"}), None),
        (delta(1, "block-end"), None),
        (event(1, "tool-call", call_id="c1"), None),
        (delta(1, "tool/call", call_id="c1"), None),
    ],
)
def test_matching_reads_the_item_alone(item: Any, expected: Any) -> None:
    assert TOOL.match(item) == expected


def test_a_preparation_shows_name_time_and_text() -> None:
    data = shown(TOOL, piece(1, '{"p":', name="read"), piece(2, "1"))
    assert data == {
        **FIELDS["tool"],
        "stage": "preparing",
        "name": "read",
        "arguments_text": '{"p":1',
        "prepared": 1,
        "row": row("Read", "preparing", expandable=False),
    }


def test_without_a_name_nothing_is_visible() -> None:
    assert shown(TOOL, piece(1, "{"), piece(2, name="")) is None


def test_a_later_name_replaces_an_earlier_one() -> None:
    data = shown(TOOL, piece(1, name="plan_"), piece(2, name="plan_trip"), piece(3, "{"))
    assert data is not None
    assert data["name"] == "plan_trip"


def test_the_whole_block_replaces_its_pieces() -> None:
    value = {"type": "tool-call", "call_id": "c1", "name": "read", "arguments": '{"p":2}'}
    data = shown(TOOL, piece(1, '{"p":1}', name="re"), delta(2, "block-end", value=value))
    assert data is not None
    assert (data["stage"], data["name"]) == ("preparing", "read")
    assert (data["arguments"], data["arguments_text"]) == (None, '{"p":2}')


def test_attempts_side_by_side_are_never_glued() -> None:
    items = [piece(1, '{"a', name="x"), piece(2, '{"a":', attempt="b", name="x"), piece(3, '":1}')]
    data = shown(TOOL, *items)
    assert data is not None
    assert data["arguments_text"] == '{"a":'
    whole = shown(TOOL, items[0], items[2])
    said = row("Tool", "preparing", "x 1", expandable=False)
    assert whole == {**data, "arguments_text": '{"a":1}', "row": said}


def test_the_call_replaces_what_was_streamed() -> None:
    data = shown(TOOL, piece(1, '{"p": 0', name="write"), call(3, '{"p":1}'))
    assert data == {
        **FIELDS["tool"],
        "stage": "start",
        "name": "read",
        "arguments": {"p": 1},
        "arguments_text": '{"p":1}',
        "prepared": 1,
        "started": 3000,
        "ran_by": "host",
        "row": row("Read", "start", "1"),
    }


def test_pieces_behind_the_call_change_nothing() -> None:
    state = fold(TOOL, matched(TOOL, [call()]))
    value = {"type": "tool-call", "call_id": "c1", "arguments": "{}"}
    late = [piece(1, "{", after=3, name="x"), delta(2, "block-end", after=3, value=value)]
    for match in matched(TOOL, late, "c1"):
        assert TOOL.update(state, match) is state
        assert TOOL.extend(state, [match, match]) is state


def test_output_grows_until_the_result() -> None:
    items: list[Any] = [
        call(),
        output(1, "10%\n"),
        output(2, "80%\n"),
        result(5),
        output(3, "late", after=5),
    ]
    data = shown(TOOL, *items)
    assert data is not None
    assert data["output"] == "10%\n80%\n"
    assert data["outcome"] == "succeeded"


def test_output_is_never_a_start() -> None:
    assert fold(TOOL, matched(TOOL, [output(1, "x")])) is None
    assert shown(TOOL, output(1, "x"), complete=False) is None


@pytest.mark.parametrize(
    ("facts", "outcome"),
    [
        ({}, None),
        ({"closed": True}, "unsettled"),
        ({"live": False}, "unsettled"),
        ({"live": True}, None),
        ({"turn": None, "step": None, "turn_status": Status.UNKNOWN}, None),
    ],
)
def test_running_is_derived(facts: dict[str, Any], outcome: str | None) -> None:
    data = shown(TOOL, call(), **facts)
    assert data is not None
    assert (data["stage"], data["outcome"]) == ("start", outcome)


def test_a_real_result_wins_over_unsettled() -> None:
    data = shown(TOOL, call(), result(9), closed=True, live=False)
    assert data is not None
    assert (data["stage"], data["outcome"], data["finished"]) == ("result", "succeeded", 9000)


@pytest.mark.parametrize(
    ("given", "outcome"),
    [
        ({}, "succeeded"),
        ({"is_error": True}, "failed"),
        ({"error": {"name": "denied", "message": "no"}}, "failed"),
        ({"is_error": False, "error": None}, "succeeded"),
    ],
)
def test_the_result_says_how_it_went(given: dict[str, Any], outcome: str) -> None:
    data = shown(TOOL, call(), result(**given))
    assert data is not None
    assert (data["outcome"], data["error"]) == (outcome, given.get("error"))


def test_the_first_real_result_stays_and_others_are_noted() -> None:
    items: list[Any] = [call(), result(4, "first"), result(5, "second"), result(6, "third")]
    data = shown(TOOL, *items)
    assert data is not None
    assert (data["content"][0]["text"], data["finished"]) == ("first", 4000)
    assert notes(*items) == [("duplicate-result", 5), ("duplicate-result", 6)]


@pytest.mark.parametrize("real_first", [True, False])
def test_a_synthetic_result_never_beats_a_real_one(real_first: bool) -> None:
    synthetic = {"synthetic": True, "is_error": True}
    real: dict[str, Any] = {}
    first, second = (real, synthetic) if real_first else (synthetic, real)
    items: list[Any] = [call(), result(4, "4", **first), result(5, "5", **second)]
    data = shown(TOOL, *items)
    assert data is not None
    assert data["content"][0]["text"] == ("4" if real_first else "5")
    assert data["outcome"] == "succeeded"
    assert notes(*items) == []


def test_of_synthetic_results_the_first_stays() -> None:
    items: list[Any] = [call(), result(4, "4", synthetic=True), result(5, "5", synthetic=True)]
    data = shown(TOOL, *items)
    assert data is not None
    assert data["content"][0]["text"] == "4"
    assert notes(*items) == []


def test_an_equal_call_is_a_replay_and_another_is_noted() -> None:
    again = call(4, '{ "b": [1, 2], "a": 1.5 }')
    assert notes(call(3, '{"a":1.50,"b":[1,2]}'), again) == []
    items: list[Any] = [
        call(3, '{"a":1}'),
        call(4, '{"a":1.0}', name="write"),
        call(5, '{"a":true}'),
    ]
    assert notes(*items) == [("reused-call-id", 4), ("reused-call-id", 5)]
    data = shown(TOOL, *items)
    assert data is not None
    assert (data["name"], data["arguments"], data["started"]) == ("read", {"a": 1}, 3000)


@pytest.mark.parametrize(
    "text", ["", "[1]", '{"a":1} x', '{"a":', None, 7, '{"n":1' + "0" * 4_290 + "}"]
)
def test_arguments_that_are_no_object_are_kept_as_text(text: Any) -> None:
    items = [call(3, text)]
    data = shown(TOOL, *items)
    assert data is not None
    assert data["arguments"] is None
    assert data["arguments_text"] == (text if isinstance(text, str) else None)
    assert notes(*items) == [("unparsed-arguments", 3)]
    assert notes(*items, call(4, text)) == [("unparsed-arguments", 3)]
    assert notes(*items, call(4, "{}"))[1:] == [("reused-call-id", 4)]


def test_a_result_without_its_call_is_shown_while_older_history_may_hold_it() -> None:
    data = shown(TOOL, result(5), complete=False)
    assert data == {
        **FIELDS["tool"],
        "stage": "result",
        "outcome": "succeeded",
        "content": [{"type": "text", "text": "done"}],
        "finished": 5000,
        "row": row("Tool", "result", "done"),
    }
    assert notes(result(5), complete=False) == []
    assert shown(TOOL, result(5), complete=True) is None
    assert notes(result(5), result(6), complete=True) == [
        ("duplicate-result", 6),
        ("unmatched-result", 5),
    ]


def test_live_pieces_are_no_call_but_keep_the_row() -> None:
    items: list[Any] = [piece(1, '{"p":1}', name="read"), result(5)]
    data = shown(TOOL, *items)
    assert data is not None
    assert (data["stage"], data["name"], data["arguments"]) == ("result", "read", None)
    assert notes(*items) == [("unmatched-result", 5)]
    assert shown(TOOL, piece(1, "{"), result(5)) is None


def test_a_result_in_front_of_its_call_is_found() -> None:
    data = shown(TOOL, result(2, "x"), call(4))
    assert data is not None
    assert (data["stage"], data["content"][0]["text"]) == ("result", "x")
    assert notes(result(2, "x"), call(4)) == []


def test_a_child_names_its_parent_at_every_stage() -> None:
    parent = (TOOL, [call(2, "{}", call_id="c0")])
    stages: list[list[Any]] = [
        [piece(1, name="read", parent_call_id="c0")],
        [piece(1, name="read"), piece(2, parent_call_id="c0")],
        [piece(1, name="read", parent_call_id="c9"), piece(2, parent_call_id="c0")],
        [piece(1, "{", parent_call_id="c0"), piece(2, name="read", parent_call_id="")],
        [call(parent_call_id="c0")],
    ]
    for items in [*stages, [*stages[1], result()]]:
        for others, loaded in (((), False), ((parent,), True)):
            data = shown(TOOL, *items, others=others)
            assert data is not None
            assert (data["parent"], data["parent_loaded"]) == ("c0", loaded)


def test_who_ran_it() -> None:
    for given, expected in (({}, "host"), ({"ran_by": "provider"}, "provider")):
        data = shown(TOOL, call(**given))
        assert data is not None
        assert data["ran_by"] == expected


def ask(seq: int, request: Any = "p1", **data: Any) -> Event:
    return event(seq, "permission/request", **{"call_id": "c1", "request_id": request, **data})


def reply(seq: int, decision: str, request: Any = "p1", **data: Any) -> Event:
    given = {"call_id": "c1", "request_id": request, "decision": decision}
    return event(seq, "permission/answer", **{**given, **data})


def test_it_says_which_question_it_waits_for() -> None:
    def waiting(*items: Any, asked: Any, **facts: Any) -> Any:
        data = shown(TOOL, *items, others=[(Approval(), asked)], **facts)
        assert data is not None
        return data["waiting"]

    assert waiting(call(), asked=[ask(4)]) == "permission:p1@c1"
    assert waiting(piece(1, name="read"), asked=[ask(4)]) == "permission:p1@c1"
    assert waiting(call(), asked=[ask(4), ask(5, 2), reply(6, "allow")]) == "permission:2@c1"
    assert waiting(call(), asked=[ask(4), reply(5, "deny")]) is None
    assert waiting(call(), asked=[reply(4, "allow"), ask(5)]) is None
    assert waiting(call(), result(5), asked=[ask(4)]) is None
    assert waiting(call(), asked=[ask(4)], live=False) is None
    assert waiting(call(), asked=[ask(4)], turn_status=Status.CLOSED, closed=True) is None


def test_it_waits_for_a_question_as_long_as_that_one_is_open() -> None:
    def waiting(*asked: Any, **turns: Status) -> Any:
        named = {("permission", f"{request}@c1"): status for request, status in turns.items()}
        data = shown(TOOL, call(), others=[(Approval(), asked)], turns=named)
        assert data is not None
        return data["waiting"]

    assert waiting(ask(4), ask(5, "p2"), p1=Status.CLOSED) == "permission:p2@c1"
    assert waiting(ask(4), p1=Status.CLOSED) is None
    assert waiting(ask(4), p1=Status.OPEN) == "permission:p1@c1"


def test_the_end_of_a_block_starts_no_row() -> None:
    value = {"type": "tool-call", "call_id": "c1", "name": "read", "arguments": "{}"}
    ended = delta(1, "block-end", block=0, value=value)
    assert shown(TOOL, ended) is None
    assert shown(TOOL, piece(0, name="read"), ended) is not None


def test_arguments_are_what_runs() -> None:
    def runs(*asked: Any) -> Any:
        data = shown(TOOL, call(), others=[(Approval(), asked)])
        assert data is not None
        assert data["arguments_text"] == '{"p":1}'
        return data["arguments"]

    new = {"p": 2}
    assert runs(ask(4), reply(5, "allow")) == {"p": 1}
    assert runs(ask(4), reply(5, "allow", updated_input=new)) == new
    assert runs(ask(4), reply(5, "allow", updated_input={})) == {}
    assert runs(ask(4), reply(5, "deny", updated_input=new)) == {"p": 1}
    assert runs(ask(4), reply(5, "allow"), reply(6, "allow", updated_input=new)) == {"p": 1}
    early = shown(
        TOOL,
        piece(1, name="read"),
        others=[(Approval(), [ask(4), reply(5, "allow", updated_input=new)])],
    )
    assert early is not None
    assert early["arguments"] is None


def test_what_is_settled_reads_next_to_nothing() -> None:
    scope = Surroundings()
    context = seen(TOOL, call(), result())
    TOOL.build(context, scope)
    TOOL.notes(context, scope)
    assert scope.read == ["approval:c1", "description:c1"]


def test_the_partial_view_goes_on_where_it_stopped() -> None:
    items = [piece(1, '{"path":"a', name="read"), piece(2, 'b","n":1')]
    nodes = []
    state = None
    for match in matched(TOOL, items):
        state = TOOL.update(state, match) if state else TOOL.start(match, None)  # type: ignore[arg-type]
        context = seen(TOOL, items[0])
        context.state = state  # type: ignore[misc]
        made = TOOL.build(context, Surroundings())
        assert made is not None
        nodes.append(made.placed(match.position, 1, 1))
    first, second = nodes
    assert isinstance(first, ToolNode)
    assert isinstance(second, ToolNode)
    assert first.reader is second.reader
    assert second.partial == {"path": "ab"}
    assert first.partial == {"path": "a"}


def test_the_partial_view_exists_at_every_stage() -> None:
    for items, expected in (
        ([piece(1, "", name="x")], {}),
        ([call(3, '{"p":[1,true]}')], {"p": [1, True]}),
        ([call(3, '{"p":[1,true')], {"p": [1, True]}),
        ([result()], {}),
    ):
        made = TOOL.build(seen(TOOL, *items), Surroundings(complete=False))
        assert isinstance(made, ToolNode)
        assert made.partial == expected


def test_what_people_wait_for_is_shown_at_once() -> None:
    def cadence(item: Any) -> Any:
        role = TOOL.match(item)
        assert role is not None
        return TOOL.cadence(Match(0, item, role[1]))  # type: ignore[arg-type]

    assert cadence(piece(1, name="read")) is NOW
    assert cadence(piece(2, "{")) is FRAME
    assert cadence(output(1, "x")) is FRAME
    assert cadence(call()) is NOW
    assert cadence(result()) is NOW


def test_the_end_of_a_block_that_says_nothing_new_changes_nothing() -> None:
    pieces = [piece(1, '{"p":', name="read"), piece(2, "1}")]
    value = {"type": "tool-call", "call_id": "c1", "name": "read", "arguments": '{"p":1}'}
    end = delta(3, "block-end", after=2, block=0, value=value)
    *before, last = matched(TOOL, [*pieces, end])
    state = fold(TOOL, before)
    assert TOOL.update(state, last) is state
    other = delta(3, "block-end", after=2, block=0, value={**value, "arguments": '{"p":2}'})
    *_, last = matched(TOOL, [*pieces, other])
    changed = TOOL.update(state, last)
    assert [str(preview.text) for preview in changed.previews] == ['{"p":2}']
    assert TOOL.update(changed, last) is changed
