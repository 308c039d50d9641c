"""Records of a session log that are messages: of the user, waiting in a queue, of the assistant.

Here lives one function for each type, and the retry, which is told where a message did not come.
Not here: what the assistant said while it streamed (`dsh_chunks`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from definitions.importers.dsh_log import Log, Operation, Record
from definitions.importers.dsh_values import (
    content_of,
    failure_of,
    implied,
    named,
    place_of,
    stop_of,
    usage_of,
    with_rest,
)
from definitions.importers.reading import Data, Fields

__all__ = ["MESSAGES"]


def _user_message(log: Log, record: Record) -> Iterator[Operation]:
    data = record.data
    told = {**log.arrived(data.values.get("id")), "content": content_of(data)}
    rest = data.rest("id", *implied(data, "user")) | _surface(log, record.envelope)
    yield log.event("user/message", told, rest)


def _surface(log: Log, envelope: Fields) -> Data:
    """Say what a message takes the place of; that it is appended goes without saying."""
    if not isinstance(envelope.values.get("surfaceOp"), dict):
        return {}
    surface = envelope.inner("surfaceOp")
    seqs = log.seqs([surface.integer("start"), surface.integer("end")])
    if seqs is None:
        return {"surfaceOp": surface.values}
    told = {**surface.values, "start": seqs[0], "end": seqs[1]}
    return {"surface": told, **log.translated(envelope, "sourceEventSeqs", "source_seqs")}


def _spliced(log: Log, record: Record) -> Iterator[Operation]:
    data = record.data
    name = data.text("target")
    queue = log.queues[name]
    start = data.integer("start")
    count = data.integer("removedCount") if "removedCount" in data.values else 0
    claimed = queue[start : start + count]
    del queue[start : start + count]
    messages = [_waiting(log, message) for message in data.each("inserted")]
    added = [message["message_id"] for message in messages]
    queue[start:start] = added
    rest = data.rest("target", "removedCount", "inserted")
    if len(claimed) != count:  # the log begins behind what filled the queue
        rest["removedCount"] = count
    if messages:  # kept here as well: one that is never claimed has no event of its own
        rest["messages"] = messages
    yield log.event("inbox/spliced", {"queue": name, "added": added, "claimed": claimed}, rest)


def _waiting(log: Log, message: Fields) -> Data:
    told = message.values.get("id")
    known = isinstance(told, str) and told
    name = named(log.arrives(str(told)), told) if known else log.message_id(told)
    rest = message.rest("id", *implied(message, "user"))
    return with_rest({**name, "content": content_of(message)}, rest)


def _assistant_message(log: Log, record: Record) -> Iterator[Operation]:
    data = record.data
    place = place_of(data)
    # The older dialect has the message's fields in the data itself.
    message = data.inner("message") if "message" in data.values else data
    content = content_of(message)
    attempt = log.attempts.get(place)
    interrupted = data.values.get("interrupted") is True
    told = {
        "turn": place[0],
        "step": place[1],
        **log.message_id(message.values.get("id")),
        "content": content,
        **stop_of(attempt.finish if attempt else None, content, interrupted=interrupted),
        **usage_of(data),
        **({"interrupted": True} if interrupted else {}),
    }
    rest = data.rest("message", "interrupted", "id", *implied(data, "assistant"))
    if message is not data:
        rest |= message.rest("id", *implied(message, "assistant"))
    yield log.event("assistant/message", told, rest)
    if attempt is not None:
        # A message that is there and whole says that its stream was, whatever the stream says.
        whole = "completed" if attempt.finish is None else attempt.outcome()
        yield from log.settle(attempt, "interrupted" if interrupted else whole)


def _retry(log: Log, record: Record) -> Iterator[Operation]:
    data = record.data
    place = place_of(data)
    # A request that failed before its first chunk was an attempt as well.
    known = place in log.attempts
    attempt = log.attempts.pop(place) if known else log.begin(place)
    told = {
        "turn": place[0],
        "step": place[1],
        "retry_id": data.text("retryId"),
        "attempt": attempt.name,
        "number": attempt.number,
        "reason": failure_of(data.values.get("failure")),
        **({"delay_ms": data.integer("delayMs")} if "delayMs" in data.values else {}),
        **attempt.usage,
    }
    if known:
        yield from log.settle(attempt, "abandoned")
    yield log.event("llm/retry", told, data.rest("retryId", "delayMs"))


MESSAGES: Mapping[str, Callable[[Log, Record], Iterator[Operation]]] = {
    "user/message": _user_message,
    "agent/inbox/spliced": _spliced,
    "assistant/message": _assistant_message,
    "llm/retry": _retry,
}
