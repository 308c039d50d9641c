"""`assembler check FILE…`: do the expectations of recordings hold? Not here: what holds."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from assembler.cli.inputs import BAD_INPUT, FAILED, OK, add_catalog, add_files, definitions
from assembler.cli.output import Style, complain, escaped, print_json, say
from assembler.cli.progress import Progress
from assembler.recordings.checking import Report, Result, reports_of

__all__ = ["add"]


def add(commands: Any) -> None:
    """Adds the parser of this command."""
    parser = commands.add_parser(
        "check",
        help="run the expectations of recordings",
        description="Runs the operations and expectations of every recording and prints how many "
        "passed; for each that does not hold the file, the line, the path and both values.",
        epilog="example: assembler check recordings/*.jsonl",
    )
    add_files(parser, several=True)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    add_catalog(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Checks every file; a bad one is reported and the others go on."""
    known = definitions(arguments)
    reports: list[Report] = []
    with Progress(len(arguments.files)) as progress:
        for file in arguments.files:
            progress.at(file)
            for report in reports_of(file, known):
                reports.append(report)
                progress.clear()
                _tell(report, quiet=arguments.json)
    result = Result(tuple(reports))
    if arguments.json:
        print_json(result)
    else:
        say(str(result))
    if result.bad:
        return BAD_INPUT
    return OK if result else FAILED


def _tell(report: Report, *, quiet: bool) -> None:
    if report.outcome == "unreadable":
        complain(report.reason or "")
    if quiet:
        return
    if report.outcome == "skipped":
        say(escaped(f"skipped {report.name}: {report.reason}"))
    failed = Style(sys.stdout)("failed", "bad")
    for failure in report.failures:
        say(f"{failed} {escaped(f'{report.source}:{failure.line}: {failure.difference}')}")
