"""The page of intake in a real browser: what was seen in a picture, and what becomes of it."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import pytest
from playwright.sync_api import expect

from ml.imaging.slides.stills import decode_still
from portal.archive.models import Slide
from portal.archive.services.cases import case_create
from portal.archive.services.items import item_receive
from portal.archive.storage import files as storage_files
from portal.jobs.models import Job
from portal.jobs.worker.runner import job_run
from tests import world
from tests.live_servers import DATABASE
from tests.ml.imaging.multi_file import write_mrxs
from tests.ml.imaging.phi_detection.support import named, tissue, write_frames

pytestmark = pytest.mark.browser


@pytest.fixture
def held(
    storage: Path, manager: Any, monkeypatch: pytest.MonkeyPatch, settings: Any, open_server: Any
) -> None:
    """A still with a date in its picture, which was held back."""
    settings.TESSERA_PHI_IN_PIXELS = "hold"
    world.in_process(monkeypatch)
    still = io.BytesIO(bytes(cv2.imencode(".png", named(tissue())[..., ::-1])[1]))
    with DATABASE:
        lab = manager.memberships.get().lab
        case = case_create(lab=lab, user=manager, accession="S-1")
        received = item_receive(case=case, file=still, filename="named.png", user=manager)
        assert received.job is not None
        job_run(received.job.pk)


def test_a_manager_views_and_releases_a_quarantined_picture(
    open_page: Callable[..., Any],
    held: None,
    manager: Any,
) -> None:
    page = open_page("/lab/intake/", user=manager)
    page.get_by_text("A date in the picture at the upper left").wait_for()
    page.get_by_text("Show what was found").click()
    image = page.locator(".evidence img")
    expect(image).not_to_have_js_property("naturalWidth", 0)
    assert image.bounding_box()["width"] > 150
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.set_viewport_size({"width": 820, "height": 1180})
    reason = page.get_by_role("cell", name="A date in the picture at the upper left")
    assert reason.bounding_box()["width"] > 180, "the reason is read, not spelled"
    actions = page.locator(".table--held .cluster > *").all()
    assert len(actions) == 3
    assert len({round(action.bounding_box()["y"]) for action in actions}) == 1, "one line"
    page.set_viewport_size({"width": 1366, "height": 768})
    page.get_by_placeholder("Why it may be released").fill("A phantom")
    page.get_by_role("button", name="Release").click()
    page.get_by_text("was released").wait_for()
    with DATABASE:
        assert Slide.objects.get().state == "preparing"


def test_a_manager_redacts_a_picture_by_keys_and_by_mouse(
    open_page: Callable[..., Any], held: None, manager: Any
) -> None:
    page = open_page("/lab/intake/", user=manager)
    page.get_by_role("link", name="Redact").click()
    count = page.locator("[data-redaction-count]")
    expect(count).to_have_text("1 box")  # proposed around the date
    expect(page.locator("[data-redaction-stage] img")).not_to_have_js_property("naturalWidth", 0)
    layer = page.locator("[data-redaction-layer]").bounding_box()
    page.mouse.move(layer["x"] + 0.6 * layer["width"], layer["y"] + 0.6 * layer["height"])
    page.mouse.down()
    page.mouse.move(layer["x"] + 0.9 * layer["width"], layer["y"] + 0.8 * layer["height"])
    page.mouse.up()
    expect(count).to_have_text("2 boxes")
    page.keyboard.press("Delete")
    expect(count).to_have_text("1 box")
    page.keyboard.press("Control+z")
    expect(count).to_have_text("2 boxes")
    box = page.locator("[data-redaction-box='1']")
    box.focus()
    before = box.bounding_box()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Shift+ArrowUp")
    after = page.locator("[data-redaction-box='1']").bounding_box()
    assert after["x"] < before["x"] and after["height"] < before["height"]
    page.keyboard.press("Escape")
    expect(page.locator(".redaction__box.is-selected")).to_have_count(0)
    page.get_by_label("Show the result").check()
    assert page.evaluate("document.documentElement.scrollWidth") <= 1366
    page.get_by_role("button", name="Redact and release").click()
    page.get_by_text("is being redacted and checked once more").wait_for()
    with DATABASE:
        slide = Slide.objects.get()
        job_run(Job.objects.get(target_id=slide.pk, state="queued").pk)
        slide.refresh_from_db()
        assert (slide.state, slide.asset.removed) == ("ready", ["2 places in the picture"])


def test_picture_and_frames_of_a_held_video_fit_into_the_window(
    open_page: Callable[..., Any],
    storage: Path,
    manager: Any,
    monkeypatch: pytest.MonkeyPatch,
    settings: Any,
    tmp_path: Path,
) -> None:
    settings.TESSERA_PHI_IN_PIXELS = "hold"
    world.in_process(monkeypatch)
    video = write_frames(tmp_path / "scope.mp4", [named(tissue(1280, 720))] * 12)
    with DATABASE, video.open("rb") as file:
        case = case_create(lab=manager.memberships.get().lab, user=manager, accession="S-1")
        received = item_receive(case=case, file=file, filename=video.name, user=manager)
        assert received.job is not None
        job_run(received.job.pk)
    page = open_page("/lab/intake/", user=manager)
    page.set_viewport_size({"width": 1366, "height": 768})
    page.get_by_role("link", name="Redact").click()
    expect(page.locator("[data-redaction-stage] img")).not_to_have_js_property("naturalWidth", 0)
    expect(page.get_by_label("Frame, from the beginning")).to_be_in_viewport(ratio=1)
    expect(page.get_by_role("button", name="Redact and release")).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize("size", [(1366, 768), (1920, 1080)])
def test_a_small_picture_fills_the_height_of_the_window_next_to_its_actions(
    open_page: Callable[..., Any], held: None, manager: Any, size: tuple[int, int]
) -> None:
    page = open_page("/lab/intake/", user=manager)
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.get_by_role("link", name="Redact").click()
    image = page.locator("[data-redaction-stage] img")
    expect(image).not_to_have_js_property("naturalWidth", 0)
    stage = page.locator("[data-redaction-stage]").bounding_box()
    side = page.locator(".redaction__side").bounding_box()
    assert stage["height"] > 0.55 * size[1]
    assert stage["width"] / stage["height"] == pytest.approx(640 / 400, rel=0.01)
    assert 0 < side["x"] - (stage["x"] + stage["width"]) < 48
    expect(page.get_by_role("button", name="Redact and release")).to_be_in_viewport(ratio=1)


def test_a_template_of_one_still_redacts_another(
    open_page: Callable[..., Any],
    storage: Path,
    manager: Any,
    monkeypatch: pytest.MonkeyPatch,
    settings: Any,
) -> None:
    settings.TESSERA_PHI_IN_PIXELS = "hold"
    world.in_process(monkeypatch)
    with DATABASE:
        lab = manager.memberships.get().lab
        case = case_create(lab=lab, user=manager, accession="S-1")
        for number in range(3):
            pixels = named(tissue())[..., ::-1].copy()
            pixels[-1, :8] = number
            still = io.BytesIO(bytes(cv2.imencode(".png", pixels)[1]))
            name = f"still-{number}.png"
            received = item_receive(case=case, file=still, filename=name, user=manager)
            assert received.job is not None
            job_run(received.job.pk)
    page = open_page("/lab/intake/", user=manager)
    page.locator("tr", has_text="still-0.png").get_by_role("link", name="Redact").click()
    expect(page.locator("[data-redaction-count]")).to_have_text("1 box")
    page.get_by_role("button", name="Add a box").click()
    page.get_by_label(
        "Keep these boxes as a template for stills of 640 × 400 px of an unknown device"
    ).check()
    page.get_by_role("button", name="Redact and release").click()
    page.get_by_role("button", name="Redact 2 held files").wait_for()
    page.locator("tr", has_text="still-1.png").get_by_role("link", name="Redact").click()
    page.get_by_text(
        "The boxes of the template for stills of 640 × 400 px of an unknown device are proposed"
    ).wait_for()
    expect(page.locator("[data-redaction-count]")).to_have_text("2 boxes")
    page.get_by_role("link", name="Back").click()
    page.get_by_role("button", name="Redact 2 held files").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Make 2 places black for good in 2 held files")
    dialog.get_by_role("button", name="Redact").click()
    page.get_by_text("2 files are being redacted").wait_for()
    page.get_by_text("No held files").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 1366
    with DATABASE:
        for job in Job.objects.filter(kind="slide_ingest", state="queued"):
            job_run(job.pk)
        assert list(Slide.objects.values_list("state", flat=True)) == ["ready"] * 3
        for slide in Slide.objects.all():
            path = storage_files.asset_path(slide.lab_id, slide.asset.sha256)
            assert decode_still(path)[16:56, 32:320].max() == 0


def test_an_incomplete_set_is_reported_and_can_be_removed(
    open_page: Callable[..., Any], storage: Path, manager: Any, tmp_path: Path
) -> None:
    with DATABASE:
        case = case_create(lab=manager.memberships.get().lab, user=manager, accession="S-1")
    page = open_page(f"/cases/{case.pk}/upload/", user=manager)
    for _ in range(2):  # chosen again, the message appears once
        page.locator("input[name=file]").set_input_files(str(write_mrxs(tmp_path)))
        page.get_by_role("button", name="Upload").click()
        page.get_by_text("slide.mrxs is incomplete: slide/Slidedat.ini is missing.").wait_for()
    assert page.locator("[data-refused]").count() == 1
    page.get_by_role("button", name="Remove slide.mrxs").click()
    expect(page.locator("[data-refused]")).to_have_count(0)
