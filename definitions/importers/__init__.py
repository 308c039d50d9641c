"""Transcripts and streams of others, made into recordings.

Here live the formats, each with one module for its entry, and the table of them; `reading` and
`halves` are for all formats of JSON lines. An importer is
`(lines, *, name) -> operations`: it takes the lines of one file (bytes or text) and what to call
that file in an error, and yields the lines of a recording as plain dicts, the header first. What
cannot be read is an `ImportFault` (a ValueError). Not here: opening files, writing recordings, and
what an operation does to an Assembler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from definitions.importers.dsh_session import dsh_session
from definitions.importers.errors import ImportFault

__all__ = ["IMPORTERS", "ImportFault"]

IMPORTERS: Mapping[str, Callable[..., Iterator[dict[str, Any]]]] = MappingProxyType(
    {"dsh-session": dsh_session}
)
"""The importers by name; the entry points `assembler.importers` say the same to the library."""
