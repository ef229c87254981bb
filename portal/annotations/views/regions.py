"""Pages: an ROI where it was drawn; the measures of ROIs."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET

from portal.annotations.fixed_sizes import FixedSize
from portal.annotations.selectors.measurements import Measurements, measurements_of
from portal.annotations.selectors.rois import roi_get
from portal.archive.selectors.canvases import canvas_get
from portal.archive.selectors.cases import case_get
from portal.core.http.audit_rules import AuditRule, audited, not_audited
from portal.labs.requests import user_of


@not_audited("redirects to an audited page")
@login_required
@require_GET
def roi_open(request: HttpRequest, roi_id: uuid.UUID) -> HttpResponse:
    """The viewer, with this ROI selected."""
    roi = roi_get(user_of(request), roi_id)
    return redirect(f"{reverse('archive:viewer', args=[roi.canvas_id])}?roi={roi.pk}")


@audited(GET=AuditRule("roi.listed", "canvas", "canvas_id"))
@login_required
@require_GET
def measurements(request: HttpRequest, canvas_id: uuid.UUID) -> HttpResponse:
    """The measures of each ROI of an image; a row leads to it."""
    user = user_of(request)
    canvas = canvas_get(user=user, canvas_id=canvas_id)
    table = measurements_of(user, canvas=canvas)
    context = {"canvas": canvas, "case": canvas.case, "canvases": [canvas]}
    return _measurements_page(request, table, context)


@audited(GET=AuditRule("roi.listed", "case", "case_id"))
@login_required
@require_GET
def case_measurements(request: HttpRequest, case_id: uuid.UUID) -> HttpResponse:
    """The same of all images of a case."""
    user = user_of(request)
    case = case_get(user=user, case_id=case_id)
    table = measurements_of(user, case=case)
    canvases = {row.roi.canvas_id: row.roi.canvas for row in table.rows}
    return _measurements_page(request, table, {"case": case, "canvases": list(canvases.values())})


def _measurements_page(
    request: HttpRequest, table: Measurements, context: dict[str, Any]
) -> HttpResponse:
    sort = request.GET.get("sort", "")
    table.rows.sort(key=_order(sort.removeprefix("-"), table), reverse=sort.startswith("-"))
    context |= {"table": table, "sort": sort, "is_capped": table.total > len(table.rows)}
    return render(request, "annotations/measurements.html", context)


def _size_order(size: FixedSize | None) -> tuple[object, ...]:
    """Fields in the order of their grid and number; regions without a fixed size last."""
    if size is None:
        return (True,)
    return (False, size.grid, [int(number) for number in re.findall(r"\d+", size.text)], size.text)


def _order(name: str, table: Measurements) -> Callable[[Any], Any]:
    """Sort key of rows: by a column, or by ROI, label or image."""
    words: dict[str, Callable[[Any], Any]] = {
        "roi": lambda row: row.roi.name.lower(),
        "label": lambda row: row.roi.label.name.lower() if row.roi.label else "",
        "fixed_size": lambda row: _size_order(row.fixed_size),
        "image": lambda row: row.roi.canvas.name.lower(),
    }
    keys = [column.key for column in table.columns]
    if name in keys:
        at = keys.index(name)
        return lambda row: row.values[at] or 0
    return words.get(name, lambda row: -row.roi.area_px)
