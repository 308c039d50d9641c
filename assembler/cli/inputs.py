"""What several commands share: recordings given by name, the catalog, and how a command ends.

Not here: what a command prints (`output`).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from assembler import plugins
from assembler.engine.definition import Definition, GroupDefinition
from assembler.engine.errors import InputError
from assembler.recordings import Recording, Run
from assembler.recordings.expecting import is_expectation
from assembler.recordings.format import unexpected
from assembler.recordings.running import missing_needs
from assembler.recordings.transcripts import read_any

__all__ = [
    "BAD_INPUT",
    "FAILED",
    "OK",
    "Definitions",
    "add_catalog",
    "add_files",
    "add_view",
    "definitions",
    "played",
    "single",
    "view_of",
]

OK = 0
FAILED = 1
BAD_INPUT = 2

Definitions = Sequence[Definition | GroupDefinition]


def add_files(parser: argparse.ArgumentParser, *, several: bool) -> None:
    """The FILE arguments; `-` is standard input."""
    if several:
        parser.add_argument(
            "files",
            nargs="+",
            metavar="FILE",
            help="recordings, or transcripts of a known format; - is standard input, where several "
            "recordings may stand one after another",
        )
    else:
        parser.add_argument(
            "file",
            metavar="FILE",
            help="a recording, or a transcript of a known format; - is standard input",
        )


def add_catalog(parser: argparse.ArgumentParser) -> None:
    """Which Definitions make the conversation."""
    parser.add_argument(
        "--catalog",
        default="default",
        metavar="NAME",
        help="the installed catalog of Definitions to use (default: default)",
    )


def definitions(arguments: argparse.Namespace) -> Definitions:
    """Those of the catalog that was asked for."""
    return plugins.catalog(arguments.catalog, said="--catalog")


def add_view(parser: argparse.ArgumentParser) -> None:
    """Which View is shown."""
    parser.add_argument("--view", default="chat", help="which View (default: chat)")


def view_of(arguments: argparse.Namespace, known: Definitions) -> str:
    """The View that was asked for; `InputError` when no Definition shows on it."""
    views = {each.target for each in known if each.target is not None}
    view: str = arguments.view
    if view not in views:
        raise InputError(f"--view: expected one of {', '.join(sorted(views))}, got {view}")
    return view


def single(file: str) -> Recording:
    """The recording of a file, or what a transcript's importer makes of it; it can run here.

    Of a transcript that holds several conversations, the main one. Two recordings are one too many.
    """
    found = read_any(file)
    recording = next(found)
    second = next(found, None)
    if second is not None and second.source == recording.source:
        place = second.source, second.line
        raise unexpected(place, "recording", "only one recording", "another one behind it")
    require_all(recording)
    return recording


def require_all(recording: Recording) -> None:
    """`RecordingError` when an operation in it cannot run here; expectations do not matter."""
    missing = missing_needs(recording, expectations=False)
    if missing is not None:
        operation, word = missing
        place = recording.source, operation.line
        expected, got = "an operation that runs here", f"one that needs {word}"
        raise unexpected(place, operation.name, expected, got)


def played(recording: Recording, known: Definitions, views: Sequence[str] | None = None) -> Run:
    """A Run that has done all operations, with all views or some; expectations are passed over."""
    run = Run(recording, known, views=views)
    for operation in recording.operations:
        if not is_expectation(operation):
            run.do(operation)
    return run
