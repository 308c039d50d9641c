"""A conversation as one file to send: `document` writes it, `bundling` makes its one script.

The files `document.js` and `document.css` beside this one are what it adds to the inspector page,
whose style sheet and rows it uses. Not here: the page itself (`assembler/server/page`), and one
business word.
"""

from __future__ import annotations

__all__: list[str] = []
