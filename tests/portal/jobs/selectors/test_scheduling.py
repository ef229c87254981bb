"""Order, estimates and messages of waiting jobs."""

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
from portal.jobs import claims
from portal.jobs.models import Job, JobState, LastServed, WorkerHeartbeat
from portal.jobs.selectors.estimates import BULK_PART_S, time_left_s, wait_estimates
from portal.jobs.selectors.scheduling import next_jobs
from portal.jobs.services import job_submit
from portal.jobs.templatetags.jobs import time_left
from portal.jobs.worker.batching import run_if_next
from portal.jobs.worker.context import LeasedJobContext
from portal.labs.models import Lab, User
from tests.portal.jobs.queue_order import claim_next, run_next
from tests.threads import at_once

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _forget_lengths() -> None:
    cache.clear()


def do_nothing(context: Any) -> None:
    """A task without work."""


@pytest.fixture
def submit(kind: Callable[..., str], lab: Lab, annotator: User) -> Callable[..., Job]:
    name = kind(do_nothing)

    def submitted(person: User | None = annotator, at: Lab = lab, **options: Any) -> Job:
        return job_submit(kind=name, args={}, lab=at, user=person, **options)

    return submitted


def claimed() -> Job:
    job = claim_next()
    assert job is not None
    return job


def test_urgent_jobs_go_first(submit: Callable[..., Job]) -> None:
    bulk = submit(priority=Priority.BULK)
    ingest = submit(priority=Priority.INGEST)
    drawn = submit(priority=Priority.INTERACTIVE)
    assert [claimed().pk for _ in range(3)] == [drawn.pk, ingest.pk, bulk.pk]
    assert claim_next() is None


def test_labs_and_people_within_a_lab_take_turns(
    submit: Callable[..., Job], annotator: User, reviewer: User, stranger: User, other_lab: Lab
) -> None:
    many = [submit(annotator) for _ in range(3)]
    item = submit(reviewer)
    other = submit(stranger, other_lab)
    portal = submit(None)
    assert [claimed().pk for _ in range(4)] == [many[0].pk, other.pk, item.pk, portal.pk]
    late = submit(reviewer)  # was served since; annotator's others waited longer
    assert [claimed().pk for _ in range(3)] == [many[1].pk, late.pk, many[2].pk]
    assert LastServed.objects.count() == 4


def test_a_thousand_jobs_of_one_lab_do_not_delay_another_lab(
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


def test_last_served_times_are_stored_by_priority(
    submit: Callable[..., Job], annotator: User, reviewer: User
) -> None:
    submit(annotator)
    claimed()
    first = submit(annotator, priority=Priority.BULK)
    second = submit(reviewer, priority=Priority.BULK)
    assert [claimed().pk, claimed().pk] == [first.pk, second.pk]


def test_jobs_not_due_or_of_another_queue_or_release_are_skipped(
    submit: Callable[..., Job], annotator: User
) -> None:
    late, newer, unknown, gpu, due = (submit() for _ in range(5))
    Job.objects.filter(pk=late.pk).update(not_before=Now() + timedelta(hours=1))
    Job.objects.filter(pk=newer.pk).update(payload_version=2)
    Job.objects.filter(pk=unknown.pk).update(kind="of_tomorrow")
    Job.objects.filter(pk=gpu.pk).update(queue="gpu")
    assert claimed().pk == due.pk
    assert claim_next() is None
    assert not run_if_next(late.pk)
    assert wait_estimates().keys() == {newer.pk, unknown.pk, gpu.pk}


@pytest.mark.slow
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    requested=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.booleans()), max_size=12)
)
def test_estimated_positions_are_the_order_of_the_claims(
    requested: list[tuple[int, int, bool]],
    submit: Callable[..., Job],
    annotator: User,
    reviewer: User,
    other_lab: Lab,
    lab: Lab,
) -> None:
    Job.objects.all().delete()
    people = (annotator, reviewer, None)
    for priority, person, is_other_lab in requested:
        at = other_lab if is_other_lab else lab
        submit(people[person], at, priority=Priority(priority))
    names = sorted(wait_estimates().items(), key=lambda pair: pair[1].position)
    assert [wait.position for _, wait in names] == list(range(1, len(requested) + 1))
    assert [claimed().pk for _ in requested] == [pk for pk, _ in names]


def test_a_claim_needs_a_constant_number_of_queries(
    submit: Callable[..., Job], django_assert_max_num_queries: Any
) -> None:
    for _ in range(30):
        submit()
    (first,) = next_jobs("default", 1)
    with django_assert_max_num_queries(14 if connection.vendor == "postgresql" else 12):
        assert claims.claim_if_next(first.pk, worker="w").job is not None


@pytest.mark.skipif(
    connection.vendor == "sqlite", reason="in memory its tables lock; tests/killing has a file"
)
@pytest.mark.django_db(transaction=True)
def test_two_workers_never_claim_the_same_job(submit: Callable[..., Job]) -> None:
    jobs = {submit().pk for _ in range(12)}
    claimed: list[Any] = []

    def work() -> None:
        try:
            while (job := claim_next()) is not None:
                claimed.append(job.pk)
        finally:
            connection.close()

    at_once(work, 3)
    assert sorted(claimed) == sorted(jobs)


# --- giving way ---------------------------------------------------------------------------------


def test_bulk_jobs_yield_to_urgent_jobs_and_later_to_their_equals(
    submit: Callable[..., Job], annotator: User, reviewer: User
) -> None:
    submit(annotator, priority=Priority.BULK)
    running = claimed()
    assert not claims.must_yield(running, ran_long=True)
    submit(annotator, priority=Priority.BULK)
    assert not claims.must_yield(running, ran_long=True)  # one's own waits
    submit(reviewer, priority=Priority.BULK)
    assert claims.must_yield(running, ran_long=True)
    assert not claims.must_yield(running, ran_long=False)
    submit(annotator, priority=Priority.INGEST)
    assert claims.must_yield(running, ran_long=False)


def test_a_job_that_yields_is_queued_without_an_attempt(
    kind: Callable[..., str], lab: Lab, annotator: User, submit: Callable[..., Job]
) -> None:
    def task(context: LeasedJobContext) -> None:
        context.progress(3, 10, "regions")
        submit()
        context.give_way()
        raise AssertionError("must not go on")

    name = kind(task, priority=Priority.BULK)
    bulk = job_submit(kind=name, args={}, lab=lab, user=annotator)
    assert run_next() == bulk
    bulk.refresh_from_db()
    assert (bulk.state, bulk.attempts, bulk.lease_token) == (JobState.QUEUED, 0, None)
    assert (bulk.progress_done, bulk.progress_total) == (3, 10)


def test_a_part_is_committed_and_resets_the_attempts(submit: Callable[..., Job]) -> None:
    job = submit()
    Job.objects.filter(pk=job.pk).update(attempts=2)
    running = claimed()
    assert running.attempts == 3
    context = LeasedJobContext(running)
    with context.part():
        pass
    running.refresh_from_db()
    assert (running.state, running.attempts) == (JobState.RUNNING, 1)
    with pytest.raises(JobYielded):
        submit()
        Job.objects.filter(pk=running.pk).update(priority=Priority.BULK)
        running.refresh_from_db()
        LeasedJobContext(running).give_way()


# --- what people can read -----------------------------------------------------------------------


def _ended(job: Job, seconds: float) -> None:
    Job.objects.filter(pk=job.pk).update(
        state=JobState.SUCCEEDED,
        started_at=Now() - timedelta(seconds=seconds),
        finished_at=Now(),
    )


def test_the_wait_is_estimated_from_mean_durations(submit: Callable[..., Job]) -> None:
    WorkerHeartbeat.objects.create(name="w", queues="default,gpu", processes=2, last_seen_at=Now())
    _ended(submit(), 10.0)
    jobs = [submit() for _ in range(5)]
    line = wait_estimates()
    assert [round(line[job.pk].seconds or 0.0) for job in jobs] == [0, 0, 10, 10, 20]
    claimed()  # the first is at work: it has begun just now
    line = wait_estimates()
    assert [round(line[job.pk].seconds or 0.0) for job in jobs[1:]] == [0, 10, 10, 20]


def test_waits_are_unknown_without_workers_or_durations(
    submit: Callable[..., Job],
) -> None:
    first, second = submit(), submit()
    assert {wait.seconds for wait in wait_estimates().values()} == {None}
    WorkerHeartbeat.objects.create(name="w", queues="default", processes=1, last_seen_at=Now())
    line = wait_estimates()
    assert (line[first.pk].seconds, line[second.pk].seconds) == (0.0, None)


def test_a_running_bulk_job_counts_as_one_part(submit: Callable[..., Job]) -> None:
    WorkerHeartbeat.objects.create(name="w", queues="default", processes=1, last_seen_at=Now())
    submit(priority=Priority.BULK)
    claimed()
    drawn = submit()
    assert wait_estimates()[drawn.pk].seconds == BULK_PART_S


def test_the_time_left_is_extrapolated_from_the_phase(submit: Callable[..., Job]) -> None:
    submit()
    job = claimed()
    assert time_left_s(job) is None
    Job.objects.filter(pk=job.pk).update(
        phase_at=Now() - timedelta(seconds=20),
        heartbeat_at=Now(),
        phase_from=100,
        progress_done=110,
        progress_total=150,
    )
    job.refresh_from_db()
    assert time_left_s(job) == pytest.approx(80, rel=0.01)
    assert time_left(job) == "about 1 min left"
    job.progress_done = 150
    assert time_left(job) == "", "a full bar says no time"


# --- messages -----------------------------------------------------------------------------------


def test_only_the_first_jobs_have_a_message(submit: Callable[..., Job]) -> None:
    jobs = [submit() for _ in range(5)]
    count = claims.max_message_count("default")
    assert claims.mark_sent("default") == jobs[:count]
    assert not claims.mark_sent_if_room(jobs[-1]) and claims.mark_sent("default") == []
    assert claims.claim_if_next(jobs[0].pk, worker="w") == (jobs[0], [jobs[count]])


def test_a_job_waits_for_a_more_urgent_one_that_was_sent_later(
    submit: Callable[..., Job], annotator: User
) -> None:
    bulk = [submit(priority=Priority.BULK) for _ in range(2)]
    assert claims.mark_sent("default") == bulk
    drawn = submit()
    assert claims.claim_if_next(bulk[0].pk, worker="w") == (None, [drawn, bulk[0]])
    assert claims.claim_if_next(drawn.pk, worker="w").job is not None
    assert claims.claim_if_next(bulk[0].pk, worker="w").job is not None


def test_a_job_does_not_wait_for_one_delivered_to_another_worker(
    submit: Callable[..., Job],
) -> None:
    first, second = submit(), submit()
    claims.mark_sent("default")
    assert claims.claim_if_next(second.pk, worker="w").job is not None
    assert claims.claim_if_next(first.pk, worker="w").job is not None


def test_a_new_job_that_was_sent_at_once_waits_for_an_older_unsent_one(
    submit: Callable[..., Job],
) -> None:
    older, new = submit(), submit()
    assert claims.mark_sent_if_room(new) and not claims.mark_sent_if_room(new)
    assert claims.claim_if_next(new.pk, worker="w") == (None, [older, new])


def test_a_submitted_job_needs_three_statements_to_be_sent(
    submit: Callable[..., Job], django_assert_num_queries: Any
) -> None:
    job = submit()
    with django_assert_num_queries(3):
        assert claims.mark_sent_if_room(job)
