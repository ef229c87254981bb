"""Whether the portal is set up safely, and whether its processes do their work."""

from __future__ import annotations

from django.conf import settings
from django.db import DatabaseError

from portal.config.doctor.findings import DoctorFinding, error, ok, warning
from portal.core.tasks import QUEUES, REGISTRY
from portal.jobs import selectors as jobs
from portal.jobs.models import Job, JobState
from portal.keeping.models import Backup
from portal.retrieval import selectors as retrieval

LATE_S = 3600.0  # a job that nobody began for an hour
BACKUP_LATE_S = 26 * 3600.0  # a daily one, and two hours for it to run
INDEX_BEHIND = 20_000  # searched from the database each time: slower, never wrong
INSECURE = "development-only-"


def settings_are_safe() -> list[DoctorFinding]:
    """Secret key and debug pages."""
    found = []
    if settings.DEBUG:
        do = "Set DJANGO_SETTINGS_MODULE=portal.config.settings.production."
        found.append(warning("debug", "Debug pages are on; they show code to anyone.", do))
    else:
        found.append(ok("debug", "Debug pages are off."))
    key = settings.SECRET_KEY
    if key.startswith(INSECURE) or len(key) < 50:
        do = "Set TESSERA_SECRET_KEY to at least 50 random characters, and keep it."
        level = warning if settings.DEBUG else error
        found.append(level("secret key", "The secret key is publicly known or too short.", do))
    else:
        found.append(ok("secret key", "Set."))
    return found


def workers() -> list[DoctorFinding]:
    """Each queue has a worker that has reported lately."""
    served = {queue for sign in jobs.workers_alive() for queue in sign.queues.split(",")}
    silent = [queue for queue in QUEUES if queue not in served]
    if silent:
        says = f"No worker for {' and '.join(silent)} has reported in the last minute."
        return [error("worker", says, "Start the roles worker and gpu-worker; jobs are waiting.")]
    return [ok("worker", f"{jobs.workers_alive().count()} have reported in the last minute.")]


def beat() -> list[DoctorFinding]:
    """The reaper has reported lately."""
    if not jobs.reapers_alive().exists():
        do = "Start the role beat (manage.py reaper), which requeues lost jobs and does the chores."
        return [error("beat", "The reaper has not reported in the last minute.", do)]
    return [ok("beat", "It has reported in the last minute.")]


def queue() -> list[DoctorFinding]:
    """Nothing waits for long, and every waiting kind is known."""
    found = []
    unknown = sorted(
        set(
            Job.objects.filter(state=JobState.QUEUED)
            .exclude(kind__in=REGISTRY)
            .values_list("kind", flat=True)
        )
    )
    if unknown:
        says = (
            f"Some waiting jobs are of kinds that this release does not know: {', '.join(unknown)}."
        )
        found.append(warning("jobs", says, "Start workers of the release that created them."))
    late = [row for row in jobs.queue_lengths() if row.oldest_s > LATE_S]
    for row in late:
        says = (
            f"{row.count} {row.kind} jobs are waiting, the oldest for {row.oldest_s / 3600:.1f} h."
        )
        found.append(warning("jobs", says, f"Add workers for the queue {row.queue}."))
    return found or [ok("jobs", "No job has been waiting long.")]


def index() -> list[DoctorFinding]:
    """Index files keep up with what is embedded, and their server answers."""
    where = settings.TESSERA_QDRANT
    if where and not retrieval.index_server_answers():
        says = f"The index server {where['url']} does not answer: searches read the database."
        return [error("index", says, "Start it, or correct TESSERA_QDRANT_URL.")]
    behind = [row for row in retrieval.index_states() if row.newer > INDEX_BEHIND]
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
    """The newest backup is not old."""
    newest = Backup.objects.filter(gone_at=None).order_by("-taken_at").first()
    if newest is None:
        return [error("backup", "There is no backup.", "Run manage.py backup daily.")]
    age_s = (jobs.database_now() - newest.taken_at).total_seconds()
    says = f"The newest is {max(0.0, age_s) / 3600:.1f} h old."
    if age_s > BACKUP_LATE_S:
        return [error("backup", says, "Find out why the daily manage.py backup did not run.")]
    return [ok("backup", says)]


def of_database() -> list[DoctorFinding]:
    """What only a database that answers can tell."""
    try:
        return [*workers(), *beat(), *queue(), *index(), *backup()]
    except DatabaseError:
        return []  # said already by the check of the database
