"""What a person typed into Codex, read from the keys that were pressed.

Keys that write, delete the last character or end a prompt are followed; after any other that may
change the text, nothing is claimed to be known until the next prompt. Not here: which records
tell of keys (`codex_tui_log`).
"""

from __future__ import annotations

import re

__all__ = ["Typed"]

_KEY = re.compile(
    r"KeyEvent \{ code: (?P<code>.+), modifiers: KeyModifiers\((?P<with>[^)]*)\), "
    r"kind: (?P<kind>\w+), state: "
)
"""A key as Rust's crossterm prints it."""
_CHARACTER = re.compile(r"Char\('(.+)'\)", re.DOTALL)
_ESCAPED = {"\\'": "'", "\\\\": "\\", "\\n": "\n", "\\t": "\t", '\\"': '"'}
_PLAIN = frozenset({"0x0", "NONE", "SHIFT"})
_HARMLESS = frozenset({"Esc", "PageUp", "PageDown", "FocusGained", "FocusLost"})


class Typed:
    """The prompt being typed. Memory: its text.

    `sent` is the prompt that was sent last, and not asked for yet.
    """

    def __init__(self) -> None:
        self.sent = ""
        self._text = ""
        self._is_known = True

    def take_sent(self) -> str:
        """Give the prompt that was sent last, once; empty when none is known."""
        sent, self.sent = self.sent, ""
        return sent

    def paste(self, text: str) -> None:
        self._text += text

    def press(self, event: str) -> None:
        """Follow one key; when it is let go says nothing."""
        key = _KEY.search(event)
        if key is None or key["kind"] == "Release":
            return
        code, held = key["code"], key["with"]
        character = _CHARACTER.fullmatch(code)
        if code == "Enter":
            self._enter(held)
        elif held == "CONTROL" and code == "Char('c')":
            self._clear()
        elif character is not None and held in _PLAIN:
            self._text += _ESCAPED.get(character[1], character[1])
        elif code == "Backspace" and held in _PLAIN:
            self._text = self._text[:-1]
        elif code not in _HARMLESS:
            self._is_known = False

    def _enter(self, held: str) -> None:
        if held not in ("0x0", "NONE"):
            self._text += "\n"
            return
        if self._text.strip() or not self._is_known:
            self.sent = self._text.strip() if self._is_known else ""
        self._clear()

    def _clear(self) -> None:
        self._text, self._is_known = "", True
