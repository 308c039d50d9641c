"""Recordings and transcripts in files and folders, as a `Source` that can only be read.

Here live which files there are, what is known of each without opening it, and the conversation
that is made of one. Not here: what a file says (`recordings`).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec import Struct

from assembler.engine.definition import Definition, GroupDefinition
from assembler.engine.errors import AssemblerError, InputError, LimitError, RecordingError
from assembler.engine.events import same_event
from assembler.live import Publisher, Subscription
from assembler.recordings import Operation, Recording, Run
from assembler.recordings.arriving import Facts
from assembler.recordings.expecting import is_expectation
from assembler.recordings.running import missing_needs, views_of
from assembler.recordings.transcripts import read_any
from assembler.server.limits import natural
from assembler.server.sources import Entry, Listing, Place, Source, UnknownError, matches
from assembler.server.titles import Titles

__all__ = ["FilesSource", "Replayed"]

_PAGE_EVENTS = 200
_RECORDINGS_MAX = 1_000_000
"""Of one file."""
_ENDINGS = (".json", ".jsonl", ".ndjson", ".sse", ".txt")
"""Files of a folder that end otherwise are no conversation; what these are, their content says."""


_Stamp = tuple[int, int] | None


class _File(Struct, frozen=True):
    """A file as it was when the list was made; `name` is what its conversations are called by."""

    path: Path
    name: str
    modified: int
    size: int


class Replayed:
    """A recording, played to its end, as a conversation of which the newest page is loaded."""

    def __init__(self, run: Run, page: int) -> None:
        self._page = page
        self._facts: Facts = run.facts()
        run.reconnect(page)
        self.run = run
        self.publisher = Publisher(run.assembler)

    def subscribe(self, view: str = "chat") -> Subscription:
        return self.publisher.subscribe(view)

    async def older(self) -> bool:
        window = self.run.assembler.window
        events = self._facts.events
        first = window.first
        if not window.has_more or first is None or not events or events[0].seq >= first:
            return False
        end = first - events[0].seq
        start = max(0, end - self._page)
        has_more = start > 0
        self.publisher.prepend(events[start:end], has_more)
        return has_more

    def follow(self, later: Run) -> bool:
        """Show what a later reading of the same file has more; False: it has something else.

        O(events).
        """
        mine, facts = self._facts.events, later.facts()
        same = [*map(same_event, mine, facts.events)]
        if later.held or self.run.held or len(same) < len(mine) or not all(same):
            return False
        for event in facts.events[len(mine) :]:
            self.publisher.append(event)
        self.publisher.liveness(facts.live)
        self._facts = facts
        return True


class FilesSource(Source):
    """The conversations of files: recordings, and transcripts that an importer knows.

    `paths` are files and folders; a folder is looked through with all in it, each time a list
    begins. Files are told by what is in them, read when a list comes to them and again when they
    have changed, in a thread of their own. A conversation is called as its file, from the folder
    that was given; the second one of a file has `#2` behind it. What cannot be read is listed with
    the reason. `page_events` are loaded at first, and with each older page. One that is read is
    looked at every `poll_ms`: what a file has more is shown; one that says something else now, or
    that has pieces of an attempt, is opened anew for its readers. One list reads at most
    `reading_bytes_max` of files that are new to it, or one file: without a search it says of the
    others only when they were written; with one it ends there, to be gone on with (`next`).
    `titles`: the types of events whose `title` is what a transcript is called (or `Titles`, which
    also know the first words of one without); a recording's own title goes before them.

    Holds what was learned of each file, and nothing of what is in it.
    """

    def __init__(  # noqa: PLR0913 - given by name
        self,
        paths: Iterable[str | os.PathLike[str]],
        definitions: Iterable[Definition | GroupDefinition],
        *,
        page_events: int = _PAGE_EVENTS,
        files_max: int = 20_000,
        reading_bytes_max: int = 8 << 20,
        poll_ms: float = 1_000,
        titles: Iterable[str] | Titles = (),
    ) -> None:
        self._paths = [Path(path) for path in paths]
        self._definitions = list(definitions)
        self._views = views_of(self._definitions)
        self._page_events = page_events
        self._files_max = files_max
        self._known: dict[_File, tuple[Entry, ...]] = {}
        self._reading_bytes_max = reading_bytes_max
        self._poll = poll_ms / 1_000
        self._titles = titles if isinstance(titles, Titles) else Titles(titles)
        self._lister = ThreadPoolExecutor(1, "assembler-files")
        self._opener = ThreadPoolExecutor(1, "assembler-files")

    @property
    def views(self) -> Sequence[str]:
        return self._views

    # -- lists ---------------------------------------------------------------------------

    async def conversations(
        self, *, search: str = "", before: str | None = None, limit: int = 50
    ) -> Listing:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._lister, self._list, search, before, limit)

    def _list(self, search: str, before: str | None, limit: int) -> Listing:
        """The newest file first, equal ones by name. O(files + what is read of them)."""
        start = None if before is None else Place.of(before)
        found: list[Entry] = []
        place, reached = Place(0, 0), start or Place(0, 0)
        for file, entry in self._walk(start, reading=bool(search)):
            if entry is None:
                return Listing(tuple(found), str(reached))
            place = place.then(file.modified)
            if start is not None and file.modified == start.time and place.passed <= start.passed:
                continue
            if len(found) == limit:
                return Listing(tuple(found), str(reached))
            reached = place
            if not search or matches(entry, search):
                found.append(entry)
        return Listing(tuple(found))

    def _walk(self, start: Place | None, *, reading: bool) -> Iterator[tuple[_File, Entry | None]]:
        """The entries of the files that are no newer than `start`. When they are to be read, None
        behind those that could be."""
        budget = self._reading_bytes_max
        has_read = False
        for file in sorted(self._files(), key=_order):
            if start is not None and file.modified > start.time:
                continue
            if file not in self._known:
                budget -= file.size
                if reading and budget < 0 and has_read:
                    yield file, None
                    return
                has_read = True
            for entry in self._entries(file) if reading or budget >= 0 else (_unread(file),):
                yield file, entry

    def _files(self) -> list[_File]:
        found = (file for path in self._paths for file in _files_of(path))
        return list(islice(found, self._files_max))

    def _entries(self, file: _File) -> tuple[Entry, ...]:
        """What is known of a file's conversations. Reads it when it is new or has changed."""
        known = self._known.get(file)
        if known is None:
            known = self._known[file] = self._learned(file)
            if len(self._known) > 2 * self._files_max:
                del self._known[next(iter(self._known))]  # of files that have changed since
        return known

    def _learned(self, file: _File) -> tuple[Entry, ...]:
        entries: list[Entry] = []
        try:
            with _naming(str(file.path), file.name):
                for number, recording in enumerate(read_any(file.path), 1):
                    name = _called(file.name, number)
                    entries.append(_entry(name, recording, self._titles))
        except AssemblerError as fault:
            name = _called(file.name, len(entries) + 1)
            entries.append(Entry(name, last_time=file.modified // 1_000_000, fault=str(fault)))
        return tuple(entries)

    # -- one conversation ----------------------------------------------------------------

    @asynccontextmanager
    async def open(self, conversation: str) -> AsyncGenerator[Replayed]:
        loop = asyncio.get_running_loop()
        run, stamp = await loop.run_in_executor(self._opener, self._read, conversation)
        replayed = Replayed(run, self._page_events)
        following = asyncio.create_task(self._follow(conversation, replayed, stamp))
        try:
            yield replayed
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            replayed.publisher.close()

    async def _follow(self, conversation: str, replayed: Replayed, stamp: _Stamp) -> None:
        loop = asyncio.get_running_loop()
        path = replayed.run.recording.source
        while True:
            await asyncio.sleep(self._poll)
            now = await loop.run_in_executor(self._opener, _stamp, path)
            if now == stamp:
                continue
            stamp = now
            try:
                run, stamp = await loop.run_in_executor(self._opener, self._read, conversation)
            except AssemblerError:
                continue  # it is being written
            if not replayed.follow(run):
                replayed.publisher.close()
                return

    def _read(self, conversation: str) -> tuple[Run, _Stamp]:
        """A conversation, played, and the stamp of its file before it was read."""
        file, number = self._found(conversation)
        stamp = _stamp(str(file.path))
        return self._played(conversation, _recording(file, number)), stamp

    def _played(self, conversation: str, recording: Recording) -> Run:
        run = Run(recording, self._definitions)
        with _naming(recording.source, conversation):
            for operation in recording.operations:
                if not is_expectation(operation):
                    run.do(operation)
        return run

    def recording(self, conversation: str) -> Recording:
        """The recording that a conversation is made of. Blocks while it is read.

        Raises `UnknownError`, and `RecordingError` or `InputError` for what cannot be read or
        cannot run here.
        """
        return _recording(*self._found(conversation))

    def _found(self, conversation: str) -> tuple[_File, int]:
        """The file that a conversation is in, and which one of it it is."""
        name, mark, digits = conversation.rpartition("#")
        number = natural(digits, _RECORDINGS_MAX) if mark else None
        if not number or number == 1:
            name, number = conversation, 1
        for file in self._files():
            if file.name == name:
                return file, number
        raise UnknownError("there is no such conversation")

    async def aclose(self) -> None:
        """Let the threads go. Nothing else is held."""
        for worker in (self._lister, self._opener):
            worker.shutdown(wait=False, cancel_futures=True)


@contextmanager
def _naming(path: str, name: str) -> Iterator[None]:
    """What is wrong with a file is said under the name by which it was asked for."""
    try:
        yield
    except (RecordingError, InputError, LimitError) as fault:
        raise type(fault)(str(fault).replace(path, name)) from None


def _files_of(path: Path) -> Iterable[_File]:
    """A file, or the files below a folder; hidden ones are left out."""
    if not path.is_dir():
        return filter(None, [_file(path, path.name)])
    return filter(
        None,
        (
            _file(Path(folder) / name, (Path(folder) / name).relative_to(path).as_posix())
            for folder, folders, names in os.walk(path)
            for name in _seen(folders, names)
        ),
    )


def _seen(folders: list[str], names: list[str]) -> list[str]:
    """The names that are looked at; folders that are not are taken out of the walk."""
    folders[:] = sorted(name for name in folders if not name.startswith("."))
    return [name for name in names if name.endswith(_ENDINGS) and not name.startswith(".")]


def _stamp(path: str) -> _Stamp:
    """What tells a file from a later state of it; None: it is gone."""
    try:
        told = Path(path).stat()
    except OSError:
        return None
    return told.st_mtime_ns, told.st_size


def _file(path: Path, name: str) -> _File | None:
    try:
        told = path.stat()
    except OSError:
        return None
    return _File(path, name, told.st_mtime_ns, told.st_size)


def _order(file: _File) -> tuple[int, str]:
    return -file.modified, file.name


def _unread(file: _File) -> Entry:
    return Entry(file.name, last_time=file.modified // 1_000_000)


def _called(name: str, number: int) -> str:
    return name if number == 1 else f"{name}#{number}"


def _entry(conversation: str, recording: Recording, titles: Titles) -> Entry:
    """What a recording says about itself without being played. O(operations)."""
    last, seqs, times = 0, set(), []
    told: list[tuple[str, Mapping[str, Any]]] = []
    for operation in recording.operations:
        for event in _events(operation):
            last = event.get("seq", last + 1)
            seqs.add(last)
            told.append((event.get("type", ""), event.get("data") or {}))
            if "time" in event:
                times.append(event["time"])
    return Entry(
        conversation,
        _headed(conversation, recording) or titles.given(told) or titles.opened(told),
        len(seqs),
        min(times, default=None),
        max(times, default=None),
    )


def _headed(conversation: str, recording: Recording) -> str | None:
    """The title of a recording; one that is only the name of a transcript says nothing."""
    title, said = recording.header.get("title"), recording.header.get("conversation")
    name = conversation.rsplit("/", 1)[-1].partition("#")[0]
    return str(title) if title and title not in (name, said) else None


def _events(operation: Operation) -> Sequence[Mapping[str, Any]]:
    fields = operation.fields
    if operation.name == "append":
        return [fields["event"]]
    return fields["events"] if operation.name in ("load", "prepend") else ()


def _recording(file: _File, number: int) -> Recording:
    with _naming(str(file.path), file.name):
        recording = next(islice(read_any(file.path), number - 1, None), None)
        if recording is None:
            raise UnknownError("there is no such conversation")
        return _runnable(recording)


def _runnable(recording: Recording) -> Recording:
    missing = missing_needs(recording, expectations=False)
    if missing is not None:
        raise InputError(f"{recording.source}:{missing[0].line}: it needs {missing[1]}")
    return recording
