"""How the portal is set decides whether hits are diffused, and queries expanded."""

from __future__ import annotations

import pytest

from portal.annotations.models import Roi
from portal.archive.services import case_delete
from portal.core.errors import NotFoundError
from portal.jobs.models import Job
from portal.retrieval.models import Encoder, EncoderKind
from portal.retrieval.services import search, similar_or_embed
from portal.retrieval.services.search import diffuse_default, expand_default


@pytest.fixture
def ask(world):
    query = world.embedded(world.canvas(world.case("A1", "p1")), 100, 100)
    other = world.canvas(world.case("A2", "p2"))
    for left in (120, 140, 160, 180):
        world.embedded(other, left, 100)
    roi = Roi.objects.select_related("canvas__case").get(pk=query.pk)
    return lambda **options: similar_or_embed(roi=roi, user=world.user, options=options)


def test_queries_are_expanded_as_the_portal_is_set_unless_told(ask, settings, monkeypatch):
    assert ask().expanded_by == ()  # among four there is no company to learn from
    monkeypatch.setattr(search, "EXPAND_FROM", 4)
    assert len(ask().expanded_by) == 3
    assert len(ask(expand=1).expanded_by) == 1
    assert ask(expand=0).expanded_by == ask(diffuse=False).expanded_by == ()
    settings.TESSERA_SEARCH_EXPAND = 0
    assert ask().expanded_by == ()
    assert len(ask(expand=2).expanded_by) == 2


def test_a_setting_beyond_the_most_is_the_most(ask, settings, monkeypatch):
    settings.TESSERA_SEARCH_EXPAND = 50
    monkeypatch.setattr(search, "EXPAND_FROM", 4)
    assert ask().query.expand == 10


def test_a_place_is_asked_for_as_it_is(settings):
    settings.TESSERA_SEARCH_EXPAND = 3
    for kind, by, over in ((EncoderKind.ENDOSCOPY, 0, False), (EncoderKind.HISTOLOGY, 3, True)):
        assert (expand_default(Encoder(kind=kind)), diffuse_default(Encoder(kind=kind))) == (
            by,
            over,
        )


def test_hits_are_diffused_unless_told_or_asked_for_by_distance(ask, settings):
    assert ask().query.diffuse and ask(expand=2).query.diffuse
    assert not ask(expand=0).query.diffuse and not ask(diffuse=False).query.diffuse
    assert ask(expand=0, diffuse=True).query.diffuse
    settings.TESSERA_SEARCH_DIFFUSE = False
    assert not ask().query.diffuse


def test_a_region_whose_slide_went_into_the_bin_meanwhile_is_not_found(world):
    """Somebody deletes the slide between the look-up of the region and the search."""
    fresh = world.roi(world.canvas(world.case("A1", "p1")))
    Job.objects.all().delete()
    roi = Roi.objects.select_related("canvas__case").get(pk=fresh.pk)
    case_delete(case=roi.canvas.case, user=world.user)
    with pytest.raises(NotFoundError):
        similar_or_embed(roi=roi, user=world.user, options={})
    assert not Job.objects.exists()
