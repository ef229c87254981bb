"""Explanations are computed once, for users who may see both regions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from types import SimpleNamespace

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from portal.core.errors import InvalidInputError, NotFoundError
from portal.jobs.models import Job, JobState
from portal.search.models import Explanation, Query, QuerySource
from portal.search.services.explanations import (
    explanations_sweep,
    query_match_explain,
    roi_match_explain,
)
from portal.search.services.queries import QueryData, query_create
from tests.clients import client_of
from tests.portal.embedded_rois import BoxEncoder, square


@dataclass
class PlacedHere:
    pixels: object
    polygon: object = None
    mpp: float | None = None
    stain: object = None


@pytest.fixture
def explains(encoder, monkeypatch):
    """Explanations of two patches of each region, in its corners."""

    def vertices(seen):
        left, top, right, bottom = seen.polygon.bounds if seen.polygon else (0, 0, 60, 40)
        boxes = [[left, top, left + 5, top + 5], [right - 5, bottom - 5, right, bottom]]
        return SimpleNamespace(
            boxes_l0=np.array(boxes, float), colours=np.ones(1), is_normalised=True, stain_note=""
        )

    def explain_regions(network, a, b, *, progress):
        network._embedded(a.polygon or SimpleNamespace(bounds=(0, 0, 60, 40)), progress)
        explained = SimpleNamespace(
            similarity=0.75,
            distance=0.5,
            contributions_a=np.array([0.8, -0.05]),
            contributions_b=np.array([0.5, 0.25]),
            pairs=(SimpleNamespace(a=0, b=1, contribution=0.5, share=0.625),),
            half_from=lambda: (0.5, 0.5),
        )
        return explained, vertices(a), vertices(b)

    monkeypatch.setattr("ml.roi.explain.regions.PlacedRegion", PlacedHere)
    monkeypatch.setattr("ml.roi.explain.regions.explain_regions", explain_regions)
    monkeypatch.setattr("ml.roi.explain.regions.stain_counterpart", lambda network: network)
    monkeypatch.setattr("ml.roi.explain.colour.colour_overlap", lambda a, b: 0.61)
    monkeypatch.setattr("ml.roi.embed.RoiEncoder", BoxEncoder)
    return encoder


@pytest.fixture
def two(world, explains):
    return [
        world.embedded(world.canvas(world.case(f"A{n}", f"p{n}")), 100 + 10 * n, 100)
        for n in range(2)
    ]


def explain(world, roi, other, **options):
    return roi_match_explain(roi=roi, other=other, lab_id=world.lab.pk, user=world.user, **options)


def page_of(user):
    return client_of(user)


def test_a_match_is_computed_once(world, two, explains):
    job = explain(world, *two)
    assert isinstance(job, Job)
    assert explain(world, *two).pk == job.pk, "asking again waits for the same"
    world.run_jobs()
    explanation, calls = explain(world, *two), explains.calls
    assert (explanation.similarity, explanation.colour, explanation.other_distance) == (
        0.75,
        0.61,
        0.5,
    )
    assert list(explanation.boxes_a[0]) == [100.0, 100.0, 105.0, 105.0]
    assert explanation.pairs[0].share == 0.625
    assert explain(world, *two) == explanation
    world.run_jobs()
    assert explains.calls == calls
    assert explanations_sweep() == 0
    Explanation.all_objects.update(created_at=timezone.now() - timedelta(days=40))
    assert explanations_sweep() == 1


def test_a_redrawn_region_is_explained_again(world, two):
    from portal.annotations.services.fields import RoiChanges
    from portal.annotations.services.rois import roi_update

    explain(world, *two)
    world.run_jobs()
    changes = RoiChanges(geometry=square(150, 150))
    roi_update(roi=two[1], user=world.user, expected_version=1, changes=changes)
    with pytest.raises(NotFoundError):
        explain(world, *two)
    world.run_jobs()
    two[1].refresh_from_db()
    assert isinstance(explain(world, *two), Job)


@pytest.mark.parametrize("points", [0, 2])
def test_key_points_are_shown_or_none_in_common(world, two, api_as, monkeypatch, points):
    monkeypatch.setattr("ml.roi.keypoints.encoder.KeypointEncoder", BoxEncoder)
    rows = np.arange(2.0 * points).reshape(points, 2)
    explained = SimpleNamespace(xy_a=rows, xy_b=rows + 1, found_a=31, found_b=24, views=6)
    monkeypatch.setattr(
        "ml.roi.explain.keypoints.match_regions", lambda network, a, b, *, progress: explained
    )
    explain(world, *two)
    world.run_jobs()
    body = api_as(world.user).get(f"/api/v1/rois/{two[0].pk}/similar/{two[1].pk}/").json()
    page = (
        page_of(world.user)
        .get(f"/rois/{two[0].pk}/similar/explanation/{two[1].pk}/")
        .content.decode()
    )
    assert body["key_points_compared"] == {"query": 31, "hit": 24, "views": 6}
    assert len(body["key_points"]) == points
    no_matches = "No common key points: similar by appearance only."
    assert body["note"] == ("" if points else no_matches)
    assert (no_matches in page) is not bool(points)
    assert "31 and 24 key points" in page and "at 6 pairs of sizes" in page
    assert ("<strong>2 places</strong>" in page) is bool(points)


def test_the_page_and_rest_wait_for_the_explanation(world, two, api_as):
    page, api = page_of(world.user), api_as(world.user)
    address = f"/rois/{two[0].pk}/similar/explanation/{two[1].pk}/"
    assert (
        f"similar/explanation/{two[1].pk}/"
        in page.get(f"/rois/{two[0].pk}/similar/").content.decode()
    )
    assert 'hx-trigger="every 2s"' in page.get(address).content.decode()
    rest = f"/api/v1/rois/{two[0].pk}/similar/{two[1].pk}/"
    assert api.get(rest).status_code == 202
    world.run_jobs()
    with CaptureQueriesContext(connection) as requested:
        text = page.get(address).content.decode()
    assert "61 % of their tissue has the same colours" in text
    assert "data:image/png;base64," in text and "2.7×" in text
    assert len(requested) < 25
    body = api.get(rest).json()
    assert body["key_points_compared"] is None and body["note"] == ""
    assert body["pairs"] == [{"query": 0, "hit": 1, "adds": 0.5, "share": 0.625}]
    assert sum(patch["adds"] for patch in body["query_patches"]) == pytest.approx(0.75)
    assert body["stain"]["same_colours"] == 0.61


def test_a_failure_is_shown_and_can_be_retried(world, two, explains):
    page, address = page_of(world.user), f"/rois/{two[0].pk}/similar/explanation/{two[1].pk}/"
    explains.fails_with = ValueError("broken")
    page.get(address)
    world.run_jobs()
    assert Job.objects.filter(kind="match_explain", state=JobState.FAILED).count() == 1
    text = page.get(address).content.decode()
    assert "could not be explained" in text and "Try again" in text
    explains.fails_with = None
    assert page.post(address).status_code == 302
    world.run_jobs()
    assert "Where the similarity comes from" in page.get(address).content.decode()


def test_a_query_is_explained_where_it_has_pixels(world, two, api_as):
    canvas = world.canvas(world.case("B1", "q1"))
    requested = QueryData(source=QuerySource.AREA, canvas_id=canvas.pk, geometry=square(100, 100))
    query = query_create(data=requested, user=world.user)
    page, address = page_of(world.user), f"/queries/{query.pk}/explanation/{two[0].pk}/"
    assert "still being embedded" in page.get(address).content.decode()
    world.run_jobs()
    query.refresh_from_db()
    assert isinstance(query_match_explain(query=query, other=two[0], user=world.user), Job)
    world.run_jobs()
    assert "Where the similarity comes from" in page.get(address).content.decode()
    picture = page.get(f"/queries/{query.pk}/picture.jpg?size=close")
    assert picture["Content-Type"] == "image/jpeg"
    examples = QueryData(source=QuerySource.EXAMPLES, liked=(two[1].pk,))
    several = query_create(data=examples, user=world.user)
    with pytest.raises(InvalidInputError, match="several"):
        query_match_explain(query=several, other=two[0], user=world.user)
    text = page.get(f"/queries/{several.pk}/").content.decode()
    assert "data-explanation" not in text
    answer = api_as(world.user).get(f"/api/v1/queries/{several.pk}/similar/{two[0].pk}/")
    assert (answer.status_code, answer.json()["code"]) == (400, "nothing-to-explain")


def test_a_judgement_is_deleted_with_either_region(world, two):
    for deletions in range(2):
        explain(world, *two)
        world.run_jobs()
        assert Explanation.all_objects.exists()
        two[deletions].embeddings.all().delete()
        assert not Explanation.all_objects.exists()
        two[deletions] = world.embedded(two[deletions].canvas, 200, 200)
    assert not Query.objects.exists()
