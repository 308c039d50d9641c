"""What was said to the assistant, and by whom."""

from __future__ import annotations

from typing import Any

import pytest

from assembler.engine.definition import START, Node
from assembler.engine.events import Event
from definitions.message import Message
from definitions.shared import InboxState
from tests.definitions.bench import every_way, keys_of, live
from tests.definitions.support import Looking, Seen, Surroundings, delta, event, seen, shown

MESSAGE = Message()
CONTENT = [{"type": "text", "text": "hi"}]


def made(**data: Any) -> Node:
    said = event(2, "user/message", message_id="m1", content=CONTENT, **data)
    node = MESSAGE.build(seen(MESSAGE, said), Surroundings())
    assert node is not None
    return node


def test_matching_needs_an_id() -> None:
    assert MESSAGE.match(event(2, "user/message", message_id="m1")) == ("m1", START)
    assert MESSAGE.match(event(2, "user/message", message_id="")) is None
    assert MESSAGE.match(event(2, "user/message")) is None
    assert MESSAGE.match(delta(1, "user/message", message_id="m1")) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        (None, "user"),
        ({"kind": "user", "name": "Ada"}, "user"),
        ({"kind": "person"}, "user"),
        ({"name": "Ada"}, "user"),
        ({"kind": "hook", "name": "date"}, "context"),
        ({"kind": "agent"}, "context"),
        ({"kind": [1]}, "context"),
    ],
)
def test_the_source_says_whether_a_person_spoke(source: Any, kind: str) -> None:
    node = made(source=source)
    assert (node.kind, node.id) == (kind, "m1")
    assert kind in MESSAGE.shows


def test_content_and_source_are_shown() -> None:
    said = event(2, "user/message", message_id="m1", content=CONTENT, source={"kind": "hook"})
    assert shown(MESSAGE, said) == {"content": CONTENT, "source": {"kind": "hook"}}
    assert shown(MESSAGE, event(2, "user/message", message_id="m1")) == {
        "content": [],
        "source": None,
    }


def test_the_first_of_one_id_stays() -> None:
    first = event(2, "user/message", message_id="m1", content=CONTENT)
    again = event(3, "user/message", message_id="m1", content=[])
    assert shown(MESSAGE, first, again) == {"content": CONTENT, "source": None}


STEERED = InboxState((("m1", "next-step"),))


def claim(seq: int, *claimed: str, queue: str = "next-step") -> Event:
    return event(seq, "inbox/spliced", queue=queue, added=[], claimed=list(claimed))


def said(seq: int, message_id: str, **data: Any) -> Event:
    return event(seq, "user/message", message_id=message_id, content=CONTENT, **data)


def kind_of(reader: Looking, scope: Surroundings, **data: Any) -> str:
    node = MESSAGE.build(Seen(MESSAGE, [said(5, "m1", **data)], reader=reader), scope)
    assert node is not None
    return node.kind


@pytest.mark.parametrize("source", [None, {"kind": "user"}, {"kind": "hook"}])
def test_what_was_claimed_for_the_next_step_steers(source: Any) -> None:
    before = Looking(inbox=("4", STEERED))
    assert kind_of(before, Surroundings(), source=source) == "steering"
    for at in (6, 9):
        behind = Surroundings({("inbox", str(at)): STEERED})
        assert kind_of(Looking(), behind, source=source) == "steering"


def test_it_looks_at_a_few_events_behind_it_alone() -> None:
    scope = Surroundings()
    kind_of(Looking(), scope)
    assert scope.read == [f"inbox:{at}" for at in (6, 7, 8, 9)]


def test_a_claim_for_the_next_turn_or_far_behind_does_not_steer() -> None:
    far = Surroundings({("inbox", "10"): STEERED})
    assert kind_of(Looking(), far) == "user"
    turn = InboxState((("m1", "next-turn"),))
    assert kind_of(Looking(inbox=("4", turn)), Surroundings()) == "user"
    assert kind_of(Looking(inbox=("4", turn)), Surroundings(), source={"kind": "a"}) == "context"
    # What a claim before it says is not asked again.
    scope = Surroundings({("inbox", "6"): STEERED})
    assert kind_of(Looking(inbox=("4", turn)), scope) == "user"
    assert scope.read == []


OPEN = [event(1, "turn/start", turn=1), event(2, "step/start", turn=1, step=1)]
END = event(4, "step/end", turn=1, step=1)


def test_it_steers_wherever_the_log_has_the_claim() -> None:
    before = [claim(5, "m1", "m2"), claim(6), claim(7, "m3", queue="next-turn")]
    step = event(8, "step/start", turn=1, step=2)
    messages = [said(9, "m1"), said(10, "m2"), said(11, "m3"), said(12, "m4")]
    bench = every_way([*OPEN, said(3, "m0"), END, *before, step, *messages])
    assert keys_of(bench) == ["user:m0", "steering:m1", "steering:m2", "user:m3", "user:m4"]

    step = event(7, "step/start", turn=1, step=2)
    bench = every_way([*OPEN, said(3, "m0"), END, said(5, "m1"), said(6, "m2"), step,
                       claim(8, "m1", "m2"), said(9, "m3")])  # fmt: skip
    assert keys_of(bench) == ["user:m0", "steering:m1", "steering:m2", "user:m3"]


def test_a_claim_on_an_older_page_is_learned_with_it() -> None:
    bench = live(("load", [claim(5), said(6, "m1")], True))
    assert keys_of(bench) == ["user:m1"]
    bench.do("prepend", [claim(4, "m1")], True)
    bench.check()
    assert keys_of(bench) == ["steering:m1"]


def test_a_claim_that_comes_behind_turns_it_once() -> None:
    bench = live(*OPEN, said(3, "m1"))
    assert keys_of(bench) == ["user:m1"]
    bench.do("append", claim(4, "m1"))
    bench.check()
    assert keys_of(bench) == ["steering:m1"]
