"""What others recorded: the handed cases, and transcripts to import."""

from __future__ import annotations

from pathlib import Path

import pytest

from assembler import cli, plugins
from assembler.recordings import check, read_many


def test_the_handed_cases_hold(shared: Path) -> None:
    result = check(*sorted((shared / "cases").glob("*.jsonl")))
    bad = [
        report.to_json() for report in result.reports if report.outcome in ("failed", "unreadable")
    ]
    assert bad == []
    assert result.passed >= 88
    # What is skipped says what it needs, and a need is one of those that the business names.
    needs = set(plugins.operations().needs.values())
    for report in result.reports:
        if report.outcome == "skipped":
            words = (report.reason or "").removeprefix("needs ").partition(" (")[0]
            assert needs.issuperset(words.split(" and "))
            assert words == "adapter"


def test_every_path_of_the_handed_cases_agrees(
    shared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = sorted(map(str, (shared / "cases").glob("*.jsonl")))
    assert cli.main(["verify", *files]) == 0
    assert " 0 do not" in capsys.readouterr().out.splitlines()[-1]


@pytest.mark.parametrize("name", ["dsh-session"])
def test_transcripts_of_others_import_and_agree(
    shared: Path, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    imported = []
    for number, file in enumerate(sorted((shared / "streams" / name).glob("*.jsonl"))):
        output = str(tmp_path / f"{number}.jsonl")
        assert cli.main(["import", name, str(file), "-o", output]) == 0
        imported.append(output)
    assert imported
    assert sum(len(recording.operations) for path in imported for recording in read_many(path))
    assert cli.main(["verify", *imported]) == 0, capsys.readouterr().out
