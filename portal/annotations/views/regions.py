"""Pages: an ROI where it was drawn; the measures of ROIs."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET

from portal.annotations import selectors
from portal.archive.selectors import canvas_get, case_get
from portal.labs.requests import user_of


@login_required
@require_GET
def roi_open(request: HttpRequest, roi_id: uuid.UUID) -> HttpResponse:
    """The viewer, with this ROI selected."""
    roi = selectors.roi_get(user_of(request), roi_id)
    return redirect(f"{reverse('archive:viewer', args=[roi.canvas_id])}?roi={roi.pk}")


@login_required
@require_GET
def measurements(request: HttpRequest, canvas_id: uuid.UUID) -> HttpResponse:
    """The measures of each ROI of an image; a row leads to it."""
    user = user_of(request)
    canvas = canvas_get(user=user, canvas_id=canvas_id)
    table = selectors.measurements_of(user, canvas=canvas)
    context = {"canvas": canvas, "case": canvas.case, "canvases": [canvas]}
    return _measured(request, table, context)


@login_required
@require_GET
def case_measurements(request: HttpRequest, case_id: uuid.UUID) -> HttpResponse:
    """The same of all images of a case."""
    user = user_of(request)
    case = case_get(user=user, case_id=case_id)
    table = selectors.measurements_of(user, case=case)
    canvases = {row.roi.canvas_id: row.roi.canvas for row in table.rows}
    return _measured(request, table, {"case": case, "canvases": list(canvases.values())})


def _measured(
    request: HttpRequest, table: selectors.Measurements, context: dict[str, Any]
) -> HttpResponse:
    sort = request.GET.get("sort", "")
    table.rows.sort(key=_order(sort.removeprefix("-"), table), reverse=sort.startswith("-"))
    context |= {"table": table, "sort": sort, "is_capped": table.total > len(table.rows)}
    return render(request, "annotations/measurements.html", context)


def _order(name: str, table: selectors.Measurements) -> Callable[[Any], Any]:
    """What rows are sorted by: a column, or the ROI, its label or its image."""
    words: dict[str, Callable[[Any], Any]] = {
        "roi": lambda row: row.roi.name.lower(),
        "label": lambda row: row.roi.label.name.lower() if row.roi.label else "",
        "image": lambda row: row.roi.canvas.name.lower(),
    }
    keys = [column.key for column in table.columns]
    if name in keys:
        at = keys.index(name)
        return lambda row: row.values[at] or 0
    return words.get(name, lambda row: -row.roi.area_px)
