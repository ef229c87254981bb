"""Pages that show canvases side by side."""

from __future__ import annotations

import uuid

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from portal.archive.selectors.canvases import canvas_get, canvases_require, canvases_to_compare
from portal.archive.serializers.canvases import CanvasSerializer
from portal.core.errors import NotFoundError
from portal.core.http.audit_rules import MINUTE_S, AuditRule, audited
from portal.labs.requests import user_of

MAX_IMAGES = 4  # 2 x 2: more would be too small to judge tissue in
CHOICES = 24  # images offered at once; a text filter narrows them


@audited(GET=AuditRule("canvas.opened", "canvas", "canvas_id"))
@never_cache
@login_required
@require_GET
def compare(request: HttpRequest, canvas_id: uuid.UUID) -> HttpResponse:
    """Show up to four canvases side by side: that of the path, and each ``with`` of the query
    string.

    The script fetches the others over REST, so that each access is logged.
    """
    user = user_of(request)
    canvas = canvas_get(user=user, canvas_id=canvas_id)
    other_ids = [_id(text) for text in request.GET.getlist("with")][: MAX_IMAGES - 1]
    canvases_require(user=user, canvas_ids=other_ids)
    context = {
        "canvas": canvas,
        "canvas_data": CanvasSerializer(canvas, context={"request": request}).data,
        "panes": range(1, MAX_IMAGES + 1),
    }
    return render(request, "archive/compare.html", context)


@audited(GET=AuditRule("canvas.listed", "canvas", "canvas_id", every_s=MINUTE_S))
@never_cache
@login_required
@require_GET
def compare_choices(request: HttpRequest, canvas_id: uuid.UUID) -> HttpResponse:
    """Canvases to choose from: of the same case first, then the newest; ``q`` filters."""
    user = user_of(request)
    canvas = canvas_get(user=user, canvas_id=canvas_id)
    text = request.GET.get("q", "").strip()[:200]
    canvases = canvases_to_compare(user=user, canvas=canvas, text=text)
    context = {"choices": canvases[:CHOICES], "text": text, "limit": CHOICES}
    return render(request, "archive/_compare_choices.html", context)


def _id(text: str) -> uuid.UUID:
    try:
        return uuid.UUID(text)
    except ValueError:
        raise NotFoundError("No such canvas.") from None
