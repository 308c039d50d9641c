"""A backend after a script, a model whose answers are written by hand, and what must hold of a log.

Not here: tests.
"""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Mapping
from itertools import count
from typing import Any, TypeVar

from assembler import Assembler, Event
from assembler.stores import MemoryStore, SyncStore
from definitions import AttemptLost, Conversation, Conversations, catalog
from definitions.backend import Dispatch
from tests.engine.support import same_as_fresh

__all__ = [
    "Awaiting",
    "Naps",
    "WaitingStore",
    "answer",
    "backend",
    "boundaries",
    "call",
    "check_log",
    "check_shown",
    "inside",
    "log",
    "message",
    "names",
    "pump",
    "text",
    "types",
]

T = TypeVar("T")
Chunk = dict[str, Any]
Tool = Callable[[Dispatch], Awaitable[None]]


# A model


def text(words: str, index: int = 0, type: str = "text") -> list[Chunk]:
    block = {"type": type, "text" if type == "text" else "thinking": ""}
    delta = {"type": f"{'text' if type == 'text' else 'thinking'}_delta"}
    delta["text" if type == "text" else "thinking"] = words
    return [
        {"type": "content_block_start", "index": index, "content_block": block},
        {"type": "content_block_delta", "index": index, "delta": delta},
        {"type": "content_block_stop", "index": index},
    ]


def call(id: str, name: str = "look", index: int = 1, **arguments: Any) -> list[Chunk]:
    return raw_call(id, name, json.dumps(arguments), index)


def raw_call(id: str, name: str, arguments: str, index: int = 1) -> list[Chunk]:
    half = len(arguments) // 2
    block = {"type": "tool_use", "id": id, "name": name, "input": {}}
    pieces = [arguments[:half], arguments[half:]]
    return [
        {"type": "content_block_start", "index": index, "content_block": block},
        *(
            {
                "type": "content_block_delta",
                "index": index,
                "delta": {"type": "input_json_delta", "partial_json": piece},
            }
            for piece in pieces
        ),
        {"type": "content_block_stop", "index": index},
    ]


def message(*blocks: list[Chunk], stop: str | None = None, end: bool = True) -> list[Chunk]:
    """The chunks of an answer; without its `end` it broke off."""
    usage = {"input_tokens": 3, "output_tokens": 1}
    chunks = [{"type": "message_start", "message": {"id": "m", "model": "small", "usage": usage}}]
    for block in blocks:
        chunks += block
    if end:
        calls = any("tool_use" in json.dumps(block) for block in blocks)
        stop = stop or ("tool_use" if calls else "end_turn")
        chunks += [
            {
                "type": "message_delta",
                "delta": {"stop_reason": stop},
                "usage": {"output_tokens": 5},
            },
            {"type": "message_stop"},
        ]
    return chunks


# A backend


def names(prefix: str = "n") -> Callable[[], str]:
    numbers = count(1)
    return lambda: f"{prefix}{next(numbers)}"


class Naps:
    """Sleeps that take no time."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)


class WaitingStore(MemoryStore):
    """Lets others run before and behind what it does, as one with a thread does."""

    async def run(self, ask: Callable[[SyncStore], T]) -> T:
        await asyncio.sleep(0)
        answer = ask(self.sync)
        await asyncio.sleep(0)
        return answer


def backend(store: Any, prefix: str = "n", **options: Any) -> Conversations:
    given = {"now": lambda: 1_000, "names": names(prefix), "sleep": Naps(), **options}
    return Conversations(store, catalog(), **given)


async def looks(tool: Dispatch) -> None:
    tool.result("seen")


async def answer(
    conversation: Conversation,
    script: Iterable[Any],
    said: Any = "hello",
    tool: Tool = looks,
    **options: Any,
) -> None:
    """The loop of a backend. An entry of the script is the chunks of an answer, with exceptions
    among them that the request raises there."""
    answers = iter(script)
    async with conversation.turn(said, **options) as turn:
        while not turn.done:
            async with turn.step() as step:
                while not step.answered:
                    try:
                        async with step.attempt(provider="anthropic", model="small") as attempt:
                            for chunk in next(answers):
                                await asyncio.sleep(0)
                                if isinstance(chunk, BaseException):
                                    raise chunk
                                attempt.feed(chunk)
                    except (AttemptLost, OSError) as lost:
                        await step.retry(lost, delay_ms=50, at_most=3)
                for each in step.calls:
                    async with step.dispatch(each) as dispatch:
                        await asyncio.sleep(0)
                        await tool(dispatch)


def inside(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test in a loop of its own."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


async def pump() -> None:
    """Let everything run that can run without news from outside."""
    for _ in range(60):
        await asyncio.sleep(0)


class Awaiting:
    """Awaits a coroutine, and has `strike(n)` called each time it waits, the n-th time (from 1).

    `pauses`: what it awaits itself before it goes on from such a wait.
    """

    def __init__(self, coroutine: Coroutine[Any, Any, Any], strike: Callable[[int], None]) -> None:
        self._coroutine = coroutine
        self._strike = strike
        self.waits = 0
        self.pauses: dict[int, Callable[[], Coroutine[Any, Any, None]]] = {}

    def __await__(self) -> Generator[Any, Any, Any]:
        step: Callable[[], Any] = functools.partial(self._coroutine.send, None)
        while True:
            try:
                waited = step()
            except StopIteration as done:
                return done.value
            self.waits += 1
            self._strike(self.waits)
            try:
                yield waited
                if self.waits in self.pauses:
                    yield from self.pauses[self.waits]().__await__()
            except BaseException as error:
                step = functools.partial(self._coroutine.throw, error)
            else:
                step = functools.partial(self._coroutine.send, None)


# What must hold


def log(store: Any, name: str = "c") -> list[Event]:
    events: list[Event] = store.sync.read(name)
    return events


def types(store: Any, name: str = "c") -> list[str]:
    return [event.type for event in log(store, name)]


def boundaries(store: Any, name: str = "c") -> list[str]:
    """Turns and steps, and how turns ended."""
    told = []
    for event in log(store, name):
        kind, _, what = event.type.partition("/")
        if kind == "turn":
            told.append(event.data["reason"] if what == "end" else "turn")
        elif kind == "step":
            told.append(f"step {what}")
    return told


def check_log(events: list[Event], *, closed: bool = True) -> None:
    """A log that anybody may read: all in its place, each thing once."""
    reader = _Reader()
    for event in events:
        read = _READ.get(event.type)
        if read is not None:
            read(reader, event.data)
    assert reader.turn is None or not closed, "a turn is open"


class _Reader:
    """What a log has said so far."""

    def __init__(self) -> None:
        self.turn: int | None = None
        self.step: int | None = None
        self.last_turn = self.last_step = 0
        self.answered: set[Any] = set()
        self.kept: set[Any] = set()
        self.offered: set[str] = set()
        self.called: set[str] = set()
        self.resulted: set[str] = set()

    def here(self, data: Mapping[str, Any]) -> tuple[int | None, int | None]:
        place = (self.turn, self.step)
        assert self.step is not None
        assert place == (data["turn"], data["step"]), "in the step that is open"
        return place

    def begin_turn(self, data: Mapping[str, Any]) -> None:
        assert self.turn is None
        assert data["turn"] == self.last_turn + 1
        self.turn = self.last_turn = data["turn"]
        self.last_step = 0

    def end_turn(self, data: Mapping[str, Any]) -> None:
        assert self.turn == data["turn"]
        assert self.step is None or data["reason"] == "interrupted"
        self.turn = self.step = None

    def begin_step(self, data: Mapping[str, Any]) -> None:
        assert self.turn == data["turn"]
        assert self.step is None
        assert data["step"] == self.last_step + 1
        self.step = self.last_step = data["step"]

    def end_step(self, data: Mapping[str, Any]) -> None:
        self.here(data)
        self.step = None

    def say(self, data: Mapping[str, Any]) -> None:
        place = self.here(data)
        assert place not in self.answered, "one answer"
        assert data["content"], "an empty message"
        calls = [each["call_id"] for each in data["content"] if each["type"] == "tool-call"]
        if data.get("interrupted"):
            assert not calls, "an interrupted message calls nothing"
            assert place not in self.kept, "what was read stays once"
            self.kept.add(place)
        else:
            self.answered.add(place)
        assert len(set(calls)) == len(calls)
        assert not self.offered & set(calls), "one id, one call"
        self.offered.update(calls)

    def call(self, data: Mapping[str, Any]) -> None:
        self.here(data)
        if "parent_call_id" in data:
            assert data["parent_call_id"] in self.called - self.resulted
            self.offered.add(data["call_id"])
        assert data["call_id"] in self.offered - self.called
        self.called.add(data["call_id"])

    def settle(self, data: Mapping[str, Any]) -> None:
        assert data["call_id"] in self.called - self.resulted
        self.resulted.add(data["call_id"])

    def give_up(self, data: Mapping[str, Any]) -> None:
        assert self.here(data) not in self.answered


_READ = {
    "turn/start": _Reader.begin_turn,
    "turn/end": _Reader.end_turn,
    "step/start": _Reader.begin_step,
    "step/end": _Reader.end_step,
    "assistant/message": _Reader.say,
    "tool/call": _Reader.call,
    "tool/result": _Reader.settle,
    "llm/retry": _Reader.give_up,
    "llm/fallback": _Reader.give_up,
}


def check_shown(conversation: Conversation) -> None:
    """What people see is what a reload shows, and nothing is being prepared."""
    assembler: Assembler = conversation.session.assembler
    same_as_fresh(assembler, catalog())
    for node in conversation.view():
        assert node.data.get("stage") != "preparing", node
        assert node.data.get("decision") != "pending", node
        assert node.data.get("status") != "running", node
