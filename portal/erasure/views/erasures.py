"""Pages of erasure."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from django.apps import apps
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from portal.core.errors import ConflictError, InvalidInputError, NotFoundError
from portal.core.http.acting import set_audited_id
from portal.core.http.audit_rules import AuditRule, audited, rejections
from portal.core.http.downloads import attachment
from portal.erasure.forms import ErasureFindForm, ErasureForm
from portal.erasure.rules import require_erase
from portal.erasure.selectors.erasures import erasure_get, erasure_job, erasure_list
from portal.erasure.services.erasures import cases_of
from portal.erasure.services.requests import erasure_preview, erasure_request
from portal.labs.models import Lab, User
from portal.labs.requests import lab_chosen_by, user_of
from portal.labs.selectors import lab_get

MAX_LISTED = 50  # two screens; the audit log has all


@audited(GET=AuditRule("erasure.viewed", "lab"), POST=rejections("erasure.requested", "lab"))
@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def erasures(request: HttpRequest) -> HttpResponse:
    """Search, preview and confirm an erasure; list the earlier ones."""
    user = user_of(request)
    lab = lab_get(user, slug=request.GET.get("lab"), chosen=lab_chosen_by(request))
    set_audited_id(request, lab.pk)
    require_erase(user, lab.pk)
    if request.method == "POST" and "typed" in request.POST:
        return _request_erasure(request, lab, user)
    find = ErasureFindForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and find.is_valid():
        try:
            return _preview(request, lab, user, find.cleaned_data)
        except NotFoundError as error:
            find.add_error(None, error.message)
    context = {
        "lab": lab,
        "can_manage": True,
        "find": find,
        "erasures": erasure_list(user, lab=lab)[:MAX_LISTED],
    }
    return render(request, "erasure/erasures.html", context, status=422 if find.errors else 200)


@audited(GET=AuditRule("erasure.viewed", "erasure", "erasure_id"))
@never_cache
@login_required
@require_GET
def erasure(request: HttpRequest, erasure_id: uuid.UUID) -> HttpResponse:
    """State and certificate of an erasure; ``?download``: the certificate as a file."""
    row = erasure_get(user_of(request), erasure_id)
    require_erase(user_of(request), row.lab_id)
    if "download" in request.GET:
        name = attachment(f"erasure-{row.pk}", ".json", fallback="erasure")
        headers = {"Content-Disposition": name}
        return JsonResponse(row.certificate, headers=headers, json_dumps_params={"indent": 1})
    context = {
        "erasure": row,
        "lab": row.lab,
        "job": erasure_job(row),
        "rows": _named_counts(row.certificate.get("rows", {})),
    }
    return render(request, "erasure/erasure.html", context)


def _named_counts(rows: Mapping[str, int]) -> list[tuple[str, int]]:
    """Display names of the models in a certificate with their numbers of rows, without zeros."""
    of = {str(model._meta.model_name): model._meta for model in apps.get_models()}
    return [(_words(of.get(name), name, count), count) for name, count in rows.items() if count]


def _words(meta: Any, name: str, count: int) -> str:
    if meta is None:
        return name
    return str(meta.verbose_name if count == 1 else meta.verbose_name_plural)


def _request_erasure(request: HttpRequest, lab: Lab, user: User) -> HttpResponse:
    form = ErasureForm(request.POST)
    if not form.is_valid():
        return _preview(request, lab, user, form.cleaned_data, form=form)
    data = form.cleaned_data
    cases = cases_of(lab=lab, accession=data["accession"], patient_key=data["patient_key"])
    try:
        ordered, _ = erasure_request(
            lab=lab,
            cases=cases,
            user=user,
            typed=data["typed"],
            patient_key=data["patient_key"],
            reason=data["reason"],
        )
    except (InvalidInputError, ConflictError) as error:
        is_typed = error.code == "not-confirmed"
        text = "This does not match what is to be erased." if is_typed else error.message
        form.add_error("typed" if is_typed else None, text)
        return _preview(request, lab, user, data, form=form)
    return redirect("erasure:erasure", erasure_id=ordered.pk)


def _preview(
    request: HttpRequest,
    lab: Lab,
    user: User,
    data: dict[str, Any],
    *,
    form: ErasureForm | None = None,
) -> HttpResponse:
    accession, key = data.get("accession", ""), data.get("patient_key", "")
    cases = cases_of(lab=lab, accession=accession, patient_key=key)
    preview = erasure_preview(lab=lab, cases=cases, user=user, patient_key=key)
    erasure_form = form or ErasureForm(initial={"accession": accession, "patient_key": key})
    erasure_form.fields["typed"].label = f"Type {preview.typed} to erase"
    context = {"lab": lab, "can_manage": True, "preview": preview, "form": erasure_form}
    return render(request, "erasure/erase.html", context, status=422 if form else 200)
