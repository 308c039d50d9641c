"""`assembler store tail STORE CONVERSATION`: its events, and new ones as they come.

Not here: how a store hears of what other processes wrote (`assembler.stores`).
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from contextlib import suppress
from math import isfinite
from typing import Any

from assembler import codec
from assembler.cli.databases import add_store, need_conversation
from assembler.cli.inputs import OK
from assembler.cli.output import Style, cut, fill, say, width_of
from assembler.engine.events import Event
from assembler.recordings.matching import short
from assembler.stores import Feed
from assembler.stores.addresses import store_at

__all__ = ["add", "count"]

_SHOWN = 10
_SEQ_COLUMNS = 7
_TYPE_COLUMNS = 22
_COUNT_MAX = 2**53


def add(commands: Any) -> None:
    """Adds the parser of this command."""
    parser = commands.add_parser(
        "tail",
        help="show the events of a conversation as they come",
        description="Prints the newest events of a conversation, then each new one as soon as it "
        "is stored, whichever process stores it, until Ctrl-C.",
        epilog="example: assembler store tail chat.db demo --until-idle 60",
    )
    add_store(parser)
    parser.add_argument("conversation", metavar="CONVERSATION", help="its name")
    begin = parser.add_mutually_exclusive_group()
    begin.add_argument(
        "-n",
        "--events",
        type=_whole,
        default=_SHOWN,
        metavar="N",
        help=f"how many of those that are there (default: {_SHOWN})",
    )
    begin.add_argument(
        "--after", type=_whole, metavar="SEQ", help="all behind that one instead; 0: from the first"
    )
    parser.add_argument(
        "--until-idle",
        type=_seconds,
        metavar="SECONDS",
        help="end well when nothing has come for so long (0: what is there)",
    )
    parser.add_argument("--json", action="store_true", help="print each event as a line of JSON")
    parser.set_defaults(run=_run)


def count(text: str) -> int:
    """A number of things, at least one."""
    number = _whole(text)
    if not number:
        raise argparse.ArgumentTypeError("expected at least 1, got '0'")
    return number


def _whole(text: str) -> int:
    if text.isascii() and text.isdecimal() and len(text) <= 16 and int(text) < _COUNT_MAX:  # noqa: PLR2004
        return int(text)
    raise argparse.ArgumentTypeError(f"expected a whole number, got {text!r:.40}")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1
    if not isfinite(seconds) or seconds < 0:
        raise argparse.ArgumentTypeError(f"expected seconds, got {text!r:.40}")
    return seconds


def _run(arguments: argparse.Namespace) -> int:
    asyncio.run(_tail(arguments))
    return OK


async def _tail(arguments: argparse.Namespace) -> None:
    name = arguments.conversation
    async with store_at(arguments.store, schema=arguments.schema, create=False) as store:
        last = await store.run(lambda sync: need_conversation(arguments, sync, name))
        after = arguments.after
        if after is None:
            after = max(0, last - arguments.events)
        async with store.subscribe(name, after) as feed:
            lines = _Lines(as_json=arguments.json)
            for _ in range(after, last):
                lines.say(await anext(feed))
            await _follow(feed, lines, arguments.until_idle)


async def _follow(feed: Feed, lines: _Lines, idle_s: float | None) -> None:
    """Say each event that comes, until none has come for `idle_s`."""
    with suppress(TimeoutError, StopAsyncIteration):
        while True:
            lines.say(await asyncio.wait_for(anext(feed), idle_s))


class _Lines:
    """Says events, each on a line that is on its way before the next one is waited for."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._style = Style(sys.stdout)
        self._columns = width_of(sys.stdout)

    def say(self, event: Event) -> None:
        say(codec.encode(event).decode() if self._as_json else self._line(event))
        sys.stdout.flush()

    def _line(self, event: Event) -> str:
        seq = f"{event.seq:>{_SEQ_COLUMNS}}"
        kind = fill(event.type, _TYPE_COLUMNS)
        room = max(0, self._columns - len(seq) - _TYPE_COLUMNS - 4)
        said = cut(short(event.data), room)
        return f"{seq}  {self._style(kind, 'bold')}  {said}".rstrip()
