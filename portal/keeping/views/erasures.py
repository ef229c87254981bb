"""Pages: a patient's data, erased for good by a manager."""

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
from portal.core.http.acting import about
from portal.core.http.downloads import attachment
from portal.keeping import selectors, services
from portal.keeping.forms import ErasureFindForm, ErasureForm
from portal.keeping.rules import require_purge
from portal.labs.models import Lab, User
from portal.labs.requests import lab_chosen_by, user_of
from portal.labs.selectors import lab_get

SHOWN = 50  # the newest: two screens; the audit log has all


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def erasures(request: HttpRequest) -> HttpResponse:
    """Find what is to be erased, see what that takes, prove it by typing; and what was erased."""
    user = user_of(request)
    lab = lab_get(user, slug=request.GET.get("lab"), chosen=lab_chosen_by(request))
    about(request, lab.pk)
    require_purge(user, lab.pk)
    if request.method == "POST" and "typed" in request.POST:
        return _ordered(request, lab, user)
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
        "erasures": selectors.erasure_list(user, lab=lab)[:SHOWN],
    }
    return render(request, "keeping/erasures.html", context, status=422 if find.errors else 200)


@never_cache
@login_required
@require_GET
def erasure(request: HttpRequest, erasure_id: uuid.UUID) -> HttpResponse:
    """Where an erasure stands, and its certificate; ``?download`` gives it as a file."""
    found = selectors.erasure_get(user_of(request), erasure_id)
    require_purge(user_of(request), found.lab_id)
    if "download" in request.GET:
        name = attachment(f"erasure-{found.pk}", ".json", fallback="erasure")
        headers = {"Content-Disposition": name}
        return JsonResponse(found.certificate, headers=headers, json_dumps_params={"indent": 1})
    context = {
        "erasure": found,
        "lab": found.lab,
        "job": selectors.erasure_job(found),
        "rows": _in_words(found.certificate.get("rows", {})),
    }
    return render(request, "keeping/erasure.html", context)


def _in_words(rows: Mapping[str, int]) -> list[tuple[str, int]]:
    """Of names of models, as a certificate has them, what people call them; none of zero."""
    of = {str(one._meta.model_name): one._meta for one in apps.get_models()}
    return [(_words(of.get(name), name, count), count) for name, count in rows.items() if count]


def _words(meta: Any, name: str, count: int) -> str:
    if meta is None:
        return name
    return str(meta.verbose_name if count == 1 else meta.verbose_name_plural)


def _ordered(request: HttpRequest, lab: Lab, user: User) -> HttpResponse:
    form = ErasureForm(request.POST)
    if not form.is_valid():
        return _preview(request, lab, user, form.cleaned_data, form=form)
    asked = form.cleaned_data
    cases = services.cases_of(
        lab=lab, accession=asked["accession"], patient_key=asked["patient_key"]
    )
    try:
        ordered, _ = services.erasure_request(
            lab=lab,
            cases=cases,
            user=user,
            typed=asked["typed"],
            patient_key=asked["patient_key"],
            reason=asked["reason"],
        )
    except (InvalidInputError, ConflictError) as error:
        is_typed = error.code == "not-confirmed"
        text = "This does not match what is to be erased." if is_typed else error.message
        form.add_error("typed" if is_typed else None, text)
        return _preview(request, lab, user, asked, form=form)
    return redirect("keeping:erasure", erasure_id=ordered.pk)


def _preview(
    request: HttpRequest,
    lab: Lab,
    user: User,
    asked: dict[str, Any],
    *,
    form: ErasureForm | None = None,
) -> HttpResponse:
    accession, key = asked.get("accession", ""), asked.get("patient_key", "")
    cases = services.cases_of(lab=lab, accession=accession, patient_key=key)
    preview = services.erasure_preview(lab=lab, cases=cases, user=user, patient_key=key)
    shown = form or ErasureForm(initial={"accession": accession, "patient_key": key})
    shown.fields["typed"].label = f"Type {preview.typed} to erase"
    context = {"lab": lab, "can_manage": True, "preview": preview, "form": shown}
    return render(request, "keeping/erase.html", context, status=422 if form else 200)
