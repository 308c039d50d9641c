"""Requests with no business here get a clean refusal, and nothing of anybody else's."""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing
from typing import Any

import httpx
import pytest

from assembler import Draft
from assembler.server import ServerApp, ServerLimits
from assembler.server.guard import LOOPBACK, Tries
from tests.server.support import Reader, desk, inside, local, said, served, turn

TOKEN = "a token of some length"  # noqa: S105
JSON = {"content-type": "application/json"}


def refused(answer: httpx.Response, status: int) -> None:
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert set(error) >= {"code", "message"}
    assert "\n" not in error["message"]
    safe(answer)


def safe(answer: httpx.Response) -> None:
    policy = answer.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"


# Names and origins


@pytest.mark.parametrize(
    "host",
    ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", "evil.example:80"],
)
def test_another_name_for_this_address_is_refused(host: str) -> None:
    @inside
    async def test() -> None:
        async with desk(hosts=LOOPBACK) as some, local(some.app) as client:
            refused(await client.get("/health", headers={"host": host}), 421)

    test()


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8421", "127.0.0.1:1", "[::1]:80"])
def test_the_names_of_this_machine_are_answered(host: str) -> None:
    @inside
    async def test() -> None:
        async with desk(hosts=LOOPBACK) as some, local(some.app) as client:
            answer = await client.get("/health", headers={"host": host})
            assert answer.status_code == 200
            safe(answer)

    test()


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://localhost:1"},
        {"origin": "http://localhost.evil.example"},
        {"origin": "file://localhost"},
        {"origin": "http://evil.example//localhost"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"},
        {"sec-fetch-site": "same-site", "sec-fetch-mode": "cors"},
    ],
)
def test_a_page_of_another_origin_may_not_ask(headers: dict[str, str]) -> None:
    @inside
    async def test() -> None:
        async with desk() as some, local(some.app) as client:
            refused(await client.get("/conversations", headers=headers), 403)
            answer = await client.post("/conversations/c/older", headers=headers)
            refused(answer, 403)
            assert "access-control-allow-origin" not in answer.headers

    test()


@inside
async def test_pages_of_the_same_origin_and_of_those_that_were_named_may_ask() -> None:
    async with desk(origins=("http://other.example:5173",)) as some, local(some.app) as client:
        same = await client.get("/conversations", headers={"origin": "http://localhost"})
        assert same.status_code == 200
        origin = {"origin": "http://other.example:5173"}
        other = await client.get("/conversations", headers=origin)
        assert other.headers["access-control-allow-origin"] == origin["origin"]
        asked = {**origin, "access-control-request-method": "POST"}
        assert (await client.options("/conversations/c/older", headers=asked)).status_code == 204


@inside
async def test_a_visit_from_another_page_is_let_through() -> None:
    async with desk() as some, local(some.app) as client:
        headers = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
        assert (await client.get("/health", headers=headers)).status_code == 200
        refused(await client.post("/conversations/c/older", headers=headers), 403)


# The token


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": TOKEN},
        {"authorization": f"Basic {TOKEN}"},
        {"authorization": f"Bearer {TOKEN}x"},
        {"authorization": f"Bearer {TOKEN[:-1]}"},
        {"authorization": "Bearer "},
        {"authorization": b"Bearer \xff\xfe"},
        {"cookie": f"token={TOKEN}"},
        {"cookie": b'a="\xff; ;;=;'},
    ],
)
def test_without_the_token_nothing_is_said(headers: dict[str, Any]) -> None:
    @inside
    async def test() -> None:
        async with desk(token=TOKEN) as some, local(some.app) as client:
            for path in ("/health", "/conversations", "/openapi.json", "/conversations/c/stream"):
                answer = await client.get(path, headers=headers)
                refused(answer, 401)
                assert answer.headers["www-authenticate"].startswith("Bearer")
            refused(await client.get("/?token=wrong"), 401)
            refused(await client.post(f"/conversations/c/older?token={TOKEN}"), 401)

    test()


@inside
async def test_a_client_says_the_token_and_a_page_gets_a_cookie_for_it() -> None:
    async with desk(token=TOKEN) as some, local(some.app) as client:
        bearer = {"authorization": f"Bearer {TOKEN}"}
        assert (await client.get("/health", headers=bearer)).status_code == 200
        visit = await client.get("/health", params={"view": "a b", "token": TOKEN})
        assert visit.status_code == 303
        assert visit.headers["location"] == "./health?view=a+b"
        told = visit.headers["set-cookie"].lower()
        assert "httponly" in told
        assert "samesite=strict" in told
        assert TOKEN not in visit.headers["set-cookie"]
        assert (await client.get("/health")).status_code == 200  # the client kept the cookie


@inside
async def test_a_visit_is_never_led_elsewhere() -> None:
    async with desk(token=TOKEN) as some, local(some.app) as client:
        for path in ("//evil.example", "/%2F%2Fevil.example", "/http:%2F%2Fevil.example", "/a\\b"):
            client.cookies.clear()
            answer = await client.get(f"http://localhost{path}?token={TOKEN}")
            assert answer.status_code == 303
            assert answer.headers["location"].startswith("./")
            assert answer.next_request is not None
            assert answer.next_request.url.host == "localhost"


@inside
async def test_no_secret_is_in_the_log() -> None:
    told: list[str] = []

    class Keeping(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.append(record.getMessage())

    root, handler = logging.getLogger(), Keeping()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        async with desk(token=TOKEN) as some:
            await some.store.append("c", [turn(1), said("m1", "private words")], 0)
            async with served(some.app) as client:
                await client.get("/health", params={"token": TOKEN})
                await client.get("/conversations", params={"search": "private words"})
                bearer = {"authorization": f"Bearer {TOKEN}"}
                await client.get("/conversations/c", headers=bearer)
                await client.get("/conversations/line%0Aend", headers=bearer)
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    ours = [line for line in told if not line.startswith("HTTP Request")]
    assert "GET /conversations/c 200" in ours
    assert "GET /conversations/line%0Aend 404" in ours
    assert not [line for line in ours if TOKEN in line or "private" in line or "token=" in line]


# Bodies


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"", JSON, 400),
        (b"{", JSON, 400),
        (b"[]", JSON, 400),
        (b"null", JSON, 400),
        (b"\xff\xfe", JSON, 400),
        (b"[" * 100_000, JSON, 400),
        (b'{"drafts": [], "expected_seq": -1}', JSON, 400),
        (b'{"drafts": [], "expected_seq": 1.5}', JSON, 400),
        (b'{"drafts": [], "expected_seq": 0, "more": 1}', JSON, 400),
        (b'{"drafts": {}, "expected_seq": 0}', JSON, 400),
        (b'{"drafts": [{}], "expected_seq": 0}', JSON, 400),
        (b'{"drafts": [{"type": ""}], "expected_seq": 0}', JSON, 400),
        (b'{"drafts": [{"type": "x", "time": 1e400}], "expected_seq": 0}', JSON, 400),
        (b'{"drafts": [{"type": "x", "seq": 7}], "expected_seq": 0}', JSON, 400),
        (b'{"drafts": [], "expected_seq": 99999999999999999999}', JSON, 400),
        (b'{"drafts": [], "expected_seq": 0}', {"content-type": "text/plain"}, 415),
        (b'{"drafts": [], "expected_seq": 0}', {}, 415),
        (b" " * 5_000, JSON, 413),
        (b"", {**JSON, "content-length": "99999999999999999999"}, 413),
        (b"", {**JSON, "content-length": "-1"}, 413),
    ],
)
def test_a_body_that_cannot_be_taken_is_refused(
    body: bytes, headers: dict[str, str], status: int
) -> None:
    @inside
    async def test() -> None:
        given = {"source": {"writes": True}, "limits": ServerLimits(body_bytes_max=4_000)}
        if len(body) > 50_000:
            given["limits"] = ServerLimits()
        async with desk(**given) as some, local(some.app) as client:
            answer = await client.post("/conversations/c/append", content=body, headers=headers)
            refused(answer, status)
            assert await some.store.last("c") == 0
            assert len(answer.content) < 1_000

    test()


@inside
async def test_a_body_without_an_end_is_cut_off() -> None:
    async def endless() -> Any:
        while True:
            yield b"x" * 1_000

    limits = ServerLimits(body_bytes_max=10_000)
    async with desk(source={"writes": True}, limits=limits) as some, local(some.app) as client:
        async with aclosing(endless()) as body:
            answer = await client.post("/conversations/c/append", content=body, headers=JSON)
        refused(answer, 413)


@inside
async def test_too_many_deltas_are_refused_and_none_is_shown() -> None:
    limits = ServerLimits(emit_deltas_max=1)
    async with desk(source={"writes": True}, limits=limits) as some, local(some.app) as client:
        delta = {"attempt": "a", "turn": 1, "step": 1, "type": "text"}
        body = {"deltas": [delta, {**delta, "ordinal": 1}]}
        refused(await client.post("/conversations/c/emit", json=body), 413)


# Paths


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/nothing", 404),
        ("/conversations/", 404),
        ("/conversations//stream", 404),
        ("/conversations/c/", 404),
        ("/conversations/c/nothing", 404),
        ("/conversations/c/stream/", 404),
        ("/conversations/c/append", 405),
        ("/conversations/%2e%2e/%2e%2e/etc/passwd", 404),
        ("/conversations/..%2F..%2Fetc%2Fpasswd", 404),
        ("/conversations/%00", 404),
        ("/conversations/%FF", 404),
        ("/conversations/" + "x" * 10_000, 404),
        ("/conversations/c?view=%00", 400),
        ("/conversations/c?view=" + "x" * 2_000, 400),
        ("/conversations?search=" + "x" * 2_000, 400),
        ("/conversations?before=x", 400),
        ("/conversations?before=" + "9" * 900, 400),
        ("/conversations?before=1.9999999999999", 400),
        ("/health/", 404),
    ],
)
def test_a_path_that_leads_nowhere_is_refused(path: str, status: int) -> None:
    @inside
    async def test() -> None:
        async with desk() as some, local(some.app) as client:
            await some.store.append("c", [turn(1)], 0)
            answer = await client.send(raw(client, path))
            refused(answer, status)
            assert "passwd" not in answer.text

    test()


def raw(client: httpx.AsyncClient, path: str) -> httpx.Request:
    """A request for a path as it is written, which no client has made tidy."""
    request = client.build_request("GET", "/")
    request.url = httpx.URL("http://localhost", raw_path=path.encode())
    return request


@inside
async def test_a_head_is_answered_and_never_streams() -> None:
    async with desk() as some, local(some.app) as client:
        await some.store.append("c", [turn(1)], 0)
        assert (await client.head("/conversations/c")).status_code == 200
        assert (await client.head("/conversations/c/stream")).status_code == 405


@inside
async def test_methods_that_there_are_not_are_refused() -> None:
    async with desk() as some, local(some.app) as client:
        for method in ("PUT", "DELETE", "PATCH", "TRACE", "OPTIONS", "PROPFIND"):
            answer = await client.request(method, "/conversations/c")
            refused(answer, 405)


# Who may see what


def owned(request: Any, conversation: str) -> bool:
    return conversation.startswith(request.headers.get("x-user", "nobody") + "-")


@inside
async def test_one_reader_cannot_reach_the_conversations_of_another() -> None:
    given = {"source": {"writes": True}, "authorize": owned}
    async with desk(**given) as some, local(some.app) as client:
        for name in ("ann-1", "bob-1", "ann-2", "bob-2"):
            title = Draft("conversation/title", {"title": f"Title of {name}"})
            await some.store.append(name, [turn(1), title], 0)
        ann = {"x-user": "ann"}
        body = {"drafts": [], "expected_seq": 2}
        for answer in (
            await client.get("/conversations/bob-1", headers=ann),
            await client.get("/conversations/bob-1/stream", headers=ann),
            await client.post("/conversations/bob-1/older", headers=ann),
            await client.post("/conversations/bob-1/append", headers=ann, json=body),
            await client.post("/conversations/bob-1/append", headers=ann, content=b"x"),
            await client.post("/conversations/bob-1/emit", headers=ann, json={"deltas": []}),
            await client.post("/conversations/bob-1/settle", headers=ann, json={}),
        ):
            refused(answer, 404)
        listed = await client.get("/conversations?limit=1", headers=ann)
        found = [each["conversation"] for each in listed.json()["conversations"]]
        while (before := listed.json()["next"]) is not None:
            assert "bob" not in before
            listed = await client.get(f"/conversations?limit=1&before={before}", headers=ann)
            found += [each["conversation"] for each in listed.json()["conversations"]]
            assert "bob" not in listed.text
        assert sorted(found) == ["ann-1", "ann-2"]
        searched = await client.get("/conversations?search=bob", headers=ann)
        assert searched.json() == {"conversations": [], "next": None}


@inside
async def test_whoever_may_not_read_a_conversation_does_not_wake_it() -> None:
    async def never(request: Any, conversation: str) -> bool:
        await asyncio.sleep(0)
        return False

    async with desk(authorize=never) as some, local(some.app) as client:
        await some.store.append("c", [turn(1)], 0)
        refused(await client.get("/conversations/c"), 404)
        assert some.hub.statistics()["woken"] == 0
        assert (await client.get("/conversations")).json() == {"conversations": [], "next": None}


@inside
async def test_a_list_that_finds_little_ends_in_time() -> None:
    limits = ServerLimits(list_scanned_max=10)
    async with desk(authorize=owned, limits=limits) as some, local(some.app) as client:
        for number in range(50):
            await some.store.append(f"bob-{number}", [turn(1)], 0)
        answer = (await client.get("/conversations?limit=5", headers={"x-user": "ann"})).json()
        assert answer["conversations"] == []
        assert answer["next"] is not None


@inside
async def test_a_stream_is_guarded_as_well() -> None:
    async with desk(token=TOKEN) as some:
        await some.store.append("c", [turn(1), said("m1")], 0)
        headers = {"authorization": f"Bearer {TOKEN}"}
        async with served(some.app, headers=headers) as client:
            reader = Reader(client, "/conversations/c/stream")
            async with client.stream("GET", reader.path) as answer:
                safe(answer)
                assert answer.headers["cache-control"] == "no-store"


# Guessing, and taking time


@inside
async def test_who_guesses_tokens_has_to_wait_and_who_has_the_cookie_has_not() -> None:
    limits = ServerLimits(wrong_tokens_max=3)
    async with desk(token=TOKEN, limits=limits) as some, local(some.app) as client:
        for _ in range(10):  # an old page says the same over and over
            refused(await client.get("/health", params={"token": "old"}), 401)
        right = {"authorization": f"Bearer {TOKEN}"}
        assert (await client.get("/health", headers=right)).status_code == 200
        await client.get("/health", params={"token": TOKEN})
        assert client.cookies
        cookies = dict(client.cookies)
        client.cookies.clear()
        for number in range(2):
            wrong = {"authorization": f"Bearer {number}"}
            refused(await client.get("/health", headers=wrong), 401)
        answer = await client.get("/health", headers=right)
        refused(answer, 429)
        assert answer.headers["retry-after"] == "60"
        refused(await client.get("/health", params={"token": TOKEN}), 429)
        client.cookies.update(cookies)
        assert (await client.get("/health")).status_code == 200


@inside
async def test_cookies_are_guessed_no_quicker() -> None:
    limits = ServerLimits(wrong_tokens_max=3)
    async with desk(token=TOKEN, limits=limits) as some, local(some.app) as client:
        await client.get("/health", params={"token": TOKEN})
        ((name, value),) = client.cookies.items()
        client.cookies.clear()
        for number in range(3):
            # who tries tokens by their cookies does not know its name either
            wrong = {"cookie": f"assembler-{number:08}={value}"}
            refused(await client.get("/health", headers=wrong), 401)
        refused(await client.get("/health", headers={"cookie": f"{name}={value}"}), 429)


@inside
async def test_one_request_tries_one_token() -> None:
    async with desk(token=TOKEN) as some, local(some.app) as client:
        many = [("token", "a"), ("token", TOKEN)]
        refused(await client.get("/health", params=many), 401)


def test_wrong_tokens_are_forgotten_in_time_and_addresses_are_bounded() -> None:
    now = [0.0]
    tries = Tries(ServerLimits(wrong_tokens_max=2, wrong_tokens_ms=1_000), lambda: now[0])
    for said_ in ("a", "b"):
        assert not tries.over(("token", "x"))
        tries.count(("token", "x"), said_)
    assert tries.over(("token", "x"))
    assert not tries.over(("token", "y"))
    now[0] = 1.0
    assert not tries.over(("token", "x"))
    tries.count(("token", "x"), "c")
    assert not tries.over(("token", "x"))
    for number in range(20_000):
        tries.count(("token", str(number)), "a")
    assert len(tries._said) <= 10_000


def test_who_leaves_in_the_middle_of_a_body_is_no_fault_of_the_server(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)

    @inside
    async def test() -> None:
        heard: asyncio.Queue[int] = asyncio.Queue()
        async with desk(source={"writes": True}) as some, served(watched(some.app, heard)) as to:
            reader, writer = await asyncio.open_connection(to.base_url.host, to.base_url.port)
            writer.write(
                b"POST /conversations/c/append HTTP/1.1\r\nhost: localhost\r\n"
                b"content-type: application/json\r\ncontent-length: 100\r\n\r\n{"
            )
            writer.write_eof()
            await reader.read()
            writer.close()
            await heard.get()

    test()
    assert not caplog.records


def watched(app: Any, heard: asyncio.Queue[int]) -> Any:
    """The same application, which says when it has answered."""

    class Watched(ServerApp):
        def __init__(self) -> None:
            self.service = app.service

        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            await app(scope, receive, send)
            if scope["type"] == "http":
                heard.put_nowait(1)

    return Watched()


@inside
async def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    limits = ServerLimits(body_ms_max=20)
    async with desk(source={"writes": True}, limits=limits) as some, served(some.app) as client:
        url = client.base_url
        reader, writer = await asyncio.open_connection(url.host, url.port)
        writer.write(
            b"POST /conversations/c/append HTTP/1.1\r\nhost: localhost\r\n"
            b"content-type: application/json\r\ncontent-length: 100\r\n\r\n{"
        )
        answer = (await reader.read()).decode()  # to the end: the connection is given up
        writer.close()
        await writer.wait_closed()
        assert answer.startswith("HTTP/1.1 408")
        assert "body_ms_max = 20" in answer
