from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assembler import cli, plugins

CANCEL = Path(__file__).parents[2] / "recordings" / "cancel.jsonl"
TURN = {"op": "append", "event": {"type": "turn/start", "data": {"turn": 1}}}
CALL = {"turn": 1, "step": 1, "call_id": "c1", "name": "hush", "arguments": "{}"}

Asked = Callable[..., tuple[int, str, str]]


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Asked:
    def run(*argv: object) -> tuple[int, str, str]:
        status = cli.main(["export", *map(str, argv)])
        return status, *capsys.readouterr()

    return run


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., Path]:
    def made(*operations: Any, **header: Any) -> Path:
        path = tmp_path / "r.jsonl"
        lines = [{"recording": 1, "title": "t", **header}, *operations]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
        return path

    return made


def frames(out: str) -> list[Any]:
    return [json.loads(line) for line in out.splitlines()]


FRAMES = [
    name
    for name in plugins.names("exporters")
    if isinstance(plugins.exporter(name), plugins.Exporter)
]


@pytest.mark.parametrize("name", FRAMES)
def test_it_writes_the_same_each_time_as_lines_and_as_it_is_sent(ask: Asked, name: str) -> None:
    status, out, err = ask("--to", name, CANCEL, "--json")
    assert (status, err) == (0, "")
    sent = frames(out)
    assert len(sent) >= 10
    assert ask("--to", name, CANCEL, "--json")[1] == out
    raw = ask("--to", name, CANCEL)[1]
    lines = [line.removeprefix("data: ") for line in raw.splitlines()]
    said = [json.loads(line) for line in lines if line and line != "[DONE]"]
    if name == "acp":
        said = [line["params"]["update"] for line in said]
    assert said == sent


def test_there_are_three_for_clients_and_one_for_people() -> None:
    assert FRAMES == ["acp", "ag-ui", "ai-sdk"]
    assert plugins.names("exporters") == [*FRAMES, "html"]


def test_a_stream_of_the_ai_sdk_ends_as_its_client_expects(ask: Asked) -> None:
    assert ask("--to", "ai-sdk", CANCEL)[1].endswith("data: [DONE]\n\n")


def test_a_client_that_comes_at_the_end_sees_no_withdrawal(ask: Asked) -> None:
    live = frames(ask("--to", "acp", "--json", CANCEL)[1])
    reload = frames(ask("--to", "acp", "--json", "--reload", CANCEL)[1])
    assert "preparationDiscarded" in str(live)
    assert reload
    assert "preparationDiscarded" not in str(reload)


def test_a_client_comes_again_where_the_recording_reconnects(
    ask: Asked, file: Callable[..., Path]
) -> None:
    path = file(TURN, {"op": "reconnect", "page": 5})
    kinds = [each["type"] for each in frames(ask("--to", "ai-sdk", "--json", path)[1])]
    assert kinds == ["start", "start"]


def test_tools_that_the_recording_hides_are_hidden(ask: Asked, file: Callable[..., Path]) -> None:
    call = {"op": "append", "event": {"type": "tool/call", "data": CALL}}
    for name in FRAMES:
        assert "hush" in ask("--to", name, file(TURN, call))[1]
        assert "hush" not in ask("--to", name, file(TURN, call, hidden_tools=["hush"]))[1]


def test_it_writes_a_file_whole_or_not_at_all(
    ask: Asked, file: Callable[..., Path], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert ask("--to", "ag-ui", CANCEL, "-o", out) == (0, "", "")
    written = out.read_text("utf-8")
    assert written == ask("--to", "ag-ui", CANCEL)[1]
    hole = {"op": "append", "event": {"seq": 9, "type": "turn/end", "data": {"turn": 1}}}
    status, said, err = ask("--to", "ag-ui", file(TURN, hole), "-o", out)
    assert (status, said) == (2, "")
    assert err.startswith(f"{tmp_path / 'r.jsonl'}:3: ")
    assert err.count("\n") == 1
    assert out.read_text("utf-8") == written


def test_bad_input_is_one_line(ask: Asked, tmp_path: Path) -> None:
    known = ", ".join(plugins.names("exporters"))
    said = f"--to: expected one of {known}, got 'nope'\n"
    assert ask("--to", "nope", CANCEL) == (2, "", said)
    none = tmp_path / "none"
    assert ask("--to", "acp", none) == (2, "", f"{none}: no such file\n")
    assert ask(CANCEL)[0] == 2
