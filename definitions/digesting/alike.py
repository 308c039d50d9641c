"""Two pieces of a history, a client's and ours: where they differ, and the word for why they may.

What has no word is a difference. Not here: which pieces belong together (`contexts`), and the
sentence behind a word (`reasons`).
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator, Mapping
from typing import Any

from assembler.engine.values import same
from assembler.plugins import Odd
from definitions.digesting.sent import Unit, parsed, squeezed, words
from definitions.providers.reading import mapping, text

__all__ = ["Aliases", "differences", "id_of", "is_nothing"]

_MISSING = object()
_CALL_IDS = frozenset({"call_id", "tool_call_id", "tool_use_id"})
_MARKS = frozenset({"id", "phase", "citations", "annotations", "signature", "thoughtSignature"})
_SIGNATURES = frozenset({"signature", "thoughtSignature"})
_ARGUMENTS = frozenset({"arguments", "input", "args"})
_DEFAULTS: Mapping[str, Any] = {"caller": {"type": "direct"}, "status": "completed"}
_CLIENTS: Mapping[str, str] = {"cache_control": "cache-mark", "index": "stream-index"}
_OTHER_BASE64 = str.maketrans("-_", "+/")


class Aliases:
    """The ids of calls as a client has them, by our own: an id may be used again later on."""

    def __init__(self) -> None:
        self._ours: dict[str, str] = {}

    def bind(self, theirs: Unit, ours: Unit) -> None:
        """Learn that two pieces are the same call."""
        if told := id_of(theirs.body):
            self._ours[told] = id_of(ours.body)

    def agree(self, theirs: Unit, ours: Unit) -> bool:
        """Whether two results are of the same call, as far as both name one."""
        told, mine = id_of(theirs.body), id_of(ours.body)
        return not (told and mine) or self._ours.get(told) == mine


def id_of(body: Mapping[str, Any]) -> str:
    """Give the id of the call that a piece is, or belongs to; empty where it names none."""
    inner = mapping(body.get("functionCall") or body.get("functionResponse"))
    names = (*sorted(_CALL_IDS & body.keys()), "id")
    return text(inner.get("id")) or next((text(body.get(name)) for name in names), "")


def differences(theirs: Unit, ours: Unit, ids: Aliases) -> Iterator[Odd]:
    """Give each place where two pieces have another value. `where` is left empty."""
    if _are_fields_of_one(theirs, ours):
        told, mine = (next(iter(each.body)) for each in (theirs, ours))
        yield Odd("", "reasoning", told, mine, "reasoning-field")
        return
    if theirs.kind == "call":
        ids.bind(theirs, ours)
    left, right = theirs.body, ours.body
    told, mine = (mapping(each, "functionResponse").get("response") for each in (left, right))
    if not same(told, mine) and _are_same_result(told, mine):
        yield Odd("", "result, response", told, mine, "result-shape")
        left, right = (_without_response(each) for each in (left, right))
    for path, told, mine in _leaves(left, right, ""):
        kind = _kind(theirs, path, told, mine)
        if kind == "other-id" and not ids.agree(theirs, ours):
            kind = ""
        yield Odd("", f"{theirs.kind}, {path}", told, mine, kind)


def _are_fields_of_one(theirs: Unit, ours: Unit) -> bool:
    """Whether both are the same reasoning, each in another field."""
    is_reasoning = theirs.kind == "reasoning" and len(theirs.body) == len(ours.body) == 1
    is_same = squeezed(words(theirs.body)) == squeezed(words(ours.body))
    return is_reasoning and theirs.body.keys() != ours.body.keys() and is_same


def _leaves(theirs: Any, ours: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """Give the places where two JSON values differ, and both values there; None for none."""
    if isinstance(theirs, Mapping) and isinstance(ours, Mapping):
        for key in dict.fromkeys([*theirs, *ours]):
            inner = f"{path}.{key}" if path else key
            yield from _leaves(theirs.get(key, _MISSING), ours.get(key, _MISSING), inner)
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for at, (told, mine) in enumerate(zip(theirs, ours, strict=True)):
            yield from _leaves(told, mine, f"{path}[{at}]")
    elif not same(theirs, ours):
        told, mine = (None if each is _MISSING else each for each in (theirs, ours))
        yield path, told, mine


def _kind(unit: Unit, path: str, theirs: Any, ours: Any) -> str:
    """Give the word for why a value may be another one; empty when there is none."""
    name = path.rpartition(".")[2]
    if is_nothing(theirs, name) and is_nothing(ours, name):
        return "says-nothing"
    if name in _CALL_IDS or (
        name == "id" and unit.kind in ("call", "result") and _is_call_id(unit)
    ):
        return "other-id"
    if name in _MARKS and not theirs:
        return "unmarked"
    if name == "id":
        return "other-loop"
    if name in _CLIENTS and ours is None:
        return _CLIENTS[name]
    if name in _SIGNATURES and _are_same_bytes(theirs, ours):
        return "base64"
    if name in _ARGUMENTS and _are_same_json(theirs, ours):
        return "same-json"
    if isinstance(theirs, str) and isinstance(ours, str) and squeezed(theirs) == squeezed(ours):
        return "spelling"
    return ""


def _is_call_id(unit: Unit) -> bool:
    """Whether its `id` is the id of a call; an item has both. Gemini needs none."""
    return unit.kind in ("call", "result") and "call_id" not in unit.body


def is_nothing(value: Any, name: str = "") -> bool:
    """Whether a value says no more than no value at all: empty, blank, or what it is by default."""
    if value is None or value is False or value == {}:
        return True
    if isinstance(value, str):
        return not value.strip() or value == _DEFAULTS.get(name)
    if isinstance(value, list):
        return all(is_nothing(mapping(each).get("text", "?")) for each in value)
    return bool(value == _DEFAULTS.get(name))


def _without_response(body: Mapping[str, Any]) -> Any:
    told = {**mapping(body, "functionResponse")}
    del told["response"]
    return {**body, "functionResponse": told}


def _are_same_result(theirs: Any, ours: Any) -> bool:
    said = words(ours)
    return squeezed(words(theirs)) == squeezed(said) or _are_same_json(theirs, said)


def _are_same_json(theirs: Any, ours: Any) -> bool:
    return same(parsed(theirs), parsed(ours))


def _are_same_bytes(theirs: Any, ours: Any) -> bool:
    try:
        told, mine = (b64decode(each.translate(_OTHER_BASE64)) for each in (theirs, ours))
    except (ValueError, AttributeError):
        return False
    return told == mine
