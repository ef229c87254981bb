"""The viewer as a person handles it: points are level-0 pixels of the canvas."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qs

import numpy as np
from PIL import Image
from playwright.sync_api import expect

Point = tuple[float, float]
SAVE_TIMEOUT_MS = 15_000
DOUBLE_CLICK_OVER = "() => new Promise((done) => setTimeout(done, 300))"
SETTLED = """() => new Promise((done) => {
  const redrawn = (next) => requestAnimationFrame(() => requestAnimationFrame(next));
  setTimeout(() => redrawn(() => setTimeout(() => redrawn(done), 400)), 250);
})"""
"""Animations last 180 ms, the address follows 300 ms later: the page's own clock, however busy."""


def settle(page: Any) -> None:
    """Until the page has done what the last key or click began, its address included.

    What a page asks the server for is not waited for: wait for what it shows then.
    """
    page.evaluate(SETTLED)


def single_click(page: Any, x: float, y: float) -> None:
    """Click and let OpenLayers' time for a double click (250 ms) pass on the page's own clock."""
    page.mouse.click(x, y)
    page.evaluate(DOUBLE_CLICK_OVER)


def query_of(page: Any) -> dict[str, list[str]]:
    """The parameters of the page's address once it has settled."""
    settle(page)
    return parse_qs(str(page.evaluate("location.search")).removeprefix("?"))


class ViewerPage:
    """One tab with the viewer of one canvas."""

    def __init__(self, page: Any, base: str, canvas: Any, database: Any) -> None:
        self.page, self.base, self.canvas, self.database = page, base, canvas, database
        self.problems: list[str] = []
        page.on("pageerror", lambda error: self.problems.append(str(error)))

    def open(self, query: str = "") -> None:
        """Go there and wait until image, ROIs and link are in place."""
        self.page.goto(f"{self.base}/canvases/{self.canvas.pk}/?{query}")
        self.page.wait_for_selector("[data-viewer][data-ready]", timeout=30_000)

    def centred(self, scale: float = 2.0) -> ViewerPage:
        """Open the middle of the canvas at ``scale`` level-0 pixels per screen pixel."""
        x, y = self.canvas.width_px / 2, self.canvas.height_px / 2
        self.open(f"x={x}&y={y}&z={scale}")
        return self

    def link(self) -> dict[str, str]:
        """The parameters of the page's address once it has settled."""
        return {key: value[0] for key, value in query_of(self.page).items()}

    def wait_exact(self) -> None:
        """Wait until the requested frame of a video is on screen."""
        self.page.wait_for_selector("[data-timeline]:not([data-loading])")
        settle(self.page)

    def places(self, points: Iterable[Point]) -> list[Point]:
        """Screen positions of points of the canvas (no rotation)."""
        link = self.link()
        box = self.page.locator("[data-map]").bounding_box()
        x, y, scale = (float(link[name]) for name in ("x", "y", "z"))
        left, top = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        return [(left + (at[0] - x) / scale, top + (at[1] - y) / scale) for at in points]

    def click(self, x: float, y: float) -> None:
        """Click a place of the screen once; never the second half of a double click."""
        single_click(self.page, x, y)

    def key(self, name: str) -> None:
        """Press a key."""
        self.page.keyboard.press(name)

    def polygon(self, points: Iterable[Point]) -> None:
        """P, a click for each corner, Enter."""
        places = self.places(points)
        self.key("p")
        for place in places:
            self.click(*place)
        self.key("Enter")

    def drag(self, points: Iterable[Point]) -> None:
        """Press at the first point, move along the others, let go."""
        first, *others = self.places(points)
        self.page.mouse.move(*first)
        self.page.mouse.down()
        for place in others:
            self.page.mouse.move(*place, steps=4)
        self.page.mouse.up()

    def wait_saved(self) -> None:
        """Until the page says that everything is saved (a change takes a moment to be noticed)."""
        settle(self.page)
        self.wait_save_state("saved")

    def wait_save_state(self, state: str) -> None:
        """Until the indicator shows ``state``."""
        self.page.wait_for_selector(f"[data-save-state={state}]", timeout=SAVE_TIMEOUT_MS)

    def tab(self, name: str) -> Any:
        """Open the page "Edit", "Properties", "Comments" or "History" of the selected region."""
        self.page.get_by_role("tab", name=name).click()
        return self.page.get_by_role("tabpanel", name=name)

    def text(self, selector: str) -> str:
        """The text of an element."""
        return str(self.page.locator(selector).inner_text())

    def count(self) -> int:
        """The number of ROIs the panel tells."""
        return int(re.sub(r"\D", "", self.text("[data-roi-count]")) or 0)

    def wait_count(self, count: int) -> None:
        """Until the panel tells so many."""
        self.wait_text("[data-roi-count]", str(count))

    def wait_text(self, selector: str, text: str | re.Pattern[str]) -> None:
        """Until an element says this. (No ``wait_for_function``: the pages forbid eval.)"""
        expect(self.page.locator(selector)).to_have_text(text)

    def colours(self, points: Iterable[Point]) -> list[tuple[int, ...]]:
        """The colours on screen at points of the canvas."""
        places = self.places(points)
        picture = np.asarray(Image.open(io.BytesIO(self.page.screenshot())).convert("RGB"))
        return [tuple(picture[round(y), round(x)].tolist()) for x, y in places]

    def stored(self) -> list[Any]:
        """The live ROIs of the canvas as the database has them."""
        from portal.annotations.models import Roi

        with self.database:
            return list(Roi.objects.live().filter(canvas=self.canvas).order_by("created_at"))
