"""`assembler digest DIR`: reads recorded streams of others and says where readings differ.

What a file is and what is compared in it is plugged in (`assembler.plugins.Operations.digests`).
Here live the walk through the folder, the listing beside the files, and the table. Not here: one
format.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from assembler import plugins
from assembler.cli.inputs import FAILED, OK
from assembler.cli.output import Style, cut, escaped, print_json, say, width_of
from assembler.cli.progress import Progress
from assembler.engine.errors import InputError
from assembler.plugins import Digest, Odd
from assembler.recordings.files import opened
from assembler.recordings.matching import short

__all__ = ["add"]

LISTING = "MANIFEST.tsv"
"""A table of tab-separated values that says, file by file, what stands in them; column `file`."""

Row = Mapping[str, str]
Listing = Mapping[str, list[Row]]


class _Found(Struct, frozen=True):
    file: str
    digest: Digest

    @property
    def differences(self) -> list[Odd]:
        return [odd for odd in self.digest.odd if not odd.kind]

    @property
    def findings(self) -> list[Odd]:
        return [odd for odd in self.digest.odd if odd.kind]


def add(commands: Any) -> None:
    """Adds the parser of this command."""
    parser = commands.add_parser(
        "digest",
        help="read recorded streams of others and compare what was read",
        description="Reads every file below DIR that is a recorded stream, in every way that a "
        f"network may cut it, and compares what comes out: with itself, with a {LISTING} beside "
        "the files or above them, and with what clients sent back. Prints a table by format, each "
        "difference, and how often something was odd. A format that nobody reads yet is counted.",
        epilog="example: assembler digest recorded-streams",
    )
    parser.add_argument("directory", metavar="DIR", help="a folder with recorded streams")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Reads every file; prints differences as they are found and the table at the end."""
    top = Path(arguments.directory)
    files = _files(top)
    listings: dict[Path, Listing] = {}
    found: list[_Found] = []
    with Progress(len(files)) as progress:
        for path in files:
            progress.at(str(path))
            row = _row(path, top, listings)
            found.append(_Found(path.as_posix(), _digested(path, row)))
            progress.clear()
            _tell(found[-1], quiet=arguments.json)
        missing = [_Found(file, digest) for file, digest in _missing(files, listings, top)]
        for each in missing:
            _tell(each, quiet=arguments.json)
    if arguments.json:
        print_json(_report(found, missing))
    else:
        _print_table(found, missing)
    return FAILED if any(each.differences for each in [*found, *missing]) else OK


def _files(top: Path) -> list[Path]:
    if not top.is_dir():
        raise InputError(f"{top}: expected a folder with recorded streams")
    paths = sorted(path for path in top.rglob("[!.]*") if path.is_file() and path.name != LISTING)
    if not paths:
        raise InputError(f"{top}: expected a folder with recorded streams, got an empty one")
    return paths


def _digested(path: Path, row: Row | None) -> Digest:
    with opened(str(path)) as file:
        data = file.read()
    digest = Digest(path.parent.name, is_read=False)
    for read in plugins.operations().digests.values():
        digest = read(path.absolute().as_posix(), data, row)
        if digest.is_read:
            break
    return digest


def _row(path: Path, top: Path, listings: dict[Path, Listing]) -> Row | None:
    """What the nearest listing says of a file; one above `top` counts as well."""
    for folder in path.absolute().parents:
        if folder not in listings:
            listings[folder] = _listing(folder / LISTING)
        if listings[folder] or folder == top.absolute().parent:
            return _of_folder(listings[folder].get(path.name, []), path.parent.name)
    return None


def _of_folder(rows: Sequence[Row], folder: str) -> Row | None:
    """Of several rows for one name, the one that names the file's folder."""
    for row in rows:
        if any(value.split()[-1:] == [folder] for value in row.values() if value):
            return row
    return rows[0] if rows else None


def _listing(path: Path) -> Listing:
    if not path.is_file():
        return {}
    with opened(str(path)) as file:
        lines = file.read().decode("utf-8", "replace").splitlines()
    table = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE, restval="")
    if "file" not in (table.fieldnames or ()):
        raise InputError(f"{path}:1: expected a column `file`")
    rows: dict[str, list[Row]] = {}
    for row in table:
        rows.setdefault(row["file"], []).append(row)
    return rows


def _missing(
    files: Sequence[Path], listings: Mapping[Path, Listing], top: Path
) -> Iterator[tuple[str, Digest]]:
    """What the listings in the folder name and the folder does not have."""
    names = {path.name for path in files}
    for folder, listing in listings.items():
        if folder.is_relative_to(top.absolute()):
            for name in listing:
                if name not in names:
                    odd = Odd("", "file", "one that is there", "listed, and missing")
                    yield name, Digest("missing", odd=(odd,))


def _tell(found: _Found, *, quiet: bool) -> None:
    if quiet:
        return
    differs = Style(sys.stdout)("differs", "bad")
    for odd in found.differences:
        place = f"{found.file}: {odd.where}: " if odd.where else f"{found.file}: "
        values = f"expected {short(odd.expected)}, got {short(odd.got)}"
        say(f"{differs} {escaped(f'{place}{odd.field}: {values}')}")


def _summed(found: Iterable[_Found]) -> dict[str, dict[str, int]]:
    """The table: a row for each format that was read."""
    rows: dict[str, Counter[str]] = {}
    for each in found:
        if each.digest.is_read:
            row = rows.setdefault(each.digest.format, Counter(files=0))
            row.update({"files": 1, **each.digest.counts})
            row.update(findings=len(each.findings), differences=len(each.differences))
    return {name: dict(rows[name]) for name in sorted(rows)}


def _unread(found: Iterable[_Found]) -> dict[str, int]:
    names = Counter(each.digest.format for each in found if not each.digest.is_read)
    return dict(sorted(names.items()))


def _report(found: Sequence[_Found], missing: Sequence[_Found]) -> dict[str, Any]:
    odd = [
        {
            "file": each.file,
            "where": odd.where,
            "field": odd.field,
            "expected": odd.expected,
            "got": odd.got,
            **({"kind": odd.kind} if odd.kind else {}),
        }
        for each in [*found, *missing]
        for odd in each.digest.odd
    ]
    return {
        "formats": _summed(found),
        "not_read_yet": _unread(found),
        "differences": [each for each in odd if "kind" not in each],
        "findings": [each for each in odd if "kind" in each],
        "reasons": plugins.operations().reasons,
    }


def _print_table(found: Sequence[_Found], missing: Sequence[_Found]) -> None:
    rows = _summed(found)
    columns = list(dict.fromkeys(name for row in rows.values() for name in row))
    total = {name: sum(row.get(name, 0) for row in rows.values()) for name in columns}
    names = max(map(len, [*rows, "together"]), default=0)
    style = Style(sys.stdout)
    head = "".join(f"  {name:>{max(7, len(name))}}" for name in columns)
    if rows:
        say(style(f"{'format':<{names}}{head}", "bold"))
    for name, row in [*rows.items(), *([("together", total)] if len(rows) > 1 else [])]:
        cells = (f"  {row.get(column, 0):>{max(7, len(column))}}" for column in columns)
        say(escaped(f"{name:<{names}}{''.join(cells)}"))
    _print_findings(found)
    unread = _unread(found)
    said = ", ".join(f"{name} {many}" for name, many in unread.items())
    if unread:
        say(f"not read yet: {sum(unread.values())} files ({escaped(said)})")
    differences = sum(len(each.differences) for each in [*found, *missing])
    files = sum(row["files"] for row in rows.values())
    say(
        f"{files} file{'s' * (files != 1)} read, {differences} difference{'s' * (differences != 1)}"
    )


def _print_findings(found: Iterable[_Found]) -> None:
    kinds = Counter(odd.kind for each in found for odd in each.findings)
    reasons = plugins.operations().reasons
    if kinds:
        say("findings, each with its reason:")
    for kind, many in kinds.most_common():
        line = f"{many:>5}  {kind}: {reasons.get(kind, 'no reason is known')}"
        say(cut(line, width_of(sys.stdout)))
