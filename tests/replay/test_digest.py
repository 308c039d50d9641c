"""`assembler digest DIR`: files of our own that agree and that do not, and those of others."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from assembler import cli, plugins
from tests.definitions.streams import FILES, chat, json_lines, listed, row, sse

Digested = Callable[..., tuple[int, str, str]]


@pytest.fixture
def digested(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Digested:
    """Write files and run the command over them; a listing is written when there are rows."""

    def run(files: Mapping[str, str], *rows: Mapping[str, Any], json: bool = False) -> Any:
        for name, text in files.items():
            path = tmp_path / "streams" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        if rows:
            columns = list(dict.fromkeys(name for row in rows for name in row))
            table = [columns, *([str(row.get(name, "")) for name in columns] for row in rows)]
            lines = "".join("\t".join(line) + "\n" for line in table)
            (tmp_path / "streams" / "MANIFEST.tsv").write_text(lines)
        status = cli.main(["digest", str(tmp_path / "streams"), *(["--json"] if json else [])])
        return status, *capsys.readouterr()

    return run


def test_a_file_of_each_format_agrees(digested: Digested) -> None:
    status, out, _ = digested(FILES)
    assert status == 0
    lines = [line.split() for line in out.splitlines()]
    columns = ["format", "files", "answers", "calls", "findings", "differences"]
    assert lines[0] == [*columns, "exchanges", "messages", "agree"]
    assert {line[0] for line in lines[1:12]} == {name.split("/")[0] for name in FILES}
    assert ["openai-chat", "1", "1", "1", "0", "0", "0", "0", "0"] in lines
    assert ["exchange", "1", "2", "2", "0", "0", "1", "3", "3"] in lines
    assert ["together", "11", "12", "12", "0", "0", "1", "3", "3"] in lines
    assert out.splitlines()[-1] == "11 files read, 0 differences"


def test_what_a_file_is_its_content_says(digested: Digested) -> None:
    files = {f"misc/{at}": text for at, text in enumerate(FILES.values())}
    status, out, _ = digested(files, json=True)
    assert status == 0
    assert set(json.loads(out)["formats"]) == {name.split("/")[0] for name in FILES}


def test_formats_that_nobody_reads_are_counted(digested: Digested) -> None:
    others = {
        "newest-v1/a.sse": sse({"type": "begin"}),
        "newest-v1/b.sse": sse({"type": "begin"}),
        "x/README.md": "Not a stream.",
        "exchange/e.jsonl": json_lines(row({}, sse({"type": "begin"}), "newest-v1")),
    }
    status, out, _ = digested({**FILES, **others})
    assert status == 0
    unread = "not read yet: 4 files (exchange of newest-v1 1, newest-v1 2, no stream 1)"
    assert unread in out.splitlines()
    assert "11 files read" in out


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"calls": 2}, "calls: expected 2, got 1"),
        ({"named": "c9=now"}, 'id of a call: expected "c9", got "c1"'),
        ({"named": "c1=then"}, 'name of c1: expected "then", got "now"'),
        ({"named": "c1=now; c2=now", "calls": 1}, "calls: "),
        ({"finish": "stop"}, 'finish: expected "stop", got "tool_calls"'),
        ({"finish": "stop|stop"}, "answers: "),
        ({"parsed": "False:1"}, "calls with arguments: "),
        (
            {"format": "p / openai-responses"},
            'format: expected "openai-responses", got "openai-chat"',
        ),
    ],
)
def test_a_listing_that_says_something_else(
    digested: Digested, columns: Mapping[str, Any], said: str
) -> None:
    files = {"openai-chat/c.sse": sse(*chat())}
    assert digested(files, listed("c.sse"))[0] == 0
    status, out, _ = digested(files, listed("c.sse", **columns))
    assert status == 1
    assert "1 difference" in out.splitlines()[-1]
    told = next(line for line in out.splitlines() if line.startswith("differs"))
    assert f"openai-chat/c.sse: {said}" in told


def test_what_machines_are_told(digested: Digested) -> None:
    files = {"x/c.sse": sse(*chat()[:2])}
    status, out, _ = digested(files, listed("c.sse", calls=2, finish="", format=""), json=True)
    report = json.loads(out)
    (difference,), (finding,) = report["differences"], report["findings"]
    assert status == 1
    assert difference.pop("file").endswith("x/c.sse")
    assert difference == {"where": "", "field": "calls", "expected": 2, "got": 1}
    assert (finding["kind"], finding["got"]) == ("not-whole", "no-terminal")
    counts = {"files": 1, "answers": 1, "calls": 1, "findings": 1, "differences": 1}
    assert report["formats"] == {"openai-chat": counts}


def test_who_reads_a_file_is_the_first_who_can(
    digested: Digested, monkeypatch: pytest.MonkeyPatch
) -> None:
    def blind(path: str, data: bytes, row: Any) -> plugins.Digest:
        return plugins.Digest("unknown", is_read=False)

    known = plugins.operations()
    (reads,) = known.digests.values()
    both = plugins.Operations(digests={"a": blind, "b": reads, "c": blind}, reasons=known.reasons)
    monkeypatch.setattr(plugins, "operations", lambda: both)
    status, out, _ = digested({"x/c": sse(*chat())})
    assert (status, out.splitlines()[-1]) == (0, "1 file read, 0 differences")


def test_findings_are_counted_with_their_reasons(digested: Digested) -> None:
    files = {"x/a": sse(*chat()[:2]), "x/b": sse(*chat()[:2])}
    status, out, _ = digested(files)
    assert status == 0
    line = out.splitlines()[out.splitlines().index("findings, each with its reason:") + 1]
    assert line.startswith("    2  not-whole: the answer broke off")


def test_a_file_that_is_not_what_it_is_listed_as(digested: Digested) -> None:
    status, out, _ = digested({"x/c.sse": "nothing"}, listed("c.sse"))
    assert status == 1
    assert 'c.sse: format: expected "openai-chat", got "none that is known"' in out


def test_a_listed_file_that_is_missing(digested: Digested) -> None:
    status, out, _ = digested({"x/c.sse": sse(*chat())}, listed("c.sse"), listed("gone.sse"))
    assert (status, "differs gone.sse: file: " in out) == (1, True)


@pytest.mark.parametrize("name", ["", "gone", "file"])
def test_a_folder_with_nothing_to_read(tmp_path: Path, name: str, capsys: Any) -> None:
    (tmp_path / "file").write_text("{}")
    folder = tmp_path / name if name else tmp_path / "empty"
    (tmp_path / "empty").mkdir()
    assert cli.main(["digest", str(folder)]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"{folder}: expected a folder with recorded streams")


def test_a_listing_without_names(digested: Digested) -> None:
    status, out, err = digested({"x/c": sse(*chat())}, {"name": "c"})
    assert (status, out) == (2, "")
    assert err.endswith("MANIFEST.tsv:1: expected a column `file`\n")


def test_a_listing_above_the_folder_counts_and_names_may_repeat(
    tmp_path: Path, digested: Digested
) -> None:
    rows = [listed("c", format="p / y", calls=9), listed("c", format="p / openai-chat")]
    status, _, _ = digested({"openai-chat/c": sse(*chat()), "y/c": "{}"}, *rows)
    assert status == 0
    assert cli.main(["digest", str(tmp_path / "streams" / "openai-chat")]) == 0
    status, _, _ = digested({}, listed("c", calls=9))
    assert cli.main(["digest", str(tmp_path / "streams" / "openai-chat")]) == 1


READ = {
    "acp",
    "ag-ui",
    "anthropic-messages",
    "antigravity",
    "bedrock-converse",
    "claude-code",
    "claude-code-stream",
    "claude-code-wrapped",
    "codex",
    "codex-tui-log",
    "cohere-v2",
    "copilot",
    "cursor",
    "droid",
    "dsh-session",
    "dsh-stream",
    "exchange",
    "gemini-cli",
    "gemini-cli-responses",
    "google-generate",
    "google-interactions",
    "grok",
    "hermes",
    "kimi",
    "ollama-chat",
    "openai-chat",
    "openai-responses",
    "openclaw",
    "openhands",
    "openhands-llm-log",
    "pi",
    "qwen-code",
    "swe-agent",
    "ui-message-stream",
}


def test_all_that_others_recorded_is_read_and_agrees(
    shared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    streams = shared / "streams"
    status = cli.main(["digest", str(streams), "--json"])
    report = json.loads(capsys.readouterr().out)
    assert report["differences"] == []
    assert status == 0
    assert set(report["formats"]) == READ
    # No file is skipped: each is read, or counted as one that nobody reads yet.
    read = sum(row["files"] for row in report["formats"].values())
    files = [path for path in streams.rglob("*") if path.is_file()]
    assert read + sum(report["not_read_yet"].values()) == len(files) - 1  # less the listing
    for name in READ - {"exchange"}:
        if (streams / name).is_dir():  # transcripts lie in folders of other names
            assert report["formats"][name]["files"] == len(list((streams / name).iterdir()))
    assert {each["kind"] for each in report["findings"]} <= set(report["reasons"])
