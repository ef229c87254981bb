"""OpenSeadragon on a page of another host shows a slide by IIIF, with a token and no cookie."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from ml.imaging.slides.slide import open_slide
from portal.labs.models import TokenScope
from portal.labs.services.tokens import token_create
from tests.browser.conftest import SLIDE_SIZE
from tests.live_servers import DATABASE

pytestmark = pytest.mark.browser
ROOT = Path(__file__).resolve().parents[3]
LIBRARY = ROOT / "node_modules" / "openseadragon" / "build" / "openseadragon" / "openseadragon.js"
PAGE = b"""<!doctype html><body style="margin:0">
<div id="viewer" style="width:600px;height:400px"></div>"""
OPENED = """async ([address, token]) => {
  const headers = { Authorization: `Bearer ${token}` };  // of info.json it sends none by itself
  const info = await (await fetch(address, { headers })).json();
  return new Promise((done, failed) => {
    const viewer = window.viewer = OpenSeadragon({
      id: 'viewer', drawer: 'canvas', showNavigationControl: false, animationTime: 0,
      loadTilesWithAjax: true, ajaxHeaders: headers, tileSources: [info],
    });
    viewer.addHandler('open-failed', (event) => failed(new Error(event.message)));
    viewer.addHandler('tile-load-failed', (event) => failed(new Error(event.message)));
    viewer.addHandler('open', () => done(viewer.world.getItemAt(0).getContentSize()));
  });
}"""
LOADED = "() => window.viewer.world.getItemAt(0).getFullyLoaded()"
DRAWN = """() => new Promise((done) => {
  const { viewer } = window;
  viewer.addOnceHandler('update-viewport', () => requestAnimationFrame(done));
  viewer.forceRedraw();
})"""
CLOSE = """() => {
  const image = window.viewer.world.getItemAt(0);
  window.viewer.viewport.fitBounds(image.imageToViewportRectangle(1400, 1100, 600, 400), true);
}"""


class Elsewhere(BaseHTTPRequestHandler):
    """Another host, as far as a browser can tell: another port."""

    def do_GET(self) -> None:
        """The page."""
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(PAGE)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def elsewhere() -> Iterator[str]:
    """The address of a page that is not the portal's."""
    server = HTTPServer(("127.0.0.1", 0), Elsewhere)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture
def secret(annotator: Any) -> str:
    """Secret of a read-only token."""
    with DATABASE:
        return token_create(
            annotator, name="osd", scope=TokenScope.READ, expires_in=timedelta(days=1)
        )[1]


def test_openseadragon_shows_the_entire_image_and_a_detail(
    browser: Any,
    open_server: Any,
    ingest: Callable[[Path], Any],
    slide_file: Path,
    secret: str,
    elsewhere: str,
    tmp_path: Path,
) -> None:
    if not LIBRARY.exists():
        pytest.skip("openseadragon is not installed: run `npm ci`")
    canvas = ingest(slide_file)
    context = browser.new_context(viewport={"width": 600, "height": 400})
    page = context.new_page()
    answers: list[tuple[str, str, int]] = []
    page.on("response", lambda item: answers.append((item.request.method, item.url, item.status)))
    page.goto(elsewhere)
    page.add_script_tag(path=str(LIBRARY))
    info = f"{open_server.url}/api/v1/iiif/{canvas.pk}/info.json"
    size = page.evaluate(OPENED, [info, secret])
    assert (size["x"], size["y"]) == SLIDE_SIZE
    page.wait_for_function(LOADED)
    full_view = _screenshot(page, tmp_path)
    page.evaluate(CLOSE)
    page.wait_for_function(LOADED)
    close = _screenshot(page, tmp_path)
    context.close()

    tiles = [item for item in answers if "/default.jpg" in item[1] and item[0] == "GET"]
    assert len(tiles) >= 4 and {status for _, _, status in tiles} == {200}
    with open_slide(slide_file) as slide:  # 2000 x 1500 in 600 x 400: as high as the window
        expected_full = slide.read_region((0, 0), SLIDE_SIZE, (533, 400))
        expected_close = slide.read_region((1400, 1100), (600, 400), (600, 400))
    assert _difference(full_view[:, 34:566], expected_full[:, :532]) < 12
    assert _difference(close, expected_close) < 6


def _screenshot(page: Any, folder: Path) -> np.ndarray[Any, Any]:
    path = folder / "seen.png"
    page.evaluate(DRAWN)
    page.screenshot(path=str(path))
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB"))


def _difference(actual: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> float:
    """Mean over pixels and channels, of 255."""
    return float(np.abs(actual.astype(float) - expected.astype(float)).mean())
