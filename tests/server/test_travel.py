"""Time travel: every moment of a recording is what the engine showed then.

Not here: the routes (`test_inspector`), the page (`tests/browser`).
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assembler import Assembler, Event, InputError, LimitError, apply
from assembler.codec import encode
from assembler.recordings import Operation as Line
from assembler.recordings import Recording, RecordingWriter, Run, read_many
from assembler.recordings.expecting import is_expectation
from assembler.recordings.format import read_lines
from assembler.server.inspecting.behind import Behind
from assembler.server.inspecting.encoding import Encoding
from assembler.server.inspecting.travel import StoppedError, Travel, recording_of
from assembler.testing import Operation, conversations, operations
from definitions import catalog
from definitions.catalog import MARKS
from tests.convergence.toys import DELTAS, EVENTS, toys

OURS = sorted((Path(__file__).parents[2] / "recordings").glob("*.jsonl"))
FAMILIAR = {"load", "append", "prepend", "evict", "emit", "settle", "liveness"}


def recorded(delivered: Sequence[Operation]) -> Recording:
    """What was delivered as a recording; what would be refused is left out."""
    file = io.BytesIO()
    writer, trial = RecordingWriter(file, title="drawn"), Assembler(toys())
    for each in delivered:
        if each.call in FAMILIAR and each.perform(trial) is None:
            getattr(writer, each.call)(*each.arguments)
    return next(read_lines(file.getvalue().splitlines(), "drawn"))


def lines_of(recording: Recording) -> list[Line]:
    return [each for each in recording.operations if not is_expectation(each)]


def plain(value: Any) -> Any:
    """A Snapshot without its revision, which is a moment here."""
    return {**value.to_json(), "revision": 0}


def held(assembler: Assembler, views: Sequence[str]) -> dict[str, Any]:
    """What one shows, without the keys of groups."""
    shown = {}
    for view in views:
        told = plain(assembler.view(view).snapshot())
        groups = [{**group, "key": ""} for group in told["groups"]]
        shown[view] = {**told, "groups": groups}
    return {**shown, "findings": [odd.to_json() for odd in assembler.findings()]}


def agrees_everywhere(recording: Recording, known: Any, jumps: Sequence[tuple[int, int]]) -> None:
    travel = Travel(recording, known)
    run = Run(recording, known)
    for moment, line in enumerate(lines_of(recording), 1):
        run.do(line)
        for view in travel.views:
            assert plain(travel.snapshot(moment, view)) == plain(
                run.assembler.view(view).snapshot()
            )
        again = travel.facts.assembler(moment, known, travel.views)
        assert held(again, travel.views) == held(run.assembler, travel.views)
    steps = [*zip(range(travel.last), range(1, travel.last + 1), strict=True), *jumps]
    for before, after in [*steps, *[(after, before) for before, after in steps]]:
        start, end = before % (travel.last + 1), after % (travel.last + 1)
        for view in travel.views:
            shown = apply(travel.snapshot(start, view), travel.patch(start, end, view))
            assert shown.to_json() == travel.snapshot(end, view).to_json()


@settings(max_examples=60, deadline=None)
@given(
    operations(conversations(EVENTS, DELTAS, moments=6)),
    st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), max_size=12),
)
def test_every_moment_is_what_a_run_of_so_many_operations_shows(
    delivered: Sequence[Operation], jumps: list[tuple[int, int]]
) -> None:
    agrees_everywhere(recorded(delivered), toys(), jumps)


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.stem)
def test_every_moment_of_our_recordings_is_what_a_run_shows(path: Path) -> None:
    for recording in read_many(str(path)):
        agrees_everywhere(recording, catalog(), [(3, 17), (0, 30), (29, 2)])


def ours(name: str) -> Travel:
    path = next(path for path in OURS if path.stem == name)
    return Travel(next(iter(read_many(str(path)))), catalog(), MARKS)


def marked(travel: Travel, mark: str) -> list[int]:
    return [at for at, moment in enumerate(travel.moments) if mark in moment.marks]


def test_what_is_odd_or_given_up_is_marked() -> None:
    travel = ours("retry-in-mid-call")
    assert marked(travel, "retry") == marked(travel, "withdrawn") == [9]
    assert marked(travel, "anomaly") == [10]
    assert [odd.kind for at, odd in travel.anomalies if at == 10] == ["late-delta"]


def test_an_attempt_that_was_completed_is_not_called_withdrawn() -> None:
    travel = Travel(
        recorded_lines(
            {"op": "append", "event": {"type": "step/start", "data": {"turn": 1, "step": 1}}},
            {"op": "delta", "attempt": "a", "turn": 1, "step": 1, "type": "text"},
            {"op": "settle", "attempt": "a", "outcome": "completed"},
            {"op": "append", "event": {"type": "step/end", "data": {"turn": 1, "step": 1}}},
        ),
        catalog(),
    )
    assert marked(travel, "withdrawn") == []


def recorded_lines(*operations: Any) -> Recording:
    header: dict[str, Any] = {"recording": 1, "title": "t"}
    lines = [json.dumps(each).encode() + b"\n" for each in (header, *operations)]
    return next(read_lines(lines, "r"))


def test_what_the_engine_refuses_is_the_last_moment_and_says_why() -> None:
    event = {"type": "note", "data": {}}
    travel = Travel(
        recorded_lines(
            {"op": "append", "event": {**event, "seq": 1}},
            {"op": "append", "event": {**event, "seq": 5}},
            {"op": "append", "event": {**event, "seq": 2}},
        ),
        catalog(),
    )
    assert travel.last == 2
    assert travel.moments[2].marks == ("fault",)
    assert "expected 2" in travel.moments[2].text
    assert (
        travel.snapshot(2, "chat").to_json() | {"revision": 1}
        == travel.snapshot(1, "chat").to_json()
    )


def test_what_is_loaded_again_with_another_content_was_another_one_before() -> None:
    def load(text: str) -> dict[str, Any]:
        said = {"message_id": "m1", "content": [{"type": "text", "text": text}]}
        events = [
            {"seq": 1, "type": "turn/start", "data": {"turn": 1}},
            {"seq": 2, "type": "user/message", "data": said},
        ]
        return {"op": "load", "events": events}

    agrees_everywhere(recorded_lines(load("one"), load("two")), catalog(), [])


def test_too_many_operations_and_unknown_moments_are_refused() -> None:
    note = {"op": "append", "event": {"type": "note"}}
    with pytest.raises(LimitError, match="moments_max = 2"):
        Travel(recorded_lines(note, note, note), catalog(), moments_max=2)
    travel = Travel(recorded_lines(note), catalog())
    for bad in (-1, 2):
        with pytest.raises(InputError, match="moment: expected 0 to 1"):
            travel.snapshot(bad, "chat")
    with pytest.raises(InputError, match="view: expected one of"):
        travel.patch(0, 1, "none")


def test_what_is_encoded_with_kept_nodes_is_what_encoding_it_anew_gives() -> None:
    travel = ours("parallel-writes")
    for room in (0, 1 << 20):
        encoding = Encoding(kept_bytes_max=room)
        for before, after in ((0, 399), (399, 300), (300, 120), (120, 121), (0, 399)):
            patch = travel.patch(before, after, "chat")
            assert encoding.patch(patch) == encode(patch)
            snapshot = travel.snapshot(after, "chat")
            assert encoding.snapshot(snapshot) == encode(snapshot)


def test_a_pass_that_nobody_waits_for_is_given_up() -> None:
    recording = ours("parallel-writes").recording
    asked: list[bool] = []

    def given_up() -> bool:
        asked.append(True)
        return len(asked) > 3

    with pytest.raises(StoppedError):
        Travel(recording, catalog(), given_up=given_up)
    assert len(asked) == 4


def test_stored_events_are_travelled_one_by_one() -> None:
    said = {"message_id": "m1", "content": [{"type": "text", "text": "hi"}]}
    events = [Event(1, "turn/start", {"turn": 1}), Event(2, "user/message", said, id="x")]
    travel = Travel(recording_of("c", events), catalog())
    assert [len(travel.snapshot(at, "chat").nodes) for at in range(3)] == [0, 0, 1]


def test_behind_a_node_stand_its_events_its_changes_and_its_state() -> None:
    travel = ours("parallel-writes")
    behind = Behind(travel)
    early = behind.node("tool:c3", 300, "chat")
    assert early is not None
    assert {item["is"] for item in early["items"]} == {"delta"}
    assert early["items_count"] == early["changed"] == 106
    assert [change["what"] for change in early["changes"]] == ["came", "changed", "changed"]
    assert early["changes"][2]["times"] > 50  # growth alone is one change
    late = behind.node("tool:c3", travel.last, "chat")
    assert late is not None
    assert [item["type"] for item in late["items"]] == ["tool/call", "tool/result"]
    assert late["context"] == "tool:c3"
    assert late["location"] == {"kind": "step", "turn": 1, "step": 2}
    assert late["state"]["call"]["call_id"] == "c3"
    json.dumps(late)
    assert behind.node("tool:c3", 10, "chat") is None


def test_a_node_that_is_gone_still_says_what_became_of_it() -> None:
    travel = ours("retry-in-mid-call")
    gone = next(
        key for key, track in travel.shown["chat"].nodes.items() if None in track.values[1:]
    )
    told = Behind(travel).node(gone, 9, "chat")
    assert told is not None
    assert told["node"] is None
    assert told["changes"][-1]["what"] == "gone"
