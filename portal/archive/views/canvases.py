"""Pages: the viewer, and its tiles."""

from __future__ import annotations

import uuid

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from portal.archive import extensions, selectors
from portal.archive.models import Canvas
from portal.archive.rules import may_edit
from portal.archive.serializers import CanvasSerializer
from portal.archive.tiles.permits import Credential
from portal.archive.tiles.server import TILES, TileRequest
from portal.labs.models import User
from portal.labs.requests import user_of


@never_cache
@login_required
@require_GET
def viewer(request: HttpRequest, canvas_id: uuid.UUID) -> HttpResponse:
    """One canvas in the viewer."""
    user = user_of(request)
    canvas = selectors.canvas_get(user=user, canvas_id=canvas_id)
    context = {
        "canvas": canvas,
        "share": selectors.share_seen(user, canvas.case),
        "canvas_data": CanvasSerializer(canvas, context={"request": request}).data,
        "stains": _stains(user, canvas),
        "canvas_actions": extensions.rendered(extensions.canvas_actions, request, canvas),
    }
    return render(request, "archive/viewer.html", context)


def _stains(user: User, canvas: Canvas) -> list[str]:
    """Words to choose from; none if this person sets no stain here."""
    if getattr(canvas, "slide", None) is None or not may_edit(user, canvas.lab_id):
        return []
    return selectors.stains_offered(user=user, lab_id=canvas.lab_id)


def tile(request: HttpRequest, address: str) -> HttpResponse:
    """A tile, where Django is asked without the fast path in front of it."""
    sent = request.headers
    status, headers, body = TILES.answer(
        TileRequest(
            request.method or "GET",
            request.path,
            Credential(sent.get("Cookie", ""), sent.get("Authorization", "")),
            sent.get("If-None-Match", ""),
        )
    )
    response = HttpResponse(body, status=status)
    del response["Content-Type"]
    for name, value in headers:
        response[name.decode("latin-1")] = value.decode("latin-1")
    return response
