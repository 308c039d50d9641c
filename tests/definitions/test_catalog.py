"""The catalog as a whole, in the engine."""

from __future__ import annotations

from typing import Any

from assembler.engine.assembler import Assembler
from assembler.engine.definition import Definition, GroupDefinition
from definitions import catalog, partial
from definitions.events import VOCABULARY
from definitions.nodes import FIELDS
from tests.definitions.support import delta, event


def assembled(*items: Any) -> Assembler:
    assembler = Assembler(catalog())
    for item in items:
        if hasattr(item, "seq"):
            assembler.append(item)
        else:
            assembler.emit(item)
    assembler.flush()
    return assembler


def opened() -> list[Any]:
    return [event(1, "turn/start", turn=1), event(2, "step/start", turn=1, step=1)]


def test_every_kind_is_there_once() -> None:
    kinds = [each.kind for each in catalog()]
    assert len(set(kinds)) == len(kinds)
    assert [each.kind for each in catalog() if isinstance(each, GroupDefinition)] == ["process"]
    shown = [each for each in catalog() if isinstance(each, Definition) and each.target]
    assert {kind for each in shown for kind in each.shows or {each.kind}} <= FIELDS.keys()


def test_every_type_that_is_taken_is_named() -> None:
    for each in catalog():
        if isinstance(each, Definition):
            assert each.takes <= VOCABULARY | {"*"}


def test_an_ordinary_stream_has_nothing_odd() -> None:
    frame = [
        delta(1, "usage", after=2, usage={"input_tokens": 5}),
        delta(2, "block-start", after=2, block=0, block_type="reasoning"),
        delta(3, "block-end", after=2, block=0, value={"type": "reasoning", "text": ""}),
        delta(4, "block-start", after=2, block=1, block_type="text"),
        delta(5, "text", after=2, block=1, text="Hello."),
        delta(6, "block-end", after=2, block=1, value={"type": "text", "text": "Hello."}),
        delta(7, "block-start", after=2, block=2, block_type="tool-call"),
        delta(8, "tool-call", after=2, block=2, call_id="c1", name="ls", arguments=""),
        delta(9, "usage", after=2, usage={"input_tokens": 5, "output_tokens": 3}),
    ]
    assembler = assembled(*opened(), *frame)
    assert assembler.findings() == []
    view = assembler.view("chat")
    assert [node.key for node in view.nodes] == ["assistant:1.1", "tool:c1"]
    assert view["assistant:1.1"].data["usage"] == {"input_tokens": 5, "output_tokens": 3}


def test_quiet_types_are_an_argument() -> None:
    def keys(quiet: frozenset[str]) -> list[str]:
        assembler = Assembler(catalog(quiet=quiet))
        assembler.append(event(1, "vendor/note"))
        assembler.flush()
        return [node.key for node in assembler.view("chat").nodes]

    assert keys(frozenset()) == ["unknown:1"]
    assert keys(frozenset({"vendor/note"})) == []


def test_no_named_type_has_a_row_of_its_own() -> None:
    named = sorted(VOCABULARY - {"turn/start", "turn/end", "step/start", "step/end"})
    assembler = assembled(*(event(seq, type_) for seq, type_ in enumerate(named, 1)))
    assert assembler.view("chat").nodes == []
    assert assembler.findings() == []


def test_a_row_that_grows_is_one_row_and_its_view_stays_readable() -> None:
    pieces = [
        delta(at, "tool-call", after=2, call_id="c1", name="ls", arguments=text)
        for at, text in enumerate(['{"path":', '"a', 'b"'], 1)
    ]
    assembler = assembled(*opened(), *pieces[:2])
    first: Any = assembler.view("chat")["tool:c1"]
    assembler.emit(pieces[2])
    assembler.flush()
    second: Any = assembler.view("chat")["tool:c1"]
    assert (first.partial, second.partial) == ({"path": "a"}, {"path": "ab"})
    assert second.partial == partial('{"path":"ab"')


def test_public_names_are_functions_where_modules_have_the_same() -> None:
    import definitions.catalog  # noqa: PLC0415 - what comes later must not take the place
    import definitions.model_context  # noqa: PLC0415

    assert callable(definitions.catalog)
    assert callable(definitions.model_context)
    assert all(hasattr(definitions, name) for name in definitions.__all__)
