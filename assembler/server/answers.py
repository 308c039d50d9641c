"""Reading requests and writing answers: bounded bodies, checked parameters, one form of refusal.

Not here: what is asked for (`routes`), and who may ask (`guard`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from assembler.codec import encode
from assembler.engine.errors import (
    AssemblerError,
    ConflictError,
    GapError,
    InputError,
    LimitError,
    RecordingError,
)
from assembler.server.limits import ServerLimits, natural
from assembler.server.sources import BusyError, UnknownError
from assembler.stores import StoreError

__all__ = [
    "Endpoint",
    "Refused",
    "UnknownError",
    "answer",
    "body",
    "count",
    "explained",
    "raw",
    "refusal",
    "refusal_of",
    "text",
]

T = TypeVar("T")
Endpoint = Callable[[Request], Awaitable[Response]]
_log = logging.getLogger("assembler.server")

_CODES = {
    400: "bad-request",
    401: "no-token",
    403: "forbidden",
    404: "not-found",
    405: "method",
    408: "too-slow",
    409: "conflict",
    413: "too-large",
    415: "not-json",
    421: "wrong-host",
    429: "too-many",
    500: "failed",
    503: "busy",
}
_STATUSES: tuple[tuple[type[AssemblerError], int], ...] = (
    (UnknownError, 404),
    (BusyError, 503),
    (ConflictError, 409),
    (GapError, 409),
    (InputError, 400),
    (LimitError, 413),
    (StoreError, 503),
    (RecordingError, 400),
    (AssemblerError, 503),  # what is closed
)


class Refused(Exception):  # noqa: N818 - it is no error of ours
    """A request is not answered as asked."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def answer(value: Any, status: int = 200) -> Response:
    """`value` as JSON, which nobody keeps."""
    return raw(encode(value), status)


def raw(text: bytes, status: int = 200) -> Response:
    """JSON text that is made already."""
    headers = {"cache-control": "no-store"}
    return Response(text, status, headers, media_type="application/json")


def refusal(status: int, message: str, **more: Any) -> Response:
    """An answer that says no, and why."""
    said = answer(
        {"error": {"code": _CODES.get(status, "failed"), "message": message, **more}}, status
    )
    if status in (408, 413):  # the rest of the body is not waited for
        said.headers["connection"] = "close"
    return said


def explained(endpoint: Endpoint) -> Endpoint:
    """The same endpoint, every error of which is a refusal in one line."""

    async def answered(request: Request) -> Response:
        try:
            return await endpoint(request)
        except Exception as error:
            return refusal_of(error)

    return answered


def refusal_of(error: Exception) -> Response:
    """The answer that an error is."""
    if isinstance(error, Refused):
        return refusal(error.status, str(error))
    if isinstance(error, ClientDisconnect):  # nobody reads this
        return refusal(400, "body: expected more of it")
    if not isinstance(error, AssemblerError):  # its words may hold contents
        _log.error("a request failed: %s", type(error).__name__)
        return refusal(500, "the server failed")
    status = next(status for kind, status in _STATUSES if isinstance(error, kind))
    if isinstance(error, ConflictError):
        return refusal(409, str(error), expected=error.expected, actual=error.actual)
    if isinstance(error, StoreError):  # its words may name files
        _log.error("a request failed: %s", type(error).__name__)
        return refusal(status, "the store failed")
    return refusal(status, str(error))


async def body(request: Request, kind: type[T], limits: ServerLimits) -> T:
    """The body of a request as `kind`. Raises `Refused`."""
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != "application/json":
        raise Refused(415, "content-type: expected application/json")
    try:
        return msgspec.json.decode(await _bytes(request, limits), type=kind)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as fault:
        raise Refused(400, f"body: {fault}") from None


async def _bytes(request: Request, limits: ServerLimits) -> bytes:
    try:
        async with asyncio.timeout(limits.body_ms_max / 1_000):
            return await _whole(request, limits.body_bytes_max)
    except TimeoutError:
        raise Refused(408, f"body: expected within body_ms_max = {limits.body_ms_max:g}") from None


async def _whole(request: Request, most: int) -> bytes:
    too_large = Refused(413, f"body: expected at most body_bytes_max = {most} bytes")
    told = request.headers.get("content-length", "0")
    if natural(told, most) is None:
        raise too_large
    parts = bytearray()
    async for part in request.stream():
        parts += part
        if len(parts) > most:
            raise too_large
    return bytes(parts)


def text(request: Request, name: str, most: int) -> str:
    """A parameter as text; empty when it is not there. Raises `Refused`."""
    value = request.query_params.get(name, "")
    if len(value) > most:
        raise Refused(400, f"{name}: expected at most {most} characters")
    return value


def count(request: Request, name: str, usual: int, most: int) -> int:
    """A parameter as a number from 1 to `most`. Raises `Refused`."""
    value = request.query_params.get(name)
    if value is None:
        return min(usual, most)
    number = natural(value, most)
    if not number:
        raise Refused(400, f"{name}: expected a number from 1 to {most}")
    return number
