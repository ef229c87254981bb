"""Pages: answers of searches, frozen."""

from __future__ import annotations

import uuid
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from portal.annotations.selectors import roi_get
from portal.archive.models import Case
from portal.archive.selectors import case_get
from portal.core.errors import ConflictError, InvalidInputError, NotFoundError
from portal.core.http.acting import about
from portal.core.http.htmx import wants_part
from portal.jobs.models import Job
from portal.labs.models import Role
from portal.labs.requests import user_of
from portal.labs.rules import has_role
from portal.retrieval import selectors, services
from portal.retrieval.downloads import report_response
from portal.retrieval.forms import SimilarForm
from portal.retrieval.selectors import Frozen, FrozenRegion, SimilarResult
from portal.retrieval.thumbnails import report_keep

_PAGE = 24  # reports of a page of the list: three rows of a wide screen
_OF_CASE = 5  # reports on a case's page; the others are behind a link
_DAY_S = 24 * 3600  # seconds of a day: a report's pictures never change


@login_required
@require_GET
def reports(request: HttpRequest) -> HttpResponse:
    """The reports of one's labs; ``?case=`` those of searches with one case."""
    user, case = user_of(request), None
    try:
        case_id = uuid.UUID(request.GET["case"]) if request.GET.get("case") else None
    except ValueError:
        raise NotFoundError("There is no such case.") from None
    if case_id is not None:
        case = case_get(user=user, case_id=case_id)
    page = Paginator(selectors.report_list(user, case_id=case_id), _PAGE)
    context = {"page_obj": page.get_page(request.GET.get("page")), "case": case}
    return render(request, "retrieval/reports.html", context)


def case_section(request: HttpRequest, case: Case) -> str:
    """The newest reports of searches with a case's images, below its slides and videos."""
    rows = selectors.report_list(user_of(request), case_id=case.pk)
    found = list(rows[: _OF_CASE + 1])
    if not found:
        return ""
    context = {"case": case, "reports": found[:_OF_CASE], "has_more": len(found) > _OF_CASE}
    return render_to_string("retrieval/_case_section.html", context, request)


@login_required
@require_POST
def report_roi(request: HttpRequest, roi_id: uuid.UUID) -> HttpResponse:
    """Freeze the answer to a search with an ROI, asked as the address says."""
    user, form = user_of(request), SimilarForm(request.GET)
    roi = roi_get(user, roi_id, with_shared=False)
    found = services.similar_or_embed(
        roi=roi, user=user, options=form.options, by_marks=form.goes_by_marks
    )
    return _frozen(request, found, reverse("retrieval:similar", args=[roi.pk]))


@login_required
@require_POST
def report_query(request: HttpRequest, query_id: uuid.UUID) -> HttpResponse:
    """Freeze the answer to a query."""
    user, form = user_of(request), SimilarForm(request.GET)
    query = selectors.query_get(user, query_id)
    found = services.similar_to_query(query=query, user=user, options=form.options)
    return _frozen(request, found, reverse("retrieval:query", args=[query.pk]))


@login_required
@require_GET
def report(request: HttpRequest, report_id: uuid.UUID) -> HttpResponse:
    """A report as it was made."""
    user = user_of(request)
    found = selectors.report_get(user, report_id)
    regions = list(selectors.report_regions(user, found))
    frozen = Frozen.of_json(found.content)
    is_own = found.user_id == user.pk
    context: dict[str, Any] = {
        "report": found,
        "frozen": frozen,
        "hits": [(region, FrozenRegion.of_json(region.content)) for region in regions],
        "missing": frozen.hits - len(regions),
        "marks": selectors.report_marks(user, found),
        "may_delete": is_own or has_role(user, found.lab_id, at_least=Role.MANAGER),
    }
    return render(request, "retrieval/report.html", context)


@login_required
@require_GET
def report_again(request: HttpRequest, report_id: uuid.UUID) -> HttpResponse:
    """The same search asked again, and what has changed since."""
    user = user_of(request)
    found = selectors.report_get(user, report_id)
    context: dict[str, Any] = {"report": found, "frozen": Frozen.of_json(found.content)}
    try:
        result = services.report_again(report=found, user=user)
    except (ConflictError, InvalidInputError) as error:
        context["failure"] = error.message
    else:
        if isinstance(result, Job):
            context["job"] = result
        else:
            before = list(selectors.report_regions(user, found))
            context |= {
                "changes": selectors.report_changes(found, before, result),
                "result": result,
            }
    return render(request, "retrieval/report_again.html", context)


@login_required
@require_POST
def report_renew(request: HttpRequest, report_id: uuid.UUID) -> HttpResponse:
    """Keep the present answer to a report's search as a report of its own."""
    user = user_of(request)
    found = selectors.report_get(user, report_id)
    result = services.report_again(report=found, user=user)
    return _frozen(request, result, reverse("retrieval:report", args=[found.pk]))


@login_required
@require_POST
def report_delete(request: HttpRequest, report_id: uuid.UUID) -> HttpResponse:
    """Delete a report."""
    user = user_of(request)
    found = selectors.report_get(user, report_id)
    services.report_delete(report=found, user=user)
    about(request, found.pk)
    messages.success(request, "The report was deleted.")
    return redirect("retrieval:reports")


@login_required
@require_GET
def report_picture(request: HttpRequest, report_id: uuid.UUID, rank: int) -> HttpResponse:
    """A picture of the report: of the hit of that rank, 0 of what was searched with."""
    user = user_of(request)
    found = selectors.report_get(user, report_id)
    data = selectors.report_picture(user, found, rank)
    response = HttpResponse(data, content_type="image/jpeg")
    response["Cache-Control"] = f"private, max-age={_DAY_S}"
    return response


@login_required
@require_GET
def report_file(request: HttpRequest, report_id: uuid.UUID) -> HttpResponse:
    """The report as a PDF."""
    user = user_of(request)
    found = selectors.report_get(user, report_id)
    return report_response(request, user, found)


def _frozen(request: HttpRequest, found: SimilarResult | Job, back: str) -> HttpResponse:
    """The report; or a page that asks for it again while a job makes its pictures."""
    if isinstance(found, Job):
        messages.info(request, "The search is still being prepared. Try again in a moment.")
        return _led(request, back)
    made = report_keep(found, user_of(request))
    if isinstance(made, Job):
        context = {"job": made, "here": request.get_full_path(), "back": back}
        part = "retrieval/_report_made.html"
        template = part if wants_part(request) else "retrieval/report_made.html"
        return render(request, template, context, status=202)
    return _led(request, reverse("retrieval:report", args=[made.pk]))


def _led(request: HttpRequest, address: str) -> HttpResponse:
    """To another page, also where only a part of this one was asked for."""
    if wants_part(request):
        return HttpResponse(status=204, headers={"HX-Redirect": address})
    return redirect(address)
