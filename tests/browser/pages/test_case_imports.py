"""A whole case, dropped on a page in a real browser: sent, imported, refused, tried again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from portal.annotations.services.rois import roi_create
from portal.archive.models import Case, Upload
from portal.archive.services.cases import case_create, case_delete
from portal.archive.services.items import item_receive
from portal.archive.services.trash import trash_purge
from portal.interop.rocrate.services.exports import case_export_to
from portal.labs.models import Membership, Role
from tests.browser.conftest import run_job, wait_for_jobs
from tests.live_servers import DATABASE

pytestmark = pytest.mark.browser
RING = [[20, 20], [300, 20], [300, 300], [20, 300], [20, 20]]
WIDE = {"width": 1366, "height": 900}


@pytest.fixture(autouse=True)
def _manager(annotator: Any, lab: Any, transactional_db: None) -> None:
    with DATABASE:
        Membership.objects.filter(user=annotator, lab=lab).update(role=Role.MANAGER)


@pytest.fixture
def crate(lab: Any, annotator: Any, slide_file: Path, storage: Path, tmp_path: Path) -> Path:
    """Crate of a deleted case with a slide and a region."""
    with DATABASE:
        Membership.objects.filter(user=annotator, lab=lab).update(role=Role.MANAGER)
        case = case_create(lab=lab, user=annotator, accession="S-1", organ="colon")
        with slide_file.open("rb") as file:
            received = item_receive(case=case, file=file, filename="a.tif", user=annotator)
    run_job(received.job)
    with DATABASE:
        received.item.refresh_from_db()
        polygon = {"type": "Polygon", "coordinates": [RING]}
        roi_create(canvas=received.item.canvas, user=annotator, geometry=polygon)
        path = tmp_path / "S-1.zip"
        case_export_to(user=annotator, case=case, out=path, as_folder=False)
        trash_purge(entry=case_delete(case=case, user=annotator), user=annotator)
    return path


def test_a_dropped_case_is_imported_and_reported(
    open_page: Callable[[str], Any], crate: Path
) -> None:
    page = open_page("/cases/")
    page.get_by_role("link", name="Import", exact=True).click()
    page.wait_for_url("**/cases/import/")
    page.locator("input[type=file]").set_input_files([crate])
    page.get_by_role("button", name="Import", exact=True).click()
    page.locator(".case-import").get_by_role("button", name="Cancel").wait_for()
    run_job(wait_for_jobs("case_import")[0])
    page.get_by_role("link", name="S-1", exact=True).wait_for()
    facts = page.locator("#case-imports .facts").inner_text().split()
    assert facts[facts.index("Slides") + 1] == facts[facts.index("Regions") + 1].rstrip(",") == "1"
    page.get_by_role("link", name="S-1", exact=True).click()
    page.get_by_role("heading", name="S-1").wait_for()
    assert page.complaints == []


def test_a_refused_import_shows_its_reason_and_can_be_retried_without_upload(
    open_page: Callable[[str], Any], crate: Path, lab: Any, annotator: Any, tmp_path: Path
) -> None:
    with DATABASE:
        mine = case_create(lab=lab, user=annotator, accession="S-1")
    page = open_page("/cases/import/")
    words = tmp_path / "words.zip"
    words.write_text("only words")
    page.locator("input[type=file]").set_input_files([crate, words])
    page.get_by_role("button", name="Import", exact=True).click()
    page.locator("#case-imports .case-import").nth(1).wait_for()
    for _ in range(2):
        job = wait_for_jobs("case_import")[0]
        with DATABASE:
            from portal.jobs.worker.runner import job_run

            job_run(job.pk)
    page.get_by_text("The lab already has another case S-1.").wait_for()
    page.get_by_text("words.zip is neither a zip nor a folder").wait_for()
    panel = page.locator(".case-import", has_text="words.zip")
    panel.get_by_role("button", name="Delete the zip").click()
    panel.wait_for(state="detached")
    with DATABASE:
        Case.objects.filter(pk=mine.pk).delete()
        assert Upload.objects.count() == 1
    page.get_by_role("button", name="Try again").click()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_text("Cancelled").first.wait_for()
    page.get_by_role("button", name="Try again").click()
    page.get_by_role("button", name="Cancel").wait_for()
    run_job(wait_for_jobs("case_import")[0])
    page.get_by_role("link", name="S-1", exact=True).wait_for()
    assert page.complaints == []


def test_an_interrupted_case_upload_continues_at_the_next_visit(
    open_page: Callable[[str], Any], crate: Path
) -> None:
    page = open_page("/cases/import/")
    page.on("dialog", lambda dialog: dialog.accept())  # it asks before one leaves
    page.route("**/api/v1/uploads/*/", lambda route: route.abort())
    page.locator("input[type=file]").set_input_files([crate])
    page.get_by_role("button", name="Import", exact=True).click()
    page.get_by_text("trying again").wait_for()
    page.unroute("**/api/v1/uploads/*/")
    page.reload()
    page.locator(f'[data-interrupted="{crate.name}"]').wait_for()
    page.locator("input[type=file]").set_input_files([crate])
    page.get_by_role("button", name="Import", exact=True).click()
    run_job(wait_for_jobs("case_import")[0])
    page.get_by_role("link", name="S-1", exact=True).wait_for()
    with DATABASE:
        assert Upload.objects.filter(asset=None).count() == 1  # the same transfer
    assert page.complaints == []
