"""Live: an Assembler whose views people follow, in one event loop.

Read from `publisher` (when it flushes), `subscription` (what a follower sees) and `feed` (who is
slow). Nothing here knows a business word.
"""

from __future__ import annotations

from assembler.live.publisher import Publisher
from assembler.live.redacting import redacted
from assembler.live.scheduling import Handle, Scheduler
from assembler.live.shared import SharedPatch, SharedSnapshot
from assembler.live.subscription import Subscription

__all__ = [
    "Handle",
    "Publisher",
    "Scheduler",
    "SharedPatch",
    "SharedSnapshot",
    "Subscription",
    "redacted",
]
