"""What a reader of half-written and of complete arguments sees.

Examples for every rule of the partial view, properties over arbitrary texts and cuts, and a naive
reference that reads character by character from the start. Not here: calls, rows and Nodes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from definitions.arguments import (
    MAX_DEPTH,
    GrowingText,
    InvalidArguments,
    PartialArguments,
    PartialView,
    complete,
    partial,
    same_json,
)
from tests.benchmarks.measure import calls

# --- a naive reference -------------------------------------------------------------------------


class _Stop(Exception):  # noqa: N818 - not an error: the text goes no further
    pass


class _Naive:
    """The partial view of one text: from the start, one character at a time."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def view(self) -> dict[str, Any]:
        root: dict[str, Any] = {}
        try:
            self.expect("{")
            self.members(root, 1)
        except _Stop:
            pass
        return root

    def peek(self) -> str:
        if self.at == len(self.text):
            raise _Stop
        return self.text[self.at]

    def take(self) -> str:
        char = self.peek()
        self.at += 1
        return char

    def peek_token(self) -> str:
        while self.peek() in " \t\n\r":
            self.at += 1
        return self.peek()

    def expect(self, chars: str) -> str:
        if self.peek_token() not in chars:
            raise _Stop
        return self.take()

    def members(self, found: dict[str, Any], level: int) -> None:
        if self.peek_token() == "}":
            self.take()
            return
        while True:
            self.expect('"')
            key, whole = self.string()
            if not whole:
                raise _Stop
            self.expect(":")
            self.value(lambda value, key=key: found.__setitem__(key, value), level)
            if self.expect(",}") == "}":
                return

    def items(self, found: list[Any], level: int) -> None:
        if self.peek_token() == "]":
            self.take()
            return
        while True:
            self.value(found.append, level)
            if self.expect(",]") == "]":
                return

    def value(self, show: Any, level: int) -> None:
        char = self.peek_token()
        if char in "{[":
            self.container(show, level + 1)
        elif char == '"':
            self.take()
            text, whole = self.string()
            show(text)
            if not whole:
                raise _Stop
        elif char in "-0123456789":
            self.number(show)
        else:
            for word, value in (("true", True), ("false", False), ("null", None)):
                if self.text.startswith(word, self.at):
                    self.at += len(word)
                    show(value)
                    return
            raise _Stop

    def container(self, show: Any, level: int) -> None:
        if level > MAX_DEPTH:
            self.pass_over()
        elif self.take() == "{":
            found: dict[str, Any] = {}
            show(found)
            self.members(found, level)
        else:
            array: list[Any] = []
            show(array)
            self.items(array, level)

    def pass_over(self) -> None:
        level = 0
        while True:
            char = self.take()
            if char == '"':
                while (char := self.take()) != '"':
                    if char == "\\":
                        self.take()
            elif char in "[{":
                level += 1
            elif char in "]}":
                level -= 1
                if level == 0:
                    return

    def number(self, show: Any) -> None:
        token = ""
        while self.peek() in "+-.0123456789eE":
            token += self.take()
        try:
            number = json.loads(token)
        except ValueError as error:
            if not isinstance(error, json.JSONDecodeError):
                return
            raise _Stop from None
        if number not in (float("inf"), float("-inf")):
            show(number)

    def string(self) -> tuple[str, bool]:
        """Read behind the opening quote: the text, and whether it was closed."""
        units: list[int] = []
        try:
            while True:
                char = self.take()
                if char == '"':
                    return _text(units), True
                units += self.escape() if char == "\\" else _units(char)
        except _Stop:
            if units and 0xD800 <= units[-1] < 0xDC00:
                units.pop()
            return _text(units), False

    def escape(self) -> list[int]:
        simple = {"b": 8, "f": 12, "n": 10, "r": 13, "t": 9, '"': 34, "\\": 92, "/": 47}
        begin = self.at
        char = self.take()
        if char in simple:
            return [simple[char]]
        if char == "u":
            digits = ""
            while len(digits) < 4 and self.peek() in "0123456789abcdefABCDEF":
                digits += self.take()
            if len(digits) == 4:
                return [int(digits, 16)]
        self.at = begin
        return _units("\\")


def _units(char: str) -> list[int]:
    raw = char.encode("utf-16-be", "surrogatepass")
    return [int.from_bytes(raw[at : at + 2], "big") for at in range(0, len(raw), 2)]


def _text(units: list[int]) -> str:
    """Decode UTF-16 units; a half without its other half becomes U+FFFD."""
    raw = b"".join(unit.to_bytes(2, "big") for unit in units)
    return raw.decode("utf-16-be", "replace")


# --- what texts there are ----------------------------------------------------------------------

ANY_CHARACTER = st.characters(exclude_categories=())
ANY_TEXT = st.text(ANY_CHARACTER)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(), VALUES, max_size=5)
SPELLED = st.builds(
    lambda value, ascii_only, indent: json.dumps(value, ensure_ascii=ascii_only, indent=indent),
    OBJECTS,
    st.booleans(),
    st.sampled_from([None, 1]),
)
PIECES = st.sampled_from(
    [
        *'{}[]",:\\/ \n\x00bfnrtu0123456789abcdefDE-+.é€😀\ud83d\ude00\ufeff',
        '"a"',
        '"a":',
        '{"a":"',
        "true",
        "false",
        "null",
        "-1.5e3",
        "01",
        "1e999",
        "NaN",
        "\\uD83D",
        "\\uDE00",
        "\\u00e9",
        "\\u00",
        "\\x",
        "[" * 199,
        "]" * 199,
    ]
)
ALMOST_JSON = st.lists(PIECES, max_size=25).map(lambda pieces: '{"a":' + "".join(pieces))


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """Sound arguments with a few pieces put in, left out or said twice."""
    text = draw(SPELLED)
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(text)))
        to = draw(st.integers(at, min(len(text), at + 5)))
        text = text[:at] + draw(PIECES | st.just("") | st.just(text[at:to] * 2)) + text[to:]
    return text[: draw(st.integers(0, len(text)))]


TEXTS = ANY_TEXT | ALMOST_JSON | mutated() | SPELLED


@st.composite
def cut(draw: st.DrawFn, texts: st.SearchStrategy[str] = TEXTS) -> list[str]:
    """Cut a text into fragments, some of them empty."""
    text = draw(texts)
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=12)))
    return [text[at:to] for at, to in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def exact(value: object) -> str:
    """Spell a value so that `true`, `1` and `1.0` differ."""
    return json.dumps(value, sort_keys=True)


def nested(levels: int) -> str:
    """Make an object of so many levels, the object being one of them."""
    return '{"a":' + "[" * (levels - 1) + "]" * (levels - 1) + "}"


# --- the rules of the partial view, by example -------------------------------------------------


@pytest.mark.parametrize(
    ("text", "view"),
    [
        # what is no object
        ("", {}),
        ("   ", {}),
        ("null", {}),
        ('"a"', {}),
        ('[{"a":1}]', {}),
        ("Sure! {", {}),
        ('\ufeff{"a":1}', {}),
        ("{", {}),
        (' \t\r\n{ "a" : 1 } ', {"a": 1}),
        # a key shows with its value
        ('{"a', {}),
        ('{"a"', {}),
        ('{"a":', {}),
        ('{"a": ', {}),
        ('{"a":1,"b', {"a": 1}),
        ('{"":""}', {"": ""}),
        # numbers may still grow
        ('{"a":1', {}),
        ('{"a":1 ', {"a": 1}),
        ('{"a":1,', {"a": 1}),
        ('{"a":-', {}),
        ('{"a":1.', {}),
        ('{"a":1.5e', {}),
        ('{"a":[1,2', {"a": [1]}),
        ('{"a":[1,2]', {"a": [1, 2]}),
        ('{"a":-1.5e+3}', {"a": -1500.0}),
        ('{"a":1.0,"b":-0,"c":-0.0,"d":1E2}', {"a": 1.0, "b": 0, "c": -0.0, "d": 100.0}),
        ('{"a":123456789012345678901234567890}', {"a": 123456789012345678901234567890}),
        # literals
        ('{"a":t', {}),
        ('{"a":tru', {}),
        ('{"a":true', {"a": True}),
        ('{"a":fals', {}),
        ('{"a":false', {"a": False}),
        ('{"a":nul', {}),
        ('{"a":null', {"a": None}),
        ('{"a":[true,fa', {"a": [True]}),
        # open strings and containers
        ('{"a":"', {"a": ""}),
        ('{"a":"x', {"a": "x"}),
        ('{"a":["x","y', {"a": ["x", "y"]}),
        ('{"a":{', {"a": {}}),
        ('{"a":[', {"a": []}),
        ('{"a":[{"b":["x', {"a": [{"b": ["x"]}]}),
        # escapes, also cut
        (r'{"a":"\"\\\/\b\f\n\r\t\u00e9', {"a": '"\\/\b\f\n\r\té'}),
        ('{"a":"x\\', {"a": "x"}),
        (r'{"a":"x\u', {"a": "x"}),
        (r'{"a":"x\u00', {"a": "x"}),
        (r'{"a":"x\u00e', {"a": "x"}),
        (r'{"a":"x\u00e9', {"a": "xé"}),
        (r'{"a":"x\uD83D', {"a": "x"}),
        ('{"a":"x\\uD83D\\', {"a": "x"}),
        (r'{"a":"x\uD83D\uDE0', {"a": "x"}),
        (r'{"a":"x\uD83D\uDE00', {"a": "x😀"}),
        (r'{"a":"x\ud83d\ude00y', {"a": "x😀y"}),
        # lone surrogates, as escapes and raw
        (r'{"a":"\uD83Dz"}', {"a": "\ufffdz"}),
        (r'{"a":"\uDE00z"}', {"a": "\ufffdz"}),
        (r'{"a":"\uDE00', {"a": "\ufffd"}),
        (r'{"a":"\uD83D"}', {"a": "\ufffd"}),
        (r'{"a":"\uD83D\n', {"a": "\ufffd\n"}),
        (r'{"a":"\uD83D\u00e9', {"a": "\ufffdé"}),
        (r'{"a":"\uD83D\uD83D\uDE00', {"a": "\ufffd😀"}),
        ('{"a":"\ud83d', {"a": ""}),
        ('{"a":"\ud83dz', {"a": "\ufffdz"}),
        ('{"a":"\ude00', {"a": "\ufffd"}),
        ('{"a":"\ud83d\ude00', {"a": "😀"}),
        ('{"a":"\ud83d\\uDE00', {"a": "😀"}),
        ('{"a":"\\uD83D\ude00', {"a": "😀"}),
        ('{"\ud83d":1,"\\uDE00":2,"x":3}', {"\ufffd": 2, "x": 3}),
        # escapes that JSON does not know
        (r'{"a":"\x41"}', {"a": r"\x41"}),
        (r'{"a":"C:\dir\q', {"a": r"C:\dir\q"}),
        (r'{"a":"\u12G4"}', {"a": r"\u12G4"}),
        (r'{"a":"\u12"}', {"a": r"\u12"}),
        (r'{"a":"\u1\n"}', {"a": "\\u1\n"}),
        (r'{"a":"\U0001"}', {"a": r"\U0001"}),
        # raw control characters
        ('{"a":"x\n\ty\x00\x1fz"}', {"a": "x\n\ty\x00\x1fz"}),
        ('{"a\n":"x\x7f', {"a\n": "x\x7f"}),
        # equal keys
        ('{"a":1,"a":2}', {"a": 2}),
        (r'{"a":1,"\u0061":2}', {"a": 2}),
        ('{"a":1,"a":', {"a": 1}),
        ('{"a":1,"a":2', {"a": 1}),
        ('{"a":"long","a":"s', {"a": "s"}),
        ('{"a":{"b":1},"a":{', {"a": {}}),
        ('{"a":[1,2],"a":["x', {"a": ["x"]}),
        # behind the closing brace
        ('{"p":"a"},"limit":5}', {"p": "a"}),
        ('{"a":1}{"a":2}', {"a": 1}),
        ('{}"', {}),
        # where it stops being JSON
        ('{"who": Eve}', {}),
        ('{"a":1,}', {"a": 1}),
        ('{"a":1,,"b":2}', {"a": 1}),
        ('{"a":[1,],"b":2}', {"a": [1]}),
        ('{"a":[1}', {"a": [1]}),
        ('{"a":{"b":1]', {"a": {"b": 1}}),
        ('{"a" 1}', {}),
        ('{"a":1 "b":2}', {"a": 1}),
        ("{'a':1}", {}),
        ('{"a":01,"b":2}', {}),
        ('{"a":1.,"b":2}', {}),
        ('{"a":+1}', {}),
        ('{"a":--1}', {}),
        ('{"a":.5}', {}),
        ('{"a":NaN}', {}),
        ('{"a":Infinity}', {}),
        ('{"a":-Infinity}', {}),
        ('{"a":truth}', {}),
        ('{"a":tRue}', {}),
        ('{"a":nullx,"b":1}', {"a": None}),
        ('{"a":1x', {"a": 1}),
        ('{"a":٣}', {}),
        ('{"a":1٣', {"a": 1}),
        ('{"a":\xa01}', {}),
        ('{,"a":1}', {}),
        ('{"a"::1}', {}),
        # numbers that Python cannot hold
        ('{"a":1e999,"b":[1,-1e999,2]}', {"b": [1, 2]}),
        ('{"a":' + "1" * 4301 + ',"b":2}', {"b": 2}),
        ('{"a":-' + "1" * 4300 + "}", {"a": -int("1" * 4300)}),
        ('{"a":0.' + "1" * 5000 + "}", {"a": 1 / 9}),
    ],
)
def test_the_view_of_a_text(text: str, view: dict[str, Any]) -> None:
    assert exact(partial(text)) == exact(view)
    assert exact(_Naive(text).view()) == exact(view)
    one_by_one = PartialArguments.of(text)
    assert exact(one_by_one.value.to_dict()) == exact(view)


def test_a_cut_inside_an_escape_neither_flickers_nor_shows_half_a_character() -> None:
    arguments = PartialArguments()
    shown = []
    for fragment in ('{"a":"x\\', "u", "D8", "3D", "\\", "uDE0", "0", '","b":"\\u00e9'):
        arguments.feed(fragment)
        shown.append(arguments.value.to_dict())
    assert shown == [{"a": "x"}] * 6 + [{"a": "x😀"}, {"a": "x😀", "b": "é"}]


def test_two_hundred_levels_are_shown_and_no_more() -> None:
    assert exact(partial(nested(200))) == exact(json.loads(nested(200)))
    assert partial(nested(201)) == partial(nested(200))
    assert partial(nested(250)[:-250]) == partial(nested(200))


def test_what_is_too_deep_is_left_out_and_the_rest_goes_on() -> None:
    around = '{"a":' + "[" * 199
    text = around + '1,[2,{"x":"]}\\"","y":[] } , 7 ],"in",{"z":3},[],4' + "]" * 199 + ',"b":5}'
    view = partial(text)
    assert view["b"] == 5
    inner = view["a"]
    for _ in range(198):
        (inner,) = inner
    assert inner == [1, "in", 4]
    assert partial('{"k":' * 300 + "1" + "}" * 299 + ',"b":2}')["b"] == 2


@pytest.mark.parametrize("deep", ["[", '{"a":', '[{"a":'])
def test_any_depth_is_survived(deep: str) -> None:
    text = '{"first":1,"a":' + deep * 200_000
    assert partial(text)["first"] == 1
    with pytest.raises(InvalidArguments):
        complete(text)


# --- the parser and its views ------------------------------------------------------------------


def test_a_view_stays_what_it_was_when_the_arguments_go_on() -> None:
    texts = ['{"path":"a', '.py","edits":[{"old":"x', '"},{"old":"', 'y","new":"z"}],"n":12', "}"]
    arguments = PartialArguments()
    views = []
    for text in texts:
        arguments.feed(text)
        views.append(arguments.value)
    expected = [partial("".join(texts[: n + 1])) for n in range(len(texts))]
    assert [view.to_dict() for view in views] == expected
    assert [dict(view) for view in reversed(views)] == expected[::-1]


def test_a_view_reads_like_a_dict() -> None:
    view = PartialArguments.of(['{"path":"a.py","edits":[{"old":"x"},{"old":"y']).value
    assert isinstance(view, Mapping)
    plain = {"edits": [{"old": "x"}, {"old": "y"}], "path": "a.py"}
    assert view == plain
    assert plain == view
    assert view != {"path": "a.py"}
    assert view != [("path", "a.py")]
    assert list(view) == ["path", "edits"]
    assert len(view) == 2
    assert "path" in view
    assert "old" not in view
    assert view["path"] == "a.py"
    assert view.get("limit") is None
    assert dict(view) == view.to_dict()
    assert json.loads(json.dumps(view.to_dict())) == view
    with pytest.raises(KeyError):
        view["limit"]
    with pytest.raises(TypeError):
        hash(view)


def test_a_view_distinguishes_as_json_does() -> None:
    view = PartialArguments.of(['{"a":1,"b":true}']).value
    assert view == {"a": 1, "b": True}
    assert view != {"a": True, "b": True}
    assert view != {"a": 1.0, "b": True}


def test_what_a_reader_does_to_a_value_changes_nothing() -> None:
    arguments = PartialArguments.of(['{"a":[1,{"b":[2]}],"c":{"d":"x'])
    before = arguments.value
    mine = before.to_dict()
    mine["a"][1]["b"].append(3)
    mine["c"].clear()
    before["a"].clear()
    before["c"]["d"] = "other"
    arguments.feed('y"}}')
    assert arguments.value == {"a": [1, {"b": [2]}], "c": {"d": "xy"}}
    assert before == {"a": [1, {"b": [2]}], "c": {"d": "x"}}


def test_keys_can_be_gone_over_while_more_is_fed() -> None:
    arguments = PartialArguments.of(['{"a":1,"b":2,'])
    seen = []
    for key in arguments.value:
        arguments.feed(f'"{key}{key}":3,')
        seen.append(key)
    assert seen == ["a", "b"]
    assert list(arguments.value) == ["a", "b", "aa", "bb"]


def test_reading_again_when_nothing_came_gives_an_equal_view() -> None:
    arguments = PartialArguments.of(['{"a":"x'])
    first = arguments.value
    arguments.feed("")
    assert arguments.value == first
    assert first == arguments.value


def test_the_open_string_can_be_followed_without_joining_it() -> None:
    arguments = PartialArguments.of(['{"path":"a.py","content":"'])
    arguments.feed("one\\n")
    first = arguments.value.growing
    arguments.feed("two")
    second = arguments.value.growing
    assert first is not None
    assert second is not None
    assert (len(first), len(second)) == (4, 7)
    assert second[len(first) :] == "two"
    arguments.feed('!"')
    assert arguments.value.growing is None
    assert (str(first), str(second)) == ("one\n", "one\ntwo")
    assert arguments.value["content"] == "one\ntwo!"


@given(st.lists(ANY_TEXT, max_size=8), st.integers(-30, 30), st.integers(-30, 30))
def test_growing_text_is_the_string_it_stands_for(pieces: list[str], start: int, stop: int) -> None:
    whole = _text([unit for char in "".join(pieces) for unit in _units(char)])
    arguments = PartialArguments.of(['{"a":"'])
    for piece in pieces:
        arguments.feed(json.dumps(piece, ensure_ascii=False)[1:-1])
    arguments.feed(".")
    growing = arguments.value.growing
    assert isinstance(growing, GrowingText)
    arguments.feed("and more")
    whole += "."
    assert growing == whole
    assert whole == growing
    assert growing != whole + "."
    assert growing != whole[:-1] + "?"
    assert growing != 1
    assert hash(growing) == hash(whole)
    assert len(growing) == len(whole)
    assert growing[start:stop] == whole[start:stop]
    assert growing[start:stop:-2] == whole[start:stop:-2]
    assert (growing[0], growing[-1]) == (whole[0], whole[-1])
    with pytest.raises(IndexError):
        growing[len(whole)]


@pytest.mark.parametrize(
    ("text", "path", "growing"),
    [
        ("", (), None),
        ('{"a', (), None),
        ('{"a":"x', ("a",), "x"),
        ('{"a":"x"', (), None),
        ('{"a":12', (), None),
        ('{"a":[', ("a",), None),
        ('{"a":[1,"x', ("a", 1), "x"),
        ('{"a":[{},{"b":"x', ("a", 1, "b"), "x"),
        ('{"a":[{},{"b":"x","c', ("a", 1), None),
        ('{"a":[{},{"b":1}', ("a",), None),
        ('{"a":[],"b":{"c":{', ("b", "c"), None),
        ('{"a":[1,oops', (), None),
        ('{"a":["x"]}', (), None),
    ],
)
def test_a_view_says_what_is_open(text: str, path: tuple[str | int, ...], growing: str) -> None:
    view = PartialArguments.of([text]).value
    assert view.open_path == path
    assert view.growing == growing


def test_a_view_says_which_fields_are_whole() -> None:
    arguments = PartialArguments.of(['{"path":"a.py","n":1,"content":"x'])
    half = arguments.value
    arguments.feed('"')
    assert [half.is_closed(key) for key in ("path", "n", "content", "no")] == [
        True,
        True,
        False,
        False,
    ]
    assert arguments.value.is_closed("content")
    assert not half.ended
    assert PartialArguments.of(["{}"]).value.ended
    assert PartialArguments.of(["no"]).value.ended


def test_views_of_prefixes_of_one_buffer() -> None:
    buffer = ['{"a":"', "x", "y", '","b":tr', "ue", "}", "behind"]
    arguments = PartialArguments()
    for count in (1, 3, 2, 3, 7, 4, 0, 6):
        view = arguments.advance(buffer, count)
        assert view == partial("".join(buffer[:count])), count
    assert arguments.count == 7


def test_advance_reads_only_what_is_new() -> None:
    class Counting(Sequence[str]):
        read = 0

        def __len__(self) -> int:
            return 100

        def __getitem__(self, index: Any) -> Any:
            taken = ("x",) * len(range(100)[index])
            self.read += len(taken)
            return taken

    buffer = Counting()
    arguments = PartialArguments.of(['{"a":"'])
    for count in range(1, 101):
        arguments.advance(buffer, count)
    assert buffer.read == 99


def test_neither_a_view_nor_its_open_string_shows_arguments_when_printed() -> None:
    view = PartialArguments.of(['{"secret-key":"hunter2']).value
    for printed in (repr(view), str(view), repr(view.growing)):
        assert "hunter2" not in printed
        assert "secret-key" not in printed


def _calls(fragments: int, read: Any) -> int:
    def run() -> None:
        arguments = PartialArguments.of(['{"path":"a.py","content":"'])
        for _ in range(fragments):
            arguments.feed("a line of some code\\n" * 5)
            assert read(arguments.value) is not None

    return calls(run)


@pytest.mark.parametrize(
    "read",
    [
        lambda view: (list(view), len(view.growing), view.growing[-20:]),
        lambda view: view["content"],
        lambda view: view.to_dict(),
    ],
    ids=["growing", "value", "to_dict"],
)
def test_reading_after_every_fragment_is_linear(read: Any) -> None:
    # Seconds are told by the benchmarks, which also see a string that is copied each time.
    assert _calls(800, read) < 8.2 * _calls(100, read)


# --- properties --------------------------------------------------------------------------------


@given(cut())
@settings(deadline=None)
def test_any_cut_gives_the_view_of_the_whole(fragments: list[str]) -> None:
    arguments = PartialArguments()
    for count, fragment in enumerate(fragments, start=1):
        arguments.feed(fragment)
        assert exact(arguments.value.to_dict()) == exact(partial("".join(fragments[:count])))


@given(TEXTS)
@settings(deadline=None)
def test_the_view_is_what_a_naive_reader_sees(text: str) -> None:
    assert exact(partial(text)) == exact(_Naive(text).view())


@given(ALMOST_JSON | mutated())
@settings(deadline=None)
def test_every_prefix_is_what_a_naive_reader_sees(text: str) -> None:
    arguments = PartialArguments()
    for at, char in enumerate(text[:300], start=1):
        arguments.feed(char)
        assert exact(arguments.value.to_dict()) == exact(_Naive(text[:at]).view())


@given(TEXTS)
@settings(deadline=None)
def test_the_view_is_always_valid_utf8(text: str) -> None:
    json.dumps(partial(text), ensure_ascii=False).encode()


@given(SPELLED, st.text("\t\n\r "))
def test_a_sound_object_is_shown_and_read_whole(text: str, space: str) -> None:
    text = space + text + space
    assert exact(partial(text)) == exact(json.loads(text))
    assert exact(complete(text)) == exact(json.loads(text))
    assert PartialArguments.of(text).value == json.loads(text)


@given(
    st.builds(
        lambda value, ascii_only: json.dumps(value, ensure_ascii=ascii_only),
        st.dictionaries(ANY_TEXT, ANY_TEXT | st.lists(ANY_TEXT)),
        st.booleans(),
    )
)
def test_complete_equals_partial_also_for_lone_surrogates(text: str) -> None:
    assert exact(complete(text)) == exact(partial(text))
    json.dumps(complete(text), ensure_ascii=False).encode()


@given(TEXTS)
@settings(deadline=None)
def test_complete_agrees_with_partial_or_refuses(text: str) -> None:
    try:
        value = complete(text)
    except InvalidArguments:
        return
    assert exact(value) == exact(partial(text))


def _grown(before: Any, after: Any) -> bool:
    """Whether `after` only adds to `before`, at its ends."""
    if isinstance(before, str) and isinstance(after, str):
        return after.startswith(before)
    if isinstance(before, dict) and isinstance(after, dict):
        return all(key in after and _grown(before[key], after[key]) for key in before)
    if isinstance(before, list) and isinstance(after, list):
        return len(before) <= len(after) and all(map(_grown, before, after))
    return same_json(before, after)


@given(SPELLED)
@settings(deadline=None)
def test_without_equal_keys_a_view_only_grows(text: str) -> None:
    arguments = PartialArguments()
    before = arguments.value.to_dict()
    for char in text[:300]:
        arguments.feed(char)
        after = arguments.value.to_dict()
        assert _grown(before, after)
        before = after


@given(TEXTS, ANY_TEXT)
@settings(deadline=None)
def test_what_has_ended_never_changes(text: str, more: str) -> None:
    arguments = PartialArguments.of([text])
    view = arguments.value
    if view.ended:
        arguments.feed(more)
        assert exact(arguments.value.to_dict()) == exact(view.to_dict())


# --- complete arguments ------------------------------------------------------------------------


def test_complete_arguments() -> None:
    assert complete(' {"a": [1, 2.0, null], "b": "é\\n"} ') == {"a": [1, 2.0, None], "b": "é\n"}
    assert complete("{}") == {}
    assert complete('{"a":1,"a":2}') == {"a": 2}
    assert complete(nested(MAX_DEPTH)) == json.loads(nested(MAX_DEPTH))
    assert complete('{"a":"' + "[" * 500 + '"}') == {"a": "[" * 500}
    assert complete('{"a":[' + "[]," * 500 + "[]]}") == {"a": [[]] * 501}
    assert complete(r'{"a":"\uD83D\uDE00 \uD83Dz"}') == {"a": "😀 \ufffdz"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "{",
        '{"a":1',
        '{"a":1}}',
        '{"p":"a"},"limit":5}',
        '{"who": Eve}',
        '{"a":1}{}',
        "[]",
        "null",
        "1",
        '"{}"',
        '{"a":NaN}',
        '{"a":Infinity}',
        '{"a":-Infinity}',
        '{"a":1e999}',
        '{"a":' + "1" * 5000 + "}",
        '{"a":01}',
        '{"a":1.}',
        '{"a":1,}',
        '{"a":"x\ny"}',
        '{"a":"\\x"}',
        '{"a":"\\u12"}',
        '\ufeff{"a":1}',
        '\xa0{"a":1}',
        nested(MAX_DEPTH + 1),
        nested(100_000),
        '{"a":' + "[" * 100_000,
        "[" * 100_000,
    ],
    ids=lambda text: text[:24],
)
def test_what_is_not_complete_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(InvalidArguments) as caught:
        complete(text)
    message = str(caught.value)
    assert message.startswith("The arguments are ")
    assert message.endswith(".")
    assert "\n" not in message
    assert caught.value.tag == "invalid-json"
    assert isinstance(caught.value, ValueError)


def test_a_refusal_says_why_but_not_what() -> None:
    with pytest.raises(InvalidArguments, match="at character 21") as caught:
        complete('{"password":"hunter2"oops}')
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None
    with pytest.raises(InvalidArguments, match="not an object"):
        complete("[1]")
    with pytest.raises(InvalidArguments, match="deeper than 200 levels"):
        complete(nested(201))


# --- equality ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (1, 1, True),
        (True, 1, False),
        (1, True, False),
        (False, 0, False),
        (1, 1.0, False),
        (True, 1.0, False),
        (0.0, -0.0, True),
        (None, None, True),
        (None, False, False),
        (None, 0, False),
        ("1", 1, False),
        ("", None, False),
        ("é", "é", True),
        ("e\u0301", "é", False),
        ([1, 2], [1, 2], True),
        ([1, 2], [2, 1], False),
        ([1, 2], (1, 2), True),
        ([1], [1, 2], False),
        ([], {}, False),
        ([], "", False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": 1}, {"a": 1, "c": None}, False),
        ({"a": None}, {"b": None}, False),
        ({"a": 1}, MappingProxyType({"a": 1}), True),
        ({"a": {"b": [True]}}, {"a": {"b": [1]}}, False),
        ({"a": {"b": [{"c": 1}]}}, {"a": {"b": ({"c": 1},)}}, True),
        (2**70, 2**70, True),
        (2**53, float(2**53), False),
        (float("nan"), float("nan"), True),
        (float("nan"), 1.0, False),
        (b"x", b"x", True),
        (b"x", "x", False),
    ],
)
def test_equal_means_equal_as_json(a: object, b: object, *, same: bool) -> None:
    assert same_json(a, b) is same
    assert same_json(b, a) is same
    assert same_json([{"x": a}], [{"x": b}]) is same


@given(VALUES, VALUES)
def test_equality_is_that_of_the_sorted_spelling(a: object, b: object) -> None:
    assume("-0.0" not in exact([a, b]))  # equal to 0.0, but spelled otherwise
    assert same_json(a, b) == (exact(a) == exact(b))
    assert same_json(a, json.loads(json.dumps(a)))


@given(cut(), cut())
@settings(deadline=None)
def test_equality_of_views_is_that_of_their_values(a: list[str], b: list[str]) -> None:
    first, second = PartialArguments.of(a).value, PartialArguments.of(b).value
    assert same_json(first, partial("".join(a)))
    assert (first == second) == same_json(first.to_dict(), second.to_dict())


def test_a_growing_text_is_its_string() -> None:
    view = PartialArguments.of(['{"a":"xy']).value
    assert same_json(view.growing, "xy")
    assert same_json({"a": view.growing}, view)
    assert not same_json("x", view.growing)


def test_equality_survives_any_depth() -> None:
    def tower(leaf: object) -> object:
        for _ in range(20_000):
            leaf = {"a": [leaf]}
        return leaf

    assert same_json(tower(leaf=1), tower(leaf=1))
    assert not same_json(tower(leaf=1), tower(leaf=True))


def test_the_view_is_typed_as_a_preview() -> None:
    """What takes complete arguments can refuse it: it is a mapping of its own, never a `dict`."""
    assert type(PartialArguments().value) is PartialView
    assert not isinstance(PartialArguments().value, dict)


NOT_VALID = "The arguments are not valid JSON:"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"a":1e999}', f"{NOT_VALID} a number is beyond the range of a float."),
        (f'{{"a":{"1" * 4_301}}}', f"{NOT_VALID} an integer has more than 4300 digits."),
        (f'{{"a":-{"1" * 4_301}}}', f"{NOT_VALID} an integer has more than 4300 digits."),
        ('{"a":NaN}', f"{NOT_VALID} NaN is no JSON value."),
        ('{"a":1} x', f"{NOT_VALID} Extra data at character 8."),
        ("[1]", "The arguments are JSON, but not an object."),
        ('{"a":' * 200 + "[]" + "}" * 200, "The arguments are nested deeper than 200 levels."),
    ],
    ids=lambda text: text[:12],
)
def test_what_is_refused_is_told_in_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(InvalidArguments) as caught:
        complete(text)
    assert str(caught.value) == sentence


def test_what_reaches_a_limit_is_taken() -> None:
    for number in ("1" * 4_300, "-" + "1" * 4_300):
        assert complete(f'{{"a":{number}}}') == {"a": int(number)}
    deepest = '{"a":' * 199 + "[]" + "}" * 199
    assert complete(deepest) == json.loads(deepest)
