"""Groups: consecutive Nodes that stand together, with keys that last, found again locally."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from assembler.engine.assembler import Assembler
from assembler.engine.definition import Context, GroupDefinition, Members, Node, Scope
from assembler.engine.errors import DefinitionError
from assembler.engine.patches import apply
from tests.engine.support import Band, Toy, delta, event, same_as_fresh, wire


def build(context: Context, _scope: Scope) -> Node:
    """In the band of its newest Match."""
    return Node("toy", context.id, {"band": context.state[-1], "size": len(context.state)})


class Bench:
    """Toys named by letters, each in the band that it was last given."""

    def __init__(self, letters: str = "", first: int = 1) -> None:
        self.band, self.toy = Band(), Toy(build=build)
        self.assembler = Assembler([self.toy, self.band])
        self.index = 0
        events = [event(seq, id=id_, v=1) for seq, id_ in enumerate(letters, first)]
        self.assembler.load(events, first > 1)
        self.seq = first + len(letters) - 1
        self.assembler.flush()
        self.snapshot: Any = wire(self.assembler)
        self.forget()

    def append(self, id_: str, band: Any = 1, type_: str = "toy") -> None:
        self.seq += 1
        self.assembler.append(event(self.seq, type_, id=id_, v=band))

    def change(self, id_: str, band: Any) -> None:
        self.append(id_, band, "toy/more")

    def live(self, id_: str, band: Any = 1, after: int | None = None) -> None:
        """A toy of a delta in an attempt of its own name."""
        self.index += 1
        place = {"after": self.seq if after is None else after, "index": self.index}
        self.assembler.emit(delta(0, attempt=id_, id=id_, v=band, **place))

    def forget(self) -> None:
        self.band.calls.clear()

    @property
    def groups(self) -> dict[str, str]:
        """After a flush: the members of each group by its key, both in short, in order."""
        self.ops()
        return {
            group.key.replace("band:toy:", ""): "".join(key[4:] for key in group.members)
            for group in self.assembler.view().groups
        }

    def ops(self) -> list[str]:
        """The group ops of the next patch; all that must hold is checked."""
        patch = self.assembler.flush()["chat"].to_json()
        calls = list(self.band.calls)
        self.snapshot = apply(self.snapshot, patch)
        assert self.snapshot == wire(self.assembler)
        same_as_fresh(self.assembler, [self.toy, Band()])
        self.band.calls = calls
        return [
            f"{op['op']} {op.get('key') or op['group']['key']}".replace("band:toy:", "")
            for op in patch["ops"]
            if op["op"].endswith("group")
        ]


# --- what stands together


def test_neighbours_of_one_band_stand_together() -> None:
    bench = Bench("abc")
    assert bench.groups == {"a": "abc"}
    assert wire(bench.assembler)["groups"] == [
        {
            "key": "band:toy:a",
            "kind": "band",
            "members": ["toy:a", "toy:b", "toy:c"],
            "n": 3,
        }
    ]


def test_another_band_and_no_band_separate() -> None:
    bench = Bench("abcdef")
    bench.change("c", 2)
    bench.change("e", None)
    assert sorted(bench.groups.values()) == ["ab", "c", "d", "f"]


def test_one_member_is_a_group() -> None:
    assert Bench("a").groups == {"a": "a"}


def test_groups_stand_in_the_order_of_their_first_members() -> None:
    bench = Bench("abc")
    bench.change("b", 2)
    assert list(bench.groups.values()) == ["a", "b", "c"]


def test_groups_of_another_target_are_left_alone() -> None:
    toys, band = [Toy(build=build), Toy("far", "trajectory")], Band()
    assembler = Assembler([*toys, band], ("chat", "trajectory"))
    assembler.append(event(1, "far", v=1))
    assembler.flush()
    assert band.calls == []
    assert assembler.view("trajectory").groups == []


def test_two_group_definitions_group_one_view_each_by_itself() -> None:
    class Size(Band):
        kind = "size"

        def joins(self, node: Node) -> Any:
            return node.data["size"]

    assembler = Assembler([Toy(build=build), Band(), Size()])
    assembler.load([event(1, id="a", v=1), event(2, id="b", v=2), event(3, id="c", v=2)])
    assembler.flush()
    assert [(group.key, len(group.members)) for group in assembler.view().groups] == [
        ("band:toy:a", 1),
        ("size:toy:a", 3),
        ("band:toy:b", 2),
    ]


# --- keys that last


def test_a_key_stays_when_members_come_behind_and_before() -> None:
    bench = Bench("cd", first=3)
    bench.append("e")
    assert bench.groups == {"c": "cde"}
    bench.assembler.prepend([event(1, id="a", v=1), event(2, id="b", v=1)], False)
    assert bench.groups == {"c": "abcde"}


def test_a_key_stays_with_the_later_part_when_an_older_group_takes_the_earlier_one() -> None:
    bench = Bench("ab")
    bench.append("c", None)
    for id_ in "def":
        bench.append(id_, 2)
    assert bench.groups == {"a": "ab", "d": "def"}
    bench.change("c", 1)
    bench.change("d", 1)
    assert bench.groups == {"a": "abcd", "d": "ef"}


def test_a_key_stays_when_a_member_comes_in_between() -> None:
    bench = Bench("ac")
    bench.live("b", after=1)
    assert bench.groups == {"a": "abc"}


def test_a_key_stays_while_one_of_its_members_stays() -> None:
    bench = Bench()
    for id_ in "abc":
        bench.live(id_)
    assert bench.groups == {"a": "abc"}
    for gone, left in (("a", "bc"), ("c", "b")):
        bench.assembler.settle(gone, "failed")
        assert bench.groups == {"a": left}
    bench.live("d")
    assert bench.groups == {"a": "bd"}
    bench.assembler.settle("b", "failed")
    assert bench.groups == {"a": "d"}
    bench.assembler.settle("d", "failed")
    assert bench.groups == {}


def test_on_a_split_the_part_with_the_earliest_member_keeps_the_key() -> None:
    bench = Bench("abcde")
    bench.change("c", 2)
    assert bench.groups == {"a": "ab", "c": "c", "d": "de"}


def test_on_a_split_by_one_that_comes_in_between() -> None:
    bench = Bench("ab")
    bench.live("m", 2, after=1)
    assert bench.groups == {"a": "a", "m": "m", "b": "b"}
    bench.assembler.settle("m", "failed")
    assert bench.groups == {"a": "ab"}


def test_on_a_split_after_its_first_member_went() -> None:
    bench = Bench()
    for id_ in "abcd":
        bench.live(id_)
    assert bench.groups == {"a": "abcd"}
    bench.assembler.settle("a", "failed")
    assert bench.groups == {"a": "bcd"}
    bench.assembler.settle("c", "failed")
    bench.live("x", 2, after=0)
    assert bench.groups == {"a": "bd", "x": "x"}


def test_on_a_merge_the_group_that_was_formed_first_stays() -> None:
    bench = Bench("b", first=2)
    bench.change("b", 2)
    bench.append("c", 1)
    assert bench.groups == {"b": "b", "c": "c"}
    bench.assembler.prepend([event(1, id="a", v=1)], False)
    assert bench.groups == {"a": "a", "b": "b", "c": "c"}
    bench.change("b", 1)
    assert bench.groups == {"b": "abc"}  # `a` stands first but was formed last


def test_a_merge_removes_the_other_groups() -> None:
    bench = Bench("abc")
    bench.change("b", None)
    assert sorted(bench.ops()) == ["put-group a", "put-group c"]
    bench.change("b", 1)
    assert sorted(bench.ops()) == ["put-group a", "remove-group c"]
    assert bench.groups == {"a": "abc"}


def test_a_split_and_a_merge_in_one_flush() -> None:
    bench = Bench("abcd")
    bench.change("b", 2)
    bench.change("c", 2)
    assert bench.groups == {"a": "a", "b": "bc", "d": "d"}
    bench.change("a", 2)
    bench.change("c", 1)
    bench.change("d", 1)
    groups = bench.groups
    assert list(groups.values()) == ["ab", "cd"]
    assert next(iter(groups)) == "a"


def test_a_member_that_went_and_came_again_is_another_one() -> None:
    bench = Bench()
    bench.live("a")
    assert bench.groups == {"a": "a"}
    bench.assembler.settle("a", "failed")
    bench.index += 1
    bench.assembler.emit(delta(0, attempt="b", id="a", v=1, index=9))
    assert list(bench.groups.values()) == ["a"]


# --- keys that are taken


def taken() -> Bench:
    """The key of `a` is in use by a group without it."""
    bench = Bench()
    bench.live("a")
    bench.live("b")
    assert bench.groups == {"a": "ab"}
    bench.assembler.settle("a", "failed")
    assert bench.groups == {"a": "b"}
    bench.live("wall", None)
    return bench


def again(bench: Bench, *ids: str) -> None:
    for id_ in ids:
        bench.index += 1
        bench.assembler.emit(delta(0, attempt=f"{id_}2", id=id_, v=1, index=bench.index))


def test_a_taken_key_gives_way_to_the_next_member() -> None:
    bench = taken()
    again(bench, "a", "d")
    assert bench.groups == {"a": "b", "d": "ad"}


def test_where_all_are_taken_a_number_tells_them_apart() -> None:
    bench = taken()
    again(bench, "a")
    assert bench.groups == {"a": "b", "a~2": "a"}


# --- what is asked and sent


def walled(count: int) -> Bench:
    bench = Bench()
    for at in range(count):
        bench.live(f"m{at}", at % 2 + 1)
    assert len(bench.groups) == count
    bench.forget()
    return bench


@pytest.mark.parametrize("count", [10, 60])
def test_only_the_neighbourhood_of_a_change_is_asked(count: int) -> None:
    bench = walled(count)
    bench.assembler.emit(delta(1, attempt="m5", id="m5", v=2, index=999))
    bench.assembler.flush()
    assert bench.band.asked("joins") == ["m5"]
    assert set(bench.band.asked("summary")) <= {"m4", "m5", "m6"}

    bench.assembler.emit(delta(0, attempt="new", id="new", v=7, index=1000))
    bench.assembler.flush()
    assert bench.band.asked("joins") == ["new"]
    assert len(bench.band.asked("summary")) <= 2


def test_nothing_is_asked_when_no_node_changed() -> None:
    bench = Bench("abc")
    bench.append("x", None)
    bench.ops()
    bench.forget()
    bench.assembler.append(event(bench.seq + 1, "other"))
    bench.assembler.liveness(True)
    bench.assembler.flush()
    assert bench.band.calls == []


def test_of_a_group_only_the_members_that_changed_are_asked() -> None:
    bench = Bench("abcdefgh")
    bench.change("c", 1)
    bench.append("i")
    bench.forget()
    bench.assembler.flush()
    assert bench.band.calls == [
        ("joins", "c"),
        ("tells", "c"),
        ("joins", "i"),
        ("tells", "i"),
        ("summary", "abcdefghi"),
    ]


def test_what_members_tell_is_counted_through_split_and_merge() -> None:
    class Letters(Band):
        def tells(self, node: Node) -> Any:
            return node.data["size"]

        def summary(self, members: Members) -> Mapping[str, Any]:
            sizes = {str(size): times for size, times in members.told.items()}
            return {"sizes": sizes, "ends": members.first.id + members.last.id}

    def said() -> list[tuple[Any, Any]]:
        assembler.flush()
        same_as_fresh(assembler, [Toy(build=build), Letters()])
        return [(group["ends"], group["sizes"]) for group in wire(assembler)["groups"]]

    assembler = Assembler([Toy(build=build), Letters()])
    assembler.load([event(seq, id=id_, v=1) for seq, id_ in enumerate("abcde", 1)])
    assert said() == [("ae", {"1": 5})]
    assembler.append(event(6, "toy/more", id="c", v=2))
    assert said() == [("ab", {"1": 2}), ("cc", {"2": 1}), ("de", {"1": 2})]
    assembler.append(event(7, "toy/more", id="e", v=1))
    assembler.append(event(8, "toy/more", id="c", v=1))
    assert said() == [("ae", {"1": 3, "3": 1, "2": 1})]
    assembler.append(event(9, "toy/more", id="a", v=2))
    assembler.append(event(10, "toy/more", id="a", v=None))
    assert said() == [("be", {"1": 2, "3": 1, "2": 1})]


def test_a_member_that_cannot_be_asked_what_it_tells_is_a_finding_and_stays() -> None:
    class Shy(Band):
        def tells(self, node: Node) -> Any:
            if node.id == "b" and node.data["size"] < 3:
                raise ValueError
            return [] if node.id == "c" else 1  # nothing that can be counted

        def summary(self, members: Members) -> Mapping[str, Any]:
            return {"n": members.size, "told": sum(members.told.values())}

    assembler = Assembler([Toy(build=build), Shy()])
    assembler.load([event(seq, id=id_, v=1) for seq, id_ in enumerate("abc", 1)])
    assembler.flush()
    assert [(odd.kind, odd.key) for odd in assembler.findings()] == [
        ("definition-error", "toy:b"),
        ("definition-error", "toy:c"),
    ]
    assert [(group["n"], group["told"]) for group in wire(assembler)["groups"]] == [(3, 1)]
    assembler.append(event(4, "toy/more", id="b", v=1))
    assembler.append(event(5, "toy/more", id="b", v=1))
    assembler.flush()
    same_as_fresh(assembler, [Toy(build=build), Shy()])
    assert [odd.key for odd in assembler.findings()] == ["toy:c"]
    assert [(group["n"], group["told"]) for group in wire(assembler)["groups"]] == [(3, 2)]


def test_an_unchanged_group_is_the_same_object_and_is_not_sent() -> None:
    bench = Bench("abc")
    bench.change("c", None)
    bench.ops()
    group = bench.assembler.view().groups[0]
    bench.change("a", 1)  # its Node changes, the group does not
    assert bench.ops() == []
    assert bench.assembler.view().groups[0] is group
    bench.append("d", 2)
    assert bench.ops() == ["put-group d"]
    assert bench.assembler.view().groups[0] is group


def test_a_group_whose_summary_changes_is_sent() -> None:
    class Sizes(Band):
        def tells(self, node: Node) -> int:
            return int(node.data["size"])

        def summary(self, members: Members) -> Mapping[str, Any]:
            return {"sizes": sorted(members.told)}

    assembler = Assembler([Toy(build=build), Sizes()])
    assembler.load([event(1, id="a", v=1), event(2, id="b", v=1)])
    assembler.flush()
    assembler.append(event(3, "toy/more", id="b", v=1))
    ops = assembler.flush()["chat"].to_json()["ops"]
    assert [op["op"] for op in ops] == ["put", "put-group"]
    assert ops[1]["group"]["sizes"] == [1, 2]


def test_a_load_that_changes_nothing_keeps_groups_as_they_are() -> None:
    bench = Bench("abc")
    groups = bench.assembler.view().groups
    bench.assembler.load(bench.assembler.events)
    assert bench.ops() == []
    assert all(now is then for now, then in zip(bench.assembler.view().groups, groups, strict=True))


# --- all or nothing


class Picky(Band):
    """Cannot sum up more than three."""

    def summary(self, members: Members) -> Mapping[str, Any]:
        if members.size > 3:
            raise ValueError
        return super().summary(members)


def test_a_regrouping_that_raises_is_not_half_installed() -> None:
    assembler = Assembler([Toy(build=build), Picky()], strict=True)
    assembler.load([event(seq, id=id_, v=1) for seq, id_ in enumerate("abc", 1)])
    assembler.flush()
    before = wire(assembler)
    assembler.append(event(4, "toy/more", id="b", v=2))
    assembler.append(event(5, id="d", v=1))
    assembler.append(event(6, id="e", v=1))
    assembler.append(event(7, id="f", v=1))
    with pytest.raises(DefinitionError):
        assembler.flush()
    assert wire(assembler) == before
    assembler.append(event(8, "toy/more", id="d", v=2))
    patch = assembler.flush()["chat"].to_json()
    assert apply(before, patch) == wire(assembler)
    assert [group["n"] for group in wire(assembler)["groups"]] == [1, 1, 1, 1, 2]
    same_as_fresh(assembler, [Toy(build=build), Picky()])


def test_a_group_that_cannot_be_summed_up_is_shown_without_data() -> None:
    assembler = Assembler([Toy(build=build), Picky()])
    assembler.load([event(seq, id=id_, v=1) for seq, id_ in enumerate("abcd", 1)])
    assembler.flush()
    (group,) = wire(assembler)["groups"]
    assert group == {"key": "band:toy:a", "kind": "band", "members": list(members("abcd"))}


def members(ids: str) -> list[str]:
    return [f"toy:{id_}" for id_ in ids]


def test_a_definition_of_groups_that_is_none_is_refused() -> None:
    class Twice(Band):
        pass

    with pytest.raises(DefinitionError, match="kind"):
        Assembler([Band(), Twice()])
    assert issubclass(Band, GroupDefinition)


def test_a_group_whose_only_member_moves_past_another_keeps_its_key() -> None:
    def build(context: Context, scope: Scope) -> Node | None:
        data = {"band": 2 if context.id == "z" else 1}
        return None if context.state[-1] == "gone" else Node("toy", context.id, data)

    toys = [Toy(build=build, anchor=lambda context: context.matches[-1]), Band()]
    assembler = Assembler(toys)
    for each in (event(1), event(2, id="y"), event(3, id="z"), event(4, "toy/more", v="gone")):
        assembler.append(each)
        assembler.flush()
    before = {group.members: group.key for group in assembler.view().groups}
    assert before == {("toy:y",): "band:toy:x", ("toy:z",): "band:toy:z"}
    assembler.append(event(5, "toy/more", id="y"))
    assembler.flush()
    assert [node.id for node in assembler.view().nodes] == ["z", "y"]
    assert {group.members: group.key for group in assembler.view().groups} == before
    same_as_fresh(assembler, toys)
