"""Bulk embedding: one job a canvas, in parts that last, behind whoever waits."""

from __future__ import annotations

import numpy as np
import pytest
from celery.exceptions import Retry

from ml.errors import EmptyRegionError, InvalidGeometryError
from portal.annotations.models import Roi, RoiAction
from portal.annotations.selectors.embedded import rois_embedded
from portal.annotations.services.bulk import RoiStep, rois_change
from portal.annotations.services.exchange import roi_import
from portal.archive.models import Canvas
from portal.archive.services.scale import canvas_scale_set
from portal.core.errors import ConflictError
from portal.embeddings.models import Embedding, Unembeddable
from portal.embeddings.selectors.embeddings import canvas_progress, embedding_current, vector_of
from portal.embeddings.selectors.encoders import encoder_default
from portal.embeddings.services.embeddings import embedding_save, embeddings_carry_over
from portal.embeddings.services.encoders import EncoderIdentity, encoder_register
from portal.embeddings.services.submissions import embed_request
from portal.embeddings.tasks import embedding
from portal.jobs.models import Job, JobState
from portal.jobs.services import job_cancel
from portal.jobs.worker.celery_tasks import run_job
from portal.jobs.worker.runner import job_run
from tests.portal.embedded_rois import SIDE, jobs, square
from tests.portal.jobs.queue_order import run_next


def features(count, side=20):
    rows = SIDE // (side + 1)
    return [
        {
            "type": "Feature",
            "geometry": square(n % rows * (side + 1), n // rows * (side + 1), side),
            "properties": {"objectType": "detection"},
        }
        for n in range(count)
    ]


@pytest.fixture
def canvas(world):
    return world.canvas(world.case("A1"))


def imported(world, canvas, count):
    return roi_import(canvas=canvas, user=world.user, document=features(count))


def test_an_import_makes_one_job_for_its_canvas(world, canvas, encoder):
    imported(world, canvas, 60)
    (job,) = jobs("canvas_embed")
    assert jobs() == []
    assert (job.target_id, job.priority, job.created_by) == (canvas.pk, 2, world.user)
    world.run_jobs()
    job.refresh_from_db()
    assert (job.state, job.result["embedded"]) == (JobState.SUCCEEDED, 60)
    assert (job.progress_done, job.progress_total) == (60, 60)
    assert Embedding.objects.count() == encoder.calls == 60


def test_restored_rois_get_back_their_vectors(world, canvas, encoder):
    imported(world, canvas, 30)
    world.run_jobs()
    rois = list(Roi.objects.filter(canvas=canvas))
    for action, version in ((RoiAction.DELETE, 1), (RoiAction.RESTORE, 2)):
        steps = [RoiStep(action, roi.pk, version) for roi in rois]
        rois_change(canvas=canvas, user=world.user, steps=steps)
    ids = [roi.pk for roi in rois]
    assert (len(rois_embedded(ids)), jobs()) == (0, [])
    world.run_jobs()
    assert len(rois_embedded(ids)) == encoder.calls == 30  # none was computed again
    assert jobs("canvas_embed")[-1].result["embedded"] == 30


def test_restored_rois_get_back_the_vectors_of_each_encoder(world, canvas, encoder):
    imported(world, canvas, 3)
    world.run_jobs()
    encoder.version = "2"
    facts = EncoderIdentity("box", "2", "abc", 4, "histology")
    following = encoder_register(facts=facts, is_default=True)
    rois = list(Roi.objects.select_related("canvas").filter(canvas=canvas))
    for roi in rois[:2]:
        vector = np.full(4, 7, np.float32)
        facts_of_it = {"vector": vector, "patch_count": 1, "seconds": 0.1}
        embedding_save(roi_id=roi.pk, geometry=roi.geometry, encoder=following, **facts_of_it)
    for action, version in ((RoiAction.DELETE, 1), (RoiAction.RESTORE, 2)):
        steps = [RoiStep(action, roi.pk, version) for roi in rois]
        rois_change(canvas=canvas, user=world.user, steps=steps)
    now = list(Roi.objects.select_related("canvas").filter(canvas=canvas))
    assert embeddings_carry_over(now, encoder=following) == [
        roi for roi in now if roi.pk == rois[2].pk
    ]
    for roi in now:
        row = embedding_current(roi=roi, encoder=following)
        assert (row and vector_of(row)[0]) == (None if roi.pk == rois[2].pk else 7)


def test_a_second_import_joins_a_queued_job_and_follows_an_ended_one(world, canvas):
    imported(world, canvas, 5)
    roi_import(canvas=canvas, user=world.user, document=features(3, side=50))
    assert len(jobs("canvas_embed")) == 1
    world.run_jobs()
    assert Embedding.objects.count() == 8
    roi_import(canvas=canvas, user=world.user, document=features(2, side=70))
    assert len(jobs("canvas_embed")) == 2
    world.run_jobs()
    assert Embedding.objects.count() == 10


def test_regions_imported_at_the_end_of_the_job_are_embedded_by_it(world, canvas, monkeypatch):
    imported(world, canvas, 3)
    real, brought = embedding.finish_if_done, []

    def late(context, is_done):
        if not brought:
            brought.append(roi_import(canvas=canvas, user=world.user, document=features(1, 60)))
        return real(context, is_done)

    monkeypatch.setattr(embedding, "finish_if_done", late)
    (job,) = jobs("canvas_embed")
    job_run(job.pk)
    assert (Embedding.objects.count(), jobs("canvas_embed")) == (4, [job])


def test_an_roi_drawn_during_bulk_work_is_embedded_first(world, canvas, encoder, monkeypatch):
    monkeypatch.setattr(embedding, "MAX_PART", 4)
    imported(world, canvas, 12)
    (bulk,) = jobs("canvas_embed")
    real, drawn = encoder._embedded, []

    def draws(polygon, progress):
        if encoder.calls == 1 and not drawn:
            drawn.append(world.roi(canvas, 300, 300, 40))
        return real(polygon, progress)

    encoder._embedded = draws
    assert run_next("gpu") == bulk
    bulk.refresh_from_db()
    assert (bulk.state, bulk.attempts, Embedding.objects.count()) == (JobState.QUEUED, 0, 4)
    (roi_job,) = jobs()
    assert run_next("gpu") == roi_job
    assert rois_embedded([drawn[0].pk]) == {drawn[0].pk}
    run_next("gpu")
    bulk.refresh_from_db()
    assert (bulk.state, Embedding.objects.count()) == (JobState.SUCCEEDED, 13)
    assert encoder.calls == 13  # nothing twice


def test_a_job_that_yielded_gets_a_new_message(world, canvas, encoder, monkeypatch):
    monkeypatch.setattr(embedding, "MAX_PART", 4)
    imported(world, canvas, 12)
    (bulk,) = jobs("canvas_embed")
    monkeypatch.setattr("portal.jobs.claims.must_yield", lambda job, ran_long: True)
    with pytest.raises(Retry):
        run_job(str(bulk.pk))
    bulk.refresh_from_db()
    assert bulk.state == JobState.QUEUED and bulk.sent_at is not None


def test_a_killed_job_continues_after_its_last_part(world, canvas, encoder, monkeypatch):
    monkeypatch.setattr(embedding, "MAX_PART", 4)
    imported(world, canvas, 12)
    (bulk,) = jobs("canvas_embed")
    real = encoder._embedded

    def dies(polygon, progress):
        if encoder.calls == 9:
            raise KeyboardInterrupt
        return real(polygon, progress)

    encoder._embedded = dies
    with pytest.raises(KeyboardInterrupt):
        job_run(bulk.pk)
    assert Embedding.objects.count() == 8  # two parts
    bulk.refresh_from_db()
    assert (bulk.state, bulk.attempts) == (JobState.RUNNING, 1)
    Job.objects.filter(pk=bulk.pk).update(state=JobState.QUEUED, lease_token=None)  # the reaper
    encoder._embedded = real
    job_run(bulk.pk)
    assert Embedding.objects.count() == 12
    assert encoder.calls == 9 + 4  # the part that was lost, not what lasted


def test_a_cancelled_job_leaves_its_embeddings(world, canvas, encoder, monkeypatch):
    monkeypatch.setattr(embedding, "MAX_PART", 4)
    imported(world, canvas, 12)
    (bulk,) = jobs("canvas_embed")
    real = encoder._embedded

    def stops(polygon, progress):
        if encoder.calls == 5:
            job_cancel(job=Job.objects.get(pk=bulk.pk), user=world.user)
        return real(polygon, progress)

    encoder._embedded = stops
    job_run(bulk.pk)
    bulk.refresh_from_db()
    assert (bulk.state, Embedding.objects.count()) == (JobState.CANCELLED, 4)


def test_blank_and_invalid_regions_are_counted_and_do_not_block(world, canvas, encoder):
    imported(world, canvas, 6)
    real = encoder._embedded

    def some(polygon, progress):
        if polygon.bounds[0] == 0:
            encoder.calls += 1
            raise EmptyRegionError("the region holds no tissue")
        if polygon.bounds[0] == 21:
            encoder.calls += 1
            raise InvalidGeometryError("the polygon is empty")
        return real(polygon, progress)

    encoder._embedded = some
    world.run_jobs()
    (job,) = jobs("canvas_embed")
    assert job.result == {"embedded": 4, "no_tissue": 1, "failed": 1}
    assert (encoder.calls, job.progress_done) == (6, 6)
    codes = {row.code: row.roi for row in Unembeddable.objects.all()}
    assert set(codes) == {"no-tissue", "invalid-geometry"}
    with pytest.raises(ConflictError, match="empty"):
        embed_request(roi=codes["invalid-geometry"], user=world.user)


def test_an_archive_for_another_encoder_is_one_job_a_canvas(world, canvas, encoder):
    imported(world, canvas, 5)
    world.embedded(world.canvas(world.case("A2")))
    world.run_jobs()
    before = len(jobs("canvas_embed"))
    encoder.version = "2"
    facts = EncoderIdentity("box", "2", "abc", 4, "histology")
    new = encoder_register(facts=facts, is_default=True)
    world.run_jobs()
    assert len(jobs("canvas_embed")) == before + 2
    assert encoder_default() == new


def test_a_canvas_in_the_trash_is_skipped(world, canvas, monkeypatch):
    imported(world, canvas, 2)
    monkeypatch.setattr(embedding, "canvas_to_embed", lambda canvas_id: None)
    world.run_jobs()
    assert jobs("canvas_embed")[0].result == {"skipped": "deleted"}


def test_a_new_pixel_size_removes_vectors_and_embeds_again(world, canvas, encoder):
    Canvas.objects.filter(pk=canvas.pk).update(mpp_x=None, mpp_y=None)
    canvas.refresh_from_db()
    imported(world, canvas, 5)
    world.run_jobs()
    before = set(Embedding.objects.values_list("pk", flat=True))
    canvas_scale_set(canvas=canvas, user=world.user, mpp_x=0.5)
    assert not Embedding.all_objects.exists()
    assert [job.state for job in jobs("canvas_embed")].count(JobState.QUEUED) == 1
    world.run_jobs()
    after = set(Embedding.objects.values_list("pk", flat=True))
    assert len(after) == len(before) == 5 and not after & before


def test_vectors_of_an_outdated_pixel_size_are_not_written(world, canvas, encoder, monkeypatch):
    Canvas.objects.filter(pk=canvas.pk).update(mpp_x=None, mpp_y=None)
    canvas.refresh_from_db()
    imported(world, canvas, 3)
    seen = []
    progress = canvas_progress

    def rescale_first(canvas_now, row):
        seen.append(canvas_now.mpp_x)
        if len(seen) == 1:
            canvas_scale_set(canvas=canvas, user=world.user, mpp_x=0.25)
        return progress(canvas_now, row)

    monkeypatch.setattr(embedding, "canvas_progress", rescale_first)
    world.run_jobs()
    assert (seen[0], set(seen[1:])) == (None, {0.25})
    assert Embedding.objects.count() == 3


def test_an_roi_is_embedded_again_after_a_change_of_pixel_size(world, canvas, encoder, monkeypatch):
    Canvas.objects.filter(pk=canvas.pk).update(mpp_x=None, mpp_y=None)
    canvas.refresh_from_db()
    world.roi(canvas)
    result, sizes = embedding._embed, []

    def rescale_first(context, network, roi):
        sizes.append(roi.canvas.mpp_x)
        if len(sizes) == 1:
            canvas_scale_set(canvas=canvas, user=world.user, mpp_x=0.25)
        return result(context, network, roi)

    monkeypatch.setattr(embedding, "_embed", rescale_first)
    world.run_jobs()
    assert sizes == [None, 0.25]
    assert Embedding.objects.count() == 1
