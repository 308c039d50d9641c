"""Every live backend keeps every promise of the contract (`assembler.testing.check_live`)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from secrets import token_hex

import pytest

from assembler.live import Live, MemoryLive
from assembler.live.nats import NatsLimits, NatsLive
from assembler.testing import away_live_checks, check_live, live_checks
from tests.nats_server import NatsServer

BRIEF = NatsLimits(lease_ms=600, reconnect_ms=20)


class InMemory:
    def __init__(self, _request: pytest.FixtureRequest) -> None: ...

    def make(self) -> list[Live]:
        live = MemoryLive()
        return [live, live.beside(), live.beside()]

    async def die(self, live: Live) -> None:
        assert isinstance(live, MemoryLive)
        live.die()


class OverNats:
    def __init__(self, request: pytest.FixtureRequest) -> None:
        self.server: NatsServer = request.getfixturevalue("nats")

    def make(self) -> list[Live]:
        name = f"t{token_hex(8)}"
        return [NatsLive(self.server.url, name=name, limits=BRIEF) for _ in range(3)]

    async def die(self, live: Live) -> None:
        assert isinstance(live, NatsLive)
        await live.die()

    @asynccontextmanager
    async def restarted(self, lives: Sequence[Live]) -> AsyncGenerator[None]:
        """The server ends, and begins again with nothing in it."""
        self.server.stop()
        try:
            await until(lambda: not any(connected(each) for each in lives))
            yield
        finally:
            self.server.start()

    @asynccontextmanager
    async def cut(self, lives: Sequence[Live]) -> AsyncGenerator[None]:
        """The connections end; the server goes on with what it holds."""
        for each in lives:
            assert isinstance(each, NatsLive)
            assert each._nc is not None
            assert each._nc._transport is not None
            each._nc._transport.close()
        await until(lambda: not any(connected(each) for each in lives))
        yield


def connected(live: Live) -> bool:
    assert isinstance(live, NatsLive)
    return live.is_connected


async def until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0)


@pytest.mark.parametrize("check", live_checks, ids=lambda check: check.__name__)
@pytest.mark.parametrize("kind", [InMemory, OverNats])
def test_a_backend_keeps_it(
    kind: type[InMemory | OverNats], check: Callable[..., None], request: pytest.FixtureRequest
) -> None:
    backend = kind(request)
    check(backend.make, backend.die)


@pytest.mark.parametrize("check", away_live_checks, ids=lambda check: check.__name__)
@pytest.mark.parametrize("how", ["restarted", "cut"])
def test_a_server_that_was_away_is_no_loss(
    how: str, check: Callable[..., None], request: pytest.FixtureRequest
) -> None:
    backend = OverNats(request)
    check(backend.make, backend.die, getattr(backend, how))


class Undying(MemoryLive):
    """Gives seats although it is closed."""

    async def open(self) -> None: ...


def test_a_backend_that_breaks_a_promise_is_told_which_one(
    request: pytest.FixtureRequest,
) -> None:
    def make() -> list[Live]:
        live = Undying()
        return [live, live.beside(), live.beside()]

    with pytest.raises(AssertionError) as told:
        check_live(make, die=InMemory(request).die)
    assert "broken promise: A backend that is closed" in told.value.__notes__[0]
