"""The examples in the READMEs run, and print what stands behind them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
READMES = ("README.md", "assembler/README.md", "definitions/README.md")
EXAMPLE = re.compile(r"```python\n(?P<code>.*?)```\n(?:\n```\n(?P<output>.*?)```)?", re.DOTALL)


def examples() -> list[tuple[str, str, str]]:
    found = []
    for readme in READMES:
        text = (ROOT / readme).read_text("utf-8")
        found += [(readme, each["code"], each["output"] or "") for each in EXAMPLE.finditer(text)]
    return found


def test_there_are_some() -> None:
    assert {readme for readme, _, _ in examples()} == set(READMES)


@pytest.mark.parametrize(("readme", "code", "output"), examples())
def test_an_example_runs(
    readme: str, code: str, output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    exec(compile(code, readme, "exec"), {"__name__": "example"})  # noqa: S102 - our own text
    assert capsys.readouterr().out == output
