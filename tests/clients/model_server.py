"""A model provider on loopback: answers after a script, in the protocols of Anthropic and OpenAI.

Not here: tests.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self

from msgspec import Struct

__all__ = ["ModelServer", "Reply", "anthropic_reply", "openai_reply"]

HEAD = "HTTP/1.1 {status} X\r\ncontent-type: {type}\r\n{length}connection: close\r\n\r\n"
MORE_THAN_COMES = "content-length: 1000000\r\n"


class Reply(Struct, frozen=True):
    """What is sent; `hangs`: and then nothing more, until the client goes; `breaks`: the connection
    is gone before its end."""

    pieces: tuple[bytes, ...] = ()
    status: int = 200
    type: str = "text/event-stream"
    hangs: bool = False
    breaks: bool = False


def failure(status: int, kind: str) -> Reply:
    told = {"type": "error", "error": {"type": kind, "message": kind}}
    return Reply((json.dumps(told).encode(),), status, "application/json")


def anthropic_reply(
    words: str = "",
    calls: Iterable[tuple[str, str, dict[str, Any]]] = (),
    *,
    end: bool = True,
    hangs: bool = False,
) -> Reply:
    usage = {"input_tokens": 9, "output_tokens": 1}
    start = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-test",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    events: list[dict[str, Any]] = [{"type": "message_start", "message": start}]
    blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
    if words:
        pieces = [words[: len(words) // 2], words[len(words) // 2 :]]
        deltas = [{"type": "text_delta", "text": piece} for piece in pieces]
        blocks.append(({"type": "text", "text": ""}, deltas))
    for call_id, name, arguments in calls:
        text = json.dumps(arguments)
        pieces = [text[:5], text[5:]]
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
        blocks.append(({"type": "tool_use", "id": call_id, "name": name, "input": {}}, deltas))
    for index, (block, deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [
            {"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas
        ]
        if end or index < len(blocks) - 1:
            events.append({"type": "content_block_stop", "index": index})
    if end:
        stop = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
        events.append({"type": "message_delta", "delta": stop, "usage": {"output_tokens": 9}})
        events.append({"type": "message_stop"})
    pieces_ = [f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode() for each in events]
    return Reply(tuple(pieces_), hangs=hangs)


def openai_reply(
    words: str = "",
    calls: Iterable[tuple[str, str, dict[str, Any]]] = (),
    *,
    end: bool = True,
    hangs: bool = False,
) -> Reply:
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    if words:
        deltas += [
            {"content": words[: len(words) // 2]},
            {"content": words[len(words) // 2 :]},
        ]
    for index, (call_id, name, arguments) in enumerate(calls):
        text = json.dumps(arguments)
        head = {"index": index, "id": call_id, "type": "function"}
        deltas.append({"tool_calls": [{**head, "function": {"name": name, "arguments": ""}}]})
        deltas += [
            {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
            for piece in (text[:5], text[5:])
        ]
    chunks = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    if end:
        reason = "tool_calls" if calls else "stop"
        chunks.append({"index": 0, "delta": {}, "finish_reason": reason})
    whole = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "gpt-test",
    }
    lines = [json.dumps({**whole, "choices": [chunk]}) for chunk in chunks]
    return Reply(
        tuple(f"data: {line}\n\n".encode() for line in [*lines, *(["[DONE]"] if end else [])]),
        hangs=hangs,
    )


class ModelServer:
    """Gives its replies one after the other, and keeps what it was asked."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.requests: list[dict[str, Any]] = []
        self.hangs = asyncio.Event()
        """It has sent all of a reply that hangs."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()[:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
            self.requests.append(json.loads(await reader.readexactly(length)))
            reply = self.replies.pop(0)
            promised = MORE_THAN_COMES if reply.breaks else ""
            head = HEAD.format(status=reply.status, type=reply.type, length=promised)
            writer.write(head.encode())
            for piece in reply.pieces:
                writer.write(piece)
                await writer.drain()
            if reply.hangs:
                self.hangs.set()
                await reader.read()
        except ConnectionError:
            pass
        finally:
            writer.close()
