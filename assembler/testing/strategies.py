"""Hypothesis strategies: conversations of the caller's own events, and ways to deliver them.

`conversations` writes a conversation as it happens live: turns, steps, attempts, retries,
settlements. `operations` delivers it as networks do: pages, overlaps, repeats, late and skipped
deltas, evictions, resyncs, wrong inputs. Both speak of the caller's event types alone. Not here:
what must hold afterwards (`oracle`, `compare`).

    conversations(
        events={"note": st.fixed_dictionaries({"text": st.text()})},
        deltas={"note-piece": located(st.fixed_dictionaries({"text": st.text()}))},
    )
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from msgspec import Struct
from msgspec.structs import replace

from assembler.engine.errors import AssemblerError
from assembler.engine.events import Delta, Event

__all__ = [
    "Conversation",
    "Operation",
    "Payload",
    "Spot",
    "conversations",
    "located",
    "operations",
]

OUTCOMES = ("completed", "failed", "interrupted", "abandoned")


class Spot(NamedTuple):
    """Where in a conversation a payload is drawn.

    `step` is None between steps, `turn` before the first one. `attempts` are the names of the
    attempts of this step so far; never empty (a name that nobody bears, when there are none).
    """

    turn: int | None
    step: int | None
    attempts: tuple[str, ...]


Payload = SearchStrategy[Any] | Callable[[Spot], SearchStrategy[Any]]
"""How the data of one type is drawn: a strategy of mappings, or a function from the `Spot`."""


class Operation(Struct, frozen=True):
    """One call of an Assembler (or Oracle), as a value that prints as what it does."""

    call: str
    arguments: tuple[Any, ...]

    def perform(self, target: Any) -> type[AssemblerError] | None:
        """Do it to `target`; the class of the error when it was refused."""
        try:
            getattr(target, self.call)(*self.arguments)
        except AssemblerError as error:
            return type(error)
        return None

    def __repr__(self) -> str:
        return f"{self.call}({', '.join(map(repr, self.arguments))})"


class Conversation(Struct, frozen=True):
    """A conversation as it happens live, in the order in which it happens."""

    script: tuple[Operation, ...]

    @property
    def log(self) -> tuple[Event, ...]:
        """Its durable events."""
        return tuple(each.arguments[0] for each in self.script if each.call == "append")

    @property
    def deltas(self) -> tuple[Delta, ...]:
        """All deltas of all its attempts."""
        return tuple(each.arguments[0] for each in self.script if each.call == "emit")


def located(payload: SearchStrategy[Any]) -> Payload:
    """`payload` that also names its turn and step (a turn alone between steps)."""

    def at(spot: Spot) -> SearchStrategy[Any]:
        place = {"turn": spot.turn, "step": spot.step}
        named = {name: number for name, number in place.items() if number is not None}
        return payload.map(lambda data: {**data, **named})

    return at


class _Voice:
    """An attempt while the conversation is written."""

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.number = number
        self.spoken = 0


class _Writer:
    """Writes a conversation, moment by moment."""

    def __init__(
        self, draw: DrawFn, events: Mapping[str, Payload], deltas: Mapping[str, Payload]
    ) -> None:
        self.draw = draw
        self.events = dict(events)
        self.delta_types = dict(deltas)
        self.script: list[Operation] = []
        self.seq = 0
        self.index = 0
        self.names = 0
        self.turn: int | None = None
        self.step: int | None = None
        self.number = 1
        self.voices: list[_Voice] = []

    # --- the frame

    def write_turn(self, turn: int, steps: int, moments: int) -> None:
        """A turn; its boundaries may be missing, as after a crash."""
        self.turn, self.step, self.voices = turn, None, []
        if self.often():
            self.append("turn/start", {"turn": turn})
        self.write_moments(moments // 3)
        for step in range(1, self.draw(st.integers(0, steps)) + 1):
            self.write_step(step, moments)
        self.step, self.voices = None, []
        self.write_moments(moments // 3)
        if self.often():
            self.append("turn/end", {"turn": turn})
            self.turn = None

    def write_step(self, step: int, moments: int) -> None:
        """A step: attempts speak, events happen, settlements come before or after its end."""
        self.step, self.voices, self.number = step, [], 1
        place = {"turn": self.turn, "step": step}
        if self.often():
            self.append("step/start", place)
        self.write_moments(moments)
        before, after = self.draw(st.booleans()), self.draw(st.booleans())
        if before:
            self.settle_all()
        if self.often():
            self.append("step/end", place)
        if after:
            self.settle_all()

    def often(self) -> bool:
        return self.draw(st.integers(0, 7)) > 0

    # --- moments

    def write_moments(self, most: int) -> None:
        kinds: list[Callable[[], None]] = [self.write_event] if self.events else []
        if self.step is not None and self.delta_types:
            kinds += [self.write_delta, self.write_delta, self.write_settlement]
        kinds.append(self.write_liveness)
        for _ in range(self.draw(st.integers(0, most))):
            self.draw(st.sampled_from(kinds))()

    def write_event(self) -> None:
        type_ = self.draw(st.sampled_from(sorted(self.events)))
        self.append(type_, self.payload(self.events[type_]))

    def write_delta(self) -> None:
        voice = self.voice()
        type_ = self.draw(st.sampled_from(sorted(self.delta_types)))
        self.index += 1
        assert self.turn is not None
        assert self.step is not None
        delta = Delta(
            voice.name,
            self.turn,
            self.step,
            type_,
            self.payload(self.delta_types[type_]),
            number=voice.number,
            ordinal=voice.spoken,
            after=self.seq,
            index=self.index,
            time=self.seq,
        )
        voice.spoken += 1
        self.add("emit", delta)

    def voice(self) -> _Voice:
        """An attempt that may still speak: a known one, a parallel one, a side one, a retry."""
        able = [voice for voice in self.voices if voice.number in (0, self.number)]
        choice = self.draw(st.integers(0, 9 if able else 2))
        if choice > 2:  # noqa: PLR2004 - seven times of ten, whoever speaks already
            return self.draw(st.sampled_from(able))
        if choice == 2 and self.voices:  # noqa: PLR2004
            self.number += 1
        self.names += 1
        voice = _Voice(f"attempt-{self.names}", 0 if choice == 1 else self.number)
        self.voices.append(voice)
        return voice

    def write_settlement(self) -> None:
        names = [voice.name for voice in self.voices] or [f"attempt-{self.names + 1}"]
        outcome = self.draw(st.sampled_from(OUTCOMES))
        self.add("settle", self.draw(st.sampled_from(names)), outcome)

    def write_liveness(self) -> None:
        self.add("liveness", self.draw(st.sampled_from((True, False, None))))

    def settle_all(self) -> None:
        for voice in self.voices:
            self.add("settle", voice.name, self.draw(st.sampled_from(OUTCOMES)))

    # --- words

    def payload(self, payload: Payload) -> Any:
        names = tuple(voice.name for voice in self.voices) or ("attempt-0",)
        if isinstance(payload, SearchStrategy):
            return self.draw(payload)
        return self.draw(payload(Spot(self.turn, self.step, names)))

    def append(self, type_: str, data: Any) -> None:
        self.seq += 1
        self.add("append", Event(self.seq, type_, data, time=self.seq * 1_000))

    def add(self, call: str, *arguments: Any) -> None:
        self.script.append(Operation(call, arguments))


@st.composite
def conversations(
    draw: DrawFn,
    events: Mapping[str, Payload],
    deltas: Mapping[str, Payload] | None = None,
    *,
    turns: int = 3,
    steps: int = 2,
    moments: int = 6,
) -> Conversation:
    """Conversations of your events: at most `turns` turns of `steps` steps of `moments` moments.

    `events` and `deltas` say for each of your types how its data is drawn (see `Payload`); the
    turn and step boundaries, the attempts with their numbers, retries and settlements are added.
    An event type of yours that gives up an attempt takes its name from `Spot.attempts`.
    """
    writer = _Writer(draw, events, deltas or {})
    writer.write_moments(moments // 3)
    for turn in range(1, draw(st.integers(1, turns)) + 1):
        writer.write_turn(turn, steps, moments)
    return Conversation(tuple(writer.script))


class _Courier:
    """Delivers a conversation badly."""

    def __init__(self, draw: DrawFn, conversation: Conversation, wrong: bool) -> None:
        self.draw = draw
        self.script = conversation.script
        self.log = conversation.log
        self.at = 0
        self.known = 0  # how many events have happened so far
        self.first = 1  # about where the window begins: a guess is good enough
        self.done: list[Operation] = []
        self.late: list[Operation] = []
        self.moves: list[Callable[[], None]] = [self.forward] * 8
        self.moves += [self.again, self.hold_back, self.release, self.page, self.evict]
        self.moves += [self.resync, self.overtake, self.liveness, self.settle, self.lose]
        if wrong:
            self.moves += [self.other_content, self.hole, self.beyond, self.contradiction]

    def deliver(self) -> tuple[Operation, ...]:
        self.begin()
        while self.at < len(self.script):
            self.draw(st.sampled_from(self.moves))()
        for _ in range(self.draw(st.integers(0, 6))):
            self.draw(st.sampled_from(self.moves))()
        return tuple(self.done)

    def begin(self) -> None:
        """From the start on, or joining in the middle."""
        if self.draw(st.booleans()):
            self.skip_to(self.draw(st.integers(0, len(self.script))))
            self.resync()

    def skip_to(self, at: int) -> None:
        skipped = self.script[self.at : at]
        self.known += sum(1 for each in skipped if each.call == "append")
        self.at = max(at, self.at)

    # --- as it should be, more or less

    def forward(self) -> None:
        if self.at < len(self.script):
            self.done.append(self.script[self.at])
            self.skip_to(self.at + 1)

    def again(self) -> None:
        if self.done:
            self.done.append(self.draw(st.sampled_from(self.done)))

    def hold_back(self) -> None:
        """What comes next is late: a delta or a settlement; events have an order of their own."""
        if self.at < len(self.script) and self.script[self.at].call != "append":
            self.late.append(self.script[self.at])
            self.skip_to(self.at + 1)

    def lose(self) -> None:
        """The next event is lost, the one behind it is refused, and a page repairs it."""
        self.skip_to(min(self.at + 1, len(self.script)))
        self.forward()
        self.draw(st.sampled_from((self.resync, self.forward)))()

    def release(self) -> None:
        self.done += self.late
        self.late = []

    def overtake(self) -> None:
        """The one after the next comes first."""
        self.hold_back()
        self.forward()
        self.release()

    def page(self) -> None:
        size = self.draw(st.integers(0, 5))
        last = min(self.first - 1 + self.draw(st.sampled_from((0, 0, 0, 1, 3))), self.known)
        first = max(last - size + 1, 1)
        self.done.append(Operation("prepend", (self.log[first - 1 : last], first > 1)))
        self.first = min(self.first, first)

    def evict(self) -> None:
        self.first = self.draw(st.integers(1, self.known + 1))
        self.done.append(Operation("evict", (self.first,)))

    def resync(self) -> None:
        self.first = self.draw(st.integers(1, self.known + 1))
        loaded = self.log[self.first - 1 : self.known]
        self.done.append(Operation("load", (loaded, self.first > 1)))

    def liveness(self) -> None:
        self.done.append(Operation("liveness", (self.draw(st.sampled_from((True, False, None))),)))

    def settle(self) -> None:
        names = [each.arguments[0].attempt for each in self.script if each.call == "emit"]
        if names:
            outcome = self.draw(st.sampled_from(OUTCOMES))
            self.done.append(Operation("settle", (self.draw(st.sampled_from(names)), outcome)))

    # --- as it should never be

    def other_content(self) -> None:
        if self.known:
            event = self.draw(st.sampled_from(self.log[: self.known]))
            self.done.append(Operation("append", (replace(event, time=event.time + 1),)))

    def hole(self) -> None:
        if self.known > 2:  # noqa: PLR2004 - a hole needs two sides
            gone = self.draw(st.integers(2, self.known - 1))
            holed = tuple(event for event in self.log[: self.known] if event.seq != gone)
            call = self.draw(st.sampled_from(("load", "prepend")))
            self.done.append(Operation(call, (holed, False)))

    def beyond(self) -> None:
        if self.known < len(self.log):
            event = self.draw(st.sampled_from(self.log[self.known :]))
            self.done.append(Operation("append", (event,)))

    def contradiction(self) -> None:
        """An attempt changes its place, its number, or goes back."""
        spoken = [each.arguments[0] for each in self.done if each.call == "emit"]
        if spoken:
            delta = self.draw(st.sampled_from(spoken))
            change = self.draw(
                st.sampled_from(({"step": delta.step + 1}, {"number": delta.number + 1}, {}))
            )
            change["ordinal"] = delta.ordinal + 1
            self.done.append(Operation("emit", (replace(delta, **change),)))


@st.composite
def operations(
    draw: DrawFn,
    conversation: SearchStrategy[Conversation] | Conversation,
    *,
    wrong: bool = False,
) -> tuple[Operation, ...]:
    """Ways to deliver a conversation: any way that a network, a pager or a restart may find.

    Appends and deltas in order, repeated, late, overtaken and lost; pages of any size, with
    overlaps; evictions, resyncs, joining in the middle. With `wrong`, also what must be refused:
    other contents, holes, contradictions. Some of them are refused in any case (an append behind
    a lost one), so `Operation.perform` returns the error instead of raising it.
    """
    given = conversation if isinstance(conversation, Conversation) else draw(conversation)
    return _Courier(draw, given, wrong).deliver()
