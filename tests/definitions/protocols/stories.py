"""A conversation of one turn, told step by step to a client of any protocol. Not here: tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from assembler import Assembler, Delta, Event
from definitions import catalog
from definitions.protocols import Encoder, Frame

Fact = tuple[str, dict[str, Any]]

TURN: Fact = ("turn/start", {"turn": 1})
STEP: Fact = ("step/start", {"turn": 1, "step": 1})
STEP_END: Fact = ("step/end", {"turn": 1, "step": 1})


class Story:
    """What happens, and what the client that watches it is sent."""

    def __init__(self, make: Callable[..., Encoder], **options: Any) -> None:
        self.assembler = Assembler(catalog(), strict=True)
        self.make = make
        self.encoder = make(**options)
        self.facts = 0
        self.ordinals: dict[str, int] = {}
        self.happens(TURN, STEP)

    def happens(self, *facts: Fact) -> list[Frame]:
        """These events in one flush; gives the frames."""
        for type_, data in facts:
            self.facts += 1
            self.assembler.append(Event(self.facts, type_, data, time=self.facts))
        return self.flush()

    def says(
        self, type_: str, attempt: str = "a1", number: int = 1, step: int = 1, **data: Any
    ) -> list[Frame]:
        """A delta and a flush."""
        ordinal = self.ordinals.get(attempt, 0)
        self.ordinals[attempt] = ordinal + 1
        place = {"ordinal": ordinal, "after": self.facts, "index": sum(self.ordinals.values())}
        data = {"block": 0, **data}
        self.assembler.emit(Delta(attempt, 1, step, type_, data, number=number, **place))
        return self.flush()

    def prepares(self, call: str = "c1", arguments: str = '{"path":', **more: Any) -> list[Frame]:
        name = more.pop("name", "read")
        return self.says("tool-call", call_id=call, name=name, arguments=arguments, **more)

    def settles(self, outcome: str, attempt: str = "a1") -> list[Frame]:
        self.assembler.settle(attempt, outcome)
        return self.flush()

    def flush(self) -> list[Frame]:
        return self.encoder.feed(self.assembler.flush()["chat"])

    def reload(self, **options: Any) -> list[Frame]:
        """What a new client is sent."""
        return self.make(**options).feed(self.assembler.view().snapshot())


def call(call_id: str = "c1", arguments: str = '{"path":"/a"}', **more: Any) -> Fact:
    data = {"turn": 1, "step": 1, "call_id": call_id, "name": "read", "arguments": arguments}
    return "tool/call", {**data, **more}


def result(call_id: str = "c1", text: str = "A", **more: Any) -> Fact:
    return "tool/result", {"call_id": call_id, "content": [{"type": "text", "text": text}], **more}


def asks(call_id: str = "c1", **input_: Any) -> Fact:
    return "permission/request", {"call_id": call_id, "request_id": "q1", "input": input_}


def answers(decision: str, call_id: str = "c1", **more: Any) -> Fact:
    data = {"call_id": call_id, "request_id": "q1", "decision": decision, **more}
    return "permission/answer", data


def message(*texts: str, **more: Any) -> Fact:
    blocks = [{"type": "text", "text": text} for text in texts]
    return "assistant/message", {"turn": 1, "step": 1, "message_id": "a", "content": blocks, **more}


def ends(reason: str = "completed", **more: Any) -> Fact:
    return "turn/end", {"turn": 1, "reason": reason, **more}
