"""Checks of safety and of the portal's processes."""

from __future__ import annotations

from django.conf import settings
from django.db import DatabaseError

from portal.backups.models import Backup
from portal.core.tasks import QUEUES, REGISTRY
from portal.embeddings.selectors.index_files.snapshots import index_states
from portal.embeddings.selectors.index_files.verification import index_server_answers
from portal.jobs.models import Job, JobState
from portal.jobs.selectors.jobs import reapers_alive, workers_alive
from portal.jobs.selectors.metrics import database_now, queue_lengths
from portal.operations.doctor.findings import DoctorFinding, error, ok, warning

LATE_S = 3600.0  # waiting time of a job
BACKUP_LATE_S = 26 * 3600.0  # a daily one, and two hours for it to run
INDEX_BEHIND = 20_000  # embeddings searched in the database: slower, never wrong
INSECURE = "development-only-"


def settings_are_safe() -> list[DoctorFinding]:
    """Check the secret key and debug pages."""
    findings = []
    if settings.DEBUG:
        remedy = "Set DJANGO_SETTINGS_MODULE=portal.config.settings.production."
        findings.append(warning("debug", "Debug pages are on; they show code to anyone.", remedy))
    else:
        findings.append(ok("debug", "Debug pages are off."))
    key = settings.SECRET_KEY
    if key.startswith(INSECURE) or len(key) < 50:
        remedy = "Set TESSERA_SECRET_KEY to at least 50 random characters, and keep it."
        level = warning if settings.DEBUG else error
        findings.append(
            level("secret key", "The secret key is publicly known or too short.", remedy)
        )
    else:
        findings.append(ok("secret key", "Set."))
    return findings


def workers() -> list[DoctorFinding]:
    """Check that each queue has a worker with a recent heartbeat."""
    served = {queue for worker in workers_alive() for queue in worker.queues.split(",")}
    silent = [queue for queue in QUEUES if queue not in served]
    if silent:
        message = f"No worker for {' and '.join(silent)} has reported in the last minute."
        return [
            error("worker", message, "Start the roles worker and gpu-worker; jobs are waiting.")
        ]
    return [ok("worker", f"{workers_alive().count()} have reported in the last minute.")]


def beat() -> list[DoctorFinding]:
    """Check that the reaper has a recent heartbeat."""
    if not reapers_alive().exists():
        remedy = (
            "Start the role beat (manage.py reaper), which requeues lost jobs and does the chores."
        )
        return [error("beat", "The reaper has not reported in the last minute.", remedy)]
    return [ok("beat", "It has reported in the last minute.")]


def queue() -> list[DoctorFinding]:
    """Check that no job waits for long and every waiting kind is known."""
    findings = []
    unknown = sorted(
        set(
            Job.objects.filter(state=JobState.QUEUED)
            .exclude(kind__in=REGISTRY)
            .values_list("kind", flat=True)
        )
    )
    if unknown:
        message = (
            f"Some waiting jobs are of kinds that this release does not know: {', '.join(unknown)}."
        )
        findings.append(warning("jobs", message, "Start workers of the release that created them."))
    late = [row for row in queue_lengths() if row.oldest_s > LATE_S]
    for row in late:
        message = (
            f"{row.count} {row.kind} jobs are waiting, the oldest for {row.oldest_s / 3600:.1f} h."
        )
        findings.append(warning("jobs", message, f"Add workers for the queue {row.queue}."))
    return findings or [ok("jobs", "No job has been waiting long.")]


def index() -> list[DoctorFinding]:
    """Check that index files have the latest embeddings and that their server answers."""
    where = settings.TESSERA_MILVUS
    if where and not index_server_answers():
        message = f"The index server {where['url']} does not answer: searches read the database."
        return [error("index", message, "Start it, or correct TESSERA_MILVUS_URL.")]
    behind = [row for row in index_states() if row.newer > INDEX_BEHIND]
    if behind:
        return [
            warning(
                "index",
                (
                    f"{row.encoder}: {row.newer} embeddings are not in an index file yet, so "
                    "searches are slow."
                ),
                "Find out why index_build jobs fail or wait.",
            )
            for row in behind
        ]
    return [ok("index", "The index files keep up with the embeddings.")]


def backup() -> list[DoctorFinding]:
    """Check the age of the newest backup."""
    newest = Backup.objects.filter(gone_at=None).order_by("-taken_at").first()
    if newest is None:
        return [error("backup", "There is no backup.", "Run manage.py backup daily.")]
    age_s = (database_now() - newest.taken_at).total_seconds()
    message = f"The newest is {max(0.0, age_s) / 3600:.1f} h old."
    if age_s > BACKUP_LATE_S:
        return [error("backup", message, "Find out why the daily manage.py backup did not run.")]
    return [ok("backup", message)]


def of_database() -> list[DoctorFinding]:
    """Checks that need a working database."""
    try:
        return [*workers(), *beat(), *queue(), *index(), *backup()]
    except DatabaseError:
        return []  # reported by the check of the database
