"""Pages: canvases beside each other."""

from __future__ import annotations

import uuid

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from portal.archive import selectors
from portal.archive.serializers import CanvasSerializer
from portal.core.errors import NotFoundError
from portal.labs.requests import user_of

MAX_BESIDE = 4  # 2 x 2: more would be too small to judge tissue in
CHOICES = 24  # shown at once; words narrow them


@never_cache
@login_required
@require_GET
def beside(request: HttpRequest, canvas_id: uuid.UUID) -> HttpResponse:
    """Up to four canvases beside each other: that of the path, and each ``with`` of the query.

    The script fetches the others over REST, so that each reading is noted on its own.
    """
    user = user_of(request)
    canvas = selectors.canvas_get(user=user, canvas_id=canvas_id)
    others = [_id(text) for text in request.GET.getlist("with")][: MAX_BESIDE - 1]
    selectors.canvases_require(user=user, canvas_ids=others)
    context = {
        "canvas": canvas,
        "canvas_data": CanvasSerializer(canvas, context={"request": request}).data,
        "panes": range(1, MAX_BESIDE + 1),
    }
    return render(request, "archive/beside.html", context)


@never_cache
@login_required
@require_GET
def beside_choices(request: HttpRequest, canvas_id: uuid.UUID) -> HttpResponse:
    """What may be put beside a canvas: of the same case first, then the newest; ``q`` narrows."""
    user = user_of(request)
    canvas = selectors.canvas_get(user=user, canvas_id=canvas_id)
    asked = request.GET.get("q", "").strip()[:200]
    found = selectors.canvases_beside(user=user, canvas=canvas, text=asked)
    context = {"choices": found[:CHOICES], "asked": asked, "limit": CHOICES}
    return render(request, "archive/_beside_choices.html", context)


def _id(text: str) -> uuid.UUID:
    try:
        return uuid.UUID(text)
    except ValueError:
        raise NotFoundError("No such canvas.") from None
