"""What a stream of events holds, however it was saved: an event stream, lines of JSON, a document.

Not here: what an event says. (The framing of answers is `definitions.providers.framing`: it repairs
what it can; here, what cannot be read is a fault of the file.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from definitions.importers.errors import ImportFault
from definitions.importers.halves import mended
from definitions.importers.reading import document, strict_json, values
from definitions.providers.reading import mapping

__all__ = ["frames", "known"]

_BOM = b"\xef\xbb\xbf"
_LAST_WORD = "[DONE]"
_LOOKED_AT = 20
"""So many values of a file say what it is."""


def frames(lines: Iterable[bytes | str], name: str, *fragments: str) -> Iterator[tuple[int, Any]]:
    """Give each value with its line; of a document that is a list, its items. Holds the file.

    What was not written to its end at the end of a file of lines or events is left out. The texts
    of the fields `fragments` stay as they came: half a character may have its other half in the
    next one.
    """
    mend = partial(_mended, frozenset(fragments))
    told = [_bytes(line) for line in lines]
    if told:
        told[0] = told[0].removeprefix(_BOM)
    begins = next((line.lstrip() for line in told if line.strip()), b"")
    if begins[:1] == b"[" or (begins[:1] == b"{" and not _is_whole(begins)):
        whole = document(told, name, mend)
        yield from ((1, each) for each in (whole if isinstance(whole, list) else [whole]))
    elif begins[:1] == b"{":
        yield from values(told, name, mend)
    else:
        yield from _events(told, name, mend)


def known(
    found: Iterable[tuple[int, Any]], is_known: Callable[[Mapping[str, Any]], bool]
) -> tuple[list[tuple[int, Any]], int]:
    """Give what was found, and the line of the first value when none of the first is known; else
    0. One that is odd does not make the others so."""
    values = list(found)
    looked_at = [mapping(value) for _, value in values[:_LOOKED_AT]]
    is_other = bool(values) and not any(map(is_known, looked_at))
    return values, values[0][0] if is_other else 0


def _bytes(line: bytes | str) -> bytes:
    return line.encode("utf-8", "surrogatepass") if isinstance(line, str) else line


def _mended(fragments: frozenset[str], value: Any) -> Any:
    """Join half characters, except in the texts of those fields."""
    if isinstance(value, list):
        return [_mended(fragments, each) for each in value]
    if not isinstance(value, dict):
        return mended(value)
    return {
        mended(key): each if key in fragments and isinstance(each, str) else mended(each)
        for key, each in value.items()
    }


def _is_whole(line: bytes) -> bool:
    try:
        strict_json(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return False
    return True


def _events(
    lines: Iterable[bytes], name: str, mend: Callable[[Any], Any]
) -> Iterator[tuple[int, Any]]:
    """Read an event stream: the data of an event may stand on several lines."""
    data: list[str] = []
    began = 0
    for number, line in enumerate(lines, 1):
        said = line.decode("utf-8", "replace").rstrip("\r\n")
        if not said:
            yield from _value("\n".join(data), name, began, mend)
            data = []
        elif said.startswith("data:"):
            began = began if data else number
            data.append(said.removeprefix("data:").removeprefix(" "))
        elif ":" not in said:
            raise ImportFault(name, number, "line", "JSON, or a line of an event stream")
    try:
        yield from _value("\n".join(data), name, began, mend)
    except ImportFault:
        return


def _value(
    data: str, name: str, number: int, mend: Callable[[Any], Any]
) -> Iterator[tuple[int, Any]]:
    if not data.strip() or data.strip() == _LAST_WORD:
        return
    try:
        yield number, mend(strict_json(data))
    except (ValueError, RecursionError):
        raise ImportFault(name, number, "data", "a JSON value") from None
