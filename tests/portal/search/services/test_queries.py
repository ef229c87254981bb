"""Searching with what is no ROI: areas, frames, pictures, whole slides, examples."""

from __future__ import annotations

import base64
import io
from datetime import timedelta

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from PIL import Image

from portal.annotations.models import Roi
from portal.core.errors import InvalidInputError
from portal.jobs.models import Job, JobState
from portal.labs.models import Membership
from portal.search.models import Query, QuerySource
from portal.search.services.queries import QueryData, queries_sweep, query_create, query_mark
from portal.search.services.similar_cases import query_search
from portal.search.thumbnails.queries import query_scale
from tests.clients import client_of
from tests.portal.embedded_rois import SIDE, square


@pytest.fixture
def neighbours(world):
    """Three ROIs of three patients on one line, and one of the query's patient."""
    return [
        world.embedded(world.canvas(world.case(f"B{n}", f"q{n}")), 100 + 20 * n, 100)
        for n in range(3)
    ]


def area(canvas, left=100, top=100, **fields):
    return QueryData(
        source=QuerySource.AREA, canvas_id=canvas.pk, geometry=square(left, top), **fields
    )


def hits(query, user, **options):
    return [hit.roi.pk for hit in query_search(query=query, user=user, options=options).hits]


def png(size=(60, 40)):
    stream = io.BytesIO()
    Image.new("RGB", size, "#c080b0").save(stream, "PNG")
    return stream.getvalue()


def test_a_search_with_an_area_creates_no_roi(world, neighbours):
    canvas = world.canvas(world.case("A1", "p1"))
    sibling = world.embedded(canvas, 101, 100)
    before = Roi.all_objects.count()
    query = query_create(data=area(canvas), user=world.user)
    assert isinstance(query_search(query=query, user=world.user, options={}), Job)
    assert Job.objects.filter(kind="query_embed").count() == 1, "asking again waits for the same"
    world.run_jobs()
    query.refresh_from_db()
    assert hits(query, world.user) == [roi.pk for roi in neighbours]
    assert hits(query, world.user, expand=0, exclude_same_patient=False)[1] == sibling.pk
    assert Roi.all_objects.count() == before


def test_examples_are_searched_by_their_mean_and_not_found(world, neighbours):
    requested = QueryData(source=QuerySource.EXAMPLES, liked=(neighbours[0].pk, neighbours[2].pk))
    query = query_create(data=requested, user=world.user)
    result = query_search(query=query, user=world.user, options={})
    assert [hit.roi.pk for hit in result.hits] == [neighbours[1].pk]
    assert result.refined_by == 2
    assert result.embedding_id is None
    query_mark(query=query, other_id=neighbours[1].pk, verdict="unlike", user=world.user)
    assert hits(query, world.user) == []
    query_mark(query=query, other_id=neighbours[1].pk, verdict="", user=world.user)
    assert hits(query, world.user) == [neighbours[1].pk]


def test_a_slide_is_searched_by_its_rois(world, neighbours):
    requested = QueryData(source=QuerySource.ROIS, canvas_id=neighbours[0].canvas_id)
    query = query_create(data=requested, user=world.user)
    assert hits(query, world.user) == [neighbours[1].pk, neighbours[2].pk]


@pytest.mark.slow
def test_a_picture_is_decoded_in_a_child_and_only_its_copy_is_stored(world, neighbours, encoder):
    data = {}

    def embed_image(image, polygon, *, mpp=None, progress):
        data.update(shape=image.shape, mpp=mpp)
        return encoder._embedded(_Box(), progress)

    encoder.embed_image = embed_image
    requested = QueryData(
        source=QuerySource.PICTURE, upload=png(), kind="histology", mpp=0.5, lab=world.lab
    )
    query = query_create(data=requested, user=world.user)
    world.run_jobs()
    query.refresh_from_db()
    assert data == {"shape": (40, 60, 3), "mpp": 0.5}
    assert query.upload is None
    assert Image.open(io.BytesIO(bytes(query.picture))).size == (60, 40)
    assert hits(query, world.user) == [roi.pk for roi in neighbours]
    again = QueryData(source=QuerySource.PICTURE, repeat_of=query.pk, scale=2.0)
    larger = query_create(data=again, user=world.user)
    world.run_jobs()
    assert data["mpp"] == pytest.approx(1.0)
    assert Query.objects.get(pk=larger.pk).vector is not None


class _Box:
    bounds = (100, 100, 120, 120)


@pytest.mark.slow
def test_an_invalid_picture_fails_with_its_reason(world):
    requested = QueryData(
        source=QuerySource.PICTURE, upload=b"%PDF-1.7", kind="histology", mpp=1.0, lab=world.lab
    )
    query = query_create(data=requested, user=world.user)
    world.run_jobs()
    job = Job.objects.get(kind="query_embed")
    assert job.state == JobState.FAILED
    assert "Traceback" not in job.error_message
    text = world_page(world, query)
    assert "There is nothing to search with" in text and "Try again" in text
    assert world_client(world).post(f"/queries/{query.pk}/embed/").status_code == 302
    assert "Preparing this query" in world_page(world, query)


@pytest.mark.slow
def test_a_viewer_may_retry_only_their_query(world, viewer, client):
    for asker in (world.user, viewer):
        requested = QueryData(
            source=QuerySource.PICTURE, upload=b"x", kind="histology", mpp=1.0, lab=world.lab
        )
        query = query_create(data=requested, user=asker)
        world.run_jobs()
        is_own = asker == viewer
        client.force_login(viewer)
        page = client.get(f"/queries/{query.pk}/").content.decode()
        assert "There is nothing to search with" in page
        assert ("Try again" in page) is is_own
        answer = client.post(f"/queries/{query.pk}/embed/")
        assert answer.status_code == (302 if is_own else 403)
        jobs = Job.objects.filter(kind="query_embed", target_id=query.pk)
        assert jobs.count() == (2 if is_own else 1)


def world_page(world, query):

    client = client_of(world.user)
    return client.get(f"/queries/{query.pk}/").content.decode()


@pytest.mark.parametrize(
    ("requested", "expected"),
    [
        ({"source": QuerySource.AREA}, "canvas"),
        ({"source": QuerySource.EXAMPLES}, "liked"),
        ({"source": QuerySource.PICTURE}, "picture"),
        ({"source": QuerySource.PICTURE, "upload": b"x", "kind": "histology"}, "lab|mpp"),
        ({"source": QuerySource.AREA, "scale": 9.0}, "scale"),
    ],
)
def test_missing_fields_are_errors(world, requested, expected):
    with pytest.raises(InvalidInputError, match=expected):
        query_create(data=QueryData(**requested), user=world.user)


def test_rest_creates_queries_and_returns_hits(world, neighbours, api_as):
    api = api_as(world.user)
    canvas = world.canvas(world.case("A1", "p1"))
    body = {"source": "area", "canvas": str(canvas.pk), "geometry": square(100, 100)}
    answer = api.post("/api/v1/queries/", body, format="json")
    assert answer.status_code == 202
    assert "/jobs/" in answer["Location"]
    assert api.get(answer.json()["similar_url"]).status_code == 202
    world.run_jobs()
    similar = api.get(answer.json()["similar_url"] + "?facets=true").json()
    assert (similar["roi"], similar["query"]) == (None, answer.json()["id"])
    assert [hit["roi"]["id"] for hit in similar["results"]] == [str(roi.pk) for roi in neighbours]
    assert similar["facets"]["regions"] == 3
    shown = api.get(f"/api/v1/queries/{answer.json()['id']}/").json()
    assert shown["is_embedded"]
    assert world_client(world).get(shown["picture_url"])["Content-Type"] == "image/jpeg"
    picture = {"source": "picture", "kind": "histology", "mpp": 1}
    picture["picture"] = base64.b64encode(png()).decode()
    assert api.post("/api/v1/queries/", picture, format="json").status_code == 202
    wrong = api.post("/api/v1/queries/", picture | {"picture": "%%"}, format="json")
    assert (wrong.status_code, "base64" in wrong.content.decode()) == (400, True)
    assert api.delete(f"/api/v1/queries/{answer.json()['id']}/").status_code == 204
    assert api.get(f"/api/v1/queries/{answer.json()['id']}/").status_code == 404


def world_client(world):

    return client_of(world.user)


def test_the_query_count_of_report_pages_is_constant(world, neighbours):
    query = query_create(data=area(world.canvas(world.case("A1", "p1"))), user=world.user)
    world.run_jobs()
    page = world_client(world)
    page.get(f"/queries/{query.pk}/")
    with CaptureQueriesContext(connection) as few:
        text = page.get(f"/queries/{query.pk}/").content.decode()
    assert "B2" in text
    for n in range(3, 6):
        world.embedded(world.canvas(world.case(f"B{n}", f"q{n}")), 100 + 20 * n, 100)
    with CaptureQueriesContext(connection) as more:
        page.get(f"/queries/{query.pk}/")
    assert len(more) <= len(few) + 1
    assert "Area on Slide of A1" in page.get("/queries/").content.decode()


def test_the_forms_of_viewer_and_page_lead_to_the_answer(world, neighbours):
    page = world_client(world)
    canvas = neighbours[0].canvas
    sent = {"canvas": canvas.pk, "geometry": "", "frame_pts": "", "source": "rois"}
    answer = page.post("/queries/ask/", sent, follow=True)
    assert "regions of this slide" in answer.content.decode()
    assert page.post("/queries/ask/", {"source": "area", "canvas": "x"}).status_code == 400
    sent = {"kind": "histology", "mpp": "", "picture": io.BytesIO(png())}
    assert "Enter how many microns" in page.post("/queries/picture/", sent).content.decode()
    sent = {"kind": "histology", "mpp": "0.5", "picture": io.BytesIO(png())}
    assert page.post("/queries/picture/", sent).status_code == 302
    assert "Preparing this query" in world_page(world, Query.objects.first())
    assert "Search in" not in page.get("/queries/picture/").content.decode()


def test_members_of_several_labs_choose_the_searched_lab(world, other_lab):
    Membership.objects.create(user=world.user, lab=other_lab, role="viewer")
    page = world_client(world)
    assert "Search in" in page.get("/queries/picture/").content.decode()
    sent = {"kind": "histology", "mpp": "0.5", "picture": io.BytesIO(png())}
    assert page.post("/queries/picture/", sent).status_code == 200, "it was not said"
    sent = {"kind": "histology", "mpp": "0.5", "picture": io.BytesIO(png()), "lab": other_lab.slug}
    assert page.post("/queries/picture/", sent).status_code == 302
    assert Query.objects.get().lab == other_lab


def test_old_queries_are_removed(world, neighbours):
    requested = QueryData(source=QuerySource.EXAMPLES, liked=(neighbours[0].pk,))
    old, new = (query_create(data=requested, user=world.user) for _ in range(2))
    Query.objects.filter(pk=old.pk).update(created_at=timezone.now() - timedelta(days=31))
    assert queries_sweep() == 1
    assert list(Query.objects.all()) == [new]


def test_an_entire_frame_is_embedded(world, monkeypatch):
    canvas = world.canvas(world.case("V1"), kind="video")
    frame = np.zeros((SIDE, SIDE, 3), np.uint8)
    monkeypatch.setattr("portal.search.tasks.queries.frame_pixels", lambda canvas, pts: frame)
    requested = QueryData(source=QuerySource.FRAME, canvas_id=canvas.pk)
    with pytest.raises(InvalidInputError, match="frame_pts"):
        query_create(data=requested, user=world.user)
    seen = []
    from ml.roi import load_encoder

    scope = load_encoder("endoscopy")
    plain = scope._embedded
    scope.embed_image = lambda image, polygon, *, mpp=None, progress: (
        seen.append((image.shape, polygon)) or plain(_Box(), progress)
    )
    requested = QueryData(source=QuerySource.FRAME, canvas_id=canvas.pk, frame_pts=0)
    query = query_create(data=requested, user=world.user)
    world.run_jobs()
    assert seen == [((SIDE, SIDE, 3), None)]
    assert query_scale(query) is None, "a field of view says nothing of how wide its hits are"
    area_of = query_create(data=area(world.canvas(world.case("A1"))), user=world.user)
    assert query_scale(area_of).tag == "64px"
