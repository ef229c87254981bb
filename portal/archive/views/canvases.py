"""Pages: the viewer, and its tiles."""

from __future__ import annotations

import uuid

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from portal.archive import extensions
from portal.archive.models import Canvas, CanvasKind, Modality
from portal.archive.rules import may_edit
from portal.archive.selectors.canvases import canvas_get, canvases_of_case, tray_images
from portal.archive.selectors.sharing import share_seen
from portal.archive.selectors.stains import stains_offered
from portal.archive.serializers.canvases import CanvasSerializer
from portal.archive.tiles.permits import Credential
from portal.archive.tiles.server import TILES, TileRequest
from portal.core.http.audit_rules import MINUTE_S, AuditRule, audited, not_audited
from portal.labs.models import User
from portal.labs.requests import user_of


@audited(GET=AuditRule("canvas.opened", "canvas", "canvas_id"))
@never_cache
@login_required
@require_GET
def viewer(request: HttpRequest, canvas_id: uuid.UUID) -> HttpResponse:
    user = user_of(request)
    canvas = canvas_get(user=user, canvas_id=canvas_id)
    data = CanvasSerializer(canvas, context={"request": request}).data
    is_histology = canvas.modality == Modality.HISTOLOGY
    context = {
        "canvas": canvas,
        "share": share_seen(user, canvas.case),
        "canvas_data": data,
        "image_count": canvases_of_case(user=user, case_id=canvas.case_id).count(),
        "modalities": Modality.choices,
        "is_tissue": is_histology and canvas.kind in (CanvasKind.SLIDE, CanvasKind.STILL),
        "can_follow_up": canvas.kind in (CanvasKind.VIDEO, CanvasKind.MOSAIC)
        or (canvas.kind == CanvasKind.STILL and not is_histology),
        "can_scale": data["can_scale"],
        "stains": _stains(user, canvas),
        "canvas_actions": extensions.rendered(extensions.Slot.CANVAS_ACTION, request, canvas),
    }
    return render(request, "archive/viewer.html", context)


@audited(GET=AuditRule("canvas.listed", "canvas", "canvas_id", every_s=MINUTE_S))
@never_cache
@login_required
@require_GET
def tray(request: HttpRequest, canvas_id: uuid.UUID) -> HttpResponse:
    """All images of the canvas' case, as the viewer's tray shows them: a piece of the page."""
    user = user_of(request)
    canvas = canvas_get(user=user, canvas_id=canvas_id)
    context = {"images": tray_images(user=user, case_id=canvas.case_id)}
    return render(request, "archive/_viewer_tray_images.html", context)


def _stains(user: User, canvas: Canvas) -> list[str]:
    """Words to choose from; none if this person sets no stain here."""
    is_stained = getattr(canvas, "slide", None) and canvas.modality == Modality.HISTOLOGY
    if not is_stained or not may_edit(user, canvas.lab_id):
        return []
    return stains_offered(user=user, lab_id=canvas.lab_id)


@not_audited("part of an audited page")
def tile(request: HttpRequest, address: str) -> HttpResponse:
    """Serve a tile if the tile server is not in front of Django."""
    request_headers = request.headers
    status, headers, body = TILES.answer(
        TileRequest(
            request.method or "GET",
            request.path,
            Credential(request_headers.get("Cookie", ""), request_headers.get("Authorization", "")),
            request_headers.get("If-None-Match", ""),
        )
    )
    response = HttpResponse(body, status=status)
    del response["Content-Type"]
    for name, value in headers:
        response[name.decode("latin-1")] = value.decode("latin-1")
    return response
