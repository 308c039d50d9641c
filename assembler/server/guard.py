"""The guard before every route: which names it answers under, whose pages may ask, and the token.

Not here: who may see which conversation (`routes`, `authorize`).
"""

from __future__ import annotations

import hashlib
import hmac
import logging
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from assembler.server.answers import refusal

__all__ = ["LOOPBACK", "Guard"]

LOOPBACK = ("localhost", "127.0.0.1", "::1")
_NO_POLICY = 1008
_log = logging.getLogger("assembler.server")

_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "manifest-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
}


class Guard:
    """Refuses what has no business here, and puts the headers of safety on every answer.

    - `Host` is one of `hosts` (None: any), so that no other name can be made to lead here.
    - A page that asks is of the same origin, or one of `origins`.
    - With a `token`, whoever asks says `Authorization: Bearer TOKEN`, or has the cookie that a
      visit with `?token=TOKEN` sets. The cookie is made from the token and does not hold it.
    """

    def __init__(
        self, token: str | None, hosts: Iterable[str] | None, origins: Iterable[str]
    ) -> None:
        self.app: ASGIApp = _nothing
        self._token = None if token is None else token.encode()
        self._hosts = None if hosts is None else frozenset(host.lower() for host in hosts)
        self._origins = frozenset(origin.rstrip("/").lower() for origin in origins)
        made = hmac.new(self._token or b"", b"assembler cookie", hashlib.sha256).hexdigest()
        # Several servers of one host name have cookies of different names.
        self._cookie, self._worth = f"assembler-{made[:8]}", made[8:]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": _NO_POLICY})
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        origin = headers.get("origin", "").lower()

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._secure(MutableHeaders(raw=message.setdefault("headers", [])), origin)
                _log.info("%s %s %d", scope["method"], _written(scope), message["status"])
            await send(message)

        refused = self._checked(scope, headers, origin)
        await (refused or self.app)(scope, receive, send_safely)

    def _secure(self, headers: MutableHeaders, origin: str) -> None:
        for name, value in _HEADERS.items():
            headers.setdefault(name, value)
        if origin in self._origins:
            headers["access-control-allow-origin"] = origin
            headers["access-control-allow-credentials"] = "true"
            headers.add_vary_header("origin")
        else:
            headers.setdefault("cross-origin-resource-policy", "same-origin")

    def _checked(self, scope: Scope, headers: Headers, origin: str) -> Response | None:
        """An answer instead of the application's; None: let it through."""
        host = headers.get("host", "").lower()
        if self._hosts is not None and _name(host) not in self._hosts:
            return refusal(421, "host: this server does not answer under this name")
        if not self._may_ask(scope, headers, origin, host):
            return refusal(403, "origin: pages of other origins may not ask")
        if scope["method"] == "OPTIONS" and origin in self._origins:
            return _preflight()
        return None if self._token is None else self._with_token(scope, headers)

    def _may_ask(self, scope: Scope, headers: Headers, origin: str, host: str) -> bool:
        if origin:
            same = urlsplit(origin).scheme in ("http", "https") and origin.endswith(f"//{host}")
            return same or origin in self._origins
        # What has no origin: a visit to the page, or what another page embeds.
        visit = scope["method"] == "GET" and headers.get("sec-fetch-mode") == "navigate"
        return visit or headers.get("sec-fetch-site", "none") in ("none", "same-origin")

    # -- the token -----------------------------------------------------------------------

    def _with_token(self, scope: Scope, headers: Headers) -> Response | None:
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and self._is_token(given.strip()):
            return None
        if self._has_cookie(headers):
            return None
        asked = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if scope["method"] == "GET" and any(self._is_token(v) for k, v in asked if k == "token"):
            return self._visit(scope, asked)
        answer = refusal(401, "this server asks for its token")
        answer.headers["www-authenticate"] = 'Bearer realm="assembler"'
        return answer

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "replace"), self._token or b"")

    def _has_cookie(self, headers: Headers) -> bool:
        try:
            cookies = SimpleCookie(headers.get("cookie", ""))
        except CookieError:
            return False
        cookie = cookies.get(self._cookie)
        given = "" if cookie is None else cookie.value
        return hmac.compare_digest(given.encode(), self._worth.encode())

    def _visit(self, scope: Scope, asked: list[tuple[str, str]]) -> Response:
        """Keep the token as a cookie, and lead to the same address without it."""
        rest = urlencode([(name, value) for name, value in asked if name != "token"])
        # Relative, so that nothing that was asked can lead elsewhere.
        leaf = quote(scope["path"].rsplit("/", 1)[-1], safe="")
        answer = Response(status_code=303)
        answer.headers["location"] = f"./{leaf}{rest and '?' + rest}"
        answer.headers["cache-control"] = "no-store"
        answer.set_cookie(
            self._cookie,
            self._worth,
            path=scope.get("root_path") or "/",
            secure=scope.get("scheme") == "https",
            httponly=True,
            samesite="strict",
        )
        return answer


def _written(scope: Scope) -> str:
    """The path as it was asked for, on one line, without what stands behind a `?`."""
    whole: bytes | None = scope.get("raw_path")
    return quote(scope["path"]) if whole is None else quote(whole, safe="/%")


def _name(host: str) -> str:
    """A Host without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _preflight() -> Response:
    return Response(
        status_code=204,
        headers={
            "access-control-allow-methods": "GET, POST",
            "access-control-allow-headers": "authorization, content-type, last-event-id",
            "access-control-max-age": "600",
        },
    )


async def _nothing(scope: Scope, receive: Receive, send: Send) -> None:
    raise NotImplementedError
