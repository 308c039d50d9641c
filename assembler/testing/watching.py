"""Definitions under watch: each call of the author's is done twice, with a look around both.

`Watched` stands in the place of a Definition and answers as it does; what it sees goes to a
`Witness`. Here lives what each method must give. Not here: what is looked for in every call
(`careful`), who calls (an Assembler), and with which history (`convergence`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

from assembler.engine.definition import (
    START,
    Cadence,
    Context,
    Definition,
    GroupDefinition,
    Match,
    Node,
    Reader,
    Role,
    Scope,
)
from assembler.engine.events import Event, Item
from assembler.engine.values import NODE_DEPTH_MAX, freeze_object
from assembler.testing.careful import Careful
from assembler.testing.portraits import holds, portrait
from assembler.testing.watching_groups import WatchedGroup
from assembler.testing.witnesses import Lent, Witness

__all__ = ["Watched", "watched"]

_ASKED = (
    *("match", "start", "update", "extend", "anchor", "place", "notes", "build"),
    *("cadence", "retires"),
)
_RUN_MAX = 6
"""So many updates are compared with one `extend`."""


def _copy(definition: Any) -> Any:
    """A new instance like this one; None for one that cannot be copied."""
    try:
        return deepcopy(definition)
    except Exception:
        return None


class Watched(Definition, Careful):
    """A Definition that answers as the author's does, and tells a Witness what it sees.

    It has the methods that the author wrote and no others, so that the engine treats it alike.
    """

    def __init__(self, definition: Definition, witness: Witness) -> None:
        Careful.__init__(self, definition, witness)
        self._pristine = _copy(definition)
        # By the id of a State: it, an earlier one, and the updates that lead from that to it.
        self._runs: dict[int, tuple[Any, Any, tuple[Match, ...]]] = {}
        self.kind = definition.kind  # type: ignore[misc] # one class stands for many kinds
        self.target, self.takes = definition.target, definition.takes
        self.names, self.shows = definition.names, definition.shows
        for name in _ASKED:
            own = getattr(type(definition), name, None)
            if own is not getattr(Definition, name) or name in vars(definition):
                setattr(self, name, getattr(self, f"_{name}"))

    # --- whose an item is

    def _match(self, item: Item) -> Any:
        witness, given = self.witness, [("item", item)]
        found = self.twice("match", given, lambda: self.definition.match(item))
        witness.answers.append((item, found))
        if found is None:
            return None
        pair = found if type(found) is tuple and len(found) == 2 else (None, None)  # noqa: PLR2004
        if type(pair[0]) is not str or not isinstance(pair[1], Role):
            self.wrong("match", found, "`(id, START)`, `(id, UPDATE)` with a text as id, or None")
            return found
        if found[1] is START:
            witness.starts.append((found[0], item))
        new = _copy(self._pristine)
        if new is not None:
            self._compare_match(item, found, new.match(item), "a new one")
        return found

    def _compare_match(self, item: Item, found: Any, again: Any, who: str) -> None:
        if portrait(found) != portrait(again):
            seen = [("item", item), ("it gave", found), (f"{who} gives", again)]
            self.witness.tell("remembers", seen, method="match")

    def ask_again(self) -> None:
        """Ask for all items once more, the newest first: the answers are the same."""
        for item, found in reversed(self.witness.answers):
            again = self.definition.match(item)
            self._compare_match(item, found, again, "later it")

    def _cadence(self, match: Match) -> Any:
        found = self.twice(
            "cadence", [("match", match.item)], lambda: self.definition.cadence(match)
        )
        if not isinstance(found, Cadence):
            self.wrong("cadence", found, "NOW, FRAME or NONE")
        return found

    def _retires(self, event: Event) -> Any:
        found = self.twice("retires", [("item", event)], lambda: self.definition.retires(event))
        if found is not None and type(found) is not str:
            self.wrong("retires", found, "the name of an attempt, or None")
        return found

    # --- the fold

    def _start(self, match: Match, reader: Reader) -> Any:
        given = [("match", match.item)]
        state = self.twice("start", given, lambda lent: self.definition.start(match, lent), reader)
        self._keep(state, "start")
        again = self.definition.start(match, reader)
        if type(again) is type(state) and portrait(again) == portrait(state) and again != state:
            self.witness.tell("opaque-state", method="start", cls=type(state).__name__)
        return state

    def _update(self, state: Any, match: Match) -> Any:
        given = [("state", state), ("match", match.item)]
        found = self.twice("update", given, lambda: self.definition.update(state, match))
        self._keep(found, "update")
        if "extend" in vars(self):
            self._compare_run(state, match, found)
        return found

    def _compare_run(self, state: Any, match: Match, found: Any) -> None:
        """Compare the updates that led here with one `extend`."""
        last, base, run = self._runs.get(id(state), (None, state, ()))
        if last is not state or len(run) == _RUN_MAX:
            base, run = state, ()
        run = (*run, match)
        self._runs[id(found)] = found, base, run
        if len(run) == 1:
            return
        items = [("match", each.item) for each in run]
        given = [("state", base), *items]
        at_once = self.safely("extend", given, lambda: self.definition.extend(base, run))
        if portrait(at_once) != portrait(found):
            seen = [*given, ("at once", at_once), ("one by one", found)]
            self.witness.tell("extend", seen, method="extend")

    def _extend(self, state: Any, matches: Sequence[Match]) -> Any:
        """A run at once equals its updates one by one, also when it is cut."""
        items = [("match", match.item) for match in matches]
        given = [("state", state), *items]
        found = self.twice("extend", given, lambda: self.definition.extend(state, matches))
        one = state
        for match in matches:
            one = self.definition.update(one, match)
        half = len(matches) // 2
        cut = self.definition.extend(state, matches[:half]) if half else state
        cut = self.definition.extend(cut, matches[half:])
        for name, other in (("one by one", one), ("in two runs", cut)):
            if portrait(found) != portrait(other):
                seen = [*given, ("at once", found), (name, other)]
                self.witness.tell("extend", seen, method="extend")
                break
        self._keep(found, "extend")
        return found

    def _keep(self, state: Any, method: str) -> None:
        if state is None:
            self.witness.tell("no-state", method=method)
        if holds(portrait(state), Lent):
            self.witness.tell("kept-reader", method=method, reader="reader")
        self.witness.hold(state, method)

    # --- how it shows

    def _anchor(self, context: Context) -> Any:
        given = [("state", context.state)]
        found = self.twice("anchor", given, lambda: self.definition.anchor(context))
        if not any(found is match for match in context.matches):
            self.wrong("anchor", found, "one of `context.matches`")
        return found

    def _place(self, context: Context, scope: Scope) -> Any:
        found = self._looking("place", context, scope)
        if found is not None:
            if holds(portrait(found), Lent):
                self.witness.tell("kept-reader", method="place", reader="scope")
            self.witness.hold(found, "place")
        return found

    def _notes(self, context: Context, scope: Scope) -> Any:
        found = self._looking("notes", context, scope, list)
        for note in found:
            pair = note if isinstance(note, tuple) and len(note) == 2 else (None, None)  # noqa: PLR2004
            if not (isinstance(pair[0], str) and isinstance(pair[1], int)):
                self.wrong("notes", note, "pairs of a text and a position (`match.position`)")
        return found

    def _build(self, context: Context, scope: Scope) -> Any:
        node = self._looking("build", context, scope)
        if node is None:
            return None
        self.witness.shown += 1
        if not isinstance(node, Node):
            self.wrong("build", node, "a Node, or None")
            return node
        kinds = self.shows or {self.kind}
        if node.kind not in kinds or node.id != context.id:
            kind = " or ".join(repr(each) for each in sorted(kinds))
            name = f"Node({node.kind!r}, {node.id!r}, …)"
            self.wrong("build", name, f"a Node of the kind {kind} and the id {context.id!r}")
        try:
            freeze_object(node.data, NODE_DEPTH_MAX)
        except Exception as error:  # whatever it is that is no mapping of JSON values
            self.witness.tell("no-json", [("data", node.data)], method="build", error=error)
        return node

    def _looking(
        self, method: str, context: Context, scope: Scope, whole: Callable[[Any], Any] | None = None
    ) -> Any:
        """A method that looks at a Context and around it; `whole` makes a list of a generator."""
        ask = getattr(self.definition, method)

        def call(lent: Any) -> Any:
            return ask(context, lent) if whole is None else whole(ask(context, lent))

        return self.twice(method, [("state", context.state)], call, scope)


def watched(
    definition: Definition | GroupDefinition,
) -> tuple[Definition | GroupDefinition, Witness]:
    """What stands in the place of `definition`, and what will have seen it."""
    witness = Witness(definition.kind)
    if isinstance(definition, GroupDefinition):
        return WatchedGroup(definition, witness), witness
    return Watched(definition, witness), witness
