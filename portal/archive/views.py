"""Pages: cases, uploads, the viewer."""

from __future__ import annotations

import uuid
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from portal.archive import extensions, fastpath, selectors, services, storage
from portal.archive.case_table import case_table
from portal.archive.forms import CaseForm
from portal.archive.models import Case
from portal.archive.receiving import require_received
from portal.archive.rules import may_edit, require_edit
from portal.archive.serializers import CanvasSerializer
from portal.core.errors import ForbiddenError, PortalError
from portal.core.htmx import wants_part
from portal.core.problems import problem
from portal.labs.requests import user_of

PER_PAGE = 25


@login_required
@require_GET
def case_list(request: HttpRequest) -> HttpResponse:
    """Search, filter, sort and page through the cases; htmx re-asks for the table alone."""
    user = user_of(request)
    context = case_table(request, user=user, per_page=PER_PAGE)
    if wants_part(request):
        response = render(request, "archive/_case_table.html", context)
        response["HX-Push-Url"] = _short_url(request)
        return response
    context |= {
        "facets": selectors.case_facets(user=user),
        "may_create": selectors.labs_to_edit(user=user).exists(),
    }
    return render(request, "archive/case_list.html", context)


@login_required
@require_http_methods(["GET", "POST"])
def case_new(request: HttpRequest) -> HttpResponse:
    """A new case."""
    user = user_of(request)
    labs = selectors.labs_to_edit(user=user)
    if not labs:
        raise ForbiddenError("This needs the role annotator in a lab.")
    form = CaseForm(request.POST or None, labs=labs)
    if request.method == "POST" and form.is_valid():
        try:
            case = services.case_create(user=user, **form.values)
        except PortalError as error:
            form.refuse(error)
        else:
            return redirect("archive:case_upload", case_id=case.pk)
    return _form(request, form)


@login_required
@require_http_methods(["GET", "POST"])
def case_edit(request: HttpRequest, case_id: uuid.UUID) -> HttpResponse:
    """Change what is said of a case."""
    user = user_of(request)
    case = selectors.case_get(user=user, case_id=case_id)
    require_edit(user, case.lab_id)
    form = CaseForm(request.POST or None, labs=selectors.labs_to_edit(user=user), case=case)
    if request.method == "POST" and form.is_valid():
        try:
            services.case_update(case=case, user=user, **form.values)
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
    """Delete an empty case."""
    user = user_of(request)
    case = selectors.case_get(user=user, case_id=case_id)
    try:
        services.case_delete(case=case, user=user)
    except PortalError as error:
        messages.error(request, error.message)
        return redirect("archive:case_detail", case_id=case_id)
    messages.success(request, f"Case {case.accession} was deleted.")
    return redirect("archive:case_list")


@never_cache
@login_required
@require_GET
def case_detail(request: HttpRequest, case_id: uuid.UUID) -> HttpResponse:
    """A case with its slides, videos and what other apps add."""
    user = user_of(request)
    case = selectors.case_get(user=user, case_id=case_id)
    videos = selectors.item_cards(selectors.video_list(user=user).filter(case=case))
    context = {
        "case": case,
        "slides": selectors.item_cards(selectors.slide_list(user=user).filter(case=case)),
        "videos": [(card, _video_actions(request, card)) for card in videos],
        "sections": extensions.rendered(extensions.case_sections, request, case),
        "may_edit": may_edit(user, case.lab_id),
    }
    return render(request, "archive/case_detail.html", context)


@login_required
@require_http_methods(["GET", "POST"])
def case_upload(request: HttpRequest, case_id: uuid.UUID) -> HttpResponse:
    """Receive files: one at a time (the script, which wants JSON) or all of a plain form."""
    user = user_of(request)
    case = selectors.case_get(user=user, case_id=case_id)
    require_edit(user, case.lab_id)
    if request.method == "POST":
        wants_json = "application/json" in request.headers.get("Accept", "")
        return _received_json(request, case) if wants_json else _received_form(request, case)
    context = {"case": case, "limit": storage.human_size(storage.limit_bytes())}
    return render(request, "archive/upload.html", context)


@never_cache
@login_required
@require_GET
def item_card(request: HttpRequest, kind: str, item_id: uuid.UUID) -> HttpResponse:
    """The card of a slide or video, asked for again when its job ended."""
    user = user_of(request)
    item = selectors.item_get(user=user, kind=kind, item_id=item_id)
    card = selectors.item_cards([item])[0]
    context = {
        "card": card,
        "actions": _video_actions(request, card),
        "may_edit": may_edit(user, item.lab_id),
    }
    return render(request, "archive/_item_card.html", context)


@login_required
@require_POST
def item_retry(request: HttpRequest, kind: str, item_id: uuid.UUID) -> HttpResponse:
    """Prepare a failed slide or video again."""
    user = user_of(request)
    item = selectors.item_get(user=user, kind=kind, item_id=item_id)
    try:
        services.item_retry(item=item, user=user)
    except PortalError as error:
        messages.error(request, error.message)
    return redirect("archive:case_detail", case_id=item.case_id)


@login_required
@require_POST
def item_delete(request: HttpRequest, kind: str, item_id: uuid.UUID) -> HttpResponse:
    """Delete a slide or video that carries no work."""
    user = user_of(request)
    item = selectors.item_get(user=user, kind=kind, item_id=item_id)
    try:
        services.item_delete(item=item, user=user)
        messages.success(request, f"{item.name} was deleted.")
    except PortalError as error:
        messages.error(request, error.message)
    return redirect("archive:case_detail", case_id=item.case_id)


@login_required
@require_GET
def item_open(request: HttpRequest, kind: str, item_id: uuid.UUID) -> HttpResponse:
    """Where a slide or video is looked at: in the viewer once it is ready, on its case before."""
    item = selectors.item_get(user=user_of(request), kind=kind, item_id=item_id)
    if item.canvas_id is not None:
        return redirect("archive:viewer", canvas_id=item.canvas_id)
    return redirect("archive:case_detail", case_id=item.case_id)


@never_cache
@login_required
@require_GET
def viewer(request: HttpRequest, canvas_id: uuid.UUID) -> HttpResponse:
    """One canvas in the viewer. Never cached: its tile addresses expire."""
    canvas = selectors.canvas_get(user=user_of(request), canvas_id=canvas_id)
    context = {
        "canvas": canvas,
        "canvas_data": CanvasSerializer(canvas, context={"request": request}).data,
        "canvas_actions": extensions.rendered(extensions.canvas_actions, request, canvas),
    }
    return render(request, "archive/viewer.html", context)


def tile(request: HttpRequest, address: str) -> HttpResponse:
    """A tile by grant, where Django is asked without the WSGI fast path in front of it."""
    status, headers, body = fastpath.TILES.answer(
        request.method or "GET", request.path, request.headers.get("If-None-Match", "")
    )
    response = HttpResponse(body, status=int(status[:3]))
    del response["Content-Type"]
    for name, value in headers:
        response[name] = value
    return response


def _received_json(request: HttpRequest, case: Case) -> JsonResponse:
    try:
        files = _files(request)
        if len(files) != 1:
            raise PortalError("Send one file.", code="invalid-input")
        received = _receive(request, case, files[0])
    except PortalError as error:
        body = problem(
            status=error.status, code=error.code, title=error.title, detail=error.message
        )
        return JsonResponse(body, status=error.status, content_type="application/problem+json")
    body = {
        "id": str(received.item.pk),
        "name": received.item.name,
        "is_new": received.is_new,
        "case_url": reverse("archive:case_detail", args=[case.pk]),
    }
    return JsonResponse(body, status=202)


def _received_form(request: HttpRequest, case: Case) -> HttpResponse:
    try:
        files = _files(request)
    except PortalError as error:
        messages.error(request, error.message)
        return redirect("archive:case_upload", case_id=case.pk)
    refused = 0
    for file in files:
        try:
            received = _receive(request, case, file)
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


def _receive(request: HttpRequest, case: Case, file: UploadedFile) -> services.ItemReceived:
    return services.item_receive(
        case=case, file=file, filename=file.name or "", user=user_of(request)
    )


def _files(request: HttpRequest) -> list[UploadedFile]:
    files = request.FILES.getlist("file")
    require_received(request)
    return files


def _video_actions(request: HttpRequest, card: selectors.ItemCard) -> str:
    if card.kind != "video" or card.item.state != "ready":
        return ""
    return extensions.rendered(extensions.video_actions, request, card.item)


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
