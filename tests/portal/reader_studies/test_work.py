"""Work that is handed out: who sees it, in which order, its pages."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from portal.archive.models import Canvas
from portal.archive.models.shares import today
from portal.archive.services.cases import case_update
from portal.core.models import Event
from portal.labs.models import Lab, User
from portal.reader_studies.models import Assignment
from portal.reader_studies.selectors.work import load_of, rejected_regions, work_open_count
from portal.reader_studies.services.assignments import ReadingPlan, work_assign
from portal.review.services.verdicts import rois_review
from tests.portal.annotations.conftest import make_canvas
from tests.portal.reader_studies.conftest import draw

PLACE = "/api/v1/assignments/"


@pytest.fixture
def assigned(lab: Lab, manager: User, annotator: User, second: User) -> list[Assignment]:
    """Three images of a case for the annotator, the second of them late; one for another."""
    rows = []
    for k, due in enumerate((None, today() - timedelta(days=1), today() + timedelta(days=1))):
        canvas = make_canvas(lab, name=f"Section {k}")
        people = [annotator, second] if k == 0 else [annotator]
        plan = ReadingPlan(canvases=[canvas], people=people, due_on=due, note="Look at the rim.")
        rows += work_assign(lab=lab, user=manager, plan=plan)
    return rows


def test_assigned_work_is_ordered_by_urgency(
    api_as: Any, assigned: list[Assignment], annotator: User, second: User, manager: User
) -> None:
    client = api_as(annotator)
    rows = client.get(PLACE).json()["results"]
    assert [row["canvas_name"] for row in rows] == ["Section 1", "Section 2", "Section 0"]
    assert [row["is_late"] for row in rows] == [True, False, False]
    theirs = Assignment.objects.get(person=second)
    assert client.get(f"{PLACE}{theirs.pk}/").status_code == 404
    assert len(api_as(manager).get(PLACE).json()["results"]) == 4
    assert len(api_as(manager).get(PLACE, {"person": str(second.pk)}).json()["results"]) == 1
    draw(Canvas.objects.get(pk=rows[0]["canvas"]), annotator, 1, 1, 50, 50)
    answer = client.post(f"{PLACE}{rows[0]['id']}/submit/")
    assert (answer.status_code, answer.json()["region_count"]) == (200, 1)
    assert client.post(f"{PLACE}{rows[0]['id']}/submit/").status_code == 409
    assert len(client.get(PLACE, {"done": "true"}).json()["results"]) == 1
    assert (
        client.patch(
            f"{PLACE}{rows[1]['id']}/", {"note": ""}, format="json", headers={"If-Match": "*"}
        ).status_code
        == 403
    )


def test_assigning_a_case_assigns_each_image_once(
    api_as: Any, assigned: list[Assignment], annotator: User, manager: User, viewer: User
) -> None:
    client, case = api_as(manager), assigned[0].canvas.case_id
    body = {"cases": [str(case)], "people": [str(annotator.pk)]}
    answer = client.post(PLACE, body, format="json")
    assert (answer.status_code, answer.json()) == (201, {"made": 0, "known": 3})
    row = Assignment.objects.filter(person=annotator)[0]
    assert client.delete(f"{PLACE}{row.pk}/").status_code == 204
    assert client.post(PLACE, body, format="json").json() == {"made": 1, "known": 2}
    body["people"] = [str(viewer.pk)]
    assert client.post(PLACE, body, format="json").json()["code"] == "no-annotator"


def test_two_managers_who_hand_out_the_same_at_once_hand_it_out_once(
    lab: Lab, canvas: Canvas, manager: User, annotator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = ReadingPlan(canvases=[canvas], people=[annotator])
    insert = Assignment.all_objects.bulk_create

    def other_is_quicker(*rows: Any, **how: Any) -> list[Assignment]:
        monkeypatch.setattr(Assignment.all_objects, "bulk_create", insert)
        assert len(work_assign(lab=lab, user=manager, plan=plan)) == 1
        return insert(*rows, **how)

    monkeypatch.setattr(Assignment.all_objects, "bulk_create", other_is_quicker)
    assert work_assign(lab=lab, user=manager, plan=plan) == []
    assert Assignment.objects.filter(canvas=canvas, person=annotator).count() == 1
    assert Event.objects.filter(name="assignment.made").count() == 1


def test_images_are_found_by_words_as_in_the_list_of_cases(
    client: Client, lab: Lab, canvas: Canvas, manager: User
) -> None:
    make_canvas(lab, name="Other", accession="A-2")
    case_update(case=canvas.case, user=manager, organ="Colon", diagnosis="Tubular adenoma")
    client.force_login(manager)
    shown = client.get("/work/assign/", {"q": "adenoma colon"}).context["images"]
    assert shown == [canvas]


def test_rejected_regions_are_work_of_their_author(
    client: Client, canvas: Canvas, lab: Lab, annotator: User, reviewer: User, second: User
) -> None:
    roi = draw(canvas, annotator, 10, 10, 90, 90)
    other = draw(canvas, second, 200, 10, 290, 90)
    for item, author in ((roi, annotator), (other, second)):
        rois_review(user=author, rois=[(item.pk, 1)], state="submitted")
        rois_review(user=reviewer, rois=[(item.pk, 2)], state="rejected", comment="Too small")
    assert work_open_count(annotator) == 1
    (row,) = rejected_regions(annotator)
    assert (row.pk, row.reason) == (roi.pk, "Too small")
    assert not rejected_regions(annotator, lab_id=other.pk).exists()
    client.force_login(annotator)
    text = client.get("/work/").content.decode()
    assert f"/canvases/{canvas.pk}/?roi={roi.pk}" in text and "Too small" in text
    assert str(other.pk) not in text
    assert "Too small" not in client.get("/work/?done=1").content.decode()
    rois_review(user=annotator, rois=[(roi.pk, 3)], state="submitted")
    assert work_open_count(annotator) == 0
    assert "Too small" not in client.get("/work/").content.decode()


def test_open_work_is_counted_by_one_query(
    assigned: list[Assignment], annotator: User, reviewer: User, django_assert_num_queries: Any
) -> None:
    roi = draw(assigned[0].canvas, annotator, 10, 10, 90, 90)
    rois_review(user=annotator, rois=[(roi.pk, 1)], state="submitted")
    rois_review(user=reviewer, rois=[(roi.pk, 2)], state="rejected")
    with django_assert_num_queries(1):
        assert work_open_count(annotator) == 4


def test_pages_of_work(
    client: Client,
    lab: Lab,
    assigned: list[Assignment],
    annotator: User,
    manager: User,
    django_assert_max_num_queries: Any,
) -> None:
    client.force_login(annotator)
    with django_assert_max_num_queries(16):
        page = client.get("/work/").content.decode()
    assert page.count("Hand in</button>") == 3 and "Late" in page
    first = assigned[2]
    assert client.get("/work/next/")["Location"] == f"/canvases/{first.canvas_id}/"
    answer = client.post(f"/assignments/{first.pk}/submit/", {"then": "next"})
    assert answer["Location"] == f"/canvases/{assigned[3].canvas_id}/"
    assert client.get("/work/lab/").status_code == 403

    client.force_login(manager)
    with django_assert_max_num_queries(17):
        page = client.get("/work/lab/").content.decode()
    assert page.count("<tr>") == 8  # two heads, three people who may draw, three images open
    first_load = load_of(lab)[0]
    assert (first_load.person, first_load.open, first_load.late, first_load.done) == (
        annotator,
        2,
        0,
        1,
    )
    answer = client.post("/work/assign/", {"lab": lab.slug, "people": [str(annotator.pk)]})
    assert answer.status_code == 400 and "Choose at least one image." in answer.content.decode()
    body = {
        "canvases": [str(first.canvas_id)],
        "people": [str(annotator.pk)],
        "due_on": "2031-01-05",
    }
    assert client.post("/work/assign/", {"lab": lab.slug, **body}).status_code == 302
    assert load_of(lab)[0].open == 3
