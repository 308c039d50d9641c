"""Hypothesis strategies: conversations of the caller's own events, and ways to deliver them.

`conversations` writes a conversation as it happens live: turns, steps, attempts, retries,
settlements. `operations` delivers it as networks do. Both speak of the caller's event types
alone. Not here: what goes wrong on the way (`delivery`), what must hold afterwards (`oracle`,
`compare`, `convergence`).

    conversations(
        events={"note": st.fixed_dictionaries({"text": st.text()})},
        deltas={"note-piece": [{"text": "a"}, {"text": "b"}]},
    )
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from assembler.engine.events import Delta, Event
from assembler.testing.brackets import BOUNDARIES
from assembler.testing.delivery import FAULTS, WRONGS, Courier
from assembler.testing.scripts import OUTCOMES, Conversation, Operation

__all__ = [
    "OUTCOMES",
    "Conversation",
    "Operation",
    "Payload",
    "Spot",
    "conversations",
    "located",
    "operations",
]

T = TypeVar("T")


class Spot(NamedTuple):
    """Where in a conversation a payload is drawn.

    `step` is None between steps, `turn` before the first one. `attempts` are the names of the
    attempts of this step so far; never empty (a name that nobody bears, when there are none).
    """

    turn: int | None
    step: int | None
    attempts: tuple[str, ...]


Payload = (
    SearchStrategy[Any]
    | Callable[[Spot], SearchStrategy[Any]]
    | Sequence[Mapping[str, Any]]
    | Mapping[str, Any]
)
"""How the data of one type is drawn: a strategy of mappings, a function from the `Spot` to one,
or examples: a list of mappings, or the one that it always is."""


def drawn_as(type_: str, payload: Any, spot: Spot) -> SearchStrategy[Any]:
    """The strategy that a payload stands for; `TypeError` in one line for what is none."""
    if isinstance(payload, Mapping):
        return st.just(payload)
    if isinstance(payload, (list, tuple)) and payload:
        return st.sampled_from(payload)
    found = payload(spot) if callable(payload) else payload
    if not isinstance(found, SearchStrategy):
        raise TypeError(
            f"the data of {type_!r}: expected a strategy, a function from a Spot to one, or a "
            f"list of mappings, got {payload!r:.80}"
        )
    return found


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


def _weighed(types: Mapping[str, Payload], often: Collection[str]) -> list[str]:
    """Every type once; those of `often` come in one choice of two."""
    names = sorted(types)
    favourites = [name for name in names if name in often]
    return names + favourites * (len(names) // max(len(favourites), 1))


class _Writer:
    """Writes a conversation, moment by moment."""

    def __init__(
        self,
        draw: DrawFn,
        events: Mapping[str, Payload],
        deltas: Mapping[str, Payload],
        often: Collection[str],
    ) -> None:
        self.draw = draw
        self.events = {name: each for name, each in events.items() if name not in BOUNDARIES}
        self.boundaries = {name: each for name, each in events.items() if name in BOUNDARIES}
        self.delta_types = dict(deltas)
        self.event_choice = _weighed(self.events, often)
        self.delta_choice = _weighed(self.delta_types, often)
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
            self.boundary("turn/start", {"turn": turn})
        self.write_moments(moments // 3)
        for step in range(1, self.draw(st.integers(0, steps)) + 1):
            self.write_step(step, moments)
        self.step, self.voices = None, []
        self.write_moments(moments // 3)
        if self.often():
            self.boundary("turn/end", {"turn": turn})
            self.turn = None

    def write_step(self, step: int, moments: int) -> None:
        """A step: attempts speak, events happen, settlements come before or after its end."""
        self.step, self.voices, self.number = step, [], 1
        place = {"turn": self.turn, "step": step}
        if self.often():
            self.boundary("step/start", place)
        self.write_moments(moments)
        before, after = self.draw(st.booleans()), self.draw(st.booleans())
        if before:
            self.settle_all()
        if self.often():
            self.boundary("step/end", place)
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
        type_ = self.draw(st.sampled_from(self.event_choice))
        self.append(type_, self.payload(type_, self.events[type_]))

    def write_delta(self) -> None:
        voice = self.voice()
        type_ = self.draw(st.sampled_from(self.delta_choice))
        self.index += 1
        assert self.turn is not None
        assert self.step is not None
        delta = Delta(
            voice.name,
            self.turn,
            self.step,
            type_,
            self.payload(type_, self.delta_types[type_]),
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

    def payload(self, type_: str, payload: Payload) -> Any:
        names = tuple(voice.name for voice in self.voices) or ("attempt-0",)
        return self.draw(drawn_as(type_, payload, Spot(self.turn, self.step, names)))

    def boundary(self, type_: str, place: dict[str, Any]) -> None:
        """A boundary, with what the caller wants it to hold beside its place."""
        more = self.payload(type_, self.boundaries[type_]) if type_ in self.boundaries else {}
        self.append(type_, {**more, **place})

    def append(self, type_: str, data: Any) -> None:
        self.seq += 1
        self.add("append", Event(self.seq, type_, data, time=self.seq * 1_000))

    def add(self, call: str, *arguments: Any) -> None:
        self.script.append(Operation(call, arguments))


@st.composite
def conversations(  # noqa: PLR0913 - all but the first two are named
    draw: DrawFn,
    events: Mapping[str, Payload],
    deltas: Mapping[str, Payload] | None = None,
    *,
    turns: int = 3,
    steps: int = 2,
    moments: int = 6,
    often: Collection[str] = (),
) -> Conversation:
    """Conversations of your events: at most `turns` turns of `steps` steps of `moments` moments.

    `events` and `deltas` say for each of your types how its data is drawn (see `Payload`); the
    turn and step boundaries, the attempts with their numbers, retries and settlements are added.
    An event type of yours that gives up an attempt takes its name from `Spot.attempts`. A boundary
    type in `events` says what its boundaries hold beside their turn and step. Types in `often`
    come as often as all others together.
    """
    writer = _Writer(draw, events, deltas or {}, often)
    writer.write_moments(moments // 3)
    for turn in range(1, draw(st.integers(1, turns)) + 1):
        writer.write_turn(turn, steps, moments)
    return Conversation(tuple(writer.script))


class _Drawn:
    """Decides as Hypothesis draws."""

    def __init__(self, draw: DrawFn) -> None:
        self._draw = draw

    def number(self, low: int, high: int) -> int:
        return self._draw(st.integers(low, high))

    def among(self, options: Sequence[T]) -> T:
        return self._draw(st.sampled_from(options))


@st.composite
def operations(
    draw: DrawFn,
    conversation: SearchStrategy[Conversation] | Conversation,
    *,
    wrong: bool = False,
) -> tuple[Operation, ...]:
    """Ways to deliver a conversation: any way that a network, a pager or a restart may find.

    What may go wrong is `delivery.FAULTS`; with `wrong`, also what must be refused: other
    contents, holes, contradictions. Some of them are refused in any case (an append behind a
    lost one), so `Operation.perform` returns the error instead of raising it.
    """
    given = conversation if isinstance(conversation, Conversation) else draw(conversation)
    faults = FAULTS + WRONGS if wrong else FAULTS
    return Courier(_Drawn(draw), given, faults).deliver()
