"""Live: a conversation that goes on, and that people follow.

Read from `session` (one conversation, its store and its Assembler), `hub` (many of them),
`publisher` (when it flushes), `subscription` (what a follower sees) and `feed` (who is slow).
What goes on in other processes comes through a backend: `base` is its contract, `memory` and `nats`
(an extra, so it is imported by its own name) are two. Nothing here knows a business word.
"""

from __future__ import annotations

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
