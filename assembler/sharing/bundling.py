"""JavaScript modules as one script, for a document that may load nothing.

Each module becomes a function that runs once and gives what the module exports; imports become
look-ups. It reads the module syntax that the page is written in, each `import` and `export` at the
beginning of a line or, in a bundled file, `export{…}` at its end. Not here: which modules.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from posixpath import dirname, join, normpath

__all__ = ["bundled"]

_IMPORT = re.compile(
    r'^import\s+(?:\{(?P<names>[^}]*)\}|\*\s+as\s+(?P<all>[\w$]+))\s+from\s+"(?P<from>[^"]+)";?',
    re.MULTILINE,
)
_DECLARED = re.compile(
    r"^export\s+(?P<rest>(?:async\s+)?(?:function\*?|class|const|let)\s+(?P<name>[\w$]+))",
    re.MULTILINE,
)
_LISTED = re.compile(r"(?:^|(?<=[;}\n]))export\s*\{(?P<names>[^}]*)\}\s*;?", re.MULTILINE)
_ENDS_SCRIPT = re.compile(r"<(?=/script|!--|script)", re.IGNORECASE)


def bundled(first: str, read: Callable[[str], str]) -> str:
    """The module `first` and all that it imports, as one script. O(size).

    `read(name)` gives the text of a module; names are paths. `ValueError` where a module imports
    itself over others. The script may stand in a `<script>`: nothing in it ends one.
    """
    order: list[str] = []
    found: dict[str, str] = {}
    _visit(first, read, found, order, ())
    numbers = {name: number for number, name in enumerate(order)}
    pieces = [_wrapped(found[name], name, numbers) for name in order]
    # In the texts, patterns and templates where it may stand, an escape means the same.
    script = _ENDS_SCRIPT.sub(r"\\x3c", "".join(pieces))
    return f'(() => {{\n"use strict";\nconst modules = [];\n{script}}})();\n'


def _visit(
    name: str,
    read: Callable[[str], str],
    found: dict[str, str],
    order: list[str],
    above: tuple[str, ...],
) -> None:
    """Puts `name` behind all that it needs."""
    if name in above:
        raise ValueError(f"{name}: expected no module that imports itself")
    if name in found:
        return
    found[name] = read(name)
    for each in _IMPORT.finditer(found[name]):
        _visit(_path(name, each["from"]), read, found, order, (*above, name))
    order.append(name)


def _path(importer: str, name: str) -> str:
    return normpath(join(dirname(importer), name))


def _wrapped(text: str, name: str, numbers: dict[str, int]) -> str:
    exported: dict[str, str] = {}

    def imported(each: re.Match[str]) -> str:
        source = f"modules[{numbers[_path(name, each['from'])]}]"
        if each["all"]:
            return f"const {each['all']} = {source};"
        pairs = [f"{said}: {here}" for said, here in _pairs(each["names"])]
        return f"const {{ {', '.join(pairs)} }} = {source};"

    def declared(each: re.Match[str]) -> str:
        exported[each["name"]] = each["name"]
        return each["rest"]

    def listed(each: re.Match[str]) -> str:
        exported.update((said, here) for here, said in _pairs(each["names"]))
        return ""

    body = _LISTED.sub(listed, _DECLARED.sub(declared, _IMPORT.sub(imported, text)))
    given = ", ".join(f"{said}: {here}" for said, here in exported.items())
    return f"modules.push((() => {{\n{body}\nreturn {{ {given} }};\n}})());\n"


def _pairs(names: str) -> list[tuple[str, str]]:
    """`a, b as c` as what stands before and behind each `as`."""
    found = []
    for each in filter(None, map(str.strip, names.split(","))):
        before, _, behind = each.partition(" as ")
        found.append((before.strip(), (behind or before).strip()))
    return found
