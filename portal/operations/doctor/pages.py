"""Static files of the front end: built by Node.js, collected by Django."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings
from django.contrib.staticfiles.storage import staticfiles_storage

from portal.operations.doctor.findings import DoctorFinding, error, ok, warning

SCRIPT = "app.js"  # every page refers to it: without it none is shown
SOURCES = ("src", "css")  # next to what is built; container images lack them
COLLECT = "Run: manage.py collectstatic --no-input, then start the portal again."
BUILD = "Run: npm ci && npm run build"


def front_end() -> list[DoctorFinding]:
    """Check that styles and scripts are built from the present sources, and collected."""
    built = Path(settings.STATICFILES_DIRS[0])
    return [_check_collected(built, Path(settings.STATIC_ROOT)) or _check_built(built) or _WELL]


def front_end_problem() -> str:
    """Problem that prevents every page from being shown; empty if there is none."""
    finding = front_end()[0]
    return f"{finding.message} {finding.remedy}" if finding.level == "error" else ""


def _check_collected(built: Path, root: Path) -> DoctorFinding | None:
    """Check the collected static files, on servers only."""
    if not hasattr(staticfiles_storage, "manifest_name"):
        return None
    try:
        staticfiles_storage.url(SCRIPT)
    except ValueError:
        remedy = COLLECT if (built / SCRIPT).is_file() else f"{BUILD}. {COLLECT}"
        return error(
            _PART, "Styles and scripts are not collected, so no page can be shown.", remedy
        )
    if (built / SCRIPT).is_file() and not _is_same(built / SCRIPT, root / SCRIPT):
        return error(_PART, "The collected scripts come from another build.", COLLECT)
    return None


def _check_built(built: Path) -> DoctorFinding | None:
    script = built / SCRIPT
    sources = [
        path.stat().st_mtime
        for folder in SOURCES
        for path in (built.parent / folder).rglob("*")
        if path.is_file()
    ]
    if not script.is_file():
        return error(_PART, "Styles and scripts are not built.", BUILD) if sources else None
    if sources and max(sources) > script.stat().st_mtime:
        return warning(
            _PART, "The sources of styles and scripts have changed since the build.", BUILD
        )
    return None


def _is_same(first: Path, second: Path) -> bool:
    return second.is_file() and first.read_bytes() == second.read_bytes()


_PART = "pages"
_WELL = ok(_PART, "Styles and scripts are built and collected.")
