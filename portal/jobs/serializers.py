"""Jobs as programs see them."""

from __future__ import annotations

import uuid
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from ml.types import JsonObject
from portal.jobs.models import Job, JobPriority, JobState
from portal.jobs.selectors import Wait, time_left_s, waits

OPEN_STATES = ((JobState.QUEUED.value, "Waiting"), (JobState.RUNNING.value, "Running"))


class WaitSerializer(serializers.Serializer[Any]):
    """Where a waiting job stands."""

    position = serializers.IntegerField(help_text="1 is next")
    seconds = serializers.FloatField(
        allow_null=True, help_text="Estimated time until it begins; null while unknown"
    )


class JobSerializer(serializers.ModelSerializer[Job]):
    """A job as programs see it. The traceback stays inside."""

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

    def get_progress(self, job: Job) -> dict[str, int]:
        """``done`` of ``total`` in the present phase; total 0 means unknown."""
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
        """Looked up once for a whole list, and only where a job waits."""
        if job.state != JobState.QUEUED:
            return None
        root = self.root
        line: dict[uuid.UUID, Wait] | None = getattr(root, "waits", None)
        if line is None:
            line = waits()
            root.waits = line  # type: ignore[attr-defined] # this answer's
        found = line.get(job.pk)
        return WaitSerializer(found).data if found else None

    def get_seconds_left(self, job: Job) -> float | None:
        """By its progress so far."""
        left = time_left_s(job)
        return None if left is None else round(left, 1)

    def get_error(self, job: Job) -> dict[str, str] | None:
        """What the user is told, or null."""
        if not job.error_code:
            return None
        return {"code": job.error_code, "message": job.trouble}


class JobChoiceSerializer(serializers.Serializer[Any]):
    """Which jobs: by their ids, or by the filters of the list."""

    ids = serializers.ListField(child=serializers.UUIDField(), required=False, max_length=1000)
    state = serializers.ChoiceField(OPEN_STATES, required=False)
    kind = serializers.CharField(required=False, max_length=60)
    person = serializers.CharField(
        required=False, max_length=40, help_text="Id of the person who asked for them, or `me`"
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """An empty choice would be every job of the lab."""
        if not attrs:
            raise serializers.ValidationError("Give ids, or a state, kind or person.")
        return attrs


class JobsCancelledSerializer(serializers.Serializer[Any]):
    """What became of them."""

    cancelled = serializers.IntegerField(help_text="Were waiting and ended at once")
    stopping = serializers.IntegerField(help_text="Are running and were told to stop")
    kept = serializers.IntegerField(
        help_text="Others' jobs, which only a manager may cancel, and those that ended meanwhile"
    )
