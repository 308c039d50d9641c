"""The catalog: which items reach which Definition, and what a catalog may not hold."""

from __future__ import annotations

from typing import Any

import pytest

from assembler.engine.assembler import Assembler
from assembler.engine.definition import START, UNNAMED, Definition
from assembler.engine.errors import AssemblerError, DefinitionError
from assembler.engine.events import Delta
from tests.engine.support import Toy, event, shown


def fallback() -> Toy:
    return Toy("rest", takes={UNNAMED}, match=lambda item: (str(item.seq), START))


def named(name: str) -> Toy:
    toy = Toy("namer", None, takes={"taken"}, match=lambda _item: None)
    toy.names = frozenset({name})
    return toy


@pytest.mark.parametrize(
    ("type_", "reaches"),
    [
        ("nobody/knows", True),
        ("toy", False),
        ("taken", False),  # also when no Definition matches it
        ("only/named", False),
        ("turn/start", False),
        ("turn/end", False),
        ("step/start", False),
        ("step/end", False),
        ("turn/other", True),
        (UNNAMED, True),
    ],
)
def test_the_fallback_takes_the_events_that_nobody_names(type_: str, reaches: bool) -> None:
    assembler = Assembler([Toy(), named("only/named"), fallback()])
    assembler.append(event(1, type_, turn=1, step=1, id="x"))
    assert ("1" in shown(assembler)) is reaches


def test_deltas_never_reach_the_fallback() -> None:
    rest = fallback()
    Assembler([rest]).emit(Delta("a", 1, 1, "nobody-knows"))
    assert rest.calls == []


def test_an_unknown_event_is_carried_unchanged() -> None:
    data: dict[str, Any] = {"any": [1, {"thing": None}], "turn": "no number"}
    assembler = Assembler([fallback()])
    assembler.append({"seq": 1, "type": "nobody/knows", "data": data, "time": 5, "id": "w", "v": 9})
    (kept,) = assembler.events
    assert (kept.type, kept.data, kept.time, kept.id, kept.v) == (
        "nobody/knows",
        {"any": (1, {"thing": None}), "turn": "no number"},
        5,
        "w",
        9,
    )
    assert assembler.contexts("rest")[0].matches[0].data == kept.data


def test_a_definition_may_take_what_it_names_and_the_rest() -> None:
    both = Toy("rest", takes={"toy", UNNAMED}, match=lambda item: (str(item.seq), START))
    assembler = Assembler([both])
    assembler.load([event(1, "toy"), event(2, "nobody/knows"), event(3, "turn/start", turn=1)])
    assert list(shown(assembler)) == ["1", "2"]


def test_several_definitions_may_take_one_event() -> None:
    assembler = Assembler([Toy(), Toy("also", takes={"toy"})])
    assembler.append(event(1))
    assembler.flush()
    assert [node.key for node in assembler.view().nodes] == ["also:x", "toy:x"]


def test_only_the_takers_of_a_type_are_asked() -> None:
    toys = [Toy(kind) for kind in ("a", "b", "c")]
    assembler = Assembler(toys)
    assembler.append(event(1, "b"))
    assert [toy.asked("match") for toy in toys] == [[], ["x"], []]


def shows(toy: Toy, *kinds: str) -> Toy:
    toy.shows = frozenset(kinds)
    return toy


@pytest.mark.parametrize(
    "catalog",
    [
        [Toy(), Toy()],
        [Toy("a"), shows(Toy("b"), "b", "a")],
        [shows(Toy("a"), "c"), shows(Toy("b"), "c")],
        [Toy("with:colon")],
        [object()],
        [Toy],
        [None],
    ],
    ids=repr,
)
def test_a_catalog_that_contradicts_itself_is_refused(catalog: list[Any]) -> None:
    with pytest.raises(DefinitionError):
        Assembler(catalog)


def test_two_targets_may_show_one_kind() -> None:
    Assembler([Toy("a"), shows(Toy("b", "trajectory"), "a")])


def test_a_kind_that_nobody_has_is_named_in_the_error() -> None:
    assembler = Assembler([Toy()])
    for call in (
        lambda: assembler.state("none", "x"),
        lambda: assembler.contexts("none"),
        lambda: assembler.location("none", "x"),
    ):
        with pytest.raises(AssemblerError, match=r"none.*toy"):
            call()


def test_contexts_come_in_the_order_of_their_starts() -> None:
    assembler = Assembler([Toy()])
    for seq, id_ in enumerate("cab", 1):
        assembler.append(event(seq, id=id_))
    found = assembler.contexts("toy")
    assert [context.id for context in found] == ["c", "a", "b"]
    first = found[0]
    assert (first.kind, first.id, first.key, first.state) == ("toy", "c", "toy:c", (None,))
    assert first.start is first.matches[0]
    assert assembler.state("toy", "nobody") is None
    assert assembler.location("toy", "nobody") is None


def test_a_bare_definition_has_the_documented_defaults() -> None:
    bare = Definition()
    assert (bare.target, bare.takes, bare.names, bare.shows) == (None, set(), set(), set())
    with pytest.raises(NotImplementedError):
        bare.match(event(1))


def test_what_an_author_forgets_is_said_with_what_to_write() -> None:
    class Nameless(Definition):
        pass

    class Texty(Definition):
        kind = "texty"
        takes = "review/opened"  # type: ignore[assignment]

    class Empty(Definition):
        kind = "empty"

    for definitions, said in (
        ([Nameless()], "kind"),
        ([Texty()], "takes"),
        ([Empty()], "match"),
        ([Toy], "no instance"),
        (Toy(), "a list"),
        (list, "a list"),
    ):
        with pytest.raises(DefinitionError, match=said):
            Assembler(definitions)  # type: ignore[arg-type]
