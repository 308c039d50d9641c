"""What recordings say about this business: operations and expectations beyond the engine's.

The recording runner of `assembler` finds this module by entry point (`assembler.operations`); what
each mapping means stands at `assembler.plugins.Operations`. Here lives data and what compares; no
reading of files, nor what the backend's lines do (`driving`). An operation without a runner is
known and cannot run yet: a recording that has one counts as skipped, never as passed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from assembler.engine.values import same
from definitions import clients, describing, digesting, driving

__all__ = [
    "DIGESTS",
    "EXPECTATIONS",
    "EXPECTS",
    "FIELDS",
    "LACKS",
    "NEEDS",
    "REASONS",
    "RUNNERS",
    "WATCHES",
]

# What each field holds; a `?` behind it: the field may be left out.
_DESCRIBING = {
    "call_id": "text",
    "tool": "text?",
    "input": "any?",
    "text": "text?",
    "attempt": "text?",
    "is_error": "boolean?",
}

FIELDS: Mapping[str, Mapping[str, str]] = {
    "attempt": {
        "attempt": "text",
        "number": "integer?",
        "turn": "integer",
        "step": "integer",
        "provider": "text",
    },
    "chunk": {"attempt": "text", "data": "any?", "sse": "text?", "hex": "text?"},
    "finish": {"attempt": "text"},
    "abandon": {"attempt": "text", "reason": "text"},
    "dispatch": {"call_id": "text"},
    "result": {"call_id": "text", "content": "any?", "is_error": "boolean?"},
    "hint": _DESCRIBING,
    "request": _DESCRIBING,
    "describe": _DESCRIBING,
    "withdraw": _DESCRIBING,
    "reconnect": {"page": "integer"},
}

EXPECTS: Mapping[str, str] = {
    "calls": "list",
    "prepared": "object",
    "described": "list",
    "partial": "object",
    "acp": "list",
    "ag_ui": "list",
    "ai_sdk": "list",
}

NEEDS: Mapping[str, str] = {
    "attempt": "adapter",
}

RUNNERS = {**driving.RUNNERS, **describing.RUNNERS}
LACKS = driving.LACKS


def _partial(run: Any, value: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """The partial view of each named call's arguments, exactly."""
    differences = []
    for call_id, expected in value.items():
        node = run.node(f"tool:{call_id}")
        if node is None:
            differences.append((call_id, expected, "no such call is visible"))
        elif not same(expected, node.partial):
            differences.append((call_id, expected, node.partial))
    return differences


EXPECTATIONS: Mapping[str, Callable[[Any, Any], list[tuple[str, Any, Any]]]] = {
    **driving.EXPECTATIONS,
    **describing.EXPECTATIONS,
    **clients.EXPECTATIONS,
    "partial": _partial,
}

WATCHES = clients.WATCHES

DIGESTS = {"default": digesting.digest}
REASONS = digesting.REASONS
