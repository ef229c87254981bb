"""Pages: slides and videos of a case."""

from __future__ import annotations

import uuid

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from portal.archive import extensions, selectors, services
from portal.archive.models import Slide, Video
from portal.archive.rules import may_edit
from portal.archive.views.notices import deleted_notice
from portal.core.api.conditions import edited_by_page
from portal.core.errors import ConflictError, InvalidInputError, NotFoundError, StaleVersionError
from portal.jobs.models import JobState
from portal.jobs.selectors import job_list
from portal.labs.requests import user_of


@never_cache
@login_required
@require_GET
def item_card(request: HttpRequest, kind: str, item_id: uuid.UUID) -> HttpResponse:
    """The card of a slide or video, asked for again when its job ended."""
    user = user_of(request)
    try:
        item = selectors.item_get(user=user, kind=kind, item_id=item_id)
    except NotFoundError:
        made_by = {"kind": f"{kind}_ingest", "args": {f"{kind}_id": str(item_id)}}
        jobs = job_list(user=user, state=JobState.FAILED).filter(target_type="upload", **made_by)
        job = jobs.first()
        if job is None or not job.trouble:
            raise
        gone = {"kind": kind, "item_id": item_id, "job": job}
        return render(request, "archive/_item_gone.html", gone)
    card = selectors.item_cards([item], user=user)[0]
    context = {
        "card": card,
        "actions": video_actions(request, card),
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
    except ConflictError as error:
        messages.error(request, error.message)
    return redirect("archive:case_detail", case_id=item.case_id)


@login_required
@require_POST
def item_rename(request: HttpRequest, kind: str, item_id: uuid.UUID) -> HttpResponse:
    """Give a slide or video another title."""
    user = user_of(request)
    item = selectors.item_get(user=user, kind=kind, item_id=item_id)
    wanted = request.POST.get("name", "")
    try:
        with edited_by_page(request, item):
            services.item_rename(item=item, user=user, name=wanted)
        messages.success(request, "Renamed.")
    except StaleVersionError:
        _stale(request, item, wanted)
    except InvalidInputError as error:
        messages.error(request, error.message)
    return redirect("archive:case_detail", case_id=item.case_id)


@login_required
@require_POST
def slide_stain(request: HttpRequest, slide_id: uuid.UUID) -> HttpResponse:
    """Say how a slide is stained."""
    user = user_of(request)
    slide = selectors.slide_get(user=user, slide_id=slide_id)
    wanted = request.POST.get("stain", "")
    try:
        with edited_by_page(request, slide):
            services.slide_stain_set(slide=slide, user=user, stain=wanted)
        messages.success(request, f"Stain: {slide.stain or 'not known'}.")
    except StaleVersionError:
        _stale(request, slide, wanted)
    except InvalidInputError as error:
        messages.error(request, error.message)
    return redirect("archive:case_detail", case_id=slide.case_id)


def _stale(request: HttpRequest, item: Slide | Video, wanted: str) -> None:
    """What somebody else has said in the meantime, and what this person wanted to say."""
    item.refresh_from_db()
    now = f"Its title is now “{item.name}”"
    if isinstance(item, Slide):
        now += f", its stain {f'“{item.stain}”' if item.stain else 'not known'}"
    text = f"Someone else changed it meanwhile. {now}. Yours was not saved: “{wanted}”."
    messages.error(request, text)


@login_required
@require_POST
def item_delete(request: HttpRequest, kind: str, item_id: uuid.UUID) -> HttpResponse:
    """Put a slide or video into the bin."""
    user = user_of(request)
    item = selectors.item_get(user=user, kind=kind, item_id=item_id)
    try:
        entry = services.item_delete(item=item, user=user)
        deleted_notice(request, entry)
    except ConflictError as error:
        messages.error(request, error.message)
    return redirect("archive:case_detail", case_id=item.case_id)


@login_required
@require_GET
def item_open(request: HttpRequest, kind: str, item_id: uuid.UUID) -> HttpResponse:
    """To where a slide or video is shown: the viewer once it is ready, its case before that."""
    item = selectors.item_get(user=user_of(request), kind=kind, item_id=item_id)
    if item.canvas_id is not None:
        return redirect("archive:viewer", canvas_id=item.canvas_id)
    return redirect("archive:case_detail", case_id=item.case_id)


def video_actions(request: HttpRequest, card: selectors.ItemCard) -> str:
    """What higher apps offer on the card of a ready video, as HTML."""
    if card.kind != "video" or card.item.state != "ready":
        return ""
    return extensions.rendered(extensions.video_actions, request, card.item)
