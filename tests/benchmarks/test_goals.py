"""The benchmarks as tests: each works, and what must not grow does not, counted in calls.

A plain run takes no time: small sizes, nothing asserted of speed. With `--benchmark-enable` each
goal is measured at full size and its table printed.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite

import pytest

from assembler.codec import decode_delta
from tests.benchmarks import workloads
from tests.benchmarks.contenders import CATALOG, folded, paged, read_each, read_partial
from tests.benchmarks.following import followed, frames
from tests.benchmarks.goals import FULL, GOALS, SMALL, opened, retiring
from tests.benchmarks.measure import Prepare, calls, table
from tests.benchmarks.providing import STREAMS, given, stream, wire
from tests.benchmarks.showing import GROUP, GROUPS, appending, changing

SLOW = {"beside-sdks"}  # to import the SDKs alone takes seconds
NAMES = [
    pytest.param(name, marks=[pytest.mark.deep] if name in SLOW else [], id=name) for name in GOALS
]


@pytest.mark.parametrize("name", NAMES)
def test_goal(name: str, pytestconfig: pytest.Config, capsys: pytest.CaptureFixture[str]) -> None:
    full = bool(pytestconfig.getoption("benchmark_enable", default=False))
    rows = GOALS[name](FULL if full else SMALL)
    assert rows
    assert all(isfinite(row.measured) for row in rows)
    assert all(row.verdict == "met" for row in rows if row.goal == "9")
    if full:
        with capsys.disabled():
            print(f"\n{table(rows)}")


def test_a_stream_costs_calls_in_its_length() -> None:
    for lines in (workloads.text(1_600), workloads.argument(1_600)):
        short, long = (calls(folded(opened(CATALOG), lines[:count])()) for count in (800, 1_600))
        assert long < 2.1 * short


def test_reading_after_each_delta_costs_calls_in_its_length() -> None:
    streams = (workloads.text(800), "assistant:1.1"), (workloads.argument(800), "tool:call_000001")
    for lines, key in streams:
        run = (calls(read_each(opened(CATALOG), lines[:n], key)()) for n in (400, 800))
        short, long = run
        assert long < 2.1 * short


def test_partial_arguments_cost_calls_in_their_length() -> None:
    lines = workloads.argument(800)
    run = (
        calls(read_partial(opened(CATALOG), lines[:n], "tool:call_000001")()) for n in (400, 800)
    )
    short, long = run
    assert long < 2.1 * short


def test_a_delta_costs_the_same_whatever_is_loaded() -> None:
    log = 40 * workloads.TURN
    lines = workloads.stream(400, "a1", log + 2, 1, turn=41)
    others = calls(folded(opened(CATALOG, log), lines)())
    alone = calls(folded(opened(CATALOG), workloads.stream(400, "a1", 2, 1))())
    assert others < 1.1 * alone


def test_retiring_costs_the_same_whatever_is_loaded() -> None:
    many, few = (calls(retiring(others, 200)()) for others in (600, 6))
    assert many < 1.1 * few + 50


@pytest.mark.parametrize("a_turn", [GROUPS, GROUP])
@pytest.mark.parametrize("way", [appending, changing])
def test_grouping_costs_the_same_calls_whatever_is_shown(
    way: Callable[[int, int], Prepare], a_turn: int
) -> None:
    many, few = (calls(way(nodes, a_turn)()) for nodes in (800, 40))
    assert many < 1.1 * few


def test_the_last_page_costs_the_calls_of_the_first() -> None:
    pages = [(b"\n".join(page), more) for page, more in workloads.Log(2_800).pages(140)]
    half, whole = (calls(paged(pages[:count])()) for count in (10, 20))
    assert whole < 2.15 * half


def test_followers_that_are_stalled_cost_no_calls() -> None:
    words = frames("emit", [decode_delta(line) for line in workloads.text(300)], 1)

    def cost(stalled: int) -> int:
        """Of the later half, when whoever is stalled has fallen behind."""
        runs = (calls(followed(opened(CATALOG), words[:n], 1, stalled)()) for n in (150, 300))
        half, whole = runs
        return whole - half

    assert cost(50) < 1.02 * cost(0)


@pytest.mark.parametrize("provider", STREAMS)
def test_an_answer_costs_calls_in_its_length(provider: str) -> None:
    for what in STREAMS[provider]:
        parts = [wire(stream(provider, what, count)) for count in (400, 800)]
        short, long = (calls(given(provider, each)()) for each in parts)
        assert long < 2.1 * short
