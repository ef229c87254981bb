"""Embeddings and index files: written once, by whoever comes first, and never of an old outline."""

from __future__ import annotations

import numpy as np
import pytest
from django.db import connection, transaction

from ml.errors import EmptyRegionError, InvalidGeometryError
from ml.roi.stain.deconvolution import published_stains
from ml.roi.stain.storage import stain_to_dict
from portal.annotations.models import Roi
from portal.annotations.selectors.embedded import rois_embedded
from portal.annotations.services.rois import roi_delete, roi_restore, roi_update
from portal.core.errors import ConflictError
from portal.embeddings.models import CanvasStain, Embedding, Unembeddable
from portal.embeddings.selectors.embeddings import (
    embedding_current,
    rois_without_embedding,
    vector_of,
)
from portal.embeddings.selectors.encoders import encoder_default
from portal.embeddings.services.embeddings import canvas_is_unchanged, embedding_save
from portal.embeddings.services.encoders import EncoderIdentity, encoder_register
from portal.embeddings.services.submissions import embed_request
from portal.jobs.models import Job, JobState
from portal.jobs.worker.runner import job_run
from tests.portal.embedded_rois import jobs, square


def test_a_saved_roi_submits_one_job_on_the_gpu_queue(world):
    roi = world.roi(world.canvas(world.case("A1")), name="gland")
    (job,) = jobs()
    assert (job.queue, job.target_id, job.target_name) == (
        "gpu",
        roi.pk,
        f"gland on {roi.canvas.name}",
    )
    assert job.created_by == world.user
    assert rois_embedded([roi.pk]) == set()
    world.run_jobs()
    row = Embedding.objects.get()
    assert (row.roi_id, row.roi_version, row.patch_count) == (roi.pk, 1, 3)
    assert vector_of(row).tolist() == [20.0, 20.0, 20.0, 20.0]
    assert rois_embedded([roi.pk]) == {roi.pk}


def test_running_twice_leaves_the_same_rows(world, encoder):
    roi = world.embedded(world.canvas(world.case("A1")))
    before = list(Embedding.objects.values())
    (job,) = jobs()
    Job.objects.filter(pk=job.pk).update(state=JobState.QUEUED, lease_token=None)
    job_run(job.pk)
    assert list(Embedding.objects.values()) == before
    assert encoder.calls == 1
    assert Job.objects.get(pk=job.pk).result["skipped"] == "already embedded"
    assert roi.version == 1


@pytest.mark.parametrize("is_known", [False, True])
def test_a_restored_roi_is_embedded_by_the_next_encoder(world, encoder, is_known):
    roi = world.embedded(world.canvas(world.case("A1")))
    facts = EncoderIdentity("box", "2", "abc", 4, "histology")
    following = encoder_register(facts=facts, is_default=True)
    if is_known:
        facts_of_it = {"vector": np.ones(4, np.float32), "patch_count": 1, "seconds": 0.1}
        embedding_save(roi_id=roi.pk, geometry=roi.geometry, encoder=following, **facts_of_it)
    roi_delete(roi=roi, user=world.user, expected_version=1)
    roi = Roi.objects.select_related("canvas").get(pk=roi.pk)
    roi_restore(roi=roi, user=world.user, expected_version=2)
    assert embedding_current(roi=roi, encoder=encoder_default())
    assert bool(embedding_current(roi=roi, encoder=following)) == is_known
    assert len(jobs()) == (1 if is_known else 2)


def test_a_deleted_roi_is_not_embedded(world, encoder):
    roi = world.roi(world.canvas(world.case("A1")))
    roi_delete(roi=roi, user=world.user, expected_version=1)
    world.run_jobs()
    assert (encoder.calls, Embedding.objects.count()) == (0, 0)
    assert jobs()[0].result == {"skipped": "deleted"}


def test_an_outline_redrawn_while_it_is_embedded_is_not_written(world, encoder):
    roi = world.roi(world.canvas(world.case("A1")))
    real = encoder._embedded

    def redrawn(polygon, progress):
        encoder._embedded = real
        now = Roi.objects.select_related("canvas").get(pk=roi.pk)
        changes = {"geometry": square(200, 200)}
        roi_update(roi=now, user=world.user, expected_version=1, changes=changes)
        return real(polygon, progress)

    encoder._embedded = redrawn
    job_run(jobs()[0].pk)
    assert Embedding.objects.count() == 0
    assert jobs()[0].result == {"skipped": "changed in the meantime"}
    world.run_jobs()
    assert Embedding.objects.get().roi_version == 2


def test_a_label_set_while_it_is_embedded_does_not_lose_the_vector(world):
    roi = world.roi(world.canvas(world.case("A1")))
    roi_update(roi=roi, user=world.user, expected_version=1, changes={"name": "gland"})
    world.run_jobs()
    assert Embedding.objects.get().roi_version == 2
    assert len(jobs()) == 1


def test_a_blank_region_is_not_retried_automatically(world, encoder):
    encoder.fails_with = EmptyRegionError("the region holds no tissue")
    roi = world.embedded(world.canvas(world.case("A1")))
    (job,) = jobs()
    assert (job.state, job.outcome, job.error_message) == (JobState.SUCCEEDED, "no tissue", "")
    for _ in range(2):
        with pytest.raises(ConflictError, match="tissue") as refused:
            embed_request(roi=roi, user=world.user)
        assert refused.value.code == "no-tissue"
    assert rois_without_embedding(lab_id=world.lab.pk, encoder=encoder_default()).count() == 0
    assert len(jobs()) == 1
    encoder.fails_with = None
    embed_request(roi=roi, user=world.user, is_retry=True)
    world.run_jobs()
    assert Embedding.objects.count() == 1 and not Unembeddable.objects.exists()


def test_a_redrawn_blank_region_is_embedded(world, encoder):
    encoder.fails_with = EmptyRegionError("the region holds no tissue")
    roi = world.embedded(world.canvas(world.case("A1")))
    encoder.fails_with = None
    roi_update(roi=roi, user=world.user, expected_version=1, changes={"geometry": square(200, 200)})
    world.run_jobs()
    assert rois_embedded([roi.pk]) == {roi.pk}


def test_an_invalid_region_fails_with_its_reason(world, encoder):
    encoder.fails_with = InvalidGeometryError("the polygon is empty")
    roi = world.embedded(world.canvas(world.case("A1")))
    (job,) = jobs()
    assert (job.state, job.error_code) == (JobState.FAILED, "invalid-geometry")
    with pytest.raises(ConflictError, match="empty") as refused:
        embed_request(roi=roi, user=world.user)
    assert refused.value.code == "embedding-failed"


def test_a_request_returns_the_unfinished_job(world):
    roi = world.roi(world.canvas(world.case("A1")))
    assert embed_request(roi=roi, user=world.user) == jobs()[0]
    assert len(jobs()) == 1


def test_the_stains_of_a_slide_are_estimated_once_and_given_to_every_roi(
    world, encoder, monkeypatch
):
    stains = published_stains(np.full((4, 3), 120, np.uint8))
    given, requested = [], []
    encoder.normalises, encoder.stain_method = True, "nuclei"
    monkeypatch.setattr(
        "ml.roi.stain.estimate.estimate_stain",
        lambda slide, *, mpp, config: requested.append(config.method) or stains,
    )
    embed = encoder.embed_region
    encoder.embed_region = lambda *args, stain, **kw: given.append(stain) or embed(*args, **kw)
    canvas = world.canvas(world.case("A1"))
    for left in (10, 50):
        world.embedded(canvas, left)
    assert (requested, len(given)) == (["nuclei"], 2)
    assert [stain_to_dict(value) for value in given] == [stain_to_dict(stains)] * 2
    assert CanvasStain.objects.get().method == "nuclei"


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "postgresql", reason="asks PostgreSQL for its locks")
def test_regions_of_an_image_are_saved_while_a_vector_of_it_is_written(canvas):
    other = connection.copy()
    foreign_key_check = "SELECT 1 FROM archive_canvas WHERE id = %s FOR KEY SHARE NOWAIT"
    with transaction.atomic():
        assert canvas_is_unchanged(canvas, lock=True)
        try:
            with other.cursor() as cursor:
                cursor.execute(foreign_key_check, [canvas.pk])
        finally:
            other.close()
