"""Embeddings and index files: written once, by whoever comes first, and never of an old outline."""

from __future__ import annotations

import os
import time
from types import SimpleNamespace

import numpy as np
import pytest

from ml.errors import EmptyRegionError
from ml.roi.stain import fixed_stains, stain_to_dict
from portal.annotations.models import Roi
from portal.annotations.selectors import rois_embedded
from portal.annotations.services import roi_delete, roi_update
from portal.core.errors import ConflictError, ForbiddenError
from portal.jobs import ledger
from portal.jobs.models import Job, JobState
from portal.jobs.worker.runner import job_run
from portal.retrieval import indexes, selectors, services
from portal.retrieval.indexes import Scope
from portal.retrieval.models import CanvasStain, Embedding, Encoder, IndexSnapshot
from portal.retrieval.selectors import SimilarQuery, readers, similar_search
from portal.retrieval.services import EncoderFacts
from tests.portal.retrieval.conftest import square


def jobs(kind="roi_embed"):
    return list(Job.objects.filter(kind=kind).order_by("created_at"))


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
    assert selectors.vector_of(row).tolist() == [20.0, 20.0, 20.0, 20.0]
    assert rois_embedded([roi.pk]) == {roi.pk}


def test_running_twice_leaves_the_same_rows(world, encoder):
    roi = world.embedded(world.canvas(world.case("A1")))
    before = list(Embedding.objects.values())
    (job,) = jobs()
    Job.objects.filter(pk=job.pk).update(state=JobState.QUEUED, lease_token=None)
    job_run(job.pk)
    assert list(Embedding.objects.values()) == before
    assert encoder.calls == 1
    assert Job.objects.get(pk=job.pk).result["skipped"] == "embedded already"
    assert roi.version == 1


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


def test_a_region_without_tissue_fails_with_its_reason(world, encoder):
    encoder.fails_with = EmptyRegionError("the region holds no tissue")
    roi = world.embedded(world.canvas(world.case("A1")))
    (job,) = jobs()
    assert (job.state, job.error_code) == (JobState.FAILED, "empty-region")
    with pytest.raises(ConflictError, match="the region holds no tissue"):
        services.embed_request(roi=roi, user=world.user)
    encoder.fails_with = None
    services.embed_request(roi=roi, user=world.user, is_retry=True)
    world.run_jobs()
    assert Embedding.objects.count() == 1


def test_a_viewer_may_not_retry(world, viewer):
    roi = world.roi(world.canvas(world.case("A1")))
    with pytest.raises(ForbiddenError):
        services.embed_request(roi=roi, user=viewer, is_retry=True)


def test_a_request_returns_the_job_under_way(world):
    roi = world.roi(world.canvas(world.case("A1")))
    assert services.embed_request(roi=roi, user=world.user) == jobs()[0]
    assert len(jobs()) == 1


def test_enough_changes_submit_one_index_build(world, monkeypatch):
    monkeypatch.setattr("portal.retrieval.services.indexes.REBUILD_LEAST", 3)
    canvas = world.canvas(world.case("A1"))
    for i in range(5):
        world.roi(canvas, i * 30, 10)
    for job in jobs():
        job_run(job.pk)
    (build,) = jobs("index_build")
    job_run(build.pk)
    snapshot = IndexSnapshot.objects.get()
    assert (snapshot.version, snapshot.count) == (1, 5)
    assert snapshot.last_embedding_id == Embedding.objects.latest("pk").pk
    index = readers.get(snapshot, Encoder.objects.get())
    assert (index.stats.count, index.stats.tag) == (5, "box/1/abc")


def test_old_index_folders_go_after_an_hour_and_never_the_newest(world):
    canvas = world.canvas(world.case("A1"))
    world.embedded(canvas)
    scope = Scope(Encoder.objects.get(), world.lab.pk)
    for version in (1, 2, 3):
        services.index_build_submit(scope=scope, version=version)
        world.run_jobs()
    folder = indexes.scope_folder(scope)
    assert len(list(folder.iterdir())) == 3
    for one in folder.iterdir():
        os.utime(one, (0, time.time() - 7200))
    services.index_build_submit(scope=scope, version=4)
    world.run_jobs()
    kept = IndexSnapshot.objects.order_by("-version").values_list("pk", flat=True)[:2]
    assert {one.name for one in folder.iterdir()} == {str(pk) for pk in kept}


def test_an_index_of_nothing_is_not_written(world):
    world.embedded(world.canvas(world.case("A1")))
    Embedding.objects.all().delete()
    services.index_build_submit(scope=Scope(Encoder.objects.get(), world.lab.pk), version=1)
    world.run_jobs()
    assert IndexSnapshot.objects.count() == 0


def test_a_new_default_encoder_embeds_every_lab_again(world, encoder):
    roi = world.embedded(world.canvas(world.case("A1")))
    encoder.version = "2"
    facts = EncoderFacts("box", "2", "abc", 4, "histology")
    old = Encoder.objects.get(is_default=True)
    new = services.encoder_register(facts=facts, is_default=True)
    assert new.is_next and selectors.encoder_default() == old  # searched until the new is complete
    assert rois_embedded([roi.pk]) == {roi.pk}
    world.run_jobs()
    assert list(Encoder.objects.filter(is_default=True)) == [new]
    assert set(Embedding.objects.filter(roi=roi).values_list("encoder__version", flat=True)) == {
        "1",
        "2",
    }
    assert rois_embedded([roi.pk]) == {roi.pk}
    assert services.encoder_register(facts=facts, is_default=True) == new
    assert len(jobs("lab_embed")) == 1


def test_the_new_default_waits_for_every_roi_and_not_for_one_without_tissue(world, encoder):
    first = world.embedded(world.canvas(world.case("A1")))
    second = world.embedded(world.canvas(world.case("A2")))
    old = selectors.encoder_default()
    encoder.version = "2"
    facts = EncoderFacts("box", "2", "abc", 4, "histology")
    new = services.encoder_register(facts=facts, is_default=True)
    (lab_job,) = jobs("lab_embed")
    job_run(lab_job.pk)
    todo = [job for job in jobs() if not job.has_ended]
    assert {job.target_id for job in todo} == {first.pk, second.pk}
    job_run(todo[0].pk)
    assert selectors.encoder_default() == old
    ledger.end(Job.objects.filter(pk=todo[1].pk), todo[1].pk, JobState.FAILED, error_code="empty")
    assert selectors.encoder_default() == new


def test_an_roi_drawn_while_the_default_is_replaced_searches_with_the_next(world, encoder):
    old_roi = world.embedded(world.canvas(world.case("A1")))
    old = selectors.encoder_default()
    encoder.version = "2"
    facts = EncoderFacts("box", "2", "abc", 4, "histology")
    new = services.encoder_register(facts=facts, is_default=True)
    drawn = world.roi(world.canvas(world.case("A2")))
    (job,) = [job for job in jobs() if job.target_id == drawn.pk]
    job_run(job.pk)
    assert selectors.encoder_for(drawn) == new
    assert selectors.encoder_for(old_roi) == old
    assert rois_embedded([drawn.pk]) == {drawn.pk}


def test_slides_and_mosaics_have_encoders_and_searches_of_their_own(world):
    slide = world.embedded(world.canvas(world.case("A1")))
    other_slide = world.embedded(world.canvas(world.case("A2")))
    mosaic = world.embedded(world.canvas(world.case("B1"), kind="mosaic"))
    other_mosaic = world.embedded(world.canvas(world.case("B2"), kind="mosaic"))
    assert selectors.encoder_for(slide).name == "box"
    assert selectors.encoder_for(mosaic).name == "scope"
    for roi, other in ((slide, other_slide), (mosaic, other_mosaic)):
        query = SimilarQuery(roi=roi, encoder=selectors.encoder_for(roi))
        assert [hit.roi for hit in similar_search(world.user, query).hits] == [other]


def test_a_new_default_of_one_kind_leaves_the_other_kind_alone(world, encoder):
    mosaic = world.embedded(world.canvas(world.case("B1"), kind="mosaic"))
    world.embedded(world.canvas(world.case("A1")))
    encoder.version = "2"
    services.encoder_register(
        facts=EncoderFacts("box", "2", "abc", 4, "histology"), is_default=True
    )
    world.run_jobs()
    assert selectors.encoder_default("endoscopy").name == "scope"
    assert selectors.encoder_default().version == "2"
    assert Embedding.objects.filter(roi=mosaic).count() == 1  # not embedded by the new one


def test_the_first_endoscopy_encoder_takes_over_what_another_kind_embedded(world):
    slide = world.embedded(world.canvas(world.case("A1")))
    histology = selectors.encoder_for(slide)
    canvas = world.canvas(world.case("B1"), kind="mosaic")
    roi = world.roi(canvas)
    Job.objects.all().delete()
    Embedding.objects.create(
        lab=world.lab, encoder=histology, roi=roi, canvas=canvas, roi_version=1, vector=bytes(16)
    )
    facts = EncoderFacts("scope", "1", "abc", 4, "endoscopy")
    endoscopy = services.encoder_register(facts=facts, is_default=True)
    world.run_jobs()
    current = Embedding.objects.filter(roi=roi, superseded_at__isnull=True)
    assert [row.encoder for row in current] == [endoscopy]


def test_the_stains_of_a_slide_are_estimated_once_and_given_to_every_roi(world, encoder):
    found = fixed_stains(np.full((4, 3), 120, np.uint8))
    given, asked = [], []
    encoder.normalises, encoder.config = True, SimpleNamespace(stain="nuclei")
    encoder.estimate_stain = lambda slide, mpp: asked.append(slide) or found
    embed = encoder.embed_region
    encoder.embed_region = lambda *args, stain, **kw: given.append(stain) or embed(*args, **kw)
    canvas = world.canvas(world.case("A1"))
    for left in (10, 50):
        world.embedded(canvas, left)
    assert (len(asked), len(given)) == (1, 2)
    assert [stain_to_dict(one) for one in given] == [stain_to_dict(found)] * 2
    assert CanvasStain.objects.get().method == "nuclei"
