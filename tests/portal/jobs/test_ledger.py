"""The state machine: who may move a row, and that only one wins."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.db import OperationalError
from django.utils import timezone

from ml.errors import CorruptFileError
from portal.annotations.models import RoiImport
from portal.core.errors import ConflictError, ForbiddenError
from portal.core.models import Event
from portal.core.tasks import LeaseLost, UserError
from portal.jobs import ledger
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


def test_a_job_runs_once_and_keeps_its_result(job: Job) -> None:
    assert job_run(job.pk) is True
    assert job_run(job.pk) is False
    job.refresh_from_db()
    assert (job.state, job.result, job.attempts) == (JobState.SUCCEEDED, {"answer": 42}, 1)


def test_only_one_of_two_claims_wins(job: Job) -> None:
    first, second = ledger.claim(job.pk, worker="a"), ledger.claim(job.pk, worker="b")
    assert first is not None and first.worker == "a"
    assert second is None


def test_an_end_is_told_exactly_once(job: Job) -> None:
    job_run(job.pk)
    job_run(job.pk)
    ended = Event.objects.filter(name="job.ended", payload__job_id=str(job.pk))
    assert [event.payload["state"] for event in ended] == ["succeeded"]


def test_the_bell_is_rung_only_after_commit(
    lab: Lab,
    annotator: User,
    kind: Kind,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: Any,
) -> None:
    rung: list[Any] = []
    monkeypatch.setattr("portal.jobs.services.ring", lambda job_id, queue: rung.append(job_id))
    with django_capture_on_commit_callbacks(execute=True):
        job = job_submit(kind=kind(_quiet), args={}, lab=lab, user=annotator)
        assert rung == []
    assert rung == [job.pk]


def test_the_same_idempotency_key_gives_the_same_job(lab: Lab, annotator: User, kind: Kind) -> None:
    name = kind(_quiet)
    first = job_submit(kind=name, args={}, lab=lab, user=annotator, idempotency_key="k")
    second = job_submit(kind=name, args={}, lab=lab, user=annotator, idempotency_key="k")
    assert first.pk == second.pk
    job_run(first.pk)
    third = job_submit(kind=name, args={}, lab=lab, user=annotator, idempotency_key="k")
    assert third.pk == first.pk


def test_a_failed_job_frees_its_idempotency_key(lab: Lab, annotator: User, kind: Kind) -> None:
    def broken(context: Any) -> None:
        raise UserError("The file is empty.", code="empty")

    name = kind(broken)
    first = job_submit(kind=name, args={}, lab=lab, user=annotator, idempotency_key="k")
    job_run(first.pk)
    second = job_submit(kind=name, args={}, lab=lab, user=annotator, idempotency_key="k")
    assert second.pk != first.pk
    first.refresh_from_db()
    assert (first.state, first.error_code) == (JobState.FAILED, "empty")
    assert first.error_message == "The file is empty."


def test_bad_input_tells_the_user_and_is_not_retried(lab: Lab, annotator: User, kind: Kind) -> None:
    def truncated(context: Any) -> None:
        raise CorruptFileError("slide.svs: ends after 12 of 40 tiles")

    job = job_submit(kind=kind(truncated, max_attempts=3), args={}, lab=lab, user=annotator)
    job_run(job.pk)
    job.refresh_from_db()
    assert (job.state, job.error_code, job.attempts) == (JobState.FAILED, "corrupt-file", 1)


def test_a_bug_keeps_its_traceback_from_the_user(lab: Lab, annotator: User, kind: Kind) -> None:
    def bug(context: Any) -> None:
        raise ZeroDivisionError("secret path")

    job = job_submit(kind=kind(bug), args={}, lab=lab, user=annotator)
    job_run(job.pk)
    job.refresh_from_db()
    assert job.state == JobState.FAILED
    assert "secret path" not in job.error_message
    assert "ZeroDivisionError" in job.traceback


def test_what_is_worth_it_is_retried_with_growing_pauses(
    lab: Lab, annotator: User, kind: Kind
) -> None:
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


def test_a_viewer_may_not_cancel_and_another_annotator_neither(
    job: Job, viewer: User, lab: Lab, manager: User
) -> None:
    from portal.labs.models import Membership

    colleague = User.objects.create_user("colleague@north.example", "x")
    Membership.objects.create(user=colleague, lab=lab, role="annotator")
    for person in (viewer, colleague):
        with pytest.raises(ForbiddenError):
            job_cancel(job=job, user=person)
    assert job_cancel(job=job, user=manager).state == JobState.CANCELLED


def test_an_effect_is_refused_to_a_worker_that_lost_its_lease(
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


def test_an_effect_ends_the_job_in_its_own_transaction(
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
    ledger.claim(job.pk, worker="gone")
    past = timezone.now() - timedelta(seconds=1)
    Job.objects.filter(pk=job.pk).update(lease_until=past, **fields)


def test_the_reaper_gives_a_lost_job_to_the_next_worker(job: Job) -> None:
    _silence(job)
    assert reap()[0] == 1
    assert job_run(job.pk) is True
    job.refresh_from_db()
    assert (job.state, job.attempts) == (JobState.SUCCEEDED, 2)


def test_the_reaper_gives_up_when_every_attempt_was_lost(job: Job) -> None:
    _silence(job, attempts=3)
    reap()
    job.refresh_from_db()
    assert (job.state, job.error_code) == (JobState.FAILED, "worker-lost")


def test_the_reaper_ends_a_lost_job_that_was_to_be_cancelled(job: Job) -> None:
    _silence(job, cancel_requested=True)
    reap()
    job.refresh_from_db()
    assert job.state == JobState.CANCELLED


def test_the_reaper_leaves_a_living_job_alone(job: Job) -> None:
    ledger.claim(job.pk, worker="alive")
    assert reap() == (0, 0)


def test_after_the_database_was_away_workers_get_a_leases_time_to_renew(
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


def test_the_reaper_rings_what_was_never_heard(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    rung: list[Any] = []
    monkeypatch.setattr(
        "portal.jobs.worker.reaper.ring", lambda job_id, queue: rung.append((job_id, queue)) or True
    )
    Job.objects.filter(pk=job.pk).update(created_at=timezone.now() - timedelta(minutes=1))
    assert reap() == (0, 1)
    Job.objects.filter(pk=job.pk).update(rung_at=timezone.now())
    assert reap() == (0, 0)
    assert rung == [(job.pk, "default")]


def test_a_retry_is_a_new_row(job: Job, annotator: User) -> None:
    with pytest.raises(ConflictError):
        job_retry(job=job, user=annotator)
    job_cancel(job=job, user=annotator)
    again = job_retry(job=job, user=annotator)
    assert again.pk != job.pk and again.state == JobState.QUEUED


def test_two_retries_at_once_are_one_job(job: Job, annotator: User, lab: Lab, kind: Kind) -> None:
    job_cancel(job=job, user=annotator)
    job_submit(kind=job.kind, args={"other": 1}, lab=lab, user=annotator)
    again = job_retry(job=job, user=annotator)
    assert job_retry(job=job, user=annotator) == again
    job_cancel(job=again, user=annotator)
    assert job_retry(job=job, user=annotator) != again


def test_what_names_a_job_names_the_one_that_goes_on_with_its_work(
    job: Job, annotator: User, lab: Lab
) -> None:
    canvas = make_canvas(lab)
    mine, others = (RoiImport.objects.create(lab=lab, canvas=canvas) for _ in range(2))
    RoiImport.objects.filter(pk=mine.pk).update(job=job)
    job_cancel(job=job, user=annotator)
    again = job_retry(job=job, user=annotator)
    mine.refresh_from_db()
    others.refresh_from_db()
    assert (mine.job_id, others.job_id) == (again.pk, None)


def test_every_model_that_keeps_a_job_points_to_it() -> None:
    """By a key, so that ``job_retry`` finds it; a bare id would stay with the job that ended."""
    bare = [
        f"{model.__name__}.{field.name}"
        for model in apps.get_models()
        for field in model._meta.concrete_fields
        if field.attname in {"job_id", "task_id"} and field.related_model is not Job
    ]
    assert bare == []
