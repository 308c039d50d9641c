"""What the model is sent back, and loading as much history as that needs.

Not here: the messages themselves (`definitions.model_context`).
"""

from __future__ import annotations

from assembler.live import SyncSession
from definitions.backend.asking import Older, Work
from definitions.model_context import IncompleteHistoryError, model_context

__all__ = ["reaching"]

_PAGE_EVENTS = 1_000
_ANY_FORMAT = "anthropic"  # all formats are made of the same history


def reaching(session: SyncSession) -> Work[None]:
    """Load older pages until the model context is whole: to the last compaction, or the beginning.

    O(what is missing), once; the views show it from then on.
    """
    while session.assembler.window.has_more:
        try:
            model_context(session.assembler, _ANY_FORMAT)
        except IncompleteHistoryError:
            yield Older(_PAGE_EVENTS)
        else:
            break
