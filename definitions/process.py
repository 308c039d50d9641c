"""The group of what an assistant does between what it says: what it counts, and its title in words.

Reads Nodes, never events. Not here: which tool is of which category (`families`), how one call
reads (`rows`).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from msgspec import Struct

from assembler.engine.definition import GroupDefinition, Members, Node
from assembler.engine.values import Json, Object
from definitions.events import visible
from definitions.families import category_of

__all__ = ["WORDS", "Process", "Words"]

_MEMBERS = frozenset({"tool", "retry", "permission"})
_NAMED_MAX = 3
"""So many categories a title names; of others it says that there is more."""

_WAITING, _RUNNING, _PREPARING, _OVER = "waiting", "running", "preparing", "over"
_PHASES: Mapping[Any, str] = {
    "pending": _WAITING,
    "waiting": _RUNNING,
    "running": _RUNNING,
}
"""What a permission decided, or the status of others, in one word."""


class Words(Struct, frozen=True):
    """How a category is said: to do it, doing it, done; once, and `{}` times."""

    do: str
    doing: str
    done: str
    once: str
    times: str

    def said(self, verb: str, count: int) -> str:
        return f"{verb} {self.once if count == 1 else self.times.format(count)}"


_WITHOUT_TOOLS = {
    "permission": "asked for permission",
    "retry": "tried again",
    "assistant": "thought",
}
"""What was done where no call with a name is in the group; the first that fits."""

WORDS: Mapping[str, Words] = {
    "read": Words("read", "reading", "read", "a file", "{} files"),
    "read-image": Words("look at", "looking at", "looked at", "an image", "{} images"),
    "search": Words("run", "running", "ran", "a search", "{} searches"),
    "write": Words("write", "writing", "wrote", "a file", "{} files"),
    "edit": Words("edit", "editing", "edited", "a file", "{} files"),
    "command": Words("run", "running", "ran", "a command", "{} commands"),
    "code": Words("run", "running", "ran", "code", "code {} times"),
    "web-search": Words("search", "searching", "searched", "the web", "the web {} times"),
    "web-fetch": Words("fetch", "fetching", "fetched", "a page", "{} pages"),
    "subagent": Words("run", "running", "ran", "a subagent", "{} subagents"),
    "plan": Words("update", "updating", "updated", "the plan", "the plan {} times"),
    "question": Words("ask", "asking", "asked", "a question", "{} questions"),
    "tool": Words("use", "using", "used", "a tool", "{} tools"),
}
"""Every category of `families`; of two that are equally frequent the first is named first."""

_PLACES = {category: place for place, category in enumerate(WORDS)}


class Process(GroupDefinition):
    """Consecutive tools, retries, permissions and answers of reasoning alone, of one turn.

    Its data are `counts` (category -> number of calls with a name), `status` (`open` while a
    member prepares, runs or waits, else `closed`) and `title` (what runs now, else what was done
    most, in words).
    """

    kind = "process"
    target = "chat"

    def joins(self, node: Node) -> Hashable | None:
        if node.kind in _MEMBERS or (node.kind == "assistant" and _only_reasons(node)):
            return node.turn
        return None

    def tells(self, node: Node) -> tuple[str, str]:
        """What a member is (the category of a tool, else its kind), and how far it is."""
        if node.kind != "tool":
            said = node.data.get("decision" if node.kind == "permission" else "status")
            return node.kind, _PHASES.get(said, _OVER)
        name = node.data.get("name")
        return category_of(name) if name else "", _phase(node.data)

    def summary(self, members: Members) -> Mapping[str, Any]:
        phases: dict[str, dict[str, int]] = {}
        counts: dict[str, int] = {}
        for (what, phase), count in members.told.items():
            phases.setdefault(phase, {})[what] = count
            if what in WORDS:
                counts[what] = counts.get(what, 0) + count
        ordered = _by_frequency(counts)
        return {
            "counts": {category: counts[category] for category in ordered},
            "status": "closed" if phases.keys() == {_OVER} else "open",
            "title": _title(phases, counts),
        }


def _only_reasons(node: Node) -> bool:
    """Whether reasoning is all that can be seen of an answer."""
    blocks: Json = node.data.get("blocks") or ()
    seen = [block for block in blocks if visible(block)]
    return bool(seen) and all(
        type(block) is Object and block.get("type") == "reasoning" for block in seen
    )


def _phase(data: Mapping[str, Json]) -> str:
    """How far a call is, by its evidence."""
    stage = data.get("stage")
    if stage is None or stage == "result":
        return _OVER
    if data.get("waiting") is not None:
        return _WAITING
    if stage == "preparing":
        return _PREPARING
    return _RUNNING if data.get("outcome") is None else _OVER


def _title(phases: Mapping[str, Mapping[str, int]], counts: Mapping[str, int]) -> str:
    """Say what goes on; when nothing does, what was done."""
    running, preparing = (phases.get(phase, {}) for phase in (_RUNNING, _PREPARING))
    over = phases.get(_OVER, {})
    if _WAITING in phases:
        said = "waiting for permission"
    elif going_on := _in_words(running, "doing"):
        said = going_on
    elif to_come := _in_words(preparing, "do"):
        said = f"preparing to {to_come}"
    elif "retry" in running:
        said = "trying again"
    elif "assistant" in running:
        said = "thinking"
    else:
        said = _in_words(counts, "done") or next(
            (words for what, words in _WITHOUT_TOOLS.items() if what in over), "working"
        )
    return said[0].upper() + said[1:]


def _by_frequency(counts: Mapping[str, int]) -> list[str]:
    """The categories in it, the most frequent first."""
    known = [what for what in counts if what in WORDS]
    return sorted(known, key=lambda what: (-counts[what], _PLACES[what]))


def _in_words(counts: Mapping[str, int], form: str) -> str:
    """Name the most frequent categories in one form of their verbs; nothing without any."""
    ordered = _by_frequency(counts)
    said = [
        WORDS[what].said(getattr(WORDS[what], form), counts[what]) for what in ordered[:_NAMED_MAX]
    ]
    if len(ordered) > _NAMED_MAX:
        said.append("more")
    return " and ".join(filter(None, [", ".join(said[:-1]), *said[-1:]]))
