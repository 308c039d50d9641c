"""Views are independent: what is done to one is never seen on another.

One Assembler shows a view all the time while the other view comes and goes; another one has never
heard of the other view. Not here: what is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assembler.engine.assembler import Assembler
from assembler.engine.definition import Definition
from assembler.recordings.arriving import Shown
from assembler.testing import Operation, conversations, operations
from definitions import catalog
from tests.definitions.bench import VIEWS
from tests.definitions.test_convergence import EVENTS, IS_DEEP
from tests.definitions.test_folding import DELTA_DATA

DELIVERED = operations(conversations(EVENTS, DELTA_DATA, turns=2, moments=7))


class Watched:
    """An Assembler, and which Nodes were built for which view."""

    def __init__(self, *views: str) -> None:
        self.built: list[tuple[str | None, str]] = []
        definitions = catalog()
        for each in definitions:
            if isinstance(each, Definition):
                each.build = self.counted(each.target, each.build)  # type: ignore[method-assign]
        self.assembler = Assembler(definitions, views)
        self.assembler.flush()

    def counted(self, target: str | None, build: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(build)
        def counting(context: Any, scope: Any) -> Any:
            self.built.append((target, context.key))
            return build(context, scope)

        return counting

    def built_for(self, view: str) -> list[str]:
        return [key for target, key in self.built if target == view]

    def nodes(self, view: str) -> dict[str, int]:
        return {node.key: id(node) for node in self.assembler.view(view)}


def toggle(watched: Watched, view: str) -> None:
    """The other view comes or goes: nothing is said of the one that stays, and nothing made."""
    (stays,) = {*VIEWS} - {view}
    assembler = watched.assembler
    nodes, built = watched.nodes(stays), watched.built_for(stays)
    revision = assembler.view(stays).revision
    active = view in assembler.flush()
    (assembler.deactivate if active else assembler.activate)(view)
    patches = assembler.flush()
    assert (view in patches) is not active
    assert not patches[stays]
    assert assembler.view(stays).revision == revision
    assert watched.nodes(stays) == nodes
    assert watched.built_for(stays) == built


@pytest.mark.parametrize(("stays", "comes_and_goes"), [VIEWS, VIEWS[::-1]])
@settings(
    max_examples=1_000 if IS_DEEP else 40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(delivered=DELIVERED, toggles=st.lists(st.booleans(), max_size=60))
def test_a_view_that_comes_and_goes_changes_no_other(
    stays: str, comes_and_goes: str, delivered: Sequence[Operation], toggles: list[bool]
) -> None:
    watched, alone = Watched(stays), Watched(stays)
    toggles += [False] * (len(delivered) - len(toggles))
    for operation, toggled in zip(delivered, toggles, strict=False):
        refused = operation.perform(watched.assembler)
        assert operation.perform(alone.assembler) is refused
        ours, theirs = watched.assembler.flush()[stays], alone.assembler.flush()[stays]
        assert ours.to_json() == theirs.to_json()
        assert watched.built_for(stays) == alone.built_for(stays)
        assert watched.assembler.view(stays).snapshot().to_json() == (
            alone.assembler.view(stays).snapshot().to_json()
        )
        if toggled:
            toggle(watched, comes_and_goes)
    assert alone.built_for(comes_and_goes) == []

    # Whenever it came: it shows what it would have shown from the beginning.
    from_the_beginning = Watched(*VIEWS)
    for operation in delivered:
        operation.perform(from_the_beginning.assembler)
        from_the_beginning.assembler.flush()
    watched.assembler.activate(comes_and_goes)
    watched.assembler.flush()
    ours, theirs = (Shown.by(each.assembler, VIEWS) for each in (watched, from_the_beginning))
    assert ours.difference(theirs) is None
