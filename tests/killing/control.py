"""Answers ``submit STEPS [KIND:]NAME...``, ``again TIMES``, ``state`` and ``clear``.

A process of its own, so that the tests look at the portal's database from outside.
"""

from __future__ import annotations

import os

import django

django.setup()

from portal.core.models import Event  # noqa: E402
from portal.jobs.models import Job  # noqa: E402
from portal.jobs.services import job_submit  # noqa: E402
from portal.jobs.worker.messages import send  # noqa: E402
from portal.labs.models import Lab  # noqa: E402
from tests.killing.command_line import dispatch  # noqa: E402


def submit(steps: str, *names: str) -> object:
    """Submit one job a name."""
    lab, _ = Lab.objects.get_or_create(slug="kill", defaults={"name": "Kill"})
    log = os.environ["TESSERA_KILL_LOG"]
    jobs = [
        job_submit(
            kind=kind or "count_slowly",
            args={"name": name, "steps": int(steps), "log": log},
            lab=lab,
            user=None,
        )
        for kind, _, name in (word.rpartition(":") for word in names)
    ]
    return [str(job.pk) for job in jobs]


def again(times: str) -> object:
    """Deliver every job's message that many times more."""
    for job in Job.objects.all():
        for _ in range(int(times)):
            send(job)
    return None


def state() -> object:
    """Every job by name, and how many effects each had."""
    jobs = list(Job.objects.all())  # first: a job that ended has its effect by then
    effects = [event.payload["name"] for event in Event.objects.filter(name="effect")]
    ended = list(Event.objects.filter(name="job.ended").values_list("payload__job_id", flat=True))
    return {
        job.args.get("name", str(job.pk)): {
            "state": job.state,
            "attempts": job.attempts,
            "error": job.error_code,
            "phase": job.phase,
            "effects": effects.count(job.args.get("name")),
            "ended": ended.count(str(job.pk)),
        }
        for job in jobs
    }


def clear() -> object:
    """No job, no event."""
    Job.objects.all().delete()
    Event.objects.all().delete()
    return None


if __name__ == "__main__":
    dispatch({"submit": submit, "again": again, "state": state, "clear": clear})
