"""The modality of a still, changed and changed back with one click each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import expect

from tests.ml.imaging.test_modality import scope

pytestmark = pytest.mark.browser


def test_a_still_of_endoscopy_has_no_stain_and_changes_with_one_click(
    open_viewer: Any, ingest: Any, tmp_path: Path
) -> None:
    Image.fromarray(scope(600, 800)).save(tmp_path / "polyp.png")
    viewer = open_viewer(ingest(tmp_path / "polyp.png")).centred(scale=1.0)
    page = viewer.page
    stain, size = page.locator("[data-stain-open]"), page.locator("[data-pixel-size-open]")
    chosen = page.locator("[data-modality][aria-pressed=true]")
    expect(chosen).to_have_attribute("data-modality", "endoscopy")
    expect(stain).to_have_count(0)
    expect(size).to_have_count(0)
    for modality, widgets in (("histology", 1), ("endoscopy", 0)):
        with page.expect_navigation():
            page.click(f"button[data-modality={modality}]")
        page.wait_for_selector("[data-viewer][data-ready]")
        expect(chosen).to_have_attribute("data-modality", modality)
        expect(page.locator("[data-stage-notice]")).to_contain_text("embedded again")
        expect(stain).to_have_count(widgets)
        expect(size).to_have_count(widgets)
        assert float(viewer.link()["z"]) == pytest.approx(1.0)
    assert viewer.problems == []


def test_a_viewer_sees_the_modality_and_no_buttons(
    open_viewer: Any, ingest: Any, tmp_path: Path, viewer: Any
) -> None:
    Image.fromarray(scope(600, 800)).save(tmp_path / "polyp.png")
    opened = open_viewer(ingest(tmp_path / "polyp.png"), user=viewer)
    expect(opened.page.locator("button[data-modality]")).to_have_count(0)
    expect(opened.page.locator(".viewer-status")).to_contain_text("Endoscopy")
