"""Pages: explanations of hits."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypedDict
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from portal.annotations.models import Roi
from portal.annotations.selectors.rois import roi_get
from portal.core.errors import ConflictError
from portal.core.http.audit_rules import MINUTE_S, AuditRule, audited
from portal.core.http.htmx import wants_part
from portal.embeddings.models import Encoder
from portal.embeddings.selectors.encoders import encoder_for
from portal.jobs.models import Job
from portal.labs.requests import user_of
from portal.search.models import Query
from portal.search.selectors.explanations import MatchExplanation
from portal.search.selectors.hits import closer_than, p_value_of
from portal.search.selectors.queries import encoder_of_query, query_get
from portal.search.selectors.similar_cases import roi_to_search
from portal.search.services.explanations import query_match_explain, roi_match_explain
from portal.search.thumbnails.queries import query_region, query_scale, query_window
from portal.search.thumbnails.regions import CLOSE, Scale, Window, scale_of, window_of
from portal.search.views.match_drawing import Pane, drawn
from portal.search.views.similar_cases import require_live

_SCALE_RATIO = 4
"""Regions that differ more in size are each shown as they are: the smaller would be a dot."""


@audited(
    GET=AuditRule("search.explained", "roi", "roi_id", every_s=MINUTE_S),
    POST=AuditRule("search.explained", "roi", "roi_id"),
)
@login_required
@require_http_methods(["GET", "POST"])
def roi_explanation(request: HttpRequest, roi_id: uuid.UUID, other_id: uuid.UUID) -> HttpResponse:
    """Show the explanation of a hit of an ROI. POST retries after a failure."""
    user = user_of(request)
    roi, lab_id = roi_to_search(user, roi_id)
    other = require_live(roi_get(user, other_id, with_shared=False))
    require_live(roi)

    def explain() -> MatchExplanation | Job:
        is_retry = request.method == "POST"
        return roi_match_explain(roi=roi, other=other, lab_id=lab_id, user=user, is_retry=is_retry)

    context = {
        **_outcome(explain),
        "roi": roi,
        "canvas": roi.canvas,
        "other": other,
        "here": reverse("search:explanation", args=[roi.pk, other.pk]),
        "back": reverse("search:similar", args=[roi.pk]),
        "encoder": encoder_for(roi),
    }
    scale = _scale_for(scale_of(roi, CLOSE), scale_of(other, CLOSE))
    address = reverse("search:thumbnail", args=[roi.pk])
    window = window_of(roi, CLOSE, scale.width_px(roi) if scale else None)
    subject = _Subject(_address(address, scale, roi.version), window)
    return _explanation_response(request, context, subject, scale)


@audited(
    GET=AuditRule("search.explained", "query", "query_id", every_s=MINUTE_S),
    POST=AuditRule("search.explained", "query", "query_id"),
)
@login_required
@require_http_methods(["GET", "POST"])
def query_explanation(
    request: HttpRequest, query_id: uuid.UUID, other_id: uuid.UUID
) -> HttpResponse:
    """Explain a hit of a query that is not an ROI, like ``roi_explanation``."""
    user = user_of(request)
    query = query_get(user, query_id)
    other = require_live(roi_get(user, other_id, with_shared=False))

    def explain() -> MatchExplanation | Job:
        is_retry = request.method == "POST"
        return query_match_explain(query=query, other=other, user=user, is_retry=is_retry)

    context = {
        **_outcome(explain),
        "query": query,
        "canvas": query.canvas,
        "other": other,
        "here": reverse("search:query_explanation", args=[query.pk, other.pk]),
        "back": reverse("search:query", args=[query.pk]),
        "encoder": encoder_of_query(query),
    }
    return _explanation_response(request, context, *_query_subject(query, other))


@dataclass(frozen=True, slots=True)
class _Subject:
    """Picture of the query."""

    address: str
    window: Window


def _query_subject(query: Query, other: Roi) -> tuple[_Subject, Scale | None]:
    scale_used = query_scale(query, CLOSE)
    scale = _scale_for(scale_used, scale_of(other, CLOSE)) if scale_used else None
    region = query_region(query)
    if scale and region is not None and scale.width_px(region) is None:
        scale = None
    address = reverse("search:query_picture", args=[query.pk])
    return _Subject(_address(address, scale, None), query_window(query, CLOSE, scale)), scale


def _scale_for(a: Scale, b: Scale) -> Scale | None:
    """Common scale of both regions; None if their sizes differ too much."""
    small, large = sorted((a, b), key=lambda scale: scale.width)
    is_close = a.unit == b.unit and large.width <= _SCALE_RATIO * small.width
    return large if is_close else None


def _address(address: str, scale: Scale | None, version: int | None) -> str:
    fields: dict[str, str | int] = {"size": "close"}
    fields |= {"width": scale.tag} if scale else {}
    fields |= {"v": version} if version is not None else {}
    return f"{address}?{urlencode(fields)}"


class _Outcome(TypedDict, total=False):
    found: MatchExplanation
    job: Job
    failure: str
    may_retry: bool


def _outcome(find: Callable[[], MatchExplanation | Job]) -> _Outcome:
    """Keyword fields of the outcome: ``found``, a running ``job``, or ``failure`` with
    ``may_retry``."""
    try:
        outcome = find()
    except ConflictError as error:
        return {"failure": error.message, "may_retry": error.code == "explanation-failed"}
    return {"job": outcome} if isinstance(outcome, Job) else {"found": outcome}


def _explanation_response(
    request: HttpRequest, context: dict[str, Any], subject: _Subject, scale: Scale | None
) -> HttpResponse:
    if request.method == "POST":
        return redirect(context["here"])
    other: Roi = context["other"]
    explanation: MatchExplanation | None = context.get("found")
    if explanation is not None:
        address = reverse("search:thumbnail", args=[other.pk])
        window = window_of(other, CLOSE, scale.width_px(other) if scale else None)
        panes = (
            Pane(
                subject.address,
                subject.window,
                explanation.boxes_a,
                explanation.contributions_a,
                explanation.points_a,
            ),
            Pane(
                _address(address, scale, other.version),
                window,
                explanation.boxes_b,
                explanation.contributions_b,
                explanation.points_b,
            ),
        )
        context |= _figures(explanation, context["encoder"]) | {
            "drawing": drawn(explanation, *panes)
        }
    context["scale"] = scale
    template = "search/_explanation.html" if wants_part(request) else "search/explanation.html"
    return render(request, template, context)


class _Figures(TypedDict):
    """Texts of the match's figures."""

    closer: str
    closer_other: str
    halves: list[int]
    colour: int | None


def _figures(explanation: MatchExplanation, encoder: Encoder) -> _Figures:
    """Figures of the match; some are unknown without an encoder."""
    p_values = [
        p_value_of(encoder, distance)
        for distance in (explanation.distance, explanation.other_distance)
    ]
    return {
        "closer": closer_than(p_values[0]),
        "closer_other": closer_than(p_values[1]),
        "halves": [round(100 * share) for share in (explanation.half_a, explanation.half_b)],
        "colour": None if explanation.colour is None else round(100 * explanation.colour),
    }
