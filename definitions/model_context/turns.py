"""The history as all formats read it: inputs, and answers whose calls have their results.

Values alone. Not here: where they come from (`history`), how a provider spells them (the formats).
"""

from __future__ import annotations

from msgspec import Struct

from assembler.engine.values import Object, freeze_object

__all__ = ["Answer", "Call", "Input", "Part", "Result", "Turn"]

_NOTHING = freeze_object({})


class Result(Struct, frozen=True):
    """The outcome of a call: its blocks, or one text block that says why there is none."""

    blocks: tuple[Object, ...]
    is_error: bool = False


class Call(Struct, frozen=True):
    """One call with its result.

    `text` are the arguments as they came, `arguments` what they parse to (None: no object).
    `raw` are the fields of the provider's own block that we do not model, `signature` its proof of
    what it thought. `parent` is the call that it was made inside of. With `native` the provider ran
    it in its own way: its result is a block of an answer, and `result` says nothing.
    """

    call_id: str
    name: str
    text: str
    arguments: Object | None
    raw: Object
    result: Result
    provider_call_id: str | None = None
    parent: str | None = None
    native: bool = False
    signature: str | None = None

    @property
    def is_ordinary(self) -> bool:
        """Whether it is a call of the answer itself that has its `result` behind it."""
        return not self.native and self.parent is None


Part = Object | Call


class Input(Struct, frozen=True):
    """What was said to the model."""

    blocks: tuple[Object, ...]


class Answer(Struct, frozen=True):
    """What the model said, in its order. `source` is what its provider called it: the `name` of the
    format that it came in, and what belongs to no block."""

    parts: tuple[Part, ...]
    source: Object = _NOTHING

    @property
    def calls(self) -> tuple[Call, ...]:
        """Its calls, in order."""
        return tuple(part for part in self.parts if isinstance(part, Call))

    def is_of(self, formats: frozenset[str]) -> bool:
        """Whether it came in one of these formats: then what was signed goes back."""
        name = self.source.get("name")
        return type(name) is str and name in formats


Turn = Input | Answer
