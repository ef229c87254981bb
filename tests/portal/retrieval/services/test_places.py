"""Next similar: the places of a slide most like an ROI that nobody has drawn on."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from PIL import Image, ImageDraw

import ml.roi.stain  # noqa: F401  the encoder of the tests stands in for its parent
from ml.errors import EmptyRegionError
from portal.annotations.services import roi_create, roi_delete
from portal.core.errors import ConflictError, InvalidInputError
from portal.jobs.models import Job, JobState
from portal.reading.services import WantedReadings, readings_assign, study_create, study_unblind
from portal.retrieval.models import TissueSample
from portal.retrieval.selectors import PlacesFound
from portal.retrieval.services import places_or_job, samples_sweep
from portal.retrieval.services.embeddings import embeddings_forget
from portal.retrieval.services.places import side_of
from portal.retrieval.tasks import places as tasks
from tests.portal.retrieval.conftest import SIDE, square

TISSUE = (40, 40, 360, 360)
KIND = "tissue_sample"


@pytest.fixture
def slide(world):
    """A canvas with tissue in its middle and glass around it."""
    canvas = world.canvas(world.case("A1", "p1"))
    image = Image.new("RGB", (SIDE, SIDE), "#f5f5f5")
    ImageDraw.Draw(image).rectangle(TISSUE, fill="#c878b0")
    image.save(world.storage / canvas.pixels_path)
    return canvas


@pytest.fixture
def roi(world, slide):
    return world.embedded(slide, 100, 100, 32)


def found(world, roi, user=None, **options):
    """The places, once all jobs are done."""
    for _ in range(3):
        answer = places_or_job(roi=roi, user=user or world.user, **options)
        if isinstance(answer, PlacesFound):
            return answer
        world.run_jobs()
    raise AssertionError(f"still {answer}")


def overlap(a, b):
    width, height = (min(a[i + 2], b[i + 2]) - max(a[i], b[i]) for i in (0, 1))
    return max(width, 0) * max(height, 0)


def middle(bounds):
    return (bounds[0] + bounds[2]) / 2, (bounds[1] + bounds[3]) / 2


def test_the_most_similar_come_first_apart_and_where_nobody_drew(world, slide, roi):
    answer = found(world, roi)
    assert answer.side_px == 32
    assert answer.tried == answer.total > 100
    distances = [place.distance for place in answer.places]
    assert distances == sorted(distances)
    boxes = [place.bounds for place in answer.places]
    # the encoder of the tests measures where a square is: the next ones lie around the ROI
    assert all(np.hypot(*np.subtract(middle(b), (116, 116))) < 60 for b in boxes[:4])
    for at, one in enumerate(boxes):
        assert overlap(one, (100, 100, 132, 132)) <= 0.2 * 32 * 32
        assert all(overlap(one, other) <= 0.25 * 32 * 32 + 1e-6 for other in boxes[:at])
        assert overlap(one, TISSUE) >= 0.4 * 32 * 32
    drawn = roi_create(canvas=slide, user=world.user, geometry=square(*boxes[0][:2], side=32)).roi
    after = found(world, roi)
    assert boxes[0] not in [place.bounds for place in after.places]
    assert after.drawn_on > answer.drawn_on
    roi_delete(roi=drawn, user=world.user, expected_version=1)
    assert [place.bounds for place in found(world, roi).places] == boxes
    assert len(found(world, roi, limit=2).places) == 2


def test_nothing_is_close_that_is_farther_than_the_slides_own_tissue_from_its_like(
    world, slide, roi
):
    assert found(world, roi).places[0].is_close is True
    roi_create(canvas=slide, user=world.user, geometry=square(40, 40, 126))  # all around it
    places = found(world, roi).places
    assert places and not any(place.is_close for place in places)


def test_a_speck_and_the_surroundings_leave_a_place_free(world, slide, roi):
    best = found(world, roi).places[0].bounds
    left, top = best[0] + 4, best[1] + 4
    roi_create(canvas=slide, user=world.user, geometry=square(left, top, 6))
    roi_create(canvas=slide, user=world.user, geometry=square(30, 30, 340))
    ring = {"type": "Point", "coordinates": [left, top]}
    roi_create(canvas=slide, user=world.user, geometry=ring)
    assert found(world, roi).places[0].bounds == best
    roi_create(canvas=slide, user=world.user, geometry=square(left, top, 20))
    assert found(world, roi).places[0].bounds != best


def test_the_slide_is_looked_through_once_a_size(world, slide, roi, encoder):
    found(world, roi)
    calls = encoder.calls
    alike = world.embedded(slide, 200, 200, 30)
    assert side_of(alike) == side_of(roi)
    found(world, alike)
    assert encoder.calls == calls + 1  # the ROI itself
    larger = world.embedded(slide, 200, 240, 90)
    assert found(world, larger).side_px == side_of(larger) == 91
    assert TissueSample.objects.count() == 2
    assert [job.target_name for job in Job.objects.filter(kind=KIND)] == [slide.name] * 2


def test_asking_again_waits_for_the_same_job(world, roi):
    first = places_or_job(roi=roi, user=world.user)
    assert places_or_job(roi=roi, user=world.user) == first
    assert (first.kind, first.created_by, first.target_id) == (KIND, world.user, roi.canvas_id)


def test_it_goes_on_where_it_stopped_and_ends_when_its_time_is_spent(
    world, roi, encoder, monkeypatch
):
    monkeypatch.setattr(tasks, "PART_MOST", 8)
    job = places_or_job(roi=roi, user=world.user)
    whole, asked = encoder.embed_regions, []

    def dies(slide, polygons, *args, **kwargs):
        asked.append(len(polygons))
        if len(asked) >= 4:
            raise ValueError("the disk is away")
        return whole(slide, polygons, *args, **kwargs)

    encoder.embed_regions = dies
    world.run_jobs()
    half = TissueSample.objects.get()
    assert (half.tried, half.is_complete) == (sum(asked[:3]), False)
    encoder.embed_regions = whole
    before = encoder.calls
    assert Job.objects.get(pk=job.pk).state == JobState.FAILED
    answer = found(world, roi)
    assert encoder.calls == before + answer.total - half.tried
    assert answer.looked_at == answer.tried == answer.total
    monkeypatch.setattr(tasks, "BUDGET_S", 0.0)
    TissueSample.everything.all().delete()
    few = found(world, roi)
    assert few.tried == tasks.PART_FIRST < few.total == answer.total
    assert few.places


def test_glass_has_no_places_and_a_square_without_a_vector_is_passed_over(world, roi, encoder):
    embed = encoder.embed_region

    def refused(slide, polygon, *args, **kwargs):
        if polygon.bounds[0] > 200:
            raise EmptyRegionError("nothing there")
        return embed(slide, polygon, *args, **kwargs)

    encoder.embed_region = refused
    answer = found(world, roi)
    assert 0 < answer.looked_at < answer.tried == answer.total
    assert all(place.bounds[0] <= 200 for place in answer.places)
    glass = world.canvas(world.case("A2"))
    encoder.embed_region = embed
    on_glass = world.embedded(glass, 20, 20, 32)
    empty = found(world, on_glass)
    assert (empty.places, empty.looked_at, empty.total) == ((), 0, 0)


def test_what_cannot_be_compared_is_refused_with_a_reason(world, slide, roi):
    video = world.canvas(world.case("V1"), kind="mosaic")
    elsewhere = world.roi(video)
    with pytest.raises(InvalidInputError, match="on slides only"):
        places_or_job(roi=elsewhere, user=world.user)
    point = {"type": "Point", "coordinates": [90, 90]}
    mark = roi_create(canvas=slide, user=world.user, geometry=point).roi
    with pytest.raises(ConflictError, match="no area"):
        places_or_job(roi=mark, user=world.user)
    gone = roi_delete(roi=roi, user=world.user, expected_version=1)
    with pytest.raises(ConflictError, match="deleted"):
        places_or_job(roi=gone, user=world.user)


def test_another_pixel_size_and_a_month_take_samples_away(world, slide, roi):
    found(world, roi)
    assert samples_sweep() == 0
    TissueSample.everything.update(created_at=timezone.now() - timedelta(days=31))
    assert samples_sweep() == 1
    found(world, roi)
    embeddings_forget(canvas_id=slide.pk)
    assert not TissueSample.everything.exists()


def test_a_blinded_reader_learns_neither_where_nor_that_others_drew(
    world, slide, roi, lab, reviewer, manager
):
    """Two readers of one slide: the same answers as alone, and no answer sooner than alone."""
    other = reviewer
    study = study_create(lab=lab, user=manager, name="Blind")
    wanted = WantedReadings(canvases=[slide], people=[world.user, other])
    readings_assign(study=study, user=manager, wanted=wanted)
    first = found(world, roi)
    theirs = world.embedded(slide, 100, 100, 32, user=other)
    waits = places_or_job(roi=theirs, user=other)
    assert isinstance(waits, Job), "the first reader's sample would have told of them"
    assert waits.created_by == other
    alone = found(world, theirs, user=other)
    assert [one.bounds for one in alone.places] == [one.bounds for one in first.places]
    best = first.places[0].bounds
    roi_create(canvas=slide, user=world.user, geometry=square(*best[:2], side=32))
    assert found(world, theirs, user=other).places == alone.places
    study_unblind(study=study, user=manager)
    assert found(world, theirs, user=other).places[0].bounds != best


def test_the_answer_takes_as_many_queries_whatever_is_drawn(world, slide, roi):
    found(world, roi)
    with CaptureQueriesContext(connection) as few:
        found(world, roi)
    for at in range(12):
        world.embedded(slide, 50 + 20 * at, 300, 12)
    with CaptureQueriesContext(connection) as many:
        found(world, roi)
    assert len(many) == len(few) <= 7
