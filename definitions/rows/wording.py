"""One line out of one text: prose, a command, a path, a patch; cut to the length of a summary.

Each of these is monotone: what it makes of a beginning is a beginning of what it makes of the
whole, so that the summary of a growing text grows at its end and nowhere else. Not here: which
text is shown (`presenters`).
"""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["LOOK_MAX", "SUMMARY_MAX", "Said", "Wording", "command", "cut", "line", "patch", "path"]

LOOK_MAX = 4_096
"""So many characters of arguments are looked at while they are written, and of one text later."""
SUMMARY_MAX = 200
"""The most characters of a summary, the mark that there is more among them."""

Said = tuple[str, bool]
"""A line, and whether it stays as it is however its text goes on."""
Wording = Callable[[str, bool], Said]
"""Makes a line of a text, and is told whether the text is whole."""

_MORE = "…"
_LEADS = ("file://", "./")
_PATCH = "*** Begin Patch"
_FILE = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (?P<path>.*)(?P<over>\n?)", re.MULTILINE)


def cut(said: str) -> Said:
    """A line that is short enough. A whole character is kept or left out."""
    return (said, False) if len(said) < SUMMARY_MAX else (said[: SUMMARY_MAX - 1] + _MORE, True)


def line(text: str, whole: bool) -> Said:  # noqa: ARG001 - a Wording
    """Word prose: a run of blanks and line breaks is one blank."""
    return cut(" ".join(text[:LOOK_MAX].split()))


def command(text: str, whole: bool) -> Said:
    """Word a command: its first line, marked when there are more."""
    first, _, rest = text[:LOOK_MAX].lstrip().partition("\n")
    said, full = line(first, whole)
    if full or not rest.strip():
        return said, full
    return said + (f" {_MORE}" if len(said) <= SUMMARY_MAX - 2 else _MORE), True


def path(text: str, whole: bool) -> Said:
    """Word a path, without what says no more than that it is one."""
    for lead in _LEADS:
        if text.startswith(lead) and text != lead:
            return line(text[len(lead) :], whole)
        if lead.startswith(text) and not whole:
            return "", False
    return line(text, whole)


def patch(text: str, whole: bool) -> Said:
    """Word what changes a file: a path, or a patch by the first file that it names."""
    text = text[:LOOK_MAX].lstrip()
    if not text.startswith("*"):
        return path(text, whole)
    if text.startswith(_PATCH):
        found = _FILE.search(text)
        if found is not None:
            said, full = path(found["path"], bool(found["over"]) or whole)
            return said, full or bool(found["over"])
    if not whole and _PATCH.startswith(text[: len(_PATCH)]):
        return "", False
    return command(text, whole)
