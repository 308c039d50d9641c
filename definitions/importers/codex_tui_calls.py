"""Calls as Codex shows them: one event when something begins, one when it is over.

Here lives how each kind of call begins and ends, as a name, arguments and a result. Not here: when
a call is in an answer's step (`codex_tui_log`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from definitions.importers.codex_items import Block, blocks_of
from definitions.importers.transcript import arguments_text, text_block
from definitions.providers.reading import mapping, text

__all__ = ["BEGINS", "ENDS", "Outcome", "asked", "begun"]

Event = Mapping[str, Any]


class Outcome(NamedTuple):
    """What came of a call."""

    content: list[Block]
    is_error: bool
    meta: dict[str, Any]


def _command(event: Event) -> tuple[str, Any]:
    return "shell", {key: event[key] for key in ("command", "cwd") if key in event}


def _patch(event: Event) -> tuple[str, Any]:
    changes = mapping(event.get("changes"))
    path = next(iter(changes), None)
    return "apply_patch", {**({} if path is None else {"path": path}), "changes": changes}


def _of_server(event: Event) -> tuple[str, Any]:
    called = mapping(event.get("invocation"))
    name = f"mcp__{text(called.get('server'))}__{text(called.get('tool'))}"
    return name, called.get("arguments") or {}


def _search(event: Event) -> tuple[str, Any]:
    return "web_search", {key: event[key] for key in ("query", "action") if key in event}


def _image(event: Event) -> tuple[str, Any]:
    return "view_image", {"path": text(event.get("path"))}


def _plan(event: Event) -> tuple[str, Any]:
    return "update_plan", {key: event[key] for key in ("explanation", "plan") if event.get(key)}


BEGINS: Mapping[str, Callable[[Event], tuple[str, Any]]] = {
    "exec_command_begin": _command,
    "exec_approval_request": _command,
    "patch_apply_begin": _patch,
    "apply_patch_approval_request": _patch,
    "mcp_tool_call_begin": _of_server,
    "web_search_end": _search,
    "view_image_tool_call": _image,
    "plan_update": _plan,
}
"""Events with which a call begins, with how its name and arguments are read.

What was searched for is said when it was found, and some calls are told by one event alone.
"""

_TOLD = frozenset(
    {
        *("type", "call_id", "command", "cwd", "changes", "invocation", "query", "action", "path"),
        *("explanation", "plan", "stdout", "stderr", "aggregated_output", "result"),
    }
)


def begun(event: Event) -> tuple[str, str, dict[str, Any]]:
    """Read a call that such an event begins: name, arguments (JSON text), and what is beside."""
    name, arguments = BEGINS[text(event.get("type"))](event)
    by = {"ran_by": "provider"} if name == "web_search" else {}
    return name, arguments_text(arguments), {**_rest(event), **by}


def _rest(event: Event) -> dict[str, Any]:
    return {key: value for key, value in event.items() if key not in _TOLD}


def asked(event: Event) -> bool:
    """Whether a call waits for a person's leave."""
    return text(event.get("type")).endswith("_approval_request")


def _command_over(event: Event) -> Outcome:
    told = [text(event.get(key)) for key in ("stdout", "stderr")]
    output = text(event.get("aggregated_output")) or "".join(told)
    failed = event.get("exit_code", 0) != 0
    return Outcome([text_block(output)] if output else [], failed, _rest(event))


def _patch_over(event: Event) -> Outcome:
    output = "".join(text(event.get(key)) for key in ("stdout", "stderr"))
    content = [text_block(output)] if output else []
    return Outcome(content, event.get("success") is False, _rest(event))


def _server_over(event: Event) -> Outcome:
    result = mapping(event.get("result"))
    if "Err" in result:
        return Outcome(blocks_of(result["Err"]), True, _rest(event))
    told = mapping(result.get("Ok"))
    failed = True in (told.get("isError"), told.get("is_error"))
    return Outcome(blocks_of(told.get("content")), failed, _rest(event))


def _nothing_told(_event: Event) -> Outcome:
    return Outcome([], False, {})


ENDS: Mapping[str, Callable[[Event], Outcome]] = {
    "exec_command_end": _command_over,
    "patch_apply_end": _patch_over,
    "mcp_tool_call_end": _server_over,
    "web_search_end": _nothing_told,
    "view_image_tool_call": _nothing_told,
    "plan_update": _nothing_told,
}
"""Events with which a call is over, with how its result is read."""
