"""The pages that the guide shows."""

from __future__ import annotations

from collections.abc import Callable

from tests.browser.quiet import wait_until_quiet
from tests.browser.screenshots.studio import Studio


def cases(studio: Studio) -> None:
    """All cases of the lab."""
    studio.guide(studio.open("/cases/"), "cases")


def case(studio: Studio) -> None:
    """One of them, with its slide."""
    studio.guide(studio.open(f"/cases/{studio.portal.cases['D-1001']}/"), "case")


def upload(studio: Studio) -> None:
    """Files for a case."""
    case_id = studio.portal.cases["D-1001"]
    studio.guide(studio.open(f"/cases/{case_id}/upload/", ready="[data-upload]"), "upload")


def viewer(studio: Studio) -> None:
    """A slide with ROIs, one of which is selected."""
    studio.guide(studio.viewer("D-1001", f"roi={studio.portal.roi}"), "viewer")


def similar(studio: Studio) -> None:
    """Similar regions of an ROI."""
    path = f"/rois/{studio.portal.roi}/similar/"
    studio.guide(studio.open(path, ready="#similar a[href*='?roi=']"), "similar")


def browse(studio: Studio) -> None:
    """The map of all regions."""
    page = studio.open("/browse/", ready="[data-map-legend] li")
    page.locator("[data-map-legend] button").first.click()
    wait_until_quiet(page)
    studio.guide(page, "browse")


def mosaic(studio: Studio) -> None:
    """A mosaic and how it was made."""
    studio.guide(studio.open(f"/mosaics/{studio.portal.mosaic}/"), "mosaic")


def jobs(studio: Studio) -> None:
    """Running and finished jobs."""
    studio.guide(studio.open("/jobs/"), "jobs")


def lab(studio: Studio) -> None:
    """The pages of a lab: its people, and what arrives."""
    studio.guide(studio.open("/lab/", "manager"), "members")
    studio.guide(studio.open("/lab/intake/", "manager"), "intake")


def tokens(studio: Studio) -> None:
    """Tokens for programs."""
    studio.guide(studio.open("/account/tokens/"), "tokens")


PAGES: dict[str, Callable[[Studio], None]] = {
    scene.__name__: scene
    for scene in (cases, case, upload, viewer, similar, browse, mosaic, jobs, lab, tokens)
}
