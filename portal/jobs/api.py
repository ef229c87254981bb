"""REST: jobs are read, cancelled and tried again; they are created by what needs them."""

from __future__ import annotations

from typing import Any

from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from portal.jobs import selectors, services
from portal.jobs.models import Job, JobState
from portal.labs.requests import user_of


class JobSerializer(serializers.ModelSerializer[Job]):
    """A job as programs see it. The traceback stays inside."""

    progress = serializers.SerializerMethodField()
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
        return {"code": job.error_code, "message": job.error_message}


class JobFilter(filters.FilterSet):
    """Filters of the list."""

    state = filters.ChoiceFilter(choices=JobState.choices)
    kind = filters.CharFilter()
    target_id = filters.UUIDFilter()

    class Meta:
        model = Job
        fields = ("state", "kind", "target_id")


class JobViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Job]):
    """Background work: state, progress, error."""

    serializer_class = JobSerializer
    filterset_class = JobFilter
    queryset = Job.objects.none()
    lookup_value_converter = "uuid"

    def get_queryset(self) -> Any:
        """What this user may see."""
        return selectors.job_list(user=user_of(self.request))  # type: ignore[arg-type]

    @extend_schema(request=None, responses={202: JobSerializer})
    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, pk: str) -> Response:
        """Stop the job: at once while it waits, soon while it runs."""
        job = services.job_cancel(job=self.get_object(), user=user_of(request))
        return Response(self.get_serializer(job).data, status=status.HTTP_202_ACCEPTED)

    @extend_schema(request=None, responses={202: JobSerializer})
    @action(detail=True, methods=["post"])
    def retry(self, request: Request, pk: str) -> Response:
        """Submit the work of a failed or cancelled job again; answers the new job."""
        job = services.job_retry(job=self.get_object(), user=user_of(request))
        return job_accepted(job, request)


def job_accepted(job: Job, request: Request, **body: Any) -> Response:
    """``202`` with the job and its ``Location``; what every endpoint that starts work answers."""
    found = JobSerializer(job).data
    return Response(
        {**body, "job": found} if body else found,
        status=status.HTTP_202_ACCEPTED,
        headers={"Location": reverse("api:job-detail", args=[job.pk], request=request)},
    )


def job_answered(job: Job | None, request: Request, **body: Any) -> Response:
    """For what may have been asked for before: 202 while the job works, 200 once it has ended."""
    if job is not None and not job.has_ended:
        return job_accepted(job, request, **body)
    return Response({**body, "job": JobSerializer(job).data if job else None})


router_entries = [("jobs", JobViewSet, "job")]
