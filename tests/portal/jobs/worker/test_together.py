"""Jobs that wait behind one another are worked on together, and each stands for itself."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from portal.core.tasks import REGISTRY, Ahead, JobCancelled, Priority
from portal.jobs.models import Job, JobState, WorkerSign
from portal.jobs.services import job_cancel, job_submit
from portal.jobs.worker import context as contexts
from portal.jobs.worker import limits
from portal.jobs.worker.reaper import reap
from portal.jobs.worker.together import next_run
from portal.labs.models import Lab, User

pytestmark = pytest.mark.django_db(transaction=True)


class Kind:
    """A kind that doubles numbers, several at once."""

    def __init__(self, kind: Callable[..., str], most: int) -> None:
        self.batches: list[list[int]] = []
        self.alone: list[int] = []
        self.most = most
        self.before: Callable[[Any], None] = lambda jobs: None
        ahead = Ahead(
            lambda: self.most,
            lambda arguments: [None if one["n"] < 0 else one["n"] // 100 for one in arguments],
            self.work,
        )
        self.name = kind(self.run, ahead=ahead)

    def work(self, jobs: Any) -> list[int]:
        self.batches.append([arguments["n"] for _, arguments in jobs])
        self.before(jobs)
        return [2 * arguments["n"] for _, arguments in jobs]

    def run(self, context: Any, *, n: int) -> dict[str, int]:
        context.progress(0, 1, "begun")
        if context.ahead is None:
            self.alone.append(n)
        with context.effect():
            pass
        return {"twice": context.ahead if context.ahead is not None else 2 * n}


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


def test_those_behind_go_with_the_first_up_to_the_most(doubling: Kind, submit: Any) -> None:
    jobs = [submit(n) for n in range(6)]
    assert next_run(jobs[3].pk).pk == jobs[0].pk
    assert doubling.batches == [[0, 1, 2, 3]] and doubling.alone == []
    assert [state for _, state, _ in states()] == ["succeeded"] * 4 + ["queued"] * 2
    results = Job.objects.filter(state=JobState.SUCCEEDED).order_by("created_at")
    assert [job.result for job in results] == [{"twice": 2 * n} for n in range(4)]
    next_run(jobs[0].pk)
    assert doubling.batches[1:] == [[4, 5]]


def test_the_last_one_or_a_device_that_takes_one_works_as_ever(doubling: Kind, submit: Any) -> None:
    job = submit(1)
    next_run(job.pk)
    doubling.most = 1
    others = [submit(2), submit(3)]
    next_run(others[0].pk)
    assert doubling.batches == [] and doubling.alone == [1, 2]


def test_the_line_ends_at_what_does_not_go_along(
    doubling: Kind, submit: Any, kind: Callable[..., str]
) -> None:
    other = kind(lambda context, *, n: None)
    submit(0, priority=Priority.INGEST)
    for n in (1, 2, 100, 3):  # 100 needs another encoder, so to say
        submit(n)
    first = Job.objects.order_by("created_at")[1]
    next_run(first.pk)
    assert doubling.batches == [[1, 2]]
    next_run(first.pk)  # 100 is next, 3 behind it
    assert doubling.alone == [100] and doubling.batches == [[1, 2]]
    submit(4, name=other)
    submit(5)
    next_run(first.pk)  # 3, behind which stands another kind
    assert doubling.alone == [100, 3]
    next_run(first.pk)
    next_run(first.pk)
    assert doubling.alone == [100, 3, 5], "of another priority: it does not go with the urgent"
    submit(-1)
    submit(-2)
    next_run(first.pk)
    assert doubling.alone[-1] == -1 and len(doubling.batches) == 1


def test_people_take_turns_in_what_is_taken_together(
    doubling: Kind, submit: Any, reviewer: User
) -> None:
    for n in range(5):
        submit(n)
    late = submit(50, reviewer)
    next_run(late.pk)
    assert doubling.batches == [[0, 50, 1, 2]]


def test_other_workers_are_left_their_share(doubling: Kind, submit: Any) -> None:
    WorkerSign.objects.create(name="two", queues="default,gpu", processes=2, seen_at=Now())
    for n in range(5):
        submit(n)
    next_run(Job.objects.first().pk)
    assert doubling.batches == [[0, 1, 2]]


def test_one_that_is_cancelled_meanwhile_ends_so_and_the_others_go_on(
    doubling: Kind, submit: Any, annotator: User
) -> None:
    jobs = [submit(n) for n in range(3)]

    def cancel(pairs: Any) -> None:
        job_cancel(job=jobs[1], user=annotator)
        (own,) = [context for context, _ in pairs if context.job_id == jobs[1].pk]
        with pytest.raises(JobCancelled):
            own.progress(1, 3, "doubling")

    doubling.before = cancel
    next_run(jobs[0].pk)
    assert [state for _, state, _ in states()] == ["succeeded", "cancelled", "succeeded"]


def test_common_work_that_fails_is_done_by_each_alone(doubling: Kind, submit: Any) -> None:
    jobs = [submit(n) for n in range(3)]

    def fail(pairs: Any) -> None:
        raise MemoryError

    doubling.before = fail
    next_run(jobs[0].pk)
    assert doubling.alone == [0, 1, 2]
    assert {state for _, state, _ in states()} == {"succeeded"}


def test_after_a_lost_worker_each_is_tried_alone_and_once(
    doubling: Kind, submit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What ``kill -9`` leaves: rows that run, and nobody who renews their leases."""
    jobs = [submit(n) for n in range(3)]

    class Killed(BaseException):
        pass

    def die(pairs: Any) -> None:
        raise Killed

    doubling.before = die
    with pytest.raises(Killed):
        next_run(jobs[0].pk)
    assert states() == [(n, "running", 1) for n in range(3)]
    assert contexts._OPEN == []
    Job.objects.update(lease_until=Now() - timedelta(seconds=1))
    assert reap()[0] == 3
    doubling.before = lambda jobs: None
    for _ in range(3):
        next_run(jobs[0].pk)
    assert states() == [(n, "succeeded", 2) for n in range(3)]
    assert doubling.batches == [[0, 1, 2]] and doubling.alone == [0, 1, 2]


def test_leases_of_all_are_renewed_while_the_common_work_goes_on(
    doubling: Kind, submit: Any, settings: Any
) -> None:
    settings.TESSERA_JOB_LEASE_S = 6  # renewed three times as often
    jobs = [submit(n) for n in range(3)]

    def leases() -> list[Any]:
        rows = Job.objects.filter(pk__in=[job.pk for job in jobs]).order_by("pk")
        return list(rows.values_list("lease_until", flat=True))

    def slow(pairs: Any) -> None:
        before, deadline_s = leases(), time.monotonic() + 30
        while not all(new > old for new, old in zip(leases(), before, strict=True)):
            assert time.monotonic() < deadline_s, "not all leases are renewed"
            time.sleep(0.05)
        assert reap()[0] == 0

    doubling.before = slow
    next_run(jobs[0].pk)
    assert states() == [(n, "succeeded", 1) for n in range(3)]


def test_a_limit_reached_together_fails_nobody(
    doubling: Kind, submit: Any, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process is ended; then each job has the whole limit to itself."""
    ended: list[list[tuple[int, str, int]]] = []
    monkeypatch.setattr(limits, "end_process", lambda: ended.append(states()))
    settings.TESSERA_JOB_LIMITS_S = {doubling.name: 0.4}
    jobs = [submit(n) for n in range(2)]

    def hang(pairs: Any) -> None:
        deadline_s = time.monotonic() + 10
        while not ended and time.monotonic() < deadline_s:
            time.sleep(0.05)

    doubling.before = hang
    next_run(jobs[0].pk)
    assert ended[0] == [(0, "queued", 1), (1, "queued", 1)]


def test_every_kind_that_works_ahead_can_be_asked(settings: Any) -> None:
    settings.TESSERA_EMBED_TOGETHER = 7
    known = {kind: spec.ahead.most() for kind, spec in REGISTRY.items() if spec.ahead}
    assert known == {"roi_embed": 7}
