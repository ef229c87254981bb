"""Find similar here: places of a slide most similar to an ROI and without one."""

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
from portal.annotations.services.rois import roi_create, roi_delete
from portal.archive.services.scale import canvas_scale_set
from portal.core.errors import ConflictError, InvalidInputError
from portal.explore.models import TissueSample
from portal.explore.selectors.similar_regions import SimilarRegions
from portal.explore.services.similar_regions import samples_sweep, side_of, similar_regions_or_job
from portal.explore.tasks import tissue_samples as tasks
from portal.jobs.models import Job, JobState
from portal.reader_studies.services.assignments import ReadingPlan
from portal.reader_studies.services.studies import readings_assign, study_create, study_unblind
from tests.portal.embedded_rois import SIDE, square

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
        answer = similar_regions_or_job(roi=roi, user=user or world.user, **options)
        if isinstance(answer, SimilarRegions):
            return answer
        world.run_jobs()
    raise AssertionError(f"still {answer}")


def overlap(a, b):
    width, height = (min(a[i + 2], b[i + 2]) - max(a[i], b[i]) for i in (0, 1))
    return max(width, 0) * max(height, 0)


def middle(bounds):
    return (bounds[0] + bounds[2]) / 2, (bounds[1] + bounds[3]) / 2


def test_similar_regions_are_ordered_apart_and_not_drawn_on(world, slide, roi):
    answer = found(world, roi)
    assert answer.side_px == 32
    assert answer.tried == answer.total > 100
    distances = [region.distance for region in answer.regions]
    assert distances == sorted(distances)
    boxes = [region.bounds for region in answer.regions]
    # the encoder of the tests measures where a square is: the next ones lie around the ROI
    assert all(np.hypot(*np.subtract(middle(b), (116, 116))) < 60 for b in boxes[:4])
    for at, item in enumerate(boxes):
        assert overlap(item, (100, 100, 132, 132)) <= 0.2 * 32 * 32
        assert all(overlap(item, other) <= 0.25 * 32 * 32 + 1e-6 for other in boxes[:at])
        assert overlap(item, TISSUE) >= 0.4 * 32 * 32
    drawn = roi_create(canvas=slide, user=world.user, geometry=square(*boxes[0][:2], side=32)).roi
    after = found(world, roi)
    assert boxes[0] not in [region.bounds for region in after.regions]
    assert after.drawn_on > answer.drawn_on
    roi_delete(roi=drawn, user=world.user, expected_version=1)
    assert [region.bounds for region in found(world, roi).regions] == boxes
    assert len(found(world, roi, limit=2).regions) == 2


def test_a_square_farther_than_the_tissue_of_its_slide_is_not_close(world, slide, roi):
    assert found(world, roi).regions[0].is_close is True
    roi_create(canvas=slide, user=world.user, geometry=square(40, 40, 126))  # all around it
    regions = found(world, roi).regions
    assert regions and not any(region.is_close for region in regions)


def test_tiny_and_huge_rois_do_not_cover_squares(world, slide, roi):
    best = found(world, roi).regions[0].bounds
    left, top = best[0] + 4, best[1] + 4
    roi_create(canvas=slide, user=world.user, geometry=square(left, top, 6))
    roi_create(canvas=slide, user=world.user, geometry=square(30, 30, 340))
    ring = {"type": "Point", "coordinates": [left, top]}
    roi_create(canvas=slide, user=world.user, geometry=ring)
    assert found(world, roi).regions[0].bounds == best
    roi_create(canvas=slide, user=world.user, geometry=square(left, top, 20))
    assert found(world, roi).regions[0].bounds != best


def test_a_slide_is_sampled_once_per_size(world, slide, roi, encoder):
    found(world, roi)
    calls = encoder.calls
    similar = world.embedded(slide, 200, 200, 30)
    assert side_of(similar) == side_of(roi)
    found(world, similar)
    assert encoder.calls == calls + 1  # the ROI itself
    larger = world.embedded(slide, 200, 240, 90)
    assert found(world, larger).side_px == side_of(larger) == 91
    assert TissueSample.objects.count() == 2
    assert [job.target_name for job in Job.objects.filter(kind=KIND)] == [slide.name] * 2


def test_a_repeated_request_returns_the_same_job(world, roi):
    first = similar_regions_or_job(roi=roi, user=world.user)
    assert similar_regions_or_job(roi=roi, user=world.user) == first
    assert (first.kind, first.created_by, first.target_id) == (KIND, world.user, roi.canvas_id)


def test_sampling_continues_after_a_failure_and_stops_at_its_budget(
    world, roi, encoder, monkeypatch
):
    monkeypatch.setattr(tasks, "MAX_PART", 8)
    job = similar_regions_or_job(roi=roi, user=world.user)
    embed_regions, requested = encoder.embed_regions, []

    def dies(slide, polygons, *args, **kwargs):
        requested.append(len(polygons))
        if len(requested) >= 4:
            raise ValueError("the disk is away")
        return embed_regions(slide, polygons, *args, **kwargs)

    encoder.embed_regions = dies
    world.run_jobs()
    half = TissueSample.objects.get()
    assert (half.tried, half.is_complete) == (sum(requested[:3]), False)
    encoder.embed_regions = embed_regions
    before = encoder.calls
    assert Job.objects.get(pk=job.pk).state == JobState.FAILED
    answer = found(world, roi)
    assert encoder.calls == before + answer.total - half.tried
    assert answer.looked_at == answer.tried == answer.total
    monkeypatch.setattr(tasks, "BUDGET_S", 0.0)
    TissueSample.all_objects.all().delete()
    few = found(world, roi)
    assert few.tried == tasks.FIRST_PART < few.total == answer.total
    assert few.regions


def test_glass_has_no_similar_regions_and_squares_without_a_vector_are_skipped(world, roi, encoder):
    embed = encoder.embed_region

    def refused(slide, polygon, *args, **kwargs):
        if polygon.bounds[0] > 200:
            raise EmptyRegionError("nothing there")
        return embed(slide, polygon, *args, **kwargs)

    encoder.embed_region = refused
    answer = found(world, roi)
    assert 0 < answer.looked_at < answer.tried == answer.total
    assert all(region.bounds[0] <= 200 for region in answer.regions)
    glass = world.canvas(world.case("A2"))
    encoder.embed_region = embed
    on_glass = world.embedded(glass, 20, 20, 32)
    empty = found(world, on_glass)
    assert (empty.regions, empty.looked_at, empty.total) == ((), 0, 0)


def test_incomparable_regions_are_an_error_with_a_reason(world, slide, roi):
    video = world.canvas(world.case("V1"), kind="mosaic")
    on_video = world.roi(video)
    with pytest.raises(InvalidInputError, match="histology"):
        similar_regions_or_job(roi=on_video, user=world.user)
    point = {"type": "Point", "coordinates": [90, 90]}
    mark = roi_create(canvas=slide, user=world.user, geometry=point).roi
    with pytest.raises(ConflictError, match="no area"):
        similar_regions_or_job(roi=mark, user=world.user)
    deleted = roi_delete(roi=roi, user=world.user, expected_version=1)
    with pytest.raises(ConflictError, match="deleted"):
        similar_regions_or_job(roi=deleted, user=world.user)


def test_samples_are_deleted_after_a_month_or_a_change_of_pixel_size(world, slide, roi):
    found(world, roi)
    assert samples_sweep() == 0
    TissueSample.all_objects.update(created_at=timezone.now() - timedelta(days=31))
    assert samples_sweep() == 1
    found(world, roi)
    canvas_scale_set(canvas=slide, user=world.user, mpp_x=0.5)
    assert not TissueSample.all_objects.exists()


def test_a_blinded_reader_cannot_tell_that_others_drew_regions(
    world, slide, roi, lab, reviewer, manager
):
    """Each of two readers gets the same response, after the same wait, as a sole reader."""
    other = reviewer
    study = study_create(lab=lab, user=manager, name="Blind")
    plan = ReadingPlan(canvases=[slide], people=[world.user, other])
    readings_assign(study=study, user=manager, plan=plan)
    first = found(world, roi)
    theirs = world.embedded(slide, 100, 100, 32, user=other)
    waits = similar_regions_or_job(roi=theirs, user=other)
    assert isinstance(waits, Job), "the first reader's sample would have told of them"
    assert waits.created_by == other
    own_lab = found(world, theirs, user=other)
    assert [region.bounds for region in own_lab.regions] == [
        region.bounds for region in first.regions
    ]
    best = first.regions[0].bounds
    roi_create(canvas=slide, user=world.user, geometry=square(*best[:2], side=32))
    assert found(world, theirs, user=other).regions == own_lab.regions
    study_unblind(study=study, user=manager)
    assert found(world, theirs, user=other).regions[0].bounds != best


def test_the_answer_takes_as_many_queries_whatever_is_drawn(world, slide, roi):
    found(world, roi)
    with CaptureQueriesContext(connection) as few:
        found(world, roi)
    for at in range(12):
        world.embedded(slide, 50 + 20 * at, 300, 12)
    with CaptureQueriesContext(connection) as many:
        found(world, roi)
    assert len(many) == len(few) <= 7
