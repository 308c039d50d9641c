"""Times as transcripts write them, made into milliseconds since the Unix epoch.

Not here: what time it is; nothing in this package knows that.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

__all__ = ["milliseconds"]

_DATES_MAX = 16
"""So many dates are remembered: records ask more than once for theirs."""
_SECONDS_MAX = 100_000_000_000
"""Numbers below it count seconds (until the year 5138), those above milliseconds."""


def milliseconds(told: Any) -> int | None:
    """Read a time: a date as ISO 8601 writes it (without a zone: UTC), or a number since 1970.

    None for what tells no time, 0 and less included: such a time was never taken.
    """
    if isinstance(told, str):
        return _of_date(told)
    if isinstance(told, bool) or not isinstance(told, (int, float)):
        return None
    if not 0 < told < _SECONDS_MAX * 1000:
        return None
    return round(told * 1000) if told < _SECONDS_MAX else round(told)


@lru_cache(maxsize=_DATES_MAX)
def _of_date(told: str) -> int | None:
    try:
        date = datetime.fromisoformat(told)
    except ValueError:
        return None
    moment = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    return round(moment * 1000) if moment > 0 else None
