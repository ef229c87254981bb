"""Reports as files."""

from portal.retrieval.downloads.pdf import ReportHit, report_pdf
from portal.retrieval.downloads.whole import report_response

__all__ = ["ReportHit", "report_pdf", "report_response"]
