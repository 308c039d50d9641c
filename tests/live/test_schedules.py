"""Whatever happens when, and however slowly somebody looks, everybody ends with the same view.

Random conversations of the toys are delivered badly, while time passes and subscribers come, go,
take Patches now and then, or wait as tasks.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from assembler import Assembler
from assembler.engine.patches import Patch, Put, Remove
from assembler.live import Publisher
from assembler.testing import Operation, conversations, operations
from tests.convergence.toys import DELTAS, EVENTS, toys
from tests.live.support import Client, Clock, take

VIEWS = ("chat", "trajectory")
SEATS = 4
DONE = ("go", 1_000)

SEAT = st.integers(0, SEATS - 1)
ACTIONS = st.one_of(
    st.tuples(st.just("go"), st.integers(1, 4)),
    st.tuples(st.just("turn"), st.sampled_from((0, 0, 10, 33, 40))),
    st.tuples(st.just("flush"), st.just(0)),
    st.tuples(st.just("sleep"), st.just(0)),
    st.tuples(st.just("change"), SEAT),
    st.tuples(st.just("take"), SEAT),
    st.tuples(st.just("take-all"), SEAT),
)
"""`go`: the next operations, each in a turn of its own; `change`: somebody comes to a seat, or
goes."""


class Witnessed(Assembler):
    """Keeps every Patch."""

    __slots__ = ("sent",)

    def flush(self) -> dict[str, Patch]:
        patches = super().flush()
        for view, patch in patches.items():
            self.sent[view].append(patch)
        return patches


class House:
    """A Publisher, and seats for subscribers that look when told, or wait."""

    def __init__(self, queue_patches_max: int, script: Sequence[Operation]) -> None:
        self.script = deque(script)
        self.clock = Clock()
        self.assembler = Witnessed(toys(), ("chat",))
        self.assembler.sent = {view: [] for view in VIEWS}
        options: Any = {"scheduler": self.clock, "queue_patches_max": queue_patches_max}
        self.live = Publisher(self.assembler, **options)
        self.seats: dict[int, Client] = {}
        self.tasks: dict[int, asyncio.Task[None]] = {}
        self.since: dict[int, int] = {}

    async def do(self, name: str, value: int) -> None:
        if name == "go":
            for _ in range(min(value, len(self.script))):
                self.script.popleft().perform(self.live)
                self.clock.turn()
        elif name == "turn":
            self.clock.turn(value)
        elif name == "flush":
            self.live.flush()
        elif name == "sleep":
            await asyncio.sleep(0)
        elif name == "change":
            await (self.go if value in self.seats else self.come)(value)
        elif value in self.seats and value not in self.tasks:
            client = self.seats[value]
            if name == "take-all":
                client.catch_up()
            elif (patch := take(client.view)) is not None:
                client.take(patch)

    async def come(self, seat: int) -> None:
        """Seats 2 and 3 follow the other view; 1 and 3 wait as tasks."""
        view = self.live.subscribe(VIEWS[seat // 2])
        self.seats[seat] = client = Client(await view.__aenter__())
        self.since[seat] = len(self.assembler.sent[VIEWS[seat // 2]])
        if seat % 2:
            self.tasks[seat] = asyncio.create_task(client.follow())

    async def go(self, seat: int) -> None:
        task = self.tasks.pop(seat, None)
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        client = self.seats.pop(seat)
        await client.view.__aexit__()
        self.check_what_went(client, self.since.pop(seat))

    def check_what_went(self, client: Client, since: int) -> None:
        """What went and came again is removed before it is put, however much was merged."""
        sent = iter(self.assembler.sent[client.view.snapshot.view][since:])
        there = {node.key for node in client.view.snapshot.nodes}
        for patch in client.patches:
            went: set[str] = set()
            for each in sent:
                went |= {op.key for op in each.ops if type(op) is Remove}
                if each.revision_to == patch.revision_to:
                    break
            before = set(there)
            for op in patch.ops:
                if type(op) is Remove:
                    there.remove(op.key)
                elif type(op) is Put:
                    there.add(op.key)
            for key in before & went & there:
                ops = [type(op) for op in patch.ops if op.key == key]
                assert Remove in ops
                assert ops[-1] is not Remove

    async def end(self) -> None:
        await self.do(*DONE)
        self.live.close()
        for seat, client in [*self.seats.items()]:
            task = self.tasks.pop(seat, None)
            await (client.follow() if task is None else task)
            view = client.view.snapshot.view
            assert client.shown == self.assembler.view(view).snapshot().to_json()
        for seat in [*self.seats]:
            await self.go(seat)
        assert self.live.statistics()["views"] == {}
        assert self.clock.waiting == 0
        assert self.assembler.audit() == []


async def play(house: House, actions: Sequence[tuple[str, int]]) -> None:
    for action in actions:
        await house.do(*action)
    await house.end()


SCRIPTS = operations(conversations(EVENTS, DELTAS, turns=2, moments=4), wrong=True)


@given(SCRIPTS, st.lists(ACTIONS, max_size=60), st.integers(1, 4))
def test_everybody_ends_with_the_same_view(
    script: Sequence[Operation], actions: Sequence[tuple[str, int]], most: int
) -> None:
    asyncio.run(play(House(most, script), actions))
