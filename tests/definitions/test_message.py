"""What was said to the assistant, and by whom."""

from __future__ import annotations

from typing import Any

import pytest

from assembler.engine.definition import START, Node
from definitions.message import Message
from tests.definitions.support import Surroundings, delta, event, seen, shown

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
