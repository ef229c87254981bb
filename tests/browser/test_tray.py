"""The tray: the images of the case, opened one after the other in one page."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import expect

from tests.browser.conftest import run_job
from tests.browser.viewer_page import settle
from tests.live_servers import DATABASE

pytestmark = pytest.mark.browser

SQUARE = [(60, 50), (150, 50), (150, 140), (60, 140)]
MARK = "window.sameDocument = true"
LOADED_COUNT = """() => Array.from(document.querySelectorAll(".tray-picture img"))
  .filter((image) => image.complete).length"""
IS_SAME = "window.sameDocument === true"


@pytest.fixture
def add_images(annotator: Any) -> Callable[..., list[Any]]:
    """``add_images(canvas, 3, *paths)``: stills, then files, in the case of the canvas."""
    from portal.archive.services.items import item_receive

    def run(canvas: Any, count: int, *paths: Path) -> list[Any]:
        files = [(io.BytesIO(_still(number)), f"still {number}.png") for number in range(count)]
        files += [(io.BytesIO(path.read_bytes()), path.name) for path in paths]
        addresses = []
        for file, name in files:
            with DATABASE:  # pages that are open send requests
                received = item_receive(case=canvas.case, file=file, filename=name, user=annotator)
                run_job(received.job)
                received.item.refresh_from_db()
                addresses.append(received.item.canvas)
        return addresses

    return run


def _still(seed: int) -> bytes:
    rng = np.random.default_rng(seed)
    pixels = rng.integers(120, 250, (3, 4, 3)).astype(np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).resize((400, 300), Image.Resampling.NEAREST).save(buffer, "PNG")
    return buffer.getvalue()


def _wait_open(viewer: Any, canvas: Any) -> None:
    """Until the image is open, with everything in place."""
    expect(viewer.page.locator("[data-viewer] h1")).to_have_text(canvas.name)
    viewer.page.wait_for_selector("[data-viewer][data-ready]", timeout=30_000)
    viewer.canvas = canvas


def test_the_next_image_opens_without_a_page_load(
    open_viewer: Any, ingest: Any, slide_file: Path, video_file: Path, add_images: Any
) -> None:
    first = ingest(slide_file)
    second, video = add_images(first, 1, video_file)
    viewer = open_viewer(first)
    page = viewer.page
    page.evaluate(MARK)
    expect(page.locator("[data-tray-image]")).to_have_count(3)
    expect(page.locator("[data-tray-toggle]")).to_contain_text("1 / 3")
    viewer.key("PageUp")
    expect(page.locator("[data-stage-notice]")).to_contain_text("first image")
    viewer.key("PageDown")
    _wait_open(viewer, second)
    assert page.title().startswith(second.name)
    expect(page).to_have_url(re.compile(str(second.pk)))
    current = page.locator("[data-tray-image][aria-current]")
    expect(current).to_have_attribute("data-tray-image", str(second.pk))
    page.locator(f'[data-tray-image="{video.pk}"]').click()
    _wait_open(viewer, video)
    viewer.key("f")
    viewer.wait_text("[data-frame-index]", "Frame 2 / 40")
    viewer.key("PageUp")
    _wait_open(viewer, second)
    viewer.key("f")  # no key of the video any more
    assert page.locator("[data-timeline]").is_hidden()
    page.go_back()
    _wait_open(viewer, video)
    viewer.wait_text("[data-frame-index]", "Frame 2 / 40")
    page.go_back()
    page.go_back()
    _wait_open(viewer, first)
    assert page.evaluate(IS_SAME)
    assert viewer.problems == []


def test_images_are_in_the_order_of_their_names(
    open_viewer: Any,
    open_page: Any,
    ingest: Any,
    slide_file: Path,
    video_file: Path,
    annotator: Any,
) -> None:
    first = ingest(slide_file)
    with DATABASE:
        _add(first.case, "section 10.png", _still(1), annotator)
        _add(first.case, "numbered.mp4", video_file.read_bytes(), annotator)
        _add(first.case, "section 2.png", _still(2), annotator)
        _add(first.case, "Section 1.png", _still(3), annotator)
    names = ["blots.tif", "Section 1.png", "section 2.png", "section 10.png", "numbered.mp4"]
    expect(open_viewer(first).page.locator("[data-tray-image] .tray-name")).to_have_text(names)
    page = open_page(f"/cases/{first.case_id}/")
    expect(page.locator(".card__title")).to_have_text(names)


def _add(case: Any, name: str, content: bytes, user: Any) -> None:
    from portal.archive.services.items import item_receive

    run_job(item_receive(case=case, file=io.BytesIO(content), filename=name, user=user).job)


def test_edits_undo_and_selection_belong_to_their_image(
    open_viewer: Any, ingest: Any, slide_file: Path, add_images: Any
) -> None:
    first, third = add_images(ingest(slide_file), 2)
    viewer = open_viewer(first, "x=200&y=150&z=0.5")
    page = viewer.page
    page.evaluate(MARK)
    viewer.polygon(SQUARE)
    viewer.key("PageDown")  # not saved yet
    _wait_open(viewer, third)
    assert [roi.canvas_id for roi in _stored(viewer, first)] == [first.pk]
    assert viewer.count() == 0
    assert page.locator("[data-action=undo]").is_disabled()
    viewer.key("Control+z")
    viewer.key("Delete")
    settle(page)
    assert len(_stored(viewer, first)) == 1
    count = page.locator(f'[data-tray-image="{first.pk}"] [data-tray-count=region]')
    expect(count).to_contain_text("1 region")
    viewer.key("PageUp")
    _wait_open(viewer, first)
    viewer.wait_count(1)
    assert page.evaluate(IS_SAME)
    assert viewer.problems == []


def test_unsent_outlines_wait_for_the_next_visit_of_their_image(
    open_viewer: Any, ingest: Any, slide_file: Path, add_images: Any
) -> None:
    first, second = add_images(ingest(slide_file), 2)
    viewer = open_viewer(first, "x=200&y=150&z=0.5")
    page = viewer.page
    page.route("**/api/v1/rois/", lambda route: route.abort())
    viewer.polygon(SQUARE)
    viewer.wait_save_state("retry")
    viewer.key("PageDown")
    _wait_open(viewer, second)
    viewer.wait_save_state("saved")
    page.unroute("**/api/v1/rois/")
    settle(page)
    assert _stored(viewer, first) == []
    viewer.key("PageUp")
    _wait_open(viewer, first)
    viewer.wait_saved()
    viewer.wait_count(1)
    assert len(_stored(viewer, first)) == 1
    assert viewer.problems == []


def test_other_users_see_who_has_the_image_open(
    open_viewer: Any, ingest: Any, slide_file: Path, add_images: Any, reviewer: Any
) -> None:
    first = ingest(slide_file)
    (second,) = add_images(first, 1)
    first_viewer = open_viewer(first)
    second_viewer = open_viewer(second, user=reviewer)
    avatars = second_viewer.page.locator("[data-collaborators] .avatar")
    expect(avatars).to_have_count(0)
    first_viewer.key("PageDown")
    _wait_open(first_viewer, second)
    expect(avatars).to_have_count(1)
    first_viewer.key("PageUp")
    _wait_open(first_viewer, first)
    expect(avatars).to_have_count(0)


def test_the_tray_remembers_whether_it_is_open(
    open_viewer: Any, ingest: Any, slide_file: Path, add_images: Any
) -> None:
    first = ingest(slide_file)
    viewer = open_viewer(first)
    page = viewer.page
    tray = page.locator("[data-tray]")
    assert tray.is_hidden()  # one image
    add_images(first, 12)
    viewer.open()
    expect(tray).to_be_visible()
    viewer.key("Shift+S")
    expect(tray).to_be_hidden()
    viewer.open()
    assert tray.is_hidden()
    page.locator("[data-tray-toggle]").click()
    for width, height in ((1024, 768), (820, 1180), (390, 800)):
        page.set_viewport_size({"width": width, "height": height})
        settle(page)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert viewer.problems == []


@pytest.mark.parametrize("is_open", [True, False])
def test_the_image_fills_most_of_a_tablet_in_portrait(
    open_viewer: Any, ingest: Any, slide_file: Path, add_images: Any, is_open: bool
) -> None:
    first = ingest(slide_file)
    add_images(first, 2)
    viewer = open_viewer(first)
    if not is_open:
        viewer.key("Shift+S")
    viewer.page.set_viewport_size({"width": 820, "height": 1180})
    settle(viewer.page)
    stage, panel, tray = (
        viewer.page.locator(part).bounding_box()
        for part in (".stage", ".viewer-panel", "[data-tray]")
    )
    assert stage["width"] > 1.3 * panel["width"]
    assert (tray is not None) == is_open
    if tray is not None:
        assert tray["x"] + tray["width"] <= stage["x"]


def _stored(viewer: Any, canvas: Any) -> list[Any]:
    from portal.annotations.models import Roi

    with viewer.database:
        return list(Roi.objects.live().filter(canvas=canvas))


def test_a_large_case_loads_only_visible_thumbnails(
    open_viewer: Any, ingest: Any, slide_file: Path, add_images: Any
) -> None:
    from portal.archive.models import Canvas

    first = ingest(slide_file)
    (copy,) = add_images(first, 1)
    for number in range(198):
        copy.pk, copy.name, copy._state.adding = None, f"copy {number}", True
        copy.save(force_insert=True)
    assert Canvas.objects.filter(case=first.case_id).count() == 200
    viewer = open_viewer(first)
    page = viewer.page
    expect(page.locator("[data-tray-image]")).to_have_count(200)
    settle(page)
    assert 4 <= page.evaluate(LOADED_COUNT) < 60
    assert viewer.problems == []
