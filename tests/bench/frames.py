"""The viewer among thousands of ROIs: ``python -m tests.bench.frames [--counts 1000 10000]``.

``--write`` puts it into the report. A slide with so many ROIs is opened in chromium, first with
nothing in its cache; then one pans, draws freehand, sets the corners of a polygon and turns the
wheel, click by click. Reported are the time until the page first shows text, tiles and ROIs, and
the time between frames of the browser while the hand moves. It needs a quiet machine.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Page

from tests.bench import report
from tests.bench.browser import VIEWPORT, new_page, portal_in_chromium
from tests.bench.imports import document
from tests.bench.measure import Row, Section
from tests.bench.portal import BenchPortal, portal_open
from tests.browser.quiet import wait_until_quiet

TITLE = "The viewer among ROIs"
COUNTS = (1_000, 10_000)
OPENED = 5  # times, each with an empty cache
MOVES, CORNERS, WHEEL_CLICKS = 240, 12, 8
MOVE_MS, CLICK_MS = 12, 700  # of the hand; single clicks, each at rest before the next
MAX_DURATION_MS = 120_000
BUDGET = "under 50 ms, 30 a second"

# Tiles are pictures on the canvases of the map, ROIs are lines: on them, or on a picture of
# thousands that is painted aside and seen when it is put there. The first frame after each.
_FIRST = """
window.first = {};
const lined = new WeakSet();
const seen = (what, on) => {
  if (what in window.first || !on.isConnected) return;
  window.first[what] = null;
  requestAnimationFrame(() => { window.first[what] = performance.now(); });
};
const plain = CanvasRenderingContext2D.prototype;
const { drawImage, stroke } = plain;
plain.drawImage = function (image, ...passed) {
  if (image instanceof HTMLImageElement || image instanceof ImageBitmap) {
    seen("tiles seen", this.canvas);
  } else if (lined.has(image)) {
    seen("ROIs seen", this.canvas);
  }
  return drawImage.call(this, image, ...passed);
};
plain.stroke = function (...passed) {
  lined.add(this.canvas);
  seen("ROIs seen", this.canvas);
  return stroke.apply(this, passed);
};
"""
_FRAMES = """() => {
  window.frames = null;
  let last = performance.now();
  const next = () => {
    const now = performance.now();
    window.frames?.push(now - last);
    last = now;
    requestAnimationFrame(next);
  };
  requestAnimationFrame(next);
}"""
_PAINTED = "() => window.first['tiles seen'] && window.first['ROIs seen']"
_TEXT = "() => performance.getEntriesByName('first-contentful-paint')[0].startTime"


def _around(page: Page, radius: float) -> None:
    x, y = _middle(page)
    for n in range(MOVES):
        turn = 2 * math.pi * n / MOVES
        page.mouse.move(x + radius * math.cos(turn), y + radius * math.sin(turn))
        if n == 0:
            page.mouse.down()
        page.wait_for_timeout(MOVE_MS)  # the pace of a hand
    page.mouse.up()


def _middle(page: Page) -> tuple[float, float]:
    box = page.locator("[data-map]").bounding_box()
    if box is None:
        raise RuntimeError("the map is not shown")
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def pan(page: Page) -> None:
    """Drags the image once around."""
    page.keyboard.press("m")
    page.keyboard.down("Space")
    _around(page, 160)
    page.keyboard.up("Space")


def freehand(page: Page) -> None:
    """A circle in one go."""
    page.keyboard.press("Shift+P")
    _around(page, 200)


def polygon(page: Page) -> None:
    """Corners around a circle, and Enter."""
    page.keyboard.press("p")
    x, y = _middle(page)
    for n in range(CORNERS):
        turn = 2 * math.pi * n / CORNERS
        page.mouse.move(x + 220 * math.cos(turn), y + 220 * math.sin(turn), steps=20)
        page.mouse.down()
        page.mouse.up()
    page.keyboard.press("Enter")


def wheel(page: Page) -> None:
    """Into the image and out again."""
    page.keyboard.press("m")
    page.mouse.move(*_middle(page))
    for n in range(WHEEL_CLICKS):
        page.mouse.wheel(0, -120 if n < WHEEL_CLICKS // 2 else 120)
        page.wait_for_timeout(CLICK_MS)


HANDS: dict[str, Callable[[Page], None]] = {
    "pan": pan,
    "freehand": freehand,
    "polygon": polygon,
    "single clicks of the wheel": wheel,
}


def first_content(open_page: Callable[[], Page], url: str, count: int) -> list[Row]:
    """Median times until a page shows text, tiles and ROIs, and its tools can be used.

    The tools do not wait for the ROIs of the window: where there are thousands these come after.
    """
    metrics: dict[str, list[float]] = {}
    for _ in range(OPENED):
        page = open_page()
        page.add_init_script(_FIRST)
        page.goto(url)
        page.wait_for_selector("[data-viewer][data-ready]", timeout=MAX_DURATION_MS)
        ready_ms = page.evaluate("performance.now()")
        page.wait_for_function(_PAINTED, timeout=MAX_DURATION_MS)
        seen: dict[str, Any] = page.evaluate("window.first")
        seen |= {"text seen": page.evaluate(_TEXT), "tools ready": ready_ms}
        for what, ms in seen.items():
            metrics.setdefault(what, []).append(ms)
        page.context.close()
    return [
        Row(f"{count:,} ROIs, {what}", float(np.median(metrics[what])), "ms")
        for what in ("text seen", "tiles seen", "tools ready", "ROIs seen")
    ]


def frames(page: Page, url: str, count: int) -> list[Row]:
    """Durations of frames while the pointer moves."""
    page.goto(url)
    page.wait_for_selector("[data-viewer][data-ready]", timeout=MAX_DURATION_MS)
    page.evaluate(_FRAMES)
    rows = []
    for what, hand in HANDS.items():
        wait_until_quiet(page)
        page.evaluate("() => { window.frames = []; }")
        hand(page)
        array = np.array(page.evaluate("window.frames"))
        page.keyboard.press("Escape")
        p50, p95 = np.percentile(array, (50, 95))
        title = f"{count:,} ROIs, {what}: p95 of {len(array)} frames"
        rows.append(
            Row(f"{title} (median {1000 / p50:.0f} a second)", float(p95), "ms", budget=BUDGET)
        )
    return rows


def measured(portal: BenchPortal, counts: Sequence[int]) -> Section:
    """A portal, a slide, so many ROIs, and a hand."""
    section = Section(
        TITLE,
        f"A slide with that many ROIs in headless chromium without a graphics card, "
        f"{VIEWPORT['width']} x {VIEWPORT['height']} px, at the portal as `make serve` starts it "
        "without its worker. Times from the navigation until the page shows text, tiles and ROIs, "
        "and until its tools can be used, which do not wait for the ROIs: medians of "
        f"{OPENED} with an empty cache. Then the time between frames while the pointer moves.",
    )
    path = f"/canvases/{portal.canvas.pk}/"
    for count in counts:
        fill(portal, count)  # before the browser: playwright's loop forbids the database
        with portal_in_chromium(portal) as (browser, base, key):
            open_page = partial(new_page, browser, base, key)
            section.rows += first_content(open_page, base + path, count)
            section.rows += frames(open_page(), base + path, count)
    return section


def fill(portal: BenchPortal, count: int) -> None:
    """Replace the ROIs by a number of squares, as QuPath writes detections."""
    from portal.annotations.models import Roi
    from portal.annotations.services.exchange import roi_import

    canvas = portal.canvas
    Roi.all_objects.filter(canvas=canvas).delete()
    features = document(count, width_px=canvas.width_px, height_px=canvas.height_px)
    roi_import(canvas=canvas, user=portal.user, document=features)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--counts", type=int, nargs="+", default=COUNTS)
    parser.add_argument("--write", action="store_true", help="into docs/benchmarks.md")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        section = measured(portal_open(Path(name)), options.counts)
    report.tell(section, after="ROIs per window", write=options.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
