"""Pages of deleted ROIs and events of videos: restore them, or delete them for good."""

from __future__ import annotations

import uuid
from collections.abc import Callable

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from portal.annotations.models import Roi, VideoEvent
from portal.annotations.rules import require_annotate
from portal.annotations.selectors import trash as selectors
from portal.annotations.services import rois, video_events
from portal.annotations.services.trash import ROI_PURGER, VIDEO_EVENT_PURGER
from portal.archive.views.trash import PER_PAGE, do_and_report, trash_context
from portal.core.http.audit_rules import AuditRule, audited, rejections
from portal.labs.models import Lab
from portal.labs.requests import lab_chosen_by, user_of
from portal.labs.selectors import lab_get

ROIS_PAGE = "annotations:trash"
VIDEO_EVENTS_PAGE = "annotations:trash_events"


@audited(GET=AuditRule("trash.viewed"))
@never_cache
@login_required
@require_GET
def trash(request: HttpRequest) -> HttpResponse:
    """ROIs of a lab that were deleted one by one."""
    return _page(request, selectors.rois_in_trash, "annotations/trash.html")


@audited(GET=AuditRule("trash.viewed"))
@never_cache
@login_required
@require_GET
def trash_events(request: HttpRequest) -> HttpResponse:
    """Events of videos of a lab that were deleted one by one."""
    return _page(request, selectors.video_events_in_trash, "annotations/trash_events.html")


def trash_tabs(request: HttpRequest, lab: Lab) -> str:
    """Links to the pages of ROIs and events from the pages of the trash, with their numbers."""
    user = user_of(request)
    pages = [
        ("Regions", ROIS_PAGE, selectors.rois_in_trash(user, lab=lab).count()),
        ("Video events", VIDEO_EVENTS_PAGE, selectors.video_events_in_trash(user, lab=lab).count()),
    ]
    tabs = [
        {
            "name": name,
            "url": reverse(page),
            "count": count,
            "is_current": request.path == reverse(page),
        }
        for name, page, count in pages
    ]
    return render_to_string("annotations/_trash_tabs.html", {"lab": lab, "tabs": tabs}, request)


@audited(POST=rejections("roi.saved", "roi", "roi_id"))
@login_required
@require_POST
def roi_restore(request: HttpRequest, roi_id: uuid.UUID) -> HttpResponse:
    """Restore an ROI and stay on the page."""
    user = user_of(request)
    roi = selectors.roi_in_trash(user, roi_id)
    return _restored(request, roi, lambda: rois.roi_restore(roi=roi, user=user))


@audited(POST=rejections("roi.purged", "roi", "roi_id"))
@login_required
@require_POST
def roi_purge(request: HttpRequest, roi_id: uuid.UUID) -> HttpResponse:
    """Delete an ROI for good."""
    user = user_of(request)
    roi = selectors.roi_in_trash(user, roi_id)
    return _purged(request, roi, lambda: ROI_PURGER.purge(roi, user=user))


@audited(POST=rejections("video_event.saved", "video_event", "event_id"))
@login_required
@require_POST
def video_event_restore(request: HttpRequest, event_id: uuid.UUID) -> HttpResponse:
    """Restore an event of a video and stay on the page."""
    user = user_of(request)
    event = selectors.video_event_in_trash(user, event_id)
    return _restored(
        request, event, lambda: video_events.video_event_restore(event=event, user=user)
    )


@audited(POST=rejections("video_event.purged", "video_event", "event_id"))
@login_required
@require_POST
def video_event_purge(request: HttpRequest, event_id: uuid.UUID) -> HttpResponse:
    """Delete an event of a video for good."""
    user = user_of(request)
    event = selectors.video_event_in_trash(user, event_id)
    return _purged(request, event, lambda: VIDEO_EVENT_PURGER.purge(event, user=user))


def _page(
    request: HttpRequest,
    rows_in_trash: Callable[..., QuerySet[Roi] | QuerySet[VideoEvent]],
    template: str,
) -> HttpResponse:
    user = user_of(request)
    lab = lab_get(user, slug=request.GET.get("lab"), chosen=lab_chosen_by(request))
    require_annotate(user, lab.pk)
    page = Paginator(rows_in_trash(user, lab=lab), PER_PAGE).get_page(request.GET.get("page"))
    context = {"page_obj": page, "rows": page.object_list, "shows_annotations": True}
    return render(request, template, context | trash_context(request, lab))


def _restored(
    request: HttpRequest, row: Roi | VideoEvent, restore: Callable[[], object]
) -> HttpResponse:
    do_and_report(request, restore, message=f"{_words(row)} on {row.canvas.name} is back.")
    return _to_trash(row)


def _purged(
    request: HttpRequest, row: Roi | VideoEvent, purge: Callable[[], object]
) -> HttpResponse:
    do_and_report(request, purge, message=f"{_words(row)} is gone.")
    return _to_trash(row)


def _words(row: Roi | VideoEvent) -> str:
    return row.name or "The region"


def _to_trash(row: Roi | VideoEvent) -> HttpResponse:
    page = ROIS_PAGE if isinstance(row, Roi) else VIDEO_EVENTS_PAGE
    return redirect(f"{reverse(page)}?lab={row.lab.slug}")
