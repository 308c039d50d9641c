"""Frozen JSON values: what items and Nodes are made of, and the one equality of them.

Here live `Object` (a JSON object), `Text` (growing text), `freeze`, `thaw` and `same`. An array
is a `tuple`; the rest are Python's own immutable scalars. Not here: reading or writing JSON text
(`assembler.codec`).

Frozen values hold nothing that the garbage collector has to follow: an `Object` is a leaf Struct
over a tuple, and a tuple of leaves is dropped from its lists. A million of them cost it nothing.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, Sequence, ValuesView
from math import isfinite
from operator import is_
from typing import Any, overload

from msgspec import Struct

from assembler.engine.errors import InputError, LimitError

__all__ = [
    "DEPTH_MAX",
    "NODE_DEPTH_MAX",
    "Fragments",
    "Json",
    "Object",
    "Text",
    "alike",
    "freeze",
    "freeze_object",
    "is_plain",
    "same",
    "thaw",
]

DEPTH_MAX = 200
"""How deep a value given in may be nested."""
NODE_DEPTH_MAX = DEPTH_MAX + 50
"""How deep the data of a Node may be nested: what was given in, and what is shown around it."""

INT_BITS_MAX = 14_000
"""How many bits a number may have: a little below what Python turns into digits (4,300)."""
_SMALL_MIN, _SMALL_MAX = -(2**53), 2**53

Json = Any
"""A frozen JSON value: None, bool, int, float, str, `Text`, tuple of them, or `Object`."""

_SHAPES_MAX = 4_096
_SHAPE_KEYS_MAX = 32
_SCALARS = frozenset((int, float, bool, type(None)))

# Objects with the same keys share one index from key to place. Nothing but memory depends on it.
_shapes: dict[tuple[str, ...], dict[str, int]] = {}


def _shape(keys: tuple[str, ...]) -> dict[str, int]:
    shape = {key: place for place, key in enumerate(keys)}
    if len(keys) <= _SHAPE_KEYS_MAX and len(_shapes) < _SHAPES_MAX:
        _shapes[keys] = shape
    return shape


class Object(Struct, frozen=True, gc=False, eq=False):
    """A JSON object that nobody can change. A `Mapping`, in the order it came in.

    `value[key]` is O(1). It equals any mapping with the same keys and values.
    """

    _shape: dict[str, int]
    _values: tuple[Json, ...]
    _depth: int = 1

    def __getitem__(self, key: str) -> Json:
        return self._values[self._shape[key]]

    def get(self, key: str, default: Json = None) -> Json:
        place = self._shape.get(key)
        return default if place is None else self._values[place]

    def __iter__(self) -> Iterator[str]:
        return iter(self._shape)

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, key: object) -> bool:
        return key in self._shape

    def keys(self) -> KeysView[str]:
        return self._shape.copy().keys()

    def values(self) -> ValuesView[Json]:
        return dict(zip(self._shape, self._values, strict=True)).values()

    def items(self) -> ItemsView[str, Json]:
        return dict(zip(self._shape, self._values, strict=True)).items()

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Mapping) or len(self) != len(other):
            return False
        return all(key in other and self[key] == other[key] for key in self._shape)

    def __ne__(self, other: object) -> bool:  # a Struct has one, which does not ask `==`
        return not self.__eq__(other)

    def __hash__(self) -> int:
        return hash(frozenset(zip(self._shape, self._values, strict=True)))

    def __repr__(self) -> str:
        return f"Object({dict(zip(self._shape, self._values, strict=True))!r})"


Mapping.register(Object)


class Fragments(Sequence[str]):
    """The fragments of a buffer that Texts share, to be read and never changed.

    Two of one buffer are the same text as far as both reach (`is_of`), which lets a reader go on
    where it stopped.
    """

    __slots__ = ("_buffer",)

    def __init__(self, buffer: list[str]) -> None:
        self._buffer = buffer

    def is_of(self, other: Fragments) -> bool:
        """Whether both are of one buffer."""
        return self._buffer is other._buffer

    def __len__(self) -> int:
        return len(self._buffer)

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> list[str]: ...
    def __getitem__(self, at: int | slice) -> str | list[str]:
        return self._buffer[at]


class Text:
    """Text that grows at its end: a sequence of fragments over a shared buffer.

    `append` is O(1) on the newest Text of a buffer and a copy on an older one, so that two
    futures of one Text never meet. `str(text)` joins once and keeps the result. Equal to a `str`
    (or another Text) with the same characters.
    """

    __slots__ = ("_buffer", "_count", "_joined", "_units")

    def __init__(self, text: str = "") -> None:
        self._buffer: list[str] = [text] if text else []
        self._count = len(self._buffer)
        self._units = utf16_units(text)
        self._joined: str | None = text

    def append(self, fragment: str) -> Text:
        """This text and `fragment` behind it, as a new Text."""
        return self.extend((fragment,))

    def extend(self, fragments: tuple[str, ...] | list[str]) -> Text:
        """This text and all `fragments` behind it. O(their number)."""
        buffer = self._buffer
        if len(buffer) != self._count:
            buffer = buffer[: self._count]
        buffer.extend(fragments)
        grown = Text.__new__(Text)
        grown._buffer = buffer
        grown._count = len(buffer)
        units = self._units
        for fragment in fragments:
            units += len(fragment) if fragment.isascii() else utf16_units(fragment)
        grown._units = units
        grown._joined = None
        return grown

    @property
    def units(self) -> int:
        """The length in UTF-16 units, as the wire counts it. O(1)."""
        return self._units

    @property
    def fragments(self) -> tuple[Fragments, int]:
        """All fragments of the shared buffer, and how many of them are of this text. O(1)."""
        return Fragments(self._buffer), self._count

    def suffix_of(self, older: Text) -> str | None:
        """What was added since `older`; None when this is no continuation of its buffer."""
        if self._buffer is not older._buffer or self._count < older._count:
            return None
        return "".join(self._buffer[older._count : self._count])

    def __str__(self) -> str:
        joined = self._joined
        if joined is None:
            joined = self._joined = "".join(self._buffer[: self._count])
        return joined

    def __len__(self) -> int:
        return len(str(self))

    def __bool__(self) -> bool:
        return self._units > 0

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Text):
            if self._buffer is other._buffer and self._count == other._count:
                return True
            return self._units == other._units and str(self) == str(other)
        return isinstance(other, str) and str(self) == other

    def __hash__(self) -> int:
        return hash(str(self))

    def __repr__(self) -> str:
        return f"Text({str(self)!r})"


_FROZEN = frozenset((Object, Text, bool, type(None)))
_LEAVES = _SCALARS | {str, bytes, Text}


def utf16_units(text: str) -> int:
    """How many UTF-16 units `text` takes: what JavaScript calls its length."""
    if text.isascii():
        return len(text)
    return len(text) + sum(1 for character in text if character > "\uffff")


def freeze(value: Any, depth: int = DEPTH_MAX) -> Json:
    """`value` as a frozen JSON value; what is frozen already is returned as it is.

    Raises `InputError` for what JSON cannot say (a set, a NaN, half a surrogate pair) and
    `LimitError` beyond `DEPTH_MAX`. O(size of what is not frozen yet).
    """
    kind = type(value)
    if kind is str:
        if not value.isascii():
            _check_unicode(value)
        return value
    if kind in _FROZEN:
        return value
    if kind is int:
        if value.bit_length() > INT_BITS_MAX:
            raise LimitError(f"a number has more than int_bits_max = {INT_BITS_MAX} bits")
        return value
    if kind is float:
        if not isfinite(value):
            raise InputError(f"{value} is no JSON number")
        return value
    if depth <= 0:
        raise LimitError(f"a value is nested deeper than depth_max = {DEPTH_MAX}")
    if kind is dict:
        return freeze_object(value, depth)
    if kind is tuple:
        frozen = tuple([freeze(item, depth - 1) for item in value])
        same_items = all(map(is_, frozen, value))
        return value if same_items else frozen
    if kind is list:
        return tuple([freeze(item, depth - 1) for item in value])
    return _freeze_other(value, depth)


def _freeze_other(value: Any, depth: int) -> Json:
    """Subclasses of JSON's types become the plain ones."""
    if isinstance(value, str):
        return freeze(str.__str__(value))
    if isinstance(value, int):
        return freeze(int(value))
    if isinstance(value, float):
        return freeze(float(value))
    if isinstance(value, Mapping):
        return freeze_object(dict(value), depth)
    if isinstance(value, (list, tuple)):
        return freeze(list(value), depth)
    raise InputError(f"{type(value).__name__} is no JSON value")


def freeze_object(value: Mapping[str, Any] | Object, depth: int = DEPTH_MAX) -> Object:
    """A mapping with text keys as an `Object`. Errors as `freeze`."""
    if type(value) is Object:
        return value
    keys = tuple(value)
    values = tuple(value.values())
    deepest = 0
    for item in values:
        # The common leaves are looked at here, without a call for each.
        kind = type(item)
        if kind is str:
            if item.isascii():
                continue
        elif kind is int:
            if _SMALL_MIN < item < _SMALL_MAX:
                continue
        elif kind is Object:
            deepest = max(deepest, item._depth)
            continue
        elif kind in _FROZEN:
            continue
        values, deepest = _freeze_values(values, depth - 1)
        break
    if deepest >= depth:
        raise LimitError(f"a value is nested deeper than depth_max = {depth}")
    shape = _shapes.get(keys)
    if shape is None:
        shape = _shape(tuple([_key(key) for key in keys]))
    return Object(shape, values, deepest + 1)


def _freeze_values(values: Iterable[Any], depth: int) -> tuple[tuple[Json, ...], int]:
    """Values of which some are not frozen yet, and how deep the deepest is nested."""
    frozen = []
    deepest = 0
    for item in values:
        value = item
        kind = type(item)
        if kind is dict and depth > 0:
            value = freeze_object(item, depth)
        elif kind is not str or not item.isascii():
            value = freeze(item, depth)
        kind = type(value)
        if kind is Object or kind is tuple:
            deepest = max(deepest, _depth(value))
        frozen.append(value)
    return tuple(frozen), deepest


def _depth(value: Json) -> int:
    """How deep a frozen value is nested; a scalar is 0."""
    kind = type(value)
    if kind is Object:
        return value._depth  # type: ignore[no-any-return]
    return 1 + max(map(_depth, value), default=0) if kind is tuple else 0


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise InputError(f"the key {key!r} of an object is no text")
    _check_unicode(key)
    return str.__str__(key)


def _check_unicode(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError("a text holds half a surrogate pair, which no UTF-8 can carry") from None


def is_plain(value: dict[str, Any] | list[Any], depth: int = DEPTH_MAX) -> bool:
    """Whether `freeze` surely takes `value`, of dicts, lists and scalars of JSON alone.

    Quicker than to freeze it; False says no more than: ask `freeze`. O(size).
    """
    if depth <= 0 or (type(value) is dict and not _are_keys(value)):
        return False
    items: Iterable[Any] = value.values() if type(value) is dict else value
    for item in items:
        kind = type(item)
        if kind is str:
            if item.isascii() or _is_unicode(item):
                continue
        elif kind is dict or kind is list:
            if is_plain(item, depth - 1):
                continue
        elif kind is int:
            if _SMALL_MIN < item < _SMALL_MAX:
                continue
        elif item is None or kind is bool or (kind is float and isfinite(item)):
            continue
        return False
    return True


def _are_keys(value: dict[Any, Any]) -> bool:
    try:
        return "".join(value).isascii()
    except TypeError:  # one of them is no text
        return False


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def thaw(value: Json) -> Any:
    """A plain, changeable copy: dicts, lists, and every Text joined. O(size)."""
    kind = type(value)
    if kind is Object:
        return {key: thaw(item) for key, item in zip(value._shape, value._values, strict=True)}
    if kind is tuple:
        return [thaw(item) for item in value]
    return str(value) if kind is Text else value


def same(left: Any, right: Any) -> bool:
    """JSON equality by type and value: `true`, `1` and `1.0` differ; the order of keys does not.

    Takes frozen values and plain ones. O(size), and O(1) for what is one object.
    """
    if left is right:
        return True
    kind = type(left)
    if kind is str or kind is Text:
        return (type(right) is str or type(right) is Text) and left == right
    if kind in _SCALARS:
        return type(right) is kind and left == right
    if kind is Object and type(right) is Object and left._shape is right._shape:
        return all(map(same, left._values, right._values))
    if isinstance(left, (tuple, list)):
        if not isinstance(right, (tuple, list)) or len(left) != len(right):
            return False
        return all(same(a, b) for a, b in zip(left, right, strict=True))
    if isinstance(left, Mapping):
        if not isinstance(right, Mapping) or len(left) != len(right):
            return False
        return all(key in right and same(left[key], right[key]) for key in left)
    return bool(left == right)


def alike(left: Any, right: Any, depth: int = DEPTH_MAX) -> bool:
    """Whether two States are the same through and through: types, fields and JSON values.

    Looks into Structs, attrs classes and dataclasses, not at their `==`; what else it does not
    know, or what is nested deeper than `depth`, is alike only to itself. O(size), and O(1) for
    what is one object.
    """
    if left is right:
        return True
    kind = type(left)
    if type(right) is not kind or depth <= 0:
        return False
    if kind in _LEAVES:
        return bool(left == right)
    if kind is Object or kind is dict:
        return len(left) == len(right) and all(
            key in right and alike(left[key], right[key], depth - 1) for key in left
        )
    if kind is tuple or kind is list:
        return len(left) == len(right) and all(
            alike(a, b, depth - 1) for a, b in zip(left, right, strict=True)
        )
    if kind is frozenset or kind is set:
        leaves = all(type(item) in _LEAVES for item in left | right)
        return leaves and {(type(item), item) for item in left} == {
            (type(item), item) for item in right
        }
    fields = _fields(kind)
    return fields is not None and all(
        alike(getattr(left, name, None), getattr(right, name, None), depth - 1) for name in fields
    )


def _fields(kind: type[Any]) -> tuple[str, ...] | None:
    if issubclass(kind, Struct):
        return kind.__struct_fields__
    attributes = getattr(kind, "__attrs_attrs__", None)
    if attributes is not None:
        return tuple(attribute.name for attribute in attributes)
    fields = getattr(kind, "__dataclass_fields__", None)
    return None if fields is None else tuple(fields)
