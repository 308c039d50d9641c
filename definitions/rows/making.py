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

_OPENS = ("arguments", "arguments_text", "content", "output", "error")
"""What there may be to open. An empty object, text or list is nothing."""


def row_of(fields: Mapping[str, Any]) -> Object:
    """Give the row of a Node from its fields: `stage`, `name`, `arguments` and what it may open.

    It is about the arguments that run; where their text is no object, about what can be read of it;
    and of a result whose call is not loaded about what it says. O(1).
    """
    family = GENERIC if fields["name"] is None else family_of(fields["name"])
    return row(family, _summary(family, fields), fields["stage"], expandable=_opens(fields))


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
    """Whether there is something to open. The text of an empty object is not."""
    arguments = fields["arguments"]
    return any(fields[field] for field in _OPENS if field != "arguments_text" or arguments is None)
