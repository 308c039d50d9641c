"""Logs by hand, and what they give back to the model.

Not here: tests, and what providers refuse (`valid`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from assembler import Assembler
from definitions import catalog
from definitions.model_context import FORMATS, model_context
from tests.definitions.model_context.valid import VALID

__all__ = ["Log", "call", "given", "reasoning", "text"]


def text(told: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": told, **more}


def reasoning(told: str, **more: Any) -> dict[str, Any]:
    return {"type": "reasoning", "text": told, **more}


def call(call_id: str, name: str = "look", arguments: str = "{}", **more: Any) -> dict[str, Any]:
    return {"type": "tool-call", "call_id": call_id, "name": name, "arguments": arguments, **more}


class Log:
    """A log that is written event by event; `turn` and `step` are those that are open."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.turn = self.step = 0

    def add(self, type_: str, /, **data: Any) -> Log:
        seq = len(self.events) + 1
        self.events.append({"seq": seq, "type": type_, "time": seq, "data": data})
        return self

    @property
    def place(self) -> dict[str, int]:
        return {"turn": self.turn, "step": self.step}

    def user(self, *told: Any, **more: Any) -> Log:
        blocks = [text(each) if isinstance(each, str) else each for each in told]
        return self.add("user/message", message_id=f"u{len(self.events)}", content=blocks, **more)

    def starts(self, *told: Any) -> Log:
        """A turn with an input and its first step."""
        self.turn, self.step = self.turn + 1, 0
        self.add("turn/start", turn=self.turn).user(*told)
        return self.steps()

    def steps(self) -> Log:
        self.step += 1
        return self.add("step/start", **self.place)

    def says(self, *content: Any, provider: str | None = None, **more: Any) -> Log:
        """The message of the open step; a text is a text block."""
        blocks = [text(each) if isinstance(each, str) else each for each in content]
        source = {} if provider is None else {"provider": {"name": provider}}
        told = {**self.place, "message_id": f"a{len(self.events)}", "stop_reason": "end_turn"}
        return self.add("assistant/message", **{**told, "content": blocks, **source, **more})

    def calls(self, call_id: str, name: str = "look", arguments: str = "{}", **more: Any) -> Log:
        told = {"call_id": call_id, "name": name, "arguments": arguments, **more}
        return self.add("tool/call", **{**self.place, **told})

    def results(self, call_id: str, *told: Any, **more: Any) -> Log:
        blocks = [text(each) if isinstance(each, str) else each for each in told]
        return self.add("tool/result", call_id=call_id, content=blocks, **more)

    def ends(self, reason: str = "completed") -> Log:
        return self.add("step/end", **self.place).add("turn/end", turn=self.turn, reason=reason)


def given(log: Log | Iterable[dict[str, Any]], format: str, *, live: bool | None = None) -> Any:
    """The model context of a whole log, as JSON; it is valid, in all formats."""
    assembler = Assembler(catalog(), strict=True)
    assembler.load(log.events if isinstance(log, Log) else log)
    assembler.liveness(live)
    for each in FORMATS:
        VALID[each](model_context(assembler, each))
    return json.loads(json.dumps(model_context(assembler, format)))
