"""The bytes of a conversation in one HTML file, without a browser.

What a browser makes of it is in `tests/browser/test_document.py`.
"""

from __future__ import annotations

import hashlib
import json
import re
from base64 import b64encode
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from assembler.cli import main
from assembler.sharing.bundling import bundled

OURS = Path(__file__).parents[2] / "recordings"


class Elements(HTMLParser):
    """The scripts, styles and addresses of a document, as a parser of HTML finds them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self.addresses: list[str] = []
        self.policy = ""
        self._into: list[str] | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        fields = dict(attrs)
        self.addresses += [fields[name] or "" for name in ("src", "href") if name in fields]
        if fields.get("http-equiv"):
            self.policy = fields["content"] or ""
        self._into = {"script": self.scripts, "style": self.styles}.get(tag)

    def handle_data(self, data: str) -> None:
        if self._into is not None:
            self._into.append(data)

    def handle_endtag(self, tag: str) -> None:
        self._into = None


def exported(file: Path, tmp_path: Path) -> str:
    output = tmp_path / "out.html"
    assert main(["export", "--to", "html", str(file), "-o", str(output)]) == 0
    return output.read_text("utf-8")


def said(tmp_path: Path, *texts: str, title: str = "t") -> Path:
    lines: list[Any] = [{"recording": 1, "title": title}]
    for number, text in enumerate(texts):
        content = [{"type": "text", "text": text}]
        data = {"message_id": f"m{number}", "content": content}
        lines.append({"op": "append", "event": {"type": "user/message", "data": data}})
    file = tmp_path / "said.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return file


def test_only_the_script_and_style_that_stand_there_may_run(tmp_path: Path) -> None:
    found = Elements(exported(OURS / "every-kind.jsonl", tmp_path))
    data, script = found.scripts
    json.loads(data)
    for text, kind in ((script, "script-src"), (found.styles[0], "style-src")):
        digest = b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind} 'sha256-{digest}'" in found.policy
    assert "default-src 'none'" in found.policy
    assert "unsafe" not in found.policy
    assert found.addresses == ["data:,"]


@pytest.mark.parametrize(
    "hostile", ["</script>", "</SCRIPT >", "<!--<script>", "]]>", "</title>", "&lt;"]
)
def test_no_text_ends_an_element(tmp_path: Path, hostile: str) -> None:
    found = Elements(exported(said(tmp_path, hostile, title=hostile), tmp_path))
    told = json.loads(found.scripts[0])
    assert not set("<>&") & set(found.scripts[0])
    assert told["title"] == hostile
    assert told["nodes"][0]["data"]["content"][0]["text"] == hostile
    assert len(found.scripts) == 2


def test_what_runs_no_script_still_reads_every_row(tmp_path: Path) -> None:
    text = exported(said(tmp_path, "One & <two>", "three"), tmp_path)
    assert re.findall(r"<li[^>]*>(.*)</li>", text) == [
        "user · One &amp; &lt;two&gt;",
        "user · three",
    ]


def test_its_size_is_linear(tmp_path: Path) -> None:
    empty, few, many = (
        len(exported(said(tmp_path, *["word " * 40] * count), tmp_path)) for count in (0, 100, 400)
    )
    assert (many - empty) < 4.1 * (few - empty)


def test_a_document_has_no_frames(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(OURS / "cancel.jsonl")
    assert main(["export", "--to", "html", "--json", file]) == 2
    assert capsys.readouterr().err.strip().endswith("--json: expected a format of frames, got html")


def test_modules_become_one_script() -> None:
    modules = {
        "a.js": 'import { b as c, D } from "./lib/b.js";\n'
        'import * as all from "./lib/b.js";\nc();\n',
        "lib/b.js": 'import { x } from "../x.js";\nexport function b() {}\nexport class D {}\n',
        "x.js": 'const y = "</script>";export{y as x};',
    }
    script = bundled("a.js", modules.__getitem__)
    assert (
        script.index('const y = "\\x3c/script>"')
        < script.index("function b")
        < script.index("c();")
    )
    assert "const { b: c, D: D } = modules[1];" in script
    assert "const all = modules[1];" in script
    assert "return { x: y };" in script
    assert "import" not in script
    assert "export" not in script


def test_modules_that_need_each_other_are_refused() -> None:
    modules = {"a.js": 'import { b } from "./b.js";', "b.js": 'import { a } from "./a.js";'}
    with pytest.raises(ValueError, match=r"a\.js: expected no module that imports itself"):
        bundled("a.js", modules.__getitem__)
