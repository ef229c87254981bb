"""The page of the REST API in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.browser


def test_operations_are_in_groups_that_can_be_searched(
    browser: Any, open_server: Any, transactional_db: None, storage: Path
) -> None:
    context = browser.new_context(viewport={"width": 1366, "height": 768})
    page = context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(f"{open_server.url}/api/v1/docs/")
    groups = page.locator(".opblock-tag")
    groups.first.wait_for()
    assert groups.count() > 10
    assert page.locator(".opblock").count() == 0, "closed at first"
    page.locator(".operation-filter-input").fill("rois")
    page.locator("[data-tag=rois]").wait_for()
    page.locator("[data-tag=cases]").wait_for(state="detached")
    assert not complaints
    context.close()
