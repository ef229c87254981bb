"""REST endpoints that read, cancel and retry jobs; other endpoints create them."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from portal.core.api.views import ApiViewSet
from portal.core.http.audit_rules import AuditRule, audited
from portal.jobs import services
from portal.jobs.models import Job, JobState
from portal.jobs.selectors import jobs as selectors
from portal.jobs.serializers import (
    JobChoiceSerializer,
    JobsCancelledSerializer,
    JobSerializer,
)
from portal.labs.requests import user_of


class JobFilter(filters.FilterSet):
    """Filters of the list of jobs."""

    state = filters.ChoiceFilter(choices=JobState.choices)
    kind = filters.CharFilter()
    target_id = filters.UUIDFilter()
    person = filters.CharFilter(
        method="by_person", help_text="Id of the person who submitted it, or `me`"
    )

    class Meta:
        model = Job
        fields = ("state", "kind", "target_id", "person")

    def by_person(self, jobs: QuerySet[Job], name: str, value: str) -> QuerySet[Job]:
        """See ``selectors.jobs_of_person``."""
        return selectors.jobs_of_person(jobs, value, user_of(self.request))


@audited(
    list=None,
    retrieve=None,
    cancel=AuditRule("job.cancelled", "job", "pk"),
    cancel_many=AuditRule("job.cancelled"),
    retry=AuditRule("job.retried", "job", "pk"),
)
class JobViewSet(
    mixins.ListModelMixin,
    mixins.RetrieveModelMixin,
    ApiViewSet[Job],
):
    """Background work: state, progress, error."""

    any_area = True
    serializer_class = JobSerializer
    filterset_class = JobFilter
    queryset = Job.objects.none()
    lookup_value_converter = "uuid"

    def get_queryset(self) -> QuerySet[Job]:
        """Jobs visible to the user."""
        return selectors.job_list(user=user_of(self.request))

    @extend_schema(request=None, responses={202: JobSerializer})
    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, pk: str) -> Response:
        """Cancel a job: a waiting one at once, a running one at its next checkpoint."""
        job = services.job_cancel(job=self.get_object(), user=user_of(request))
        return Response(self.get_serializer(job).data, status=status.HTTP_202_ACCEPTED)

    @extend_schema(
        operation_id="jobs_cancel_many",
        request=JobChoiceSerializer,
        responses={202: JobsCancelledSerializer},
    )
    @action(
        detail=False,
        methods=["post"],
        url_path="cancel",
        url_name="cancel-many",
        filterset_class=None,
        pagination_class=None,
    )
    def cancel_many(self, request: Request) -> Response:
        """Cancel jobs by ids, or all waiting and running jobs that match the filters."""
        choice = JobChoiceSerializer(data=request.data)
        choice.is_valid(raise_exception=True)
        ids = choice.validated_data.pop("ids", None)
        jobs = selectors.job_list(user=user_of(request), **choice.validated_data)
        if ids is not None:
            jobs = jobs.filter(pk__in=ids)
        cancelled = services.jobs_cancel(jobs=jobs, user=user_of(request))
        body = JobsCancelledSerializer(cancelled).data
        return Response(body, status=status.HTTP_202_ACCEPTED)

    @extend_schema(request=None, responses={202: JobSerializer})
    @action(detail=True, methods=["post"])
    def retry(self, request: Request, pk: str) -> Response:
        """Repeat a failed or cancelled job; returns the new job."""
        job = services.job_retry(job=self.get_object(), user=user_of(request))
        return job_accepted(job, request)


def job_accepted(job: Job, request: Request, **body: Any) -> Response:
    """Response 202 with the job and its ``Location``, for endpoints that submit a job."""
    data = JobSerializer(job).data
    return Response(
        {**body, "job": data} if body else data,
        status=status.HTTP_202_ACCEPTED,
        headers={"Location": reverse("api:job-detail", args=[job.pk], request=request)},
    )


def job_answered(job: Job | None, request: Request, **body: Any) -> Response:
    """Response for work that was perhaps submitted before: 202 while its job is open."""
    if job is not None and not job.has_ended:
        return job_accepted(job, request, **body)
    return Response({**body, "job": JobSerializer(job).data if job else None})


router_entries = [("jobs", JobViewSet, "job")]
