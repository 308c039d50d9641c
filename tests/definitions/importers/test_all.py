"""What every importer keeps: it alone knows its files, a cut file says the beginning of the same,
and every way of arriving shows the same.

The files are those of the folder of `--shared`: of each format the smallest and the largest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assembler import codec, plugins
from assembler.plugins import Sample
from assembler.recordings import Recording, Run
from assembler.recordings.arriving import disagreement
from assembler.recordings.format import read_lines
from assembler.recordings.transcripts import sample_of
from definitions.importers import IMPORTERS

Json = dict[str, Any]

_SMALLEST, _LARGEST = 4, 1
_BYTES_MAX = 1_000_000
_CUTS_MAX = 40
_DOCUMENTS = frozenset({"model-stream"})
"""Formats whose file is one thing; it cannot be cut anywhere."""


def streams(shared: Path) -> Iterator[tuple[Path, Sample]]:
    for path in sorted((shared / "streams").rglob("*")):
        if path.is_file() and path.parent != shared / "streams":
            with path.open("rb") as file:
                yield path, sample_of(file)


def known(sample: Sample) -> list[str]:
    return [name for name, importer in IMPORTERS.items() if importer.recognises(sample)]


def chosen(shared: Path) -> Iterator[tuple[str, Path]]:
    """Of each format the smallest files and the largest."""
    files: dict[str, list[Path]] = defaultdict(list)
    for path, sample in streams(shared):
        for name in known(sample):
            files[name].append(path)
    for name, paths in files.items():
        by_size = sorted(paths, key=lambda path: (path.stat().st_size, path.name))
        picked = dict.fromkeys([*by_size[:_SMALLEST], *by_size[-_LARGEST:]])
        yield from ((name, path) for path in picked if path.stat().st_size < _BYTES_MAX)


def lines_of(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def imported(name: str, lines: list[bytes]) -> dict[str | None, list[Json]]:
    """Give the operations of each conversation of a file, without what only its end brings out."""
    found: dict[str | None, list[Json]] = {None: []}
    for operation in IMPORTERS[name](lines, name="file"):
        fields = dict(operation)
        found.setdefault(fields.pop("conversation", None), []).append(fields)
    return found


def recordings(name: str, lines: list[bytes]) -> Iterator[Recording]:
    for conversation, operations in imported(name, lines).items():
        said = [codec.encode(_plain(each)) + b"\n" for each in operations]
        yield from read_lines(said, conversation or "main")


def _plain(operation: Json) -> Json:
    return {key: value for key, value in operation.items() if key != "tail"}


def test_the_table_and_the_entry_points_are_the_same() -> None:
    assert plugins.names("importers") == sorted(IMPORTERS)
    for name, importer in IMPORTERS.items():
        assert plugins.importer(name) == importer
        assert importer.about


@pytest.mark.parametrize("values", [(), (1,), ("x",), ({},), ([],), ({"type": "x"},), (None, {})])
def test_what_nobody_wrote_is_nobody_s(values: Any) -> None:
    assert known(Sample(values)) == []


def test_one_importer_alone_knows_a_file(shared: Path) -> None:
    several = {path.name: known(sample) for path, sample in streams(shared)}
    assert {name: found for name, found in several.items() if len(found) > 1} == {}


def test_every_way_of_arriving_shows_the_same(shared: Path) -> None:
    definitions = plugins.catalog()
    for name, path in chosen(shared):
        for recording in recordings(name, lines_of(path)):
            run = Run(recording, definitions)
            for operation in recording.operations:
                run.do(operation)
            run.give_up()
            found = disagreement(run.assembler, run.facts(), definitions, run.views)
            assert found is None, (path.name, recording.source, found)


def test_a_cut_transcript_says_the_beginning_of_the_whole_one(shared: Path) -> None:
    """So a second import of a file that has grown adds what is new, and nothing else."""
    for name, path in chosen(shared):
        lines = lines_of(path)
        if name in _DOCUMENTS or not is_of_lines(lines):
            continue
        whole = imported(name, lines)
        for at in range(1, len(lines), max(1, len(lines) // _CUTS_MAX)):
            for conversation, operations in imported(name, lines[:at]).items():
                said = [each for each in operations if not each.get("tail") and lives(each)]
                stays = [each for each in whole[conversation] if lives(each)]
                assert said == stays[: len(said)], (path.name, at, conversation)


def is_of_lines(lines: list[bytes]) -> bool:
    return len(lines) > 1 and all(line.lstrip()[:1] == b"{" for line in lines if line.strip())


def lives(operation: Json) -> bool:
    """Whether an operation stays when the file goes on."""
    return operation.get("op") not in ("liveness", "settle")
