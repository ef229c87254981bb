"""A region is measured in the viewer: its figures, and its nuclei on the image."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import expect

from portal.annotations.services.rois import roi_create
from portal.archive.models import Canvas
from portal.jobs.models import Job
from tests.browser.conftest import run_job
from tests.ml.quantification.synthetic import Nucleus, section

pytestmark = pytest.mark.browser

RED, BLUE = (208, 2, 27), (29, 111, 224)


@pytest.fixture
def canvas(ingest: Any, tmp_path: Path, annotator: Any) -> Any:
    """A still of 12 x 8 nuclei, every second column strongly positive, with a region of 16."""
    nuclei = [
        Nucleus(50 * x + 25, 50 * y + 25, second=0.8 * (x % 2)) for x in range(12) for y in range(8)
    ]
    Image.fromarray(section(nuclei, (600, 400))).save(tmp_path / "ki67.png")
    canvas = ingest(tmp_path / "ki67.png")
    Canvas.objects.filter(pk=canvas.pk).update(mpp_x=0.5, mpp_y=0.5, modality="histology")
    canvas.refresh_from_db()
    ring = [[200, 100], [400, 100], [400, 300], [200, 300], [200, 100]]
    geometry = {"type": "Polygon", "coordinates": [ring]}
    roi_create(canvas=canvas, user=annotator, geometry=geometry, name="Hot spot")
    return canvas


def test_a_region_is_measured_and_its_nuclei_are_shown(open_viewer: Any, canvas: Any) -> None:
    viewer = open_viewer(canvas).centred(scale=1.0)
    page = viewer.page
    (at,) = viewer.places([(300, 200)])
    page.mouse.click(*at)
    page.get_by_role("tab", name="Measure").click()
    panel = page.locator("#roi-quantification")
    expect(panel.get_by_role("status")).to_have_text("Not measured yet.")
    expect(panel.get_by_role("table")).to_be_hidden()
    panel.get_by_role("button", name="Quantify").click()
    expect(panel.get_by_role("status")).to_contain_text("Waiting for a worker")
    with viewer.database:
        job = Job.objects.get(kind="roi_quantify")
    run_job(job)
    table = panel.get_by_role("table")
    for name, value in (
        ("Nuclei", "16"),
        ("Positive nuclei", "50.0 %"),
        ("0 / 1+ / 2+ / 3+", "8 / 0 / 0 / 8"),
        ("H-score", "150"),
    ):
        row = table.get_by_role("row").filter(
            has=page.get_by_role("rowheader", name=name, exact=True)
        )
        expect(row.get_by_role("cell")).to_have_text(value)
    panel.get_by_label("Show nuclei").check()
    viewer.page.wait_for_load_state("networkidle")
    viewer.link()
    ring = [(230, 125), (280, 125)]  # 5 px right of a negative and of a positive nucleus
    assert [
        is_near(actual, expected)
        for actual, expected in zip(viewer.colours(ring), (BLUE, RED), strict=True)
    ] == [True, True]
    panel.get_by_label("Show nuclei").uncheck()
    viewer.link()
    assert not is_near(viewer.colours(ring)[0], BLUE)
    with page.expect_download() as download:
        panel.get_by_role("link", name="CSV").click()
    text = Path(download.value.path()).read_text(encoding="utf-8-sig")
    assert "Hot spot" in text and len(text.splitlines()) == 2
    assert viewer.problems == []


def test_an_error_of_a_measurement_contains_advice(open_viewer: Any, canvas: Any) -> None:
    Canvas.objects.filter(pk=canvas.pk).update(mpp_x=None, mpp_y=None)
    viewer = open_viewer(canvas).centred(scale=1.0)
    (at,) = viewer.places([(300, 200)])
    viewer.page.mouse.click(*at)
    viewer.page.get_by_role("tab", name="Measure").click()
    viewer.page.get_by_role("button", name="Quantify").click()
    status = viewer.page.locator("[data-quantification-status]")
    expect(status).to_contain_text("Set its scale first")


def is_near(actual: tuple[int, ...], expected: tuple[int, ...]) -> bool:
    return max(abs(a - b) for a, b in zip(actual[:3], expected, strict=True)) < 60
