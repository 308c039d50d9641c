"""The command line: `assembler COMMAND …`. One file for each command; `main` is here.

A command module has `add(commands)`, which adds its parser, and the function that it runs, which
takes the parsed arguments and gives the exit status: 0 when all holds, 1 when a check failed, 2
for bad input (one line on standard error). Not here: which commands there are and how they end
(`dispatch`), and one business word; what speaks of business is plugged in (`assembler.plugins`).
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]

_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; give its exit status."""
    try:
        # Most of a short command is this import: Ctrl-C in the middle of it is no fault either.
        from assembler.cli.dispatch import dispatch  # noqa: PLC0415

        return dispatch(argv)
    except KeyboardInterrupt:
        return _INTERRUPTED
