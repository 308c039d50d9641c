"""Toy Definitions without any business, which together use everything that the contract offers.

And how their payloads are drawn. Not here: tests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from msgspec import Struct

from assembler.engine.definition import (
    FRAME,
    NONE,
    NOW,
    START,
    UNNAMED,
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
from assembler.engine.events import Event, Item, Position, pair
from assembler.engine.values import Text
from assembler.testing.strategies import Payload, Spot

__all__ = ["DELTAS", "EVENTS", "Kaboom", "toys"]


class Kaboom(Exception):  # noqa: N818 - it says what happens
    """What the bad Definition raises."""


def name_of(item: Item, field: str) -> str | None:
    """A field of an item that names something."""
    value = item.data.get(field)
    return value if isinstance(value, str) else None


def place_of(item: Item) -> str | None:
    """`turn.step` of an item that names both."""
    if not isinstance(item, Event):
        return f"{item.turn}.{item.step}"
    turn, step = item.data.get("turn"), item.data.get("step")
    return f"{turn}.{step}" if type(turn) is int and type(step) is int else None


# --- a call-like one: starts by deltas and by events, results, prints that never start


class JobState(Struct, frozen=True):
    pieces: Text
    prints: Text
    opened: int = 0
    result: Any = None
    again: tuple[Position, ...] = ()


class Job(Definition):
    """Deltas and events both start it; `extend` folds runs of pieces."""

    kind = "job"
    target = "chat"
    takes = frozenset({"job/open", "job/result", "job-piece", "job-print"})

    def match(self, item: Item) -> tuple[str, Role] | None:
        name = name_of(item, "job")
        starts = item.type in ("job/open", "job-piece")
        return name and (name, START if starts else UPDATE)  # type: ignore[return-value]

    def start(self, match: Match, reader: Reader) -> JobState:
        return self.update(JobState(Text(), Text()), match)

    def update(self, state: JobState, match: Match) -> JobState:
        if match.type == "job-piece":
            return self.grown(state, state.pieces.append(str(match.data["text"])), state.prints)
        if match.type == "job-print":
            return self.grown(state, state.pieces, state.prints.append(str(match.data["text"])))
        if match.type == "job/open":
            return JobState(state.pieces, state.prints, state.opened + 1, state.result, state.again)
        if state.result is not None:
            again = (*state.again, match.position)
            return JobState(state.pieces, state.prints, state.opened, state.result, again)
        value = match.data.get("value", "none")
        return JobState(state.pieces, state.prints, state.opened, value, state.again)

    def grown(self, state: JobState, pieces: Text, prints: Text) -> JobState:
        if state.opened or state.result is not None:
            pieces = state.pieces  # durable evidence beats transient evidence
        if pieces is state.pieces and prints is state.prints:
            return state
        return JobState(pieces, prints, state.opened, state.result, state.again)

    def extend(self, state: JobState, matches: Sequence[Match]) -> JobState:
        if any(match.type != "job-piece" for match in matches):
            return super().extend(state, matches)  # type: ignore[no-any-return]
        texts = [str(match.data["text"]) for match in matches]
        return self.grown(state, state.pieces.extend(texts), state.prints)

    def notes(self, context: Context, scope: Scope) -> Sequence[tuple[str, Position]]:
        if context.state is None:
            return [("unmatched-result", context.matches[0].position)] if scope.complete else []
        return [("duplicate-result", at) for at in context.state.again]

    def build(self, context: Context, scope: Scope) -> Node | None:
        state = context.state
        if state is None:
            return None if scope.complete else Node("job", context.id, {"stage": "result"})
        if not (state.pieces or state.opened):
            return None
        stage = "start" if state.opened else "preparing"
        running = state.result is None and not scope.closed and scope.live is not False
        data = {"stage": stage, "running": running, "result": state.result}
        texts = {"pieces": state.pieces, "more": [{"prints": state.prints}]}
        return Node("job", context.id, data | texts)

    def cadence(self, match: Match) -> Cadence:
        return {"job-piece": FRAME, "job-print": NONE}.get(match.type, NOW)


# --- log-like ones with predecessors


class EntryState(Struct, frozen=True):
    number: int
    text: str
    edits: tuple[str, ...] = ()
    job: tuple[str, Any] | None = None

    @property
    def weight(self) -> int:
        """What the next one counts on from: an edit changes all that follow."""
        return self.number + 1 + len(self.edits)


class Entry(Definition):
    """Numbers itself by its predecessor and remembers the job before it."""

    kind = "entry"
    target = "chat"
    takes = frozenset({"entry", "entry/edit"})
    shows = frozenset({"entry", "edited"})

    def match(self, item: Item) -> tuple[str, Role] | None:
        name = name_of(item, "entry")
        return name and (name, START if item.type == "entry" else UPDATE)  # type: ignore[return-value]

    def start(self, match: Match, reader: Reader) -> EntryState:
        before = reader.previous("entry")
        # `complete` is read only where nobody came before: what is read may change.
        number = before[1].weight if before else 0 if reader.complete else -1_000
        job = reader.previous("job")
        seen = (job[0], job[1].result) if job else None
        return EntryState(number, str(match.data.get("text")), (), seen)

    def update(self, state: EntryState, match: Match) -> EntryState:
        edits = (*state.edits, str(match.data.get("text")))
        return EntryState(state.number, state.text, edits, state.job)

    def build(self, context: Context, scope: Scope) -> Node | None:
        state = context.state
        if state is None:
            return Node("entry", context.id, {"edits": len(context.matches)})
        data = {"number": state.number, "text": state.text, "edits": list(state.edits)}
        kind = "edited" if "" in state.edits else "entry"
        return Node(kind, context.id, data | {"job": state.job})


class Mark(Definition):
    """Started by events and deltas; reads three kinds, its own among them; state of a tuple."""

    kind = "mark"
    target = "trajectory"
    takes = frozenset({"mark", "mark-piece"})

    def match(self, item: Item) -> tuple[str, Role] | None:
        name = name_of(item, "mark")
        return (name, START) if name else None

    def start(self, match: Match, reader: Reader) -> tuple[Any, ...]:
        mark, entry = reader.previous("mark"), reader.previous("entry")
        fault = reader.previous("fault")
        chain = (*mark[1][0], mark[1][3]) if mark else ()
        return ((*chain[-3:], match.type), entry and entry[1].weight, fault and fault[1], 1)

    def update(self, state: tuple[Any, ...], match: Match) -> tuple[Any, ...]:
        return (*state[:3], state[3] + 1)

    def build(self, context: Context, scope: Scope) -> Node | None:
        return Node("mark", context.id, {"state": context.state, "live": scope.live})


# --- placed values, and who reads them


class Measure(Definition):
    """State only; publishes its total on its step, and what its turn adds up to."""

    kind = "measure"
    takes = frozenset({"measure", "measure-piece"})

    def match(self, item: Item) -> tuple[str, Role] | None:
        name = name_of(item, "measure")
        return (name, START) if name else None

    def start(self, match: Match, reader: Reader) -> int:
        return self.value(match)

    def update(self, state: int, match: Match) -> int:
        return state + self.value(match)

    def value(self, match: Match) -> int:
        value = match.data.get("value", 1)
        return value if type(value) is int else 1

    def place(self, context: Context, scope: Scope) -> Any:
        if scope.step is None:
            return (sum(scope.step_values("measure").values()), scope.closed)
        return context.state


class Tail(Definition):
    """Shown at the end of its turn, with what the turn adds up to."""

    kind = "tail"
    target = "chat"
    takes = frozenset({"turn/end"})

    def match(self, item: Item) -> tuple[str, Role] | None:
        turn = item.data.get("turn")
        return (str(turn), START) if type(turn) is int else None

    def start(self, match: Match, reader: Reader) -> int:
        return 1

    def update(self, state: int, match: Match) -> int:
        return state + 1

    def build(self, context: Context, scope: Scope) -> Node | None:
        values = {
            "steps": list(scope.step_values("measure").items()),
            "turn": list(scope.turn_values("measure").items()),
        }
        return Node("tail", context.id, {"ends": context.state, **values})


class Pace(Definition):
    """Started and ended by step boundaries; reads values of its step, published by three kinds."""

    kind = "pace"
    target = "trajectory"
    takes = frozenset({"step/start", "step/end"})

    def match(self, item: Item) -> tuple[str, Role] | None:
        place = place_of(item)
        return place and (place, START if item.type == "step/start" else UPDATE)  # type: ignore[return-value]

    def start(self, match: Match, reader: Reader) -> str:
        return match.type

    def update(self, state: str, match: Match) -> str:
        return f"{state} {match.type}"

    def build(self, context: Context, scope: Scope) -> Node | None:
        values = {
            kind: list(scope.step_values(kind).items()) for kind in ("measure", "watch", "fault")
        }
        status = [scope.turn_status.value, scope.step_status.value, scope.closed]
        turns = list(scope.turn_values("watch").values())
        data = {"state": context.state, "values": values, "status": status, "turns": turns}
        return Node("pace", context.id, data)


class Watch(Definition):
    """Reads the State of another Context, status, liveness; publishes what it read."""

    kind = "watch"
    target = "chat"
    takes = frozenset({"watch", "watch-piece"})

    def match(self, item: Item) -> tuple[str, Role] | None:
        name = name_of(item, "watch")
        return (name, START) if name else None

    def start(self, match: Match, reader: Reader) -> str:
        return str(match.data.get("job"))

    def update(self, state: str, match: Match) -> str:
        return str(match.data.get("job"))

    def place(self, context: Context, scope: Scope) -> Any:
        other = scope.other("job", context.state)
        if scope.step is None:
            return [scope.live, sorted(scope.step_values("watch"))]
        return other and other.opened + len(other.pieces)

    def build(self, context: Context, scope: Scope) -> Node | None:
        other = scope.other("job", context.state)
        data = {
            "job": other and {"result": other.result, "pieces": str(other.pieces)},
            "has": scope.has("job", str(context.state)),
            "turn": (found := scope.turn_status_of("job", str(context.state))) and found.value,
            "waits": [match.type for match in scope.unstarted("job", str(context.state))],
            "place": [scope.turn, scope.step],
            "status": [scope.turn_status.value, scope.step_status.value],
        }
        # Reads that not every build makes: closed ones ask no liveness.
        data |= {"live": "closed" if scope.closed else scope.live, "complete": scope.complete}
        return Node("watch", context.id, data)


class Count(Definition):
    """One Context of many starts, over what others take too; its Node moves with its anchor."""

    kind = "count"
    target = "trajectory"
    takes = frozenset({"job/open", "job/result", "measure-piece"})

    def match(self, item: Item) -> tuple[str, Role] | None:
        return "all", START

    def start(self, match: Match, reader: Reader) -> int:
        return 1

    def update(self, state: int, match: Match) -> int:
        return state + 1

    def anchor(self, context: Context) -> Match:
        return context.matches[-1]

    def build(self, context: Context, scope: Scope) -> Node | None:
        return Node("count", "all", {"count": context.state}) if context.state % 3 else None


# --- an anchor of its own


class Speech(Definition):
    """Stands where its first piece stands that is not blank."""

    kind = "speech"
    target = "chat"
    takes = frozenset({"speech", "speech-piece", "speech-note"})

    def match(self, item: Item) -> tuple[str, Role] | None:
        place = place_of(item)
        return place and (place, UPDATE if item.type == "speech-note" else START)  # type: ignore[return-value]

    def start(self, match: Match, reader: Reader) -> Text:
        return self.update(Text(), match)

    def update(self, state: Text, match: Match) -> Text:
        # A note changes no State; that it came is seen among the Matches alone.
        if match.type == "speech-note":
            return state
        return state.append(str(match.data.get("text", "")))

    def anchor(self, context: Context) -> Match:
        for match in context.matches:
            if match.type == "speech-piece" and str(match.data.get("text", "")).strip():
                return match
        return super().anchor(context)

    def build(self, context: Context, scope: Scope) -> Node | None:
        if context.state is None:
            return None
        notes = sum(1 for match in context.matches if match.type == "speech-note")
        settled = "settled" if scope.closed else "running"
        return Node("speech", context.id, {"text": context.state, "notes": notes, "is": settled})


# --- the bad one, the one that gives up, the one that takes the rest


class Fault(Definition):
    """Raises wherever its payload says so."""

    kind = "fault"
    target = "chat"
    takes = frozenset({"fault", "fault-piece"})

    def match(self, item: Item) -> tuple[str, Role] | None:
        self.check([item.data], "match")
        name = name_of(item, "fault")
        role = UPDATE if item.data.get("role") == "update" else START
        return (name, role) if name else None

    def check(self, payloads: Sequence[Mapping[str, Any]], *methods: str) -> None:
        for payload in payloads:
            if payload.get("fail") in methods:
                raise Kaboom(payload["fail"])

    def check_all(self, context: Context, *methods: str) -> None:
        self.check([match.data for match in context.matches], *methods)

    def start(self, match: Match, reader: Reader) -> tuple[str, ...]:
        self.check([match.data], "start")
        before = reader.previous("fault")
        return (f"after {before and before[0]} {before and len(before[1])}",)

    def update(self, state: tuple[str, ...], match: Match) -> tuple[str, ...]:
        self.check([match.data], "update")
        return (*state, str(match.data.get("fail")))

    def extend(self, state: tuple[str, ...], matches: Sequence[Match]) -> tuple[str, ...]:
        # What `extend` alone raises must not be seen: one by one is what counts.
        self.check([match.data for match in matches], "update", "extend")
        return (*state, *[str(match.data.get("fail")) for match in matches])

    def anchor(self, context: Context) -> Match:
        self.check_all(context, "anchor")
        return context.matches[-1]

    def place(self, context: Context, scope: Scope) -> Any:
        self.check_all(context, "place", "place-turn" if scope.step is None else "place-step")
        return len(context.matches)

    def notes(self, context: Context, scope: Scope) -> Any:
        return self.noted(context)

    def noted(self, context: Context) -> Iterator[tuple[str, Position]]:
        yield "noticed", context.matches[0].position
        self.check_all(context, "notes")

    def build(self, context: Context, scope: Scope) -> Node | None:
        self.check_all(context, "build")
        odd: Any = len(context.matches)
        if any(match.data.get("fail") == "data" for match in context.matches):
            odd = {"no JSON"}
        return Node("fault", context.id, {"state": context.state, "odd": odd})

    def cadence(self, match: Match) -> Cadence:
        self.check([match.data], "cadence")
        return NONE

    def retires(self, event: Event) -> str | None:
        self.check([event.data], "retires")
        return None


class Drop(Definition):
    """Gives up an attempt by name."""

    kind = "drop"
    target = "trajectory"
    takes = frozenset({"drop"})
    names = frozenset({"named/only"})

    def match(self, item: Event) -> tuple[str, Role] | None:
        return str(item.seq), START

    def start(self, match: Match, reader: Reader) -> str:
        return str(match.data.get("attempt"))

    def update(self, state: str, match: Match) -> str:
        raise AssertionError("each has one event alone")

    def build(self, context: Context, scope: Scope) -> Node | None:
        return Node("drop", context.id, {"attempt": context.state, "closed": scope.closed})

    def retires(self, event: Event) -> str | None:
        return name_of(event, "attempt")


class Rest(Definition):
    """The fallback."""

    kind = "rest"
    target = "chat"
    takes = frozenset({UNNAMED})

    def match(self, item: Event) -> tuple[str, Role] | None:
        return str(item.seq), START

    def start(self, match: Match, reader: Reader) -> str:
        return match.type

    def update(self, state: str, match: Match) -> str:
        raise AssertionError("each has one event alone")

    def build(self, context: Context, scope: Scope) -> Node | None:
        anchor = list(pair(context.matches[0].position))
        return Node("rest", context.id, {"type": context.state, "at": anchor})

    def retires(self, event: Event) -> str | None:
        return name_of(event, "gives_up")


# --- groups


class Run(GroupDefinition):
    """Jobs and watches of one turn; raises at what it does not like."""

    kind = "run"
    target = "chat"

    def joins(self, node: Node) -> int | None:
        if node.kind == "fault" and node.data.get("odd") == 3:
            raise Kaboom("joins")
        return node.turn if node.kind in ("job", "watch", "fault") else None

    def tells(self, node: Node) -> tuple[str, bool]:
        if node.kind == "fault" and node.data.get("odd") == 2:
            raise Kaboom("tells")
        runs = bool(node.data.get("running"))
        return node.id if runs else "", node.data.get("result") == "r"

    def summary(self, members: Members) -> Mapping[str, Any]:
        told = Counter[str]()
        for (running, bad), times in members.told.items():
            if bad:
                raise Kaboom("summary")
            told[running] += times
        ends = [end.data.get("result") for end in (members.first, members.last)]
        return {"count": members.size, "running": told, "ends": ends}


class Lane(GroupDefinition):
    """Neighbours of one step, whatever they are, also of none."""

    kind = "lane"
    target = "trajectory"

    def joins(self, node: Node) -> Any:
        return None if node.kind == "drop" else (node.turn, node.step)

    def tells(self, node: Node) -> str | None:
        return None if node.kind == "mark" else node.kind

    def summary(self, members: Members) -> Mapping[str, Any]:
        return {"kinds": members.told, "ends": [members.first.id, members.last.id]}


def toys() -> list[Definition | GroupDefinition]:
    """All of them, new."""
    kinds: list[type[Definition]] = [Job, Entry, Mark, Measure, Tail, Pace, Watch, Count]
    kinds += [Speech, Fault, Drop, Rest]
    return [*[kind() for kind in kinds], Run(), Lane()]


# --- how their payloads are drawn

FAILS = ("match", "start", "update", "extend", "anchor", "place", "place-step", "place-turn")
FAILS += (
    "start",
    "update",
    "update",
    "notes",
    "build",
    "data",
    "cadence",
    "retires",
    "nothing",
    "nothing",
    "nothing",
)
TEXTS = ("", " ", "a", "b\n", "\u00e9", "\U0001f600")


def at_spot(**fields: SearchStrategy[Any]) -> Payload:
    """A payload of these fields, mostly with its coordinates."""

    def drawn(spot: Spot) -> SearchStrategy[Any]:
        places: list[dict[str, int]] = [{}]
        if spot.turn is not None:
            places.append({"turn": spot.turn})
            if spot.step is not None:
                places += [{"turn": spot.turn, "step": spot.step}] * 2
        data = st.fixed_dictionaries(fields)
        return st.builds(lambda data, place: data | place, data, st.sampled_from(places))

    return drawn


def dropping(spot: Spot) -> SearchStrategy[Any]:
    """What gives up an attempt by name, and names its step."""
    place = {"turn": spot.turn, "step": spot.step}
    return st.sampled_from(spot.attempts).map(
        lambda name: {"attempt": name} | {key: at for key, at in place.items() if at is not None}
    )


def giving_up(spot: Spot) -> SearchStrategy[Any]:
    """The same with an event that nobody names."""
    return dropping(spot).map(lambda data: {**data, "gives_up": data["attempt"]})


JOBS = st.sampled_from(("j1", "j2"))
TWO = st.sampled_from(("x", "y"))
THREE = st.sampled_from(("x", "y", "z"))
SOME_TEXT = st.sampled_from(TEXTS)

EVENTS: dict[str, Payload] = {
    "job/open": at_spot(job=JOBS),
    "job/result": at_spot(job=JOBS, value=st.sampled_from((1, None, "r"))),
    "entry": at_spot(entry=st.sampled_from(("e1", "e2", "e3")), text=SOME_TEXT),
    "entry/edit": at_spot(entry=st.sampled_from(("e1", "e2")), text=SOME_TEXT),
    "mark": at_spot(mark=TWO),
    "measure": at_spot(measure=THREE, value=st.integers(0, 3)),
    "watch": at_spot(watch=TWO, job=JOBS),
    "speech": at_spot(text=SOME_TEXT),
    "fault": at_spot(fault=TWO, fail=st.sampled_from(FAILS), role=st.sampled_from(("update", 1))),
    "drop": dropping,
    "named/only": at_spot(),
    "strange/thing": giving_up,
}

DELTAS: dict[str, Payload] = {
    "job-piece": st.fixed_dictionaries({"job": JOBS, "text": SOME_TEXT}),
    "job-print": st.fixed_dictionaries({"job": JOBS, "text": SOME_TEXT}),
    "mark-piece": st.fixed_dictionaries({"mark": TWO}),
    "measure-piece": st.fixed_dictionaries({"measure": THREE, "value": st.integers(0, 3)}),
    "watch-piece": st.fixed_dictionaries({"watch": TWO, "job": JOBS}),
    "speech-piece": st.fixed_dictionaries({"text": SOME_TEXT}),
    "speech-note": st.just({}),
    "fault-piece": st.fixed_dictionaries(
        {"fault": TWO, "fail": st.sampled_from(FAILS), "role": st.sampled_from(("update", 1))}
    ),
    "strange-piece": st.just({"job": "j1"}),
}
