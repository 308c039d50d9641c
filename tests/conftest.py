"""What all tests share: the `--shared` folder, the Hypothesis profiles, and servers.

No fixture here knows an engine or a definition; those live beside the tests that use them.
"""

from __future__ import annotations

import argparse
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, settings

if TYPE_CHECKING:
    from tests.nats_server import NatsServer
    from tests.postgres_server import PostgresServer

settings.register_profile(
    "fast",
    deadline=None,  # a busy machine is not a fault of the code
    derandomize="CI" in os.environ,  # in CI the same commit gives the same answer
    suppress_health_check=[HealthCheck.too_slow],  # measures the machine as well
)
settings.register_profile(
    "deep",
    settings.get_profile("fast"),
    derandomize=False,
    max_examples=5_000,
    stateful_step_count=100,
    print_blob=True,
)
settings.register_profile(
    "mutation",
    settings.get_profile("fast"),
    derandomize=True,
    database=None,
    max_examples=15,
    stateful_step_count=15,
    phases=(Phase.explicit, Phase.generate),  # one failure is enough, also a long one
)
# `--hypothesis-profile NAME` comes later and wins.
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))


def _folder(text: str) -> Path:
    path = Path(text).resolve()
    if not path.is_dir():
        message = f"no such folder: {text}"
        raise argparse.ArgumentTypeError(message)
    return path


def pytest_sessionstart() -> None:
    # Ctrl-C means what it means in a terminal, also to commands of tests in the background.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--shared DIR` (CONVERSATION_SHARED stands for it as well), `--kills N`, `--turns N`."""
    parser.addoption(
        "--shared",
        metavar="DIR",
        type=_folder,
        default=os.environ.get("CONVERSATION_SHARED") or None,
        help="folder with cases/ and streams/, recorded by others; without it their tests skip "
        "(default: $CONVERSATION_SHARED)",
    )
    parser.addoption(
        "--kills",
        metavar="N",
        type=int,
        help="how many writers of each kind tests/stores/test_crashes.py kills (default: enough "
        "for a minute)",
    )
    parser.addoption(
        "--turns",
        metavar="N",
        type=int,
        default=150,
        help="how many turns tests/live/test_processes.py has its processes begin (default: 150)",
    )


@pytest.fixture(scope="session")
def shared(pytestconfig: pytest.Config) -> Path:
    """Give the folder of `--shared`, or skip: its data is not part of this project."""
    folder = pytestconfig.getoption("shared")
    if not isinstance(folder, Path):
        pytest.skip("needs recordings made by others: give --shared=DIR or CONVERSATION_SHARED")
    return folder


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """Give a server that all tests share: take a schema of your own, and leave it running."""
    from tests.postgres_server import PostgresServer  # noqa: PLC0415 - its driver is slow to load

    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="session")
def nats() -> Iterator[NatsServer]:
    """Give a server that all tests share: take a stream of your own, and leave it running."""
    from tests.nats_server import nats_server  # noqa: PLC0415 - needed by few

    with nats_server() as server:
        yield server
