"""The values of the contract: what a Match tells; when Nodes, Groups and Anomalies are equal."""

from __future__ import annotations

from typing import Any

import pytest

from assembler.engine.definition import (
    NOW,
    START,
    UPDATE,
    Anomaly,
    Definition,
    Group,
    GroupDefinition,
    Match,
    Node,
)
from assembler.engine.events import Position, position
from assembler.engine.values import Text, freeze_object
from tests.engine.support import Toy, delta, event


def test_a_match_tells_what_its_item_is() -> None:
    durable = Match(position(3, 0), event(3, v=1), START)
    assert (durable.type, durable.data, durable.time) == ("toy", {"id": "x", "v": 1}, 30)
    assert (durable.durable, durable.attempt) == (True, None)
    live = Match(position(3, 1), delta(attempt="b", time=7), UPDATE)
    assert (live.type, live.data, live.time) == ("toy-piece", {"id": "x"}, 7)
    assert (live.durable, live.attempt) == (False, "b")


NODE = Node("toy", "x", {"v": [1]}).placed(position(2, 3), 4, 5)


def test_a_node_has_a_key_an_anchor_and_a_wire_form() -> None:
    assert NODE.to_json() == {
        "key": "toy:x",
        "kind": "toy",
        "id": "x",
        "anchor": [2, 3],
        "turn": 4,
        "step": 5,
        "data": {"v": [1]},
    }
    assert NODE.anchor == (2, 3)
    assert NODE.placed(position(2, 3), 4, 5, "kept") == Node(
        "toy", "x", {"v": (1,)}, "kept", position(2, 3), 4, 5
    )


@pytest.mark.parametrize(
    "other",
    [
        Node("toy", "y", {"v": [1]}).placed(position(2, 3), 4, 5),
        Node("toy", "x", {"v": [True]}).placed(position(2, 3), 4, 5),
        Node("toy", "x", {}).placed(position(2, 3), 4, 5),
        Node("toy", "x", {"v": [1]}).placed(position(2, 4), 4, 5),
        Node("toy", "x", {"v": [1]}).placed(position(2, 3), 3, 5),
        Node("toy", "x", {"v": [1]}).placed(position(2, 3), 4, None),
        "toy:x",
    ],
    ids=repr,
)
def test_nodes_are_equal_by_every_field(other: Any) -> None:
    same = Node("toy", "x", {"v": (1,)}).placed(position(2, 3), 4, 5)
    assert same == NODE
    assert hash(NODE) == hash(same)
    assert other != NODE
    assert not NODE == other  # noqa: SIM201, SIM300 - both ways round


def test_nodes_with_other_keys_or_places_hash_otherwise() -> None:
    moved = NODE.placed(position(9, 0), 4, 5)
    other = Node("toy", "y", {}).placed(position(2, 3), 4, 5)
    assert len({hash(NODE), hash(moved), hash(other)}) == 3


GROUP = Group("band:toy:x", "band", ("toy:x", "toy:y"), freeze_object({"n": 2}))


@pytest.mark.parametrize(
    "other",
    [
        Group("band:toy:y", "band", GROUP.members, GROUP.data),
        Group(GROUP.key, "other", GROUP.members, GROUP.data),
        Group(GROUP.key, "band", ("toy:x",), GROUP.data),
        Group(GROUP.key, "band", ("toy:x", "toy:z"), GROUP.data),
        Group(GROUP.key, "band", GROUP.members, freeze_object({"n": 2.0})),
        GROUP.key,
    ],
    ids=repr,
)
def test_groups_are_equal_by_every_field(other: Any) -> None:
    same = Group("band:toy:x", "band", ("toy:x", "toy:y"), freeze_object({"n": 2}))
    assert same == GROUP
    assert hash(GROUP) == hash(same)
    assert other != GROUP
    assert not GROUP == other  # noqa: SIM201, SIM300 - both ways round


def test_groups_may_be_compared_without_their_keys() -> None:
    other = Group("band:toy:y", "band", GROUP.members, GROUP.data)
    assert GROUP.equals(other, keys=False)
    assert not GROUP.equals(other)
    assert not GROUP.equals(Group(GROUP.key, "b", GROUP.members, GROUP.data), keys=False)
    assert len({hash(GROUP), hash(other)}) == 2
    assert GROUP.to_json() == {
        "key": "band:toy:x",
        "kind": "band",
        "members": ["toy:x", "toy:y"],
        "n": 2,
    }


def test_an_anomaly_has_a_wire_form() -> None:
    odd = Anomaly("odd", "toy:x", position(3, 1))
    assert odd.to_json() == {"kind": "odd", "key": "toy:x", "position": [3, 1]}


def test_growing_text_is_written_out_in_the_wire_form() -> None:
    node = Node("toy", "x", {"t": Text("a").append("b")}).placed(Position(0), None, None)
    assert node.to_json()["data"] == {"t": "ab"}


def test_what_an_author_leaves_out_has_the_documented_answers() -> None:
    bare, toy = Definition(), Toy()
    match = Match(position(1, 0), event(1), START)
    context: Any = type("Seen", (), {"start": None, "matches": (match,)})
    scope: Any = None
    assert bare.anchor(context) is match
    assert bare.place(context, scope) is None
    assert bare.notes(context, scope) == ()
    assert bare.build(context, scope) is None
    assert bare.cadence(match) is NOW
    assert bare.retires(match.item) is None  # type: ignore[arg-type]
    assert Definition.extend(toy, (0,), [match, match]) == (0, None, None)
    for ask in (
        lambda: bare.match(match.item),
        lambda: bare.start(match, scope),
        lambda: bare.update(None, match),
        lambda: GroupDefinition().joins(NODE),
        lambda: GroupDefinition().summary(scope),
    ):
        with pytest.raises(NotImplementedError):
            ask()
