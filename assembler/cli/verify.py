"""`assembler verify FILE…`: does every way to arrive show the same? Not here: the ways."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Any

from assembler.cli.inputs import (
    BAD_INPUT,
    FAILED,
    OK,
    Definitions,
    add_catalog,
    add_files,
    definitions,
    played,
)
from assembler.cli.output import Style, complain, escaped, findings_line, print_json, say
from assembler.cli.progress import Progress
from assembler.engine.errors import InputError, RecordingError
from assembler.recordings import Recording
from assembler.recordings.arriving import PATHS, disagreement
from assembler.recordings.matching import short
from assembler.recordings.running import missing_needs
from assembler.recordings.transcripts import read_any

__all__ = ["add", "finish", "tell", "verdict_of"]


def add(commands: Any) -> None:
    """Adds the parser of this command."""
    parser = commands.add_parser(
        "verify",
        help="compare every way to arrive at a conversation",
        description="Plays each recording live, then comes to the same durable events in every "
        f"other way ({', '.join(PATHS)}), and prints the first difference, in whichever view it "
        "is. What is still held at the end of a recording is given up first, as nothing of it is "
        "in the history.",
        epilog="example: assembler verify recordings/*.jsonl",
    )
    add_files(parser, several=True)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    add_catalog(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Compares all recordings of all files; a bad one is reported and the others go on."""
    known = definitions(arguments)
    told: list[dict[str, Any]] = []
    with Progress(len(arguments.files)) as progress:
        for file in arguments.files:
            progress.at(file)
            for verdict in _verdicts(file, known):
                told.append(verdict)
                progress.clear()
                tell(verdict, quiet=arguments.json)
    return finish(told, "recordings", as_json=arguments.json)


def finish(told: list[dict[str, Any]], what: str, *, as_json: bool) -> int:
    """The last line about all verdicts (or the one object, where they stand under `what`)."""
    counts = {
        outcome: sum(verdict["outcome"] == outcome for verdict in told)
        for outcome in ("agree", "disagree", "skipped", "unreadable")
    }
    if as_json:
        print_json({**counts, what: told})
    else:
        say(_summary(counts))
    if counts["unreadable"]:
        return BAD_INPUT
    return FAILED if counts["disagree"] else OK


def _summary(counts: dict[str, int]) -> str:
    said = f"{counts['agree']} agree, {counts['disagree']} do not"
    if counts["skipped"]:
        said += f", {counts['skipped']} skipped"
    return f"{said}, {counts['unreadable']} could not be read" if counts["unreadable"] else said


def _verdicts(file: str, known: Definitions) -> Iterator[dict[str, Any]]:
    try:
        for recording in read_any(file):
            yield verdict_of(recording, known)
    except (RecordingError, InputError) as fault:
        yield {"name": file, "outcome": "unreadable", "reason": str(fault)}


def verdict_of(recording: Recording, known: Definitions) -> dict[str, Any]:
    """Whether all ways show the same, as it is told with `--json`."""
    verdict: dict[str, Any] = {"name": recording.name}
    missing = missing_needs(recording, expectations=False)
    if missing is not None:
        reason = f"needs {missing[1]} (line {missing[0].line})"
        return {**verdict, "outcome": "skipped", "reason": reason}
    try:
        run = played(recording, known)
    except RecordingError as fault:
        return {**verdict, "outcome": "unreadable", "reason": str(fault)}
    run.give_up()
    facts = run.facts()
    verdict["events"] = len(facts.events)
    verdict["findings"] = [odd.to_json() for odd in run.assembler.findings()]
    found = disagreement(run.assembler, facts, known, run.views)
    if found is None:
        return {**verdict, "outcome": "agree"}
    path, difference = found
    wire = difference.to_json()
    where = {"path": path, "at": wire["path"], "live": wire["expected"], path: wire["got"]}
    return {**verdict, "outcome": "disagree", **where}


def tell(verdict: dict[str, Any], *, quiet: bool) -> None:
    """One line about one verdict."""
    outcome, name = verdict["outcome"], verdict["name"]
    if outcome == "unreadable":
        complain(verdict["reason"])
    if quiet or outcome == "unreadable":
        return
    style = Style(sys.stdout)
    if outcome == "agree":
        said = f"{len(PATHS) + 1} ways agree on {verdict['events']} events"
        found = findings_line(verdict["findings"])
        said = f"{said}, {found}" if found else said
        say(f"{style('agree', 'good')} {escaped(name)}: {said}")
    elif outcome == "skipped":
        say(f"skipped {escaped(name)}: {verdict['reason']}")
    else:
        say(f"{style('disagree', 'bad')} {escaped(name)}: {escaped(_difference(verdict))}")


def _difference(verdict: dict[str, Any]) -> str:
    path = verdict["path"]
    live, other = short(verdict["live"]), short(verdict[path])
    return f"{verdict['at']}: live shows {live}, {path} shows {other}"
