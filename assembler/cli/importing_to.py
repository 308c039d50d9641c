"""Where imported conversations go: one file, a folder of files, or a store.

Each takes what an importer makes of one file, line by line, and holds none of it. Conversations
that stand beside the main one of a file go beside it. Not here: which files (`importing`).
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from shutil import copyfileobj
from typing import IO, Any, Protocol

from msgspec import Struct

from assembler.recordings.files import atomic
from assembler.recordings.format import Fields, encoded
from assembler.stores import SQLiteStore
from assembler.stores.base import SyncStore

__all__ = ["Folder", "One", "Output", "Told", "into_store"]

Made = Iterable[tuple[str | None, Fields]]

_BATCH_EVENTS = 1_000
_SPOOL_BYTES = 8 << 20
"""What is larger waits on the disk."""
_COPIED_BYTES = 1 << 20
_SUFFIX = ".recording.jsonl"
_UNSAFE = re.compile(r"[^\w.@#-]+")


class Told(Struct, frozen=True):
    """What became of one file: how many conversations, events, and events that are new."""

    conversations: int
    events: int
    new: int


class Output(Protocol):
    """Takes what an importer makes of a file; `is_quiet`: its words go to standard error."""

    is_quiet: bool
    takes_finished: bool
    """Whether it keeps for ever what it took, so that nothing unfinished may go there."""

    def take(self, title: str, made: Made) -> Told:
        """Take all that is made of the file that is called `title`."""

    def keep(self) -> None:
        """Write what was taken last to where it stays, now that all of it is there."""

    def close(self) -> None:
        """Give back what it holds open; nothing is written by this."""

    def said(self, told: Sequence[Told]) -> str:
        """One line for people behind it all; empty: nothing to say."""


class _Spooling:
    """What both have that write recordings: nothing stays before all of a file is made."""

    def __init__(self) -> None:
        self._spool = _Spool()
        self._title = ""

    def close(self) -> None:
        self._spool.close()

    def take(self, title: str, made: Made) -> Told:
        self._spool.close()
        self._spool, self._title = _Spool(), title
        return self._spool.fill(made)


class One(_Spooling):
    """One file, or standard output; what stands beside the main conversation goes beside it."""

    is_quiet = True
    takes_finished = False

    def __init__(self, path: str | None) -> None:
        super().__init__()
        self._path = path

    def keep(self) -> None:
        if self._path is None:
            for chunk in self._spool.chunks(None):
                sys.stdout.write(chunk.decode())
        else:
            self._spool.write(Path(self._path))

    def said(self, told: Sequence[Told]) -> str:
        beside = sum(each.conversations - 1 for each in told)
        if not beside or self._path is not None:
            return ""
        return f"{beside} more conversations stand inside: -o FILE writes them beside it"


class Folder(_Spooling):
    """A folder: one recording for each transcript, of the same name, written anew each time."""

    is_quiet = False
    takes_finished = False

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def keep(self) -> None:
        target = self._path / f"{self._title}{_SUFFIX}"
        target.parent.mkdir(parents=True, exist_ok=True)
        self._spool.write(target)

    def said(self, told: Sequence[Told]) -> str:
        return f"imported {_counts(told)} to {self._path}"


class _Spool:
    """All lines of one file in a temporary one, and where those of each conversation stand."""

    def __init__(self) -> None:
        # Closed by `close`, which the command calls however it ends.
        self._main: IO[bytes] = tempfile.SpooledTemporaryFile(_SPOOL_BYTES)  # noqa: SIM115
        self._beside: IO[bytes] = tempfile.SpooledTemporaryFile(_SPOOL_BYTES)  # noqa: SIM115
        self._places: dict[str, list[tuple[int, int]]] = {}

    def close(self) -> None:
        self._main.close()
        self._beside.close()

    def fill(self, made: Made) -> Told:
        events = at = 0
        for conversation, fields in made:
            line = encoded(fields)
            events += fields.get("op") == "append"
            if conversation is None:
                self._main.write(line)
            else:
                self._beside.write(line)
                self._places.setdefault(conversation, []).append((at, len(line)))
                at += len(line)
        return Told(1 + len(self._places), events, events)

    def chunks(self, conversation: str | None) -> Iterator[bytes]:
        if conversation is None:
            self._main.seek(0)
            yield from self._main
            return
        for at, size in self._places[conversation]:
            self._beside.seek(at)
            yield self._beside.read(size)

    def write(self, target: Path) -> None:
        with atomic(target) as file:
            self._main.seek(0)
            copyfileobj(self._main, file, _COPIED_BYTES)
        for conversation in self._places:
            stem = target.name.removesuffix(".jsonl")
            name = f"{stem}.{_UNSAFE.sub('_', conversation)}.jsonl"
            with atomic(target.with_name(name)) as file:
                file.writelines(self.chunks(conversation))


class _IntoStore:
    """A store: each transcript a conversation, named as its file; what it has already stays.

    Deltas are not stored: they are what was seen while an answer came, not what was said.
    """

    is_quiet = False
    takes_finished = True

    def __init__(self, store: SyncStore, path: str) -> None:
        self._store = store
        self._path = path

    def take(self, title: str, made: Made) -> Told:
        waiting: dict[str, list[Mapping[str, Any]]] = {}
        seen: dict[str, int] = {}
        new = 0
        for beside, fields in made:
            if fields.get("op") != "append":
                continue
            conversation = title if beside is None else f"{title}/{beside}"
            drafts = waiting.setdefault(conversation, [])
            drafts.append(_draft(fields["event"]))
            seen[conversation] = seen.get(conversation, 0) + 1
            if len(drafts) >= _BATCH_EVENTS:
                new += self._append(conversation, drafts)
                drafts.clear()
        for conversation, drafts in waiting.items():
            new += self._append(conversation, drafts)
        return Told(len(seen), sum(seen.values()), new)

    def close(self) -> None:
        self._store.close()

    def keep(self) -> None:
        """Nothing is left to do: the store has it."""

    def _append(self, conversation: str, drafts: Sequence[Mapping[str, Any]]) -> int:
        if not drafts:
            return 0
        return self._store.write(conversation, drafts, self._store.last(conversation))[1]

    def said(self, told: Sequence[Told]) -> str:
        new = sum(each.new for each in told)
        return f"imported {_counts(told)} into {self._path}, {new:,} of the events are new"


def _draft(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """An event without its number, under an id that is its own at each import."""
    fields = {name: value for name, value in event.items() if name != "seq"}
    return fields if fields.get("id") else {**fields, "id": f"seq-{event['seq']}"}


def _counts(told: Sequence[Told]) -> str:
    conversations = sum(each.conversations for each in told)
    events = sum(each.events for each in told)
    return f"{len(told):,} transcripts, {conversations:,} conversations, {events:,} events"


def into_store(path: str) -> Output:
    """The SQLite store in the file `path`, made when it is not there.

    `StoreError`, before anything is read, when the file cannot be one.
    """
    store = SQLiteStore(path, synchronous="normal").sync
    store.conversations(limit=1)  # it opens the file: what is wrong with it is said once
    return _IntoStore(store, path)
