"""Pages: the whole case, ordered and taken from the page of the case, and brought into a lab."""

from __future__ import annotations

import uuid

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from portal.archive.models import Case, Upload
from portal.archive.rules import KEPT
from portal.archive.selectors import upload_get
from portal.core.errors import ConflictError, ForbiddenError
from portal.exchange import selectors
from portal.exchange.downloads import export_response
from portal.exchange.rules import may_export, require_import
from portal.exchange.services import case_export_request, case_import_request
from portal.jobs.selectors import waits
from portal.jobs.services import job_cancel
from portal.labs.models import Lab, Role
from portal.labs.requests import lab_chosen_by, user_of
from portal.labs.selectors import lab_get, labs_with_role, memberships_of


@login_required
@require_http_methods(["GET", "POST"])
def case_export(request: HttpRequest, case_id: uuid.UUID) -> HttpResponseBase:
    """Order an export, or download the one that was written."""
    user = user_of(request)
    if request.method == "POST":
        case_export_request(user=user, case_id=case_id)
        messages.success(
            request, "The export is being written. Its download appears here when it is done."
        )
        return redirect("archive:case_detail", case_id=case_id)
    return export_response(request, user=user, case_id=case_id)


def case_section(request: HttpRequest, case: Case) -> str:
    """For managers: the button, the work under way, the download."""
    user = user_of(request)
    if not may_export(user, case.lab_id):
        return ""
    path = selectors.export_path(case.pk, user)
    context = {
        "case": case,
        "job": selectors.export_job(user=user, case_id=case.pk),
        "size_bytes": path.stat().st_size if path.exists() else 0,
    }
    return render_to_string("exchange/_case_export.html", context, request)


@never_cache
@login_required
@require_GET
def case_imports(request: HttpRequest) -> HttpResponse:
    """Send the zip of a whole case to a lab; what became of those that were sent. For managers."""
    user = user_of(request)
    managed = labs_with_role(user, at_least=Role.MANAGER)
    if not managed:
        raise ForbiddenError("You need the role of manager in a lab.")
    chosen = request.GET.get("lab") or lab_chosen_by(request)
    lab = managed.filter(slug=chosen).first() or managed[0]
    if request.GET.get("lab"):
        lab = lab_get(user, slug=chosen)
        require_import(user, lab.pk)
    context = {
        "lab": lab,
        "memberships": memberships_of(user).filter(role=Role.MANAGER),
        "imports": selectors.imports_of(lab=lab, user=user),
        "waits": waits(),
        "kept_hours": round(KEPT.total_seconds() / 3600),
    }
    return render(request, "exchange/case_imports.html", context)


@login_required
@require_POST
def case_import(request: HttpRequest, upload_id: uuid.UUID) -> HttpResponse:
    """Import a crate that lies here, for the first time or again."""
    user = user_of(request)
    upload = upload_get(user=user, upload_id=upload_id)
    try:
        case_import_request(user=user, upload_id=upload.pk)
    except ConflictError as error:
        messages.error(request, error.message)
    return _to_imports(upload)


@login_required
@require_POST
def case_import_cancel(request: HttpRequest, upload_id: uuid.UUID) -> HttpResponse:
    """Stop the import of a crate, which is kept."""
    user = user_of(request)
    upload = upload_get(user=user, upload_id=upload_id)
    require_import(user, upload.lab_id)
    job = selectors.import_job(upload)
    if job is not None and not job.has_ended:
        job_cancel(job=job, user=user)
    return _to_imports(upload)


def _to_imports(upload: Upload) -> HttpResponse:
    return redirect(f"{reverse('exchange:case_imports')}?lab={upload.lab.slug}")


def import_action(request: HttpRequest, lab: Lab | None) -> str:
    """For managers: where a whole case comes in."""
    if not labs_with_role(user_of(request), at_least=Role.MANAGER).exists():
        return ""
    return render_to_string("exchange/_import_action.html", {"lab": lab}, request)
