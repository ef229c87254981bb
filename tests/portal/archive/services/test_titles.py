"""Another title: nothing of the one before is left where people look."""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps
from django.db import models
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from portal.annotations.services.rois import roi_create
from portal.archive import inspection
from portal.archive.models import Case, ItemState, Slide, Upload, Video
from portal.archive.services.items import item_rename
from portal.audit.models import AuditEntry
from portal.core.errors import ForbiddenError, InvalidInputError
from portal.core.models import Event
from portal.jobs.models import JobState
from portal.jobs.services import job_submit
from portal.labs.models import User
from portal.search.models import Query, Report, ReportRegion
from tests.portal.archive.support import png, run_job

pytestmark = pytest.mark.django_db
NAME = "Erika Mustermann 1956"


def rows_with(word: str) -> list[str]:
    """Rows of every table that contain the word, by model."""
    titles = []
    for model in apps.get_models():
        kinds = (models.CharField, models.TextField, models.JSONField)
        names = [f.attname for f in model._meta.concrete_fields if isinstance(f, kinds)]
        for row in model._base_manager.values_list(*names) if names else ():
            if word.lower() in str(row).lower():
                titles.append(model.__name__)
    return titles


@pytest.fixture
def named(case: Case, receive: Any, quick: None) -> Slide:
    """A slide whose file is called by its patient."""
    received = receive(case, png().read(), f"{NAME}.png")
    run_job(received.job)
    item: Slide = received.item
    item.refresh_from_db()
    return item


def test_a_replaced_title_is_in_no_table(named: Slide, annotator: User) -> None:
    assert {"Slide", "Canvas", "Job", "Upload"} <= set(rows_with("Mustermann"))
    item_rename(item=named, user=annotator, name="  Section\n1 ")
    assert rows_with("Mustermann") == []
    before = named.updated_at
    named.refresh_from_db()
    assert named.updated_at > before
    assert (named.name, named.canvas and named.canvas.name) == ("Section 1", "Section 1")
    assert Event.objects.filter(name="item.renamed").count() == 1
    entry = AuditEntry.objects.get(action="item.renamed")
    assert (entry.object_id, entry.details) == (named.pk, {"item_kind": "slide"})


def test_derived_titles_are_replaced_too(named: Slide, annotator: User) -> None:
    """Jobs of a region, of a search and of the transfer, and a report that was kept."""
    canvas = named.canvas
    assert canvas is not None
    box = {"type": "Polygon", "coordinates": [[[2, 2], [20, 2], [20, 20], [2, 20], [2, 2]]]}
    roi = roi_create(canvas=canvas, user=annotator, geometry=box).roi
    lab, about = canvas.lab, f"Region on {canvas.name}"
    query = Query.objects.create(lab=lab, user=annotator, canvas=canvas, source="area")
    upload = Upload.objects.get(asset=named.asset)
    for target in (roi, query, upload):
        about_it = {"target": target, "target_name": about}
        job_submit(kind="roi_embed", args={}, lab=lab, user=annotator, **about_it)
    report = Report.objects.create(
        lab=lab, name=about, canvas=canvas, content={"facts": [["Slide", canvas.name]]}
    )
    region = ReportRegion.objects.create(
        lab=lab, report=report, rank=1, canvas=canvas, content={"image": canvas.name}
    )
    assert {"Report", "ReportRegion", "Job"} <= set(rows_with("Mustermann"))
    item_rename(item=named, user=annotator, name="Section 1")
    assert rows_with("Mustermann") == []
    report.refresh_from_db()
    assert (report.name, report.content) == (
        "Region on Section 1",
        {"facts": [["Slide", "Section 1"]]},
    )
    region.refresh_from_db()
    assert region.content == {"image": "Section 1"}


def test_unrelated_texts_like_the_title_remain(named: Slide, annotator: User) -> None:
    """A slide may be called as an organ, a case or a label is."""
    canvas = named.canvas
    assert canvas is not None
    lab, title = canvas.lab, canvas.name
    facts = [["Case", title], ["Label", title], ["Still", title]]
    report = Report.objects.create(
        lab=lab, name="Region on another", canvas=canvas, content={"facts": facts}
    )
    data = {"image": title, "organ": title, "diagnosis": title, "accession": title}
    region = ReportRegion.objects.create(
        lab=lab, report=report, rank=1, canvas=canvas, content=data
    )
    item_rename(item=named, user=annotator, name="Section 1")
    report.refresh_from_db()
    region.refresh_from_db()
    assert report.content["facts"] == [["Case", title], ["Label", title], ["Still", "Section 1"]]
    assert region.content == data | {"image": "Section 1"}


def test_pages_and_rest_show_the_new_title(
    named: Slide, annotator: User, client: Client, api: APIClient
) -> None:
    client.force_login(annotator)
    sent = client.post(
        reverse("archive:item_rename", args=["slide", named.pk]), {"name": "Section 1"}
    )
    assert AuditEntry.objects.get(action="item.renamed").actor_id == annotator.pk
    page = reverse("archive:case_detail", args=[named.case_id])
    assert (sent.status_code, sent.headers["Location"]) == (302, page)
    assert named.canvas is not None
    for path in (page, reverse("archive:viewer", args=[named.canvas.pk]), reverse("jobs:list")):
        text = client.get(path, follow=True).content.decode()
        assert "Section 1" in text and "Mustermann" not in text
    answer = api.patch(
        f"/api/v1/slides/{named.pk}/",
        {"name": "Section 2"},
        format="json",
        headers={"If-Match": "*"},
    )
    assert (answer.status_code, answer.json()["name"]) == (200, "Section 2")
    assert api.get(f"/api/v1/canvases/{named.canvas.pk}/").json()["name"] == "Section 2"


def test_a_video_is_renamed_too(video: Video, api: APIClient) -> None:
    answer = api.patch(
        f"/api/v1/videos/{video.pk}/",
        {"name": "Second look"},
        format="json",
        headers={"If-Match": "*"},
    )
    assert answer.json()["name"] == "Second look"
    video.refresh_from_db()
    assert video.canvas and video.canvas.name == "Second look"


def test_an_empty_title_or_a_missing_right_changes_nothing(
    named: Slide, annotator: User, viewer: User, client: Client, api: APIClient
) -> None:
    with pytest.raises(InvalidInputError, match="title"):
        item_rename(item=named, user=annotator, name=" ")
    with pytest.raises(ForbiddenError):
        item_rename(item=named, user=viewer, name="x")
    assert (
        api.patch(
            f"/api/v1/slides/{named.pk}/", {}, format="json", headers={"If-Match": "*"}
        ).status_code
        == 400
    )
    assert (
        api.patch(
            f"/api/v1/slides/{named.pk}/", {"name": "x" * 201}, headers={"If-Match": "*"}
        ).status_code
        == 400
    )
    client.force_login(annotator)
    client.post(reverse("archive:item_rename", args=["slide", named.pk]), {"name": " "})
    named.refresh_from_db()
    assert named.name == f"{NAME}.png"


def test_a_title_that_changes_while_the_file_is_prepared_stays(
    case: Case, receive: Any, quick: None, annotator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job had read the one before; it may not write it back."""
    received = receive(case, png().read(), f"{NAME}.png")
    look = inspection.slide_inspect

    def rename_first(*arguments: Any, **options: Any) -> Any:
        item = Slide.objects.get(pk=received.item.pk)
        item_rename(item=item, user=annotator, name="Section 1")
        return look(*arguments, **options)

    monkeypatch.setattr(inspection, "slide_inspect", rename_first)
    assert run_job(received.job).state == JobState.SUCCEEDED
    slide = Slide.objects.select_related("canvas").get(pk=received.item.pk)
    assert (slide.name, slide.canvas and slide.canvas.name) == ("Section 1", "Section 1")
    assert rows_with("Mustermann") == []


def test_the_canvas_of_an_image_that_failed_follows_too(named: Slide, annotator: User) -> None:
    """An imported one keeps its canvas, though it does not show on it."""
    Slide.objects.filter(pk=named.pk).update(canvas=None, state=ItemState.FAILED)
    named.refresh_from_db()
    item_rename(item=named, user=annotator, name="Section 1")
    assert rows_with("Mustermann") == []


def test_a_concurrently_set_title_is_not_overwritten(
    named: Slide, annotator: User, client: Client
) -> None:
    client.force_login(annotator)
    page = client.get(f"/cases/{named.case_id}/").content.decode()
    at = reverse("archive:item_rename", args=["slide", named.pk])
    form = page.partition(at)[2]
    seen = form.partition('name="edit_tag" value="')[2].partition('"')[0]
    client.post(at, {"name": "Section 1", "edit_tag": seen})
    late = client.post(at, {"name": "Section 2", "edit_tag": seen}, follow=True).content.decode()
    assert "Someone else changed it in the meantime. Its title is now “Section 1”" in late
    assert "Yours was not saved: “Section 2”" in late
    named.refresh_from_db()
    assert named.name == "Section 1"
