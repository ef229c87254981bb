"""The states that a page can be in, besides its best: each is taken, to be looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tests.browser.quiet import wait_until_quiet
from tests.browser.screenshots.studio import ENLARGED, LARGE, TABLET, Studio
from tests.browser.viewer_page import single_click

Point = tuple[float, float]
FOLDER = "screenshots/states"
IN_GUIDE = {
    "labels-light": "labels",
    "mosaic": "mosaic-frames",
    "review-light": "review",
    "video": "video",
}
"""States that the guide shows, by the names of its pictures."""
SQUARE: tuple[Point, ...] = ((-160, -110), (150, -130), (170, 90), (20, 140), (-150, 100))
"""From the middle of the image on screen, in pixels of it."""


def clicks(page: Any, points: Iterable[Point]) -> None:
    """One after the other, from the middle of the image."""
    box = page.locator("[data-map]").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    for right, down in points:
        single_click(page, x + right, y + down)


def polygon(page: Any, points: Iterable[Point] = SQUARE) -> None:
    """Drawn by hand."""
    page.keyboard.press("p")
    clicks(page, points)
    page.keyboard.press("Enter")


def keep(studio: Studio, page: Any, name: str) -> None:
    """The picture, once what follows has settled."""
    wait_until_quiet(page)
    if name in IN_GUIDE:
        studio.guide(page, IN_GUIDE[name])
    else:
        studio.keep(page, f"{FOLDER}/{name}")


def empty(studio: Studio) -> None:
    """A lab that has nothing yet: its cases, its map, its work."""
    for path, name in (("/cases/", "cases"), ("/browse/", "browse"), ("/jobs/", "jobs")):
        keep(studio, studio.open(path, "newcomer"), f"empty-{name}")
    keep(studio, studio.viewer("video", person="endoscopist"), "empty-video")


def crowded(studio: Studio) -> None:
    """Ten thousand ROIs: all of the slide, and near."""
    page = studio.viewer("D-1003")
    keep(studio, page, "crowded")
    for _ in range(3):
        page.keyboard.press("+")
        wait_until_quiet(page)
    keep(studio, page, "crowded-near")


def draft(studio: Studio) -> None:
    """An outline left open for another tool: kept, dashed."""
    page = studio.viewer("D-1002")
    page.keyboard.press("p")
    clicks(page, SQUARE[:4])
    page.keyboard.press("m")
    keep(studio, page, "draft")


def offline(studio: Studio) -> None:
    """No network: what was drawn waits on this computer."""
    page = studio.viewer("D-1002")
    page.context.set_offline(True)
    polygon(page)
    page.wait_for_selector("[data-save-state=retry]", timeout=30_000)
    keep(studio, page, "offline")
    page.locator("[data-save-details]").click()
    keep(studio, page, "offline-waiting")


def conflict(studio: Studio) -> None:
    """Two people changed one ROI: mine, theirs, field by field."""
    mine = studio.viewer("D-1001", f"roi={studio.portal.roi}")
    mine.route("**/live/**", lambda route: route.abort())  # has not heard of it yet
    theirs = studio.viewer("D-1001", f"roi={studio.portal.roi}", person="manager")
    for page, name, turn in ((theirs, "Invasive front", "Shift+E"), (mine, "Front", "Shift+Q")):
        page.fill("#roi-name", name)
        page.press("#roi-name", "Enter")
        page.locator("[data-map]").focus()
        page.keyboard.press(turn)
        wait_until_quiet(page)
    mine.wait_for_selector("[data-dialog=conflict][open]", timeout=30_000)
    keep(studio, mine, "conflict")


def history(studio: Studio) -> None:
    """Show the history of an ROI."""
    page = studio.viewer("D-1001", f"roi={studio.portal.roi}")
    page.get_by_role("tab", name="History").click()
    page.locator("#roi-history button").first.wait_for()
    keep(studio, page, "history")


def error(studio: Studio) -> None:
    """Tiles that do not come, and a page that is not there."""
    page = studio.open("/cases/")
    page.route("**/tiles/**", lambda route: route.abort())
    page.goto(f"{studio.portal.base}/canvases/{studio.portal.canvases['D-1001']}/")
    page.wait_for_selector("[data-tile-errors]:not([hidden])", timeout=60_000)
    keep(studio, page, "error-tiles")
    page.goto(f"{studio.portal.base}/no/such/page/")
    keep(studio, page, "error-not-found")


def selected(studio: Studio) -> None:
    """Several ROIs at once, and the sheet of keys."""
    page = studio.viewer("D-1001")
    page.keyboard.press("Control+a")
    keep(studio, page, "selected")
    page.keyboard.press("?")
    keep(studio, page, "keys")


def video(studio: Studio) -> None:
    """A frame with an ROI on it."""
    page = studio.viewer("video", person="endoscopist")
    page.keyboard.press("v")
    page.keyboard.press("o")
    page.keyboard.press("Enter")
    keep(studio, page, "video")
    page.keyboard.press("Delete")
    page.wait_for_selector("[data-save-state=saved]")


def stitched(studio: Studio) -> None:
    """A mosaic and the frames that saw a place of it."""
    page = studio.viewer("mosaic", person="endoscopist")
    page.keyboard.press("Shift+W")
    clicks(page, [(0, 0)])
    keep(studio, page, "mosaic")


def compare(studio: Studio) -> None:
    """Two synchronised images, and two by two with a video and its mosaic; dark as well."""
    ids = studio.portal.canvases
    two, ready = f"with={ids['D-1002']}", "[data-compare][data-ready]"
    four = f"{two}&with={ids['video']}&with={ids['mosaic']}"
    for size, scheme, name in ((None, "light", "light"), (LARGE, "dark", "large-dark")):
        for number, query in (("two", two), ("four", four)):
            path = f"/canvases/{ids['D-1001']}/compare/?{query}"
            more = {"size": size} if size else {}
            page = studio.open(path, ready=ready, scheme=scheme, **more)
            keep(studio, page, f"compare-{number}-{name}")


def dark(studio: Studio) -> None:
    """The pages of README, dark."""
    keep(studio, studio.open("/cases/", scheme="dark"), "dark-cases")
    roi = f"roi={studio.portal.roi}"
    keep(studio, studio.viewer("D-1001", roi, scheme="dark"), "dark-viewer")
    page = studio.open("/browse/", scheme="dark", ready="[data-map-legend] li")
    keep(studio, page, "dark-browse")
    keep(studio, studio.open("/jobs/", scheme="dark"), "dark-jobs")


def large(studio: Studio) -> None:
    """A large window."""
    roi = f"roi={studio.portal.roi}"
    keep(studio, studio.viewer("D-1001", roi, size=LARGE), "large-viewer")
    page = studio.open("/browse/", size=LARGE, ready="[data-map-legend] li")
    keep(studio, page, "large-browse")


def tablet(studio: Studio) -> None:
    """Held upright, with fingers."""
    touch = {"size": TABLET, "has_touch": True, "is_mobile": True}
    roi = f"roi={studio.portal.roi}"
    keep(studio, studio.viewer("D-1001", roi, **touch), "tablet-viewer")
    keep(studio, studio.viewer("video", person="endoscopist", **touch), "tablet-video")
    keep(studio, studio.open("/cases/", **touch), "tablet-cases")


def enlarged(studio: Studio) -> None:
    """A laptop's window at 200 and at 400 percent."""
    for percent, size in ENLARGED.items():
        page = studio.viewer("D-1001", f"roi={studio.portal.roi}", size=size)
        keep(studio, page, f"zoom-{percent}")


STATES: dict[str, Callable[[Studio], None]] = {
    scene.__name__: scene
    for scene in (
        *(empty, crowded, draft, offline, conflict, history, error, selected, video, stitched),
        *(compare, dark, large, tablet, enlarged),
    )
}
