"""The states of pages one works on: review, labels, import, tracks, suggestions, the trash."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.browser.quiet import wait_until_quiet
from tests.browser.screenshots.states import keep, polygon
from tests.browser.screenshots.studio import LARGE, Studio

BOTH = ((None, "light", "light"), (None, "dark", "dark"), (LARGE, "light", "large"))
"""Size, colours and how the picture is called: a laptop's window, and a large one."""
DIALOG = "[data-dialog=import]"
WORKED_MS = 180_000  # a job behind others


def _each(studio: Studio, path: str, name: str, **more: Any) -> None:
    for size, scheme, suffix in BOTH:
        sized = {"size": size} if size else {}
        keep(studio, studio.open(path, scheme=scheme, **sized, **more), f"{name}-{suffix}")


def review(studio: Studio) -> None:
    """Regions that wait for a verdict, the second of them by its key."""
    page = studio.viewer("D-1001")
    page.keyboard.press("Control+a")
    wait_until_quiet(page)
    page.evaluate(_SUBMIT, studio.portal.canvases["D-1001"])
    for size, scheme, suffix in BOTH:
        sized = {"size": size} if size else {}
        page = studio.open("/review/", "manager", scheme=scheme, ready="[data-review]", **sized)
        page.keyboard.press("ArrowDown")
        keep(studio, page, f"review-{suffix}")


def labels(studio: Studio) -> None:
    """The lab's vocabulary."""
    _each(studio, "/lab/labels/", "labels", person="manager")


def importing(studio: Studio) -> None:
    """A file previewed: repaired, refused, of classes that are there and that are not."""
    for size, scheme, suffix in BOTH:
        sized = {"size": size} if size else {}
        page = studio.viewer("D-1002", scheme=scheme, **sized)
        page.click("[data-import-open]")
        keep(studio, page, f"import-choose-{suffix}")
        file = {"name": "outlines.geojson", "mimeType": "application/json", "buffer": _document()}
        page.set_input_files("[data-import-file]", file)
        page.wait_for_selector(f"{DIALOG}[data-step=preview]", timeout=WORKED_MS)
        keep(studio, page, f"import-preview-{suffix}")
    page.click("[data-import-go]")
    page.wait_for_selector(f"{DIALOG}[data-step=done]", timeout=WORKED_MS)
    keep(studio, page, "import-done")
    page.click("[data-import-undo]")
    page.wait_for_selector(f"{DIALOG}:not([open])", state="attached", timeout=WORKED_MS)
    keep(studio, page, "import-undone")


def track(studio: Studio) -> None:
    """An ROI of a video on other frames."""
    for size, scheme, suffix in BOTH:
        sized = {"size": size} if size else {}
        page = studio.viewer("video", person="endoscopist", scheme=scheme, **sized)
        page.keyboard.press("o")
        page.keyboard.press("Enter")
        page.wait_for_selector("[data-save-state=saved]")
        keep(studio, page, f"track-{suffix}")
        page.keyboard.press("Delete")
        page.wait_for_selector("[data-save-state=saved]")


def suggestion(studio: Studio) -> None:
    """Outline this, dashed; and the place most like an ROI."""
    for size, scheme, suffix in BOTH:
        sized = {"size": size} if size else {}
        page = studio.viewer("D-1002", scheme=scheme, **sized)
        page.keyboard.press("Shift+H")
        box = page.locator("[data-map]").bounding_box()
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.wait_for_selector("[data-suggestion]:not([hidden])", timeout=WORKED_MS)
        keep(studio, page, f"suggestion-{suffix}")
        page = studio.viewer("D-1001", f"roi={studio.portal.roi}", scheme=scheme, **sized)
        page.keyboard.press("Shift+N")
        page.wait_for_selector("[data-similar-next]:enabled", timeout=WORKED_MS)
        keep(studio, page, f"find-similar-{suffix}")


def rename(studio: Studio) -> None:
    """Another title for a slide."""
    for size, scheme, suffix in BOTH:
        sized = {"size": size} if size else {}
        page = studio.open(f"/cases/{studio.portal.cases['D-1001']}/", scheme=scheme, **sized)
        page.get_by_text("Rename").first.click()
        keep(studio, page, f"rename-{suffix}")


def trash(studio: Studio) -> None:
    """Deleted objects that can be restored."""
    page = studio.viewer("D-1002")
    polygon(page)
    page.wait_for_selector("[data-save-state=saved]")
    page.keyboard.press("Delete")
    wait_until_quiet(page)
    page.wait_for_selector("[data-save-state=saved]")
    _each(studio, "/trash/regions/", "trash", person="manager")


_SUBMIT = """async (canvas) => {
  const list = await (await fetch(`/api/v1/rois/?canvas=${canvas}`)).json();
  const rois = list.results.slice(0, 6).map(({ id, version }) => ({ id, version }));
  const token = document.cookie.match(/csrftoken=([^;]+)/)?.[1] ?? "";
  await fetch("/api/v1/rois/review/", {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-CSRFToken": token },
    body: JSON.stringify({ state: "submitted", rois }),
  });
}"""


def _document() -> bytes:
    """One feature per outcome: unchanged, repaired, clipped, refused; two classes, one new."""

    def one(rings: list[Any], kind: str = "Polygon", **more: Any) -> dict[str, Any]:
        geometry = {"type": kind, "coordinates": rings}
        properties = {"objectType": "annotation"} | more
        return {"type": "Feature", "geometry": geometry, "properties": properties}

    def square(x: float, y: float, side: float) -> list[list[float]]:
        return [[x, y], [x + side, y], [x + side, y + side], [x, y + side], [x, y]]

    tumor, odd = (
        {"name": "Tumor", "color": [200, 0, 0]},
        {"name": "Necrosis, old", "color": [9, 9, 9]},
    )
    features = [
        one([square(40 + 130 * n, 60, 90)], classification=tumor, name=f"Gland {n + 1}")
        for n in range(4)
    ]
    features += [one([square(60 + 150 * n, 260, 110)], classification=odd) for n in range(3)]
    features += [
        one([[[60, 500], [200, 640], [200, 500], [60, 640], [60, 500]]], classification=tumor),
        one([square(-40, 400, 90)], classification=odd),
        one([[[5, 5], [9, 9], [5, 5], [5, 5]]]),
        one([[[1, 1], ["x", 2], [3, 3], [1, 1]]]),
        one([square(300, 500, 40)], "Circle"),
    ]
    return json.dumps({"type": "FeatureCollection", "features": features}).encode()


WORK: dict[str, Callable[[Studio], None]] = {
    scene.__name__: scene for scene in (review, labels, importing, track, suggestion, rename, trash)
}
