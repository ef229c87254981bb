"""ROIs of several jobs embedded at once: the same rows as one by one, each error to its job."""

from __future__ import annotations

import numpy as np
import pytest

from ml.errors import EmptyRegionError
from portal.annotations.services import roi_update
from portal.jobs.worker.together import next_run
from portal.retrieval.models import Embedding, Unembeddable
from portal.retrieval.selectors import vector_of
from portal.retrieval.tasks import ahead
from tests.portal.retrieval.conftest import box_vector, jobs, square

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _together(settings):
    settings.TESSERA_EMBED_TOGETHER = 8


@pytest.fixture
def calls(encoder):
    """How many ROIs and slides each common call had."""
    real, found = encoder.embed_slides, []

    def counted(slides, progress=None):
        found.append([len(one.polygons_l0) for one in slides])
        return real(slides, progress)

    encoder.embed_slides = counted
    return found


def test_rois_of_several_slides_go_together_and_each_job_saves_its_own(world, encoder, calls):
    first, second = world.canvas(world.case("A")), world.canvas(world.case("B"))
    rois = [world.roi(first), world.roi(second, 40, 40), world.roi(first, 90, 10, 60)]
    next_run(jobs()[0].pk)
    assert sorted(calls[0]) == [1, 2] and len(calls) == 1 and encoder.calls == 3
    assert [job.state for job in jobs()] == ["succeeded"] * 3
    for roi in rois:
        row = Embedding.objects.get(roi=roi)
        box = (roi.left, roi.top, roi.right, roi.bottom)
        assert np.array_equal(vector_of(row), box_vector(box))


def test_each_error_is_told_to_its_own_job(world, encoder, calls):
    canvas = world.canvas(world.case("A"))
    good, blank = world.roi(canvas), world.roi(canvas, 200, 200, 50)
    lost = world.canvas(world.case("B"))
    world.roi(lost)
    (world.storage / lost.pixels_path).unlink()
    real = encoder._embedded

    def embedded(polygon, progress):
        if polygon.bounds[0] == 200:
            raise EmptyRegionError("all glass")
        return real(polygon, progress)

    encoder._embedded = embedded
    next_run(jobs()[0].pk)
    assert calls == [[2]]
    of = {job.target_id: job for job in jobs()}
    assert of[good.pk].state == "succeeded" and of[blank.pk].outcome == "no tissue"
    assert Unembeddable.objects.get().roi_id == blank.pk
    (third,) = [job for job in jobs() if job.target_id not in {good.pk, blank.pk}]
    assert (third.state, third.attempts) == ("queued", 1)  # its own file is looked for again


def test_an_outline_that_changed_after_the_common_work_is_embedded_again(
    world, encoder, calls, monkeypatch
):
    canvas = world.canvas(world.case("A"))
    rois = [world.roi(canvas), world.roi(canvas, 100, 100)]
    real = ahead.canvases_embed

    def moved(network, groups, progress):
        found = real(network, groups, progress)
        changes = {"geometry": square(5, 5, 90)}
        roi_update(roi=rois[1], user=world.user, expected_version=1, changes=changes)
        return found

    monkeypatch.setattr(ahead, "canvases_embed", moved)
    next_run(jobs()[0].pk)
    row = Embedding.objects.get(roi=rois[1], superseded_at=None)
    assert np.array_equal(vector_of(row), box_vector((5, 5, 95, 95)))


def test_kinds_of_encoders_are_not_mixed(world, encoder, calls):
    world.roi(world.canvas(world.case("A")))
    mosaic = world.canvas(world.case("B"), kind="mosaic")
    world.roi(mosaic)
    world.roi(mosaic, 50, 50)
    next_run(jobs()[0].pk)
    assert calls == [] and encoder.calls == 1
    assert [job.state for job in jobs()] == ["succeeded", "queued", "queued"]


def test_a_processor_takes_one_at_a_time_unless_told(settings, monkeypatch):
    monkeypatch.setenv("TESSERA_DEVICE", "cpu")
    settings.TESSERA_EMBED_TOGETHER = 0
    assert ahead.jobs_together() == 1
