"""`compare`: says in words where two of Assembler and Oracle show something different.

Not here: driving them (`strategies`) and deciding who is right (`oracle`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from assembler.engine.definition import Definition, Match, Node
from assembler.engine.events import pair
from assembler.engine.values import same

__all__ = ["compare"]


def compare(
    left: Any,
    right: Any,
    *,
    definitions: Iterable[Any] | None = None,
    views: Iterable[str] | None = None,
) -> None:
    """Raise `AssertionError` with the first difference between what the two show.

    Each is an `Assembler` (flushed before) or an `Oracle` of the same Definitions. Compared are
    States, Matches and Locations of all Contexts, findings, the Nodes with all their fields and
    their order, groups without their keys, and the window. `definitions` and `views` are only
    needed when neither of the two says which they are. O(everything).
    """
    known = _first("definitions", right, left) if definitions is None else definitions
    active = _first("views", right, left) if views is None else views
    _equal("window", "", _window(left), _window(right))
    for kind in [each.kind for each in known if isinstance(each, Definition)]:
        _compare_contexts(kind, left, right)
    _equal("findings", "", _findings(left), _findings(right))
    for view in sorted(active):
        _compare_nodes(view, left.view(view).nodes, right.view(view).nodes)
        _compare_groups(view, left.view(view).groups, right.view(view).groups)


def _first(name: str, *sides: Any) -> Iterable[Any]:
    for side in sides:
        if hasattr(side, name):
            found: Iterable[Any] = getattr(side, name)
            return found
    raise TypeError(f"compare: say which {name} to compare")


def _equal(what: str, key: str, left: Any, right: Any) -> None:
    if type(left) is not type(right) or left != right:
        name = f"{what} of {key}" if key else what
        raise AssertionError(f"{name}:\n  left:  {left!r}\n  right: {right!r}")


def _window(side: Any) -> tuple[Any, Any, bool]:
    return side.window.first, side.window.last, side.window.has_more


def _findings(side: Any) -> list[tuple[str, str, tuple[int, int]]]:
    return sorted((odd.kind, odd.key, pair(odd.position)) for odd in side.findings())


def _compare_contexts(kind: str, left: Any, right: Any) -> None:
    ours = {context.id: context for context in left.contexts(kind)}
    theirs = {context.id: context for context in right.contexts(kind)}
    _equal("Contexts", f"kind {kind}", sorted(ours), sorted(theirs))
    for id_, context in ours.items():
        _compare_context(f"{kind}:{id_}", context, theirs[id_])
        for side in (left, right):
            _equal("state()", f"{kind}:{id_}", side.state(kind, id_), context.state)


def _compare_context(key: str, left: Any, right: Any) -> None:
    _equal("Matches", key, list(map(_match, left.matches)), list(map(_match, right.matches)))
    _equal("start", key, left.start and _match(left.start), right.start and _match(right.start))
    _equal("State", key, left.state, right.state)
    _equal("Location", key, left.location, right.location)


def _match(match: Match) -> tuple[tuple[int, int], str | None, str, str]:
    return pair(match.position), match.attempt, match.type, match.role.value


def _compare_nodes(view: str, left: Sequence[Node], right: Sequence[Node]) -> None:
    keys = [[node.key for node in side] for side in (left, right)]
    _equal("Nodes in order", f"view {view}", *keys)
    for ours, theirs in zip(left, right, strict=True):
        for name in ("kind", "id", "anchor", "turn", "step"):
            _equal(name, f"Node {ours.key}", getattr(ours, name), getattr(theirs, name))
        if not (same(ours.data, theirs.data) and ours.equals(theirs)):
            wires = [side.to_json()["data"] for side in (ours, theirs)]
            raise AssertionError(_words(f"data of Node {ours.key}", *wires))


def _words(what: str, left: Any, right: Any) -> str:
    """The first place where two JSON values differ."""
    if isinstance(left, dict) and isinstance(right, dict):
        for key in [*left, *right]:
            if key not in left or key not in right or not same(left[key], right[key]):
                return _words(f"{key} in {what}", left.get(key), right.get(key))
    return f"{what}:\n  left:  {left!r}\n  right: {right!r}"


def _compare_groups(view: str, left: Sequence[Any], right: Sequence[Any]) -> None:
    members = [[(group.kind, group.members) for group in side] for side in (left, right)]
    _equal("groups", f"view {view}", *members)
    for ours, theirs in zip(left, right, strict=True):
        if not ours.equals(theirs, keys=False):
            wires = [side.to_json() for side in (ours, theirs)]
            for wire in wires:
                del wire["key"]
            raise AssertionError(_words(f"group of {ours.members[0]}", *wires))
