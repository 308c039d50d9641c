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
    turn: int | None = None
    step: int | None = None
    last_turn = last_step = 0
    answered: set[tuple[int, int]] = set()
    offered: dict[str, Mapping[str, Any]] = {}
    called: set[str] = set()
    resulted: set[str] = set()
    for event in events:
        data = event.data
        match event.type:
            case "turn/start":
                assert turn is None and data["turn"] == last_turn + 1, event
                turn, last_turn, last_step = data["turn"], data["turn"], 0
            case "turn/end":
                assert turn == data["turn"], event
                assert step is None or data["reason"] == "interrupted", event
                turn = step = None
            case "step/start":
                assert turn == data["turn"] and step is None, event
                assert data["step"] == last_step + 1
                step = last_step = data["step"]
            case "step/end":
                assert (turn, step) == (data["turn"], data["step"]), event
                step = None
            case "assistant/message":
                assert (turn, step) == (data["turn"], data["step"]), event
                assert (turn, step) not in answered, event
                assert data["content"], "an empty message"
                if not data.get("interrupted"):
                    answered.add((data["turn"], data["step"]))
                for block in data["content"]:
                    if block["type"] == "tool-call":
                        assert not data.get("interrupted"), "an interrupted message calls nothing"
                        assert block["call_id"] not in offered, "one id, one call"
                        offered[block["call_id"]] = block
            case "tool/call":
                assert (turn, step) == (data["turn"], data["step"]), event
                assert data["call_id"] in offered and data["call_id"] not in called, event
                called.add(data["call_id"])
            case "tool/result":
                assert data["call_id"] in called and data["call_id"] not in resulted, event
                resulted.add(data["call_id"])
            case "llm/retry" | "llm/fallback":
                assert (turn, step) == (data["turn"], data["step"]), event
                assert (turn, step) not in answered, event
            case _:
                pass
    assert turn is None or not closed, "a turn is open"


def check_shown(conversation: Conversation) -> None:
    """What people see is what a reload shows, and nothing is being prepared."""
    assembler: Assembler = conversation.session.assembler
    same_as_fresh(assembler, catalog())
    for node in conversation.view():
        assert node.data.get("stage") != "preparing", node
        assert node.data.get("decision") != "pending", node
        assert node.data.get("status") != "running", node
