"""A source of live conversations, a server on loopback, and a reader of streams.

Not here: tests.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import Any

import httpx

from assembler import Draft, apply
from assembler.live import Hub, Session
from assembler.server import ServerApp, ServerLimits, StoreSource, create_app
from assembler.server.serving import bound, serve
from assembler.stores import MemoryStore, Store
from definitions import catalog

__all__ = ["Desk", "Reader", "desk", "inside", "local", "parsed", "said", "served", "turn"]

Test = Callable[[], Awaitable[None]]
LIMITS = ServerLimits(heartbeat_ms=10_000, linger_ms=10_000)


def inside(test: Test) -> Callable[[], None]:
    """Run a test in a loop of its own, after which no task may be left."""

    async def watched() -> None:
        async with asyncio.timeout(60):
            await test()
        for _ in range(5):  # generators of the client that are let go end in tasks
            await asyncio.sleep(0)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, left

    def run() -> None:
        asyncio.run(watched())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


def turn(number: int) -> Draft:
    return Draft("turn/start", {"turn": number}, time=number)


def said(id: str, text: str = "hello", time: int = 0) -> Draft:
    content = [{"type": "text", "text": text}]
    return Draft("user/message", {"message_id": id, "content": content}, time=time)


class Desk:
    """A store, its Hub and the application over both."""

    def __init__(self, store: Store, hub: Hub, source: StoreSource, app: ServerApp) -> None:
        self.store = store
        self.hub = hub
        self.source = source
        self.app = app

    @asynccontextmanager
    async def session(self, name: str = "c") -> AsyncGenerator[Session]:
        async with self.hub.use(name) as session:
            yield session


@asynccontextmanager
async def desk(
    *,
    limits: ServerLimits = LIMITS,
    store: Store | None = None,
    source: dict[str, Any] | None = None,
    hub: dict[str, Any] | None = None,
    **options: Any,
) -> AsyncGenerator[Desk]:
    options.setdefault("hosts", None)
    given = {"titles": ["conversation/title"], **(source or {})}
    async with AsyncExitStack() as stack:
        held = await stack.enter_async_context(store or MemoryStore())
        some = await stack.enter_async_context(Hub(held, catalog(), **(hub or {})))
        made = StoreSource(some, **given)
        stack.push_async_callback(made.aclose)
        app = await stack.enter_async_context(create_app(made, limits=limits, **options))
        yield Desk(held, some, made, app)


@asynccontextmanager
async def local(app: Any, **options: Any) -> AsyncGenerator[httpx.AsyncClient]:
    """A client that talks to the application without a socket; it cannot read streams."""
    options.setdefault("base_url", "http://localhost")
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), **options) as client:
        yield client


@asynccontextmanager
async def served(app: ServerApp, **options: Any) -> AsyncGenerator[httpx.AsyncClient]:
    """A client of the application, served on loopback by uvicorn."""
    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(listening(app))
        base = f"http://127.0.0.1:{port}"
        yield await stack.enter_async_context(
            httpx.AsyncClient(base_url=base, timeout=20, trust_env=False, **options)
        )


@asynccontextmanager
async def listening(app: ServerApp, *, buffer: int | None = None) -> AsyncGenerator[int]:
    """The port of the application, which ends in order with the block.

    `buffer`: so many bytes the machine keeps of what a reader has not taken.
    """
    at = bound("127.0.0.1", 0)
    if buffer is not None:
        at.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer)
    ready = asyncio.Event()
    serving = asyncio.ensure_future(serve(app, at, ready.set))
    await asyncio.wait(
        [serving, waiting := asyncio.ensure_future(ready.wait())],
        return_when=asyncio.FIRST_COMPLETED,
    )
    waiting.cancel()
    try:
        yield at.getsockname()[1]
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        at.close()


def parsed(frame: str) -> tuple[str, str | None, Any]:
    """A frame's event, id and data; a comment is `("", None, None)`."""
    fields: dict[str, str] = {}
    for line in frame.splitlines():
        name, _, value = line.partition(": ")
        if name and name != "retry":
            assert name not in fields
            fields[name] = value
    data = fields.get("data")
    return fields.get("event", ""), fields.get("id"), None if data is None else json.loads(data)


class Reader:
    """Follows one stream as a browser does: shows it, and goes on where it was cut."""

    def __init__(self, client: httpx.AsyncClient, path: str) -> None:
        self.client = client
        self.path = path
        self.cursor: str | None = None
        self.shown: Any = None
        self.snapshots = 0
        self.patches = 0
        self.bytes = 0
        self.comments = 0
        self.reason: str | None = None

    @asynccontextmanager
    async def connected(self) -> AsyncGenerator[AsyncIterator[str]]:
        """The frames, each of them taken already."""
        headers = {} if self.cursor is None else {"last-event-id": self.cursor}
        async with self.client.stream("GET", self.path, headers=headers) as answer:
            assert answer.status_code == 200, await answer.aread()
            assert answer.headers["content-type"].startswith("text/event-stream")
            async with aclosing(self._frames(answer)) as frames:
                yield frames

    async def _frames(self, answer: httpx.Response) -> AsyncGenerator[str]:
        rest = ""
        async for part in answer.aiter_text():
            self.bytes += len(part)
            *whole, rest = (rest + part).split("\n\n")
            for frame in whole:
                kind = self.take(frame)
                if kind != "retry":
                    yield kind

    def take(self, frame: str) -> str:
        kind, cursor, data = parsed(frame)
        if kind == "snapshot":
            self.snapshots += 1
            self.shown = data
        elif kind == "patch":
            self.patches += 1
            self.shown = apply(self.shown, data)
        elif kind == "end":
            self.reason = data["reason"]
        elif frame == ":":
            self.comments += 1
        else:
            return "retry"
        if cursor is not None:
            self.cursor = cursor
        return kind

    async def until(self, holds: Callable[[Any], bool]) -> None:
        """Connect, and read until what is shown holds."""
        async with self.connected() as frames:
            async for _ in frames:
                if self.shown is not None and holds(self.shown):
                    return
        raise AssertionError(f"it never held: {self.reason}")

    async def read(self, frames: AsyncIterator[str], count: int = 1) -> None:
        for _ in range(count):
            await anext(frames)
