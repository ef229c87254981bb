"""Expanded queries: both passes keep to what may be found, and distances stay the ROI's own."""

from __future__ import annotations

import numpy as np
import pytest

from ml.index.ranking.calibration import Calibration
from ml.index.ranking.diffusion import diffused_distances
from ml.index.ranking.expansion import expanded_query
from portal.annotations.models import Roi
from portal.annotations.services.rois import roi_delete
from portal.core.errors import InvalidInputError
from portal.embeddings.indexes import Scope
from portal.embeddings.models import Embedding, Encoder
from portal.embeddings.selectors.encoders import encoder_default
from portal.embeddings.services.indexes import index_build_submit
from portal.search.selectors.filters import Filters
from portal.search.selectors.similar_cases import SimilarQuery, similar_search
from tests.portal.embedded_rois import box_vector


def search(world, roi, **options):
    roi = Roi.objects.select_related("canvas__case").get(pk=roi.pk)
    return similar_search(world.user, SimilarQuery(roi=roi, encoder=encoder_default(), **options))


def vector(roi):
    return box_vector((roi.left, roi.top, roi.right, roi.bottom)).astype(np.float64)


def embedding_id(roi):
    return Embedding.objects.get(roi=roi, superseded_at__isnull=True).pk


def plain_expansion(query, others, by):
    """An independent answer: expanded by the ``by`` nearest, ordered by distance, ties by id."""

    def order(origin):
        return sorted(
            others, key=lambda roi: (np.linalg.norm(vector(roi) - origin), embedding_id(roi))
        )

    nearest = order(vector(query))[:by]
    moved = expanded_query(vector(query), np.stack([vector(roi) for roi in nearest]))
    return nearest, order(moved)


@pytest.fixture
def story(world):
    """A query, its patient's other region, and a stranger's: three to the right, one to the left
    that is nearer than the third but in the other direction."""
    query_case = world.case("A1", "p1")
    query = world.embedded(world.canvas(query_case), 150, 150)
    sibling = world.embedded(world.canvas(query_case), 152, 150)
    other = world.canvas(world.case("A2", "p2", organ="Colon"))
    others = [
        world.embedded(other, left, top)
        for left, top in ((110, 150), (200, 150), (195, 160), (215, 150))
    ]
    return query, sibling, others


def build_index(world):
    index_build_submit(scope=Scope(Encoder.objects.get(), world.lab.pk))
    world.run_jobs()


@pytest.mark.parametrize("is_indexed", [False, True])
def test_expanded_queries_order_the_hits_and_distances_are_to_the_roi(world, story, is_indexed):
    query, _, others = story
    if is_indexed:
        build_index(world)
    nearest, expected = plain_expansion(query, others, 3)
    plain, result = search(world, query), search(world, query, expand=3)
    outcome = [hit.roi for hit in result.hits]
    assert outcome == expected
    assert outcome != [hit.roi for hit in plain.hits], "the story must tell the two orders apart"
    assert [hit.distance for hit in result.hits] == pytest.approx(
        [np.linalg.norm(vector(roi) - vector(query)) for roi in expected]
    )
    assert set(result.expanded_by) == {embedding_id(roi) for roi in nearest}
    assert plain.expanded_by == ()


@pytest.mark.parametrize("expand", [0, 3])
def test_diffusion_uses_only_allowed_regions(world, story, expand):
    """The order is that of ``diffused_distances``; distances stay the ROI's own."""
    query, sibling, others = story
    moved = vector(query)
    if expand:
        nearest, _ = plain_expansion(query, others, expand)
        moved = expanded_query(moved, np.stack([vector(roi) for roi in nearest]))
    stacked = np.stack([vector(roi) for roi in others])
    by_distance = np.argsort(np.linalg.norm(stacked - moved, axis=1))
    away = diffused_distances(vector(query), stacked[by_distance], expanded=moved)
    expected = [others[i] for i in by_distance[np.argsort(away, kind="stable")]]
    result = search(world, query, expand=expand, diffuse=True)
    assert [hit.roi for hit in result.hits] == expected
    assert len(search(world, query, expand=expand, diffuse=True, k=2).hits) == 2
    assert [hit.distance for hit in result.hits] == pytest.approx(
        [np.linalg.norm(vector(roi) - vector(query)) for roi in expected]
    )
    assert sibling not in [hit.roi for hit in result.hits]


def test_the_same_patient_neither_expands_nor_is_found(world, story):
    query, sibling, _ = story
    result = search(world, query, expand=3)
    assert embedding_id(sibling) not in result.expanded_by
    assert sibling not in [hit.roi for hit in result.hits]
    included = search(world, query, expand=3, exclude_same_patient=False)
    assert embedding_id(sibling) in included.expanded_by
    assert embedding_id(query) not in included.expanded_by


def test_filters_hold_in_both_passes(world, story):
    query, _, _ = story
    lung = world.canvas(world.case("A3", "p3", organ="Lung"))
    stored = [world.embedded(lung, left, 300) for left in (10, 40)]
    result = search(world, query, expand=3, filters=Filters(organ="Lung"))
    assert set(result.expanded_by) == {embedding_id(roi) for roi in stored}
    assert {hit.roi for hit in result.hits} == set(stored)


def test_another_labs_regions_do_not_expand(world, story, other_lab, stranger):
    query, _, others = story
    theirs = world.canvas(world.case("B1", lab=other_lab))
    foreign = world.embedded(theirs, 150, 150, user=stranger)
    result = search(world, query, expand=3)
    assert embedding_id(foreign) not in result.expanded_by
    assert {hit.roi for hit in result.hits} == set(others)


def test_deleted_regions_do_not_expand_queries(world, story):
    query, _, others = story
    doomed = world.canvas(world.case("A4", "p4"))
    world.embedded(doomed, 151, 150)
    build_index(world)
    roi_delete(roi=others[2], user=world.user, expected_version=1)
    doomed.delete()
    left = [others[0], others[1], others[3]]
    nearest, expected = plain_expansion(query, left, 2)
    result = search(world, query, expand=2)
    assert [hit.roi for hit in result.hits] == expected
    assert set(result.expanded_by) == {embedding_id(roi) for roi in nearest}


def test_a_deletion_during_a_search_still_returns_k_hits(world, story, monkeypatch):
    """A region goes after it was found and before its row is read: the next one takes its place."""
    from portal.search.selectors import similar_cases as search_module

    query, _, others = story
    before = [hit.roi.pk for hit in search(world, query, k=4).hits]
    read, deleted = search_module.hits_of, []

    def slow(user, ids):
        if not deleted:
            deleted.append(roi_delete(roi=others[0], user=world.user, expected_version=1))
        return read(user, ids)

    monkeypatch.setattr(search_module, "hits_of", slow)
    after = [hit.roi.pk for hit in search(world, query, k=3).hits]
    assert others[0].pk in before[:3] and len(after) == 3
    assert after == [pk for pk in before if pk != others[0].pk]


def test_closeness_is_decided_by_the_distance_to_the_roi_itself(world, story, monkeypatch):
    query, _, others = story
    nearest = min(others, key=lambda roi: np.linalg.norm(vector(roi) - vector(query)))
    distance = float(np.linalg.norm(vector(nearest) - vector(query)))

    def calibrate(level):
        # The nearest of four: one in fifty within the level is too many, one in a hundred is not.
        calibration = Calibration.from_quantiles([0.01, 0.02, 0.9], [level, level + 0.05, 500.0])
        monkeypatch.setattr(
            "portal.search.selectors.hits.calibration_of", lambda config_hash: calibration
        )
        return search(world, query, expand=3, k=1)

    calibrated = calibrate(distance + 0.1)
    assert calibrated.hits[0].roi != nearest and calibrated.hits[0].is_close is False
    assert not calibrated.says_nothing_close, "the nearest is close, though it is not on the page"
    assert calibrate(distance - 0.1).says_nothing_close


def test_an_empty_set_has_no_expansion_and_no_hits(world):
    single = world.embedded(world.canvas(world.case("A1")), 100, 100)
    result = search(world, single, expand=3)
    assert (result.hits, result.expanded_by, result.says_nothing_close) == ((), (), False)


@pytest.mark.parametrize("expand", [-1, 11])
def test_an_invalid_expansion_is_a_bad_request(world, story, expand):
    with pytest.raises(InvalidInputError, match="expand:"):
        search(world, story[0], expand=expand)


def test_an_expanded_search_takes_one_more_query(world, story, django_assert_max_num_queries):
    query, _, _ = story
    build_index(world)
    roi = Roi.objects.select_related("canvas__case").get(pk=query.pk)
    requested = SimilarQuery(roi=roi, encoder=encoder_default(), expand=3)
    with django_assert_max_num_queries(11):
        assert len(similar_search(world.user, requested).hits) == 4
