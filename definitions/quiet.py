"""Event types that are kept as they are and are not worth a row in the chat.

Data: types of other programs' logs that our importers carry along. Not here: types that mean
something to us (`events`).
"""

from __future__ import annotations

__all__ = ["QUIET_TYPES"]

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
