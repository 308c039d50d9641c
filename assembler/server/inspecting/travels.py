"""The Travels of an application: made when first asked for, in a thread, and the newest kept.

Here live what an application must give so that its conversations can be inspected, and which
Travel is still good. Not here: HTTP (`assembler.server.inspector`).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping

from msgspec import Struct

from assembler.engine.definition import Definition, GroupDefinition
from assembler.recordings import Recording
from assembler.server.files import FilesSource
from assembler.server.inspecting.behind import Behind
from assembler.server.inspecting.travel import MOMENTS_MAX, Travel, recording_of
from assembler.server.sources import Source, UnknownError
from assembler.server.stored import StoreSource

__all__ = ["Inspecting", "Travels", "recordings_of"]

_NO_MARKS: Mapping[str, str] = {}


class Inspecting(Struct, frozen=True):
    """What lets people look into conversations: raw events, Nodes at every moment, States.

    `recording(conversation)` gives what happened in one (`recordings_of`); raises `UnknownError`.
    `definitions` make its Nodes again: where others redact, give the redacted ones, and know that
    the events behind a Node are shown as they are. `marks` says which event types get which mark on
    the timeline; `module` is the JavaScript module that says how Nodes read. The newest
    `travels_max` conversations are kept, of at most `moments_max` operations each.
    """

    recording: Callable[[str], Awaitable[Recording]]
    definitions: Iterable[Definition | GroupDefinition]
    marks: Mapping[str, str] = _NO_MARKS
    module: bytes = b""
    travels_max: int = 4
    moments_max: int = MOMENTS_MAX


class Travels:
    """For one event loop. Travels are made one at a time, so that nobody makes one twice."""

    def __init__(self, inspecting: Inspecting) -> None:
        self._inspecting = inspecting
        self._kept: dict[str, Behind] = {}
        self._making = asyncio.Lock()
        self._over = threading.Event()

    def give_up(self) -> None:
        """Make no more: what is being made ends with a `StoppedError`, at its next operation."""
        self._over.set()

    async def newest(self, conversation: str) -> Behind:
        """The Travel of what happened until now; made anew only when something has.

        A moment of an older one is the same moment of a newer one as long as its log only grew.
        """
        async with self._making:
            recording = await self._inspecting.recording(conversation)
            kept = self._kept.pop(conversation, None)
            if kept is None or kept.travel.recording.operations != recording.operations:
                kept = await asyncio.to_thread(self._make, recording)
            self._kept[conversation] = kept
            while len(self._kept) > self._inspecting.travels_max:
                del self._kept[next(iter(self._kept))]
            return kept

    async def known(self, conversation: str) -> Behind:
        """The Travel that is kept, or the newest."""
        return self._kept.get(conversation) or await self.newest(conversation)

    def _make(self, recording: Recording) -> Behind:
        asked = self._inspecting
        travel = Travel(
            recording,
            asked.definitions,
            asked.marks,
            moments_max=asked.moments_max,
            given_up=self._over.is_set,
        )
        return Behind(travel)


def recordings_of(source: Source) -> Callable[[str], Awaitable[Recording]]:
    """What happened in the conversations of a source of ours: of files what they say, of a store
    its events, one by one."""

    async def recording(conversation: str) -> Recording:
        if isinstance(source, FilesSource):
            return await asyncio.to_thread(source.recording, conversation)
        if isinstance(source, StoreSource):
            events = await source.hub.store.read(conversation)
            if events:
                return recording_of(conversation, events)
        raise UnknownError("there is no such conversation")

    return recording
