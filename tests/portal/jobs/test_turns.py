"""Which job is next: the more urgent, and of equals in turn; on both databases the same."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection
from django.db.models.functions import Now
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from portal.core.tasks import JobYielded, Priority
from portal.jobs import ledger, selectors
from portal.jobs.models import Job, JobState, JobTurn, WorkerSign
from portal.jobs.selectors.waiting import PART_S
from portal.jobs.services import job_submit
from portal.jobs.worker.context import LedgerContext
from portal.jobs.worker.together import next_run
from portal.labs.models import Lab, User
from tests.threads import at_once

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _forget_lengths() -> None:
    cache.clear()


def nothing(context: Any) -> None:
    """A task without work."""


@pytest.fixture
def submit(kind: Callable[..., str], lab: Lab, annotator: User) -> Callable[..., Job]:
    name = kind(nothing)

    def submitted(person: User | None = annotator, at: Lab = lab, **options: Any) -> Job:
        return job_submit(kind=name, args={}, lab=at, user=person, **options)

    return submitted


def claimed() -> Job:
    job = ledger.claim_next("default", worker="w")
    assert job is not None
    return job


def test_the_urgent_goes_first_however_long_the_rest_waited(submit: Callable[..., Job]) -> None:
    bulk = submit(priority=Priority.BULK)
    ingest = submit(priority=Priority.INGEST)
    drawn = submit(priority=Priority.INTERACTIVE)
    assert [claimed().pk for _ in range(3)] == [drawn.pk, ingest.pk, bulk.pk]
    assert ledger.claim_next("default", worker="w") is None


def test_labs_take_turns_and_people_within_a_lab(
    submit: Callable[..., Job], annotator: User, reviewer: User, stranger: User, other_lab: Lab
) -> None:
    many = [submit(annotator) for _ in range(3)]
    one = submit(reviewer)
    other = submit(stranger, other_lab)
    portal = submit(None)
    assert [claimed().pk for _ in range(4)] == [many[0].pk, other.pk, one.pk, portal.pk]
    late = submit(reviewer)  # was served since; annotator's others waited longer
    assert [claimed().pk for _ in range(3)] == [many[1].pk, late.pk, many[2].pk]
    assert JobTurn.objects.count() == 4


def test_a_thousand_jobs_of_one_lab_keep_nobody_of_another_waiting(
    kind: Callable[..., str],
    submit: Callable[..., Job],
    lab: Lab,
    stranger: User,
    other_lab: Lab,
) -> None:
    """Jobs of one person or of forty, of one priority or of several."""
    people = User.objects.bulk_create(
        User(email=f"{n}@lab.example", full_name=str(n)) for n in range(40)
    )
    name = submit(people[0]).kind
    Job.objects.bulk_create(
        Job(
            lab=lab,
            kind=name,
            created_by=people[n % 40],
            priority=(Priority.INTERACTIVE, Priority.BULK)[n % 2],
        )
        for n in range(1000)
    )
    first = [claimed() for _ in range(3)]
    assert {job.lab_id for job in first} == {lab.pk}
    for _ in range(3):  # each of theirs starts next, though forty others were never served
        urgent = submit(stranger, other_lab)
        assert claimed().pk == urgent.pk
        assert claimed().lab_id == lab.pk
    theirs = [submit(stranger, other_lab) for _ in range(4)]
    taken = [claimed().lab_id for _ in range(8)]
    assert taken.count(other_lab.pk) == len(theirs)


def test_turns_of_one_priority_do_not_count_in_another(
    submit: Callable[..., Job], annotator: User, reviewer: User
) -> None:
    submit(annotator)
    claimed()
    first = submit(annotator, priority=Priority.BULK)
    second = submit(reviewer, priority=Priority.BULK)
    assert [claimed().pk, claimed().pk] == [first.pk, second.pk]


def test_what_is_not_due_or_of_another_queue_or_release_is_passed_over(
    submit: Callable[..., Job], annotator: User
) -> None:
    late, newer, unknown, gpu, due = (submit() for _ in range(5))
    Job.objects.filter(pk=late.pk).update(not_before=Now() + timedelta(hours=1))
    Job.objects.filter(pk=newer.pk).update(payload_version=2)
    Job.objects.filter(pk=unknown.pk).update(kind="of_tomorrow")
    Job.objects.filter(pk=gpu.pk).update(queue="gpu")
    assert claimed().pk == due.pk
    assert ledger.claim_next("default", worker="w") is None
    assert next_run(late.pk) is None
    assert selectors.waits().keys() == {newer.pk, unknown.pk, gpu.pk}


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(asked=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.booleans()), max_size=12))
def test_the_place_that_is_shown_is_the_order_of_the_claims(
    asked: list[tuple[int, int, bool]],
    submit: Callable[..., Job],
    annotator: User,
    reviewer: User,
    other_lab: Lab,
    lab: Lab,
) -> None:
    Job.objects.all().delete()
    people = (annotator, reviewer, None)
    for priority, person, elsewhere in asked:
        at = other_lab if elsewhere else lab
        submit(people[person], at, priority=Priority(priority))
    told = sorted(selectors.waits().items(), key=lambda pair: pair[1].position)
    assert [wait.position for _, wait in told] == list(range(1, len(asked) + 1))
    assert [claimed().pk for _ in asked] == [pk for pk, _ in told]


def test_a_claim_asks_few_queries_however_many_wait(
    submit: Callable[..., Job], django_assert_max_num_queries: Any
) -> None:
    for _ in range(30):
        submit()
    with django_assert_max_num_queries(10):
        claimed()


@pytest.mark.skipif(
    connection.vendor == "sqlite", reason="in memory its tables lock; tests/killing has a file"
)
@pytest.mark.django_db(transaction=True)
def test_two_workers_never_claim_the_same(submit: Callable[..., Job]) -> None:
    jobs = {submit().pk for _ in range(12)}
    found: list[Any] = []

    def work() -> None:
        try:
            while (job := ledger.claim_next("default", worker="w")) is not None:
                found.append(job.pk)
        finally:
            connection.close()

    at_once(work, 3)
    assert sorted(found) == sorted(jobs)


# --- giving way ---------------------------------------------------------------------------------


def test_bulk_gives_way_to_the_urgent_at_once_and_to_its_equals_after_a_while(
    submit: Callable[..., Job], annotator: User, reviewer: User
) -> None:
    submit(annotator, priority=Priority.BULK)
    running = claimed()
    assert not ledger.must_give_way(running, ran_long=True)
    submit(annotator, priority=Priority.BULK)
    assert not ledger.must_give_way(running, ran_long=True)  # one's own waits
    submit(reviewer, priority=Priority.BULK)
    assert ledger.must_give_way(running, ran_long=True)
    assert not ledger.must_give_way(running, ran_long=False)
    submit(annotator, priority=Priority.INGEST)
    assert ledger.must_give_way(running, ran_long=False)


def test_a_job_that_gives_way_is_in_the_queue_with_no_attempt_spent(
    kind: Callable[..., str], lab: Lab, annotator: User, submit: Callable[..., Job]
) -> None:
    def task(context: LedgerContext) -> None:
        context.progress(3, 10, "regions")
        submit()
        context.give_way()
        raise AssertionError("must not go on")

    name = kind(task, priority=Priority.BULK)
    bulk = job_submit(kind=name, args={}, lab=lab, user=annotator)
    next_run(bulk.pk)
    bulk.refresh_from_db()
    assert (bulk.state, bulk.attempts, bulk.lease_token) == (JobState.QUEUED, 0, None)
    assert (bulk.progress_done, bulk.progress_total) == (3, 10)


def test_a_part_lasts_and_forgives_the_attempts_before_it(submit: Callable[..., Job]) -> None:
    job = submit()
    Job.objects.filter(pk=job.pk).update(attempts=2)
    running = claimed()
    assert running.attempts == 3
    context = LedgerContext(running)
    with context.part():
        pass
    running.refresh_from_db()
    assert (running.state, running.attempts) == (JobState.RUNNING, 1)
    with pytest.raises(JobYielded):
        submit()
        Job.objects.filter(pk=running.pk).update(priority=Priority.BULK)
        running.refresh_from_db()
        LedgerContext(running).give_way()


# --- what people are told -----------------------------------------------------------------------


def _ended(job: Job, seconds: float) -> None:
    Job.objects.filter(pk=job.pk).update(
        state=JobState.SUCCEEDED,
        started_at=Now() - timedelta(seconds=seconds),
        finished_at=Now(),
    )


def test_the_wait_is_what_goes_before_at_the_usual_length(submit: Callable[..., Job]) -> None:
    WorkerSign.objects.create(name="w", queues="default,gpu", processes=2, seen_at=Now())
    _ended(submit(), 10.0)
    jobs = [submit() for _ in range(5)]
    line = selectors.waits()
    assert [round(line[job.pk].seconds or 0.0) for job in jobs] == [0, 0, 10, 10, 20]
    claimed()  # the first is at work: it has begun just now
    line = selectors.waits()
    assert [round(line[job.pk].seconds or 0.0) for job in jobs[1:]] == [0, 10, 10, 20]


def test_nothing_is_estimated_without_a_worker_or_for_kinds_that_never_ran(
    submit: Callable[..., Job],
) -> None:
    first, second = submit(), submit()
    assert {wait.seconds for wait in selectors.waits().values()} == {None}
    WorkerSign.objects.create(name="w", queues="default", processes=1, seen_at=Now())
    line = selectors.waits()
    assert (line[first.pk].seconds, line[second.pk].seconds) == (0.0, None)


def test_running_bulk_holds_its_worker_for_a_part_only(submit: Callable[..., Job]) -> None:
    WorkerSign.objects.create(name="w", queues="default", processes=1, seen_at=Now())
    submit(priority=Priority.BULK)
    claimed()
    drawn = submit()
    assert selectors.waits()[drawn.pk].seconds == PART_S


def test_the_time_left_follows_from_the_progress_of_the_phase(submit: Callable[..., Job]) -> None:
    submit()
    job = claimed()
    assert selectors.time_left_s(job) is None
    Job.objects.filter(pk=job.pk).update(
        phase_at=Now() - timedelta(seconds=20),
        heartbeat_at=Now(),
        phase_from=100,
        progress_done=110,
        progress_total=150,
    )
    job.refresh_from_db()
    assert selectors.time_left_s(job) == pytest.approx(80, rel=0.01)
