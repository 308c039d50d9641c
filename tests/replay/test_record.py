from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from assembler import cli
from assembler.cli import record
from assembler.recordings import RecordingWriter, read

TURN = b'{"seq":1,"type":"turn/start","data":{"turn":1}}\n'
TEXT = b'{"attempt":"a1","turn":1,"step":1,"type":"text","data":{"block":0,"text":"x"}}\n'

Asked = Callable[..., tuple[int, str, str]]


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Asked:
    def run(*argv: object) -> tuple[int, str, str]:
        status = cli.main(["record", *map(str, argv)])
        return status, *capsys.readouterr()

    return run


@pytest.fixture
def lines(tmp_path: Path) -> Callable[..., Path]:
    def made(*lines: bytes) -> Path:
        path = tmp_path / "lines"
        path.write_bytes(b"".join(lines))
        return path

    return made


def test_each_line_becomes_the_operation_that_it_stands_for(
    ask: Asked, lines: Callable[..., Path]
) -> None:
    path = lines(
        TURN,
        b"\n",
        b"data: " + TEXT,
        b": nobody hears this\n",
        b'{"attempt":"a1","outcome":"completed"}\n',
        b'{"live":false}\n',
        b'{"op":"evict","before":1}',
    )
    status, out, err = ask(path, "--title", "t")
    assert (status, err) == (0, "")
    header, *operations = map(json.loads, out.splitlines())
    assert header["title"] == "t"
    assert operations == [
        {"op": "append", "event": json.loads(TURN)},
        {"op": "delta", **json.loads(TEXT)},
        {"op": "settle", "attempt": "a1", "outcome": "completed"},
        {"op": "liveness", "live": False},
        {"op": "evict", "before": 1},
    ]


def test_what_it_writes_is_a_recording(
    ask: Asked, lines: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "r.jsonl"
    assert ask(lines(TURN, TEXT), "-o", out) == (0, "", "")
    assert len(read(out).operations) == 2
    assert cli.main(["state", str(out)]) == 0
    assert "assistant" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"[1]\n", "line: expected an object, got [1]"),
        (b"{}\n", "line: expected one of seq, attempt, live and op in it, got none of them"),
        (b'{"seq":1,"type":3}\n', "event.type: expected a text that is not empty, got 3"),
        (b'{"live":1}\n', "live: expected "),
        (b"{\n", "line: expected JSON, got "),
        (b"\xff\n", "line: expected JSON, got "),
    ],
)
def test_a_bad_line_is_named_and_no_file_is_left(
    ask: Asked, lines: Callable[..., Path], tmp_path: Path, line: bytes, said: str
) -> None:
    path, out = lines(TURN, line), tmp_path / "out"
    status, printed, err = ask(path, "-o", out)
    assert (status, printed, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"{path}:2: {said}")
    assert not out.exists()
    assert ask(path)[1].count("\n") == 2  # what came before it


def test_an_interrupt_ends_it_well() -> None:
    def coming() -> Iterator[bytes]:
        yield TURN
        raise KeyboardInterrupt

    out = io.BytesIO()
    record._record(coming(), RecordingWriter(out, title="t"), "lines")
    assert out.getvalue().count(b"\n") == 2


def test_no_file(ask: Asked, tmp_path: Path) -> None:
    none = tmp_path / "none"
    assert ask(none) == (2, "", f"{none}: no such file\n")
