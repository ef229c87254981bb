"""The pages that README shows."""

from __future__ import annotations

from collections.abc import Callable

from tests.browser.screenshots.studio import Studio


def cases(studio: Studio) -> None:
    """All cases of the lab."""
    studio.keep(studio.open("/cases/"), "cases")


def case(studio: Studio) -> None:
    """One of them, with its slide."""
    studio.keep(studio.open(f"/cases/{studio.portal.cases['D-1001']}/"), "case")


def viewer(studio: Studio) -> None:
    """A slide with ROIs, one of which is selected."""
    studio.keep(studio.viewer("D-1001", f"roi={studio.portal.roi}"), "viewer")


def similar(studio: Studio) -> None:
    """What is like an ROI."""
    path = f"/rois/{studio.portal.roi}/similar/"
    studio.keep(studio.open(path, ready="#similar a[href*='?roi=']"), "similar")


def browse(studio: Studio) -> None:
    """The map of all regions."""
    page = studio.open("/browse/", ready="[data-map-legend] li")
    page.locator("[data-map-legend] button").first.click()
    page.wait_for_timeout(800)
    studio.keep(page, "browse")


def mosaic(studio: Studio) -> None:
    """A mosaic and how it was made."""
    studio.keep(studio.open(f"/mosaics/{studio.portal.mosaic}/"), "mosaic")


def jobs(studio: Studio) -> None:
    """What runs and ran."""
    studio.keep(studio.open("/jobs/"), "jobs")


PAGES: dict[str, Callable[[Studio], None]] = {
    one.__name__: one for one in (cases, case, viewer, similar, browse, mosaic, jobs)
}
