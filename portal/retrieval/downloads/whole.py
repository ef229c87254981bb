"""A report's PDF as an answer: of what its reader may see of it now."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from portal.core.http.downloads import attachment
from portal.labs.models import User
from portal.retrieval.downloads.pdf import ReportHit, report_pdf
from portal.retrieval.models import Report
from portal.retrieval.selectors import FrozenRegion, report_marks, report_regions


def report_response(request: HttpRequest, user: User, report: Report) -> HttpResponse:
    """The report, found visible by the caller, as a file of its own name; never cached."""
    regions = report_regions(user, report).defer(None).defer("canvas__levels")
    hits = [
        ReportHit(
            region.rank,
            FrozenRegion.of_json(region.content),
            bytes(region.picture) if region.picture else None,
        )
        for region in regions
    ]
    address = request.build_absolute_uri(reverse("retrieval:report", args=[report.pk]))
    made = report_pdf(report, hits, marks=report_marks(user, report), address=address)
    response = HttpResponse(made, content_type="application/pdf")
    name = f"similar-cases-{report.created_at:%Y-%m-%d}-{str(report.pk)[:8]}"
    response["Content-Disposition"] = attachment(name, ".pdf", fallback="similar-cases")
    response["Cache-Control"] = "private, no-store"
    return response
