"""`assembler import [NAME] PATH…`: recordings, or conversations of a store, out of transcripts.

The formats are plugged in (`assembler.importers`) and told by the content. Not here: one of them,
what is made of a file (`recordings.transcripts`), and where it goes (`importing_to`).
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from assembler import plugins
from assembler.cli.databases import add_schema
from assembler.cli.importing_to import (
    Folder,
    One,
    Output,
    Told,
    into_store,
    is_recording,
    recorded,
)
from assembler.cli.inputs import BAD_INPUT, OK
from assembler.cli.output import complain, escaped, say
from assembler.cli.progress import Progress
from assembler.engine.errors import AssemblerError, InputError
from assembler.recordings.files import STDIN, named, opened
from assembler.recordings.transcripts import checked, importer_for, sample_of, seekable

__all__ = ["add"]

_LEFT_OUT_MAX = 5
"""So many files that are no transcripts are named, the others counted."""


def add(commands: Any) -> None:
    """Adds the parser of this command."""
    known = plugins.names("importers")
    parser = commands.add_parser(
        "import",
        help="make recordings out of transcripts, or put them into a store",
        description="Makes a recording out of a transcript or stream of another program, or puts "
        "it into a store as a conversation. NAME says which format it has; left out, its content "
        "says so. A folder is imported with all that is in it, again and again: what was imported "
        f"before is there once. Formats: {', '.join(known) or 'none is installed'}.",
        epilog="example: assembler import ~/sessions --store chat.db && assembler serve chat.db",
    )
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="[NAME] PATH",
        help="the name of a format, then transcripts and folders of them; - is standard input",
    )
    to = parser.add_mutually_exclusive_group()
    to.add_argument(
        "-o",
        "--output",
        metavar="PATH",
        help="the file to write, whole or not at all; of several transcripts, the folder "
        "(default: standard output)",
    )
    to.add_argument(
        "--store",
        metavar="STORE",
        help="the store to put conversations into: a SQLite file, or postgresql://…; "
        "what is not finished in a transcript yet goes there with the next import",
    )
    add_schema(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Imports one file or many; those that cannot be read are named, the others imported."""
    name, paths = _named(arguments.paths)
    files = list(_files(paths))
    several = len(files) != 1 or any(Path(path).is_dir() for path in paths if path != STDIN)
    with contextlib.closing(_output(arguments, several)) as output:
        return _Importing(name, output, several).run(files)


def _output(arguments: argparse.Namespace, several: bool) -> Output:
    if arguments.store is not None:
        return into_store(arguments.store, arguments.schema)
    return Folder(_folder(arguments.output)) if several else One(arguments.output)


def _named(paths: list[str]) -> tuple[str | None, list[str]]:
    """The format that was named, if one was, and the rest."""
    if len(paths) == 1:
        return None, paths
    first, *others = paths
    if first == STDIN or Path(first).exists():
        return None, paths
    plugins.importer(first, said="NAME")
    return first, others


def _folder(path: str | None) -> Path:
    if path is None:
        raise InputError("import: expected -o FOLDER or --store STORE for several transcripts")
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{path}: output: expected a folder for several transcripts, got a file")
    return folder


def _files(paths: list[str]) -> Iterator[tuple[str, str]]:
    """Each file, and what to call what is in it: its path in its folder, without `.jsonl`."""
    for path in paths:
        if path != STDIN and Path(path).is_dir():
            for found in sorted(Path(path).rglob("*")):
                inside = found.relative_to(path)
                if found.is_file() and not any(part.startswith(".") for part in inside.parts):
                    yield str(found), inside.as_posix().removesuffix(".jsonl")
        else:
            yield path, "stdin" if path == STDIN else Path(path).name.removesuffix(".jsonl")


class _Importing:
    """Imports file by file, and says at the end what became of them."""

    def __init__(self, name: str | None, output: Output, several: bool) -> None:
        self._name = name
        self._output = output
        self._several = several
        self._told: list[Told] = []
        self._left_out: list[str] = []
        self._paths: dict[str, str] = {}
        """The transcripts so far, by what they are called: each goes where nothing else goes."""
        self._faults = 0

    def run(self, files: list[tuple[str, str]]) -> int:
        sizes = [_size(path) for path, _ in files]
        with Progress(sum(sizes)) as progress:
            for (path, title), size in zip(files, sizes, strict=True):
                self._one(path, title, progress)
                progress.passed(size)
        self._say()
        return BAD_INPUT if self._faults else OK

    def _one(self, path: str, title: str, progress: Progress) -> None:
        try:
            told = self._taken(path, title, progress)
            if told is not None:
                self._output.keep()
                self._told.append(told)
        except AssemblerError as fault:
            if not self._several:
                raise
            progress.clear()
            complain(str(fault))
            self._faults += 1

    def _taken(self, path: str, title: str, progress: Progress) -> Told | None:
        with opened(path) as opened_file, seekable(opened_file) as file:
            sample = sample_of(file)
            name = self._name or importer_for(sample)
            file.seek(0)
            lines = progress.reading(path, file)
            if name is None and self._output.takes_finished and is_recording(sample):
                return self._output.take(*recorded(lines, named(path), title))
            if name is None:
                self._leave_out(path)
                return None
            self._call(path, title)
            finished = self._output.takes_finished
            importer = plugins.importer(name, said="NAME")
            made = checked(importer, lines, named(path), finished=finished)
            return self._output.take(title, made)

    def _call(self, path: str, title: str) -> None:
        other = self._paths.setdefault(title, path)
        if other != path and Path(other).resolve() != Path(path).resolve():
            raise InputError(
                f"{named(path)}: name: expected another than that of {named(other)}, "
                f"got {title!r}; rename one, or import a folder that both are in"
            )

    def _leave_out(self, path: str) -> None:
        if not self._several:
            known = ", ".join(plugins.names("importers"))
            raise InputError(f"{named(path)}: expected a transcript of one of {known}")
        self._left_out.append(path)

    def _say(self) -> None:
        if self._left_out:
            shown = ", ".join(self._left_out[:_LEFT_OUT_MAX])
            more = len(self._left_out) - _LEFT_OUT_MAX
            complain(f"left out, no transcript: {shown}{f' and {more} more' if more > 0 else ''}")
        said = self._output.said(self._told)
        if said and self._output.is_quiet:
            complain(said)
        elif said:
            say(escaped(said))


def _size(path: str) -> int:
    try:
        return 0 if path == STDIN else Path(path).stat().st_size
    except OSError:
        return 0
