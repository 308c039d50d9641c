"""Recordings in files: reading them, and writing them whole or not at all.

Not here: what a line may say (`format`).
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from assembler import codec
from assembler.engine.definition import Node
from assembler.engine.errors import RecordingError
from assembler.engine.events import Delta, Event, Outcome
from assembler.plugins import operations
from assembler.recordings.format import (
    VERSION,
    Recording,
    check_header,
    check_operation,
    frozen,
    read_lines,
    unexpected,
)

__all__ = ["RecordingWriter", "atomic", "named", "opened", "read", "read_many", "write"]

STDIN = "-"


def read(path: str | os.PathLike[str]) -> Recording:
    """The one recording in a file; `RecordingError` is one line with file, line and field."""
    first, *others = read_many(path)
    if others:
        place = others[0].source, others[0].line
        raise unexpected(place, "recording", "only one recording", "another one behind it")
    return first


def read_many(path: str | os.PathLike[str]) -> Iterator[Recording]:
    """The recordings that stand one after another in a file; `-` is standard input."""
    source = os.fspath(path)
    with opened(source) as file:
        yield from read_lines(file, named(source))


def named(source: str) -> str:
    """What messages call a file; `-` is standard input."""
    return "<stdin>" if source == STDIN else source


@contextlib.contextmanager
def opened(source: str) -> Iterator[BinaryIO]:
    """A file to read from; `-` is standard input, which stays open. Errors: `RecordingError`.

    That it cannot be read is often found only while it is: the block does nothing else that could
    raise an `OSError`.
    """
    with contextlib.ExitStack() as stack:
        try:
            if source == STDIN:
                file = _standard_input()
            else:
                file = stack.enter_context(Path(source).open("rb"))
        except (OSError, ValueError) as fault:
            raise _unreadable(named(source), fault) from None
        try:
            yield file
        except OSError as fault:
            raise _unreadable(named(source), fault) from None


def _standard_input() -> BinaryIO:
    # The types say that it is always there; the interpreter says None for a closed one.
    stream: TextIO | None = sys.stdin
    if stream is None:
        raise ValueError("a closed one")
    return stream.buffer


def _unreadable(source: str, fault: OSError | ValueError) -> RecordingError:
    if isinstance(fault, IsADirectoryError):
        return RecordingError(f"{source}: file: expected a file, got a directory")
    if isinstance(fault, FileNotFoundError):
        return RecordingError(f"{source}: no such file")
    said = fault.strerror if isinstance(fault, OSError) else str(fault)
    return RecordingError(f"{source}: file: expected one that can be read, got: {said}")


@contextlib.contextmanager
def atomic(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write that becomes `path` when the block ends well, and is gone when it does not.

    Whoever reads `path` meanwhile, or after a crash, finds the old file or the new one, whole. An
    `OSError` names `path`: the block does nothing but write.
    """
    target = Path(path)
    try:
        with _replacing(target) as file:
            yield file
    except OSError as fault:
        raise OSError(fault.errno, fault.strerror or str(fault), str(target)) from None


@contextlib.contextmanager
def _replacing(target: Path) -> Iterator[BinaryIO]:
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(_mode_of(target))
        Path(name).replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise


def _mode_of(target: Path) -> int:
    """The permissions that `target` has, or that a new file would get."""
    try:
        return target.stat().st_mode & 0o7777
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


class RecordingWriter:
    """Writes a recording line by line to a binary file, each line checked before.

    The methods are the operations of an Assembler, so that whoever calls both records what it
    does. Each line is on its way before the call returns: a process that dies loses nothing said
    before.
    """

    def __init__(self, file: BinaryIO, *, title: str, about: str = "", **header: Any) -> None:
        self._file = file
        self._line = 0
        fields = {"recording": VERSION, "title": title, "about": about, **header}
        whole = frozen(codec.plain(fields))
        check_header(whole, ("<header>", 1))
        self._write(whole)

    def operation(self, value: Mapping[str, Any]) -> None:
        """Any operation, as it stands in the file; `RecordingError` when it may not."""
        fields = frozen(codec.plain(value))
        check_operation(fields, operations(), ("<operation>", self._line + 1))
        self._write(fields)

    def load(self, events: Iterable[Event], has_more: bool = False) -> None:
        """A complete window."""
        self.operation({"op": "load", "events": list(events), "has_more": has_more})

    def append(self, event: Event) -> None:
        """The next durable event."""
        self.operation({"op": "append", "event": event})

    def emit(self, delta: Delta) -> None:
        """A delta."""
        self.operation({"op": "delta", **codec.plain(delta)})

    def prepend(self, events: Iterable[Event], has_more: bool) -> None:
        """The page before the window."""
        self.operation({"op": "prepend", "events": list(events), "has_more": has_more})

    def evict(self, before: int) -> None:
        """Forgets events older than `before`."""
        self.operation({"op": "evict", "before": before})

    def settle(self, attempt: str, outcome: Outcome | str) -> None:
        """An attempt ended."""
        self.operation({"op": "settle", "attempt": attempt, "outcome": Outcome(outcome)})

    def liveness(self, live: bool | None) -> None:
        """Whether anybody still works on the conversation."""
        self.operation({"op": "liveness", "live": live})

    def expect_nodes(self, nodes: Iterable[Node]) -> None:
        """The visible Nodes as they are now, all their fields: a golden test in one call."""
        self.operation({"op": "expect", "nodes": [node.to_json() for node in nodes]})

    def _write(self, value: Any) -> None:
        self._file.write(codec.encode(value) + b"\n")
        self._file.flush()
        self._line += 1


def write(path: str | os.PathLike[str], recording: Recording) -> None:
    """`recording` as a file, whole or not at all. What `read` gives back is equal."""
    with atomic(path) as file:
        file.write(codec.encode(recording.header) + b"\n")
        for operation in recording.operations:
            file.write(codec.encode(operation.fields) + b"\n")
