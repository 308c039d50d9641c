from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from assembler import (
    START,
    Assembler,
    Definition,
    Delta,
    Event,
    LimitError,
    Node,
    Outcome,
    RecordingError,
    plugins,
)
from assembler.recordings import RecordingWriter, Run, arriving, check, read, read_many, write
from assembler.recordings.arriving import PATHS, Facts, arrive, disagreement
from assembler.recordings.checking import check_recording
from assembler.recordings.expecting import differences
from assembler.recordings.files import atomic
from assembler.recordings.format import Operation, Recording, check_operation, frozen, read_lines
from assembler.recordings.matching import first_difference, missing_from
from assembler.recordings.running import missing_needs
from definitions.nodes import FIELDS as NODE_KINDS

OURS = Path(__file__).parents[2] / "recordings"
FILES = sorted(OURS.glob("*.jsonl"))
HEADER = {"recording": 1, "title": "t"}


def lines(*values: Mapping[str, Any] | bytes) -> list[bytes]:
    return [
        value if isinstance(value, bytes) else json.dumps(value).encode() + b"\n"
        for value in values
    ]


def recording(*operations: Mapping[str, Any], **header: Any) -> Recording:
    return next(read_lines(lines({**HEADER, **header}, *operations), "r"))


def user(seq: int | None = None, text: str = "hi", **more: Any) -> dict[str, Any]:
    event = {
        "type": "user/message",
        "data": {"message_id": f"m{seq}", "content": [{"type": "text", "text": text}]},
        **more,
    }
    return event if seq is None else {"seq": seq, **event}


def said(text: str, **more: Any) -> dict[str, Any]:
    data = {"block": 0, "text": text}
    return {
        "op": "delta",
        "attempt": "a",
        "turn": 1,
        "step": 1,
        "type": "text",
        "data": data,
    } | more


# Our recordings


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_our_recordings_hold(path: Path) -> None:
    result = check(path)
    assert result, [str(failure.difference) for failure in result.reports[0].failures]
    assert str(result) == "1 passed, 0 failed"


def test_one_recording_has_every_kind_of_row() -> None:
    recording = read(OURS / "every-kind.jsonl")
    asked = [each.fields for each in recording.operations if "nodes" in each.fields]
    last = {fields.get("view", "chat"): fields["nodes"] for fields in asked}
    shown = [node["key"].partition(":")[0] for nodes in last.values() for node in nodes]
    assert set(shown) == set(NODE_KINDS)


def test_the_readme_names_every_recording() -> None:
    readme = (OURS / "README.md").read_text()
    assert [path.name for path in FILES if f"`{path.name}`" not in readme] == []


def _falsified(fields: Mapping[str, Any], keys: list[str]) -> dict[str, Any] | None:
    """The same expectation, asking for something that is not so."""
    wrong = dict(fields)
    for name in ("nodes", "groups", "anomalies"):
        if name in wrong:
            return {**wrong, name: [*wrong[name], {"key": "nobody"}]}
    for name in ("calls", "described"):
        if name in wrong:
            return {**wrong, name: [*wrong[name], {"call_id": "nobody"}]}
    if "prepared" in wrong:
        return {**wrong, "prepared": {**wrong["prepared"], "nobody": 1}}
    if "node" in wrong:
        return {**wrong, "is": {**wrong["is"], "kind": "@absent"}}
    if "absent" in wrong:
        return {**wrong, "absent": [*wrong["absent"], keys[0]]}
    if "partial" in wrong:
        return {**wrong, "partial": {name: {"no": 1} for name in wrong["partial"]}}
    if wrong["op"] == "raises":
        return {**wrong, "error": "LimitError"}
    return None


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_expectation_of_ours_can_fail(path: Path) -> None:
    whole = read(path)
    tried = 0
    for place, operation in enumerate(whole.operations):
        if operation.name not in ("expect", "raises"):
            continue
        before = Run(whole, plugins.catalog())
        for earlier in whole.operations[:place]:
            if earlier.name not in ("expect", "raises", "converges"):
                before.do(earlier)
            elif "anomalies" in earlier.fields:
                differences(before, earlier)
        view = operation.fields.get("view", "chat")
        keys = [node.key for node in before.assembler.view(view).nodes]
        wrong = _falsified(operation.fields, keys)
        assert wrong is not None
        assert differences(before, Operation(1, operation.name, frozen(wrong)))
        tried += 1
    assert tried > 2


def test_an_expectation_speaks_of_the_view_that_it_names() -> None:
    step = {"type": "step/start", "data": {"turn": 1, "step": 1}}
    run = ran({"op": "append", "event": step})

    def found(**fields: Any) -> list[str]:
        asked = Operation(1, "expect", frozen({"op": "expect", **fields}))
        return [difference.path for difference in differences(run, asked)]

    steps = [{"key": "step:1.1"}]
    assert found(view="trajectory", nodes=steps, groups=[]) == []
    assert found(view="trajectory", node="step:1.1", **{"is": {"turn": 1}}) == []
    assert found(view="trajectory", absent=["step:1.1"]) == ["step:1.1"]
    assert found(view="trajectory", nodes=[]) == found(nodes=steps) == ["nodes"]
    assert found(node="step:1.1", **{"is": {}}) == ["node"]
    assert found(view="chat", nodes=[]) == found(absent=["step:1.1"]) == []
    assert found(view="other", nodes=[]) == ["view"]


# Reading: one clear line for every fault

NESTED = b'{"op": "append", "event": ' + b"[" * 10_000 + b"]" * 10_000 + b"}\n"
DEEP = b'{"op": "load", "events": ' + b"[" * 250 + b"]" * 250 + b"}\n"

EVICT = {"op": "evict", "before": 1}
FAULTS: list[tuple[str, list[Any], str]] = [
    ("empty", [], 'r:1: recording: expected a first line {"recording": 1, …}, got an empty file'),
    ("no header", [{"op": "converges"}], "r:1: recording: expected a first line"),
    ("newer", [{"recording": 2}], "r:1: recording: expected version 1, got 2"),
    ("header", [{"recording": "1"}], 'r:1: recording: expected an integer, got "1"'),
    ("title", [{"recording": 1, "title": 5}], "r:1: title: expected a text, got 5"),
    ("without", [{**HEADER, "without": [1]}], "r:1: without: expected a list of texts, got [1]"),
    ("kinds", [{**HEADER, "without": "retry"}], 'r:1: without: expected a list of texts, got "re'),
    ("no kinds", [{**HEADER, "without": None}], "r:1: without: expected a list of texts, got null"),
    (
        "hidden",
        [{**HEADER, "hidden_tools": "x"}],
        "r:1: hidden_tools: expected a list of texts, go",
    ),
    ("hiding", [{**HEADER, "hidden_tools": [None]}], "r:1: hidden_tools: expected a list of text"),
    ("truncated", [HEADER, b'{"op": "app'], "r:2: line: expected JSON, got only its beginning"),
    ("no JSON", [HEADER, b"hello\n"], "r:2: line: expected JSON, got something else"),
    ("no object", [HEADER, b"[1]\n"], "r:2: line: expected an object, got [1]"),
    ("nested", [HEADER, NESTED], "r:2: line: expected JSON of some depth, got one nested"),
    ("deep", [HEADER, DEEP], "r:2: a value is nested deeper than depth_max"),
    ("surrogate", [HEADER, b'{"op": "\\ud83d"}\n'], "r:2: line: expected JSON, got"),
    ("not UTF-8", [HEADER, b'{"op": "\xff"}\n'], "r:2: line: expected UTF-8, got other bytes"),
    ("no op", [HEADER, {"event": {}}], "r:2: op: expected one of abandon, append, "),
    ("unknown op", [HEADER, {"op": "jump"}], 'got "jump"'),
    ("op no text", [HEADER, {"op": 5}], "r:2: op: expected one of abandon, append, "),
    ("missing", [HEADER, {"op": "append"}], "r:2: event: expected an event (an object), got noth"),
    (
        "misspelt",
        [HEADER, {"op": "evict", "before": 1, "b": 2}],
        "r:2: evict: expected one of befo",
    ),
    ("kind", [HEADER, {"op": "evict", "before": "1"}], 'r:2: before: expected an integer, got "1"'),
    ("bool", [HEADER, {"op": "evict", "before": True}], "r:2: before: expected an integer, got tr"),
    (
        "outcome",
        [HEADER, {"op": "settle", "attempt": "a", "outcome": "ok"}],
        "r:2: outcome: expect",
    ),
    ("live", [HEADER, {"op": "liveness", "live": 1}], "r:2: live: expected true, false or null"),
    ("events", [HEADER, {"op": "load", "events": [1]}], "r:2: events: expected a list of events"),
    ("event", [HEADER, {"op": "append", "event": {"seq": 1}}], "r:2: event.type: expected a value"),
    ("seq", [HEADER, {"op": "append", "event": user(0)}], "r:2: event.seq: expected at least 1"),
    ("page", [HEADER, {"op": "load", "events": [user(1), user()]}], "r:2: events[1].seq: expected"),
    (
        "field",
        [HEADER, {"op": "append", "event": user(1, x=1)}],
        "r:2: event: expected one of seq, type, ",
    ),
    (
        "data",
        [HEADER, {"op": "append", "event": user(1, data=1)}],
        "r:2: event.data: expected an o",
    ),
    ("expect", [HEADER, {"op": "expect"}], "r:2: expect: expected one of nodes, "),
    (
        "view alone",
        [HEADER, {"op": "expect", "view": "chat"}],
        "r:2: expect: expected one of nodes, ",
    ),
    ("view", [HEADER, {"op": "expect", "view": 1, "nodes": []}], "r:2: view: expected a text, got"),
    ("is", [HEADER, {"op": "expect", "node": "a:b"}], "r:2: is: expected a value beside the other"),
    (
        "of",
        [HEADER, {"op": "raises", "error": "E", "of": {"op": "no"}}],
        "r:2: of.op: expected one",
    ),
    (
        "range",
        [
            HEADER,
            {"op": "raises", "error": "E", "of": EVICT, "missing": [1]},
        ],
        "r:2: missing: expected two integers, got [1]",
    ),
]


ASKING: list[dict[str, Any]] = [
    {"op": "converges"},
    {"op": "expect", "nodes": []},
    {"op": "raises", "error": "E", "of": EVICT},
]


@pytest.mark.parametrize("asked", ASKING, ids=[asked["op"] for asked in ASKING])
def test_what_changes_nothing_raises_nothing(asked: dict[str, Any]) -> None:
    with pytest.raises(RecordingError) as caught:
        recording({"op": "raises", "error": "E", "of": asked})
    said, _, got = str(caught.value).partition(", got ")
    assert said.startswith("r:2: of.op: expected one of abandon, append, ")
    assert not {"converges", "expect", "raises"} & set(said.replace(",", "").split())
    assert got == f'"{asked["op"]}"'


def test_a_writer_checks_its_header() -> None:
    for header in ({"without": "x"}, {"hidden_tools": [1]}, {"title": 5}):
        with pytest.raises(RecordingError, match="<header>:1: "):
            RecordingWriter(io.BytesIO(), **{"title": "t", **header})  # type: ignore[arg-type]


@pytest.mark.parametrize(("values", "message"), [f[1:] for f in FAULTS], ids=[f[0] for f in FAULTS])
def test_a_fault_is_one_line_with_file_line_and_field(values: list[Any], message: str) -> None:
    with pytest.raises(RecordingError) as caught:
        list(read_lines(lines(*values), "r"))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_misspelt_field_of_an_event_is_named() -> None:
    with pytest.raises(RecordingError, match=r'r:2: event: expected one of seq, .*, got "tpye"$'):
        list(read_lines(lines(HEADER, {"op": "append", "event": {"seq": 1, "tpye": "x"}}), "r"))


def test_nothing_raw_of_a_bad_line_reaches_the_message() -> None:
    with pytest.raises(RecordingError) as caught:
        list(read_lines(lines(HEADER, b"\x1b[31m\x07\n"), "r"))
    assert "\x1b" not in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="expected a file, got a directory"):
        read(tmp_path)
    with pytest.raises(RecordingError, match=r"none\.jsonl: no such file$"):
        read(tmp_path / "none.jsonl")


def test_several_recordings_may_follow_each_other(tmp_path: Path) -> None:
    path = tmp_path / "two.jsonl"
    path.write_bytes(b"".join(lines(HEADER, {"op": "converges"}, b"\n", {**HEADER, "title": "u"})))
    first, second = read_many(path)
    assert (first.title, first.name, len(first.operations)) == ("t", str(path), 1)
    assert (second.title, second.name, second.operations) == ("u", f"{path}:4", ())
    with pytest.raises(RecordingError, match="4: recording: expected only one recording"):
        read(path)


# Playing


def ran(*operations: Mapping[str, Any], definitions: Any = None, **header: Any) -> Run:
    run = Run(recording(*operations, **header), definitions or plugins.catalog())
    for operation in run.recording.operations:
        run.do(operation)
    return run


def test_what_is_left_out_is_the_next_one() -> None:
    run = ran(
        {"op": "append", "event": user()},
        {"op": "append", "event": user(2, time=5)},
        said("a"),
        said("b"),
        said("c", ordinal=5, index=7),
        said("d", attempt="b"),
        {"op": "append", "event": user()},
        said("e", attempt="b", time=9),
    )
    events = [(event.seq, event.time) for event in run.assembler.events]
    assert events == [(1, 1_000), (2, 5), (3, 3_000)]
    told = [(d.attempt, d.ordinal, d.after, d.index, d.time) for d in run.assembler.deltas]
    assert told == [
        ("a", 0, 2, 1, 2001),
        ("a", 1, 2, 2, 2002),
        ("b", 0, 2, 8, 2008),
        ("b", 1, 3, 9, 9),
    ]


def test_every_operation_is_followed_by_a_flush() -> None:
    run = ran({"op": "append", "event": user()})
    assert [op.to_json()["op"] for op in run.patches["chat"].ops] == ["put"]
    assert not run.assembler.flush()["chat"]


REFUSED = [
    ([user(1), user(3)], "r:3: event.seq: expected 2, got 3: event 2 is missing"),
    ([user(1), user(4)], "r:3: event.seq: expected 2, got 4: events 2 to 3 are missing"),
    ([user(1), user(1, text="other")], "r:3: append: expected what agrees with the lines before"),
]


@pytest.mark.parametrize(("events", "message"), REFUSED)
def test_what_the_engine_refuses_is_bad_input(events: list[Any], message: str) -> None:
    with pytest.raises(RecordingError) as caught:
        ran(*({"op": "append", "event": event} for event in events))
    assert message in str(caught.value)


def test_a_hole_in_a_page_is_bad_input() -> None:
    with pytest.raises(
        RecordingError, match=r"r:2: events: expected all .* events 2 to 3 are missing"
    ):
        ran({"op": "load", "events": [user(1), user(4)]})


def test_the_facts_are_what_was_ever_loaded_back_to_a_hole() -> None:
    run = ran(
        {"op": "load", "events": [user(4), user(5)], "has_more": True},
        {"op": "prepend", "events": [user(2), user(3)], "has_more": True},
        {"op": "evict", "before": 5},
        {"op": "append", "event": user()},
        {"op": "liveness", "live": False},
    )
    assert [event.seq for event in run.facts().events] == [2, 3, 4, 5, 6]
    assert (run.facts().has_more, run.facts().live) == (True, False)
    run.load([user(9)], has_more=True)
    assert [event.seq for event in run.facts().events] == [9]


def test_what_a_page_says_beyond_the_window_is_no_fact() -> None:
    run = ran(
        {"op": "load", "events": [user(4), user(5)], "has_more": True},
        {"op": "prepend", "events": [user(seq) for seq in range(3, 8)], "has_more": True},
    )
    assert [event.seq for event in run.facts().events] == [3, 4, 5]
    assert disagreement(run.assembler, run.facts(), run.definitions) is None


# Expectations


def failures(*operations: Mapping[str, Any], definitions: Any = None, **header: Any) -> list[str]:
    report = check_recording(recording(*operations, **header), definitions or plugins.catalog())
    assert report.reason is None, report.reason
    return [f"{failure.line}: {failure.difference}" for failure in report.failures]


SHOWN = {"key": "user:m1", "data": {"content": [{"type": "text", "text": "hi"}], "source": None}}
APPEND = {"op": "append", "event": user(1)}

MATCHES: list[tuple[Any, Any, list[str]]] = [
    ({"a": 1, "b": 2}, {"a": 1}, []),
    ({"a": 1}, {"b": 1}, ["b: expected 1, got nothing"]),
    ({"a": {}}, {"a": {}}, []),
    ({"a": {"b": 1}}, {"a": {}}, ['a: expected {}, got {"b":1}']),
    ({"a": []}, {"a": []}, []),
    ({"a": [1]}, {"a": []}, ["a: expected [], got [1]"]),
    ([{"a": 1, "b": 2}, 3], [{"a": 1}, 3], []),
    ([1, 2], [2, 1], ["[0]: expected 2, got 1", "[1]: expected 1, got 2"]),
    ([1], [1, 1], [": expected [1,1], got [1]"]),
    ([{"key": "k", "x": 1}], [], [': expected [], got ["k"]']),
    (1, True, [": expected true, got 1"]),
    (1, 1.0, [": expected 1.0, got 1"]),
    (None, None, []),
    ({"a": None}, {"a": "@any"}, ['a: expected "@any", got null']),
    ({}, {"a": "@any"}, ['a: expected "@any", got nothing']),
    ({"a": 0}, {"a": "@any"}, []),
    ({}, {"a": "@absent"}, []),
    ({"a": None}, {"a": "@absent"}, ['a: expected "@absent", got null']),
    ({"a": {"b": [{"c": 1}]}}, {"a": {"b": [{"c": 2}]}}, ["a.b[0].c: expected 2, got 1"]),
    ({"a": None}, {"a": {}}, ["a: expected {}, got null"]),
]


@pytest.mark.parametrize(("value", "pattern", "found"), MATCHES)
def test_patterns(value: Any, pattern: Any, found: list[str]) -> None:
    assert [str(each) for each in missing_from(value, pattern)] == found


def test_a_long_value_is_cut_in_a_message_and_whole_for_machines() -> None:
    (found,) = missing_from("x" * 1_000_000, "y")
    assert len(str(found)) < 250
    assert len(found.to_json()["got"]) == 1_000_000


def test_first_difference() -> None:
    assert first_difference({"a": [1, {"b": 2}]}, {"a": [1, {"b": 2}]}) is None
    assert str(first_difference({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]})) == (
        "a[1].b: expected 2, got 3"
    )
    assert str(first_difference({"a": 1}, {})) == "a: expected 1, got nothing"
    assert str(first_difference({}, {"a": 1})) == "a: expected nothing, got 1"
    assert str(first_difference([1], [1, 2])) == ": expected [1], got [1,2]"


EXPECTATIONS: list[tuple[dict[str, Any], list[str]]] = [
    ({"nodes": [SHOWN]}, []),
    ({"nodes": []}, ['3: nodes: expected [], got ["user:m1"]']),
    ({"nodes": [{"key": "user:m1", "turn": 5}]}, ["3: nodes[0].turn: expected 5, got null"]),
    ({"node": "user:m1", "is": {"kind": "user"}}, []),
    ({"node": "user:m1", "is": {"kind": "x"}}, ['3: user:m1.kind: expected "x", got "user"']),
    ({"node": "user:m2", "is": {}}, ['3: node: expected "user:m2", got ["user:m1"]']),
    ({"absent": ["user:m2"]}, []),
    ({"absent": ["user:m1"]}, ['3: user:m1: expected "@absent", got "visible"']),
    ({"groups": []}, []),
    ({"groups": [{"kind": "g"}]}, ['3: groups: expected [{"kind":"g"}], got []']),
    ({"anomalies": []}, []),
    ({"anomalies": [{"kind": "x"}]}, ['3: anomalies: expected [{"kind":"x"}], got []']),
    ({"nodes": [SHOWN], "absent": ["user:m1"]}, ['3: user:m1: expected "@absent", got "visible"']),
]


@pytest.mark.parametrize(("expected", "found"), EXPECTATIONS)
def test_expectations(expected: dict[str, Any], found: list[str]) -> None:
    assert failures(APPEND, {"op": "expect", **expected}) == found


def test_without_leaves_kinds_out_of_nodes_alone() -> None:
    asked = {"op": "expect", "nodes": [], "node": "user:m1", "is": {"kind": "user"}}
    assert failures(APPEND, asked, without=["user"]) == []


def test_anomalies_are_those_since_the_last_such_line() -> None:
    late = {"op": "settle", "attempt": "a", "outcome": "failed"}
    one = {"op": "expect", "anomalies": [{"kind": "late-delta", "key": "a"}]}
    none = {"op": "expect", "anomalies": []}
    assert failures(said("x"), late, said("y"), one, none, said("z"), one, none) == []
    assert len(failures(said("x"), late, said("y"), {"op": "expect", "nodes": []}, none)) == 1


RAISES = {"op": "raises", "error": "GapError", "of": {"op": "append", "event": user(3)}}


def test_raises() -> None:
    assert failures(APPEND, {**RAISES, "missing": [2, 2]}) == []
    assert failures(APPEND, {**RAISES, "error": "AssemblerError"}) == []
    assert failures(APPEND, {**RAISES, "missing": [2, 3]}) == [
        "3: missing[1]: expected 3, got 2",
    ]
    assert failures(APPEND, {**RAISES, "error": "ConflictError"}) == [
        '3: error: expected "ConflictError", got "GapError"'
    ]
    assert failures(APPEND, {**RAISES, "of": {"op": "append", "event": user(2)}}) == [
        '3: error: expected "GapError", got null'
    ]
    wrong = {"op": "append", "event": {"seq": "x", "type": "t"}}
    assert failures({"op": "raises", "error": "InputError", "of": wrong}) == []


def test_raises_notices_what_changed_all_the_same() -> None:
    def half_done(run: Run, fields: Mapping[str, Any]) -> None:
        run.append(fields["event"])
        message = "too late"
        raise LimitError(message)

    plugged = plugins.Operations(
        fields={"half": {"event": "event"}}, runners={"half": half_done}, needs={"half": "luck"}
    )
    of = {"op": "half", "event": user(1)}
    values = lines(HEADER, {"op": "raises", "error": "LimitError", "of": of})
    (broken,) = read_lines(values, "r", plugged)
    run = Run(broken, plugins.catalog(), plugged=plugged)
    paths = [found.path for found in differences(run, broken.operations[0])]
    assert paths == [f"after the error: {what}" for what in ("chat", "trajectory", "window")]


class Impure(Definition):
    """Shows how often it was asked, which no other path can know."""

    kind = "impure"
    target = "chat"
    takes = frozenset({"user/message"})
    asked = 0

    def match(self, _item: Event) -> Any:
        return "only", START

    def start(self, _match: Any, _reader: Any) -> Any:
        return 1

    def update(self, state: Any, _match: Any) -> Any:
        return state + 1

    def build(self, context: Any, _scope: Any) -> Node:
        Impure.asked += 1
        return Node(self.kind, context.id, {"asked": Impure.asked})


def test_converges_fails_where_the_paths_do_not_agree() -> None:
    events = [{"op": "append", "event": user(seq)} for seq in (1, 2, 3)]
    found = failures(*events, {"op": "converges"}, definitions=[Impure()])
    assert len(found) == 1
    assert found[0].startswith("5: history: impure:only.data.asked: expected ")
    assert failures(*events, {"op": "converges"}) == []


def test_converges_fails_while_something_is_held() -> None:
    assert failures(APPEND, said("x"), {"op": "converges"}) == [
        '4: converges: expected "nothing held", got "1 deltas"'
    ]


def test_what_breaks_on_the_way_is_a_failure_and_not_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object) -> None:
        message = "a bug"
        raise RuntimeError(message)

    monkeypatch.setattr(Run, "append", broken)
    assert failures(APPEND, APPEND) == ['2: append: expected "no error", got "RuntimeError: a bug"']


# Arriving


def facts(count: int = 9, first: int = 1) -> Facts:
    events = tuple(Event(**user(seq)) for seq in range(first, first + count))
    return Facts(events, has_more=first > 1)


@pytest.mark.parametrize("count", [0, 1, 2, 9])
@pytest.mark.parametrize("first", [1, 4])
@pytest.mark.parametrize("path", [*PATHS, "pages:4"])
def test_every_path_arrives_at_all_facts(path: str, first: int, count: int) -> None:
    known = facts(count, first)
    assembler = arrive(path, known, plugins.catalog())
    assert assembler.events == list(known.events)
    if count:
        assert assembler.window.has_more is (first > 1)


def test_there_is_no_other_path() -> None:
    for path in ("", "pages", "pages:0", "pages:-1", "pages:x", "pages:\uff11", "live"):
        with pytest.raises(KeyError):
            arrive(path, facts(), plugins.catalog())


@pytest.mark.parametrize("path", PATHS)
def test_a_difference_on_any_path_is_found(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    live = arrive("history", facts(), plugins.catalog())
    way = PATHS[path]

    def lossy(assembler: Assembler, known: Facts) -> None:
        way(assembler, Facts(known.events[:-1]))

    monkeypatch.setattr(arriving, "PATHS", {**PATHS, path: lossy})
    found = disagreement(live, facts(), plugins.catalog())
    assert found is not None
    assert (found[0], found[1].path) == (path, "nodes")


def test_a_live_window_that_is_only_a_part_is_compared_with_that_part() -> None:
    live = arrive("history", facts(), plugins.catalog())
    live.evict(5)
    live.flush()
    assert disagreement(live, facts(), plugins.catalog()) is None
    other = Facts((*facts().events[:-1], Event(**user(9, text="other"))))
    found = disagreement(live, other, plugins.catalog())
    assert found is not None
    assert found[0] == "history"


# What needs something that is not here


def test_a_recording_that_needs_something_is_skipped_as_a_whole() -> None:
    plugged = plugins.Operations(fields={"dial": {}}, needs={"dial": "a telephone"})
    values = lines(HEADER, APPEND, {"op": "expect", "nodes": []}, {"op": "dial"})
    (needing,) = read_lines(values, "r", plugged)
    assert missing_needs(needing, plugged=plugged) == (needing.operations[2], "a telephone")
    there = plugins.Operations(fields={"dial": {}}, runners={"dial": lambda _run, _fields: None})
    assert missing_needs(needing, plugged=there) is None


def test_all_that_a_recording_needs_is_told_at_its_first_line_that_cannot_run() -> None:
    needs = {"dial": "a telephone", "ring": "a bell"}
    plugged = plugins.Operations(fields={"dial": {}, "ring": {}}, needs=needs)
    values = lines(HEADER, APPEND, {"op": "dial"}, {"op": "ring"}, {"op": "dial"})
    (needing,) = read_lines(values, "r", plugged)
    assert missing_needs(needing, plugged=plugged) == (
        needing.operations[1],
        "a telephone and a bell",
    )


def test_an_expectation_inside_raises_counts_too() -> None:
    plugged = plugins.Operations(fields={"dial": {}}, needs={"dial": "a telephone"})
    values = lines(HEADER, {"op": "raises", "error": "E", "of": {"op": "dial"}})
    (needing,) = read_lines(values, "r", plugged)
    assert missing_needs(needing, plugged=plugged) is not None
    assert missing_needs(needing, plugged=plugged, expectations=False) is None


# Writing


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_is_written_reads_the_same(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.jsonl"
    whole = read(path)
    write(copy, whole)
    again = read(copy)
    assert (again.header, again.operations) == (whole.header, whole.operations)


def test_whoever_writes_what_it_does_can_play_it_again(tmp_path: Path) -> None:
    path = tmp_path / "live.jsonl"
    assembler = Assembler(plugins.catalog())
    page = [Event(**user(seq)) for seq in (2, 3)]
    older, newer = Event(**user(1)), Event(**user(4, time=77, v=2, id="e4"))
    delta = Delta("a", 1, 1, "text", {"block": 0, "text": "né😀"}, after=4, index=3, time=8)
    with path.open("wb") as file:
        writer = RecordingWriter(file, title="live", without=["retry"])
        for each in (assembler, writer):
            each.load(page, has_more=True)
            each.append(newer)
            each.prepend([older], has_more=False)
            each.emit(delta)
            each.liveness(True)
            each.settle("b", Outcome.FAILED)
            each.evict(2)
        assembler.flush()
        writer.expect_nodes(assembler.view("chat").nodes)
        with pytest.raises(RecordingError, match="op: expected one of"):
            writer.operation({"op": "jump"})
    assert check(path), check(path).to_json()
    run = ran(*(json.loads(line) for line in path.read_text().splitlines()[1:-1]))
    assert run.assembler.deltas[0].position == delta.position
    assert run.assembler.events[-1].v == 2
    assert read(path).without == {"retry"}


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text("old")
    path.chmod(0o640)

    def broken() -> None:
        with atomic(path) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        broken()
    assert path.read_text() == "old"
    with atomic(path) as file:
        file.write(b"new")
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [path]


def test_an_operation_is_checked_before_it_is_written() -> None:
    with pytest.raises(RecordingError, match="<op>:3: before: expected an integer"):
        check_operation(frozen({"op": "evict"}), plugins.operations(), ("<op>", 3))
