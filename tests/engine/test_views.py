"""Views and patches: order, what a flush sends, `apply`, `merge`, and the forms on the wire."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assembler.engine.assembler import Assembler
from assembler.engine.definition import Context, Group, Match, Node, Scope
from assembler.engine.errors import AssemblerError, ConflictError, InputError
from assembler.engine.events import Position
from assembler.engine.patches import (
    Move,
    Patch,
    Put,
    PutGroup,
    Remove,
    RemoveGroup,
    Snapshot,
    TextOp,
    apply,
    merge,
)
from assembler.engine.values import Text, freeze, thaw
from assembler.engine.views import difference
from tests.engine.support import Band, Toy, delta, event, same_as_fresh, wire


def growing(**methods: Any) -> Toy:
    """Its Node shows the text of its deltas, growing, and the number of its events."""

    def start(match: Match, _reader: Any) -> Any:
        return update((Text(), 0), match)

    def update(state: Any, match: Match) -> Any:
        text, count = state
        return (text, count + 1) if match.durable else (text.append(match.data["v"]), count)

    def build(context: Context, _scope: Scope) -> Node | None:
        if context.state is None:
            return None
        text, count = context.state
        return Node("toy", context.id, {"n": count, "deep": [{"text": text}]})

    return Toy(**{"start": start, "update": update, "build": build, **methods})


class Client:
    """Holds the wire form of a view and keeps it up to date by patches alone."""

    def __init__(self, assembler: Assembler, view: str = "chat") -> None:
        self.assembler, self.view = assembler, view
        assembler.flush()
        self.snapshot: Any = wire(assembler, view)

    def ops(self) -> list[dict[str, Any]]:
        """The ops of the next patch, which must lead to what is shown now."""
        patch = self.assembler.flush()[self.view].to_json()
        json.dumps(patch)
        self.snapshot = apply(self.snapshot, patch)
        assert self.snapshot == wire(self.assembler, self.view)
        ops: list[dict[str, Any]] = patch["ops"]
        return ops

    def brief(self) -> list[str]:
        """The next ops in short: what, whom, and behind whom."""
        return [brief(op) for op in self.ops()]


def brief(op: dict[str, Any]) -> str:
    name = op["op"]
    key = op["node"]["key"] if name == "put" else op.get("key", "")
    behind = f" after {op['after']}" if "after" in op else ""
    return f"{name} {key}{behind}".replace("toy:", "")


# --- order


def test_nodes_stand_by_anchor_then_by_key() -> None:
    assembler = Assembler([Toy(), Toy("also", takes={"toy", "also"})])
    for seq, id_ in enumerate("zyx", 1):
        assembler.append(event(seq, id=id_))
    assembler.emit(delta(attempt="q", id="b", after=2))
    assembler.emit(delta(attempt="p", id="c", after=2))
    assembler.flush()
    assert [node.key for node in assembler.view().nodes] == [
        *("also:z", "toy:z", "also:y", "toy:y"),
        *("toy:b", "toy:c"),
        *("also:x", "toy:x"),
    ]


def test_a_change_of_content_does_not_touch_the_order() -> None:
    assembler = Assembler([Toy()])
    for seq, id_ in enumerate("abc", 1):
        assembler.append(event(seq, id=id_))
    client = Client(assembler)
    assembler.append(event(4, "toy/more", id="a"))
    assert client.brief() == ["put a after None"]
    assert [node["id"] for node in client.snapshot["nodes"]] == ["a", "b", "c"]


def test_a_view_reads_like_a_mapping_of_nodes() -> None:
    assembler = Assembler([Toy()])
    view = assembler.view()
    assembler.append(event(1))
    assert len(view) == 0  # as of the last flush
    assembler.flush()
    node = view["toy:x"]
    assert view.nodes == [node]
    assert view.get("toy:x") is node
    assert "toy:x" in view
    assert "toy:y" not in view
    assert view.get("toy:y") is None
    assert len(view) == 1
    with pytest.raises(KeyError):
        view["toy:y"]


# --- what a flush sends


def test_puts_come_from_left_to_right_behind_their_left_neighbours() -> None:
    assembler = Assembler([Toy()])
    client = Client(assembler)
    for seq, id_ in enumerate("cab", 1):
        assembler.append(event(seq, id=id_))
    assert client.brief() == ["put c after None", "put a after c", "put b after a"]
    assembler.emit(delta(id="n", after=2))
    assembler.append(event(4, "toy/more", id="b"))
    assert client.brief() == ["put n after a", "put b after n"]


def test_removals_come_first() -> None:
    assembler = Assembler([Toy()])
    assembler.append(event(1, id="a"))
    assembler.emit(delta(id="live", after=1))
    client = Client(assembler)
    assembler.settle("a", "failed")
    assembler.append(event(2, id="b"))
    assert client.brief() == ["remove live", "put b after a"]


def test_what_only_changes_its_place_moves() -> None:
    toy = Toy(update=lambda state, _match: state, start=lambda _match, _reader: (1,))
    assembler = Assembler([toy])
    assembler.load([event(2, id="a", turn=1, step=1), event(3, id="b", turn=1, step=1)], True)
    client = Client(assembler)
    assembler.emit(delta(0, "toy-piece", id="b", after=1))
    assert client.ops() == [{"op": "move", "key": "toy:b", "after": None, "anchor": [1, 1]}]
    assembler.settle("a", "failed")
    assert client.ops() == [{"op": "move", "key": "toy:b", "after": "toy:a", "anchor": [3, 0]}]


def test_what_moves_and_changes_is_put() -> None:
    assembler = Assembler([Toy()])
    assembler.load([event(2, id="a", turn=1, step=1), event(3, id="b", turn=1, step=1)], True)
    client = Client(assembler)
    assembler.emit(delta(0, "toy-piece", id="b", after=1))
    assert client.brief() == ["put b after None"]


def test_a_changed_turn_or_step_is_a_put() -> None:
    toy = Toy()
    assembler = Assembler([toy])
    assembler.load([event(5)], True)
    client = Client(assembler)
    assembler.prepend([event(4, "turn/start", turn=3)], True)
    (op,) = client.ops()
    assert (op["op"], op["node"]["turn"]) == ("put", 3)


def test_what_went_and_came_again_is_removed_before_it_is_put() -> None:
    assembler = Assembler([Toy()])
    assembler.append(event(1, id="a"))
    assembler.emit(delta(0, id="live", after=1, v=1))
    client = Client(assembler)
    assembler.settle("a", "failed")
    assembler.emit(delta(0, attempt="b", id="live", after=1, index=5, v=1))
    assert client.brief() == ["remove live", "put live after a"]


def test_what_went_and_came_again_around_a_load_is_removed_too() -> None:
    assembler = Assembler([Toy()])
    assembler.append(event(1, id="a"))
    assembler.emit(delta(0, id="live", after=1, v=1))
    client = Client(assembler)
    assembler.settle("a", "failed")
    assembler.load(assembler.events, False)
    assembler.emit(delta(0, attempt="b", id="live", after=1, index=5, v=1))
    assert client.brief() == ["remove live", "put live after a"]


def test_what_came_and_went_between_two_flushes_was_never_there() -> None:
    assembler = Assembler([Toy()])
    client = Client(assembler)
    assembler.emit(delta(0))
    assembler.settle("a", "failed")
    assert client.brief() == []


def test_an_equal_result_sends_nothing() -> None:
    toy = Toy(build=lambda context, _scope: Node("toy", context.id, {"same": [1]}))
    assembler = Assembler([toy])
    assembler.append(event(1))
    client = Client(assembler)
    assembler.append(event(2, "toy/more"))
    revision = client.snapshot["revision"]
    assert client.brief() == []
    assert client.snapshot["revision"] == revision + 1  # the window grew


def test_a_flush_without_a_change_gives_a_false_patch_for_every_view() -> None:
    assembler = Assembler([Toy()], ("chat", "trajectory"))
    assembler.append(event(1))
    assert all(assembler.flush().values())
    patches = assembler.flush()
    assert list(patches) == ["chat", "trajectory"]
    assert not any(patches.values())
    for patch in patches.values():
        assert patch.to_json()["from"] == patch.to_json()["to"]
        assert patch.to_json().keys() == {"view", "from", "to", "ops"}


def test_revisions_count_the_patches_that_changed_something() -> None:
    assembler = Assembler([Toy()])
    assert wire(assembler)["revision"] == 0
    revisions = []
    for seq in (1, 2, 3):
        assembler.append(event(seq, id=str(seq)))
        patch = assembler.flush()["chat"].to_json()
        revisions.append((patch["from"], patch["to"]))
        assembler.flush()
    assert revisions == [(0, 1), (1, 2), (2, 3)]
    assert wire(assembler)["revision"] == 3


def test_window_live_and_open_are_there_when_they_changed() -> None:
    assembler = Assembler([])
    client = Client(assembler)
    seen = []
    for do in (
        lambda: assembler.append(event(1, "turn/start", turn=1)),
        lambda: assembler.liveness(False),
        lambda: assembler.append(event(2, "turn/end", turn=1)),
        lambda: assembler.liveness(None),
        lambda: None,
    ):
        do()
        patch = assembler.flush()["chat"].to_json()
        client.snapshot = apply(client.snapshot, patch)
        assert client.snapshot == wire(assembler)
        seen.append(sorted(patch.keys() - {"view", "from", "to", "ops"}))
    assert seen == [["open", "window"], ["live"], ["open", "window"], ["live"], []]


def test_the_snapshot_on_the_wire() -> None:
    assembler = Assembler([Toy(), Band()])
    assembler.load([event(3, turn=1, step=2, v=1)], True)
    assembler.liveness(True)
    assembler.flush()
    node = {"key": "toy:x", "kind": "toy", "id": "x", "anchor": [3, 0], "turn": 1, "step": 2}
    assert wire(assembler) == {
        "view": "chat",
        "revision": 1,
        "nodes": [{**node, "data": {"v": [1]}}],
        "groups": [],
        "window": {"first": 3, "last": 3, "has_more": True},
        "live": True,
        "open": None,
    }


# --- text


def test_growing_text_sends_what_was_added_alone() -> None:
    assembler = Assembler([growing()])
    client = Client(assembler)
    assembler.emit(delta(0, v="one "))
    assert client.brief() == ["put x after None"]
    assembler.emit(delta(1, v="\U0001f600"))
    assembler.emit(delta(2, v="two"))
    path = ["data", "deep", 0, "text"]
    assert client.ops() == [
        {"op": "text", "key": "toy:x", "path": path, "at": 4, "text": "\U0001f600two"}
    ]
    assembler.emit(delta(3, v="!"))
    assert client.ops()[0]["at"] == 9  # an astral character is two UTF-16 units
    assert client.snapshot["nodes"][0]["data"]["deep"][0]["text"] == "one \U0001f600two!"


def test_what_changes_beside_its_text_is_put() -> None:
    assembler = Assembler([growing()])
    assembler.emit(delta(0, v="one"))
    client = Client(assembler)
    assembler.emit(delta(1, v="two"))
    assembler.append(event(1))
    assert client.brief() == ["put x after None"]


def test_text_that_does_not_continue_is_put() -> None:
    assembler = Assembler([growing()])
    for ordinal, name in enumerate("ab"):
        assembler.emit(delta(0, attempt=name, number=0, index=ordinal + 1, v=name))
    client = Client(assembler)
    assembler.settle("a", "failed")
    assert [op["op"] for op in client.ops()] == ["put"]
    assert client.snapshot["nodes"][0]["data"]["deep"][0]["text"] == "b"


def test_several_texts_of_one_node_grow_apart() -> None:
    def start(match: Match, _reader: Any) -> Any:
        return update((Text(), Text()), match)

    def update(state: Any, match: Match) -> Any:
        one, other = state
        return one.append(match.data["v"]), other.append(match.data["v"].upper())

    def build(context: Context, _scope: Scope) -> Node:
        return Node("toy", context.id, dict(zip(("one", "other"), context.state, strict=True)))

    assembler = Assembler([Toy(start=start, update=update, build=build)])
    assembler.emit(delta(0, v="a"))
    client = Client(assembler)
    assembler.emit(delta(1, v="b"))
    assert [(op["path"], op["text"]) for op in client.ops()] == [
        (["data", "one"], "b"),
        (["data", "other"], "B"),
    ]


def sent(count: int) -> int:
    assembler = Assembler([growing()])
    client, size = Client(assembler), 0
    for ordinal in range(count):
        assembler.emit(delta(ordinal, v="twelve bytes"))
        size += len(json.dumps(client.ops()))
    return size


def test_the_bytes_sent_for_a_stream_are_linear_in_its_length() -> None:
    assert sent(200) < 2.2 * sent(100)


# --- activate and deactivate


def test_views_are_activated_one_by_one() -> None:
    other = Toy("other", "trajectory")
    assembler = Assembler([Toy(), other], ("chat",))
    assembler.load([event(1), event(2, "other")])
    chat = Client(assembler)
    nodes = assembler.view().nodes
    with pytest.raises(AssemblerError, match=r"trajectory.*chat"):
        assembler.view("trajectory")

    assembler.activate("trajectory")
    assembler.activate("trajectory")
    patches = assembler.flush()
    assert patches["chat"].ops == ()
    assert [brief(op) for op in patches["trajectory"].to_json()["ops"]] == [
        "put other:x after None"
    ]
    assert assembler.view().nodes == nodes
    trajectory = Client(assembler, "trajectory")

    assembler.append(event(3, "other/more"))
    assert trajectory.brief() == ["put other:x after None"]
    assert chat.snapshot["nodes"] == wire(assembler)["nodes"]

    assembler.deactivate("trajectory")
    assembler.deactivate("trajectory")
    assert list(assembler.flush()) == ["chat"]
    other.calls.clear()
    assembler.append(event(4, "other/more"))
    assembler.flush()
    assert other.asked("build") == []
    same_as_fresh(assembler, [Toy(), Toy("other", "trajectory")])

    assembler.activate("trajectory")
    assembler.flush()
    assert wire(assembler, "trajectory")["nodes"][0]["data"] == {"v": [None] * 3}
    same_as_fresh(assembler, [Toy(), Toy("other", "trajectory")])


def test_a_view_that_nobody_shows_on_is_empty() -> None:
    assembler = Assembler([Toy()], ("nothing",))
    assembler.append(event(1))
    assert assembler.flush()["nothing"].ops == ()
    assert wire(assembler, "nothing")["nodes"] == []


def test_a_view_activated_again_begins_anew() -> None:
    assembler = Assembler([Toy()])
    assembler.append(event(1))
    assembler.flush()
    assembler.deactivate("chat")
    assembler.activate("chat")
    client = Client(assembler)
    assert [node["id"] for node in client.snapshot["nodes"]] == ["x"]
    assembler.append(event(2, id="y"))
    assert client.brief() == ["put y after x"]


def test_findings_of_a_view_that_is_not_shown_do_not_hold() -> None:
    def build(_context: Context, _scope: Scope) -> Node:
        raise ValueError

    assembler = Assembler([Toy(build=build)])
    assembler.append(event(1))
    assembler.flush()
    assert [odd.kind for odd in assembler.findings()] == ["definition-error"]
    assembler.deactivate("chat")
    assembler.flush()
    assert assembler.findings() == []


# --- apply


def node(id_: str = "a", place: int = 1, turn: int | None = None, **data: Any) -> Node:
    return Node("toy", id_, data).placed(Position(place), turn, None)


def snapshot(*nodes: Node, groups: tuple[Group, ...] = (), revision: int = 3) -> Snapshot:
    return Snapshot("chat", revision, nodes, groups, freeze({"first": 1}), None, None)


def patch(*ops: Any, **changed: Any) -> Patch:
    return Patch("chat", 3, 4, ops, **changed)


def group(*members: str, key: str = "band:toy:a", **data: Any) -> Group:
    return Group(key, "band", members, freeze(data))


BASE = snapshot(
    node("a", 1, t="one", list=["x", {"y": "z"}]),
    node("b", 2),
    node("c", 3),
    groups=(group("toy:b", "toy:c", n=2),),
)


@pytest.mark.parametrize(
    ("ops", "order"),
    [
        ([Put(node("d", 0), None)], "dabc"),
        ([Put(node("d", 4), "toy:c")], "abcd"),
        ([Put(node("d", 1), "toy:a"), Put(node("e", 1), "toy:d")], "adebc"),
        ([Put(node("a", 9), "toy:c")], "bca"),
        ([Move("toy:c", None, Position(0))], "cab"),
        ([Move("toy:a", "toy:b", Position(2))], "bac"),
        ([Remove("toy:a")], "bc"),
        ([Remove("toy:a"), Put(node("a", 1), None)], "abc"),
        ([Remove("toy:a"), Remove("toy:b"), Remove("toy:c"), RemoveGroup("band:toy:a")], ""),
    ],
)
def test_apply_puts_moves_and_removes(ops: list[Any], order: str) -> None:
    if "b" not in order:
        ops = [*ops, RemoveGroup("band:toy:a")]
    found = apply(BASE, patch(*ops))
    assert isinstance(found, Snapshot)
    assert "".join(each.id for each in found.nodes) == order
    assert found.revision == 4
    assert len(BASE.nodes) == 3  # the old one is as it was
    assert apply(BASE.to_json(), patch(*ops).to_json()) == found.to_json()


def test_apply_changes_what_the_patch_says_and_keeps_the_rest() -> None:
    found = apply(BASE, patch(window=freeze({"first": 2}), live=True))
    assert isinstance(found, Snapshot)
    assert (found.window, found.live, found.open) == ({"first": 2}, True, None)
    assert found.nodes == BASE.nodes
    again = apply(found, Patch("chat", 4, 5, (), live=None))
    assert isinstance(again, Snapshot)
    assert (again.window, again.live) == ({"first": 2}, None)


def test_apply_adds_text_where_the_path_says() -> None:
    ops = [
        TextOp("toy:a", ("data", "t"), 3, " two"),
        TextOp("toy:a", ("data", "list", 1, "y"), 1, "!"),
        TextOp("toy:a", ("data", "t"), 7, "."),
    ]
    found = apply(BASE.to_json(), patch(*ops).to_json())
    assert found["nodes"][0]["data"] == {"t": "one two.", "list": ["x", {"y": "z!"}]}


def test_apply_puts_and_removes_groups() -> None:
    ops = [PutGroup(group("toy:a", key="band:toy:x")), PutGroup(group("toy:c", n=1))]
    found = apply(BASE, patch(*ops))
    assert isinstance(found, Snapshot)
    assert [(each.key, each.members) for each in found.groups] == [
        ("band:toy:x", ("toy:a",)),
        ("band:toy:a", ("toy:c",)),
    ]
    found = apply(BASE, patch(RemoveGroup("band:toy:a")))
    assert isinstance(found, Snapshot)
    assert found.groups == ()


@pytest.mark.parametrize(
    "bad",
    [
        Patch("chat", 2, 4),
        Patch("chat", 4, 5),
        Patch("trajectory", 3, 4),
        patch(Put(node("d", 1), "toy:nobody")),
        patch(Put(node("d", 1), "toy:d")),
        patch(Put(node("a", 1), "toy:a")),
        patch(Move("toy:nobody", None, Position(1))),
        patch(Move("toy:a", "toy:nobody", Position(1))),
        patch(Remove("toy:nobody")),
        patch(Remove("toy:a"), Remove("toy:a")),
        patch(TextOp("toy:nobody", ("data", "t"), 0, "x")),
        patch(TextOp("toy:a", ("data", "t"), 2, "x")),
        patch(TextOp("toy:a", ("data", "t"), 4, "x")),
        patch(TextOp("toy:a", ("data", "none"), 0, "x")),
        patch(TextOp("toy:a", ("data", "list"), 0, "x")),
        patch(TextOp("toy:a", ("data",), 0, "x")),
        patch(TextOp("toy:a", ("data", "list", 5), 0, "x")),
        patch(TextOp("toy:a", ("data", "list", -2), 1, "x")),
        patch(TextOp("toy:a", ("data", "list", "x"), 0, "x")),
        patch(TextOp("toy:a", ("data", "list", 0, "deeper"), 0, "x")),
        patch(TextOp("toy:a", ("data", "t", 0), 1, "x")),
        patch(Remove("toy:b"), Remove("toy:c")),  # a group of theirs is left
        patch(PutGroup(group("toy:nobody"))),
    ],
    ids=repr,
)
def test_a_patch_that_does_not_fit_is_a_conflict(bad: Patch) -> None:
    before = BASE.to_json()
    with pytest.raises(ConflictError):
        apply(BASE, bad)
    with pytest.raises(ConflictError):
        apply(BASE.to_json(), bad.to_json())
    assert BASE.to_json() == before


# --- to and from the wire


def test_snapshots_survive_a_round_trip() -> None:
    text = json.loads(json.dumps(BASE.to_json()))
    assert Snapshot.from_json(text).to_json() == BASE.to_json() == text


EVERY_OP = patch(
    Remove("toy:a"),
    Put(node("a", 1, 2, t="x", n=None, f=1.5, list=[True, {}]), None),
    Put(node("d", 2**33 + 1), "toy:b"),
    Move("toy:d", None, Position(2**33)),
    TextOp("toy:a", ("data", "list", 0), 2, "\U0001f600"),
    RemoveGroup("band:toy:a"),
    PutGroup(group("toy:a", n=1)),
    window=freeze({"first": 1}),
    live=None,
    open=None,
)


@pytest.mark.parametrize("given_patch", [patch(), EVERY_OP, patch(live=False)], ids=repr)
def test_patches_survive_a_round_trip(given_patch: Patch) -> None:
    text = json.loads(json.dumps(given_patch.to_json()))
    assert Patch.from_json(text).to_json() == given_patch.to_json() == text


def test_a_patch_that_says_null_is_not_one_that_says_nothing() -> None:
    assert "live" in Patch.from_json(patch(live=None).to_json()).to_json()
    assert "live" not in Patch.from_json(patch().to_json()).to_json()


def broken(wire_form: Any) -> list[tuple[str, Any]]:
    """The same with one field missing, or of another type, at any depth."""
    found = []

    def walk(value: Any, put: Any, name: str) -> None:
        if isinstance(value, dict):
            for key in value:
                rest = {k: v for k, v in value.items() if k != key}
                optional = key in ("window", "live", "open") and "ops" in value
                if not optional and name not in ("data", "window") and key != "n":
                    found.append((f"{name}.{key} is missing", put(rest)))
                walk(value[key], lambda new, key=key: put({**value, key: new}), key)
        elif isinstance(value, list) and value and name in ("nodes", "groups", "ops"):
            walk(value[0], lambda new: put([new, *value[1:]]), name)
        if name in ("nodes", "groups", "ops", "anchor", "data", "node", "group", "path"):
            for odd in (None, 5, [5], "text"):
                fine = name == "path" and isinstance(odd, list)
                if not fine:
                    found.append((f"{name} is {odd!r}", put(odd)))

    walk(wire_form, lambda new: new, "")
    return found


@pytest.mark.parametrize(
    ("what", "bad"), broken(BASE.to_json()), ids=[what for what, _ in broken(BASE.to_json())]
)
def test_a_broken_snapshot_is_an_input_error(what: str, bad: Any) -> None:
    with pytest.raises(InputError, match="snapshot"):
        Snapshot.from_json(bad)
    assert what


BROKEN_PATCHES = [case for op in EVERY_OP.ops for case in broken(patch(op).to_json())]


@pytest.mark.parametrize(("what", "bad"), BROKEN_PATCHES, ids=[what for what, _ in BROKEN_PATCHES])
def test_a_broken_patch_is_an_input_error(what: str, bad: Any) -> None:
    with pytest.raises(InputError):
        Patch.from_json(bad)
    assert what


def test_an_unknown_op_is_an_input_error() -> None:
    with pytest.raises(InputError, match="op"):
        Patch.from_json({**patch().to_json(), "ops": [{"op": "dance", "key": "a"}]})


# --- merge


def test_patches_that_do_not_follow_each_other_do_not_merge() -> None:
    for second in (Patch("chat", 3, 4), Patch("chat", 5, 6), Patch("trajectory", 4, 5)):
        with pytest.raises(ConflictError):
            merge(patch(), second)


def test_merging_an_empty_patch_changes_nothing() -> None:
    assert merge(EVERY_OP, Patch("chat", 4, 4)).to_json() == EVERY_OP.to_json()
    assert not merge(Patch("chat", 3, 3), Patch("chat", 3, 3))


def test_a_node_that_is_put_and_then_moved_is_put_where_it_went() -> None:
    put = Node("toy", "x", {"v": 1}).placed(Position(1), 2, 3)
    first = Patch("chat", 3, 4, (Put(put, None),))
    second = Patch("chat", 4, 5, (Move("toy:x", "toy:b", Position(9)),))
    (merged,) = merge(first, second).ops
    assert isinstance(merged, Put)
    assert (merged.after, merged.node) == ("toy:b", put.placed(Position(9), 2, 3))
    stays = Patch("chat", 4, 5, (Move("toy:x", "toy:b", Position(1)),))
    assert merge(first, stays).ops == first.ops


def test_moves_of_one_node_merge_into_the_last() -> None:
    first = Patch("chat", 3, 4, (Move("toy:a", "toy:b", Position(2)),))
    second = Patch("chat", 4, 5, (Move("toy:a", "toy:c", Position(9)),))
    assert merge(first, second).ops == second.ops
    back = Patch("chat", 4, 5, (Move("toy:a", None, Position(2)),))
    assert merge(first, back).ops == first.ops


def test_what_does_not_fit_says_what_it_expected() -> None:
    behind = Patch("chat", 1, 2)
    with pytest.raises(ConflictError) as caught:
        apply(BASE, behind)
    assert str(caught.value) == "the patch leads on from chat 1, the snapshot is chat 3"
    assert (caught.value.expected, caught.value.actual) == (3, 1)
    with pytest.raises(ConflictError) as caught:
        merge(patch(), behind)
    assert str(caught.value) == "a patch from 1 does not follow one to 4"
    assert (caught.value.expected, caught.value.actual) == (4, 1)
    with pytest.raises(ConflictError) as caught:
        apply(BASE, patch(TextOp("toy:a", ("data", "t"), 7, "x")))
    assert str(caught.value) == "the patch adds text to 'toy:a' at 7, which has 3 units"
    assert (caught.value.expected, caught.value.actual) == (3, 7)
    wire_form = patch().to_json()
    for op, sentence in (
        ({"op": "put-group", "group": {"members": "a"}}, "members: expected a list of keys"),
        (
            {"op": "text", "path": "data", "at": 0, "text": "x"},
            "text: expected a path of keys and indexes, a length `at`, and a text",
        ),
        ({"op": "paint"}, "op: expected an operation of a patch, got 'paint'"),
        ({}, "the field 'op' is missing"),
    ):
        with pytest.raises(InputError) as refused:
            Patch.from_json({**wire_form, "ops": [op]})
        assert str(refused.value).removeprefix("patch: ") == sentence


def test_the_newest_facts_win_in_a_merge() -> None:
    merged = merge(patch(live=True, window=freeze({"first": 1})), Patch("chat", 4, 5, live=None))
    assert merged.to_json() == {
        "view": "chat",
        "from": 3,
        "to": 5,
        "ops": [],
        "live": None,
        "window": {"first": 1},
    }


def test_text_that_grew_in_both_is_one_append() -> None:
    first = patch(TextOp("toy:a", ("data", "t"), 3, " two"))
    second = Patch("chat", 4, 5, (TextOp("toy:a", ("data", "t"), 7, " three"),))
    assert merge(first, second).ops == (TextOp("toy:a", ("data", "t"), 3, " two three"),)


def test_text_grows_inside_the_node_that_the_first_put() -> None:
    first = patch(Put(node("d", 4, t="one"), "toy:c"))
    second = Patch("chat", 4, 5, (TextOp("toy:d", ("data", "t"), 3, " two"),))
    (op,) = merge(first, second).to_json()["ops"]
    assert (op["op"], op["node"]["data"]) == ("put", {"t": "one two"})


def merged_ops(make: Any, count: int = 60) -> int:
    merged = Patch("chat", 0, 1, make(0))
    for at in range(1, count):
        merged = merge(merged, Patch("chat", at, at + 1, make(at)))
    return len(merged.ops)


def test_a_merged_patch_does_not_grow_with_the_number_of_patches() -> None:
    # A slow subscriber must not be given one op for each change that it missed.
    assert merged_ops(lambda n: (Put(node("a", 1, n=n), None),)) <= 2
    assert merged_ops(lambda n: (PutGroup(group("toy:a", n=n)),)) <= 2
    texts = ("one", "other")
    assert merged_ops(lambda n: tuple(TextOp("toy:a", ("data", t), n, "x") for t in texts)) <= 4
    two = [node("a", 1), node("b", 2)]
    assert merged_ops(lambda n: (Put(two[n % 2], None if n % 2 == 0 else "toy:a"),)) <= 4
    assert merged_ops(lambda n: (Move("toy:a", None, Position(n)),)) <= 2
    assert merged_ops(lambda n: (Remove("toy:a"),) if n % 2 else (Put(node("a", 1), None),)) <= 4


CHANGES = st.tuples(
    st.sampled_from("abcd"),
    st.sampled_from(("put", "grow", "grow", "remove", "again", "move")),
    st.integers(1, 6),
    st.sampled_from(("", "x", "\U0001f600", "yz")),
)
FACTS = st.tuples(st.sampled_from((None, True, False)), st.sampled_from((None, "other", "open")))
ROUNDS = st.lists(st.tuples(st.lists(CHANGES, max_size=4), FACTS), min_size=1, max_size=7)


def shifting() -> Toy:
    """Two growing texts, a number, a band, and an anchor that can move behind all others."""

    def start(match: Match, _reader: Any) -> Any:
        return update((Text(), Text(), 0), match)

    def update(state: Any, match: Match) -> Any:
        one, other, number = state
        if "count" in match.data:
            return Text(match.data["v"]), other, match.data["count"]
        return one.append(match.data["v"]), other.append("-" + match.data["v"]), number

    def build(context: Context, _scope: Scope) -> Node:
        one, other, number = context.state
        data = {"one": one, "list": [other], "number": number, "band": number % 2 or None}
        return Node("toy", context.id, data)

    def anchor(context: Context) -> Match:
        moved = [match for match in context.matches if match.data.get("moves")]
        return (moved or context.matches)[-1 if moved else 0]

    return Toy(start=start, update=update, build=build, anchor=anchor)


class Player:
    """Turns random changes into deltas: every Context has one attempt, which may be given up."""

    def __init__(self) -> None:
        self.assembler = Assembler([shifting(), Band()])
        self.ordinals: dict[str, int] = {}
        self.tries = dict.fromkeys("abcd", 0)
        self.index = self.seq = 0

    def say(self, id_: str, first: int, **data: Any) -> None:
        """The next delta: the first one of an attempt anywhere, all others behind all events."""
        self.index += 1
        name = f"{id_}{self.tries[id_]}"
        ordinal = self.ordinals[name] = self.ordinals.get(name, -1) + 1
        place = {"turn": 9, "number": 0, "attempt": name, "index": self.index}
        place["after"] = 9 if ordinal else first
        self.assembler.emit(delta(ordinal, id=id_, **place, **data))

    def change(self, id_: str, change: str, number: int, fragment: str) -> None:
        if change in ("remove", "again"):
            self.assembler.settle(f"{id_}{self.tries[id_]}", "failed")
            self.tries[id_] += 1
        if change != "remove":
            more = {"put": {"count": number}, "move": {"moves": True}}.get(change, {})
            self.say(id_, number, v=fragment, **more)

    def learn(self, live: bool | None, news: str | None) -> None:
        self.assembler.liveness(live)
        if news is not None:
            self.seq += 1
            place = {"turn": 5, "step": self.seq} if news == "open" else {}
            type_ = "step/start" if news == "open" else news
            self.assembler.append(event(self.seq, type_, **place))

    def play(self, rounds: Any) -> tuple[list[Snapshot], list[Patch]]:
        """What is shown before and after each round, and the patches between."""
        snapshots, patches = [self.assembler.view().snapshot()], []
        for changes, facts in rounds:
            for change in changes:
                self.change(*change)
            self.learn(*facts)
            patches.append(self.assembler.flush()["chat"])
            snapshots.append(self.assembler.view().snapshot())
        return snapshots, patches


def played(rounds: Any) -> tuple[list[Snapshot], list[Patch]]:
    return Player().play(rounds)


@given(ROUNDS)
def test_patches_one_by_one_give_each_snapshot(rounds: Any) -> None:
    snapshots, patches = played(rounds)
    for before, each, after in zip(snapshots, patches, snapshots[1:], strict=False):
        assert apply(before.to_json(), each.to_json()) == after.to_json()


@given(ROUNDS, st.data())
def test_a_merged_patch_equals_its_parts_however_they_were_merged(rounds: Any, data: Any) -> None:
    snapshots, parts = played(rounds)
    before, after = snapshots[0], snapshots[-1]
    wired = data.draw(st.booleans(), label="over the wire in between")
    while len(parts) > 1:
        at = data.draw(st.integers(0, len(parts) - 2), label="merge at")
        merged = merge(parts[at], parts[at + 1])
        if wired:
            merged = Patch.from_json(json.loads(json.dumps(merged.to_json())))
        parts[at : at + 2] = [merged]
    found = apply(before, parts[0])
    assert isinstance(found, Snapshot)
    assert found.to_json() == after.to_json()


@given(ROUNDS)
def test_what_went_and_came_again_is_removed_before_it_is_put_after_merging(rounds: Any) -> None:
    snapshots, parts = played([*rounds, *rounds])
    half = len(rounds)
    merged = parts[half]
    for each in parts[half + 1 :]:
        merged = merge(merged, each)
    went = {op.key for each in parts[half:] for op in each.ops if isinstance(op, Remove)}
    there = {each.key for each in snapshots[half].nodes} & {n.key for n in snapshots[-1].nodes}
    for key in went & there:
        ops = [type(op) for op in merged.ops if op.key == key and type(op) in (Remove, Put)]
        assert Remove in ops
        assert ops[-1] is Put


@given(ROUNDS)
def test_a_difference_leads_to_the_later_snapshot(rounds: Any) -> None:
    snapshots, parts = played([*rounds, *rounds])
    before, after = snapshots[len(rounds)], snapshots[-1]
    gone = {op.key for each in parts[len(rounds) :] for op in each.ops if isinstance(op, Remove)}
    for went in (set(), gone):
        found = difference(before, after, went)
        assert apply(before.to_json(), found.to_json()) == after.to_json()
        for key in went & {each.key for each in before.nodes} & {each.key for each in after.nodes}:
            assert [type(op) for op in found.ops if op.key == key] == [Remove, Put]


@given(ROUNDS)
def test_a_difference_says_no_more_than_the_merged_patches(rounds: Any) -> None:
    snapshots, parts = played(rounds)
    merged = parts[0]
    for each in parts[1:]:
        merged = merge(merged, each)
    assert len(difference(snapshots[0], snapshots[-1]).ops) <= len(merged.ops)
    last = snapshots[-1]
    assert difference(last, last).ops == ()
    again = difference(last, last, {node.key for node in last.nodes}).ops
    assert [type(op) for op in again] == [Remove] * len(last.nodes) + [Put] * len(last.nodes)


def test_views_can_be_walked_and_snapshots_compared() -> None:
    assembler = Assembler([Toy()])
    assembler.load([event(1, id="a"), event(2, id="b")], False)
    assembler.flush()
    assert [each.id for each in assembler.view()] == ["a", "b"]
    assert list(assembler.view()) == assembler.view().nodes
    assert assembler.view().snapshot() == assembler.view().snapshot()
    before = assembler.view().snapshot()
    assembler.append(event(3, id="a"))
    assembler.flush()
    assert assembler.view().snapshot() != before


@pytest.mark.parametrize("live", [True, False, None])
def test_a_view_that_becomes_active_knows_what_all_views_say(live: bool | None) -> None:
    assembler = Assembler([Toy()])
    assembler.load([event(3, "turn/start", turn=1)], True)
    assembler.liveness(live)
    assembler.flush()
    assembler.activate("trajectory")
    chat, other = wire(assembler), wire(assembler, "trajectory")
    assert other["live"] is live
    assert {name: other[name] for name in ("window", "live", "open")} == {
        "window": {"first": 3, "last": 3, "has_more": True},
        "live": live,
        "open": {"turn": 1, "step": None, "since": 30},
    }
    assert {**other, "view": "chat", "revision": chat["revision"]} == chat


def test_a_difference_says_the_facts_that_changed_alone() -> None:
    facts = {"window": freeze({"first": 1}), "live": True, "open": freeze({"turn": 1})}
    before = Snapshot("chat", 3, (), (), **facts)
    assert difference(before, before).to_json() == {"view": "chat", "from": 3, "to": 3, "ops": []}
    for name, other in (("window", freeze({"first": 2})), ("live", False), ("open", None)):
        after = Snapshot("chat", 5, (), (), **{**facts, name: other})
        said = difference(before, after).to_json()
        assert said == {"view": "chat", "from": 3, "to": 5, "ops": [], name: thaw(other)}
