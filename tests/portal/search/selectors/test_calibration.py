"""A search says so when nothing is close; without a calibration it says nothing."""

from __future__ import annotations

import pytest

from ml.errors import CorruptFileError
from ml.index.ranking.calibration import Calibration
from portal.annotations.models import Roi
from portal.archive.models import Case
from portal.embeddings.selectors.encoders import encoder_default
from portal.search.selectors.filters import Filters
from portal.search.selectors.similar_cases import SimilarQuery, similar_search

BANNER = "Nothing close."


@pytest.fixture
def query(world):
    requested = world.embedded(world.canvas(world.case("A1", "p1")), 100, 100)
    other = world.canvas(world.case("A2", "p2"))
    world.embedded(other, 130, 100)
    world.embedded(other, 180, 100)
    return Roi.objects.select_related("canvas__case").get(pk=requested.pk)


@pytest.fixture
def calibrate(monkeypatch):
    def by(*distances):
        calibration = Calibration.from_quantiles([0.05, 0.9], distances)
        monkeypatch.setattr(
            "portal.search.selectors.hits.calibration_of", lambda config_hash: calibration
        )

    return by


def search_of(world, roi, filters=Filters()):  # noqa: B008
    encoder = encoder_default()
    return similar_search(world.user, SimilarQuery(roi=roi, encoder=encoder, filters=filters))


def test_hits_carry_how_often_unrelated_regions_come_as_close(world, query, calibrate):
    calibrate(60.0, 110.0)
    result = search_of(world, query)
    assert [hit.is_close for hit in result.hits] == [True, False]
    assert [hit.p_value for hit in result.hits] == pytest.approx([0.025, 0.39])
    assert not result.says_nothing_close


def test_the_nearest_of_more_regions_has_to_be_nearer(world, query, calibrate):
    """One in forty comes as close: of two regions seldom, of four often; filters count."""
    calibrate(60.0, 110.0)
    other = world.canvas(world.case("A3", "p3", organ="lung"))
    for left in (300, 330):
        world.embedded(other, left, 300)
    assert search_of(world, query).says_nothing_close
    Case.objects.filter(accession="A2").update(organ="colon")
    assert not search_of(world, query, Filters(organ="colon")).says_nothing_close


def test_the_page_reports_when_no_region_is_close(page, query, calibrate):
    calibrate(10.0, 20.0)
    far = page.get(f"/rois/{query.pk}/similar/?regions=on").content.decode()
    assert BANNER in far and far.count(">not close<") == 2 and "hits__divider" not in far
    calibrate(60.0, 110.0)
    text = page.get(f"/rois/{query.pk}/similar/").content.decode()
    assert BANNER not in text and "closer than 97.5 % of unrelated regions" in text
    every = page.get(f"/rois/{query.pk}/similar/?regions=on").content.decode()
    assert every.count(">not close<") == every.count('class="hits__divider"') == 1
    assert every.index("closer than 97.5") < every.index("hits__divider")
    assert every.count('class="hits__searched"') == 1
    assert every.count('class="hit-bar"') == 2  # one scale for close hits and the rest


def test_the_answer_reports_when_no_region_is_close(api, query, calibrate):
    calibrate(10.0, 20.0)
    body = api.post("/api/v1/search/", {"roi": str(query.pk)}).json()
    assert body["nothing_close"] is True
    assert [(hit["p_value"], hit["is_close"]) for hit in body["results"]] == [(1.0, False)] * 2


def test_without_a_calibration_closeness_is_unknown(world, api, query):
    assert not search_of(world, query).says_nothing_close
    body = api.post("/api/v1/search/", {"roi": str(query.pk)}).json()
    assert body["nothing_close"] is False
    assert {hit["p_value"] for hit in body["results"]} == {None}


def test_a_search_works_with_a_damaged_calibration(world, query, monkeypatch):
    def damaged(config_hash):
        raise CorruptFileError("x.calibration.json: not a calibration")

    monkeypatch.setattr("portal.search.selectors.hits.calibration_of", damaged)
    result = search_of(world, query)
    assert len(result.hits) == 2 and result.hits[0].is_close is None
