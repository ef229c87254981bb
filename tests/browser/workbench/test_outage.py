"""Tiles that failed are loaded again without a click."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

BANNER = "[data-tile-errors]"
OUTAGE_MS = 30_000


@pytest.fixture
def viewer(open_viewer: Any, ingest: Any, slide_file: Any) -> Any:
    page = open_viewer(ingest(slide_file))
    yield page
    assert page.problems == []


def loaded(viewer: Any) -> list[str]:
    """Tiles that the server answers from now on."""
    urls: list[str] = []
    viewer.page.on(
        "response",
        lambda answer: urls.append(answer.url) if answer.ok and "/tiles/" in answer.url else None,
    )
    return urls


def test_missing_tiles_are_loaded_once_the_network_or_the_server_is_back(viewer: Any) -> None:
    page = viewer.page
    page.wait_for_load_state("networkidle")
    page.context.set_offline(True)
    page.locator("[data-action=full]").click()
    expect(page.locator(BANNER)).to_be_visible(timeout=OUTAGE_MS)
    urls = loaded(viewer)
    page.context.set_offline(False)
    expect(page.locator(BANNER)).to_be_hidden(timeout=OUTAGE_MS)
    assert urls
    page.route("**/tiles/**", lambda route: route.fulfill(status=503))
    for _ in range(5):
        page.locator("[data-map]").press("ArrowRight")  # to tiles that were not in view
    expect(page.locator(BANNER)).to_be_visible(timeout=OUTAGE_MS)
    urls.clear()
    page.unroute("**/tiles/**")
    expect(page.locator(BANNER)).to_be_hidden(timeout=OUTAGE_MS)
    assert urls
