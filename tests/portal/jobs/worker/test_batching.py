"""Batches of waiting jobs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from portal.core.tasks import REGISTRY, Batching, JobCancelled, Priority
from portal.jobs import claims
from portal.jobs.models import Job, JobState, WorkerHeartbeat
from portal.jobs.services import job_cancel, job_submit
from portal.jobs.worker import context as contexts
from portal.jobs.worker import limits
from portal.jobs.worker.reaper import reap
from portal.labs.models import Lab, User
from tests.portal.jobs.queue_order import run_next

pytestmark = pytest.mark.django_db(transaction=True)


class Kind:
    """Kind of job that doubles numbers in batches."""

    def __init__(self, kind: Callable[..., str], most: int) -> None:
        self.batches: list[list[int]] = []
        self.single: list[int] = []
        self.most = most
        self.before: Callable[[Any], None] = lambda jobs: None
        batching = Batching(
            lambda: self.most,
            lambda arguments: [
                None if argument["n"] < 0 else argument["n"] // 100 for argument in arguments
            ],
            self.work,
        )
        self.name = kind(self.run, batching=batching)

    def work(self, jobs: Any) -> list[int]:
        self.batches.append([arguments["n"] for _, arguments in jobs])
        self.before(jobs)
        return [2 * arguments["n"] for _, arguments in jobs]

    def run(self, context: Any, *, n: int) -> dict[str, int]:
        context.progress(0, 1, "begun")
        if context.batch_result is None:
            self.single.append(n)
        with context.effect():
            pass
        return {"twice": context.batch_result if context.batch_result is not None else 2 * n}


@pytest.fixture
def doubling(kind: Callable[..., str]) -> Kind:
    return Kind(kind, most=4)


@pytest.fixture
def submit(doubling: Kind, lab: Lab, annotator: User) -> Callable[..., Job]:
    def submitted(n: int, person: User = annotator, at: Lab = lab, **options: Any) -> Job:
        name = options.pop("name", doubling.name)
        return job_submit(kind=name, args={"n": n}, lab=at, user=person, **options)

    return submitted


def states() -> list[tuple[int, str, int]]:
    rows = Job.objects.order_by("created_at", "pk").values_list("args", "state", "attempts")
    return [(args["n"], state, attempts) for args, state, attempts in rows]


def test_a_batch_takes_the_next_jobs_up_to_its_maximum(doubling: Kind, submit: Any) -> None:
    jobs = [submit(n) for n in range(6)]
    assert run_next() == jobs[0]
    assert doubling.batches == [[0, 1, 2, 3]] and doubling.single == []
    assert [state for _, state, _ in states()] == ["succeeded"] * 4 + ["queued"] * 2
    results = Job.objects.filter(state=JobState.SUCCEEDED).order_by("created_at")
    assert [job.result for job in results] == [{"twice": 2 * n} for n in range(4)]
    run_next()
    assert doubling.batches[1:] == [[4, 5]]


def test_a_single_job_runs_without_a_batch(doubling: Kind, submit: Any) -> None:
    submit(1)
    run_next()
    doubling.most = 1
    submit(2)
    submit(3)
    run_next()
    assert doubling.batches == [] and doubling.single == [1, 2]


def test_a_batch_ends_at_another_kind_priority_or_key(
    doubling: Kind, submit: Any, kind: Callable[..., str]
) -> None:
    other = kind(lambda context, *, n: None)
    submit(0, priority=Priority.INGEST)
    for n in (1, 2, 100, 3):  # 100 has another key
        submit(n)
    run_next()
    assert doubling.batches == [[1, 2]]
    run_next()  # 100 is next, 3 behind it
    assert doubling.single == [100] and doubling.batches == [[1, 2]]
    submit(4, name=other)
    submit(5)
    run_next()  # 3, followed by another kind
    assert doubling.single == [100, 3]
    run_next()
    run_next()
    assert doubling.single == [100, 3, 5], "of another priority: it does not go with the urgent"
    submit(-1)
    submit(-2)
    run_next()
    assert doubling.single[-1] == -1 and len(doubling.batches) == 1


def test_a_batch_follows_the_order_of_the_queue(
    doubling: Kind, submit: Any, reviewer: User
) -> None:
    for n in range(5):
        submit(n)
    submit(50, reviewer)
    run_next()
    assert doubling.batches == [[0, 50, 1, 2]]


def test_a_batch_leaves_other_workers_their_share(doubling: Kind, submit: Any) -> None:
    WorkerHeartbeat.objects.create(
        name="two", queues="default,gpu", processes=2, last_seen_at=Now()
    )
    for n in range(5):
        submit(n)
    run_next()
    assert doubling.batches == [[0, 1, 2]]


def test_cancelling_one_job_of_a_batch_leaves_the_others(
    doubling: Kind, submit: Any, annotator: User
) -> None:
    jobs = [submit(n) for n in range(3)]

    def cancel(pairs: Any) -> None:
        job_cancel(job=jobs[1], user=annotator)
        (context,) = [context for context, _ in pairs if context.job_id == jobs[1].pk]
        with pytest.raises(JobCancelled):
            context.progress(1, 3, "doubling")

    doubling.before = cancel
    run_next()
    assert [state for _, state, _ in states()] == ["succeeded", "cancelled", "succeeded"]


def test_jobs_run_singly_after_their_batch_failed(doubling: Kind, submit: Any) -> None:
    for n in range(3):
        submit(n)

    def fail(pairs: Any) -> None:
        raise MemoryError

    doubling.before = fail
    run_next()
    assert doubling.single == [0, 1, 2]
    assert {state for _, state, _ in states()} == {"succeeded"}


def test_jobs_of_a_lost_batch_are_tried_singly(
    doubling: Kind, submit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(3):
        submit(n)

    class Killed(BaseException):
        pass

    def die(pairs: Any) -> None:
        raise Killed

    doubling.before = die
    with pytest.raises(Killed):
        run_next()
    assert states() == [(n, "running", 1) for n in range(3)]
    assert contexts._open_contexts == []
    Job.objects.update(lease_until=Now() - timedelta(seconds=1))
    assert reap()[0] == 3
    doubling.before = lambda jobs: None
    for _ in range(3):
        run_next()
    assert states() == [(n, "succeeded", 2) for n in range(3)]
    assert doubling.batches == [[0, 1, 2]] and doubling.single == [0, 1, 2]


@pytest.mark.slow
def test_all_leases_are_renewed_during_a_batch(
    doubling: Kind, submit: Any, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.TESSERA_JOB_LEASE_S = 6  # renewed three times as often
    jobs = {submit(n).pk for n in range(3)}
    renewed: set[Any] = set()
    are_renewed = threading.Event()
    renew_lease = claims.renew_lease

    def renew(job_id: Any, *args: Any, **changes: Any) -> bool:
        if renew_lease(job_id, *args, **changes):
            renewed.add(job_id)
        if renewed == jobs:
            are_renewed.set()
        return job_id in renewed

    monkeypatch.setattr(claims, "renew_lease", renew)

    def slow(pairs: Any) -> None:
        assert are_renewed.wait(30), "not all leases are renewed"
        assert reap()[0] == 0

    doubling.before = slow
    run_next()
    assert states() == [(n, "succeeded", 1) for n in range(3)]


def test_a_time_limit_in_a_batch_requeues_its_jobs(
    doubling: Kind, submit: Any, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[list[tuple[int, str, int]]] = []
    is_killed = threading.Event()

    def kill() -> None:
        ended.append(states())
        is_killed.set()

    monkeypatch.setattr(limits, "kill_process", kill)
    settings.TESSERA_JOB_LIMITS_S = {doubling.name: 0.4}
    for n in range(2):
        submit(n)

    def hang(pairs: Any) -> None:
        is_killed.wait(10)

    doubling.before = hang
    run_next()
    assert ended[0] == [(0, "queued", 1), (1, "queued", 1)]


def test_roi_embed_is_the_only_kind_with_batching(settings: Any) -> None:
    settings.TESSERA_EMBED_BATCH_SIZE = 7
    known = {kind: spec.batching.max_size() for kind, spec in REGISTRY.items() if spec.batching}
    assert known == {"roi_embed": 7}
