"""The live screen: a terminal taken for a while, and given back on every way out.

Not here: what stands on it (`play`).
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterable
from types import FrameType, TracebackType
from typing import Any, Self, TextIO

__all__ = ["Ended", "Screen", "can_draw"]

# The other screen, no cursor, no wrapping of a line that is wider than we thought.
_ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l"
_LEAVE = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"
_HOME = "\x1b[H"
_REST_OF_LINE = "\x1b[K"
_REST_OF_SCREEN = "\x1b[J"

_ENDING = tuple(
    getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGQUIT") if hasattr(signal, name)
)
_STOP = getattr(signal, "SIGTSTP", None)
_SMALLEST = (20, 4)


def can_draw(stream: TextIO) -> bool:
    """Whether people watch a terminal that can be drawn on."""
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


class Ended(BaseException):
    """A signal asked us to end; `status` is the exit status for it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.status = 128 + number


class Screen:
    """A context manager: inside it, `draw` shows lines; outside, the terminal is as it was.

    Signals that end the process raise `Ended` inside; one that stops it (Ctrl-Z) gives the
    terminal back until it goes on, and then shows again what was there.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._handlers: dict[int, Any] = {}
        self._drawn = ""

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in _ENDING:
                self._handlers[number] = signal.signal(number, self._end)
            if _STOP is not None:
                self._handlers[_STOP] = signal.signal(_STOP, self._stop)
        try:
            self._write(_ENTER)
        except BaseException:
            self._restore()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # A second signal must not come between the decision to leave and having left.
        for number in (*_ENDING, signal.SIGINT):
            if self._handlers:
                self._handlers.setdefault(number, signal.signal(number, signal.SIG_IGN))
        try:
            self._write(_LEAVE)
        except OSError:
            if error is None:
                raise
        finally:
            self._restore()

    def size(self) -> tuple[int, int]:
        """Columns and lines, asked anew each time: people resize windows."""
        try:
            size = os.get_terminal_size(self._stream.fileno())
        except (OSError, ValueError):
            return 80, 24
        # A terminal that does not know its size says 0.
        return max(size.columns, _SMALLEST[0]), max(size.lines, _SMALLEST[1])

    def draw(self, lines: Iterable[str]) -> None:
        """Shows the lines from the top; they must fit."""
        # What stood there goes before a line is written: behind a full one its end would go too.
        upper = list(lines)
        last = upper.pop() if upper else ""
        shown = "".join(f"{_REST_OF_LINE}{line}\r\n" for line in upper)
        self._drawn = _HOME + shown + _REST_OF_SCREEN + last
        self._write(self._drawn)

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()

    def _restore(self) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._handlers = {}

    def _end(self, number: int, _frame: FrameType | None) -> None:
        raise Ended(number)

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        # Past the stream: the signal may have come while it was being written to.
        self._write_through(_LEAVE)
        os.kill(os.getpid(), signal.SIGSTOP)
        self._write_through(_ENTER + self._drawn)

    def _write_through(self, text: str) -> None:
        wire = text.encode(self._stream.encoding, self._stream.errors or "strict")
        while wire:
            wire = wire[os.write(self._stream.fileno(), wire) :]
