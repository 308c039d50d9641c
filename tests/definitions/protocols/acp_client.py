"""What an editor shows, by the package `agent-client-protocol`: its models, its accumulator.

Its models forgive: they drop what they do not understand. So each frame must come out of them as
it went in. Not here: tests.
"""

from __future__ import annotations

from typing import Any

from acp.contrib.session_state import SessionAccumulator
from acp.schema import SessionNotification

from definitions.protocols import Acp, Frame
from definitions.testing import About

__all__ = ["Editor", "accepted"]

TERMINAL = ("completed", "failed")


def accepted(frame: Frame) -> SessionNotification:
    """The frame as a client reads it; fails when anything of it is lost on the way."""
    params = Acp.notification("s1", frame)["params"]
    notification = SessionNotification.model_validate(params)
    read = notification.model_dump(mode="json", by_alias=True, exclude_none=True)
    assert read == params, f"a client reads {read}, sent was {params}"
    return notification


class Editor:
    """A client that knows what `preparationDiscarded` means."""

    def __init__(self) -> None:
        self._session = SessionAccumulator()
        self._meta: dict[str, Any] = {}
        self._texts: dict[str, tuple[int, str, str]] = {}

    def take(self, frame: Frame) -> About | None:
        self._session.apply(accepted(frame))
        if "toolCallId" not in frame:
            self._hear(frame)
            return None
        call = frame["toolCallId"]
        if frame["sessionUpdate"] == "tool_call":
            assert self._meta.get(call) is None, "announced twice"
        else:
            assert self._meta.get(call) is not None, "an update of what was never announced"
        is_discarded = frame["_meta"].get("preparationDiscarded", False)
        self._meta[call] = None if is_discarded else frame["_meta"]
        return About(call, frame["status"] in TERMINAL and not is_discarded)

    def _hear(self, frame: Frame) -> None:
        """A message; one that takes the place of another bears the same name and a number."""
        name, _, number = frame["messageId"].partition("~")
        text, version = frame["content"]["text"], int(number or 1)
        kind = frame["sessionUpdate"]
        old_version, old_kind, old = self._texts.get(name, (0, kind, ""))
        assert version >= old_version
        text = old + text if version == old_version else text
        assert version > old_version or kind == old_kind
        self._texts[name] = version, kind, text

    @property
    def calls(self) -> dict[str, Any]:
        shown = {name: meta for name, meta in self._meta.items() if meta is not None}
        views = self._session.snapshot().tool_calls if shown else {}
        return {name: (views[name].model_dump(), meta) for name, meta in shown.items()}

    @property
    def texts(self) -> dict[str, Any]:
        return {name: (kind, text) for name, (_, kind, text) in self._texts.items()}
