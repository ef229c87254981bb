"""Pages: similar cases of an ROI, and the ROI's picture."""

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
from portal.annotations.selectors import roi_get
from portal.core.errors import ConflictError, InvalidInputError, NotFoundError
from portal.core.http.htmx import wants_part
from portal.jobs.models import Job
from portal.labs.models import Lab, Role, User
from portal.labs.requests import user_of
from portal.labs.rules import has_role
from portal.retrieval import selectors, services
from portal.retrieval.forms import JudgementForm, SimilarForm
from portal.retrieval.models import CANVASES_OF, EncoderKind, Verdict
from portal.retrieval.thumbnails import PICTURES, SMALL, Scale, roi_thumbnail, scale_of
from portal.retrieval.views.facet_links import chosen_links, facet_links

_DAY_S = 24 * 3600  # seconds of a day
_SCALES = (("0.5", "half as large"), ("1", "as large"), ("2", "twice as large"))
"""Of structures looked for: from 20x to 10x or 40x, which is how else a region is looked at."""


@login_required
@require_GET
def similar(request: HttpRequest, roi_id: uuid.UUID) -> HttpResponse:
    """Similar cases. htmx asks for the answer alone: on a filter, and while a job is under way."""
    roi, lab_id = selectors.roi_to_search(user_of(request), roi_id)
    return _similar_page(request, require_live(roi), lab_id)


@login_required
@require_POST
def judge(request: HttpRequest, roi_id: uuid.UUID) -> HttpResponse:
    """Mark a hit as alike or not, or take the mark back; answers as ``similar`` does."""
    user = user_of(request)
    roi = require_live(roi_get(user, roi_id, with_shared=False))
    said = JudgementForm(request.POST)
    if not said.is_valid():
        raise InvalidInputError("A mark needs another region, and alike, unlike or nothing.")
    other_id, verdict = said.cleaned_data["other"], said.cleaned_data["verdict"]
    if verdict:
        services.judgement_set(roi=roi, other_id=other_id, verdict=Verdict(verdict), user=user)
    else:
        services.judgement_clear(roi=roi, other_id=other_id, user=user)
    if wants_part(request):
        return _similar_page(request, roi, roi.lab_id)
    address = reverse("retrieval:similar", args=[roi.pk])
    return redirect(f"{address}?{request.GET.urlencode()}")


@login_required
@require_POST
def embed(request: HttpRequest, roi_id: uuid.UUID) -> HttpResponse:
    """Try again to embed an ROI after a failure."""
    roi = require_live(roi_get(user_of(request), roi_id, with_shared=False))
    services.embed_request(roi=roi, user=user_of(request), is_retry=True)
    return redirect("retrieval:similar", roi_id=roi.pk)


@login_required
@require_GET
def thumbnail(request: HttpRequest, roi_id: uuid.UUID) -> HttpResponse:
    """The ROI's picture with its outline. The address names the version, so it may be kept.

    ``?size=large`` shows more of what is around it, ``?width=256um`` a window of that width.
    """
    roi = require_live(roi_get(user_of(request), roi_id))
    picture = PICTURES.get(request.GET.get("size", ""), SMALL)
    scale = Scale.named(request.GET.get("width", ""))
    etag = quote_etag(f"{roi.pk.hex}-{roi.version}{picture.name}{scale.key(roi) if scale else ''}")
    if request.headers.get("If-None-Match") == etag:
        response = HttpResponse(status=304)
    else:
        response = HttpResponse(roi_thumbnail(roi, picture, scale), content_type="image/jpeg")
    is_pinned = request.GET.get("v") == str(roi.version)
    response["ETag"] = etag
    response["Cache-Control"] = f"private, max-age={_DAY_S}" if is_pinned else "private, no-cache"
    return response


def _similar_page(request: HttpRequest, roi: Roi, lab_id: uuid.UUID) -> HttpResponse:
    user, form = user_of(request), SimilarForm(request.GET)
    marks = list(selectors.judgements_of(user, roi))
    context: dict[str, Any] = {
        "roi": roi,
        "case": roi.canvas.case,
        "canvas": roi.canvas,
        "form": form,
        "verdicts": {mark.other_id: mark.verdict for mark in marks},
        "unlike": [mark.other for mark in marks if mark.verdict == Verdict.UNLIKE],
        "may_mark": lab_id == roi.lab_id and has_role(user, roi.lab_id, at_least=Role.ANNOTATOR),
        "here": reverse("retrieval:similar", args=[roi.pk]),
        "mark_url": reverse("retrieval:judge", args=[roi.pk]),
        "explains": True,
        "scales": scales_of(roi.canvas.kind, 1.0) if lab_id == roi.lab_id else [],
    }
    if lab_id != roi.lab_id:  # shared with it
        context["searched_lab"] = Lab.objects.get(pk=lab_id)
    context |= _outcome(user, roi, lab_id, form)
    return answered(request, context | {"scale": scale_of(roi)}, "retrieval/similar.html")


def answered(request: HttpRequest, context: dict[str, Any], template: str) -> HttpResponse:
    """A page of hits, or its answer alone where htmx asks.

    Args:
        context: with ``form``, and ``result`` where there is one.
    """
    if isinstance(found := context.get("result"), selectors.SimilarResult) and found.facets:
        context["facets"] = facet_links(found.facets, request.GET)
        context["chosen"] = chosen_links(context["facets"])
    return render(request, "retrieval/_answer.html" if wants_part(request) else template, context)


def scales_of(kind: str, now: float) -> list[tuple[str, str]]:
    """Scales at which the search can be repeated: what is sent, and what people read."""
    if kind not in CANVASES_OF[EncoderKind.HISTOLOGY]:
        return []
    return [(sent, text) for sent, text in _SCALES if float(sent) != now]


class _Outcome(TypedDict, total=False):
    result: selectors.SimilarResult
    job: Job | None
    failure: str
    is_blank: bool
    may_retry: bool


def _outcome(user: User, roi: Roi, lab_id: uuid.UUID, form: SimilarForm) -> _Outcome:
    """One of: ``result``, ``job`` (under way), ``failure`` with the failed ``job``."""
    try:
        found = services.similar_or_embed(
            roi=roi,
            user=user,
            lab_id=lab_id,
            options=form.options,
            by_marks=form.goes_by_marks,
        )
    except ConflictError as error:
        return {
            "failure": error.message,
            "is_blank": error.code in (selectors.NO_TISSUE, selectors.NO_AREA),
            "job": selectors.embed_job(roi=roi) if lab_id == roi.lab_id else None,
            "may_retry": has_role(user, roi.lab_id, at_least=Role.ANNOTATOR),
        }
    return {"result": found} if isinstance(found, selectors.SimilarResult) else {"job": found}


def require_live(roi: Roi) -> Roi:
    """The ROI, or ``NotFoundError`` where it was deleted."""
    if roi.deleted_at is not None:
        raise NotFoundError("This ROI was deleted.")
    return roi
