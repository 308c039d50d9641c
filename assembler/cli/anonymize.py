"""`assembler anonymize FILE`: a recording with the same shape and none of its words.

Not here: what becomes of a text (`sharing.masking`) and of a field (`sharing.anonymizing`), and
what is harmless (plugged in, beside the catalog).
"""

from __future__ import annotations

import argparse
import contextlib
import secrets
import sys
from collections.abc import Iterator
from typing import Any

from assembler import codec, plugins
from assembler.cli.inputs import OK, Definitions, add_catalog, add_files, definitions, single
from assembler.cli.output import complain
from assembler.cli.progress import Progress
from assembler.recordings import Recording
from assembler.recordings.expecting import is_expectation
from assembler.recordings.files import atomic
from assembler.recordings.format import Operation
from assembler.recordings.lowering import HOLDS, Lowering
from assembler.sharing.anonymizing import anonymized

__all__ = ["add"]

_SEED_BYTES = 32


def add(commands: Any) -> None:
    """Adds the parser of this command."""
    parser = commands.add_parser(
        "anonymize",
        help="write a recording with the same shape and none of its words",
        description="Replaces every text of a recording or a transcript by made-up words of the "
        "same length, ids by other ids, numbers by others, and moves all times; what is not known "
        "to be harmless is replaced. Rows, stages and groups stay. Expectations are left out, and "
        "what a backend did is written as what came of it.",
        epilog="example: assembler anonymize session.jsonl -o shape.jsonl",
    )
    add_files(parser, several=False)
    parser.add_argument(
        "--names", action="store_true", help="replace the names of what was run too"
    )
    parser.add_argument(
        "--seed",
        metavar="TEXT",
        help="gives the same result again; whoever knows it can undo it word by word "
        "(default: another one each time, kept nowhere)",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="the file to write, whole or not at all (default: standard output)",
    )
    add_catalog(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Writes the lines, one by one."""
    recording, known = single(arguments.file), definitions(arguments)
    lines = _lowered(recording, known)
    found = anonymized(
        codec.plain(recording.header),
        lines,
        plugins.harmless(arguments.catalog),
        _key(arguments.seed),
        names=arguments.names,
    )
    encoded = (codec.encode(line) + b"\n" for line in found)
    with contextlib.ExitStack() as stack:
        output: Any = None
        if arguments.output is not None:
            output = stack.enter_context(atomic(arguments.output))
        progress = stack.enter_context(Progress(1 + len(lines)))
        for line in encoded:
            progress.at("replaced")
            if output is None:
                sys.stdout.write(line.decode())
            else:
                output.write(line)
    _report(recording)
    return OK


def _key(seed: str | None) -> bytes:
    return secrets.token_bytes(_SEED_BYTES) if seed is None else seed.encode()


def _lowered(recording: Recording, known: Definitions) -> list[dict[str, Any]]:
    """What came of its lines, while it is shown how far that is."""

    def told(progress: Progress) -> Iterator[Operation]:
        for operation in recording.operations:
            progress.at(f"read {recording.source}")
            yield operation

    with Progress(len(recording.operations)) as progress:
        return Lowering(recording, known).all(told(progress))


def _report(recording: Recording) -> None:
    told = [each for each in recording.operations if is_expectation(each)]
    dropped = sum(each.name != HOLDS for each in told)
    if dropped:
        word = "expectation" if dropped == 1 else "expectations"
        complain(f"{recording.source}: left out {dropped} {word}, which speak of its words")
