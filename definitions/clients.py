"""What clients were sent while a recording runs: the expectations `acp`, `ag_ui`, `ai_sdk`.

One client of each protocol that the recording asks about watches it from its first line on; a new
Assembler is a client that comes back, and is sent a Snapshot. Not here: what a protocol sends
(`protocols`), the other expectations (`operations`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

from definitions.protocols import Acp, AgUi, AiSdk, Encoder, Frame

__all__ = ["EXPECTATIONS", "WATCHES"]

_ENCODERS: Mapping[str, Callable[[Collection[str]], Encoder]] = {
    "acp": lambda hidden: Acp(hidden=hidden),
    "ag_ui": lambda hidden: AgUi(hidden=hidden),
    "ai_sdk": lambda hidden: AiSdk(hidden=hidden),
}
"""By name of the expectation, what makes an encoder, from the names of the hidden tools."""

_MEMORY = "clients"


class _Clients:
    """The clients of one run."""

    def __init__(self, run: Any) -> None:
        operations = run.recording.operations
        self.names = [
            name
            for name in _ENCODERS
            if any(
                operation.name == "expect" and name in operation.fields for operation in operations
            )
        ]
        self.sent: dict[str, list[Frame]] = {name: [] for name in self.names}
        self._connect(run)

    def _connect(self, run: Any) -> None:
        hidden = run.recording.header.get("hidden_tools") or ()
        self._assembler = run.assembler
        self._encoders = {name: _ENCODERS[name](hidden) for name in self.names}

    def watch(self, run: Any) -> None:
        """Send what a flush changed."""
        view = run.views[0]
        if self._assembler is run.assembler:
            update = run.patches[view]
        else:
            self._connect(run)
            update = run.assembler.view(view).snapshot()
        for name, encoder in self._encoders.items():
            self.sent[name] += encoder.feed(update)


def _watch(run: Any) -> None:
    clients = run.memory.get(_MEMORY)
    if clients is None:
        clients = run.memory[_MEMORY] = _Clients(run)
    if clients.names:
        clients.watch(run)


def _expect(name: str, run: Any, value: Any) -> list[tuple[str, Any, Any]]:
    """The frames since the last line that asked."""
    sent = run.memory[_MEMORY].sent
    frames, sent[name] = sent[name], []
    found: list[tuple[str, Any, Any]] = run.missing_from(frames, value)
    return found


EXPECTATIONS: Mapping[str, Callable[[Any, Any], list[tuple[str, Any, Any]]]] = {
    name: partial(_expect, name) for name in _ENCODERS
}

WATCHES: Mapping[str, Callable[[Any], None]] = {"clients": _watch}
