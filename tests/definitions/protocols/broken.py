"""Encoders with one fault each, which `check_encoder` must find. Not here: tests."""

from __future__ import annotations

from typing import Any

from assembler.engine.definition import Node
from assembler.engine.patches import Patch, Snapshot
from definitions.protocols import Acp, Frame

__all__ = ["BROKEN"]


class ForgetsDiscards(Acp):
    def _remove(self, gone: list[str], changed: dict[str, Node]) -> list[Frame]:
        super()._remove(gone, changed)
        return []


class BundlesDiscards(Acp):
    def _remove(self, gone: list[str], changed: dict[str, Node]) -> list[Frame]:
        frames = super()._remove(gone, changed)
        ids = [frame["toolCallId"] for frame in frames]
        return [{**frames[0], "_meta": {**frames[0]["_meta"], "all": ids}}] if frames else []


class SpeaksOn(Acp):
    """Tells what comes behind the last frame."""

    def _tell_call(self, node: Node) -> list[Frame]:
        if node.id not in self._over:
            return super()._tell_call(node)
        update = {"sessionUpdate": "tool_call_update", "toolCallId": node.id, "_meta": {}}
        return [{**update, "status": "completed"}]


class FiltersLate(Acp):
    """Hides only what runs."""

    def _tell_call(self, node: Node) -> list[Frame]:
        hidden = self._hidden
        self._hidden = hidden if node.data["stage"] != "preparing" else frozenset()
        try:
            return super()._tell_call(node)
        finally:
            self._hidden = hidden


class ReloadsSilently(Acp):
    """Tells of what runs only when it changes."""

    def feed(self, update: Snapshot | Patch) -> list[Frame]:
        frames = super().feed(update)
        return frames if isinstance(update, Patch) else []


class LeavesThemOpen(Acp):
    """Ends what is unsettled only after a reload."""

    def _close(self, open_now: Any, nodes: Any) -> list[Any]:
        super()._close(open_now, nodes)
        return []


class SaysTextTwice(Acp):
    """After a merge, or in a message that is settled, text comes whole again."""

    def _tell_answer(self, node: Node) -> list[Frame]:
        if node.data["status"] == "settled":
            self._said.pop(node.key, None)
        return super()._tell_answer(node)


class SendsTuples(Acp):
    def feed(self, update: Snapshot | Patch) -> list[Frame]:
        frames = super().feed(update)
        return [
            {**frame, "content": tuple(frame["content"])} if "content" in frame else frame
            for frame in frames
        ]


class KeepsItsFrames(Acp):
    """Compares with what it gave away."""

    def _tell_call(self, node: Node) -> list[Frame]:
        frames = super()._tell_call(node)
        card = self._cards.get(node.id)
        if card is not None and frames:
            card.sent = frames[-1]
        return frames


BROKEN: tuple[type[Acp], ...] = (
    ForgetsDiscards,
    BundlesDiscards,
    SpeaksOn,
    FiltersLate,
    ReloadsSilently,
    LeavesThemOpen,
    SaysTextTwice,
    SendsTuples,
    KeepsItsFrames,
)
