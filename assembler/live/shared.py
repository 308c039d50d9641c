"""Patches and Snapshots that many are sent: their bytes are made once, when the first one asks.

Not here: the wire form itself (`engine.patches`, `codec`).
"""

from __future__ import annotations

from msgspec.structs import force_setattr

from assembler.codec import encode
from assembler.engine.patches import Patch, Snapshot

__all__ = ["SharedPatch", "SharedSnapshot"]


class SharedPatch(Patch, frozen=True, gc=False, eq=False):
    """A Patch, the same object for every subscriber."""

    _encoded: bytes | None = None

    @staticmethod
    def of(patch: Patch) -> SharedPatch:
        return SharedPatch(
            patch.view,
            patch.revision_from,
            patch.revision_to,
            patch.ops,
            patch.window,
            patch.live,
            patch.open,
        )

    @property
    def encoded(self) -> bytes:
        """Its wire form as JSON text. O(size) once, whoever asks first; then O(1)."""
        if self._encoded is None:
            force_setattr(self, "_encoded", encode(self))
        return self._encoded  # type: ignore[return-value]


class SharedSnapshot(Snapshot, frozen=True, gc=False, eq=False):
    """A Snapshot, the same object for all who join at one revision."""

    _encoded: bytes | None = None

    @staticmethod
    def of(snapshot: Snapshot) -> SharedSnapshot:
        return SharedSnapshot(
            snapshot.view,
            snapshot.revision,
            snapshot.nodes,
            snapshot.groups,
            snapshot.window,
            snapshot.live,
            snapshot.open,
        )

    @property
    def encoded(self) -> bytes:
        """Its wire form as JSON text. O(size) once while it is the newest; then O(1)."""
        if self._encoded is None:
            force_setattr(self, "_encoded", encode(self))
        return self._encoded  # type: ignore[return-value]

    def forget_encoded(self) -> None:
        """Let the bytes go: nobody joins at this revision any more."""
        force_setattr(self, "_encoded", None)
