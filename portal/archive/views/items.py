"""Pages: slides and videos of a case."""

from __future__ import annotations

import uuid

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from portal.archive import extensions
from portal.archive.models import Modality, Slide, Video
from portal.archive.rules import may_edit
from portal.archive.selectors.items import ItemCard, item_cards, item_get, slide_get
from portal.archive.services.items import item_delete as delete_item
from portal.archive.services.items import item_rename as rename_item
from portal.archive.services.items import item_retry as retry_item
from portal.archive.services.stains import slide_stain_set
from portal.archive.views.notices import deleted_notice
from portal.core.api.etags import edited_by_page
from portal.core.errors import ConflictError, InvalidInputError, NotFoundError, StaleVersionError
from portal.core.http.audit_rules import HOUR_S, ITEM, AuditRule, audited, not_audited, rejections
from portal.jobs.models import JobState
from portal.jobs.selectors.jobs import job_list
from portal.labs.requests import user_of


@audited(GET=AuditRule("item.viewed", ITEM, "item_id", every_s=HOUR_S))
@never_cache
@login_required
@require_GET
def item_card(request: HttpRequest, kind: str, item_id: uuid.UUID) -> HttpResponse:
    """Card of a slide or video, requested again when its job has ended."""
    user = user_of(request)
    try:
        item = item_get(user=user, kind=kind, item_id=item_id)
    except NotFoundError:
        made_by = {"kind": f"{kind}_ingest", "args": {f"{kind}_id": str(item_id)}}
        jobs = job_list(user=user, state=JobState.FAILED).filter(target_type="upload", **made_by)
        job = jobs.first()
        if job is None or not job.shown_error:
            raise
        gone_context = {"kind": kind, "item_id": item_id, "job": job}
        return render(request, "archive/_item_gone.html", gone_context)
    card = item_cards([item], user=user)[0]
    context = {
        "card": card,
        "actions": video_actions(request, card),
        "may_edit": may_edit(user, item.lab_id),
        "case": item.case,
        "modalities": Modality.choices,
    }
    return render(request, "archive/_item_card_reply.html", context)


@audited(POST=AuditRule("item.retried", ITEM, "item_id"))
@login_required
@require_POST
def item_retry(request: HttpRequest, kind: str, item_id: uuid.UUID) -> HttpResponse:
    """Prepare a failed slide or video again."""
    user = user_of(request)
    item = item_get(user=user, kind=kind, item_id=item_id)
    try:
        retry_item(item=item, user=user)
    except ConflictError as error:
        messages.error(request, error.message)
    return redirect("archive:case_detail", case_id=item.case_id)


@audited(POST=rejections("item.renamed", ITEM, "item_id"))
@login_required
@require_POST
def item_rename(request: HttpRequest, kind: str, item_id: uuid.UUID) -> HttpResponse:
    """Give a slide or video another title."""
    user = user_of(request)
    item = item_get(user=user, kind=kind, item_id=item_id)
    name = request.POST.get("name", "")
    try:
        with edited_by_page(request, item):
            rename_item(item=item, user=user, name=name)
        messages.success(request, "Renamed.")
    except StaleVersionError:
        _stale(request, item, name)
    except InvalidInputError as error:
        messages.error(request, error.message)
    return redirect("archive:case_detail", case_id=item.case_id)


@audited(POST=rejections("slide.stained", "slide", "slide_id"))
@login_required
@require_POST
def slide_stain(request: HttpRequest, slide_id: uuid.UUID) -> HttpResponse:
    """Set the stain of a slide."""
    user = user_of(request)
    slide = slide_get(user=user, slide_id=slide_id)
    stain = request.POST.get("stain", "")
    try:
        with edited_by_page(request, slide):
            slide_stain_set(slide=slide, user=user, stain=stain)
        messages.success(request, f"Stain: {slide.stain or 'not known'}.")
    except StaleVersionError:
        _stale(request, slide, stain)
    except InvalidInputError as error:
        messages.error(request, error.message)
    return redirect("archive:case_detail", case_id=slide.case_id)


def _stale(request: HttpRequest, item: Slide | Video, unsaved_value: str) -> None:
    """Message with the values that another person saved, and the value that was not saved."""
    item.refresh_from_db()
    now = f"Its title is now “{item.name}”"
    if isinstance(item, Slide):
        now += f", its stain {f'“{item.stain}”' if item.stain else 'not known'}"
    text = (
        f"Someone else changed it in the meantime. {now}. Yours was not saved: “{unsaved_value}”."
    )
    messages.error(request, text)


@audited(POST=rejections("trash.put", ITEM, "item_id"))
@login_required
@require_POST
def item_delete(request: HttpRequest, kind: str, item_id: uuid.UUID) -> HttpResponse:
    """Put a slide or video into the trash."""
    user = user_of(request)
    item = item_get(user=user, kind=kind, item_id=item_id)
    try:
        entry = delete_item(item=item, user=user)
        deleted_notice(request, entry)
    except ConflictError as error:
        messages.error(request, error.message)
    return redirect("archive:case_detail", case_id=item.case_id)


@not_audited("redirects to an audited page")
@login_required
@require_GET
def item_open(request: HttpRequest, kind: str, item_id: uuid.UUID) -> HttpResponse:
    """Redirect to the viewer of a slide or video, or to its case until it is ready."""
    item = item_get(user=user_of(request), kind=kind, item_id=item_id)
    if item.canvas_id is not None:
        return redirect("archive:viewer", canvas_id=item.canvas_id)
    return redirect("archive:case_detail", case_id=item.case_id)


def video_actions(request: HttpRequest, card: ItemCard) -> str:
    """HTML that higher apps add to the card of a ready video."""
    if card.kind != "video" or card.item.state != "ready":
        return ""
    return extensions.rendered(extensions.Slot.VIDEO_ACTION, request, card.item)
