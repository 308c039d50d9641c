"""What a client of the AI SDK shows: the published one, said again in a few lines.

The published one itself stands in `tests/clients`. Not here: tests.
"""

from __future__ import annotations

from typing import Any

from definitions.protocols import Frame
from definitions.testing import ANEW, About

__all__ = ["Reader"]

LAST = ("tool-output-available", "tool-output-error", "tool-output-denied", "tool-input-error")


class Reader:
    """A client that refuses what the published one refuses, and what is outside of a message."""

    def __init__(self) -> None:
        self.messages: dict[str, list[dict[str, Any]]] = {}
        self.parts: list[dict[str, Any]] = []
        self.active: dict[str, dict[str, Any]] = {}
        self.name: str | None = None
        self.is_open = False

    def take(self, frame: Frame) -> About | None:
        kind = frame["type"]
        if kind == "start":
            return self._start(frame["messageId"])
        assert self.is_open, f"{kind} outside of a message"
        if kind in ("finish", "abort"):
            self.is_open = False
            assert not self.active, f"open at the end of a message: {list(self.active)}"
        elif kind == "start-step":
            self.parts.append({"type": "step-start"})
        elif kind == "reset-step":
            del self.parts[self._step_start() :]
            self.active = {}
            return ANEW
        elif kind.startswith("tool-"):
            return self._call(kind, frame)
        elif kind.startswith("data-"):
            found = [each for each in self.parts if each.get("id") == frame["id"]]
            found[0].update(frame) if found else self.parts.append(dict(frame))
        elif kind == "steering-message":
            self.parts.append(dict(frame))
        elif kind not in ("finish-step", "error"):
            self._text(frame, *kind.rsplit("-", 1))
        return None

    def _start(self, name: str) -> About | None:
        assert not self.is_open, "a message in a message"
        self.is_open = True
        if name == self.name:
            return None
        assert name not in self.messages, f"two messages {name}"
        self.name, self.active = name, {}
        self.parts = self.messages[name] = []
        return None

    def _step_start(self) -> int:
        starts = [at for at, part in enumerate(self.parts) if part["type"] == "step-start"]
        return starts[-1] + 1 if starts else 0

    def _text(self, frame: Frame, kind: str, action: str) -> None:
        if action == "start":
            assert frame["id"] not in self.active, f"opened twice: {frame['id']}"
            part = {"type": kind, "text": "", "id": frame["id"]}
            self.active[frame["id"]] = part
            self.parts.append(part)
        elif action == "delta":
            self.active[frame["id"]]["text"] += frame["delta"]
        else:
            del self.active[frame["id"]]

    def _call(self, kind: str, frame: Frame) -> About:
        if kind == "tool-approval-response":
            asked = (part for part in self.parts if part.get("approval") == frame["approvalId"])
            part = next(asked)
            part.update(state=kind, approved=frame["approved"])
            return About(part["call"])
        call = frame["toolCallId"]
        step = [part for part in self.parts[self._step_start() :] if part.get("call") == call]
        known = [part for part in self.parts if part.get("call") == call]
        if kind in ("tool-input-start", "tool-input-available", "tool-input-error") and not step:
            assert not known, f"a call twice: {call}"
            step = [{"type": "tool", "call": call}]
            self.parts += step
        part = step[0] if step else known[-1]
        if kind == "tool-input-delta":
            part["raw"] = part.get("raw", "") + frame["inputTextDelta"]
            return About(call)
        if kind == "tool-approval-request":
            part.update(approval=frame["approvalId"], approved=None)
        more = ("toolName", "input", "output", "errorText", "toolMetadata")
        part.update(state=kind, **{name: frame[name] for name in more if name in frame})
        if kind != "tool-input-start":
            part.pop("raw", None)
        return About(call, kind in LAST)

    @property
    def calls(self) -> dict[str, Any]:
        """Of a call that is over without what was asked: nobody shows it any more."""
        every = [part for parts in self.messages.values() for part in parts]
        shown = {}
        for part in every:
            if part["type"] == "tool":
                gone = ("approval", "approved") if part["state"] in LAST else ()
                shown[part["call"]] = {key: part[key] for key in part if key not in gone}
        return shown

    @property
    def texts(self) -> dict[str, Any]:
        """Without the data parts: what changes in a turn that is past reaches them by a reload."""
        every = [part for parts in self.messages.values() for part in parts if "id" in part]
        said = [part for part in every if not part["type"].startswith("data-")]
        return {part["id"].partition("~")[0]: dict(part) for part in said}
