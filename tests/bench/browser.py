"""Chromium at a portal of the benchmark's own, signed in."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from tests.bench.portal import BenchPortal, session_of
from tests.browser.chromium import FLAGS, executable
from tests.ports import HOST, free_port
from tests.processes import wait_until_served

ROOT = Path(__file__).resolve().parents[2]
START_S = 120.0  # until the portal answers
VIEWPORT: ViewportSize = {"width": 1366, "height": 768}


@contextlib.contextmanager
def portal_in_chromium(portal: BenchPortal) -> Iterator[tuple[Browser, str, str]]:
    """Start a browser and a portal without a worker; yields its address and a session key."""
    port = free_port()
    base = f"http://{HOST}:{port}"
    command = [sys.executable, "manage.py", "serve", "--web-only", "--port", str(port)]
    key = session_of(portal.user)
    with (portal.folder / "serve.log").open("wb") as log:
        server = subprocess.Popen(
            command, cwd=ROOT, env=os.environ | portal.env, stdout=log, stderr=log
        )
        try:
            _wait_for(base, server)
            with sync_playwright() as playwright:
                yield (
                    playwright.chromium.launch(executable_path=executable(), args=FLAGS),
                    base,
                    key,
                )
        except BaseException:
            sys.stderr.write((portal.folder / "serve.log").read_text()[-4000:])
            raise
        finally:
            server.terminate()
            server.wait(60)


def new_page(browser: Browser, base: str, key: str) -> Page:
    """A tab of somebody who has signed in, with nothing in its cache."""
    context = browser.new_context(viewport=VIEWPORT)
    context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": key, "url": base}])
    return context.new_page()


def _wait_for(base: str, server: subprocess.Popen[bytes]) -> None:
    wait_until_served(server, f"{base}/healthz", within_s=START_S)
