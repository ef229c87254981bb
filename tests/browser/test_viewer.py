"""Looking: deep links, video by frame, what a viewer's role leaves, keys."""

from __future__ import annotations

import io
import re
from typing import Any

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import expect

from tests.browser.conftest import FRAME_BITS, FRAME_SIZE
from tests.browser.viewer_page import settle

pytestmark = pytest.mark.browser

FRAMES_OF_TWO_LOOPS = """() => new Promise((done) => {
  const counter = document.querySelector("[data-frame-index]");
  const frames = [];
  let loops = 0;
  new MutationObserver((_, observer) => {
    const frame = parseInt(counter.textContent.split(" ")[1], 10);
    if (frames.length && frame < frames.at(-1)) loops += 1;
    frames.push(frame);
    if (loops < 2) return;
    observer.disconnect();
    done(frames);
  }).observe(counter, { childList: true, characterData: true, subtree: true });
})"""


@pytest.fixture
def slide(ingest: Any, slide_file: Any) -> Any:
    """A slide's canvas."""
    return ingest(slide_file)


@pytest.fixture
def video(ingest: Any, video_file: Any) -> Any:
    """The canvas of a video of numbered frames."""
    return ingest(video_file)


def _roi(canvas: Any, user: Any, left: float = 400, **more: Any) -> Any:
    from portal.annotations.services.rois import roi_create

    ring = [[left, 300], [left + 100, 300], [left + 100, 400], [left, 400], [left, 300]]
    geometry = {"type": "Polygon", "coordinates": [ring]}
    return roi_create(canvas=canvas, user=user, geometry=geometry, **more).roi


def _label(lab: Any) -> Any:
    """The first label of the lab's set."""
    from portal.annotations.models import Label
    from portal.annotations.services.labels import label_set_ensure

    label_set_ensure(lab=lab)
    return Label.objects.filter(lab=lab).first()


def _number(viewer: Any) -> int:
    """The frame number that the stripes on the screen spell."""
    width, height = FRAME_SIZE
    stripe = -(-width // FRAME_BITS)
    middles = [((bit + 0.5) * stripe, height / 3) for bit in range(FRAME_BITS)]
    bits = [colour[0] > 127 for colour in viewer.colours(middles)]
    return sum(bit << place for place, bit in enumerate(bits))


def test_the_tiles_of_a_slide_are_on_screen(open_viewer: Any, slide: Any) -> None:
    viewer = open_viewer(slide)
    viewer.centred(1.0)
    viewer.page.wait_for_load_state("networkidle")
    # a blot: sin(x / 90) and sin(y / 70) are both near 1 there
    assert viewer.colours([(989, 769)])[0][1] < 130
    assert viewer.page.locator("[data-tile-errors]").is_hidden()
    assert viewer.text("[data-readout=zoom]") == "20.0×, 0.50 µm/px"
    assert viewer.text("[data-readout=scale]").endswith("µm")


def test_a_deep_link_restores_view_and_roi(open_viewer: Any, slide: Any, annotator: Any) -> None:
    roi = _roi(slide, annotator)
    query = f"x=450.25&y=350.5&z=0.75&rot=30.00&roi={roi.pk}"
    viewer = open_viewer(slide, query)
    link = viewer.link()
    assert (float(link["x"]), float(link["y"]), float(link["z"])) == (450.25, 350.5, 0.75)
    assert (link["rot"], link["roi"]) == ("30.00", str(roi.pk))
    assert viewer.page.locator(f"[data-roi='{roi.pk}'][aria-selected=true]").count() == 1
    viewer.key("0")
    expect(viewer.page).not_to_have_url(re.compile(r"[?&]rot="))


def test_a_link_to_an_roi_zooms_to_it(open_viewer: Any, slide: Any, annotator: Any) -> None:
    viewer = open_viewer(slide, f"roi={_roi(slide, annotator).pk}")
    link = viewer.link()
    assert float(link["x"]) == pytest.approx(450, abs=1)
    assert float(link["y"]) == pytest.approx(350, abs=1)


def test_the_list_filters_by_label(open_viewer: Any, slide: Any, annotator: Any, lab: Any) -> None:
    label = _label(lab)
    _roi(slide, annotator, label=label)
    _roi(slide, annotator, left=600)
    viewer = open_viewer(slide)
    viewer.page.select_option("[data-roi-filter]", str(label.pk))
    viewer.wait_text("[data-roi-count]", "1 of 2")
    expect(viewer.page.locator(".roi-row")).to_have_count(1)


def test_regions_that_are_selected_together_have_a_yellow_edge(
    open_viewer: Any, slide: Any, annotator: Any
) -> None:
    for left in (400, 800, 1200):
        _roi(slide, annotator, left=left)
    viewer = open_viewer(slide)
    corners = [(left, top) for left in (400, 800, 1200) for top in (300, 400)]
    assert _yellow_near(viewer, corners) == [False] * 6
    viewer.key("Control+a")
    assert _yellow_near(viewer, corners) == [True] * 6
    viewer.key("Escape")
    viewer.page.locator(".roi-row").first.click()
    viewer.page.locator(".roi-row").nth(1).click(modifiers=["Control"])
    viewer.page.locator("[data-map]").focus()
    viewer.key("Home")
    assert _yellow_near(viewer, corners).count(True) == 4


def _yellow_near(viewer: Any, points: list[tuple[float, float]]) -> list[bool]:
    """True if the yellow of the selection is within six pixels of each point of the canvas."""
    places = viewer.places(points)
    picture = np.asarray(Image.open(io.BytesIO(viewer.page.screenshot())).convert("RGB"))
    yellow = (picture[..., 0] > 220) & (picture[..., 1] > 180) & (picture[..., 2] < 90)
    windows = [yellow[round(y) - 6 : round(y) + 7, round(x) - 6 : round(x) + 7] for x, y in places]
    return [bool(window.any()) for window in windows]


@pytest.mark.parametrize("width", [1366, 1920])
def test_the_timeline_of_a_video_is_as_wide_as_its_image(
    open_viewer: Any, video: Any, width: int
) -> None:
    viewer = open_viewer(video)
    viewer.page.set_viewport_size({"width": width, "height": 1080})
    settle(viewer.page)
    image, track = (
        viewer.page.locator(name).first.bounding_box() for name in ("[data-map]", ".timeline-track")
    )
    assert track["width"] > 0.95 * image["width"]


def test_stepping_through_a_video_shows_the_right_frames(open_viewer: Any, video: Any) -> None:
    viewer = open_viewer(video)
    for key, expected in [("f", 1), ("f", 2), ("v", 12), ("d", 11), ("c", 1), ("v", 11), ("v", 21)]:
        viewer.key(key)
        viewer.wait_text("[data-frame-index]", f"Frame {expected + 1} / 40")
        viewer.wait_exact()
        assert _number(viewer) == expected


def test_a_frame_has_its_time_and_its_time_stamp_behind_details(
    open_viewer: Any, video: Any
) -> None:
    viewer = open_viewer(video)
    viewer.key("f")
    viewer.wait_text("[data-frame-index]", "Frame 2 / 40")
    time, stamp = (
        viewer.page.locator(f"[data-timeline] [data-frame-{name}]") for name in ("time", "pts")
    )
    expect(time).to_have_text(re.compile(r"^00:00\.\d{3}$"))
    assert time.get_attribute("title") is None
    expect(stamp).to_be_hidden()
    viewer.page.locator(".timeline-details summary").click()
    expect(stamp).to_be_visible()
    expect(stamp).to_have_text(re.compile(r"^[1-9]\d*$"))


def test_pausing_shows_exactly_the_frame_of_the_counter(open_viewer: Any, video: Any) -> None:
    viewer = open_viewer(video)
    viewer.key("Space")
    viewer.page.wait_for_selector("[data-play][aria-pressed=true]")
    expect(viewer.page.locator("[data-frame-index]")).not_to_have_text("Frame 1 / 40")
    viewer.key("Space")
    viewer.page.wait_for_selector("[data-play][aria-pressed=false]")
    viewer.wait_exact()
    named = int(viewer.text("[data-frame-index]").split()[1]) - 1
    assert _number(viewer) == named


def test_a_span_is_looped_at_the_selected_speed(open_viewer: Any, video: Any) -> None:
    viewer = open_viewer(video)
    page = viewer.page
    expect(page.locator("[data-film]")).to_have_js_property("naturalWidth", 40 * 120)
    for key, frame in [("v", 11), ("Shift+I", 11), ("v", 21), ("Shift+O", 21)]:
        viewer.key(key)
        viewer.wait_text("[data-frame-index]", f"Frame {frame} / 40")
    viewer.key("i")
    page.wait_for_selector("[data-play][aria-pressed=true]")
    viewer.key("l")  # faster, while it plays
    viewer.key("l")
    assert page.input_value("[data-speed]") == "2"
    frames = page.evaluate(FRAMES_OF_TWO_LOOPS)
    assert set(frames) <= set(range(11, 22))  # of 1 to 40
    viewer.key("k")  # pauses, and is the knife again afterwards
    page.wait_for_selector("[data-play][aria-pressed=false]")
    assert page.locator("[data-span-loop][aria-pressed=true]").count() == 1
    viewer.key("j")
    assert page.input_value("[data-speed]") == "2"


def test_an_roi_on_a_frame_has_its_pts_and_is_shown_on_that_frame_only(
    open_viewer: Any, video: Any
) -> None:
    viewer = open_viewer(video)
    viewer.key("v")
    viewer.wait_exact()
    viewer.key("r")
    viewer.drag([(40, 40), (120, 90), (160, 120)])
    viewer.wait_saved()
    (roi,) = viewer.stored()
    assert roi.frame_index == 10
    pts = roi.frame_pts
    assert viewer.link()["t"] == str(pts)
    viewer.key("f")
    viewer.wait_exact()
    assert "roi" not in viewer.link()
    viewer.page.click(".roi-row")
    viewer.wait_exact()
    assert viewer.link()["t"] == str(pts)


def test_the_viewer_role_cannot_draw(
    open_viewer: Any, slide: Any, viewer: Any, annotator: Any
) -> None:
    _roi(slide, annotator)
    page = open_viewer(slide, user=viewer)
    assert page.count() == 1
    assert page.page.locator("[data-tool=polygon]").count() == 0
    page.key("p")
    assert page.page.locator("[data-tool=move][aria-pressed=true]").count() == 1
    page.page.click(".roi-row")
    assert page.page.locator("#roi-name").is_disabled()
    page.key("Delete")
    assert page.count() == 1


def test_the_question_mark_opens_the_key_sheet(open_viewer: Any, slide: Any) -> None:
    viewer = open_viewer(slide)
    viewer.key("?")
    assert "Freehand" in viewer.text("[data-dialog=keys]")
    viewer.key("Escape")
    assert viewer.page.locator("[data-dialog=keys][open]").count() == 0


def test_tools_and_toggles_show_their_state(open_viewer: Any, slide: Any) -> None:
    viewer = open_viewer(slide)
    viewer.page.click("[data-tool=polygon]")
    assert viewer.page.get_attribute("[data-tool=polygon]", "aria-pressed") == "true"
    assert viewer.page.get_attribute("[data-tool=move]", "aria-pressed") == "false"
    viewer.key("a")
    assert viewer.page.get_attribute("[data-toggle=visible]", "aria-pressed") == "false"


def test_one_channel_is_shown_in_grey_until_reset(open_viewer: Any, slide: Any) -> None:
    viewer = open_viewer(slide).centred()
    middle = [(slide.width_px / 2, slide.height_px / 2)]
    plain = viewer.colours(middle)[0]
    viewer.key("Shift+C")
    viewer.page.select_option("[data-adjustments-channel]", "green")
    assert viewer.colours(middle)[0] == pytest.approx((plain[1],) * 3, abs=2)
    viewer.page.focus("[data-adjustments-slider=brightness]")
    viewer.key("End")
    assert viewer.colours(middle)[0] == pytest.approx((plain[1] + 127.5,) * 3, abs=3)
    viewer.page.click("[data-adjustments-reset]")
    assert viewer.colours(middle)[0] == plain
    viewer.key("Escape")
    expect(viewer.page.locator("[data-map]")).to_be_focused()
    assert viewer.problems == []


def test_the_label_filter_applies_to_the_map(
    open_viewer: Any, slide: Any, annotator: Any, lab: Any
) -> None:
    label = _label(lab)
    _roi(slide, annotator, 400, label=label)
    _roi(slide, annotator, 600)
    viewer = open_viewer(slide)
    viewer.open("x=600&y=350&z=0.5")
    edges = [(450, 300), (650, 300)]
    before = viewer.colours(edges)
    viewer.page.locator("[data-roi-filter]").select_option(str(label.pk))
    after = viewer.colours(edges)
    assert after[0] == before[0] and after[1] != before[1]
    viewer.page.locator("[data-roi-filter]").select_option("")
    assert viewer.colours(edges) == before


def test_a_video_is_fitted_to_the_window_when_opened(open_viewer: Any, video: Any) -> None:
    viewer = open_viewer(video)
    viewer.open()
    opened = viewer.text("[data-readout=zoom]")
    viewer.key("Home")  # fits the image into what the timeline leaves
    settle(viewer.page)
    assert viewer.text("[data-readout=zoom]") == opened


def test_arrow_keys_pan_the_image_from_the_start(open_viewer: Any, slide: Any) -> None:
    viewer = open_viewer(slide).centred(scale=1.0)
    before = viewer.link()
    viewer.key("ArrowRight")
    assert float(viewer.link()["x"]) > float(before["x"])


def test_the_image_follows_the_pointer_over_the_overview(open_viewer: Any, slide: Any) -> None:
    viewer = open_viewer(slide).centred(scale=0.5)
    box = viewer.page.locator("[data-overview]").bounding_box()
    left, top = box["x"], box["y"] + box["height"] / 2
    viewer.page.mouse.move(left + 0.5 * box["width"], top)
    viewer.page.mouse.down()
    viewer.page.mouse.move(left + 0.8 * box["width"], top, steps=4)
    held = float(viewer.link()["x"])
    viewer.page.mouse.up()
    assert held == pytest.approx(0.8 * slide.width_px, rel=0.05)
    assert float(viewer.link()["x"]) == pytest.approx(held, rel=0.01)


def test_key_frames_of_an_roi_are_set_moved_hidden_and_undone(open_viewer: Any, video: Any) -> None:
    viewer = open_viewer(video)
    viewer.key("r")
    viewer.key("Enter")  # a rectangle in the middle
    viewer.wait_saved()
    viewer.key("v")
    viewer.wait_text("[data-frame-index]", "Frame 11 / 40")
    viewer.wait_text("[data-track-state]", "on another frame")
    viewer.key("y")
    viewer.wait_text("[data-track-state]", "2 key frames, 1 to 11 · key frame")
    viewer.key("Control+Shift+ArrowRight")  # by ten pixels, on this frame
    for frame in (10, 9, 8, 7, 6):
        viewer.key("d")
        viewer.wait_text("[data-frame-index]", f"Frame {frame} / 40")
    viewer.wait_text("[data-track-state]", "2 key frames, 1 to 11 · between two")
    viewer.key("Shift+Y")
    viewer.wait_text("[data-track-state]", "5 key frames, 1 to 11 · not on this frame")
    viewer.wait_saved()
    (roi,) = viewer.stored()
    lefts = {key["index"]: _left(key["geometry"]) for key in roi.track}
    first_left = _left(roi.geometry)
    assert sorted(lefts) == [4, 5, 6, 10]
    assert lefts[5] is None
    assert [lefts[at] - first_left for at in (4, 6, 10)] == pytest.approx([4, 6, 10], abs=0.02)
    viewer.key(">")
    viewer.wait_text("[data-frame-index]", "Frame 7 / 40")
    for _ in range(3):
        viewer.key("Control+z")
    viewer.wait_text("[data-track-state]", "on another frame")
    viewer.wait_saved()
    (roi,) = viewer.stored()
    assert (roi.track, _left(roi.geometry)) == ([], first_left)
    assert roi.revisions.count() == roi.version


def _left(geometry: Any) -> Any:
    return geometry and min(x for x, _ in geometry["coordinates"][0])
