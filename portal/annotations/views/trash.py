"""Pages of deleted ROIs: restore them, or delete them for good."""

from __future__ import annotations

import uuid

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from portal.annotations.rules import require_annotate
from portal.annotations.selectors.trash import roi_in_trash, rois_in_trash
from portal.annotations.services import rois as services
from portal.annotations.services.trash import roi_purge as purge
from portal.archive.views.trash import PER_PAGE, do_and_report, trash_context
from portal.core.http.audit_rules import AuditRule, audited, rejections
from portal.labs.models import Lab
from portal.labs.requests import lab_chosen_by, user_of
from portal.labs.selectors import lab_get


@audited(GET=AuditRule("trash.viewed"))
@never_cache
@login_required
@require_GET
def trash(request: HttpRequest) -> HttpResponse:
    """ROIs of a lab that were deleted one by one."""
    user = user_of(request)
    lab = lab_get(user, slug=request.GET.get("lab"), chosen=lab_chosen_by(request))
    require_annotate(user, lab.pk)
    page = Paginator(rois_in_trash(user, lab=lab), PER_PAGE).get_page(request.GET.get("page"))
    context = {"page_obj": page, "rows": page.object_list, "shows_regions": True}
    return render(request, "annotations/trash.html", context | trash_context(request, lab))


def trash_tab(request: HttpRequest, lab: Lab) -> str:
    """Link to the page of ROIs from the pages of the trash, with their number."""
    context = {
        "lab": lab,
        "roi_count": rois_in_trash(user_of(request), lab=lab).count(),
        "is_current": request.path == reverse("annotations:trash"),
    }
    return render_to_string("annotations/_trash_tab.html", context, request)


@audited(POST=rejections("roi.saved", "roi", "roi_id"))
@login_required
@require_POST
def roi_restore(request: HttpRequest, roi_id: uuid.UUID) -> HttpResponse:
    """Restore an ROI and stay on the page."""
    user = user_of(request)
    roi = roi_in_trash(user, roi_id)
    do_and_report(
        request,
        lambda: services.roi_restore(roi=roi, user=user),
        done=f"{roi.name or 'The region'} on {roi.canvas.name} is back.",
    )
    return _to_trash(roi.lab)


@audited(POST=rejections("roi.purged", "roi", "roi_id"))
@login_required
@require_POST
def roi_purge(request: HttpRequest, roi_id: uuid.UUID) -> HttpResponse:
    """Delete an ROI for good."""
    user = user_of(request)
    roi = roi_in_trash(user, roi_id)
    do_and_report(
        request,
        lambda: purge(roi=roi, user=user),
        done=f"{roi.name or 'The region'} is gone.",
    )
    return _to_trash(roi.lab)


def _to_trash(lab: Lab) -> HttpResponse:
    return redirect(f"{reverse('annotations:trash')}?lab={lab.slug}")
