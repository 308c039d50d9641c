"""One bad Definition does not end the conversation, and no reader can change what it is given."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pytest

from assembler.engine.assembler import Assembler
from assembler.engine.definition import (
    NONE,
    NOW,
    START,
    UPDATE,
    Cadence,
    Context,
    Definition,
    GroupDefinition,
    Match,
    Members,
    Node,
    Reader,
    Role,
    Scope,
)
from assembler.engine.errors import AssemblerError, DefinitionError
from assembler.engine.events import Event, Item
from assembler.engine.patches import apply
from assembler.engine.values import DEPTH_MAX, freeze_object
from tests.benchmarks.measure import calls
from tests.engine.support import (
    Toy,
    delta,
    event,
    everything,
    same_as_fresh,
    shown,
    wire,
)


class BoomError(Exception):
    """What a bad Definition raises."""


class Interrupted(BaseException):
    """What the user's keyboard raises in the middle of anything."""


class Bad(Definition):
    """Raises where the payload of the item, or of the newest Match, says so (`boom`).

    `interrupt` names a call in which the next thing to come is an `Interrupted`.
    """

    kind = "bad"
    target = "chat"
    takes = frozenset({"bad", "bad/more", "bad-piece"})
    interrupt: str | None = None

    def check(self, site: str, payload: Mapping[str, Any]) -> None:
        if self.interrupt == site:
            raise Interrupted(site)
        if payload.get("boom") == site:
            raise BoomError(site)

    def match(self, item: Item) -> tuple[str, Role] | None:
        self.check("match", item.data)
        return item.data["id"], UPDATE if item.type == "bad/more" else START

    def start(self, match: Match, reader: Reader) -> int:
        self.check("start", match.data)
        if match.data.get("boom") == "complete" and reader.complete:
            raise BoomError
        return 1

    def update(self, state: int, match: Match) -> int:
        self.check("update", match.data)
        return state + 1

    def anchor(self, context: Context) -> Match:
        self.check("anchor", context.matches[-1].data)
        if context.matches[0].data.get("boom") == "anchor-of-first":
            raise BoomError
        return context.matches[-1]

    def place(self, context: Context, scope: Scope) -> int:
        site = "place-turn" if scope.step is None else "place-step"
        self.check(site, context.matches[-1].data)
        return 1

    def notes(self, context: Context, scope: Scope) -> Sequence[Any]:
        self.check("notes", context.matches[-1].data)
        return ()

    def build(self, context: Context, scope: Scope) -> Node:
        boom = context.matches[-1].data.get("boom")
        self.check("build", context.matches[-1].data)
        if boom == "live" and scope.live is False:
            raise BoomError(boom)
        return Node("bad", context.id, {"n": context.state, "boom": boom})

    def cadence(self, match: Match) -> Cadence:
        self.check("cadence", match.data)
        return NONE

    def retires(self, given: Event) -> str | None:
        self.check("retires", given.data)
        return None


class BadBand(GroupDefinition):
    """Keeps all Nodes together; raises where a Node says so."""

    kind = "band"
    target = "chat"

    def __init__(self, bad: Bad) -> None:
        self.bad = bad

    def joins(self, node: Node) -> int:
        self.bad.check("joins", node.data)
        return 1

    def tells(self, node: Node) -> bool:
        self.bad.check("tells", node.data)
        return bool(node.data.get("boom") == "summary")

    def summary(self, members: Members) -> Mapping[str, Any]:
        if members.told.get(True):
            raise BoomError("summary")
        return {"n": members.size}


def catalog() -> list[Any]:
    """The bad one, one that takes the same items, one beside it, and groups over all."""
    bad = Bad()
    witness = Toy("witness", "trajectory", takes=Bad.takes)
    return [bad, witness, Toy(), BadBand(bad)]


def assembler_of(definitions: Iterable[Any], *, strict: bool = False) -> Assembler:
    """With `bad:x` of events 5 and 6, `toy:x` of 7, and a held delta of `bad:y`."""
    assembler = Assembler(definitions, ("chat", "trajectory"), strict=strict)
    assembler.load([*EVENTS], True)
    assembler.emit(delta(0, "bad-piece", id="y", after=7))
    assembler.flush()
    return assembler


EVENTS = (
    event(5, "bad", turn=1, step=1),
    event(6, "bad/more"),
    event(7, "toy", turn=1, step=1),
)

AT_ONCE = ("match", "start", "update", "anchor", "cadence", "retires")
AT_FLUSH = ("place-step", "place-turn", "notes", "build", "joins", "tells", "summary")


def item(site: str, seq: int) -> Event:
    """An event of step 1.1 for which the bad Definition raises at `site`."""
    if site == "update":
        return event(seq, "bad/more", turn=1, step=1, boom=site)
    return event(seq, "bad", id="z", turn=1, step=1, boom=site)


def piece(site: str) -> Any:
    return delta(1, "bad-piece", id="y" if site == "update" else "z", after=7, boom=site)


WAYS: dict[str, Callable[[Assembler, str], Any]] = {
    "append": lambda assembler, site: assembler.append(item(site, 8)),
    "emit": lambda assembler, site: assembler.emit(piece(site)),
    "load": lambda assembler, site: assembler.load([*EVENTS, item(site, 8)], True),
    "prepend": lambda assembler, site: assembler.prepend([item(site, 4)], True),
}


# --- one that raises


def context_of(way: str, site: str) -> str:
    return "z" if site != "update" else "y" if way == "emit" else "x"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("site", [*AT_ONCE, *AT_FLUSH])
def test_the_others_go_on_and_a_finding_says_so(site: str, way: str) -> None:
    if (site, way) == ("retires", "emit"):
        pytest.skip("deltas give nobody up")
    definitions = catalog()
    assembler = assembler_of(definitions)
    WAYS[way](assembler, site)
    trajectory = shown(assembler, "trajectory")
    chat = {node.key: node.to_json()["data"] for node in assembler.view().nodes}

    place = {"append": [8, 0], "load": [8, 0], "prepend": [4, 0], "emit": [7, 2]}[way]
    id_ = context_of(way, site)
    key = "bad:" if site in ("match", "retires") else f"bad:{id_}"
    if site == "summary" and way != "prepend":
        key, place = "bad:x", [6, 0]  # what cannot be summed up is found at its first member
    found = [odd.to_json() for odd in assembler.findings() if odd.kind == "definition-error"]
    assert found == [{"kind": "definition-error", "key": key, "position": place}]
    assert assembler.anomalies.counts["definition-error"] == 1

    assert id_ in trajectory  # who takes the same item
    assert chat["toy:x"] == {"v": [None]}
    if site in ("start", "update", "build"):
        assert chat[f"bad:{id_}"] == {"error": {"name": "BoomError", "in": site}}
    elif site == "match":
        assert "bad:z" not in chat
    else:
        assert "error" not in chat[f"bad:{id_}"]
    if site not in ("joins", "tells", "summary"):
        assert len(assembler.view().groups) == 1
    same_as_fresh(assembler, definitions)


def test_a_failed_context_shows_a_node_of_its_own_key_and_kind_at_its_place() -> None:
    assembler = assembler_of(catalog())
    assembler.append(event(8, "bad", id="z", turn=2, step=3, boom="start"))
    assembler.flush()
    assert assembler.view()["bad:z"].to_json() == {
        "key": "bad:z",
        "kind": "bad",
        "id": "z",
        "anchor": [8, 0],
        "turn": 2,
        "step": 3,
        "data": {"error": {"name": "BoomError", "in": "start"}},
    }
    assert assembler.state("bad", "z") is None


def test_a_raising_cadence_is_urgent() -> None:
    assembler = Assembler([Bad()])
    assert assembler.append(event(1, "bad")) is NONE
    assert assembler.append(event(2, "bad/more", boom="cadence")) is NOW


def test_a_failed_context_has_no_state_until_a_match_at_or_before_changes() -> None:
    toy = Toy(update=lambda state, match: (*state, 1 / match.data["v"]))
    assembler = Assembler([toy])
    assembler.load([event(2, v=1), event(3, "toy/more", v=1)], True)
    assembler.emit(delta(0, "toy-more", after=3, v=0))
    assembler.flush()
    assert assembler.state("toy", "x") is None
    toy.calls.clear()
    assembler.append(event(4, "toy/more", v=1))
    assert assembler.state("toy", "x") is None
    assert toy.asked("update") == toy.asked("start") == []  # nothing was tried again

    assembler.settle("a", "failed")
    assert assembler.state("toy", "x") == (1, 1.0, 1.0)
    assert shown(assembler)["x"] == {"v": [1, 1.0, 1.0]}
    assert assembler.findings() == []
    assert assembler.anomalies.counts == {"definition-error": 1}  # it was, once
    same_as_fresh(assembler, [toy])


def test_a_failed_context_tries_again_when_its_predecessor_changes() -> None:
    def start(_match: Match, reader: Reader) -> Any:
        _, state = reader.previous("p") or ("", (0,))
        return (1 / state[-1],)

    assembler = Assembler([Toy("p", None), Toy(start=start)])
    assembler.load([event(1, "p", v=0), event(2)])
    assert shown(assembler)["x"] == {"error": {"name": "ZeroDivisionError", "in": "start"}}
    assembler.append(event(3, "p/more", v=4))
    assert shown(assembler)["x"] == {"v": [0.25]}


def test_what_only_extend_raises_is_not_seen() -> None:
    def extend(_state: Any, _matches: Any) -> Any:
        raise BoomError

    toy = Toy(extend=extend)
    assembler = Assembler([toy])
    assembler.load([event(1, v=1), *[event(seq, "toy/more", v=seq) for seq in (2, 3, 4)]])
    assert shown(assembler)["x"] == {"v": [1, 2, 3, 4]}
    assert assembler.findings() == []
    assert toy.asked("extend") == ["x+x+x"]


def chained(depth: int, leaf: Any) -> Any:
    value = freeze_object({"leaf": leaf})
    for _ in range(depth):
        value = freeze_object({"in": value})
    return value


MISBEHAVIOUR: dict[str, tuple[str, Callable[..., Any], bool]] = {
    # what it does: the method, what it gives, and whether an error is shown in place of the Node
    "match gives no pair": ("match", lambda _item: "x", False),
    "match gives no role": ("match", lambda _item: ("x", "start"), False),
    "match gives no text": ("match", lambda _item: (5, START), False),
    "anchor gives nothing": ("anchor", lambda _context: None, False),
    "cadence gives a number": ("cadence", lambda _match: 1, False),
    "retires gives a number": ("retires", lambda _event: 5, False),
    "notes gives a number": ("notes", lambda _context, _scope: 5, False),
    "notes gives no pairs": ("notes", lambda _context, _scope: ["odd"], False),
    "build gives no Node": ("build", lambda _context, _scope: {"v": 1}, True),
    "build gives another id": ("build", lambda _context, _scope: Node("toy", "y", {}), True),
    "build gives another kind": ("build", lambda c, _scope: Node("yot", c.id, {}), True),
    "its data is no mapping": ("build", lambda c, _scope: Node("toy", c.id, [1]), True),
    "its data holds a set": ("build", lambda c, _scope: Node("toy", c.id, {"s": {1}}), True),
    "its data holds a NaN": ("build", lambda c, _scope: Node("toy", c.id, {"n": math.nan}), True),
    "its data is too big": ("build", lambda c, _scope: Node("toy", c.id, {"n": 10**5_000}), True),
    "its data has odd keys": ("build", lambda c, _scope: Node("toy", c.id, {1: 2}), True),
    "half a pair": ("build", lambda c, _scope: Node("toy", c.id, {"t": "\ud83d"}), True),
}


NO_PAIR = "TypeError in match at toy: match gives (text, Role) or None, not"
OTHER_NODE = "DefinitionError in build at toy:x: build of 'toy' gave"
ASKED = "expected a kind of toy and the id 'x'"
SAID = {
    "match gives no pair": f"{NO_PAIR} 'x'",
    "match gives no role": f"{NO_PAIR} ('x', 'start')",
    "match gives no text": f"{NO_PAIR} (5, <Role.START: 'start'>)",
    "cadence gives a number": "TypeError in cadence at toy:x: cadence gives a Cadence, not 1",
    "retires gives a number": "TypeError in retires at toy: retires gives a text or None, not 5",
    "build gives no Node": "TypeError in build at toy:x: build gives a Node or None, not {'v': 1}",
    "build gives another id": f"{OTHER_NODE} toy:y; {ASKED}",
    "build gives another kind": f"{OTHER_NODE} yot:x; {ASKED}",
    "its data holds a set": "InputError in build at toy:x: set is no JSON value",
}


@pytest.mark.parametrize("what", MISBEHAVIOUR)
def test_what_breaks_the_contract_counts_as_raising(what: str) -> None:
    method, replacement, is_error = MISBEHAVIOUR[what]
    definitions = [Toy(**{method: replacement}), Toy("other", takes={"toy"})]
    assembler = Assembler(definitions)
    assembler.append(event(1))
    assembler.flush()
    assert [odd.kind for odd in assembler.findings()] == ["definition-error"]
    assert "other:x" in assembler.view()
    node = assembler.view().get("toy:x")
    assert (node is not None and "error" in node.data) is is_error
    with pytest.raises(DefinitionError) as caught:
        appended_and_flushed(Assembler(definitions, strict=True))
    if what in SAID:
        assert str(caught.value) == f"Definition 'toy' raised {SAID[what]}"


def appended_and_flushed(assembler: Assembler) -> None:
    assembler.append(event(1))
    assembler.flush()


@pytest.mark.parametrize("depth", [150, 10_000])
def test_deep_data_of_a_node_does_not_end_the_conversation(depth: int) -> None:
    toy = Toy(build=lambda c, _scope: Node("toy", c.id, {"d": chained(depth, len(c.matches))}))
    assembler = Assembler([toy, Toy("other")])
    snapshot = wire(assembler)
    for seq in (1, 2, 3):
        assembler.append(event(seq, "toy/more" if seq > 1 else "toy"))
        patch = assembler.flush()["chat"].to_json()
        snapshot = apply(snapshot, patch)
    assembler.append(event(4, "other"))
    assembler.flush()
    assert "other:x" in assembler.view()


def test_a_group_that_raises_is_a_finding_while_it_does() -> None:
    definitions = catalog()
    assembler = assembler_of(definitions)
    assembler.append(event(8, "bad", id="z", boom="joins"))
    for _ in range(3):
        assembler.flush()
        assert [odd.key for odd in assembler.findings()] == ["bad:z"]
    assert assembler.anomalies.counts == {"definition-error": 1}
    assert [group.members for group in assembler.view().groups] == [
        ("bad:x", "toy:x", "bad:y"),
    ]
    assembler.append(event(9, "bad/more", id="z"))
    assembler.flush()
    assert assembler.findings() == []
    assert len(assembler.view().groups[0].members) == 4


CALLS: dict[str, Callable[[Assembler], Any]] = {
    "load": lambda assembler: assembler.load([]),
    "append": lambda assembler: assembler.append(event(9)),
    "emit": lambda assembler: assembler.emit(delta(1)),
    "emit of another": lambda assembler: assembler.emit(delta(attempt="b")),
    "prepend": lambda assembler: assembler.prepend([], False),
    "evict": lambda assembler: assembler.evict(0),
    "settle": lambda assembler: assembler.settle("a", "failed"),
    "liveness": lambda assembler: assembler.liveness(False),
    "flush": lambda assembler: assembler.flush(),
    "activate": lambda assembler: assembler.activate("trajectory"),
    "deactivate": lambda assembler: assembler.deactivate("chat"),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("site", ["match", "update", "build"])
def test_a_definition_cannot_call_the_assembler_that_is_asking_it(site: str, call: str) -> None:
    said: list[str] = []

    def meddle(*arguments: Any) -> Any:
        if assembler.deltas:
            with pytest.raises(AssemblerError) as caught:
                CALLS[call](assembler)
            said.append(str(caught.value))
        return getattr(Toy, site)(toy, *arguments)

    toy = Toy(**{site: meddle})
    assembler = Assembler([toy])
    assembler.append(event(1))
    assembler.emit(delta())
    assembler.emit(delta(1))
    assembler.append(event(2, "toy/more"))
    assembler.flush()
    assert set(said) == {"a Definition calls the Assembler that is asking it"}
    assert shown(assembler) == {"x": {"v": [None] * 4}}
    assert assembler.findings() == []
    same_as_fresh(assembler, [Toy()])


# --- strict


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("site", [*AT_ONCE, *AT_FLUSH])
def test_strict_raises_and_nothing_has_changed(site: str, way: str) -> None:
    if (site, way) == ("retires", "emit"):
        pytest.skip("deltas give nobody up")
    definitions = catalog()
    assembler = assembler_of(definitions, strict=True)
    if site in AT_FLUSH:
        WAYS[way](assembler, site)
    before = everything(assembler)
    with pytest.raises(DefinitionError, match=site.partition("-")[0]) as caught:
        assembler.flush() if site in AT_FLUSH else WAYS[way](assembler, site)
    assert isinstance(caught.value.__cause__, BoomError)
    if site not in ("joins", "tells", "summary"):
        what = "bad" if site in ("match", "retires") else f"bad:{context_of(way, site)}"
        call = site.partition("-")[0]
        sentence = f"Definition 'bad' raised BoomError in {call} at {what}: {site}"
        assert str(caught.value) == sentence
    else:
        said = rf"Group Definition 'band' raised BoomError in {site} at bad:[xyz]: {site}"
        assert re.fullmatch(said, str(caught.value))
    assert everything(assembler) == before
    assert assembler.audit() == []
    goes_on(assembler, definitions, context_of(way, site))


@pytest.mark.parametrize("site", AT_FLUSH)
def test_strict_changes_no_view_that_a_reader_holds_on_to(site: str) -> None:
    definitions = catalog()
    assembler = assembler_of(definitions, strict=True)
    held = assembler.view()
    before = held.snapshot().to_json()
    assembler.append(item(site, 8))
    with pytest.raises(DefinitionError):
        assembler.flush()
    assert held.snapshot().to_json() == before
    goes_on(assembler, definitions, "z")
    assert held.snapshot().to_json() == wire(assembler)


def goes_on(assembler: Assembler, definitions: Sequence[Any], id_: str) -> None:
    """The next operations work, and the next patch leads on from what was last shown."""
    views = ("chat", "trajectory")
    snapshots = {name: assembler.view(name).snapshot() for name in views}
    nodes = {node.key: node for node in assembler.view().nodes}
    seq = assembler.events[-1].seq
    assembler.append(event(seq + 1, "bad/more", id=id_))
    patches = assembler.flush()
    for name in views:
        assert apply(snapshots[name], patches[name]).to_json() == wire(assembler, name)
    assert assembler.view()["toy:x"] is nodes["toy:x"]
    same_as_fresh(assembler, definitions)


CHAIN = [event(5, "bad"), event(6, "bad", boom="start")]
FIRST = [event(5, "bad"), event(6, "bad", boom="anchor-of-first")]
OLDER: dict[str, tuple[list[Event], Callable[[Assembler], Any], bool]] = {
    # events; the operation that makes the bad one raise; whether only the flush does
    "evict, start": (CHAIN, lambda assembler: assembler.evict(6), False),
    "evict, anchor": (FIRST, lambda assembler: assembler.evict(6), False),
    "settle, start": ([CHAIN[1]], lambda assembler: assembler.settle("a", "failed"), False),
    "a number, start": (
        [CHAIN[1]],
        lambda assembler: assembler.emit(
            delta(0, "bad-piece", id="z", attempt="b", number=2, index=9)
        ),
        False,
    ),
    "prepend, complete": (
        [event(6, "bad", boom="complete")],
        lambda assembler: assembler.prepend([], False),
        False,
    ),
    "prepend a page, complete": (
        [event(6, "bad", boom="complete")],
        lambda assembler: assembler.prepend([event(5, "other")], False),
        False,
    ),
    "liveness, build": (
        [event(6, "bad", boom="live")],
        lambda assembler: assembler.liveness(False),
        True,
    ),
}


@pytest.mark.parametrize("case", OLDER)
def test_strict_raises_also_for_what_was_fine_until_now(case: str) -> None:
    events, operation, at_flush = OLDER[case]
    definitions = catalog()
    assembler = Assembler(definitions, ("chat", "trajectory"), strict=True)
    if case.startswith(("settle", "a number")):
        assembler.emit(delta(0, "bad-piece", after=5))
    has_more = any(each.data.get("boom") == "complete" for each in events)
    assembler.load(events, has_more or events[0].seq > 1)
    assembler.append(event(7, "toy"))
    assembler.flush()
    if at_flush:
        operation(assembler)
    before = everything(assembler)
    with pytest.raises(DefinitionError):
        assembler.flush() if at_flush else operation(assembler)
    assert everything(assembler) == before
    assert assembler.audit() == []
    if at_flush:
        goes_on(assembler, definitions, "x")
    else:
        assert assembler.flush()["chat"].ops == ()
        same_as_fresh(assembler, definitions)


def test_strict_keeps_findings_that_hold() -> None:
    assembler = Assembler([Bad()], strict=True)
    assembler.load([event(1, "bad/more"), event(2, "bad")])
    assembler.flush()
    assert [odd.kind for odd in assembler.findings()] == ["early-update"]
    with pytest.raises(DefinitionError):
        assembler.append(event(3, "bad/more", boom="update"))
    assert [odd.kind for odd in assembler.findings()] == ["early-update"]


def test_strict_leaves_an_emptied_window_usable() -> None:
    definitions = catalog()
    assembler = assembler_of(definitions, strict=True)
    assembler.load([event(1, "other")], False)
    assembler.evict(9)
    with pytest.raises(DefinitionError):
        assembler.load([event(2, "bad"), event(3, "bad/more", boom="update")], True)
    assembler.evict(9)
    assembler.append(event(2, "other"))
    same_as_fresh(assembler, definitions)


def test_strict_shows_what_it_shows_without() -> None:
    strict, free = (assembler_of(catalog(), strict=each) for each in (True, False))
    for assembler in (strict, free):
        assembler.append(event(8, "turn/end", turn=1))
        assembler.flush()
    assert wire(strict) == wire(free)


# --- an exception that nobody may swallow


OPERATIONS: dict[str, Callable[[Assembler], Any]] = {
    "append": lambda assembler: assembler.append(event(8, "bad/more")),
    "append a start": lambda assembler: assembler.append(event(8, "bad", id="z")),
    "append an end": lambda assembler: assembler.append(event(8, "turn/end", turn=1)),
    "emit": lambda assembler: assembler.emit(delta(1, "bad-piece", id="y", after=7)),
    "emit a start": lambda assembler: assembler.emit(delta(1, "bad-piece", id="z", after=7)),
    "emit a number": lambda assembler: assembler.emit(
        delta(0, "bad-piece", id="y", after=7, attempt="b", number=2, index=9)
    ),
    "load": lambda assembler: assembler.load(
        [*EVENTS, event(8, "bad/more"), event(9, "bad", id="z")], True
    ),
    "load others": lambda assembler: assembler.load([EVENTS[2], event(8, "other")], True),
    "prepend": lambda assembler: assembler.prepend([event(4, "bad")], True),
    "evict": lambda assembler: assembler.evict(6),
    "settle": lambda assembler: assembler.settle("a", "failed"),
    "liveness": lambda assembler: assembler.liveness(False),
}


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("site", [*AT_ONCE, *AT_FLUSH])
def test_an_interruption_leaves_the_assembler_usable(
    site: str, operation: str, strict: bool, again: bool
) -> None:
    definitions = catalog()
    bad = definitions[0]
    assembler = assembler_of(definitions, strict=strict)
    before = {name: assembler.view(name).snapshot() for name in ("chat", "trajectory")}
    bad.interrupt = site
    try:
        OPERATIONS[operation](assembler)
        assembler.flush()
    except Interrupted:
        pass
    else:
        before = {name: assembler.view(name).snapshot() for name in before}
    bad.interrupt = None
    if not again:
        # Taken as a whole or not at all: the facts alone say what is shown.
        same_as_fresh(assembler, definitions)
        return
    # Whether it was taken or not: doing it again is harmless, and then all is as it should be.
    OPERATIONS[operation](assembler)
    patches = assembler.flush()
    for name, snapshot in before.items():
        assert apply(snapshot, patches[name]).to_json() == wire(assembler, name)
    assert len(assembler.deltas) == len(fresh_after(operation).deltas)
    same_as_fresh(assembler, definitions)


def fresh_after(operation: str) -> Assembler:
    assembler = assembler_of(catalog())
    OPERATIONS[operation](assembler)
    return assembler


# --- nobody can change what is given out


def frozen(value: Any) -> None:
    """Neither by attribute, nor by item, nor by a method of lists and dicts."""
    for name in ("key", "kind", "id", "data", "state", "matches", "ops", "nodes", "item", "more"):
        with pytest.raises((AttributeError, TypeError)):
            setattr(value, name, "changed")
    for key in ("more", 0, "data"):
        with pytest.raises(TypeError):
            value[key] = "changed"
    for name in ("append", "clear", "update", "pop", "extend", "setdefault", "sort"):
        assert not hasattr(value, name)


class Vandal(Toy):
    """Tries to change all that it is given."""

    def start(self, match: Match, reader: Reader) -> Any:
        frozen(match)
        frozen(match.item)
        frozen(match.data)
        return super().start(match, reader)

    def build(self, context: Context, scope: Scope) -> Node | None:
        frozen(context)
        frozen(context.matches)
        frozen(context.start)
        values = scope.step_values("toy")
        try:
            values["x"] = "changed"  # type: ignore[index]
            values.clear()  # type: ignore[attr-defined]
        except (TypeError, AttributeError):
            pass
        return super().build(context, scope)

    def place(self, context: Context, scope: Scope) -> Any:
        return (context.id, scope.step)


def test_a_definition_cannot_change_what_it_is_given() -> None:
    reader = Toy(
        "reader", build=lambda c, scope: Node("reader", c.id, {**scope.step_values("toy")})
    )
    definitions = [Vandal(), reader]
    assembler = Assembler(definitions, strict=True)
    assembler.load([event(1, turn=1, step=1, v=[1, {"a": 2}]), event(2, "reader", turn=1, step=1)])
    assert shown(assembler) == {"x": {"x": ["x", 1]}} | {}
    assert assembler.view()["toy:x"].to_json()["data"] == {"v": [[1, {"a": 2}]]}
    same_as_fresh(assembler, definitions)


def test_a_reader_cannot_change_what_is_shown() -> None:
    definitions = catalog()
    assembler = assembler_of(definitions)
    assembler.append(event(8, "bad", id="z", v=1))
    patch = assembler.flush()["chat"]
    before, snapshot = wire(assembler), assembler.view().snapshot()
    kept = everything(assembler)
    node = assembler.view().nodes[0]
    for value in (snapshot, patch, node, node.data, snapshot.nodes, patch.ops, patch.ops[0]):
        frozen(value)
    for value in (snapshot.groups[0], snapshot.window, *assembler.contexts("bad")):
        frozen(value)
    for value in (assembler.events[0], assembler.deltas[0], assembler.window):
        frozen(value)
    for copy in (
        assembler.view().nodes,
        assembler.view().groups,
        assembler.events,
        assembler.deltas,
        assembler.contexts("bad"),
        assembler.findings(),
        assembler.flush(),
        assembler.statistics(),
        assembler.statistics()["contexts"],
        assembler.statistics()["anomalies"],
        snapshot.to_json()["nodes"],
        snapshot.to_json()["nodes"][0]["data"],
        node.to_json(),
        patch.to_json()["ops"],
    ):
        copy.clear()
    assert wire(assembler) == before == snapshot.to_json()
    assert everything(assembler) == kept
    same_as_fresh(assembler, definitions)


def test_a_reader_cannot_change_the_counts_of_anomalies() -> None:
    assembler = assembler_of(catalog())
    assembler.append(event(2, "other"))
    with suppress(AttributeError, TypeError):
        assembler.anomalies.counts.clear()
    assert assembler.statistics()["anomalies"] == {"stale-event": 1}


def test_a_node_holds_nothing_that_its_definition_could_change_later() -> None:
    data: dict[str, Any] = {"list": [1]}
    toy = Toy(build=lambda context, _scope: Node("toy", context.id, data))
    assembler = Assembler([toy])
    assembler.append(event(1))
    assembler.flush()
    data["list"].append(2)
    data["more"] = 1
    assert shown(assembler) == {"x": {"list": [1]}}


def test_a_group_holds_nothing_that_its_definition_could_change_later() -> None:
    class Keeper(BadBand):
        data: dict[str, Any] = {"list": [1]}  # noqa: RUF012 - that is the point

        def summary(self, members: Members) -> Mapping[str, Any]:
            return self.data

    assembler = Assembler([Toy(), Keeper(Bad())])
    assembler.append(event(1))
    assembler.flush()
    Keeper.data["list"].append(2)
    assert assembler.view().groups[0].to_json()["list"] == [1]


def test_a_definition_must_not_call_the_assembler_that_asks_it() -> None:
    calls = {
        "append": lambda a: a.append(event(9)),
        "flush": lambda a: a.flush(),
        "load": lambda a: a.load([], False),
        "emit": lambda a: a.emit(delta(5)),
        "state": lambda a: a.state("toy", "x"),
    }
    for site in ("match", "cadence", "start", "update", "build", "notes", "anchor", "place"):
        for name, call in calls.items():
            held: list[Assembler] = []

            def meddle(*args: Any, call: Any = call, held: list[Assembler] = held) -> Any:
                return call(held[0])

            assembler = Assembler([Toy(**{site: meddle}), Toy("calm")])
            held.append(assembler)
            assembler.append(event(1))
            assembler.append(event(2, "toy/more"))
            assembler.append(event(3, "calm"))
            assembler.flush()
            assert assembler.audit() == [], (site, name)
            assert "calm:x" in assembler.view()
            assert assembler.window.last == 3


@pytest.mark.parametrize("ident", ["\ud83d", "a\ude00b"])
def test_an_id_that_no_utf8_can_carry_counts_as_raising(ident: str) -> None:
    assembler = Assembler([Toy(match=lambda item: (ident, START))])
    assembler.append(event(1))
    assembler.flush()
    assert [odd.kind for odd in assembler.findings()] == ["definition-error"]
    assert assembler.view().nodes == []


def test_what_may_be_given_may_be_shown() -> None:
    deep: Any = {"v": 1}
    for _ in range(DEPTH_MAX - 1):
        deep = {"id": "x", "v": deep}
    assembler = Assembler([Toy(start=lambda match, _reader: match.data["v"])])
    assembler.append({"seq": 1, "type": "toy", "data": deep})
    assembler.flush()
    assert assembler.findings() == []


def test_a_finding_more_costs_the_same_whatever_stands() -> None:
    def cost(standing: int) -> int:
        assembler = Assembler([Toy()])
        assembler.load([event(seq, "toy/more", id=f"x{seq}") for seq in range(1, standing + 1)])
        starts = [event(standing + seq, id=f"x{seq}") for seq in range(1, standing + 1)]
        for each in starts[:-1]:  # a start behind its update: that is the finding
            assembler.append(each)
        assembler.flush()
        assert len(assembler.findings()) == standing - 1

        def run() -> None:
            assembler.append(starts[-1])
            assembler.flush()

        spent = calls(run)
        assert len(assembler.findings()) == standing
        return spent

    assert cost(400) < cost(20) + 20


def test_findings_hold_until_the_next_flush() -> None:
    assembler = Assembler([Toy()])
    assembler.load([event(1, "toy/more"), event(2)], False)
    assert assembler.findings() == []
    assembler.flush()
    found = assembler.findings()
    assert [odd.kind for odd in found] == ["early-update"]
    assembler.load(assembler.events, False)
    assert assembler.findings() == found
    assembler.evict(2)
    assert assembler.findings() == found
    assembler.flush()
    assert assembler.findings() == []
    assert assembler.statistics()["anomalies"] == {"early-update": 1}
