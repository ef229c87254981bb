"""An encoder trained on a lab's archive: really, on a processor, from the question to searches."""

from __future__ import annotations

import shutil
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest

from portal.archive.models import Modality
from portal.audit.models import AuditEntry
from portal.core.errors import (
    ConflictError,
    ForbiddenError,
    InvalidInputError,
    StorageFullError,
)
from portal.embeddings.models import Embedding, Encoder, Unembeddable
from portal.embeddings.selectors.embeddings import vector_of
from portal.embeddings.selectors.encoders import encoder_default
from portal.jobs.models import Job, JobState
from portal.jobs.services import job_retry
from portal.jobs.worker.context import LeasedJobContext
from portal.jobs.worker.runner import job_run
from portal.model_training.models import Learning
from portal.model_training.selectors.folders import learning_folder
from portal.model_training.selectors.learnings import learning_get
from portal.model_training.selectors.results import LearningResult
from portal.model_training.selectors.training_data import training_data
from portal.model_training.services import folders
from portal.model_training.services.folders import learning_folders_drop
from portal.model_training.services.learnings import (
    TrainingLimits,
    learning_promote,
    learning_roll_back,
)
from portal.model_training.services.training_sets import training_set_write
from portal.model_training.tasks import encoders
from tests.clients import client_of
from tests.portal.embedded_rois import World, jobs
from tests.portal.model_training.archives import drawn
from tests.portal.model_training.training.conftest import PATIENTS, request_training, searched

HISTOLOGY = Modality.HISTOLOGY
URL = "/api/v1/learnings/"
PLAIN = encoders._Checkpoints.__call__


def folder_of(learning):
    return learning_folder(learning.lab_id, learning.pk)


def again(job_id):
    """Queue a job again, as the reaper does after its worker was killed."""
    Job.objects.filter(pk=job_id).update(state=JobState.QUEUED, lease_token=None, not_before=None)


def record_steps(monkeypatch, ends_at=None):
    """The steps that are taken; at one of them this process dies."""
    steps = []

    def report(self, done, total, phase):
        if phase.startswith("training"):
            steps.append(done)
            if done == ends_at:
                raise KeyboardInterrupt
        PLAIN(self, done, total, phase)

    monkeypatch.setattr(encoders._Checkpoints, "__call__", report)
    return steps


@pytest.mark.slow
def test_an_encoder_is_trained_compared_activated_and_rolled_back(
    archive, manager, stranger, api_as, monkeypatch
):
    api = api_as(manager)
    data = {"method": "encoder", "steps": 20, "hours": 1}
    made = api.post(URL, data, format="json").json()
    assert (made["method"], made["steps"], made["hours"]) == ("encoder", 20, 1.0)
    learning = learning_get(manager, made["id"])
    assert request_training(archive, manager) == learning  # one at a time
    assert AuditEntry.objects.get(action="learning.requested").details["method"] == "encoder"
    steps = record_steps(monkeypatch, ends_at=10)
    with pytest.raises(KeyboardInterrupt):
        job_run(learning.job_id)  # killed after the second checkpoint
    assert folder_of(learning).is_dir()
    assert not Encoder.objects.filter(lab=archive.lab).exists()
    again(learning.job_id)
    steps_after = record_steps(monkeypatch)
    archive.run_jobs()
    assert steps == list(range(1, 11)) and steps_after[-1] == 20
    assert steps_after[0] == 9  # from its checkpoint, not from the start
    assert not folder_of(learning).exists()

    learning = learning_get(manager, learning.pk)
    result = LearningResult.from_json(learning.result)
    assert (result.regions, result.patients, result.test_patients) == (28, 14, 5)
    assert (result.learned_regions, result.learned_patients) == (18, 9)
    assert {change.label for change in result.changes} == {"dense", "sparse"}
    assert result.chosen == f"20 steps from {learning.base}"
    assert len(learning.training["loss"]) == len(learning.training["held_out"]) == 20
    assert learning.trained_s > 0
    lab_encoder = learning.encoder
    assert (lab_encoder.lab, lab_encoder.base, lab_encoder.is_trained) == (
        archive.lab,
        learning.base,
        True,
    )
    (entry,) = AuditEntry.objects.filter(action="roi.exported")  # written once, by two attempts
    assert (entry.actor_id, entry.details["count"]) == (manager.pk, 28)
    body = api.get(f"{URL}{learning.pk}/").json()
    assert body["training"]["steps"] == 20 and body["encoder"]["lab"] == str(archive.lab.pk)
    assert api_as(stranger).get(f"{URL}{learning.pk}/").status_code == 404
    assert api_as(stranger).get(f"/api/v1/encoders/{lab_encoder.pk}/").status_code == 404

    page = client_of(manager)
    shown = page.get(f"/lab/learning/{learning.pk}/").content.decode()
    for words in ("20 of 20", "18 regions of 9 patients", "Loss by step", "is-line-2", "CPU (cpu)"):
        assert words in shown
    if not learning.is_better:  # twenty steps prove little; what follows does not depend on it
        with pytest.raises(ConflictError, match="not better"):
            learning_promote(learning=learning, user=manager)
        Learning.objects.filter(pk=learning.pk).update(is_better=True)
    query = archive.made[0][0]
    before = searched(manager, query)
    learning_promote(learning=learning, user=manager)
    assert searched(manager, query).query.encoder == learning.base
    archive.run_jobs()
    assert learning_get(manager, learning.pk).use == "yes"
    after = searched(manager, query)
    assert after.query.encoder == lab_encoder
    assert Embedding.objects.filter(encoder=lab_encoder).count() == 28
    vectors = {row.encoder_id: vector_of(row) for row in Embedding.objects.filter(roi=query)}
    assert 0 < np.linalg.norm(vectors[lab_encoder.pk] - vectors[learning.base_id]) < 2

    new = drawn(archive, PATIENTS)[0]
    archive.run_jobs()
    assert Embedding.objects.filter(roi=new, encoder=lab_encoder).exists()
    assert searched(manager, new).query.encoder == lab_encoder
    assert new.pk in {hit.roi.pk for hit in searched(manager, query, k=60).hits}

    learning_roll_back(learning=learning, user=manager)
    back = searched(manager, query)
    assert back.query.encoder == learning.base
    old = {hit.roi.pk: hit.distance for hit in before.hits}
    assert old.items() <= {hit.roi.pk: hit.distance for hit in back.hits}.items()
    by_name = searched(manager, query, encoder_id=lab_encoder.pk)
    assert [hit.roi.pk for hit in by_name.hits][: len(after.hits)]


def test_damaged_weights_spoil_neither_new_regions_nor_the_archive(archive, manager):
    """They fail the job that goes by them, and no region is called impossible for it."""
    base = encoder_default()
    lab_encoder = Encoder.objects.create(
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
        lab=archive.lab, kind=HISTOLOGY, base=base, encoder=lab_encoder, weights=b"no weights"
    )
    new = drawn(archive, PATIENTS)[0]
    archive.run_jobs()
    assert Embedding.objects.filter(roi=new, encoder=base).exists()
    assert not Embedding.objects.filter(encoder=lab_encoder).exists()
    assert not Unembeddable.objects.exists()
    assert {job.state for job in jobs("roi_embed")} == {JobState.SUCCEEDED}
    assert {(job.state, job.error_code) for job in jobs("encoder_embed")} == {
        (JobState.FAILED, "weights")
    }


@pytest.mark.slow
def test_a_cancelled_training_leaves_no_picture(archive, manager, monkeypatch):
    learning = request_training(archive, manager)

    def report(self, done, total, phase):
        assert list(folder_of(learning).glob("set/histology/*.png"))
        Job.objects.filter(pk=learning.job_id).update(cancel_requested=True)
        self.context._renew()
        PLAIN(self, done, total, phase)

    monkeypatch.setattr(encoders._Checkpoints, "__call__", report)
    archive.run_jobs()
    assert Job.objects.get(pk=learning.job_id).state == JobState.CANCELLED
    assert not folder_of(learning).exists()
    learning.refresh_from_db()
    assert learning.result is None and learning.encoder is None


@pytest.mark.endurance
def test_a_retried_training_has_its_full_time_limit(archive, manager):
    learning = request_training(archive, manager, TrainingLimits(steps=20, hours=0.5))
    failed = Job.objects.get(pk=learning.job_id)
    Job.objects.filter(pk=failed.pk).update(state=JobState.FAILED)
    Learning.objects.filter(pk=learning.pk).update(trained_s=3600)
    job_retry(job=Job.objects.get(pk=failed.pk), user=manager)
    archive.run_jobs()
    learning = learning_get(manager, learning.pk)
    assert (learning.training["steps"], learning.training["stopped_early"]) == (20, False)
    assert learning.trained_s < 1800


@pytest.mark.endurance
def test_an_erasure_restarts_a_running_training(archive, manager, monkeypatch):
    learning = request_training(archive, manager)

    def report(self, done, total, phase):
        if phase.startswith("training") and done == 6:
            learning_folders_drop(lab_id=archive.lab.pk)
        PLAIN(self, done, total, phase)

    monkeypatch.setattr(encoders._Checkpoints, "__call__", report)
    job_run(learning.job_id)
    assert Job.objects.get(pk=learning.job_id).state == JobState.QUEUED
    assert not Encoder.objects.filter(lab=archive.lab).exists()
    assert not list(folder_of(learning).parent.glob("learning-*"))
    steps = record_steps(monkeypatch)
    again(learning.job_id)
    archive.run_jobs()
    assert steps[0] == 1
    assert Job.objects.get(pk=learning.job_id).state == JobState.SUCCEEDED


def test_an_export_ends_if_its_folder_is_removed(archive, manager, tmp_path):
    out = tmp_path / "set"
    progress = Mock(side_effect=lambda done, *_: shutil.rmtree(out) if done == 3 else None)
    with pytest.raises(FileNotFoundError):
        training_set_write(lab=archive.lab, user=manager, out=out, progress=progress)
    assert not out.exists()


@pytest.mark.slow
def test_a_full_disk_leaves_the_checkpoint(archive, manager, monkeypatch):
    learning = request_training(archive, manager)
    record_steps(monkeypatch, ends_at=10)
    with pytest.raises(KeyboardInterrupt):
        job_run(learning.job_id)
    again(learning.job_id)
    monkeypatch.setattr(folders, "require_room", Mock(side_effect=StorageFullError("Full.")))
    job_run(learning.job_id)
    assert Job.objects.get(pk=learning.job_id).state == JobState.QUEUED
    assert list(folder_of(learning).glob("work/patches/checkpoint*"))


def test_an_encoder_that_cannot_be_trained_fails_before_pictures_are_written(
    archive, manager, monkeypatch
):
    _, row = encoders.encoder_ready(HISTOLOGY)
    monkeypatch.setattr(encoders, "encoder_ready", lambda kind: (SimpleNamespace(name="u"), row))
    learning = request_training(archive, manager)
    archive.run_jobs()
    job = Job.objects.get(pk=learning.job_id)
    assert (job.state, job.error_message[:24]) == (JobState.FAILED, "u: only encoders over ou")
    assert not AuditEntry.objects.filter(action="roi.exported").exists()


@pytest.mark.endurance
def test_test_patients_are_no_training_data_when_others_are_added(archive, manager, monkeypatch):
    learning = request_training(archive, manager)
    record_steps(monkeypatch, ends_at=1)
    with pytest.raises(KeyboardInterrupt):
        job_run(learning.job_id)
    of = training_data(archive.lab.pk, learning.base)
    before = {str(p) for p in of.material.patients[encoders._split(of, folder_of(learning))]}
    for patient in range(PATIENTS, PATIENTS + 6):
        drawn(archive, patient)
    archive.run_jobs_of("roi_embed")
    of = training_data(archive.lab.pk, learning.base)
    assert len(of.rois) == 40
    after = {str(p) for p in of.material.patients[encoders._split(of, folder_of(learning))]}
    assert before == after
    messages = []
    plain = LeasedJobContext.progress

    def progress(self, done, total, phase):
        messages.append((done, total, phase))
        plain(self, done, total, phase)

    monkeypatch.setattr(LeasedJobContext, "progress", progress)
    record_steps(monkeypatch)
    again(learning.job_id)
    archive.run_jobs()
    result = LearningResult.from_json(learning_get(manager, learning.pk).result)
    assert (result.patients, result.learned_patients, result.test_patients) == (20, 9, 5)
    bars = [(done, total) for done, total, phase in messages if phase == "embedding regions"]
    assert bars and all(done < total == 40 for done, total in bars)


def test_too_little_data_and_invalid_limits_are_errors(lab, annotator, storage, manager, api_as):
    world = World(lab, annotator, storage)
    world.names = world.labels("dense", "sparse")
    drawn(world, 0)
    world.run_jobs()
    with pytest.raises(ConflictError, check=lambda error: error.code == "too-little-data"):
        request_training(world, manager)
    with pytest.raises(ForbiddenError):
        request_training(world, annotator)
    for steps, hours in ((19, 1), (20_001, 1), (20, 0), (20, 72.5)):
        with pytest.raises(InvalidInputError, match="expected"):
            TrainingLimits(steps, hours)
    refused = api_as(manager).post(URL, {"method": "encoder", "steps": 3}, format="json")
    assert refused.status_code == 400 and "steps" in refused.content.decode()
    assert jobs("encoder_learn") == [] and not Learning.objects.exists()
