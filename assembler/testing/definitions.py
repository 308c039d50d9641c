"""`check_definition`: a Definition keeps its contract, whatever happens to it.

Here lives what must be given for that, and what a run as a whole must have seen. Not here: what
is looked at in each call (`watching`), and how it is driven (`convergence`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from assembler.engine.definition import START, UNNAMED, Definition, GroupDefinition
from assembler.engine.events import Event, Item
from assembler.engine.registry import Registry
from assembler.engine.values import same, thaw
from assembler.testing.brackets import BOUNDARIES
from assembler.testing.convergence import Stage, made, told
from assembler.testing.failures import CheckFailed, Problem
from assembler.testing.scripts import Operation, items_of
from assembler.testing.searching import Fault, search
from assembler.testing.strategies import Payload, conversations
from assembler.testing.witnesses import Witness

__all__ = ["check_definition"]

History = tuple[Operation, ...]


def check_definition(  # noqa: PLR0913 - all but the first are named
    definitions: Any,
    *,
    events: Mapping[str, Payload],
    deltas: Mapping[str, Payload] | None = None,
    beside: Any = (),
    singles: Collection[str] = (),
    max_examples: int = 100,
    seed: int = 0,
) -> None:
    """Fail when a Definition breaks its contract; one line in a test, a second or so.

    `definitions` are a Definition, a list of them (Group Definitions too), or a function that makes
    them. `events` and `deltas` say for each type that they take how its data looks: a Hypothesis
    strategy of mappings, a list of examples, or a function from a `Spot` to a strategy.
    Turns, steps and attempts are made up around them. `beside` are Definitions that these ones
    read (`reader.previous`, `scope.other`) or group; they are not checked. `singles` are kinds
    of which a conversation has one, so that one id is no mistake.

    Checked in each call of each method: it answers the same when asked again, on a new instance
    too; it changes nothing that it was given, nothing given out earlier, nor the Definition; it
    reads no clock, randomness, environment or file; its answer is of the right kind, Node data are
    JSON. `extend` equals `update` one by one. And all that `check_convergence` checks. Mutable
    containers in a State are tolerated as long as nobody can see them change.

    Raises `CheckFailed`, with a sentence that says what to do and the smallest history found;
    the same `seed` finds the same one. `ValueError` names a type that has no data given,
    `TypeError` what is no Definition or no data, `DefinitionError` what no Assembler takes.
    Not seen: what C code asks the clock for and does not use, the time zone of the machine
    (`datetime.fromtimestamp` without one), and the order of a set of texts, which is another one in
    another process.

        def test_upload():
            check_definition(Upload(), events={"upload/begun": [{"upload_id": "u1"}]})
    """
    make, others = made("check_definition", definitions), made("check_definition", beside)
    checked = make()
    if not checked:
        raise TypeError("check_definition: expected a Definition, got none")
    known = [*checked, *others()]
    Registry(known)  # what an Assembler would not take is told before anything is made up
    _need_data(checked, known, {**events, **(deltas or {})})
    kinds = {(type(each), each.kind) for each in checked}
    often = {name for each in checked if isinstance(each, Definition) for name in each.takes}
    stage = Stage(lambda: [*make(), *others()], lambda each: (type(each), each.kind) in kinds)
    run = _Run(singles)
    stage.seen = run.see
    failed = search(
        told("check_definition", conversations(events, deltas, turns=2, moments=5, often=often)),
        stage.check,
        max_examples=max_examples,
        start=seed,
    )
    failed = failed or run.failed(checked)
    if failed is not None:
        raise failed


def _need_data(checked: Sequence[Any], known: Sequence[Any], given: Mapping[str, Any]) -> None:
    """`ValueError` for a type that a Definition takes and nobody can make."""
    for each in checked:
        if not isinstance(each, Definition):
            continue
        for name in sorted(each.takes - {UNNAMED} - set(BOUNDARIES)):
            if name not in given:
                raise ValueError(
                    f"check_definition: {each.kind!r} takes {name!r}, for which no data is given; "
                    f"add it to `events` (or `deltas`): events={{{name!r}: …}}"
                )
        if UNNAMED in each.takes:
            named = {name for one in known if isinstance(one, Definition) for name in one.takes}
            if not set(given) - named - set(BOUNDARIES):
                raise ValueError(
                    f"check_definition: {each.kind!r} takes what nobody names, and every type in "
                    "`events` is named; add one that no Definition takes"
                )


class _Run:
    """What was seen of each Definition in all histories together."""

    def __init__(self, singles: Collection[str]) -> None:
        self._singles = frozenset((singles,) if isinstance(singles, str) else singles)
        self._seen: dict[str, _Total] = {}

    def see(self, witnesses: Sequence[Witness], history: History) -> None:
        for witness in witnesses:
            self._seen.setdefault(witness.kind, _Total()).add(witness, history)

    def failed(self, checked: Sequence[Any]) -> CheckFailed | None:
        """The first Definition that was not checked in truth, or that forgets its ids."""
        for each in checked:
            total = self._seen.get(each.kind)
            found = None if total is None else self._problem(each, total)
            if found is not None:
                return found
        return None

    def _problem(
        self, definition: Definition | GroupDefinition, total: _Total
    ) -> CheckFailed | None:
        kind = definition.kind
        if isinstance(definition, GroupDefinition):
            return None if total.joined else CheckFailed(Problem("never-grouped", kind, {}), ())
        if not total.taken:
            return CheckFailed(Problem("took-nothing", kind, {"count": total.asked}), ())
        if not total.ids:
            return CheckFailed(Problem("never-started", kind, {"count": total.taken}), ())
        if definition.target is not None and not total.shown:
            return CheckFailed(Problem("never-shown", kind, {"target": definition.target}), ())
        if total.strangers is None or len(total.ids) > 1 or kind in self._singles:
            return None
        (ident,) = total.ids

        def again(history: History) -> Problem | None:
            two = _strangers(definition, history)
            if two is None:
                return None
            details = tuple(
                (label, repr(item)) for label, item in zip(("one", "other"), two, strict=True)
            )
            return Problem("forgets-id", kind, {"method": "match", "id": ident}, details)

        problem = again(total.strangers)
        return None if problem is None else Fault(problem, total.strangers, again).shrunk()


class _Total:
    """Of one Definition: how many items it was asked about and took, its ids, and a history in
    which two items that have nothing in common got one."""

    def __init__(self) -> None:
        self.asked = self.taken = self.shown = self.joined = 0
        self.ids: set[str] = set()
        self.strangers: History | None = None

    def add(self, witness: Witness, history: History) -> None:
        self.asked += len(witness.answers)
        self.taken += sum(1 for _, found in witness.answers if found is not None)
        self.shown += witness.shown
        self.joined += witness.joined
        self.ids |= {ident for ident, _ in witness.starts}
        if self.strangers is None and _two(witness.starts) is not None:
            self.strangers = history


def _strangers(definition: Definition, history: History) -> tuple[Item, Item] | None:
    """Two items of a history that this Definition puts into one id which neither says."""
    items = {id(item): item for each in history for item in items_of(each)}.values()
    taken = [(item, definition.match(item)) for item in items if item.type in definition.takes]
    return _two([(found[0], item) for item, found in taken if found and found[1] is START])


def _two(starts: Sequence[tuple[str, Item]]) -> tuple[Item, Item] | None:
    strangers = [item for ident, item in starts if not _holds(item, ident)]
    for item in strangers[1:]:
        if not same(item.data, strangers[0].data):
            return strangers[0], item
    return None


def _holds(item: Item, ident: str) -> bool:
    """Whether an item says this id anywhere, whole or in parts."""
    words = set(_words(thaw(item.data)))
    if isinstance(item, Event):
        words |= {str(item.seq), str(item.id), str(item.time)}
    else:
        words |= {item.attempt, str(item.turn), str(item.step), str(item.index)}
    return any(word and word in ident for word in words)


def _words(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [word for item in value.values() for word in _words(item)]
    if isinstance(value, list):
        return [word for item in value for word in _words(item)]
    return [] if value is None or isinstance(value, bool) else [str(value)]
