"""Protocols out: from the Patches of the `chat` view to the frames that clients understand.

The public names. One file for each protocol; what they share is `frames`. A protocol sees Node
payloads, ids and patches, never events or State. Not here: sockets and servers.
"""

from __future__ import annotations

from definitions.protocols.acp import Acp
from definitions.protocols.ag_ui import AgUi
from definitions.protocols.ai_sdk import AiSdk
from definitions.protocols.ai_sdk_messages import ui_messages
from definitions.protocols.frames import Encoder, Frame, send_each

__all__ = ["Acp", "AgUi", "AiSdk", "Encoder", "Frame", "send_each", "ui_messages"]
