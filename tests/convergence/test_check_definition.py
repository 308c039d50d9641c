"""`check_definition` passes what is right, and says of every mistake in `careless` what to do."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import cached_property
from typing import Any

import attrs
import pytest
from msgspec.structs import replace

from assembler import UPDATE, Definition, DefinitionError
from assembler.testing import CheckFailed, check_convergence, check_definition
from tests.convergence import careless
from tests.convergence.careless import DELTAS, EVENTS, MISTAKES, Mistake, Parcel, Shelf


def failure_of(definition: Any, **more: Any) -> CheckFailed:
    given = {"events": EVENTS, "deltas": DELTAS, "max_examples": 50, **more}
    with pytest.raises(CheckFailed) as caught:
        check_definition(definition, **given)
    return caught.value


def test_a_careful_definition_passes() -> None:
    check_definition([Parcel(), Shelf()], events=EVENTS, deltas=DELTAS, max_examples=30)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.careless.__name__)
def test_every_mistake_is_found_and_named(mistake: Mistake) -> None:
    beside = [make() for make in mistake.beside]
    failed = failure_of(mistake.careless(), beside=beside)
    assert (failed.problem, failed.method) == (mistake.problem, mistake.method), failed
    assert mistake.says in str(failed)
    assert 1 <= len(failed.history) <= 3, failed
    seqs = [each.arguments[0].seq for each in failed.history if each.call == "append"]
    assert seqs == list(range(1, len(seqs) + 1)), "numbered from 1, without gaps"


# --- what is said, and how it is found again


def test_the_report_names_the_trouble_what_to_do_and_the_history() -> None:
    packed = {"parcel/packed": [{"parcel": "p1", "weight": 0}]}
    assert str(failure_of(careless.TakenOut(), events={**EVENTS, **packed})) == (
        "parcel: `build` changed a State that it was given.\n"
        "  Others still hold that State, and it is folded on from again. Give a new State instead: "
        "`msgspec.structs.replace(state, …)`, `{**state, …}`.\n"
        "\n"
        "  it was  {'stops': [], 'name': 'p1'}\n"
        "  now     {'stops': []}\n"
        "\n"
        "The smallest history found (1 operation):\n"
        '   1  append   1  parcel/packed  {"parcel": "p1", "weight": 0}'
    )


def test_the_same_seed_finds_the_same_history() -> None:
    first, second = (failure_of(careless.Hasty(), seed=3) for _ in range(2))
    assert str(first) == str(second)
    assert first.history == second.history


def test_the_history_can_be_delivered_again() -> None:
    failed = failure_of(careless.Nosy(), beside=[careless.Ledger()])
    with pytest.raises(CheckFailed) as again:
        check_convergence([careless.Nosy(), careless.Ledger()], failed.history)
    assert again.value.history == failed.history


def test_what_is_given_is_left_as_it_was() -> None:
    careless_one = careless.Counted()
    failure_of(careless_one)
    assert careless_one.count == 0


# --- nothing to check is a failure too


class Deaf(Parcel):
    def match(self, item: Any) -> Any:
        return None


class Endless(Parcel):
    def match(self, item: Any) -> Any:
        return item.data["parcel"], UPDATE


class Hidden(Parcel):
    def build(self, context: Any, scope: Any) -> Any:
        return None


class Alone(Shelf):
    def joins(self, node: Any) -> Any:
        return None


@pytest.mark.parametrize(
    ("definition", "problem"),
    [
        (Deaf(), "took-nothing"),
        (Endless(), "never-started"),
        (Hidden(), "never-shown"),
        ([Parcel(), Alone()], "never-grouped"),
        (Shelf(), "never-grouped"),
    ],
)
def test_what_checks_nothing_does_not_pass(definition: Any, problem: str) -> None:
    assert failure_of(definition, max_examples=10).problem == problem


def test_one_of_a_conversation_may_have_one_id() -> None:
    check_definition(
        careless.Heap(), events=EVENTS, deltas=DELTAS, singles={"parcel"}, max_examples=10
    )


# --- what is no mistake


class Talking(Parcel):
    def update(self, state: Any, match: Any) -> Any:
        logging.getLogger("parcel").debug("update %s", match)
        return super().update(state, match)


class Replaced(careless.InPlace):
    """Its State holds a dict and a list, which it replaces."""

    def update(self, state: Any, match: Any) -> Any:
        return {**state, "stops": [*state["stops"], match.data.get("to")]}


class Indexed(Parcel):
    """Sets and keys call `hash`, which is no business of others."""

    def shown(self, state: Any, scope: Any) -> Any:
        return {"stops": sorted({Stop(each) for each in state.stops}, key=lambda stop: stop.name)}

    def build(self, context: Any, scope: Any) -> Any:
        node = super().build(context, scope)
        return node and replace(node, data={"stops": [each.name for each in node.data["stops"]]})


class Stop:
    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stop) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)


class Remembering(Parcel):
    """Its State keeps the Matches themselves."""

    def start(self, match: Any, reader: Any) -> Any:
        return (match,)

    def update(self, state: Any, match: Any) -> Any:
        return (*state, match)

    extend = Definition.extend

    def place(self, context: Any, scope: Any) -> Any:
        return context.state

    def notes(self, context: Any, scope: Any) -> Any:
        return ()

    def shown(self, state: Any, scope: Any) -> Any:
        return {"types": [match.type for match in state]}


@attrs.frozen
class Counted:
    types: tuple[str, ...] = ()


class Described(Remembering):
    """It shows the `repr` that attrs writes, which asks for `id` on the way."""

    def start(self, match: Any, reader: Any) -> Any:
        return Counted((match.type,))

    def update(self, state: Any, match: Any) -> Any:
        return attrs.evolve(state, types=(*state.types, match.type))

    def shown(self, state: Any, scope: Any) -> Any:
        return {"told": repr(state)}


class Prepared(Parcel):
    """It makes a table when it is first asked for."""

    @cached_property
    def titles(self) -> dict[str, str]:
        return {"p1": "one", "p2": "two"}

    def shown(self, state: Any, scope: Any) -> Any:
        return {"titles": [self.titles.get(each) for each in state.stops]}


@pytest.mark.parametrize("make", [Talking, Replaced, Indexed, Remembering, Described, Prepared])
def test_what_is_no_mistake_passes(make: type[Any], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    check_definition(make(), events=EVENTS, deltas=DELTAS, max_examples=15)


# --- wrong use is one clear line


def line_of(error: type[Exception], call: Callable[[], Any]) -> str:
    with pytest.raises(error) as caught:
        call()
    (line,) = str(caught.value).splitlines()
    return line


def test_a_type_without_data_is_named() -> None:
    few = {"parcel/packed": EVENTS["parcel/packed"], "parcel/lost": EVENTS["parcel/lost"]}
    said = line_of(ValueError, lambda: check_definition(Parcel(), events=few, deltas=DELTAS))
    assert "'parcel' takes 'parcel/moved', for which no data is given" in said


def test_a_fallback_needs_what_nobody_names() -> None:
    class Rest(Parcel):
        takes = frozenset({"*"})

    said = line_of(ValueError, lambda: check_definition(Rest(), events=EVENTS, beside=[Named()]))
    assert "takes what nobody names" in said


class Named(Parcel):
    kind = "named"
    target = None


@pytest.mark.parametrize("what", [3, "parcel", [Parcel(), None], [], None])
def test_what_is_no_definition_is_said(what: Any) -> None:
    said = line_of(TypeError, lambda: check_definition(what, events=EVENTS, deltas=DELTAS))
    assert "expected a Definition" in said


def test_what_no_assembler_takes_is_said_as_it_says_it() -> None:
    class Nameless(Definition):
        takes = Parcel.takes

    said = line_of(
        DefinitionError, lambda: check_definition(Nameless(), events=EVENTS, deltas=DELTAS)
    )
    assert "Nameless has no kind" in said


@pytest.mark.parametrize("data", [7, "text", [], lambda spot: {}])
def test_what_is_no_data_is_said(data: Any) -> None:
    given = {**EVENTS, "parcel/lost": data}
    said = line_of(TypeError, lambda: check_definition(Parcel(), events=given, deltas=DELTAS))
    assert "the data of 'parcel/lost'" in said


def test_a_class_or_a_function_will_do() -> None:
    check_definition(Parcel, events=EVENTS, deltas=DELTAS, max_examples=5)
    check_definition(lambda: (Parcel(), Shelf), events=EVENTS, deltas=DELTAS, max_examples=5)


def test_what_cannot_be_copied_asks_for_a_function() -> None:
    class Locked(Parcel):
        def __init__(self) -> None:
            self.lock = threading.Lock()

    said = line_of(TypeError, lambda: check_definition(Locked(), events=EVENTS, deltas=DELTAS))
    assert "give a function that makes one" in said
    check_definition(Locked, events=EVENTS, deltas=DELTAS, max_examples=5)
