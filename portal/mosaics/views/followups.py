"""Pages of follow-ups: choice of the images to search for a place, and the hits."""

from __future__ import annotations

import uuid

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from portal.annotations.selectors.rois import roi_get
from portal.archive.selectors.canvases import canvas_get
from portal.archive.serializers.canvases import thumbnail_url
from portal.core.errors import InvalidInputError
from portal.core.http.audit_rules import MINUTE_S, AuditRule, audited
from portal.core.http.htmx import wants_part
from portal.labs.requests import user_of
from portal.mosaics.rules import may_build
from portal.mosaics.selectors import followups
from portal.mosaics.serializers.followups import hit_represent
from portal.mosaics.services.followups import followup_create


@audited(
    GET=AuditRule("roi.viewed", "roi", "roi_id"),
    POST=AuditRule("followup.requested", "roi", "roi_id"),
)
@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def followup_new(request: HttpRequest, roi_id: uuid.UUID) -> HttpResponse:
    """Form for a follow-up: other videos and mosaics of the patient, and earlier results."""
    user = user_of(request)
    roi = roi_get(user, roi_id, with_shared=False)
    if request.method == "POST":
        target = canvas_get(user=user, canvas_id=_id(request.POST.get("target", "")))
        created = followup_create(roi=roi, target=target, user=user)
        return redirect("mosaics:followup_detail", followup_id=created.followup.pk)
    targets = list(followups.followup_targets(roi)[:200])
    context = {
        "roi": roi,
        "case": roi.canvas.case,
        "targets": [(canvas, thumbnail_url(canvas)) for canvas in targets],
        "earlier": followups.followup_list(user).filter(roi=roi),
        "may_build": may_build(user, roi.lab_id),
    }
    return render(request, "mosaics/followup_new.html", context)


@audited(GET=AuditRule("followup.viewed", "followup", "followup_id", every_s=MINUTE_S))
@never_cache
@login_required
@require_GET
def followup_detail(request: HttpRequest, followup_id: uuid.UUID) -> HttpResponse:
    """Progress while it is looked for, then the ranked frames with their matches."""
    followup = followups.followup_get(user_of(request), followup_id)
    context = {
        "followup": followup,
        "roi": followup.roi,
        "job": followups.followup_job(followup),
        "hits": [hit_represent(followup, hit) for hit in followup.result],
        "may_build": may_build(user_of(request), followup.lab_id),
        "is_stale": followup.roi.version != followup.roi_version,
    }
    is_part = wants_part(request)
    return render(
        request, "mosaics/_followup.html" if is_part else "mosaics/followup.html", context
    )


def _id(text: str) -> uuid.UUID:
    try:
        return uuid.UUID(text)
    except ValueError:
        raise InvalidInputError("target: choose a video or a mosaic.") from None
