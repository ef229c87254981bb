"""The job ledger: one row per piece of background work.

::

    queued --claim--> running --finish--> succeeded
      ^                  |--user error or attempts spent--> failed
      |--retry/reaper----|--cancel flag seen--------------> cancelled
    queued --cancel--> cancelled
    running --others go first--> queued

Which job a worker takes next is decided when it claims one (``selectors.turns``). Only an UPDATE
guarded by state and lease token moves a row, so two workers cannot both win.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models

from portal.core.database.names import NameField
from portal.core.models import BaseModel
from portal.core.tasks import REGISTRY, Priority
from portal.labs.models import Lab, LabOwned


class JobState(models.TextChoices):
    """See the diagram above."""

    QUEUED = "queued", "Waiting"
    RUNNING = "running", "Running"
    SUCCEEDED = "succeeded", "Done"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"


class JobPriority(models.IntegerChoices):
    """``portal.core.tasks.Priority`` for people."""

    INTERACTIVE = Priority.INTERACTIVE, "Interactive"
    INGEST = Priority.INGEST, "Ingest"
    BULK = Priority.BULK, "Bulk"


ENDED = (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED)
WORKER_LOST = "worker-lost"
"""``error_code`` of a job whose worker was lost each time it was tried."""


class Job(LabOwned):
    """One piece of background work."""

    kind = models.CharField(max_length=60)
    queue = models.CharField(max_length=20, default="default")
    priority = models.PositiveSmallIntegerField(
        choices=JobPriority.choices, default=JobPriority.INTERACTIVE
    )
    args = models.JSONField(default=dict)
    payload_version = models.PositiveSmallIntegerField(
        default=1, help_text="Version of args; see task()"
    )
    request_id = models.CharField(
        max_length=64, blank=True, help_text="Of the person who asked, for the log"
    )
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    target_type = models.CharField(max_length=40, blank=True)
    target_id = models.UUIDField(null=True, blank=True)
    target_name = NameField(max_length=200, blank=True)
    idempotency_key = models.CharField(max_length=200, null=True, blank=True)

    state = models.CharField(max_length=10, choices=JobState.choices, default=JobState.QUEUED)
    attempts = models.PositiveIntegerField(default=0)
    max_attempts = models.PositiveIntegerField(default=3)
    not_before = models.DateTimeField(null=True, blank=True)
    rung_at = models.DateTimeField(null=True, blank=True)

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
                fields=["lab", "idempotency_key"], name="job_idempotency_unique"
            ),
        )

    @property
    def title(self) -> str:
        """What the job does, for people."""
        spec = REGISTRY.get(self.kind)
        return spec.title if spec else self.kind

    @property
    def name(self) -> str:
        """What it works on, for people; nothing where that is in the bin or gone."""
        return "" if getattr(self, "hides_name", False) else self.target_name

    @property
    def trouble(self) -> str:
        """What went wrong, for people; it may name what it worked on."""
        return "" if getattr(self, "hides_name", False) else self.error_message

    @property
    def outcome(self) -> str:
        """Why it ended well without what was asked for (``no tissue``); empty otherwise."""
        found = self.result.get("outcome", "") if self.state == JobState.SUCCEEDED else ""
        return str(found)

    @property
    def has_ended(self) -> bool:
        """True once nothing will change any more."""
        return self.state in ENDED

    @property
    def percent(self) -> int:
        """0-100; 0 while the total is unknown."""
        if self.state == JobState.SUCCEEDED:
            return 100
        return (
            min(100, 100 * self.progress_done // self.progress_total) if self.progress_total else 0
        )


class JobTurn(models.Model):
    """When work of a priority last began for somebody in a lab: whoever waited longest is next."""

    lab = models.ForeignKey(Lab, on_delete=models.CASCADE, related_name="+")
    person = models.CharField(
        max_length=40,
        blank=True,
        help_text="Key of the person who asked; empty for the portal itself",
    )
    priority = models.PositiveSmallIntegerField(choices=JobPriority.choices)
    served_at = models.DateTimeField()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["lab", "person", "priority"], name="job_turn_unique"),
        )


class WorkerSign(BaseModel):
    """A worker's sign of life, for ``/readyz`` and the jobs page."""

    name = models.CharField(max_length=120, unique=True)
    queues = models.CharField(max_length=120)
    processes = models.PositiveSmallIntegerField(default=1, help_text="Jobs it runs at once")
    device = models.CharField(
        max_length=120, blank=True, help_text="What its networks run on; empty if it runs none"
    )
    seen_at = models.DateTimeField(db_index=True)
