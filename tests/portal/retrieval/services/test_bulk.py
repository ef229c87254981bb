"""Bulk embedding: one job a canvas, in parts that last, behind whoever waits."""

from __future__ import annotations

import numpy as np
import pytest

from ml.errors import EmptyRegionError, InvalidGeometryError
from portal.annotations.models import Roi, RoiAction
from portal.annotations.selectors import rois_embedded
from portal.annotations.services import RoiStep, roi_import, rois_change
from portal.archive.models import Canvas
from portal.archive.services import canvas_scale_set
from portal.core.errors import ConflictError
from portal.jobs.models import Job, JobState
from portal.jobs.services import job_cancel
from portal.jobs.worker.bell import run
from portal.jobs.worker.runner import job_run
from portal.jobs.worker.together import next_run
from portal.retrieval import selectors, services
from portal.retrieval.models import Embedding, Unembeddable
from portal.retrieval.services import EncoderFacts
from portal.retrieval.tasks import embedding
from tests.portal.retrieval.conftest import SIDE, jobs, square


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


def test_many_that_are_restored_get_back_the_vectors_they_had(world, canvas, encoder):
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


def test_each_encoder_gives_back_its_own_vectors_while_one_follows_another(world, canvas, encoder):
    imported(world, canvas, 3)
    world.run_jobs()
    encoder.version = "2"
    facts = EncoderFacts("box", "2", "abc", 4, "histology")
    following = services.encoder_register(facts=facts, is_default=True)
    rois = list(Roi.objects.select_related("canvas").filter(canvas=canvas))
    for roi in rois[:2]:
        vector = np.full(4, 7, np.float32)
        facts_of_it = {"vector": vector, "patch_count": 1, "seconds": 0.1}
        services.embedding_save(
            roi_id=roi.pk, geometry=roi.geometry, encoder=following, **facts_of_it
        )
    for action, version in ((RoiAction.DELETE, 1), (RoiAction.RESTORE, 2)):
        steps = [RoiStep(action, roi.pk, version) for roi in rois]
        rois_change(canvas=canvas, user=world.user, steps=steps)
    now = list(Roi.objects.select_related("canvas").filter(canvas=canvas))
    assert services.embeddings_carry_over(now, encoder=following) == [
        roi for roi in now if roi.pk == rois[2].pk
    ]
    for roi in now:
        row = selectors.embedding_current(roi=roi, encoder=following)
        assert (row and selectors.vector_of(row)[0]) == (None if roi.pk == rois[2].pk else 7)


def test_a_second_import_joins_the_job_that_waits_and_follows_one_that_ended(world, canvas):
    imported(world, canvas, 5)
    roi_import(canvas=canvas, user=world.user, document=features(3, side=50))
    assert len(jobs("canvas_embed")) == 1
    world.run_jobs()
    assert Embedding.objects.count() == 8
    roi_import(canvas=canvas, user=world.user, document=features(2, side=70))
    assert len(jobs("canvas_embed")) == 2
    world.run_jobs()
    assert Embedding.objects.count() == 10


def test_what_is_imported_while_the_job_looks_its_last_is_embedded_by_it(
    world, canvas, monkeypatch
):
    imported(world, canvas, 3)
    real, brought = embedding.has_ended, []

    def late(context, is_done):
        if not brought:
            brought.append(roi_import(canvas=canvas, user=world.user, document=features(1, 60)))
        return real(context, is_done)

    monkeypatch.setattr(embedding, "has_ended", late)
    (job,) = jobs("canvas_embed")
    job_run(job.pk)
    assert (Embedding.objects.count(), jobs("canvas_embed")) == (4, [job])


def test_an_roi_drawn_meanwhile_goes_first_by_a_job_of_its_own(world, canvas, encoder, monkeypatch):
    monkeypatch.setattr(embedding, "PART_MOST", 4)
    imported(world, canvas, 12)
    (bulk,) = jobs("canvas_embed")
    real, drawn = encoder._embedded, []

    def draws(polygon, progress):
        if encoder.calls == 1 and not drawn:
            drawn.append(world.roi(canvas, 300, 300, 40))
        return real(polygon, progress)

    encoder._embedded = draws
    assert next_run(bulk.pk).pk == bulk.pk
    bulk.refresh_from_db()
    assert (bulk.state, bulk.attempts, Embedding.objects.count()) == (JobState.QUEUED, 0, 4)
    (own,) = jobs()
    assert next_run(bulk.pk).pk == own.pk  # whichever job the bell was rung for
    assert rois_embedded([drawn[0].pk]) == {drawn[0].pk}
    next_run(own.pk)
    bulk.refresh_from_db()
    assert (bulk.state, Embedding.objects.count()) == (JobState.SUCCEEDED, 13)
    assert encoder.calls == 13  # nothing twice


def test_a_bell_is_rung_again_for_a_job_that_gave_way(world, canvas, encoder, monkeypatch):
    rung = []
    monkeypatch.setattr("portal.jobs.worker.bell.ring", lambda pk, queue: rung.append(pk))
    monkeypatch.setattr(embedding, "PART_MOST", 4)
    imported(world, canvas, 12)
    (bulk,) = jobs("canvas_embed")
    monkeypatch.setattr("portal.jobs.ledger.must_give_way", lambda job, ran_long: True)
    run(str(bulk.pk))
    assert rung == [bulk.pk]


def test_a_job_that_was_killed_goes_on_where_it_was(world, canvas, encoder, monkeypatch):
    monkeypatch.setattr(embedding, "PART_MOST", 4)
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


def test_cancelling_keeps_what_is_embedded(world, canvas, encoder, monkeypatch):
    monkeypatch.setattr(embedding, "PART_MOST", 4)
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


def test_blank_and_broken_regions_are_counted_and_hold_up_nothing(world, canvas, encoder):
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
    with pytest.raises(ConflictError, match="the polygon is empty"):
        services.embed_request(roi=codes["invalid-geometry"], user=world.user)


def test_an_archive_for_another_encoder_is_one_job_a_canvas(world, canvas, encoder):
    imported(world, canvas, 5)
    world.embedded(world.canvas(world.case("A2")))
    world.run_jobs()
    before = len(jobs("canvas_embed"))
    encoder.version = "2"
    facts = EncoderFacts("box", "2", "abc", 4, "histology")
    new = services.encoder_register(facts=facts, is_default=True)
    world.run_jobs()
    assert len(jobs("canvas_embed")) == before + 2
    assert selectors.encoder_default() == new


def test_a_canvas_in_the_bin_is_passed_over(world, canvas, monkeypatch):
    imported(world, canvas, 2)
    monkeypatch.setattr(selectors, "canvas_to_embed", lambda canvas_id: None)
    world.run_jobs()
    assert jobs("canvas_embed")[0].result == {"skipped": "deleted"}


def test_a_new_pixel_size_takes_vectors_out_and_makes_them_anew(world, canvas, encoder):
    Canvas.objects.filter(pk=canvas.pk).update(mpp_x=None, mpp_y=None)
    canvas.refresh_from_db()
    imported(world, canvas, 5)
    world.run_jobs()
    before = set(Embedding.objects.values_list("pk", flat=True))
    canvas_scale_set(canvas=canvas, user=world.user, mpp_x=0.5)
    assert not Embedding.everything.exists()
    assert [job.state for job in jobs("canvas_embed")].count(JobState.QUEUED) == 1
    world.run_jobs()
    after = set(Embedding.objects.values_list("pk", flat=True))
    assert len(after) == len(before) == 5 and not after & before


def test_what_was_computed_at_the_size_before_is_not_written(world, canvas, encoder, monkeypatch):
    Canvas.objects.filter(pk=canvas.pk).update(mpp_x=None, mpp_y=None)
    canvas.refresh_from_db()
    imported(world, canvas, 3)
    seen = []
    progress = selectors.canvas_progress

    def scaled_meanwhile(canvas_now, row):
        seen.append(canvas_now.mpp_x)
        if len(seen) == 1:
            canvas_scale_set(canvas=canvas, user=world.user, mpp_x=0.25)
        return progress(canvas_now, row)

    monkeypatch.setattr(selectors, "canvas_progress", scaled_meanwhile)
    world.run_jobs()
    assert (seen[0], set(seen[1:])) == (None, {0.25})
    assert Embedding.objects.count() == 3


def test_an_roi_drawn_at_the_size_before_is_computed_again(world, canvas, encoder, monkeypatch):
    Canvas.objects.filter(pk=canvas.pk).update(mpp_x=None, mpp_y=None)
    canvas.refresh_from_db()
    world.roi(canvas)
    found, sizes = embedding._embedded, []

    def scaled_meanwhile(context, network, roi):
        sizes.append(roi.canvas.mpp_x)
        if len(sizes) == 1:
            canvas_scale_set(canvas=canvas, user=world.user, mpp_x=0.25)
        return found(context, network, roi)

    monkeypatch.setattr(embedding, "_embedded", scaled_meanwhile)
    world.run_jobs()
    assert sizes == [None, 0.25]
    assert Embedding.objects.count() == 1
