"""Pages: one mosaic; what mosaics add to the pages of cases, videos and canvases."""

from __future__ import annotations

import uuid

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.views.decorators.http import require_GET, require_POST

from portal.archive.models import Canvas, CanvasKind, Case, ItemState, Video
from portal.archive.selectors import case_get, video_get
from portal.archive.serializers import thumbnail_url
from portal.labs.requests import user_of
from portal.mosaics import selectors, services
from portal.mosaics.models import Mosaic
from portal.mosaics.rules import may_build


@login_required
@require_GET
def mosaic_detail(request: HttpRequest, mosaic_id: uuid.UUID) -> HttpResponse:
    """Progress while it is built, then the result and what became of each frame."""
    mosaic = selectors.mosaic_get(user_of(request), mosaic_id)
    is_ready = mosaic.state == ItemState.READY
    context = {
        "mosaic": mosaic,
        "job": selectors.mosaic_jobs([mosaic]).get(mosaic.pk),
        "report": selectors.mosaic_report(mosaic) if is_ready else None,
        "runs": selectors.frame_runs(mosaic) if is_ready else [],
        "preview_url": thumbnail_url(mosaic.canvas) if mosaic.canvas else None,
        "may_build": may_build(user_of(request), mosaic.lab_id),
    }
    htmx = getattr(request, "htmx", None)  # set by the middleware
    is_part = htmx and not htmx.boosted
    return render(request, "mosaics/_mosaic.html" if is_part else "mosaics/detail.html", context)


@login_required
@require_POST
def mosaic_create(request: HttpRequest, video_id: uuid.UUID) -> HttpResponse:
    """Have the mosaic of a video built, and go to its page."""
    user = user_of(request)
    asked = services.mosaic_create(
        video=video_get(user=user, video_id=video_id), user=user, config=_config(request)
    )
    if not asked.is_new and asked.mosaic.state == ItemState.READY:
        messages.info(request, "This mosaic has been built already.")
    return redirect("mosaics:mosaic_detail", mosaic_id=asked.mosaic.pk)


@login_required
@require_GET
def case_mosaics(request: HttpRequest, case_id: uuid.UUID) -> HttpResponse:
    """The mosaics of a case alone, for the case's page to renew."""
    return HttpResponse(case_section(request, case_get(user=user_of(request), case_id=case_id)))


def case_section(request: HttpRequest, case: Case) -> str:
    """The mosaics of a case, below its slides and videos."""
    mosaics = _of_case(request, case.pk)
    if not mosaics:
        return ""
    jobs = selectors.mosaic_jobs([m for m in mosaics if m.state == ItemState.PREPARING])
    cards = [
        {
            "mosaic": mosaic,
            "job": jobs.get(mosaic.pk),
            "preview_url": thumbnail_url(mosaic.canvas) if mosaic.canvas else None,
        }
        for mosaic in mosaics
    ]
    context = {"case_id": case.pk, "cards": cards}
    return render_to_string("mosaics/_case_section.html", context, request)


def video_action(request: HttpRequest, video: Video) -> str:
    """A button to build a mosaic on the card of a ready video, or the way to the one there is."""
    if video.state != ItemState.READY:
        return ""
    mosaic = next((m for m in _of_case(request, video.case_id) if _is_plain(m, video)), None)
    if mosaic is None and not _may_build(request, video.lab_id):
        return ""
    return render_to_string(
        "mosaics/_video_action.html", {"video": video, "mosaic": mosaic}, request
    )


def canvas_action(request: HttpRequest, canvas: Canvas) -> str:
    """From the viewer: of a mosaic to its report, of a video to its mosaic."""
    if canvas.kind == CanvasKind.MOSAIC:
        mosaic = selectors.mosaic_of_canvas(canvas)
        if mosaic is None:
            return ""
        return render_to_string("mosaics/_canvas_action.html", {"mosaic": mosaic}, request)
    video: Video | None = getattr(canvas, "video", None)
    return video_action(request, video) if video is not None else ""


def _config(request: HttpRequest) -> dict[str, str | int]:
    config: dict[str, str | int] = {}
    if model := request.POST.get("model"):
        config["model"] = model
    if step := request.POST.get("step"):
        config["step"] = int(step) if step.isdecimal() and len(step) < 4 else step
    return config


def _is_plain(mosaic: Mosaic, video: Video) -> bool:
    return mosaic.video_id == video.pk and not mosaic.config


def _of_case(request: HttpRequest, case_id: uuid.UUID) -> list[Mosaic]:
    """The case's mosaics, asked for once a request however many videos it has."""
    known: dict[uuid.UUID, list[Mosaic]] = request.__dict__.setdefault("_case_mosaics", {})
    if case_id not in known:
        known[case_id] = list(selectors.mosaic_list(user_of(request)).filter(case_id=case_id))
    return known[case_id]


def _may_build(request: HttpRequest, lab_id: uuid.UUID) -> bool:
    known: dict[uuid.UUID, bool] = request.__dict__.setdefault("_may_build_mosaics", {})
    if lab_id not in known:
        known[lab_id] = may_build(user_of(request), lab_id)
    return known[lab_id]
