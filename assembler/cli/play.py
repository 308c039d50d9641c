"""`assembler play FILE`: a conversation as it happened, then its reload, and whether they agree.

Three ways to show it: a live screen on a terminal (`_Live`), a log of what changed for a file or a
pipe (`_Log`), and the patches as JSON lines for programs (`_Patches`). Not here: how a Node reads
(`rows`) and how a terminal is taken and given back (`screen`).
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Iterator
from typing import Any

from assembler import plugins
from assembler.cli.inputs import (
    FAILED,
    OK,
    add_catalog,
    add_files,
    add_view,
    definitions,
    single,
    view_of,
)
from assembler.cli.output import (
    Style,
    clip,
    cut,
    escaped,
    findings_line,
    one_line,
    print_json,
    say,
    width_of,
    wrapped,
)
from assembler.cli.rows import Row, RowMaker, line, lines
from assembler.cli.screen import Screen, can_draw
from assembler.engine.definition import Node
from assembler.engine.patches import Put, Remove, TextOp
from assembler.recordings import Operation, Run
from assembler.recordings.arriving import disagreement
from assembler.recordings.expecting import is_expectation
from assembler.recordings.matching import Difference, short

__all__ = ["add"]

_FRAME_SECONDS = 1 / 30
_PAUSE_SECONDS_MAX = 1.5
"""Nobody waits longer than this for the next thing to happen, at speed 1."""
_WAIT_SECONDS_MAX = 60.0
"""Nor longer than this at any speed."""
_LATE_SECONDS_MAX = 0.5
"""Who is later than this was stopped, and does not hurry to make up for it."""
_BAR_COLUMNS = 30
_HOUR_MS = 3_600_000
_EPOCH_MS = 100_000_000_000
"""Later times count from 1970; smaller ones before them are of events whose time nobody knows."""
_ABOUT_LINES_MIN = 10
"""A screen of fewer lines has better use for one than what the recording is about."""


def add(commands: Any) -> None:
    """Adds the parser of this command."""
    parser = commands.add_parser(
        "play",
        help="show a conversation as it happened, and its reload",
        description="Shows a recording as it happened: one row for each visible Node, growing "
        "while it is written. Then loads the same conversation from its history and says whether "
        "both agree. In a pipe it prints what changed, one line each, and does not wait.",
        epilog="example: assembler play recordings/parallel-writes.jsonl --speed 2",
    )
    add_files(parser, several=False)
    parser.add_argument(
        "--speed",
        type=_speed,
        metavar="X",
        help="2 is twice as fast (default: 1 on a terminal; else it does not wait at all)",
    )
    parser.add_argument(
        "--json", action="store_true", help="print each operation with its patch as a JSON line"
    )
    add_view(parser)
    add_catalog(parser)
    parser.set_defaults(run=run)


def _speed(text: str) -> float:
    message = f"expected a number above 0, got {text!r}"
    try:
        speed = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(message) from None
    if not 0 < speed < float("inf"):
        raise argparse.ArgumentTypeError(message)
    return speed


def run(arguments: argparse.Namespace) -> int:
    """Plays it, reloads it, compares."""
    known = definitions(arguments)
    view = view_of(arguments, known)
    playing = Run(single(arguments.file), known, views=[view])
    on_screen = can_draw(sys.stdout) and not arguments.json
    speed: float | None = arguments.speed
    if speed is None and on_screen:
        speed = 1.0
    maker = RowMaker(plugins.row_text(arguments.catalog))
    shows: _Shows
    if arguments.json:
        shows = _Patches(playing)
    elif on_screen:
        shows = _Live(playing, maker, speed or 1.0)
    else:
        shows = _Log(playing, maker)
    with shows.around():
        _play(playing, shows, _Pace(speed))
    held = playing.held
    playing.give_up()
    found = disagreement(playing.assembler, playing.facts(), known, playing.views, ["history"])
    shows.end(held, None if found is None else found[1])
    return OK if found is None else FAILED


def _play(playing: Run, shows: _Shows, pace: _Pace) -> None:
    operations = [each for each in playing.recording.operations if not is_expectation(each)]
    for done, operation in enumerate(operations, 1):
        shows.operation, shows.share = operation, done / len(operations)
        shows.before()
        playing.do(operation)
        wait = pace.wait(playing.time)
        if wait > 0:
            shows.pause()
            time.sleep(wait)
        shows.after()


class _Pace:
    """How long to wait, so that things happen as far apart as they did; no speed: not at all."""

    def __init__(self, speed: float | None) -> None:
        self._speed = speed
        self._time: int | None = None
        self._due = time.monotonic()

    def wait(self, now: int | None) -> float:
        """Seconds until what happened at `now` (milliseconds) is due."""
        if self._speed is None or now is None:
            return 0.0
        if self._time is None:
            self._time = now
        # A page of older events is no way back.
        apart = min(max(0, now - self._time) / 1_000, _PAUSE_SECONDS_MAX)
        self._time = max(self._time, now)
        clock = time.monotonic()
        due = max(self._due, clock - _LATE_SECONDS_MAX)
        self._due = due + min(apart / self._speed, _WAIT_SECONDS_MAX)
        return self._due - clock


class _Shows:
    """One way to show a recording that is being played.

    `operation` is what is being done, `share` how much of all will be done then.
    """

    operation: Operation
    share = 0.0

    def __init__(self, playing: Run) -> None:
        self.playing = playing
        self._began: int | None = None
        self._now = 0

    def around(self) -> contextlib.AbstractContextManager[None]:
        """What must be entered and left."""
        return contextlib.nullcontext()

    def before(self) -> None:
        """The operation has not been done yet."""

    def pause(self) -> None:
        """It will wait a moment: whatever is there must be seen now."""
        sys.stdout.flush()

    def after(self) -> None:
        """The operation has been done."""

    def end(self, held: int, difference: Difference | None) -> None:
        """All has been done, and whether the reload agrees; so many deltas were held then."""
        raise NotImplementedError

    def since(self) -> int:
        """Milliseconds from the first thing whose time is known to the newest one so far."""
        now = self.playing.time
        if now is None:
            return 0
        if self._began is None or self._began < _EPOCH_MS < now:
            self._began = self._now = now
        self._now = max(self._now, now)
        return self._now - self._began


class _Patches(_Shows):
    """For programs: one JSON object for each operation, then one with the verdict."""

    def after(self) -> None:
        patches = [patch for patch in self.playing.patches.values() if patch]
        print_json({"line": self.operation.line, "op": self.operation.name, "patches": patches})

    def end(self, held: int, difference: Difference | None) -> None:
        print_json({"agree": difference is None, "given_up": held, "difference": difference})


class _Log(_Shows):
    """For a file: a line when a row comes, goes, or says something else.

    A text that grows would give a line for every piece. So a row whose words alone changed is
    told with the next durable event: once, as it is then.
    """

    def __init__(self, playing: Run, maker: RowMaker) -> None:
        super().__init__(playing)
        self._maker = maker
        self._told: dict[str, Row] = {}
        self._growing: dict[str, None] = {}
        self._last_words: dict[str, Row] = {}
        self._style = Style(sys.stdout)
        self._columns = width_of(sys.stdout)
        say(cut(playing.recording.title, self._columns))
        _say_about(playing)

    def before(self) -> None:
        if self.operation.name != "delta":
            self._last_words = dict(self._grown())

    def after(self) -> None:
        self.since()
        for op in self.playing.patches[self.playing.views[0]].ops:
            if type(op) is Remove:
                self._gone(op.key)
            elif type(op) is Put:
                self._put(op.node)
            elif type(op) is TextOp:
                self._growing[op.key] = None
        if self.operation.name != "delta":
            self._tell_growing()

    def end(self, held: int, difference: Difference | None) -> None:
        self._tell_growing()
        say()
        _say_end(self._maker, self.playing, held, difference)

    def _put(self, node: Node) -> None:
        row, told = self._maker.row(node), self._told.get(node.key)
        if told is None:
            self._say("+", row)
        elif (row.stage, row.title) != (told.stage, told.title):
            self._say("~", row)
        elif row != told:
            self._growing[node.key] = None

    def _gone(self, key: str) -> None:
        told = self._told.get(key)
        if told is not None:
            self._say("-", self._last_words.get(key, told))
            del self._told[key]

    def _tell_growing(self) -> None:
        for key, row in self._grown():
            if row != self._told.get(key):
                self._say("~", row)
        self._growing.clear()

    def _grown(self) -> list[tuple[str, Row]]:
        nodes = {key: self.playing.node(key) for key in self._growing}
        return [(key, self._maker.row(node)) for key, node in nodes.items() if node is not None]

    def _say(self, sign: str, row: Row) -> None:
        self._told[row.key] = row
        self._growing.pop(row.key, None)
        when = f"{_clock(self.since()):>9} {sign} "
        said = line(row, self._style, max(0, self._columns - len(when)))
        say(clip(when + said, self._columns))


class _Live(_Shows):
    """For people: the newest rows, as many as fit, and how far it has come."""

    def __init__(self, playing: Run, maker: RowMaker, speed: float) -> None:
        super().__init__(playing)
        self._title = playing.recording.title
        self._maker = maker
        self._speed = speed
        self._style = Style(sys.stdout)
        self._screen = Screen(sys.stdout)
        self._drawn_at = 0.0
        self._late = False
        self._seen: list[str] = []

    @contextlib.contextmanager
    def around(self) -> Iterator[None]:
        try:
            with self._screen:
                yield
                self.pause()
        except KeyboardInterrupt:
            # What was seen last, not the View: the interrupt may have come in the middle of work.
            self._say_title()
            for told in self._seen:
                say(told)
            say()
            say(f"stopped at {self.share:.0%}")
            raise

    def pause(self) -> None:
        if self._late:
            self._draw()

    def after(self) -> None:
        self._late = True
        if time.monotonic() - self._drawn_at >= _FRAME_SECONDS:
            self._draw()

    def end(self, held: int, difference: Difference | None) -> None:
        self._say_title()
        _say_end(self._maker, self.playing, held, difference)

    def _say_title(self) -> None:
        say(self._style(escaped(self._title), "bold"))
        _say_about(self.playing)
        say()

    def _draw(self) -> None:
        columns, height = self._screen.size()
        top = [self._style(cut(self._title, columns), "bold")]
        about = _about(self.playing)
        if about and height >= _ABOUT_LINES_MIN:
            top.append(self._style(cut(one_line(about), columns), "dim"))
        room = height - 1 - len(top)
        view = self.playing.assembler.view(self.playing.views[0])
        # More than what fits can never be seen: a long conversation costs no more than its end.
        rows = self._maker.rows(view.nodes[-room:], view.groups[-room:])[-room:]
        self._seen = list(lines(rows, self._style, columns))
        shown = [*top, *self._seen]
        shown += [""] * (height - 1 - len(shown))
        self._screen.draw([*shown, self._bar(columns)])
        self._drawn_at, self._late = time.monotonic(), False

    def _bar(self, columns: int) -> str:
        cells = max(4, min(_BAR_COLUMNS, columns - 30))
        full = round(self.share * cells)
        seconds = self.since() // 1_000
        bar = f"{'█' * full}{'░' * (cells - full)} {self.share:>4.0%}"
        told = f"{bar}  {seconds // 60}:{seconds % 60:02}  speed {self._speed:g}"
        return self._style(cut(told, columns), "dim")


def _clock(since: int) -> str:
    """Seconds, to the millisecond; from an hour on, as on a clock."""
    if since < _HOUR_MS:
        return f"{since / 1_000:.3f}"
    minutes, seconds = divmod(since // 1_000, 60)
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"


def _about(playing: Run) -> str:
    return str(playing.recording.header.get("about") or "")


def _say_about(playing: Run) -> None:
    """What the recording shows, in its own words, if it has any."""
    style = Style(sys.stdout)
    for told in wrapped(_about(playing), width_of(sys.stdout)):
        say(style(told, "dim"))


def _say_end(maker: RowMaker, playing: Run, held: int, difference: Difference | None) -> None:
    """The final rows and the verdict."""
    style = Style(sys.stdout)
    view = playing.assembler.view(playing.views[0])
    for told in lines(maker.rows(view.nodes, view.groups), style, width_of(sys.stdout)):
        say(told)
    say()
    if held:
        say(f"still held at the end: {held} deltas, which a reload cannot know")
    found = findings_line(odd.to_json() for odd in playing.assembler.findings())
    if found:
        say(found)
    if difference is None:
        say(style("live and reload agree", "good"))
        return
    live, reload = short(difference.expected), short(difference.got)
    said = escaped(f"{difference.path}: live shows {live}, the reload shows {reload}")
    say(f"{style('live and reload disagree', 'bad')}: {said}")
