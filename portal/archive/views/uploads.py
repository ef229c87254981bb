"""Pages: files for a case."""

from __future__ import annotations

import uuid
from typing import cast

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from portal.archive.models import Case
from portal.archive.receiving import admitted, announced_bytes, files_receive
from portal.archive.rules import RETENTION, require_edit
from portal.archive.selectors.cases import case_get
from portal.archive.selectors.uploads import uploads_interrupted
from portal.archive.services.items import item_receive
from portal.archive.services.uploads import upload_admit
from portal.archive.storage import files as storage
from portal.core.errors import ForbiddenError, PortalError
from portal.core.http.audit_rules import AuditRule, audited, rejections
from portal.core.http.bodies import receives_files, require_csrf
from portal.labs.requests import user_of


@audited(
    GET=AuditRule("case.viewed", "case", "case_id"),
    POST=rejections("item.received", "case", "case_id"),
)
@receives_files
@login_required
@require_http_methods(["GET", "POST"])
def case_upload(request: HttpRequest, case_id: uuid.UUID) -> HttpResponse:
    """Page for uploads. Its plain form is received here; with scripts, REST receives pieces."""
    user = user_of(request)
    case = case_get(user=user, case_id=case_id)
    require_edit(user, case.lab_id)
    if request.method == "POST":
        return _received_form(request, case)
    context = {
        "case": case,
        "limit": storage.human_size(storage.limit_bytes()),
        "interrupted": uploads_interrupted(case=case, user=user),
        "retention_hours": round(RETENTION.total_seconds() / 3600),
    }
    return render(request, "archive/upload.html", context)


def _received_form(request: HttpRequest, case: Case) -> HttpResponse:
    try:
        files = _files(request, case)
    except ForbiddenError:
        raise  # the form was sent from elsewhere
    except PortalError as error:
        messages.error(request, error.message)
        return redirect("archive:case_upload", case_id=case.pk)
    refused = 0
    for file in files:
        try:
            received = item_receive(
                case=case, file=file, filename=file.name or "", user=user_of(request)
            )
        except PortalError as error:
            refused += 1
            messages.error(request, error.message)
        else:
            if not received.is_new:
                messages.info(request, f"The case already holds {received.item.name}.")
    if not files:
        messages.error(request, "Choose a file first.")
    if refused or not files:
        return redirect("archive:case_upload", case_id=case.pk)
    return redirect("archive:case_detail", case_id=case.pk)


def _files(request: HttpRequest, case: Case) -> list[UploadedFile[bytes]]:
    """The files of the form, read once token, size and room are known to be right.

    The script sends the token in a header; a plain form has it in a field before the files.
    """

    def admit(fields: QueryDict) -> None:
        require_csrf(request, fields)
        upload_admit(case=case, user=user_of(request), size_bytes=announced_bytes(request))

    is_known = settings.CSRF_HEADER_NAME in request.META
    if is_known:
        admit(QueryDict())
    _, files = files_receive(request, admit=admitted if is_known else admit)
    return cast("list[UploadedFile[bytes]]", files.getlist("file"))
