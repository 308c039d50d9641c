from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from assembler import (
    START,
    Context,
    Definition,
    Match,
    Node,
    Reader,
    Role,
    Scope,
    __version__,
    cli,
    plugins,
)
from assembler.cli import play
from assembler.cli.inputs import played
from assembler.cli.output import Style, cut, escaped, fill, findings_line, width, wrapped
from assembler.cli.rows import RowMaker, lines
from assembler.cli.screen import Screen
from assembler.recordings import arriving, read
from assembler.recordings.matching import Difference

OURS = Path(__file__).parents[2] / "recordings"
SHOW = str(OURS / "parallel-writes.jsonl")
CANCEL = str(OURS / "cancel.jsonl")
KINDS = str(OURS / "every-kind.jsonl")
REUSED = str(OURS / "ids-reused-across-turns.jsonl")
HEADER = {"recording": 1, "title": "t"}
LEAVE = b"\x1b[?25h\x1b[?1049l"

Asked = Callable[..., tuple[int, str, str]]


def message(seq: int, text: str = "hi") -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    data = {"message_id": f"m{seq}", "content": content}
    return {"op": "append", "event": {"seq": seq, "type": "user/message", "data": data}}


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """Ctrl-C means what it means in a terminal, also where the tests run in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Asked:
    def run(*argv: object) -> tuple[int, str, str]:
        status = cli.main(list(map(str, argv)))
        return status, *capsys.readouterr()

    return run


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., Path]:
    def made(*values: Mapping[str, Any] | bytes, name: str = "r.jsonl") -> Path:
        path = tmp_path / name
        path.write_bytes(
            b"".join(
                value if isinstance(value, bytes) else json.dumps(value).encode() + b"\n"
                for value in values
            )
        )
        return path

    return made


# The whole


@pytest.mark.parametrize(
    "command", ["play", "check", "state", "verify", "import", "export", "record"]
)
def test_help_teaches_with_an_example(ask: Asked, command: str) -> None:
    status, out, _ = ask(command, "--help")
    assert status == 0
    assert f"example: assembler {command} " in " ".join(out.split())


def test_version_and_a_call_without_anything(ask: Asked) -> None:
    assert ask("--version")[:2] == (0, f"assembler {__version__}\n")
    for argv in ((), ("jump",), ("check",)):
        status, out, err = ask(*argv)
        assert (status, out, err.count("\n")) == (2, "", 1)


NESTED = b'{"op": "append", "event": ' + b"[" * 10_000 + b"]" * 10_000 + b"}\n"
BAD: list[tuple[str, list[Any], str]] = [
    ("empty", [], ":1: recording: expected "),
    ("truncated", [HEADER, message(1), b'{"op": "appe'], ":3: line: expected JSON, got only its"),
    ("no JSON", [HEADER, b"\x1b[31m\n"], ":2: line: expected JSON, got "),
    ("unknown", [HEADER, {"op": "jump"}], ":2: op: expected one of "),
    (
        "skipped seq",
        [HEADER, message(1), message(3)],
        ":3: event.seq: expected 2, got 3: event 2 is missing",
    ),
    ("other content", [HEADER, message(1), message(1, "x")], ":3: append: expected what agrees"),
    ("nested", [HEADER, NESTED], ":2: line: expected JSON of some depth, got one nested"),
    ("surrogate", [HEADER, b'{"op": "\\ud83d"}\n'], ":2: line: expected JSON, got "),
    ("not UTF-8", [HEADER, b'{"op": "\xff"}\n'], ":2: line: expected UTF-8, got other bytes"),
]


@pytest.mark.parametrize("command", ["play", "check", "state", "verify"])
@pytest.mark.parametrize(("values", "message_"), [b[1:] for b in BAD], ids=[b[0] for b in BAD])
def test_bad_input_is_one_line_and_status_2(
    ask: Asked, file: Callable[..., Path], command: str, values: list[Any], message_: str
) -> None:
    path = file(*values)
    status, _, err = ask(command, path)
    assert (status, err.count("\n")) == (2, 1)
    assert err.startswith(f"{path}{message_}")
    assert "\x1b" not in err


@pytest.mark.parametrize("command", ["play", "check", "state", "verify"])
def test_no_file_and_a_directory(ask: Asked, tmp_path: Path, command: str) -> None:
    assert ask(command, tmp_path)[0::2] == (
        2,
        f"{tmp_path}: file: expected a file, got a directory\n",
    )
    status, _, err = ask(command, tmp_path / "none")
    assert (status, err.count("\n")) == (2, 1)
    assert err == f"{tmp_path / 'none'}: no such file\n"


def test_an_argument_of_50_megabytes(ask: Asked, file: Callable[..., Path]) -> None:
    path = file(HEADER, message(1, "x" * 50_000_000))
    status, out, _ = ask("state", path)
    assert status == 0
    assert len(out) < 1_000
    assert ask("check", path)[:2] == (0, "1 passed, 0 failed\n")


def test_a_name_that_is_not_there_is_said_with_its_option(ask: Asked) -> None:
    for argv in (("play", CANCEL), ("state", CANCEL), ("check", CANCEL), ("verify", CANCEL)):
        said = "--catalog: expected one of default, got 'nope'\n"
        assert ask(*argv, "--catalog", "nope") == (2, "", said)
    said = f"NAME: expected one of {', '.join(plugins.names('importers'))}, got 'nope'\n"
    assert ask("import", "nope", CANCEL) == (2, "", said)


@pytest.mark.parametrize("argv", [("play",), ("state",)])
def test_more_files_than_a_command_takes(ask: Asked, argv: tuple[str, ...]) -> None:
    program = f"assembler {argv[0]}"
    said = f"{program}: takes one FILE, got 3 (see {program} --help)\n"
    assert ask(*argv, SHOW, CANCEL, "-") == (2, "", said)
    said = f"{program}: unrecognized arguments: --loud (see {program} --help)\n"
    assert ask(*argv, SHOW, "--loud") == (2, "", said)


FOUND = "2 findings: reused-call-id tool:call_0, duplicate-result tool:call_0"


def test_what_was_found_is_said_at_the_end(ask: Asked) -> None:
    assert ask("play", REUSED)[1].splitlines()[-2:] == [FOUND, "live and reload agree"]
    assert ask("state", REUSED)[1].splitlines()[-2:] == ["", FOUND]
    assert ask("verify", REUSED)[1].splitlines()[0].endswith(f" events, {FOUND}")
    (told,) = json.loads(ask("verify", REUSED, "--json")[1])["recordings"]
    assert [odd["kind"] for odd in told["findings"]] == ["reused-call-id", "duplicate-result"]
    for command in ("play", "state", "verify"):
        assert "finding" not in ask(command, CANCEL)[1]


def test_findings_are_counted_and_not_all_named() -> None:
    assert findings_line([]) == ""
    assert findings_line([{"kind": "odd", "key": "a:\n"}]) == "1 finding: odd a:\\n"
    assert findings_line([{"kind": "odd", "key": "a:1"}] * 2) == "2 findings: odd a:1 (2 times)"
    many = findings_line({"kind": "odd", "key": f"a:{number}"} for number in range(20))
    assert many.startswith("20 findings: odd a:0, odd a:1, ")
    assert many.endswith(", odd a:7, and 12 more")


def test_verify_counts_apart_what_it_could_not_read(
    ask: Asked, file: Callable[..., Path], tmp_path: Path
) -> None:
    files = [CANCEL, file(HEADER, b"x\n"), tmp_path / "none"]
    status, out, _ = ask("verify", *files)
    assert (status, out.splitlines()[-1]) == (2, "1 agree, 0 do not, 2 could not be read")
    told = json.loads(ask("verify", *files, "--json")[1])
    assert [told[name] for name in ("agree", "disagree", "skipped", "unreadable")] == [1, 0, 0, 2]
    assert [each["outcome"] for each in told["recordings"]] == ["agree", *["unreadable"] * 2]


def test_a_file_of_another_kind_is_no_log(ask: Asked) -> None:
    status, out, err = ask("import", "dsh-session", CANCEL)
    assert (status, out) == (2, "")
    assert err.endswith("begins a session log; the file is no dsh-session log\n")


# check


def test_check_counts(ask: Asked) -> None:
    status, out, err = ask("check", *sorted(OURS.glob("*.jsonl")))
    assert (status, out, err) == (0, "9 passed, 0 failed\n", "")


def test_check_says_where_and_both_values(ask: Asked, file: Callable[..., Path]) -> None:
    wrong = {"op": "expect", "node": "user:m1", "is": {"kind": "x"}}
    path = file(HEADER, message(1), wrong, HEADER, message(1), wrong)
    status, out, err = ask("check", path)
    assert (status, err) == (1, "")
    assert out.splitlines() == [
        f'failed {path}:3: user:m1.kind: expected "x", got "user"',
        f'failed {path}:6: user:m1.kind: expected "x", got "user"',
        "0 passed, 2 failed",
    ]


def test_check_goes_on_behind_a_bad_file(ask: Asked, file: Callable[..., Path]) -> None:
    bad = file(HEADER, b"x\n", name="bad.jsonl")
    status, out, err = ask("check", CANCEL, bad, SHOW)
    assert (status, out, err.count("\n")) == (2, "2 passed, 1 failed\n", 1)


def test_check_never_passes_what_it_cannot_run(
    ask: Asked, file: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = plugins.operations()
    lacking = msgspec.structs.replace(
        real, fields={**real.fields, "dial": {}}, needs={**real.needs, "dial": "a telephone"}
    )
    for place in ("files", "format", "running"):
        monkeypatch.setattr(f"assembler.recordings.{place}.operations", lambda: lacking)
    path = file(HEADER, message(1), {"op": "dial"})
    assert ask("check", path)[:2] == (
        0,
        f"skipped {path}: needs a telephone (line 3)\n0 passed, 0 failed, 1 skipped\n",
    )
    status, _, err = ask("state", path)
    assert (status, err) == (
        2,
        f"{path}:3: dial: expected an operation that runs here, got one that needs a telephone\n",
    )


def test_check_for_machines(ask: Asked, file: Callable[..., Path]) -> None:
    path = file(HEADER, message(1), {"op": "expect", "nodes": []})
    status, out, _ = ask("check", path, CANCEL, "--json")
    told = json.loads(out)
    assert status == 1
    assert [told[name] for name in ("passed", "failed", "skipped")] == [1, 1, 0]
    assert told["recordings"][0]["failures"] == [
        {"line": 3, "path": "nodes", "expected": [], "got": ["user:m1"]}
    ]


# state


@pytest.mark.parametrize("path", ["live", "history", "pages:1", "pages:4"])
def test_state_prints_the_snapshot(ask: Asked, path: str) -> None:
    status, out, _ = ask("state", CANCEL, "--path", path, "--json")
    snapshot = json.loads(out)
    assert status == 0
    assert list(snapshot) == ["view", "revision", "nodes", "groups", "window", "live", "open"]
    assert snapshot["window"] == {"first": 1, "last": 13, "has_more": False}
    assert [node["kind"] for node in snapshot["nodes"]][:2] == ["user", "assistant"]
    assert snapshot["live"] is False


@pytest.mark.parametrize("path", ["live", "pages:2"])
def test_state_of_another_view(ask: Asked, path: str) -> None:
    status, out, _ = ask("state", KINDS, "--view", "trajectory", "--path", path, "--json")
    snapshot = json.loads(out)
    assert (status, snapshot["view"]) == (0, "trajectory")
    assert [node["key"] for node in snapshot["nodes"]] == ["step:1.1", "step:1.2", "step:2.1"]
    status, out, _ = ask("state", KINDS, "--view", "trajectory", "--path", path)
    rows = [line.split()[:3] for line in out.splitlines()]
    assert status == 0
    assert rows == [
        ["settled", "step", "1.1"],
        ["settled", "step", "1.2"],
        ["failed", "step", "2.1"],
    ]


def test_state_prints_rows(ask: Asked) -> None:
    status, out, _ = ask("state", CANCEL)
    rows = [line.split() for line in out.splitlines()]
    assert status == 0
    assert rows[0] == ["user", "Tidy", "the", "photo", "folder."]
    assert rows[3][:2] == ["succeeded", "Search"]
    assert rows[2][0] == "▾"


@pytest.mark.parametrize("option", ["--path=pages:0", "--path=x", "--view=x", "--catalog=x"])
def test_state_of_what_is_not_there(ask: Asked, option: str) -> None:
    status, out, err = ask("state", CANCEL, option)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert ": expected " in err


@pytest.mark.parametrize("size", ["\uff11", "٣", "²", "+1", " 1", "1_0", "9" * 5_000])
def test_a_page_size_is_written_in_plain_digits(ask: Asked, size: str) -> None:
    status, out, err = ask("state", CANCEL, f"--path=pages:{size}")
    assert (status, out, err.count("\n")) == (2, "", 1)


def test_every_way_has_its_name_in_the_help_and_in_the_error(ask: Asked) -> None:
    ways = [name for name in arriving.PATHS if not name.startswith("pages:")]
    told = (ask("state", CANCEL, "--path=x")[2], " ".join(ask("state", "--help")[1].split()))
    for name in ("live", "pages:N", *ways):
        assert [name in text for text in told] == [True, True]
    assert [ask("state", CANCEL, f"--path={way}")[0] for way in ways] == [0] * len(ways)


# verify


def test_verify_says_what_agrees(ask: Asked) -> None:
    status, out, _ = ask("verify", SHOW, CANCEL)
    assert status == 0
    assert out.splitlines()[-1] == "2 agree, 0 do not"
    assert out.startswith(f"agree {SHOW}: ")


def test_verify_says_the_first_difference(ask: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    def lossy(assembler: Any, facts: arriving.Facts) -> None:
        assembler.load(facts.events[:3], has_more=False)

    monkeypatch.setattr(arriving, "PATHS", {"pages:2": lossy})
    monkeypatch.setattr(arriving.disagreement, "__defaults__", (("chat",), ("pages:2",)))
    status, out, _ = ask("verify", CANCEL)
    assert status == 1
    assert out.startswith(f"disagree {CANCEL}: nodes: live shows [")
    assert 'pages:2 shows ["user:m1"]' in out
    assert out.endswith("0 agree, 1 do not\n")
    status, out, _ = ask("verify", CANCEL, "--json")
    assert (status, json.loads(out)["recordings"][0]["pages:2"]) == (1, ["user:m1"])


class Arrivals(Definition):
    """What it shows depends on how often it was asked, as none may."""

    kind = "arrivals"
    target = "arrivals"
    takes = frozenset({"user/message"})

    def __init__(self) -> None:
        self.asked = 0

    def match(self, item: Any) -> tuple[str, Role]:
        return "all", START

    def start(self, match: Match, reader: Reader) -> int:
        return 1

    def update(self, state: int, match: Match) -> int:
        return state + 1

    def build(self, context: Context, scope: Scope) -> Node:
        self.asked += 1
        return Node("arrivals", context.id, {"asked": self.asked})


def test_verify_looks_at_every_view(ask: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    known = [*plugins.catalog(), Arrivals()]
    monkeypatch.setattr(plugins, "catalog", lambda *_, **__: known)
    status, out, _ = ask("verify", CANCEL)
    assert status == 1
    assert "arrivals:all.data.asked: live shows " in out


def test_verify_gives_up_what_is_held(ask: Asked, file: Callable[..., Path]) -> None:
    delta = {"op": "delta", "attempt": "a", "turn": 1, "step": 1, "type": "text"}
    path = file(HEADER, message(1), {**delta, "data": {"block": 0, "text": "x"}})
    assert ask("verify", path)[0] == 0


def test_recordings_come_in_one_after_another(ask: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    def stdin(data: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    both = Path(SHOW).read_bytes() + Path(CANCEL).read_bytes()
    stdin(both)
    assert ask("check", "-")[:2] == (0, "2 passed, 0 failed\n")
    stdin(both)
    assert ask("verify", "-")[1].endswith("2 agree, 0 do not\n")
    stdin(both)
    status, _, err = ask("play", "-")
    assert (status, err.count("\n")) == (2, 1)
    assert err.startswith("<stdin>:413: recording: expected only one recording")
    stdin(b"")
    assert ask("check", "-")[2].startswith("<stdin>:1: recording: expected a first line")


# import


def importer(lines_: Any, *, name: str) -> Iterator[dict[str, Any]]:
    yield {"recording": 1, "title": name}
    for line in lines_:
        text = line.decode().strip()
        if text == "bad":
            fault = f"{name}:1: text: expected something good, got bad"
            raise ValueError(fault)
        yield message(1, text)


def test_import(
    ask: Asked, monkeypatch: pytest.MonkeyPatch, file: Callable[..., Path], tmp_path: Path
) -> None:
    monkeypatch.setattr(plugins, "importer", lambda *_, **__: importer)
    path, output = file(b"good\n", name="t.txt"), tmp_path / "out.jsonl"
    status, out, _ = ask("import", "any", path)
    assert status == 0
    assert [json.loads(line) for line in out.splitlines()] == [
        {"recording": 1, "title": str(path)},
        message(1, "good"),
    ]
    assert ask("import", "any", path, "-o", output) == (0, "", "")
    assert output.read_text() == out
    assert read(output).title == str(path)
    bad = file(b"good\n", b"bad\n", name="bad.txt")
    for argv in (("import", "any", bad), ("import", "any", bad, "-o", output)):
        assert ask(*argv) == (2, "", f"{bad}:1: text: expected something good, got bad\n")
    assert output.read_text() == out
    assert sorted(tmp_path.iterdir()) == [bad, output, path]


def test_what_an_importer_makes_is_read_before_it_is_written(
    ask: Asked, monkeypatch: pytest.MonkeyPatch, file: Callable[..., Path], tmp_path: Path
) -> None:
    monkeypatch.setattr(
        plugins, "importer", lambda *_, **__: lambda _, name: [HEADER, {"op": name}]
    )
    path, output = file(name="t.txt"), tmp_path / "out.jsonl"
    for argv in (("import", "any", path), ("import", "any", path, "-o", output)):
        status, out, err = ask(*argv)
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert err.startswith(f"{path} (imported):2: op: expected one of ")
    assert not output.exists()


def test_import_of_what_is_not_there(ask: Asked, tmp_path: Path) -> None:
    for argv in (("no-such-format", SHOW), (plugins.names("importers")[0], tmp_path / "none")):
        status, out, err = ask("import", *argv)
        assert (status, out, err.count("\n")) == (2, "", 1)
    name = plugins.names("importers")[0]
    status, _, err = ask("import", name, tmp_path)
    said = "import: expected -o FOLDER or --store STORE for several transcripts\n"
    assert (status, err) == (2, said)


# play, for a file


def test_play_logs_what_changed_then_the_rows_then_the_verdict(ask: Asked) -> None:
    status, out, err = ask("play", SHOW)
    told = out.splitlines()
    assert (status, err) == (0, "")
    assert told[0] == read(SHOW).title
    assert told[-1] == "live and reload agree"
    assert len(told) < 80  # not one for each of the pieces
    assert "\x1b" not in out
    writes = [line for line in told if line.split()[3:4] == ["Write"] and "units.md" in line]
    stages = [line.split()[2] for line in writes if line.split()[1] in "+~"]
    assert list(dict.fromkeys(stages)) == ["preparing", "running", "waiting", "succeeded"]
    assert all("docs/units.md  content: 15 lines, 468 B" in line for line in writes)
    assert max(map(width, told)) == 160
    assert [line for line in told if line.endswith(" ")] == []


def test_play_shows_another_view(ask: Asked) -> None:
    status, out, _ = ask("play", KINDS, "--view", "trajectory")
    log, _, end = out.partition("\n\n")
    changes = [line.split()[1:5] for line in log.splitlines() if line[10:12] in ("+ ", "~ ")]
    assert status == 0
    assert changes[0] == ["+", "running", "step", "1.1"]
    assert changes[-1] == ["~", "failed", "step", "2.1"]
    assert {" ".join(change[2:]) for change in changes} == {"step 1.1", "step 1.2", "step 2.1"}
    assert [line.split()[2] for line in end.splitlines()[:3]] == ["1.1", "1.2", "2.1"]
    assert end.endswith("live and reload agree\n")
    status, out, _ = ask("play", KINDS, "--view", "trajectory", "--json")
    patches = [patch for line in out.splitlines() for patch in json.loads(line).get("patches", ())]
    assert (status, {patch["view"] for patch in patches}) == (0, {"trajectory"})
    status, out, err = ask("play", KINDS, "--view", "none")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err == "--view: expected one of chat, trajectory, got none\n"


def test_play_tells_a_text_that_grew_once(ask: Asked) -> None:
    _, out, _ = ask("play", SHOW)
    log = out.partition("\n\n")[0].splitlines()
    (told,) = [line for line in log if line.endswith("I'll look at the package first.")]
    assert told.split()[1:3] == ["~", "assistant"]  # with the event that settled it


def test_play_says_what_goes(ask: Asked) -> None:
    _, out, _ = ask("play", OURS / "retry-in-mid-call.jsonl")
    gone = [line.split(maxsplit=2)[2] for line in out.splitlines() if line[10:12] == "- "]
    assert [" ".join(line.split()) for line in gone] == [
        "running assistant Let me read both sensors.",
        "preparing read_sensor sensor: north",
        "preparing read_sensor sensor: so",
    ]


def test_play_does_not_go_back_in_time_for_older_pages(ask: Asked) -> None:
    _, out, _ = ask("play", OURS / "reload-in-mid-stream.jsonl")
    log = [line for line in out.partition("\n\n")[0].splitlines() if line[10:12] in ("+ ", "~ ")]
    times = [float(line.split()[0]) for line in log]
    assert len(times) > 5
    assert times == sorted(times)


def test_play_counts_from_the_first_time_that_is_known(
    ask: Asked, file: Callable[..., Path]
) -> None:
    began = 1_700_000_000_000
    lines: list[dict[str, Any]] = [message(seq) for seq in (1, 2, 3, 4)]
    for said, time_ in zip(lines[1:], (began, began + 1_500, began + 3_725_000), strict=True):
        said["event"]["time"] = time_
    _, out, _ = ask("play", file(HEADER, *lines))
    told = [line.split()[0] for line in out.splitlines() if line[10:12] == "+ "]
    assert told == ["0.000", "0.000", "1.500", "1:02:05"]


@pytest.mark.parametrize("command", ["play", "check", "state", "verify"])
def test_a_database_is_no_recording(ask: Asked, tmp_path: Path, command: str) -> None:
    path = tmp_path / "chat.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE notes (id)")
    status, _, err = ask(command, path)
    assert (status, err.count("\n")) == (2, 1)
    assert err.endswith("got a database (assembler serve shows it)\n")


@pytest.mark.parametrize("speed", ["0", "-0.0", "-1", "nan", "inf", "1e999", "x", ""])
def test_a_speed_that_is_none(ask: Asked, speed: str) -> None:
    status, out, err = ask("play", CANCEL, "--speed", speed)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert f"expected a number above 0, got {speed!r}" in err


@pytest.mark.parametrize("speed", ["1e-300", "5e-324", "1e308"])
def test_a_speed_that_is_hard_to_believe(
    ask: Asked, file: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, speed: str
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    status, out, _ = ask("play", file(HEADER, message(1), message(2)), "--speed", speed)
    assert status == 0
    assert out.endswith("live and reload agree\n")
    assert all(wait <= 60 for wait in waits)


def test_who_was_stopped_does_not_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    pace = play._Pace(1)
    assert [pace.wait(now) for now in (None, 1_000, 2_000, 1_500, 2_000)] == [0, 0, 1, 1, 1]
    clock += 3_600
    assert pace.wait(3_000) == 0.5
    assert pace.wait(4_000) == 1.5


def test_play_says_when_the_reload_differs(ask: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    found = "history", Difference("a:b.data", 1, "\x1b[2J")
    monkeypatch.setattr(play, "disagreement", lambda *_: found)
    status, out, _ = ask("play", CANCEL)
    assert status == 1
    assert out.endswith(
        'live and reload disagree: a:b.data: live shows 1, the reload shows "\\u001b[2J"\n'
    )


def test_play_says_what_was_still_held(ask: Asked, file: Callable[..., Path]) -> None:
    delta = {"op": "delta", "attempt": "a", "turn": 1, "step": 1, "type": "text"}
    path = file(HEADER, {**delta, "data": {"block": 0, "text": "x"}})
    status, out, _ = ask("play", path)
    assert status == 0
    assert "still held at the end: 1 deltas" in out


def test_play_for_machines(ask: Asked) -> None:
    status, out, _ = ask("play", CANCEL, "--json")
    told = [json.loads(line) for line in out.splitlines()]
    assert status == 0
    assert told[-1] == {"agree": True, "given_up": 0, "difference": None}
    assert {op["op"] for each in told[:-1] for patch in each["patches"] for op in patch["ops"]} > {
        "put",
        "remove",
    }


def test_control_characters_are_shown_and_never_sent(ask: Asked, file: Callable[..., Path]) -> None:
    path = file({**HEADER, "title": "\x1b]0;x\x07"}, message(1, "a\x1b[31mb\x07\u202ec\x9bd\ne"))
    for argv in (("play", path), ("state", path)):
        _, out, _ = ask(*argv)
        assert "a\\e[31mb\\x07\\u202ec\\x9bd ⏎ e" in out
        assert not set(out) & set("\x1b\x07\u202e\x9b")


# Text on a terminal


@pytest.mark.parametrize(
    ("text", "shown", "columns"),
    [
        ("plain", "plain", 5),
        ("né", "né", 2),
        ("小麦", "小麦", 4),
        ("e\u0301", "e\u0301", 1),
        ("👩‍🍳", "👩‍🍳", 4),
        ("\t\r\n", "\\t\\r\\n", 6),
        ("\x00\x7f", "\\x00\\x7f", 8),
        ("\u2028\u2066", "\\u2028\\u2066", 12),
        ("\U000e0041", "\\U000e0041", 10),
        ("\u00a0", "\u00a0", 1),
    ],
)
def test_escaping_and_width(text: str, shown: str, columns: int) -> None:
    assert escaped(text) == shown
    assert width(shown) == columns


@pytest.mark.parametrize(
    "text", ["", "a", "abcdefghij", "小麦粉小麦粉", "a\x1bb" * 9, "x" * 10_000]
)
def test_what_is_cut_fits_at_any_width(text: str) -> None:
    for columns in range(12):
        assert width(cut(text, columns)) <= columns
        assert width(fill(text, columns)) == columns
    assert cut("abcdefghij", 7) == "abcd…ij"
    assert cut("a" * 50 + "b" * 50, 61) == "a" * 30 + "…" + "b" * 30
    assert cut("abcdefghij", 10) == "abcdefghij"


def test_what_is_wrapped_fits_and_ends() -> None:
    assert wrapped("", 20) == []
    assert wrapped("one\n two \x1b three", 20) == ["one two \\e three"]
    assert wrapped("aa bb cc dd ee ff", 10) == ["aa bb cc", "dd ee ff"]
    long = wrapped("word " * 1_000_000, 20)
    assert (len(long), long[-1][-1]) == (5, "…")
    for columns in range(15):
        assert all(width(line) <= columns for line in wrapped("小麦粉 and bread " * 9, columns))


def test_the_longest_stage_is_not_cut(ask: Asked) -> None:
    for command in ("play", "state"):
        assert "\ninterrupted assistant " in ask(command, CANCEL)[1]


def test_play_says_what_it_is_about(ask: Asked) -> None:
    told = ask("play", OURS / "result-without-its-call.jsonl")[1].splitlines()
    about = " ".join(told[1:3])
    assert about == read(OURS / "result-without-its-call.jsonl").header["about"]


@pytest.mark.parametrize("columns", [1, 5, 20, 33, 34, 80, 200])
def test_rows_fit_at_any_width(columns: int) -> None:
    maker = RowMaker(plugins.row_text())
    view = played(read(SHOW), plugins.catalog()).assembler.view("chat")
    rows = maker.rows(view.nodes, view.groups)
    for line in lines(rows, Style(io.StringIO()), columns):
        assert width(line) <= columns
    assert maker.rows(view.nodes, view.groups)[0] is rows[0]


def test_a_node_that_no_catalog_explains_still_has_a_row() -> None:
    node = Node("thing", "7", {"a": [1, "\x1b"]}).placed(0, None, None)  # type: ignore[arg-type]
    (row,) = RowMaker(None).rows([node], [])
    assert list(lines([row], Style(io.StringIO()), 60)) == [
        '            thing         7 {"a":[1,"\\u001b"]}'
    ]


def test_the_lines_of_a_text_are_one_row() -> None:
    node = Node("thing", "7", {}).placed(0, None, None)  # type: ignore[arg-type]
    (row,) = RowMaker(lambda _: ("", "a\nb", "\n one \r\n\n\ttwo\n")).rows([node], [])
    assert list(lines([row], Style(io.StringIO()), 60)) == ["            a\\nb          one ⏎ two"]


def test_colour_only_where_it_is_seen_and_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert Style(terminal)("x", "bold") == "\x1b[1mx\x1b[0m"
    assert Style(terminal)("x", None) == "x"
    assert Style(io.StringIO())("x", "bold") == "x"
    monkeypatch.setenv("NO_COLOR", "1")
    assert Style(terminal)("x", "bold") == "x"


# Processes: pipes, terminals, signals


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "TERM": "xterm", **more}


def command(*argv: object) -> list[str]:
    return [sys.executable, "-m", "assembler", *map(str, argv)]


def test_a_pipe_that_nobody_reads() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(  # noqa: S603 - our own command
        command("play", SHOW), stdout=writer, stderr=subprocess.PIPE, check=False, timeout=30
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


def shell(line: str) -> tuple[int, str, str]:
    """A line of a shell, in which `assembler` is our command."""
    line = line.replace("assembler", f"{sys.executable} -m assembler")
    done = subprocess.run(  # noqa: S603 - our own line
        ["/bin/sh", "-c", line],
        capture_output=True,
        env=environment(PYTHONUNBUFFERED=""),
        text=True,
        check=False,
        timeout=30,
    )
    return done.returncode, done.stdout, done.stderr


CLOSED_OUTPUT = "standard output: expected an open one, got a closed one\n"
CLOSED_INPUT = "<stdin>: file: expected one that can be read, got: a closed one\n"
FULL = "standard output: No space left on device\n"
STREAMS = [
    (f"assembler play {CANCEL} >&-", CLOSED_OUTPUT),
    ("assembler --help >&-", CLOSED_OUTPUT),
    ("assembler state - <&-", CLOSED_INPUT),
    ("assembler import dsh-session - <&-", CLOSED_INPUT),
    ("assembler play - 0>/dev/null", CLOSED_INPUT.replace("a closed one", "Bad file descriptor")),
    (f"assembler state {CANCEL} >/dev/full", FULL),
    ("assembler --version >/dev/full", FULL),
    ("assembler state none 2>&-", ""),
]


@pytest.mark.parametrize(("line", "said"), STREAMS)
def test_streams_that_are_closed_or_full(line: str, said: str) -> None:
    assert shell(line) == (2, "", said)


@pytest.mark.parametrize("command", ["play", "check", "state", "verify", "import dsh-session"])
def test_every_command_with_closed_streams(
    ask: Asked, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    with monkeypatch.context() as closed:
        closed.setattr(sys, "stdin", None)
        status, out, err = ask(*command.split(), "-")
        assert (status, err) == (2, CLOSED_INPUT)
        assert out in ("", "0 passed, 1 failed\n", "0 agree, 0 do not, 1 could not be read\n")
    with monkeypatch.context() as closed:
        closed.setattr(sys, "stdout", None)
        assert ask(*command.split(), CANCEL) == (2, "", CLOSED_OUTPUT)
    with monkeypatch.context() as closed:
        closed.setattr(sys, "stderr", None)
        assert ask(*command.split(), "none")[0::2] == (2, "")


def test_a_full_disk_is_said_with_the_file(
    ask: Asked, monkeypatch: pytest.MonkeyPatch, file: Callable[..., Path], tmp_path: Path
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(plugins, "importer", lambda *_, **__: importer)
    monkeypatch.setattr(os, "fsync", full)
    path, output = file(b"good\n", name="t.txt"), tmp_path / "out.jsonl"
    assert ask("import", "any", path, "-o", output) == (
        2,
        "",
        f"{output}: No space left on device\n",
    )
    assert list(tmp_path.iterdir()) == [path]
    missing = tmp_path / "none" / "out.jsonl"
    assert ask("import", "any", path, "-o", missing)[2] == f"{missing}: No such file or directory\n"


def test_an_interrupt_while_it_is_still_being_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "assembler.cli.dispatch":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "assembler.cli.dispatch", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupted(), *sys.meta_path])
    assert cli.main(["--version"]) == 130


def test_a_locale_that_cannot_say_it() -> None:
    done = subprocess.run(  # noqa: S603 - our own command
        command("state", SHOW),
        capture_output=True,
        env=environment(LC_ALL="C", PYTHONIOENCODING="ascii", PYTHONUTF8="0"),
        check=True,
        timeout=30,
    )
    assert b"\\u25be " in done.stdout


class Terminal:
    """A command on a terminal of its own."""

    def __init__(
        self, *argv: object, columns: int = 60, rows: int = 12, term: str = "xterm"
    ) -> None:
        self.master, self.slave = os.openpty()
        termios.tcsetwinsize(self.slave, (rows, columns))
        self.before = termios.tcgetattr(self.slave)
        self.output = b""
        self.process = subprocess.Popen(  # noqa: S603 - our own command
            command(*argv),
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave,
            env=environment(TERM=term),
            start_new_session=True,
        )
        os.set_blocking(self.master, False)

    def read(self) -> None:
        with contextlib.suppress(BlockingIOError, OSError):
            while piece := os.read(self.master, 65_536):
                self.output += piece

    def until(self, holds: Callable[[], bool], seconds: float = 20) -> None:
        end = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < end, self.output[-500:]
            time.sleep(0.01)
            self.read()

    def shows(self, text: bytes) -> bool:
        return text in self.output

    def end(self) -> int:
        self.until(lambda: self.process.poll() is not None)
        self.read()
        return self.process.returncode

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)
        os.close(self.slave)


@pytest.fixture
def terminal() -> Iterator[Callable[..., Terminal]]:
    with contextlib.ExitStack() as stack:

        def made(*argv: object, **how: Any) -> Terminal:
            opened = Terminal(*argv, **how)
            stack.callback(opened.close)
            return opened

        yield made


def test_play_on_a_terminal(terminal: Callable[..., Terminal]) -> None:
    shown = terminal("play", SHOW, "--speed", "20")
    assert shown.end() == 0
    live, _, after = shown.output.partition(LEAVE)
    assert live.startswith(b"\x1b[?1049h\x1b[?25l")
    assert b"preparing" in live
    assert "█".encode() in live
    assert b"live and reload agree" in after
    assert termios.tcgetattr(shown.slave) == shown.before


@pytest.mark.parametrize(
    ("number", "status"),
    [
        (signal.SIGTERM, 143),
        (signal.SIGINT, 130),
        (signal.SIGHUP, 129),
        (signal.SIGQUIT, 131),
    ],
)
def test_the_terminal_is_given_back(
    terminal: Callable[..., Terminal], number: signal.Signals, status: int
) -> None:
    shown = terminal("play", SHOW, "--speed", "2")
    shown.until(lambda: shown.shows(b"assistant"))
    shown.process.send_signal(number)
    assert shown.end() == status
    live, _, after = shown.output.partition(LEAVE)
    assert b"assistant" in live
    if number == signal.SIGINT:
        # Who stops it wants to read on what there was.
        told = after.decode().splitlines()
        assert read(SHOW).title in told[0]
        assert told[1].startswith("\x1b[2mA model answers with three")
        assert any("assistant" in line for line in told)
        assert re.fullmatch(r"stopped at \d+%", told[-1])
    else:
        assert after == b""
    assert b"Traceback" not in shown.output
    assert termios.tcgetattr(shown.slave) == shown.before


def test_a_stopped_play_gives_the_terminal_back_until_it_goes_on(
    terminal: Callable[..., Terminal],
) -> None:
    shown = terminal("play", SHOW)
    shown.until(lambda: shown.shows(b"assistant"))
    shown.process.send_signal(signal.SIGTSTP)
    shown.until(lambda: shown.output.endswith(LEAVE))
    shown.process.send_signal(signal.SIGCONT)
    # What was there is shown again at once, not only when something happens.
    shown.until(lambda: b"assistant" in b"".join(shown.output.split(b"\x1b[?1049h")[2:]))
    shown.process.send_signal(signal.SIGQUIT)
    assert shown.end() == 131
    assert shown.output.endswith(LEAVE)


def test_a_line_as_wide_as_the_screen_keeps_its_end() -> None:
    stream = io.StringIO()
    with Screen(stream) as screen:
        screen.draw(["full", "last"])
    (drawn,) = re.findall(r"\x1b\[H(.*)\x1b\[0m", stream.getvalue(), re.DOTALL)
    # A terminal stays in its last column until more comes: erasing there takes the end away.
    assert drawn == "\x1b[Kfull\r\n\x1b[Jlast"


def test_an_error_on_the_screen_gives_the_terminal_back() -> None:
    stream = io.StringIO()
    handler = signal.getsignal(signal.SIGTERM)

    def broken() -> None:
        with Screen(stream) as screen:
            assert signal.getsignal(signal.SIGTERM) != handler
            screen.draw(["x"])
            raise RuntimeError

    with pytest.raises(RuntimeError):
        broken()
    assert stream.getvalue().endswith(LEAVE.decode())
    assert signal.getsignal(signal.SIGTERM) == handler
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_terminal_that_cannot_be_drawn_on(terminal: Callable[..., Terminal]) -> None:
    shown = terminal("play", CANCEL, term="dumb")
    assert shown.end() == 0
    assert b"\x1b" not in shown.output
    assert b"live and reload agree" in shown.output


def test_a_very_small_terminal(terminal: Callable[..., Terminal]) -> None:
    shown = terminal("play", CANCEL, "--speed", "1000", columns=3, rows=1)
    assert shown.end() == 0


def test_progress_over_many_files_is_for_people(terminal: Callable[..., Terminal]) -> None:
    shown = terminal("verify", *[CANCEL] * 30)
    assert shown.end() == 0
    assert b"\r\x1b[K1/30 " in shown.output
    assert b"30 agree, 0 do not" in shown.output
