"""Names as tokens of a subject: whatever a name holds, and however long it is.

Not here: what is sent there (`nats`).
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from hashlib import sha256

__all__ = ["is_plain", "token"]

_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,120}")
_NAME_BYTES_MAX = 120


def is_plain(name: str) -> bool:
    """Whether a name may stand in a subject, and name a stream, as it is."""
    return _PLAIN.fullmatch(name) is not None


def token(name: str) -> str:
    """One token that stands for `name` alone: without a dot, a blank or a wildcard.

    A short plain name stays as it is; another one is encoded, and a long one is its digest, since
    a server bounds how long a subject may be. O(size).
    """
    if _PLAIN.fullmatch(name):
        return name
    raw = name.encode()
    if len(raw) > _NAME_BYTES_MAX:
        return "==" + sha256(raw).hexdigest()
    return "=" + urlsafe_b64encode(raw).decode().rstrip("=")
