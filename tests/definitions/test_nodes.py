"""What Nodes of this package can do beside holding data."""

from __future__ import annotations

from assembler.engine.values import Text
from definitions.nodes import PartialReader


def test_a_reader_of_partial_arguments_reads_whichever_text_it_is_given() -> None:
    reader = PartialReader()
    base = Text('{"path":"a')
    longer = base.append('b","n":[')
    assert reader.view(base) == {"path": "a"}
    assert reader.view(longer) == {"path": "ab", "n": []}
    assert reader.view(base) == {"path": "a"}  # an older one of the same buffer
    other = base.append('c"')  # another future of it
    assert reader.view(other) == {"path": "ac"}
    assert reader.view(Text("{")) == {}
    assert reader.view(longer) == {"path": "ab", "n": []}


def test_two_readers_are_equal_and_say_nothing_of_their_text() -> None:
    one, other = PartialReader(), PartialReader()
    one.view(Text('{"a":1,'))
    assert one == other
    assert hash(one) == hash(other)
    assert one != "PartialReader()"
    assert repr(one) == "PartialReader()"
