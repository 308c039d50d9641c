"""An answer under construction: its blocks in order, its calls, and how it ends.

Every format is a thin mapping onto `Answer`. Here are decided, once for all of them: what is told
while the answer is written, the identity of its calls, when a call is announced, what its arguments
are, and whether the response is whole. Not here: reading chunks (`chunks`, the adapters), which
calls are ready in the end (`settling`), what follows in the log (`definitions.answering`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from assembler.engine.values import Json, freeze_object, same
from definitions.ids import CallIds
from definitions.providers.blocks import Block, CallBlock, FileBlock, RawBlock, TextBlock
from definitions.providers.outcome import Call, Hint, Piece, RanBy, Response, Why
from definitions.providers.reading import plain, text, whole
from definitions.providers.settling import calls_of, content_of, incidents_of, ran_of, said_of
from definitions.providers.witnesses import as_text, key_of

__all__ = ["Answer"]

_CUT: Mapping[str, Why] = {
    "length": "length",
    "content_filter": "content-filter",
    "refusal": "content-filter",
}
"""Stop reasons of an answer that is shorter than it should be."""

_SOME_FILE = "application/octet-stream"


class _Namesakes:
    """The calls of one answer that the provider gave one id: how many are open, what was said."""

    __slots__ = ("names", "open")

    def __init__(self) -> None:
        self.open = 0
        self.names: dict[str, set[str]] = {}

    def is_said(self, call: CallBlock, told: str) -> bool:
        """Whether one of them has the same complete arguments and the same name."""
        names = self.names.get(told, ())
        return bool(names) and (not call.name or call.name in names)


class Answer:
    """What one response is so far. Every call costs what it adds; `settle` the answer once.

    `pieces` and `hints` are what has come about since somebody took them. What is passed in is
    checked here, so that an adapter may pass any field as it came.
    """

    __slots__ = (
        "_calls",
        "_lost",
        "_marked",
        "_namesakes",
        "blocks",
        "broken",
        "ended",
        "error",
        "failed",
        "hints",
        "ids",
        "pieces",
        "provider",
        "source",
        "stop_detail",
        "stop_reason",
        "usage",
    )

    def __init__(self, provider: str, ids: CallIds) -> None:
        self.provider = provider
        self.ids = ids
        self.blocks: list[Block] = []
        self.pieces: list[Piece] = []
        self.hints: list[Hint] = []
        self.usage: Json = None
        self.source: dict[str, Json] = {"name": provider}
        self.stop_reason: str | None = None
        self.stop_detail: str | None = None
        self.error: Json = None
        self.failed = False
        self.broken = False
        """Something could not be read, and the response went on: there is a hole."""
        self.ended = False
        self._lost = False
        self._marked = False
        """Something was said that whatever goes on takes back, or makes a hole."""
        self._calls = 0
        self._namesakes: dict[str, _Namesakes] = {}

    # -- text, reasoning, and what we keep as it is ----------------------------------------

    def open_text(self, type: str = "text") -> TextBlock:
        """Begin a new block of `text` or `reasoning`."""
        block = TextBlock(len(self.blocks), type)
        self._begin(block, type)
        return block

    def flow(self, value: object, type: str = "text") -> None:
        """Add to the newest block when it is of this type and open, else to a new one.

        For formats whose text has no blocks: text behind a call is a new block.
        """
        if not (isinstance(value, str) and value):
            return
        last = self.blocks[-1] if self.blocks else None
        if not (isinstance(last, TextBlock) and last.type == type and not last.closed):
            last = self.open_text(type)
        self.say(last, value)

    def say(self, block: TextBlock, value: object) -> None:
        """Add a fragment to a block."""
        if not (isinstance(value, str) and value):
            return
        if self._marked:
            self.goes_on()
        fragment = block.halves.take(value)
        if fragment:
            self._tell(block, fragment)

    def say_whole(self, block: TextBlock, value: object) -> None:
        """Learn all of a block's text at once: what is missing at its end is added, no more."""
        told = text(value)
        if len(told) > block.length and told.startswith("".join(block.fragments)):
            block.halves.rest()  # half a character that waited is whole in here
            self.say(block, told[block.length :])

    def _tell(self, block: TextBlock, fragment: str) -> None:
        block.fragments.append(fragment)
        block.length += len(fragment)
        self.pieces.append(Piece(block.type, {"block": block.number, "text": fragment}))

    def keep(self, raw: Mapping[str, Any]) -> RawBlock:
        """Begin a block that is kept as it is; until it is closed its `raw` may grow."""
        block = RawBlock(len(self.blocks), self.provider, raw)
        self._begin(block, "provider")
        return block

    def attach(self, media_type: object, **place: object) -> FileBlock:
        """Take a file of the answer: its `data`, or its `url`; what is None is left out."""
        fields = {"media_type": text(media_type) or _SOME_FILE, **place}
        told = {name: value for name, value in fields.items() if value is not None}
        block = FileBlock(len(self.blocks), self.provider, told)
        self._begin(block, "file")
        self.close(block)
        return block

    def keep_result(
        self, hint: object, raw: Mapping[str, Any], content: Json, *, is_error: bool
    ) -> RawBlock:
        """Take the result of a call that the provider ran; `content` are blocks.

        It is shown at its call, so that nothing of it is told as a part of the answer's text.
        """
        block = RawBlock(len(self.blocks), self.provider, raw)
        named = text(hint)
        block.call = self.ids.find(named) or named or None
        block.content, block.is_error = content, is_error
        self.goes_on()
        self.blocks.append(block)
        return block

    def _begin(self, block: TextBlock | RawBlock, type: str) -> None:
        self.goes_on()
        self.blocks.append(block)
        self._emit("block-start", {"block": block.number, "block_type": type})

    # -- calls -----------------------------------------------------------------------------

    def open_call(
        self,
        *,
        hint: object = None,
        name: object = None,
        parent: object = None,
        ran_by: RanBy = "host",
    ) -> CallBlock:
        """Begin a call. `parent`: the provider's id of the call that it is made inside of."""
        call = CallBlock(len(self.blocks), self._calls, ran_by)
        self._calls += 1
        self.blocks.append(call)
        parent_hint = text(parent)
        call.parent = self.ids.find(parent_hint) or parent_hint
        self.identify(call, hint=hint, name=name)
        return call

    def identify(self, call: CallBlock, *, hint: object = None, name: object = None) -> None:
        """Learn the provider's id and the whole name of a call; what is known says nothing.

        The first id stays, a later name replaces an earlier one.
        """
        hinted, named = text(hint), text(name)
        if not ((hinted and not call.hint) or (named and named != call.name)):
            return
        self.goes_on()
        if hinted and not call.hint:
            call.hint = hinted
            call.doubted = hinted in self._namesakes
            self._namesakes.setdefault(hinted, _Namesakes()).open += not call.closed
        call.name = named or call.name
        self._announce(call)

    def own_id(self, call: CallBlock) -> None:
        """Give a call that has no id one of ours now: for formats where none can follow."""
        if call.id is None and not call.hint:
            call.id = self.ids.mint(call.place)
            self._announce(call)
            self._flush_unsent(call)

    def name_more(self, call: CallBlock, value: object) -> None:
        """Learn a name that may come in pieces, or whole each time."""
        piece = text(value)
        if piece and piece != call.name:
            self.identify(call, name=piece if piece.startswith(call.name) else call.name + piece)

    def argue(self, call: CallBlock, value: object) -> None:
        """Add a piece of the arguments; what is no text (an object) is all of them."""
        if not isinstance(value, str):
            self.argue_whole(call, value)
        elif value:
            if self._marked:
                self.goes_on()
            self._argue(call, call.halves.take(value))

    def _argue(self, call: CallBlock, piece: str) -> None:
        if not piece:
            return
        call.pieces.append(piece)
        call.verdict = None
        if call.id is None:
            call.unsent.append(piece)
        else:
            self._emit_call(call, piece)

    def argue_whole(self, call: CallBlock, value: object) -> None:
        """Learn all the arguments at once, as text or as an object: one more witness."""
        told = as_text(value)
        if not told:
            return
        self.goes_on()
        told = whole(told)
        if not call.pieces and not call.snapshots:
            call.unsent.append(told)
            call.snapshot_told = True
        call.snapshots.append(told)
        call.verdict = None
        if call.id is not None:
            self._flush_unsent(call)

    def argue_instead(self, call: CallBlock, value: object) -> None:
        """Learn all the arguments at once, in the place of the pieces: those were a preview."""
        call.is_preview = True
        call.verdict = None
        self.argue_whole(call, value)

    def close(self, block: Block) -> None:
        """The provider says that nothing more belongs to this block."""
        if block.closed:
            return
        block.closed = True
        if isinstance(block, CallBlock):
            self._close_call(block)
        elif isinstance(block, TextBlock):
            rest = block.halves.rest()
            if rest:
                self._tell(block, rest)
            if block.type == "text" and block.extra:
                self._emit("block-end", {"block": block.number, "value": block.value()})
        elif block.call is None:
            self._emit("block-end", {"block": block.number, "value": block.value()})

    def close_all(self) -> None:
        """Close what is open: for formats whose blocks end with the response."""
        for block in self.blocks:
            self.close(block)

    def _close_call(self, call: CallBlock) -> None:
        self._argue(call, call.halves.rest())
        verdict = call.judge()
        if call.hint:
            self._namesakes[call.hint].open -= 1
        self._tell_apart(call)
        if call.repeats:
            return
        self._announce(call)
        if call.id is None:
            return
        told = [*(call.snapshots[:1] if call.snapshot_told else ()), *call.pieces]
        if verdict.text != "".join(told):  # the preview was wrong
            value = {"type": "tool-call", "call_id": call.id, "name": call.name}
            whole_block = {**value, "arguments": verdict.text}
            self._emit("block-end", {"block": call.number, "value": whole_block})
        if verdict.arguments is not None and call.ran_by == "host" and not self._is_lost:
            self.hints.append(Hint(call.id, call.name, verdict.arguments))

    def _tell_apart(self, call: CallBlock) -> None:
        """Decide about a second call under one id: the first one once more, or another one.

        Nothing is decided before all calls under that id are closed.
        """
        if not call.hint or not call.closed:
            return
        namesakes = self._namesakes[call.hint]
        arguments = call.judge().arguments
        told = None if arguments is None else key_of(arguments)
        if call.doubted:
            if namesakes.open:
                return
            call.doubted = False
            call.repeats = told is not None and namesakes.is_said(call, told)
        if told is not None:
            namesakes.names.setdefault(told, set()).add(call.name)

    def _announce(self, call: CallBlock) -> None:
        """Tell of a call as soon as its id and its name are known, and it is not another one's."""
        if call.id is not None:
            if call.name != call.told_name:
                self._emit_call(call, "")
            return
        if call.hint and call.name and not (call.doubted or call.repeats):
            call.id = self.ids.claim(call.hint, call.place)
            self._emit_call(call, "")
            self._flush_unsent(call)

    def _flush_unsent(self, call: CallBlock) -> None:
        if call.unsent:
            self._emit_call(call, "".join(call.unsent))
            call.unsent = []

    def _emit_call(self, call: CallBlock, fragment: str) -> None:
        data: dict[str, Any] = {"block": call.number, "call_id": call.id}
        if call.name != call.told_name:
            data["name"] = call.told_name = call.name
            if call.parent:
                data["parent_call_id"] = call.parent
        data["arguments"] = fragment
        self._emit("tool-call", data)

    # -- usage and the end -----------------------------------------------------------------

    def count(self, usage: Mapping[str, int | None], raw: Mapping[str, Any]) -> None:
        """Learn the usage so far; `raw` is the provider's own."""
        told = {name: number for name, number in usage.items() if number is not None}
        counted = freeze_object({**told, "raw": plain(raw)})
        if self.usage is None or not same(counted, self.usage):
            self.usage = counted
            self._emit("usage", {"usage": counted})

    def name(self, **fields: object) -> None:
        """Learn what the provider calls this response: `message_id`, `model`, what it needs back.

        What is empty says nothing; of two values the later counts.
        """
        for field, value in fields.items():
            if value and not (type(value) is str and self.source.get(field) == value):
                self.source[field] = plain(value)

    def stop(self, reason: str, detail: object = None) -> None:
        """Learn why it stopped, in our word and the provider's. The last word counts."""
        self._marked = True
        self.stop_reason = reason
        self.stop_detail = text(detail) or None

    def end(self) -> None:
        """The provider says that the response is whole. Whatever follows takes it back."""
        self._marked = True
        self.broken = self.broken or self._lost
        self.ended = True

    def goes_on(self) -> None:
        """Something comes: an end that was marked before it was none."""
        self._marked = False
        self.broken = self.broken or self._lost
        self.ended = False
        self.stop_reason = self.stop_detail = None

    def lose(self) -> None:
        """A chunk could not be read. Behind the end it costs nothing, if it was the last."""
        self._marked = self._lost = True

    def fail(self, error: object = None) -> None:
        """The provider says that the response failed."""
        self.failed = True
        self.error = plain(error)

    @property
    def why(self) -> Why | None:
        """Why the response is not whole, as far as it has come."""
        cut = _CUT.get(self.stop_reason or "")
        if cut is not None:
            return cut
        if self.failed:
            return "stream-error"
        if not self.ended:
            return "no-terminal"
        return "stream-error" if self.broken else None

    @property
    def _is_lost(self) -> bool:
        """Whether it is certain already that no call of it will run."""
        return self.failed or self.stop_reason in _CUT

    def settle(self) -> Response:
        """Nothing follows: say what the response was."""
        why = self.why
        for block in self.blocks:
            if isinstance(block, TextBlock):
                block.fragments.append(block.halves.rest())
            elif isinstance(block, CallBlock):
                self._argue(block, block.halves.rest())
        blocks = self._identified()
        calls = calls_of(blocks, why)
        return Response(
            why=why,
            message_id=self.ids.mint("message"),
            content=content_of(blocks, calls),
            said=said_of(blocks),
            stop_reason=self._reason(calls.values()),
            stop_detail=self.stop_detail,
            usage=self.usage,
            source=freeze_object(self.source),
            calls=tuple(calls.values()),
            ran=ran_of(blocks, calls),
            incidents=incidents_of(blocks, calls) if why is None else (),
            error=self.error,
        )

    def _identified(self) -> list[Block]:
        """Give every call its id; leave out those that are nothing, or another one once more."""
        kept: list[Block] = []
        for block in self.blocks:
            if isinstance(block, CallBlock):
                if block.is_nothing:
                    continue
                if block.doubted:
                    self._tell_apart(block)
                if block.repeats:
                    continue
                if block.id is None:
                    block.id = self.ids.claim(block.hint, block.place)
            kept.append(block)
        return kept

    def _reason(self, calls: Iterable[Call]) -> str:
        """Content decides whether there are calls; the label says the rest."""
        reason = self.stop_reason or "other"
        if reason in ("end_turn", "tool_use", "other"):
            if any(call.ran_by == "host" for call in calls):
                return "tool_use"
            return "end_turn" if reason == "tool_use" else reason
        return reason

    def _emit(self, type: str, data: Mapping[str, Any]) -> None:
        self.pieces.append(Piece(type, data))
