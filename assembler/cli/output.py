"""Text for a terminal or a pipe: nothing raw, nothing wider than it should be.

Here live escaping, width (East Asian characters take two columns), cutting, colour, and the
writing of JSON. Not here: which rows there are (`rows`), and the live screen (`screen`).
"""

from __future__ import annotations

import os
import re
import sys
import textwrap
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, TextIO

from assembler import codec

__all__ = [
    "Style",
    "clip",
    "cut",
    "escaped",
    "fill",
    "findings_line",
    "one_line",
    "print_json",
    "say",
    "width",
    "width_of",
    "wrapped",
]

FILE_COLUMNS = 160
"""So wide may a line be in a file: people can still read it."""

_FINDINGS_MAX = 8
"""So many are named, the others counted."""
_NARROW_COLUMNS = 60
_WRAPPED_MAX = 5
"""So many lines may a text take that is wrapped."""
_WRAPPED_COLUMNS_MIN = 10

_DANGEROUS = frozenset({"Cc", "Cf", "Zl", "Zp", "Cs", "Co", "Cn"})
# What stands before the last `@` of an address may hold a password, and so may its settings.
_SECRET = re.compile(r"(postgres(?:ql)?://(?=\S*@)|password=)(?:(?<=//)\S*(?=@)|[^\s&']*)")
_SHORT_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\x1b": "\\e"}
# The zero-width joiner holds emoji together and does nothing else.
_HARMLESS = frozenset("\u200d")


def escaped(text: str) -> str:
    """`text` with everything shown that a terminal would obey instead of showing. O(length)."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_escape, text))


def _escape(character: str) -> str:
    if character.isprintable() or character in _HARMLESS:
        return character
    short = _SHORT_ESCAPES.get(character)
    if short is not None:
        return short
    if unicodedata.category(character) not in _DANGEROUS:
        return character
    return character.encode("unicode_escape").decode()


def one_line(text: str) -> str:
    """`text` on one line: each end of a line, with the blanks around it, as `⏎`. O(length)."""
    if "\n" not in text:
        return text
    return " ⏎ ".join(filter(None, map(str.strip, text.split("\n"))))


def width(text: str) -> int:
    """How many columns escaped `text` takes."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.east_asian_width(character) in "WF":
        return 2
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 1


def clip(text: str, columns: int) -> str:
    """The beginning of escaped `text`, at most so many columns wide. O(columns)."""
    taken = 0
    for place, character in enumerate(text):
        taken += _columns(character)
        if taken > columns:
            return text[:place]
    return text


def _clip_left(text: str, columns: int) -> str:
    taken = 0
    for place in range(len(text) - 1, -1, -1):
        taken += _columns(text[place])
        if taken > columns:
            return text[place + 1 :]
    return text


def cut(text: str, columns: int) -> str:
    """`text`, escaped, in at most so many columns: its beginning and its end, where it grows."""
    # So much of either end is enough, however long the text is.
    if len(text) > 4 * columns + 8:
        text = text[: 2 * columns] + "…" + text[-2 * columns - 2 :]
    text = escaped(text)
    if width(text) <= columns:
        return text
    # Where there is little room, what a text is about is said at its beginning.
    head = max(0, columns - 1) // 2 if columns >= _NARROW_COLUMNS else max(0, columns - 1) * 2 // 3
    beginning = clip(text, head)
    ending = _clip_left(text[len(beginning) :], columns - 1 - width(beginning))
    return clip(f"{beginning}…{ending}", columns)


def fill(text: str, columns: int) -> str:
    """`text` cut and filled up with blanks to just so many columns."""
    text = cut(text, columns)
    return text + " " * (columns - width(text))


def wrapped(text: str, columns: int) -> list[str]:
    """`text`, escaped, in a few lines of at most so many columns; its end may be missing."""
    # No more of it is ever seen, however long the text is.
    said = escaped(" ".join(text[: _WRAPPED_MAX * columns + _WRAPPED_MAX].split()))
    room = max(columns, _WRAPPED_COLUMNS_MIN)
    found = textwrap.wrap(said, room, max_lines=_WRAPPED_MAX, placeholder=" …")
    return [cut(line, columns) for line in found]


def findings_line(findings: Iterable[Mapping[str, Any]]) -> str:
    """How many findings (in wire form) hold, and which, escaped; nothing when none does."""
    counts = Counter(f"{finding['kind']} {finding['key']}" for finding in findings)
    if not counts:
        return ""
    number = sum(counts.values())
    named = [f"{said} ({many} times)" if many > 1 else said for said, many in counts.items()]
    if len(named) > _FINDINGS_MAX:
        named[_FINDINGS_MAX:] = [f"and {len(named) - _FINDINGS_MAX} more"]
    return escaped(f"{number} finding{'s' * (number != 1)}: {', '.join(named)}")


class Style:
    """Colour where people see it: on a terminal, and only when `NO_COLOR` does not forbid it."""

    _CODES: Mapping[str, str] = {"bold": "1", "dim": "2", "good": "32", "bad": "31", "busy": "33"}

    def __init__(self, stream: TextIO) -> None:
        plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
        self.on = not plain and stream.isatty()

    def __call__(self, text: str, style: str | None) -> str:
        """`text` in a style, or as it is."""
        if not self.on or not style or not text:
            return text
        return f"\x1b[{self._CODES[style]}m{text}\x1b[0m"


def width_of(stream: TextIO) -> int:
    """How wide a line may be: the terminal's width, or what people can still read in a file."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or FILE_COLUMNS
    except (OSError, ValueError, AttributeError):
        return FILE_COLUMNS


def say(text: str = "") -> None:
    """One line on standard output."""
    sys.stdout.write(text + "\n")


def print_json(value: Any) -> None:
    """`value` as one line of JSON on standard output."""
    say(codec.encode(value).decode())


def complain(text: str) -> None:
    """One line on standard error, with nothing raw in it, and no password of an address."""
    sys.stdout.flush()
    sys.stderr.write(escaped(_SECRET.sub(r"\1***", text.rstrip("\n"))) + "\n")
