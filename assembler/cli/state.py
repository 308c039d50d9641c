"""`assembler state FILE`: the final View of a recording, by the live path or another one."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from assembler import plugins
from assembler.cli.inputs import (
    OK,
    Definitions,
    add_catalog,
    add_files,
    add_view,
    definitions,
    played,
    single,
    view_of,
)
from assembler.cli.output import Style, findings_line, print_json, say, width_of
from assembler.cli.rows import RowMaker, lines
from assembler.engine.assembler import Assembler
from assembler.engine.errors import InputError
from assembler.recordings.arriving import PATHS, arrive, way_of

__all__ = ["add"]

LIVE = "live"
_WAYS = (
    "live (as it happened), history (all durable events at once), append (one after another), "
    "pages:N (in pages of N, newest first), evict:half or evict:all (forgotten and paged again), "
    "reconnect:1 or reconnect:5 (a newest page of that size, what is live, then the rest)"
)
_NAMES = ", ".join([LIVE, *(name for name in PATHS if not name.startswith("pages:")), "pages:N"])


def add(commands: Any) -> None:
    """Adds the parser of this command."""
    parser = commands.add_parser(
        "state",
        help="print the final View of a recording",
        description="Plays a recording and prints what is shown at its end, one row for each "
        "visible Node; with --json the snapshot as it goes over the wire.",
        epilog="example: assembler state recordings/cancel.jsonl --path pages:3 --json",
    )
    add_files(parser, several=False)
    parser.add_argument(
        "--path",
        default=LIVE,
        metavar="PATH",
        help=f"how to get there (default: live): {_WAYS}",
    )
    add_view(parser)
    parser.add_argument("--json", action="store_true", help="print the snapshot as JSON")
    add_catalog(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Prints the View."""
    if arguments.path != LIVE:
        _check_path(arguments.path)
    known = definitions(arguments)
    name = view_of(arguments, known)
    assembler = _arrived(arguments, known, name)
    view = assembler.view(name)
    if arguments.json:
        print_json(view.snapshot())
        return OK
    maker = RowMaker(plugins.row_text(arguments.catalog))
    rows = maker.rows(view.nodes, view.groups)
    for line in lines(rows, Style(sys.stdout), width_of(sys.stdout)):
        say(line)
    found = findings_line(odd.to_json() for odd in assembler.findings())
    if found:
        say()
        say(found)
    return OK


def _arrived(arguments: argparse.Namespace, known: Definitions, view: str) -> Assembler:
    played_run = played(single(arguments.file), known, [view])
    if arguments.path == LIVE:
        return played_run.assembler
    return arrive(arguments.path, played_run.facts(), known, [view])


def _check_path(path: str) -> None:
    try:
        way_of(path)
    except KeyError:
        raise InputError(f"--path: expected one of {_NAMES}, got {path}") from None
