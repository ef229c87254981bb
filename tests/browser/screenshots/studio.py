"""A browser in which a person of the portal looks at something, and where the pictures go."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.chromium import FLAGS, executable
from tests.browser.quiet import wait_until_quiet
from tests.browser.screenshots.portal import Portal

LAPTOP, LARGE = (1366, 768), (1920, 1080)
TABLET = (820, 1180)
ENLARGED = {200: (683, 384), 400: (342, 192)}
"""Window size of a laptop in CSS pixels, by browser zoom in percent."""
QUALITY = 84  # of WebP: text stays sharp, and a picture of tissue takes a fifth of its PNG


@dataclass
class Studio:
    """Pictures are taken of pages of this portal, and kept in ``out``."""

    browser: Browser
    portal: Portal
    out: Path
    contexts: list[Any] = field(default_factory=list)

    def open(
        self,
        path: str,
        person: str = "pathologist",
        *,
        size: tuple[int, int] = LAPTOP,
        scheme: str = "light",
        ready: str = "main",
        **options: Any,
    ) -> Page:
        """A tab of that person on a page, once ``ready`` is there."""
        width, height = size
        context = self.browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, **options
        )
        self.contexts.append(context)
        session = self.portal.sessions[person]
        context.add_cookies([{"name": "sessionid", "value": session, "url": self.portal.base}])
        page: Page = context.new_page()
        page.goto(self.portal.base + path)
        page.wait_for_selector(ready, timeout=60_000, state="attached")
        wait_until_quiet(page)
        return page

    def viewer(self, canvas: str, query: str = "", **options: Any) -> Page:
        """The viewer of a canvas of this name."""
        path = f"/canvases/{self.portal.canvases[canvas]}/?{query}"
        return self.open(path, ready="[data-viewer][data-ready]", **options)

    def guide(self, page: Page, name: str) -> None:
        """A picture of the guide."""
        self.keep(page, f"guide/pictures/{name}")

    def keep(self, page: Page, name: str) -> None:
        """The picture of what is in the window."""
        picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
        path = self.out / f"{name}.webp"
        path.parent.mkdir(parents=True, exist_ok=True)
        picture.save(path, quality=QUALITY, method=6)
        print(f"{path.relative_to(self.out)}  {path.stat().st_size // 1024} KB", flush=True)

    def clear(self) -> None:
        """Closes what was opened."""
        for context in self.contexts:
            context.close()
        self.contexts.clear()


@contextmanager
def studio(portal: Portal, out: Path) -> Iterator[Studio]:
    """A browser for the time of the block."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable(), args=FLAGS)
        yield Studio(browser, portal, out)
        browser.close()
