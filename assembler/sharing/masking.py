"""Made-up words of the same shape: every letter and digit replaced, all that stands between kept.

What a character becomes depends on the key and on all that stands before it in its line. So equal
beginnings of lines stay equal and different ones stay different: copies of a text agree however
they are cut, and what was changed in a file is still the same few lines. Nothing else is alike: one
word in two places becomes two words, so that counting words tells nothing. Not here: which texts
are replaced (`anonymizing`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import cache
from hashlib import blake2b
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Any

__all__ = ["Masking"]

_TABLES = 256
_LINES_MAX = 4_096
"""So many lines are remembered; many stand in a text again and again."""
_LINE_MAX = 200
_BLOCKS = (0x100, 0x1000)
"""Among so many neighbours another character of the same kind is looked for."""
_DIGITS_SAFE = 15

_LINE = re.compile(r"[^\n]*\n?")
_TOKEN = re.compile(
    r"""
    (?P<string>"(?P<body>(?:[^"\\]|\\[\s\S])*)\\?"?)
    | (?P<number>-?\d[\d.]*(?:[eE][+-]?\d*)?)
    | (?P<literal>\b(?:true|false|null)\b)
    | (?P<other>[^"\d-]+?(?=["\d-]|\b(?:true|false|null)\b|$)|-)
    """,
    re.VERBOSE,
)
_IS_KEY = re.compile(r"\s*:")
_ESCAPED = re.compile(
    r"(?P<pair>\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|(?P<unicode>\\u[0-9a-fA-F]{4})|(?P<short>\\[\s\S])|(?P<plain>[^\\]+)|(?P<end>\\)"
)
_SHORT = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}

IsKept = Callable[[str, str | None], bool]
"""Whether a text of JSON stays as it is: it, and the key it stands under (None: it is a key)."""


class Masking:
    """Replaces texts and numbers by others of the same shape, by a key. The same each time.

    Costs about a microsecond for each letter that was not seen in the same place before.
    """

    def __init__(self, key: bytes) -> None:
        self._key = blake2b(key, digest_size=32).digest()
        self._lower = self._tables(ascii_lowercase)
        self._upper = self._tables(ascii_uppercase)
        self._digit = self._tables(digits)
        self._lines: dict[str, str] = {}

    def _tables(self, letters: str) -> list[dict[str, str]]:
        """Ways to replace each of `letters` by another one, none by itself."""
        found = []
        for number in range(_TABLES):
            ring = sorted(letters, key=lambda each: self._digest(f"{number} {each}"))
            found.append(dict(zip(ring, ring[1:] + ring[:1], strict=True)))
        return found

    def _digest(self, text: str) -> bytes:
        return blake2b(text.encode(), key=self._key, digest_size=8).digest()

    # -- texts ---------------------------------------------------------------------------

    def text(self, value: str) -> str:
        """Another text with as many characters, with the same blanks and punctuation."""
        return "".join(map(self._line, _LINE.findall(value)))

    def _line(self, line: str) -> str:
        found = self._lines.get(line)
        if found is None:
            found = _Line(self).feed(line)
            if len(line) <= _LINE_MAX:
                if len(self._lines) >= _LINES_MAX:
                    self._lines.clear()
                self._lines[line] = found
        return found

    def replaced(self, letter: str, number: int) -> str:
        """Another character of the same kind; one that is no letter, digit or picture stays."""
        if "a" <= letter <= "z":
            return self._lower[number % _TABLES][letter]
        if "A" <= letter <= "Z":
            return self._upper[number % _TABLES][letter]
        if "0" <= letter <= "9":
            return self._digit[number % _TABLES][letter]
        if letter < "\x80":
            return letter
        kin, at = _kin(letter)
        return kin[(at + 1 + number % (len(kin) - 1)) % len(kin)] if len(kin) > 1 else letter

    def begun(self) -> Any:
        """What is known at the beginning of a line: nothing but the key."""
        return blake2b(key=self._key, digest_size=4)

    def line(self) -> _Line:
        """A line that is replaced piece by piece."""
        return _Line(self)

    # -- numbers -------------------------------------------------------------------------

    def number(self, value: float) -> int | float:
        """Another number with as many digits; nothing stays nothing."""
        said = self.number_text(repr(value))
        return int(said) if isinstance(value, int) else float(said)

    def number_text(self, said: str) -> str:
        """The same of a number as JSON spells it; its exponent stays."""
        mantissa, mark, exponent = _split(said)
        body = mantissa.removeprefix("-")
        line, found = self.line(), []
        for at, digit in enumerate(body):
            new = line.feed(digit)
            # A number does not begin with nothing, and one that is nothing stays so.
            if digit == "0" and not any(each in "123456789" for each in body[: at + 1]):
                new = "0"
            elif at == 0 and new == "0":
                new = "1" if digit != "1" else "2"
            found.append(new)
        whole = "".join(found)
        if len(whole.partition(".")[0]) > _DIGITS_SAFE:
            whole = "10" + whole[2:]  # not above what a number may be
        return f"{mantissa[: len(mantissa) - len(body)]}{whole}{mark}{exponent}"

    # -- JSON ----------------------------------------------------------------------------

    def json_text(self, value: str, is_kept: IsKept) -> str:
        """A text that is JSON, or its beginning: what is in its strings and numbers is replaced.

        What is no JSON at all is a text. Texts have the same meaning as with `text`, however they
        are spelled.
        """
        pieces, key, at = [], None, 0
        for token in _TOKEN.finditer(value):
            if token.start() != at:
                pieces.append(self.text(value[at : token.start()]))
            at = token.end()
            said = token[0]
            if token["string"] is not None:
                is_key = _IS_KEY.match(value, at) is not None
                pieces.append(self._string(said, is_kept, None if is_key else key or ""))
                key = token["body"] if is_key else key
            elif token["number"] is not None:
                pieces.append(self.number_text(said))
            else:
                pieces.append(said if token["literal"] is not None else self.text(said))
        return "".join([*pieces, self.text(value[at:])])

    def _string(self, said: str, is_kept: IsKept, key: str | None) -> str:
        if len(said) > 1 and said[-1] == '"' and is_kept(said[1:-1], key):
            return said
        is_closed = len(said) > 1 and said[-1] == '"'
        body = said[1:-1] if is_closed else said[1:]
        line = self.line()
        new = "".join([_escaped(each, line) for each in _ESCAPED.finditer(body)])
        return f'"{new}"' if is_closed else f'"{new}'


def _escaped(each: re.Match[str], line: _Line) -> str:
    said = each[0]
    if each["plain"] is not None:
        return line.feed(said)
    if each["short"] is not None:
        line.feed(_SHORT.get(said[1], said[1]))  # it is no letter, but what follows depends on it
        return said
    if each["end"] is not None:
        return said
    units = bytes.fromhex("".join(said.split("\\u")))
    letter = units.decode("utf-16-be", "surrogatepass")
    new = line.feed(letter).encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{new[at : at + 4]}" for at in range(0, len(new), 4))


def _split(said: str) -> tuple[str, str, str]:
    for mark in "eE":
        if mark in said:
            return said.partition(mark)
    return said, "", ""


class _Line:
    """One line on its way; a line break begins the next one."""

    __slots__ = ("_masking", "_seen")

    def __init__(self, masking: Masking) -> None:
        self._masking = masking
        self._seen = masking.begun()

    def feed(self, text: str) -> str:
        found = []
        for letter in text:
            if letter == "\n":
                self._seen = self._masking.begun()
                found.append(letter)
                continue
            number = int.from_bytes(self._seen.digest(), "big")
            found.append(self._masking.replaced(letter, number))
            self._seen.update(letter.encode("utf-8", "surrogatepass"))
        return "".join(found)


@cache
def _kin(letter: str) -> tuple[str, int]:
    """The characters like this one in its neighbourhood, and which of them it is."""
    kind = unicodedata.category(letter)
    if not (kind[0] in "LN" or kind in ("So", "Co", "Cn")):
        return "", 0
    for size in _BLOCKS:
        first = ord(letter) // size * size
        kin = [chr(code) for code in range(first, first + size)]
        kin = [each for each in kin if unicodedata.category(each) == kind]
        if len(kin) > 1:
            return "".join(kin), kin.index(letter)
    return "", 0
