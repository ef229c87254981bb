"""Full lists and states of the viewer under axe-core, light and dark: WCAG 2.1, A and AA.

Every address, in the state of the examples: ``test_accessibility_of_all``.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.conf import settings as django_settings

from portal.annotations.services.labels import label_set_ensure
from portal.annotations.services.rois import roi_create, roi_delete
from portal.archive.services.cases import case_create
from portal.archive.services.sharing import share_offer
from portal.embeddings.models import Encoder
from portal.embeddings.services.embeddings import embedding_save
from portal.erasure.services.requests import erasure_request
from portal.explore.selectors.similar_regions import SampleKey
from portal.explore.services.similar_regions import SamplePart, sample_add, side_of
from portal.labs.models import TokenScope
from portal.labs.services.tokens import token_create
from portal.mosaics.services.mosaics import mosaic_create
from portal.reader_studies.services.assignments import (
    ReadingPlan,
    assignment_submit,
    work_assign,
)
from portal.reader_studies.services.studies import readings_assign, study_create
from portal.review.services.verdicts import rois_review
from tests import world
from tests.browser.conftest import run_job
from tests.live_servers import DATABASE

pytestmark = pytest.mark.browser

AXE = Path(django_settings.ROOT) / "node_modules" / "axe-core" / "axe.min.js"
LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]
RUN = """async ([runOnly, exclude]) => {
  const found = await axe.run(
    { exclude }, { runOnly, resultTypes: ["violations"], elementRef: false });
  return found.violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary, html }) => [id, target.join(" "), html, failureSummary]));
}"""
STILL = """() => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync("* { transition: none !important; animation: none !important }");
  document.adoptedStyleSheets.push(sheet);
}"""  # colours half way from light to dark are no colours
BREAK = """() => document.querySelector("main").insertAdjacentHTML(
  "beforeend", '<p id="broken">Pale</p><img src="/static/img/icons.svg">'
) || document.getElementById("broken").style.setProperty("color", "#808080")
  || document.getElementById("broken").style.setProperty("background", "#8a8a8a")"""
FOREIGN = [[".swagger-ui"]]  # what another project draws


class Seen:
    """Goes from page to page, and collects what axe says of each."""

    def __init__(self, page: Any, base: str) -> None:
        self.page, self.base = page, base
        self.axe = AXE.read_text()
        self.complaints: list[str] = []

    def go(self, path: str, ready: str = "main", *, status: int = 200) -> None:
        """Open a page, and check it once it shows ``ready``."""
        assert self.page.goto(self.base + path).status == status, path
        self.page.wait_for_selector(ready, timeout=120_000, state="attached")
        self.look(path)

    def proves_that_it_sees(self) -> None:
        """A rule broken on purpose in each scheme is found."""
        self.page.evaluate(BREAK)
        self.look("broken")
        broken, self.complaints = self.complaints, []
        for scheme in ("light", "dark"):
            assert any(f"({scheme}): color-contrast" in text for text in broken), broken
        assert any("image-alt" in text for text in broken), broken

    def look(self, name: str) -> None:
        """All rules in light; in dark, what depends on colours."""
        self.page.evaluate(self.axe)
        self.page.evaluate(STILL)
        for scheme, rules in (
            ("light", {"type": "tag", "values": LEVELS}),
            ("dark", {"type": "rule", "values": ["color-contrast"]}),
        ):
            self.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            for violation in self.page.evaluate(RUN, [rules, FOREIGN]):
                self.complaints.append(f"{name} ({scheme}): " + "\n    ".join(violation))


@pytest.fixture
def made(
    manager: Any,
    annotator: Any,
    reviewer: Any,
    other_lab: Any,
    ingest: Callable[[Path], Any],
    slide_file: Path,
    sweep_file: Path,
    tmp_path: Path,
) -> Any:
    """One of everything, with a mosaic that is built."""
    with DATABASE:
        things = world.build(manager.memberships.get().lab, manager, tmp_path)
    submitted = mosaic_create(video=ingest(sweep_file).video, user=manager)
    run_job(submitted.job)
    submitted.mosaic.refresh_from_db()
    things.mosaic = submitted.mosaic
    second = ingest(slide_file)
    fill(things, second, manager, other_lab)
    things.study, things.read = read(second, manager, [annotator, reviewer]), second
    return things


def fill(things: Any, second: Any, user: Any, other_lab: Any) -> None:
    """A hit, a verdict to give, something in the trash, offered, to be erased: no list is empty."""
    boxes = [(20, 20, 80), (120, 20, 80), (20, 120, 80)]
    similar, submitted, gone = (
        roi_create(canvas=second, user=user, geometry=square(*box)).roi for box in boxes
    )
    encoder = Encoder.objects.create(
        name="four", version="1", config_hash="1" * 64, dim=4, is_default=True
    )
    for at, roi in enumerate((things.roi, similar)):
        embedding_save(
            roi_id=roi.pk,
            geometry=roi.geometry,
            encoder=encoder,
            vector=np.full(4, at, np.float32),
            patch_count=1,
            seconds=0.1,
        )
    look_through(things.roi, encoder, user)
    rois_review(user=user, rois=[(submitted.pk, 1)], state="submitted", comment="Which grade?")
    roi_delete(roi=gone, user=user, expected_version=1)
    month = timedelta(days=30)
    share_offer(case=things.case, with_lab=other_lab.slug, until=date.today() + month, user=user)
    token_create(user, name="LIS export", scope=TokenScope.READ, expires_in=month)
    erased = case_create(lab=things.case.lab, user=user, accession="E-1")
    erasure_request(lab=erased.lab, cases=[erased], user=user, typed="E-1", reason="asked for")


def look_through(roi: Any, encoder: Any, user: Any) -> None:
    """Index one square of the ROI's slide in addition to the ROI, so that there is a next place."""
    side = side_of(roi)
    boxes = np.array([[roi.right, roi.top, roi.right + side, roi.top + side]], np.float64)
    part = SamplePart(boxes, np.ones((1, 4), np.float32), tried=1, total=1, seconds=1, is_last=True)
    sample_add(SampleKey(roi.canvas, encoder, side, user.pk), part)


def read(canvas: Any, user: Any, readers: list[Any]) -> Any:
    """A study of one slide that both have read, and a slide that is still to be done."""
    plan = ReadingPlan(canvases=[canvas], people=readers, note="Glands only")
    study = study_create(lab=canvas.lab, user=user, name="Glands", note="Outline every gland")
    label = label_set_ensure(lab=canvas.lab).labels.first()
    for at, reading in enumerate(readings_assign(study=study, user=user, plan=plan)):
        boxes = [(20 + 4 * at, 20, 80), (200 + 200 * at, 200, 60)]
        for box in boxes:
            roi_create(canvas=canvas, user=reading.person, geometry=square(*box), label=label)
        assignment_submit(assignment=reading, user=reading.person)
    due = ReadingPlan(canvases=[canvas], people=[user, *readers], due_on=date.today())
    work_assign(lab=canvas.lab, user=user, plan=due)
    return study


def square(left: int, top: int, side: int) -> dict[str, Any]:
    """A square as GeoJSON."""
    right, bottom = left + side, top + side
    ring = [[left, top], [right, top], [right, bottom], [left, bottom], [left, top]]
    return {"type": "Polygon", "coordinates": [ring]}


def test_lists_and_viewer_pass_the_accessibility_rules(
    browser: Any, open_server: Any, made: Any, manager: Any
) -> None:
    context = browser.new_context(viewport={"width": 1366, "height": 768})
    seen = Seen(context.new_page(), open_server.url)
    page, ids = seen.page, made.ids()
    seen.go("/accounts/login/")
    page.get_by_label("E-mail address").fill(manager.email)
    page.get_by_label("Password").fill("correct horse battery")
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url("**/cases/")
    seen.proves_that_it_sees()
    case, slide = f"/cases/{ids['cases']}/", f"/canvases/{ids['canvases']}/"
    study = f"/studies/{made.study.pk}/"
    for path in (
        f"{case}shares/",
        "/review/",
        "/trash/",
        "/trash/events/",
        "/work/",
        "/work/lab/?done=1",
        "/studies/",
        study,
        f"{study}findings/?canvas={made.read.pk}",
        "/lab/shared/",
        "/lab/erasure/",
    ):
        seen.go(path)
    seen.go(f"/rois/{ids['rois']}/similar/", "#similar a[href*='?roi=']")
    seen.go("/no/such/page/", status=404)
    for canvas in (made.canvas, made.video.canvas, made.mosaic.canvas):
        seen.go(f"/canvases/{canvas.pk}/", "[data-viewer][data-ready]")
    seen.go(f"{slide}?roi={ids['rois']}", "[data-viewer][data-ready]")
    page.keyboard.press("Shift+N")
    page.locator("[data-similar-bar]").get_by_text("place 1").wait_for()
    seen.look("find similar here")
    page.keyboard.press("Shift+C")
    seen.look("the viewer's colours")
    page.locator("[data-action=keys]").click()
    page.locator("[data-dialog=keys][open]").wait_for()
    seen.look("the viewer's keys")
    seen.go(f"{slide}compare/?with={ids['canvases']}", "[data-compare][data-ready]")
    seen.go("/api/v1/docs/", ".opblock-tag")
    context.close()
    assert not seen.complaints, "\n".join(seen.complaints)
