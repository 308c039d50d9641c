"""The state machine: all operations in any order, and after every one all that must hold.

`Bench.check` says what that is. Profiles: the default one is for every run; the deep one runs
more than 50,000 steps: `pytest tests/convergence/test_machine.py --hypothesis-profile deep`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec.structs import replace

from assembler.engine.errors import ConflictError, GapError, InputError, LimitError
from assembler.engine.events import Delta, Event
from assembler.engine.locations import TURN_END
from assembler.testing import Conversation, Operation, Spot, conversations, operations
from assembler.testing.strategies import OUTCOMES, Payload
from tests.convergence.support import Bench
from tests.convergence.toys import DELTAS, EVENTS

NAMES = ("a", "b", "c", "d")
# Where something happens, seen from the newest open turn and step: mostly there.
TURNS = st.sampled_from((0, 0, 0, 0, 0, 1, -1))
STEPS = st.sampled_from((0, 0, 0, 0, 1))
BOUNDARIES = ("turn/start", "step/start", "step/end", "turn/end")


class Voice:
    """An attempt as the world outside knows it."""

    def __init__(self, name: str, turn: int, step: int, number: int) -> None:
        self.name, self.turn, self.step, self.number = name, turn, step, number
        self.said: list[Delta] = []


class Convergence(RuleBasedStateMachine):
    """The truth is a log and what attempts have said; the bench sees what is delivered of it."""

    def __init__(self) -> None:
        super().__init__()
        self.bench = Bench()
        self.log: list[Event] = []
        self.voices: dict[str, Voice] = {}
        self.index = 0
        self.named = 0
        self.unseen, self.blind = 0, False

    def draw_payload(self, data: st.DataObject, payload: Payload, turn: int, step: int) -> Any:
        if callable(payload) and not isinstance(payload, st.SearchStrategy):
            names = tuple(voice.name for voice in self.voices.values()) or NAMES
            return data.draw(payload(Spot(turn, step, names)))
        return data.draw(payload)

    def place(self, turn: int, step: int) -> tuple[int, int]:
        """A place that is mostly open, so that much happens there."""
        floor, newest = self.bench.oracle.floor, self.bench.oracle.newest or 1
        closed = floor[0] >= newest and floor[1] == TURN_END
        at = newest + closed + turn
        begun = floor[1] if floor[0] == at and floor[1] < TURN_END else 0
        return at, begun + 1 + step

    def happen(self, type_: str, data: Any, deliver: bool) -> None:
        self.log.append(Event(len(self.log) + 1, type_, data, time=len(self.log)))
        if deliver and self.bench.oracle.end == len(self.log) - 1:
            self.bench.do("append", self.log[-1])

    def cut(self, data: st.DataObject) -> tuple[Event, ...]:
        first = data.draw(st.integers(1, len(self.log)))
        last = data.draw(st.integers(first, len(self.log)))
        return tuple(self.log[first - 1 : last])

    # --- what happens

    @initialize(conversation=conversations(EVENTS, DELTAS, moments=9), known=st.integers(0, 9))
    def begin(self, conversation: Conversation, known: int) -> None:
        """History, of which the newest part may be loaded."""
        self.log += conversation.log
        if known and self.log:
            page = tuple(self.log[max(len(self.log) - 2 * known, 0) :])
            self.bench.do("load", page, page[0].seq > 1)

    @rule(data=st.data(), types=st.lists(st.sampled_from(sorted(EVENTS)), min_size=1, max_size=5),
          turn=TURNS, step=STEPS, deliver=st.integers(0, 3).map(bool))  # fmt: skip
    def some_events(
        self, data: st.DataObject, types: list[str], turn: int, step: int, deliver: bool
    ) -> None:
        for type_ in types:
            self.event(data, type_, turn, step, deliver)

    @rule(data=st.data(), type_=st.sampled_from(("entry", "entry/edit", "job/result", "measure")))
    def one_more(self, data: st.DataObject, type_: str) -> None:
        """What others look back at, and what changes it later."""
        self.event(data, type_, 0, 0, True)

    def event(self, data: st.DataObject, type_: str, turn: int, step: int, deliver: bool) -> None:
        at = self.place(turn, step)
        self.happen(type_, self.draw_payload(data, EVENTS[type_], *at), deliver)

    @rule(type_=st.sampled_from(BOUNDARIES), turn=TURNS, step=STEPS, deliver=st.booleans(),
          whole=st.integers(0, 9).map(bool))  # fmt: skip
    def boundary(self, type_: str, turn: int, step: int, deliver: bool, whole: bool) -> None:
        """A boundary; one that does not name its place is none."""
        at, in_turn = self.place(turn, step)
        place = {"turn": at, "step": in_turn} if type_.startswith("step") else {"turn": at}
        if not whole:
            place.popitem()
        self.happen(type_, place, deliver)

    # --- how events are delivered

    @precondition(lambda self: self.bench.oracle.end is not None)
    @rule(many=st.integers(1, 4))
    def follow(self, many: int) -> None:
        for event in self.log[self.bench.oracle.end or 0 :][:many]:
            assert self.bench.do("append", event) is None

    @precondition(lambda self: self.log)
    @rule(data=st.data())
    def append_any(self, data: st.DataObject) -> None:
        self.bench.do("append", data.draw(st.sampled_from(self.log)))

    @precondition(lambda self: self.log)
    @rule(data=st.data(), lie=st.integers(0, 5).map(lambda n: n == 5))
    def load(self, data: st.DataObject, lie: bool) -> None:
        page = self.cut(data)
        assert self.bench.do("load", page, (page[0].seq > 1) is not lie) is None

    @rule(has_more=st.booleans())
    def load_nothing(self, has_more: bool) -> None:
        self.bench.do("load", (), has_more)

    @precondition(lambda self: self.log)
    @rule(size=st.integers(0, 6), over=st.sampled_from((0, 0, 0, 1, 2, 9)),
          lie=st.integers(0, 5).map(lambda n: n == 5))  # fmt: skip
    def page(self, size: int, over: int, lie: bool) -> None:
        """The page before the window, or reaching into (or beyond) it."""
        first = self.bench.oracle.window.first or len(self.log) + 1
        last = min(first - 1 + over, len(self.log))
        begin = max(last - size + 1, 1)
        page = tuple(self.log[begin - 1 : last])
        assert self.bench.do("prepend", page, (begin > 1) is not lie) is None

    @rule(has_more=st.booleans())
    def page_of_nothing(self, has_more: bool) -> None:
        """It says whether there is more, and nothing else."""
        self.bench.do("prepend", (), has_more)

    @precondition(lambda self: self.log)
    @rule(data=st.data(), has_more=st.booleans())
    def page_any(self, data: st.DataObject, has_more: bool) -> None:
        self.bench.do("prepend", self.cut(data), has_more)

    @rule(before=st.integers(0, 20))
    def evict(self, before: int) -> None:
        """Some of the oldest loaded events, now and then all of them."""
        first = self.bench.oracle.window.first or 0
        self.bench.do("evict", first + before if before < 20 else 1_000)

    # --- attempts

    @rule(data=st.data(), name=st.sampled_from(NAMES), type_=st.sampled_from(sorted(DELTAS)),
          turn=TURNS, step=STEPS, number=st.sampled_from((1, 1, 1, 2, 2, 3, 0)))  # fmt: skip
    def speak(
        self, data: st.DataObject, name: str, type_: str, turn: int, step: int, number: int
    ) -> None:
        """The next delta of an attempt; its place is that of its first one."""
        self.bench.do("emit", self.next_delta(data, name, type_, turn, step, number))

    @rule(data=st.data(), name=st.sampled_from(NAMES), many=st.integers(2, 5))
    def run_of(self, data: st.DataObject, name: str, many: int) -> None:
        """A run of one type: what `extend` folds."""
        type_ = data.draw(st.sampled_from(("job-piece", "speech-piece", "fault-piece")))
        for _ in range(many):
            self.bench.do("emit", self.next_delta(data, name, type_, 0, 0, 1))

    def next_delta(
        self, data: st.DataObject, name: str, type_: str, turn: int, step: int, number: int
    ) -> Delta:
        voice = self.voices.get(name)
        if voice is None or (self.is_over(voice) and data.draw(st.integers(0, 4))):
            self.named += 1
            voice = self.voices[name] = Voice(
                f"{name}{self.named}", *self.place(turn, step), number
            )
        self.index += 1
        delta = Delta(
            voice.name,
            voice.turn,
            voice.step,
            type_,
            self.draw_payload(data, DELTAS[type_], voice.turn, voice.step),
            number=voice.number,
            ordinal=len(voice.said),
            after=data.draw(st.integers(0, len(self.log))) if not voice.said else self.after(voice),
            index=self.index,
        )
        voice.said.append(delta)
        return delta

    def is_over(self, voice: Voice) -> bool:
        """Whether whatever it says is late."""
        oracle, place = self.bench.oracle, (voice.turn, voice.step)
        return place <= oracle.floor or (place, voice.name) in oracle.given_up

    def after(self, voice: Voice) -> int:
        """Positions of an attempt rise."""
        return max(voice.said[-1].after, len(self.log))

    @rule(data=st.data(), type_=st.sampled_from(sorted(DELTAS)), turn=TURNS, step=STEPS)
    def speak_together(self, data: st.DataObject, type_: str, turn: int, step: int) -> None:
        """Two attempts at one position, the later name first."""
        index = self.index
        for name in ("z", "y"):
            self.index = index
            self.bench.do("emit", self.next_delta(data, name, type_, turn, step, 1))

    @precondition(lambda self: self.voices)
    @rule(data=st.data())
    def say_again(self, data: st.DataObject) -> None:
        self.bench.do("emit", data.draw(st.sampled_from(self.said())))

    @precondition(lambda self: self.voices)
    @rule(data=st.data())
    def say_all_again(self, data: st.DataObject) -> None:
        """An attempt is fetched again: this heals a torn one."""
        name = data.draw(st.sampled_from(sorted(self.voices)))
        for delta in self.voices[name].said:
            self.bench.do("emit", delta)

    @rule(data=st.data(), name=st.sampled_from(NAMES), type_=st.sampled_from(sorted(DELTAS)),
          turn=TURNS, step=STEPS, number=st.integers(0, 3))  # fmt: skip
    def skip(
        self, data: st.DataObject, name: str, type_: str, turn: int, step: int, number: int
    ) -> None:
        """A delta is lost on the way; the next one is what arrives."""
        self.next_delta(data, name, type_, turn, step, number)
        self.bench.do("emit", self.next_delta(data, name, type_, turn, step, number))

    def said(self) -> list[Delta]:
        return [delta for voice in self.voices.values() for delta in voice.said]

    @precondition(lambda self: self.voices)
    @rule(data=st.data(), change=st.sampled_from(
        ({"turn": 2}, {"step": 9}, {"number": 2}, {"number": 0}, {"after": 0, "index": 1})),
          further=st.integers(0, 2))  # fmt: skip
    def contradict(self, data: st.DataObject, change: dict[str, int], further: int) -> None:
        """An attempt that changes its place or number, or goes back."""
        delta = data.draw(st.sampled_from(self.said()))
        self.bench.do("emit", replace(delta, ordinal=delta.ordinal + further, **change))

    @rule(name=st.sampled_from((*NAMES, "y", "z")), outcome=st.sampled_from(OUTCOMES),
          ahead=st.integers(0, 3))  # fmt: skip
    def settle(self, name: str, outcome: str, ahead: int) -> None:
        """Who speaks, or who will speak next."""
        voice = self.voices.get(name)
        known = voice.name if voice is not None and ahead else f"{name}{self.named + 1}"
        self.bench.do("settle", known, outcome)

    @rule(live=st.sampled_from((True, False, None)))
    def liveness(self, live: bool | None) -> None:
        self.bench.do("liveness", live)

    @rule(view=st.sampled_from(("chat", "trajectory")))
    def toggle(self, view: str) -> None:
        if view in self.bench.snapshots:
            self.bench.deactivate(view)
        else:
            self.bench.activate(view)

    # --- what must be refused, and change nothing

    @precondition(lambda self: self.bench.oracle.events)
    @rule(data=st.data(), call=st.sampled_from(("append", "prepend")))
    def other_content(self, data: st.DataObject, call: str) -> None:
        events = self.bench.oracle.events
        nth = data.draw(st.integers(0, len(events) - 1))
        change: dict[str, Any] = data.draw(
            st.sampled_from(({"time": -1}, {"id": "i"}, {"v": 2}, {"data": {"odd": 1}}))
        )
        other = replace(events[nth], **change)
        given: Any = (other,) if call == "append" else ((*events[:nth], other), True)
        assert self.bench.do(call, *given) is ConflictError

    @precondition(lambda self: len(self.log) > 2)
    @rule(data=st.data(), call=st.sampled_from(("load", "prepend")))
    def hole(self, data: st.DataObject, call: str) -> None:
        gone = data.draw(st.integers(2, len(self.log) - 1))
        assert self.bench.do(call, [e for e in self.log if e.seq != gone], True) is GapError

    @precondition(lambda self: self.bench.oracle.end is not None)
    @rule(more=st.integers(1, 3))
    def beyond(self, more: int) -> None:
        seq = (self.bench.oracle.end or 0) + 1 + more
        assert self.bench.do("append", {"seq": seq, "type": "entry"}) is GapError

    @rule(operation=st.sampled_from((
        Operation("append", ({"seq": 0, "type": "entry"},)),
        Operation("append", ({"seq": 1, "type": "entry", "data": {"x": {1}}},)),
        Operation("append", ({"seq": True, "type": "entry"},)),
        Operation("append", ({"type": "entry"},)),
        Operation("append", (None,)),
        Operation("load", ([{"seq": 1, "type": ""}], False)),
        Operation("prepend", ([{"seq": 1, "type": "entry", "odd": 1}], True)),
        Operation("emit", ({"attempt": "", "turn": 1, "step": 1, "type": "t"},)),
        Operation("emit", ({"attempt": "q", "turn": 1, "step": 1, "type": "t", "index": 0},)),
        Operation("settle", ("a", "finished")),
        Operation("settle", ("", "completed")),
        Operation("liveness", (1,)),
        Operation("evict", ("3",)),
    )))  # fmt: skip
    def nonsense(self, operation: Operation) -> None:
        assert self.bench.perform(operation) is InputError

    @precondition(lambda self: self.bench.oracle.deltas)
    @rule(data=st.data(), odd=st.sampled_from((
        {"time": "x"}, {"type": ""}, {"type": ["x"]}, {"index": 1.5}, {"after": -1}, {"turn": 1.0},
        {"ordinal": True}, {"number": True}, {"step": True}, {"index": 1 << 32})))  # fmt: skip
    def malformed(self, data: st.DataObject, odd: dict[str, Any]) -> None:
        """A Delta is a struct that anybody can make; the next one of a held attempt at that."""
        last = data.draw(st.sampled_from(self.bench.oracle.deltas))
        self.index += 1
        given = {"ordinal": last.ordinal + 1, "index": self.index} | odd
        refused = self.bench.do("emit", replace(last, **given))
        assert refused is (LimitError if given["index"] == 1 << 32 else InputError)

    # --- after every step, except where several come before anybody looks

    @rule(steps=st.integers(1, 3))
    def look_away(self, steps: int) -> None:
        """The next steps are not looked at: their flush is that of the one behind them."""
        self.unseen = steps + 1

    @invariant()
    def holds(self) -> None:
        if self.unseen:
            self.unseen, self.blind = self.unseen - 1, True
            return
        self.bench.check(identity=not self.blind)
        self.blind = False


IS_DEEP = settings.get_current_profile_name() == "deep"
EXAMPLES, STEPS_EACH = (3_000, 30) if IS_DEEP else (400, 25)
CHOSEN = settings(
    max_examples=EXAMPLES,
    stateful_step_count=STEPS_EACH,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


class TestConvergence(Convergence.TestCase):  # type: ignore[misc,valid-type]
    """The machine, in the profile that was asked for."""


TestConvergence.settings = CHOSEN


@settings(CHOSEN, max_examples=EXAMPLES // 4)
@given(operations(conversations(EVENTS, DELTAS, moments=5), wrong=True))
def test_conversations_delivered_badly(delivered: Sequence[Operation]) -> None:
    """What the public strategies make; the check follows every operation."""
    bench = Bench(fresh=False)
    for operation in delivered:
        bench.perform(operation)
        bench.check()


@settings(CHOSEN, max_examples=EXAMPLES // 4)
@given(operations(conversations(EVENTS, DELTAS, moments=8)), st.integers(2, 9))
def test_conversations_looked_at_now_and_then(delivered: Sequence[Operation], every: int) -> None:
    """Several operations between two flushes: what went and came again is still one patch."""
    bench = Bench(fresh=False)
    for nth, operation in enumerate(delivered):
        bench.perform(operation)
        if nth % every == 0 or nth == len(delivered) - 1:
            bench.check(identity=False)
