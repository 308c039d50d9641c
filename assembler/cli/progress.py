"""One line on standard error that says how far a command over files has come.

Only where people see it: nothing is written unless standard error is a terminal. Not here: the
progress bar of `play`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Self

from assembler.cli.output import cut, width_of

__all__ = ["Progress"]

_CLEAR = "\r\x1b[K"
_SECONDS_BETWEEN = 0.05
_LINES_BETWEEN = 64
"""So many lines pass without a look at the clock."""


class Progress:
    """A context manager around the files; whoever prints calls `clear` before.

    `total` counts files, each told by `at`, or bytes, told by `reading` and `passed`.
    """

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._on = total > 1 and sys.stderr.isatty()
        self._drawn_at = 0.0
        self._drawn = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.clear()

    def at(self, name: str) -> None:
        """The next file begins."""
        self._done += 1
        self._draw(f"{self._done}/{self._total} {name}")

    def reading(self, name: str, lines: Iterable[bytes]) -> Iterable[bytes]:
        """The same lines, while it is shown how many bytes of all have passed."""
        return self._counted(name, lines) if self._on else lines

    def passed(self, size: int) -> None:
        """A file of `size` bytes is behind us."""
        self._done += size

    def _counted(self, name: str, lines: Iterable[bytes]) -> Iterator[bytes]:
        done = self._done
        for number, line in enumerate(lines):
            done += len(line)
            if not number % _LINES_BETWEEN:
                self._draw(f"{done * 100 // self._total:3} % {name}")
            yield line

    def _draw(self, said: str) -> None:
        now = time.monotonic()
        if self._on and now - self._drawn_at >= _SECONDS_BETWEEN:
            self._drawn_at, self._drawn = now, True
            sys.stderr.write(f"{_CLEAR}{cut(said, width_of(sys.stderr) - 1)}")
            sys.stderr.flush()

    def clear(self) -> None:
        """Makes room for a line of output."""
        if self._drawn:
            self._drawn = False
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()
