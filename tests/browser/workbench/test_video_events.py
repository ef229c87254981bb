"""Events of a video on its timeline and in the panel."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from ml.imaging.videos.video import iter_frames
from tests.browser.conftest import FRAME_BITS, run_job, wait_for_jobs
from tests.browser.viewer_page import ViewerPage, settle

pytestmark = pytest.mark.browser


@pytest.fixture
def canvas(ingest: Any, video_file: Any) -> Any:
    return ingest(video_file)


@pytest.fixture
def video(open_viewer: Any, canvas: Any) -> Any:
    page = open_viewer(canvas)
    yield page
    assert page.problems == []


@pytest.fixture
def add_event(canvas: Any, annotator: Any) -> Callable[..., Any]:
    from portal.annotations.services.video_events import video_event_create

    def run(name: str, first: int, last: int | None = None) -> Any:
        return video_event_create(
            canvas=canvas, user=annotator, name=name, first_index=first, last_index=last
        ).event

    return run


def stored(video: ViewerPage) -> list[tuple[str, int, int]]:
    """Live events in the database: name, first and last frame."""
    from portal.annotations.models import VideoEvent

    with video.database:
        rows = VideoEvent.objects.filter(canvas=video.canvas, deleted_at=None)
        return list(rows.values_list("name", "first_index", "last_index"))


def rows(video: ViewerPage) -> Any:
    return video.page.locator("[data-event-list] .event-row")


def marks(video: ViewerPage) -> Any:
    return video.page.locator("[data-event-lane] .event-mark")


def events_tab(video: ViewerPage) -> None:
    video.page.get_by_role("tab", name="Events").click()


def go_to_frame(video: ViewerPage, index: int) -> None:
    """Step there from the first frame, by tens and by ones."""
    video.page.locator("[role=slider][aria-label=Frame]").press("Home")
    for _ in range(index // 10):
        video.key("v")
    for _ in range(index % 10):
        video.key("f")
    video.wait_text("[data-frame-index]", f"Frame {index + 1} / 40")


def test_a_key_adds_a_moment_that_is_named_and_saved(video: ViewerPage) -> None:
    page = video.page
    go_to_frame(video, 12)
    video.key("Shift+V")
    name = page.get_by_label("Name of the event")
    expect(name).to_be_focused()
    assert "Caecum" in page.locator("#event-names option").evaluate_all(
        "all => all.map(one => one.value)"
    )
    page.keyboard.type("Caecum")
    video.key("Enter")
    expect(page.locator("[data-map]")).to_be_focused()
    video.wait_saved()
    assert stored(video) == [("Caecum", 12, 12)]
    expect(marks(video)).to_have_attribute("aria-label", "Caecum. Frame 13, 00:00.480")
    video.key("f")  # the keys belong to the video again
    video.wait_text("[data-frame-index]", "Frame 14 / 40")


def test_two_keys_mark_a_span_and_a_click_leads_to_its_first_frame(video: ViewerPage) -> None:
    page = video.page
    go_to_frame(video, 20)
    video.key("Shift+K")
    expect(page.locator("[data-stage-notice]")).to_contain_text("Go to the first frame")
    video.key("Shift+J")
    video.key("v")
    video.wait_text("[data-frame-index]", "Frame 31 / 40")
    expect(page.locator(".event-open")).to_be_visible()
    video.key("Shift+K")
    page.keyboard.type("Withdrawal")
    video.key("Enter")
    video.wait_saved()
    assert stored(video) == [("Withdrawal", 20, 30)]
    expect(rows(video)).to_contain_text("0.40 s")
    go_to_frame(video, 3)
    rows(video).click()
    video.wait_text("[data-frame-index]", "Frame 21 / 40")
    go_to_frame(video, 3)
    marks(video).click()
    video.wait_text("[data-frame-index]", "Frame 21 / 40")
    go_to_frame(video, 25)
    page.get_by_role("button", name="Ends here").click()
    video.wait_saved()
    assert stored(video) == [("Withdrawal", 20, 25)]


def test_events_are_renamed_deleted_and_restored(video: ViewerPage, add_event: Any) -> None:
    page = video.page
    with video.database:
        add_event("Polyp", 5)
    video.open()
    events_tab(video)
    rows(video).click()
    page.get_by_label("Name of the event").fill("Polyp in view")
    video.key("Enter")
    page.get_by_label("Note").fill("4 mm, flat")
    page.get_by_label("Note").blur()
    video.wait_saved()
    expect(rows(video)).to_contain_text("4 mm, flat")
    assert stored(video) == [("Polyp in view", 5, 5)]
    page.get_by_role("button", name="Delete the event").click()
    expect(rows(video)).to_have_count(0)
    video.wait_saved()
    assert stored(video) == []
    page.locator("[data-stage-notice] button").click()
    expect(rows(video)).to_have_count(1)
    video.wait_saved()
    assert stored(video) == [("Polyp in view", 5, 5)]
    video.key("Control+z")
    video.key("Control+z")
    video.wait_saved()
    assert stored(video) == [("Polyp", 5, 5)]


def test_many_events_share_the_timeline_and_are_filtered_by_name(
    video: ViewerPage, add_event: Any
) -> None:
    page = video.page
    with video.database:
        for name, first, last in (
            ("Terminal ileum", 1, 3),
            ("Caecum", 4, None),
            ("Withdrawal", 5, 39),
            ("Polyp in view", 9, 16),
            ("Tool in view", 12, 15),
            ("Biopsy", 14, None),
            ("Washing", 22, 24),
            ("Retroflexion", 33, 38),
        ):
            add_event(name, first, last)
    video.open()
    events_tab(video)
    expect(rows(video)).to_have_count(8)
    expect(marks(video)).to_have_count(8)
    stage = page.locator(".stage").bounding_box()
    lane = page.locator("[data-event-lane]").bounding_box()
    assert lane["y"] >= stage["y"] + stage["height"]  # below the frame, not over it
    assert page.locator(".viewer-status").bounding_box()["y"] >= lane["y"] + lane["height"]
    rows(video).nth(3).click()
    video.wait_text("[data-frame-index]", "Frame 10 / 40")
    page.get_by_label("Show events whose name contains").fill("in view")
    expect(rows(video)).to_have_count(2)
    expect(marks(video)).to_have_count(2)
    video.wait_text("[data-event-count]", "2 of 8")
    page.get_by_label("Show events whose name contains").fill("nothing")
    expect(page.locator("[data-event-no-match]")).to_be_visible()


def test_arrow_keys_go_through_the_events_of_the_lane(video: ViewerPage, add_event: Any) -> None:
    with video.database:
        add_event("Caecum", 5)
        add_event("Biopsy", 20)
    video.open()
    first = marks(video).first
    expect(first).to_be_visible()
    first.focus()
    video.key("ArrowRight")
    expect(marks(video).nth(1)).to_be_focused()
    video.key("Enter")
    video.wait_text("[data-frame-index]", "Frame 21 / 40")


def test_a_viewer_sees_events_and_cannot_change_them(
    open_viewer: Any, canvas: Any, viewer: Any, add_event: Any
) -> None:
    looking = open_viewer(canvas, user=viewer)
    events_tab(looking)
    expect(looking.page.locator("[data-event-empty]")).to_contain_text("Your role in this lab")
    with looking.database:
        add_event("Caecum", 5)
    looking.open()
    events_tab(looking)
    rows(looking).click()
    name = looking.page.get_by_label("Name of the event")
    expect(name).to_have_value("Caecum")
    expect(name).not_to_be_editable()
    for button in ("Add here", "Begin span", "Begins here", "Delete the event"):
        expect(looking.page.get_by_role("button", name=button, exact=True)).to_have_count(0)
    looking.key("Shift+V")
    expect(rows(looking)).to_have_count(1)
    assert looking.problems == []


def test_a_conflicting_change_of_another_user_is_shown_and_resolved(
    video: ViewerPage, add_event: Any, annotator: Any
) -> None:
    from portal.annotations.services.video_events import video_event_update

    page = video.page
    with video.database:
        event = add_event("Polyp", 5)
    page.route(re.compile("/live/"), lambda route: route.fulfill(status=304))  # it comes too late
    video.open()
    events_tab(video)
    rows(video).click()
    with video.database:
        video_event_update(
            event=event, user=annotator, expected_version=1, changes={"name": "Fold"}
        )
    page.get_by_label("Name of the event").fill("Adenoma")
    video.key("Enter")
    dialog = page.locator("[data-dialog=conflict]")
    expect(dialog).to_be_visible()
    expect(dialog).to_contain_text("Someone else changed this event")
    expect(dialog.locator("tbody tr")).to_have_text(re.compile("Name.*Polyp.*Adenoma.*Fold"))
    dialog.get_by_role("button", name="All mine").click()
    dialog.get_by_role("button", name="Save").click()
    video.wait_saved()
    assert stored(video) == [("Adenoma", 5, 5)]


def test_deleted_events_are_listed_and_restored(video: ViewerPage, add_event: Any) -> None:
    page = video.page
    with video.database:
        add_event("Polyp", 5)
        add_event("Withdrawal", 20, 30)
    video.open()
    events_tab(video)
    page.locator("[data-event-deleted] summary").click()
    deleted = page.locator("[data-event-deleted] li")
    expect(deleted).to_have_text("None.")
    for name in ("Polyp", "Withdrawal"):
        rows(video).filter(has_text=name).click()
        page.get_by_role("button", name="Delete the event").click()
        video.wait_saved()
        expect(deleted.first).to_contain_text(name)
    expect(deleted).to_have_count(2)
    page.get_by_role("button", name="Restore Polyp").click()
    expect(rows(video)).to_have_text(re.compile("Polyp"))
    video.wait_saved()
    expect(deleted).to_have_text(re.compile("Withdrawal"))
    assert stored(video) == [("Polyp", 5, 5)]
    video.key("Control+z")
    expect(rows(video)).to_have_count(0)
    video.wait_saved()
    assert stored(video) == []


def test_a_late_answer_does_not_bring_back_an_older_list_of_deleted_events(
    video: ViewerPage, add_event: Any
) -> None:
    page = video.page
    with video.database:
        add_event("Polyp", 5)
    video.open()
    events_tab(video)
    page.locator("[data-event-deleted] summary").click()
    deleted = page.locator("[data-event-deleted] li")
    expect(deleted).to_have_text("None.")
    rows(video).click()
    page.get_by_role("button", name="Delete the event").click()
    expect(deleted).to_contain_text("Polyp")
    late: list[tuple[Any, Any]] = []

    def hold_first(route: Any) -> None:
        if late:
            route.continue_()
        else:
            late.append((route, route.fetch()))

    page.route("**/video-events/?*deleted=true*", hold_first)
    page.locator("[data-event-deleted] summary").click()
    page.locator("[data-event-deleted] summary").click()  # loads it
    page.get_by_role("button", name="Restore Polyp").click()
    expect(deleted).to_have_text("None.")
    route, answer = late[0]
    with page.expect_response("**/video-events/?*deleted=true*"):
        route.fulfill(response=answer)
    settle(page)
    expect(deleted).to_have_text("None.")


def test_changes_of_others_appear_in_the_open_viewer(
    reviewer: Any, video: ViewerPage, open_viewer: Any, add_event: Any
) -> None:
    with video.database:
        add_event("Polyp", 5)
    other = open_viewer(video.canvas, user=reviewer)
    for viewer in (video, other):
        viewer.open()
        events_tab(viewer)
        expect(rows(viewer)).to_have_text(re.compile("Polyp"))
    rows(other).click()
    other.page.get_by_label("Name of the event").fill("Fold")
    other.key("Enter")
    expect(rows(video)).to_have_text(re.compile("Fold"))
    go_to_frame(other, 12)
    other.key("Shift+V")
    other.wait_saved()
    expect(rows(video)).to_have_count(2)
    expect(marks(video)).to_have_count(2)
    other.page.get_by_role("button", name="Delete the event").click()
    other.wait_saved()
    expect(rows(video)).to_have_count(1)
    assert other.problems == []


def test_a_click_is_kept_while_the_list_is_loaded_again(video: ViewerPage, add_event: Any) -> None:
    with video.database:
        add_event("Polyp", 5)
    video.open()
    events_tab(video)
    page = video.page
    rows(video).hover()
    page.mouse.down()
    with page.expect_response(lambda response: "/video-events/" in response.url):
        page.locator("[data-event-reload]").evaluate("button => button.click()")
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    page.mouse.up()
    expect(page.get_by_label("Name of the event")).to_have_value("Polyp")


def test_an_event_is_saved_when_the_server_returns(video: ViewerPage) -> None:
    page = video.page
    events_tab(video)
    expect(page.locator("[data-event-empty]")).to_be_visible()
    page.context.set_offline(True)
    video.key("Shift+V")
    video.key("Enter")
    video.wait_save_state("retry")
    expect(rows(video)).to_contain_text("waits")
    page.locator("[data-save-details]").click()
    expect(page.locator("[data-dialog=pending]")).to_contain_text("New event")
    video.key("Escape")
    page.context.set_offline(False)  # the page notices and sends it
    video.wait_save_state("saved")
    assert stored(video) == [("Event", 0, 0)]


def test_the_frames_of_an_event_are_downloaded_as_a_clip(
    video: ViewerPage, add_event: Any, tmp_path: Any
) -> None:
    page = video.page
    with video.database:
        add_event("Withdrawal", 20, 30)
    video.open()
    events_tab(video)
    rows(video).click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download clip").first.click()
        (job,) = wait_for_jobs("video_clip")
        expect(page.locator("[data-event-clip-status]")).to_have_text("Waiting for a worker…")
        run_job(job)
    assert download.value.suggested_filename == "numbered frames 21-31.mp4"
    path = tmp_path / "clip.mp4"
    download.value.save_as(path)
    shown = [number_of(rgb) for _, _, rgb in iter_frames(path)]
    assert shown == list(range(20, 31))


def number_of(rgb: Any) -> int:
    """The number that the stripes of a frame write."""
    width = rgb.shape[1] / FRAME_BITS
    row = rgb[rgb.shape[0] // 2, :, 1]
    return sum(int(row[int((bit + 0.5) * width)] > 127) << bit for bit in range(FRAME_BITS))
