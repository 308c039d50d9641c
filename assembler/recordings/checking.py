"""Runs recordings and says which hold.

`check` is public; the command of that name prints what it gives. Not here: what holds
(`expecting`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from msgspec import Struct

from assembler import plugins
from assembler.engine.definition import Definition, GroupDefinition
from assembler.engine.errors import RecordingError
from assembler.recordings.expecting import differences, is_expectation
from assembler.recordings.files import read_many
from assembler.recordings.format import Operation, Recording
from assembler.recordings.matching import Difference
from assembler.recordings.running import Run, missing_needs

__all__ = ["Failure", "Report", "Result", "check", "check_recording"]

Outcome = Literal["passed", "failed", "skipped", "unreadable"]


class Failure(Struct, frozen=True):
    """Where something does not hold: the line of the file, and the difference there."""

    line: int
    difference: Difference

    def to_json(self) -> dict[str, Any]:
        """Its wire form."""
        return {"line": self.line, **self.difference.to_json()}


class Report(Struct, frozen=True):
    """How one recording went. `reason` says why it was skipped or could not be read."""

    source: str
    name: str
    title: str
    outcome: Outcome
    reason: str | None = None
    failures: tuple[Failure, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Its wire form."""
        wire: dict[str, Any] = {"name": self.name, "title": self.title, "outcome": self.outcome}
        if self.reason is not None:
            wire["reason"] = self.reason
        if self.failures:
            wire["failures"] = [failure.to_json() for failure in self.failures]
        return wire


class Result(Struct, frozen=True):
    """How all recordings went. True when all hold; what was skipped does not count as passed."""

    reports: tuple[Report, ...]

    def _count(self, *outcomes: Outcome) -> int:
        return sum(report.outcome in outcomes for report in self.reports)

    @property
    def passed(self) -> int:
        """Those that hold."""
        return self._count("passed")

    @property
    def failed(self) -> int:
        """Those that do not hold, and those that could not be read."""
        return self._count("failed", "unreadable")

    @property
    def skipped(self) -> int:
        """Those that need something that is not here."""
        return self._count("skipped")

    @property
    def bad(self) -> int:
        """Those of the failed ones that could not be read."""
        return self._count("unreadable")

    def __bool__(self) -> bool:
        return not self.failed

    def __str__(self) -> str:
        counted = f"{self.passed} passed, {self.failed} failed"
        return f"{counted}, {self.skipped} skipped" if self.skipped else counted

    def to_json(self) -> dict[str, Any]:
        """Its wire form."""
        return {
            "passed": self.passed,
            "failed": self.failed,
            "skipped": self.skipped,
            "recordings": [report.to_json() for report in self.reports],
        }


def check(
    *paths: str | os.PathLike[str],
    definitions: Iterable[Definition | GroupDefinition] | None = None,
) -> Result:
    """Runs the operations and expectations of every recording in `paths` (`-`: standard input).

    A file that cannot be read is reported and the others go on. `definitions` are those of the
    installed catalog when left out.
    """
    known = plugins.catalog() if definitions is None else list(definitions)
    reports: list[Report] = []
    for path in paths:
        reports += reports_of(path, known)
    return Result(tuple(reports))


def reports_of(
    path: str | os.PathLike[str], definitions: Iterable[Definition | GroupDefinition]
) -> Iterator[Report]:
    """A Report for every recording in one file, each when it has run."""
    source = os.fspath(path)
    try:
        for recording in read_many(source):
            yield check_recording(recording, definitions)
    except RecordingError as fault:
        yield Report(source, source, "", "unreadable", str(fault))


def check_recording(
    recording: Recording, definitions: Iterable[Definition | GroupDefinition]
) -> Report:
    """Runs one recording. What it needs and is not here makes it skipped as a whole."""
    told = recording.source, recording.name, recording.title
    missing = missing_needs(recording)
    if missing is not None:
        operation, word = missing
        return Report(*told, "skipped", f"needs {word} (line {operation.line})")
    run = Run(recording, definitions)
    failures: list[Failure] = []
    for operation in recording.operations:
        try:
            failures += [Failure(operation.line, found) for found in _found(run, operation)]
        except RecordingError as fault:
            return Report(*told, "unreadable", str(fault), tuple(failures))
        except Exception as fault:  # whatever it is, the other recordings go on
            failures.append(Failure(operation.line, _broken(operation, fault)))
            break
    return Report(*told, "failed" if failures else "passed", None, tuple(failures))


def _found(run: Run, operation: Operation) -> list[Difference]:
    if is_expectation(operation):
        return differences(run, operation)
    run.do(operation)
    return []


def _broken(operation: Operation, fault: Exception) -> Difference:
    return Difference(operation.name, "no error", f"{type(fault).__name__}: {fault}")
