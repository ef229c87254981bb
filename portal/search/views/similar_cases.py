"""Pages: similar cases of an ROI, and its thumbnail."""

from __future__ import annotations

import uuid
from typing import Any, TypedDict

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import quote_etag
from django.views.decorators.http import require_GET, require_POST

from portal.annotations.models import Roi
from portal.annotations.selectors.rois import roi_get
from portal.archive.models import Modality
from portal.core.errors import ConflictError, InvalidInputError, NotFoundError
from portal.core.http.audit_rules import MINUTE_S, AuditRule, audited, not_audited
from portal.core.http.files import REVALIDATE, bytes_response
from portal.core.http.htmx import wants_part
from portal.embeddings.selectors.embeddings import NO_AREA, NO_TISSUE, embed_job
from portal.embeddings.services.submissions import embed_request
from portal.jobs.models import Job
from portal.labs.models import Lab, Role, User
from portal.labs.requests import user_of
from portal.labs.rules import has_role
from portal.search.forms import JudgementForm, SimilarForm
from portal.search.models import Verdict
from portal.search.selectors.judgements import judgements_of
from portal.search.selectors.similar_cases import SimilarResult, roi_to_search
from portal.search.services.judgements import judgement_clear, judgement_set
from portal.search.services.similar_cases import roi_search
from portal.search.thumbnails.regions import PICTURES, SMALL, Scale, roi_thumbnail, scale_of
from portal.search.views.facet_links import chosen_links, facet_links

_DAY_S = 24 * 3600  # seconds of a day
_SCALES = (("0.5", "half as large"), ("1", "as large"), ("2", "twice as large"))
"""Relative scales of a search: from 20x to 10x or 40x, the other magnifications of the same
region."""


@audited(GET=AuditRule("search.made", "roi", "roi_id", every_s=MINUTE_S))
@login_required
@require_GET
def similar(request: HttpRequest, roi_id: uuid.UUID) -> HttpResponse:
    """Show similar cases. htmx requests the results only, for a filter or while a job runs."""
    roi, lab_id = roi_to_search(user_of(request), roi_id)
    return _similar_page(request, require_live(roi), lab_id)


@audited(POST=AuditRule("search.judged", "roi", "roi_id"))
@login_required
@require_POST
def judge(request: HttpRequest, roi_id: uuid.UUID) -> HttpResponse:
    """Judge a hit, or delete the judgement; respond as ``similar``."""
    user = user_of(request)
    roi = require_live(roi_get(user, roi_id, with_shared=False))
    mark = JudgementForm(request.POST)
    if not mark.is_valid():
        raise InvalidInputError("A mark needs another region, and alike, unlike or nothing.")
    other_id, verdict = mark.cleaned_data["other"], mark.cleaned_data["verdict"]
    if verdict:
        judgement_set(roi=roi, other_id=other_id, verdict=Verdict(verdict), user=user)
    else:
        judgement_clear(roi=roi, other_id=other_id, user=user)
    if wants_part(request):
        return _similar_page(request, roi, roi.lab_id)
    address = reverse("search:similar", args=[roi.pk])
    return redirect(f"{address}?{request.GET.urlencode()}")


@not_audited("part of an audited page")
@login_required
@require_POST
def embed(request: HttpRequest, roi_id: uuid.UUID) -> HttpResponse:
    """Retry the embedding of an ROI after a failure."""
    roi = require_live(roi_get(user_of(request), roi_id, with_shared=False))
    embed_request(roi=roi, user=user_of(request), is_retry=True)
    return redirect("search:similar", roi_id=roi.pk)


@not_audited("part of an audited page")
@login_required
@require_GET
def thumbnail(request: HttpRequest, roi_id: uuid.UUID) -> HttpResponse:
    """Thumbnail of the ROI with its outline. The URL contains the version, so it may be cached.

    ``?size=large`` shows more surroundings, ``?width=256um`` a window of that width.
    """
    roi = require_live(roi_get(user_of(request), roi_id))
    picture = PICTURES.get(request.GET.get("size", ""), SMALL)
    scale = Scale.of_tag(request.GET.get("width", ""))
    etag = quote_etag(f"{roi.pk.hex}-{roi.version}{picture.name}{scale.key(roi) if scale else ''}")
    is_pinned = request.GET.get("v") == str(roi.version)
    cache = f"private, max-age={_DAY_S}" if is_pinned else REVALIDATE
    return bytes_response(
        request, lambda: roi_thumbnail(roi, picture, scale), etag=etag, cache=cache
    )


def _similar_page(request: HttpRequest, roi: Roi, lab_id: uuid.UUID) -> HttpResponse:
    user, form = user_of(request), SimilarForm(request.GET)
    marks = list(judgements_of(user, roi))
    context: dict[str, Any] = {
        "roi": roi,
        "case": roi.canvas.case,
        "canvas": roi.canvas,
        "form": form,
        "verdicts": {mark.other_id: mark.verdict for mark in marks},
        "unlike": [mark.other for mark in marks if mark.verdict == Verdict.UNLIKE],
        "may_mark": lab_id == roi.lab_id and has_role(user, roi.lab_id, at_least=Role.ANNOTATOR),
        "here": reverse("search:similar", args=[roi.pk]),
        "mark_url": reverse("search:judge", args=[roi.pk]),
        "explains": True,
        "scales": scales_of(roi.canvas.modality, 1.0) if lab_id == roi.lab_id else [],
    }
    if lab_id != roi.lab_id:  # shared with it
        context["searched_lab"] = Lab.objects.get(pk=lab_id)
    context |= _outcome(user, roi, lab_id, form)
    return answered(request, context | {"scale": scale_of(roi)}, "search/similar.html")


def answered(request: HttpRequest, context: dict[str, Any], template: str) -> HttpResponse:
    """Render a page of hits, or only its results for htmx.

    Args:
        context: Contains ``form``, and ``result`` if there is one.
    """
    if isinstance(result := context.get("result"), SimilarResult) and result.facets:
        context["facets"] = facet_links(result.facets, request.GET, user=user_of(request))
        context["chosen"] = chosen_links(context["facets"])
    return render(request, "search/_answer.html" if wants_part(request) else template, context)


def scales_of(modality: str, now: float) -> list[tuple[str, str]]:
    """Scales at which the search can be repeated: value and text."""
    if modality != Modality.HISTOLOGY:
        return []
    return [(value, text) for value, text in _SCALES if float(value) != now]


class _Outcome(TypedDict, total=False):
    result: SimilarResult
    job: Job | None
    failure: str
    is_blank: bool
    may_retry: bool


def _outcome(user: User, roi: Roi, lab_id: uuid.UUID, form: SimilarForm) -> _Outcome:
    """Keyword fields of the outcome: ``result``, a running ``job``, or ``failure`` with the failed
    ``job``."""
    try:
        outcome = roi_search(
            roi=roi,
            user=user,
            lab_id=lab_id,
            options=form.options,
            use_judgements=form.goes_by_marks,
        )
    except ConflictError as error:
        return {
            "failure": error.message,
            "is_blank": error.code in (NO_TISSUE, NO_AREA),
            "job": embed_job(roi=roi) if lab_id == roi.lab_id else None,
            "may_retry": has_role(user, roi.lab_id, at_least=Role.ANNOTATOR),
        }
    return {"result": outcome} if isinstance(outcome, SimilarResult) else {"job": outcome}


def require_live(roi: Roi) -> Roi:
    """The ROI, or ``NotFoundError`` if it is deleted."""
    if roi.deleted_at is not None:
        raise NotFoundError("This region was deleted.")
    return roi
