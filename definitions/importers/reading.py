"""Lines of JSON, read so that a fault names its file, line and field.

Here lives what every importer of such a file needs, whatever the lines mean. Not here: the words
of any format, and mending half characters (`halves`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import msgspec
from attrs import frozen

from definitions.importers.errors import ImportFault
from definitions.importers.halves import may_hold_halves, mended

__all__ = [
    "Data",
    "Fields",
    "Line",
    "document",
    "read",
    "sequence",
    "several",
    "strict_json",
    "values",
    "written",
]

Data: TypeAlias = dict[str, Any]

_NOT_BLANK = re.compile(r"\S")
_BOM = b"\xef\xbb\xbf"
_decode = msgspec.json.Decoder().decode
_INTEGER_MAX = 2**53 - 1
_TEXT = "a text that is not empty"
_OBJECT = "a JSON object"
_CUT = "a JSON object; the text ends inside of one"


@frozen
class Fields:
    """An object of a file, and where it stands; what it lacks is a fault at that place."""

    values: Data
    path: str
    file: str
    line: int

    def fault(self, key: str, expected: str) -> ImportFault:
        got = self.values.get(key, ...)
        return ImportFault(self.file, self.line, f"{self.path}{key}", expected, got)

    def integer(self, key: str) -> int:
        value = self.values.get(key)
        if type(value) is not int:
            raise self.fault(key, "an integer")
        if abs(value) > _INTEGER_MAX:
            raise self.fault(key, "an integer below 2**53")
        return value

    def text(self, key: str) -> str:
        value = self.values.get(key)
        if not isinstance(value, str) or not value:
            raise self.fault(key, _TEXT)
        return value

    def fragment(self, key: str) -> str:
        value = self.values.get(key)
        if not isinstance(value, str):
            raise self.fault(key, "a text")
        return value

    def inner(self, key: str) -> Fields:
        value = self.values.get(key)
        if not isinstance(value, dict):
            raise self.fault(key, _OBJECT)
        return Fields(value, f"{self.path}{key}.", self.file, self.line)

    def each(self, key: str) -> list[Fields]:
        value = self.values.get(key)
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.fault(key, "a list of JSON objects")
        return [
            Fields(item, f"{self.path}{key}.{at}.", self.file, self.line)
            for at, item in enumerate(value)
        ]

    def texts(self, key: str) -> list[str]:
        value = self.values.get(key)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.fault(key, "a list of texts")
        return value

    def integers(self, key: str) -> list[int]:
        value = self.values.get(key, [])
        if not isinstance(value, list) or not all(type(item) is int for item in value):
            raise self.fault(key, "a list of integers")
        return value

    def rest(self, *taken: str) -> Data:
        """Whatever has no counterpart; it keeps its name."""
        return {key: value for key, value in self.values.items() if key not in taken}


class Line(NamedTuple):
    """One line that is not blank: its object, and its text as it was written."""

    fields: Fields
    text: str


def read(lines: Iterable[bytes | str], name: str) -> Iterator[Line]:
    """Read a file that is called `name`, one object a line; blank lines say nothing."""
    for number, line in enumerate(lines, 1):
        text = _decoded(line, name, number)
        if text:
            yield Line(_parsed(text, name, number), text)


def values(
    lines: Iterable[bytes | str], name: str, mend: Callable[[Any], Any] = mended
) -> Iterator[tuple[int, Any]]:
    """Read a file one JSON value a line, each with its line, whatever the value is.

    A last line that was not written to its end (it has no line break, and is no JSON) is left out:
    whoever wrote it is still writing. `mend` joins half characters. O(size).
    """
    rest = iter(lines)
    for number, line in enumerate(rest, 1):
        data = line.encode("utf-8", "surrogatepass") if isinstance(line, str) else line
        if number == 1:
            data = data.removeprefix(_BOM)
        if not data or data.isspace():
            continue
        try:
            yield number, _decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            text = _decoded(line, name, number)
            try:
                value = mend(strict_json(text))
            except (ValueError, RecursionError) as fault:
                if not data.endswith(b"\n") and number > 1 and next(rest, None) is None:
                    return
                raise _no_json(text, name, number, fault) from None
            yield number, value


def written(lines: Iterable[bytes | str]) -> Iterator[bytes | str]:
    """Leave out a last line that was not written to its end: it has no line break, and no JSON."""
    waiting: bytes | str | None = None
    for number, line in enumerate(lines, 1):
        if waiting is not None:
            yield waiting
        waiting = None if number == 1 or _may_be_whole(line) else line
        if waiting is None:
            yield line


def _may_be_whole(line: bytes | str) -> bool:
    """Whether nothing is missing at its end."""
    data = line.encode("utf-8", "surrogatepass") if isinstance(line, str) else line
    if data.endswith(b"\n") or not data.strip():
        return True
    try:
        strict_json(data.decode())
    except (ValueError, RecursionError):
        return False
    return True


def several(lines: Iterable[bytes | str], name: str) -> Iterator[tuple[int, Any]]:
    """Read as `values` does, and where a writer glued values together on one line, each of them."""
    for number, line in enumerate(lines, 1):
        data = line.encode("utf-8", "surrogatepass") if isinstance(line, str) else line
        try:
            found = list(values([data], name))
        except ImportFault:
            glued = _glued(data)
            if glued is None:
                if number > 1 and not data.endswith(b"\n"):
                    return
                raise ImportFault(name, number, "line", "a JSON value") from None
            found = [(number, value) for value in glued]
        for _, value in found:
            yield number, value


def _glued(data: bytes) -> list[Any] | None:
    text, at, found = data.decode("utf-8", "replace").strip(), 0, list[Any]()
    decoder = json.JSONDecoder(parse_constant=_no_constant)
    while at < len(text):
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return found if found and not data.endswith(b"\n") else None
        found.append(mended(value))
    return found


def sequence(lines: Iterable[bytes | str], name: str) -> Iterator[tuple[int, Any]]:
    """Read JSON values one behind another, however they are broken into lines, each with the line
    it begins on. One value a line is read as `several` does; anything else holds the file."""
    source = iter(lines)
    held: list[bytes | str] = []
    for line in source:
        held.append(line)
        if line.strip():
            break
    if not held or _is_whole(held[-1]):
        yield from several(chain(held, source), name)
        return
    data = b"".join(line.encode() if isinstance(line, str) else line for line in (*held, *source))
    yield from _scattered(_decoded(data, name, 1), name)


def _scattered(text: str, name: str) -> Iterator[tuple[int, Any]]:
    """Read values wherever they begin and end; the last is left out when it was cut."""
    decoder, at, number = json.JSONDecoder(parse_constant=_no_constant), 0, 1
    while (begins := _NOT_BLANK.search(text, at)) is not None:
        number += text.count("\n", at, begins.start())
        try:
            value, end = decoder.raw_decode(text, begins.start())
        except (ValueError, RecursionError) as fault:
            if at and _is_cut(text, fault):
                return
            raise _no_json(text, name, 1, fault) from None
        yield number, mended(value)
        number += text.count("\n", begins.start(), end)
        at = end


def _is_cut(text: str, fault: Exception) -> bool:
    """Whether a text ends inside of a value."""
    if not isinstance(fault, json.JSONDecodeError):
        return False
    return fault.pos >= len(text) or fault.msg.startswith("Unterminated")


def _is_whole(line: bytes | str) -> bool:
    data = line.encode("utf-8", "surrogatepass") if isinstance(line, str) else line
    try:
        strict_json(data.removeprefix(_BOM).decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return False
    return True


def document(lines: Iterable[bytes | str], name: str, mend: Callable[[Any], Any] = mended) -> Any:
    """Read a file that is one JSON value."""
    data = b"".join(line.encode() if isinstance(line, str) else line for line in lines)
    text = _decoded(data, name, 1)
    try:
        return mend(strict_json(text)) if may_hold_halves(text) else strict_json(text)
    except (ValueError, RecursionError) as fault:
        raise _no_json(text, name, 1, fault) from None


def _no_json(text: str, name: str, number: int, fault: Exception) -> ImportFault:
    expected = "a JSON value"
    if isinstance(fault, json.JSONDecodeError):
        cut = _is_cut(text, fault)
        line = number + text.count("\n", 0, fault.pos)
        where = f" ({fault.msg} at column {fault.colno})"
        expected += "; the text ends inside of one" if cut else where
        return ImportFault(name, line, "line", expected)
    return ImportFault(name, number, "line", expected)


def strict_json(text: str) -> Any:
    """Read JSON as it is defined; anything else is a ValueError or a RecursionError."""
    return json.loads(text, parse_constant=_no_constant)


def _no_constant(word: str) -> None:
    """Refuse NaN and Infinity: Python reads them, JSON does not know them."""
    raise ValueError(word)


def _decoded(line: bytes | str, name: str, number: int) -> str:
    if isinstance(line, bytes):
        try:
            line = line.decode()
        except UnicodeDecodeError:
            raise ImportFault(name, number, "line", "UTF-8") from None
    return line.removeprefix("\ufeff").strip()


def _parsed(text: str, name: str, number: int) -> Fields:
    try:
        value = strict_json(text)
    except json.JSONDecodeError as fault:
        cut = _is_cut(text, fault)
        expected = _CUT if cut else f"{_OBJECT} ({fault.msg} at column {fault.pos + 1})"
        raise ImportFault(name, number, "line", expected) from None
    except (ValueError, RecursionError):
        raise ImportFault(name, number, "line", _OBJECT) from None
    if not isinstance(value, dict):
        raise ImportFault(name, number, "line", _OBJECT, value)
    return Fields(value, "", name, number)
