"""The public kit for people who add to this package: what every protocol and provider must keep.

Needs Hypothesis (`pip install conversation-assembler[testing]`). Not here: checks of Definitions,
which know no business (`assembler.testing`).
"""

from __future__ import annotations

from definitions.testing.adapters import check_provider
from definitions.testing.encoders import ANEW, About, Client, check_encoder

__all__ = ["ANEW", "About", "Client", "check_encoder", "check_provider"]
