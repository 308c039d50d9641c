"""`assembler store COMMAND STORE`: what is in a store. Here live the parser, `init` and `list`.

Not here: following (`storing_tail`), and what reads whole conversations (`storing_whole`).
"""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from assembler import plugins
from assembler.cli import importing, storing_tail, storing_whole
from assembler.cli.databases import add_store, listed, opened_store
from assembler.cli.inputs import OK, add_catalog
from assembler.cli.output import cut, escaped, print_json, say, width, width_of
from assembler.stores import Listed, StoreMissing
from assembler.stores.addresses import place_of, store_at

__all__ = ["add"]

_NAME_COLUMNS = 28


def add(commands: Any) -> None:
    """Adds the parser of this command."""
    parser = commands.add_parser(
        "store",
        help="look into a store of conversations",
        description="Makes, fills, lists, follows, verifies and dumps a store: a SQLite file, or a "
        "PostgreSQL database.",
        epilog="example: assembler store list chat.db",
    )
    inside = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, dest="what")
    _add_init(inside)
    _add_import(inside)
    _add_list(inside)
    storing_tail.add(inside)
    storing_whole.add(inside)


def _add_init(commands: Any) -> None:
    parser = commands.add_parser(
        "init",
        help="make an empty store",
        description="Makes the file, or schema and tables, unless they are there already.",
        epilog="example: assembler store init chat.db",
    )
    add_store(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    parser.set_defaults(run=_init)


def _init(arguments: argparse.Namespace) -> int:
    address, schema = arguments.store, arguments.schema
    try:
        with store_at(address, schema=schema, create=False).sync:
            made = False
    except StoreMissing:
        with store_at(address, schema=schema).sync:
            made = True
    place = place_of(address, schema)
    if arguments.json:
        print_json({"store": place, "made": made})
    else:
        say(escaped(f"{place}: {'an empty store was made' if made else 'is a store already'}"))
    return OK


def _add_import(commands: Any) -> None:
    parser = commands.add_parser(
        "import",
        help="put transcripts into a store",
        description="The same as assembler import --store STORE: a transcript or a recording "
        "becomes a conversation, a folder is imported with all that is in it. Again and again, and "
        "after an interruption: what is there already stays, and is there once.",
        epilog="example: assembler store import chat.db ~/sessions",
    )
    add_store(parser)
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="[NAME] PATH",
        help="the name of a format, then transcripts and folders of them; - is standard input",
    )
    parser.set_defaults(run=importing.run, output=None)


def _add_list(commands: Any) -> None:
    parser = commands.add_parser(
        "list",
        help="list the conversations of a store, the latest first",
        description="One line for each conversation: when its last event was (UTC), how many "
        "events it has, its name and its title.",
        epilog="example: assembler store list chat.db --limit 20",
    )
    add_store(parser)
    parser.add_argument("--limit", type=storing_tail.count, metavar="N", help="so many at most")
    parser.add_argument(
        "--json", action="store_true", help="print a JSON object on each line instead"
    )
    add_catalog(parser)
    parser.set_defaults(run=_list)


def _list(arguments: argparse.Namespace) -> int:
    titles = plugins.titles(arguments.catalog)
    columns = width_of(sys.stdout)
    with opened_store(arguments) as store:
        for entry in islice(listed(store, titles), arguments.limit):
            if arguments.json:
                print_json(_plain(entry))
            else:
                say(cut(_line(entry), columns))
    return OK


def _title(entry: Listed) -> str | None:
    titles = [event.data.get("title") for event in entry.newest.values()]
    return next((each for each in titles if isinstance(each, str) and each), None)


def _plain(entry: Listed) -> dict[str, Any]:
    return {
        "conversation": entry.conversation,
        "title": _title(entry),
        "events": entry.events,
        "first_time": entry.first_time,
        "last_time": entry.last_time,
    }


def _line(entry: Listed) -> str:
    name = escaped(entry.conversation)
    name += " " * (_NAME_COLUMNS - width(name))
    said = f"{_date(entry.last_time)}  {entry.events:>7,}  {name}  {_title(entry) or ''}"
    return said.rstrip()


def _date(time: int) -> str:
    try:
        return f"{datetime.fromtimestamp(time / 1_000, UTC):%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError, OSError):
        return f"{time:>16}"
