"""One HTML file that shows a conversation, for a person: it opens from a disk and loads nothing.

The style sheet and the rows are the inspector page's, read from the package and put into the file;
what a Node says comes from the catalog's own module. All that the conversation says stands in the
file as JSON and becomes text, never markup; the only script that may run is ours, by its hash. Not
here: what is shown (a Snapshot says it), and where the file goes (`cli.export`).
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Iterable, Iterator
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from assembler import codec
from assembler.plugins import DocumentExporter, Shared, page_module, row_text
from assembler.sharing.bundling import bundled

__all__ = ["HTML"]

_TITLE_MAX = 200
_ROW_MAX = 240
_MODULE = "plugin.js"
_OURS = "document.js"


def _written(shared: Shared) -> Iterator[bytes]:
    """The pieces of the file. O(size), and each Node is encoded once."""
    script, style = _script(shared.catalog), _style()
    title = escape(_one_line(shared.title, _TITLE_MAX))
    yield _HEAD.format(
        policy=f"default-src 'none'; script-src {_hashed(script)}; style-src {_hashed(style)}; "
        "img-src data:; base-uri 'none'; form-action 'none'",
        title=title,
        style=style,
    ).encode()
    yield b'<body>\n<div id="app"></div>\n<noscript>\n<main class="plain-rows">\n'
    yield f'<h1 dir="auto">{title}</h1>\n<ol>\n'.encode()
    yield from _plain_rows(shared)
    yield b'</ol>\n</main>\n</noscript>\n<script type="application/json" id="told">'
    yield from _told(shared)
    yield f"</script>\n<script>{script}</script>\n</body>\n</html>\n".encode()


_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
"""


def _plain_rows(shared: Shared) -> Iterator[bytes]:
    """One line for each Node, for whoever runs no script."""
    says = row_text(shared.catalog)
    for node in shared.snapshot.nodes:
        stage, title, summary = says(node) if says is not None else ("", node.kind, "")
        words = " · ".join(_one_line(each, _ROW_MAX) for each in (title, stage, summary) if each)
        yield f'<li dir="auto">{escape(words)}</li>\n'.encode()


def _one_line(text: str, most: int) -> str:
    """What of a text stands on one line; what is no character is left out."""
    said = " ".join(text[: 2 * most].split())
    whole = "".join(each for each in said if each.isprintable())
    return whole if len(whole) <= most else f"{whole[: most - 1]}…"


def _told(shared: Shared) -> Iterator[bytes]:
    """The JSON that the script reads, Node by Node."""
    snapshot = shared.snapshot
    head = {
        "title": shared.title,
        "about": shared.about,
        "time": shared.time,
        "has_more": bool(snapshot.window.get("has_more")),
        "live": snapshot.live,
    }
    yield _harmless(codec.encode(head))[:-1]
    yield b',"nodes":['
    yield from _listed(node.to_json() for node in snapshot.nodes)
    yield b'],"groups":['
    yield from _listed(group.to_json() for group in snapshot.groups)
    yield b"]}"


def _listed(values: Iterable[Any]) -> Iterator[bytes]:
    for number, value in enumerate(values):
        yield (b"," if number else b"") + _harmless(codec.encode(value))


def _harmless(encoded: bytes) -> bytes:
    """The same JSON in which nothing ends or begins an element."""
    return encoded.replace(b"<", b"\\u003c").replace(b">", b"\\u003e").replace(b"&", b"\\u0026")


@cache
def _script(catalog: str) -> str:
    page, ours = files("assembler") / "server" / "page", files("assembler") / "sharing"

    def read(name: str) -> str:
        if name == _MODULE:
            return page_module(catalog).decode() or "export {};"
        folder = ours if name == _OURS else page
        return folder.joinpath(name).read_text("utf-8")

    return "\n" + bundled(_OURS, read)


@cache
def _style() -> str:
    page = (files("assembler") / "server" / "page" / "style.css").read_text("utf-8")
    ours = (files("assembler") / "sharing" / "document.css").read_text("utf-8")
    return f"\n{page}\n{ours}"


def _hashed(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _write(shared: Shared) -> Iterable[bytes]:
    return _written(shared)


HTML = DocumentExporter(
    "one file for a browser that shows the conversation and loads nothing", _write
)
