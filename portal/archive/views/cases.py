"""Pages: cases."""

from __future__ import annotations

import uuid
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from portal.archive import extensions
from portal.archive.forms import CaseForm
from portal.archive.models import Case, Modality
from portal.archive.models.shares import today
from portal.archive.rules import may_edit, may_intake, may_share, require_edit
from portal.archive.selectors.cases import case_facets, case_get
from portal.archive.selectors.items import item_cards, slide_list, video_list
from portal.archive.selectors.sharing import share_seen, shared_count, shares_of_case
from portal.archive.selectors.stains import stains_offered
from portal.archive.selectors.uploads import uploads_held
from portal.archive.services.cases import case_create, case_update
from portal.archive.services.cases import case_delete as delete_case
from portal.archive.services.modality import case_modality_set
from portal.archive.services.sharing import LONGEST_SHARE, USUAL_SHARE
from portal.archive.views.case_table import case_table
from portal.archive.views.items import video_actions
from portal.archive.views.notices import deleted_notice
from portal.core.api.etags import edited_by_page
from portal.core.errors import (
    ConflictError,
    ForbiddenError,
    InvalidInputError,
    PortalError,
    StaleVersionError,
)
from portal.core.http.audit_rules import AuditRule, audited, rejections
from portal.core.http.htmx import wants_part
from portal.labs.models import Role
from portal.labs.requests import lab_chosen_by, user_of
from portal.labs.selectors import lab_current, labs_with_role

PER_PAGE = 25  # rows of 80 px: two to three screens


@audited(GET=AuditRule("case.listed"))
@login_required
@require_GET
def case_list(request: HttpRequest) -> HttpResponse:
    """Search, filter, sort and page through the cases; htmx requests only the table."""
    user = user_of(request)
    table = case_table(request, user=user, per_page=PER_PAGE)
    if wants_part(request):
        response = render(request, "archive/_case_table.html", table)
        response["HX-Push-Url"] = _short_url(request)
        return response
    lab = table["lab"]
    context = {
        **table,
        "shared_count": shared_count(user, lab=lab),
        "facets": case_facets(user=user),
        "today": today(),
        "usual_until": today() + USUAL_SHARE,
        "longest_until": today() + LONGEST_SHARE,
        "actions": extensions.rendered(extensions.Slot.LIST_ACTION, request, *table["managed"][:1]),
    }
    return render(request, "archive/case_list.html", context)


@audited(POST=rejections("case.created"))
@login_required
@require_http_methods(["GET", "POST"])
def case_new(request: HttpRequest) -> HttpResponse:
    user = user_of(request)
    labs = labs_with_role(user, at_least=Role.ANNOTATOR)
    if not labs:
        raise ForbiddenError("You need the role of annotator in a lab.")
    lab = lab_current(user, chosen=lab_chosen_by(request))
    form = CaseForm(request.POST or None, labs=labs, initial={"lab": lab} if lab else None)
    if request.method == "POST" and form.is_valid():
        try:
            case = case_create(lab=form.cleaned_data["lab"], user=user, **form.values)
        except PortalError as error:
            form.refuse(error)
        else:
            return redirect("archive:case_upload", case_id=case.pk)
    return _form(request, form)


@audited(
    GET=AuditRule("case.viewed", "case", "case_id"),
    POST=rejections("case.changed", "case", "case_id"),
)
@login_required
@require_http_methods(["GET", "POST"])
def case_edit(request: HttpRequest, case_id: uuid.UUID) -> HttpResponse:
    """Change the details of a case."""
    user = user_of(request)
    case = case_get(user=user, case_id=case_id)
    require_edit(user, case.lab_id)
    form = CaseForm(
        request.POST or None, labs=labs_with_role(user, at_least=Role.ANNOTATOR), case=case
    )
    if request.method == "POST" and form.is_valid():
        try:
            with edited_by_page(request, case):
                case_update(case=case, user=user, **form.values)
        except StaleVersionError:
            case.refresh_from_db()
            form.show_case(case)
        except PortalError as error:
            form.refuse(error)
            case.refresh_from_db()
        else:
            messages.success(request, "Saved.")
            return redirect("archive:case_detail", case_id=case.pk)
    return _form(request, form, case=case)


@audited(POST=rejections("case.modality_set", "case", "case_id"))
@login_required
@require_POST
def case_modality(request: HttpRequest, case_id: uuid.UUID) -> HttpResponse:
    """Set the modality of a case and of all its images."""
    user = user_of(request)
    case = case_get(user=user, case_id=case_id)
    try:
        with edited_by_page(request, case):
            case_modality_set(case=case, user=user, modality=request.POST.get("modality", ""))
        name = case.get_modality_display().lower()
        text = f"All images are now {name}. Regions drawn on the others are embedded again."
        messages.success(request, text)
    except StaleVersionError:
        messages.error(request, "Someone else has changed this case. Nothing was changed.")
    except InvalidInputError as error:
        messages.error(request, error.message)
    return redirect("archive:case_detail", case_id=case_id)


@audited(POST=rejections("trash.put", "case", "case_id"))
@login_required
@require_POST
def case_delete(request: HttpRequest, case_id: uuid.UUID) -> HttpResponse:
    """Put a case into the trash."""
    user = user_of(request)
    case = case_get(user=user, case_id=case_id)
    try:
        entry = delete_case(case=case, user=user)
    except ConflictError as error:
        messages.error(request, error.message)
        return redirect("archive:case_detail", case_id=case_id)
    deleted_notice(request, entry)
    return redirect("archive:case_list")


@audited(GET=AuditRule("case.viewed", "case", "case_id"))
@never_cache
@login_required
@require_GET
def case_detail(request: HttpRequest, case_id: uuid.UUID) -> HttpResponse:
    """A case with its slides, videos and what other apps add."""
    user = user_of(request)
    case = case_get(user=user, case_id=case_id)
    slides = slide_list(user=user, with_shared=True).filter(case=case)
    videos = video_list(user=user, with_shared=True).filter(case=case)
    share = share_seen(user, case)
    may = may_edit(user, case.lab_id)
    context = {
        "case": case,
        "share": share,
        "shares": shares_of_case(user, case).open() if share is None else (),
        "slides": item_cards(slides, user=user),
        "videos": [(card, video_actions(request, card)) for card in item_cards(videos, user=user)],
        "sections": extensions.rendered(extensions.Slot.CASE_SECTION, request, case),
        "held": uploads_held(case=case, user=user) if share is None else (),
        "may_edit": may,
        "modalities": Modality.choices,
        "stains": stains_offered(user=user, lab_id=case.lab_id) if may else (),
        "may_intake": may_intake(user, case.lab_id),
        "may_share": may_share(user, case.lab_id),
    }
    return render(request, "archive/case_detail.html", context)


def _form(request: HttpRequest, form: CaseForm, case: Case | None = None) -> HttpResponse:
    status = 422 if form.errors else 200
    facets = case_facets(user=user_of(request), with_vocabulary=True)
    context: dict[str, Any] = {"form": form, "case": case, "facets": facets}
    return render(request, "archive/case_form.html", context, status=status)


def _short_url(request: HttpRequest) -> str:
    """URL of the request without empty filters."""
    params = request.GET.copy()
    for name in [name for name, value in params.items() if not value]:
        del params[name]
    return f"{request.path}?{params.urlencode()}" if params else request.path
