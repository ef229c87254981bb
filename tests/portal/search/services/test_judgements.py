"""Marks on hits: whose they are, what a search does with them."""

from __future__ import annotations

import uuid

import numpy as np
import pytest

from portal.annotations.models import Roi
from portal.annotations.services.rois import roi_delete, roi_update
from portal.core.errors import InvalidInputError, NotFoundError
from portal.search.models import Judgement, Verdict
from portal.search.services.judgements import judgement_clear, judgement_set
from portal.search.services.similar_cases import roi_search
from tests.portal.embedded_rois import box_vector, square

URL = "/api/v1/rois/{}/judgements/"


@pytest.fixture
def story(world):
    """A query at 100, and hits to its left and right, as far away."""
    query = world.embedded(world.canvas(world.case("A1", "p1")), 100, 100)
    canvas = world.canvas(world.case("A2", "p2"))
    left = [world.embedded(canvas, 100 - far, 100) for far in (30, 40, 50)]
    right = [world.embedded(canvas, 100 + far, 100) for far in (31, 41, 51)]
    return Roi.objects.select_related("canvas__case").get(pk=query.pk), left, right


def judged_search(world, roi, **options):
    options = {"expand": 0} | options
    result = roi_search(roi=roi, user=world.user, options=options, use_judgements=True)
    return [hit.roi for hit in result.hits], result


def test_marks_move_the_next_search(world, story):
    query, left, right = story
    judgement_set(roi=query, other_id=right[2].pk, verdict=Verdict.ALIKE, user=world.user)
    judgement_set(roi=query, other_id=left[0].pk, verdict=Verdict.UNLIKE, user=world.user)
    rois, result = judged_search(world, query)
    assert result.refined_by == 2
    assert left[0] not in rois
    assert rois == plain(query, [*left[1:], *right], [right[2]], [left[0]])
    assert rois[0] in right
    judgement_clear(roi=query, other_id=left[0].pk, user=world.user)
    judgement_clear(roi=query, other_id=right[2].pk, user=world.user)
    rois, result = judged_search(world, query)
    assert (rois[0], result.refined_by) == (left[0], 0)


def plain(query, rois, liked, unliked):
    def vector(roi):
        bounds = (roi.left, roi.top, roi.right, roi.bottom)
        return box_vector(bounds).astype(np.float64)

    moved = vector(query) + 0.75 * np.mean([vector(r) for r in liked], axis=0)
    moved -= 0.15 * np.mean([vector(r) for r in unliked], axis=0)
    moved *= np.linalg.norm(vector(query)) / np.linalg.norm(moved)
    return sorted(rois, key=lambda roi: np.linalg.norm(vector(roi) - moved))


def test_the_last_judgement_of_each_person_counts(world, story, manager):
    query, left, _ = story
    for verdict in (Verdict.ALIKE, Verdict.UNLIKE):
        judgement_set(roi=query, other_id=left[0].pk, verdict=verdict, user=world.user)
    assert [mark.verdict for mark in Judgement.objects.all()] == [Verdict.UNLIKE]
    result = roi_search(roi=query, user=manager, options={"expand": 0}, use_judgements=True)
    assert result.hits[0].roi == left[0], "another person's marks are hers"


def test_judgements_of_deleted_or_redrawn_regions_are_ignored(world, story):
    query, left, right = story
    for roi in (left[0], right[0]):
        judgement_set(roi=query, other_id=roi.pk, verdict=Verdict.ALIKE, user=world.user)
    roi_delete(roi=left[0], user=world.user, expected_version=1)
    changes = {"geometry": square(300, 300)}
    roi_update(roi=right[0], user=world.user, expected_version=1, changes=changes)
    rois, result = judged_search(world, query)
    assert result.refined_by == 0
    assert left[0] not in rois


def test_a_region_of_another_lab_of_the_same_person_is_not_compared(world, story, other_lab):
    """Nothing crosses labs, whoever asks."""
    from portal.labs.models import Membership

    query, _, _ = story
    Membership.objects.create(user=world.user, lab=other_lab, role="annotator")
    theirs = world.embedded(world.canvas(world.case("B1", lab=other_lab)))
    with pytest.raises(NotFoundError):
        judgement_set(roi=query, other_id=theirs.pk, verdict=Verdict.ALIKE, user=world.user)
    for name in ("liked", "unliked"):
        with pytest.raises(InvalidInputError, match="no region"):
            judged_search(world, query, **{name: (theirs.pk,)})


def test_judgements_over_rest(api, world, story):
    query, left, right = story
    url = URL.format(query.pk)
    response = api.post(url, {"other": str(left[0].pk), "verdict": "unlike"})
    assert (response.status_code, response.json()["verdict"]) == (200, "unlike")
    assert [row["other"] for row in api.get(url).json()["results"]] == [str(left[0].pk)]
    body = {"roi": str(query.pk), "judged": True, "liked": [str(right[0].pk)]}
    answer = api.post("/api/v1/search/", body).json()
    assert answer["refined_by"] == 2 and answer["expanded_by"] == []
    assert str(left[0].pk) not in [hit["roi"]["id"] for hit in answer["results"]]
    assert api.delete(f"{url}{left[0].pk}/").status_code == 204
    assert api.get(url).json()["results"] == []
    assert api.post(url, {"other": str(left[0].pk), "verdict": "maybe"}).status_code == 400
    many = {"roi": str(query.pk), "liked": [str(uuid.uuid4())] * 51}
    assert api.post("/api/v1/search/", many).status_code == 400


def test_judgements_over_rest_are_paged(api, story):
    query, left, right = story
    others = [str(roi.pk) for roi in (*left, *right)]
    for other in others:
        api.post(URL.format(query.pk), {"other": other, "verdict": "alike"})
    there, result = f"{URL.format(query.pk)}?page_size=4", []
    while there:
        page = api.get(there).json()
        result += [row["other"] for row in page["results"]]
        there = page["next"]
    assert result == others


def test_hits_are_judged_on_the_page(page, world, story):
    query, left, right = story
    address = f"/rois/{query.pk}/judge/?k=10"
    mark = {"other": str(left[0].pk), "verdict": "unlike"}
    assert page.post(address, mark)["Location"] == f"/rois/{query.pk}/similar/?k=10"
    text = page.post(
        address, {"other": str(right[0].pk), "verdict": "alike"}, headers={"HX-Request": "true"}
    ).content.decode()
    assert "<html" not in text
    assert "1 region marked as not alike, left out" in text
    assert "ordered by this region and your 2 marks" in text
    assert 'aria-pressed="true"' in text
    unmarked = page.get(f"/rois/{query.pk}/similar/?unmarked=on").content.decode()
    assert "your 2 marks" not in unmarked
    assert page.post(address, {"other": "x"}).status_code == 400
