"""What goes back to the model, whatever its format; seen through the Chat format, the plainest."""

from __future__ import annotations

import json
from typing import Any

import pytest

from assembler import Assembler, InputError
from definitions import catalog
from definitions.model_context import FORMATS, IncompleteHistoryError, model_context
from tests.definitions.model_context.support import Log, call, given, reasoning, text


def lines(log: Log, **live: Any) -> list[str]:
    """One line a message: who, what is said, and the ids of its calls."""
    return [line(message) for message in given(log, "openai_chat", **live)]


def line(message: dict[str, Any]) -> str:
    content = message["content"]
    told = content if isinstance(content, str) else json.dumps(content or "")
    calls = [each["id"] for each in message.get("tool_calls", [])]
    which = message.get("tool_call_id", "") + " ".join(calls)
    return " ".join(f"{message['role']} {which}: {told}".split())


def test_nothing_said_is_nothing_sent() -> None:
    for each in FORMATS:
        assert given(Log(), each) == []


def test_an_unknown_format_is_an_error_that_names_the_known_ones() -> None:
    with pytest.raises(InputError, match="anthropic, openai_chat, openai_responses, gemini"):
        model_context(Assembler(catalog()), "cobol")


def test_a_call_and_its_result_stand_between_what_is_said() -> None:
    log = Log().starts("look").says("I look", call("c1")).calls("c1").results("c1", "sky")
    log.steps().says("blue").ends()
    assert lines(log) == [
        "user : look",
        "assistant c1: I look",
        "tool c1: sky",
        "assistant : blue",
    ]


def test_results_stand_in_the_order_of_their_calls() -> None:
    log = Log().starts("go").says(call("c1"), call("c2")).calls("c1").calls("c2")
    log.results("c2", "two").results("c1", "one")
    assert lines(log)[2:] == ["tool c1: one", "tool c2: two"]


def test_a_message_that_came_while_calls_ran_stands_behind_their_results() -> None:
    log = Log().starts("go").says(call("c1")).calls("c1").user("wait").results("c1", "done")
    log.steps().says("ok")
    assert lines(log)[2:] == ["tool c1: done", "user : wait", "assistant : ok"]


def test_a_late_result_stands_at_its_call() -> None:
    log = Log().starts("go").says(call("c1")).calls("c1").steps().says("I go on").ends()
    log.results("c1", "done at last")
    assert lines(log)[1:] == ['assistant c1: ""', "tool c1: done at last", "assistant : I go on"]


@pytest.mark.parametrize(
    ("finish", "live", "said"),
    [
        (lambda log: log, None, "The call has no result yet."),
        (lambda log: log, False, "The call has no result: whether it ran to its end is not known."),
        (
            lambda log: log.ends("interrupted"),
            None,
            "The call has no result: whether it ran to its end is not known.",
        ),
        (
            lambda log: log.starts("again"),
            None,
            "The call has no result: whether it ran to its end is not known.",
        ),
        (
            lambda log: log.ends("cancelled"),
            None,
            "The turn was cancelled before the call had a result.",
        ),
        (
            lambda log: log.add("permission/answer", call_id="c1", request_id=1, decision="deny"),
            None,
            "The call was denied. It did not run.",
        ),
    ],
)
def test_a_call_without_a_result_says_why(finish: Any, live: Any, said: str) -> None:
    log = Log().starts("go").says(call("c1")).calls("c1")
    log.add("permission/request", call_id="c1", request_id=1, input={})
    assert lines(finish(log), live=live)[2].removeprefix("tool c1: Error: ").endswith(said)
    is_error = given(log, "anthropic", live=live)[2]["content"][0].get("is_error", False)
    assert is_error is (said != "The call has no result yet.")


def test_an_allowed_call_is_not_denied() -> None:
    log = Log().starts("go").says(call("c1")).calls("c1")
    log.add("permission/request", call_id="c1", request_id=1, input={})
    log.add("permission/answer", call_id="c1", request_id=1, decision="allow")
    assert lines(log)[2] == "tool c1: The call has no result yet."


@pytest.mark.parametrize("reason", ["cancelled", "completed", "error"])
def test_a_call_that_was_never_handed_over_did_not_run(reason: str) -> None:
    log = Log().starts("go").says(call("c1", arguments='{"a'), stop_reason="length").ends(reason)
    assert lines(log)[2] == "tool c1: Error: The call did not run."


def test_a_result_without_its_call_is_left_out() -> None:
    log = Log().starts("go").results("c9", "lost").says("hm")
    assert lines(log) == ["user : go", "assistant : hm"]


def test_a_result_whose_call_only_the_message_tells_of_is_its_result() -> None:
    log = Log().starts("go").says(call("c1")).results("c1", "gone", synthetic=True)
    log.results("c1", "here")
    assert lines(log)[2] == "tool c1: here"


def test_a_call_that_no_message_names_stands_behind_what_its_step_says() -> None:
    log = Log().starts("go").says("I look").calls("c1", provider_call_id="p1").results("c1", "sky")
    log.steps().calls("c2").results("c2", "sea").calls("c3").results("c3", "sun")
    assert lines(log)[1:] == [
        "assistant c1: I look",
        "tool c1: sky",
        'assistant c2 c3: ""',
        "tool c2: sea",
        "tool c3: sun",
    ]


def test_calls_that_no_message_names_stand_in_the_order_in_which_they_were_made() -> None:
    assembler = Assembler(catalog())
    assembler.load(Log().starts("go").events)
    told = {"attempt": "a1", "turn": 1, "step": 1, "after": 3, "time": 9, "type": "tool-call"}
    for at, call_id in enumerate(["c1", "c2"]):
        data = {"block": at, "call_id": call_id, "name": "look", "arguments": "{}"}
        assembler.emit({**told, "data": data, "ordinal": at, "index": at + 1})
    for event in Log().starts("go").calls("c2").calls("c1").events[3:]:
        assembler.append(event)
    calls = model_context(assembler, "openai_chat")[1]["tool_calls"]
    assert [each["id"] for each in calls] == ["c2", "c1"]


def test_calls_made_inside_a_call_are_not_in_the_context_of_its_parent() -> None:
    log = Log().starts("go").says(call("c1", "task"), call("c3", parent_call_id="c1")).calls("c1")
    log.calls("c2", parent_call_id="c1").results("c2", "inner").results("c1", "outer")
    assert lines(log)[1:] == ['assistant c1: ""', "tool c1: outer"]


def test_an_interrupted_message_keeps_its_text_and_no_call() -> None:
    log = Log().starts("go")
    log.says(reasoning("hm", signature="s"), "I beg", call("c1"), interrupted=True).ends("error")
    log.starts("again").says("fine")
    assert [line.split(": ")[1] for line in lines(log)] == ["go", "I beg", "again", "fine"]


def test_an_interrupted_message_of_an_attempt_that_is_given_up_later_is_left_out() -> None:
    log = Log().starts("go").says("I beg", interrupted=True)
    log.add("llm/retry", **log.place, retry_id="r", attempt="a1", number=1, reason="lost")
    assert lines(log) == ["user : go"]
    log.says("I begin")
    assert lines(log)[1:] == ["assistant : I begin"]


def test_what_is_still_being_written_is_not_in_it() -> None:
    assembler = Assembler(catalog())
    assembler.load(Log().starts("go").events)
    told = {"attempt": "a1", "turn": 1, "step": 1, "after": 3, "time": 9}
    for index, (kind, data) in enumerate(
        [
            ("text", {"block": 0, "text": "I beg"}),
            ("tool-call", {"block": 1, "call_id": "c1", "name": "look", "arguments": "{}"}),
        ]
    ):
        assembler.emit({**told, "type": kind, "data": data, "ordinal": index, "index": index + 1})
    for each in FORMATS:
        assert "I beg" not in json.dumps(model_context(assembler, each))
        assert "look" not in json.dumps(model_context(assembler, each))


def test_what_is_empty_is_left_out() -> None:
    log = Log().starts("go", " \n").says("", " ", reasoning("")).user("").steps().says()
    log.steps().says(call("c1"), call(""), call("c2", name="")).calls("c1").results("c1", "")
    for each in FORMATS:
        assert len(given(log, each)) == 3, each
    assert lines(log) == ["user : go", 'assistant c1: ""', "tool c1: (no output)"]


def test_an_id_that_comes_again_is_the_first_call() -> None:
    log = Log().starts("go").says(call("c1")).calls("c1").results("c1", "one").steps()
    log.says("and", call("c1")).ends()
    assert lines(log)[3:] == ["assistant : and"]


def test_arguments_go_back_as_they_came() -> None:
    odd = '{ "b": 1.0,\n"a": [1e2, "\\u00e4"] }'
    log = Log().starts("go").says(call("c1", arguments=odd)).calls("c1", arguments='{"b":2}')
    assert arguments_in(given(log, "openai_chat")[1]) == [odd]
    assert arguments_in(given(log, "openai_responses")[1]) == [odd]
    assert given(log, "anthropic")[1]["content"][0]["input"] == json.loads(odd)
    assert given(log, "gemini")[1]["parts"][0]["functionCall"]["args"] == json.loads(odd)


def arguments_in(item: dict[str, Any]) -> list[str]:
    calls = [each["function"] for each in item.get("tool_calls", [])]
    return [each["arguments"] for each in [item, *calls] if "arguments" in each]


@pytest.mark.parametrize("odd", ['{"a', "[1]", "null", "{} {}"])
def test_arguments_that_are_no_object_say_what_they_are(odd: str) -> None:
    log = Log().starts("go").says(call("c1", arguments=odd)).calls("c1", arguments=odd).ends()
    told = given(log, "anthropic")[1]["content"][0]["input"]
    assert told == {"unparsed_arguments": odd}
    assert json.loads(arguments_in(given(log, "openai_chat")[1])[0]) == told
    assert json.loads(arguments_in(given(log, "openai_responses")[1])[0]) == told
    assert given(log, "gemini")[1]["parts"][0]["functionCall"]["args"] == told


def test_no_arguments_are_an_empty_object() -> None:
    log = Log().starts("go").says(call("c1", arguments=""))
    assert arguments_in(given(log, "openai_chat")[1]) == ["{}"]


def test_an_error_says_that_it_is_one() -> None:
    log = Log().starts("go").says(call("c1"), call("c2"), call("c3"))
    log.results("c1", "no such file", is_error=True)
    log.results("c2", error={"name": "ValueError", "message": "odd"})
    log.results("c3", "error: twice", is_error=True)
    assert lines(log)[2:] == [
        "tool c1: Error: no such file",
        "tool c2: Error: ValueError: odd",
        "tool c3: error: twice",
    ]
    results = given(log, "anthropic")[2]["content"]
    assert all(each["is_error"] for each in results)
    assert given(log, "gemini")[2]["parts"][0]["functionResponse"]["response"] == {
        "error": "no such file"
    }


def test_json_and_unknown_blocks_are_text() -> None:
    log = Log().starts({"type": "json", "value": {"ä": [1, None]}}, {"type": "poem", "lines": 4})
    assert [part["text"] for part in given(log, "openai_chat")[0]["content"]] == [
        '{"ä":[1,null]}',
        "(A block of type poem is not shown here.)",
    ]


# Compaction


def compacted() -> Log:
    log = Log().starts("old").says("older", call("c0")).calls("c0").results("c0", "x").ends()
    log.starts("kept").says("also kept").ends()
    log.add("compaction/start", compaction_id="k").user("meanwhile")
    log.add("compaction/summary", compaction_id="k", text="It was.", before_seq=9)
    return log.add("compaction/end", compaction_id="k").starts("new")


SUMMARY = "user : Summary of the conversation so far: It was."


def test_a_compaction_stands_for_what_is_before_it() -> None:
    assert lines(compacted()) == [
        SUMMARY,
        "user : kept",
        "assistant : also kept",
        "user : meanwhile",
        "user : new",
    ]


def test_a_compaction_that_does_not_say_where_stands_for_what_is_before_its_start() -> None:
    log = Log().starts("old").says("older").ends().add("compaction/start", compaction_id="k")
    log.user("meanwhile").add("compaction/summary", compaction_id="k", text="It was.")
    assert lines(log) == [SUMMARY, "user : meanwhile"]


@pytest.mark.parametrize(
    "more",
    [{}, {"compaction/summary": {"text": " "}}, {"compaction/end": {"error": {"name": "Lost"}}}],
)
def test_a_compaction_without_a_summary_stands_for_nothing(more: dict[str, Any]) -> None:
    log = Log().starts("old").ends().add("compaction/start", compaction_id="k", before_seq=4)
    if "compaction/end" in more:
        log.add("compaction/summary", compaction_id="k", text="It was.")
    for kind, data in more.items():
        log.add(kind, compaction_id="k", **data)
    assert lines(log) == ["user : old"]


def test_of_two_compactions_the_one_told_last_counts() -> None:
    log = compacted().add("compaction/start", compaction_id="k2")
    log.add("compaction/summary", compaction_id="k2", text="And more.", before_seq=99)
    assert lines(log) == ["user : Summary of the conversation so far: And more."]


def test_a_step_that_began_before_the_compaction_is_left_out_with_all_its_calls() -> None:
    log = Log().starts("old").says(call("c1")).calls("c1")
    log.add("compaction/start", compaction_id="k", before_seq=6).calls("c2").results("c1", "x")
    log.add("compaction/summary", compaction_id="k", text="It was.").results("c2", "y")
    assert lines(log) == [SUMMARY]


def test_a_window_that_reaches_the_compaction_is_enough() -> None:
    log = compacted()
    whole = Assembler(catalog())
    whole.load(log.events)
    for first in range(len(log.events)):
        assembler = Assembler(catalog())
        assembler.load(log.events[first:], has_more=first > 0)
        if first <= 8:
            for each in FORMATS:
                assert model_context(assembler, each) == model_context(whole, each)
            continue
        with pytest.raises(IncompleteHistoryError) as raised:
            model_context(assembler, "anthropic")
        reaches = log.events[first]["seq"] <= 17
        assert raised.value.needed == (9 if reaches else 1)
        assert raised.value.first == first + 1


def test_a_compaction_whose_beginning_is_not_loaded_does_not_say_what_it_stands_for() -> None:
    log = Log().starts("old").add("compaction/start", compaction_id="k").user("meanwhile")
    log.add("compaction/summary", compaction_id="k", text="It was.")
    assert lines(log) == [SUMMARY, "user : meanwhile"]
    assembler = Assembler(catalog())
    assembler.load(log.events[4:], has_more=True)
    with pytest.raises(IncompleteHistoryError):
        model_context(assembler, "anthropic")


def test_without_a_compaction_the_window_reaches_the_beginning_or_it_is_an_error() -> None:
    assembler = Assembler(catalog())
    assembler.load(Log().starts("go").events[1:], has_more=True)
    with pytest.raises(IncompleteHistoryError, match=r"from 1 on.*begins at event 2"):
        model_context(assembler, "gemini")
    assembler.load([], has_more=True)
    with pytest.raises(IncompleteHistoryError, match="nothing is loaded"):
        model_context(assembler, "gemini")


def test_it_is_made_of_plain_values_that_nobody_shares() -> None:
    assembler = Assembler(catalog())
    assembler.load(Log().starts("go").says(text("hi", citations=[{"a": 1}])).events)
    for each in FORMATS:
        told = model_context(assembler, each)
        told[0].clear()
        assert model_context(assembler, each)[0]
