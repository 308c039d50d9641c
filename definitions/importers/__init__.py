"""Transcripts and streams of others, made into recordings.

Here live the formats, each with one module for its entry, and the table of them with how each is
told by its content; `reading`, `halves`, `times` and `transcript` are for all of them. An importer
is `(lines, *, name) -> operations` (`assembler.plugins.Importer`): it takes the lines of one file
(bytes or text) and what to call that file in an error, and yields the lines of a recording as plain
dicts, the header first. What cannot be read is an `ImportFault` (a ValueError). Not here: opening
files, writing recordings, and what an operation does to an Assembler.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from assembler.plugins import Importer
from definitions.importers.acp import ACP
from definitions.importers.ag_ui import AG_UI
from definitions.importers.antigravity import ANTIGRAVITY
from definitions.importers.claude_code import CLAUDE_CODE, CLAUDE_CODE_WRAPPED
from definitions.importers.claude_code_stream import CLAUDE_CODE_STREAM
from definitions.importers.codex import CODEX
from definitions.importers.codex_tui_log import CODEX_TUI
from definitions.importers.copilot import COPILOT
from definitions.importers.cursor import CURSOR
from definitions.importers.droid import DROID
from definitions.importers.dsh_session import DSH_SESSION
from definitions.importers.dsh_stream import DSH_STREAM
from definitions.importers.errors import ImportFault
from definitions.importers.gemini_cli import GEMINI_CLI
from definitions.importers.grok import GROK
from definitions.importers.hermes import HERMES
from definitions.importers.kimi import KIMI
from definitions.importers.model_answers import EXCHANGE, MODEL_STREAM
from definitions.importers.openclaw import OPENCLAW
from definitions.importers.openhands import OPENHANDS
from definitions.importers.openhands_log import OPENHANDS_LOG
from definitions.importers.pi import PI
from definitions.importers.qwen_code import QWEN_CODE
from definitions.importers.swe_agent import SWE_AGENT
from definitions.importers.ui_message_stream import UI_MESSAGE_STREAM

__all__ = ["IMPORTERS", "ImportFault"]

IMPORTERS: Mapping[str, Importer] = MappingProxyType(
    {
        "acp": ACP,
        "ag-ui": AG_UI,
        "antigravity": ANTIGRAVITY,
        "claude-code": CLAUDE_CODE,
        "claude-code-stream": CLAUDE_CODE_STREAM,
        "claude-code-wrapped": CLAUDE_CODE_WRAPPED,
        "codex": CODEX,
        "codex-tui-log": CODEX_TUI,
        "copilot": COPILOT,
        "cursor": CURSOR,
        "droid": DROID,
        "dsh-session": DSH_SESSION,
        "dsh-stream": DSH_STREAM,
        "exchange": EXCHANGE,
        "gemini-cli": GEMINI_CLI,
        "grok": GROK,
        "hermes": HERMES,
        "kimi": KIMI,
        "model-stream": MODEL_STREAM,
        "openclaw": OPENCLAW,
        "openhands": OPENHANDS,
        "openhands-llm-log": OPENHANDS_LOG,
        "pi": PI,
        "qwen-code": QWEN_CODE,
        "swe-agent": SWE_AGENT,
        "ui-message-stream": UI_MESSAGE_STREAM,
    }
)
"""The importers by name; the entry points `assembler.importers` say the same to the library."""
