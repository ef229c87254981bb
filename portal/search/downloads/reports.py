"""Response with a report's PDF."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from portal.core.http.downloads import attachment
from portal.labs.models import User
from portal.search.models import Report
from portal.search.selectors.reports import (
    ReportRegionContent,
    report_interpretation,
    report_marks,
    report_regions,
)


def report_response(request: HttpRequest, user: User, report: Report) -> HttpResponse:
    """PDF of the parts of a report that the user may see now; never cached."""
    # ReportLab takes a tenth of a second
    from portal.search.downloads.pdf import ReportHit, report_pdf

    regions = report_regions(user, report).defer(None).defer("canvas__levels")
    hits = [
        ReportHit(
            region.rank,
            ReportRegionContent.from_json(region.content),
            bytes(region.picture) if region.picture else None,
        )
        for region in regions
    ]
    address = request.build_absolute_uri(reverse("search:report", args=[report.pk]))
    pdf = report_pdf(
        report,
        hits,
        marks=report_marks(user, report),
        interpretation=report_interpretation(user, report),
        address=address,
    )
    response = HttpResponse(pdf, content_type="application/pdf")
    name = f"similar-cases-{report.created_at:%Y-%m-%d}-{str(report.pk)[:8]}"
    response["Content-Disposition"] = attachment(name, ".pdf", fallback="similar-cases")
    response["Cache-Control"] = "private, no-store"
    return response
