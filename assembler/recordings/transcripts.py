"""Files of other programs, told by their content and read as recordings.

Here live how the beginning of a file becomes a `Sample`, which importer knows it, and what it
makes, checked line by line. Not here: any format (they are plugged in), and where the result goes
(`cli.importing`).
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any, BinaryIO

from assembler import plugins
from assembler.engine.errors import InputError
from assembler.plugins import Importer, Sample
from assembler.recordings.files import named, opened
from assembler.recordings.format import (
    Fields,
    Recording,
    check_header,
    check_operation,
    encoded,
    frozen,
    is_sound_append,
    read_lines,
)

__all__ = ["checked", "importer_for", "read_any", "sample_of", "seekable"]

_NOT_BLANK = re.compile(r"\S")
_LINES_MAX = 40
"""So many lines of a file say what it is."""
_VALUES_MAX = 20
_LINE_BYTES_MAX = 32 << 20
_STREAM_WORDS = ("event:", "id:", "retry:", ":")
"""What begins the lines of an event stream that carry no data."""


def read_any(path: str | os.PathLike[str]) -> Iterator[Recording]:
    """The recordings of a file; of a transcript, those that its importer makes, the main one first.

    `RecordingError` or `InputError` is one line that says what is wrong. What is no transcript that
    an importer knows is read as a recording, and refused as one. Holds the whole file.
    """
    source = os.fspath(path)
    with opened(source) as opened_file, seekable(opened_file) as file:
        found = importer_for(sample_of(file))
        file.seek(0)
        if found is None:
            yield from read_lines(file, named(source))
            return
        yield from _recordings(checked(plugins.importer(found), file, named(source)), source)


def _recordings(made: Iterable[tuple[str | None, Fields]], source: str) -> Iterator[Recording]:
    lines: dict[str | None, list[bytes]] = {None: []}
    for conversation, fields in made:
        lines.setdefault(conversation, []).append(encoded(fields))
    for conversation, told in lines.items():
        name = named(source) if conversation is None else f"{named(source)} ({conversation})"
        yield from read_lines(told, name)


@contextlib.contextmanager
def seekable(file: BinaryIO) -> Iterator[BinaryIO]:
    """The same file, or all of it in memory where it cannot be read twice (a pipe)."""
    yield file if file.seekable() else io.BytesIO(file.read())


def importer_for(sample: Sample) -> str | None:
    """The name of the importer that knows such a file; None for a recording or what nobody knows.

    Each says so by itself; when several do, the first by name.
    """
    if any("recording" in record for record in sample.records[:1]):
        return None
    for name in plugins.names("importers"):
        if plugins.importer(name).recognises(sample):
            return name
    return None


def sample_of(file: BinaryIO) -> Sample:
    """What stands at the beginning of a file; of one that is one document, all of it.

    Reads some lines of JSON or of an event stream, or, when the first value does not end on its
    line, the whole file. Never raises for what is in it.
    """
    lines = list(islice(iter(lambda: file.readline(_LINE_BYTES_MAX), b""), _LINES_MAX))
    values = list(islice(_values_of_lines(lines), _VALUES_MAX))
    if values:
        return Sample(tuple(values))
    text = b"".join(chain(lines, file)).decode("utf-8", "replace").removeprefix("\ufeff")
    return Sample(tuple(islice(_values_of_text(text), _VALUES_MAX)))


def _values_of_lines(lines: Iterable[bytes]) -> Iterator[Any]:
    """The values that stand one a line; none as soon as one goes on over the end of its line."""
    for line in lines:
        text = line.decode("utf-8", "replace").removeprefix("\ufeff").strip()
        if not text or text.startswith(_STREAM_WORDS):
            continue
        try:
            yield json.loads(text.removeprefix("data:"))
        except (ValueError, RecursionError):
            if not text.startswith("data:"):
                return


def _values_of_text(text: str) -> Iterator[Any]:
    """The values that stand one behind another, however they are broken into lines."""
    decoder, at = json.JSONDecoder(), 0
    while (begins := _NOT_BLANK.search(text, at)) is not None:
        try:
            value, at = decoder.raw_decode(text, begins.start())
        except (ValueError, RecursionError):
            return
        yield value


def checked(
    importer: Importer | Callable[..., Iterable[Mapping[str, Any]]],
    lines: Iterable[bytes],
    name: str,
    *,
    finished: bool = False,
) -> Iterator[tuple[str | None, Fields]]:
    """What an importer makes of a file that errors call `name`, as everybody else will read it.

    Gives each line of a recording with the conversation beside the main one that it belongs to
    (None: the main one), with `finished` without what a longer file will say otherwise. A fault of
    the file is an `InputError`, and so is a line that is none: it is never written.
    """
    plugged = plugins.operations()
    place = f"{name} (imported)"
    try:
        for number, operation in enumerate(importer(lines, name=name), 1):
            fields = dict(operation)
            conversation = fields.pop("conversation", None)
            if fields.pop("tail", None) == "unfinished" and finished:
                continue
            if is_sound_append(fields):
                yield conversation, fields
                continue
            line = frozen(fields)
            if "recording" in line:
                check_header(line, (place, number))
            else:
                check_operation(line, plugged, (place, number))
            yield conversation, line
    except InputError:
        raise
    except ValueError as fault:
        raise InputError(str(fault)) from None
