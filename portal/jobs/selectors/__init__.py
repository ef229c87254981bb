"""Reads of the ledger."""

from portal.jobs.selectors.figures import (
    EndedFigures,
    QueueLength,
    database_now,
    ended_figures,
    failure_counts,
    queue_lengths,
    running_counts,
)
from portal.jobs.selectors.jobs import (
    ME,
    REAPER_QUEUES,
    WORKER_SILENT_AFTER,
    devices_alive,
    job_get,
    job_kinds,
    job_latest_for,
    job_list,
    job_people,
    jobs_of_person,
    reapers_alive,
    target_register,
    workers_alive,
)
from portal.jobs.selectors.waiting import Wait, time_left_s, waits

__all__ = [
    "ME",
    "REAPER_QUEUES",
    "WORKER_SILENT_AFTER",
    "EndedFigures",
    "QueueLength",
    "Wait",
    "database_now",
    "devices_alive",
    "ended_figures",
    "failure_counts",
    "job_get",
    "job_kinds",
    "job_latest_for",
    "job_list",
    "job_people",
    "jobs_of_person",
    "queue_lengths",
    "reapers_alive",
    "running_counts",
    "target_register",
    "time_left_s",
    "waits",
    "workers_alive",
]
