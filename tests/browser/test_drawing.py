"""Drawing on a slide in a real browser: autosave, undo, editing, conflicts, losing the network."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.browser

SQUARE = [(700, 500), (1100, 500), (1100, 900), (700, 900)]


@pytest.fixture
def viewer(open_viewer: Any, ingest: Any, slide_file: Any) -> Any:
    """The annotator's viewer on the middle of a slide."""
    page = open_viewer(ingest(slide_file)).centred()
    yield page
    assert page.problems == []


def test_a_polygon_is_saved_as_soon_as_it_is_drawn_and_is_there_after_a_reload(viewer: Any) -> None:
    viewer.polygon(SQUARE)
    viewer.wait_saved()
    (roi,) = viewer.stored()
    assert roi.left == pytest.approx(700, abs=2)
    assert roi.bottom == pytest.approx(900, abs=2)
    viewer.centred()
    assert viewer.count() == 1
    # 400 x 400 px at 0.5 um/px
    assert viewer.text(f"[data-roi='{roi.pk}'] .roi-row-facts").startswith("0.04 mm²")


def test_undo_removes_a_drawn_roi_and_redo_restores_it(viewer: Any) -> None:
    viewer.polygon(SQUARE)
    viewer.wait_saved()
    viewer.key("Control+z")
    viewer.wait_count(0)
    viewer.wait_saved()
    assert viewer.stored() == []
    viewer.key("Control+Shift+z")
    viewer.wait_count(1)
    viewer.wait_saved()
    (roi,) = viewer.stored()
    assert roi.version == 3  # drawn, deleted, restored


def test_delete_can_be_undone_from_its_message(viewer: Any) -> None:
    viewer.polygon(SQUARE)
    viewer.wait_saved()
    viewer.key("Delete")
    viewer.wait_count(0)
    viewer.page.click(".stage-notice-action")
    viewer.wait_count(1)
    viewer.wait_saved()
    assert len(viewer.stored()) == 1


def test_an_outline_beyond_the_canvas_is_clipped_on_the_page_too(
    viewer: Any,
) -> None:
    viewer.open("x=0&y=0&z=2")
    viewer.polygon([(-200, -200), (300, -200), (300, 300), (-200, 300)])
    viewer.wait_saved()
    (roi,) = viewer.stored()
    assert (roi.left, roi.top) == (0, 0)
    assert "clipped" in viewer.text("[data-stage-notice]")


def test_a_number_key_sets_the_label(viewer: Any) -> None:
    viewer.polygon(SQUARE)
    viewer.key("1")
    viewer.wait_saved()
    (roi,) = viewer.stored()
    assert roi.label is not None
    assert viewer.text(f"[data-roi='{roi.pk}'] .roi-row-title") == roi.label.name


def test_an_roi_is_renamed_and_an_older_version_restored(viewer: Any) -> None:
    viewer.polygon(SQUARE)
    viewer.wait_saved()
    viewer.page.fill("#roi-name", "Margin")
    viewer.page.press("#roi-name", "Enter")
    viewer.wait_saved()
    assert viewer.stored()[0].name == "Margin"
    viewer.tab("History").locator("button").first.click()
    viewer.wait_saved()
    (roi,) = viewer.stored()
    assert (roi.name, roi.version) == ("", 3)


def test_without_a_network_no_outline_is_lost(viewer: Any) -> None:
    viewer.page.context.set_offline(True)
    viewer.polygon(SQUARE)
    viewer.wait_save_state("retry")
    assert "waits on this computer" in viewer.text("[data-save-text]")
    assert viewer.stored() == []
    viewer.page.context.set_offline(False)
    viewer.wait_saved()
    assert len(viewer.stored()) == 1
