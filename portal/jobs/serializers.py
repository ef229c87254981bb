"""Serializers of jobs."""

from __future__ import annotations

import uuid
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from ml.types import JsonObject
from portal.jobs.models import Job, JobPriority, JobState
from portal.jobs.selectors.estimates import WaitEstimate, time_left_s, wait_estimates

OPEN_CHOICES = ((JobState.QUEUED.value, "Waiting"), (JobState.RUNNING.value, "Running"))


class WaitSerializer(serializers.Serializer[Any]):
    """Place of a waiting job in its queue."""

    position = serializers.IntegerField(help_text="1 is next")
    seconds = serializers.FloatField(
        allow_null=True, help_text="Estimated time until it starts; null while unknown"
    )


class JobProgressSerializer(serializers.Serializer[Any]):
    """Progress in the current phase."""

    done = serializers.IntegerField()
    total = serializers.IntegerField(help_text="0 while unknown")
    percent = serializers.IntegerField()


class JobErrorSerializer(serializers.Serializer[Any]):
    """Error of a failed job."""

    code = serializers.CharField()
    message = serializers.CharField()


class JobSerializer(serializers.ModelSerializer[Job]):
    """A job, without its traceback."""

    progress = serializers.SerializerMethodField()
    target_name = serializers.CharField(source="name", help_text="Empty once the target is deleted")
    error = serializers.SerializerMethodField()
    priority = serializers.SerializerMethodField()
    outcome = serializers.CharField(
        read_only=True, help_text="Why it ended without a result, such as `no tissue`"
    )
    wait = serializers.SerializerMethodField(
        help_text=(
            "Its place in the queue; null if it is not waiting, or if thousands are ahead of it"
        )
    )
    seconds_left = serializers.SerializerMethodField(
        help_text="Estimated time left in the current phase of a running job; null while unknown"
    )

    class Meta:
        model = Job
        fields = (
            "id",
            "kind",
            "title",
            "state",
            "outcome",
            "priority",
            "wait",
            "phase",
            "progress",
            "seconds_left",
            "attempts",
            "max_attempts",
            "cancel_requested",
            "target_type",
            "target_id",
            "target_name",
            "result",
            "error",
            "created_at",
            "started_at",
            "finished_at",
        )

    @extend_schema_field(JobProgressSerializer)
    def get_progress(self, job: Job) -> dict[str, int]:
        """``done`` of ``total`` steps of the current phase; a total of 0 is unknown."""
        return {
            "done": job.progress_done,
            "total": job.progress_total,
            "percent": job.percent,
        }

    def get_priority(self, job: Job) -> str:
        """``interactive``, ``ingest`` or ``bulk``."""
        return JobPriority(job.priority).name.lower()

    @extend_schema_field(WaitSerializer(allow_null=True))
    def get_wait(self, job: Job) -> JsonObject | None:
        """Estimate of a waiting job; all estimates of a response are computed once."""
        if job.state != JobState.QUEUED:
            return None
        root = self.root
        estimates: dict[uuid.UUID, WaitEstimate] | None = getattr(root, "wait_estimates", None)
        if estimates is None:
            estimates = wait_estimates()
            root.wait_estimates = estimates  # type: ignore[attr-defined] # for this response
        estimate = estimates.get(job.pk)
        return WaitSerializer(estimate).data if estimate else None

    def get_seconds_left(self, job: Job) -> float | None:
        """Estimate from the progress so far."""
        left = time_left_s(job)
        return None if left is None else round(left, 1)

    @extend_schema_field(JobErrorSerializer(allow_null=True))
    def get_error(self, job: Job) -> dict[str, str] | None:
        """Error of a failed job, else null."""
        if not job.error_code:
            return None
        return {"code": job.error_code, "message": job.shown_error}


class JobChoiceSerializer(serializers.Serializer[Any]):
    """Selection of jobs by their ids or by the filters of the list."""

    ids = serializers.ListField(child=serializers.UUIDField(), required=False, max_length=1000)
    state = serializers.ChoiceField(OPEN_CHOICES, required=False)
    kind = serializers.CharField(required=False, max_length=60)
    person = serializers.CharField(
        required=False, max_length=40, help_text="Id of the person who submitted them, or `me`"
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse an empty selection, which would match all jobs."""
        if not attrs:
            raise serializers.ValidationError("Give ids, or a state, kind or person.")
        return attrs


class JobsCancelledSerializer(serializers.Serializer[Any]):
    """Result of cancelling several jobs."""

    cancelled = serializers.IntegerField(help_text="Waiting jobs, which ended at once")
    stopping = serializers.IntegerField(help_text="Running jobs, which will stop")
    not_cancelled = serializers.IntegerField(
        help_text="Jobs of others, which only a manager may cancel, and jobs that have ended"
    )
