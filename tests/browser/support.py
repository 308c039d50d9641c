"""A server in a thread of its own, a real browser, and recordings for it.

Not here: tests.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any

from assembler import plugins
from assembler.live import Hub, Session
from assembler.server import (
    FilesSource,
    Inspecting,
    StoreSource,
    create_app,
    recordings_of,
)
from assembler.server.serving import bound, serve
from assembler.stores import MemoryStore
from definitions import catalog
from definitions.catalog import TITLES

__all__ = ["Served", "appended", "conversation", "in_files", "in_memory", "spoken", "write"]

OURS = Path(__file__).parents[2] / "recordings"
SECONDS_MAX = 60


class Served:
    """A server on loopback. `do` runs a coroutine in its loop, from the test's thread."""

    def __init__(self) -> None:
        self.url = ""
        self.hub: Hub | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ready = threading.Event()
        self._end: asyncio.Event | None = None
        self._stack = AsyncExitStack()

    @contextmanager
    def running(self, opened: Callable[[Served], Coroutine[Any, Any, Any]]) -> Iterator[Served]:
        thread = threading.Thread(target=lambda: asyncio.run(self._serve(opened)))
        thread.start()
        assert self._ready.wait(SECONDS_MAX)
        try:
            yield self
        finally:
            assert self._loop is not None
            assert self._end is not None
            self._loop.call_soon_threadsafe(self._end.set)
            thread.join(SECONDS_MAX)
            assert not thread.is_alive()

    async def _serve(self, opened: Callable[[Served], Coroutine[Any, Any, Any]]) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        async with self._stack as stack:
            source = await opened(self)
            inspecting = Inspecting(
                recordings_of(source),
                catalog(),
                marks=plugins.marks(),
                module=plugins.page_module(),
            )
            app = await stack.enter_async_context(create_app(source, inspecting=inspecting))
            at = bound("127.0.0.1", 0)
            stack.callback(at.close)
            self.url = f"http://127.0.0.1:{at.getsockname()[1]}/"
            serving = asyncio.ensure_future(serve(app, at, self._ready.set))
            await self._end.wait()
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)

    def do(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(SECONDS_MAX)


def in_files(*paths: Path, page_events: int = 200) -> Any:
    """Recordings, to be read."""

    async def opened(served: Served) -> FilesSource:
        source = FilesSource(paths or [OURS], catalog(), page_events=page_events)
        served._stack.push_async_callback(source.aclose)
        return source

    return Served().running(opened)


def in_memory(page_events: int = 200) -> Any:
    """Conversations that a test writes while they are looked at."""

    async def opened(served: Served) -> StoreSource:
        store = await served._stack.enter_async_context(MemoryStore())
        served.hub = await served._stack.enter_async_context(
            Hub(store, catalog(), page_events=page_events)
        )
        return StoreSource(served.hub, views=("chat", "trajectory"), titles=TITLES, empty=True)

    return Served().running(opened)


# -- recordings -------------------------------------------------------------------------------


def appended(type_: str, **data: Any) -> dict[str, Any]:
    return {"op": "append", "event": {"type": type_, "data": data}}


def spoken(id: str, text: str) -> dict[str, Any]:
    return appended("user/message", message_id=id, content=[{"type": "text", "text": text}])


def conversation(turns: int, *, calls: int = 3, text: str = "Please look at it.") -> list[Any]:
    """Turns of a question, `calls` calls in one group, and an answer: calls + 3 Nodes each."""
    lines: list[Any] = []
    for turn in range(1, turns + 1):
        place = {"turn": turn, "step": 1}
        lines += [appended("turn/start", turn=turn), spoken(f"m{turn}", f"{turn}: {text}")]
        lines.append(appended("step/start", **place))
        for nth in range(calls):
            name = f"c{turn}.{nth}"
            arguments = json.dumps({"path": f"src/part_{turn}_{nth}.py"})
            call = {**place, "call_id": name, "name": "read_file", "arguments": arguments}
            result = [{"type": "text", "text": f"line {nth} of {turn}\n" * 8}]
            lines.append(appended("tool/call", **call))
            lines.append(appended("tool/result", **place, call_id=name, content=result))
        answer = [{"type": "text", "text": f"Done with {turn}."}]
        lines.append(appended("assistant/message", **place, message_id=f"a{turn}", content=answer))
        lines.append(appended("step/end", **place))
        lines.append(appended("turn/end", turn=turn, reason="completed"))
    return lines


def write(path: Path, lines: list[Any], title: str = "written") -> Path:
    whole = [{"recording": 1, "title": title}, *lines]
    path.write_text("".join(json.dumps(each) + "\n" for each in whole), "utf-8")
    return path


async def said(session: Session, *drafts: Any) -> None:
    await session.append(*drafts)
