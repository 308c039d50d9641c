"""Seeded broken engines: each breaks one promise, and the tests must notice.

A fault is a name, what it does to the engine, and which test has to catch it: the state machine
(`MACHINE`) or one test of `test_law`. Not here: running them (`test_broken`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from assembler.engine import assembler as conductor
from assembler.engine import (
    attempts,
    contexts,
    events,
    grouping,
    predecessors,
    settling,
    timeline,
    views,
    window,
)
from assembler.engine.assembler import Assembler
from assembler.engine.attempts import Attempts
from assembler.engine.contexts import ContextView, Entry, Failure
from assembler.engine.definition import NONE, NOW, START, Definition, Node
from assembler.engine.dependencies import Dependencies
from assembler.engine.derived import Derived
from assembler.engine.errors import ConflictError
from assembler.engine.events import Delta, Event, Outcome
from assembler.engine.grouping import Grouping
from assembler.engine.locations import SESSION, UNRESOLVED, Location
from assembler.engine.patches import Move, Patch, Remove, RemoveGroup
from assembler.engine.places import Places
from assembler.engine.predecessors import Lookup, Predecessors
from assembler.engine.registry import Registry
from assembler.engine.scopes import ScopeView
from assembler.engine.timeline import Timeline
from assembler.engine.values import Object
from assembler.engine.views import View
from assembler.engine.window import Window

__all__ = ["FAULTS", "MACHINE", "Fault"]

MACHINE = "the state machine"
Break = Callable[[pytest.MonkeyPatch], None]


class Fault(NamedTuple):
    """One broken engine."""

    name: str
    apply: Break
    caught_by: str


FAULTS: list[Fault] = []


def fault(caught_by: str = MACHINE) -> Callable[[Break], Break]:
    """List a fault under the name of its function."""

    def listed(apply: Break) -> Break:
        FAULTS.append(Fault(apply.__name__, apply, caught_by))
        return apply

    return listed


# --- the window


@fault()
def a_repeated_event_is_not_compared(patch: pytest.MonkeyPatch) -> None:
    def is_known(self: Any, event: Event) -> bool | None:
        return None if event.seq not in self.loaded else False

    patch.setattr(Window, "_is_known", is_known)


@fault()
def a_hole_inside_a_page_is_accepted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(conductor, "check_page", lambda page: None)
    patch.setattr(window, "check_page", lambda page: None)


@fault()
def a_gap_behind_the_end_is_guessed_over(patch: pytest.MonkeyPatch) -> None:
    old = Window.is_next
    patch.setattr(
        Window, "is_next", lambda self, event: event.seq > (self.end or 0) or old(self, event)
    )


@fault()
def the_beginning_is_not_known_at_event_one(patch: pytest.MonkeyPatch) -> None:
    def set_has_more(self: Any, *, has_more: bool) -> None:
        self.has_more = has_more

    patch.setattr(Window, "set_has_more", set_has_more)


@fault("test_2_live_evicted_and_reconnected_show_the_same")
def what_was_evicted_counts_as_not_there(patch: pytest.MonkeyPatch) -> None:
    old = Window.evict

    def evict(self: Any, before: int) -> Any:
        more = self.has_more
        gone = old(self, before)
        self.has_more = more
        return gone

    patch.setattr(Window, "evict", evict)


@fault("test_evict_stops_at_the_first_event_of_an_open_step")
def eviction_goes_into_an_open_step(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Assembler, "_evictable", lambda self, before: before)


# --- attempts


@fault()
def a_delta_below_the_floor_is_taken(patch: pytest.MonkeyPatch) -> None:
    old = Attempts._is_late

    def is_late(self: Any, delta: Delta) -> bool:
        return (delta.turn, delta.step) > self.floor and old(self, delta)

    patch.setattr(Attempts, "_is_late", is_late)


@fault("test_3_any_other_outcome_gives_the_attempt_up")
def a_given_up_attempt_is_revived(patch: pytest.MonkeyPatch) -> None:
    old = Attempts.give_up

    def give_up(self: Any, attempt: Any) -> None:
        old(self, attempt)
        self.steps[attempt.turn, attempt.step].given_up.clear()

    patch.setattr(Attempts, "give_up", give_up)


@fault("test_3_a_higher_number_gives_up_the_lower_ones_of_its_step_alone")
def a_higher_number_gives_nobody_up(patch: pytest.MonkeyPatch) -> None:
    old = Attempts.admit

    def admit(self: Any, delta: Delta) -> Any:
        memory = self.steps.get((delta.turn, delta.step))
        names = set(memory.names) if memory else set()
        if memory:
            memory.names.clear()
        held, beaten = old(self, delta)
        self.steps[delta.turn, delta.step].names.update(names)
        return held, beaten

    patch.setattr(Attempts, "admit", admit)


@fault()
def a_lower_number_is_still_taken(patch: pytest.MonkeyPatch) -> None:
    old = Attempts.admit

    def admit(self: Any, delta: Delta) -> Any:
        answer = old(self, delta)
        self.steps[delta.turn, delta.step].highest = 0
        return answer

    patch.setattr(Attempts, "admit", admit)


@fault()
def a_closing_step_keeps_its_attempts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Attempts, "close", lambda self, floor: [])


@fault("test_3_completed_keeps_the_deltas_until_the_step_closes")
def completed_gives_the_attempt_up(patch: pytest.MonkeyPatch) -> None:
    old = Attempts.settle
    patch.setattr(Attempts, "settle", lambda self, name, outcome: old(self, name, Outcome.FAILED))


@fault("test_3_any_other_outcome_gives_the_attempt_up")
def a_failed_attempt_keeps_its_deltas(patch: pytest.MonkeyPatch) -> None:
    old = Attempts.settle
    completed = Outcome.COMPLETED
    patch.setattr(Attempts, "settle", lambda self, name, outcome: old(self, name, completed))


@fault("test_3_a_settlement_told_ahead_is_remembered_until_its_turn_closes")
def a_settlement_told_ahead_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Attempts, "_settle_ahead", lambda self, name, outcome: None)


@fault("test_3_an_event_gives_an_attempt_up_by_name_before_and_after")
def an_event_gives_up_no_attempt(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Attempts, "give_up_name", lambda self, name, place: None)


@fault()
def a_torn_attempt_is_extended_with_a_hole(patch: pytest.MonkeyPatch) -> None:
    old = Attempts.judge

    def judge(self: Any, delta: Delta) -> str:
        verdict = old(self, delta)
        return attempts.TAKE if verdict == attempts.TORN else verdict

    patch.setattr(Attempts, "judge", judge)


@fault("test_an_attempt_never_changes_its_turn_step_or_number")
def an_attempt_may_change_its_place(patch: pytest.MonkeyPatch) -> None:
    old = Attempts.judge

    def judge(self: Any, delta: Delta) -> str:
        try:
            return old(self, delta)
        except ConflictError:
            return attempts.TAKE

    patch.setattr(Attempts, "judge", judge)


@fault()
def late_deltas_are_noted_once(patch: pytest.MonkeyPatch) -> None:
    old = Assembler._incident

    def incident(self: Any, kind: str, key: str, place: Any) -> None:
        if all((odd.kind, odd.key) != (kind, key) for odd in self._log):
            old(self, kind, key, place)

    patch.setattr(Assembler, "_incident", incident)


@fault()
def a_load_forgets_the_deltas(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Attempts, "deltas", lambda self: [])


@fault("test_3_closing_acts_whenever_it_is_learned")
def a_load_forgets_the_memory(patch: pytest.MonkeyPatch) -> None:
    old = Assembler.load

    def load(self: Any, page: Any, has_more: bool = False) -> Any:
        self._attempts.floor = timeline.NOTHING_CLOSED
        self._attempts.ahead = {}
        return old(self, page, has_more)

    patch.setattr(Assembler, "load", load)


# --- Contexts and States


@fault()
def a_match_between_others_goes_to_the_end(patch: pytest.MonkeyPatch) -> None:
    def insert(self: Any, match: Any) -> None:
        self._replace([*self.matches, match])

    patch.setattr(Entry, "_insert", insert)


@fault()
def a_match_before_the_start_is_lost(patch: pytest.MonkeyPatch) -> None:
    def refold(self: Any, reader: Any, *, strict: bool) -> Any:
        at = self.start_at or 0
        try:
            state = self.spec.start(self.matches[at], reader)
        except Exception as error:
            return None, Failure(type(error).__name__, "start", self.matches[at].position)
        return self._run(state, self.matches[at + 1 :], strict=strict)

    patch.setattr(Entry, "_refold", refold)


@fault()
def the_latest_start_is_chosen(patch: pytest.MonkeyPatch) -> None:
    old = Entry._replace

    def replaced(self: Any, matches: Any) -> bool:
        answer = old(self, matches)
        starts = [nth for nth, match in enumerate(matches) if match.role is START]
        self.start_at = starts[-1] if starts else None
        return answer

    patch.setattr(Entry, "_replace", replaced)


@fault()
def an_attempt_takes_those_of_others_with_it(patch: pytest.MonkeyPatch) -> None:
    def drop_attempt(self: Any, name: str) -> bool:
        return self._replace([each for each in self.matches if type(each.item) is Event])

    patch.setattr(Entry, "drop_attempt", drop_attempt)


@fault()
def one_position_of_two_attempts_is_in_order_of_arrival(patch: pytest.MonkeyPatch) -> None:
    def order_key(match: Any) -> tuple[int, str]:
        return match.position, ""

    for module in (contexts, predecessors, settling):
        patch.setattr(module, "order_key", order_key)


@fault("test_8_what_extend_alone_raises_has_done_no_harm")
def what_extend_raises_is_believed(patch: pytest.MonkeyPatch) -> None:
    old = Entry._run

    def run(self: Any, state: Any, matches: Any, *, strict: bool) -> Any:
        if self.spec.extend is not None and len(matches) > 1:
            try:
                return self.spec.extend(state, tuple(matches)), None
            except Exception as error:
                return None, Failure(type(error).__name__, "update", matches[0].position)
        return old(self, state, matches, strict=strict)

    patch.setattr(Entry, "_run", run)


@fault()
def only_the_last_of_a_run_is_folded(patch: pytest.MonkeyPatch) -> None:
    old = Entry._run
    patch.setattr(
        Entry, "_run", lambda self, state, run, *, strict: old(self, state, run[-1:], strict=strict)
    )


@fault("test_8_a_context_that_failed_shows_the_error_and_recovers")
def a_failed_context_is_folded_on(patch: pytest.MonkeyPatch) -> None:
    old = Entry.fold

    def fold(self: Any, reader: Any, *, strict: bool) -> Any:
        self.failure = None if self.folded != contexts.REFOLD else self.failure
        return old(self, reader, strict=strict)

    patch.setattr(Entry, "fold", fold)


@fault("test_who_reads_all_matches_is_made_again_with_each")
def reading_all_matches_is_not_recorded(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ContextView, "matches", property(lambda self: tuple(self._entry.matches)))


# --- predecessors


@fault()
def a_later_change_does_not_refold_the_asker(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Predecessors, "changed", lambda self, entry: iter(()))


@fault("test_a_cascade_runs_earliest_first_and_each_once")
def a_nearer_predecessor_goes_unnoticed(patch: pytest.MonkeyPatch) -> None:
    old = Predecessors.moved

    def moved(self: Any, entry: Any) -> Any:
        for _ in old(self, entry):
            pass
        return iter(())

    patch.setattr(Predecessors, "moved", moved)


@fault()
def a_known_beginning_refolds_nobody(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Lookup, "complete", property(lambda self: self._complete))


@fault("test_a_cascade_runs_earliest_first_and_each_once")
def a_cascade_runs_latest_first(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(settling, "heappush", lambda heap, item: heap.insert(0, item))
    patch.setattr(settling, "heappop", lambda heap: heap.pop(0))


# --- Locations


@fault()
def the_next_turn_closes_nothing(patch: pytest.MonkeyPatch) -> None:
    old = timeline.closes

    def closes(event: Event) -> Any:
        return None if event.type == "turn/start" else old(event)

    patch.setattr(timeline, "closes", closes)


@fault()
def the_floor_of_forgotten_events_is_still_shown(patch: pytest.MonkeyPatch) -> None:
    old = Timeline.evict

    def evict(self: Any, gone: Any) -> None:
        closers = type(self._closers)(self._closers)
        old(self, gone)
        self._closers = closers

    patch.setattr(Timeline, "evict", evict)


@fault()
def the_bracket_beats_explicit_coordinates(patch: pytest.MonkeyPatch) -> None:
    old = Timeline.locate

    def locate(self: Any, event: Event, loaded: Any, *, complete: bool) -> Location:
        plain = Event(event.seq, event.type)
        found = old(self, plain, loaded, complete=complete)
        return old(self, event, loaded, complete=complete) if found.turn is None else found

    patch.setattr(Timeline, "locate", locate)


@fault()
def before_the_first_boundary_is_the_session(patch: pytest.MonkeyPatch) -> None:
    old = Timeline.locate

    def locate(self: Any, event: Event, loaded: Any, *, complete: bool) -> Location:
        found = old(self, event, loaded, complete=complete)
        return SESSION if found == UNRESOLVED else found

    patch.setattr(Timeline, "locate", locate)


@fault()
def an_older_page_does_not_move_what_is_loaded(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Derived, "relocate_events", lambda self, first, end: None)


# --- values, findings, Nodes


@fault()
def nobody_is_made_again_for_what_was_read(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Dependencies, "record", lambda self, entry, phase, keys: None)


@fault()
def a_closing_step_rebuilds_nobody(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Dependencies, "statuses", lambda self, above, upto: [])


@fault()
def liveness_rebuilds_nobody(patch: pytest.MonkeyPatch) -> None:
    def liveness(self: Any, live: bool | None) -> Any:
        self._live = self._derived.facts.live = live
        return NOW

    patch.setattr(Assembler, "liveness", liveness)


@fault("test_only_the_readers_of_what_changed_are_made_again")
def another_state_that_was_read_is_not_recorded(patch: pytest.MonkeyPatch) -> None:
    def other(self: Any, kind: str, id: str) -> Any:
        entry = self._facts.tables.get(kind, {}).get(id)
        return None if entry is None else entry.state

    patch.setattr(ScopeView, "other", other)


@fault("test_values_come_in_anchor_order")
def values_come_in_order_of_arrival(patch: pytest.MonkeyPatch) -> None:
    def ordered(self: Any, spots: Any) -> dict[str, Any]:
        return {each.id: each.value for at in spots for each in self._at(at)}

    patch.setattr(Places, "_ordered", ordered)


@fault("test_2_live_evicted_and_reconnected_show_the_same")
def a_value_stays_when_its_context_goes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Places, "clear", lambda self, entry, *, turn: [])


@fault()
def a_definition_that_raises_in_match_is_not_noted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Derived, "keep_faults", lambda self, place, attempt, plan: None)


@fault()
def the_fallback_takes_named_types(patch: pytest.MonkeyPatch) -> None:
    def of_event(self: Any, name: str) -> Any:
        return self.by_type.get(name, self._unnamed)

    patch.setattr(Registry, "of_event", of_event)


@fault()
def an_anchor_of_its_own_is_ignored(patch: pytest.MonkeyPatch) -> None:
    def anchor(self: Any, entry: Any) -> None:
        entry.anchor, entry.anchor_failed = entry.lead.position, False

    patch.setattr(Derived, "_anchor", anchor)


@fault("test_2_live_order_and_text_do_not_depend_on_when_somebody_looks")
def an_equal_node_is_a_new_one(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Node, "equals", lambda self, other: False)


# --- views, patches, groups


def without(kind: type[Any]) -> Callable[..., Patch]:
    """`View.commit` whose Patch leaves out one kind of operation."""
    old = View.commit

    def commit(self: Any, *arguments: Any) -> Patch:
        whole = old(self, *arguments)
        return replace(whole, ops=tuple(op for op in whole.ops if type(op) is not kind))

    return commit


@fault()
def a_patch_removes_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(View, "commit", without(Remove))


@fault("test_a_patch_moves_a_node_with_its_anchor")
def a_patch_moves_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(View, "commit", without(Move))


@fault()
def a_patch_takes_no_group_away(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(View, "commit", without(RemoveGroup))


@fault("test_text_goes_as_its_suffix")
def a_patch_forgets_what_text_grew(patch: pytest.MonkeyPatch) -> None:
    old = views.text_changes

    def text_changes(before: Any, after: Any) -> Any:
        found = old(before, after)
        return found and [(path, at, text[:-1]) for path, at, text in found]

    patch.setattr(views, "text_changes", text_changes)


@fault()
def groups_are_not_made_again_around(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Grouping, "_look_around", lambda self, found, spot: None)


@fault()
def a_group_is_not_cut_by_who_comes_into_it(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Grouping, "_cut_through", lambda self, found, spot, was: None)


@fault()
def what_a_member_told_is_counted_for_ever(patch: pytest.MonkeyPatch) -> None:
    old = grouping._count
    patch.setattr(grouping, "_count", lambda tally, told, times: old(tally, told, max(0, times)))


@fault()
def a_part_of_a_group_counts_as_the_whole(patch: pytest.MonkeyPatch) -> None:
    old = Grouping._tally

    def tally(self: Any, pieces: Any, found: Any) -> Any:
        for cut in (piece.cut for piece in pieces if piece.cut is not None):
            cut.slices = [piece.members for piece in pieces if piece.cut is cut]
        return old(self, pieces, found)

    patch.setattr(Grouping, "_tally", tally)


@fault("test_the_key_of_a_group_stays_through_split_and_merge")
def a_group_is_named_anew_each_time(patch: pytest.MonkeyPatch) -> None:
    old = Grouping._name

    def name(self: Any, chains: Any, found: Any) -> None:
        old(self, [[replace(piece, run=None) for piece in chain] for chain in chains], found)

    patch.setattr(Grouping, "_name", name)


@fault("test_groups_are_made_again_only_around_what_changed")
def all_groups_are_made_again(patch: pytest.MonkeyPatch) -> None:
    old = Grouping._look_around

    def look_around(self: Any, found: Any, spot: Any) -> None:
        old(self, found, spot)
        for run in (self._runs or {}).values():
            self._cut(found, run).retold = True

    patch.setattr(Grouping, "_look_around", look_around)


# --- all or nothing, isolation, cost


@fault("test_7_and_8_strict_raises_and_nothing_has_changed")
def strict_does_not_go_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        Assembler, "_done", lambda self, _undo, urgent: (settling.settle(self._derived), urgent)[1]
    )


@fault("test_7_what_was_given_can_be_changed_later_without_effect")
def what_is_given_in_is_kept_by_reference(patch: pytest.MonkeyPatch) -> None:
    def shallow(data: Any) -> Object:
        return Object({key: nth for nth, key in enumerate(data)}, tuple(data.values()))

    patch.setattr(events, "_frozen_data", shallow)
    patch.setattr(events, "freeze_object", shallow)


@fault("test_an_append_behind_asks_nobody_else")
def every_operation_makes_all_again(patch: pytest.MonkeyPatch) -> None:
    old = Assembler.append

    def append(self: Any, event: Any) -> Any:
        answer = old(self, event)
        self._rebuild()
        return answer

    patch.setattr(Assembler, "append", append)


@fault("test_every_operation_returns_the_most_urgent_of_what_it_changed")
def everything_is_urgent(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Definition, "cadence", lambda self, match: NOW)
    old = Assembler.emit
    patch.setattr(Assembler, "emit", lambda self, delta: max(NONE, NOW, old(self, delta)))
