"""An encoder trained on a lab's archive: really, on a processor, from the question to searches."""

from __future__ import annotations

import shutil
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
from django.test import Client

from portal.audit.models import AuditEntry
from portal.core.errors import (
    ConflictError,
    ForbiddenError,
    InvalidInputError,
    NotFoundError,
    StorageFullError,
)
from portal.jobs.models import Job, JobState
from portal.jobs.services import job_retry
from portal.jobs.worker.context import LedgerContext
from portal.jobs.worker.runner import job_run
from portal.retrieval import selectors, services
from portal.retrieval.models import (
    Embedding,
    Encoder,
    EncoderKind,
    Learning,
    Unembeddable,
)
from portal.retrieval.selectors import LearningResult
from portal.retrieval.services import WantedTraining
from portal.retrieval.services.learning import folders
from portal.retrieval.tasks import training
from tests.portal.retrieval.archives import drawn
from tests.portal.retrieval.conftest import World, jobs
from tests.portal.retrieval.training.conftest import PATIENTS, asked, searched

HISTOLOGY = EncoderKind.HISTOLOGY
URL = "/api/v1/learnings/"
PLAIN = training._Checkpoints.__call__


def folder_of(learning):
    return selectors.learning_folder(learning.lab_id, learning.pk)


def again(job_id):
    """As the reaper does with the job of a worker that was killed."""
    Job.objects.filter(pk=job_id).update(state=JobState.QUEUED, lease_token=None, not_before=None)


def told_steps(monkeypatch, ends_at=None):
    """The steps that are taken; at one of them this process dies."""
    steps = []

    def told(self, done, total, phase):
        if phase.startswith("training"):
            steps.append(done)
            if done == ends_at:
                raise KeyboardInterrupt
        PLAIN(self, done, total, phase)

    monkeypatch.setattr(training._Checkpoints, "__call__", told)
    return steps


def test_an_encoder_is_trained_compared_put_in_use_and_rolled_back(
    archive, manager, stranger, api_as, monkeypatch
):
    api = api_as(manager)
    said = {"method": "encoder", "steps": 20, "hours": 1}
    made = api.post(URL, said, format="json").json()
    assert (made["method"], made["steps"], made["hours"]) == ("encoder", 20, 1.0)
    learning = selectors.learning_get(manager, made["id"])
    assert asked(archive, manager) == learning  # one at a time
    assert AuditEntry.objects.get(action="learning.asked").details["method"] == "encoder"
    steps = told_steps(monkeypatch, ends_at=10)
    with pytest.raises(KeyboardInterrupt):
        job_run(learning.job_id)  # killed after the second checkpoint
    assert folder_of(learning).is_dir()
    assert not Encoder.objects.filter(lab=archive.lab).exists()
    again(learning.job_id)
    told_after = told_steps(monkeypatch)
    archive.run_jobs()
    assert steps == list(range(1, 11)) and told_after[-1] == 20
    assert told_after[0] == 9  # from its checkpoint, not from the start
    assert not folder_of(learning).exists()

    learning = selectors.learning_get(manager, learning.pk)
    result = LearningResult.of_json(learning.result)
    assert (result.regions, result.patients, result.kept_aside) == (28, 14, 5)
    assert (result.learned_regions, result.learned_patients) == (18, 9)
    assert {one.label for one in result.changes} == {"dense", "sparse"}
    assert result.chosen == f"20 steps from {learning.base}"
    assert len(learning.training["loss"]) == len(learning.training["held_out"]) == 20
    assert learning.trained_s > 0
    own = learning.encoder
    assert (own.lab, own.base, own.is_trained) == (archive.lab, learning.base, True)
    (entry,) = AuditEntry.objects.filter(action="roi.exported")  # written once, by two attempts
    assert (entry.actor_id, entry.details["count"]) == (manager.pk, 28)
    told = api.get(f"{URL}{learning.pk}/").json()
    assert told["training"]["steps"] == 20 and told["encoder"]["lab"] == str(archive.lab.pk)
    assert api_as(stranger).get(f"{URL}{learning.pk}/").status_code == 404
    assert api_as(stranger).get(f"/api/v1/encoders/{own.pk}/").status_code == 404

    page = Client()
    page.force_login(manager)
    shown = page.get(f"/lab/learning/{learning.pk}/").content.decode()
    for words in ("20 of 20", "18 regions of 9 patients", "Loss by step", "is-line-2", "CPU (cpu)"):
        assert words in shown
    if not learning.is_better:  # twenty steps prove little; what follows does not depend on it
        with pytest.raises(ConflictError, match="not better"):
            services.learning_promote(learning=learning, user=manager)
        Learning.objects.filter(pk=learning.pk).update(is_better=True)
    query = archive.made[0][0]
    before = searched(manager, query)
    services.learning_promote(learning=learning, user=manager)
    assert searched(manager, query).query.encoder == learning.base
    archive.run_jobs()
    assert selectors.learning_get(manager, learning.pk).use == "yes"
    after = searched(manager, query)
    assert after.query.encoder == own
    assert Embedding.objects.filter(encoder=own).count() == 28
    vectors = {
        row.encoder_id: selectors.vector_of(row) for row in Embedding.objects.filter(roi=query)
    }
    assert 0 < np.linalg.norm(vectors[own.pk] - vectors[learning.base_id]) < 2

    new = drawn(archive, PATIENTS)[0]
    archive.run_jobs()
    assert Embedding.objects.filter(roi=new, encoder=own).exists()
    assert searched(manager, new).query.encoder == own
    assert new.pk in {hit.roi.pk for hit in searched(manager, query, k=60).hits}

    services.learning_roll_back(learning=learning, user=manager)
    back = searched(manager, query)
    assert back.query.encoder == learning.base
    old = {hit.roi.pk: hit.distance for hit in before.hits}
    assert old.items() <= {hit.roi.pk: hit.distance for hit in back.hits}.items()
    by_name = searched(manager, query, encoder_id=own.pk)
    assert [hit.roi.pk for hit in by_name.hits][: len(after.hits)]


def test_damaged_weights_spoil_neither_new_regions_nor_the_archive(archive, manager):
    """They fail the job that goes by them, and no region is called impossible for it."""
    base = selectors.encoder_default()
    own = Encoder.objects.create(
        name="own",
        version="1",
        config_hash="o",
        dim=base.dim,
        lab=archive.lab,
        base=base,
        is_trained=True,
        is_default=True,
    )
    Learning.objects.create(
        lab=archive.lab, kind=HISTOLOGY, base=base, encoder=own, weights=b"no weights"
    )
    new = drawn(archive, PATIENTS)[0]
    archive.run_jobs()
    assert Embedding.objects.filter(roi=new, encoder=base).exists()
    assert not Embedding.objects.filter(encoder=own).exists()
    assert not Unembeddable.objects.exists()
    assert {job.state for job in jobs("roi_embed")} == {JobState.SUCCEEDED}
    assert {(job.state, job.error_code) for job in jobs("encoder_embed")} == {
        (JobState.FAILED, "weights")
    }


def test_a_cancelled_training_leaves_no_picture(archive, manager, monkeypatch):
    learning = asked(archive, manager)

    def told(self, done, total, phase):
        assert list(folder_of(learning).glob("set/histology/*.png"))
        Job.objects.filter(pk=learning.job_id).update(cancel_requested=True)
        self.context._look_for_cancel()
        PLAIN(self, done, total, phase)

    monkeypatch.setattr(training._Checkpoints, "__call__", told)
    archive.run_jobs()
    assert Job.objects.get(pk=learning.job_id).state == JobState.CANCELLED
    assert not folder_of(learning).exists()
    learning.refresh_from_db()
    assert learning.result is None and learning.encoder is None


@pytest.mark.endurance
def test_a_training_that_is_tried_again_has_all_its_hours(archive, manager):
    learning = asked(archive, manager, WantedTraining(steps=20, hours=0.5))
    failed = Job.objects.get(pk=learning.job_id)
    Job.objects.filter(pk=failed.pk).update(state=JobState.FAILED)
    Learning.objects.filter(pk=learning.pk).update(trained_s=3600)
    job_retry(job=Job.objects.get(pk=failed.pk), user=manager)
    archive.run_jobs()
    learning = selectors.learning_get(manager, learning.pk)
    assert (learning.training["steps"], learning.training["stopped_early"]) == (20, False)
    assert learning.trained_s < 1800


@pytest.mark.endurance
def test_an_erasure_under_way_lets_a_training_begin_anew(archive, manager, monkeypatch):
    learning = asked(archive, manager)

    def told(self, done, total, phase):
        if phase.startswith("training") and done == 6:
            services.learning_folders_drop(lab_id=archive.lab.pk)
        PLAIN(self, done, total, phase)

    monkeypatch.setattr(training._Checkpoints, "__call__", told)
    job_run(learning.job_id)
    assert Job.objects.get(pk=learning.job_id).state == JobState.QUEUED
    assert not Encoder.objects.filter(lab=archive.lab).exists()
    assert not list(folder_of(learning).parent.glob("learning-*"))
    steps = told_steps(monkeypatch)
    again(learning.job_id)
    archive.run_jobs()
    assert steps[0] == 1
    assert Job.objects.get(pk=learning.job_id).state == JobState.SUCCEEDED


def test_pictures_end_where_their_folder_is_removed(archive, manager, tmp_path):
    out = tmp_path / "set"
    told = Mock(side_effect=lambda done, *_: shutil.rmtree(out) if done == 3 else None)
    with pytest.raises(FileNotFoundError):
        services.training_set_write(lab=archive.lab, user=manager, out=out, progress=told)
    assert not out.exists()


def test_a_full_disk_costs_no_checkpoint(archive, manager, monkeypatch):
    learning = asked(archive, manager)
    told_steps(monkeypatch, ends_at=10)
    with pytest.raises(KeyboardInterrupt):
        job_run(learning.job_id)
    again(learning.job_id)
    monkeypatch.setattr(folders, "require_room", Mock(side_effect=StorageFullError("Full.")))
    job_run(learning.job_id)
    assert Job.objects.get(pk=learning.job_id).state == JobState.QUEUED
    assert list(folder_of(learning).glob("work/patches/checkpoint*"))


def test_an_encoder_that_cannot_learn_on_is_refused_before_pictures_are_written(
    archive, manager, monkeypatch
):
    _, row = training.encoder_ready(HISTOLOGY)
    monkeypatch.setattr(training, "encoder_ready", lambda kind: (SimpleNamespace(name="u"), row))
    learning = asked(archive, manager)
    archive.run_jobs()
    job = Job.objects.get(pk=learning.job_id)
    assert (job.state, job.error_message[:24]) == (JobState.FAILED, "u: only encoders over ou")
    assert not AuditEntry.objects.filter(action="roi.exported").exists()


@pytest.mark.endurance
def test_what_is_kept_aside_is_not_learned_from_whoever_comes_meanwhile(
    archive, manager, monkeypatch
):
    learning = asked(archive, manager)
    told_steps(monkeypatch, ends_at=1)
    with pytest.raises(KeyboardInterrupt):
        job_run(learning.job_id)
    of = selectors.lab_material(archive.lab.pk, learning.base)
    before = {str(p) for p in of.material.patients[training._split(of, folder_of(learning))]}
    for patient in range(PATIENTS, PATIENTS + 6):
        drawn(archive, patient)
    archive.run_jobs_of("roi_embed")
    of = selectors.lab_material(archive.lab.pk, learning.base)
    assert len(of.rois) == 40
    after = {str(p) for p in of.material.patients[training._split(of, folder_of(learning))]}
    assert before == after
    told = []
    plain = LedgerContext.progress

    def progress(self, done, total, phase):
        told.append((done, total, phase))
        plain(self, done, total, phase)

    monkeypatch.setattr(LedgerContext, "progress", progress)
    told_steps(monkeypatch)
    again(learning.job_id)
    archive.run_jobs()
    result = LearningResult.of_json(selectors.learning_get(manager, learning.pk).result)
    assert (result.patients, result.learned_patients, result.kept_aside) == (20, 9, 5)
    bars = [(done, total) for done, total, phase in told if phase == "embedding regions"]
    assert bars and all(done < total == 40 for done, total in bars)


def test_too_little_and_lengths_out_of_bounds_are_refused(lab, annotator, storage, manager, api_as):
    world = World(lab, annotator, storage)
    world.names = world.labels("dense", "sparse")
    drawn(world, 0)
    world.run_jobs()
    with pytest.raises(ConflictError, match="14 patients or more"):
        asked(world, manager)
    with pytest.raises(ForbiddenError):
        asked(world, annotator)
    for steps, hours in ((19, 1), (20_001, 1), (20, 0), (20, 72.5)):
        with pytest.raises(InvalidInputError, match="expected"):
            WantedTraining(steps, hours)
    refused = api_as(manager).post(URL, {"method": "encoder", "steps": 3}, format="json")
    assert refused.status_code == 400 and "steps" in refused.content.decode()
    assert jobs("encoder_learn") == [] and not Learning.objects.exists()


def test_another_lab_sees_nothing_of_a_training(archive, manager, stranger):
    learning = asked(archive, manager)
    with pytest.raises(NotFoundError):
        selectors.learning_get(stranger, learning.pk)
    with pytest.raises(ForbiddenError):
        asked(archive, stranger)
