"""Session logs of DeepSeek Harness as recordings: each mapping, both dialects, what is refused.

The small logs are our own; the last part reads the folder of `--shared`, where it is given.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from definitions.importers import IMPORTERS, ImportFault
from definitions.importers.dsh_session import QUIET_TYPES, dsh_session

Json = dict[str, Any]

MADE = 1_700_000_000_000
SESSION: Json = {"type": "session", "version": 0, "id": "s1", "createdAt": MADE, "cwd": "/w"}
HERE: Json = {"turn": 1, "step": 1}


def record(kind: str, /, beside: Any = None, **data: Any) -> Json:
    return {"type": kind, "data": data, **(beside or {})}


def chunk(kind: str, /, turn: int = 1, step: int = 1, **fields: Any) -> Json:
    return record("assistant/chunk", turn=turn, step=step, chunk={"type": kind, **fields})


def finish(kind: str, **more: Any) -> Json:
    return chunk("finish", reason={"kind": kind, **more})


def text_message(text: str, **more: Any) -> Json:
    message = {"role": "assistant", "content": [{"type": "text", "text": text}], "id": "m1"}
    return record("assistant/message", **HERE, message=message, **more)


def written(*records: Json, session: Json | None = None) -> list[str]:
    return [json.dumps(item) + "\n" for item in (session or SESSION, *records)]


def imported(*records: Json, session: Json | None = None) -> list[Json]:
    """Give what comes behind the header and the session's own event."""
    return list(dsh_session(written(*records, session=session), name="log.jsonl"))[2:]


def events(operations: list[Json], kind: str) -> list[Json]:
    found = (operation["event"] for operation in operations if operation["op"] == "append")
    return [event["data"] for event in found if event["type"] == kind]


def deltas(operations: list[Json], kind: str | None = None) -> list[Json]:
    found = [operation for operation in operations if operation["op"] == "delta"]
    return [delta for delta in found if kind in (None, delta["type"])]


def steps(operations: list[Json]) -> list[str]:
    """Say each operation in a word: the event's type, the delta's, the outcome."""
    return [
        operation["event"]["type"]
        if operation["op"] == "append"
        else operation.get("outcome") or f"~{operation['type']}"
        for operation in operations
    ]


def only(items: list[Json]) -> Json:
    assert len(items) == 1, items
    return items[0]


# The frame


def test_the_importer_is_in_the_table() -> None:
    assert IMPORTERS["dsh-session"].read is dsh_session


def test_a_header_comes_first_and_the_session_is_an_event() -> None:
    header, session = dsh_session(written(), name="some/where/log.jsonl")
    assert header["recording"] == 1
    assert header["title"] == "log.jsonl"
    data = {"version": 0, "id": "s1", "createdAt": MADE, "cwd": "/w"}
    event = {"seq": 1, "type": "session", "time": MADE, "data": data}
    assert session == {"op": "append", "event": event}


def test_bytes_a_byte_order_mark_and_blank_lines_are_read() -> None:
    lines = ["\ufeff" + written()[0], "\n", json.dumps(record("plan/mode", active=True))]
    from_text = list(dsh_session(lines, name="x"))
    from_bytes = list(dsh_session([line.encode() for line in lines], name="x"))
    assert from_text == from_bytes
    assert steps(from_text[1:]) == ["session", "plan/mode"]


def test_the_same_log_gives_the_same_recording() -> None:
    log = [record("user/message", content="hello"), chunk("text-delta", index=0, text="a")]
    assert imported(*log) == imported(*log)


def test_seqs_count_the_durable_records_alone() -> None:
    operations = imported(
        record("turn/start", turn=1), chunk("text-delta", index=0, text="a"), text_message("a")
    )
    assert [item["event"]["seq"] for item in operations if item["op"] == "append"] == [2, 3]


def test_an_unknown_type_keeps_its_name_and_its_data() -> None:
    data = {"kind": "x", "callId": "c", "usage": {"inputTokens": 1}, "deep": [{"a": None}]}
    event = only(imported(record("something/new", **data)))["event"]
    assert (event["type"], event["data"]) == ("something/new", data)


def test_what_stands_beside_the_data_is_kept() -> None:
    assert events(imported(record("plan/mode", {"ignorable": True}, active=True)), "plan/mode") == [
        {"active": True, "ignorable": True}
    ]


def test_quiet_types_are_data_and_never_of_the_vocabulary() -> None:
    assert {"session", "request/header", "hook/result", "sandbox/mode"} <= QUIET_TYPES
    assert not {"goal/change", "plan/mode", "llm/retry", "tool/call"} & QUIET_TYPES


# Times


def test_without_a_time_there_is_none() -> None:
    session = {**SESSION, "createdAt": 0}
    operations = imported(
        record("turn/start", turn=1), chunk("text-delta", index=0, text="a"), session=session
    )
    assert "time" not in operations[0]["event"]
    assert "time" not in operations[1]


def test_packed_chunks_move_the_clock_on() -> None:
    operations = imported(
        record("text-chunks", **HERE, index=0, dt=[5, -1], texts=["a", "b", "c"]),
        record("step/end", **HERE),
    )
    assert [delta["time"] - MADE for delta in deltas(operations)] == [0, 5, 4]
    assert operations[-1]["event"]["time"] == MADE + 4


def test_the_time_of_a_record_counts() -> None:
    packed = record("text-chunks", {"time0": 70}, **HERE, index=0, dt=[5], texts=["a", "b"])
    operations = imported(record("turn/start", {"time": 50}, turn=1), packed)
    assert operations[0]["event"]["time"] == 50
    assert [delta["time"] for delta in deltas(operations)] == [70, 75]


# Chunks


def test_a_stream_becomes_the_deltas_of_one_attempt() -> None:
    usage = {"inputTokens": 3, "outputTokens": 4, "cacheReadTokens": 5, "reasoningTokens": 2}
    operations = imported(
        record("step/start", **HERE),
        chunk("block-start", index=0, blockType="reasoning"),
        chunk("reasoning-delta", index=0, text="hm"),
        chunk("block-end", index=0, block={"type": "reasoning", "text": "hm", "signature": "x"}),
        chunk("text-delta", index=1, text="hi"),
        chunk("block-end", index=1, block={"type": "text", "text": "hi"}),
        chunk("usage", usage=usage),
        finish("stop"),
        text_message("hi", usage=usage),
        record("step/end", **HERE),
    )
    assert [(delta["type"], delta["data"]) for delta in deltas(operations)] == [
        ("block-start", {"block": 0, "block_type": "reasoning"}),
        ("reasoning", {"block": 0, "text": "hm"}),
        (
            "block-end",
            {"block": 0, "value": {"type": "reasoning", "text": "hm", "signature": "x"}},
        ),
        ("text", {"block": 1, "text": "hi"}),
        ("block-end", {"block": 1, "value": {"type": "text", "text": "hi"}}),
        (
            "usage",
            {
                "usage": {
                    "input_tokens": 3,
                    "output_tokens": 4,
                    "cache_read_tokens": 5,
                    "reasoning_tokens": 2,
                    "raw": usage,
                }
            },
        ),
        ("finish", {"reason": {"kind": "stop"}}),
    ]
    where = {(delta["attempt"], delta["number"], delta["turn"]) for delta in deltas(operations)}
    assert where == {("1.1.1", 1, 1)}
    assert steps(operations)[-3:] == ["assistant/message", "completed", "step/end"]


def test_a_call_streams_under_its_id_and_is_named_once() -> None:
    operations = imported(
        chunk("tool-call-delta", index=0, id="c1", name="bash", argumentsDelta='{"a"'),
        chunk("tool-call-delta", index=0, id="c1", name="bash", argumentsDelta=":1}"),
        chunk(
            "block-end",
            index=0,
            block={"type": "tool-call", "id": "c1", "name": "bash", "arguments": '{"a":1}'},
        ),
    )
    assert [delta["data"] for delta in deltas(operations)] == [
        {"block": 0, "call_id": "c1", "name": "bash", "arguments": '{"a"'},
        {"block": 0, "call_id": "c1", "arguments": ":1}"},
        {
            "block": 0,
            "value": {"type": "tool-call", "call_id": "c1", "name": "bash", "arguments": '{"a":1}'},
        },
    ]


def test_a_call_told_by_its_whole_block_alone_is_announced_first() -> None:
    block = {"type": "tool-call", "id": "c1", "name": "bash", "arguments": "{}"}
    operations = imported(
        chunk("block-start", index=0, blockType="tool-call"),
        chunk("block-end", index=0, block=block),
    )
    assert steps(operations) == ["~block-start", "~tool-call", "~block-end"]
    told = {"block": 0, "call_id": "c1", "name": "bash", "arguments": "{}"}
    assert operations[1]["data"] == told


@pytest.mark.parametrize(
    ("packed", "unpacked"),
    [
        (
            record("text-chunks", **HERE, index=2, dt=[0], texts=["a", "b"]),
            [chunk("text-delta", index=2, text=text) for text in "ab"],
        ),
        (
            record("reasoning-chunks", **HERE, index=0, dt=[0], texts=["a", "b"]),
            [chunk("reasoning-delta", index=0, text=text) for text in "ab"],
        ),
        (
            record("tool-call-chunks", **HERE, index=1, dt=[], id="c", name="n", args=["", "{}"]),
            [
                chunk("tool-call-delta", index=1, id="c", name="n", argumentsDelta=text)
                for text in ("", "{}")
            ],
        ),
    ],
)
def test_packed_chunks_are_the_chunks_they_stand_for(packed: Json, unpacked: list[Json]) -> None:
    assert imported(packed) == imported(*unpacked)


def test_an_unknown_chunk_becomes_a_delta_of_its_own_type() -> None:
    delta = only(imported(chunk("citation", index=0, url="u")))
    assert (delta["type"], delta["data"]) == ("citation", {"index": 0, "url": "u"})


def test_half_a_character_waits_for_its_other_half() -> None:
    operations = imported(
        chunk("text-delta", index=0, text="a\ud83d"),
        chunk("text-delta", index=0, text="\ude00b"),
        chunk("text-delta", index=0, text="c\ud83d"),
        chunk("text-delta", index=0, text="d"),
        chunk("block-end", index=0, block={"type": "text", "text": "a\ud83d\ude00bc\ud83dd"}),
        record("x\ud83d", note=["\ude00"]),
    )
    texts = [delta["data"]["text"] for delta in deltas(operations, "text")]
    assert texts == ["a", "😀b", "c", "\ufffdd"]
    whole = only(deltas(operations, "block-end"))["data"]["value"]["text"]
    assert whole == "".join(texts) == "a😀bc\ufffdd"
    assert operations[-1]["event"]["type"] == "x\ufffd"
    json.dumps(operations, ensure_ascii=False).encode()


# Attempts and how they end


def test_a_stream_that_nobody_ended_is_interrupted_by_the_end_of_its_step() -> None:
    operations = imported(chunk("text-delta", index=0, text="a"), record("step/end", **HERE))
    assert steps(operations) == ["~text", "interrupted", "step/end"]


@pytest.mark.parametrize(
    "boundary",
    [
        record("step/end", **HERE),
        record("step/start", turn=1, step=2),
        record("turn/end", turn=1, reason={"kind": "completed"}),
        record("turn/start", turn=2),
    ],
)
def test_a_whole_stream_without_a_message_completes_before_its_step_closes(boundary: Json) -> None:
    operations = imported(chunk("text-delta", index=0, text="a"), finish("stop"), boundary)
    assert steps(operations) == ["~text", "~finish", "completed", boundary["type"]]


def test_at_the_end_of_the_log_only_a_finished_stream_is_settled() -> None:
    begun = chunk("text-delta", index=0, text="a")
    assert steps(imported(begun)) == ["~text"]
    assert steps(imported(begun, finish("stop"))) == ["~text", "~finish", "completed"]


def test_an_interrupted_message_interrupts_its_stream() -> None:
    operations = imported(
        chunk("text-delta", index=0, text="par"), text_message("par", interrupted=True)
    )
    assert steps(operations) == ["~text", "assistant/message", "interrupted"]
    message = only(events(operations, "assistant/message"))
    assert (message["stop_reason"], message["interrupted"]) == ("cancelled", True)


def test_a_retry_names_the_attempt_that_failed() -> None:
    failure = {"message": "nothing came", "code": "EMPTY"}
    operations = imported(
        chunk("usage", usage={"inputTokens": 7}),
        finish("error", failure=failure),
        record("llm/retry", **HERE, retryId="r1", delayMs=9, failure=failure, mode="normal"),
        record("llm/retry-started", **HERE, retryId="r1"),
        chunk("text-delta", index=0, text="a"),
        finish("stop"),
        text_message("a"),
    )
    assert steps(operations) == [
        *("~usage", "~finish", "failed", "llm/retry", "llm/retry-started"),
        *("~text", "~finish", "assistant/message", "completed"),
    ]
    assert only(events(operations, "llm/retry")) == {
        **HERE,
        "retry_id": "r1",
        "attempt": "1.1.1",
        "number": 1,
        "reason": "nothing came",
        "delay_ms": 9,
        "usage": {"input_tokens": 7, "raw": {"inputTokens": 7}},
        "failure": failure,
        "mode": "normal",
    }
    assert only(deltas(operations, "text"))["attempt"] == "1.1.2"
    assert operations[-1]["attempt"] == "1.1.2"


def test_a_retry_in_the_middle_of_a_stream_abandons_it() -> None:
    operations = imported(
        chunk("text-delta", index=0, text="a"), record("llm/retry", **HERE, retryId="r1")
    )
    assert steps(operations) == ["~text", "abandoned", "llm/retry"]
    assert only(events(operations, "llm/retry"))["reason"] == "failed"


def test_a_retry_before_any_chunk_counts_its_attempt() -> None:
    operations = imported(
        record("llm/retry", **HERE, retryId="r1", failure={"code": "TIMEOUT"}),
        chunk("text-delta", index=0, text="a"),
    )
    retry = only(events(operations, "llm/retry"))
    assert (retry["attempt"], retry["number"], retry["reason"]) == ("1.1.1", 1, "TIMEOUT")
    assert (operations[1]["attempt"], operations[1]["number"]) == ("1.1.2", 2)


def test_chunks_behind_a_finish_are_another_attempt() -> None:
    operations = imported(
        finish("error"), record("compaction/end", compactionId="k"), finish("stop")
    )
    assert steps(operations) == ["~finish", "failed", "compaction/end", "~finish", "completed"]
    assert [delta["number"] for delta in deltas(operations)] == [1, 2]


# Messages


def test_both_dialects_of_an_answer_say_the_same() -> None:
    content = [
        {"type": "reasoning", "text": "hm"},
        {"type": "tool-call", "id": "c1", "name": "bash", "arguments": "{}"},
        {"type": "drawing", "strokes": [1]},
    ]
    source = {"kind": "model", "provider": "p", "model": "m"}
    newer = {"role": "assistant", "content": content, "id": "m1", "source": source}
    older = {"content": content, "provenance": {"provider": "p", "model": "m"}}
    common: Json = {
        **HERE,
        "content": [
            {"type": "reasoning", "text": "hm"},
            {"type": "tool-call", "call_id": "c1", "name": "bash", "arguments": "{}"},
            {"type": "provider", "provider": "dsh", "raw": content[2]},
        ],
        "stop_reason": "tool_use",
        "usage": {"output_tokens": 1, "raw": {"outputTokens": 1}},
    }
    usage = {"outputTokens": 1}
    first = imported(record("assistant/message", **HERE, message=newer, usage=usage))
    second = imported(record("assistant/message", **HERE, **older, usage=usage))
    assert only(events(first, "assistant/message")) == {
        **common,
        "message_id": "m1",
        "source": source,
    }
    assert only(events(second, "assistant/message")) == {
        **common,
        "message_id": "message-2",
        "provenance": older["provenance"],
    }


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        ("stop", "end_turn"),
        ("tool-calls", "tool_use"),
        ("length", "length"),
        ("content-filter", "content_filter"),
        ("aborted", "cancelled"),
        ("error", "error"),
        ("odd", "other"),
    ],
)
def test_the_stop_reason_is_that_of_the_stream(kind: str, word: str) -> None:
    message = only(events(imported(finish(kind), text_message("a")), "assistant/message"))
    assert (message["stop_reason"], message["stop_detail"]) == (word, kind)


def test_without_a_finish_the_content_says_how_it_stopped() -> None:
    message = only(events(imported(text_message("a")), "assistant/message"))
    assert message["stop_reason"] == "end_turn"
    assert "stop_detail" not in message


def test_ids_of_messages_are_unique_whatever_the_log_says() -> None:
    operations = imported(
        record("user/message", content="a", id="{{id}}"),
        record("user/message", content="b", id="{{id}}"),
        record("user/message", content="c"),
    )
    named = [(item["message_id"], item.get("source_message_id")) for item in _messages(operations)]
    assert named == [("{{id}}", None), ("{{id}}#2", "{{id}}"), ("message-4", None)]


def _messages(operations: list[Json]) -> list[Json]:
    return events(operations, "user/message")


def test_a_users_message_keeps_its_source_and_files() -> None:
    attached = {"type": "image", "attachment": {"attachmentId": "sha256:0", "mediaType": "x/y"}}
    inline = {"type": "image", "mediaType": "image/png", "data": "AA=="}
    message = record(
        "user/message",
        content=[{"type": "text", "text": "look"}, attached, inline],
        source={"kind": "plugin", "plugin": "p"},
        role="user",
        id="u1",
    )
    assert only(_messages(imported(message))) == {
        "message_id": "u1",
        "content": [
            {"type": "text", "text": "look"},
            {"type": "provider", "provider": "dsh", "raw": attached},
            {"type": "file", "media_type": "image/png", "data": "AA=="},
        ],
        "source": {"kind": "plugin", "plugin": "p"},
    }


# The inbox


def spliced(start: int, removed: int = 0, *inserted: str, queue: str = "next-turn") -> Json:
    messages = [
        {"content": [{"type": "text", "text": f"text of {name}"}], "role": "user", "id": name}
        for name in inserted
    ]
    count = {"removedCount": removed} if removed else {}
    return record("agent/inbox/spliced", target=queue, start=start, inserted=messages, **count)


def splices(*records: Json) -> list[tuple[str, list[str], list[str]]]:
    found = events(imported(*records), "inbox/spliced")
    return [(item["queue"], item["added"], item["claimed"]) for item in found]


def test_what_leaves_a_queue_is_known_by_its_id() -> None:
    assert splices(
        spliced(0, 0, "a", "b"),
        spliced(1, 0, "c"),
        spliced(0, 0, "x", queue="next-step"),
        spliced(1, 1),
        spliced(0, 2),
        spliced(0, 1, queue="next-step"),
    ) == [
        ("next-turn", ["a", "b"], []),
        ("next-turn", ["c"], []),
        ("next-step", ["x"], []),
        ("next-turn", [], ["c"]),
        ("next-turn", [], ["a", "b"]),
        ("next-step", [], ["x"]),
    ]


def test_a_queued_message_keeps_its_content_and_its_name() -> None:
    operations = imported(
        spliced(0, 0, "u"),
        spliced(0, 1),
        record("user/message", content="text of u", id="u"),
        spliced(0, 0, "u"),
        spliced(0, 1),
        record("user/message", content="text of u", id="u"),
    )
    first, claimed, again, _ = events(operations, "inbox/spliced")
    assert first["messages"] == [
        {"message_id": "u", "content": [{"type": "text", "text": "text of u"}]}
    ]
    assert claimed["claimed"] == ["u"]
    assert again["added"] == ["u#2"]
    assert again["messages"][0]["source_message_id"] == "u"
    assert [item["message_id"] for item in _messages(operations)] == ["u", "u#2"]


def test_a_message_that_changes_its_queue_keeps_its_name() -> None:
    assert splices(spliced(0, 0, "u"), spliced(0, 1), spliced(0, 0, "u", queue="next-step")) == [
        ("next-turn", ["u"], []),
        ("next-turn", [], ["u"]),
        ("next-step", ["u"], []),
    ]


def test_what_was_never_seen_going_in_is_counted() -> None:
    item = only(events(imported(spliced(3, 2)), "inbox/spliced"))
    assert (item["claimed"], item["removedCount"], item["start"]) == ([], 2, 3)


# Calls


def call(call_id: str = "c1", arguments: Any = '{"a":1}') -> Json:
    return record("tool/call", **HERE, callId=call_id, name="bash", arguments=arguments)


def test_a_call_and_its_result_in_both_dialects() -> None:
    error = {"name": "FsError", "code": "DENIED"}
    block = {"type": "tool-result", "toolCallId": "c1", "content": [], "isError": True}
    source = {"kind": "tool", "callId": "c1"}
    newer = {"role": "user", "id": "r1", "source": source, "content": [block]}
    meta = {"path": "x"}
    operations = imported(
        call(),
        record("tool/result", **HERE, message=newer, error=error, meta=meta),
        record("tool/result", **HERE, callId="c1", content="done", isError=False),
    )
    assert only(events(operations, "tool/call")) == {
        **HERE,
        "call_id": "c1",
        "name": "bash",
        "arguments": '{"a":1}',
    }
    assert events(operations, "tool/result") == [
        {
            **HERE,
            "call_id": "c1",
            "content": [],
            "is_error": True,
            "error": error,
            "meta": meta,
            "message_id": "r1",
        },
        {**HERE, "call_id": "c1", "content": [{"type": "text", "text": "done"}]},
    ]


def test_a_result_that_a_repair_wrote_is_synthetic() -> None:
    error = {"name": "ToolOutcomeUnknownError", "code": "TOOL_OUTCOME_UNKNOWN"}
    result = record("tool/result", **HERE, callId="c1", content=[], isError=True, error=error)
    assert only(events(imported(result), "tool/result"))["synthetic"] is True


def test_calls_in_calls_name_their_parent_and_the_step_of_the_outermost() -> None:
    first = {"rootCallId": "c1", "parentCallId": "c1", "subCallId": "c1:code:1", "name": "run"}
    inner = {"rootCallId": "c1", "parentCallId": "c1:code:1", "subCallId": "x", "name": "read"}
    operations = imported(
        call(),
        record("tool/code-dispatch-start", **first, arguments={"b": "ü", "n": [1]}),
        record("tool/code-dispatch-start", **inner, arguments={}),
        record("tool/code-dispatch", **inner, arguments={}, isError=True, content="no"),
        record("tool/code-dispatch", **first, arguments={"b": "ü", "n": [1]}, content="yes"),
    )
    outer, middle, innermost = events(operations, "tool/call")
    assert outer["call_id"] == "c1"
    assert middle == {
        **HERE,
        "call_id": "c1:code:1",
        "name": "run",
        "arguments": '{"b":"ü","n":[1]}',
        "parent_call_id": "c1",
        "rootCallId": "c1",
    }
    assert (innermost["parent_call_id"], innermost["turn"]) == ("c1:code:1", 1)
    failed, done = events(operations, "tool/result")
    assert (failed["call_id"], failed["is_error"]) == ("x", True)
    assert (done["call_id"], done["parent_call_id"]) == ("c1:code:1", "c1")
    assert "arguments" not in done


def test_a_dispatch_without_a_start_brings_its_call() -> None:
    told = {"rootCallId": "c1", "parentCallId": "c1", "subCallId": "s", "content": "ok"}
    operations = imported(call(), record("tool/code-dispatch", **told, name="run", arguments={}))
    assert steps(operations) == ["tool/call", "tool/call", "tool/result"]
    assert events(operations, "tool/call")[1]["parent_call_id"] == "c1"
    assert steps(imported(record("tool/code-dispatch", **told))) == ["tool/result"]


def test_a_call_in_a_call_that_was_never_seen_has_no_step_of_its_own() -> None:
    start = record(
        "tool/code-dispatch-start", parentCallId="p", subCallId="s", name="run", arguments={}
    )
    assert only(events(imported(start), "tool/call")) == {
        "call_id": "s",
        "name": "run",
        "arguments": "{}",
        "parent_call_id": "p",
    }


# Permissions


@pytest.mark.parametrize(
    ("outcome", "answer"),
    [
        ("allowed-once", {"decision": "allow"}),
        ("allowed-always", {"decision": "allow", "remember": True}),
        ("rejected", {"decision": "deny"}),
        ("cancelled", {"decision": "deny"}),
    ],
)
def test_an_approval_is_a_permission(outcome: str, answer: Json) -> None:
    operations = imported(
        call(),
        record("approval/asked", id="q1", callId="c1", toolName="bash", reason="why"),
        record("approval/decided", id="q1", outcome=outcome),
    )
    both = {"call_id": "c1", "request_id": "q1"}
    about = {"toolName": "bash", "reason": "why"}
    asked = only(events(operations, "permission/request"))
    assert asked == {**both, "input": {"a": 1}, **about}
    answered = only(events(operations, "permission/answer"))
    assert answered == {**both, **answer, "outcome": outcome}


@pytest.mark.parametrize("known", [(), (call(arguments='{"cut'),), (call(arguments="[1]"),)])
def test_a_permission_without_readable_arguments_has_an_empty_input(known: tuple[Json]) -> None:
    operations = imported(*known, record("approval/asked", id="q1", callId="c1"))
    assert only(events(operations, "permission/request"))["input"] == {}


def test_an_approval_that_names_no_call_keeps_its_type() -> None:
    operations = imported(
        record("approval/asked", id="q1", reason="why"),
        record("approval/decided", id="q1", outcome="rejected"),
    )
    assert steps(operations) == ["approval/asked", "approval/decided"]


# Turns, titles, compaction, commands


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ({"kind": "completed"}, {"reason": "completed"}),
        ({"kind": "interrupted"}, {"reason": "interrupted"}),
        (
            {"kind": "aborted", "reason": {"kind": "user"}},
            {
                "reason": "cancelled",
                "reason_detail": {"kind": "aborted", "reason": {"kind": "user"}},
            },
        ),
        (
            {"kind": "error", "error": {"message": "no", "code": "AUTH"}},
            {"reason": "error", "error": {"name": "AUTH", "message": "no", "code": "AUTH"}},
        ),
        ({"kind": "odd"}, {"reason": "interrupted", "reason_detail": {"kind": "odd"}}),
        (
            {"kind": "odd", "error": {"name": "E"}},
            {
                "reason": "error",
                "error": {"name": "E", "message": ""},
                "reason_detail": {"kind": "odd", "error": {"name": "E"}},
            },
        ),
    ],
)
def test_a_turn_ends_in_our_words(reason: Json, told: Json) -> None:
    operations = imported(record("turn/end", turn=1, reason=reason))
    assert only(events(operations, "turn/end")) == {"turn": 1, **told}


def test_turns_and_steps_keep_what_else_they_say() -> None:
    operations = imported(
        record("turn/start", turn=1, trigger={"kind": "message"}), record("step/start", **HERE)
    )
    assert only(events(operations, "turn/start")) == {"turn": 1, "trigger": {"kind": "message"}}
    assert only(events(operations, "step/start")) == HERE


def test_a_title_refers_to_its_messages_by_our_numbers() -> None:
    source = {"kind": "fallback"}
    operations = imported(
        record("text-chunks", **HERE, index=0, dt=[1, 1], texts=["a", "b", "c"]),
        record("user/message", content="a"),  # the fourth of the log, the second of ours
        record("session/title", title="T", messageSeqs=[3], source=source),
        record("session/title", title="U", messageSeqs=[2]),
    )
    assert events(operations, "conversation/title") == [
        {"title": "T", "message_seqs": [2], "source": source},
        {"title": "U", "messageSeqs": [2]},
    ]


def test_numbers_that_the_log_tells_are_taken() -> None:
    operations = imported(
        record("user/message", {"seq": 40}, content="a"),
        record("text-chunks", {"seq0": 41}, **HERE, index=0, dt=[1], texts=["a", "b"]),
        record("plan/mode", active=True),
        record("session/title", title="T", messageSeqs=[40, 43]),
    )
    assert only(events(operations, "conversation/title"))["message_seqs"] == [2, 3]


def test_compaction_says_what_it_replaced() -> None:
    text = [{"type": "text", "text": "so "}, {"type": "text", "text": "far"}]
    replaced = {"surfaceOp": {"op": "replace", "start": 0, "end": 0}, "sourceEventSeqs": [2, 0]}
    operations = imported(
        record("user/message", content="long"),
        record("compaction/start", compactionId="k", turn=1),
        record(
            "compaction/summary",
            compactionId="k",
            summary=text,
            rawOutput=text,
            shadowedRange={"start": 0, "end": 0},
            shadowedSeqs=[0],
            usage={"inputTokens": 2},
            model="m",
        ),
        record("user/message", replaced, content="short"),
        record("compaction/end", compactionId="k", turn=1),
    )
    assert only(events(operations, "compaction/start")) == {"compaction_id": "k", "turn": 1}
    assert only(events(operations, "compaction/summary")) == {
        "compaction_id": "k",
        "text": "so far",
        "before_seq": 3,
        "shadowed_seqs": [2],
        "usage": {"input_tokens": 2, "raw": {"inputTokens": 2}},
        "model": "m",
    }
    checkpoint = _messages(operations)[1]
    assert checkpoint["surface"] == {"op": "replace", "start": 2, "end": 2}
    assert checkpoint["source_seqs"] == [4, 2]
    assert only(events(operations, "compaction/end")) == {"compaction_id": "k", "turn": 1}


def test_a_command_and_its_end() -> None:
    operations = imported(
        record("command/run", commandId="k", name="mode", args=" safe", source={"kind": "user"}),
        record("command/done", commandId="k", kind="success", text="Done."),
        record("command/done", commandId="l", kind="error", text="No."),
    )
    assert only(events(operations, "command/run")) == {
        "command_id": "k",
        "name": "mode",
        "arguments": "safe",
        "source": {"kind": "user"},
    }
    assert events(operations, "command/done") == [
        {"command_id": "k", "name": "mode", "output": "Done.", "kind": "success"},
        {"command_id": "l", "output": "No.", "is_error": True, "kind": "error"},
    ]


# What is refused

SESSION_LINE = json.dumps(SESSION)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], 'bad.jsonl:1: type: expected "session", which begins a session log'),
        (
            ['{"type":"user"}'],
            'bad.jsonl:1: type: expected "session", which begins a session log, got "user"',
        ),
        (
            [SESSION_LINE, '{"type":"turn/sta'],
            "bad.jsonl:2: line: expected a JSON object; the text ends inside of one",
        ),
        (
            [SESSION_LINE, '{"type":"turn/start","data":{"turn":1}'],
            "bad.jsonl:2: line: expected a JSON object; the text ends inside of one",
        ),
        (
            [SESSION_LINE, "{type: 1}"],
            "bad.jsonl:2: line: expected a JSON object (Expecting property name enclosed in "
            "double quotes at column 2)",
        ),
        ([SESSION_LINE, '{"type":NaN}'], "bad.jsonl:2: line: expected a JSON object"),
        ([SESSION_LINE, "[1]"], "bad.jsonl:2: line: expected a JSON object, got [1]"),
        ([SESSION_LINE, b"\xff{}"], "bad.jsonl:2: line: expected UTF-8"),
        ([SESSION_LINE, "{}"], "bad.jsonl:2: type: expected a text that is not empty"),
        (
            [SESSION_LINE, '{"type":7}'],
            "bad.jsonl:2: type: expected a text that is not empty, got 7",
        ),
        (
            [SESSION_LINE, "", '{"type":"turn/start","data":{"turn":"1"}}'],
            'bad.jsonl:3: data.turn: expected an integer, got "1"',
        ),
        (
            [SESSION_LINE, '{"type":"plan/mode","data":[]}'],
            "bad.jsonl:2: data: expected a JSON object, got []",
        ),
        (
            [SESSION_LINE, '{"type":"user/message","data":{"content":[{"type":"text"}]}}'],
            "bad.jsonl:2: data.content.0.text: expected a text",
        ),
        (
            [SESSION_LINE, json.dumps(chunk("tool-call-delta", index=0, argumentsDelta=""))],
            "bad.jsonl:2: data.chunk.id: expected a text that is not empty",
        ),
        (
            [SESSION_LINE, json.dumps(record("text-chunks", **HERE, index=0, texts=[1]))],
            "bad.jsonl:2: data.texts: expected a list of texts, got [1]",
        ),
    ],
)
def test_a_fault_names_file_line_and_field(lines: list[str | bytes], message: str) -> None:
    whole = [line + (b"\n" if isinstance(line, bytes) else "\n") for line in lines]
    with pytest.raises(ImportFault) as caught:
        list(dsh_session(whole, name="bad.jsonl"))
    assert str(caught.value) == message
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("cut", ['{"type":"turn/sta', '{"type":"turn/start","data":{', b"\xe2\x82"])
def test_a_last_line_that_is_still_being_written_is_left_out(cut: str | bytes) -> None:
    before = [SESSION_LINE + "\n", json.dumps(record("turn/start", turn=1)) + "\n"]
    assert list(dsh_session([*before, cut], name="f")) == list(dsh_session(before, name="f"))


def test_a_fault_stays_on_one_line() -> None:
    with pytest.raises(ImportFault) as caught:
        list(dsh_session([SESSION_LINE, json.dumps(["a\nb" * 99])], name="f"))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 120


EVERYTHING = [
    record("turn/start", turn=1),
    spliced(0, 0, "u"),
    record("user/message", {"surfaceOp": {"op": "replace", "start": 0, "end": 0}}, content="a"),
    chunk("block-start", index=0, blockType="text"),
    chunk("text-delta", index=0, text="a"),
    chunk("tool-call-delta", index=1, id="c", name="n", argumentsDelta="{}"),
    chunk("block-end", index=0, block={"type": "text", "text": "a"}),
    chunk("block-end", index=0, block={"type": "image", "mediaType": "x/y", "url": "u"}),
    record("tool-call-chunks", **HERE, index=1, dt=[1], id="c", name="n", args=["", ""]),
    record("text-chunks", **HERE, index=1, dt=[1], texts=["", ""]),
    chunk("usage", usage={"inputTokens": 1}),
    finish("error", failure={"message": "m", "code": "c"}),
    record("llm/retry", **HERE, retryId="r", delayMs=1, failure={"message": "m", "code": "c"}),
    text_message("a", usage={"inputTokens": 1}),
    call(),
    record("approval/asked", id="q", callId="c1"),
    record("approval/decided", id="q", outcome="rejected"),
    record("tool/code-dispatch", rootCallId="c1", parentCallId="c1", subCallId="s", name="n",
           arguments={}, content="a"),
    record("tool/result", **HERE, callId="c1", content="a", error={"code": "c"}),
    record("tool/result", **HERE, message={"id": "i", "content": [
        {"type": "tool-result", "toolCallId": "c1", "content": []}]}),
    record("session/title", title="t", messageSeqs=[0]),
    record("compaction/summary", compactionId="k", summary=[], shadowedSeqs=[0],
           shadowedRange={"start": 0, "end": 0}),
    record("command/run", commandId="k", name="n", args=""),
    record("command/done", commandId="k", kind="success", text="t"),
    record("turn/end", turn=1, reason={"kind": "error", "error": {"code": "c"}}),
]  # fmt: skip


def spoilt(value: Any) -> Iterator[Any]:
    """Give the value with one part of it, at any depth, taken out or replaced by another kind."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield {name: kept for name, kept in value.items() if name != key}
            for worse in spoilt(item):
                yield {**value, key: worse}
    elif isinstance(value, list):
        for at, item in enumerate(value):
            for worse in spoilt(item):
                yield [*value[:at], worse, *value[at + 1 :]]
    yield from (None, True, 7, "", "odd", [], [[]], {}, {"a": {}})


@pytest.mark.parametrize("at", range(len(EVERYTHING)), ids=lambda at: str(EVERYTHING[at]["type"]))
def test_whatever_is_spoilt_is_taken_or_refused_by_name(at: int) -> None:
    before = written(*EVERYTHING[:at])
    after = [json.dumps(item) for item in EVERYTHING[at + 1 :]]
    faults: list[ImportFault] = []
    for worse in spoilt(EVERYTHING[at]):
        lines = [*before, json.dumps(worse), *after]
        try:
            list(dsh_session(lines, name="f"))
        except ImportFault as fault:
            faults.append(fault)
    assert faults
    assert all(str(fault).startswith(f"f:{fault.line}: ") for fault in faults)


# All logs recorded by others

Log = tuple[str, list[Json], list[Json]]  # name, records, operations


@pytest.fixture(scope="module")
def logs(shared: Path) -> list[Log]:
    files = sorted((shared / "streams" / "dsh-session").glob("*.jsonl"))
    if not files:
        pytest.skip("no streams/dsh-session in the folder of --shared")
    found = []
    for file in files:
        lines = file.read_bytes().splitlines(keepends=True)
        operations = list(dsh_session(lines, name=file.name))
        found.append((file.name, [json.loads(line) for line in lines], operations))
    return found


def each_event(operations: list[Json]) -> list[Json]:
    return [item["event"] for item in operations[1:] if item["op"] == "append"]


def test_all_logs_are_imported(logs: list[Log]) -> None:
    assert len(logs) >= 101
    for name, records, operations in logs:
        json.dumps(operations, ensure_ascii=False, allow_nan=False).encode()
        chunks = {"assistant/chunk", "text-chunks", "reasoning-chunks", "tool-call-chunks"}
        durable = [item for item in records if item["type"] not in chunks]
        assert len(each_event(operations)) == len(durable), name


def test_seqs_are_contiguous_everywhere(logs: list[Log]) -> None:
    for name, _, operations in logs:
        seqs = [event["seq"] for event in each_event(operations)]
        assert seqs == list(range(1, len(seqs) + 1)), name


def test_ids_of_messages_are_unique_everywhere(logs: list[Log]) -> None:
    for name, _, operations in logs:
        ids = [event["data"].get("message_id") for event in each_event(operations)]
        twice = [told for told, count in Counter(ids).items() if told and count > 1]
        assert not twice, name
        queued = [
            told for item in events(operations[1:], "inbox/spliced") for told in item["added"]
        ]
        claimed = {
            told for item in events(operations[1:], "inbox/spliced") for told in item["claimed"]
        }
        assert len(queued) == len(set(queued)), name
        assert claimed <= set(queued), name
        assert all("removedCount" not in item for item in events(operations[1:], "inbox/spliced"))


def source_calls(records: list[Json]) -> Iterator[str]:
    for item in records:
        data = item.get("data", {})
        told = data.get("chunk", data)
        block = told.get("block")
        yield from (data[key] for key in ("callId", "subCallId") if key in data)
        if item["type"] == "tool-call-chunks" or told.get("type") == "tool-call-delta":
            yield told["id"]
        if isinstance(block, dict) and block["type"] == "tool-call":
            yield block["id"]
        content = data.get("message", data).get("content")
        for part in content if item["type"] == "assistant/message" and content else ():
            if part["type"] == "tool-call":
                yield part["id"]


def test_every_call_of_a_log_is_in_its_recording(logs: list[Log]) -> None:
    for name, records, operations in logs:
        called = {item["call_id"] for item in events(operations[1:], "tool/call")}
        streamed = {item["data"]["call_id"] for item in deltas(operations[1:], "tool-call")}
        assert set(source_calls(records)) == called | streamed, name


def test_calls_of_messages_are_the_calls_that_were_made(logs: list[Log]) -> None:
    for name, _, operations in logs:
        told = [
            (block["call_id"], block["name"])
            for message in events(operations[1:], "assistant/message")
            for block in message["content"]
            if block["type"] == "tool-call"
        ]
        calls = events(operations[1:], "tool/call")
        made = [(item["call_id"], item["name"]) for item in calls if "parent_call_id" not in item]
        assert told == made, name
        results = {item["call_id"] for item in events(operations[1:], "tool/result")}
        assert results == {item["call_id"] for item in calls}, name
        ids = {item["call_id"] for item in calls}
        assert all(item.get("parent_call_id", item["call_id"]) in ids for item in calls), name
        assert all(type(item["turn"]) is type(item["step"]) is int for item in calls), name


def streamed_blocks(operations: list[Json]) -> dict[tuple[str, int], list[Json]]:
    blocks: dict[tuple[str, int], list[Json]] = {}
    for delta in deltas(operations[1:]):
        if "block" in delta["data"]:
            blocks.setdefault((delta["attempt"], delta["data"]["block"]), []).append(delta)
    return blocks


def test_the_pieces_of_a_block_are_its_whole(logs: list[Log]) -> None:
    compared = 0
    for name, _, operations in logs:
        for (attempt, number), block in streamed_blocks(operations).items():
            ends = [delta["data"]["value"] for delta in block if delta["type"] == "block-end"]
            pieces = [
                delta for delta in block if delta["type"] in {"text", "reasoning", "tool-call"}
            ]
            if not ends or not pieces:
                continue
            kind = only(ends)["type"]
            key = "arguments" if kind == "tool-call" else "text"
            assert {delta["type"] for delta in pieces} == {kind}, (name, attempt, number)
            told = ["".join(delta["data"][key] for delta in pieces), ends[0][key]]
            if kind == "tool-call":  # one log writes the same arguments in two ways
                told = [json.loads(text) for text in told]
            assert told[0] == told[1], (name, attempt, number)
            compared += 1
    assert compared > 200


def test_attempts_are_told_in_order_and_end_once(logs: list[Log]) -> None:
    for name, _, operations in logs:
        where: dict[str, tuple[int, int, int]] = {}
        settled: list[str] = []
        for item in operations[1:]:
            if item["op"] == "delta":
                place = (item["turn"], item["step"], item["number"])
                assert where.setdefault(item["attempt"], place) == place, name
                assert item["attempt"] not in settled, name
            elif item["op"] == "settle":
                settled.append(item["attempt"])
        assert list(where.values()) == sorted(where.values()), name
        assert len(settled) == len(set(settled)), name
        assert set(settled) <= set(where), name


def test_every_text_of_a_log_is_in_its_recording(logs: list[Log]) -> None:
    for name, records, operations in logs:
        there = set(texts_in(operations)) | IMPLIED
        for item in records:
            said = item
            if item["type"].startswith("tool/code-dispatch"):
                arguments = item["data"]["arguments"]
                text = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
                said = {**item, "data": {**item["data"], "arguments": text}}
            lost = {text for text in texts_in(said) if text not in there}
            # The arguments of a command stand behind a blank.
            assert {text.removeprefix(" ") for text in lost} <= there, (name, lost)


IMPLIED = {
    *("assistant/chunk", "text-delta", "reasoning-delta", "tool-call-delta"),
    *("text-chunks", "reasoning-chunks", "tool-call-chunks", "tool/code-dispatch-start"),
    *("agent/inbox/spliced", "session/title", "approval/asked", "approval/decided"),
    *("tool/code-dispatch", "tool-result", "assistant", "tool", "user", "append"),
}
"""Words of the format itself: the operation that stands there says them."""


def texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from texts_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts_in(item)
