"""`assembler serve [RECORDING | FOLDER | DATABASE]`: conversations over HTTP, and a page for them.

Not here: the server (`assembler.server`), which needs the extra of that name.
"""

from __future__ import annotations

import argparse
import asyncio
import ipaddress
import os
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assembler import plugins
from assembler.cli.databases import add_schema
from assembler.cli.inputs import OK, Definitions, add_catalog, add_view, definitions, view_of
from assembler.cli.output import say
from assembler.engine.errors import InputError
from assembler.stores.addresses import is_postgres

if TYPE_CHECKING:
    from assembler.server import Source
    from assembler.server.inspecting.travels import Inspecting

__all__ = ["add", "require_server"]

_SQLITE = b"SQLite format 3\0"
_PORT = 8421
_PORT_MAX = 65_535
_TOKEN = "ASSEMBLER_TOKEN"  # noqa: S105 - the name of a variable


def add(commands: Any) -> None:
    """Adds the parser of this command."""
    parser = commands.add_parser(
        "serve",
        help="show conversations in a browser, and to programs",
        description="Serves the conversations of recordings, transcripts, folders of them, or a "
        "database of ours until Ctrl-C. It answers on this machine alone; any other address needs "
        "a token.",
        epilog="example: assembler serve recordings --port 0",
    )
    parser.add_argument(
        "paths",
        nargs="*",
        default=["."],
        metavar="PATH",
        help="recordings, transcripts, folders of them, or one database: a SQLite file, or "
        "postgresql://… (default: this folder)",
    )
    add_schema(parser)
    parser.add_argument("--host", default="127.0.0.1", help="where to listen (default: 127.0.0.1)")
    parser.add_argument(
        "--port", type=_port, default=_PORT, help=f"0 is any free one (default: {_PORT})"
    )
    parser.add_argument(
        "--token",
        default=os.environ.get(_TOKEN),
        help=f"what whoever asks must know (default: ${_TOKEN}, which no list of processes shows); "
        "a browser says it once, with ?token=TOKEN behind the address",
    )
    add_view(parser)
    add_catalog(parser)
    parser.set_defaults(run=run)


def _port(text: str) -> int:
    if text.isascii() and text.isdecimal() and len(text) < 6 and int(text) <= _PORT_MAX:  # noqa: PLR2004
        return int(text)
    raise argparse.ArgumentTypeError(f"expected 0 to {_PORT_MAX}, got {text!r}")


def run(arguments: argparse.Namespace) -> int:
    """Serves until it is interrupted."""
    known = definitions(arguments)
    view_of(arguments, known)
    _check(arguments)
    require_server("serve")
    asyncio.run(_serve(arguments, known))
    return OK


def require_server(command: str) -> None:
    """`InputError` when the extra `server` is not installed."""
    try:
        import assembler.server.serving  # noqa: F401, PLC0415
    except ModuleNotFoundError as missing:
        said = f"{command}: it needs {missing.name}: pip install 'conversation-assembler[server]'"
        raise InputError(said) from None


def _check(arguments: argparse.Namespace) -> None:
    """What can be wrong before anything is opened."""
    for path in arguments.paths:
        if not is_postgres(path) and not Path(path).exists():
            raise InputError(f"{path}: expected a file or a folder, got nothing of that name")
    if len(arguments.paths) > 1 and any(_is_database(path) for path in arguments.paths):
        raise InputError("serve: a database is served alone")
    token = arguments.token
    if token is not None and not (token and token.isascii() and token.isprintable()):
        raise InputError("--token: expected some text in ASCII, which a header can carry")
    if not arguments.token and not _is_loopback(arguments.host):
        raise InputError(f"--host: {arguments.host} can be reached by others: it needs a --token")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_database(path: str) -> bool:
    if is_postgres(path):
        return True
    try:
        with Path(path).open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False


async def _serve(arguments: argparse.Namespace, known: Definitions) -> None:
    from assembler.server import create_app  # noqa: PLC0415
    from assembler.server.guard import LOOPBACK  # noqa: PLC0415
    from assembler.server.serving import bound, serve  # noqa: PLC0415

    local = _is_loopback(arguments.host)
    try:
        at = bound(arguments.host, arguments.port)
    except OSError as fault:
        raise InputError(f"{arguments.host}:{arguments.port}: {fault.strerror or fault}") from None
    async with AsyncExitStack() as stack:
        stack.callback(at.close)
        source = await _source(arguments, known, stack)
        app = create_app(
            source,
            token=arguments.token,
            # With a token, another name for this address is of no use to anybody.
            hosts=(*LOOPBACK, arguments.host) if local else None,
            view=arguments.view,
            inspecting=_inspecting(source, known, arguments.catalog),
        )
        await stack.enter_async_context(app)
        port = at.getsockname()[1]
        host = f"[{arguments.host}]" if ":" in arguments.host else arguments.host
        await serve(app, at, lambda: say(f"serving at http://{host}:{port}/"))


def _inspecting(source: Source, known: Definitions, catalog: str) -> Inspecting:
    from assembler.server.inspecting.travels import Inspecting, recordings_of  # noqa: PLC0415

    return Inspecting(
        recordings_of(source),
        known,
        marks=plugins.marks(catalog),
        module=plugins.page_module(catalog),
    )


async def _source(
    arguments: argparse.Namespace, known: Definitions, stack: AsyncExitStack
) -> Source:
    from assembler.server.files import FilesSource  # noqa: PLC0415
    from assembler.server.stored import database  # noqa: PLC0415
    from assembler.server.titles import Titles  # noqa: PLC0415

    titles = Titles(plugins.titles(arguments.catalog), plugins.opening(arguments.catalog))
    if _is_database(arguments.paths[0]):
        opened = database(arguments.paths[0], known, titles=titles, schema=arguments.schema)
        return await stack.enter_async_context(opened)
    files = FilesSource(arguments.paths, known, titles=titles)
    stack.push_async_callback(files.aclose)
    return files
