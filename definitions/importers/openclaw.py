"""Sessions of OpenClaw, made into recordings: it keeps them as pi does, and says more in them.

Here lives what pi's own sessions do not have, such as words of the system. Not here: everything
else (`pi`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from assembler.plugins import Importer
from definitions.importers.chat_lines import Record, blocks_of, rest
from definitions.importers.pi import is_openclaw, session
from definitions.importers.transcript import Operation, Transcript
from definitions.providers.reading import mapping, text

__all__ = ["OPENCLAW", "openclaw"]


def openclaw(lines: Iterable[bytes | str], *, name: str) -> Iterator[Operation]:
    """Turn one session into the operations of a recording, the header first. O(size)."""
    yield from session("openclaw", "Imported from a session of OpenClaw.", lines, name, _other)


def _other(transcript: Transcript, record: Record, _number: int) -> Iterator[Operation]:
    """Write a record that is none of pi's: a message of another role, or something to keep."""
    kind, message = text(record.get("type")), mapping(record.get("message"))
    if kind == "message" and (role := text(message.get("role"))):
        blocks = blocks_of(message.get("content"), "openclaw")
        more = rest(message, "content", "role")
        yield transcript.message(blocks, source={"kind": role}, more=more)
    else:
        yield transcript.kept(f"openclaw/{kind or 'odd'}", record)


OPENCLAW = Importer("sessions of OpenClaw", openclaw, is_openclaw)
