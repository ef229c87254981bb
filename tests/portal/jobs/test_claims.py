"""Claims, state changes, the reaper and retries of jobs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.db import IntegrityError, OperationalError, transaction
from django.utils import timezone

from ml.errors import CorruptFileError
from portal.annotations.models import RoiImport
from portal.core.errors import ConflictError
from portal.core.models import Event
from portal.core.tasks import LeaseLost, UserError
from portal.jobs import claims
from portal.jobs.models import Job, JobState
from portal.jobs.services import job_cancel, job_retry, job_submit
from portal.jobs.worker.reaper import reap, reap_forever
from portal.jobs.worker.runner import job_run
from portal.labs.models import Lab, User
from tests.portal.annotations.conftest import make_canvas

pytestmark = pytest.mark.django_db
Kind = Callable[..., str]


def _quiet(context: Any) -> dict[str, int]:
    return {"answer": 42}


@pytest.fixture
def job(lab: Lab, annotator: User, kind: Kind) -> Job:
    return job_submit(kind=kind(_quiet), args={}, lab=lab, user=annotator)


def test_a_job_runs_once_and_stores_its_result(job: Job) -> None:
    assert job_run(job.pk) is True
    assert job_run(job.pk) is False
    job.refresh_from_db()
    assert (job.state, job.result, job.attempts) == (JobState.SUCCEEDED, {"answer": 42}, 1)


def test_only_one_of_two_claims_wins(job: Job) -> None:
    first, second = claims.claim(job.pk, worker="a"), claims.claim(job.pk, worker="b")
    assert first is not None and first.worker == "a"
    assert second is None


def test_the_end_of_a_job_emits_one_event(job: Job) -> None:
    job_run(job.pk)
    job_run(job.pk)
    ended = Event.objects.filter(name="job.ended", payload__job_id=str(job.pk))
    assert [event.payload["state"] for event in ended] == ["succeeded"]


def test_the_message_is_sent_only_after_commit(
    lab: Lab,
    annotator: User,
    kind: Kind,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: Any,
) -> None:
    sent: list[Job] = []
    monkeypatch.setattr("portal.jobs.worker.messages.send", lambda job: sent.append(job) or True)
    with django_capture_on_commit_callbacks(execute=True):
        job = job_submit(kind=kind(_quiet), args={}, lab=lab, user=annotator)
        assert sent == []
    assert sent == [job]


def test_a_unique_job_is_the_only_open_one_of_its_kind_and_arguments(
    lab: Lab, annotator: User, kind: Kind
) -> None:
    name, other = kind(lambda context, n: None), kind(_quiet)

    def submit(kind: str, **args: int) -> Job:
        return job_submit(kind=kind, args=args, lab=lab, user=annotator, is_unique=True)

    first = submit(name, n=1)
    assert submit(name, n=1).pk == first.pk
    assert len({first.pk, submit(name, n=2).pk, submit(other).pk}) == 3
    with pytest.raises(IntegrityError), transaction.atomic():
        Job.objects.create(lab=lab, kind=name, unique_key=first.unique_key)
    job_run(first.pk)
    assert submit(name, n=1).pk != first.pk


def test_a_failed_job_has_code_and_message(lab: Lab, annotator: User, kind: Kind) -> None:
    def broken(context: Any) -> None:
        raise UserError("The file is empty.", code="empty")

    name = kind(broken)
    first = job_submit(kind=name, args={}, lab=lab, user=annotator)
    job_run(first.pk)
    first.refresh_from_db()
    assert (first.state, first.error_code) == (JobState.FAILED, "empty")
    assert first.error_message == "The file is empty."


def test_bad_input_fails_without_a_retry(lab: Lab, annotator: User, kind: Kind) -> None:
    def truncated(context: Any) -> None:
        raise CorruptFileError("slide.svs: ends after 12 of 40 tiles")

    job = job_submit(kind=kind(truncated, max_attempts=3), args={}, lab=lab, user=annotator)
    job_run(job.pk)
    job.refresh_from_db()
    assert (job.state, job.error_code, job.attempts) == (JobState.FAILED, "corrupt-file", 1)


def test_the_message_of_a_bug_hides_its_traceback(lab: Lab, annotator: User, kind: Kind) -> None:
    def bug(context: Any) -> None:
        raise ZeroDivisionError("secret path")

    job = job_submit(kind=kind(bug), args={}, lab=lab, user=annotator)
    job_run(job.pk)
    job.refresh_from_db()
    assert job.state == JobState.FAILED
    assert "secret path" not in job.error_message
    assert "ZeroDivisionError" in job.traceback


def test_retries_have_growing_pauses(lab: Lab, annotator: User, kind: Kind) -> None:
    def away(context: Any) -> None:
        raise OSError("storage away")

    job = job_submit(
        kind=kind(away, max_attempts=3, backoff_s=100), args={}, lab=lab, user=annotator
    )
    pauses = []
    for _ in range(2):
        job_run(job.pk)
        job.refresh_from_db()
        assert job.state == JobState.QUEUED and job.not_before is not None
        pauses.append(round((job.not_before - timezone.now()).total_seconds()))
        assert job_run(job.pk) is False  # not before its time
        Job.objects.filter(pk=job.pk).update(not_before=None)
    assert pauses == [100, 200]
    job_run(job.pk)
    job.refresh_from_db()
    assert (job.state, job.error_code, job.attempts) == (JobState.FAILED, "attempts-spent", 3)


def test_a_waiting_job_is_cancelled_at_once(job: Job, annotator: User) -> None:
    job_cancel(job=job, user=annotator)
    assert job.state == JobState.CANCELLED
    assert job_run(job.pk) is False
    with pytest.raises(ConflictError):
        job_cancel(job=job, user=annotator)


def test_a_running_job_sees_the_cancel_flag(lab: Lab, annotator: User, kind: Kind) -> None:
    reached: list[int] = []

    def slow(context: Any) -> None:
        for done in range(10):
            Job.objects.filter(pk=context.job_id).update(cancel_requested=done >= 3)
            context.progress(done, 10, f"step {done}")
            reached.append(done)

    job = job_submit(kind=kind(slow), args={}, lab=lab, user=annotator)
    job_run(job.pk)
    job.refresh_from_db()
    assert job.state == JobState.CANCELLED
    assert reached == [0, 1, 2]


def test_a_worker_without_its_lease_cannot_commit_an_effect(
    lab: Lab, annotator: User, kind: Kind
) -> None:
    def paused(context: Any) -> None:
        Job.objects.filter(pk=context.job_id).update(
            state=JobState.QUEUED, lease_token=None, lease_until=None
        )
        with context.effect():
            Event.objects.create(name="written twice")

    job = job_submit(kind=kind(paused), args={}, lab=lab, user=annotator)
    job_run(job.pk)
    job.refresh_from_db()
    assert job.state == JobState.QUEUED
    assert not Event.objects.filter(name="written twice").exists()


def test_an_effect_ends_the_job_in_the_same_transaction(
    lab: Lab, annotator: User, kind: Kind
) -> None:
    def dies_after_its_effect(context: Any) -> None:
        with context.effect():
            Event.objects.create(name="once")
        raise LeaseLost("as if killed here")

    job = job_submit(kind=kind(dies_after_its_effect), args={}, lab=lab, user=annotator)
    job_run(job.pk)
    job_run(job.pk)
    job.refresh_from_db()
    assert job.state == JobState.SUCCEEDED
    assert Event.objects.filter(name="once").count() == 1


def _silence(job: Job, **fields: Any) -> None:
    claims.claim(job.pk, worker="gone")
    past = timezone.now() - timedelta(seconds=1)
    Job.objects.filter(pk=job.pk).update(lease_until=past, **fields)


def test_the_reaper_requeues_a_lost_job(job: Job) -> None:
    _silence(job)
    assert reap()[0] == 1
    assert job_run(job.pk) is True
    job.refresh_from_db()
    assert (job.state, job.attempts) == (JobState.SUCCEEDED, 2)


def test_the_reaper_fails_a_job_whose_attempts_were_all_lost(job: Job) -> None:
    _silence(job, attempts=3)
    reap()
    job.refresh_from_db()
    assert (job.state, job.error_code) == (JobState.FAILED, "worker-lost")


def test_the_reaper_cancels_a_lost_job_with_the_cancel_flag(job: Job) -> None:
    _silence(job, cancel_requested=True)
    reap()
    job.refresh_from_db()
    assert job.state == JobState.CANCELLED


def test_the_reaper_ignores_a_running_job(job: Job) -> None:
    claims.claim(job.pk, worker="alive")
    assert reap() == (0, 0)


def test_leases_are_extended_after_an_outage_of_the_database(
    job: Job, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    """Three passes: lost to the outage, still within the grace, and after it."""
    settings.TESSERA_JOB_LEASE_S, settings.TESSERA_JOB_REAP_EVERY_S = 30, 0
    _silence(job)
    clock = [1000.0]
    states: list[str] = []
    stop = threading.Event()

    def away_once() -> None:
        clock[0] += 20
        if clock[0] == 1020:
            raise OperationalError("the database system is starting up")
        job.refresh_from_db()
        states.append(job.state)
        if clock[0] == 1080:
            stop.set()

    monkeypatch.setattr("portal.jobs.worker.reaper.time.monotonic", lambda: clock[0])
    monkeypatch.setattr("portal.jobs.worker.reaper.connection_refresh", away_once)
    reap_forever(stop)
    assert states == [JobState.RUNNING, JobState.RUNNING, JobState.QUEUED]


def test_the_reaper_sends_unclaimed_jobs_again(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Job] = []
    monkeypatch.setattr("portal.jobs.worker.messages.send", lambda job: sent.append(job) or True)
    assert reap() == (0, 1)
    assert reap() == (0, 0), "its message is on its way"
    Job.objects.filter(pk=job.pk).update(sent_at=timezone.now() - timedelta(minutes=1))
    assert reap() == (0, 1)
    assert sent == [job, job]


def test_a_failed_message_is_sent_by_the_next_pass(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portal.jobs.worker.messages.send", lambda job: False)
    assert reap() == (0, 0)
    monkeypatch.setattr("portal.jobs.worker.messages.send", lambda job: True)
    assert reap() == (0, 1)


def test_a_retry_is_a_new_row(job: Job, annotator: User) -> None:
    with pytest.raises(ConflictError):
        job_retry(job=job, user=annotator)
    job_cancel(job=job, user=annotator)
    again = job_retry(job=job, user=annotator)
    assert again.pk != job.pk and again.state == JobState.QUEUED


def test_two_retries_of_a_job_return_one_new_job(
    job: Job, annotator: User, lab: Lab, kind: Kind
) -> None:
    job_cancel(job=job, user=annotator)
    job_submit(kind=job.kind, args={"other": 1}, lab=lab, user=annotator)
    again = job_retry(job=job, user=annotator)
    assert job_retry(job=job, user=annotator) == again
    job_cancel(job=again, user=annotator)
    assert job_retry(job=job, user=annotator) != again


def test_foreign_keys_move_to_the_retried_job(job: Job, annotator: User, lab: Lab) -> None:
    canvas = make_canvas(lab)
    mine, others = (RoiImport.objects.create(lab=lab, canvas=canvas) for _ in range(2))
    RoiImport.objects.filter(pk=mine.pk).update(job=job)
    job_cancel(job=job, user=annotator)
    again = job_retry(job=job, user=annotator)
    mine.refresh_from_db()
    others.refresh_from_db()
    assert (mine.job_id, others.job_id) == (again.pk, None)


def test_every_model_refers_to_jobs_by_a_foreign_key() -> None:
    """By a key, so that ``job_retry`` finds it; a bare id would stay with the job that ended."""
    bare = [
        f"{model.__name__}.{field.name}"
        for model in apps.get_models()
        for field in model._meta.concrete_fields
        if field.attname in {"job_id", "task_id"} and field.related_model is not Job
    ]
    assert bare == []
