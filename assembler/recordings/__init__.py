"""Recordings: one format for replays, golden tests and bug reports.

Read from `format` (what a line may say), `running` (playing it) and `expecting` (what it holds
to). Nothing here knows a business word: what speaks of business is plugged in.
"""

from __future__ import annotations

from assembler.recordings.checking import Report, Result, check
from assembler.recordings.files import RecordingWriter, read, read_many, write
from assembler.recordings.format import Operation, Recording
from assembler.recordings.running import Run

__all__ = [
    "Operation",
    "Recording",
    "RecordingWriter",
    "Report",
    "Result",
    "Run",
    "check",
    "read",
    "read_many",
    "write",
]
