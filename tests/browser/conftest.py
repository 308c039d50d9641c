"""A real browser for the tests here; they skip where there is none.

Debian's `chromium`, driven by Playwright. `tests/clients` has the packages that are not Python's.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

PACKAGES = Path(os.environ.get("CONVERSATION_CLIENTS") or Path(__file__).parents[1] / "clients")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
ENDED = ("ERR_CONNECTION_REFUSED", "503 (Service Unavailable)")
WIDE = {"width": 1280, "height": 800}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Give one browser, with a new profile folder, for the tests of a file; or skip.

    No longer: what drives it leaves an event loop running, and other tests have their own.
    """
    api = pytest.importorskip("playwright.sync_api", reason="needs Playwright")
    found = shutil.which("chromium")
    if found is None:
        pytest.skip("needs a browser: apt-get install chromium")
    with api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield launched
        launched.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Any]]:
    """Give a function that opens a page; after the test nothing may have gone wrong in any."""
    faults: list[str] = []
    contexts: list[Any] = []

    def opened(url: str, context: Any = None, **options: Any) -> Any:
        if context is None:
            context = browser.new_context(**{"viewport": WIDE, **options})
            contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("pageerror", lambda error: faults.append(f"error: {error}"))
        page.on("console", lambda said: _heard(said, faults))
        page.goto(url)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert faults == []


def _heard(said: Any, faults: list[str]) -> None:
    """What a page complains about; a violation of its policy comes as an error too."""
    # A test ends its server before its pages.
    if said.type in ("error", "warning") and not any(each in said.text for each in ENDED):
        faults.append(f"{said.type}: {said.text}")


@pytest.fixture(scope="session")
def axe() -> str:
    """Give the source of axe-core, or skip."""
    file = PACKAGES / "node_modules" / "axe-core" / "axe.min.js"
    if not file.is_file():
        pytest.skip("needs axe-core: npm ci --prefix tests/clients")
    return file.read_text("utf-8")
