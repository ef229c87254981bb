"""Modality of images and cases: proposed at ingest, set by a person."""

from __future__ import annotations

import io
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.test import Client
from django.urls import reverse
from PIL import Image
from rest_framework.test import APIClient

from portal.archive.models import Canvas, Case, Modality, Slide, Video
from portal.archive.selectors.stains import stain_shown
from portal.archive.services.items import canvas_id_of
from portal.archive.services.modality import canvas_modality_set, case_modality_set
from portal.archive.services.trash import trash_put
from portal.audit.models import AuditEntry
from portal.core.errors import NotFoundError
from portal.core.models import Event
from portal.embeddings.services.embeddings import canvas_is_unchanged
from portal.labs.models import User
from tests.ml.imaging.test_modality import scope, tissue
from tests.portal.archive.support import run_job


def png(pixels: Any) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.fixture
def ingested(case: Case, receive: Any, quick: None) -> Any:
    """``ingested(pixels)``: the canvas of a still."""

    def run(pixels: Any, into: Case = case) -> Canvas:
        received = receive(into, png(pixels), "still.png")
        assert run_job(received.job).state == "succeeded"
        return Canvas.objects.get(slide=received.item)

    return run


@pytest.fixture
def scope_still(ingested: Any) -> Canvas:
    return ingested(scope())


def test_stills_take_the_proposal(ingested: Any) -> None:
    assert ingested(scope()).modality == Modality.ENDOSCOPY
    assert ingested(tissue()).modality == Modality.HISTOLOGY


def test_slides_are_histology_and_videos_endoscopy(slide: Slide, video: Video) -> None:
    assert slide.canvas is not None and slide.canvas.modality == Modality.HISTOLOGY
    assert video.canvas is not None and video.canvas.modality == Modality.ENDOSCOPY


def test_a_case_has_the_modality_of_its_first_image(case: Case, ingested: Any) -> None:
    assert case.modality == ""
    first = ingested(scope())
    ingested(tissue())
    case.refresh_from_db()
    assert (case.modality, case.is_modality_by_hand) == ("endoscopy", False)
    canvas_modality_set(canvas=first, user=case.created_by, modality="histology")
    case.refresh_from_db()
    assert (case.modality, case.is_modality_by_hand) == ("histology", False)


def test_stills_that_arrive_take_the_modality_set_for_their_case(
    case: Case, ingested: Any, annotator: User
) -> None:
    case_modality_set(case=case, user=annotator, modality="endoscopy")
    assert ingested(tissue()).modality == "endoscopy"
    case.refresh_from_db()
    assert (case.modality, case.is_modality_by_hand) == ("endoscopy", True)


def test_an_image_prepared_again_has_its_previous_modality(
    case: Case, receive: Any, quick: None, annotator: User
) -> None:
    from portal.archive.services.ingest import _modality

    received = receive(case, png(scope()), "still.png")
    run_job(received.job)
    canvas = Canvas.objects.get(pk=canvas_id_of(received.item.pk))
    canvas_modality_set(canvas=canvas, user=annotator, modality="histology")
    assert _modality(received.item, None) == "histology"


def test_a_modality_is_set_recorded_and_set_back(
    api: APIClient, scope_still: Canvas, annotator: User
) -> None:
    address = f"/api/v1/canvases/{scope_still.pk}/"
    before = api.get(address).json()
    assert (before["modality"], before["is_modality_by_hand"]) == ("endoscopy", False)
    for wanted in ("histology", "histology", "endoscopy"):
        after = api.patch(address, {"modality": wanted}, format="json")
        assert after.status_code == 200, after.content
        assert (after.json()["modality"], after.json()["is_modality_by_hand"]) == (wanted, True)
    noted = AuditEntry.objects.filter(action="canvas.modality_set").order_by("pk")
    assert [entry.details for entry in noted] == [
        {"modality": "histology", "before": "endoscopy"},
        {"modality": "endoscopy", "before": "histology"},
    ]
    assert {entry.actor_id for entry in noted} == {annotator.pk}
    assert Event.objects.filter(name="canvas.modality_set").count() == 2


def test_a_concurrently_set_modality_is_not_overwritten(
    api: APIClient, scope_still: Canvas
) -> None:
    address = f"/api/v1/canvases/{scope_still.pk}/"
    sent: Any = {"format": "json", "headers": {"If-Match": api.get(address).headers["ETag"]}}
    assert api.patch(address, {"modality": "histology"}, **sent).status_code == 200
    assert api.patch(address, {"modality": "endoscopy"}, **sent).status_code == 412


@pytest.mark.parametrize(
    "body", [{"modality": "radiology"}, {"modality": ""}, {"modality": "histology", "mpp_x": 1}]
)
def test_an_unknown_modality_is_refused(api: APIClient, scope_still: Canvas, body: Any) -> None:
    address = f"/api/v1/canvases/{scope_still.pk}/"
    assert api.patch(address, body, format="json").status_code == 400
    assert Canvas.objects.get(pk=scope_still.pk).modality == "endoscopy"


def test_endoscopy_has_no_pixel_size(api: APIClient, scope_still: Canvas) -> None:
    address = f"/api/v1/canvases/{scope_still.pk}/"
    assert api.get(address).json()["can_scale"] is False
    assert api.patch(address, {"mpp_x": 0.5}, format="json").status_code == 400
    assert api.patch(address, {"modality": "histology"}, format="json").status_code == 200
    assert api.get(address).json()["can_scale"] is True
    assert api.patch(address, {"mpp_x": 0.5}, format="json").status_code == 200


def test_items_in_the_trash_are_not_changed(
    scope_still: Canvas, case: Case, annotator: User
) -> None:
    trash_put(item=case, user=annotator)
    with pytest.raises(NotFoundError):
        canvas_modality_set(canvas=scope_still, user=annotator, modality="histology")
    with pytest.raises(NotFoundError):
        case_modality_set(case=case, user=annotator, modality="histology")


def test_a_case_is_set_with_all_its_images(
    api: APIClient, case: Case, ingested: Any, annotator: User
) -> None:
    ingested(scope())
    ingested(tissue())
    address = f"/api/v1/cases/{case.pk}/"
    tag = api.get(address).headers["ETag"]
    body = {"modality": "histology", "organ": "skin"}
    after = api.patch(address, body, format="json", headers={"If-Match": tag})
    assert after.status_code == 200, after.content
    assert after.json()["organ"] == "skin"
    assert (after.json()["modality"], after.json()["is_modality_by_hand"]) == ("histology", True)
    assert set(case.canvases.values_list("modality", flat=True)) == {"histology"}
    assert Event.objects.filter(name="canvas.modality_set").count() == 1
    assert not AuditEntry.objects.filter(action="canvas.modality_set").exists()
    (noted,) = AuditEntry.objects.filter(action="case.modality_set")
    assert noted.details == {"modality": "histology", "before": "endoscopy"}
    stale = api.patch(address, body, format="json", headers={"If-Match": tag})
    assert stale.status_code == 412


def test_a_case_that_is_sent_back_as_it_was_read_is_not_set_by_hand(
    api: APIClient, case: Case, scope_still: Canvas
) -> None:
    address = f"/api/v1/cases/{case.pk}/"
    read = api.get(address)
    tag = read.headers["ETag"]
    assert (
        api.put(address, read.json(), format="json", headers={"If-Match": tag}).status_code == 200
    )
    assert not Case.objects.get(pk=case.pk).is_modality_by_hand


def test_a_case_can_be_made_with_a_modality(api: APIClient) -> None:
    made = api.post("/api/v1/cases/", {"accession": "E-1", "modality": "endoscopy"}, format="json")
    assert made.status_code == 201, made.content
    assert Case.objects.get(accession="E-1").is_modality_by_hand


def test_lists_are_filtered_by_modality(
    api: APIClient, case: Case, scope_still: Canvas, django_assert_max_num_queries: Any
) -> None:
    for word, count in (("endoscopy", 1), ("histology", 0)):
        for name in ("cases", "slides"):
            with django_assert_max_num_queries(8):
                body = api.get(f"/api/v1/{name}/?modality={word}").json()["results"]
            assert len(body) == count, (name, word)
    assert api.get("/api/v1/cases/?modality=x").status_code == 400


def test_the_stain_of_an_image_of_endoscopy_is_not_shown(scope_still: Canvas) -> None:
    Slide.objects.filter(canvas=scope_still).update(stain="H&E")
    assert stain_shown(Canvas.objects.get(pk=scope_still.pk)) == ""
    Canvas.objects.filter(pk=scope_still.pk).update(modality="histology")
    assert stain_shown(Canvas.objects.get(pk=scope_still.pk)) == "H&E"


def test_a_vector_of_the_other_modality_is_discarded(scope_still: Canvas, annotator: User) -> None:
    read_before = Canvas.objects.get(pk=scope_still.pk)
    canvas_modality_set(canvas=scope_still, user=annotator, modality="histology")
    assert not canvas_is_unchanged(read_before, lock=False)
    assert canvas_is_unchanged(Canvas.objects.get(pk=scope_still.pk), lock=False)


def test_the_case_page_sets_it_and_the_list_is_filtered(
    page: Client, case: Case, scope_still: Canvas
) -> None:
    detail = reverse("archive:case_detail", args=[case.pk])
    assert 'value="endoscopy" aria-pressed="true"' in page.get(detail).content.decode()
    url = reverse("archive:case_modality", args=[case.pk])
    assert page.post(url, {"modality": "histology"}).url == detail
    case.refresh_from_db()
    assert case.modality == "histology"
    cases = reverse("archive:case_list")
    assert case.accession in page.get(f"{cases}?modality=histology").content.decode()
    assert case.accession not in page.get(f"{cases}?modality=endoscopy").content.decode()


def test_the_model_refuses_other_modalities(scope_still: Canvas) -> None:
    scope_still.modality = "radiology"
    with pytest.raises(ValidationError):
        scope_still.clean_fields()
