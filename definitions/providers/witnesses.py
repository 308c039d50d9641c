"""What the arguments of a call are, out of everything that was said about them.

Providers send arguments in pieces, whole, as all so far each time, twice, as an object, or as JSON
inside a JSON string. Here is decided what they are, once, and never by guessing. Not here: partial
arguments while they are written (`definitions.arguments`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from assembler.engine.errors import AssemblerError
from assembler.engine.values import freeze_object, thaw
from definitions.arguments import InvalidArguments, complete
from definitions.providers.outcome import Why
from definitions.providers.reading import plain, whole

__all__ = ["Verdict", "Witness", "as_text", "key_of", "verdict_of"]

_FIRST_VALUE = json.JSONDecoder()
_BLANKS = " \t\n\r"
_NO_JSON = "(no JSON) "


class Witness(Struct, frozen=True):
    """One telling of the arguments: its JSON text as it came, and what it says (None: nothing)."""

    text: str
    value: dict[str, Any] | None


class Verdict(Struct, frozen=True):
    """What the arguments are. `disagree`: somebody said something else and was outvoted."""

    text: str
    arguments: dict[str, Any] | None
    why: Why | None = None
    disagree: bool = False


def verdict_of(pieces: Sequence[str], snapshots: Sequence[str]) -> Verdict:
    """Decide by `pieces`, which follow each other, and `snapshots`, each of them the whole text.

    Nothing said at all means no arguments. Linear in the texts.
    """
    witnesses = [*_told_in_pieces(pieces), *(_witness(text) for text in snapshots if _says(text))]
    if not witnesses:
        return Verdict("", {})
    camps = _camps(witnesses)
    largest = max(camps, key=len)
    if len(largest) * 2 <= len(witnesses):
        return Verdict(witnesses[0].text, None, "arguments-conflict")
    winner = largest[0]
    if winner.value is None:
        return Verdict(winner.text, None, "invalid-json")
    return Verdict(winner.text, winner.value, disagree=len(camps) > 1)


def as_text(value: object) -> str | None:
    """Give arguments that came as something else than text as text; None when they say nothing.

    What is no JSON (too deep, too long a number) becomes a text that is none either: kept as far as
    it can be, and never taken for complete arguments.
    """
    if value is None or isinstance(value, str):
        return value
    try:
        return whole(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=dict))
    except (TypeError, ValueError, RecursionError):
        return _NO_JSON + json.dumps(thaw(plain(value)), ensure_ascii=False)


def key_of(arguments: dict[str, Any]) -> str:
    """Give a text that equal arguments, and only they, have."""
    return json.dumps(arguments, sort_keys=True)


def _says(text: str) -> bool:
    return bool(text) and not text.isspace()


def _camps(witnesses: list[Witness]) -> list[list[Witness]]:
    """Put those together that say the same: the same value, or the same text that is none."""
    camps: dict[tuple[bool, str], list[Witness]] = {}
    for witness in witnesses:
        is_none = witness.value is None
        told = witness.text if witness.value is None else key_of(witness.value)
        camps.setdefault((is_none, told), []).append(witness)
    return list(camps.values())


def _told_in_pieces(pieces: Sequence[str]) -> list[Witness]:
    """Say what texts that came one after the other are: pieces, all so far each time, or a whole
    that was then said once more."""
    texts = [piece for piece in pieces if piece]
    joined = "".join(texts)
    if not _says(joined):
        return []
    together = _witness(joined)
    if together.value is not None:
        return [together]
    repeated = _repeated(texts, joined)
    if repeated:
        return repeated
    if all(longer.startswith(text) for text, longer in zip(texts, texts[1:], strict=False)):
        last = _witness(texts[-1])
        if last.value is not None:
            return [last]
    return [together]


def _repeated(texts: list[str], joined: str) -> list[Witness]:
    """Give the first value in the joined text and those behind it, when all of them are whole."""
    end = _end_of_first_value(joined)
    if end == 0:
        return []
    reached = count = 0
    while reached < end:
        reached += len(texts[count])
        count += 1
    if joined[end:reached].strip(_BLANKS):
        return []
    told = [_witness(joined[:reached]), *map(_witness, filter(_says, texts[count:]))]
    return told if all(witness.value is not None for witness in told) else []


def _end_of_first_value(text: str) -> int:
    start = len(text) - len(text.lstrip(_BLANKS))
    try:
        return _FIRST_VALUE.raw_decode(text, start)[1]
    except (ValueError, RecursionError):
        return 0


def _witness(text: str) -> Witness:
    """Read a text strictly; an object inside a JSON string counts as the object."""
    value = _value(text)
    if value is None and text.lstrip(_BLANKS)[:1] == '"':
        try:
            inner = json.loads(text)
        except (ValueError, RecursionError):
            inner = None
        if isinstance(inner, str):
            inner = whole(inner)
            if not _says(inner):
                return Witness("{}", {})
            value = _value(inner)
            if value is not None:
                return Witness(inner, value)
    return Witness(text, value)


def _value(text: str) -> dict[str, Any] | None:
    """Read complete arguments; None for what is no object, or what no event can carry."""
    try:
        value = complete(text)
        freeze_object(value)
    except (InvalidArguments, AssemblerError):
        return None
    return value
