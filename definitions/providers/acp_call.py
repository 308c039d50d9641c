"""One call of an agent, as its cards in ACP add up: its name, arguments, output and result.

A card may come in any order and any number; each says what changed. Not here: when something of it
is written (`acp_calls`).
"""

from __future__ import annotations

import codecs
import json
from base64 import b64decode
from collections.abc import Mapping
from typing import Any

from assembler.codec import encode
from definitions.providers.acp_content import card_blocks, card_text
from definitions.providers.reading import Halves, array, is_object, mapping, plain, text

__all__ = ["AcpCall"]

_FIELDS = ("title", "kind", "status", "content", "locations", "rawInput", "rawOutput", "name")
_OVER = frozenset({"completed", "failed", "cancelled"})
_VAGUE = frozenset({"", "other", "think"})
"""Kinds that say nothing of the tool: its title says more."""
_OUTPUTS = ("formatted_output", "output", "stdout", "text", "message")
"""Where agents have the text of a raw output."""
_PRINTED = ("terminal_output_delta", "terminal_output", "mcp_output_delta")
"""Where agents have, in `_meta`, what a running call printed since."""
_NO_NEWS = frozenset({"phase", "preparationDiscarded", "toolName", *_PRINTED})


class AcpCall:
    """What is known of one call. `id` is its id here, `told` the agent's."""

    def __init__(self, call_id: str, told: str, turn: int) -> None:
        self.id = call_id
        self.told = told
        self.fields: dict[str, Any] = {}
        self.meta: dict[str, Any] = {}
        self.turn = turn
        """The turn that first spoke of it."""
        self.place = (turn, 0)
        self.attempt: str | None = None
        """The attempt that prepares it."""
        self.announced: tuple[str, str] = ("", "")
        """The name and the arguments that its preparation showed."""
        self.is_called = False
        self.is_done = False
        self.is_denied = False
        self.outputs: dict[str, None] = {}
        """The attempts that print its output."""
        self._written: dict[str, Any] = {}
        self._printed: list[str] = []
        self._shown = ""
        self._added: list[Any] = []
        self._halves = Halves()
        self._bytes = codecs.getincrementaldecoder("utf-8")("replace")

    def take(self, card: Mapping[str, Any], *, clears: bool) -> None:
        """Add what a card says. `clears`: null takes a field back (ACP 2), else it says nothing."""
        if "content" in card:
            self._added = []
        for name in _FIELDS:
            if card.get(name) is not None:
                self.fields[name] = card[name]
            elif name in card and clears:
                self.fields.pop(name, None)
        self.meta |= mapping(card.get("_meta"))

    # -- what it is --------------------------------------------------------------------------

    @property
    def status(self) -> str:
        return text(self.fields.get("status"))

    @property
    def is_over(self) -> bool:
        return self.status in _OVER

    @property
    def has_input(self) -> bool:
        return self.fields.get("rawInput") not in (None, {}, "")

    @property
    def may_run(self) -> bool:
        """Whether more than its preparation is known. A call that is said to be pending does not
        run: its arguments are being written, or somebody is asked."""
        if self.meta.get("phase") == "preparing" and self.status == "pending":
            return False
        return self.status != "pending" or bool(self.content) or "rawOutput" in self.fields

    @property
    def content(self) -> list[Any]:
        return [*array(self.fields.get("content")), *self._added]

    @property
    def parent(self) -> str | None:
        """The call that this one was made in, as the agent names it."""
        claude = mapping(self.meta.get("claudeCode"))
        told = text(claude.get("parentToolUseId")) or text(self.meta.get("parentToolCallId"))
        return told or None

    @property
    def name(self) -> str:
        """The tool's name where the agent tells it, else what kind of tool it is."""
        return self._told_name() or self._kind()

    def _told_name(self) -> str:
        claude = mapping(self.meta.get("claudeCode"))
        codex = mapping(self.meta.get("codex"), "collaboration")
        names = (
            *(self.meta.get(key) for key in ("toolName", "tool_name")),
            *(claude.get("toolName"), codex.get("tool"), self.fields.get("name")),
        )
        told = next((name for name in map(text, names) if name), "")
        return told or "__".join(filter(None, self._mcp()))

    def _kind(self) -> str:
        kind, title = text(self.fields.get("kind")), text(self.fields.get("title"))
        return (title if kind in _VAGUE else "") or kind or title or "other"

    def _mcp(self) -> tuple[str, ...]:
        """Name the tool of an MCP server, where the agent says it so."""
        told = mapping(self.fields.get("rawInput"))
        server, tool = text(told.get("server")), text(told.get("tool"))
        return ("mcp", server, tool) if self.meta.get("is_mcp_tool_call") and tool else ()

    @property
    def arguments(self) -> str:
        """The arguments as JSON text; `{}` where the agent does not tell them."""
        told = self.fields.get("rawInput")
        if self._mcp() and is_object(mapping(told).get("arguments")):
            told = mapping(told)["arguments"]
        if told is None or told == "":
            return "{}"
        if isinstance(told, str):
            told = _parsed(told)
        return encode(plain(told if is_object(told) else {"input": told})).decode()

    @property
    def input(self) -> Any:
        """The input that people are asked about; `{}` where the agent does not tell it."""
        told = self.fields.get("rawInput")
        return plain(told) if is_object(told) else {}

    def written(self) -> dict[str, Any]:
        """What a `tool/call` says of it beside name and arguments; remembers that."""
        self._written = {name: self.fields.get(name) for name in ("rawInput", "title", "locations")}
        told = {
            name: self.fields[name] for name in ("title", "kind") if text(self.fields.get(name))
        }
        if array(self.fields.get("locations")):
            told["locations"] = plain(self.fields["locations"])
        meta = {key: value for key, value in self.meta.items() if key not in _NO_NEWS}
        told |= {"meta": plain(meta)} if meta else {}
        return told if self.id == self.told else {**told, "provider_call_id": self.told}

    def is_replayed_by(self, card: Mapping[str, Any], turn: int) -> bool:
        """Whether a card that starts a call whose result is there speaks of that call again."""
        is_over = text(card.get("status")) in _OVER
        return not self.differs_from(card) and (is_over or turn == self.turn)

    def differs_from(self, card: Mapping[str, Any]) -> bool:
        """Whether a card tells other arguments than this call has."""
        other = AcpCall(self.id, self.told, self.turn)
        other.take(card, clears=False)
        other.meta = self.meta | other.meta
        return other.has_input and other.arguments != self.arguments

    # -- what came of it ---------------------------------------------------------------------

    def news(self, card: Mapping[str, Any]) -> str:
        """Give what it printed that was not given yet, by a card that was taken."""
        meta = mapping(card.get("_meta"))
        found = [self.prints(text(mapping(meta.get(key)).get("data"))) for key in _PRINTED]
        if not self.is_over and card.get("content") is not None:
            found.append(self._shows(card_text(self.content)))
        return "".join(found)

    def prints(self, fragment: str) -> str:
        """Take what it printed since; gives what can be shown now."""
        shown = self._halves.take(fragment)
        if shown:
            self._printed.append(shown)
        return shown

    def prints_bytes(self, data: object) -> str:
        """Take what it printed since, as base64; a character may be cut."""
        try:
            return self.prints(self._bytes.decode(b64decode(text(data))))
        except ValueError:
            return ""

    def prints_all(self, output: str) -> str:
        """Take all that it printed so far; gives what is new, nothing when it began anew."""
        before = "".join(self._printed)
        return self.prints(output[len(before) :]) if output.startswith(before) else ""

    def adds(self, item: object) -> str:
        """Add an item to its content; gives its text."""
        self._added.append(item)
        shown = card_text([item])
        self._shown += shown
        return shown

    def _shows(self, shown: str) -> str:
        """The card was replaced: give what it says behind what it said, if it went on from there.
        What it says of a terminal is printed by that."""
        before, self._shown = self._shown, shown
        if self._printed and "".join(self._printed).startswith(shown):
            return ""
        return shown[len(before) :] if shown.startswith(before) else ""

    @property
    def has_outcome(self) -> bool:
        """Whether anything is known of what came of it but its status."""
        return bool(card_blocks(self.content) or self._printed) or "rawOutput" in self.fields

    def result(self) -> dict[str, Any]:
        """Give the data of its `tool/result`."""
        raw = self.fields.get("rawOutput")
        blocks = card_blocks(self.content)
        if not any("text" in block for block in blocks):
            said = _said(raw) or "".join(self._printed)
            blocks += [{"type": "text", "text": said}] if said else []
        if not blocks and raw is not None:
            blocks.append({"type": "json", "value": plain(raw)})
        told: dict[str, Any] = {"call_id": self.id, "content": blocks}
        if self.status != "completed":
            told["is_error"] = True
            told |= self._error(raw)
        meta = self._changed(raw, blocks)
        return told | ({"meta": meta} if meta else {})

    def _error(self, raw: object) -> dict[str, Any]:
        if self.is_denied:
            return {"error": {"name": "denied", "message": "Denied."}}
        if self.status == "cancelled":
            return {"error": {"name": "cancelled", "message": "Cancelled."}}
        told = mapping(raw, "error")
        message = text(told.get("message"))
        name = text(told.get("name")) or "error"
        return {"error": {**plain(told), "name": name, "message": message}} if told else {}

    def _changed(self, raw: object, blocks: list[dict[str, Any]]) -> dict[str, Any]:
        """What is known now and was not when it was called."""
        meta = {
            name: plain(self.fields[name])
            for name, before in self._written.items()
            if name in self.fields and self.fields[name] != before
        }
        alone = blocks[0] if len(blocks) == 1 else {}
        if raw is not None and raw not in (alone.get("text"), alone.get("value")):
            meta["rawOutput"] = plain(raw)
        return meta

    def forget(self) -> None:
        """It is over: what it printed and showed is not needed any more."""
        self._printed, self._added, self._shown = [], [], ""
        for name in ("content", "rawOutput", "locations"):
            self.fields.pop(name, None)


def _parsed(told: str) -> Any:
    try:
        return json.loads(told)
    except (ValueError, RecursionError):
        return told


def _said(raw: object) -> str:
    """Give the text of a raw output; empty where it has none."""
    if isinstance(raw, str):
        return text(raw)
    told = mapping(raw)
    said = next((text(told[key]) for key in _OUTPUTS if text(told.get(key))), "")
    return said or text(mapping(told.get("error")).get("message"))
