"""A browser for tests: Debian's Chromium, driven by Playwright; neither is ever downloaded here.

Without either these tests are skipped with the reason, unless ``ANABRANCH_BROWSER=required``.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from anabranch._api.timeline.view import Timeline
from tests.browser.opened import Opened, Window

_NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
_QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


def absent(reason: str) -> None:
    if os.environ.get("ANABRANCH_BROWSER") == "required":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium."""
    try:
        from playwright.sync_api import Error, sync_playwright
    except ModuleNotFoundError:
        absent("Playwright is not installed: pip install playwright")
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        absent("there is no Chromium: python tools/setup.py --browser")
    with sync_playwright() as driver:
        try:
            chromium = driver.chromium.launch(executable_path=found, args=list(_QUIET))
        except Error as error:
            absent(f"{found} does not start: {str(error).splitlines()[0]}")
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def window(browser: Any) -> Window:
    return Window(browser)


@pytest.fixture
def show(window: Window, tmp_path: Path) -> Iterator[Any]:
    """Opens a timeline's page; at the end it must have said nothing on its console and asked nobody for anything."""
    opened: list[Opened] = []

    def open_page(timeline: Timeline, width: int = 1200, **media: str) -> Opened:
        file = timeline.save(tmp_path / f"page{len(opened)}.html")
        opened.append(Opened.at(window, file.as_uri(), width, **media))
        return opened[-1]

    yield open_page
    for each in opened:
        assert each.complaints == []
        assert each.requests == []
