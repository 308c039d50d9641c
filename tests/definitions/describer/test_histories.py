"""The coordinator over every small history: two calls, of two attempts, in every order.

After each step of each history stand the promises: an approval shows no description made from
other arguments, each description that was begun ends in one way and once, each question ends, and
at most one description of each call is wasted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

from assembler.engine.values import same
from definitions.describer import Action, Core, Shown, Start, Stop, Write

HINTED = {"to": "shed", "force": 1}
EQUAL = {"force": 1, "to": "shed"}
OTHER = {"to": "shed", "force": True}

MORE = 1 if settings.get_current_profile_name() == "deep" else 0
OF_A_CALL = ("hint", "finish", "fail", "ask", "answer", "equal", "different", "mutate", "withdraw")
OF_AN_ATTEMPT = ("abandon",)


class World:
    """A coordinator, what it did, and what each history may do next."""

    def __init__(self, calls: dict[str, str], at_once: int) -> None:
        self.calls = calls
        self.core = Core(lambda tool: tool == "move", at_once=at_once)
        self.inputs: dict[str, Any] = {}
        self.given: dict[str, Any] = {call_id: dict(HINTED) for call_id in calls}
        self.running: dict[str, Start] = {}
        self.fates: Counter[int] = Counter()
        self.started: dict[int, Start] = {}
        self.texts: dict[str, Any] = {}
        self.questions: dict[str, str] = {}
        self.pending: Counter[str] = Counter()

    def enabled(self, word: str, call_id: str) -> bool:
        """Leave out what says nothing: an end of what is not going on."""
        if word in ("finish", "fail"):
            return call_id in self.running
        if word == "ask":
            return call_id in self.running and f"q{call_id}" not in self.questions
        if word == "answer":
            return self.questions.get(f"q{call_id}") == "opened"
        return True

    def do(self, word: str, call_id: str) -> None:
        attempt = self.calls[call_id]
        getattr(self, f"do_{word}")(call_id, attempt)
        for action in self.core.actions():
            self.act(action)
        self.check()

    def do_hint(self, call_id: str, attempt: str) -> None:
        self.core.hint(call_id, "move", self.given[call_id], attempt)

    def do_mutate(self, call_id: str, _attempt: str) -> None:
        self.given[call_id]["force"] = True

    def do_equal(self, call_id: str, _attempt: str) -> None:
        self.inputs[call_id] = EQUAL
        self.core.request(call_id, "move", EQUAL)

    def do_different(self, call_id: str, _attempt: str) -> None:
        self.inputs[call_id] = OTHER
        self.core.request(call_id, "move", OTHER)

    def do_finish(self, call_id: str, _attempt: str) -> None:
        start = self.running.pop(call_id)
        self.texts[text_of(start)] = start.input
        self.core.finished(start.job, text_of(start))

    def do_fail(self, call_id: str, _attempt: str) -> None:
        self.core.failed(self.running.pop(call_id).job)

    def do_ask(self, call_id: str, _attempt: str) -> None:
        assert self.core.ask(self.running[call_id].job, f"q{call_id}", "Which shed?")

    def do_answer(self, call_id: str, _attempt: str) -> None:
        assert self.core.answer(f"q{call_id}", "the old one")

    def do_withdraw(self, call_id: str, _attempt: str) -> None:
        self.core.withdraw(call_id)

    def do_abandon(self, _call_id: str, attempt: str) -> None:
        self.core.abandon(attempt)

    def act(self, action: Action) -> None:
        if isinstance(action, Start):
            assert action.call_id not in self.running
            self.running[action.call_id] = action
            self.started[action.job] = action
        elif isinstance(action, Stop):
            gone = [each for each, start in self.running.items() if start.job == action.job]
            assert len(gone) == 1
            del self.running[gone[0]]
        elif isinstance(action, Shown):
            self.shown(action)
        else:
            self.written(action)

    def shown(self, shown: Shown) -> None:
        """The promise: what is shown was made from what is shown beside it."""
        self.pending[shown.call_id] += (shown.after is None) - shown.is_last
        if shown.text is not None:
            assert same(shown.input, self.inputs[shown.call_id])
            assert same(self.texts[shown.text], self.inputs[shown.call_id])

    def written(self, action: Write) -> None:
        data = action.draft.data
        if action.draft.type.startswith("inquiry/"):
            before = {"opened": None, "answered": "opened", "withdrawn": "opened"}
            word = action.draft.type.removeprefix("inquiry/")
            assert self.questions.get(data["inquiry_id"]) == before[word]
            self.questions[data["inquiry_id"]] = word

    def check(self) -> None:
        counts = self.core.counts
        ended = counts.reused + counts.discarded + counts.withdrawn
        assert 0 <= counts.started - ended == self.unsettled()
        assert counts.wasted <= len(self.calls)
        opened = [name for name, word in self.questions.items() if word == "opened"]
        assert sorted(self.core.open_questions) == sorted(opened)

    def unsettled(self) -> int:
        """Descriptions without a fate: being made, or made and not asked about yet."""
        calls = self.core._calls.values()
        jobs = [call.job for call in calls if call.job is not None]
        return sum(job.is_begun and not job.is_shown for job in jobs)

    def end(self) -> None:
        self.core.close()
        for action in self.core.actions():
            self.act(action)
        self.check()
        assert self.running == {}
        assert self.core.is_idle
        assert "opened" not in self.questions.values()
        assert not +self.pending  # everybody who waits is told how it ends
        counts = self.core.counts
        assert counts.started == counts.reused + counts.discarded + counts.withdrawn


def text_of(start: Start) -> str:
    return f"{start.call_id} by {start.job}"


def steps(calls: dict[str, str]) -> list[tuple[str, str]]:
    of_attempts = {attempt: call_id for call_id, attempt in calls.items()}
    return [(word, call_id) for word in OF_A_CALL for call_id in calls] + [
        (word, call_id) for word in OF_AN_ATTEMPT for call_id in of_attempts.values()
    ]


def histories(calls: dict[str, str], length: int, at_once: int) -> Iterator[World]:
    """Every history of at most `length` steps, each step at most once; its world, at its end.

    Two calls that do the same are told apart by nothing, so that the first step is the first's.
    """
    every = steps(calls)

    def replayed(history: tuple[tuple[str, str], ...]) -> World:
        world = World(calls, at_once)
        for word, call_id in history:
            world.do(word, call_id)
        return world

    def grown(history: tuple[tuple[str, str], ...]) -> Iterator[World]:
        world = replayed(history)
        following = [
            step
            for step in every
            if step not in history and world.enabled(*step) and (history or step[1] == "c1")
        ]
        world.end()
        yield world
        if len(history) < length:
            for step in following:
                yield from grown((*history, step))

    yield from grown(())


@pytest.mark.parametrize(
    ("calls", "length", "at_once"),
    [
        ({"c1": "a1"}, 6 + MORE, 1),
        ({"c1": "a1", "c2": "a2"}, 4 + MORE, 1),
        ({"c1": "a1", "c2": "a2"}, 4 + MORE, 2),
    ],
)
def test_every_history_keeps_the_promises(
    calls: dict[str, str], length: int, at_once: int, capsys: pytest.CaptureFixture[str]
) -> None:
    count = reused = wasted = 0
    for world in histories(calls, length, at_once):
        count += 1
        reused += world.core.counts.reused
        wasted += world.core.counts.wasted
    with capsys.disabled():
        print(f"\n{count} histories of {len(calls)} calls, {at_once} at once", end=" ")
    assert count > 5_000
    assert reused
    assert wasted
