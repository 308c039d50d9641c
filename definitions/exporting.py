"""What `assembler export` writes: the frames of each protocol, as clients of it are sent them.

Not here: what a protocol sends (`protocols`), the command (`assembler.cli.export`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from assembler.codec import encode
from assembler.plugins import Exporter
from definitions.protocols import Acp, AgUi, AiSdk, Encoder, Frame

__all__ = ["ACP", "AG_UI", "AI_SDK"]

_SESSION = "recording"


def _connecting(make: Callable[[Collection[str]], Encoder]) -> Callable[[Mapping[str, Any]], Any]:
    """A client that hides what a recording's header says."""

    def connect(header: Mapping[str, Any]) -> Encoder:
        return make(header.get("hidden_tools") or ())

    return connect


def _notification(update: Frame) -> bytes:
    return encode(Acp.notification(_SESSION, update)) + b"\n"


ACP = Exporter(
    "session/update notifications of the Agent Client Protocol, one on a line",
    _connecting(lambda hidden: Acp(hidden=hidden, echo=True)),
    _notification,
)

AG_UI = Exporter(
    "events of AG-UI, as server-sent events",
    _connecting(lambda hidden: AgUi(hidden=hidden, echo=True)),
    AgUi.sse,
)

AI_SDK = Exporter(
    "the AI SDK's UI message stream, as server-sent events",
    _connecting(lambda hidden: AiSdk(hidden=hidden)),
    AiSdk.sse,
    AiSdk.DONE,
)
