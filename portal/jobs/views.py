"""Pages of the ledger."""

from __future__ import annotations

import uuid

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from portal.core.http.htmx import wants_part
from portal.jobs import selectors, services
from portal.jobs.models import Job, JobState
from portal.labs.requests import user_of

PER_PAGE = 30  # one to two screens


@login_required
@require_GET
def job_list(request: HttpRequest) -> HttpResponse:
    """All jobs of the person's labs; htmx re-asks for the table while something moves."""
    state = request.GET.get("state", "")
    jobs = selectors.job_list(user=user_of(request), state=state)
    page = Paginator(jobs, PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "page_obj": page,
        "state": state,
        "states": JobState.choices,
        "is_moving": any(not job.has_ended for job in page),
        "workers": selectors.workers_alive().count(),
    }
    template = "jobs/_table.html" if wants_part(request) else "jobs/list.html"
    return render(request, template, context)


@login_required
@require_GET
def job_detail(request: HttpRequest, job_id: uuid.UUID) -> HttpResponse:
    """One job. ``?part=progress`` answers the live part alone, for any page that embeds it."""
    job = selectors.job_get(user=user_of(request), job_id=job_id)
    if request.GET.get("part") == "progress":
        response = render(request, "jobs/_progress.html", {"job": job})
        if job.has_ended:
            response["HX-Trigger"] = "job-ended"  # a page around it may reload itself
        return response
    template = "jobs/_detail.html" if wants_part(request) else "jobs/detail.html"
    return render(request, template, {"job": job})


@login_required
@require_POST
def job_cancel(request: HttpRequest, job_id: uuid.UUID) -> HttpResponse:
    """Ask a job to stop."""
    job = selectors.job_get(user=user_of(request), job_id=job_id)
    services.job_cancel(job=job, user=user_of(request))
    return _back(request, job)


@login_required
@require_POST
def job_retry(request: HttpRequest, job_id: uuid.UUID) -> HttpResponse:
    """Try a failed job again."""
    job = selectors.job_get(user=user_of(request), job_id=job_id)
    return _back(request, services.job_retry(job=job, user=user_of(request)))


def _back(request: HttpRequest, job: Job) -> HttpResponse:
    if wants_part(request):
        return render(request, "jobs/_progress.html", {"job": job})
    return redirect("jobs:detail", job_id=job.pk)
