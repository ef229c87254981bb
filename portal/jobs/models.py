"""Jobs, one row per piece of background work, and the heartbeats of workers.

::

    queued --claim--> running --finish--> succeeded
      ^                  |--user error or attempts spent--> failed
      |--retry/reaper----|--cancel flag seen--------------> cancelled
    queued --cancel--> cancelled
    running --yields to others--> queued

``selectors.scheduling`` decides which job is next, ``claims`` changes the state of a row.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models

from portal.core.database.names import NameField
from portal.core.models import BaseModel
from portal.core.tasks import REGISTRY, Priority
from portal.labs.models import Lab, LabOwned


class JobState(models.TextChoices):
    """States of a job; the module's docstring shows the transitions."""

    QUEUED = "queued", "Waiting"
    RUNNING = "running", "Running"
    SUCCEEDED = "succeeded", "Done"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"


class JobPriority(models.IntegerChoices):
    """Labels of ``portal.core.tasks.Priority``."""

    INTERACTIVE = Priority.INTERACTIVE, "Interactive"
    INGEST = Priority.INGEST, "Ingest"
    BULK = Priority.BULK, "Bulk"


OPEN_STATES = (JobState.QUEUED, JobState.RUNNING)
ENDED_STATES = (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED)
WORKER_LOST = "worker-lost"
"""``error_code`` of a job whose worker was lost in each attempt."""


class Job(LabOwned):
    """A piece of background work."""

    kind = models.CharField(max_length=60)
    queue = models.CharField(max_length=20, default="default")
    priority = models.PositiveSmallIntegerField(
        choices=JobPriority.choices, default=JobPriority.INTERACTIVE
    )
    args = models.JSONField(default=dict)
    payload_version = models.PositiveSmallIntegerField(
        default=1, help_text="Version of args; see job_task()"
    )
    request_id = models.CharField(
        max_length=64, blank=True, help_text="Id of the request that submitted it, for the log"
    )
    traceparent = models.CharField(
        max_length=64, blank=True, help_text="W3C trace context of that request"
    )
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    target_type = models.CharField(max_length=40, blank=True)
    target_id = models.UUIDField(null=True, blank=True)
    target_name = NameField(max_length=200, blank=True)
    unique_key = models.CharField(
        max_length=64,
        blank=True,
        help_text="SHA-256 of the arguments if only one open job may have them",
    )

    state = models.CharField(max_length=10, choices=JobState.choices, default=JobState.QUEUED)
    attempts = models.PositiveIntegerField(default=0)
    max_attempts = models.PositiveIntegerField(default=3)
    not_before = models.DateTimeField(null=True, blank=True)
    sent_at = models.DateTimeField(
        null=True, blank=True, help_text="When its message was sent to the workers"
    )

    lease_token = models.UUIDField(null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    worker = models.CharField(max_length=120, blank=True)
    cancel_requested = models.BooleanField(default=False)

    progress_done = models.BigIntegerField(default=0)
    progress_total = models.BigIntegerField(default=0)
    phase = models.CharField(max_length=80, blank=True)
    phase_at = models.DateTimeField(null=True, blank=True, help_text="When the phase began")
    phase_from = models.BigIntegerField(default=0, help_text="progress_done when the phase began")

    result = models.JSONField(default=dict)
    error_code = models.CharField(max_length=60, blank=True)
    error_message = models.TextField(blank=True)
    traceback = models.TextField(blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-created_at", "id")
        indexes = (
            models.Index(fields=["state", "lease_until"], name="job_state_lease"),
            models.Index(fields=["lab", "-created_at"], name="job_lab_created"),
            models.Index(fields=["target_type", "target_id"], name="job_target"),
            models.Index(
                fields=["queue", "priority", "lab", "created_by", "created_at"],
                condition=models.Q(state=JobState.QUEUED),
                name="job_waiting",
            ),
        )
        constraints = (
            models.UniqueConstraint(
                fields=["lab", "kind", "unique_key"],
                condition=~models.Q(unique_key="") & models.Q(state__in=OPEN_STATES),
                name="job_open_unique",
            ),
        )

    @property
    def title(self) -> str:
        """Title of the kind of job."""
        spec = REGISTRY.get(self.kind)
        return spec.title if spec else self.kind

    @property
    def name(self) -> str:
        """Name of the target; empty where that is in the trash, deleted or hidden."""
        return "" if getattr(self, "hides_name", False) else self.target_name

    @property
    def shown_error(self) -> str:
        """Error message; empty where the target, which it may name, is hidden."""
        return "" if getattr(self, "hides_name", False) else self.error_message

    @property
    def outcome(self) -> str:
        """Reason why a successful job has no result (``no tissue``); empty otherwise."""
        outcome = self.result.get("outcome", "") if self.state == JobState.SUCCEEDED else ""
        return str(outcome)

    @property
    def has_ended(self) -> bool:
        """Return whether the job is in an end state."""
        return self.state in ENDED_STATES

    @property
    def percent(self) -> int:
        """Progress from 0 to 100; 0 while the total is unknown."""
        if self.state == JobState.SUCCEEDED:
            return 100
        return (
            min(100, 100 * self.progress_done // self.progress_total) if self.progress_total else 0
        )


class LastServed(models.Model):
    """Time at which a job of a priority was last started for a person in a lab."""

    lab = models.ForeignKey(Lab, on_delete=models.CASCADE, related_name="+")
    person = models.CharField(
        max_length=40,
        blank=True,
        help_text="Key of the person; empty for the portal itself",
    )
    priority = models.PositiveSmallIntegerField(choices=JobPriority.choices)
    served_at = models.DateTimeField()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["lab", "person", "priority"], name="last_served_unique"
            ),
        )


class WorkerHeartbeat(BaseModel):
    """Last heartbeat of a worker or reaper."""

    name = models.CharField(max_length=120, unique=True)
    queues = models.CharField(max_length=120)
    processes = models.PositiveSmallIntegerField(default=1, help_text="Jobs it runs at once")
    device = models.CharField(
        max_length=120,
        blank=True,
        help_text="Device that its networks run on; empty if it runs none",
    )
    last_seen_at = models.DateTimeField(db_index=True)
