"""`assembler store verify STORE` and `assembler store dump STORE`: what reads whole conversations.

Not here: the ways that are compared (`recordings.arriving`), and what is said of them (`verify`).
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

from assembler import codec
from assembler.cli.databases import add_store, opened_store, wanted
from assembler.cli.inputs import OK, Definitions, add_catalog, definitions
from assembler.cli.output import complain, escaped, print_json, say
from assembler.cli.progress import Progress
from assembler.cli.verify import finish, tell, verdict_of
from assembler.engine.errors import InputError
from assembler.engine.events import Event
from assembler.recordings import Recording
from assembler.recordings.files import atomic
from assembler.recordings.format import VERSION, Fields, Operation, encoded, frozen
from assembler.stores import StoreError, SyncStore

__all__ = ["add"]

_READ_AT_ONCE = 1_000
_SUFFIX = ".jsonl"
_UNSAFE = re.compile(r"[^\w.@#+=, -]|^[. ]")
_FILE_BYTES_MAX = 200
"""What a file may be called before its suffix; longer names are cut, and told apart by a hash."""


def add(commands: Any) -> None:
    """Adds the parsers of both."""
    _add_verify(commands)
    _add_dump(commands)


def _add_verify(commands: Any) -> None:
    parser = commands.add_parser(
        "verify",
        help="compare every way to arrive at each conversation",
        description="Reads each conversation, by name, comes to its events in every way (one by "
        "one, at once, in pages, forgotten and paged again, reconnected) and prints the first "
        "difference. Ctrl-C says how to go on later.",
        epilog="example: assembler store verify chat.db --conversation demo",
    )
    add_store(parser)
    _add_conversations(parser)
    parser.add_argument(
        "--after", metavar="NAME", help="go on behind the conversation of that name"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    add_catalog(parser)
    parser.set_defaults(run=_verify)


def _add_dump(commands: Any) -> None:
    parser = commands.add_parser(
        "dump",
        help="write a recording of each conversation",
        description="Writes each conversation as a recording, which play, verify and serve read: "
        "all of them into a folder, one into a file or to standard output.",
        epilog="example: assembler store dump chat.db -o recordings",
    )
    add_store(parser)
    _add_conversations(parser)
    parser.add_argument(
        "-o",
        "--output",
        metavar="PATH",
        help="the folder to write to, each file whole or not at all; of one --conversation, the "
        "file (default: standard output)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object at the end")
    parser.set_defaults(run=_dump)


def _add_conversations(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--conversation",
        dest="conversations",
        action="append",
        metavar="NAME",
        help="only this one; may be given again (default: all)",
    )


def _events(store: SyncStore, name: str) -> Iterator[Event]:
    """All events of a conversation, not all of them in memory."""
    after = 0
    while part := store.read(name, after, _READ_AT_ONCE):
        yield from part
        after = part[-1].seq


def _append(event: Event) -> Fields:
    """An event as a line of a recording, where one without a time would get another."""
    fields = {name: getattr(event, name) for name in Event.__struct_fields__}
    told = {name: value for name, value in fields.items() if value is not None}
    return {"op": "append", "event": told}


# verify


def _verify(arguments: argparse.Namespace) -> int:
    known = definitions(arguments)
    told: list[dict[str, Any]] = []
    with opened_store(arguments) as store:
        names = wanted(arguments, store)
        if arguments.after is not None:
            names = [name for name in names if name > arguments.after]
        try:
            with Progress(len(names)) as progress:
                for name in names:
                    progress.at(name)
                    told.append(_verdict(store, name, known))
                    progress.clear()
                    tell(told[-1], quiet=arguments.json)
        except KeyboardInterrupt:
            if told:
                complain(f"to go on: --after {told[-1]['name']!r}")
            raise
    return finish(told, "conversations", as_json=arguments.json)


def _verdict(store: SyncStore, name: str, known: Definitions) -> dict[str, Any]:
    try:
        events = list(_events(store, name))
    except StoreError as fault:
        store.last(name)  # when nothing can be read any more, that is said once
        reason = f"{name}: {fault}"
        return {"name": name, "outcome": "unreadable", "reason": reason}
    operations = tuple(
        Operation(at, "append", frozen(_append(event))) for at, event in enumerate(events, 2)
    )
    return verdict_of(Recording(name, {"recording": VERSION}, operations), known)


# dump


def _dump(arguments: argparse.Namespace) -> int:
    one = arguments.conversations is not None and len(set(arguments.conversations)) == 1
    if not one and arguments.output is None:
        raise InputError("store dump: expected -o FOLDER for several conversations")
    with opened_store(arguments) as store:
        names = wanted(arguments, store)
        if one and arguments.output is None:
            _write(store, names[0], _StandardOutput())
            return OK
        target = Path(arguments.output)
        if one and not target.is_dir():
            with atomic(target) as file:
                written = _write(store, names[0], file)
        else:
            written = _dump_all(store, names, target)
    if arguments.json:
        print_json({"conversations": len(names), "events": written, "output": str(target)})
    else:
        say(escaped(f"dumped {len(names):,} conversations, {written:,} events to {target}"))
    return OK


def _dump_all(store: SyncStore, names: list[str], folder: Path) -> int:
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: output: expected a folder for several conversations")
    folder.mkdir(parents=True, exist_ok=True)
    written = 0
    with Progress(len(names)) as progress:
        for name in names:
            progress.at(name)
            with atomic(folder / _file_name(name)) as file:
                written += _write(store, name, file)
    return written


def _write(store: SyncStore, name: str, file: Any) -> int:
    """The recording of one conversation; how many events it has."""
    written = 0
    file.write(encoded({"recording": VERSION, "title": name, "conversation": name}))
    for event in _events(store, name):
        file.write(codec.encode(_append(event)) + b"\n")
        written += 1
    return written


def _file_name(name: str) -> str:
    """A file for the conversation of that name, and for no other."""
    safe = _UNSAFE.sub(lambda found: quote(found[0], safe="").replace(".", "%2E"), name)
    if len(safe.encode()) > _FILE_BYTES_MAX:
        kept = safe.encode()[: _FILE_BYTES_MAX - 17].decode(errors="ignore")
        safe = f"{kept}~{sha256(name.encode()).hexdigest()[:16]}"
    return safe + _SUFFIX


class _StandardOutput:
    """Standard output as a file of bytes."""

    def write(self, data: bytes) -> None:
        sys.stdout.write(data.decode())
