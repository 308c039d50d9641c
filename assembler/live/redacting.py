"""Redacting: what no view, patch or group may show, taken out where Nodes are built.

Not here: what is secret, which the caller's function says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from typing import Any

from assembler.engine.definition import Context, Definition, GroupDefinition, Node, Scope

__all__ = ["redacted"]

Redact = Callable[[Node], Node | None]


def redacted(
    definitions: Iterable[Definition | GroupDefinition], redact: Redact
) -> list[Definition | GroupDefinition]:
    """These Definitions, every Node of which passes through `redact` before anybody sees it.

    `redact` gets the `kind`, `id` and `data` of a Node whenever it was made again, and gives it
    back, another one with other `data`, or None: nobody sees it. It is part of the Definition:
    pure, and when it raises the error is shown in place of the Node. Groups are summed up from
    what it gives. A `Text` that it leaves alone is sent on as it grows.

    Call it once and keep the list: Assemblers of one list share its tables.
    """
    return [
        _through(redact, each) if isinstance(each, Definition) else each for each in definitions
    ]


def _through(redact: Redact, definition: Definition) -> Definition:
    build = definition.build

    def build_redacted(context: Context, scope: Scope) -> Any:
        node = build(context, scope)
        return node if node is None else redact(node)

    twin = copy(definition)
    object.__setattr__(twin, "build", build_redacted)
    return twin
