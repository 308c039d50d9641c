"""The guard before every route: which names it answers under, whose pages may ask, and the token.

Not here: who may see which conversation (`routes`, `authorize`).
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import time
from collections.abc import Callable, Iterable
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, quote, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from assembler.server.answers import refusal
from assembler.server.limits import ServerLimits

__all__ = ["LOOPBACK", "Guard", "Tries"]

LOOPBACK = ("localhost", "127.0.0.1", "::1")
_COOKIE = "assembler-"
_NO_POLICY = 1008
_ADDRESSES_MAX = 10_000
"""Of which wrong tokens are counted; the oldest are forgotten first."""
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
      Who tries too many different ones waits (`Tries`).
    """

    def __init__(
        self,
        token: str | None,
        hosts: Iterable[str] | None,
        origins: Iterable[str],
        limits: ServerLimits,
    ) -> None:
        self._tries = Tries(limits)
        self.app: ASGIApp = _nothing
        self._token = None if token is None else token.encode()
        self._hosts = None if hosts is None else frozenset(host.lower() for host in hosts)
        self._origins = frozenset(origin.rstrip("/").lower() for origin in origins)
        made = hmac.new(self._token or b"", b"assembler cookie", hashlib.sha256).hexdigest()
        # Several servers of one host name have cookies of different names.
        self._cookie, self._worth = f"{_COOKIE}{made[:8]}", made[8:]

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
            same = origin in (f"http://{host}", f"https://{host}")
            return same or origin in self._origins
        # What has no origin: a visit to the page, or what another page embeds.
        visit = scope["method"] == "GET" and headers.get("sec-fetch-mode") == "navigate"
        return visit or headers.get("sec-fetch-site", "none") in ("none", "same-origin")

    # -- the token -----------------------------------------------------------------------

    def _with_token(self, scope: Scope, headers: Headers) -> Response | None:
        address = (scope.get("client") or ("",))[0]
        said = self._cookies(headers)
        if said and (answer := self._tried(("cookie", address), said)):
            return answer
        if self._worth_of(said):
            return None
        asked = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        kind, _, given = headers.get("authorization", "").partition(" ")
        visits = kind.lower() != "bearer" and scope["method"] == "GET"
        token = next((v for k, v in asked if k == "token"), "") if visits else given.strip()
        if token and (answer := self._tried(("token", address), token)):
            return answer
        if self._is_token(token):
            return self._visit(scope, asked) if visits else None
        answer = refusal(401, "this server asks for its token")
        answer.headers["www-authenticate"] = 'Bearer realm="assembler"'
        return answer

    def _tried(self, who: tuple[str, str], said: str) -> Response | None:
        """Count what was said, unless it is right; an answer when it was too much."""
        if self._tries.over(who):
            answer = refusal(429, "too many wrong tokens: expected at most wrong_tokens_max")
            answer.headers["retry-after"] = str(self._tries.seconds)
            return answer
        is_right = self._is_token(said) if who[0] == "token" else self._worth_of(said)
        if not is_right:
            self._tries.count(who, said)
        return None

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "replace"), self._token or b"")

    def _cookies(self, headers: Headers) -> str:
        """What cookies of servers like this one say; empty: there are none."""
        try:
            cookies = SimpleCookie(headers.get("cookie", ""))
        except CookieError:
            return ""
        said = {name: each.value for name, each in cookies.items() if name.startswith(_COOKIE)}
        return ";".join(f"{name}={value}" for name, value in sorted(said.items()))

    def _worth_of(self, said: str) -> bool:
        """Whether ours is among the cookies, and right."""
        ours = f"{self._cookie}=".encode()
        given = next((each for each in said.encode().split(b";") if each.startswith(ours)), b"")
        return hmac.compare_digest(given, ours + self._worth.encode())

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


class Tries:
    """Wrong tokens, counted for each address: the different ones that it said within a time.

    One that is said again is no guess: a page that was left open says its old one over and over.
    """

    def __init__(self, limits: ServerLimits, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = limits.wrong_tokens_max
        self._lasts = limits.wrong_tokens_ms / 1_000
        self._clock = clock
        self._said: dict[tuple[str, str], tuple[float, set[bytes]]] = {}

    @property
    def seconds(self) -> int:
        """For so long, at most, who is `over` has to wait."""
        return max(1, round(self._lasts))

    def over(self, who: tuple[str, str]) -> bool:
        """Whether nothing is looked at that this one says. O(1)."""
        since, said = self._said.get(who, (0.0, set()))
        return len(said) >= self._most and self._clock() < since + self._lasts

    def count(self, who: tuple[str, str], said: str) -> None:
        """Keep that this was wrong. O(said)."""
        now = self._clock()
        since, known = self._said.get(who, (now, set()))
        if now >= since + self._lasts:
            since, known = now, set()
        known.add(hashlib.sha256(said.encode("utf-8", "replace")).digest())
        self._said.pop(who, None)
        self._said[who] = (since, known)
        if len(self._said) > _ADDRESSES_MAX:
            del self._said[next(iter(self._said))]


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
