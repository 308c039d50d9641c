"""The history that a model gets back, read from Contexts: repaired, and in nobody's format.

Durable facts alone: messages that stand, calls that were made, results. What is still being written
is none of it, and what was withdrawn never was. Not here: how a provider spells it (the formats).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from assembler.engine.assembler import Assembler
from assembler.engine.definition import Context
from assembler.engine.errors import AssemblerError
from assembler.engine.events import Position, pair, position
from assembler.engine.values import Json, Object, freeze_object
from definitions.arguments import InvalidArguments, complete
from definitions.compaction import CompactionState
from definitions.events import is_blank, is_int, named, step_of
from definitions.message import MessageState
from definitions.model_context.blocks import raw_of
from definitions.model_context.results import Results
from definitions.model_context.turns import Answer, Call, Input, Part, Result, Turn
from definitions.shared import RequestState, ToolState

__all__ = ["IncompleteHistoryError", "turns_of"]

_NOTHING = freeze_object({})
_CALL, _PROVIDER = "tool-call", "provider"
_AGENTS = frozenset({"claude_code", "acp_agent"})
"""Formats of agents, which run tools as a host does. What other providers run, they run in their
own way, as whatever has its result in the answer itself."""


class IncompleteHistoryError(AssemblerError):
    """The loaded window reaches neither the beginning nor the last compaction.

    Load older pages, back to event `needed` (1: the beginning) at most, and ask again.
    """

    def __init__(self, needed: int, first: int | None) -> None:
        loaded = "nothing is loaded" if first is None else f"the window begins at event {first}"
        super().__init__(
            f"the model context needs events from {needed} on, or a compaction; {loaded}"
        )
        self.needed = needed
        self.first = first


class _Message(Struct, frozen=True):
    """The message of a step that stands: its blocks, in order, and whose they are."""

    at: Position
    turn: int | None
    blocks: tuple[Object, ...]
    source: Object


def turns_of(assembler: Assembler) -> list[Turn]:
    """Give inputs and answers in the order of the log, the results of each answer with its calls.

    What was said while an answer's calls ran stands behind the answer, so behind their results.
    Raises `IncompleteHistoryError`. O(loaded).
    """
    summary, first = _reach(assembler)
    placed: list[tuple[Position, Turn]] = []
    for context in assembler.contexts("message"):
        state: MessageState | None = context.state
        if state is not None and state.seq >= first:
            placed.append((position(state.seq, 0), Input(_blocks_of(state.data.get("content")))))
    placed += _answers(assembler, first)
    placed.sort(key=lambda entry: entry[0])
    opening: list[Turn] = [] if summary is None else [Input((summary,))]
    return opening + [turn for _, turn in placed]


def _reach(assembler: Assembler) -> tuple[Object | None, int]:
    """Give the summary that stands for what is left out, and the first event that is not."""
    window = assembler.window
    summary, first = None, 1
    newest = max(_summaries(assembler), default=None, key=lambda entry: entry[0])
    if newest is not None:
        _, text, first = newest
        told = f"Summary of the conversation so far:\n\n{text}"
        summary = freeze_object({"type": "text", "text": told})
    if window.has_more and (window.first is None or first < window.first):
        raise IncompleteHistoryError(first, window.first)
    return summary, first


def _summaries(assembler: Assembler) -> Iterator[tuple[int, str, int]]:
    """Give where each compaction that holds was told, its summary, and what it leaves as it is:
    the events from `before_seq` on, or from its own first."""
    for context in assembler.contexts("compaction"):
        state: CompactionState | None = context.state
        if state is None or state.failed or is_blank(state.summary or ""):
            continue
        # Where the first of each type stands.
        at = {match.type: pair(match.position)[0] for match in reversed(context.matches)}
        told = at["compaction/summary"]
        own = at.get("compaction/start", 1 if assembler.window.has_more else told)
        before = own if state.before_seq is None else max(state.before_seq, 1)
        yield told, state.summary or "", before


def _answers(assembler: Assembler, first: int) -> Iterator[tuple[Position, Turn]]:
    """Give the answer of each step: its message, or calls that were made without one.

    A step that began before `first` is summarised, with all its calls and their results.
    """
    messages = {step: each for step, each in _messages(assembler) if each.at >= position(first, 0)}
    calls = _Calls(assembler, messages.values())
    for step, message in messages.items():
        for answer in calls.answers(message, step):
            yield message.at, answer
    begun = _begun(assembler) if first > 1 else None
    for step, (at, parts) in calls.without_message(messages).items():
        if begun is None or begun.get(step, 0) >= first:
            yield at, Answer(tuple(parts))


def _begun(assembler: Assembler) -> dict[str, int]:
    """Give for each step the event that opened it."""
    return {
        step: event.seq
        for event in assembler.events
        if event.type == "step/start" and (step := step_of(event)) is not None
    }


def _messages(assembler: Assembler) -> Iterator[tuple[str, _Message]]:
    for context in assembler.contexts("request"):
        state: RequestState | None = context.state
        message = None if state is None else state.message
        if state is None or message is None:
            continue
        blocks = _blocks_of(message.get("content"))
        if message.get("interrupted"):
            if any(given.at > state.message_at for given in state.given_up):
                continue  # of an attempt that was given up later
            blocks = tuple([block for block in blocks if _stays_when_interrupted(block)])
        turn = message.get("turn")
        place = turn if is_int(turn) else None
        yield context.id, _Message(state.message_at, place, blocks, _source_of(message))


def _stays_when_interrupted(block: Object) -> bool:
    """Whether it is what people have read: no call, and no reasoning whose signature may be
    missing its end."""
    return block.get("type") not in (_CALL, _PROVIDER, "reasoning")


def _source_of(message: Object) -> Object:
    told = message.get("provider")
    return told if type(told) is Object else _NOTHING


def _blocks_of(content: Json) -> tuple[Object, ...]:
    if type(content) is str:
        return (freeze_object({"type": "text", "text": content}),)
    if type(content) is not tuple:
        return ()
    return tuple([block for block in content if type(block) is Object])


class _Calls:
    """The calls of the conversation, each of which belongs to one answer."""

    def __init__(self, assembler: Assembler, messages: Iterable[_Message]) -> None:
        self._assembler = assembler
        self._results = Results(assembler)
        self._tools = {context.id: context for context in assembler.contexts("tool")}
        self._taken: set[str] = set()
        messages = tuple(messages)
        self._answered = {call for each in messages for call in _named_in(each, _PROVIDER)}
        self._of_step = self._unnamed(
            {call for each in messages for call in _named_in(each, _CALL)}
        )

    def answers(self, message: _Message, step: str) -> Iterator[Answer]:
        """Give a message with its calls; those that it does not name stand behind it.

        An agent answers its own calls and goes on in the same message: what it says behind them is
        an answer of its own, since their results stand between.
        """
        parts: list[Part] = []
        ran = False
        for block in message.blocks:
            part = self._called(block, message) if block.get("type") == _CALL else block
            if part is None:
                continue
            if ran and not isinstance(part, Call):
                yield Answer(tuple(parts), message.source)
                parts, ran = [], False
            ran = ran or (isinstance(part, Call) and not part.native and _by_provider(block))
            parts.append(part)
        parts += [self._unblocked(each) for each in self._of_step.get(step, ())]
        yield Answer(tuple(parts), message.source)

    def without_message(
        self, messages: Mapping[str, _Message]
    ) -> dict[str, tuple[Position, list[Part]]]:
        """Give the calls of steps that have no message, and where the first of them stands."""
        return {
            step: (_called_at(contexts[0]), [self._unblocked(each) for each in contexts])
            for step, contexts in self._of_step.items()
            if step not in messages
        }

    def _unnamed(self, in_messages: set[str]) -> dict[str, list[Context]]:
        """Give the calls by step that were made and stand in no message; not those that were made
        inside of another call."""
        found: dict[str, list[Context]] = {}
        for call_id, context in self._tools.items():
            call = _dispatched(context)
            if call is None or call_id in in_messages or named(call, "parent_call_id"):
                continue
            step = self._step_of(call_id, context, call)
            if step is not None and named(call, "name"):
                found.setdefault(step, []).append(context)
        for contexts in found.values():
            contexts.sort(key=_called_at)
        return found

    def _step_of(self, call_id: str, context: Context, call: Object) -> str | None:
        if is_int(call.get("turn")) and is_int(call.get("step")):
            return f"{call['turn']}.{call['step']}"
        place = self._assembler.location("tool", call_id)
        return None if place is None or place.step is None else f"{place.turn}.{place.step}"

    def _called(self, block: Object, message: _Message) -> Call | None:
        """Read a call of a message; None for one without id or name, or under an id of before."""
        call_id = named(block, "call_id")
        if call_id is None or call_id in self._taken:
            return None
        context = self._tools.get(call_id)
        call = _dispatched(context) or _NOTHING
        if named(block, "name") is None and named(call, "name") is None:
            return None
        self._taken.add(call_id)
        runs_its_own = named(message.source, "name") not in (None, *_AGENTS)
        native = (_by_provider(block) or _by_provider(call)) and (
            runs_its_own or call_id in self._answered
        )
        result = self._results.of(call_id, context, message.turn)
        return _call(block, call, result, native=native)

    def _unblocked(self, context: Context) -> Call:
        call = _dispatched(context) or _NOTHING
        place = self._assembler.location("tool", context.id)
        turn = None if place is None else place.turn
        return _call(call, call, self._results.of(context.id, context, turn))


def _call(told: Object, call: Object, result: Result, *, native: bool = False) -> Call:
    """Make a call of its block in the message and of its `tool/call`, as far as there are any."""
    text = told.get("arguments")
    raw = raw_of(told) or _NOTHING
    return Call(
        named(told, "call_id") or "",
        named(told, "name") or named(call, "name") or "",
        text if type(text) is str else "",
        text if type(text) is Object else _parsed(text),
        raw,
        result,
        named(told, "provider_call_id") or named(call, "provider_call_id"),
        named(told, "parent_call_id") or named(call, "parent_call_id"),
        native=native,
        signature=named(told, "signature"),
    )


def _named_in(message: _Message, kind: str) -> Iterator[str]:
    for block in message.blocks:
        call_id = named(block, "call_id")
        if block.get("type") == kind and call_id is not None:
            yield call_id


def _dispatched(context: Context | None) -> Object | None:
    state: ToolState | None = None if context is None else context.state
    return None if state is None else state.call


def _called_at(context: Context) -> Position:
    return next(match.position for match in context.matches if match.type == "tool/call")


def _by_provider(told: Object) -> bool:
    return named(told, "ran_by") == "provider"


def _parsed(text: Json) -> Object | None:
    if type(text) is not str:
        return None
    try:
        return freeze_object(complete(text))
    except (InvalidArguments, AssemblerError):
        return None
