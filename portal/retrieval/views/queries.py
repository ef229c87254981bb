"""Pages: what is searched with that is not an ROI."""

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

from portal.archive.models import Canvas, CanvasKind
from portal.archive.receiving import announced_bytes, files_receive
from portal.core.errors import (
    ConflictError,
    ForbiddenError,
    InvalidInputError,
    PortalError,
    TooLargeInputError,
)
from portal.core.http.acting import about
from portal.core.http.bodies import receives_files, require_csrf
from portal.core.http.htmx import wants_part
from portal.labs.models import Role
from portal.labs.requests import lab_chosen_by, user_of
from portal.labs.rules import has_role
from portal.labs.selectors import lab_get
from portal.retrieval import selectors, services
from portal.retrieval.forms import AskForm, JudgementForm, PictureForm, SimilarForm
from portal.retrieval.models import EMBEDDED_SOURCES, Query, QuerySource
from portal.retrieval.thumbnails import PICTURES, SMALL, Scale, query_picture, query_scale
from portal.retrieval.views.pages import answered, scales_of

_PAGE = 24  # queries of a page of the list: three rows of a wide screen
_DAY_S = 24 * 3600  # seconds of a day: a query's picture never changes


@login_required
@require_GET
def queries(request: HttpRequest) -> HttpResponse:
    """The queries of one's labs, and where to begin one with a picture."""
    found = selectors.query_list(user_of(request))
    page = Paginator(found, _PAGE).get_page(request.GET.get("page"))
    context = {"page_obj": page, "days": services.QUERY_DAYS}
    return render(request, "retrieval/queries.html", context)


@login_required
@require_POST
def ask(request: HttpRequest) -> HttpResponse:
    """Ask with a piece of a canvas, or once more at another scale; leads to the answer."""
    form = AskForm(request.POST)
    if not form.is_valid():
        raise InvalidInputError(f"This cannot be searched with: {json.dumps(form.errors)}")
    query = services.query_create(asked=form.asked(), user=user_of(request))
    about(request, query.pk)
    return redirect("retrieval:query", query_id=query.pk)


@receives_files
@login_required
@require_http_methods(["GET", "POST"])
def picture(request: HttpRequest) -> HttpResponse:
    """Ask with a picture from elsewhere."""
    user, chosen = user_of(request), lab_chosen_by(request)
    form = PictureForm(user=user, chosen=chosen)
    if request.method == "POST":
        try:
            form = PictureForm(*_received(request), user=user, chosen=chosen)
            if form.is_valid():
                lab = lab_get(user, chosen=chosen)
                query = services.query_create(asked=form.asked(lab), user=user)
                about(request, query.pk)
                return redirect("retrieval:query", query_id=query.pk)
        except ForbiddenError:
            raise  # the form was sent from elsewhere
        except PortalError as error:
            messages.error(request, error.message)
    limit = services.PICTURE_BYTES // 2**20
    context = {"form": form, "limit": limit, "days": services.QUERY_DAYS}
    return render(request, "retrieval/picture.html", context)


@login_required
@require_GET
def query(request: HttpRequest, query_id: uuid.UUID) -> HttpResponse:
    """The answer to a query."""
    return _page(request, selectors.query_get(user_of(request), query_id))


@login_required
@require_POST
def query_mark(request: HttpRequest, query_id: uuid.UUID) -> HttpResponse:
    """Make a hit an example of the query, or no longer one; answers as ``query`` does."""
    user = user_of(request)
    found = selectors.query_get(user, query_id)
    said = JudgementForm(request.POST)
    if not said.is_valid():
        raise InvalidInputError("A mark needs another region, and alike, unlike or nothing.")
    services.query_mark(
        query=found,
        other_id=said.cleaned_data["other"],
        verdict=said.cleaned_data["verdict"],
        user=user,
    )
    if wants_part(request):
        return _page(request, found)
    address = reverse("retrieval:query", args=[found.pk])
    return redirect(f"{address}?{request.GET.urlencode()}")


@login_required
@require_POST
def query_remove(request: HttpRequest, query_id: uuid.UUID) -> HttpResponse:
    """Remove a query with its picture."""
    user = user_of(request)
    found = selectors.query_get(user, query_id)
    services.query_remove(query=found, user=user)
    about(request, found.lab_id)
    messages.success(request, "The query was removed.")
    return redirect("retrieval:queries")


@login_required
@require_POST
def query_embed(request: HttpRequest, query_id: uuid.UUID) -> HttpResponse:
    """Try again to prepare a query after a failure."""
    user = user_of(request)
    found = selectors.query_get(user, query_id)
    services.query_embed_request(query=found, user=user, is_retry=True)
    return redirect("retrieval:query", query_id=found.pk)


@login_required
@require_GET
def query_thumbnail(request: HttpRequest, query_id: uuid.UUID) -> HttpResponse:
    """What the query shows."""
    size = PICTURES.get(request.GET.get("size", ""), SMALL)
    scale = Scale.named(request.GET.get("width", ""))
    data = query_picture(selectors.query_get(user_of(request), query_id), size, scale)
    response = HttpResponse(data, content_type="image/jpeg")
    response["Cache-Control"] = f"private, max-age={_DAY_S}"
    return response


def canvas_action(request: HttpRequest, canvas: Canvas) -> str:
    """From the viewer: search with what is on it, without drawing an ROI."""
    user = user_of(request)
    if not has_role(user, canvas.lab_id, at_least=Role.VIEWER):  # shared by another lab
        return ""
    context = {
        "canvas": canvas,
        "is_video": canvas.kind == CanvasKind.VIDEO,
        "is_slide": canvas.kind in (CanvasKind.SLIDE, CanvasKind.STILL),
    }
    return render_to_string("retrieval/_canvas_action.html", context, request)


def _page(request: HttpRequest, query: Query) -> HttpResponse:
    user, form = user_of(request), SimilarForm(request.GET)
    liked, unliked = selectors.query_examples(user, query)
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
        "here": reverse("retrieval:query", args=[query.pk]),
        "mark_url": reverse("retrieval:query_mark", args=[query.pk]),
        "scale": scale,
        "explains": query.source in EMBEDDED_SOURCES,
    }
    if query.source in (QuerySource.AREA, QuerySource.PICTURE, QuerySource.TISSUE):
        kind = query.canvas.kind if query.canvas else CanvasKind.SLIDE
        is_of_tissue = query.kind == "histology"
        context["scales"] = scales_of(kind, query.scale) if is_of_tissue else []
    try:
        found = services.similar_to_query(query=query, user=user, options=form.options)
        is_result = isinstance(found, selectors.SimilarResult)
        context["result" if is_result else "job"] = found
    except (ConflictError, InvalidInputError) as error:
        job = selectors.query_job(query)
        has_failed = isinstance(error, ConflictError) and error.code == "embedding-failed"
        may_retry = query.user_id == user.pk or has_role(
            user, query.lab_id, at_least=Role.ANNOTATOR
        )
        context |= {"failure": error.message, "is_blank": False, "job": job}
        context["may_retry"] = has_failed and may_retry
    return answered(request, context, "retrieval/query.html")


def _received(request: HttpRequest) -> tuple[QueryDict, Any]:
    """The fields and files of the form, read once token and size are known to be right."""

    def admit(fields: QueryDict) -> None:
        require_csrf(request, fields)
        if announced_bytes(request) > services.PICTURE_BYTES:
            limit = services.PICTURE_BYTES // 2**20
            raise TooLargeInputError(f"The picture is too large: at most {limit} MiB.")

    if settings.CSRF_HEADER_NAME in request.META:
        admit(QueryDict())
        return files_receive(request, admit=lambda fields: None)
    return files_receive(request, admit=admit)
