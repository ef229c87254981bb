"""Pages: one mosaic; what mosaics add to the pages of cases, videos and canvases."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import TypedDict
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from ml.types import JsonObject
from portal.archive.models import Canvas, CanvasKind, Case, ItemState, Video
from portal.archive.selectors.cases import case_get
from portal.archive.selectors.items import video_get
from portal.archive.serializers.canvases import thumbnail_url
from portal.archive.views.notices import deleted_notice
from portal.core.errors import ConflictError, InvalidInputError, UnavailableError
from portal.core.http.audit_rules import HOUR_S, MINUTE_S, AuditRule, audited, rejections
from portal.core.http.htmx import wants_part
from portal.jobs.models import Job
from portal.labs.models import User
from portal.labs.requests import lab_chosen_by, user_of
from portal.labs.selectors import lab_current
from portal.mosaics.build_cache import build_cache_exists, build_cache_preview
from portal.mosaics.downloads import PNG_LARGEST, PNG_SIZES
from portal.mosaics.models import Mosaic
from portal.mosaics.options import MOTION_MODELS, options_clean, options_text, span_text
from portal.mosaics.rules import may_build
from portal.mosaics.selectors import mosaics as selectors
from portal.mosaics.selectors.frames import frame_runs, mosaic_report, reasons_of, runs_lost
from portal.mosaics.selectors.mosaics import Estimate
from portal.mosaics.services import mosaics as services
from portal.mosaics.services import removal

_PAGE = 24  # mosaics per page: six rows of four cards
_STATES = (
    (ItemState.READY, "Ready"),
    (ItemState.PREPARING, "Being built"),
    (ItemState.FAILED, "Failed"),
)
LOST_SHOWN = 20
"""Rows of a table that fits a screen; the strip above it shows all."""

STEPS = (1, 2, 3, 5, 10)
"""Offered; the API takes any."""

STAGES = (
    ("survey", "Survey frames"),
    ("register", "Register"),
    ("loops", "Find loops"),
    ("align", "Align"),
    ("blend", "Blend"),
    ("write", "Write"),
)
"""Phases of the engine's progress, in order, in words."""


@audited(GET=AuditRule("mosaic.listed", every_s=HOUR_S))
@login_required
@require_GET
def mosaic_list(request: HttpRequest) -> HttpResponse:
    """List the mosaics of the chosen lab, or of all labs of the user; ``?q=`` and ``?state=``."""
    user = user_of(request)
    lab = lab_current(user, chosen=lab_chosen_by(request))
    q, state = request.GET.get("q", "").strip(), request.GET.get("state", "")
    mosaics = selectors.mosaic_search(user, lab=lab, text=q, state=state)
    page = Paginator(mosaics, _PAGE).get_page(request.GET.get("page"))
    context = {
        "lab": lab,
        "q": q,
        "state": state,
        "states": _STATES,
        "page_obj": page,
        "cards": _cards(page.object_list, user),
    }
    return render(request, "mosaics/list.html", context)


@audited(GET=AuditRule("mosaic.viewed", "mosaic", "mosaic_id", every_s=MINUTE_S))
@never_cache
@login_required
@require_GET
def mosaic_detail(request: HttpRequest, mosaic_id: uuid.UUID) -> HttpResponse:
    """Progress while it is built, then the result and what became of each frame."""
    mosaic = selectors.mosaic_get(user_of(request), mosaic_id)
    is_ready = mosaic.state == ItemState.READY
    job = selectors.mosaic_jobs([mosaic], user=user_of(request)).get(mosaic.pk)
    runs = frame_runs(mosaic) if mosaic.state != ItemState.PREPARING else []
    lost = runs_lost(runs)
    context = {
        "mosaic": mosaic,
        "job": job,
        "stages": _stages(job),
        "span": span_text(mosaic.config),
        "report": mosaic_report(mosaic) if runs else None,
        "runs": runs,
        "lost": lost[:LOST_SHOWN],
        "lost_more": len(lost[LOST_SHOWN:]),
        "legend": reasons_of(runs),
        "components": [
            (component, thumbnail_url(component.canvas), _png_sizes(component.canvas))
            for component in mosaic.components.all()
        ],
        "growing_url": "" if is_ready else _growing_url(mosaic),
        "may_resume": not is_ready and build_cache_exists(mosaic),
        "may_build": may_build(user_of(request), mosaic.lab_id),
        "longer": _longer(mosaic) if is_ready else "",
    }
    template = "mosaics/_mosaic.html" if wants_part(request) else "mosaics/detail.html"
    response = render(request, template, context)
    if wants_part(request) and mosaic.state != ItemState.PREPARING:
        response["HX-Refresh"] = "true"  # the head of the page has other actions now
    return response


@audited(GET=AuditRule("item.viewed", "video", "video_id", every_s=MINUTE_S))
@never_cache
@login_required
@require_GET
def video_mosaics(request: HttpRequest, video_id: uuid.UUID) -> HttpResponse:
    """The mosaics of a video side by side, and a form for another with an estimate."""
    user = user_of(request)
    video = video_get(user=user, video_id=video_id)
    if wants_part(request):
        return render(request, "mosaics/_estimate.html", _estimate(request, video))
    mosaics = list(selectors.mosaic_list(user, with_shared=True).filter(video=video))
    building = [m for m in mosaics if m.state == ItemState.PREPARING]
    jobs = selectors.mosaic_jobs(building, user=user_of(request))
    rows = [
        {
            "mosaic": mosaic,
            "job": jobs.get(mosaic.pk),
            "options_text": options_text(mosaic.config) or "all frames",
            "preview_url": thumbnail_url(mosaic.canvas) if mosaic.canvas else None,
        }
        for mosaic in reversed(mosaics)
    ]
    context: dict[str, object] = {
        "video": video,
        "rows": rows,
        "motion_models": MOTION_MODELS,
        "steps": _steps(request),
        "may_build": video.state == ItemState.READY and may_build(user, video.lab_id),
    }
    if video.state == ItemState.READY:
        context |= _estimate(request, video)
    return render(request, "mosaics/video.html", context)


@audited(POST=AuditRule("mosaic.requested", "video", "video_id"))
@login_required
@require_POST
def mosaic_create(request: HttpRequest, video_id: uuid.UUID) -> HttpResponse:
    """Have the mosaic of a video built, and go to its page."""
    user = user_of(request)
    created = services.mosaic_create(
        video=video_get(user=user, video_id=video_id), user=user, config=_config(request.POST)
    )
    if not created.is_new and created.mosaic.state == ItemState.READY:
        messages.info(request, "This mosaic has already been built.")
    return redirect("mosaics:mosaic_detail", mosaic_id=created.mosaic.pk)


@audited(POST=rejections("trash.put", "mosaic", "mosaic_id"))
@login_required
@require_POST
def mosaic_delete(request: HttpRequest, mosaic_id: uuid.UUID) -> HttpResponse:
    """Put a mosaic into the trash, and go to the others of its video."""
    user = user_of(request)
    mosaic = selectors.mosaic_get(user, mosaic_id)
    try:
        entry = removal.mosaic_delete(mosaic=mosaic, user=user)
    except ConflictError as error:
        messages.error(request, error.message)
        return redirect("mosaics:mosaic_detail", mosaic_id=mosaic_id)
    deleted_notice(request, entry)
    return redirect("mosaics:video_mosaics", video_id=mosaic.video_id)


@audited(GET=AuditRule("case.viewed", "case", "case_id", every_s=HOUR_S))
@login_required
@require_GET
def case_mosaics(request: HttpRequest, case_id: uuid.UUID) -> HttpResponse:
    """The mosaics of a case as a fragment, which the case's page reloads."""
    return HttpResponse(case_section(request, case_get(user=user_of(request), case_id=case_id)))


def case_section(request: HttpRequest, case: Case) -> str:
    """The mosaics of a case, below its slides and videos."""
    mosaics = _mosaics_of_case(request, case.pk)
    if not mosaics:
        return ""
    cards = _cards(mosaics, user_of(request))
    context = {"case_id": case.pk, "cards": cards}
    return render_to_string("mosaics/_case_section.html", context, request)


def video_action(request: HttpRequest, video: Video) -> str:
    """Action of a ready video: build its mosaic, or open its mosaics."""
    if video.state != ItemState.READY:
        return ""
    mosaics = [m for m in _mosaics_of_case(request, video.case_id) if m.video_id == video.pk]
    if not mosaics and not _may_build(request, video.lab_id):
        return ""
    context = {"video": video, "count": len(mosaics)}
    return render_to_string("mosaics/_video_action.html", context, request)


def canvas_action(request: HttpRequest, canvas: Canvas) -> str:
    """Link from the viewer of a mosaic to its report, or from that of a video to its mosaic."""
    if canvas.kind == CanvasKind.MOSAIC:
        mosaic = selectors.mosaic_of_canvas(canvas)
        if mosaic is None:
            return ""
        components = mosaic.components.order_by("index")
        context = {"mosaic": mosaic, "canvas": canvas, "components": components}
        return render_to_string("mosaics/_canvas_action.html", context, request)
    video: Video | None = getattr(canvas, "video", None)
    return video_action(request, video) if video is not None else ""


class _Card(TypedDict):
    """Context of ``mosaics/_card.html``; the job only during the build."""

    mosaic: Mosaic
    job: Job | None
    preview_url: str | None


def _cards(mosaics: Iterable[Mosaic], user: User) -> list[_Card]:
    mosaics = list(mosaics)
    building = [m for m in mosaics if m.state == ItemState.PREPARING]
    jobs = selectors.mosaic_jobs(building, user=user)
    return [
        {
            "mosaic": mosaic,
            "job": jobs.get(mosaic.pk),
            "preview_url": thumbnail_url(mosaic.canvas) if mosaic.canvas else None,
        }
        for mosaic in mosaics
    ]


def _config(data: QueryDict) -> JsonObject:
    """The choices of the form; what is not a number continues as it is, to be refused by name."""
    config: JsonObject = {}
    if model := data.get("motion_model"):
        config["motion_model"] = model
    if step := data.get("step"):
        config["step"] = int(step) if step.isdecimal() and len(step) < 4 else step
    for name in ("start_s", "end_s"):
        if text := data.get(name, "").strip():
            try:
                config[name] = float(text)
            except ValueError:
                config[name] = text
    return config


class _Estimate(TypedDict):
    """Context of ``mosaics/_estimate.html``: an estimate, or what is wrong."""

    estimate: Estimate | None
    problem: str


def _estimate(request: HttpRequest, video: Video) -> _Estimate:
    """Number of frames and estimated time for the form's values, or its errors."""
    try:
        config = options_clean(_config(request.GET))
        return {"estimate": selectors.build_estimate(video, config), "problem": ""}
    except (InvalidInputError, UnavailableError) as error:
        return {"estimate": None, "problem": error.message.removeprefix("config: ")}


def _longer(mosaic: Mosaic) -> str:
    """The query of the form for the same from the same second on, without an end; or nothing."""
    if "end_s" not in mosaic.config:
        return ""
    return urlencode(sorted((n, value) for n, value in mosaic.config.items() if n != "end_s"))


def _steps(request: HttpRequest) -> list[int]:
    """Offered steps, including the one in the query."""
    step = request.GET.get("step", "")
    requested = {int(step)} if step.isdecimal() and len(step) < 4 else set()
    return sorted({*STEPS, *requested} - {0})


def _stages(job: Job | None) -> list[tuple[str, str]]:
    """Names of the stages with ``done``, ``now`` or ``next``; empty if the phase is no stage."""
    names = [name for name, _ in STAGES]
    if job is None or job.phase not in names:
        return []
    now = names.index(job.phase)
    states = ["done"] * now + ["now"] + ["next"] * (len(names) - now - 1)
    return [(words, state) for (_, words), state in zip(STAGES, states, strict=True)]


def _growing_url(mosaic: Mosaic) -> str:
    """URL of a running build's preview, with a version that changes with it; empty if there is
    none."""
    try:
        stamp = build_cache_preview(mosaic).stat().st_mtime_ns
    except OSError:
        return ""
    return f"{reverse('api:mosaic-preview', args=[mosaic.pk])}?v={stamp:x}"


def _png_sizes(canvas: Canvas) -> list[int]:
    """The sizes worth offering: up to the first that holds every pixel."""
    full = max(canvas.width_px, canvas.height_px)
    smaller = [size for size in PNG_SIZES if size < full]
    return [*smaller, full] if full <= PNG_LARGEST else smaller


def _mosaics_of_case(request: HttpRequest, case_id: uuid.UUID) -> list[Mosaic]:
    """Mosaics of the case, queried one time per request for any number of videos."""
    mosaics_of: dict[uuid.UUID, list[Mosaic]] = request.__dict__.setdefault("_case_mosaics", {})
    if case_id not in mosaics_of:
        mosaics = selectors.mosaic_list(user_of(request), with_shared=True)
        mosaics_of[case_id] = list(mosaics.filter(case_id=case_id))
    return mosaics_of[case_id]


def _may_build(request: HttpRequest, lab_id: uuid.UUID) -> bool:
    permissions: dict[uuid.UUID, bool] = request.__dict__.setdefault("_may_build_mosaics", {})
    if lab_id not in permissions:
        permissions[lab_id] = may_build(user_of(request), lab_id)
    return permissions[lab_id]
