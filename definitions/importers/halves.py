"""Half characters: JSON can say half a surrogate pair, UTF-8 cannot.

Here lives how the halves find each other again; one that stays alone is U+FFFD. Not here: which
fragments belong together.
"""

from __future__ import annotations

import re
from typing import Any

__all__ = ["may_hold_halves", "mended", "without_open_half"]

_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_HALF = re.compile("[\ud800-\udfff]")
_OPEN_HALF = re.compile("[\ud800-\udbff]$")


def may_hold_halves(text: str) -> bool:
    """Whether the values of this JSON text may hold halves: quick, for most hold none."""
    return _ESCAPE.search(text) is not None


def mended(value: Any) -> Any:
    """Join the halves in all texts of a value; one alone is U+FFFD."""
    if isinstance(value, str):
        return _joined(value) if _HALF.search(value) else value
    if isinstance(value, dict):
        return {mended(key): mended(item) for key, item in value.items()}
    if isinstance(value, list):
        return [mended(item) for item in value]
    return value


def _joined(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def without_open_half(text: str) -> tuple[str, str]:
    """Split off the half character at the end of a text, whose other half may follow."""
    half = _OPEN_HALF.search(text)
    return (text, "") if half is None else (text[: half.start()], half.group())
