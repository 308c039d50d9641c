"""Making again what is dirty: step values, turn values, then findings and Nodes.

`place`, `notes` and `build` are called here and nowhere else. A Definition that raises places
nothing, or shows its error; under `strict` it raises, and all of it stays dirty.
"""

from __future__ import annotations

from collections.abc import Collection

from assembler.engine.contexts import ContextView, Entry, blame
from assembler.engine.definition import Anomaly, Node
from assembler.engine.dependencies import BUILD, PHASES, STEP_VALUE, TURN_VALUE, Phase
from assembler.engine.derived import Derived
from assembler.engine.errors import DefinitionError
from assembler.engine.events import Position
from assembler.engine.locations import TURN_END
from assembler.engine.scopes import ScopeView

__all__ = ["Making"]


class Making:
    """One pass over what is dirty, for the active `views`."""

    def __init__(self, derived: Derived, views: Collection[str]) -> None:
        self._derived = derived
        self._views = views

    def make(self) -> dict[str, dict[str, Node | None]]:
        """Make again what is dirty: step values, turn values, then findings and Nodes.

        Installs values and findings; the Nodes are given back. When a Definition raises under
        `strict`, all of it stays dirty.
        """
        done: tuple[list[Entry], ...] = ([], [], [])
        try:
            for phase in (STEP_VALUE, TURN_VALUE):
                dirty = self._derived.dirty[phase]
                while dirty:
                    entry = next(iter(dirty))
                    self._publish(entry, phase)
                    done[phase].append(entry)
                    del dirty[entry]
            return self._build_all(done[BUILD])
        except BaseException:
            for phase, entries in zip(PHASES, done, strict=True):
                self._derived.dirty[phase].update(dict.fromkeys(entries))
            raise

    def _publish(self, entry: Entry, phase: Phase) -> None:
        """What one Context publishes on its step, or on its turn."""
        on_turn = phase == TURN_VALUE
        spot = None
        if entry.turn is not None and (on_turn or entry.step is not None):
            spot = (entry.spec.kind, entry.turn, TURN_END if on_turn else entry.step or 0)
        value = None
        scope = ScopeView(self._derived.facts, entry, phase)
        if spot is not None and entry.failure is None and entry.spec.place is not None:
            try:
                value = entry.spec.place(ContextView(entry), scope)
            except Exception as error:
                if self._derived.strict:
                    raise blame(error, entry.spec, "place", entry.key) from error
                self._misplaced(entry, phase, failed=True)
            else:
                self._misplaced(entry, phase, failed=False)
        else:
            self._misplaced(entry, phase, failed=False)
        self._derived.dependencies.record(entry, phase, tuple(scope.reads))
        places = self._derived.facts.places
        if spot is None or value is None:
            self._derived.published(places.clear(entry, turn=on_turn))
        else:
            self._derived.published(places.put(entry, spot, value))

    def _misplaced(self, entry: Entry, phase: Phase, *, failed: bool) -> None:
        """Remember whether `place` raised; its finding belongs to the next build."""
        bit = 1 << phase
        before = entry.misplaced
        entry.misplaced = before | bit if failed else before & ~bit
        if entry.misplaced != before:
            self._derived.dirty[BUILD][entry] = None

    def _build_all(self, done: list[Entry]) -> dict[str, dict[str, Node | None]]:
        dirty = self._derived.dirty[BUILD]
        made: dict[str, dict[str, Node | None]] = {
            name: dict.fromkeys(keys) for name, keys in self._derived.orphans.items()
        }
        results = [(entry, *self._build(entry)) for entry in dirty]
        done += dirty
        dirty.clear()
        for keys in self._derived.orphans.values():
            keys.clear()
        for entry, node, found in results:
            if entry.findings != found:
                self._derived.findings.change(entry.findings, found)
                entry.findings = found
            nodes = made.get(entry.spec.target or "")
            if nodes is None:
                continue
            key = None if node is None else node.key
            if entry.node_key is not None and entry.node_key != key:
                nodes.setdefault(entry.node_key, None)
            if key is not None:
                nodes[key] = node
            entry.node_key = key
        return made

    def _build(self, entry: Entry) -> tuple[Node | None, tuple[Anomaly, ...]]:
        """The Node and the findings of one Context."""
        scope = ScopeView(self._derived.facts, entry, BUILD)
        context = ContextView(entry)
        found = [
            Anomaly("early-update", entry.key, match.position)
            for match in entry.matches[: entry.start_at or 0]
        ]
        if entry.anchor_failed:
            found.append(Anomaly("definition-error", entry.key, entry.lead.position))
        if entry.misplaced:
            found.append(Anomaly("definition-error", entry.key, entry.anchor))
        if entry.failure is not None:
            found.append(Anomaly("definition-error", entry.key, entry.failure.position))
            node = self._error_node(entry, entry.failure.name, entry.failure.site)
        else:
            self._note(entry, context, scope, found)
            node = self._build_node(entry, context, scope, found)
        self._derived.dependencies.record(entry, BUILD, tuple(scope.reads))
        return node, tuple(dict.fromkeys(found))

    def _note(
        self, entry: Entry, context: ContextView, scope: ScopeView, found: list[Anomaly]
    ) -> None:
        if entry.spec.notes is None:
            return
        try:
            noted = [
                Anomaly(str(kind), entry.key, Position(int(at)))
                for kind, at in entry.spec.notes(context, scope)
            ]
        except Exception as error:
            if self._derived.strict:
                raise blame(error, entry.spec, "notes", entry.key) from error
            noted = [Anomaly("definition-error", entry.key, entry.anchor)]
        found += noted

    def _build_node(
        self, entry: Entry, context: ContextView, scope: ScopeView, found: list[Anomaly]
    ) -> Node | None:
        spec = entry.spec
        if spec.target not in self._views:
            return None
        try:
            node = spec.build(context, scope)
            if node is None:
                return None
            if not isinstance(node, Node):
                raise TypeError(f"build gives a Node or None, not {node!r:.80}")  # noqa: TRY301
            if node.kind not in spec.shows or node.id != entry.id:
                known = ", ".join(sorted(spec.shows))
                raise DefinitionError(  # noqa: TRY301 - found below like any other
                    f"build of {spec.kind!r} gave {node.kind}:{node.id}; expected a kind of "
                    f"{known} and the id {entry.id!r}"
                )
            key = entry.key if node.kind == spec.kind else ""
            return node.placed(entry.anchor, entry.turn, entry.step, key)
        except Exception as error:
            if self._derived.strict:
                raise blame(error, spec, "build", entry.key) from error
            found.append(Anomaly("definition-error", entry.key, entry.anchor))
            return self._error_node(entry, type(error).__name__, "build")

    def _error_node(self, entry: Entry, name: str, site: str) -> Node | None:
        if entry.spec.target not in self._views:
            return None
        data = {"error": {"name": name, "in": site}}
        node = Node(entry.spec.kind, entry.id, data)
        return node.placed(entry.anchor, entry.turn, entry.step)
