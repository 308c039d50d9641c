"""Lines of transcripts: what is read of each, and which may be half written."""

from __future__ import annotations

import pytest

from definitions.importers.errors import ImportFault
from definitions.importers.reading import values, written


def test_only_a_last_line_can_be_half_written() -> None:
    lines = ['{"a": 1}', '{"b":', '{"c": 3}']
    assert list(written(lines)) == lines
    assert list(written(lines[:2])) == lines[:1]
    assert list(values(lines[:2], "f")) == [(1, {"a": 1})]
    with pytest.raises(ImportFault, match="f:2: line"):
        list(values(lines, "f"))
