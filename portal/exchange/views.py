"""Pages: the whole case, ordered and taken from the page of the case."""

from __future__ import annotations

import uuid

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.views.decorators.http import require_http_methods

from portal.archive.models import Case
from portal.exchange import selectors
from portal.exchange.downloads import export_response
from portal.exchange.rules import may_export
from portal.exchange.services import case_export_request
from portal.labs.requests import user_of


@login_required
@require_http_methods(["GET", "POST"])
def case_export(request: HttpRequest, case_id: uuid.UUID) -> HttpResponseBase:
    """Order an export, or download the one that was written."""
    user = user_of(request)
    if request.method == "POST":
        case_export_request(user=user, case_id=case_id)
        messages.success(request, "The export is being written. Its download shows up at the end.")
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
