"""Event types that are kept as they are and are not worth a row in the chat.

Data: types of other programs' logs that our importers carry along. Not here: types that mean
something to us (`events`).
"""

from __future__ import annotations

from collections.abc import Container

__all__ = ["QUIET", "QUIET_FORMATS", "QUIET_TYPES"]

QUIET_TYPES = frozenset(
    {
        # DeepSeek Harness session logs: what was sent to the model, and with which settings
        "request/header",
        "request/context",
        "session/title-llm-request",
        # the log about itself
        "session",
        "session/end-seed",
        "subagent/descriptor",
        # settings: the command that changed them has a row
        "approval/policy",
        "permission/preset",
        "sandbox/mode",
        # what runs around a call or a retry that has a row
        "hook/invoked",
        "hook/result",
        "llm/retry-started",
        "tool-workflow/run-start",
        "tool-workflow/agent-start",
        "tool-workflow/agent-end",
        "tool-workflow/run-end",
    }
)

QUIET_FORMATS = frozenset(
    {
        "acp",
        "ag-ui",
        "antigravity",
        "claude-code",
        "codex",
        "copilot",
        "cursor",
        "droid",
        "dsh-stream",
        "gemini-cli",
        "grok",
        "hermes",
        "kimi",
        "openclaw",
        "openhands",
        "openhands-llm-log",
        "pi",
        "qwen-code",
        "swe-agent",
        "ui-message-stream",
    }
)
"""Formats whose records without a counterpart are kept as `format/their type`: data about the
program, its files and its settings."""

_SHOWN = frozenset({"ag-ui/interrupt", "ag-ui/resume"})
"""Of those, what people were asked and what they answered."""


class _Quiet(Container[str]):
    """Everything that is kept without a row."""

    def __contains__(self, kind: object) -> bool:
        if not isinstance(kind, str):
            return False
        is_of_format = kind.partition("/")[0] in QUIET_FORMATS and kind not in _SHOWN
        return kind in QUIET_TYPES or is_of_format


QUIET: Container[str] = _Quiet()
