"""Which commands there are, and how each of them ends: `dispatch`.

Here live the parser and what every command has in common: streams that are closed, full or read by
nobody, errors, signals. Not here: what a command does (its own file).
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from assembler import __version__
from assembler.cli import (
    anonymize,
    check,
    digest,
    export,
    importing,
    play,
    record,
    serve,
    state,
    storing,
    types,
    verify,
)
from assembler.cli.inputs import BAD_INPUT
from assembler.cli.output import complain
from assembler.cli.screen import Ended
from assembler.engine.errors import AssemblerError, InputError

__all__ = ["dispatch"]

_COMMANDS = (
    play,
    check,
    state,
    verify,
    importing,
    storing,
    export,
    record,
    anonymize,
    digest,
    serve,
    types,
)

_BROKEN_PIPE = 141


class _Parser(argparse.ArgumentParser):
    """One line for a mistake, not the whole usage."""

    def error(self, message: str) -> NoReturn:
        complain(f"{self.prog}: {message} (see {self.prog} --help)")
        raise SystemExit(BAD_INPUT)

    def _print_message(self, message: str, file: Any = None) -> None:
        """The base class would pass over a message that cannot be written."""
        (file or sys.stdout).write(message)


def dispatch(argv: Sequence[str] | None) -> int:
    """Run one command; give its exit status."""
    try:
        _prepare_streams()
        status = _run(argv)
        sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()
        return _BROKEN_PIPE
    except Ended as end:
        return end.status
    except (AssemblerError, OSError) as fault:
        with contextlib.suppress(OSError):
            complain(_said(fault))
        return BAD_INPUT
    return status


def _run(argv: Sequence[str] | None) -> int:
    try:
        arguments, others = _parser().parse_known_args(argv)
        if others:
            return _too_many(arguments, others)
        status: int = arguments.run(arguments)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else BAD_INPUT
    return status


def _too_many(arguments: argparse.Namespace, others: Sequence[str]) -> int:
    """The arguments that no parser took: most often the second FILE of a command for one."""
    program = f"assembler {arguments.command}"
    said = f"unrecognized arguments: {' '.join(others)}"
    if "file" in arguments and all(other == "-" or other[:1] != "-" for other in others):
        said = f"takes one FILE, got {1 + len(others)}"
    complain(f"{program}: {said} (see {program} --help)")
    return BAD_INPUT


def _said(fault: AssemblerError | OSError) -> str:
    """An error in one line. What reads and writes files names them, so no name is the output."""
    if isinstance(fault, AssemblerError):
        return str(fault)
    if fault.filename is None:
        _drop_output()
    return f"{fault.filename or 'standard output'}: {fault.strerror or fault}"


def _parser() -> _Parser:
    parser = _Parser(
        prog="assembler",
        description="Plays, checks and compares recordings of conversations.",
        epilog="example: assembler play recordings/parallel-writes.jsonl",
    )
    parser.add_argument("--version", action="version", version=f"assembler {__version__}")
    commands = parser.add_subparsers(
        title="commands", metavar="COMMAND", required=True, dest="command"
    )
    for command in _COMMANDS:
        command.add(commands)
    return parser


def _prepare_streams() -> None:
    """A closed standard error hears nothing; a closed standard output is bad input."""
    # The types say that they are always there; the interpreter says None for what was closed.
    streams: Any = sys
    if streams.stderr is None:
        streams.stderr = io.StringIO()
    if streams.stdout is None:
        streams.stdout = io.StringIO()
        raise InputError("standard output: expected an open one, got a closed one")
    for stream in (streams.stdout, streams.stderr):
        if hasattr(stream, "reconfigure"):
            # A locale that cannot say a character must not end a command.
            stream.reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    """Nobody can read any more: what is still in the buffer must not raise again at exit."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
