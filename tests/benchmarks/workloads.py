"""What is measured on: the JSON lines of streams, calls and logs, made here and nowhere read.

Everything is made from numbers alone, so that any two runs have the same bytes. Not here: what
is done with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import json

__all__ = ["TURN", "Log", "argument", "calls", "opened", "short_log", "stream", "text"]

WORDS = ("the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog", "and", "rests")
STARTED = 1_760_000_000_000

encode = json.encode


def _event(seq: int, type_: str, **data: Any) -> bytes:
    return encode({"seq": seq, "type": type_, "time": STARTED + seq * 100, "data": data})


def opened(seq: int = 1, turn: int = 1) -> list[bytes]:
    """The two events that open a turn and its first step."""
    return [_event(seq, "turn/start", turn=turn), _event(seq + 1, "step/start", turn=turn, step=1)]


class Attempt:
    """Writes the deltas of one attempt, line by line."""

    def __init__(self, name: str, after: int, *, index: int = 1, **place: int) -> None:
        self.fields = {"attempt": name, "turn": 1, "step": 1, "number": 1, **place}
        self.after, self.index, self.ordinal = after, index, 0

    def delta(self, type_: str, data: Mapping[str, Any]) -> bytes:
        line = encode(
            {
                **self.fields,
                "ordinal": self.ordinal,
                "after": self.after,
                "index": self.index,
                "time": STARTED + self.index * 10,
                "type": type_,
                "data": data,
            }
        )
        self.ordinal += 1
        self.index += 1
        return line


def word(number: int) -> str:
    return f" {WORDS[number % len(WORDS)]}"


def text(count: int, attempt: Attempt | None = None) -> list[bytes]:
    """One long text: `count` deltas of a word each."""
    attempt = attempt or Attempt("a1", 2)
    return [attempt.delta("text", {"block": 0, "text": word(at)}) for at in range(count)]


def stream(count: int, name: str, after: int, index: int, **place: int) -> list[bytes]:
    """One long text of a named attempt at a named place."""
    return text(count, Attempt(name, after, index=index, **place))


def argument(count: int) -> list[bytes]:
    """One long argument: a path, then a content that grows by a word, now and then by an escape."""
    attempt = Attempt("a1", 2)
    data: dict[str, Any] = {"block": 0, "call_id": "call_000001"}
    head = {**data, "name": "write_file", "arguments": '{"path":"src/page.html","content":"'}
    lines = [attempt.delta("tool-call", head)]
    for at in range(1, count):
        piece = "\\n" if at % 32 == 0 else word(at)
        lines.append(attempt.delta("tool-call", {**data, "arguments": piece}))
    return lines


def _call(attempt: Attempt, call_id: str, block: int) -> Iterator[bytes]:
    data = {"block": block, "call_id": call_id}
    yield attempt.delta("tool-call", {**data, "name": "read_file", "arguments": ""})
    for piece in ('{"path":', '"src/', f'{call_id}.py"}}'):
        yield attempt.delta("tool-call", {**data, "arguments": piece})


def calls(count: int, at_once: int = 10) -> list[list[tuple[str, bytes]]]:
    """Live calls of eight items each, `at_once` in a step: one list of lines per step.

    Four deltas of arguments, the call, two deltas of output, the result. Between the steps stand
    the events that open and close them.
    """
    steps, seq = [], 2
    lines = [("event", _event(1, "turn/start", turn=1))]
    for step in range(1, count // at_once + 1):
        lines.append(("event", _event(seq, "step/start", turn=1, step=step)))
        ids = [f"call_{step:06}_{at:02}" for at in range(at_once)]
        lines += _step_of_calls(step, ids, seq)
        seq += 2 * at_once + 1
        lines.append(("event", _event(seq, "step/end", turn=1, step=step)))
        steps.append(lines)
        lines, seq = [], seq + 1
    return steps


def _step_of_calls(step: int, ids: list[str], seq: int) -> Iterator[tuple[str, bytes]]:
    attempt = Attempt(f"a{step}", seq, step=step)
    for block, call_id in enumerate(ids):
        yield from (("delta", line) for line in _call(attempt, call_id, block))
    for call_id in ids:
        seq += 1
        text_ = f'{{"path":"src/{call_id}.py"}}'
        data = {"turn": 1, "step": step, "call_id": call_id, "name": "read_file"}
        yield "event", _event(seq, "tool/call", **data, arguments=text_)
    output = Attempt(f"o{step}", seq, index=attempt.index, step=step, number=0)
    for call_id in ids:
        for piece in ("one line\n", "another line\n"):
            yield "delta", output.delta("tool-output", {"call_id": call_id, "text": piece})
        seq += 1
        output.after = seq
        content = [{"type": "text", "text": f"what stands in {call_id}"}]
        yield "event", _event(seq, "tool/result", call_id=call_id, content=content)


TURN = 14
"""Events of one turn of a log."""


class Log:
    """A durable log of `count` events, about 185 bytes each, made turn by turn when read."""

    def __init__(self, count: int) -> None:
        self.count = count

    def lines(self, first: int, last: int) -> list[bytes]:
        """The lines of the seqs `first` to `last`."""
        found: list[bytes] = []
        for turn in range((first - 1) // TURN, (last - 1) // TURN + 1):
            found += _turn(turn)
        skip = (first - 1) % TURN
        return found[skip : skip + last - first + 1]

    def pages(self, size: int) -> Iterator[tuple[list[bytes], bool]]:
        """Pages of `size`, the newest first, and whether older ones exist."""
        last = self.count
        while last > 0:
            first = max(1, last - size + 1)
            yield self.lines(first, last), first > 1
            last = first - 1


def short_log() -> list[bytes]:
    """One turn."""
    return _turn(0)


def _turn(number: int) -> list[bytes]:
    """A turn of two steps: two calls with their results, then the answer."""
    turn, seq = number + 1, number * TURN + 1
    events: list[tuple[str, dict[str, Any]]] = [("turn/start", {"turn": turn})]
    events += _input(turn)
    events += _working_step(turn)
    events += _answering_step(turn)
    events.append(("turn/end", {"turn": turn, "reason": "completed"}))
    return [_event(seq + at, type_, **data) for at, (type_, data) in enumerate(events)]


def _sentence(number: int, words: int) -> str:
    return "".join(map(word, range(number, number + words))).strip()


def _input(turn: int) -> Iterator[tuple[str, dict[str, Any]]]:
    said = [{"type": "text", "text": _sentence(turn, 16)}]
    yield "user/message", {"message_id": f"msg_{turn:08}_user", "content": said}
    given = [{"type": "text", "text": _sentence(turn + 3, 12)}]
    source = {"kind": "environment"}
    yield (
        "user/message",
        {"message_id": f"msg_{turn:08}_note", "content": given, "source": source},
    )


def _usage(turn: int) -> dict[str, int]:
    return {"input_tokens": 1_000 + turn % 900, "output_tokens": 100 + turn % 90}


def _working_step(turn: int) -> Iterator[tuple[str, dict[str, Any]]]:
    place = {"turn": turn, "step": 1}
    yield "step/start", place
    made = [
        {
            "call_id": f"call_{turn:08}_{at}",
            "name": name,
            "arguments": f'{{"path":"src/module_{turn % 500}/{name}.py"}}',
        }
        for at, name in enumerate(("read_file", "edit_file"))
    ]
    blocks = [{"type": "text", "text": _sentence(turn, 8)}]
    blocks += [{"type": "tool-call", **call} for call in made]
    message = {"message_id": f"msg_{turn:08}_1", "content": blocks, "stop_reason": "tool_use"}
    yield "assistant/message", {**place, **message, "usage": _usage(turn)}
    for call in made:
        yield "tool/call", {**place, **call}
    for at, call in enumerate(made):
        content = [{"type": "text", "text": _sentence(turn + at, 22)}]
        yield "tool/result", {"call_id": call["call_id"], "content": content}
    yield "step/end", place


def _answering_step(turn: int) -> Iterator[tuple[str, dict[str, Any]]]:
    place = {"turn": turn, "step": 2}
    yield "step/start", place
    blocks = [{"type": "text", "text": _sentence(turn, 28)}]
    message = {"message_id": f"msg_{turn:08}_2", "content": blocks, "stop_reason": "end_turn"}
    yield "assistant/message", {**place, **message, "usage": _usage(turn)}
    yield "step/end", place
