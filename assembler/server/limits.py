"""What the server takes, keeps and sends at most, and how a number is read. Not here: where each
limit is held to.
"""

from __future__ import annotations

from msgspec import Struct

__all__ = ["ServerLimits", "natural"]


def natural(text: str, most: int) -> int | None:
    """The number from 0 to `most` that a text says in digits; None: it says none. O(1)."""
    if not (text.isascii() and text.isdecimal()) or len(text) > len(str(most)):
        return None
    return number if (number := int(text)) <= most else None


class ServerLimits(Struct, frozen=True):
    """The limits of one application; beyond them requests are refused in one clear line."""

    body_bytes_max: int = 8 << 20
    """The body of one request."""
    body_ms_max: float = 30_000
    """It is here after this time."""
    wrong_tokens_max: int = 20
    """Different wrong ones that one address may say; then none is looked at. So with cookies."""
    wrong_tokens_ms: float = 60_000
    """For so long they are counted."""
    list_conversations_max: int = 200
    """The `limit` of one list."""
    list_scanned_max: int = 5_000
    """Entries that one list looks at, however few of them may be seen."""
    search_characters_max: int = 200
    emit_deltas_max: int = 10_000
    """Deltas of one request."""
    window_events_max: int = 50_000
    """Events of one conversation that are loaded; there are no older pages beyond it."""
    streams_max: int = 2_000
    """Streams that are open at once."""
    rooms_max: int = 1_000
    """Conversations that are open at once."""
    rooms_idle_max: int = 50
    """Those of them that nobody reads."""
    linger_ms: float = 30_000
    """So long stays open what nobody reads, so that who comes back finds what they missed."""
    log_patches_max: int = 1_000
    """Patches of one view that are kept for those who come back."""
    log_bytes_max: int = 1 << 20
    """Their bytes."""
    heartbeat_ms: float = 15_000
    """A stream that has nothing to say says so after this time."""
    stream_ms_max: float = 3_600_000
    """A stream lasts so long; who comes back then is looked at again (`authorize`), and goes on."""
    stall_ms_max: float = 30_000
    """A reader that takes nothing for so long is dropped."""
