"""How the portal is set decides by how many neighbours a query is expanded."""

from __future__ import annotations

import pytest

from portal.annotations.models import Roi
from portal.archive.services import case_delete
from portal.core.errors import NotFoundError
from portal.jobs.models import Job
from portal.retrieval.models import Encoder, EncoderKind
from portal.retrieval.services import similar_or_embed
from portal.retrieval.services.search import expand_default


@pytest.fixture
def ask(world):
    query = world.embedded(world.canvas(world.case("A1", "p1")), 100, 100)
    other = world.canvas(world.case("A2", "p2"))
    for left in (120, 140, 160, 180):
        world.embedded(other, left, 100)
    roi = Roi.objects.select_related("canvas__case").get(pk=query.pk)
    return lambda **options: similar_or_embed(roi=roi, user=world.user, options=options)


def test_queries_are_expanded_by_three_unless_told(ask):
    assert len(ask().expanded_by) == 3
    assert len(ask(expand=1).expanded_by) == 1
    assert ask(expand=0).expanded_by == ()


def test_the_setting_turns_it_off_and_a_request_may_still_ask(ask, settings):
    settings.TESSERA_SEARCH_EXPAND = 0
    assert ask().expanded_by == ()
    assert len(ask(expand=2).expanded_by) == 2


def test_a_setting_beyond_the_most_is_the_most(ask, settings):
    settings.TESSERA_SEARCH_EXPAND = 50
    assert ask().query.expand == 10


def test_a_place_is_asked_for_as_it_is():
    assert expand_default(Encoder(kind=EncoderKind.ENDOSCOPY)) == 0
    assert expand_default(Encoder(kind=EncoderKind.HISTOLOGY)) == 3


def test_a_region_whose_slide_went_into_the_bin_meanwhile_is_not_found(world):
    """Somebody deletes the slide between the look-up of the region and the search."""
    fresh = world.roi(world.canvas(world.case("A1", "p1")))
    Job.objects.all().delete()
    roi = Roi.objects.select_related("canvas__case").get(pk=fresh.pk)
    case_delete(case=roi.canvas.case, user=world.user)
    with pytest.raises(NotFoundError):
        similar_or_embed(roi=roi, user=world.user, options={})
    assert not Job.objects.exists()
