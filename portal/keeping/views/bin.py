"""Pages: what a lab has deleted, to restore it or to delete it for good."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from portal.annotations.services import roi_restore as restore_roi
from portal.archive.services import bin_purge as purge
from portal.archive.services import bin_restore as restore
from portal.core.errors import PortalError
from portal.keeping import selectors, services
from portal.keeping.rules import may_purge, require_bin
from portal.labs.models import Lab
from portal.labs.requests import lab_chosen_by, user_of
from portal.labs.selectors import lab_get

PER_PAGE = 50  # two screens


@never_cache
@login_required
@require_GET
def bin_page(request: HttpRequest) -> HttpResponse:
    """What is in the bin of a lab; ``?what=regions`` for regions."""
    user = user_of(request)
    lab = lab_get(user, slug=request.GET.get("lab"), chosen=lab_chosen_by(request))
    require_bin(user, lab.pk)
    entries = selectors.bin_list(user, lab=lab)
    rois = selectors.rois_in_bin(user, lab=lab)
    shows_regions = request.GET.get("what") == "regions"
    found: QuerySet[Any] = rois if shows_regions else entries
    page = Paginator(found, PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "lab": lab,
        "page_obj": page,
        "rows": page.object_list if shows_regions else selectors.bin_rows(list(page.object_list)),
        "shows_regions": shows_regions,
        "entry_count": entries.count(),
        "roi_count": rois.count(),
        "may_purge": may_purge(user, lab.pk),
        "can_manage": may_purge(user, lab.pk),  # what the tabs ask for
        "days": selectors.bin_days(),
    }
    return render(request, "keeping/bin.html", context)


@login_required
@require_POST
def bin_restore(request: HttpRequest, entry_id: uuid.UUID) -> HttpResponse:
    """Restore, and go where it is again; on refusal stay with the bin."""
    entry = selectors.bin_get(user_of(request), entry_id)
    try:
        restore(entry=entry, user=user_of(request))
    except PortalError as error:
        _refuse(request, error)
        return _to_bin(entry.lab)
    messages.success(request, f"{entry.name} is back.")
    return redirect("archive:case_detail", case_id=entry.case_id)


@login_required
@require_POST
def bin_purge(request: HttpRequest, entry_id: uuid.UUID) -> HttpResponse:
    """Delete for good."""
    entry = selectors.bin_get(user_of(request), entry_id)
    _do(request, lambda: purge(entry=entry, user=user_of(request)), f"{entry.name} is gone.")
    return _to_bin(entry.lab)


@login_required
@require_POST
def roi_restore(request: HttpRequest, roi_id: uuid.UUID) -> HttpResponse:
    """Restore a region, and stay with the bin: there may be more."""
    roi = selectors.roi_in_bin(user_of(request), roi_id)
    name = f"{roi.name or 'The region'} on {roi.canvas.name} is back."
    _do(request, lambda: restore_roi(roi=roi, user=user_of(request)), name)
    return _to_bin(roi.lab, "&what=regions")


@login_required
@require_POST
def roi_purge(request: HttpRequest, roi_id: uuid.UUID) -> HttpResponse:
    """Delete a region for good."""
    roi = selectors.roi_in_bin(user_of(request), roi_id)
    _do(
        request,
        lambda: services.roi_purge(roi=roi, user=user_of(request)),
        f"{roi.name or 'The region'} is gone.",
    )
    return _to_bin(roi.lab, "&what=regions")


def _do(request: HttpRequest, act: Callable[[], object], done: str) -> None:
    try:
        act()
    except PortalError as error:
        _refuse(request, error)
    else:
        messages.success(request, done)


def _refuse(request: HttpRequest, error: PortalError) -> None:
    """Say why, unless it is a matter of rights: that is a page of its own."""
    if error.status == 403:
        raise error
    messages.error(request, error.message)


def _to_bin(lab: Lab, more: str = "") -> HttpResponse:
    return redirect(f"{reverse('keeping:bin')}?lab={lab.slug}{more}")
