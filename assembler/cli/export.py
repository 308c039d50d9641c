"""`assembler export --to NAME FILE`: a recording as what clients of another format are sent.

The formats are plugged in (`assembler.exporters`). Not here: one of them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Any

from assembler import codec, plugins
from assembler.cli.inputs import OK, add_catalog, add_files, definitions, played, single
from assembler.engine.assembler import Assembler
from assembler.engine.errors import InputError
from assembler.engine.patches import Patch, Snapshot
from assembler.plugins import DocumentExporter, Exporter, Shared
from assembler.recordings import Recording, Run
from assembler.recordings.expecting import is_expectation
from assembler.recordings.files import atomic
from assembler.recordings.running import views_of

__all__ = ["add"]


def add(commands: Any) -> None:
    """Adds the parser of this command."""
    known = plugins.names("exporters")
    parser = commands.add_parser(
        "export",
        help="write what a client of another format is sent, or a file for people",
        description="Plays a recording and writes what a client of another format is sent that "
        "watches it from its first line on, as it is sent. Where the recording reconnects, so does "
        "the client. A format for people (html) is one file that shows how it all ends. "
        f"Formats: {', '.join(known) or 'none is installed'}.",
        epilog="example: assembler export --to NAME recordings/cancel.jsonl -o frames.txt",
    )
    parser.add_argument("--to", required=True, metavar="NAME", help="the format to write")
    add_files(parser, several=False)
    parser.add_argument(
        "--reload",
        action="store_true",
        help="what a client is sent that comes when everything is over",
    )
    parser.add_argument("--json", action="store_true", help="each frame as one line of JSON")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="the file to write, whole or not at all (default: standard output)",
    )
    add_catalog(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Writes the frames, when all of them are made, or the document."""
    exporter = plugins.exporter(arguments.to, said="--to")
    if isinstance(exporter, DocumentExporter):
        return _document(exporter, arguments)
    recording = single(arguments.file)
    run = Run(recording, definitions(arguments))
    moments = _moments(run)
    if arguments.reload:
        moments = _at_the_end(run, moments)
    frames = _frames(exporter, recording, moments)
    if arguments.json:
        pieces = [codec.encode(frame) + b"\n" for frame in frames]
    else:
        pieces = [*map(exporter.line, frames), exporter.end]
    _write(b"".join(pieces), arguments.output)
    return OK


def _document(exporter: DocumentExporter, arguments: argparse.Namespace) -> int:
    """Writes what is shown in the end, which a document always is about."""
    if arguments.json:
        raise InputError(f"--json: expected a format of frames, got {arguments.to}")
    recording, known = single(arguments.file), definitions(arguments)
    run = played(recording, known, views_of(known)[:1])
    shared = Shared(
        _view(run),
        recording.title,
        str(recording.header.get("about") or ""),
        _times(run.assembler),
        arguments.catalog,
    )
    _write(b"".join(exporter.write(shared)), arguments.output)
    return OK


def _times(assembler: Assembler) -> tuple[int, int] | None:
    """When the first and the last loaded event happened."""
    window = assembler.window
    if window.first is None or window.last is None:
        return None
    first, last = assembler.event(window.first), assembler.event(window.last)
    return None if first is None or last is None else (first.time, last.time)


Moment = tuple[bool, Snapshot | Patch]
"""What a client is told, and whether it comes just now."""


def _moments(run: Run) -> Iterator[Moment]:
    view = run.views[0]
    assembler = None
    for operation in run.recording.operations:
        if is_expectation(operation):
            continue
        run.do(operation)
        if run.assembler is assembler:
            yield False, run.patches[view]
        else:
            # The first one sees everything from the beginning: it has nothing to catch up with.
            is_first, assembler = assembler is None, run.assembler
            yield True, run.patches[view] if is_first else _view(run)


def _view(run: Run) -> Snapshot:
    return run.assembler.view(run.views[0]).snapshot()


def _at_the_end(run: Run, moments: Iterator[Moment]) -> Iterator[Moment]:
    for _ in moments:
        pass
    yield True, _view(run)


def _frames(exporter: Exporter, recording: Recording, moments: Iterator[Moment]) -> Iterator[Any]:
    client: Any = None
    for comes, update in moments:
        if comes:
            client = exporter.connect(recording.header)
        yield from client.feed(update)


def _write(data: bytes, path: str | None) -> None:
    if path is None:
        sys.stdout.write(data.decode())
        return
    with atomic(path) as file:
        file.write(data)
