"""The goals: one function each, which measures at a given size and gives rows.

Not here: what is shown and sent (`showing`), what providers send (`providing`), how (`measure`,
`contenders`), out of what (`workloads`).
"""

from __future__ import annotations

import gc
import multiprocessing
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from time import process_time
from typing import Any

from msgspec import Struct, json

from assembler.codec import decode_delta, decode_events
from assembler.engine.assembler import Assembler
from assembler.engine.definition import START, Definition, Match, Reader, Role
from assembler.engine.events import Delta, Event
from assembler.engine.patches import Put
from tests.benchmarks import workloads
from tests.benchmarks.contenders import (
    CATALOG,
    MINIMAL,
    assembler_of,
    floor,
    folded,
    live_calls,
    paged,
    read_each,
    read_partial,
)
from tests.benchmarks.following import encoded_once, followed, frames, handed
from tests.benchmarks.importing import importing
from tests.benchmarks.measure import (
    Pauses,
    Row,
    Run,
    exponent,
    interleaved,
    resident,
    traced,
)
from tests.benchmarks.providing import beside_sdks, providing
from tests.benchmarks.showing import grouping
from tests.benchmarks.storing import in_postgres, in_sqlite

__all__ = ["FULL", "GOALS", "SMALL", "Sizes", "opened", "retiring"]

TEXT, TOOL = "assistant:1.1", "tool:call_000001"


class Sizes(Struct, frozen=True):
    """How much of everything, and how often."""

    rounds: int
    stream: int
    short_stream: int
    others: int
    few_others: int
    calls: int
    log: int
    long_log: int
    retired: int
    assemblers: int
    followers: int
    frames: int
    words: int = 16_000
    few_words: int = 2_000
    sdk_words: int = 1_000
    answers: int = 5_000
    appends: int = 300
    reads: int = 300
    stored: int = 1_000_000
    few_stored: int = 10_000
    store_rounds: int = 20  # short ones, and a server is easily disturbed


FULL = Sizes(5, 64_000, 1_000, 10_000, 100, 10_000, 100_000, 1_000_000, 4_000, 1_000, 100, 300)
SMALL = Sizes(
    *(1, 400, 50, 60, 12, 20, 700, 1_400, 40, 4, 5, 4, 40, 10, 10, 20),
    *(5, 5, 1_000, 100, 1),
)


def opened(definitions: Any, log: int = 0) -> Callable[[], Assembler]:
    """Gives Assemblers with an open step, behind `log` loaded events."""
    seq, turn = log + 1, log // workloads.TURN + 1
    history = workloads.Log(log).lines(1, log) if log else []
    return lambda: assembler_of(definitions, history, workloads.opened(seq, turn))


def _turns_with(contexts: int) -> int:
    """Events of a log that makes about so many Contexts: six of each turn."""
    return contexts // 6 * workloads.TURN


def streams(sizes: Sizes) -> list[Row]:
    rows = []
    for what, lines in _both(sizes.stream):
        times = interleaved(
            {
                "floor": floor(lines),
                "catalog": folded(opened(CATALOG), lines),
                "minimal": folded(opened(MINIMAL), lines),
            },
            sizes.rounds,
        )
        rows.append(times.row("1", f"{what}, decode and fold, catalog", "catalog", "floor", 3))
        rows.append(times.row("1", f"{what}, decode and fold, minimal", "minimal", "floor", 3))
    return rows


def _both(count: int) -> list[tuple[str, list[bytes]]]:
    return [("long text", workloads.text(count)), ("long argument", workloads.argument(count))]


def reads(sizes: Sizes) -> list[Row]:
    rows = []
    for (what, lines), key in zip(_both(sizes.stream), (TEXT, TOOL), strict=True):
        times = interleaved(
            {
                "floor": floor(lines),
                "catalog": read_each(opened(CATALOG), lines, key),
                "sixteenth": read_each(opened(CATALOG), lines, key, 16),
                "minimal": read_each(opened(MINIMAL), lines, "growing:a1"),
            },
            sizes.rounds,
        )
        rows.append(times.row("2", f"{what}, read after each, catalog", "catalog", "floor", 5))
        rows.append(times.row("2", f"{what}, read after each, minimal", "minimal", "floor", 5))
        rows.append(times.row("2", f"{what}, read after every 16th", "sixteenth", "floor"))
    return rows


def flatness(sizes: Sizes) -> list[Row]:
    factor = sizes.stream // sizes.short_stream
    rows = []
    for what, lines in _both(sizes.stream):
        short = [lines[: sizes.short_stream]] * factor
        times = interleaved(
            {
                "long": folded(opened(CATALOG), lines),
                "short": _one_by_one(opened(CATALOG), short),
            },
            sizes.rounds,
        )
        label = f"{what}, a delta of {sizes.stream:,} over one of {sizes.short_stream:,}"
        rows.append(times.row("3", label, "long", "short", 1.15))
    return [*rows, _beside_others(sizes)]


def _one_by_one(make: Callable[[], Assembler], parts: Sequence[Sequence[bytes]]) -> Any:
    """As many short streams as make one long one; their Assemblers are made before."""

    def prepare() -> Run:
        runs = [folded(make, lines)() for lines in parts]

        def run() -> None:
            for each in runs:
                each()

        return run

    return prepare


def _beside_others(sizes: Sizes) -> Row:
    """The same stream with many other Contexts loaded, and with none."""
    log = _turns_with(sizes.others)
    place = {"turn": log // workloads.TURN + 1}
    lines = workloads.stream(sizes.stream // 4, "a1", log + 2, 1, **place)
    alone = workloads.stream(sizes.stream // 4, "a1", 2, 1)
    contenders = {
        "others": folded(opened(CATALOG, log), lines),
        "alone": folded(opened(CATALOG), alone),
    }
    times = interleaved(contenders, sizes.rounds)
    what = f"long text, {sizes.others:,} other Contexts over none"
    return times.row("3", what, "others", "alone", 1.15)


def patches(sizes: Sizes) -> list[Row]:
    """Bytes of what a client is sent of one stream, over the bytes of its text."""
    return [
        _sent(what, lines, key, every)
        for (what, lines), key in zip(_both(sizes.stream), (TEXT, TOOL), strict=True)
        for every in (1, 16, 64)
    ]


def _sent(what: str, lines: Sequence[bytes], key: str, every: int) -> Row:
    assembler = opened(CATALOG)()
    sent = puts = 0
    for at, line in enumerate(lines, 1):
        assembler.emit(decode_delta(line))
        if at % every == 0:
            patch = assembler.flush()["chat"]
            sent += len(json.encode(patch.to_json()))
            puts += sum(type(op) is Put for op in patch.ops)
    data = assembler.view()[key].to_json()["data"]
    text = data["arguments_text"] if key == TOOL else data["blocks"][0]["text"]
    note = f"{sent / sum(map(len, lines)):.2f} x the deltas, {puts} put{'s' * (puts != 1)}"
    label = f"{what}, patches over its text, flushed after {every}"
    return Row("12", label, sent / len(text.encode()), 1.5, note)


def partial_arguments(sizes: Sizes) -> list[Row]:
    lines = workloads.argument(sizes.stream)
    shorter = lines[: sizes.stream // 8]
    times = interleaved(
        {
            "floor": floor(lines),
            "partial": read_partial(opened(CATALOG), lines, TOOL),
            "shorter": read_partial(opened(CATALOG), shorter, TOOL),
        },
        sizes.rounds,
    )
    grows = exponent(times.best("shorter"), times.best("partial"), 8)
    return [
        times.row("4", "partial arguments read after each", "partial", "floor", 8),
        Row("4", f"its exponent, {len(shorter):,} to {len(lines):,}", grows, 1.1),
    ]


def many_calls(sizes: Sizes) -> list[Row]:
    steps = workloads.calls(sizes.calls)
    lines = [line for step in steps for _, line in step]
    times = interleaved(
        {
            "floor": floor(lines),
            "once": live_calls(steps, read=False),
            "steps": live_calls(steps, read=True),
        },
        min(sizes.rounds, 3),
    )
    what = f"{sizes.calls:,} live calls"
    return [
        times.row("5", f"{what}, shown at the end", "once", "floor", 5),
        times.row("5", f"{what}, shown after every step", "steps", "floor"),
    ]


def pages(sizes: Sizes) -> list[Row]:
    made = list(workloads.Log(sizes.log).pages(100))
    lines = [line for page, _ in made for line in page]
    joined = [(b"\n".join(page), has_more) for page, has_more in made]
    contenders = {"floor": floor(lines), "pages": paged(joined)}
    times = interleaved(contenders, min(sizes.rounds, 3))
    what = f"{sizes.log:,} events in pages of 100"
    return [times.row("6", what, "pages", "floor", 5)]


def long_log(sizes: Sizes) -> list[Row]:
    """Pages of a long log: the last must be as cheap as the first, a pause short."""
    assembler = Assembler(CATALOG)
    pauses = Pauses()
    costs: list[float] = []
    with pauses.watched():
        for page, has_more in workloads.Log(sizes.long_log).pages(100):
            costs.append(_page_cost(assembler, b"\n".join(page), has_more=has_more))
    few = max(1, min(100, len(costs) // 4))
    ends = median(costs[-few - 1 : -1]) / median(costs[1 : few + 1])
    what = f"{sizes.long_log:,} events in pages of 100"
    note = f"first {median(costs[1 : few + 1]) * 1e6:.0f} us, worst {max(costs) * 1e3:.1f} ms"
    return [
        Row("6", f"{what}, last page over first", ends, 1.3, note),
        Row(
            "10", f"{what}, worst pause, ms", pauses.worst * 1e3, 5, f"{len(pauses.seconds)} in all"
        ),
    ]


def _page_cost(assembler: Assembler, page: bytes, *, has_more: bool) -> float:
    def run() -> None:
        assembler.prepend(decode_events(page), has_more)
        assembler.flush()

    return _cpu(run)


def one_load(sizes: Sizes) -> list[Row]:
    """The same log in one `load`."""
    lines = workloads.Log(sizes.long_log).lines(1, sizes.long_log)
    assembler = Assembler(CATALOG)
    pauses = Pauses()
    gc.collect()

    def run() -> None:
        assembler.load(decode_events(lines))
        assembler.flush()

    with pauses.watched():
        spent = _cpu(run)
    what = f"{sizes.long_log:,} events in one load, worst pause, ms"
    note = f"{len(pauses.seconds)} in all, {sum(pauses.seconds) * 1e3:.0f} ms of {spent:.1f} s"
    return [Row("10", what, pauses.worst * 1e3, 5, note)]


def _cpu(run: Run) -> float:
    """CPU seconds of one call, without a collection before."""
    begin = process_time()
    run()
    return process_time() - begin


def retirement(sizes: Sizes) -> list[Row]:
    contenders = {
        str(others): retiring(others, sizes.retired) for others in (sizes.others, sizes.few_others)
    }
    times = interleaved(contenders, max(3, sizes.rounds * 2))
    many, few = map(str, contenders)
    what = f"{sizes.retired:,} deltas retired, {many} other Contexts over {few}"
    return [times.row("7", what, many, few, 1.5)]


def retiring(others: int, count: int) -> Any:
    """Attempt after attempt of one step; the giving up of each is measured."""
    log = _turns_with(others)
    assembler = opened(CATALOG, log)()
    place = {"turn": log // workloads.TURN + 1}
    number = 0

    def prepare() -> Run:
        nonlocal number
        number += 1
        name, index = f"a{number}", number * count + 1
        for line in workloads.stream(count, name, log + 2, index, number=number, **place):
            assembler.emit(decode_delta(line))
        assembler.flush()

        def run() -> None:
            assembler.settle(name, "failed")
            assembler.flush()

        return run

    return prepare


def memory(sizes: Sizes) -> list[Row]:
    raw = sum(map(len, workloads.Log(sizes.log).lines(1, sizes.log)))
    held, assembler = traced(lambda: loaded_in_pages(sizes.log))
    del assembler
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        grown = pool.apply(resident_growth, (sizes.log,))
    each = f"{raw / sizes.log:.0f} bytes of JSON each"
    what = f"bytes over JSON, {sizes.log:,} events"
    return [
        Row("8", f"{what}, allocated", held / raw, 3.5, f"{each}, {held / sizes.log:.0f} held"),
        Row("8", f"{what}, resident", grown / raw, 3.5, f"{grown / sizes.log:.0f} held"),
        _idle("empty conversation, kB", sizes, 4, []),
        _idle("conversation of one turn, kB", sizes, 12, workloads.short_log()),
    ]


def loaded_in_pages(count: int) -> Assembler:
    """Loads a log whose bytes nobody keeps."""
    assembler = Assembler(CATALOG)
    for page, has_more in workloads.Log(count).pages(100):
        assembler.prepend(decode_events(b"\n".join(page)), has_more)
        assembler.flush()
    return assembler


def resident_growth(count: int) -> int:
    """By how much the process grows; for a fresh one."""
    loaded_in_pages(1_400)
    gc.collect()
    before = resident()
    assembler = loaded_in_pages(count)
    gc.collect()
    grown = resident() - before
    del assembler
    return grown


def _idle(what: str, sizes: Sizes, limit: float, log: Sequence[bytes]) -> Row:
    """What one of many Assemblers of one catalog takes."""

    def make() -> list[Assembler]:
        return [assembler_of(CATALOG, log) for _ in range(sizes.assemblers)]

    make()
    held, _ = traced(make)
    return Row("8", what, held / sizes.assemblers / 1_000, limit)


class Marked:
    """A State that a weak reference can watch."""

    __slots__ = ("__weakref__", "count")

    def __init__(self, count: int) -> None:
        self.count = count


class Watched(Definition):
    """Makes States that can be watched, of the deltas and the message of one step."""

    kind = "watched"
    takes = frozenset({"text", "assistant/message"})

    def __init__(self) -> None:
        self.states: list[weakref.ref[Marked]] = []

    def match(self, item: Delta | Event) -> tuple[str, Role] | None:
        return "only", START

    def start(self, match: Match, reader: Reader) -> Marked:
        return self._made(1)

    def update(self, state: Marked, match: Match) -> Marked:
        return self._made(state.count + 1)

    def _made(self, count: int) -> Marked:
        state = Marked(count)
        self.states.append(weakref.ref(state))
        return state


def nothing_is_held(sizes: Sizes) -> list[Row]:
    """A turn with retries; of what was transient the engine holds nothing afterwards."""
    watched = Watched()
    assembler = assembler_of((*CATALOG, watched), workloads.opened())
    deltas: list[Delta] = []
    for number in (1, 2, 3):
        first = (number - 1) * sizes.retired + 1
        for line in workloads.stream(sizes.retired, f"a{number}", number + 1, first, number=number):
            delta = decode_delta(line)
            deltas.append(delta)
            assembler.emit(delta)
        del delta
        assembler.flush()
        for event in _ending(number):
            assembler.append(event)
    assembler.flush()
    gc.collect()
    # A Delta has no weak references. Two refer to each now: the list, and the call that counts.
    held = sum(sys.getrefcount(deltas[at]) > 2 for at in range(len(deltas)))
    states = sum(each() is not None for each in watched.states)
    return [
        Row("9", f"deltas held, of {len(deltas):,}", held, 0),
        Row("9", f"States held beside the last, of {len(watched.states):,}", states - 1, 0),
    ]


def _ending(number: int) -> list[Event]:
    """What follows the attempt: a retry, and behind the third the end of the turn."""
    place: dict[str, Any] = {"turn": 1, "step": 1}
    if number < 3:
        retry = {"retry_id": f"r{number}", "attempt": f"a{number}", "number": number}
        return [Event(number + 2, "llm/retry", {**place, **retry, "reason": "overloaded"})]
    content = [{"type": "text", "text": "done"}]
    message = {"message_id": "m1", "content": content, "stop_reason": "end_turn"}
    return [
        Event(5, "assistant/message", {**place, **message}),
        Event(6, "step/end", place),
        Event(7, "turn/end", {"turn": 1, "reason": "completed"}),
    ]


def following(sizes: Sizes) -> list[Row]:
    """Many follow: the engine works once, the bytes are made once, whoever stalls costs nothing."""
    many, count = sizes.followers, sizes.frames
    deltas = [decode_delta(line) for line in workloads.text(10 * count)]
    events = decode_events(workloads.Log(workloads.TURN * count).lines(1, workloads.TURN * count))
    turns = frames("append", events, workloads.TURN)
    cases = {
        "frames of ten words": (opened(CATALOG), frames("emit", deltas, 10)),
        "whole turns": (lambda: assembler_of(CATALOG, []), turns),
    }
    rows = []
    for what, (make, changes) in cases.items():
        times = interleaved(
            {
                "encoded": encoded_once(make, changes),
                "handed": handed(make, changes, many),
                "one": followed(make, changes, 1),
                "many": followed(make, changes, many),
                "stalled": followed(make, changes, many - 1, 1),
                "all stalled": followed(make, changes, 1, many - 1),
            },
            sizes.rounds,
        )
        rows += [
            times.row("13", f"{what}, to {many} over encoded once", "handed", "encoded", 3),
            times.row("13", f"{what}, {many} tasks over encoded once", "many", "encoded", 3),
            times.row("13", f"{what}, {many} tasks over one task", "many", "one"),
            times.row("13", f"{what}, one of {many} stalled over none", "stalled", "many", 1.1),
            times.row("13", f"{what}, all but one stalled over one", "all stalled", "one", 1.25),
        ]
    return rows


GOALS: Mapping[str, Callable[[Sizes], list[Row]]] = {
    "streams": streams,
    "reads": reads,
    "flatness": flatness,
    "patches": patches,
    "partial": partial_arguments,
    "calls": many_calls,
    "pages": pages,
    "retirement": retirement,
    "memory": memory,
    "held": nothing_is_held,
    "groups": grouping,
    "long-log": long_log,
    "one-load": one_load,
    "following": following,
    "providing": providing,
    "beside-sdks": beside_sdks,
    "importing": importing,
    "sqlite": in_sqlite,
    "postgres": in_postgres,
}
"""In the order in which they are told."""
