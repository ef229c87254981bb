"""The guide in a browser, served by WhiteNoise as the portal does."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest
from whitenoise import WhiteNoise

from portal.core.http.guide import guide_headers
from tests.browser.test_accessibility import Seen
from tests.guide_site import guide_site

pytestmark = pytest.mark.browser


class Quiet(WSGIRequestHandler):
    """Logs no requests."""

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a server of the guide."""
    root: Path = guide_site(tmp_path_factory.mktemp("project"))

    def missing(environ: Any, start_response: Any) -> list[bytes]:
        start_response("404 Not Found", [])
        return []

    application = WhiteNoise(
        missing, root=str(root), index_file=True, add_headers_function=guide_headers
    )
    with make_server("127.0.0.1", 0, application, handler_class=Quiet) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_the_guide_is_accessible_and_loads_no_other_host(browser: Any, served: str) -> None:
    context = browser.new_context(viewport={"width": 1366, "height": 768})
    page = context.new_page()
    urls: list[str] = []
    problems: list[str] = []
    page.on("request", lambda request: urls.append(request.url))
    page.on("console", lambda item: problems.append(item.text) if item.type == "error" else None)
    seen = Seen(page, served)
    seen.go("/help/pathologist/")
    seen.go("/help/reference/settings/")
    assert seen.complaints == []
    assert [url for url in urls if not url.startswith((served, "data:", "blob:"))] == []
    assert problems == []
    page.goto(f"{served}/help/")
    broken = "[...document.images].filter((one) => one.complete && !one.naturalWidth)"
    assert page.evaluate(f"{broken}.map((one) => one.src)") == []
    context.close()


def test_a_search_in_the_guide_finds_a_page(browser: Any, served: str) -> None:
    context = browser.new_context(viewport={"width": 1366, "height": 768})
    page = context.new_page()
    page.goto(f"{served}/help/")
    page.get_by_role("button", name="Search").click()
    page.get_by_role("combobox").fill("quarantine")
    page.get_by_text("Decide about incoming files").first.click()
    page.wait_for_url("**/help/lab-manager/**")
    context.close()
