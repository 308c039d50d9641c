"""Bytes cut anywhere -> payloads: event streams, JSON lines, a JSON array."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from definitions.providers.chunks import Chunks
from definitions.providers.framing import Frames


def frames(*parts: bytes) -> list[tuple[str, str | None]]:
    reads = Frames()
    found = [frame for part in parts for frame in reads.feed(part)]
    return [(frame.data, frame.event) for frame in [*found, *reads.rest()]]


def decoded(*parts: Any) -> list[Any]:
    reads = Chunks()
    found = [chunk for part in parts for chunk in reads.feed(part)]
    return [None if chunk.data is None else dict(chunk.data) for chunk in [*found, *reads.rest()]]


STREAMS: dict[str, tuple[bytes, list[tuple[str, str | None]]]] = {
    "named events": (
        b'event: a\ndata: {"n":1}\n\nevent: b\ndata: {"n":2}\n\n',
        [('{"n":1}', "a"), ('{"n":2}', "b")],
    ),
    "CRLF": (b'data: {"n":1}\r\n\r\ndata: {"n":2}\r\n\r\n', [('{"n":1}', None), ('{"n":2}', None)]),
    "CRLF inside an event": (b"event: a\r\ndata: 1\r\n\r\n", [("1", "a")]),
    "CR alone": (b"data: 1\r\rdata: 2\r\r", [("1", None), ("2", None)]),
    "ends mixed": (
        b"data: 1\r\n\ndata: 2\n\r\ndata: 3\r\r\n",
        [("1", None), ("2", None), ("3", None)],
    ),
    "a byte order mark": (b"\xef\xbb\xbfdata: 1\n\n", [("1", None)]),
    "comments": (b": OPENROUTER PROCESSING\n\n:\n\ndata: 1\n: in between\n\n", [("1", None)]),
    "many lines": (b'data: {\ndata:"n": 1\ndata: }\n\n', [('{\n"n": 1\n}', None)]),
    "one blank belongs to the field": (b"data:1\n\ndata:  2\n\n", [("1", None), (" 2", None)]),
    "a field without a colon": (b"data\n\n", [("", None)]),
    "other fields": (b"id: 7\nretry: 10\nnothing: x\ndata: 1\n\n", [("1", None)]),
    "an event without data": (b"event: ping\n\ndata: 1\n\n", [("1", None)]),
    "no blank line at the end": (b"data: 1\n\ndata: 2", [("1", None), ("2", None)]),
    "blank lines first": (b"\n\r\n \ndata: 1\n\n", [("1", None)]),
    "characters of many bytes": ("data: 語🚲é\n\n".encode(), [("語🚲é", None)]),
    "bytes that are no text": (b"data: a\xff\xe8b\n\n", [("a\ufffd\ufffdb", None)]),
    "JSON lines": (b'{"n":1}\r\n\n{"n":2}', [('{"n":1}', None), ('{"n":2}', None)]),
    "one JSON value on many lines": (
        b'{\r\n "n": {\r\n }\r\n}\r\n{"n":2}\n{\n}',
        [('{\n "n": {\n }\n}', None), ('{"n":2}', None), ("{\n}", None)],
    ),
    "a JSON value that breaks off": (b'{\n "n": {\n', []),
    "a JSON array": (
        b'[{\n "n": [1, {"s": "}\\"]"}]\n}\n,\r\n{"n":"\\\\"}]\n',
        [('{\n "n": [1, {"s": "}\\"]"}]\n}', None), ('{"n":"\\\\"}', None)],
    ),
    "an array that breaks off": (b'[{"n":1},{"n":', [('{"n":1}', None)]),
    "nothing": (b"", []),
    "a blank before the first field": (b" data: 1\n\n", [("1", None)]),
    "a mark behind a blank": (b' \xef\xbb\xbf\xef\xbb\xbf{"n":1}', [('{"n":1}', None)]),
    "half a mark": (b"\xef\xbb", []),
    "blanks alone": (b" \n\r\n", []),
}


@pytest.mark.parametrize("name", STREAMS)
def test_payloads_are_the_same_for_every_cut(name: str) -> None:
    data, expected = STREAMS[name]
    assert frames(data) == expected
    assert frames(*[data[at : at + 1] for at in range(len(data))]) == expected
    for at in range(len(data) + 1):
        assert frames(data[:at], data[at:]) == expected, at
        assert frames(data[:at], b"", data[at:]) == expected, at


@given(st.lists(st.sampled_from([*b'dat: {}[]"\\\r\n\xef\xbb\xbf\xe8'])), st.data())
def test_no_cut_can_be_seen_whatever_the_bytes(codes: list[int], data: st.DataObject) -> None:
    sent = bytes(codes)
    places = data.draw(st.lists(st.integers(0, len(sent)), max_size=5).map(sorted))
    parts = [sent[a:b] for a, b in pairwise([0, *places, len(sent)])]
    assert frames(*parts) == frames(sent)


def test_what_is_no_object_says_nothing_and_a_broken_object_says_so() -> None:
    stream = 'data: PING\n\ndata: 7\n\ndata: {"n": \n\ndata: {"n":1}\n\n'
    assert decoded(stream) == [None, {"n": 1}]


@pytest.mark.parametrize("stream", ["data: [DONE]\n\n", "data:[DONE]", '{"n":1}\n[DONE]\n'])
def test_the_last_word_of_a_stream_is_told(stream: str) -> None:
    reads = Chunks()
    *_, last = [*reads.feed(stream), *reads.rest()]
    assert (last.data, last.is_last_word) == ({}, True)


def test_a_chunk_may_be_cut_off_at_the_end_of_the_stream() -> None:
    assert decoded('data: {"n":1}\n\ndata: {"n":2}') == [{"n": 1}, {"n": 2}]
    assert decoded('data: {"n":1}\n\ndata: {"n":') == [{"n": 1}]


def test_numbers_and_depths_that_python_refuses_are_one_broken_chunk() -> None:
    deep = '{"n":' * 100_000
    long = '{"n":' + "1" * 5_000 + "}"
    assert decoded(f"data: {deep}\n\n", f"data: {long}\n\n", 'data: {"n":1}\n\n') == [
        None,
        None,
        {"n": 1},
    ]


def test_text_may_be_cut_between_the_halves_of_a_character() -> None:
    found = decoded('data: {"s":"\ud83d', '\udeb2"}\n\n')
    assert found[0]["s"].encode("utf-16-le", "surrogatepass").decode("utf-16-le") == "🚲"


class Dumped:
    """As pydantic's models, and the SDKs built on them, are seen from outside."""

    def model_dump(self, **how: Any) -> dict[str, Any]:
        assert how == {
            "mode": "json",
            "by_alias": True,
            "exclude_unset": True,
            "warnings": False,
        }
        return {"n": 1}


class OldDumped:
    def model_dump(self) -> dict[str, Any]:
        return {"n": 1}


class Dictlike:
    def to_dict(self) -> dict[str, Any]:
        return {"n": 1}


class Framed:
    """As libraries give one event of a stream."""

    event = "e"
    data = '{"n":1}'


@pytest.mark.parametrize(
    "given",
    [{"n": 1}, [{"n": 1}], Dumped(), OldDumped(), Dictlike(), Framed(), bytearray(b'{"n":1}\n')],
)
def test_decoded_chunks_come_in_many_forms(given: object) -> None:
    assert decoded(given) == [{"n": 1}]


@pytest.mark.parametrize("given", [7, 1.5, True, object()])
def test_what_nobody_can_have_sent_is_refused(given: object) -> None:
    with pytest.raises(TypeError, match="a chunk: expected bytes, text"):
        decoded(given)


def test_nothing_is_no_chunk() -> None:
    assert decoded(None, b"", "", []) == []


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        ("\ufeff{}", [{}]),
        ("\0{}", [None]),
        ('"n":1}', [None]),
        ('n":{"m":1', [None]),
        ('[{"n":1}]', [None]),
        ("[]", []),
        ("[1]", []),
        ("ping", []),
        ("", []),
    ],
)
def test_what_was_to_be_an_object_and_is_none_is_a_hole(payload: str, expected: list[Any]) -> None:
    assert decoded(f"data: {payload}\n\ndata: [DONE]\n\n") == [*expected, {}]


def test_a_byte_order_mark_between_joined_streams_costs_nothing() -> None:
    told = "data: 1\n\n\ufeffdata: 2\n\n".encode()
    assert frames(told) == frames(*(bytes([each]) for each in told)) == [("1", None), ("2", None)]
