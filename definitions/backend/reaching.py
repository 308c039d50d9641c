"""What the model is sent back: the messages, and loading as much history as they need.

Not here: the messages themselves (`definitions.model_context`).
"""

from __future__ import annotations

from typing import Any

from assembler.live import SyncSession
from definitions.backend.asking import Work

__all__ = ["messages", "reaching"]


def reaching(session: SyncSession) -> Work[None]:
    """Load older pages until the model context is whole."""
    return
    yield


def messages(session: SyncSession, format: str) -> list[dict[str, Any]]:
    raise NotImplementedError
