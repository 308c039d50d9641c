"""`CheckFailed`: what is wrong with a Definition, what to do, and the smallest history of it.

Here lives what is said about each problem. Not here: finding them (`watching`, `convergence`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from assembler.engine.events import Delta, Event
from assembler.engine.values import thaw
from assembler.testing.scripts import Operation

__all__ = ["PROBLEMS", "CheckFailed", "Problem"]

_FROZEN = "Give a new State instead: `msgspec.structs.replace(state, …)`, `{{**state, …}}`."

PROBLEMS: dict[str, tuple[str, str]] = {
    # --- one call of one method
    "raised": (
        "`{method}` raised {error}",
        "Every item of the types in `takes` reaches `match`, and whatever it takes reaches the "
        "fold: give None for what is not yours, and read with `data.get(…)` what may be missing.",
    ),
    "raised-without-state": (
        "`{method}` raised {error}",
        "`context.state` is None where the START of an object is not loaded: an older page may "
        "hold it. Begin with `if context.state is None: return None`, or let `match` give START "
        "for whatever can be the first thing known.",
    ),
    "impure": (
        "`{method}` gave two different answers for the same arguments",
        "Does it read a clock, randomness or something that it keeps itself? Take the time from "
        "`match.time`, names from the item, and keep everything in the State.",
    ),
    "clock": (
        "`{method}` reads a clock ({asked})",
        "What it shows would be another thing after a reload. Take the time from `match.time`; "
        "leave durations that still run to the client.",
    ),
    "randomness": (
        "`{method}` asks for randomness ({asked})",
        "A reload would show something else. Take names and ids from the item.",
    ),
    "surroundings": (
        "`{method}` reads what is around the process ({asked})",
        "Another server would show something else. Give it to the Definition when it is made.",
    ),
    "process": (
        "`{method}` asks for `{asked}`, which is another number in every process",
        "Use the value itself as a key, or `hashlib` for a digest that stays.",
    ),
    "changed-state": (
        "`{method}` changed a State that it was given",
        "Others still hold that State, and it is folded on from again. " + _FROZEN,
    ),
    "changed-earlier-state": (
        "a State that was given out earlier has changed",
        "Something mutable is shared between States, or kept by the Definition. " + _FROZEN,
    ),
    "changed-item": ("`{method}` changed the item", "Events and deltas are facts: only read them."),
    "changed-other": (
        "`{method}` changed what it read of another Context",
        "What `reader` and `scope` give belongs to others: only read it.",
    ),
    "changed-itself": (
        "`{method}` changed what the Definition keeps ({kept})",
        "One instance serves every conversation and sees items in any order. Keep what you need "
        "in the State, and hold no mutable data.",
    ),
    "remembers": (
        "`match` gave another answer for an item because of the items before it",
        "Pages and reconnects bring items in any order. Read the id from the item alone; when it "
        "does not hold one, its writer has to add it.",
    ),
    "late-read": (
        "{reader} was used after `{method}` had returned",
        "It answers for that one call, and records what was read. Put what you need into the "
        "State (`start`) or the Node (`build`).",
    ),
    "kept-reader": (
        "`{method}` keeps the {reader} in what it gives",
        "It answers for that one call. Ask it there, and keep the answer.",
    ),
    "no-state": (
        "`{method}` gave None",
        "None means that there is no State. Did it forget to `return`? Give the same object when "
        "nothing changed.",
    ),
    "opaque-state": (
        "two equal States of the class {cls} do not compare equal",
        "Make it a frozen `msgspec.Struct` (or a frozen attrs class, or a frozen dataclass).",
    ),
    "extend": (
        "`extend` gave another State than `update` one by one",
        "`extend` is `update` for a run at once, however the run is cut. Leave it out if you are "
        "not sure: it is only for speed.",
    ),
    "wrong-kind": ("`{method}` gave {given}", "Expected: {expected}."),
    "no-json": (
        "`{method}` gave data that is no JSON: {error}",
        "Use texts, numbers, true, false, None, lists and mappings with text keys; `Text` for "
        "what grows.",
    ),
    "reads-text": (
        "`{method}` reads growing text",
        "It is not asked again when nothing but text grew. Let `build` put what it needs into "
        "the Node, in another field.",
    ),
    "reads-order": (
        "`summary` depends on the order in `members.told`",
        "What members tell has no order, and a reload may give another one: sort it.",
    ),
    # --- a run as a whole
    "forgets-id": (
        "`match` puts everything into one id, {id!r}, which is not in the item",
        "Things that have nothing to do with each other overwrite each other. Take the id from a "
        "field of the item; if a conversation has only one of it, say `singles={{{kind!r}}}`.",
    ),
    "took-nothing": (
        "`match` took none of {count} items",
        "Nothing was checked. Do `takes`, `match` and the given data fit together?",
    ),
    "never-started": (
        "no item was a START, in {count} items that `match` took",
        "Without a start there is no State. Let `match` give START for the first thing that can "
        "be known of an object, or give data of that type.",
    ),
    "never-shown": (
        "it shows on {target!r}, and `build` never gave a Node",
        "Its Nodes were not checked. Give data with which it is visible, or more examples.",
    ),
    "never-grouped": (
        "`joins` gave None for every Node",
        "No group was checked. Give `beside` the Definitions whose Nodes it groups, and data with "
        "which they are visible.",
    ),
    # --- the law
    "differs": (
        "what is shown depends on the way in which it arrived",
        "Given the same events and deltas, everybody has to see the same. Does it keep something "
        "outside of its State, on the class or in a module, or read it from another Definition?",
    ),
    "refused": (
        "the engine and the oracle disagree about an operation",
        "That is a fault of the engine, not of a Definition: please report it.",
    ),
}
"""What each problem is, and what to do about it. The keys are `CheckFailed.problem`."""


class Problem(NamedTuple):
    """Something that is wrong, before anybody knows the history of it.

    `words` fill the sentence of its `name`; `details` are shown below it, with their labels.
    """

    name: str
    kind: str
    words: dict[str, Any]
    details: tuple[tuple[str, str], ...] = ()

    @property
    def is_general(self) -> bool:
        """Whether it says that something is wrong, and not what."""
        return not self.kind

    def is_like(self, other: Problem) -> bool:
        """The same mistake, with other values."""
        mine, theirs = (self.name, self.kind, self.method), (other.name, other.kind, other.method)
        return mine == theirs

    @property
    def method(self) -> str:
        return str(self.words.get("method", ""))

    @property
    def trouble(self) -> str:
        return PROBLEMS[self.name][0].format(**self.words)

    @property
    def advice(self) -> str:
        return PROBLEMS[self.name][1].format(kind=self.kind, **self.words)


class CheckFailed(AssertionError):  # noqa: N818 - what a test says: the check failed
    """A Definition breaks the law.

    `problem` is a key of `failures.PROBLEMS`, `kind` the Definition's, `method` the method in which
    it shows ("" when in none). `trouble` and `advice` are the two sentences, `details` what was
    seen. `history` is the smallest that was found: do it again with
    `for operation in failed.history: operation.perform(assembler)`, or hand it to
    `check_convergence`.
    """

    def __init__(self, problem: Problem, history: Sequence[Operation]) -> None:
        self.problem = problem.name
        self.kind = problem.kind
        self.method = problem.method
        self.trouble = problem.trouble
        self.advice = problem.advice
        self.details = problem.details
        self.history = tuple(history)
        super().__init__("\n".join(self._lines()))

    def _lines(self) -> list[str]:
        whose = f"{self.kind}: " if self.kind else ""
        lines = [f"{whose}{self.trouble}.", f"  {self.advice}"]
        lines += [""] if self.details else []
        width = max((len(label) for label, _ in self.details), default=0)
        lines += [f"  {label:{width}}  {text}" for label, text in self.details]
        if self.history:
            many = len(self.history)
            lines += ["", f"The smallest history found ({many} operation{'s'[: many > 1]}):"]
            lines += [f"  {at:>2}  {_line(each)}" for at, each in enumerate(self.history, 1)]
        return lines


_SHOWN_MAX = 8
"""So many events of a page are shown."""


def _line(operation: Operation) -> str:
    """An operation on one line, as people read it."""
    call, arguments = operation.call, operation.arguments
    if call in {"load", "prepend"} and len(arguments) > 1:
        page, more = arguments
        events = "no events"
        if page:
            events = f"events {page[0].seq} to {page[-1].seq}"
        shown = "".join(f"\n{'':14}{_word(event)}" for event in page[:_SHOWN_MAX])
        shown += f"\n{'':14}…" if len(page) > _SHOWN_MAX else ""
        return f"{call:<8} {events}{', older ones exist' if more else ''}{shown}"
    return f"{call:<8} " + "  ".join(map(_word, arguments))


def _word(value: Any) -> str:
    if isinstance(value, Event):
        return f"{value.seq}  {value.type}  {_json(value.data)}"
    if isinstance(value, Delta):
        where = f"{value.attempt}[{value.ordinal}] (turn {value.turn}, step {value.step}"
        number = "" if value.number == 1 else f", number {value.number}"
        return f"{where}{number}, behind {value.after})  {value.type}  {_json(value.data)}"
    return str(value)


def _json(data: Any) -> str:
    return json.dumps(thaw(data), ensure_ascii=False)
