"""How a tool call reads on one line: `{"icon", "title", "summary", "expandable", "stage"}`.

One shape at every stage, by one presenter for each family: `row_of` for what is known as a whole,
`RowReader` for arguments that are still being written. Not here: which family a name belongs to
and which arguments it shows (`families`), the rows of a terminal (`rows_plain`).
"""

from __future__ import annotations

from definitions.rows.making import row_of
from definitions.rows.preparing import RowReader
from definitions.rows.wording import LOOK_MAX, SUMMARY_MAX

__all__ = ["LOOK_MAX", "SUMMARY_MAX", "RowReader", "row_of"]
