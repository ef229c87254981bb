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
from portal.archive.rules import RETENTION
from portal.archive.selectors.uploads import upload_get
from portal.core.errors import ConflictError, ForbiddenError
from portal.core.http.audit_rules import HOUR_S, AuditRule, audited
from portal.interop.rocrate.downloads import export_response
from portal.interop.rocrate.rules import may_export, require_import
from portal.interop.rocrate.selectors.exports import (
    export_job,
    export_job_get,
    export_path,
    exports_written,
)
from portal.interop.rocrate.selectors.imports import import_job, imports_of
from portal.interop.rocrate.services.exports import case_export_request
from portal.interop.rocrate.services.imports.jobs import case_import_request
from portal.jobs.selectors.estimates import wait_estimates
from portal.jobs.services import job_cancel
from portal.labs.models import Lab, Role
from portal.labs.requests import lab_chosen_by, user_of
from portal.labs.selectors import lab_get, labs_with_role, memberships_of


@audited(
    GET=AuditRule("case.downloaded", "case", "case_id"),
    POST=AuditRule("case.export_requested", "case", "case_id"),
)
@login_required
@require_http_methods(["GET", "POST"])
def case_export(request: HttpRequest, case_id: uuid.UUID) -> HttpResponseBase:
    """Request an export, or download a finished one."""
    user = user_of(request)
    if request.method == "POST":
        case_export_request(user=user, case_id=case_id)
        messages.success(
            request, "The export is being written. Its download appears here when it is done."
        )
        return redirect("archive:case_detail", case_id=case_id)
    return export_response(request, user=user, case_id=case_id)


@audited(GET=AuditRule("case.listed", every_s=HOUR_S))
@never_cache
@login_required
@require_GET
def cases_export(request: HttpRequest, job_id: uuid.UUID) -> HttpResponse:
    """Exports of many cases: progress of their job, then the download."""
    user = user_of(request)
    job = export_job_get(user=user, job_id=job_id)
    cases = exports_written(user=user, job=job)
    written = [export for export in cases if export.size_bytes is not None]
    context = {
        "job": job,
        "cases": cases,
        "written_count": len(written),
        "missing_count": len(job.args["case_ids"]) - len(written),
        "size_bytes": sum(export.size_bytes or 0 for export in written),
    }
    return render(request, "interop/cases_export.html", context)


def selection_action(request: HttpRequest, lab: Lab) -> str:
    """Button of the list of cases that exports the chosen cases, for managers."""
    return render_to_string("interop/_selection_action.html", {}, request)


def case_section(request: HttpRequest, case: Case) -> str:
    """Show the export of a case to managers: button, running job, download."""
    user = user_of(request)
    if not may_export(user, case.lab_id):
        return ""
    path = export_path(case.pk, user)
    context = {
        "case": case,
        "job": export_job(user=user, case_id=case.pk),
        "size_bytes": path.stat().st_size if path.exists() else 0,
    }
    return render_to_string("interop/_case_export.html", context, request)


@audited(GET=AuditRule("upload.listed", "lab", every_s=HOUR_S))
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
        "imports": imports_of(lab=lab, user=user),
        "waits": wait_estimates(),
        "retention_hours": round(RETENTION.total_seconds() / 3600),
    }
    return render(request, "interop/case_imports.html", context)


@audited(POST=AuditRule("case.import_requested", "upload", "upload_id"))
@login_required
@require_POST
def case_import(request: HttpRequest, upload_id: uuid.UUID) -> HttpResponse:
    """Import a stored crate, for the first time or again."""
    user = user_of(request)
    upload = upload_get(user=user, upload_id=upload_id)
    try:
        case_import_request(user=user, upload_id=upload.pk)
    except ConflictError as error:
        messages.error(request, error.message)
    return _to_imports(upload)


@audited(POST=AuditRule("job.cancelled", "upload", "upload_id"))
@login_required
@require_POST
def case_import_cancel(request: HttpRequest, upload_id: uuid.UUID) -> HttpResponse:
    """Stop the import of a crate, which stays stored."""
    user = user_of(request)
    upload = upload_get(user=user, upload_id=upload_id)
    require_import(user, upload.lab_id)
    job = import_job(upload)
    if job is not None and not job.has_ended:
        job_cancel(job=job, user=user)
    return _to_imports(upload)


def _to_imports(upload: Upload) -> HttpResponse:
    return redirect(f"{reverse('interop:case_imports')}?lab={upload.lab.slug}")


def import_action(request: HttpRequest, lab: Lab) -> str:
    """Show the page to import a case, for managers."""
    return render_to_string("interop/_import_action.html", {}, request)
