"""What others plug in, found by entry point: the only way from here to the business.

Groups: `assembler.catalogs` (functions that give the Definitions of a conversation; beside the
catalog `NAME` stands, if there is one, the function `NAME.row` that says how a Node of it reads on
one line; `NAME.titles`, `NAME.opening`, `NAME.marks`, `NAME.page` and `NAME.harmless` as
`titles`, `opening`, `marks`, `page_module` and `harmless` say),
`assembler.operations` (operations and expectations of recordings), `assembler.importers` and
`assembler.exporters`. Nothing here knows what is behind a name; the values that both sides share
are here (`Operations`, `Digest`, `Odd`).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from assembler.engine.definition import Definition, GroupDefinition, Node
from assembler.engine.errors import InputError
from assembler.engine.patches import Snapshot

__all__ = [
    "Digest",
    "DocumentExporter",
    "Exporter",
    "Harmless",
    "Importer",
    "Odd",
    "Operations",
    "RowText",
    "Sample",
    "Shared",
    "catalog",
    "exporter",
    "importer",
    "names",
    "opening",
    "operations",
    "row_text",
]

RowText = Callable[[Node], tuple[str, str, str]]
"""`(stage, title, summary)` of a Node; the stage is one short word."""

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Odd(Struct, frozen=True):
    """Something in a file that two ways of looking at it do not say alike, with both values.

    `where` is the place in the file (empty: all of it). `kind` is the word for what explains it,
    one of `Operations.reasons`; empty when nothing does: then it is a difference.
    """

    where: str
    field: str
    expected: Any
    got: Any
    kind: str = ""


class Digest(Struct, frozen=True):
    """What was found in one recorded file: its format, how much of what, and what was odd.

    `is_read` false: nobody reads that format yet, and nothing of it was compared.
    """

    format: str
    is_read: bool = True
    counts: Mapping[str, int] = _NOTHING
    odd: tuple[Odd, ...] = ()


DigestFile = Callable[[str, bytes, Mapping[str, str] | None], Digest]


class Operations(Struct, frozen=True):
    """What all modules of the group `assembler.operations` add to the format of recordings.

    Each module may have any of these mappings:
    `FIELDS`: operation -> {field: what it holds} (the words of `recordings.format`);
    `EXPECTS`: field of `expect` -> what it holds;
    `NEEDS`: operation or field of `expect` -> the word for what it needs to run;
    `RUNNERS`: operation -> `run(recording_run, fields)`;
    `LACKS`: operation -> `lacks(fields)`: whether one that says this cannot run yet;
    `EXPECTATIONS`: field of `expect` -> `differences(recording_run, value)`, each of them
    `(path, expected, got)`;
    `WATCHES`: name -> `watch(recording_run)`, called behind every flush;
    `DIGESTS`: name -> `digest(path, data, row)`: what stands in a file that others recorded; `row`
    is what a listing beside it says, column by column, or None;
    `REASONS`: kind of `Odd` -> one sentence that says why it is no difference.
    What stands in `FIELDS` or `EXPECTS` and has no function is known and cannot run yet.
    """

    fields: Mapping[str, Mapping[str, str]] = _NOTHING
    expects: Mapping[str, str] = _NOTHING
    needs: Mapping[str, str] = _NOTHING
    runners: Mapping[str, Callable[[Any, Mapping[str, Any]], None]] = _NOTHING
    expectations: Mapping[str, Callable[[Any, Any], list[tuple[str, Any, Any]]]] = _NOTHING
    lacks: Mapping[str, Callable[[Mapping[str, Any]], bool]] = _NOTHING
    watches: Mapping[str, Callable[[Any], None]] = _NOTHING
    digests: Mapping[str, DigestFile] = _NOTHING
    reasons: Mapping[str, str] = _NOTHING


class Sample(Struct, frozen=True):
    """The beginning of a file, by which importers tell their format; the file's name says nothing.

    `values` are the JSON values that stand there whole, one a line or one behind another: of a file
    that is one document, that document.
    """

    values: tuple[Any, ...]

    @property
    def records(self) -> tuple[Mapping[str, Any], ...]:
        """Those of the values that are objects; a single list counts as its items."""
        values = self.values
        if len(values) == 1 and isinstance(values[0], list):
            values = tuple(values[0])
        return tuple(value for value in values if isinstance(value, dict))


class Importer(Struct, frozen=True):
    """What stands behind an entry point of `assembler.importers`; called, it reads a file.

    `read(lines, *, name)` yields the lines of a recording as plain dicts, the header first; its
    faults are ValueErrors. An operation that has a field `conversation` belongs to another
    conversation of that name, beside the main one, which has a header of its own. One that has a
    field `tail` stands there because the file ends, `"unfinished"`: a longer file will say it
    otherwise. `recognises`
    answers whether a file that begins so is of this format. `about` is a line for people.
    """

    about: str
    read: Callable[..., Iterable[Mapping[str, Any]]]
    recognises: Callable[[Sample], bool]

    def __call__(self, lines: Iterable[bytes | str], *, name: str) -> Iterable[Mapping[str, Any]]:
        """Read the lines of a file that errors call `name`."""
        return self.read(lines, name=name)


class Exporter(Struct, frozen=True):
    """What stands behind an entry point of `assembler.exporters`: what a client is sent.

    `connect(header)` makes the encoder of a client that comes, `feed(update) -> frames` (JSON
    values), from the header of a recording; it is fed nothing yet or a Snapshot, then Patches.
    `line(frame)` is how a frame is sent, `end` what closes the stream. `about` is a line for
    people.
    """

    about: str
    connect: Callable[[Mapping[str, Any]], Any]
    line: Callable[[Any], bytes]
    end: bytes = b""


class Harmless(Struct, frozen=True):
    """What of the conversations of a catalog tells nothing about whose they are.

    `types` of events, deltas and blocks; `formats`, of which a foreign type may begin (`NAME/`);
    `fields`, the names of fields; `words`: field -> the values that stay; `numbers`, the fields
    whose numbers stay; `names`: type -> the fields with the name of what runs; `json_texts`, the
    fields whose text is JSON; `free`, the fields in whose objects no field means anything. Deltas:
    `pieces`: type -> the field with the next piece of a text, which is told from others by the
    fields `wholes`.
    """

    types: Container[str] = frozenset()
    formats: Container[str] = frozenset()
    fields: Container[str] = frozenset()
    words: Mapping[str, Container[str]] = _NOTHING
    numbers: Container[str] = frozenset()
    names: Mapping[str, Container[str]] = _NOTHING
    json_texts: Container[str] = frozenset()
    free: Container[str] = frozenset()
    pieces: Mapping[str, str] = _NOTHING
    wholes: tuple[str, ...] = ()


class Shared(Struct, frozen=True):
    """A conversation as it is shared: what a view shows in the end, and what is said about it.

    `catalog` names the Definitions that made it; `time` is when the first and the last of its
    events happened (milliseconds since 1970), None without any.
    """

    snapshot: Snapshot
    title: str
    about: str = ""
    time: tuple[int, int] | None = None
    catalog: str = "default"


class DocumentExporter(Struct, frozen=True):
    """What may stand behind an entry point of `assembler.exporters` too: a document for people.

    `write(shared)` gives the pieces of its file. `about` is a line for people.
    """

    about: str
    write: Callable[[Shared], Iterable[bytes]]


def _group(group: str) -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=f"assembler.{group}")}


def _load(group: str, name: str, said: str) -> Any:
    found = _group(group)
    if name not in found:
        known = ", ".join(names(group)) or "none (is the package installed?)"
        raise InputError(f"{said}: expected one of {known}, got {name!r}")
    return found[name].load()


def names(group: str) -> list[str]:
    """What a group offers, sorted; a name with a dot stands beside another and is left out."""
    return sorted(name for name in _group(group) if "." not in name)


def catalog(name: str = "default", *, said: str = "catalog") -> list[Definition | GroupDefinition]:
    """The Definitions of a catalog, made anew. They may be shared by any number of Assemblers.

    `InputError` when there is none of that name; `said` is what it calls the name.
    """
    made: Iterable[Definition | GroupDefinition] = _load("catalogs", name, said)()
    return list(made)


def row_text(name: str = "default") -> RowText | None:
    """How a Node of that catalog reads on one line; None when the catalog does not say."""
    entry = _group("catalogs").get(f"{name}.row")
    return None if entry is None else entry.load()


def marks(name: str = "default") -> Mapping[str, str]:
    """Which types of events of that catalog are worth a mark on a timeline, and which word."""
    entry = _group("catalogs").get(f"{name}.marks")
    return _NOTHING if entry is None else MappingProxyType(dict(entry.load()))


def page_module(name: str = "default") -> bytes:
    """The JavaScript module that says how a Node of that catalog reads; empty: it has none.

    The entry point names a constant: the name of a file in the package that it stands in.
    """
    entry = _group("catalogs").get(f"{name}.page")
    return b"" if entry is None else files(entry.module).joinpath(entry.load()).read_bytes()


def titles(name: str = "default") -> tuple[str, ...]:
    """The types of events that say what a conversation of that catalog is called."""
    entry = _group("catalogs").get(f"{name}.titles")
    return () if entry is None else tuple(entry.load())


def harmless(name: str = "default") -> Harmless:
    """What tells nothing about whose a conversation of that catalog is; empty: nobody says."""
    entry = _group("catalogs").get(f"{name}.harmless")
    found: Harmless = Harmless() if entry is None else entry.load()
    return found


def opening(
    name: str = "default",
) -> Callable[[str, Mapping[str, Any]], str | None] | None:
    """What finds, in the type and the data of an event, the words by which a conversation of that
    catalog is known that has no title; None: nothing does."""
    entry = _group("catalogs").get(f"{name}.opening")
    return None if entry is None else entry.load()


def protocol(name: str, *, said: str = "protocol") -> Callable[[], Any]:
    """What makes an encoder of that protocol: one for each client.

    An encoder has `feed(update)`, which gives the frames that a Snapshot or a Patch is for its
    client, as plain JSON values; its class may have `HEADERS` of the answer. `InputError` when
    there is none of that name; `said` is what it calls the name.
    """
    made: Callable[[], Any] = _load("protocols", name, said)
    return made


def importer(name: str, *, said: str = "importer") -> Importer:
    """The importer of that name.

    `InputError` when there is none of that name; `said` is what it calls the name.
    """
    loaded: Any = _load("importers", name, said)
    if isinstance(loaded, Importer):
        return loaded
    return Importer("", loaded, lambda _: False)  # a plain function, which knows no file by itself


def exporter(name: str, *, said: str = "exporter") -> Exporter | DocumentExporter:
    """The exporter of that name; `InputError` when there is none."""
    loaded: Exporter | DocumentExporter = _load("exporters", name, said)
    return loaded


@cache
def operations() -> Operations:
    """All that is plugged into the format of recordings, of every module together."""
    modules = [entry.load() for entry in _group("operations").values()]

    def together(name: str) -> Mapping[str, Any]:
        merged: dict[str, Any] = {}
        for module in modules:
            merged |= getattr(module, name, {})
        return MappingProxyType(merged)

    return Operations(
        fields=together("FIELDS"),
        expects=together("EXPECTS"),
        needs=together("NEEDS"),
        runners=together("RUNNERS"),
        expectations=together("EXPECTATIONS"),
        lacks=together("LACKS"),
        watches=together("WATCHES"),
        digests=together("DIGESTS"),
        reasons=together("REASONS"),
    )
