"""`python -m assembler`: the command line. Nothing else is here."""

from __future__ import annotations

from assembler.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
