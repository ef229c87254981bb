"""ROIs of several jobs embedded at once: the same rows as one by one, each error to its job."""

from __future__ import annotations

import numpy as np
import pytest

from ml.errors import EmptyRegionError
from portal.annotations.services.rois import roi_update
from portal.embeddings.models import Embedding, Unembeddable
from portal.embeddings.selectors.embeddings import vector_of
from portal.embeddings.tasks import batching
from tests.portal.embedded_rois import box_vector, jobs, square
from tests.portal.jobs.queue_order import run_next

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _batches(settings):
    settings.TESSERA_EMBED_BATCH_SIZE = 8


@pytest.fixture
def calls(encoder):
    """Number of ROIs of each slide, for each call of the encoder."""
    real, result = encoder.embed_slides, []

    def counted(slides, progress=None):
        result.append([len(slide.polygons_l0) for slide in slides])
        return real(slides, progress)

    encoder.embed_slides = counted
    return result


def test_rois_of_several_slides_are_batched_and_saved_by_their_jobs(world, encoder, calls):
    first, second = world.canvas(world.case("A")), world.canvas(world.case("B"))
    rois = [world.roi(first), world.roi(second, 40, 40), world.roi(first, 90, 10, 60)]
    run_next("gpu")
    assert sorted(calls[0]) == [1, 2] and len(calls) == 1 and encoder.calls == 3
    assert [job.state for job in jobs()] == ["succeeded"] * 3
    for roi in rois:
        row = Embedding.objects.get(roi=roi)
        box = (roi.left, roi.top, roi.right, roi.bottom)
        assert np.array_equal(vector_of(row), box_vector(box))


def test_each_error_of_a_batch_fails_only_its_job(world, encoder, calls):
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
    run_next("gpu")
    assert calls == [[2]]
    of = {job.target_id: job for job in jobs()}
    assert of[good.pk].state == "succeeded" and of[blank.pk].outcome == "no tissue"
    assert Unembeddable.objects.get().roi_id == blank.pk
    (third,) = [job for job in jobs() if job.target_id not in {good.pk, blank.pk}]
    assert (third.state, third.attempts) == ("queued", 1)  # its own file is looked for again


def test_an_outline_changed_after_the_batch_is_embedded_again(world, encoder, calls, monkeypatch):
    canvas = world.canvas(world.case("A"))
    rois = [world.roi(canvas), world.roi(canvas, 100, 100)]
    real = batching.canvases_embed

    def moved(network, groups, progress):
        embedded = real(network, groups, progress)
        changes = {"geometry": square(5, 5, 90)}
        roi_update(roi=rois[1], user=world.user, expected_version=1, changes=changes)
        return embedded

    monkeypatch.setattr(batching, "canvases_embed", moved)
    run_next("gpu")
    row = Embedding.objects.get(roi=rois[1], superseded_at=None)
    assert np.array_equal(vector_of(row), box_vector((5, 5, 95, 95)))


def test_kinds_of_encoders_are_not_mixed(world, encoder, calls):
    world.roi(world.canvas(world.case("A")))
    mosaic = world.canvas(world.case("B"), kind="mosaic")
    world.roi(mosaic)
    world.roi(mosaic, 50, 50)
    run_next("gpu")
    assert calls == [] and encoder.calls == 1
    assert [job.state for job in jobs()] == ["succeeded", "queued", "queued"]


def test_a_cpu_embeds_one_roi_per_batch_by_default(settings, monkeypatch):
    monkeypatch.setenv("TESSERA_DEVICE", "cpu")
    settings.TESSERA_EMBED_BATCH_SIZE = 0
    assert batching.jobs_per_batch() == 1
