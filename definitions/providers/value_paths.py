"""Arguments that come as values at JSON paths, one after the other -> an object, and its text.

Gemini streams arguments so: `{"jsonPath": "$.rows[0].name", "stringValue": "Ro", "willContinue":
true}`. Paths are those of RFC 9535 that name one place. Not here: which call they belong to, and
when it is complete (`gemini`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from definitions.providers.reading import text

__all__ = ["ValuePaths"]

_STEP = re.compile(
    r"""\.([^.\[\]'"]+) | \[(\d{1,9})\] | \['((?:[^'\\]|\\.)*)'\] | \["((?:[^"\\]|\\.)*)"\]""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_DEPTH_MAX = 150
_SIMPLE = {"numberValue": (int, float), "boolValue": (bool,)}

Path = tuple[str | int, ...]


class ValuePaths:
    """One object under construction.

    `is_broken`: something could not be read, and what it is nobody knows. `is_in_order`: its text
    could be written as the values came; else what was written is not the text of `value`.
    """

    def __init__(self) -> None:
        self.value: dict[str, Any] = {}
        self.is_broken = False
        self.is_in_order = True
        self._path: Path = ()
        self._written: object = None
        self._known: Path | None = None
        self._string: list[str] | None = None
        self._place: tuple[Any, Any] = (self.value, None)

    def take(self, told: Mapping[str, Any]) -> str:
        """Take one value; give the JSON text that it adds. Linear in the path and the value."""
        added = None if self.is_broken else self._added(told)
        self.is_broken = added is None
        return added if added and self.is_in_order else ""

    def _added(self, told: Mapping[str, Any]) -> str | None:
        path = self._read(told.get("jsonPath"))
        if path is None:
            return None
        if self._string is not None and path == self._path:
            added = self._continue(told.get("stringValue", ""))
        else:
            added = self._begin(path, told)
        if added is None or self._string is None or told.get("willContinue") is True:
            return added
        return added + self._end_string()

    def _read(self, path: object) -> Path | None:
        """Read a path; the pieces of a long text all have the same one."""
        if path != self._written:
            self._known = _steps(path)
            self._written = path
        return self._known

    def _continue(self, written: object) -> str | None:
        if self._string is None or not isinstance(written, str):
            return None
        self._string.append(written)
        return _escaped(written)

    def rest(self) -> str:
        """Nothing follows: give the text that ends the object."""
        ends = self._end_string() + ("" if self._path else "{") + self._ends(0) + "}"
        return ends if self.is_in_order else ""

    def _begin(self, path: Path, told: Mapping[str, Any]) -> str | None:
        """Begin the value at a new path; None when nobody knows where or what it is."""
        written = told.get("stringValue")
        simple = None if isinstance(written, str) else _simple(told)
        if simple is None and not isinstance(written, str):
            return None
        before, shared = self._end_string(), _shared(self._path, path)
        known = self._reach(path)
        if known is None:
            return None
        self.is_in_order = self.is_in_order and known == shared
        before += self._ends(shared) + "," if self._path else "{"
        self._path = path
        if simple is not None:
            _put(*self._place, json.loads(simple))
            return before + _opening(path[shared:]) + simple
        self._string = [written] if isinstance(written, str) else []
        return before + _opening(path[shared:]) + '"' + "".join(map(_escaped, self._string))

    def _end_string(self) -> str:
        if self._string is None:
            return ""
        _put(*self._place, "".join(self._string))
        self._string = None
        return '"'

    def _ends(self, depth: int) -> str:
        """Give the ends of what is open below a depth, innermost first."""
        steps = self._path[depth + 1 :]
        return "".join("]" if isinstance(step, int) else "}" for step in reversed(steps))

    def _reach(self, path: Path) -> int | None:
        """Make the containers of a path; give how deep it was known, None when it leads nowhere."""
        node: Any = self.value
        known = len(path)
        for depth, step in enumerate(path):
            if not _fits(node, step):
                return None
            if not _has(node, step):
                known = min(known, depth)
                _put(node, step, _container(path[depth + 1 : depth + 2]))
            self._place = (node, step)
            node = node[step]
        is_container = known == len(path) and isinstance(node, (dict, list))
        return None if is_container else known


def _fits(node: Any, step: str | int) -> bool:
    if isinstance(node, dict):
        return isinstance(step, str)
    return isinstance(node, list) and isinstance(step, int) and step <= len(node)


def _container(follows: Path) -> Any:
    """Give what a step leads into, by the step that follows it."""
    if not follows:
        return ""
    return [] if isinstance(follows[0], int) else {}


def _has(node: Any, step: Any) -> bool:
    return bool(step in node if isinstance(node, dict) else step < len(node))


def _put(node: Any, step: Any, value: Any) -> None:
    if isinstance(node, list) and step == len(node):
        node.append(value)
    else:
        node[step] = value


def _shared(left: Path, right: Path) -> int:
    """Give how many containers, counted from the root, two values have in common but the root."""
    count = 0
    for one, other in zip(left[:-1], right[:-1], strict=False):
        if one != other:
            break
        count += 1
    return count


def _steps(path: object) -> Path | None:
    """Read a path that names one place; None for what does not."""
    if not (isinstance(path, str) and path.startswith("$") and len(path) > 1):
        return None
    steps: list[str | int] = []
    at = 1
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None:
            return None
        name, index, single, double = found.groups()
        if index is not None:
            steps.append(int(index))
        else:
            quoted = single if double is None else double
            steps.append(text(name if quoted is None else _ESCAPE.sub(r"\1", quoted)))
        at = found.end()
    return tuple(steps) if isinstance(steps[0], str) and len(steps) <= _DEPTH_MAX else None


def _simple(told: Mapping[str, Any]) -> str | None:
    """Give the JSON of a value that is no string; None when there is none."""
    for field, types in _SIMPLE.items():
        if type(told.get(field)) in types:
            try:
                return json.dumps(told[field])
            except ValueError:  # a number that Python does not write out
                return None
    return "null" if "nullValue" in told else None


def _opening(path: Path) -> str:
    """Give what opens the way to a value: names, and the containers between them."""
    opened = []
    for at, step in enumerate(path):
        if at:
            opened.append("[" if isinstance(step, int) else "{")
        if isinstance(step, str):
            opened.append(f'"{_escaped(step)}":')
    return "".join(opened)


def _escaped(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)[1:-1]
