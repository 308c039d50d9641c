"""What recordings may expect of this business."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from definitions.operations import EXPECTATIONS, EXPECTS


def test_partial_arguments_are_compared_exactly() -> None:
    shown: dict[str, Any] = {"tool:c1": SimpleNamespace(partial={"path": "a", "n": 1})}
    run = SimpleNamespace(node=shown.get)
    partial = EXPECTATIONS["partial"]
    assert EXPECTS["partial"] == "object"
    assert partial(run, {"c1": {"path": "a", "n": 1}}) == []
    less = {"path": "a"}
    assert partial(run, {"c1": less}) == [("c1", less, {"path": "a", "n": 1})]
    assert partial(run, {"c1": {"path": "a", "n": True}}) != []
    assert partial(run, {"c2": {}, "c1": less}) == [
        ("c2", {}, "no such call is visible"),
        ("c1", less, {"path": "a", "n": 1}),
    ]
