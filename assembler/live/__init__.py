"""Live: a conversation that goes on, and that people follow.

Read from `session` (one conversation, its store and its Assembler), `hub` (many of them),
`publisher` (when it flushes), `subscription` (what a follower sees) and `feed` (who is slow).
What goes on in other processes comes through a backend: `base` is its contract, `memory` and `nats`
are two. `NatsLive` needs the extra `nats`, and is imported when it is asked for. Nothing here knows
a business word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from assembler.live.base import Hears, Live, LiveError, Seat
from assembler.live.core import LiveAttempt
from assembler.live.driving import drive, drive_async
from assembler.live.hub import Hub
from assembler.live.memory import MemoryLive
from assembler.live.places import Open
from assembler.live.publisher import Publisher
from assembler.live.redacting import redacted
from assembler.live.scheduling import Handle, Scheduler
from assembler.live.session import Session, SyncSession, new_name, wall_clock
from assembler.live.shared import SharedPatch, SharedSnapshot
from assembler.live.subscription import Subscription

if TYPE_CHECKING:
    from assembler.live.nats import NatsLimits as NatsLimits
    from assembler.live.nats import NatsLive as NatsLive

__all__ = [
    "Handle",
    "Hears",
    "Hub",
    "Live",
    "LiveAttempt",
    "LiveError",
    "MemoryLive",
    "Open",
    "Publisher",
    "Scheduler",
    "Seat",
    "Session",
    "SharedPatch",
    "SharedSnapshot",
    "Subscription",
    "SyncSession",
    "drive",
    "drive_async",
    "new_name",
    "redacted",
    "wall_clock",
]


def __getattr__(name: str) -> Any:
    if name not in ("NatsLimits", "NatsLive"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from assembler.live import nats  # noqa: PLC0415 - an extra's package
    except ModuleNotFoundError as error:
        if error.name != "nats":
            raise
        raise ImportError(f"{name} needs {error.name}: install the extra `nats`") from error
    return getattr(nats, name)
