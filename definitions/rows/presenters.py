"""One presenter for each family: what of its arguments is said, half written or whole; and the
shape of a row.

Not here: how a text becomes a line (`wording`), when it is made again (`preparing`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

from msgspec import Struct

from assembler.engine.values import Object, Text, freeze_object
from definitions.families import GENERIC, Family
from definitions.rows.wording import Said, Wording, command, cut, line, patch, path

__all__ = ["Presenter", "named", "row", "said_of", "summary_of"]

_SHELLS = frozenset({"-c", "-lc", "-ic", "/c", "-command"})
"""What stands between a shell and the command that it runs."""
_INNER = frozenset(
    {"path", "file_path", "question", "content", "step", "title", "task", "description", "text"}
    | {"name", "query", "command", "cmd"}
)
"""What an item of a list is about."""
_DONE = frozenset({"completed", "complete", "done", "finished"})
_GOING_ON = frozenset({"in_progress", "in-progress", "active", "running"})


class Presenter(Struct, frozen=True):
    """How calls of a family are said.

    `word` words a text of the arguments, at every stage. `whole` words arguments that are all
    there, where more can be said of them then; it gives nothing when it has nothing to add.
    """

    word: Wording = line
    whole: Callable[[Family, Mapping[str, Any]], str] | None = None


def row(family: Family, summary: str | Text, stage: str, *, expandable: bool) -> Object:
    """Make a row: icon and title are the family's."""
    return freeze_object(
        {
            "icon": family.icon,
            "title": family.title,
            "summary": summary,
            "expandable": expandable,
            "stage": stage,
        }
    )


def _presenter_of(family: Family) -> Presenter:
    return _PRESENTERS.get(family.name, _PROSE)


def said_of(family: Family, value: Any, *, whole: bool) -> Said:
    """Say one value of the arguments; nothing, when it has nothing to say (yet). O(1).

    A list of texts is said as one, of a list of objects the first.
    """
    word = _presenter_of(family).word
    if isinstance(value, (list, tuple)) and word is command:
        return _argv(value, whole=whole)
    return _said(word, value, whole=whole)


def summary_of(name: str | None, family: Family, arguments: Mapping[str, Any]) -> str:
    """Say arguments that are all there: the first field of the family that they have. O(1)."""
    presenter = _presenter_of(family)
    said = presenter.whole(family, arguments) if presenter.whole else ""
    said = said or _first_said(family, arguments)
    if family is GENERIC:
        return named(name, said)[0]
    return said or named(name, "")[0]


def named(name: str | None, said: str) -> Said:
    """Put the tool's name before what is said."""
    return cut(" ".join(filter(None, (line(name or "", True)[0], said))))


def _first_said(family: Family, arguments: Mapping[str, Any]) -> str:
    for field in chain(family.fields, family.others, arguments):
        value = arguments.get(field)
        if value is not None:
            said, _ = said_of(family, value, whole=True)
            if said:
                return said
    return ""


def _said(word: Wording, value: Any, *, whole: bool) -> Said:
    if isinstance(value, str):
        return word(value, whole)
    if isinstance(value, bool):
        return ("true" if value else "false"), True
    if isinstance(value, (int, float)):
        return cut(repr(value))
    if isinstance(value, Mapping):
        return _inner(word, value, whole=whole)
    if isinstance(value, (list, tuple)) and value:
        return _items(word, value, whole=whole)
    return "", False


def _inner(word: Wording, value: Mapping[str, Any], *, whole: bool) -> Said:
    """Say what an object is about: the first of the fields that tell it."""
    fields = list(value)
    for number, field in enumerate(fields, 1):
        text = value[field]
        if field in _INNER and isinstance(text, str):
            over = whole or number < len(fields)
            said, full = word(text, over)
            if said or not over:
                return said, full or over
    return "", False


def _items(word: Wording, items: Sequence[Any], *, whole: bool) -> Said:
    if isinstance(items[0], Mapping):
        over = whole or len(items) > 1
        said, full = _inner(word, items[0], whole=over)
        return said, full or over
    told = []
    for number, item in enumerate(items, 1):
        if isinstance(item, (str, int, float)):
            said, full = _said(word, item, whole=whole or number < len(items))
            told.append(said)
            if full and isinstance(item, str):
                break
    return cut(", ".join(filter(None, told)))


def _argv(words: Sequence[Any], *, whole: bool) -> Said:
    """Say a command that is given as its words; of a shell, what it runs."""
    if not all(isinstance(word, str) for word in words):
        return _said(command, words, whole=whole) if words else ("", False)
    _, flag, runs, *more = (*words, "", "", "")
    if not runs and not whole:
        return "", False
    if runs and flag.casefold() in _SHELLS:
        return command(runs, whole or any(more))
    return command(" ".join(words), whole)


def _found(family: Family, arguments: Mapping[str, Any]) -> str:
    """Say what is looked for, and where."""
    fields = [field for field in family.fields if arguments.get(field)]
    places = [field for field in family.others if arguments.get(field)]
    if not (fields and places):
        return ""
    what, _ = said_of(family, arguments[fields[0]], whole=True)
    where, _ = _said(path, arguments[places[0]], whole=True)
    return cut(f"{what} in {where}")[0] if what and where not in ("", ".") else ""


def _done(family: Family, arguments: Mapping[str, Any]) -> str:
    """Say how much of a list is done, and what is next."""
    for field in family.fields:
        items = arguments.get(field)
        if isinstance(items, (list, tuple)) and items:
            break
    else:
        return ""
    states = [item.get("status") if isinstance(item, Mapping) else None for item in items]
    if not all(isinstance(state, str) for state in states):
        return ""
    done = sum(state in _DONE for state in states)
    going_on = [item for item, state in zip(items, states, strict=True) if state in _GOING_ON]
    left = [item for item, state in zip(items, states, strict=True) if state not in _DONE]
    now = next(iter(going_on or left), None)
    said = "" if now is None else _inner(line, now, whole=True)[0]
    return cut(f"{done} of {len(items)} done" + (f": {said}" if said else ""))[0]


def _changed(family: Family, arguments: Mapping[str, Any]) -> str:
    """Say what is done to a file, where an editor with several commands says another than edit."""
    verb = arguments.get("command")
    if verb not in ("view", "create"):
        return ""
    said = _first_said(family, arguments)
    return cut(f"{verb} {said}")[0] if said else ""


_PROSE = Presenter()
_FILES = Presenter(path)
_COMMANDS = Presenter(command)

_PRESENTERS: Mapping[str, Presenter] = {
    "read": _FILES,
    "read-image": _FILES,
    "write": _FILES,
    "present": _FILES,
    "edit": Presenter(patch, _changed),
    "search": Presenter(whole=_found),
    "todo": Presenter(whole=_done),
    "bash": _COMMANDS,
    "code": _COMMANDS,
}
"""Families that are said in another way than by the line of a text."""
