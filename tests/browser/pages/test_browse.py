"""All regions of a lab at once: the map by pointer and by keyboard, and the lists next to it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

from portal.annotations.models import Label, LabelSet, Roi
from portal.annotations.services.rois import roi_create
from portal.archive.models import Case, Modality
from portal.embeddings.models import Encoder
from portal.embeddings.services.embeddings import embedding_save
from portal.explore.models import LabelConfirmation
from portal.explore.services.maps import MAP_KIND, map_draw_submit
from portal.jobs.models import Job
from tests.browser.conftest import run_job
from tests.browser.test_accessibility import Seen
from tests.live_servers import DATABASE

pytestmark = pytest.mark.browser

NAMES = ("Tumour", "Stroma", "Gland")
COLORS = ("#b02f5a", "#2a7fb8", "#3f9e4d")
DIM = 8
MOVES = 30  # of the hand, each a frame or more
PAGE_MS = 25  # of the page's thread, a move


@pytest.fixture
def archive(ingest: Callable[[Path], Any], slide_file: Path, annotator: Any) -> list[Any]:
    """Regions of three labels on four patients' slides, one of them labelled as another kind."""
    rng = np.random.default_rng(4)
    encoder = Encoder.objects.create(
        name="eight", version="1", config_hash="1" * 64, dim=DIM, is_default=True
    )
    lab = annotator.memberships.get().lab
    names = LabelSet.objects.create(lab=lab, name="Findings")
    labels = [
        Label.objects.create(lab=lab, label_set=names, name=name, color=color)
        for name, color in zip(NAMES, COLORS, strict=True)
    ]
    canvases = [ingest(_copy(slide_file, number)) for number in range(4)]
    for number, canvas in enumerate(canvases):
        Case.objects.filter(pk=canvas.case_id).update(patient_key=f"p{number}", organ="colon")
    regions = []
    for at in range(60):
        canvas, kind = canvases[at % 4], at % 3
        left, top = 100 + 30 * at, 100 + 400 * kind
        ring = [[left, top], [left + 90, top], [left + 90, top + 90], [left, top + 90], [left, top]]
        roi = roi_create(
            canvas=canvas,
            user=annotator,
            geometry={"type": "Polygon", "coordinates": [ring]},
            label=labels[(kind + (at == 7)) % 3],
        ).roi
        vector = rng.normal(size=DIM) * 0.2
        vector[kind] += 3
        vector = vector if at != 9 else regions[1][1]  # a copy, on another slide
        embedding_save(
            roi_id=roi.pk,
            geometry=roi.geometry,
            encoder=encoder,
            vector=vector.astype(np.float32),
            patch_count=1,
            seconds=0.1,
        )
        regions.append((roi, vector))
    run_job(map_draw_submit(lab=lab, kind=Modality.HISTOLOGY, user=annotator))
    return [roi for roi, _ in regions]


def _copy(path: Path, number: int) -> Path:
    """The same picture as a file of another patient."""
    made = path.with_name(f"slide{number}.tif")
    if not made.exists():
        made.write_bytes(path.read_bytes() + bytes([number]))
    return made


def test_the_map_selects_regions_by_legend_and_outline_and_relabels_them(
    open_page: Any, archive: Any
) -> None:
    page = open_page("/browse/")
    legend, count = page.locator("[data-map-legend]"), page.locator("[data-map-count]")
    expect(legend.locator("li")).to_have_count(3)
    expect(legend).to_contain_text("Tumour")
    legend.get_by_role("button", name="Stroma").press("Enter")  # by the keyboard alone
    expect(count).to_have_text("19 regions")
    first = page.locator("[data-map-list] a").first
    first.focus()
    expect(page.locator("[data-map-list] li")).to_have_count(19)
    page.get_by_role("button", name="Clear").click()
    expect(count).to_have_text("Nothing selected")
    page.get_by_role("button", name="Select", exact=True).click()
    box = page.locator(".region-map__plane canvas").bounding_box()
    edge = [(0.01, 0.12), (0.99, 0.12), (0.99, 0.99), (0.01, 0.99)]
    corners = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in edge]
    page.mouse.move(*corners[0])
    page.mouse.down()
    for corner in corners[1:]:
        page.mouse.move(*corner, steps=4)
    page.mouse.up()
    expect(count).to_contain_text("regions")
    assert int(count.inner_text().split()[0]) > 40
    page.locator("[data-map-colour]").select_option("organ")
    expect(legend).to_contain_text("colon")
    first.click()
    page.wait_for_url("**/canvases/**roi=**")
    assert page.complaints == []

    page = open_page("/browse/")  # a relabelled selection is shown on the map
    page.locator("[data-map-legend]").get_by_role("button", name="Gland").click()
    page.locator("[data-map-relabel] select").select_option(label="Tumour")
    with page.expect_navigation():
        page.get_by_role("button", name="Relabel").click()
    expect(page.locator("[data-map-legend] li")).to_have_count(2)
    with DATABASE:
        assert not Roi.objects.filter(label__name="Gland").exists()
    assert page.complaints == []


def test_a_recomputed_map_is_shown_without_a_click(
    open_page: Any, archive: Any, annotator: Any
) -> None:
    page = open_page("/browse/")
    before = page.locator("[data-region-map]").get_attribute("data-region-map")
    page.get_by_role("button", name="Draw again").click()
    page.locator(".browse__job").wait_for()
    with DATABASE:
        job = Job.objects.get(state="queued", kind=MAP_KIND)
    run_job(job)
    expect(page.locator("[data-region-map]")).not_to_have_attribute(
        "data-region-map", before, timeout=15_000
    )
    expect(page.locator("[data-map-legend] li")).to_have_count(3)
    assert page.complaints == []


def test_near_duplicates_are_listed_and_suspicious_labels_confirmed_or_changed(
    open_page: Any, archive: Any
) -> None:
    page = open_page("/browse/near-duplicates/")
    expect(page.locator(".pairs__pair")).to_have_count(1)
    expect(page.locator(".pairs__pair")).to_contain_text("Labels differ")
    page.get_by_role("link", name="Not annotated yet").click()
    expect(page.get_by_role("heading", name="Every image has a region")).to_be_visible()
    page = open_page("/browse/unlike/")
    doubts = page.locator(".doubts__one")
    expect(doubts).to_have_count(2)  # one labelled as another kind, and the copy of another kind
    page.get_by_role("button", name="The label is right").first.click()
    expect(doubts).to_have_count(1)
    with DATABASE:
        LabelConfirmation.objects.all().delete()
    page.reload()
    page.get_by_role("button", name="Label it Stroma").first.click()
    expect(page.get_by_text("The region now has the label Stroma.")).to_be_visible()
    with DATABASE:
        assert Roi.objects.get(pk=archive[7].pk).label.name == "Stroma"


def test_all_tabs_pass_the_accessibility_rules(
    open_page: Any, open_server: Any, archive: Any
) -> None:
    """axe-core checks them, light and dark; the map also with regions selected."""
    page = open_page("/browse/")
    page.locator("[data-map-legend] button").first.wait_for()
    seen = Seen(page, open_server.url)
    seen.look("the map")
    seen.proves_that_it_sees()
    page.reload()
    page.locator("[data-map-legend] button").first.press("Enter")
    page.locator("[data-map-list] a").first.focus()
    seen.look("the map with regions selected")
    for tab in ("near-duplicates/", "unlike/", "unannotated/"):
        seen.go(f"/browse/{tab}")
    assert not seen.complaints, "\n".join(seen.complaints)


def _many(count: int) -> dict[str, Any]:
    """A map of so many points in thirty heaps, as the server sends it."""
    rng = np.random.default_rng(8)
    heap = rng.integers(0, 30, count)
    at = rng.uniform(8_000, 57_000, (30, 2))[heap] + rng.normal(0, 2_500, (count, 2))
    x, y = at.clip(0, 65_535).astype(int).T.tolist()
    names = [
        {"value": str(n), "name": f"Kind {n}", "color": COLORS[n % 3], "count": int(held)}
        for n, held in enumerate(np.bincount(heap))
    ]
    return {
        "rois": [f"roi-{n}" for n in range(count)],
        "versions": [1] * count,
        "x": x,
        "y": y,
        "canvas": [0] * count,
        "canvases": [{"id": "canvas", "name": "Section", "accession": "A-1"}],
        "colourings": [{"name": "label", "values": names, "at": heap.tolist()}],
    }


def _next_frame(page: Any) -> None:
    """Wait until the page has drawn what the last event changed."""
    page.evaluate(
        "() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))"
    )


def _used_s(page: Any, hand: Callable[[], None]) -> float:
    """Processor time of the page's thread, in seconds, while the hand moves."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def used() -> float:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return float(next(row["value"] for row in metrics if row["name"] == "TaskDuration"))

    before = used()
    hand()
    _next_frame(page)
    after = used()
    session.detach()
    return after - before


@pytest.mark.endurance
def test_a_hundred_thousand_points_pan_and_zoom_smoothly(open_page: Any, archive: Any) -> None:
    """Thirty frames a second leave 33 ms each: what the page computes in one stays well below."""
    page = open_page("/browse/")
    points = _many(100_000)
    page.route("**/points/", lambda route: route.fulfill(json=points))
    page.reload()
    expect(page.locator("[data-map-legend] li")).to_have_count(30)
    box = page.locator(".region-map__plane canvas").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def moves(dx: float, dy: float) -> None:
        for n in range(MOVES):
            page.mouse.move(x + dx * n, y + dy * n)
            _next_frame(page)

    def drag() -> None:
        page.mouse.down()
        moves(3, 1)
        page.mouse.up()

    def wheel() -> None:
        for n in range(MOVES):
            page.mouse.wheel(0, -120 if n < MOVES // 2 else 120)
            _next_frame(page)

    used: dict[str, float] = {}
    page.mouse.move(x, y)
    for what, hand in (("wheel", wheel), ("drag", drag), ("hover", lambda: moves(3, 2))):
        used[what] = 1000 * _used_s(page, hand) / MOVES
        page.mouse.move(x, y)
    page.keyboard.down("Shift")
    used["outline"] = 1000 * _used_s(page, drag) / MOVES
    page.keyboard.up("Shift")
    page.locator("[data-map-legend] button").first.click()
    expect(page.locator("[data-map-count]")).to_contain_text("regions")
    page.mouse.move(x, y)
    used["drag, some chosen"] = 1000 * _used_s(page, drag) / MOVES
    assert max(used.values()) < PAGE_MS, used
    assert page.complaints == []
