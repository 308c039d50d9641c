"""Blocks as text, files, arguments: what all formats need of them, in no format's words.

Not here: how a provider spells a block (the formats).
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Iterable
from json import dumps
from typing import Any

from msgspec import Struct

from assembler.engine.values import Object, thaw
from definitions.events import is_blank, named
from definitions.model_context.turns import Call, Result

__all__ = [
    "COMMON_IMAGES",
    "FOLLOWS",
    "NO_OUTPUT",
    "OPENING",
    "File",
    "argument_object",
    "argument_text",
    "call_name",
    "file_of",
    "is_file",
    "kept_raw",
    "raw_of",
    "result_text",
    "shown_text",
    "text_blocks",
    "unshown",
]

NO_OUTPUT = "(no output)"
"""Stands where a result has nothing in it: no provider takes an empty block."""

OPENING = "(The conversation begins with an answer.)"
"""Stands before an answer that nothing was said before, where a provider wants input first."""

FOLLOWS = "(A file, which follows.)"
"""Stands in a result whose file is input behind it."""

COMMON_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""What Anthropic and OpenAI take; they refuse a request with any other image in it.
https://platform.openai.com/docs/guides/images-vision#image-input-requirements"""

_SVG = "image/svg+xml"
_ALIASES = {"image/jpg": "image/jpeg"}
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_UNPARSED = "unparsed_arguments"
_NEVER_SHOWN = frozenset({"reasoning", "tool-call", "provider"})


class File(Struct, frozen=True):
    """A file: its `data` in base64, or where it is."""

    media_type: str
    data: str | None = None
    url: str | None = None
    name: str | None = None

    @property
    def as_url(self) -> str:
        """Its address, which may hold the file itself."""
        return self.url or f"data:{self.media_type};base64,{self.data}"

    @property
    def as_text(self) -> str | None:
        """What is in a text file, or in a drawing that is text; None when it is none, blank, or
        only its address is known."""
        is_text = self.media_type.startswith("text/") or self.media_type == _SVG
        if self.data is None or not is_text:
            return None
        try:
            text = b64decode(self.data).decode()
        except ValueError:
            return None
        return text if text.strip() else None


def file_of(block: Object) -> File | None:
    """Read a file block; None when it does not say what it is, or holds nothing that is base64 and
    is nowhere else."""
    media_type, data, url = (named(block, field) for field in ("media_type", "data", "url"))
    if url is not None and url.startswith("data:"):
        told, _, data = url.removeprefix("data:").partition(",")
        if not told.endswith(";base64") or not data:
            return None
        media_type, url = media_type or told.removesuffix(";base64"), None
    if data is not None and not _BASE64.fullmatch(data):
        data = None
    if media_type is None or (data is None and url is None):
        return None
    name = named(block, "name") or named(block, "filename")
    media_type = media_type.partition(";")[0].strip().lower()
    media_type = _ALIASES.get(media_type, media_type)
    return File(media_type, None if url else data, url, name)


def is_file(block: Object) -> bool:
    """Whether it is a file block."""
    return named(block, "type") == "file"


def unshown(block: Object) -> str:
    """Say in words what a format cannot show: nothing goes missing in silence."""
    if not is_file(block):
        return f"(A block of type {block.get('type')} is not shown here.)"
    file = file_of(block)
    if file is None:
        return "(A file is not shown here.)"
    at = f": {file.url}" if file.url else ""
    return f"(A file of type {file.media_type} is not shown here{at}.)"


def shown_text(block: Object) -> str | None:
    """Give a block as text; None for what is no text of anybody: reasoning, calls, a provider's
    own blocks, and what is blank."""
    kind, text = block.get("type"), block.get("text")
    if kind in _NEVER_SHOWN:
        return None
    if kind == "json":
        return dumps(thaw(block.get("value")), ensure_ascii=False, separators=(",", ":"))
    if type(text) is str:
        return None if is_blank(text) else text
    return None if kind == "text" else unshown(block)


def text_blocks(blocks: Iterable[Object]) -> list[str]:
    """Give what can be read of some blocks, each as text."""
    return [text for block in blocks if (text := shown_text(block)) is not None]


def result_text(
    result: Result,
    *,
    marked: bool = False,
    behind: Callable[[Object], object] = lambda _: None,
) -> str:
    """Give a result as one text.

    `marked`: an error says so, for formats with no field for it. `behind`: gives something for a
    file that follows as input, for formats whose results are text alone.
    """
    texts = [
        FOLLOWS if is_file(block) and behind(block) is not None else shown_text(block)
        for block in result.blocks
    ]
    text = "\n".join([each for each in texts if each is not None]) or NO_OUTPUT
    if marked and result.is_error and not text.lower().startswith("error"):
        return f"Error: {text}"
    return text


def argument_object(call: Call) -> dict[str, Any]:
    """Give the arguments as an object. What is none is named as what it is, never as `{}`."""
    if call.arguments is not None:
        arguments: dict[str, Any] = thaw(call.arguments)
        return arguments
    return {_UNPARSED: call.text} if call.text.strip() else {}


def argument_text(call: Call) -> str:
    """Give the arguments as text: as they came, where they are a JSON object.

    Servers parse what is sent back to them, so that other text is wrapped.
    """
    if call.arguments is not None:
        return call.text
    return dumps(argument_object(call), ensure_ascii=False)


def call_name(call: Call, allowed: str, longest: int) -> str:
    """Give the name of a call in the characters that a provider takes, each other one as `_`."""
    name = "".join(
        each if each.isascii() and (each.isalnum() or each in allowed) else "_"
        for each in call.name
    )
    return name[:longest]


def raw_of(block: Object) -> Object | None:
    """Give what a block keeps of the provider's own spelling."""
    raw = block.get("raw")
    return raw if type(raw) is Object else None


def kept_raw(block: Object, providers: frozenset[str]) -> dict[str, Any] | None:
    """Give a provider's own block as it came; None when it is another provider's, or pieces of it
    came that nobody could put together."""
    raw = raw_of(block)
    own = named(block, "provider") in providers
    if block.get("type") != "provider" or not own or not raw or "deltas" in raw:
        return None
    plain: dict[str, Any] = thaw(raw)
    return plain
