"""The inspector: a page that reads what the other routes give. Its files are in `page/`.

Not here: the routes that it reads (`routes`).
"""

from __future__ import annotations

from starlette.routing import BaseRoute

from assembler.server.routes import Service

__all__ = ["inspector_routes"]


def inspector_routes(service: Service) -> list[BaseRoute]:
    """The page and what it alone asks for."""
    del service
    return []
