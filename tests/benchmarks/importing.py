"""Importing a transcript: over decoding its lines, and nothing else, in turns within one run.

Not here: other transcripts, files and stores of a real size.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from msgspec import json

from assembler.cli.importing_to import One
from assembler.recordings.transcripts import checked
from definitions.importers import IMPORTERS
from tests.benchmarks.measure import Prepare, Row, interleaved

__all__ = ["importing"]

_WORDS = "the file reads a value and gives it back "


def importing(sizes: Any) -> list[Row]:
    """A transcript of Claude Code to a recording in a file."""
    lines = _transcript(sizes.answers)
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "t.jsonl"
        contenders = {
            "floor": _decoded(lines),
            "importer": _imported(lines),
            "command": _written(lines, target),
        }
        times = interleaved(contenders, sizes.rounds)
    label = f"a transcript of {sizes.answers:,} answers, over decoding its lines"
    return [
        times.row("15", f"{label}: the importer alone", "importer", "floor"),
        times.row("15", f"{label}: checked and written", "command", "floor", 5),
    ]


def _transcript(answers: int) -> list[bytes]:
    lines = []
    for number in range(answers):
        base = {"parentUuid": f"u{number}", "isSidechain": False, "cwd": "/work"}
        base |= {"timestamp": f"2025-09-01T00:{number // 60 % 60:02}:{number % 60:02}Z"}
        use = {"type": "tool_use", "id": f"c{number}", "name": "Read", "input": {"path": "/a"}}
        said = {"id": f"m{number}", "role": "assistant", "model": "m", "content": [use]}
        told = _WORDS * (10 + number * 7 % 120)
        result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": told}
        user = {"role": "user", "content": [result]}
        kept = {"toolUseResult": {"stdout": told, "stderr": ""}}
        for kind, message, more in (("assistant", said, {}), ("user", user, kept)):
            record = {**base, "uuid": f"{kind}{number}", "type": kind, "message": message, **more}
            lines.append(json.encode(record) + b"\n")
    return lines


def _decoded(lines: list[bytes]) -> Prepare:
    def run() -> None:
        decode = json.Decoder().decode
        for line in lines:
            decode(line)

    return lambda: run


def _imported(lines: list[bytes]) -> Prepare:
    def run() -> None:
        for _ in IMPORTERS["claude-code"](lines, name="t"):
            pass

    return lambda: run


def _written(lines: list[bytes], target: Path) -> Prepare:
    def run() -> None:
        output = One(str(target))
        output.take("t", checked(IMPORTERS["claude-code"], lines, "t"))
        output.keep()
        output.close()

    return lambda: run
