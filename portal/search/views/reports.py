"""Pages: reports of searches."""

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

from portal.annotations.selectors.rois import roi_get
from portal.archive.models import Case
from portal.archive.selectors.cases import case_get
from portal.core.errors import (
    ConflictError,
    InvalidInputError,
    NotFoundError,
    StaleVersionError,
)
from portal.core.http.acting import set_audited_id
from portal.core.http.audit_rules import (
    HOUR_S,
    MINUTE_S,
    AuditRule,
    audited,
    not_audited,
    rejections,
)
from portal.core.http.htmx import wants_part
from portal.jobs.models import Job
from portal.labs.models import Role
from portal.labs.requests import user_of
from portal.labs.rules import has_role
from portal.search.downloads.reports import report_response
from portal.search.forms import SimilarForm
from portal.search.models import Report
from portal.search.selectors import reports as report_selectors
from portal.search.selectors.queries import query_get
from portal.search.selectors.reports import (
    ReportContent,
    ReportRegionContent,
    report_changes,
    report_get,
    report_interpretations,
    report_list,
    report_marks,
    report_regions,
)
from portal.search.selectors.similar_cases import SimilarResult
from portal.search.services import reports as report_services
from portal.search.services.similar_cases import query_search, roi_search
from portal.search.thumbnails.reports import report_save

_PAGE = 24  # reports per page: three rows of a wide screen
_OF_CASE = 5  # reports shown on a case's page
MAX_VERSIONS = 50  # of an interpretation, on the page of a report
_DAY_S = 24 * 3600  # seconds of a day: a report's pictures never change


@audited(GET=AuditRule("report.listed", every_s=HOUR_S))
@login_required
@require_GET
def reports(request: HttpRequest) -> HttpResponse:
    """List the reports of the user's labs; ``?case=`` restricts them to one case."""
    user, case = user_of(request), None
    try:
        case_id = uuid.UUID(request.GET["case"]) if request.GET.get("case") else None
    except ValueError:
        raise NotFoundError("There is no such case.") from None
    if case_id is not None:
        case = case_get(user=user, case_id=case_id)
    page = Paginator(report_list(user, case_id=case_id), _PAGE)
    context = {"page_obj": page.get_page(request.GET.get("page")), "case": case}
    return render(request, "search/reports.html", context)


def case_section(request: HttpRequest, case: Case) -> str:
    """Newest reports of a case, for its page."""
    rows = report_list(user_of(request), case_id=case.pk)
    reports = list(rows[: _OF_CASE + 1])
    if not reports:
        return ""
    context = {"case": case, "reports": reports[:_OF_CASE], "has_more": len(reports) > _OF_CASE}
    return render_to_string("search/_case_section.html", context, request)


@audited(POST=rejections("report.created", "roi", "roi_id"))
@login_required
@require_POST
def report_roi(request: HttpRequest, roi_id: uuid.UUID) -> HttpResponse:
    """Create a report of a search with an ROI; the URL holds the options."""
    user, form = user_of(request), SimilarForm(request.GET)
    roi = roi_get(user, roi_id, with_shared=False)
    outcome = roi_search(
        roi=roi, user=user, options=form.options, use_judgements=form.goes_by_marks
    )
    return _report_response(request, outcome, reverse("search:similar", args=[roi.pk]))


@audited(POST=rejections("report.created", "query", "query_id"))
@login_required
@require_POST
def report_query(request: HttpRequest, query_id: uuid.UUID) -> HttpResponse:
    """Create a report of a search with a query."""
    user, form = user_of(request), SimilarForm(request.GET)
    query = query_get(user, query_id)
    outcome = query_search(query=query, user=user, options=form.options)
    return _report_response(request, outcome, reverse("search:query", args=[query.pk]))


@audited(GET=AuditRule("report.viewed", "report", "report_id", every_s=MINUTE_S))
@login_required
@require_GET
def report(request: HttpRequest, report_id: uuid.UUID) -> HttpResponse:
    """Show a report."""
    return _report_page(request, report_get(user_of(request), report_id))


def _report_page(
    request: HttpRequest, report: Report, *, draft: str | None = None, status: int = 200
) -> HttpResponse:
    """Page of a report; ``draft``: an interpretation that could not be saved."""
    user = user_of(request)
    regions = list(report_regions(user, report))
    content = ReportContent.from_json(report.content)
    is_own = report.user_id == user.pk
    context: dict[str, Any] = {
        "report": report,
        "content": content,
        "hits": [(region, ReportRegionContent.from_json(region.content)) for region in regions],
        "missing": content.hits - len(regions),
        "marks": report_marks(user, report),
        "draft": draft,
        "interpretations": list(report_interpretations(user, report)[:MAX_VERSIONS]),
        "may_interpret": is_own or has_role(user, report.lab_id, at_least=Role.ANNOTATOR),
        "may_delete": is_own or has_role(user, report.lab_id, at_least=Role.MANAGER),
    }
    return render(request, "search/report.html", context, status=status)


@audited(GET=AuditRule("report.repeated", "report", "report_id", every_s=MINUTE_S))
@login_required
@require_GET
def report_again(request: HttpRequest, report_id: uuid.UUID) -> HttpResponse:
    """Repeat the search of a report and show the changes."""
    user = user_of(request)
    report = report_get(user, report_id)
    context: dict[str, Any] = {"report": report, "content": ReportContent.from_json(report.content)}
    try:
        result = report_services.report_repeat(report=report, user=user)
    except (ConflictError, InvalidInputError) as error:
        context["failure"] = error.message
    else:
        if isinstance(result, Job):
            context["job"] = result
        else:
            before = list(report_regions(user, report))
            context |= {
                "changes": report_changes(report, before, result),
                "result": result,
            }
    return render(request, "search/report_again.html", context)


@audited(POST=rejections("report.created", "report", "report_id"))
@login_required
@require_POST
def report_renew(request: HttpRequest, report_id: uuid.UUID) -> HttpResponse:
    """Create a report of the repeated search."""
    user = user_of(request)
    report = report_get(user, report_id)
    result = report_services.report_repeat(report=report, user=user)
    return _report_response(request, result, reverse("search:report", args=[report.pk]))


@audited(POST=rejections("report.interpreted", "report", "report_id"))
@login_required
@require_POST
def report_interpret(request: HttpRequest, report_id: uuid.UUID) -> HttpResponse:
    """Write or change the interpretation of a report."""
    user = user_of(request)
    report = report_get(user, report_id)
    text, shown_version = request.POST.get("text", ""), request.POST.get("version", "")
    version = int(shown_version) if shown_version.isdecimal() else 0
    try:
        report_services.report_interpret(report=report, user=user, text=text, version=version)
    except (InvalidInputError, StaleVersionError) as error:
        messages.error(request, error.message)
        return _report_page(request, report, draft=text, status=error.status)
    messages.success(request, "The interpretation was saved.")
    return redirect("search:report", report_id=report.pk)


@audited(POST=rejections("report.deleted", "report", "report_id"))
@login_required
@require_POST
def report_delete(request: HttpRequest, report_id: uuid.UUID) -> HttpResponse:
    user = user_of(request)
    report = report_get(user, report_id)
    report_services.report_delete(report=report, user=user)
    set_audited_id(request, report.pk)
    messages.success(request, "The report was deleted.")
    return redirect("search:reports")


@not_audited("part of an audited page")
@login_required
@require_GET
def report_picture(request: HttpRequest, report_id: uuid.UUID, rank: int) -> HttpResponse:
    """Picture of the hit of a rank, or of the query for rank 0."""
    user = user_of(request)
    report = report_get(user, report_id)
    data = report_selectors.report_picture(user, report, rank)
    response = HttpResponse(data, content_type="image/jpeg")
    response["Cache-Control"] = f"private, max-age={_DAY_S}"
    return response


@audited(GET=AuditRule("report.downloaded", "report", "report_id"))
@login_required
@require_GET
def report_file(request: HttpRequest, report_id: uuid.UUID) -> HttpResponse:
    """Download the report as a PDF."""
    user = user_of(request)
    report = report_get(user, report_id)
    return report_response(request, user, report)


def _report_response(request: HttpRequest, outcome: SimilarResult | Job, back: str) -> HttpResponse:
    """Redirect to the report, or poll while a job makes its pictures."""
    if isinstance(outcome, Job):
        messages.info(request, "The search is still being prepared. Try again in a moment.")
        return _redirect_to(request, back)
    text = request.POST.get("interpretation", "")
    report = report_save(outcome, user_of(request), interpretation=text)
    if isinstance(report, Job):
        context = {"job": report, "here": request.get_full_path(), "back": back, "text": text}
        part = "search/_report_made.html"
        template = part if wants_part(request) else "search/report_made.html"
        return render(request, template, context, status=202)
    return _redirect_to(request, reverse("search:report", args=[report.pk]))


def _redirect_to(request: HttpRequest, address: str) -> HttpResponse:
    """Redirect to another page, also for a request by htmx."""
    if wants_part(request):
        return HttpResponse(status=204, headers={"HX-Redirect": address})
    return redirect(address)
