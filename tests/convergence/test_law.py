"""Each clause of the contract that names something checkable, as an example.

"The law" 1 to 9, "Operations", "Dependencies, timeline, views", "Cadence". What must hold in
every history is `test_machine`; here stands what it looks like, and what is counted: who is
asked, how often, in which order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest

from assembler.engine.assembler import Assembler
from assembler.engine.definition import (
    FRAME,
    NONE,
    NOW,
    START,
    UPDATE,
    Context,
    Definition,
    Match,
    Members,
    Node,
    Reader,
    Role,
    Scope,
)
from assembler.engine.errors import ConflictError, DefinitionError, GapError
from assembler.engine.events import Delta, Event, Item, Outcome, position
from assembler.engine.patches import apply
from assembler.engine.values import Text
from assembler.testing import compare
from tests.convergence.support import VIEWS, Bench
from tests.convergence.toys import Job, Kaboom, Rest, Run, toys

OPEN = [("turn/start", {"turn": 1}), ("step/start", {"turn": 1, "step": 1})]


def log(*described: Any, first: int = 1) -> list[Event]:
    """Events of `(type, data)` or of a type alone."""
    pairs = [(each, {}) if isinstance(each, str) else each for each in described]
    return [Event(seq, type_, data, time=seq) for seq, (type_, data) in enumerate(pairs, first)]


def piece(ordinal: int, attempt: str = "a", type_: str = "job-piece", **fields: Any) -> Delta:
    data = fields.pop("data", {"job": "j", "text": f"{ordinal} "})
    place = {"turn": 1, "step": 1, "after": 2, "index": ordinal + 1} | fields
    return Delta(attempt, type=type_, data=data, ordinal=ordinal, **place)


def shown(assembler: Assembler, view: str = "chat") -> list[str]:
    assembler.flush()
    return [node.key for node in assembler.view(view).nodes]


def kinds_of(assembler: Assembler) -> list[str]:
    return [odd.kind for odd in assembler.anomalies]


def held(*pieces: Delta, definitions: Iterable[Any] | None = None) -> Assembler:
    """An open step with these deltas."""
    assembler = Assembler(toys() if definitions is None else definitions, VIEWS)
    assembler.load(log(*OPEN), False)
    for each in pieces:
        assembler.emit(each)
    return assembler


# --- probes: Definitions that write down who was asked


class Probe(Definition):
    """Write down every call: a Definition holds no mutable data, a probe has to."""

    kind = "probe"
    target = "chat"
    takes = frozenset({"probe", "probe/edit", "probe-piece"})

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []

    def note(self, call: str, what: str) -> None:
        self.calls.append((call, what))

    def of(self, call: str) -> list[str]:
        """Who was asked `call`, since the last time that somebody looked at any of them."""
        found = [what for name, what in self.calls if name == call]
        self.calls.clear()
        return found

    def match(self, item: Item) -> tuple[str, Role]:
        return str(item.data["id"]), UPDATE if item.type == "probe/edit" else START

    def start(self, match: Match, reader: Reader) -> Any:
        self.note("start", str(match.data["id"]))
        return self.first(match, reader)

    def first(self, match: Match, reader: Reader) -> Any:
        before = reader.previous("probe")
        return (before and before[0], match.data.get("text"))

    def update(self, state: Any, match: Match) -> Any:
        self.note("update", str(match.data["id"]))
        return (state[0], match.data.get("text"))

    def build(self, context: Context, scope: Scope) -> Node | None:
        self.note("build", context.id)
        return Node(self.kind, context.id, {"state": context.state})


def probes(*ids: str, first: int = 1) -> list[Event]:
    return log(*[("probe", {"id": each}) for each in ids], first=first)


# --- 1 and 2: purity and convergence

WHOLE = log(
    ("entry", {"entry": "e0", "text": "before"}),
    ("turn/start", {"turn": 1}),
    ("step/start", {"turn": 1, "step": 1}),
    ("job/open", {"job": "j1"}),
    ("measure", {"measure": "x", "value": 2}),
    ("watch", {"watch": "w", "job": "j1"}),
    ("step/end", {"turn": 1, "step": 1}),
    ("job/result", {"job": "j1", "value": 7}),
    ("entry", {"entry": "e1", "text": "after"}),
    ("turn/end", {"turn": 1}),
    ("strange", {}),
    ("turn/start", {"turn": 2}),
    ("entry/edit", {"entry": "e0", "text": "edited"}),
    ("turn/end", {"turn": 2}),
)


def loaded(events: Sequence[Event], has_more: bool) -> Assembler:
    assembler = Assembler(toys(), VIEWS)
    assembler.load(events, has_more)
    assembler.flush()
    return assembler


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50])
def test_2_all_page_sizes_show_the_same(size: int) -> None:
    paged = loaded(WHOLE[-1:], True)
    for last in range(len(WHOLE) - 1, 0, -size):
        first = max(last - size, 0)
        paged.prepend(WHOLE[first:last], first > 0)
        paged.flush()
        known = toys()
        compare(paged, loaded(WHOLE[first:], first > 0), definitions=known, views=VIEWS)


def test_2_live_evicted_and_reconnected_show_the_same() -> None:
    live = Bench()
    for event in WHOLE[:3]:
        live.do("append", event)
    for ordinal in range(3):
        live.do("emit", piece(ordinal, data={"job": "j1", "text": "x"}, after=3))
        live.check()
    for event in WHOLE[3:]:
        live.do("append", event)
        live.check()
    once = loaded(WHOLE, False)
    compare(live.assembler, once, definitions=toys(), views=VIEWS)
    for before in range(2, len(WHOLE) + 2):
        live.do("evict", before)
        live.check()
        live.do("prepend", WHOLE[: before - 1], False)
        live.check()
        compare(live.assembler, once, definitions=toys(), views=VIEWS)


def test_2_live_order_and_text_do_not_depend_on_when_somebody_looks() -> None:
    looked, not_looked = held(), held()
    for ordinal in range(5):
        for side in (looked, not_looked):
            side.emit(piece(ordinal))
        looked.flush()
    not_looked.flush()
    compare(looked, not_looked, definitions=toys(), views=VIEWS)


# --- 3: settlement


def test_3_completed_keeps_the_deltas_until_the_step_closes() -> None:
    assembler = held(piece(0, type_="speech-piece", data={"text": "hi"}), piece(1))
    assembler.append(Event(3, "job/open", {"job": "j"}))
    assembler.append(Event(4, "speech", {"turn": 1, "step": 1, "text": "!"}))
    live = shown(assembler)
    assembler.settle("a", "completed")
    assert shown(assembler) == live == ["speech:1.1", "job:j"]
    assert len(assembler.deltas) == 2
    assembler.append(Event(5, "step/end", {"turn": 1, "step": 1}))
    assert not assembler.deltas
    assert shown(assembler) == ["job:j", "speech:1.1"]


@pytest.mark.parametrize("outcome", ["failed", "interrupted", Outcome.ABANDONED])
def test_3_any_other_outcome_gives_the_attempt_up(outcome: Any) -> None:
    assembler = held(piece(0), piece(1))
    assembler.settle("a", "completed")
    assembler.settle("a", outcome)
    assert not assembler.deltas
    assembler.settle("a", "completed")
    for ordinal in range(3):
        assembler.emit(piece(ordinal))
    assert not assembler.deltas
    assert kinds_of(assembler) == ["late-delta"] * 3


def test_3_an_event_gives_an_attempt_up_by_name_before_and_after() -> None:
    drop = Event(3, "drop", {"attempt": "a", "turn": 1, "step": 1})
    late, early = held(piece(0)), held()
    late.append(drop)
    early.append(drop)
    early.emit(piece(0))
    for assembler in (late, early):
        assert not assembler.deltas
        assembler.flush()
    compare(late, early, definitions=toys(), views=VIEWS)


def test_3_a_higher_number_gives_up_the_lower_ones_of_its_step_alone() -> None:
    assembler = held(
        piece(0, "a", index=1),
        piece(0, "b", index=2),
        piece(0, "side", index=3, number=0),
        piece(0, "elsewhere", index=4, step=2),
    )
    assembler.emit(piece(0, "c", index=5, number=2))
    assert [delta.attempt for delta in assembler.deltas] == ["side", "elsewhere", "c"]
    assembler.emit(piece(1, "a", index=6))
    assembler.emit(piece(0, "d", index=7))
    assert kinds_of(assembler) == ["late-delta", "late-delta"]
    assembler.emit(piece(0, "e", index=8, number=2))
    assert [delta.attempt for delta in assembler.deltas] == ["side", "elsewhere", "c", "e"]


@pytest.mark.parametrize(
    "closing",
    [
        ("step/end", {"turn": 1, "step": 1}),
        ("step/end", {"turn": 1, "step": 2}),
        ("step/start", {"turn": 1, "step": 2}),
        ("turn/end", {"turn": 1}),
        ("turn/start", {"turn": 2}),
        ("turn/end", {"turn": 5}),
    ],
)
@pytest.mark.parametrize("settled", [True, False])
def test_3_whatever_closes_a_step_retires_all_its_attempts(closing: Any, settled: bool) -> None:
    assembler = held(piece(0, "a"), piece(0, "side", number=0))
    if settled:
        assembler.settle("a", "completed")
    assembler.append(Event(3, *closing))
    assert not assembler.deltas
    assembler.emit(piece(1, "a"))
    assert kinds_of(assembler) == ["late-delta"]


def test_3_closing_acts_whenever_it_is_learned() -> None:
    by_page = Assembler(toys(), VIEWS)
    by_page.append(Event(9, "strange"))
    by_page.emit(piece(0))
    by_page.prepend([Event(8, "step/end", {"turn": 1, "step": 1})], True)
    assert not by_page.deltas
    by_load = held(piece(0))
    by_load.load([Event(1, "turn/end", {"turn": 1})], False)
    assert not by_load.deltas
    # What was ever known closed stays closed, also when its event is not loaded any more.
    by_load.load([], False)
    by_load.emit(piece(0))
    assert kinds_of(by_load) == ["late-delta"]


def test_3_a_settlement_told_ahead_is_remembered_until_its_turn_closes() -> None:
    assembler = held()
    assembler.settle("a", "failed")
    assembler.emit(piece(0))
    assert kinds_of(assembler) == ["late-delta"]
    assembler.settle("later", "failed")
    assembler.append(Event(3, "turn/end", {"turn": 1}))
    assembler.emit(piece(0, "later", turn=2))
    assert [delta.attempt for delta in assembler.deltas] == ["later"]


def test_3_a_settlement_of_a_closed_turn_waits_for_the_next_one() -> None:
    assembler = held()
    assembler.append(Event(3, "turn/end", {"turn": 1}))
    assembler.settle("a", "failed")
    assembler.append(Event(4, "turn/start", {"turn": 2}))
    assembler.emit(piece(0, turn=2))
    assert not assembler.deltas


def test_3_settled_ahead_max_bounds_what_is_told_ahead() -> None:
    assembler = Assembler(toys(), VIEWS, settled_ahead_max=2)
    for name in ("a", "b", "c"):
        assembler.settle(name, "failed")
    for name in ("a", "b", "c"):
        assembler.emit(piece(0, name))
    assert [delta.attempt for delta in assembler.deltas] == ["a"]


def test_3_nothing_revives_an_attempt_that_was_settled_ahead() -> None:
    assembler = held()
    assembler.settle("a", "failed")
    assembler.emit(piece(0, turn=2))
    assembler.append(Event(3, "turn/end", {"turn": 1}))
    assembler.emit(piece(0, turn=2))
    assert not assembler.deltas
    assert kinds_of(assembler) == ["late-delta"] * 2


# --- 4: retirement recomputes


def test_4_the_earliest_remaining_start_is_chosen_and_the_rest_folded_again() -> None:
    assembler = held(piece(0, "a", index=1), piece(0, "b", index=2), piece(1, "a", index=3))
    assembler.append(Event(3, "job/open", {"job": "j"}))
    assembler.settle("a", "failed")
    assert str(assembler.state("job", "j").pieces) == "0 "
    assert assembler.contexts("job")[0].start.position == position(2, 2)  # type: ignore[union-attr]
    assembler.settle("b", "failed")
    assert assembler.contexts("job")[0].start.position == position(3, 0)  # type: ignore[union-attr]


def test_4_nothing_left_leaves_the_view_and_the_memory() -> None:
    assembler = held(piece(0), piece(1))
    assert shown(assembler) == ["job:j"]
    assembler.settle("a", "abandoned")
    patch = assembler.flush()["chat"].to_json()
    assert [op["op"] for op in patch["ops"]] == ["remove", "remove-group"]
    assert assembler.state("job", "j") is None
    assert assembler.contexts("job") == []
    counts = assembler.statistics()
    assert (counts["contexts"]["job"], counts["deltas"], counts["attempts"]) == (0, 0, 0)


# --- 5 and 6: duplicates and gaps


def test_5_duplicates_are_harmless() -> None:
    assembler = loaded(WHOLE[4:], True)
    before = assembler.view("chat").nodes
    assert assembler.append(WHOLE[6]) is NONE
    assert assembler.append(WHOLE[0]) is NONE
    assert kinds_of(assembler)[-1] == "stale-event"
    with pytest.raises(ConflictError):
        assembler.append(Event(7, "step/end", {"turn": 1, "step": 1.0}, time=7))
    assembler.prepend(WHOLE[2:8], True)
    with pytest.raises(ConflictError):
        assembler.prepend([*WHOLE[:6], Event(7, "step/end")], False)
    assert not any(assembler.flush().values()) or assembler.window.first == 3
    assert [node for node in assembler.view("chat").nodes if node in before]


def test_5_the_same_ordinal_again_is_ignored_whatever_it_carries() -> None:
    assembler = held(piece(0), piece(1))
    assembler.emit(piece(0, turn=3, step=9, number=4, data={"other": 1}))
    assert len(assembler.deltas) == 2
    assert kinds_of(assembler) == []


def test_6_gaps_are_named() -> None:
    assembler = loaded(WHOLE[4:9], True)
    cases: list[tuple[str, Any, int, int]] = [
        ("append", (WHOLE[11],), 10, 11),
        ("prepend", (WHOLE[:2], False), 3, 4),
        ("prepend", ([WHOLE[0], WHOLE[3]], False), 2, 3),
        ("load", ([WHOLE[0], *WHOLE[5:]],), 2, 5),
    ]
    for call, arguments, first, last in cases:
        with pytest.raises(GapError) as gap:
            getattr(assembler, call)(*arguments)
        assert (gap.value.first, gap.value.last) == (first, last)
    assert (assembler.window.first, assembler.window.last) == (5, 9)


def test_6_has_more_counts_when_the_page_reaches_the_first_event() -> None:
    assembler = loaded(WHOLE[4:9], True)
    assembler.prepend(WHOLE[6:8], False)
    assert assembler.window.has_more
    assembler.prepend(WHOLE[4:6], False)
    assert not assembler.window.has_more
    assembler.prepend((), True)
    assert assembler.window.has_more
    assembler.prepend(WHOLE[:4], True)
    assert not assembler.window.has_more  # nothing is older than event 1


def test_6_the_first_append_may_have_any_seq() -> None:
    assembler = Assembler(toys(), VIEWS)
    assembler.append(WHOLE[4])
    assert (assembler.window.first, assembler.window.has_more) == (5, True)


def test_6_a_torn_attempt_is_not_extended_and_heals() -> None:
    assembler = held(piece(0), piece(2), piece(3))
    assert kinds_of(assembler) == ["torn-attempt"]
    assert assembler.statistics()["torn"] == ["a"]
    assert str(assembler.state("job", "j").pieces) == "0 "
    for ordinal in range(1, 4):
        assembler.emit(piece(ordinal))
    assert str(assembler.state("job", "j").pieces) == "0 1 2 3 "
    assembler.emit(piece(9))
    assert kinds_of(assembler) == ["torn-attempt"] * 2


# --- 7: all or nothing


def test_7_what_was_given_can_be_changed_later_without_effect() -> None:
    assembler = Assembler(toys(), VIEWS)
    event: dict[str, Any] = {"seq": 1, "type": "job/open", "data": {"job": "j", "turn": 1}}
    assembler.append(event)
    result: dict[str, Any] = {"job": "j", "value": {"deep": [1, {"a": "b"}]}}
    assembler.append({"seq": 2, "type": "job/result", "data": result})
    delta: dict[str, Any] = {"attempt": "a", "turn": 1, "step": 1, "type": "mark-piece"}
    delta["data"] = {"mark": "m", "list": [1]}
    assembler.emit(delta)
    event["data"]["job"] = "other"
    result["value"]["deep"][1]["a"] = "changed"
    delta["data"]["list"].append(2)
    assert assembler.state("job", "j").result == {"deep": (1, {"a": "b"})}
    assert assembler.events[1].data["value"]["deep"][1]["a"] == "b"
    assert assembler.deltas[0].data["list"] == (1,)


def test_7_what_was_given_out_cannot_change_the_engine() -> None:
    assembler = loaded(WHOLE, False)
    before = assembler.view("chat").snapshot().to_json()
    node = assembler.view("chat").nodes[0]
    with pytest.raises((TypeError, AttributeError)):
        node.data["text"] = "changed"
    with pytest.raises(AttributeError):
        node.kind = "changed"  # type: ignore[misc]
    context = assembler.contexts("job")[0]
    with pytest.raises(AttributeError):
        context.state = None  # type: ignore[misc]
    taken: list[Any] = [
        assembler.view("chat").nodes,
        assembler.view("chat").groups,
        assembler.contexts("job"),
        assembler.events,
        assembler.deltas,
        assembler.findings(),
    ]
    for each in taken:
        each.clear()
    given = assembler.view("chat").snapshot().to_json()
    given["nodes"].clear()
    assembler.statistics()["contexts"].clear()
    assert assembler.view("chat").snapshot().to_json() == before
    assert len(assembler.events) == len(WHOLE)
    assert assembler.audit() == []


class Keeper(Definition):
    """Keeps the data that it gave out, and changes it later."""

    kind = "keeper"
    target = "chat"
    takes = frozenset({"keep"})

    def __init__(self) -> None:
        self.kept: list[dict[str, Any]] = []

    def match(self, item: Item) -> tuple[str, Role]:
        return "k", START

    def start(self, match: Match, reader: Reader) -> int:
        return 1

    def build(self, context: Context, scope: Scope) -> Node | None:
        self.kept.append({"list": [1, 2]})
        return Node("keeper", context.id, self.kept[-1])


def test_7_a_node_is_frozen_when_it_is_made() -> None:
    keeper = Keeper()
    assembler = Assembler([keeper])
    assembler.append(Event(1, "keep"))
    assembler.flush()
    keeper.kept[0]["list"].append(3)
    assert assembler.view("chat")["keeper:k"].data["list"] == (1, 2)


STRICT_OPERATIONS: list[tuple[str, Any]] = [
    ("append", (Event(4, "fault", {"fault": "x", "fail": "match"}),)),
    ("append", (Event(4, "fault", {"fault": "x", "fail": "start"}),)),
    ("append", (Event(4, "fault", {"fault": "x", "fail": "cadence"}),)),
    ("append", (Event(4, "fault", {"fault": "x", "fail": "retires"}),)),
    ("append", (Event(4, "fault", {"fault": "known", "fail": "update"}),)),
    ("load", (log(("fault", {"fault": "x", "fail": "start"})), False)),
    ("emit", (piece(0, "b", "fault-piece", data={"fault": "x", "fail": "start"}),)),
    ("emit", (piece(0, "b", "fault-piece", after=3, data={"fault": "known", "fail": "update"}),)),
    ("prepend", (log(("fault", {"fault": "x", "fail": "start"})), False)),
]


@pytest.mark.parametrize(("call", "arguments"), STRICT_OPERATIONS)
def test_7_and_8_strict_raises_and_nothing_has_changed(call: str, arguments: Any) -> None:
    def prepared() -> Assembler:
        assembler = Assembler(toys(), VIEWS, strict=True)
        fault = ("fault", {"fault": "known"})
        assembler.load(log(("step/start", {"turn": 1, "step": 1}), fault, first=2), True)
        assembler.emit(piece(0, after=1))
        assembler.flush()
        return assembler

    strict, untouched = prepared(), prepared()
    with pytest.raises(DefinitionError) as raised:
        getattr(strict, call)(*arguments)
    assert isinstance(raised.value.__cause__, Kaboom)
    assert not any(strict.flush().values())
    compare(strict, untouched, definitions=toys(), views=VIEWS)
    assert strict.audit() == []
    assert list(strict.anomalies) == list(untouched.anomalies)
    # The memory is as it was, too: both take the same from here on.
    for side in (strict, untouched):
        side.append(Event(4, "job/open", {"job": "j"}))
        side.emit(piece(1, after=4))
        side.flush()
    compare(strict, untouched, definitions=toys(), views=VIEWS)


@pytest.mark.parametrize("fail", ["build", "data", "place", "notes", "anchor"])
def test_8_strict_flush_raises_and_shows_what_was_shown(fail: str) -> None:
    strict = Assembler(toys(), VIEWS, strict=True)
    strict.append(Event(1, "entry", {"entry": "e"}))
    strict.flush()
    before = strict.view("chat").snapshot().to_json()
    try:
        strict.append(Event(2, "fault", {"fault": "x", "fail": fail, "turn": 1}))
        strict.flush()
    except DefinitionError as error:
        assert error.__cause__ is not None  # noqa: PT017 - either of two calls may raise it
    else:
        pytest.fail("nothing was raised")
    assert strict.view("chat").snapshot().to_json() == before


# --- 8: one bad Definition


@pytest.mark.parametrize("fail", ["match", "start", "update", "build", "data", "anchor", "notes"])
def test_8_one_bad_definition_does_not_end_the_conversation(fail: str) -> None:
    bench = Bench()
    bench.do("append", Event(1, "fault", {"fault": "x", "fail": "nothing"}))
    bench.do("append", Event(2, "fault", {"fault": "x", "fail": fail}))
    bench.do("append", Event(3, "fault", {"fault": "y", "fail": fail}))
    bench.do("append", Event(4, "entry", {"entry": "e", "text": "goes on"}))
    bench.check()
    assert "entry:e" in shown(bench.assembler)
    assert "definition-error" in {odd.kind for odd in bench.assembler.findings()}
    assert kinds_of(bench.assembler).count("definition-error") == len(
        [odd for odd in bench.assembler.findings() if odd.kind == "definition-error"]
    )


def test_8_a_context_that_failed_shows_the_error_and_recovers() -> None:
    bad = piece(1, type_="fault-piece", data={"fault": "x", "fail": "update"})
    assembler = held(piece(0, type_="fault-piece", data={"fault": "x"}), bad)
    assembler.flush()
    node = assembler.view("chat")["fault:x"]
    assert node.data == {"error": {"name": "Kaboom", "in": "update"}}
    assert assembler.state("fault", "x") is None
    assembler.append(Event(3, "fault", {"fault": "x"}))
    assembler.flush()
    assert assembler.view("chat")["fault:x"].data["error"]["name"] == "Kaboom"
    assert assembler.state("fault", "x") is None
    assembler.settle("a", "failed")
    assert assembler.state("fault", "x") == ("after None None",)


# --- 9: unknown is kept


def test_9_unknown_events_reach_the_fallback_unchanged() -> None:
    strange = Event(1, "brand/new", {"deep": [1, {"x": None}]}, time=5, id="i", v=3)
    events = [strange, Event(2, "named/only"), Event(3, "turn/start", {"turn": "x"})]
    assembler = loaded(events, False)
    assert shown(assembler) == ["rest:1"]
    assert assembler.events[0] == strange or assembler.events[0] is strange
    assembler.emit(piece(0, type_="unheard-of"))
    assert shown(assembler) == ["rest:1"]
    assert len(assembler.deltas) == 1


# --- dependencies: exactly those whose answer changes, earliest first, each once


def test_exactly_who_looks_at_a_changed_state_refolds() -> None:
    probe = Probe()
    assembler = Assembler([probe])
    assembler.load(probes("a", "b", "c", "d"), False)
    assembler.flush()
    probe.calls.clear()
    assembler.append(Event(5, "probe/edit", {"id": "b", "text": "new"}))
    assembler.flush()
    # c asks again because b changed; what c gives d is equal to what it was, so d does not.
    assert probe.of("start") == ["c"]


def test_a_nearer_predecessor_refolds_whoever_looked_past_it() -> None:
    probe = Probe()
    assembler = Assembler([probe])
    assembler.load(probes("c", "d", "e", first=3), True)
    assembler.flush()
    probe.calls.clear()
    assembler.prepend(probes("a", "b"), False)
    assembler.flush()
    # d asks again because c changed, to no other effect; e has no reason to ask.
    assert probe.of("start") == ["a", "b", "c", "d"]
    assert assembler.state("probe", "c") == ("b", None)


class Chain(Probe):
    """Everyone's answer depends on everyone before."""

    kind = "chain"

    def first(self, match: Match, reader: Reader) -> Any:
        before = reader.previous("chain")
        return (before[1][0] + 1 if before else 0, match.data.get("text"))


def test_a_cascade_runs_earliest_first_and_each_once() -> None:
    chain = Chain()
    assembler = Assembler([chain])
    assembler.load(probes("c", "d", "e", first=13), True)
    assembler.flush()
    chain.calls.clear()
    assembler.prepend(probes("a", "b", first=11), True)
    assembler.flush()
    assert chain.of("start") == ["a", "b", "c", "d", "e"]
    assembler.evict(13)
    assembler.flush()
    assert chain.of("start") == ["c", "d", "e"]
    assembler.load(probes("a", "b", "c", "d", "e"), False)
    assembler.flush()
    assert chain.of("start") == ["a", "b", "c", "d", "e"]


class Complete(Probe):
    """Asks whether older history exists, unless somebody came before."""

    kind = "complete"

    def first(self, match: Match, reader: Reader) -> Any:
        return (reader.previous("complete") is None and reader.complete, match.data.get("text"))


def test_when_the_beginning_becomes_known_only_who_asked_refolds() -> None:
    probe = Complete()
    assembler = Assembler([probe])
    assembler.load(probes("a", "b", "c", first=2), True)
    assembler.flush()
    probe.calls.clear()
    assembler.prepend(log("strange"), False)
    assembler.flush()
    assert "c" not in probe.of("start")
    assert assembler.state("complete", "a") == (True, None)


def test_an_append_behind_asks_nobody_else() -> None:
    probe = Probe()
    assembler = Assembler([probe, *toys()], VIEWS)
    assembler.load(probes(*map(str, range(50))), False)
    assembler.flush()
    probe.calls.clear()
    assembler.append(Event(51, "probe", {"id": "last"}))
    assembler.flush()
    assert sorted(probe.calls) == [("build", "last"), ("start", "last")]
    assembler.append(Event(52, "entry", {"entry": "e"}))
    assembler.flush()
    assert probe.of("build") == ["last"]


def test_a_run_of_deltas_is_folded_once_and_not_again() -> None:
    probe = Probe()
    assembler = Assembler([probe])
    for ordinal in range(10):
        assembler.emit(piece(ordinal, type_="probe-piece", data={"id": "p", "text": str(ordinal)}))
    assembler.flush()
    assert (len(probe.of("update")), probe.of("start")) == (9, [])
    assembler.emit(piece(10, type_="probe-piece", data={"id": "p"}))
    assembler.flush()
    assert sorted(probe.calls) == [("build", "p"), ("update", "p")]


# --- Nodes are made again only where something that they read changed


class Reads(Probe):
    """Reads of the scope what its id says."""

    kind = "reads"
    takes = frozenset({"reads"})

    def first(self, match: Match, reader: Reader) -> Any:
        return match.data["id"]

    def build(self, context: Context, scope: Scope) -> Node | None:
        self.note("build", context.id)
        read: Mapping[str, Any] = {
            "nothing": lambda: None,
            "live": lambda: scope.live,
            "complete": lambda: scope.complete,
            "closed": lambda: scope.closed,
            "turn": lambda: scope.turn_status.value,
            "step": lambda: scope.step_status.value,
            "other": lambda: str(scope.other("job", "j")),
            "steps": lambda: dict(scope.step_values("measure")),
            "turns": lambda: {id_: list(v) for id_, v in scope.turn_values("measure").items()},
        }
        return Node("reads", context.id, {"read": read[context.id]()})


NAMES = ("nothing", "live", "complete", "closed", "turn", "step", "other", "steps", "turns")


def reading() -> tuple[Assembler, Reads]:
    probe = Reads()
    assembler = Assembler([probe, *toys()], VIEWS)
    events = [*OPEN, *[("reads", {"id": name}) for name in NAMES]]
    assembler.load(log(*events, first=2), True)
    assembler.flush()
    probe.calls.clear()
    return assembler, probe


def rebuilt(assembler: Assembler, probe: Reads) -> set[str]:
    assembler.flush()
    asked = probe.of("build")
    assert len(asked) == len(set(asked)), "each once per flush"
    return set(asked)


def test_only_the_readers_of_what_changed_are_made_again() -> None:
    assembler, probe = reading()
    end = len(NAMES) + 4
    assembler.liveness(True)
    assert rebuilt(assembler, probe) == {"live"}
    assembler.liveness(True)
    assert rebuilt(assembler, probe) == set()
    assembler.append(Event(end, "job/open", {"job": "j"}))
    assert rebuilt(assembler, probe) == {"other"}
    assembler.append(Event(end + 1, "measure", {"measure": "x"}))
    assert rebuilt(assembler, probe) == {"steps", "turns"}
    assembler.append(Event(end + 2, "strange"))
    assert rebuilt(assembler, probe) == set()
    assembler.prepend(log("strange"), False)
    assert rebuilt(assembler, probe) <= {"complete", "turn", "step", "closed"}
    assembler.append(Event(end + 3, "step/end", {"turn": 1, "step": 1}))
    # The value of the turn says whether the turn is closed, which it is not yet.
    assert rebuilt(assembler, probe) == {"closed", "step"}
    assembler.append(Event(end + 4, "turn/end", {"turn": 1}))
    assert rebuilt(assembler, probe) <= {"turn", "turns"}


def test_values_come_in_anchor_order() -> None:
    step = {"turn": 1, "step": 1}
    measures = [("measure", {"measure": name, **step}) for name in ("z", "x", "y")]
    assembler = loaded(log(*measures[1:], ("turn/end", {"turn": 1}), first=2), True)
    assembler.prepend(log(measures[0]), False)
    assembler.flush()
    node = assembler.view("chat")["tail:1"]
    assert [name for name, _ in node.data["steps"]] == ["z", "x", "y"]
    assert [name for name, _ in node.data["turn"]] == ["z", "x", "y"]


def test_a_closing_step_rebuilds_and_never_refolds() -> None:
    assembler, probe = reading()
    assembler.append(Event(len(NAMES) + 4, "turn/end", {"turn": 1}))
    assembler.flush()
    assert probe.of("start") == []


def test_an_unchanged_node_is_the_same_object() -> None:
    assembler = loaded(WHOLE, False)
    before = {node.key: node for node in assembler.view("chat").nodes}
    assembler.load(WHOLE, False)
    assembler.flush()
    for node in assembler.view("chat").nodes:
        assert before[node.key] is node


# --- views, patches, groups


def test_text_goes_as_its_suffix() -> None:
    assembler = held(piece(0))
    assembler.flush()
    assembler.emit(piece(1, data={"job": "j", "text": "\U0001f600"}))
    assembler.flush()
    assembler.emit(piece(2))
    ops = assembler.flush()["chat"].to_json()["ops"]
    assert ops == [
        {"op": "text", "key": "job:j", "path": ["data", "pieces"], "at": 4, "text": "2 "}
    ]


def test_equal_anchors_stand_by_key() -> None:
    class Twin(Probe):
        kind = "atwin"

    assembler = Assembler([Probe(), Twin()])
    assembler.load(probes("x"), False)
    assert shown(assembler) == ["atwin:x", "probe:x"]


class CountingRun(Run):
    """Writes down what it sums up."""

    def __init__(self) -> None:
        self.summed: list[int] = []
        self.joined: list[str] = []

    def joins(self, node: Node) -> int | None:
        self.joined.append(node.key)
        return super().joins(node)

    def summary(self, members: Members) -> Mapping[str, Any]:
        self.summed.append(members.size)
        return super().summary(members)


def test_groups_are_made_again_only_around_what_changed() -> None:
    run = CountingRun()
    assembler = Assembler([Job(), Rest(), run])
    events: list[Any] = []
    for turn in range(1, 101):
        events += [("job/open", {"job": f"{turn}.{n}", "turn": turn}) for n in range(2)]
        events.append("separates")
    assembler.load(log(*events), False)
    assembler.flush()
    assert len(assembler.view("chat").groups) == 100
    run.summed.clear()
    run.joined.clear()
    assembler.append(Event(301, "job/result", {"job": "50.1", "turn": 50, "value": 1}))
    assembler.flush()
    assert (run.summed, run.joined) == ([2], ["job:50.1"])
    assembler.append(Event(302, "separates"))
    assembler.flush()
    assert run.summed == [2]


def group_keys(assembler: Assembler) -> dict[str, tuple[str, ...]]:
    assembler.flush()
    return {group.key: group.members for group in assembler.view("chat").groups}


def grouped(*ids: int) -> Assembler:
    """Jobs of one turn, with places between them for what separates."""
    assembler = Assembler([Job(), Rest(), Run()])
    events = [("job/open", {"job": f"j{each}", "turn": 1}) for each in ids]
    assembler.load(log(*events), False)
    return assembler


class Wall(Definition):
    """A delta that stands anywhere, and separates."""

    kind = "wall"
    target = "chat"
    takes = frozenset({"wall-piece"})

    def match(self, item: Item) -> tuple[str, Role]:
        return str(item.data["id"]), START

    def start(self, match: Match, reader: Reader) -> int:
        return 1

    def build(self, context: Context, scope: Scope) -> Node | None:
        return Node("wall", context.id, {})


def test_the_key_of_a_group_stays_through_split_and_merge() -> None:
    assembler = Assembler([Job(), Wall(), Run()])
    events = [("job/open", {"job": f"j{n}", "turn": 1}) for n in range(1, 5)]
    assembler.load(log(*events), False)
    assert group_keys(assembler) == {"run:job:j1": ("job:j1", "job:j2", "job:j3", "job:j4")}
    wall = Delta("w", 2, 1, "wall-piece", {"id": "w"}, after=2, index=1)
    assembler.emit(wall)
    assert group_keys(assembler) == {
        "run:job:j1": ("job:j1", "job:j2"),
        "run:job:j3": ("job:j3", "job:j4"),
    }
    assembler.settle("w", "failed")
    assert group_keys(assembler) == {"run:job:j1": ("job:j1", "job:j2", "job:j3", "job:j4")}
    assembler.evict(2)
    assert group_keys(assembler) == {"run:job:j1": ("job:j2", "job:j3", "job:j4")}
    assembler.prepend(log(*events[:1]), False)
    assert list(group_keys(assembler)) == ["run:job:j1"]


# --- cadence


def test_every_operation_returns_the_most_urgent_of_what_it_changed() -> None:
    assembler = held()
    assert assembler.emit(piece(0)) is FRAME
    assert assembler.emit(piece(0)) is NONE
    assert assembler.emit(piece(1, type_="job-print")) is NONE
    assert assembler.append(Event(3, "job/open", {"job": "j"})) is NOW
    assert assembler.append(Event(3, "job/open", {"job": "j"})) is NONE
    assert assembler.append(Event(4, "nobody/takes/this/but/the/fallback")) is NOW
    assert assembler.settle("a", "completed") is NONE
    assert assembler.settle("a", "failed") is NOW
    assert assembler.liveness(None) is NONE


# --- two starts, text, state


def test_two_starts_are_one_lifecycle() -> None:
    assembler = held(piece(0))
    assembler.append(Event(3, "job/open", {"job": "j"}))
    assembler.append(Event(4, "job/open", {"job": "j"}))
    assert assembler.state("job", "j").opened == 2
    assert assembler.findings() == []
    assert shown(assembler) == ["job:j"]


def test_a_state_seen_before_does_not_grow() -> None:
    assembler = held(piece(0))
    early = assembler.state("job", "j")
    nodes = assembler.flush() and assembler.view("chat").nodes
    for ordinal in range(1, 4):
        assembler.emit(piece(ordinal))
    assert str(assembler.state("job", "j").pieces) == "0 1 2 3 "
    assert str(early.pieces) == "0 "
    assert nodes
    assert str(nodes[0].data["pieces"]) == "0 "


def test_two_futures_of_one_text() -> None:
    text = Text("a")
    left, right = text.append("b"), text.append("c")
    assert (str(text), str(left), str(right)) == ("a", "ab", "ac")


class Counts(Definition):
    """Shows how many Matches there are, although its State never changes."""

    kind = "counts"
    target = "chat"
    takes = frozenset({"tick"})

    def match(self, item: Any) -> Any:
        return "x", START

    def start(self, match: Match, reader: Any) -> int:
        return 0

    def update(self, state: int, match: Match) -> int:
        return state

    def build(self, context: Any, scope: Any) -> Node:
        return Node("counts", context.id, {"matches": len(context.matches)})


def test_who_reads_all_matches_is_made_again_with_each() -> None:
    assembler = Assembler([Counts()])
    for seq in range(1, 4):
        assembler.append(Event(seq, "tick"))
        assembler.flush()
        assert assembler.view()["counts:x"].data == {"matches": seq}


def test_8_what_extend_alone_raises_has_done_no_harm() -> None:
    assembler = held(piece(0, type_="fault-piece", data={"fault": "x"}))
    assembler.flush()
    for ordinal in (1, 2):
        data = {"fault": "x", "fail": "extend"}
        assembler.emit(piece(ordinal, type_="fault-piece", data=data))
    assembler.flush()
    assert assembler.state("fault", "x")[1:] == ("extend", "extend")


class Wanders(Counts):
    """Stands at its newest Match, and always shows the same."""

    def anchor(self, context: Any) -> Match:
        return context.matches[-1]

    def build(self, context: Any, scope: Any) -> Node:
        return Node("counts", context.id, {})


def test_a_patch_moves_a_node_with_its_anchor() -> None:
    assembler = Assembler([Wanders(), Rest()])
    assembler.append(Event(1, "tick"))
    assembler.append(Event(2, "strange"))
    assembler.flush()
    before = assembler.view().snapshot()
    assembler.append(Event(3, "tick"))
    patch = assembler.flush()["chat"]
    assert [op.to_json()["op"] for op in patch.ops] == ["move"]
    assert apply(before, patch).to_json() == assembler.view().snapshot().to_json()


def test_evict_stops_at_the_first_event_of_an_open_step() -> None:
    assembler = Assembler(toys(), VIEWS)
    closed = (("step/start", {"turn": 1, "step": 1}), ("step/end", {"turn": 1, "step": 1}))
    opened = (("step/start", {"turn": 1, "step": 2}), ("strange", {}))
    assembler.load(log(*closed, *opened), has_more=False)
    assembler.evict(5)
    assert (assembler.window.first, assembler.window.last) == (3, 4)
    assembler.append(Event(5, "step/end", {"turn": 1, "step": 2}))
    assembler.evict(5)
    assert (assembler.window.first, assembler.window.last) == (5, 5)


@pytest.mark.parametrize("other", [{"turn": 2}, {"step": 2}, {"number": 2}])
def test_an_attempt_never_changes_its_turn_step_or_number(other: dict[str, int]) -> None:
    assembler = held(piece(0))
    before = assembler.deltas
    with pytest.raises(ConflictError):
        assembler.emit(piece(1, **other))
    assert assembler.deltas == before
