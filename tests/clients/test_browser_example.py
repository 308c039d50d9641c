"""The README's `apply` for a browser shows what ours shows, patch by patch, of every recording.

Needs Node; skips without it. Not here: `apply` itself (`tests/engine`).
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from assembler import apply
from assembler.recordings import Run, read_many
from definitions import catalog

ROOT = Path(__file__).parents[2]
CODE = re.compile(r"```js\n(?P<code>function apply.*?)```\n", re.DOTALL)
DRIVER = """
const lines = require("fs").readFileSync(0, "utf8").split("\\n").filter(Boolean).map(JSON.parse);
let view;
for (const line of lines) {
  view = line.from === undefined ? line : apply(view, line);
  console.log(JSON.stringify(view));
}
"""


@pytest.fixture(scope="module")
def node() -> str:
    """Give the command of Node, or skip."""
    command = shutil.which("node")
    if command is None:
        pytest.skip("needs Node")
    return command


def told(name: str) -> list[dict[str, Any]]:
    """What a client is sent of all our recordings: snapshots, and the patches behind each."""
    sent: list[dict[str, Any]] = []
    for file in sorted((ROOT / "recordings").glob("*.jsonl")):
        for recording in read_many(str(file)):
            run = Run(recording, catalog())
            sent.append(run.assembler.view(name).snapshot().to_json())
            for operation in recording.operations:
                if operation.name in ("expect", "raises", "converges"):
                    continue
                run.do(operation)
                patch = run.patches.get(name)
                if patch and patch.revision_from == sent[-1].get("to", sent[-1].get("revision")):
                    sent.append(patch.to_json())
                elif patch:
                    sent.append(run.assembler.view(name).snapshot().to_json())
    return sent


def test_it_shows_what_ours_shows(node: str) -> None:
    found = CODE.search((ROOT / "assembler/README.md").read_text("utf-8"))
    assert found is not None
    sent = told("chat")
    client = subprocess.run(  # noqa: S603 - Node, found above, and our own text
        [node, "--eval", found["code"] + DRIVER],
        input="".join(json.dumps(each) + "\n" for each in sent),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert client.stderr == ""
    shown: Any = None
    for each, line in zip(sent, client.stdout.splitlines(), strict=True):
        shown = apply(shown, each) if "from" in each else each
        assert json.loads(line) == shown
    assert {op["op"] for each in sent for op in each.get("ops", ())} >= {"put", "text", "remove"}
