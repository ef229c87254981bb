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

from portal.archive import extensions, selectors, services
from portal.archive.forms import CaseForm
from portal.archive.models import Case
from portal.archive.rules import may_edit, may_intake, may_share, require_edit
from portal.archive.views.case_table import case_table
from portal.archive.views.items import video_actions
from portal.archive.views.notices import deleted_notice
from portal.core.api.conditions import edited_by_page
from portal.core.errors import ConflictError, ForbiddenError, PortalError, StaleVersionError
from portal.core.http.htmx import wants_part
from portal.labs.models import Role
from portal.labs.requests import lab_chosen_by, user_of
from portal.labs.selectors import lab_current, labs_with_role

PER_PAGE = 25  # rows of 80 px: two to three screens


@login_required
@require_GET
def case_list(request: HttpRequest) -> HttpResponse:
    """Search, filter, sort and page through the cases; htmx requests the table alone."""
    user = user_of(request)
    table = case_table(request, user=user, per_page=PER_PAGE)
    if wants_part(request):
        response = render(request, "archive/_case_table.html", table)
        response["HX-Push-Url"] = _short_url(request)
        return response
    lab = table["lab"]
    context = {
        **table,
        "shared_count": selectors.shared_count(user, lab=lab),
        "facets": selectors.case_facets(user=user),
        "may_create": labs_with_role(user, at_least=Role.ANNOTATOR).exists(),
        "actions": extensions.rendered(extensions.list_actions, request, lab),
    }
    return render(request, "archive/case_list.html", context)


@login_required
@require_http_methods(["GET", "POST"])
def case_new(request: HttpRequest) -> HttpResponse:
    """A new case."""
    user = user_of(request)
    labs = labs_with_role(user, at_least=Role.ANNOTATOR)
    if not labs:
        raise ForbiddenError("You need the role of annotator in a lab.")
    lab = lab_current(user, chosen=lab_chosen_by(request))
    form = CaseForm(request.POST or None, labs=labs, initial={"lab": lab} if lab else None)
    if request.method == "POST" and form.is_valid():
        try:
            case = services.case_create(lab=form.cleaned_data["lab"], user=user, **form.values)
        except PortalError as error:
            form.refuse(error)
        else:
            return redirect("archive:case_upload", case_id=case.pk)
    return _form(request, form)


@login_required
@require_http_methods(["GET", "POST"])
def case_edit(request: HttpRequest, case_id: uuid.UUID) -> HttpResponse:
    """Change the details of a case."""
    user = user_of(request)
    case = selectors.case_get(user=user, case_id=case_id)
    require_edit(user, case.lab_id)
    form = CaseForm(
        request.POST or None, labs=labs_with_role(user, at_least=Role.ANNOTATOR), case=case
    )
    if request.method == "POST" and form.is_valid():
        try:
            with edited_by_page(request, case):
                services.case_update(case=case, user=user, **form.values)
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


@login_required
@require_POST
def case_delete(request: HttpRequest, case_id: uuid.UUID) -> HttpResponse:
    """Put a case into the bin."""
    user = user_of(request)
    case = selectors.case_get(user=user, case_id=case_id)
    try:
        entry = services.case_delete(case=case, user=user)
    except ConflictError as error:
        messages.error(request, error.message)
        return redirect("archive:case_detail", case_id=case_id)
    deleted_notice(request, entry)
    return redirect("archive:case_list")


@never_cache
@login_required
@require_GET
def case_detail(request: HttpRequest, case_id: uuid.UUID) -> HttpResponse:
    """A case with its slides, videos and what other apps add."""
    user = user_of(request)
    case = selectors.case_get(user=user, case_id=case_id)
    slides = selectors.slide_list(user=user, with_shared=True).filter(case=case)
    videos = selectors.video_list(user=user, with_shared=True).filter(case=case)
    share = selectors.share_seen(user, case)
    may = may_edit(user, case.lab_id)
    context = {
        "case": case,
        "share": share,
        "shares": selectors.shares_of_case(user, case).open() if share is None else (),
        "slides": selectors.item_cards(slides, user=user),
        "videos": [
            (card, video_actions(request, card)) for card in selectors.item_cards(videos, user=user)
        ],
        "sections": extensions.rendered(extensions.case_sections, request, case),
        "held": selectors.uploads_held(case=case, user=user) if share is None else (),
        "may_edit": may,
        "stains": selectors.stains_offered(user=user, lab_id=case.lab_id) if may else (),
        "may_intake": may_intake(user, case.lab_id),
        "may_share": may_share(user, case.lab_id),
    }
    return render(request, "archive/case_detail.html", context)


def _form(request: HttpRequest, form: CaseForm, case: Case | None = None) -> HttpResponse:
    status = 422 if form.errors else 200
    context: dict[str, Any] = {"form": form, "case": case}
    return render(request, "archive/case_form.html", context, status=status)


def _short_url(request: HttpRequest) -> str:
    """The address of what was asked for, without the filters that were left empty."""
    asked = request.GET.copy()
    for name in [name for name, value in asked.items() if not value]:
        del asked[name]
    return f"{request.path}?{asked.urlencode()}" if asked else request.path
