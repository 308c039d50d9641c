"""`check_convergence`: whichever way a conversation arrives, the same is shown.

Here lives driving an Assembler through a delivery beside the naive oracle, and arriving at one
log in every plain way. Not here: what a single Definition does wrong (`watching`, `definitions`),
and the deliveries (`delivery`, `strategies`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from assembler.engine.assembler import Assembler
from assembler.engine.definition import Definition, GroupDefinition
from assembler.engine.events import Event
from assembler.testing.compare import compare
from assembler.testing.failures import CheckFailed, Problem
from assembler.testing.oracle import Oracle
from assembler.testing.scripts import Conversation, Operation
from assembler.testing.searching import Fault, search
from assembler.testing.strategies import operations
from assembler.testing.watching import Watched, watched
from assembler.testing.witnesses import Witness

__all__ = ["PAGES", "Stage", "check_convergence", "made", "told"]

PAGES = (1, 2, 3, 7, 50)
"""The page sizes that are tried."""

_LIVE = frozenset(("append", "emit", "settle", "liveness"))
Either = Definition | GroupDefinition
"""Of either kind."""
History = tuple[Operation, ...]


def check_convergence(
    definitions: Any,
    conversations: Any,
    *,
    max_examples: int = 100,
    seed: int = 0,
) -> None:
    """Fail when what these Definitions show depends on the way in which it arrived.

    `definitions` are a Definition, a list of them (Group Definitions too), or a function that
    makes them. `conversations` is a strategy (`conversations(events, deltas)`), a `Conversation`,
    a list of them or of Events; each is delivered in up to `max_examples` ways (`FAULTS`). Or it is
    one history, a tuple of `Operation`s such as `delivery` gives: that one alone is checked.

    After every operation what is shown equals what the naive `Oracle` and a fresh Assembler show.
    Then, with all attempts given up, live equals reloaded, paged by 1, 2, 3, 7 and 50, and
    forgotten and paged again.

    Raises `CheckFailed` with the smallest history found; the same `seed` finds the same one.
    `TypeError` for what is none of these, in one line; `DefinitionError` for Definitions that no
    Assembler takes. Costs some ten milliseconds for each example of each few Definitions.
    """
    stage = Stage(made("check_convergence", definitions))
    if _is_history(conversations):
        history = tuple(conversations)
        problem = stage.drive(history)
        if problem is None and all(each.call in _LIVE for each in history):
            problem = stage.arrive(history)
        if problem is not None:
            raise CheckFailed(problem, history)
        return
    failed = search(
        told("check_convergence", conversations), stage.check, max_examples=max_examples, start=seed
    )
    if failed is not None:
        raise failed


# --- what people give


def made(caller: str, definitions: Any) -> Callable[[], list[Either]]:
    """A function that gives these Definitions anew: copies of instances, or newly made ones."""
    if isinstance(definitions, (Definition, GroupDefinition)):
        return lambda: [_copy(caller, definitions)]
    if callable(definitions):
        return lambda: list(_newly_made(caller, definitions()))
    if isinstance(definitions, Iterable) and not isinstance(definitions, (str, bytes)):
        each = [made(caller, one) for one in definitions]
        return lambda: [definition for make in each for definition in make()]
    raise TypeError(
        f"{caller}: expected a Definition, a list of them, or a function that makes them, got "
        f"{definitions!r:.80}"
    )


def _newly_made(caller: str, given: Any) -> Iterator[Either]:
    """What a function gave, as it is; classes in a list of it are called."""
    if isinstance(given, (Definition, GroupDefinition)):
        yield given
    elif isinstance(given, (list, tuple)):
        for one in given:
            yield from _newly_made(caller, one() if isinstance(one, type) else one)
    else:
        raise TypeError(f"{caller}: expected a function that gives Definitions, it gave {given!r}")


def _copy(caller: str, definition: Either) -> Either:
    try:
        return deepcopy(definition)
    except Exception as error:
        name = type(definition).__name__
        raise TypeError(
            f"{caller}: {name} cannot be copied ({error}); give a function that makes one"
        ) from error


def told(caller: str, conversations: Any) -> SearchStrategy[tuple[Conversation, History]]:
    """Conversations with a delivery of each, out of all that may be given as such."""
    if isinstance(conversations, SearchStrategy):
        return conversations.flatmap(_delivered)
    if isinstance(conversations, Conversation):
        return _delivered(conversations)
    given = list(conversations) if isinstance(conversations, Iterable) else []
    if given and all(isinstance(each, Event) for each in given):
        return _delivered(Conversation.of(*given))
    if given and all(isinstance(each, Conversation) for each in given):
        return st.sampled_from(given).flatmap(_delivered)
    raise TypeError(
        f"{caller}: expected a strategy of Conversations, Conversations, Events or Operations, "
        f"got {conversations!r:.80}"
    )


def _delivered(conversation: Conversation) -> SearchStrategy[tuple[Conversation, History]]:
    return st.tuples(st.just(conversation), operations(conversation))


def _is_history(given: Any) -> bool:
    return (
        isinstance(given, Sequence)
        and bool(given)
        and all(isinstance(each, Operation) for each in given)
    )


# --- the stage


class Stage:
    """Where Definitions are driven: those of `make`, of which the kinds in `watch` are watched."""

    def __init__(
        self, make: Callable[[], list[Either]], watch: Callable[[Either], bool] | None = None
    ) -> None:
        self.make = make
        self._watch = watch
        first = make()
        self.views = sorted({each.target for each in first if each.target is not None})
        self.seen: Callable[[Sequence[Witness], History], None] | None = None
        Assembler(first, self.views)  # what no Assembler takes is said at once

    def check(
        self, example: tuple[Conversation, History], before: Problem | None = None
    ) -> Fault | None:
        """What is wrong with one delivery of one conversation.

        `before` was found in another one: when it is of one Definition, only its like counts,
        which is quick.
        """
        conversation, history = example
        done: list[Operation] = []
        if before is not None and not before.is_general:
            problem = self.watch(history, done)
            is_like = problem is not None and problem.is_like(before)
            return Fault(problem, tuple(done), self.watch) if problem and is_like else None
        problem = self.drive(history, done)
        if problem is not None:
            return Fault(problem, tuple(done), self.drive if problem.is_general else self.watch)
        done.clear()
        problem = self.arrive(conversation.script, done)
        return None if problem is None else Fault(problem, tuple(done), self.arrive)

    def watch(self, history: History, done: list[Operation] | None = None) -> Problem | None:
        """Deliver it, and look at nothing but what the watched Definitions do.

        `done` is told what was done until the problem.
        """
        return self._deliver(history, done, None)

    def drive(self, history: History, done: list[Operation] | None = None) -> Problem | None:
        """Deliver it; after every operation all must be as it is made from the facts alone."""
        return self._deliver(history, done, Oracle(self.make(), self.views))

    def _deliver(
        self, history: History, done: list[Operation] | None, oracle: Oracle | None
    ) -> Problem | None:
        definitions, witnesses = self._watched()
        assembler = Assembler(definitions, self.views)
        for operation in history:
            if done is not None:
                done.append(operation)
            ours = operation.perform(assembler)
            assembler.flush()
            problem = _seen(witnesses)
            if problem is None and oracle is not None:
                problem = self._compare(assembler, oracle, ours, operation.perform(oracle))
            if problem is not None:
                return problem
        if oracle is not None:
            fresh, known = self._fresh(oracle), oracle.definitions
            problem = _differs("as it arrived", assembler, "anew", fresh, known, self.views)
        for definition in definitions:
            if isinstance(definition, Watched):
                definition.ask_again()
        problem = _seen(witnesses) or (None if oracle is None else problem)
        if problem is None and self.seen is not None:
            self.seen(witnesses, history)
        return problem

    def _watched(self) -> tuple[list[Either], list[Witness]]:
        definitions: list[Either] = []
        witnesses: list[Witness] = []
        for each in self.make():
            one = each
            if self._watch is not None and self._watch(each):
                one, witness = watched(each)
                witnesses.append(witness)
            definitions.append(one)
        return definitions, witnesses

    def _compare(
        self,
        assembler: Assembler,
        oracle: Oracle,
        ours: type[Exception] | None,
        theirs: type[Exception] | None,
    ) -> Problem | None:
        if ours is not theirs:
            return Problem("refused", "", {}, (("engine", str(ours)), ("oracle", str(theirs))))
        known = oracle.definitions
        return _differs("as it arrived", assembler, "from the facts", oracle, known, self.views)

    def _fresh(self, oracle: Oracle) -> Assembler:
        """A new Assembler of the facts alone: E, L, and D in position order."""
        fresh = Assembler(self.make(), self.views)
        fresh.load(oracle.events, oracle.has_more)
        fresh.liveness(oracle.live)
        for delta in sorted(oracle.deltas, key=lambda each: (each.position, each.attempt)):
            fresh.emit(delta)
        fresh.flush()
        return fresh

    # --- every plain way to arrive at one log

    def arrive(self, script: History, done: list[Operation] | None = None) -> Problem | None:
        """Live, with everything given up at the end, is as reloaded and as paged."""
        live, conversation = Assembler(self.make(), self.views), Conversation(script)
        for operation in script:
            if done is not None:
                done.append(operation)
            operation.perform(live)
            live.flush()
        log = conversation.log
        if [event.seq for event in log] != list(range(1, len(log) + 1)):
            return None  # a part of one, which no reload can be compared with
        for name in sorted({delta.attempt for delta in conversation.deltas}):
            live.settle(name, "abandoned")
        live.flush()
        word = [each.arguments[0] for each in script if each.call == "liveness"]
        known = [each for each in self.make() if isinstance(each, Definition)]
        for name, other in self._ways(log, word[-1] if word else None):
            problem = _differs("live", live, name, other, known, self.views)
            if problem is not None:
                return problem
        for name, again in _forgotten(live, log):
            reloaded = self._loaded(log, live=word[-1] if word else None)
            problem = _differs(name, again, "reloaded", reloaded, known, self.views)
            if problem is not None:
                return problem
        return None

    def _ways(self, log: Sequence[Event], word: bool | None) -> Iterator[tuple[str, Assembler]]:
        yield "reloaded", self._loaded(log, live=word)
        for size in PAGES:
            if size < len(log) or size == PAGES[0]:
                yield f"paged by {size}", self._paged(log, size, live=word)

    def _loaded(self, log: Sequence[Event], *, live: bool | None, more: bool = False) -> Assembler:
        assembler = Assembler(self.make(), self.views)
        assembler.load(log, more)
        assembler.liveness(live)
        assembler.flush()
        return assembler

    def _paged(self, log: Sequence[Event], size: int, *, live: bool | None) -> Assembler:
        at = max(len(log) - size, 0)
        assembler = self._loaded(log[at:], live=live, more=at > 0)
        while at:
            first = max(at - size, 0)
            assembler.prepend(log[first:at], first > 0)
            assembler.flush()
            at = first
        return assembler


def _forgotten(live: Assembler, log: Sequence[Event]) -> Iterator[tuple[str, Assembler]]:
    """The older half is forgotten and paged in again; then everything."""
    for before in (len(log) // 2 + 1, len(log) + 1):
        live.evict(before)
        live.flush()
        first = live.window.first
        gone = log if first is None else log[: first - 1]
        live.prepend(gone, False)
        live.flush()
        yield f"forgotten before {before} and paged again", live


def _seen(witnesses: Sequence[Witness]) -> Problem | None:
    """The first problem that anybody saw."""
    for witness in witnesses:
        witness.look_again()
        if witness.problems:
            return witness.problems[0]
    return None


def _differs(
    one: str,
    left: Any,
    other: str,
    right: Any,
    definitions: Sequence[Definition],
    views: Sequence[str],
) -> Problem | None:
    """The first difference between two ways, in the words of `compare`."""
    try:
        compare(left, right, definitions=definitions, views=views)
    except AssertionError as error:
        what, *sides = str(error).split("\n")
        details = [("differs", what.removesuffix(":"))]
        for side, name in zip(sides, (one, other), strict=False):
            details.append((name, side.partition(":")[2].strip()))
        return Problem("differs", "", {}, tuple(details))
    return None
