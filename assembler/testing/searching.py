"""Looking for a failing history with Hypothesis, and making it as small as it gets.

Not here: what fails (`convergence`), and where histories come from (`strategies`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar
from unittest import SkipTest

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis.strategies import SearchStrategy

from assembler.testing.failures import CheckFailed, Problem
from assembler.testing.scripts import Operation, reduced

__all__ = ["Fault", "search"]

T = TypeVar("T")
History = tuple[Operation, ...]

_DRAWS_MAX = 40
"""So often Hypothesis may draw a smaller one; what is left then is made smaller by leaving out."""


class Fault:
    """A problem and a history in which it shows; `again` tries another history."""

    def __init__(
        self, problem: Problem, history: History, again: Callable[[History], Problem | None]
    ) -> None:
        self.problem = problem
        self.history = history
        self._again = again

    def shrunk(self) -> CheckFailed:
        """With the smallest history that leaving out finds."""
        last = self.problem

        def fails(history: History) -> bool:
            nonlocal last
            found = self._again(history)
            if found is None or not found.is_like(self.problem):
                return False
            last = found
            return True

        history = reduced(self.history, fails)
        return CheckFailed(last, history)


class _Failing(AssertionError):  # noqa: N818 - nobody outside sees it
    """What Hypothesis sees of a fault."""


def search(
    strategy: SearchStrategy[T],
    check: Callable[[T, Problem | None], Fault | None],
    *,
    max_examples: int,
    start: int,
) -> CheckFailed | None:
    """The first fault that `check` finds among `max_examples` of `strategy`, made small.

    `check` is told what was found before, and may look for that alone.

    The same `start` (a seed) gives the same examples. Nothing is written to disk, and a machine
    that is slow is no fault.
    """
    faults: list[Fault] = []
    draws = iter(range(_DRAWS_MAX))

    @seed(start)
    @settings(
        max_examples=max_examples,
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink],
        print_blob=False,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.quiet,
    )
    @given(strategy)
    def run(example: T) -> None:
        if faults and next(draws, None) is None:
            raise SkipTest("enough")  # which Hypothesis lets through at once
        fault = check(example, faults[-1].problem if faults else None)
        if fault is not None:
            faults.append(fault)
            raise _Failing

    try:
        run()
    except Exception:
        # A Definition that remembers between examples makes Hypothesis call it flaky; what was
        # found counts all the same.
        if not faults:
            raise
    return min(reversed(faults), key=_size).shrunk() if faults else None


def _size(fault: Fault) -> tuple[bool, int]:
    """The more telling ones first, of these the smallest."""
    return fault.problem.is_general, len(fault.history)
