"""What waits in a queue and is claimed."""

from __future__ import annotations

from typing import Any

from assembler.engine.definition import START
from assembler.engine.events import Event
from definitions.inbox import Inbox
from definitions.shared import InboxState
from tests.definitions.support import Looking, Seen, delta, event

INBOX = Inbox()


def splice(seq: int, *claimed: Any, queue: Any = "next-step") -> Event:
    return event(seq, "inbox/spliced", queue=queue, added=[], claimed=list(claimed))


def state(spliced: Event, before: InboxState | None = None) -> InboxState:
    looking = Looking() if before is None else Looking(inbox=("1", before))
    made: InboxState = Seen(INBOX, [spliced], reader=looking).state
    return made


def test_each_splice_is_one_of_its_own() -> None:
    assert INBOX.match(splice(3)) == ("3", START)
    assert INBOX.match(delta(1, "inbox/spliced")) is None  # type: ignore[arg-type]
    assert INBOX.target is None


def test_a_claim_names_its_queue() -> None:
    claimed = state(splice(3, "m1", "m2"))
    assert (claimed.queue_of("m1"), claimed.queue_of("m2")) == ("next-step", "next-step")
    assert claimed.queue_of("m3") is None


def test_it_goes_on_from_the_splice_before() -> None:
    first = state(splice(3, "m1"))
    second = state(splice(4, "m2", queue="next-turn"), first)
    assert (second.queue_of("m1"), second.queue_of("m2")) == ("next-step", "next-turn")
    assert state(splice(5), second) is second


def test_the_last_claim_of_a_message_counts() -> None:
    again = state(splice(4, "m1", queue="next-turn"), state(splice(3, "m1")))
    assert again.queue_of("m1") == "next-turn"


def test_it_keeps_the_newest_claims_alone() -> None:
    held = InboxState()
    for seq in range(1, 100):
        held = state(splice(seq, f"m{seq}"), held)
    assert len(held.claims) == 32
    assert held.queue_of("m99") == "next-step"
    assert held.queue_of("m1") is None


def test_what_is_no_claim_changes_nothing() -> None:
    before = state(splice(3, "m1"))
    for odd in (splice(4, "m2", queue=None), splice(4, 1, "", None), event(4, "inbox/spliced")):
        assert state(odd, before) is before
