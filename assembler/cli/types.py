"""`assembler types`: what goes over the wire, as types for clients.

Not here: how they are made (`assembler.server`), which needs the extra of that name.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from assembler.cli.inputs import OK
from assembler.cli.output import print_json
from assembler.cli.serve import require_server

__all__ = ["add"]


def add(commands: Any) -> None:
    """Adds the parser of this command."""
    parser = commands.add_parser(
        "types",
        help="print the types of the server's answers for a client",
        description="Prints the types of everything that the server takes and gives: TypeScript, "
        "or with --json their JSON Schema.",
        epilog="example: assembler types > src/wire.ts",
    )
    parser.add_argument("--json", action="store_true", help="print their JSON Schema")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Prints them."""
    require_server("types")
    from assembler.server.schemas import schemas  # noqa: PLC0415
    from assembler.server.typescript import typescript  # noqa: PLC0415

    if arguments.json:
        print_json({"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": schemas()})
    else:
        sys.stdout.write(typescript())
    return OK
