"""The row of a call whose arguments are still being written.

A pure function of the tool's name and of the first `LOOK_MAX` characters of the text; `RowReader`
remembers how far it came. Not here: arguments that are whole (`making`).
"""

from __future__ import annotations

import re
from typing import Any

from assembler.engine.values import Fragments, Object, Text
from definitions.arguments import PartialArguments
from definitions.families import GENERIC, Family, family_of
from definitions.rows.presenters import named, row, said_of, summary_of
from definitions.rows.wording import LOOK_MAX, line

__all__ = ["RowReader", "summary_of_text"]

_UPTO_QUOTE = re.compile(r'[^"]*"|[^"]+')


class RowReader:
    """Makes the row of one growing text, going on where it stopped.

    A cache and nothing else: it says nothing about its text, so any two are equal. The summary is
    of the field that comes first of those that the family shows, and is final when this is whole:
    from then on the row is the same object, and the text is not read any more.
    """

    __slots__ = ("_count", "_family", "_fragments", "_name", "_row", "_summary")

    def __init__(self) -> None:
        self._fragments: Fragments | None = None
        self._name: str | None = None
        self._count = 0

    def row(self, text: Text, name: str | None) -> Object:
        """Give the row of a call that is prepared. Costs what was added since the last time."""
        fragments, count = text.fragments
        known = self._fragments is not None and self._fragments.is_of(fragments)
        if not known or name != self._name:
            self._begin(fragments, name)
        elif count < self._count:
            return RowReader().row(text, name)
        if count > self._count and not self._summary.final:
            before = self._summary.text
            self._summary.read(fragments[self._count : count])
            self._count = count
            if self._summary.text is not before:
                self._row = row(self._family, self._summary.text, "preparing", expandable=False)
        return self._row

    def _begin(self, fragments: Fragments, name: str | None) -> None:
        self._fragments, self._name, self._count = fragments, name, 0
        self._family = GENERIC if name is None else family_of(name)
        self._summary = _Summary(name, self._family)
        self._row = row(self._family, self._summary.text, "preparing", expandable=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowReader)

    def __hash__(self) -> int:
        return hash(RowReader)

    def __repr__(self) -> str:
        return "RowReader()"


def summary_of_text(name: str | None, text: str) -> str:
    """Give the summary of a text that is no object: of what can be read of it, or of its beginning.

    O(1).
    """
    family = GENERIC if name is None else family_of(name)
    summary = _Summary(name, family)
    summary.read([text])
    if summary.is_telling:
        return str(summary.text)
    said, _ = line(text, whole=True)
    return named(name, said)[0] if family is GENERIC or not said else said


class _Summary:
    """The summary so far.

    Where the text is cut makes no difference: it is looked at behind each quotation mark, hence
    before anything that comes behind the field that is shown.
    """

    __slots__ = (
        "_family",
        "_is_object",
        "_name",
        "_parser",
        "_raw",
        "_said",
        "_taken",
        "final",
        "is_telling",
        "text",
    )

    def __init__(self, name: str | None, family: Family) -> None:
        self._name, self._family = name, family
        self._parser = PartialArguments()
        self._raw, self._taken = "", 0
        self._is_object: bool | None = None
        self._said, self.text = "", Text()
        self.is_telling = self.final = False
        if family is GENERIC:
            self._put(named(name, "")[0])

    def read(self, fragments: list[str]) -> None:
        """Read on, until it is final."""
        for fragment in fragments:
            piece = fragment[: LOOK_MAX - self._taken]
            self._taken += len(piece)
            self._feed(piece)
            if self.final:
                return
        self._look()
        self.final = self.final or self._taken == LOOK_MAX

    def _feed(self, piece: str) -> None:
        if self._is_object is None:
            piece, self._raw = (self._raw + piece).lstrip(), ""
            if not piece:
                return
            self._is_object = piece[0] == "{"
        if not self._is_object:
            self._raw += piece
            return
        for part in _UPTO_QUOTE.findall(piece):
            self._parser.feed(part)
            if part[-1] == '"':
                self._look()
            if self.final:
                return

    def _look(self) -> None:
        """Say what can be said now; of the first field that says something."""
        if not self._is_object:
            said, self.final = said_of(self._family, self._raw, whole=False)
            self._say(said)
            return
        view, wanted = self._parser.value, self._family.fields
        for field in view:
            if wanted and field not in wanted:
                continue
            is_closed = view.is_closed(field)
            said, full = said_of(self._family, view[field], whole=is_closed)
            if said:
                self.final = full or is_closed
                self._say(said)
                return
        if view.ended:
            self.final = True
            self._conclude(view.to_dict())

    def _say(self, said: str) -> None:
        if not said:
            return
        self.is_telling = True
        if self._family is GENERIC:
            said, full = named(self._name, said)
            self.final = self.final or full
        self._put(said)

    def _conclude(self, arguments: dict[str, Any]) -> None:
        """Say what there is when no field of the family came."""
        self.is_telling = bool(arguments)
        self._put(summary_of(self._name, self._family, arguments))

    def _put(self, said: str) -> None:
        """Let the text grow, where it only grew."""
        if said == self._said:
            return
        if said.startswith(self._said):
            self.text = self.text.append(said[len(self._said) :])
        else:
            self.text = Text(said)
        self._said = said
