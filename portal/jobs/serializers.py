"""Jobs as programs see them."""

from __future__ import annotations

from rest_framework import serializers

from portal.jobs.models import Job


class JobSerializer(serializers.ModelSerializer[Job]):
    """A job as programs see it. The traceback stays inside."""

    progress = serializers.SerializerMethodField()
    target_name = serializers.CharField(source="name", help_text="Empty once that is deleted")
    error = serializers.SerializerMethodField()

    class Meta:
        model = Job
        fields = (
            "id",
            "kind",
            "title",
            "state",
            "phase",
            "progress",
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

    def get_error(self, job: Job) -> dict[str, str] | None:
        """What the user is told, or null."""
        if not job.error_code:
            return None
        return {"code": job.error_code, "message": job.trouble}
