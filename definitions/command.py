"""What a user told the program itself to do, beside the conversation. Not here: calls of the model
(`tool`)."""

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
from assembler.engine.values import Object
from definitions.events import named
from definitions.nodes import node

__all__ = ["Command", "CommandState"]


class CommandState(Struct, frozen=True, gc=False):
    """The payloads of its run and of its end; the first of each."""

    run: Object | None = None
    done: Object | None = None


class Command(Definition):
    """One command. The id is its command id.

    Its end alone shows while older history may hold its run.
    """

    kind = "command"
    target = "chat"
    takes = frozenset({"command/run", "command/done"})

    def match(self, item: Event) -> tuple[str, Role] | None:
        if type(item) is not Event:
            return None
        command_id = named(item.data, "command_id")
        if command_id is None:
            return None
        return command_id, START if item.type == "command/run" else UPDATE

    def start(self, match: Match, reader: Reader) -> CommandState:
        return self.update(CommandState(), match)

    def update(self, state: CommandState, match: Match) -> CommandState:
        if match.type == "command/run":
            return state if state.run is not None else replace(state, run=match.data)
        return state if state.done is not None else replace(state, done=match.data)

    def build(self, context: Context, scope: Scope) -> Node | None:
        state: CommandState | None = context.state
        if state is None and not scope.complete:
            state = CommandState(done=context.matches[0].data)
        told = None if state is None else state.run or state.done
        if state is None or told is None:
            return None
        fields = {
            "name": named(told, "name"),
            "arguments": told.get("arguments"),
            "status": _status(state.done, scope),
            "output": None if state.done is None else state.done.get("output"),
        }
        return node("command", context.id, fields)


def _status(done: Object | None, scope: Scope) -> str:
    """Say how it went. It does not belong to the turn in which it was given, so that alone that
    nobody is at work ends it."""
    if done is not None:
        return "failed" if done.get("is_error") else "done"
    return "interrupted" if scope.live is False else "running"
