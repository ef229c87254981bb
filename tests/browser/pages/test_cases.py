"""Cases and uploads in a real browser: searching, files with bars, cards that come alive."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from portal.archive.models import Slide, Upload
from portal.archive.services.cases import case_create
from portal.archive.services.items import item_receive
from portal.archive.storage.files import file_sha256
from portal.jobs.models import Job
from tests.browser.conftest import run_job, wait_for_jobs
from tests.live_servers import DATABASE
from tests.ml.imaging.multi_file import write_mrxs, write_vms

pytestmark = pytest.mark.browser


@pytest.fixture
def case(lab: Any, annotator: Any, transactional_db: None, storage: Path) -> Any:
    with DATABASE:
        for number in range(3):
            case_create(lab=lab, user=annotator, accession=f"N-{number}", organ="lung")
        return case_create(lab=lab, user=annotator, accession="S-1", organ="colon")


def test_the_form_of_a_case_suggests_words_of_the_lab(
    open_page: Callable[[str], Any], case: Any
) -> None:
    page = open_page("/cases/new/")
    words = "input => [...input.list.options].map(option => option.value)"
    assert page.get_by_label("Organ").evaluate(words) == ["colon", "lung"]
    assert page.get_by_label("Diagnosis").evaluate(words) == []
    assert page.complaints == []


def test_the_list_of_cases_filters_while_typing(open_page: Callable[[str], Any], case: Any) -> None:
    page = open_page("/cases/")
    page.keyboard.press("/")
    page.keyboard.type("colon")
    page.get_by_text("N-0").wait_for(state="detached")
    assert page.locator("#cases tbody tr").count() == 1
    assert page.url.endswith("/cases/?q=colon")
    page.keyboard.type("x")
    page.get_by_text("No matching cases").wait_for()
    page.locator("select[name=organ]").select_option("lung")
    page.locator("#case-q").fill("")
    page.get_by_text("N-2").wait_for()
    page.get_by_role("link", name="Accession").click()
    page.locator("th[aria-sort=ascending]").wait_for()
    assert page.locator("#cases tbody tr").first.locator("th").inner_text() == "N-0"
    assert page.complaints == []


def test_the_bin_of_a_card_is_next_to_its_title(
    open_page: Callable[[str], Any], ingest: Any, slide_file: Path
) -> None:
    canvas = ingest(slide_file)
    page = open_page(f"/cases/{canvas.case_id}/")
    title = page.locator(".card__title").bounding_box()
    bin_ = page.get_by_role("button", name=f"Delete {canvas.name}").bounding_box()
    assert bin_["y"] < title["y"] + title["height"] < bin_["y"] + bin_["height"] + 4
    assert title["x"] + title["width"] <= bin_["x"]
    assert page.complaints == []


def _check_uploads(count: int) -> None:
    """Run the jobs that check what arrived, once there are so many."""
    from portal.jobs.worker.runner import job_run

    for job in wait_for_jobs("upload_finish", count):
        with DATABASE:
            job_run(job.pk)


def test_each_uploaded_file_reports_its_result(
    open_page: Callable[[str], Any], case: Any, slide_file: Path, tmp_path: Path
) -> None:
    words = tmp_path / "notes.svs"
    words.write_text("only words")
    page = open_page(f"/cases/{case.pk}/upload/")
    page.locator("input[name=file]").set_input_files([words, slide_file])
    page.get_by_role("button", name="Upload").click()
    page.get_by_text("Arrived; being checked").first.wait_for()
    _check_uploads(2)
    page.get_by_text("notes.svs was not stored: the file is a text file").wait_for()
    page.locator("[data-state=stored]").wait_for()
    assert page.url.endswith("/upload/")  # a refusal is read before one leaves
    page.get_by_role("button", name="Remove notes.svs").click()
    page.wait_for_url(f"**/cases/{case.pk}/")
    with DATABASE:
        assert list(Slide.objects.values_list("name", flat=True)) == [slide_file.name]
    assert page.complaints == []


def test_slides_of_a_folder_are_sent_as_sets_and_incomplete_ones_are_named(
    open_page: Callable[[str], Any], case: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "scanner"
    write_mrxs(folder, named=True)
    write_vms(folder / "glass", named=True)
    write_mrxs(folder / "cut")
    (folder / "cut/slide/Data0000.dat").unlink()
    page = open_page(f"/cases/{case.pk}/upload/")
    page.locator("[data-upload-folder]").set_input_files(folder)
    page.get_by_role("button", name="Upload").click()
    page.get_by_text("slide.mrxs is incomplete: slide/Data0000.dat is missing").wait_for()
    _check_uploads(2)
    page.locator("[data-state=stored]").nth(1).wait_for()
    assert page.url.endswith("/upload/")  # what was not sent is read before one leaves
    with DATABASE:
        for job in Job.objects.filter(kind="slide_ingest"):
            run_job(job)
        names = set(Slide.objects.values_list("vendor", "state", "canvas__width_px"))
        assert names == {("mirax", "ready", 512), ("hamamatsu", "ready", 512)}
    assert page.complaints == []


def test_an_upload_continues_after_a_pause_a_lost_connection_and_a_reload(
    open_page: Callable[[str], Any], case: Any, slide_file: Path
) -> None:
    page = open_page(f"/cases/{case.pk}/upload/")
    page.on("dialog", lambda dialog: dialog.accept())  # it asks before one leaves
    page.route("**/api/v1/uploads/*/", lambda route: route.abort())
    page.locator("input[name=file]").set_input_files([slide_file])
    page.get_by_role("button", name="Upload").click()
    page.get_by_text("trying again").wait_for()
    page.get_by_role("button", name="Pause").first.click()
    page.locator("[data-state=paused]").wait_for()
    page.unroute("**/api/v1/uploads/*/")
    page.reload()
    page.locator(f'[data-interrupted="{slide_file.name}"]').wait_for()
    page.locator("input[name=file]").set_input_files([slide_file])
    page.get_by_role("button", name="Upload").click()
    page.locator("[data-interrupted]").wait_for(state="detached")
    _check_uploads(1)
    page.wait_for_url(f"**/cases/{case.pk}/")
    with DATABASE:
        assert Upload.objects.get().asset.sha256 == file_sha256(slide_file)
    assert page.complaints == []


def test_a_card_updates_when_its_job_ends(
    open_page: Callable[[str], Any], case: Any, slide_file: Path, annotator: Any
) -> None:
    with DATABASE, slide_file.open("rb") as file:
        item_receive(case=case, file=file, filename="blots.tif", user=annotator)
    page = open_page(f"/cases/{case.pk}/")
    page.get_by_text("Waiting for a worker").wait_for()
    card = page.locator("[data-item-state=preparing]")
    expect(card.locator(".card__corner")).to_be_visible()
    held: list[Any] = []

    def hold(route: Any) -> None:
        held.append(route)

    page.route(f"**{card.get_attribute('hx-get')}", hold)
    with DATABASE:
        job = Job.objects.get()
    run_job(job)
    page.locator("[data-job-state=succeeded]").wait_for()
    expect(card.locator(".card__corner")).to_be_hidden()  # not "Preparing" and "Done" at once
    for route in held:
        route.continue_()
    page.unroute_all()
    page.locator("[data-item-state=ready]").wait_for()
    page.goto(f"{page.url.split('/cases/')[0]}/cases/")
    page.set_viewport_size({"width": 768, "height": 1024})
    assert page.locator(".table__thumb img").first.bounding_box()["width"] >= 40
    page.go_back()
    page.get_by_role("link", name="blots.tif").click()
    page.wait_for_url("**/canvases/**")  # the viewer adds what is in view
    assert not page.complaints, "; ".join(page.complaints)
