"""A View as rows of text: one for each visible Node, one for the head of each group.

How a Node reads is the catalog's knowledge (`plugins.row_text`); without that a row has its kind,
its id and its data in short. Not here: when rows are drawn (`play`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from assembler.cli.output import Style, clip, cut, fill, one_line, width
from assembler.engine.definition import Group, Node
from assembler.plugins import RowText
from assembler.recordings.matching import short

__all__ = ["Row", "RowMaker", "line", "lines"]

_STAGE_COLUMNS = 12
"""The longest stage, `interrupted`, and a blank."""
_TITLE_COLUMNS = 14
_TITLE_COLUMNS_MAX = 20
_INDENT = 2

_STYLES: Mapping[str, str] = {
    "succeeded": "good",
    "allow": "good",
    "failed": "bad",
    "deny": "bad",
    "unsettled": "bad",
    "preparing": "busy",
    "running": "busy",
    "waiting": "busy",
    "pending": "busy",
}


class Row(Struct, frozen=True, gc=False):
    """One line: the Node or group it is of, and its three columns. Nothing is escaped yet."""

    key: str
    stage: str
    title: str
    summary: str
    depth: int = 0
    head: bool = False


class RowMaker:
    """Makes rows, each Node's once for as long as the Node is the same object."""

    def __init__(self, row_text: RowText | None) -> None:
        self._row_text = row_text or _generic
        self._made: dict[str, tuple[Node, Row, Row]] = {}

    def rows(self, nodes: Sequence[Node], groups: Sequence[Group]) -> list[Row]:
        """The rows of a View, in order. O(Nodes) look-ups; only what changed is made."""
        # A head over one row would say twice what the row says.
        headed = [group for group in groups if len(group.members) > 1]
        heads = {group.members[0]: group for group in headed}
        inside = {key for group in headed for key in group.members}
        rows: list[Row] = []
        for node in nodes:
            if node.key in heads:
                rows.append(_head(heads[node.key]))
            rows.append(self.row(node, inside=node.key in inside))
        if len(self._made) > 2 * len(nodes) + 64:
            kept = {node.key for node in nodes}
            self._made = {key: made for key, made in self._made.items() if key in kept}
        return rows

    def row(self, node: Node, *, inside: bool = False) -> Row:
        """The row of one Node; `inside`: it stands under the head of a group."""
        made = self._made.get(node.key)
        if made is None or made[0] is not node:
            stage, title, summary = self._row_text(node)
            said = stage, title, one_line(summary)
            outer, inner = (Row(node.key, *said, depth) for depth in (0, 1))
            made = self._made[node.key] = node, outer, inner
        return made[2] if inside else made[1]


def _generic(node: Node) -> tuple[str, str, str]:
    return "", node.kind, f"{node.id} {short(node.data)}"


def _head(group: Group) -> Row:
    data: Any = group.data
    title = str(data.get("title") or group.kind)
    stage = str(data.get("status") or "")
    return Row(group.key, stage, title, f"{len(group.members)} rows", head=True)


def lines(rows: Sequence[Row], style: Style, columns: int) -> Iterator[str]:
    """The rows as lines of at most so many columns; narrow terminals lose columns of the table."""
    for row in rows:
        yield line(row, style, columns)


def line(row: Row, style: Style, columns: int) -> str:
    """One row as a line of at most so many columns."""
    if row.head:
        status = f", {row.stage}" if row.stage else ""
        return style(cut(f"▾ {row.title}  ({row.summary}{status})", columns), "dim")
    indent = " " * (_INDENT * row.depth)
    left = columns - len(indent)
    if left < _STAGE_COLUMNS + _TITLE_COLUMNS + 10:
        said = " ".join(part for part in (row.stage, row.title, row.summary) if part)
        return clip(indent, columns) + cut(said, max(0, left))
    stage = style(fill(row.stage, _STAGE_COLUMNS - 1), _STYLES.get(row.stage))
    titles = min(max(_TITLE_COLUMNS, columns // 8), _TITLE_COLUMNS_MAX)
    title = fill(row.title, titles - 1 - len(indent))
    used = width(indent) + _STAGE_COLUMNS + width(title) + 1
    said = f"{indent}{stage} {style(title, 'bold')} {cut(row.summary, columns - used)}"
    return said.rstrip()
