"""The row of a call that is dispatched, or has a result.

Not here: what is said of arguments (`presenters`), arguments that are being written (`preparing`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assembler.engine.values import Json, Object
from definitions.families import GENERIC, Family, family_of
from definitions.rows.preparing import summary_of_text
from definitions.rows.presenters import row, summary_of
from definitions.rows.wording import line

__all__ = ["row_of"]


def row_of(fields: Mapping[str, Any], prepared: Object | None = None, title: str = "") -> Object:
    """Give the row of a Node from its fields: `stage`, `name`, `arguments` and what it may open.

    It is about the arguments that run; where their text is no object, about what can be read of it;
    and of a result whose call is not loaded about what it says. Where only pieces of the call are
    there beside its result, it is about what their row `prepared` says. Where its arguments say
    nothing, it is the `title` that the call came with, if it has one. O(1).
    """
    family = GENERIC if fields["name"] is None else family_of(fields["name"])
    summary = _summary(family, fields) if prepared is None else prepared["summary"]
    if title and summary == line(fields["name"] or "", whole=True)[0]:
        summary = line(title, whole=True)[0]
    return row(family, summary, fields["stage"], expandable=_opens(fields))


def _summary(family: Family, fields: Mapping[str, Any]) -> str:
    name, arguments, text = fields["name"], fields["arguments"], fields["arguments_text"]
    if arguments is not None:
        return summary_of(name, family, arguments)
    if text or name is not None:
        return summary_of_text(name, str(text or ""))
    return _beginning(fields["content"])


def _beginning(content: Json) -> str:
    """Give the beginning of the first text of a result."""
    for block in content or ():
        text = block.get("text") if type(block) is Object else None
        if isinstance(text, str) and text.strip():
            return line(text, whole=True)[0]
    return ""


def _opens(fields: Mapping[str, Any]) -> bool:
    """Whether there is something to open. An empty object, text or list is nothing."""
    written = fields["arguments"]
    if written is None:
        written = fields["arguments_text"]
    return bool(written or fields["content"] or fields["output"] or fields["error"])
