"""The command line: `assembler COMMAND …`. One file for each command; `main` is here.

A command module has `add(commands)`, which adds its parser, and the function that it runs, which
takes the parsed arguments and gives the exit status: 0 when all holds, 1 when a check failed, 2
for bad input (one line on standard error). Not here: one business word; what speaks of business is
plugged in (`assembler.plugins`).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from assembler import __version__
from assembler.cli import check, importing, play, state, verify
from assembler.cli.inputs import BAD_INPUT
from assembler.cli.output import complain
from assembler.cli.screen import Ended
from assembler.engine.errors import AssemblerError

__all__ = ["main"]

_COMMANDS = (play, check, state, verify, importing)
_INTERRUPTED = 130
_BROKEN_PIPE = 141


class _Parser(argparse.ArgumentParser):
    """One line for a mistake, not the whole usage."""

    def error(self, message: str) -> NoReturn:
        complain(f"{self.prog}: {message} (see {self.prog} --help)")
        raise SystemExit(BAD_INPUT)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; give its exit status."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A locale that cannot say a character must not end a command.
            stream.reconfigure(errors="backslashreplace")
    try:
        status = _run(argv)
        sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()
        return _BROKEN_PIPE
    except KeyboardInterrupt:
        return _INTERRUPTED
    except Ended as end:
        return end.status
    return status


def _run(argv: Sequence[str] | None) -> int:
    try:
        arguments = _parser().parse_args(argv)
        status: int = arguments.run(arguments)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else BAD_INPUT
    except BrokenPipeError:
        raise
    except AssemblerError as fault:
        complain(str(fault))
        return BAD_INPUT
    except OSError as fault:
        complain(f"{fault.filename or 'file'}: {fault.strerror or fault}")
        return BAD_INPUT
    return status


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


def _drop_output() -> None:
    """Nobody reads any more: what is still in the buffer must not raise again at exit."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
