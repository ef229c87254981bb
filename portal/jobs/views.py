"""Pages of jobs."""

from __future__ import annotations

import uuid
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from portal.core.errors import InvalidInputError
from portal.core.http.audit_rules import AuditRule, audited, not_audited
from portal.core.http.htmx import wants_part
from portal.jobs import services
from portal.jobs.models import ENDED_STATES, Job, JobState
from portal.jobs.selectors import jobs as selectors
from portal.jobs.selectors.estimates import wait_estimates
from portal.labs.models import Membership, Role
from portal.labs.requests import user_of

PER_PAGE = 30  # one to two screens


@not_audited("no data of patients")
@login_required
@require_GET
def job_list(request: HttpRequest) -> HttpResponse:
    """List of jobs; htmx polls the table while a job on it is open."""
    user, filters = user_of(request), _filters(request.GET)
    jobs = selectors.job_list(user=user, **filters)
    page = Paginator(jobs, PER_PAGE).get_page(request.GET.get("page"))
    workers = list(selectors.workers_alive())
    context = {
        "page_obj": page,
        "filters": filters,
        "is_filtered": any(filters.values()),
        "has_open_jobs": any(not job.has_ended for job in page),
        "waits": wait_estimates() if any(job.state == JobState.QUEUED for job in page) else {},
        "workers": len(workers),
        "devices": sorted({worker.device for worker in workers if worker.device}),
        "may_cancel": Membership.objects.of(user).exclude(role=Role.VIEWER).exists(),
        "open_count": jobs.exclude(state__in=ENDED_STATES).count(),
    }
    if wants_part(request):
        return render(request, "jobs/_table.html", context)
    context |= {
        "states": JobState.choices,
        "kinds": selectors.job_kinds(user=user),
        "people": selectors.job_people(user=user),
        "me": selectors.ME,
    }
    return render(request, "jobs/list.html", context)


def _filters(filters: QueryDict) -> dict[str, str]:
    return {name: filters.get(name, "") for name in ("state", "kind", "person")}


@not_audited("no data of patients")
@login_required
@require_GET
def job_detail(request: HttpRequest, job_id: uuid.UUID) -> HttpResponse:
    """A job; ``?part=progress`` returns only its progress, for pages that embed it."""
    job = selectors.job_get(user=user_of(request), job_id=job_id)
    waits = wait_estimates() if job.state == JobState.QUEUED else {}
    context = {"job": job, "waits": waits}
    if request.GET.get("part") == "progress":
        response = render(request, "jobs/_progress.html", context)
        if job.has_ended:
            response["HX-Trigger"] = "job-ended"  # the embedding page may reload itself
        return response
    template = "jobs/_detail.html" if wants_part(request) else "jobs/detail.html"
    return render(request, template, context)


@audited(POST=AuditRule("job.cancelled"))
@login_required
@require_POST
def jobs_cancel(request: HttpRequest) -> HttpResponse:
    """Cancel the selected jobs, or with ``all`` every job that matches the filters."""
    user, filters = user_of(request), _filters(request.POST)
    jobs = selectors.job_list(user=user, **filters)
    if "all" not in request.POST:
        jobs = jobs.filter(pk__in=[pk for pk in request.POST.getlist("job") if _is_key(pk)])
    try:
        counts = services.jobs_cancel(jobs=jobs, user=user)
    except InvalidInputError as error:
        messages.error(request, error.message)
    else:
        messages.success(request, _cancel_message(counts))
    query = urlencode({name: value for name, value in filters.items() if value})
    return redirect(f"{reverse('jobs:list')}?{query}" if query else "jobs:list")


def _is_key(text: str) -> bool:
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True


def _cancel_message(counts: services.CancellationCounts) -> str:
    parts = [f"{counts.cancelled:,} cancelled"]
    if counts.stopping:
        parts.append(f"{counts.stopping:,} stopping")
    if counts.not_cancelled:
        parts.append(f"{counts.not_cancelled:,} not cancelled: started by others, or already ended")
    return ", ".join(parts) + "."


@audited(POST=AuditRule("job.cancelled", "job", "job_id"))
@login_required
@require_POST
def job_cancel(request: HttpRequest, job_id: uuid.UUID) -> HttpResponse:
    job = selectors.job_get(user=user_of(request), job_id=job_id)
    services.job_cancel(job=job, user=user_of(request))
    return _redirect_back(request, job)


@audited(POST=AuditRule("job.retried", "job", "job_id"))
@login_required
@require_POST
def job_retry(request: HttpRequest, job_id: uuid.UUID) -> HttpResponse:
    """Retry a failed job."""
    job = selectors.job_get(user=user_of(request), job_id=job_id)
    return _redirect_back(request, services.job_retry(job=job, user=user_of(request)))


def _redirect_back(request: HttpRequest, job: Job) -> HttpResponse:
    if wants_part(request):
        return render(request, "jobs/_progress.html", {"job": job})
    return redirect("jobs:detail", job_id=job.pk)
