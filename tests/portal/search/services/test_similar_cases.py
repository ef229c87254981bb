"""Diffusion of hits and expansion of queries, by the portal's settings."""

from __future__ import annotations

import pytest

from portal.annotations.models import Roi
from portal.archive.models import Modality
from portal.archive.services.cases import case_delete
from portal.core.errors import NotFoundError
from portal.embeddings.models import Encoder
from portal.jobs.models import Job
from portal.search.services import similar_cases
from portal.search.services.similar_cases import diffuse_default, expand_default, roi_search


@pytest.fixture
def search_cases(world):
    query = world.embedded(world.canvas(world.case("A1", "p1")), 100, 100)
    other = world.canvas(world.case("A2", "p2"))
    for left in (120, 140, 160, 180):
        world.embedded(other, left, 100)
    roi = Roi.objects.select_related("canvas__case").get(pk=query.pk)
    return lambda **options: roi_search(roi=roi, user=world.user, options=options)


def test_queries_are_expanded_by_the_setting_unless_requested(search_cases, settings, monkeypatch):
    assert search_cases().expanded_by == ()  # among four there is no company to learn from
    monkeypatch.setattr(similar_cases, "EXPAND_FROM", 4)
    assert len(search_cases().expanded_by) == 3
    assert len(search_cases(expand=1).expanded_by) == 1
    assert search_cases(expand=0).expanded_by == search_cases(diffuse=False).expanded_by == ()
    settings.TESSERA_SEARCH_EXPAND = 0
    assert search_cases().expanded_by == ()
    assert len(search_cases(expand=2).expanded_by) == 2


def test_a_setting_above_the_maximum_is_clamped(search_cases, settings, monkeypatch):
    settings.TESSERA_SEARCH_EXPAND = 50
    monkeypatch.setattr(similar_cases, "EXPAND_FROM", 4)
    assert search_cases().query.expand == 10


def test_expansion_and_diffusion_are_for_histology_only(settings):
    settings.TESSERA_SEARCH_EXPAND = 3
    for kind, by, over in ((Modality.ENDOSCOPY, 0, False), (Modality.HISTOLOGY, 3, True)):
        assert (expand_default(Encoder(kind=kind)), diffuse_default(Encoder(kind=kind))) == (
            by,
            over,
        )


def test_hits_are_diffused_unless_disabled_or_ordered_by_distance(search_cases, settings):
    assert search_cases().query.diffuse and search_cases(expand=2).query.diffuse
    assert (
        not search_cases(expand=0).query.diffuse and not search_cases(diffuse=False).query.diffuse
    )
    assert search_cases(expand=0, diffuse=True).query.diffuse
    settings.TESSERA_SEARCH_DIFFUSE = False
    assert not search_cases().query.diffuse


def test_a_region_of_a_slide_trashed_during_the_search_is_not_found(world):
    """Somebody deletes the slide between the look-up of the region and the search."""
    fresh = world.roi(world.canvas(world.case("A1", "p1")))
    Job.objects.all().delete()
    roi = Roi.objects.select_related("canvas__case").get(pk=fresh.pk)
    case_delete(case=roi.canvas.case, user=world.user)
    with pytest.raises(NotFoundError):
        roi_search(roi=roi, user=world.user, options={})
    assert not Job.objects.exists()
