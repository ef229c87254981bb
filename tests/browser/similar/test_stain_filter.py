"""Stains are set in the viewer and on the page of a case, and filter the search."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from portal.annotations.models import Label, Roi
from portal.annotations.services.labels import label_set_ensure
from portal.annotations.services.rois import roi_create
from portal.archive.models import Case, Slide
from tests.browser.conftest import run_queued
from tests.browser.similar.test_explanation import BOXES, SIDE, box, copy_of
from tests.live_servers import DATABASE

pytestmark = pytest.mark.browser

SAID = (("Breast", "Carcinoma"), ("Colon", "Adenoma"), ("Colon", "Tubular adenoma, low grade"))


@pytest.fixture
def slides(ingest: Callable[[Path], Any], slide_file: Path, annotator: Any) -> list[Any]:
    """Three patients' slides with regions; one of the second was drawn years ago."""
    files = [slide_file, *(copy_of(slide_file, bytes(n)) for n in (1, 2))]
    canvases = []
    for number, (file, (organ, diagnosis)) in enumerate(zip(files, SAID, strict=True)):
        canvas = ingest(file)
        Case.objects.filter(pk=canvas.case_id).update(
            organ=organ, diagnosis=diagnosis, accession=f"S-{number}", tags=["teaching"]
        )
        Slide.objects.filter(canvas=canvas).update(vendor=("aperio", "leica")[number % 2])
        canvases.append(canvas)
    lab = canvases[0].lab
    labels = list(Label.objects.filter(label_set=label_set_ensure(lab=lab)).order_by("name")[:2])
    for canvas in canvases:
        for number, (left, top) in enumerate(BOXES):
            geometry = box(left, top, left + SIDE, top + SIDE)
            label = labels[number % 2]
            roi_create(canvas=canvas, user=annotator, geometry=geometry, label=label)
    run_queued()
    old = Roi.objects.filter(canvas=canvases[1]).earliest("created_at")
    Roi.objects.filter(pk=old.pk).update(created_at="2023-04-05T12:00:00Z")
    return canvases


def say_in_viewer(viewer: Any, before: str, stain: str) -> None:
    page = viewer.page
    page.get_by_role("button", name=before).click()
    dialog = page.get_by_role("dialog", name="Stain")
    dialog.get_by_label("How the section is stained").fill(stain)
    page.keyboard.press("Enter")
    expect(dialog).to_be_hidden()


def test_results_fill_a_large_window_and_begin_in_that_of_a_tablet(
    open_viewer: Any, slides: list[Any]
) -> None:
    viewer = open_viewer(slides[1])
    page = viewer.page
    page.set_viewport_size({"width": 1920, "height": 1080})
    with DATABASE:
        roi = Roi.objects.filter(canvas=slides[1]).first()
    page.goto(f"{viewer.base}/rois/{roi.pk}/similar/")
    panel, last = (
        page.locator(".tallies").bounding_box(),
        page.locator(".tally").last.bounding_box(),
    )
    assert last["x"] + last["width"] > panel["x"] + 0.95 * panel["width"]
    bar = page.locator(".vote__bar").first.bounding_box()
    assert bar["width"] > 0.3 * last["width"]  # not a long way from its name
    page.set_viewport_size({"width": 768, "height": 1024})
    page.reload()
    expect(page.locator("#similar a[href*='?roi=']").first).to_be_in_viewport()
    diagnosis = page.get_by_role("heading", name="Diagnosis", exact=True)
    expect(page.locator(".facet").first).to_be_hidden()
    expect(diagnosis).to_have_count(0)
    page.get_by_text("Filters", exact=True).click()
    expect(diagnosis).to_be_visible()


def test_a_stain_is_set_and_filters_searches(open_viewer: Any, slides: list[Any]) -> None:
    viewer = open_viewer(slides[1])
    page = viewer.page
    say_in_viewer(viewer, "Stain unknown: set it…", "he")
    expect(page.get_by_role("button", name="H&E…")).to_be_visible()
    say_in_viewer(viewer, "H&E…", "pas")  # from what the page shows now
    expect(page.get_by_role("button", name="PAS…")).to_be_visible()
    page.set_viewport_size({"width": 1024, "height": 768})
    page.mouse.move(400, 400)  # the bar shows the coordinates, too
    bar = page.locator(".viewer-status").bounding_box()
    assert bar["height"] < 2 * page.locator("[data-stain-open]").bounding_box()["height"]
    page.get_by_role("button", name="PAS…").click()
    page.keyboard.press("Escape")
    with DATABASE:
        Slide.objects.filter(canvas=slides[1]).update(stain="Giemsa")
    page.get_by_role("button", name="PAS…").click()
    dialog = page.get_by_role("dialog", name="Stain")
    dialog.get_by_label("How the section is stained").fill("H&E")
    page.keyboard.press("Enter")
    expect(dialog.get_by_role("alert")).to_contain_text("Its stain is now “Giemsa”")
    viewer.problems.clear()  # the browser's line on the answer 412
    with DATABASE:
        Slide.objects.filter(canvas=slides[1]).update(stain="PAS")

    page.goto(f"{viewer.base}/cases/{slides[2].case_id}/")
    card = page.locator("[data-item-state=ready]")
    card.locator("summary", has_text="Stain").click()
    field = card.get_by_label("Stain", exact=True)
    assert page.locator("#stains option").first.get_attribute("value") == "PAS", "of the lab first"
    field.fill("hematoxylin & eosin")
    field.press("Enter")
    expect(page.get_by_text("Stain: H&E.")).to_be_visible()
    expect(card.locator(".card__meta")).to_contain_text("H&E")

    with DATABASE:
        roi = Roi.objects.filter(canvas=slides[0]).earliest("created_at")
    page.goto(f"{viewer.base}/rois/{roi.pk}/similar/")
    hits = page.locator("[data-hits] > li")
    expect(hits).to_have_count(2)
    stains = page.get_by_role("region", name="Stain")
    expect(stains.get_by_role("link")).to_have_text(["H&E 3", "PAS 3"])
    expect(page.get_by_role("region", name="Cases")).to_contain_text("This case")
    stains.get_by_role("link", name="PAS").click()
    expect(page.get_by_label("Drop Stain: PAS")).to_be_visible()
    expect(hits).to_have_count(1)
    expect(hits).to_contain_text("S-1")
    expect(hits).to_contain_text("PAS")
    assert "stain=PAS" in page.url
    page.get_by_role("region", name="Drawn").get_by_role("link", name="2023").click()
    expect(page.get_by_label("Drop Drawn: 2023")).to_be_visible()
    assert "since=2023-01-01&until=2023-12-31" in page.url
    expect(hits).to_have_count(1)
    expect(hits.locator(".also")).to_have_count(0)
    page.get_by_label("Number of results").select_option("10")  # the form keeps what is chosen
    page.wait_for_url("**k=10**")
    assert page.url.count("stain=PAS") == page.url.count("since=2023-01-01") == 1
    page.get_by_label("Drop Stain: PAS").click()
    expect(page.get_by_label("Drop Stain: PAS")).to_have_count(0)
    page.get_by_label("Drop Drawn: 2023").click()
    expect(page.get_by_label("Drop Drawn: 2023")).to_have_count(0)
    page.get_by_role("region", name="Cases").get_by_role("link", name="This case").click()
    expect(page.get_by_label("Drop Cases: This case")).to_be_visible()
    expect(hits).to_have_count(1)
    expect(hits).to_contain_text("S-0")
    assert viewer.problems == []
