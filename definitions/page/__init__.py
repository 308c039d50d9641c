"""How the Nodes of the catalog read on the inspector page: `present.js`, found by entry point.

The page loads it as a module and asks it first; what it does not answer the page shows by itself.
Not here: the page (`assembler/server/page`), and how a Node reads as plain text (`rows_plain`).
"""

from __future__ import annotations

__all__ = ["FILE"]

FILE = "present.js"
"""The module, beside this one."""
