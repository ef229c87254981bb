"""The display range of an image of 12 bits, set and reset in the viewer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


def test_the_display_range_is_set_and_reset_in_the_viewer(
    open_viewer: Any, ingest: Any, tmp_path: Path
) -> None:
    grey = np.full((900, 1200), 4000, np.uint16)
    grey[:, :600] = 1600
    Image.fromarray(grey).save(tmp_path / "deep.png")
    viewer = open_viewer(ingest(tmp_path / "deep.png")).centred(scale=1.0)
    page = viewer.page
    button = page.locator("[data-display-range-open]")
    dialog = page.locator("[data-dialog=display-range]")
    expect(button).to_contain_text("0 – 4095")
    button.click()
    page.fill("[data-range-low]", "4000")
    page.fill("[data-range-high]", "4000")
    dialog.locator("button[type=submit]").click()
    expect(page.locator("[data-range-problem]")).to_contain_text("different")
    page.fill("[data-range-low]", "1600")
    with page.expect_navigation():
        dialog.locator("button[type=submit]").click()
    page.wait_for_selector("[data-viewer][data-ready]")
    expect(button).to_contain_text("1600 – 4000")
    page.wait_for_load_state("networkidle")
    expect(page.locator("[data-tile-errors]")).to_be_hidden()
    assert float(viewer.link()["z"]) == pytest.approx(1.0)
    button.click()
    expect(page.locator("[data-range-low]")).to_have_value("1600")
    with page.expect_navigation():
        page.click("[data-range-reset]")
    page.wait_for_selector("[data-viewer][data-ready]")
    expect(button).to_contain_text("0 – 4095")
    assert viewer.problems == []
