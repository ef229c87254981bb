"""Pages: queries other than ROIs."""

from __future__ import annotations

import json
import uuid
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from portal.archive.models import Canvas, CanvasKind, Modality
from portal.archive.receiving import announced_bytes, files_receive
from portal.core.errors import (
    ConflictError,
    ForbiddenError,
    InvalidInputError,
    PortalError,
    TooLargeInputError,
)
from portal.core.http.acting import set_audited_id
from portal.core.http.audit_rules import HOUR_S, MINUTE_S, AuditRule, audited, not_audited
from portal.core.http.bodies import receives_files, require_csrf
from portal.core.http.htmx import wants_part
from portal.labs.models import Role
from portal.labs.requests import lab_chosen_by, user_of
from portal.labs.rules import has_role
from portal.labs.selectors import lab_get
from portal.search.forms import JudgementForm, PictureForm, QueryForm, SimilarForm
from portal.search.models import EMBEDDED_SOURCES, Query, QuerySource
from portal.search.selectors.queries import query_examples, query_get, query_job, query_list
from portal.search.selectors.similar_cases import SimilarResult
from portal.search.services import queries as query_services
from portal.search.services.queries import (
    PICTURE_BYTES,
    QUERY_DAYS,
    query_create,
    query_embed_request,
)
from portal.search.services.similar_cases import query_search
from portal.search.thumbnails.queries import query_picture, query_scale
from portal.search.thumbnails.regions import PICTURES, SMALL, Scale
from portal.search.views.similar_cases import answered, scales_of

_PAGE = 24  # queries per page: three rows of a wide screen
_DAY_S = 24 * 3600  # seconds of a day: a query's picture never changes


@audited(GET=AuditRule("search.listed", every_s=HOUR_S))
@login_required
@require_GET
def queries(request: HttpRequest) -> HttpResponse:
    """List the queries of the user's labs."""
    rows = query_list(user_of(request))
    page = Paginator(rows, _PAGE).get_page(request.GET.get("page"))
    context = {"page_obj": page, "days": QUERY_DAYS}
    return render(request, "search/queries.html", context)


@audited(POST=AuditRule("search.requested", "query"))
@login_required
@require_POST
def ask(request: HttpRequest) -> HttpResponse:
    """Create a query from an area of a canvas or another scale; redirect to its hits."""
    form = QueryForm(request.POST)
    if not form.is_valid():
        raise InvalidInputError(f"This cannot be searched with: {json.dumps(form.errors)}")
    query = query_create(data=form.query_data(), user=user_of(request))
    set_audited_id(request, query.pk)
    return redirect("search:query", query_id=query.pk)


@audited(POST=AuditRule("search.requested", "query"))
@receives_files
@login_required
@require_http_methods(["GET", "POST"])
def picture(request: HttpRequest) -> HttpResponse:
    """Create a query from an uploaded picture."""
    user, chosen = user_of(request), lab_chosen_by(request)
    form = PictureForm(user=user, chosen=chosen)
    if request.method == "POST":
        try:
            form = PictureForm(*_receive_form(request), user=user, chosen=chosen)
            if form.is_valid():
                lab = lab_get(user, chosen=chosen)
                query = query_create(data=form.query_data(lab), user=user)
                set_audited_id(request, query.pk)
                return redirect("search:query", query_id=query.pk)
        except ForbiddenError:
            raise  # sent from another site
        except PortalError as error:
            messages.error(request, error.message)
    limit = PICTURE_BYTES // 2**20
    context = {"form": form, "limit": limit, "days": QUERY_DAYS}
    return render(request, "search/picture.html", context)


@audited(GET=AuditRule("search.made", "query", "query_id", every_s=MINUTE_S))
@login_required
@require_GET
def query(request: HttpRequest, query_id: uuid.UUID) -> HttpResponse:
    """Show the hits of a query."""
    return _page(request, query_get(user_of(request), query_id))


@audited(POST=AuditRule("search.judged", "query", "query_id"))
@login_required
@require_POST
def query_mark(request: HttpRequest, query_id: uuid.UUID) -> HttpResponse:
    """Make a hit an example of the query, or none; respond as ``query``."""
    user = user_of(request)
    query = query_get(user, query_id)
    mark = JudgementForm(request.POST)
    if not mark.is_valid():
        raise InvalidInputError("A mark needs another region, and alike, unlike or nothing.")
    query_services.query_mark(
        query=query,
        other_id=mark.cleaned_data["other"],
        verdict=mark.cleaned_data["verdict"],
        user=user,
    )
    if wants_part(request):
        return _page(request, query)
    address = reverse("search:query", args=[query.pk])
    return redirect(f"{address}?{request.GET.urlencode()}")


@audited(POST=AuditRule("search.removed", "lab"))
@login_required
@require_POST
def query_remove(request: HttpRequest, query_id: uuid.UUID) -> HttpResponse:
    """Delete a query with its picture."""
    user = user_of(request)
    query = query_get(user, query_id)
    query_services.query_remove(query=query, user=user)
    set_audited_id(request, query.lab_id)
    messages.success(request, "The query was removed.")
    return redirect("search:queries")


@not_audited("part of an audited page")
@login_required
@require_POST
def query_embed(request: HttpRequest, query_id: uuid.UUID) -> HttpResponse:
    """Retry the embedding of a query after a failure."""
    user = user_of(request)
    query = query_get(user, query_id)
    query_embed_request(query=query, user=user, is_retry=True)
    return redirect("search:query", query_id=query.pk)


@not_audited("part of an audited page")
@login_required
@require_GET
def query_thumbnail(request: HttpRequest, query_id: uuid.UUID) -> HttpResponse:
    size = PICTURES.get(request.GET.get("size", ""), SMALL)
    scale = Scale.of_tag(request.GET.get("width", ""))
    data = query_picture(query_get(user_of(request), query_id), size, scale)
    response = HttpResponse(data, content_type="image/jpeg")
    response["Cache-Control"] = f"private, max-age={_DAY_S}"
    return response


def canvas_action(request: HttpRequest, canvas: Canvas) -> str:
    """Search menu of the viewer, without drawing an ROI."""
    user = user_of(request)
    if not has_role(user, canvas.lab_id, at_least=Role.VIEWER):  # shared by another lab
        return ""
    context = {
        "canvas": canvas,
        "is_video": canvas.kind == CanvasKind.VIDEO,
        "is_flat": (is_flat := canvas.kind in (CanvasKind.SLIDE, CanvasKind.STILL)),
        "is_tissue": is_flat and canvas.modality == Modality.HISTOLOGY,
    }
    return render_to_string("search/_canvas_action.html", context, request)


def _page(request: HttpRequest, query: Query) -> HttpResponse:
    user, form = user_of(request), SimilarForm(request.GET)
    liked, unliked = query_examples(user, query)
    is_own = query.user_id == user.pk or has_role(user, query.lab_id, at_least=Role.MANAGER)
    scale = query_scale(query)
    context: dict[str, Any] = {
        "query": query,
        "case": query.canvas.case if query.canvas else None,
        "canvas": query.canvas,
        "form": form,
        "verdicts": dict.fromkeys((roi.pk for roi in liked), "alike")
        | dict.fromkeys((roi.pk for roi in unliked), "unlike"),
        "liked": liked,
        "unlike": unliked,
        "may_mark": is_own,
        "may_remove": is_own,
        "here": reverse("search:query", args=[query.pk]),
        "mark_url": reverse("search:query_mark", args=[query.pk]),
        "scale": scale,
        "explains": query.source in EMBEDDED_SOURCES,
    }
    if query.source in (QuerySource.AREA, QuerySource.PICTURE, QuerySource.TISSUE):
        context["scales"] = scales_of(query.kind, query.scale)
    try:
        outcome = query_search(query=query, user=user, options=form.options)
        is_result = isinstance(outcome, SimilarResult)
        context["result" if is_result else "job"] = outcome
    except (ConflictError, InvalidInputError) as error:
        job = query_job(query)
        has_failed = isinstance(error, ConflictError) and error.code == "embedding-failed"
        may_retry = query.user_id == user.pk or has_role(
            user, query.lab_id, at_least=Role.ANNOTATOR
        )
        context |= {"failure": error.message, "is_blank": False, "job": job}
        context["may_retry"] = has_failed and may_retry
    return answered(request, context, "search/query.html")


def _receive_form(request: HttpRequest) -> tuple[QueryDict, Any]:
    """Fields and files of the form, read after token and size are checked."""

    def admit(fields: QueryDict) -> None:
        require_csrf(request, fields)
        if announced_bytes(request) > PICTURE_BYTES:
            limit = PICTURE_BYTES // 2**20
            raise TooLargeInputError(f"The picture is too large: at most {limit} MiB.")

    if settings.CSRF_HEADER_NAME in request.META:
        admit(QueryDict())
        return files_receive(request, admit=lambda fields: None)
    return files_receive(request, admit=admit)
