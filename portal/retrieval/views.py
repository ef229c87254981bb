"""Pages: similar cases of an ROI, and the ROI's picture."""

from __future__ import annotations

import uuid
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import quote_etag
from django.views.decorators.http import require_GET, require_POST

from portal.annotations.models import Roi
from portal.annotations.selectors import roi_get
from portal.core.errors import ConflictError, NotFoundError
from portal.core.http.htmx import wants_part
from portal.labs.models import Role, User
from portal.labs.requests import user_of
from portal.labs.rules import has_role
from portal.retrieval import selectors, services
from portal.retrieval.forms import SimilarForm
from portal.retrieval.thumbnails import roi_thumbnail

_DAY_S = 24 * 3600  # seconds of a day


@login_required
@require_GET
def similar(request: HttpRequest, roi_id: uuid.UUID) -> HttpResponse:
    """Similar cases. htmx asks for the results alone: on a filter, and while a job is under way."""
    roi = _live_roi(request, roi_id, with_shared=False)
    form = SimilarForm(request.GET, user=user_of(request), lab_id=roi.lab_id)
    context: dict[str, Any] = {"roi": roi, "case": roi.canvas.case, "form": form}
    context |= _outcome(user_of(request), roi, form)
    is_part = wants_part(request)
    template = "retrieval/_results.html" if is_part else "retrieval/similar.html"
    return render(request, template, context)


@login_required
@require_POST
def embed(request: HttpRequest, roi_id: uuid.UUID) -> HttpResponse:
    """Try again to embed an ROI after a failure."""
    roi = _live_roi(request, roi_id, with_shared=False)
    services.embed_request(roi=roi, user=user_of(request), is_retry=True)
    return redirect("retrieval:similar", roi_id=roi.pk)


@login_required
@require_GET
def thumbnail(request: HttpRequest, roi_id: uuid.UUID) -> HttpResponse:
    """The ROI's picture with its outline. The address names the version, so it may be kept."""
    roi = _live_roi(request, roi_id)
    etag = quote_etag(f"{roi.pk.hex}-{roi.version}")
    if request.headers.get("If-None-Match") == etag:
        response = HttpResponse(status=304)
    else:
        response = HttpResponse(roi_thumbnail(roi), content_type="image/jpeg")
    is_pinned = request.GET.get("v") == str(roi.version)
    response["ETag"] = etag
    response["Cache-Control"] = f"private, max-age={_DAY_S}" if is_pinned else "private, no-cache"
    return response


def _outcome(user: User, roi: Roi, form: SimilarForm) -> dict[str, Any]:
    """One of: ``result``, ``job`` (under way), ``failure`` with the failed ``job``."""
    try:
        found = services.similar_or_embed(roi=roi, user=user, filters=form.filters())
    except ConflictError as error:
        return {
            "failure": error.message,
            "is_blank": error.code == selectors.NO_TISSUE,
            "job": selectors.embed_job(roi=roi),
            "may_retry": has_role(user, roi.lab_id, at_least=Role.ANNOTATOR),
        }
    return {"result": found} if isinstance(found, selectors.SimilarResult) else {"job": found}


def _live_roi(request: HttpRequest, roi_id: uuid.UUID, *, with_shared: bool = True) -> Roi:
    roi = roi_get(user_of(request), roi_id, with_shared=with_shared)
    if roi.deleted_at is not None:
        raise NotFoundError("This ROI was deleted.")
    return roi
