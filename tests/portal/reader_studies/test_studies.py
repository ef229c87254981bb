"""A study from its beginning to consensus regions: blinding, results, adjudication, rights."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from portal.annotations.models import Label, Roi
from portal.annotations.services.fields import RoiChanges
from portal.annotations.services.rois import roi_update
from portal.archive.models import Canvas
from portal.audit.models import AuditEntry
from portal.core.errors import ConflictError, ForbiddenError, InvalidInputError, NotFoundError
from portal.labs.models import Lab, User
from portal.reader_studies.models import Study
from portal.reader_studies.selectors.studies import progress_of
from portal.reader_studies.services.adjudication import findings_decide
from portal.reader_studies.services.assignments import (
    ReadingPlan,
    assignment_remove,
    assignment_reopen,
    assignment_submit,
)
from portal.reader_studies.services.studies import readings_assign, study_create, study_unblind
from tests.portal.annotations.conftest import make_canvas
from tests.portal.reader_studies.conftest import draw, reading_of, seen


def test_readers_see_only_their_rois_until_both_have_submitted(
    api_as: Any, study: Study, canvas: Canvas, annotator: User, second: User, manager: User
) -> None:
    before = draw(canvas, manager, 500, 500, 600, 600)
    mine, theirs = draw(canvas, annotator, 0, 0, 100, 100), draw(canvas, second, 0, 0, 100, 90)
    assert seen(api_as(annotator), canvas) == [str(mine.pk)]
    assert seen(api_as(second), canvas) == [str(theirs.pk)]
    assert seen(api_as(manager), canvas) == [str(before.pk)]  # a reader's are seen by nobody else
    assignment_submit(assignment=reading_of(study, annotator), user=annotator)
    assert seen(api_as(annotator), canvas) == [str(mine.pk)]
    assignment_submit(assignment=reading_of(study, second), user=second)
    for user in (annotator, second, manager):
        assert set(seen(api_as(user), canvas)) == {str(item.pk) for item in (before, mine, theirs)}


def test_a_roi_of_another_reader_is_not_accessible_by_id(
    api_as: Any, study: Study, canvas: Canvas, annotator: User, second: User
) -> None:
    mine = draw(canvas, annotator, 0, 0, 100, 100)
    client = api_as(second)
    for do in ("update", "delete"):
        step = {"do": do, "id": str(mine.pk), "version": 1, "name": "theirs"}
        answer = client.post(
            "/api/v1/rois/bulk/", {"canvas": str(canvas.pk), "changes": [step]}, format="json"
        )
        assert answer.status_code == 404
    feature = {
        "type": "Feature",
        "id": str(mine.pk),
        "geometry": mine.geometry,
        "properties": {"objectType": "annotation", "name": "theirs"},
    }
    document = {"type": "FeatureCollection", "features": [feature]}
    client.post(f"/api/v1/canvases/{canvas.pk}/rois/", document, format="json")
    mine.refresh_from_db()
    assert (mine.version, mine.name, mine.deleted_at) == (1, "", None)


def test_agreement_and_consensus(
    api_as: Any,
    study: Study,
    canvas: Canvas,
    annotator: User,
    second: User,
    reviewer: User,
    label: Label,
) -> None:
    place = f"/api/v1/studies/{study.pk}"
    client = api_as(reviewer)
    mine = draw(canvas, annotator, 0, 0, 100, 100, label=label)
    draw(canvas, second, 0, 0, 100, 80, label=label)
    lone = draw(canvas, second, 300, 300, 400, 400, label=label)
    assignment_submit(assignment=reading_of(study, annotator), user=annotator)
    assert client.get(f"{place}/findings/", {"canvas": canvas.pk}).status_code == 409  # blind
    assert client.get(f"{place}/agreement/").json()["pairs"] == []
    assignment_submit(assignment=reading_of(study, second), user=second)
    changes = RoiChanges(geometry=lone.geometry | {"coordinates": [[[0, 0], [9, 0], [9, 9]]]})
    roi_update(roi=mine, user=annotator, expected_version=1, changes=changes)  # changes no result

    (pair,) = client.get(f"{place}/agreement/").json()["pairs"]
    (row,) = pair["labels"]
    assert (row["regions_a"] + row["regions_b"], row["matched"]) == (3, 1)
    assert row["iou"] == pytest.approx(0.8)
    assert row["dice"] == pytest.approx(2 * 8000 / (10000 + 18000))
    table = b"".join(client.get(f"{place}/agreement.csv").streaming_content).decode()
    assert table.startswith("﻿case,image,") and "A-1,Section 1," in table

    finding_rows = client.get(f"{place}/findings/", {"canvas": canvas.pk}).json()["results"]
    assert [item["agreement"] for item in finding_rows] == ["missing", "agreed"]
    page = client.get(f"{place}/findings/", {"canvas": canvas.pk, "page_size": 1}).json()
    assert [page["results"], client.get(page["next"]).json()["results"]] == [
        [finding_rows[0]],
        [finding_rows[1]],
    ]
    body = {"canvas": str(canvas.pk), "findings": [finding_rows[1]["id"]], "choice": "merged"}
    assert api_as(annotator).post(f"{place}/decisions/", body, format="json").status_code == 403
    (decided,) = client.post(f"{place}/decisions/", body, format="json").json()
    assert decided["id"] == finding_rows[1]["id"]
    consensus = Roi.objects.get(pk=decided["consensus"])
    assert (consensus.area_px, consensus.label, consensus.created_by) == (10000, label, reviewer)

    body = {
        **body,
        "findings": [finding_rows[0]["id"]],
        "choice": "reader",
        "reader": str(second.pk),
    }
    taken = client.post(f"{place}/decisions/", body, format="json").json()[0]["consensus"]
    assert Roi.objects.get(pk=taken).area_px == 10000
    body["choice"] = "nothing"  # decided again: the region goes
    assert client.post(f"{place}/decisions/", body, format="json").json()[0]["consensus"] is None
    assert Roi.objects.get(pk=taken).deleted_at is not None
    body |= {"choice": "drawn", "roi": str(draw(canvas, reviewer, 1, 1, 50, 50).pk)}
    assert client.post(f"{place}/decisions/", body, format="json").status_code == 200
    body["choice"] = "undo"
    assert client.post(f"{place}/decisions/", body, format="json").json()[0]["choice"] is None
    assert Roi.objects.get(pk=body["roi"]).deleted_at is None  # one's own drawing stays


def test_unblinding_is_noted_and_ends_blind_reading(
    api_as: Any, study: Study, canvas: Canvas, annotator: User, second: User, manager: User
) -> None:
    theirs = draw(canvas, second, 0, 0, 100, 90)
    with pytest.raises(ForbiddenError):
        study_unblind(study=study, user=annotator)
    study_unblind(study=study, user=manager)
    assert seen(api_as(annotator), canvas) == [str(theirs.pk)]
    entry = AuditEntry.objects.get(action="study.unblinded")
    assert (entry.actor_id, entry.object_id, entry.details["unfinished"]) == (None, study.pk, 2)
    study.refresh_from_db()
    with pytest.raises(ConflictError, match="unblinded"):
        plan = ReadingPlan(canvases=[canvas], people=[annotator, manager])
        readings_assign(study=study, user=manager, plan=plan)
    with pytest.raises(ConflictError):
        study_unblind(study=study, user=manager)


def test_blind_until_all_readers_have_submitted_all_items(
    api_as: Any, lab: Lab, canvas: Canvas, annotator: User, second: User, manager: User
) -> None:
    from tests.portal.annotations.conftest import make_canvas

    other = make_canvas(lab, name="Section 2")
    study = study_create(lab=lab, user=manager, name="Strict", blind_until="study")
    plan = ReadingPlan(canvases=[canvas, other], people=[annotator, second])
    readings_assign(study=study, user=manager, plan=plan)
    draw(canvas, second, 0, 0, 100, 90)
    first = study.readings.filter(canvas=canvas)
    for row in first:
        assignment_submit(assignment=row, user=row.person)
    assert seen(api_as(annotator), canvas) == []
    late = study.readings.filter(canvas=other)
    assignment_remove(assignment=late.get(person=second), user=manager)
    assert seen(api_as(annotator), canvas) == []
    assignment_submit(assignment=late.get(person=annotator), user=annotator)
    assert len(seen(api_as(annotator), canvas)) == 1


def test_a_reading_is_given_back_only_while_it_is_blind(
    study: Study, canvas: Canvas, annotator: User, second: User, manager: User
) -> None:
    draw(canvas, annotator, 0, 0, 100, 100)
    reading = reading_of(study, annotator)
    with pytest.raises(ForbiddenError):
        assignment_submit(assignment=reading, user=second)
    assignment_submit(assignment=reading, user=annotator)
    with pytest.raises(ConflictError):
        assignment_submit(assignment=reading, user=annotator)
    assert reading.regions.count() == 1
    assignment_reopen(assignment=reading, user=manager)
    assert reading.regions.count() == 0
    for person in (annotator, second):
        assignment_submit(assignment=reading_of(study, person), user=person)
    with pytest.raises(ConflictError, match="blinding"):
        assignment_reopen(assignment=reading_of(study, second), user=manager)


def test_invalid_studies_are_refused(
    lab: Lab, study: Study, canvas: Canvas, annotator: User, viewer: User, manager: User
) -> None:
    with pytest.raises(ConflictError, match="already"):
        study_create(lab=lab, user=manager, name="Grades")
    with pytest.raises(InvalidInputError, match="two readers"):
        unread = study_create(lab=lab, user=manager, name="Alone")
        plan = ReadingPlan(canvases=[canvas], people=[annotator])
        readings_assign(study=unread, user=manager, plan=plan)
    with pytest.raises(InvalidInputError, match="draw"):
        plan = ReadingPlan(canvases=[canvas], people=[annotator, viewer])
        readings_assign(study=study, user=manager, plan=plan)
    with pytest.raises(InvalidInputError, match="min_iou"):
        study_create(lab=lab, user=manager, name="Wide", min_iou=2)


def test_handing_out_many_images_costs_no_more_queries_than_one(
    lab: Lab, study: Study, annotator: User, second: User, manager: User
) -> None:
    prices = []
    for count in (1, 30):
        canvases = [make_canvas(lab, name=f"Section {count}.{k}") for k in range(count)]
        plan = ReadingPlan(canvases=canvases, people=[annotator, second])
        with CaptureQueriesContext(connection) as queries:
            assert len(readings_assign(study=study, user=manager, plan=plan)) == 2 * count
        prices.append(len(queries))
    assert prices[0] == prices[1]
    with CaptureQueriesContext(connection) as queries:
        readers, images = progress_of(study)
    assert (len(queries), len(readers), len(images)) == (1, 2, 32)
    assert all(image.readings[0] and image.readings[1] for image in images)


def test_pages_of_a_study(
    client: Client,
    study: Study,
    canvas: Canvas,
    annotator: User,
    second: User,
    reviewer: User,
    label: Label,
    django_assert_max_num_queries: Any,
) -> None:
    for k in range(6):
        draw(canvas, annotator, 100 * k, 0, 100 * k + 60, 60, label=label)
        draw(canvas, second, 100 * k, 0, 100 * k + 60, 60 - 8 * k, label=label)
    for person in (annotator, second):
        assignment_submit(assignment=reading_of(study, person), user=person)
    client.force_login(reviewer)
    assert "Grades" in client.get("/studies/").content.decode()
    with django_assert_max_num_queries(24):
        page = client.get(f"/studies/{study.pk}/").content.decode()
    assert "Agreement" in page and "Kappa" in page and "Tumor" in page
    place = f"/studies/{study.pk}/findings/?canvas={canvas.pk}"
    with django_assert_max_num_queries(20):
        page = client.get(place).content.decode()
    assert "Not drawn by all" in page and "<path" in page
    answer = client.post(
        f"/studies/{study.pk}/decide/", {"canvas": canvas.pk, "choice": "agreed"}, follow=True
    )
    assert "Accept the" not in answer.content.decode()
    assert study.decisions.count() == 4 and study.decisions.filter(roi=None).count() == 0


def test_only_existing_rois_are_decided(
    study: Study, canvas: Canvas, annotator: User, second: User, reviewer: User
) -> None:
    for person in (annotator, second):
        assignment_submit(assignment=reading_of(study, person), user=person)
    with pytest.raises(NotFoundError):
        findings_decide(
            study=study, canvas=canvas, user=reviewer, findings=[canvas.pk], choice="nothing"
        )
