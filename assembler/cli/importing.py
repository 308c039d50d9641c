"""`assembler import NAME FILE`: a recording out of what people already have.

The formats are plugged in (`assembler.importers`). Not here: one of them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from assembler import codec, plugins
from assembler.cli.inputs import OK
from assembler.engine.errors import InputError
from assembler.recordings.files import atomic, named, opened
from assembler.recordings.format import read_lines

__all__ = ["add"]


def add(commands: Any) -> None:
    """Adds the parser of this command."""
    known = plugins.names("importers")
    parser = commands.add_parser(
        "import",
        help="make a recording out of a transcript",
        description="Makes a recording out of a transcript or stream of another program. "
        f"NAME says which format it has: {', '.join(known) or 'none is installed'}.",
        epilog=f"example: assembler import {known[0] if known else 'NAME'} session.jsonl "
        "-o session.recording.jsonl",
    )
    parser.add_argument("name", metavar="NAME", help="the format")
    parser.add_argument("file", metavar="FILE", help="the transcript; - is standard input")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="where to write it, whole or not at all (default: standard output)",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Imports all of it before anything is written, so that nothing is half done."""
    make = plugins.importer(arguments.name, said="NAME")
    recording = b"".join(_made(make, arguments.file))
    # Read it as everybody else will: a recording that cannot be read is not written.
    list(read_lines(recording.splitlines(keepends=True), f"{named(arguments.file)} (imported)"))
    if arguments.output is None:
        sys.stdout.write(recording.decode())
        return OK
    with atomic(arguments.output) as file:
        file.write(recording)
    return OK


def _made(make: Any, file: str) -> Iterable[bytes]:
    with opened(file) as source:
        try:
            operations: Iterable[Mapping[str, Any]] = make(source, name=named(file))
            for operation in operations:
                yield codec.encode(operation) + b"\n"
        except InputError:
            raise
        except ValueError as fault:
            raise InputError(str(fault)) from None
