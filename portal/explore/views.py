"""Pages: regions of a lab on a map and in lists."""

from __future__ import annotations

import uuid
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_GET, require_POST

from portal.annotations.models import Label, RoiAction
from portal.annotations.selectors.labels import label_get
from portal.annotations.selectors.rois import roi_get
from portal.annotations.services.bulk import RoiStep, rois_change
from portal.annotations.services.fields import RoiChanges
from portal.archive.models import Modality
from portal.archive.selectors.canvases import canvas_get
from portal.core.errors import ConflictError, InvalidInputError, StaleVersionError
from portal.core.http.audit_rules import HOUR_S, AuditRule, audited
from portal.core.http.htmx import wants_part
from portal.embeddings.selectors.encoders import encoder_default
from portal.explore.models import RegionMap
from portal.explore.selectors.duplicates import NAMES, Between, near_duplicates
from portal.explore.selectors.label_outliers import label_outliers
from portal.explore.selectors.maps import (
    has_regions_to_map,
    map_counts,
    map_job_open,
    map_latest,
    map_visible,
)
from portal.explore.selectors.unannotated import unannotated
from portal.explore.services.maps import label_confirm, map_draw_submit
from portal.explore.services.similar_regions import tissue_sample_submit
from portal.labs.models import Role, User
from portal.labs.requests import lab_chosen_by, user_of
from portal.labs.rules import has_role
from portal.labs.selectors import lab_get, memberships_of

_DIGITS = 6  # of a page number
_PAGE = 12  # entries per page


class _Page:
    """Data shared by all tabs of the page."""

    def __init__(self, request: HttpRequest, tab: str) -> None:
        self.request, self.user = request, user_of(request)
        self.lab = lab_get(self.user, slug=request.GET.get("lab"), chosen=lab_chosen_by(request))
        self.kind = _modality(request.GET.get("kind"))
        self.encoder = encoder_default(self.kind)
        self.map = map_latest(self.user, lab_id=self.lab.pk, kind=self.kind)
        self.tab = tab
        at = request.GET.get("page", "")
        self.number = int(at) if at.isdecimal() and len(at) <= _DIGITS else 1
        self.start = max(self.number - 1, 0) * _PAGE

    def context(self, **extra: object) -> dict[str, object]:
        encoder = self.encoder
        return {
            "tab": self.tab,
            "lab": self.lab,
            "memberships": memberships_of(self.user),
            "kind": self.kind,
            "kinds": Modality.choices,
            "encoder": encoder,
            "map": self.map,
            "is_embedded": self.map is not None
            or has_regions_to_map(self.user, lab_id=self.lab.pk, encoder=encoder),
            "job": map_job_open(lab_id=self.lab.pk, encoder_id=encoder.pk) if encoder else None,
            "may_draw": has_role(self.user, self.lab.pk, at_least=Role.ANNOTATOR),
            "here": self.request.get_full_path(),
            **extra,
        }

    def render(self, **extra: object) -> HttpResponse:
        """The tab; a page that polled while the map was drawn loads itself once it is."""
        context = self.context(**extra)
        response = render(self.request, f"explore/{self.tab}.html", context)
        if wants_part(self.request) and context["job"] is None:
            response["HX-Refresh"] = "true"
        return response

    def paged(self, total: int) -> Any:
        """Page object for the links of a list of this length."""
        return Paginator(range(total), _PAGE).get_page(self.number)


@audited(GET=AuditRule("search.browsed", every_s=HOUR_S))
@login_required
@require_GET
def browse(request: HttpRequest) -> HttpResponse:
    """Show the map; the page fetches its points."""
    page = _Page(request, "map")
    labels = Label.objects.filter(lab=page.lab, retired_at=None)
    counts = map_counts(page.user, page.map) if page.map else None
    return page.render(visible_map=counts, labels=labels)


@audited(GET=AuditRule("search.browsed", every_s=HOUR_S))
@login_required
@require_GET
def browse_duplicates(request: HttpRequest) -> HttpResponse:
    """List near-duplicates."""
    page = _Page(request, "duplicates")
    between = request.GET.get("between", "")
    chosen = Between(between) if between in list(Between) else None
    context: dict[str, Any] = {"between": chosen}
    if visible := _visible_map(page.user, page.map):
        duplicates = near_duplicates(
            page.user, visible, between=chosen, start=page.start, count=_PAGE
        )
        kinds = [(kind.value, NAMES[kind], duplicates.counts[kind]) for kind in Between]
        context |= {"visible_map": visible, "found": duplicates, "between_kinds": kinds}
        context |= {"page_obj": page.paged(duplicates.total), "names": NAMES}
    return page.render(**context)


@audited(GET=AuditRule("search.browsed", every_s=HOUR_S))
@login_required
@require_GET
def browse_unlike(request: HttpRequest) -> HttpResponse:
    """List regions that look unlike their label."""
    page = _Page(request, "unlike")
    context: dict[str, Any] = {}
    if visible := _visible_map(page.user, page.map):
        outliers = label_outliers(page.user, visible, start=page.start, count=_PAGE)
        context = {
            "visible_map": visible,
            "found": outliers,
            "page_obj": page.paged(outliers.total),
        }
    return page.render(**context)


@audited(GET=AuditRule("search.browsed", every_s=HOUR_S))
@login_required
@require_GET
def browse_unannotated(request: HttpRequest) -> HttpResponse:
    """List images to annotate."""
    page = _Page(request, "unannotated")
    canvases = unannotated(
        page.user,
        lab=page.lab,
        kind=page.kind,
        encoder=page.encoder,
        start=page.start,
        count=_PAGE,
    )
    return page.render(found=canvases, page_obj=page.paged(canvases.total))


@audited(POST=AuditRule("search.browsed"))
@login_required
@require_POST
def browse_draw(request: HttpRequest) -> HttpResponse:
    """Draw the map again."""
    user = user_of(request)
    lab = lab_get(user, slug=request.POST.get("lab"), chosen=lab_chosen_by(request))
    kind = _modality(request.POST.get("kind"))
    try:
        map_draw_submit(lab=lab, kind=kind, user=user)
    except ConflictError as error:
        messages.error(request, error.message)
    return redirect(f"{reverse('explore:browse')}?lab={lab.slug}&kind={kind}")


@audited(POST=AuditRule("search.label_confirmed", "roi", "roi_id"))
@login_required
@require_POST
def browse_label(request: HttpRequest, roi_id: uuid.UUID) -> HttpResponse:
    """Set another label of a region, or confirm the present one without ``label``."""
    user = user_of(request)
    roi = roi_get(user, roi_id, with_shared=False)
    if not (label_id := request.POST.get("label")):
        label_confirm(roi=roi, user=user)
        messages.success(request, "The label was confirmed.")
        return redirect(_return_url(request))
    version = request.POST.get("version", "")
    if not version.isdecimal() or len(version) > 9:
        raise InvalidInputError("version: expected the version that was shown.")
    try:
        label = label_get(user, uuid.UUID(label_id))
    except ValueError:
        raise InvalidInputError("label: there is no such label.") from None
    if label.lab_id != roi.lab_id:
        raise InvalidInputError("label: no such label in this lab.", code="unknown-label")
    step = RoiStep(RoiAction.UPDATE, roi.pk, version=int(version), changes=RoiChanges(label=label))
    try:
        rois_change(canvas=roi.canvas, user=user, steps=[step])
    except (ConflictError, StaleVersionError) as error:
        messages.error(request, error.message)
    else:
        messages.success(request, f"The region now has the label {label.name}.")
    return redirect(_return_url(request))


@audited(POST=AuditRule("search.browsed", "canvas", "canvas_id"))
@login_required
@require_POST
def look_through(request: HttpRequest, canvas_id: uuid.UUID) -> HttpResponse:
    """Sample a slide's tissue to find what is unlike all regions."""
    user = user_of(request)
    canvas = canvas_get(user=user, canvas_id=canvas_id)
    try:
        job = tissue_sample_submit(canvas=canvas, user=user)
    except (ConflictError, InvalidInputError) as error:
        messages.error(request, error.message)
    else:
        outcome = (
            "Its tissue has already been sampled."
            if job is None
            else "Its tissue is being sampled."
        )
        messages.info(request, f"{canvas.name}: {outcome}")
    return redirect(_return_url(request))


def _modality(text: str | None) -> Modality:
    return Modality(text) if text in Modality.values else Modality.HISTOLOGY


def _visible_map(user: User, row: RegionMap | None) -> Any:
    return map_visible(user, row) if row else None


def _return_url(request: HttpRequest) -> str:
    target = request.POST.get("next", "")
    if url_has_allowed_host_and_scheme(target, allowed_hosts=None):
        return target
    return reverse("explore:browse")
