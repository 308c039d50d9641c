"""`check_provider`: an adapter keeps its promises, whatever its provider's servers do.

It is shown example streams in every form, cut anywhere, broken off, and with spoilt fields. Not
here: those streams (`streams`), adapters (`providers`).
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from types import FrameType
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec import Struct

from assembler.codec import plain
from assembler.engine.assembler import Assembler
from assembler.engine.values import same
from definitions.answering import ended
from definitions.catalog import catalog
from definitions.events import DELTA_TYPES
from definitions.providers import Adapter, Call, Hint, Piece, Response
from definitions.testing.streams import (
    Given,
    Stream,
    blanked,
    kinds,
    spoilings,
    without_siblings,
)

__all__ = ["check_provider"]

Make = Callable[..., Adapter]

_ERROR = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
_REPEATED = 40
_CALLS_MAX = 2.2
_ODD: tuple[Any, ...] = (None, 7, True, -0.5, "", "?", "\ud83d", [], {}, [None], {"type": 7})


def check_provider(
    make: Make,
    streams: Iterable[Given],
    *,
    ends: Callable[[Mapping[str, Any]], bool] | None = None,
    error: Mapping[str, Any] = _ERROR,
    previews: bool = True,
    max_examples: int = 50,
) -> None:
    """Fail when an adapter breaks what it promises; one line in a test, a second or so a stream.

    `make(conversation=…, attempt=…, in_use=…)` gives a new adapter (its class will do). `streams`
    are examples of whole responses, short ones best: bytes as they come over the wire, or lists of
    decoded chunks; each kind of chunk and of call should be in one of them. Checked:

    - bytes say the same wherever they are cut; event streams, lines of JSON and decoded chunks do;
    - broken off anywhere, or followed by `error`, no call is ready. `ends(chunk)` says which chunk
      is the provider's word that the response is over; without it, whatever comes behind a response
      that is whole already may change none of its text and calls;
    - pieces are valid deltas, and the engine takes them: a call is announced with its name first,
      and again only under a longer or another name; no half characters; text and arguments that
      were told are those of the response (of arguments not with `previews` false: for servers that
      send all so far each time), or a `block-end` says what they are;
    - call ids are there, unique, kept on replay, and new where they are in use;
    - `finish` says the same again, and nothing is taken behind it;
    - no field that is missing, null, repeated or of a wrong type raises, and it costs no sibling;
    - twice as many chunks cost at most 2.2 times the calls of functions.

    Raises `AssertionError` with a sentence, of spoilt chunks with the smallest example found;
    `ValueError` for examples that cannot be read.

        def test_my_provider():
            check_provider(MyProvider, [STREAM.read_bytes(), [{"type": "start"}, …]])
    """
    for example in streams:
        stream = Stream.of(example)
        check = _Check(make, stream, ends, error, previews)
        check.forms_and_cuts()
        check.breaks()
        check.replays()
        check.costs()
        check.siblings()
        check.spoilt(max_examples)


class _Reading(Struct, frozen=True):
    """What an adapter made of a stream."""

    pieces: list[Piece]
    hints: list[Hint]
    response: Response

    @property
    def told(self) -> str:
        """All of it as one text, for comparing."""
        pieces = [[piece.type, piece.data] for piece in self.pieces]
        hints = [[hint.call_id, hint.name, hint.arguments] for hint in self.hints]
        return json.dumps(plain([pieces, hints])) + self.response_told

    @property
    def response_told(self) -> str:
        response = self.response
        return json.dumps(
            plain(
                {
                    "why": response.why,
                    "message_id": response.message_id,
                    "content": response.content,
                    "said": response.said,
                    "stop": [response.stop_reason, response.stop_detail],
                    "usage": response.usage,
                    "source": response.source,
                    "calls": [call.to_json() for call in response.calls],
                    "ran": [[ran.type, ran.data] for ran in response.ran],
                    "incidents": [[odd.kind, odd.call_id] for odd in response.incidents],
                    "error": response.error,
                }
            )
        )

    @property
    def gist(self) -> tuple[Any, ...]:
        """What must stand once a response is whole: its text, its calls, why it stopped."""
        response = self.response
        calls = [(call.call_id, call.name, call.arguments_text) for call in response.calls]
        return _texts(response), calls, response.stop_detail

    @property
    def calls(self) -> Counter[tuple[Any, ...]]:
        """Its calls, whatever their ids."""
        calls = self.response.calls
        return Counter((call.name, call.arguments_text, call.ready) for call in calls)

    @property
    def names(self) -> Counter[tuple[Any, ...]]:
        return Counter((call.name,) for call in self.response.calls)


def _read(make: Make, chunks: Iterable[Any], when: str, **envelope: Any) -> _Reading:
    """Read a stream; `when` says which, for the sentence when it goes wrong."""
    pieces: list[Piece] = []
    hints: list[Hint] = []
    step = "a new adapter"
    try:
        reads = make(**{"conversation": "c1", "attempt": "a1", **envelope})
        for at, chunk in enumerate(chunks):
            step = f"feed of part {at} ({_short(chunk)})"
            pieces += reads.feed(chunk)
            hints += reads.hints()
        step = "finish"
        response = reads.finish()
        hints += reads.hints()
        step = "finish, asked again,"
        again = reads.finish()
    except Exception as fault:
        msg = f"{when}: {step} raised {type(fault).__name__}: {fault}"
        raise AssertionError(msg) from fault
    reading = _Reading(pieces, hints, response)
    assert _Reading(pieces, hints, again).told == reading.told, (
        f"{when}: finish, asked again, says something else"
    )
    return reading


class _Check:
    """One example stream, and what an adapter must make of it."""

    def __init__(
        self,
        make: Make,
        stream: Stream,
        ends: Callable[[Mapping[str, Any]], bool] | None,
        error: Mapping[str, Any],
        previews: bool,
    ) -> None:
        self.make = make
        self.stream = stream
        self.ends = ends
        self.error = error
        self.whole = _read(make, stream.decoded, "the stream as decoded chunks")
        _check_valid(self.whole, "the stream as decoded chunks")
        _check_told(self.whole, previews)

    def forms_and_cuts(self) -> None:
        for what, parts in self.stream.forms():
            self._check_same(f"the stream as {what}", parts, self.whole, "as decoded chunks")
        uncut = _read(self.make, [self.stream.wire], "the stream as bytes")
        assert uncut.response_told == self.whole.response_told, (
            f"the stream as bytes says something else than as decoded chunks: "
            f"{_difference(self.whole.response_told, uncut.response_told)}"
        )
        for what, parts in self.stream.cuts():
            self._check_same(f"the stream {what}", parts, uncut, "uncut")

    def _check_same(self, what: str, parts: list[Any], expected: _Reading, than: str) -> None:
        told = _read(self.make, parts, what).told
        assert told == expected.told, (
            f"{what} says something else than {than}: {_difference(expected.told, told)}"
        )

    def breaks(self) -> None:
        """Whatever comes first: an end in the middle, or an error."""
        decoded = self.stream.decoded
        for count in self.stream.ends():
            when = f"broken off behind {count} of {len(decoded)} chunks"
            self._check_broken(_read(self.make, decoded[:count], when), count, when)
        for count in (*self.stream.ends(), len(decoded)):
            when = f"followed by an error behind {count} of {len(decoded)} chunks"
            reading = _read(self.make, [*decoded[:count], self.error], when)
            _check_none_ready(reading, when)
            assert not reading.response.whole, f"{when}: the response is whole all the same"

    def _check_broken(self, reading: _Reading, count: int, when: str) -> None:
        if self.ends is not None:
            told = self.stream.chunks[:count]
            if not any(chunk.is_last_word or self.ends(chunk.data or {}) for chunk in told):
                _check_none_ready(reading, when)
        elif reading.response.whole:
            assert reading.gist == self.whole.gist, (
                f"{when}: the response is whole, but what follows changes it: "
                f"{_difference(str(self.whole.gist), str(reading.gist))}"
            )
        else:
            _check_none_ready(reading, when)

    def replays(self) -> None:
        decoded = self.stream.decoded
        again = _read(self.make, decoded, "the stream, read again")
        assert again.told == self.whole.told, (
            "the stream, read again, says something else: "
            + _difference(self.whole.told, again.told)
        )
        self._check_ids(frozenset(call.provider_call_id for call in self.whole.response.calls))
        reads = self.make(conversation="c1", attempt="a1")
        for chunk in decoded:
            reads.feed(chunk)
        before = _Reading([], [], reads.finish()).told
        late = [piece for chunk in decoded for piece in reads.feed(chunk)]
        assert not late, "feed behind finish gives pieces"
        after = _Reading([], [], reads.finish()).told
        assert before == after, "what is fed behind finish changes the response"
        empty: tuple[Any, ...] = (None, b"", "", [])
        for nothing in empty:
            assert not self.make().feed(nothing), f"feed({nothing!r}) gives pieces"

    def _check_ids(self, in_use: Container[str | None]) -> None:
        when = "the stream, its call ids in use elsewhere"
        reading = _read(self.make, self.stream.decoded, when, in_use=in_use)
        _check_valid(reading, when)
        for call in reading.response.calls:
            assert call.call_id not in in_use, f"{when}: {call.call_id!r} is used again"
        assert reading.calls == self.whole.calls, f"{when}: its calls are other ones"

    def costs(self) -> None:
        """Linear, whichever kind of chunk comes again and again; counted in calls of functions."""
        decoded = self.stream.decoded

        def cost(at: int, times: int) -> int:
            chunks = [*decoded[:at], *[decoded[at]] * times, *decoded[at + 1 :]]
            reads = self.make(conversation="c1", attempt="a1")
            return _calls(lambda: ([reads.feed(chunk) for chunk in chunks], reads.finish()))

        for at in kinds(self.stream):
            once, some, more = (cost(at, times) for times in (1, _REPEATED, 2 * _REPEATED))
            assert more - once <= _CALLS_MAX * (some - once) + 50, (
                f"not linear: chunk {at} {_REPEATED} times costs {some - once} calls more, "
                f"{2 * _REPEATED} times {more - once} ({_short(decoded[at])})"
            )

    # -- spoilt chunks ---------------------------------------------------------------------

    def siblings(self) -> None:
        """What says nothing costs nothing: a chunk whose fields are all odd, an odd entry."""
        for at in kinds(self.stream):
            chunk = self.stream.chunks[at].data
            self._check_siblings(at, [], [blanked(chunk, odd) for odd in _ODD])
            for rest, put in without_siblings(chunk):
                self._check_siblings(at, [rest], [put(odd) for odd in _ODD])

    def _check_siblings(self, at: int, rest: list[Any], spoilt: list[Any]) -> None:
        """Whatever stands in the place of a chunk, all that is there with `rest` there stays.

        Where it is no call alone that is odd, but a part of one, that one may become another.
        """
        before, after = self.stream.decoded[:at], self.stream.decoded[at + 1 :]
        without = _read(self.make, [*before, *rest, *after], f"chunk {at} left out")
        is_call = bool(rest) and without.names != self.whole.names
        for chunk in spoilt:
            when = f"chunk {at} spoilt ({_short(chunk)})"
            reading = _read(self.make, [*before, chunk, *after], when)
            lost = without.calls - reading.calls if is_call else without.names - reading.names
            assert not lost, f"{when}: it costs {_named(lost)}, which is none of its own"
            _check_same_text(without.response, reading.response, when)

    def spoilt(self, max_examples: int) -> None:
        @settings(
            max_examples=max_examples,
            deadline=None,
            database=None,
            derandomize=True,
            report_multiple_bugs=False,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        )
        @given(spoilings(self.stream), st.binary(max_size=8), st.floats(0, 1))
        def check(chunks: list[Any], noise: bytes, place: float) -> None:
            reading = _read(self.make, chunks, "with spoilt fields")
            _check_valid(reading, "with spoilt fields")
            data = self.stream.wire
            at = int(place * len(data))
            when = f"with {noise!r} at byte {at}"
            _check_valid(_read(self.make, [data[:at], noise, data[at:]], when), when)

        check()


# -- what must hold of every reading -------------------------------------------------------


def _check_valid(reading: _Reading, when: str) -> None:
    names: dict[str, str] = {}
    for piece in reading.pieces:
        _check_piece(piece, names, when)
    _check_calls(reading.response.calls, when)
    ids = {call.call_id for call in reading.response.calls}
    for call_id in names:
        assert call_id in ids, f"{when}: {call_id!r} was announced, and is no call of the response"
    for hint in reading.hints:
        assert hint.call_id in ids, f"{when}: a hint names {hint.call_id!r}, which is no call"
    assert reading.response.message_id, f"{when}: the message has no id"
    _check_encodable(reading.response.content, when)
    _fold(reading, when)


def _check_piece(piece: Piece, names: dict[str, str], when: str) -> None:
    said = f"{when}: {piece.type} {_short(piece.data)}"
    assert piece.type in DELTA_TYPES, f"{said}: no type of a delta"
    _check_encodable(piece.data, said)
    if piece.type in ("text", "reasoning"):
        assert isinstance(piece.data.get("text"), str), f"{said}: it has no text"
    if piece.type != "tool-call":
        return
    call_id, name = piece.data.get("call_id"), piece.data.get("name")
    assert isinstance(call_id, str), f"{said}: a piece of a call without its call_id"
    assert call_id, f"{said}: a piece of a call with an empty call_id"
    assert isinstance(piece.data.get("arguments"), str), f"{said}: its arguments are no text"
    if call_id not in names:
        assert name, f"{said}: the first piece of a call does not announce its name"
    elif name is not None:
        assert name != names[call_id], f"{said}: announced twice"
    if name is not None:
        names[call_id] = name


def _check_encodable(value: Any, said: str) -> None:
    try:
        json.dumps(plain(value), ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        raise AssertionError(f"{said}: half a surrogate pair") from None
    except (TypeError, ValueError) as fault:
        raise AssertionError(f"{said}: no JSON ({fault})") from None


def _check_calls(calls: Sequence[Call], when: str) -> None:
    seen: set[str] = set()
    for call in calls:
        assert call.call_id, f"{when}: a call without an id"
        assert call.call_id not in seen, f"{when}: two calls with the id {call.call_id!r}"
        seen.add(call.call_id)
        assert call.ready is (call.why is None), (
            f"{when}: {call.call_id!r} is ready: {call.ready}, and why not: {call.why}"
        )
        assert not call.ready or (isinstance(call.arguments, dict) and call.name), (
            f"{when}: {call.call_id!r} is ready without a name, or without arguments"
        )


def _check_none_ready(reading: _Reading, when: str) -> None:
    ready = [call.call_id for call in reading.response.calls if call.ready]
    assert not ready, f"{when}: {', '.join(ready)} is ready"


def _fold(reading: _Reading, when: str) -> None:
    """Give the engine all of it, as a backend does; whatever a Definition raises is raised."""
    assembler = Assembler(catalog(), strict=True)
    place = {"turn": 1, "step": 1}
    try:
        assembler.append({"seq": 1, "type": "turn/start", "data": {"turn": 1}})
        assembler.append({"seq": 2, "type": "step/start", "data": place})
        for ordinal, piece in enumerate(reading.pieces):
            at = {"attempt": "a1", **place, "ordinal": ordinal, "index": ordinal + 1, "after": 2}
            assembler.emit({**at, "type": piece.type, "data": piece.data})
        assembler.flush()
        ending = ended(reading.response, 1, 1)
        for seq, draft in enumerate(ending.drafts, 3):
            assembler.append({"seq": seq, "type": draft.type, "data": draft.data})
        assembler.settle("a1", ending.outcome)
        assembler.flush()
    except Exception as fault:
        msg = f"{when}: the engine refuses it with {type(fault).__name__}: {fault}"
        raise AssertionError(msg) from fault


def _check_told(reading: _Reading, previews: bool) -> None:
    """What was told while the answer was written is what the response says."""
    told: dict[tuple[str, Any], str] = {}
    replaced: dict[str, str] = {}
    for piece in reading.pieces:
        data = piece.data
        if piece.type in ("text", "reasoning"):
            key = (piece.type, data.get("block"))
            told[key] = told.get(key, "") + data["text"]
        elif piece.type == "tool-call":
            key = (piece.type, data["call_id"])
            told[key] = told.get(key, "") + data["arguments"]
        elif piece.type == "block-end" and "arguments" in (data.get("value") or {}):
            replaced[data["value"]["call_id"]] = data["value"]["arguments"]
    shown = [(kind, text) for (kind, _), text in told.items() if kind != "tool-call" and text]
    settled = _texts(reading.response)
    assert Counter(shown) == Counter(settled), (
        f"the text that was told is not that of the response: "
        f"{_difference(str(settled), str(shown))}"
    )
    for call in reading.response.calls if previews else ():
        text = told.get(("tool-call", call.call_id))
        text = replaced.get(call.call_id, text)
        assert text is None or (text or "{}") == (call.arguments_text or "{}"), (
            f"the arguments of {call.call_id!r} that were told ({_short(text)}) are not those of "
            f"the response ({_short(call.arguments_text)}), and no block-end says so"
        )
    for hint in reading.hints:
        for call in reading.response.calls:
            if call.call_id == hint.call_id and call.ready:
                assert same(call.arguments, hint.arguments), (
                    f"the hint of {call.call_id!r} has other arguments than the call"
                )


def _texts(response: Response) -> list[tuple[str, str]]:
    """The text and reasoning of the message, block by block."""
    return [
        (str(block["type"]), str(block["text"]))
        for block in response.content
        if block.get("type") in ("text", "reasoning") and block.get("text")
    ]


def _check_same_text(expected: Response, response: Response, when: str) -> None:
    for kind in ("text", "reasoning"):
        one, other = (
            "".join(text for type_, text in _texts(each) if type_ == kind)
            for each in (expected, response)
        )
        assert one == other, f"{when}: it changes the {kind}: {_difference(one, other)}"


def _named(calls: Iterable[tuple[Any, ...]]) -> str:
    return ", ".join(" ".join(map(str, call[:2])) for call in calls)


def _short(value: Any) -> str:
    told = repr(vars(value) if hasattr(value, "__dict__") else value)
    return told if len(told) <= 120 else f"{told[:117]}…"  # noqa: PLR2004 - one line


def _difference(expected: str, got: str) -> str:
    """Give the first place where two texts part."""
    at = next(
        (at for at, (one, other) in enumerate(zip(expected, got, strict=False)) if one != other),
        min(len(expected), len(got)),
    )
    start = max(0, at - 40)
    return f"…{expected[start : at + 40]}… became …{got[start : at + 40]}…"


def _calls(run: Callable[[], object]) -> int:
    """How many calls of functions it makes: the same on any machine."""
    count = 0

    def tell(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(tell)
    try:
        run()
    finally:
        sys.setprofile(before)
    return count
