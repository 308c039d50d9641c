"""History that is summarised, so that the model need not read all of it again.

Not here: what the model is then given (`model_context`, later).
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from assembler.engine.definition import (
    START,
    UPDATE,
    Context,
    Definition,
    Match,
    Node,
    Reader,
    Role,
    Scope,
)
from assembler.engine.events import Event
from definitions.events import is_int, named, text_of
from definitions.nodes import node

__all__ = ["Compaction", "CompactionState"]


class CompactionState(Struct, frozen=True, gc=False):
    """The summary, the first event that it leaves as it is, and whether it is over."""

    summary: str | None = None
    before_seq: int | None = None
    ended: bool = False
    failed: bool = False


class Compaction(Definition):
    """One summary. The id is its compaction id; it shows from its summary alone."""

    kind = "compaction"
    target = "chat"
    takes = frozenset({"compaction/start", "compaction/summary", "compaction/end"})

    def match(self, item: Event) -> tuple[str, Role] | None:
        if type(item) is not Event:
            return None
        compaction_id = named(item.data, "compaction_id")
        if compaction_id is None:
            return None
        return compaction_id, UPDATE if item.type == "compaction/end" else START

    def start(self, match: Match, reader: Reader) -> CompactionState:
        return self.update(CompactionState(), match)

    def update(self, state: CompactionState, match: Match) -> CompactionState:
        data = match.data
        before = data.get("before_seq")
        if is_int(before) and (state.before_seq is None or match.type == "compaction/summary"):
            state = replace(state, before_seq=before)
        if match.type == "compaction/summary" and state.summary is None:
            return replace(state, summary=text_of(data.get("text")))
        if match.type == "compaction/end" and not state.ended:
            failed = bool(data.get("is_error")) or data.get("error") is not None
            return replace(state, ended=True, failed=failed)
        return state

    def build(self, context: Context, scope: Scope) -> Node | None:
        state: CompactionState | None = context.state
        if state is None:
            return None
        fields = {
            "status": _status(state, scope),
            "summary": state.summary,
            "before_seq": state.before_seq,
        }
        return node("compaction", context.id, fields)


def _status(state: CompactionState, scope: Scope) -> str:
    """Say how it went. An end without a summary has failed; nobody is left to write one in a turn
    that is over."""
    if state.failed or (state.ended and state.summary is None):
        return "failed"
    if state.summary is not None:
        return "done"
    return "interrupted" if scope.closed or scope.live is False else "running"
