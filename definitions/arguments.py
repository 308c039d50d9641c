"""The arguments of a tool call: half written, complete, and compared.

Here live the incremental parser behind the partial view, the strict reading of complete arguments
and the one equality of JSON values. Not here: which call the text belongs to, whether it may run,
and how it is shown. Pure: no I/O, no clock, nothing of the project is imported.

The partial view of a text is what of its JSON object can already be shown:

- an open string is in it, cut at a whole character: an escape or half of a surrogate pair at the
  end is held back until it is decided;
- an open object or array is in it with what it has so far;
- a number at the end may still grow and is left out, as is half a literal; a whole ``true``,
  ``false`` or ``null`` is in it;
- a surrogate without its other half is U+FFFD, an escape that JSON does not know is shown as
  written, a raw control character stays: a view is always valid UTF-8;
- of equal keys the last wins; as long as its value cannot be shown, the earlier one stays;
- text behind the closing brace is not looked at; where the text stops being JSON the view stops,
  and what is no object gives an empty view;
- what lies deeper than 200 levels (the object itself is the first) is left out, skipped by its
  brackets and strings alone; so is a number that Python cannot hold: an integer of more than
  4,300 digits, or beyond the range of a float.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, SupportsIndex, TypeAlias, final

__all__ = [
    "MAX_DEPTH",
    "GrowingText",
    "InvalidArguments",
    "PartialArguments",
    "PartialView",
    "complete",
    "partial",
    "same_json",
]

MAX_DEPTH = 200
"""How many levels of objects and arrays arguments may have; the outermost object is the first."""

_MAX_DIGITS = 4_300
_REPLACEMENT = "\ufffd"

# A surrogate is one half of a UTF-16 pair, whether it stands in the text itself or as an escape.
_HIGH = r"(?:[\ud800-\udbff]|\\u[dD][89abAB][0-9a-fA-F]{2})"
_LOW = r"(?:[\udc00-\udfff]|\\u[dD][c-fC-F][0-9a-fA-F]{2})"
_ESCAPE_BEGUN = r"\\(?:u[0-9a-fA-F]{0,3})?"
_PLAIN = r'[^"\\\ud800-\udfff]*'
_ESCAPE = (
    r'\\(?:["\\/bfnrt]'
    r"|u(?![dD][89a-fA-F])[0-9a-fA-F]{4}"
    r"|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
)

_NOT_PLAIN = re.compile(r'["\\\ud800-\udfff]')
_WHOLE_STRING = re.compile(f'"({_PLAIN})"')
# Repetition is bounded because `re` remembers every round of it; the caller goes on from there.
_STRING_RUN = re.compile(f"{_PLAIN}(?:{_ESCAPE}{_PLAIN}){{0,256}}")
_PAIR = re.compile(f"({_HIGH})({_LOW})")
_HALF = re.compile(f"{_HIGH}|{_LOW}")
_UNDECIDED = re.compile(rf"(?:{_HIGH}(?:{_ESCAPE_BEGUN})?|{_ESCAPE_BEGUN})\Z")
_HAS_SURROGATE = re.compile(r"[\ud800-\udfff]|\\u[dD][89a-fA-F]")

_TOKEN = re.compile(r"[^ \t\n\r]")
_NUMBER_RUN = re.compile(r"[-+.0-9eE]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_LITERALS: dict[str, tuple[str, bool | None]] = {
    "t": ("true", True),
    "f": ("false", False),
    "n": ("null", None),
}

_DEEPER = re.compile(r'[^"\]}]*(?:"[^"\\\[\]{}]*"[^"\]}]*){0,256}')
_CLOSERS = re.compile(r"[\]}]+")
_STRING_STOP = re.compile(r'["\\]')

_RUN_DECODER = json.JSONDecoder(strict=False)


@final
class InvalidArguments(ValueError):  # noqa: N818 - a public name, said as users see it
    """The text is no complete JSON object; the message says why, in one sentence without content.

    `tag` is the word for it on the wire and in findings.
    """

    tag: ClassVar[str] = "invalid-json"


class _Growing:
    """A string that still grows: an append-only list of pieces, joined only for who reads it."""

    __slots__ = ("_spare", "_spare_upto", "_text", "_upto", "ends", "pieces")

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.ends = [0]
        self._text = self._spare = ""
        self._upto = self._spare_upto = 0

    def add(self, piece: str) -> None:
        self.pieces.append(piece)
        self.ends.append(self.ends[-1] + len(piece))

    def joined(self, count: int) -> str:
        """Give the text of the first `count` pieces; costs what came since the last times.

        CPython lengthens a `str` in place when nobody else holds it. A reader often holds the last
        one while it asks for the next, so two take turns: the older of them is free by then.
        """
        if count < self._upto:
            return self._text[: self.ends[count]]
        if count > self._upto:
            text, upto = self._spare, self._spare_upto
            self._spare, self._spare_upto = self._text, self._upto
            text += "".join(self.pieces[upto:count])
            self._text, self._upto = text, count
        return self._text

    def between(self, start: int, stop: int) -> str:
        """Give the characters from `start` to `stop`; costs what it gives and a bisection."""
        if start >= stop:
            return ""
        first = bisect_right(self.ends, start) - 1
        last = bisect_left(self.ends, stop)
        offset = self.ends[first]
        return "".join(self.pieces[first:last])[start - offset : stop - offset]


@final
class GrowingText:
    """The open string of a view, as far as it had come when the view was taken.

    It stays what it is however the arguments go on. `len(text)` costs nothing, a slice such as
    ``text[seen:]`` costs what it gives, and `str(text)` joins the string. It equals, and hashes
    like, the `str` it stands for; for everything else a `str` can do, use `str(text)`.
    """

    __slots__ = ("_count", "_growing")

    def __init__(self, growing: _Growing) -> None:
        self._growing = growing
        self._count = len(growing.pieces)

    def __len__(self) -> int:
        """Count its characters. O(1)."""
        return self._growing.ends[self._count]

    def __str__(self) -> str:
        """Join it. Costs what came since it was last joined, else a copy."""
        return self._growing.joined(self._count)

    def __getitem__(self, index: SupportsIndex | slice) -> str:
        """Give a character or a slice as a `str`. Costs what it gives, for a step its length."""
        if not isinstance(index, slice):
            at = range(len(self))[index]
            return self._growing.between(at, at + 1)
        start, stop, step = index.indices(len(self))
        return self._growing.between(start, stop) if step == 1 else str(self)[index]

    def __eq__(self, other: object) -> bool:
        """Compare with a `str` or another one, by their characters."""
        if not isinstance(other, (str, GrowingText)):
            return NotImplemented
        return len(self) == len(other) and str(self) == str(other)

    def __hash__(self) -> int:
        """Hash as the `str` that it equals."""
        return hash(str(self))

    def __repr__(self) -> str:
        """Say its length alone: arguments do not belong into logs."""
        return f"<GrowingText of {len(self)} characters>"


class _Machine:
    """The parser: a tree of plain values that grows with the text, and where the parser stands.

    `state` takes the text and a position and gives the next position. A token that the text does
    not decide yet waits in `tail` (a few characters) and is read again with what follows; that,
    and nothing else, makes every cut of a text give the same tree.
    """

    __slots__ = (
        "expect",
        "fragments",
        "growing",
        "is_key",
        "keys",
        "level",
        "number_pieces",
        "root",
        "stack",
        "state",
        "tail",
        "too_deep",
    )

    def __init__(self, fragments: Iterable[str] = ()) -> None:
        self.fragments: list[str] = []
        self.root: dict[str, Any] = {}
        self.stack: list[dict[str, Any] | list[Any]] = []
        self.keys: list[str] = []
        self.growing: _Growing | None = None
        self.is_key = False
        self.number_pieces: list[str] = []
        self.level = 0
        self.too_deep = False
        self.tail = ""
        self.state: _State | None = _Machine.between_tokens
        self.expect = self.START
        for fragment in fragments:
            self.feed(fragment)

    def feed(self, fragment: str) -> None:
        if self.state is None:
            return
        self.fragments.append(fragment)
        if self.growing and not self.tail and not _NOT_PLAIN.search(fragment):
            self.growing.add(fragment)
            return
        text, self.tail, at = self.tail + fragment, "", 0
        state: _State | None = self.state
        while state is not None and at < len(text):
            at = state(self, text, at)
            state = self.state

    # What a token leads to. Each takes the text and where the token begins.

    def between_tokens(self, text: str, at: int) -> int:
        token = _TOKEN.search(text, at)
        if token is None:
            return len(text)
        follow = self.expect.get(token[0])
        if follow is None:
            return self.end(text)
        return follow(self, text, token.start())

    def open_root(self, _text: str, at: int) -> int:
        return self.enter(self.root, self.FIRST_KEY, at)

    def open_object(self, _text: str, at: int) -> int:
        return self.open_container({}, self.FIRST_KEY, at)

    def open_array(self, _text: str, at: int) -> int:
        return self.open_container([], self.FIRST_ITEM, at)

    def close(self, text: str, at: int) -> int:
        self.stack.pop()
        self.keys.pop()
        if not self.stack:
            return self.end(text)
        self.value_is_over()
        return at + 1

    def open_key(self, text: str, at: int) -> int:
        self.is_key = True
        return self.open_string(text, at)

    def open_value(self, text: str, at: int) -> int:
        self.is_key = False
        return self.open_string(text, at)

    def colon(self, _text: str, at: int) -> int:
        self.expect = self.VALUE
        return at + 1

    def next_member(self, _text: str, at: int) -> int:
        self.expect = self.KEY
        return at + 1

    def next_item(self, _text: str, at: int) -> int:
        self.expect = self.VALUE
        return at + 1

    def literal(self, text: str, at: int) -> int:
        word, value = _LITERALS[text[at]]
        seen = text[at : at + len(word)]
        if seen == word:
            self.put(value)
            self.value_is_over()
            return at + len(word)
        undecided = at + len(seen) == len(text) and word.startswith(seen)
        return self.wait(text, at) if undecided else self.end(text)

    def number(self, text: str, at: int) -> int:
        self.state = _Machine.number
        stop = _end_of(_NUMBER_RUN, text, at)
        self.number_pieces.append(text[at:stop])
        if stop == len(text):
            return stop
        token, self.number_pieces = "".join(self.number_pieces), []
        shape = _NUMBER.fullmatch(token)
        if shape is None:
            return self.end(text)
        with suppress(ValueError):
            self.put(_real(token) if shape[1] or shape[2] else _integer(token))
        self.value_is_over()
        return stop

    # Strings.

    def open_string(self, text: str, at: int) -> int:
        whole = _WHOLE_STRING.match(text, at)
        if whole:
            return self.string_is_over(whole[1], whole.end())
        self.growing = _Growing()
        if not self.is_key:
            self.put(self.growing)
        self.state = _Machine.in_string
        return at + 1

    def in_string(self, text: str, at: int) -> int:
        growing = self.growing
        assert growing is not None  # noqa: S101 - what this state means
        stop = _end_of(_STRING_RUN, text, at)
        if stop > at:
            run = text[at:stop]
            growing.add(_RUN_DECODER.decode(f'"{run}"') if "\\" in run else run)
            return stop
        if text[at] != '"':
            return self.odd_character(growing, text, at)
        self.growing = None
        if not self.is_key:
            self.withdraw()
        return self.string_is_over(growing.joined(len(growing.pieces)), at + 1)

    def odd_character(self, growing: _Growing, text: str, at: int) -> int:
        """Read what is no plain run: surrogates, unknown escapes, and an escape at the end."""
        pair = _PAIR.match(text, at)
        if pair:
            high, low = _unit(pair[1]), _unit(pair[2])
            growing.add(chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)))
            return pair.end()
        if _UNDECIDED.match(text, at):
            return self.wait(text, at)
        half = _HALF.match(text, at)
        growing.add(_REPLACEMENT if half else "\\")
        return half.end() if half else at + 1

    def string_is_over(self, text: str, at: int) -> int:
        if self.is_key:
            self.keys[-1] = text
            self.state, self.expect = _Machine.between_tokens, self.COLON
        else:
            self.put(text)
            self.value_is_over()
        return at

    # Too deep: nothing is kept but the level, so that any depth costs no memory.

    def skip(self, text: str, at: int) -> int:
        stop = _end_of(_DEEPER, text, at)
        self.level += text.count("[", at, stop) + text.count("{", at, stop)
        if stop == len(text):
            return stop
        if text[stop] == '"':
            self.state = _Machine.skip_string
            return stop + 1
        closed = min(_end_of(_CLOSERS, text, stop) - stop, self.level)
        self.level -= closed
        if not self.level:
            self.value_is_over()
        return stop + closed

    def skip_string(self, text: str, at: int) -> int:
        stop = _STRING_STOP.search(text, at)
        if stop is None:
            return len(text)
        if stop[0] == '"':
            self.state = _Machine.skip
            return stop.end()
        if stop.end() == len(text):
            return self.wait(text, stop.start())
        return stop.end() + 1

    # Steps that the above share.

    def open_container(self, container: dict[str, Any] | list[Any], expect: _Table, at: int) -> int:
        if len(self.stack) == MAX_DEPTH:
            self.state, self.level, self.too_deep = _Machine.skip, 0, True
            return at
        self.put(container)
        return self.enter(container, expect, at)

    def enter(self, container: dict[str, Any] | list[Any], expect: _Table, at: int) -> int:
        self.stack.append(container)
        self.keys.append("")
        self.expect = expect
        return at + 1

    def put(self, value: object) -> None:
        container = self.stack[-1]
        if isinstance(container, list):
            container.append(value)
        else:
            container[self.keys[-1]] = value

    def withdraw(self) -> None:
        """Make room for the whole string where the growing one stood."""
        container = self.stack[-1]
        if isinstance(container, list):
            container.pop()

    def value_is_over(self) -> None:
        self.state = _Machine.between_tokens
        self.expect = self.AFTER_ITEM if isinstance(self.stack[-1], list) else self.AFTER_MEMBER

    def wait(self, text: str, at: int) -> int:
        self.tail = text[at:]
        return len(text)

    def end(self, text: str) -> int:
        self.state = None
        return len(text)

    # Which tokens may come, and what each leads to; any other ends the view.

    START: ClassVar[_Table] = {"{": open_root}
    VALUE: ClassVar[_Table] = {
        "{": open_object,
        "[": open_array,
        '"': open_value,
        **dict.fromkeys("tfn", literal),
        **dict.fromkeys("-0123456789", number),
    }
    FIRST_ITEM: ClassVar[_Table] = {**VALUE, "]": close}
    AFTER_ITEM: ClassVar[_Table] = {",": next_item, "]": close}
    KEY: ClassVar[_Table] = {'"': open_key}
    FIRST_KEY: ClassVar[_Table] = {**KEY, "}": close}
    COLON: ClassVar[_Table] = {":": colon}
    AFTER_MEMBER: ClassVar[_Table] = {",": next_member, "}": close}


_State: TypeAlias = Callable[[_Machine, str, int], int]
_Table: TypeAlias = dict[str, _State]


@final
class PartialView(Mapping[str, Any]):
    """What of half-written arguments can be shown: an immutable mapping, equal to a plain `dict`.

    A value that is read out of it is plain JSON (`dict`, `list`, `str`, …) and the reader's own;
    reading costs the size of that value, for the open string what came since it was last read.
    The newest view of its parser reads in that time; an older one is parsed once more from its
    text when it is first read after the parser went on, and is right as well.

    To follow a long string without joining it, read `growing`. Equality is `same_json`.
    """

    __slots__ = ("_kept", "_machine")

    def __init__(self, machine: _Machine, kept: int) -> None:
        self._machine = machine
        self._kept = kept

    def __getitem__(self, key: str) -> Any:
        """Give a value as plain JSON of the reader's own. Costs its size."""
        return _plain(self._at_its_time().root[key])

    def __iter__(self) -> Iterator[str]:
        """Go over the keys of this moment, whatever is fed meanwhile."""
        return iter(tuple(self._at_its_time().root))

    def __len__(self) -> int:
        """Count the keys. O(1)."""
        return len(self._at_its_time().root)

    def __contains__(self, key: object) -> bool:
        """Whether a value is shown for this key. O(1)."""
        return key in self._at_its_time().root

    def __eq__(self, other: object) -> bool:
        """Compare with any mapping, by `same_json`."""
        return same_json(self, other) if isinstance(other, Mapping) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as a dict: equal to what cannot be hashed

    def __repr__(self) -> str:
        """Say the number of keys alone: arguments do not belong into logs."""
        return f"<PartialView of {len(self)} keys>"

    def to_dict(self) -> dict[str, Any]:
        """Give the whole view as plain values of the caller's own. Costs its size."""
        plain: dict[str, Any] = _plain(self._at_its_time().root)
        return plain

    @property
    def ended(self) -> bool:
        """Whether no further text can change it: the object is closed, or the text is not JSON."""
        return self._at_its_time().state is None

    @property
    def growing(self) -> GrowingText | None:
        """The open string, wherever it is, not joined; None when no value's string is open. O(1).

        `open_path` says where it stands.
        """
        machine = self._at_its_time()
        return None if machine.growing is None or machine.is_key else GrowingText(machine.growing)

    @property
    def open_path(self) -> tuple[str | int, ...]:
        """Keys and indexes that lead to the innermost open value that is shown. O(depth).

        Empty when only the object itself is open, and when the view has `ended`.
        """
        machine = self._at_its_time()
        if machine.state is None:
            return ()
        depth = len(machine.stack) - (machine.growing is None or machine.is_key)
        return tuple(
            len(container) - 1 if isinstance(container, list) else key
            for container, key in zip(machine.stack[:depth], machine.keys, strict=False)
        )

    def is_closed(self, key: str) -> bool:
        """Whether the value of `key` is shown and whole (only an equal key can still change it)."""
        return key in self and self.open_path[:1] != (key,)

    def _at_its_time(self) -> _Machine:
        if len(self._machine.fragments) != self._kept:
            self._machine = _Machine(self._machine.fragments[: self._kept])
        return self._machine


@final
class PartialArguments:
    """An incremental parser of arguments: every fragment is read once, at the cost of its length.

    It never raises, whatever the text, and every cut of one text gives the same view. It keeps the
    fragments (not copies) for the sake of older views. For one thread at a time.

    >>> arguments = PartialArguments.of(['{"path": "src/', 'main.py", "limit": 1'])
    >>> arguments.value.to_dict()
    {'path': 'src/main.py'}
    """

    __slots__ = ("_count", "_machine")

    def __init__(self) -> None:
        self._machine = _Machine()
        self._count = 0

    @classmethod
    def of(cls, fragments: Iterable[str]) -> PartialArguments:
        """Make a parser that has read these fragments. Costs their length."""
        arguments = cls()
        for fragment in fragments:
            arguments.feed(fragment)
        return arguments

    @property
    def count(self) -> int:
        """How many fragments it has read."""
        return self._count

    @property
    def value(self) -> PartialView:
        """The view of all that was fed; it does not change when more is fed. O(1)."""
        return PartialView(self._machine, len(self._machine.fragments))

    def feed(self, fragment: str) -> None:
        """Read on where it stopped. Costs the length of the fragment."""
        self._machine.feed(fragment)
        self._count += 1

    def advance(self, fragments: Sequence[str], count: int) -> PartialView:
        """Give the view of ``fragments[:count]``, reading only those it has not read yet.

        `fragments` must be the append-only buffer of this one text: what was read is not compared.
        For a `count` that it has passed the view is right too, but parsed anew when it is read.
        """
        for fragment in fragments[self._count : count]:
            self.feed(fragment)
        return PartialView(self._machine, min(count, len(self._machine.fragments)))


def partial(text: str) -> dict[str, Any]:
    r"""Give the partial view of a text as a plain `dict`. Never raises; linear in the text.

    >>> partial('{"path": "a.py", "old": "x\\')
    {'path': 'a.py', 'old': 'x'}
    """
    return PartialArguments.of((text,)).value.to_dict()


def complete(text: str) -> dict[str, Any]:
    """Read complete arguments: strict JSON, an object and nothing behind it.

    Of equal keys the last wins. Strict is the grammar of RFC 8259, which allows an escape of a lone
    surrogate; it becomes U+FFFD, as does a raw one, because arguments are always valid UTF-8. So
    whatever this returns equals `partial` of the same text. Linear in the text.

    :raises InvalidArguments: not JSON (`NaN` and `Infinity` are not), no object, something behind
        it, more than 200 levels, an integer of more than 4,300 digits, or a number that no float
        can hold.
    """
    if text.count("[") + text.count("{") > MAX_DEPTH and _Machine((text,)).too_deep:
        msg = f"The arguments are nested deeper than {MAX_DEPTH} levels."
        raise InvalidArguments(msg)
    try:
        value = _STRICT_DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise InvalidArguments(_reason(error)) from None
    if not isinstance(value, dict):
        msg = "The arguments are JSON, but not an object."
        raise InvalidArguments(msg)
    return partial(text) if _HAS_SURROGATE.search(text) else value


def same_json(a: object, b: object) -> bool:
    """Whether two JSON values are equal by type and value: the one equality of arguments.

    `True`, `1` and `1.0` differ, an absent key is not null, the order of keys does not matter; any
    mapping is an object, `list` and `tuple` are arrays, a `GrowingText` is its string. What is
    not JSON is compared by class and ``==``, a NaN equals a NaN. Any depth; linear in the values.
    """
    waiting = [(a, b)]
    while waiting:
        a, b = waiting.pop()
        if a is b:
            continue
        kind = _kind(a)
        if kind is not _kind(b):
            return False
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            if len(a) != len(b) or any(key not in b for key in a):
                return False
            waiting.extend((value, b[key]) for key, value in a.items())
        elif isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
            if len(a) != len(b):
                return False
            waiting.extend(zip(a, b, strict=True))
        elif a != b and not (kind is float and a != a and b != b):  # noqa: PLR0124 - both NaN
            return False
    return True


_KINDS: tuple[tuple[tuple[type, ...], type], ...] = (
    ((str, GrowingText), str),
    ((bool,), bool),
    ((int,), int),
    ((float,), float),
    ((list, tuple), list),
    ((Mapping,), Mapping),
)


def _kind(value: object) -> type:
    for classes, kind in _KINDS:
        if isinstance(value, classes):
            return kind
    return type(value)


def _plain(value: Any) -> Any:
    """Copy a tree of the parser, its open string joined; without recursion, so from any stack."""
    box = [value]
    waiting: list[Any] = [box]
    while waiting:
        container = waiting.pop()
        items = container.items() if isinstance(container, dict) else enumerate(container)
        for key, item in items:
            if isinstance(item, (dict, list)):
                container[key] = fresh = item.copy()
                waiting.append(fresh)
            elif isinstance(item, _Growing):
                container[key] = item.joined(len(item.pieces))
    return box[0]


def _end_of(run: re.Pattern[str], text: str, at: int) -> int:
    """Where the run that begins at `at` ends; at once when there is none."""
    match = run.match(text, at)
    return match.end() if match else at


def _unit(half: str) -> int:
    return ord(half) if len(half) == 1 else int(half[-4:], 16)


def _integer(token: str) -> int:
    # Said here, because Python's own limit can be switched off and the conversion is quadratic.
    if len(token.lstrip("-")) > _MAX_DIGITS:
        msg = f"an integer has more than {_MAX_DIGITS} digits"
        raise ValueError(msg)
    return int(token)


def _real(token: str) -> float:
    number = float(token)
    if math.isinf(number):
        msg = "a number is beyond the range of a float"
        raise ValueError(msg)
    return number


def _refuse(constant: str) -> None:
    msg = f"{constant} is no JSON value"
    raise ValueError(msg)


def _reason(error: ValueError | RecursionError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"The arguments are not valid JSON: {error.msg} at character {error.pos}."
    if isinstance(error, RecursionError):
        return "The arguments are nested too deep for what is left of the stack."
    return f"The arguments are not valid JSON: {error}."


_STRICT_DECODER = json.JSONDecoder(parse_constant=_refuse, parse_int=_integer, parse_float=_real)
