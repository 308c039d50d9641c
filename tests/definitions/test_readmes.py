"""The examples in the READMEs run, and print what stands behind them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
READMES = ("README.md", "assembler/README.md", "definitions/README.md")
EXAMPLE = re.compile(r"```python\n(?P<code>.*?)```\n(?:\n```\n(?P<output>.*?)```)?", re.DOTALL)


GUIDE = ROOT / "definitions/GUIDE.md"


def examples() -> list[tuple[str, str, str]]:
    found = []
    for readme in READMES:
        text = (ROOT / readme).read_text("utf-8")
        found += [(readme, each["code"], each["output"] or "") for each in EXAMPLE.finditer(text)]
    return found


def test_there_are_some() -> None:
    assert {readme for readme, _, _ in examples()} == set(READMES)


def test_the_guide_runs_from_the_top_to_the_bottom(capsys: pytest.CaptureFixture[str]) -> None:
    found = list(EXAMPLE.finditer(GUIDE.read_text("utf-8")))
    assert len(found) >= 6
    names: dict[str, object] = {"__name__": "guide"}
    for each in found:
        exec(compile(each["code"], GUIDE.name, "exec"), names)  # noqa: S102 - our own text
        assert capsys.readouterr().out == (each["output"] or "")


@pytest.mark.parametrize(("readme", "code", "output"), examples())
def test_an_example_runs(
    readme: str, code: str, output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if "import anthropic" in code:
        pytest.importorskip("anthropic", reason="the example needs the SDK, of the extra `test`")
    exec(compile(code, readme, "exec"), {"__name__": "example"})  # noqa: S102 - our own text
    assert capsys.readouterr().out == output
