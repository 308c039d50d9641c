"""An answer under construction, whatever the format: calls, their ids, their arguments, its end."""

from __future__ import annotations

import json
from collections.abc import Callable, Container
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assembler.codec import plain
from definitions.arguments import InvalidArguments, complete
from definitions.ids import CallIds
from definitions.providers.answer import Answer
from definitions.providers.outcome import Call, Response
from definitions.providers.witnesses import verdict_of
from tests.definitions.providers.support import emitted, named, texts


def answer(in_use: Container[str] = ()) -> Answer:
    return Answer("toy", CallIds("c1", "a1", in_use))


def ended(begun: Answer, reason: str = "tool_use") -> Response:
    begun.close_all()
    begun.stop(reason, f"their {reason}")
    begun.end()
    return begun.settle()


def only(response: Response) -> Call:
    (call,) = response.calls
    return call


def arguments(begun: Answer) -> list[tuple[str, str]]:
    """What was told of arguments while the answer was written: call id and fragment."""
    return [
        (piece.data["call_id"], piece.data["arguments"])
        for piece in begun.pieces
        if piece.type == "tool-call" and piece.data["arguments"]
    ]


# What the arguments are

WHOLE = '{"q":"ab","n":3}'
CONFLICT = "arguments-conflict"
VERDICTS: dict[str, tuple[list[str], list[str], tuple[str, Any, str | None, bool]]] = {
    "nothing at all": ([], [], ("", {}, None, False)),
    "an empty text": ([""], [], ("", {}, None, False)),
    "blanks": ([" ", "\n"], [""], ("", {}, None, False)),
    "pieces": (['{"q":', '"ab"', "}"], [], ('{"q":"ab"}', {"q": "ab"}, None, False)),
    "all so far each time": (
        ['{"q":', '{"q":"ab"', WHOLE],
        [],
        (WHOLE, {"q": "ab", "n": 3}, None, False),
    ),
    "all so far, the last twice": (
        ['{"q":', WHOLE, WHOLE],
        [],
        (WHOLE, {"q": "ab", "n": 3}, None, False),
    ),
    "pieces, then the whole": (
        ['{"q":', '"ab"}', '{"q": "ab"}'],
        [],
        ('{"q":"ab"}', {"q": "ab"}, None, False),
    ),
    "the whole three times": (["{}", "{}", "{}"], [], ("{}", {}, None, False)),
    "the whole, and another": (['{"a":1}', '{"a":2}'], [], ('{"a":1}', None, CONFLICT, False)),
    "the whole, then something": (
        ['{"a":1}', ',"b":2}'],
        [],
        ('{"a":1},"b":2}', None, "invalid-json", False),
    ),
    "no JSON": (['{"who": ', "Eve}"], [], ('{"who": Eve}', None, "invalid-json", False)),
    "half": (['{"a":', "1"], [], ('{"a":1', None, "invalid-json", False)),
    "no object": (["[1]"], [], ("[1]", None, "invalid-json", False)),
    "JSON in a JSON string": (
        ['"{\\"a\\":', '1}"'],
        [],
        ('{"a":1}', {"a": 1}, None, False),
    ),
    "an empty JSON string": (['""'], [], ("{}", {}, None, False)),
    "a text in a JSON string": (['"hello"'], [], ('"hello"', None, "invalid-json", False)),
    "a snapshot alone": ([], ['{"a":1}'], ('{"a":1}', {"a": 1}, None, False)),
    "pieces and an equal snapshot": (
        ['{"a":', "1}"],
        ['{ "a" : 1 }'],
        ('{"a":1}', {"a": 1}, None, False),
    ),
    "an empty snapshot says nothing": (['{"a":1}'], ["", " "], ('{"a":1}', {"a": 1}, None, False)),
    "a majority": (['{"a":1}'], ['{"a":2}', '{"a": 2}'], ('{"a":2}', {"a": 2}, None, True)),
    "pieces with a hole are outvoted": (
        ['{"a":'],
        ['{"a":2}', '{"a":2}'],
        ('{"a":2}', {"a": 2}, None, True),
    ),
    "one against one": (['{"a":1}'], ['{"a":2}'], ('{"a":1}', None, CONFLICT, False)),
    "one and a half against none": (['{"a":'], ['{"a":1}'], ('{"a":', None, CONFLICT, False)),
    "true is not one": (['{"a":true}'], ['{"a":1}'], ('{"a":true}', None, CONFLICT, False)),
    "the order of keys does not matter": (
        ['{"a":1,"b":2}'],
        ['{"b":2,"a":1}'],
        ('{"a":1,"b":2}', {"a": 1, "b": 2}, None, False),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", VERDICTS)
def test_what_the_arguments_are(name: str) -> None:
    pieces, snapshots, expected = VERDICTS[name]
    verdict = verdict_of(pieces, snapshots)
    assert (verdict.text, verdict.arguments, verdict.why, verdict.disagree) == expected


@given(
    st.dictionaries(st.text('ab\\" {}', max_size=3), st.integers() | st.text(max_size=3)),
    st.data(),
)
def test_pieces_cut_anywhere_say_what_the_whole_says(value: Any, data: st.DataObject) -> None:
    text = json.dumps(value)
    places = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    edges = [0, *places, len(text)]
    pieces = [text[a:b] for a, b in zip(edges, edges[1:], strict=False)]
    assert verdict_of(pieces, []).arguments == value
    so_far = [text[:b] for b in edges[1:]]
    assert verdict_of(so_far, []).arguments == value
    assert verdict_of([*pieces, text], []).arguments == value


@given(st.lists(st.text('{}":1a,\\', max_size=4), max_size=6))
def test_what_is_ready_is_what_was_written(pieces: list[str]) -> None:
    verdict = verdict_of(pieces, [])
    if verdict.arguments is not None and verdict.text:
        assert complete(verdict.text) == verdict.arguments
    if verdict.why == "invalid-json":
        with pytest.raises(InvalidArguments):
            complete(verdict.text)


# How a call comes to be known


def test_a_call_is_announced_when_id_and_name_are_known_and_its_pieces_follow() -> None:
    begun = answer()
    call = begun.open_call()
    begun.argue(call, '{"a"')
    assert begun.pieces == []
    begun.identify(call, hint="k1")
    assert begun.pieces == []
    begun.identify(call, name="look")
    begun.argue(call, ":1}")
    assert [dict(piece.data) for piece in begun.pieces] == [
        {"block": 0, "call_id": "k1", "name": "look", "arguments": ""},
        {"block": 0, "call_id": "k1", "arguments": '{"a"'},
        {"block": 0, "call_id": "k1", "arguments": ":1}"},
    ]


def test_what_is_empty_or_of_a_wrong_type_neither_names_nor_wipes() -> None:
    begun = answer()
    call = begun.open_call(hint="k1", name="look")
    for odd in ("", None, 7, [], {}):
        begun.identify(call, hint=odd, name=odd)
        begun.name_more(call, odd)
    assert named(begun.pieces) == [("k1", "look")]
    assert only(ended(begun)).name == "look"


def test_the_first_id_stays() -> None:
    begun = answer()
    call = begun.open_call(hint="k1", name="look")
    begun.identify(call, hint="k2")
    assert only(ended(begun)).call_id == "k1"


@pytest.mark.parametrize(
    ("pieces", "name"),
    [(["plan_", "trip"], "plan_trip"), (["look"] * 3, "look"), (["lo", "look"], "look")],
)
def test_a_name_may_come_in_pieces_or_whole_each_time(pieces: list[str], name: str) -> None:
    begun = answer()
    call = begun.open_call(hint="k1")
    for piece in pieces:
        begun.name_more(call, piece)
    assert named(begun.pieces)[-1] == ("k1", name)
    assert only(ended(begun)).name == name


def test_a_call_without_an_id_gets_one_at_the_end_and_no_early_row() -> None:
    begun = answer()
    for text in ('{"a":1}', '{"a":1}'):
        begun.argue(begun.open_call(name="look"), text)
    response = ended(begun)
    assert named(begun.pieces) == []
    assert [call.ready for call in response.calls] == [True, True]
    assert len({call.call_id for call in response.calls}) == 2


def test_an_id_in_use_elsewhere_is_minted_at_once_and_the_providers_is_kept_beside() -> None:
    begun = answer({"call_0"})
    begun.argue(begun.open_call(hint="call_0", name="look"), "{}")
    ((call_id, _),) = named(begun.pieces)
    assert call_id not in ("", "call_0")
    response = ended(begun)
    assert (only(response).call_id, only(response).provider_call_id) == (call_id, "call_0")
    assert response.content[0]["provider_call_id"] == "call_0"


def test_a_second_call_under_one_id_waits_for_its_end() -> None:
    begun = answer()
    first = begun.open_call(hint="k1", name="look")
    begun.argue(first, '{"a":1}')
    begun.close(first)
    second = begun.open_call(hint="k1", name="look")
    begun.argue(second, '{"a":2}')
    assert named(begun.pieces) == [("k1", "look")]
    begun.close(second)
    assert len(named(begun.pieces)) == 2
    calls = ended(begun).calls
    assert [call.arguments for call in calls] == [{"a": 1}, {"a": 2}]
    assert calls[1].call_id == named(begun.pieces)[1][0] != "k1"


@pytest.mark.parametrize("again", ['{"a":1}', '{ "a" : 1 }'])
def test_the_same_call_once_more_is_one_call(again: str) -> None:
    begun = answer()
    for text in ('{"a":1}', again):
        call = begun.open_call(hint="k1", name="look")
        begun.argue(call, text)
        begun.close(call)
    assert only(ended(begun)).call_id == "k1"


def test_equal_arguments_of_another_tool_are_another_call() -> None:
    begun = answer()
    for name in ("look", "rm"):
        begun.argue(begun.open_call(hint="k1", name=name), '{"a":1}')
    assert [call.name for call in ended(begun).calls] == ["look", "rm"]


def test_a_third_call_may_repeat_the_second() -> None:
    begun = answer()
    for number in (1, 2, 2, 1):
        begun.argue(begun.open_call(hint="k1", name="look"), f'{{"a":{number}}}')
    assert [call.arguments for call in ended(begun).calls] == [{"a": 1}, {"a": 2}]


def test_calls_side_by_side_under_one_id_are_told_apart_when_all_are_closed() -> None:
    begun = answer()
    first = begun.open_call(hint="k1", name="look")
    second = begun.open_call(hint="k1", name="look")
    begun.argue(second, '{"a":2}')
    begun.close(second)
    begun.argue(first, '{"a":1}')
    assert named(begun.pieces) == [("k1", "look")]
    calls = ended(begun).calls
    assert [call.arguments for call in calls] == [{"a": 1}, {"a": 2}]
    assert calls[0].call_id == "k1" != calls[1].call_id


def test_a_call_of_which_nothing_was_said_is_none() -> None:
    begun = answer()
    begun.open_call()
    begun.flow("Hi")
    response = ended(begun)
    assert response.calls == ()
    assert plain(response.content) == [{"type": "text", "text": "Hi"}]


def test_a_call_made_inside_a_call_names_its_parent() -> None:
    begun = answer({"k1"})
    begun.open_call(hint="k1", name="code", ran_by="provider")
    begun.open_call(hint="k2", name="look", parent="k1")
    begun.open_call(hint="k3", name="look", parent="of an earlier answer")
    told = [piece.data.get("parent_call_id") for piece in begun.pieces]
    calls = ended(begun).calls
    assert told == [None, calls[0].call_id, "of an earlier answer"]
    assert [call.parent_call_id for call in calls] == told


# Arguments, while they come


def test_an_object_is_all_the_arguments() -> None:
    begun = answer()
    begun.argue(begun.open_call(hint="k1", name="look"), {"p": [1, {"é": None}]})
    assert arguments(begun) == [("k1", '{"p":[1,{"é":null}]}')]
    assert only(ended(begun)).arguments == {"p": [1, {"é": None}]}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [1], 7, True, "{", '"x"'])
def test_what_is_no_object_is_never_one(value: Any) -> None:
    begun = answer()
    begun.argue(begun.open_call(hint="k1", name="look"), value)
    call = only(ended(begun))
    assert (call.ready, call.why) == (False, "invalid-json")


def test_a_snapshot_behind_pieces_is_not_told_twice() -> None:
    begun = answer()
    call = begun.open_call(hint="k1", name="look")
    begun.argue(call, '{"a":1}')
    begun.argue_whole(call, '{"a":1}')
    assert "".join(text for _, text in arguments(begun)) == '{"a":1}'


def test_a_preview_that_was_wrong_is_mended_at_the_end_of_the_block() -> None:
    begun = answer()
    call = begun.open_call(hint="k1", name="look")
    for text in ('{"q":', '{"q":"ab"}'):
        begun.argue(call, text)
    begun.close(call)
    assembler = emitted(begun.pieces)
    assert str(assembler.view()["tool:k1"].data["arguments_text"]) == '{"q":"ab"}'


def test_pieces_that_were_a_preview_are_no_witness() -> None:
    begun = answer()
    call = begun.open_call(hint="u1", name="look")
    begun.argue(call, '{"a":1,"b":')
    begun.argue_instead(call, {"b": 2})
    response = ended(begun)
    assert (only(response).arguments, response.incidents) == ({"b": 2}, ())
    assert begun.pieces[-1].data["value"]["arguments"] == '{"b":2}'
    assert arguments(begun) == [("u1", '{"a":1,"b":')]


def test_a_call_may_have_an_id_of_ours_at_once() -> None:
    begun = answer()
    call, named_call = begun.open_call(name="run"), begun.open_call(hint="u1", name="run")
    begun.own_id(call)
    begun.own_id(named_call)
    begun.argue(call, "{}")
    ours = begun.ids.mint(0)
    assert named(begun.pieces) == [("u1", "run"), (ours, "run")]
    assert [each.call_id for each in ended(begun).calls] == [ours, "u1"]


def test_no_piece_holds_half_a_character() -> None:
    begun = answer()
    call = begun.open_call(hint="k1", name="look")
    for piece in ('{"a":"\ud83d', '\udeb2"', ',"b":"\ud83d', '"}'):
        begun.argue(call, piece)
    for piece in ("\ud83d", "\udeb2 \udeb2", "\ud83d"):
        begun.flow(piece)
    emitted(begun.pieces)  # refuses what UTF-8 cannot carry
    response = ended(begun)
    assert only(response).arguments == {"a": "🚲", "b": "\ufffd"}
    assert texts(begun.pieces) == "🚲 \ufffd\ufffd"
    assert response.content[1]["text"] == "🚲 \ufffd\ufffd"


def test_pieces_behind_the_end_of_a_block_still_count() -> None:
    begun = answer()
    call = begun.open_call(hint="k1", name="look")
    begun.argue(call, "{}")
    begun.close(call)
    begun.argue(call, ",1")
    assert only(ended(begun)).why == "invalid-json"


def test_a_complete_call_is_a_hint_and_one_the_provider_runs_is_none() -> None:
    begun = answer()
    for hint, text, ran_by in (
        ("k1", '{"a":1}', "host"),
        ("k2", "{", "host"),
        ("k3", "{}", "provider"),
    ):
        call = begun.open_call(hint=hint, name="look", ran_by=ran_by)
        begun.argue(call, text)
        begun.close(call)
    assert [(hint.call_id, hint.name, hint.arguments) for hint in begun.hints] == [
        ("k1", "look", {"a": 1})
    ]


# How it ends

Doing = Callable[[Answer], None]


def fail(begun: Answer) -> None:
    begun.fail({"message": "busy"})


def broken(begun: Answer) -> None:
    begun.lose()


@pytest.mark.parametrize(
    ("odd", "reason", "why"),
    [
        (None, "tool_use", None),
        (None, "pause", None),
        (None, "other", None),
        (None, "length", "length"),
        (None, "content_filter", "content-filter"),
        (None, "refusal", "content-filter"),
        (fail, "tool_use", "stream-error"),
        (fail, "length", "length"),
        (broken, "tool_use", "stream-error"),
    ],
)
def test_a_response_that_is_not_whole_has_no_ready_call(
    odd: Doing | None, reason: str, why: str | None
) -> None:
    begun = answer()
    begun.argue(begun.open_call(hint="k1", name="look"), "{}")
    if odd:
        odd(begun)
    response = ended(begun, reason)
    assert response.why == why
    assert response.whole is (why is None)
    call = only(response)
    assert (call.ready, call.why) == (why is None, why)
    assert call.arguments == ({} if why is None else None)


def test_without_a_word_of_the_provider_it_did_not_end() -> None:
    begun = answer()
    begun.argue(begun.open_call(hint="k1", name="look"), "{}")
    begun.close_all()
    assert begun.settle().why == "no-terminal"
    begun.lose()
    assert begun.settle().why == "no-terminal"


def test_what_is_lost_behind_the_end_costs_nothing_unless_more_comes() -> None:
    for more, why in ((None, None), (Answer.end, "stream-error")):
        begun = answer()
        begun.argue(begun.open_call(hint="k1", name="look"), "{}")
        begun.close_all()
        begun.end()
        begun.lose()
        if more:
            more(begun)
        assert begun.settle().why == why


@pytest.mark.parametrize(
    "more",
    [
        lambda begun: begun.flow("more"),
        lambda begun: begun.open_call(name="x"),
        lambda begun: begun.argue(begun.blocks[0], " "),
        lambda begun: begun.argue_whole(begun.blocks[0], {"a": 1}),
        lambda begun: begun.keep({"type": "x"}),
        lambda begun: begun.keep_result("k1", {}, (), is_error=False),
    ],
)
def test_what_comes_behind_an_end_takes_it_back(more: Doing) -> None:
    begun = answer()
    begun.argue(begun.open_call(hint="k1", name="look"), "{}")
    begun.close_all()
    begun.stop("length")
    begun.end()
    more(begun)
    response = begun.settle()
    assert (response.why, response.stop_detail) == ("no-terminal", None)


@pytest.mark.parametrize(
    "more",
    [
        lambda begun: begun.flow(None),
        lambda begun: begun.flow(""),
        lambda begun: begun.identify(begun.blocks[0], hint="", name=None),
        lambda begun: begun.count({"input_tokens": 1}, {"in": 1}),
        lambda begun: begun.name(model="m"),
    ],
)
def test_what_says_nothing_leaves_an_end_as_it_is(more: Doing) -> None:
    begun = answer()
    begun.argue(begun.open_call(hint="k1", name="look"), "{}")
    begun.close_all()
    begun.stop("tool_use")
    begun.end()
    more(begun)
    assert only(begun.settle()).ready


def test_the_reasons_of_single_calls_and_a_sound_sibling() -> None:
    begun = answer()
    told = [("k1", "look", "{}"), ("k2", "look", "{"), ("k3", "", "{}"), ("k4", "", "{")]
    for hint, name, text in told:
        begun.argue(begun.open_call(hint=hint, name=name), text)
    begun.close_all()
    begun.argue_whole(begun.open_call(hint="k5", name="look"), "{}")
    begun.stop("tool_use")
    begun.end()
    response = begun.settle()
    assert [(call.call_id, call.why) for call in response.calls] == [
        ("k1", None),
        ("k2", "invalid-json"),
        ("k3", "no-name"),
        ("k4", "invalid-json"),
        ("k5", "incomplete"),
    ]
    assert [(odd.kind, odd.call_id) for odd in response.incidents] == [
        ("unparsed-arguments", "k2"),
        ("unparsed-arguments", "k4"),
    ]


def test_a_majority_is_noted() -> None:
    begun = answer()
    call = begun.open_call(hint="k1", name="look")
    begun.argue(call, '{"a":1}')
    begun.argue_whole(call, {"a": 2})
    begun.argue_whole(call, '{"a":2}')
    response = ended(begun)
    assert only(response).arguments == {"a": 2}
    assert [(odd.kind, odd.call_id) for odd in response.incidents] == [("arguments-disagree", "k1")]
    assert response.content[0]["arguments"] == '{"a":2}'


def test_content_says_whether_there_are_calls_and_the_label_the_rest() -> None:
    with_call, without = answer(), answer()
    with_call.open_call(hint="k1", name="look")
    without.flow("Hi")
    assert ended(with_call, "end_turn").stop_reason == "tool_use"
    assert ended(without, "tool_use").stop_reason == "end_turn"
    assert without.settle().stop_detail == "their tool_use"


def test_text_behind_a_call_is_a_new_block_and_the_message_keeps_the_order() -> None:
    begun = answer()
    begun.flow("a", "reasoning")
    begun.flow("b")
    begun.flow("c")
    begun.open_call(hint="k1", name="look")
    begun.flow("d")
    content = plain(ended(begun).content)
    assert [block.get("text", block["type"]) for block in content] == ["a", "bc", "tool-call", "d"]
    shown = emitted(begun.pieces).view()["assistant:1.1"].to_json()["data"]["blocks"]
    assert [block["text"] for block in shown] == ["a", "bc", "d"]


@pytest.mark.parametrize(
    ("pieces", "whole", "said"),
    [
        ([], "Hello 😀", "Hello 😀"),
        (["Hel"], "Hello 😀", "Hello 😀"),
        (["Hello ", "\ud83d"], "Hello 😀", "Hello 😀"),
        (["Hello 😀"], "Hello 😀", "Hello 😀"),
        (["Hello 😀"], "Hello", "Hello 😀"),
        (["Hallo"], "Hello 😀", "Hallo"),
        (["Hello"], None, "Hello"),
    ],
)
def test_a_whole_text_adds_what_is_missing_at_the_end(
    pieces: list[str], whole: Any, said: str
) -> None:
    begun = answer()
    block = begun.open_text()
    for piece in pieces:
        begun.say(block, piece)
    for _ in range(2):
        begun.say_whole(block, whole)
    assert ended(begun).content[0]["text"] == texts(begun.pieces) == said


def test_a_file_of_the_answer_is_a_block_that_shows() -> None:
    begun = answer()
    begun.flow("Look.")
    begun.attach("image/png", data="aWk=", url=None)
    begun.attach(None, url="https://example.com")
    content = plain(ended(begun).content)
    assert content == [
        {"type": "text", "text": "Look."},
        {"type": "file", "media_type": "image/png", "data": "aWk="},
        {"type": "file", "media_type": "application/octet-stream", "url": "https://example.com"},
    ]
    blocks = emitted(begun.pieces).view()["assistant:1.1"].to_json()["data"]["blocks"]
    assert blocks == content


def test_what_people_read_is_text_and_reasoning_that_is_not_blank() -> None:
    begun = answer()
    begun.flow("a", "reasoning")
    begun.flow(" \n")
    begun.open_call(hint="k1", name="look")
    begun.flow("d")
    begun.keep({"type": "secret"})
    assert [block["text"] for block in begun.settle().said] == ["a", "d"]


def test_usage_is_told_when_it_changes() -> None:
    begun = answer()
    for raw in ({"in": 1}, {"in": 1}, {"in": 2}):
        begun.count({"input_tokens": raw["in"], "output_tokens": None}, raw)
    assert [plain(piece.data)["usage"] for piece in begun.pieces] == [
        {"input_tokens": 1, "raw": {"in": 1}},
        {"input_tokens": 2, "raw": {"in": 2}},
    ]
    assert plain(ended(begun).usage) == {"input_tokens": 2, "raw": {"in": 2}}


def test_nothing_that_was_given_in_is_kept_by_reference() -> None:
    begun = answer()
    raw: dict[str, Any] = {"type": "x", "inner": {"n": [1]}}
    begun.keep(raw)
    begun.argue(begun.open_call(hint="k1", name="look"), raw["inner"])
    raw["inner"]["n"].append(2)
    raw["type"] = "y"
    response = ended(begun)
    assert plain(response.content[0])["raw"] == {"type": "x", "inner": {"n": [1]}}
    assert only(response).arguments == {"n": [1]}


def nested(levels: int) -> Any:
    value: Any = "kept"
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    "odd",
    [nested(5_000), {"n": 10**5_000}, {(1, 2): 3}, {"s": {1}}, b"{}"],
    ids=["deep", "long", "key", "set", "bytes"],
)
def test_arguments_that_are_no_json_are_never_taken_for_none_at_all(odd: Any) -> None:
    begun = answer()
    begun.argue_whole(begun.open_call(hint="x", name="f"), odd)
    begun.argue(begun.open_call(hint="y", name="g"), '{"a":1}')
    first, second = ended(begun).calls
    assert (first.ready, first.why, second.ready) == (False, "invalid-json", True)
    # Newer Pythons write even the deep one down, as it is.
    assert first.arguments_text.startswith(("(no JSON) ", '{"a":{"a":'))


def test_what_json_cannot_carry_is_replaced_where_it_is_kept() -> None:
    begun = answer()
    deep: Any = 1
    for _ in range(5_000):
        deep = [deep]
    begun.keep({"a": "x\ud83d", "\ud83d": float("nan"), "big": 10**6_000, "deep": deep, "o": {1}})
    raw = plain(ended(begun).content[0])["raw"]
    assert (raw["a"], raw["\ufffd"], raw["o"]) == ("x\ufffd", None, None)
    assert raw["big"] == hex(10**6_000)
