"""Transcripts by their content: which importer knows them, folders, stores, and a second time."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from assembler import plugins
from assembler.cli.dispatch import dispatch
from assembler.plugins import Importer, Sample
from assembler.recordings import read_many
from assembler.recordings.transcripts import importer_for, read_any, sample_of
from assembler.stores import SQLiteStore

Json = dict[str, Any]


def diary(lines: Iterable[bytes], *, name: str) -> Iterator[Json]:
    """Reads our own small format: a line for each thing said, in a conversation or beside it."""
    seqs: dict[str | None, int] = {}
    yield {"recording": 1, "title": name}
    for number, line in enumerate(lines, 1):
        fields = json.loads(line)
        if "said" not in fields:
            message = f"{name}:{number}: said: expected a text"
            raise ValueError(message)
        beside = fields.get("in")
        where = {} if beside is None else {"conversation": beside}
        if beside is not None and beside not in seqs:
            yield {"recording": 1, "title": beside, **where}
        seqs[beside] = seqs.get(beside, 0) + 1
        data = {"message_id": f"m{number}", "content": [{"type": "text", "text": fields["said"]}]}
        event = {"seq": seqs[beside], "type": "user/message", "data": data, "id": f"line-{number}"}
        yield {"op": "append", "event": event, **where}
    yield {"op": "liveness", "live": False}


def knows(sample: Sample) -> bool:
    return bool(sample.records) and "said" in sample.records[0]


@pytest.fixture(autouse=True)
def plugged(monkeypatch: pytest.MonkeyPatch) -> None:
    importer = Importer("diaries", diary, knows)
    monkeypatch.setattr(plugins, "names", lambda _: ["diary"])
    monkeypatch.setattr(plugins, "importer", lambda *_, **__: importer)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    write(folder / "one.jsonl", {"said": "hello"}, {"said": "again"})
    write(folder / "deep" / "two.jsonl", {"said": "up"}, {"said": "down", "in": "c1"})
    (folder / "notes.txt").write_text("no transcript\n")
    (folder / ".hidden.jsonl").write_text('{"said": "no"}\n')
    return folder


def write(path: Path, *records: Json) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def ask(capsys: pytest.CaptureFixture[str], *argv: object) -> tuple[int, str, str]:
    status = dispatch([str(each) for each in argv])
    told = capsys.readouterr()
    return status, told.out, told.err


def said(store: Path) -> dict[str, list[str]]:
    with SQLiteStore(store).sync as events:
        return {
            listed.conversation: [
                event.data["content"][0]["text"] for event in events.read(listed.conversation)
            ]
            for listed in events.conversations()
        }


# What a file is


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (b'{"a": 1}\n\n{"b": 2}\n', ({"a": 1}, {"b": 2})),
        (b'\xef\xbb\xbf{"a": 1}\n{"half": ', ({"a": 1},)),
        (b'{\n "a": 1\n}\n', ({"a": 1},)),
        (b'{\n "a": 1\n} {\n "b": 2}', ({"a": 1}, {"b": 2})),
        (b': hello\nevent: x\ndata: {"a": 1}\n\ndata: [DONE]\n', ({"a": 1},)),
        (b"no JSON", ()),
        (b"\xff\xfe\x00", ()),
        (b"[" * 100_000, ()),
        (b"", ()),
    ],
)
def test_a_sample_is_what_stands_whole_at_the_beginning(text: bytes, values: Any) -> None:
    assert sample_of(io.BytesIO(text)).values == values


def test_a_list_counts_as_its_items() -> None:
    assert sample_of(io.BytesIO(b'[{"a": 1}, 2]')).records == ({"a": 1},)
    assert sample_of(io.BytesIO(b'[1]\n{"a": 1}\n')).records == ({"a": 1},)


def test_a_recording_is_nobody_s_transcript() -> None:
    both = Sample(({"recording": 1, "said": "x"},))
    assert knows(both)
    assert importer_for(both) is None
    assert importer_for(Sample(({"said": "x"},))) == "diary"
    assert importer_for(Sample(({"other": 1},))) is None


# Commands that take either


@pytest.mark.parametrize("command", ["play", "state", "verify"])
def test_a_transcript_goes_where_a_recording_goes(
    command: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = ask(capsys, command, home / "deep" / "two.jsonl")
    assert (status, err) == (0, "")
    assert "up" in out or command == "verify"
    assert "down" not in out
    if command == "verify":
        assert "2 agree" in out


def test_a_fault_of_a_transcript_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "x.jsonl", {"said": "a"}, {"mute": 1})
    for command in ("play", "state", "verify", "import"):
        status, _, err = ask(capsys, command, path)
        assert (status, err) == (2, f"{path}:2: said: expected a text\n")


# Files and folders


def test_what_stands_beside_the_main_conversation_goes_beside_its_file(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, output = home / "deep" / "two.jsonl", tmp_path / "out.jsonl"
    status, out, err = ask(capsys, "import", source)
    assert (status, out.count("\n")) == (0, 3)
    assert err == "1 more conversations stand inside: -o FILE writes them beside it\n"
    assert ask(capsys, "import", source, "-o", output) == (0, "", "")
    assert output.read_text() == out
    beside = read_any(tmp_path / "out.c1.jsonl")
    assert [operation.name for operation in next(beside).operations] == ["append"]


def test_a_folder_is_imported_with_all_that_is_in_it(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    for _ in range(2):
        status, out, err = ask(capsys, "import", home, "-o", output)
        assert status == 0
        assert out == f"imported 2 transcripts, 3 conversations, 4 events to {output}\n"
        assert err == f"left out, no transcript: {home / 'notes.txt'}\n"
        names = [path.relative_to(output).as_posix() for path in sorted(output.rglob("*.jsonl"))]
        assert names == [
            "deep/two.recording.c1.jsonl",
            "deep/two.recording.jsonl",
            "one.recording.jsonl",
        ]
        assert all(list(read_many(output / name)) for name in names)


def test_a_folder_needs_a_place_to_go(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    needs = "import: expected -o FOLDER or --store STORE for several transcripts\n"
    assert ask(capsys, "import", home) == (2, "", needs)
    file = write(tmp_path / "f", {"said": "x"})
    status, _, err = ask(capsys, "import", home, "-o", file)
    assert (status, err.count("\n")) == (2, 1)
    assert "expected a folder" in err


def test_one_bad_file_does_not_keep_the_others_out(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = write(home / "bad.jsonl", {"said": "a"}, {"mute": 1})
    store = tmp_path / "chat.db"
    status, out, err = ask(capsys, "import", home, "--store", store)
    assert status == 2
    assert err.splitlines()[0] == f"{bad}:2: said: expected a text"
    assert out.startswith("imported 2 transcripts")
    assert {"one", "deep/two", "deep/two/c1"} <= set(said(store))


def test_two_files_of_one_name_are_not_made_one_conversation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = write(tmp_path / "in" / "mine" / "log.jsonl", {"said": "a"})
    other = write(tmp_path / "in" / "yours" / "log.jsonl", {"said": "b"})
    store, folder = tmp_path / "chat.db", tmp_path / "out"
    for where in (("--store", store), ("-o", folder)):
        status, _, err = ask(capsys, "import", first, other, first, *where)
        assert (status, err.count("\n")) == (2, 1)
        assert err.startswith(f"{other}: name: expected another than that of {first}, got 'log'")
    assert said(store) == {"log": ["a"]}
    assert [path.name for path in folder.iterdir()] == ["log.recording.jsonl"]
    assert ask(capsys, "import", tmp_path / "in", "--store", tmp_path / "all.db")[0] == 0
    assert said(tmp_path / "all.db") == {"mine/log": ["a"], "yours/log": ["b"]}


# Stores, again and again


def test_what_was_imported_before_is_there_once(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "chat.db"
    wanted = {"one": ["hello", "again"], "deep/two": ["up"], "deep/two/c1": ["down"]}
    for new in (4, 0):
        status, out, _ = ask(capsys, "import", home, "--store", store)
        assert (status, out.endswith(f"{new} of the events are new\n")) == (0, True)
        assert said(store) == wanted
    with (home / "one.jsonl").open("a") as file:
        file.write('{"said": "more"}\n')
    _, out, _ = ask(capsys, "import", home, "--store", store)
    assert out.endswith(", 1 of the events are new\n")
    assert said(store) == {**wanted, "one": ["hello", "again", "more"]}


def test_what_is_no_store_is_said_once(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "notes.txt"
    store.write_text("no database\n" * 100)
    status, out, err = ask(capsys, "import", home, "--store", store)
    assert (status, out, err) == (2, "", f"{store}: file is not a database\n")
    assert store.read_text() == "no database\n" * 100


def test_more_than_a_batch_is_stored_in_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "long.jsonl", *({"said": str(at)} for at in range(2_500)))
    assert ask(capsys, "import", path, "--store", tmp_path / "chat.db")[0] == 0
    assert said(tmp_path / "chat.db") == {"long": [str(at) for at in range(2_500)]}
