"""Labels in the viewer: visibility, colours, opacity, a new one; order and filters of the list."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.viewer_page import settle

pytestmark = pytest.mark.browser

PURE_GREEN = (0, 255, 0)
LEFT, RIGHT = 400, 800
COVERED = "(host) => host.scrollHeight - host.clientHeight"


@pytest.fixture
def labels(lab: Any) -> list[Any]:
    """The labels of the lab."""
    from portal.annotations.models import Label
    from portal.annotations.services.labels import label_set_ensure

    label_set_ensure(lab=lab)
    return list(Label.objects.filter(lab=lab).order_by("position"))


def _square(canvas: Any, user: Any, left: float, side: float = 100, **fields: Any) -> Any:
    from portal.annotations.services.rois import roi_create

    top, right, bottom = 300, left + side, 300 + side
    ring = [[left, top], [right, top], [right, bottom], [left, bottom], [left, top]]
    return roi_create(
        canvas=canvas, user=user, geometry={"type": "Polygon", "coordinates": [ring]}, **fields
    ).roi


def _names(viewer: Any) -> list[str]:
    settle(viewer.page)
    rows = viewer.page.locator(".roi-row")
    placed = [
        (int(rows.nth(at).get_attribute("aria-posinset")), rows.nth(at).inner_text().split("\n")[0])
        for at in range(rows.count())
    ]
    return [name for _, name in sorted(placed)]


def test_labels_are_listed_with_a_selected_region_on_a_small_screen(
    open_viewer: Any, ingest: Any, slide_file: Path, manager: Any, labels: list[Any]
) -> None:
    canvas = ingest(slide_file)
    roi = _square(canvas, manager, LEFT, label=labels[0])
    page = open_viewer(canvas, f"roi={roi.pk}", user=manager).page
    page.set_viewport_size({"width": 1366, "height": 768})
    page.locator("[data-label-panel] > summary").click()
    body = page.locator("[data-label-panel] .panel-more__body").bounding_box()
    rows = [row.bounding_box() for row in page.locator(".label-row").all()]
    visible = [row for row in rows if row["y"] + row["height"] <= body["y"] + body["height"]]
    assert len(visible) >= 2  # and its embedding still takes a line


def test_labels_are_hidden_and_coloured_on_this_screen(
    open_viewer: Any, ingest: Any, slide_file: Path, annotator: Any, labels: list[Any]
) -> None:
    first, second = labels[:2]
    canvas = ingest(slide_file)
    _square(canvas, annotator, LEFT, label=first)
    _square(canvas, annotator, RIGHT, label=second)
    _square(canvas, annotator, 1200)
    view = "x=800&y=500&z=1.5"
    viewer = open_viewer(canvas, view)
    page = viewer.page
    page.locator("[data-label-panel] > summary").click()
    page.locator(f'[data-label-color="{first.pk}"]').fill("#00ff00")
    settle(page)
    edges = [(LEFT, 350), (RIGHT, 350)]
    assert viewer.colours(edges)[0] == PURE_GREEN
    page.locator(f'[data-label-shown="{second.pk}"]').uncheck()
    page.locator('[data-label-shown="none"]').uncheck()
    viewer.wait_text("[data-roi-count]", "1 of 3")
    viewer.wait_text("[data-label-hidden]", "(2 hidden)")
    settle(page)
    background = viewer.colours([(RIGHT + 20, 450)])[0]
    assert viewer.colours(edges)[1] == background
    page.locator("[data-label-opacity]").fill("40")
    settle(page)
    faint = viewer.colours(edges)[0]
    assert faint != PURE_GREEN
    assert faint != background
    viewer.open(view)  # colours, opacity and, in this tab, what is hidden stay
    viewer.wait_text("[data-roi-count]", "1 of 3")
    assert viewer.colours(edges)[0] == faint
    page.locator("[data-label-panel] > summary").click()
    page.locator("[data-label-reset]").click()
    viewer.wait_count(3)
    assert viewer.problems == []


def test_the_list_is_sorted_and_filtered_by_author_state_and_area(
    open_viewer: Any,
    ingest: Any,
    slide_file: Path,
    annotator: Any,
    reviewer: Any,
    labels: list[Any],
) -> None:
    canvas = ingest(slide_file)
    _square(canvas, annotator, LEFT, 100, name="Middle", label=labels[0])
    _square(canvas, reviewer, RIGHT, 200, name="Large")
    _square(canvas, annotator, 1200, 20, name="Small", label=labels[1])
    viewer = open_viewer(canvas)
    page = viewer.page
    assert _names(viewer) == ["Middle", "Large", "Small"]
    page.get_by_text("Sort and filter").click()
    page.select_option("[data-roi-order]", "largest")
    assert _names(viewer) == ["Large", "Middle", "Small"]
    page.select_option("[data-roi-order]", "name")
    assert _names(viewer) == ["Large", "Middle", "Small"]
    page.fill("[data-roi-max-area]", "3000")  # 100 px are 50 um
    assert _names(viewer) == ["Middle", "Small"]
    page.fill("[data-roi-min-area]", "1000")
    assert _names(viewer) == ["Middle"]
    page.click("[data-roi-filter-reset]")
    names = page.locator("[data-roi-author] option").all_inner_texts()
    assert len(names) == 3
    page.select_option("[data-roi-author]", index=1)
    assert len(_names(viewer)) in (1, 2)
    page.select_option("[data-roi-review-state]", "accepted")
    viewer.wait_text("[data-roi-count]", "0 of 3")
    expect(page.locator("[data-roi-no-match]")).to_be_visible()
    viewer.wait_text("[data-roi-restrictions]", "(2)")
    assert viewer.problems == []


def test_a_manager_adds_a_label_without_leaving(
    open_viewer: Any,
    ingest: Any,
    slide_file: Path,
    annotator: Any,
    manager: Any,
    labels: list[Any],
) -> None:
    canvas = ingest(slide_file)
    roi = _square(canvas, annotator, LEFT)
    annotator_viewer = open_viewer(canvas)
    annotator_viewer.page.locator("[data-label-panel] > summary").click()
    assert annotator_viewer.page.locator("[data-label-name]").count() == 0
    viewer = open_viewer(canvas, f"roi={roi.pk}", user=manager)
    page = viewer.page
    page.locator("[data-label-panel] > summary").click()
    page.fill("[data-label-name]", labels[0].name)
    page.locator(".label-add button").click()
    expect(page.locator("[data-label-problem]")).to_contain_text("already")
    page.fill("[data-label-name]", "Tertiary lymphoid structure")
    page.locator(".label-add button").click()
    row = page.locator(".label-row", has_text="Tertiary lymphoid structure")
    expect(row.locator("[data-label-count]")).to_have_text("1")
    viewer.wait_saved()
    assert page.locator("[data-selection]").evaluate(COVERED) <= 1
    listed = page.locator("[data-roi-list]").bounding_box()
    assert listed["height"] >= 36  # the list of regions is in sight, the foot below it, too
    foot = page.locator(".panel-foot").bounding_box()
    assert foot["y"] + foot["height"] <= 768
    (stored,) = viewer.stored()
    with viewer.database:
        assert stored.label.name == "Tertiary lymphoid structure"
    chosen = page.locator("[data-next-label] option:checked")
    expect(chosen).to_have_text("Tertiary lymphoid structure")
    assert viewer.problems == []
