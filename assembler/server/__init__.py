"""The server: conversations over HTTP, as snapshots and streams that can be resumed.

Read from `app` (the whole), `routes` (what it answers), `streams` and `rooms` (who follows what),
`sources` (where conversations come from) and `guard` (who may ask). Needs the extra `server`.
Nothing here knows a business word.
"""

from __future__ import annotations

from assembler.server.app import ServerApp, create_app
from assembler.server.files import FilesSource
from assembler.server.inspecting.travels import Inspecting, recordings_of
from assembler.server.limits import ServerLimits
from assembler.server.sources import (
    BusyError,
    Entry,
    Listing,
    Opened,
    Source,
    UnknownError,
    Writer,
)
from assembler.server.stored import StoreSource

__all__ = [
    "BusyError",
    "Entry",
    "FilesSource",
    "Inspecting",
    "Listing",
    "Opened",
    "ServerApp",
    "ServerLimits",
    "Source",
    "StoreSource",
    "UnknownError",
    "Writer",
    "create_app",
    "recordings_of",
]
