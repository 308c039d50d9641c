"""`assembler record [FILE]`: a recording out of what happened, line by line, while it happens.

Not here: transcripts of other programs (`importing`), and what a recording may say
(`recordings.format`).
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from assembler import codec
from assembler.cli.inputs import OK
from assembler.engine.errors import AssemblerError, RecordingError
from assembler.recordings import RecordingWriter
from assembler.recordings.files import STDIN, atomic, named, opened

__all__ = ["add"]


def add(commands: Any) -> None:
    """Adds the parser of this command."""
    parser = commands.add_parser(
        "record",
        help="make a recording of events and deltas as they come",
        description="Makes a recording of what a program says while it happens, one JSON object on "
        "a line, or as server-sent events: an event (with seq), a delta (with attempt), the end of "
        "an attempt (attempt and outcome), who is there (live), or any operation of a recording "
        "(op). Ctrl-C ends it well.",
        epilog="example: assembler record events.jsonl -o recording.jsonl",
    )
    parser.add_argument(
        "file",
        nargs="?",
        default=STDIN,
        metavar="FILE",
        help="the lines to record (default: standard input)",
    )
    parser.add_argument("--title", default="recorded", help="what to call it")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="the file to write, whole or not at all (default: standard output, line by line)",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Records until nothing comes any more."""
    with contextlib.ExitStack() as stack:
        lines = stack.enter_context(opened(arguments.file))
        output: Any = _StandardOutput()
        if arguments.output is not None:
            output = stack.enter_context(atomic(arguments.output))
        _record(lines, RecordingWriter(output, title=arguments.title), named(arguments.file))
    return OK


def _record(lines: Iterable[bytes], writer: RecordingWriter, source: str) -> None:
    with contextlib.suppress(KeyboardInterrupt):
        for number, text in _texts(lines):
            try:
                writer.operation(_operation(codec.decode(text)))
            except AssemblerError as fault:
                raise RecordingError(f"{source}:{number}: {_bare(fault)}") from None


def _texts(lines: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """The lines that say something, with their numbers. Of server-sent events those with data."""
    for number, line in enumerate(lines, 1):
        text = line.strip().removeprefix(b"data:").strip()
        if text and not text.startswith((b":", b"event:", b"id:", b"retry:")):
            yield number, text


def _operation(value: Any) -> dict[str, Any]:
    """The operation that a line stands for."""
    if not isinstance(value, Mapping):
        raise RecordingError(f"line: expected an object, got {codec.encode(value).decode()[:40]}")
    fields = dict(value)
    if "op" in fields:
        return fields
    if "seq" in fields:
        return {"op": "append", "event": fields}
    if "outcome" in fields:
        return {"op": "settle", **fields}
    if "attempt" in fields:
        return {"op": "delta", **fields}
    if "live" in fields:
        return {"op": "liveness", **fields}
    raise RecordingError("line: expected one of seq, attempt, live and op in it, got none of them")


def _bare(fault: AssemblerError) -> str:
    """What is wrong, without the place where the writer looked at it."""
    said = str(fault)
    return said.partition(": ")[2] if said.startswith("<operation>") else said


class _StandardOutput:
    """Standard output as a file of bytes."""

    def write(self, data: bytes) -> None:
        sys.stdout.write(data.decode())

    def flush(self) -> None:
        sys.stdout.flush()
