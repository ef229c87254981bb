"""Pages of the ledger."""

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
from portal.core.http.htmx import wants_part
from portal.jobs import selectors, services
from portal.jobs.models import ENDED, Job, JobState
from portal.labs.models import Membership, Role
from portal.labs.requests import user_of

PER_PAGE = 30  # one to two screens


@login_required
@require_GET
def job_list(request: HttpRequest) -> HttpResponse:
    """All jobs of the person's labs; htmx requests the table again while something moves."""
    user, asked = user_of(request), _filters(request.GET)
    jobs = selectors.job_list(user=user, **asked)
    page = Paginator(jobs, PER_PAGE).get_page(request.GET.get("page"))
    signs = list(selectors.workers_alive())
    context = {
        "page_obj": page,
        "asked": asked,
        "is_filtered": any(asked.values()),
        "is_moving": any(not job.has_ended for job in page),
        "waits": selectors.waits() if any(job.state == JobState.QUEUED for job in page) else {},
        "workers": len(signs),
        "devices": sorted({sign.device for sign in signs if sign.device}),
        "may_cancel": Membership.objects.of(user).exclude(role=Role.VIEWER).exists(),
        "open_count": jobs.exclude(state__in=ENDED).count(),
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


def _filters(asked: QueryDict) -> dict[str, str]:
    return {name: asked.get(name, "") for name in ("state", "kind", "person")}


@login_required
@require_GET
def job_detail(request: HttpRequest, job_id: uuid.UUID) -> HttpResponse:
    """One job. ``?part=progress`` answers the live part alone, for any page that embeds it."""
    job = selectors.job_get(user=user_of(request), job_id=job_id)
    waits = selectors.waits() if job.state == JobState.QUEUED else {}
    context = {"job": job, "waits": waits}
    if request.GET.get("part") == "progress":
        response = render(request, "jobs/_progress.html", context)
        if job.has_ended:
            response["HX-Trigger"] = "job-ended"  # a page around it may reload itself
        return response
    template = "jobs/_detail.html" if wants_part(request) else "jobs/detail.html"
    return render(request, template, context)


@login_required
@require_POST
def jobs_cancel(request: HttpRequest) -> HttpResponse:
    """Stop the jobs that were ticked, or all that the list was filtered to (``all``)."""
    user, asked = user_of(request), _filters(request.POST)
    jobs = selectors.job_list(user=user, **asked)
    if "all" not in request.POST:
        jobs = jobs.filter(pk__in=[pk for pk in request.POST.getlist("job") if _is_key(pk)])
    try:
        done = services.jobs_cancel(jobs=jobs, user=user)
    except InvalidInputError as error:
        messages.error(request, error.message)
    else:
        messages.success(request, _told(done))
    query = urlencode({name: value for name, value in asked.items() if value})
    return redirect(f"{reverse('jobs:list')}?{query}" if query else "jobs:list")


def _is_key(text: str) -> bool:
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True


def _told(done: services.JobsCancelled) -> str:
    parts = [f"{done.cancelled:,} cancelled"]
    if done.stopping:
        parts.append(f"{done.stopping:,} stopping")
    if done.kept:
        parts.append(f"{done.kept:,} not cancelled: started by others, or already ended")
    return ", ".join(parts) + "."


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
