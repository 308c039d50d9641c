"""The tests must catch every seeded broken engine (`broken`), and pass the one that is not.

A fault that nobody notices is a hole in the tests. The faults stand in for the mistakes that
somebody will make; the machine finds each of them within the examples of an ordinary run.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.convergence import broken, test_law
from tests.convergence.broken import FAULTS, MACHINE, Fault
from tests.convergence.test_machine import Convergence

SEARCH = settings(
    max_examples=400,
    stateful_step_count=25,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)

MORE = 3
"""How often a fault that the first examples missed is looked for with others."""


def search() -> None:
    """The state machine, without making the failing history small.

    The first examples are always the same; what they miss, others must find.
    """
    run_state_machine_as_test(Convergence, settings=SEARCH)
    for _ in range(MORE):
        run_state_machine_as_test(Convergence, settings=settings(SEARCH, derandomize=False))


def calls_of(name: str) -> Iterator[Callable[[], Any]]:
    """A test of `test_law` with each of its parameters."""
    test = getattr(test_law, name)
    marks = [mark for mark in getattr(test, "pytestmark", []) if mark.name == "parametrize"]
    if not marks:
        yield test
        return
    (mark,) = marks
    names, values = mark.args
    for value in values:
        given = dict(zip(names, value, strict=True)) if isinstance(names, tuple) else {names: value}
        yield lambda given=given: test(**given)


def is_caught(fault: Fault) -> bool:
    calls = [search] if fault.caught_by == MACHINE else list(calls_of(fault.caught_by))
    for call in calls:
        try:
            call()
        except (Exception, pytest.fail.Exception) as error:
            if is_rotten(error):
                pytest.fail(f"the fault itself fails: {error!r}")
            return True
    return False


def is_rotten(error: BaseException) -> bool:
    """Whether a fault names what the engine has no more: then nothing was caught."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    inside = trace is not None and trace.tb_frame.f_code.co_filename == broken.__file__
    return inside and isinstance(error, (AttributeError, NameError, TypeError))


def test_there_are_enough_of_them() -> None:
    assert len(FAULTS) >= 25
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
    for fault in FAULTS:
        assert fault.caught_by == MACHINE or inspect.isfunction(getattr(test_law, fault.caught_by))


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_every_broken_engine_is_caught(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    fault.apply(monkeypatch)
    assert is_caught(fault), f"{fault.caught_by} does not notice: {fault.name}"
