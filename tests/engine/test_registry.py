"""The catalog: which items reach which Definition, and what a catalog may not hold."""

from __future__ import annotations

from typing import Any

import pytest

from assembler.engine.assembler import Assembler
from assembler.engine.definition import START, UNNAMED, Definition, Node
from assembler.engine.errors import AssemblerError, DefinitionError
from assembler.engine.events import Delta
from assembler.engine.registry import _registries
from tests.engine.support import Band, Toy, event, same_as_fresh, shown


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


def test_what_many_definitions_took_goes_from_all_of_them() -> None:
    toys = [Toy(), *(Toy(kind, takes={"toy"}) for kind in "abc")]
    assembler = Assembler(toys)
    log = [event(1), event(2)]
    for each in log:
        assembler.append(each)
    same_as_fresh(assembler, toys)
    assembler.evict(2)
    assert [assembler.state(kind, "x") for kind in ("toy", *"abc")] == [(None,)] * 4
    same_as_fresh(assembler, toys)
    assembler.prepend(log[:1], False)
    same_as_fresh(assembler, toys)
    assembler.load([])
    assert [assembler.contexts(kind) for kind in ("toy", *"abc")] == [[]] * 4


def test_a_node_of_another_kind_has_a_key_of_that_kind() -> None:
    toy = shows(Toy(build=lambda c, _scope: Node("yot", c.id, {})), "yot")
    assembler = Assembler([toy])
    assembler.append(event(1))
    assembler.flush()
    assert [(node.key, node.kind) for node in assembler.view()] == [("yot:x", "yot")]


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


class Nameless(Definition):
    pass


class Odd(Definition):
    kind = "odd"
    takes = "review/opened"  # type: ignore[assignment]


class Listed(Definition):
    kind = "listed"
    shows = ("a",)  # type: ignore[assignment]


class Empty(Definition):
    kind = "empty"


class Unstarted(Empty):
    def match(self, item: Any) -> None:
        return None


class Repr:
    def __repr__(self) -> str:
        return "this"


TEXTS = "expected a frozenset of texts, got"
ONE_LIST = "(`catalog()` gives one; a single Definition goes into a list)"


@pytest.mark.parametrize(
    ("definitions", "sentence"),
    [
        ([Nameless()], 'Nameless has no kind; write `kind = "…"` in its class'),
        (
            [Odd()],
            f"Odd.takes: {TEXTS} 'review/opened'; write `takes = frozenset({{\"…\"}})`",
        ),
        ([Listed()], f"Listed.shows: {TEXTS} ('a',); write `shows = frozenset({{\"…\"}})`"),
        ([Empty()], "Empty has no match; every Definition says that itself"),
        ([Unstarted()], "Unstarted has no start; every Definition says that itself"),
        ([Repr()], "this is no instance of a Definition or a GroupDefinition"),
        (5, f"definitions: expected a list of Definitions, got 5 {ONE_LIST}"),
        ([Toy(), Toy("a"), Toy()], "two Definitions have the kind 'toy'; kinds are unique"),
        ([Band(), Band()], "two Group Definitions of one target have one kind"),
        ([Toy("a:b")], "the kind 'a:b' holds a ':', which ends a kind"),
        (
            [Toy("a"), shows(Toy("b"), "b", "a")],
            "'a' and 'b' both show Nodes of kind 'a' on 'chat'; set `shows` so that each kind has "
            "one Definition",
        ),
    ],
    ids=lambda value: "" if not isinstance(value, str) else value[:20],
)
def test_what_an_author_forgets_is_said_with_what_to_write(definitions: Any, sentence: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        Assembler(definitions)
    assert str(caught.value) == sentence


def test_group_definitions_of_two_targets_may_have_one_kind() -> None:
    elsewhere = Band()
    elsewhere.target = "trajectory"  # type: ignore[misc]
    Assembler([Band(), elsewhere])


def test_a_method_may_be_given_to_one_instance_alone() -> None:
    empty = Empty()
    empty.match = lambda _item: ("x", START)  # type: ignore[method-assign]
    empty.start = lambda match, _reader: match.data["n"]  # type: ignore[method-assign]
    empty.takes = frozenset({"n"})
    assembler = Assembler([empty])
    assembler.append(event(1, "n", n=5))
    assert assembler.state("empty", "x") == 5


def test_conversations_share_what_is_known_of_one_list_of_definitions() -> None:
    toys = [Toy()]
    one, other = Assembler(toys), Assembler(iter(toys))
    assert one._registry is other._registry
    assert Assembler([Toy()])._registry is not one._registry


def test_what_is_shared_is_bounded_and_the_oldest_goes() -> None:
    toys = [Toy()]
    first = Assembler(toys)
    for _ in range(200):
        Assembler([Toy()])
    assert len(_registries) == 64
    assert Assembler(toys)._registry is not first._registry
