"""How a Node reads on one line of a terminal or a log: `row_text`.

Plain and complete enough to follow a conversation: what a call is about in its own words, what it
writes as a size, what was only thought in short. Whoever shows it cuts it to the width there is.
Not here: how a call reads for every client (`rows`), which its row here begins with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from assembler.engine.definition import Node
from assembler.engine.values import Object, Text, thaw
from definitions.families import GENERIC, family_of
from definitions.nodes import ToolNode

__all__ = ["row_text"]

_TEXT_MAX = 4_096
"""So much of one text is looked at: its first half and its last, where it grows."""
_ARGUMENT_MAX = 120
_THOUGHT_MAX = 60
_KILO = 1_000
_GOES_WELL = (None, "completed")

_ABOUT = frozenset({"path", "file_path", "filename", "command", "cmd", "code", "pattern", "query"})
"""What a call is about: said without its name when it comes first."""
_WRITTEN = frozenset(
    {"content", "contents", "file_text", "insert_text", "patch", "diff"}
    | {f"{age}_{name}" for age in ("old", "new") for name in ("string", "str", "text")}
)
"""What is written to a file, or was there: of more than one line only the size is said."""


def row_text(node: Node) -> tuple[str, str, str]:
    """Give the stage (one word or none), the title and the summary of a Node's row."""
    reads = _READS.get(node.kind)
    if reads is None:
        return "", node.kind, _pairs(node.data)
    return reads(node)


def _message(node: Node) -> tuple[str, str, str]:
    return "", node.kind, _content(node.data["content"])


def _assistant(node: Node) -> tuple[str, str, str]:
    status = node.data["status"]
    return "" if status == "settled" else status, node.kind, _content(node.data["blocks"])


def _tool(node: Node) -> tuple[str, str, str]:
    data = node.data
    said = [*_about(node), _result(data)]
    if data["error"]:
        said.append(f"! {_error(data['error'])}")
    return _tool_stage(data), _title(data), "  ".join(filter(None, said))


def _title(data: Mapping[str, Any]) -> str:
    """The title of the family; of a tool that belongs to none its own name tells more."""
    return str(data["name"]) if _is_generic(data) else str(data["row"]["title"])


def _is_generic(data: Mapping[str, Any]) -> bool:
    return data["name"] is not None and family_of(data["name"]) is GENERIC


def _about(node: Node) -> list[str]:
    """What a call is about, and how much it writes; of a tool that nobody knows, all of it."""
    data = node.data
    if _is_generic(data):
        return [_arguments(node)]
    if data["name"] is None:
        return []  # the summary is the beginning of the result, which follows
    arguments = data["arguments"]
    if arguments is None:
        arguments = node.partial if isinstance(node, ToolNode) else {}
    sizes = [
        f"{name}: {_size(str(text))}"
        for name, text in arguments.items()
        if isinstance(text, (str, Text)) and _is_written(name, str(text))
    ]
    return [str(data["row"]["summary"]), *sizes]


def _result(data: Mapping[str, Any]) -> str:
    if data["outcome"] == "succeeded" and _writes(data["arguments"]):
        return ""  # that it was written is all that it says
    if data["content"]:
        return f"→ {_content(data['content'])}"
    return f"→ {_clipped(data['output'])}" if data["output"] else ""


def _tool_stage(data: Mapping[str, Any]) -> str:
    if data["waiting"] is not None:
        return "waiting"
    if data["stage"] == "preparing":
        return "preparing"
    return data["outcome"] or "running"


def _arguments(node: Node) -> str:
    """The arguments that run; while they are being written, what of them can be read."""
    arguments = node.data["arguments"]
    if arguments is not None:
        # A call without any says so: with nothing there it looks as if they were lost.
        empty = isinstance(arguments, Mapping) and not arguments
        return "{}" if empty else _call(arguments)
    if isinstance(node, ToolNode):
        return _call(node.partial)
    return _clipped(node.data["arguments_text"] or "")


def _call(arguments: Any) -> str:
    """What a call is about, then its other arguments, each of them in short."""
    if not isinstance(arguments, Mapping):
        return _value(arguments)
    said: list[str] = []
    for name, value in arguments.items():
        if value is None:
            continue
        short = _argument(name, value)
        said.append(short if not said and name in _ABOUT else f"{name}: {short}")
    return "  ".join(said)


def _argument(name: str, value: Any) -> str:
    if not isinstance(value, (str, Text)):
        return _value(value)
    text = str(value)
    if _is_written(name, text):
        return _size(text)
    return _beginning(text, _ARGUMENT_MAX)


def _writes(arguments: Any) -> bool:
    """Whether some argument is said as a size."""
    return isinstance(arguments, Mapping) and any(
        isinstance(value, (str, Text)) and _is_written(name, str(value))
        for name, value in arguments.items()
    )


def _is_written(name: str, text: str) -> bool:
    return name in _WRITTEN and "\n" in text


def _size(text: str) -> str:
    """How much a text is, as a file."""
    lines = text.count("\n") + (not text.endswith("\n"))
    size = len(text.encode(errors="replace"))
    said = f"{size} B" if size < _KILO else f"{size / _KILO:.1f} kB"
    return f"{lines} line{'s' * (lines != 1)}, {said}"


def _beginning(text: str | Text, most: int) -> str:
    text = str(text).strip()
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def _permission(node: Node) -> tuple[str, str, str]:
    return str(node.data["decision"]), node.kind, _call(node.data["input"] or {})


def _retry(node: Node) -> tuple[str, str, str]:
    last = node.data["attempts"][-1]
    said = f"{_value(last.get('reason') or 'no reason given')}, after try {last['number']}"
    delay = last.get("delay_ms")
    if isinstance(delay, (int, float)):
        said += f"; waits {delay / _KILO:g} s"
    return str(node.data["status"]), node.kind, said


def _turn_error(node: Node) -> tuple[str, str, str]:
    return "failed", node.kind, _error(node.data["error"] or {})


def _error(error: Any) -> str:
    """An error as programs print it; whatever else it says behind that."""
    if not isinstance(error, Mapping):
        return _value(error)
    named = [_value(error[field]) for field in ("name", "message") if error.get(field)]
    more = _pairs({field: error[field] for field in error if field not in ("name", "message")})
    return "  ".join(filter(None, [": ".join(named), more]))


def _turn_limit(node: Node) -> tuple[str, str, str]:
    return "failed", node.kind, "the answer was cut: it became too long"


def _turn_tail(node: Node) -> tuple[str, str, str]:
    """Sum a turn up in words: how long, which calls, how many tokens."""
    data = node.data
    said = []
    if data.get("duration_ms") is not None:
        said.append(f"{data['duration_ms'] / 1_000:,.1f} s")
    said += [f"{count} {name}" for name, count in (data.get("calls") or {}).items()]
    if data.get("failed"):
        said.append(f"{data['failed']} failed")
    if data.get("files"):
        said.append(f"wrote {', '.join(map(str, data['files']))}")
    return str(data["status"]), "turn", "  ".join([*said, *_tokens(data.get("usage") or {})])


def _tokens(usage: Mapping[str, Any]) -> list[str]:
    told = [
        f"{usage[field]:,} {word}"
        for field, word in (("input_tokens", "in"), ("output_tokens", "out"))
        if type(usage.get(field)) is int
    ]
    return [f"tokens {' '.join(told)}"] if told else []


def _step(node: Node) -> tuple[str, str, str]:
    """A step in words: how long, of whom, what went wrong, which events to look at."""
    data = node.data
    request = data["request"]
    said = []
    if data["started"] is not None and data["ended"] is not None:
        said.append(f"{max(data['ended'] - data['started'], 0) / 1_000:,.1f} s")
    said.append("/".join(str(request[name]) for name in ("provider", "model") if request[name]))
    said += [_attempt(each) for each in data["attempts"] if each["outcome"] not in _GOES_WELL]
    said.append(_value(request["stop_reason"] or ""))
    calls = len(data["calls"])
    if calls:
        said.append(f"{calls} call{'s' * (calls != 1)}")
    said += _tokens(data["usage"] or {})
    if data["error"]:
        said.append(f"! {_error(data['error'])}")
    if data["events"]:
        said.append(f"events {data['events'][0]} to {data['events'][1]}")
    return data["status"] or "", f"step {node.id}", "  ".join(filter(None, said))


def _attempt(attempt: Mapping[str, Any]) -> str:
    """What became of an attempt that was not completed, and why."""
    why = "" if attempt["reason"] is None else f": {_value(attempt['reason'])}"
    of = f" of {attempt['model']}" if attempt["model"] else ""
    return f"(try {attempt['number']}{of} → {attempt['outcome']}{why})"


def _compaction(node: Node) -> tuple[str, str, str]:
    return str(node.data["status"]), node.kind, _value(node.data["summary"] or "")


def _command(node: Node) -> tuple[str, str, str]:
    said = [_value(node.data[field]) for field in ("arguments", "output") if node.data[field]]
    return str(node.data["status"]), f"/{node.data['name'] or '?'}", "  → ".join(said)


def _unknown(node: Node) -> tuple[str, str, str]:
    return "", str(node.data["type"]), _pairs(node.data["data"])


def _content(blocks: Iterable[Any]) -> str:
    """The text of content blocks; of others, what they are. Thoughts are short when more comes."""
    said = []
    blocks = list(blocks)
    for number, block in enumerate(blocks, 1):
        text = block.get("text") if isinstance(block, Object) else None
        if isinstance(text, (str, Text)) and block.get("type") == "reasoning":
            is_last = number == len(blocks)
            thought = _clipped(text) if is_last else _beginning(text, _THOUGHT_MAX)
            said.append(f"(thinking) {thought}")
        elif isinstance(text, (str, Text)):
            said.append(_clipped(text))
        else:
            said.append(_block(block))
    return "  ".join(filter(None, said))


def _block(block: Any) -> str:
    """A block that is no text, in words; what nobody knows in full."""
    fields = block if isinstance(block, Mapping) else {}
    kind = fields.get("type")
    if kind == "json" and "value" in fields:
        return _value(fields["value"])
    if kind == "file":
        what = fields.get("name") or fields.get("url") or ""
        short = "" if str(what).startswith("data:") else _beginning(_value(what), _ARGUMENT_MAX)
        return f"[{' '.join(filter(None, [_value(fields.get('media_type') or 'file'), short]))}]"
    raw = fields.get("raw")
    if kind == "provider" and isinstance(raw, Mapping) and isinstance(raw.get("type"), (str, Text)):
        return f"[{raw['type']}]"
    return _value(block)


def _pairs(fields: Any) -> str:
    """`name: value` of every field that has one; what is no object as it is."""
    if not isinstance(fields, Mapping):
        return _value(fields)
    return "  ".join(
        f"{name}: {_value(value)}" for name, value in fields.items() if value is not None
    )


def _value(value: Any) -> str:
    if isinstance(value, (str, Text)):
        return _clipped(value)
    if isinstance(value, Mapping):
        return f"{{{_pairs(value)}}}"
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(_value, value))}]"
    spoken = {None: "null", True: "true", False: "false"}
    plain = thaw(value)
    return spoken[plain] if plain is None or isinstance(plain, bool) else str(plain)


def _clipped(text: str | Text) -> str:
    text = str(text)
    if len(text) <= _TEXT_MAX:
        return text
    half = _TEXT_MAX // 2
    return f"{text[:half]} … {text[-half:]}"


_READS: Mapping[str, Callable[[Node], tuple[str, str, str]]] = {
    "user": _message,
    "steering": _message,
    "context": _message,
    "assistant": _assistant,
    "tool": _tool,
    "permission": _permission,
    "retry": _retry,
    "turn-error": _turn_error,
    "turn-limit": _turn_limit,
    "turn-tail": _turn_tail,
    "compaction": _compaction,
    "command": _command,
    "unknown": _unknown,
    "step": _step,
}
