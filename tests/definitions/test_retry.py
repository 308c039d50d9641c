"""Attempts that are given up by name."""

from __future__ import annotations

from definitions.retry import Retry
from tests.definitions.support import event

RETRY = Retry()


def test_a_retry_and_a_fallback_give_an_attempt_up() -> None:
    for type_ in RETRY.takes:
        assert RETRY.retires(event(3, type_, turn=1, step=1, attempt="a1")) == "a1"
        assert RETRY.retires(event(3, type_, turn=1, step=1)) is None
        assert RETRY.retires(event(3, type_, attempt=1)) is None
    assert RETRY.takes == {"llm/retry", "llm/fallback"}


def test_nothing_is_shown_yet() -> None:
    assert RETRY.match(event(3, "llm/retry", retry_id="r1", attempt="a1")) is None
