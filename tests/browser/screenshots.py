"""``make screenshots``: the pictures of docs/screenshots, taken in a real browser after the demo.

From a demo of its own, without the development data: its licence lets nobody publish it here.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from tests.browser.chromium import FLAGS, executable

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "docs" / "screenshots"
PORT = 8765
BASE = f"http://127.0.0.1:{PORT}"
SIZE = {"width": 1366, "height": 768}
PASSWORD = "tessera-demo"


def main() -> int:
    """Run the demo, serve, take the pictures."""
    with tempfile.TemporaryDirectory() as folder:
        env = {name: value for name, value in os.environ.items() if name != "TESSERA_DATA"} | {
            "TESSERA_DATABASE_URL": f"sqlite:///{folder}/db.sqlite3",
            "TESSERA_STORAGE": f"{folder}/storage",
            "TESSERA_BROKER_FOLDER": f"{folder}/broker",
        }
        _demo_and_take(env)
    return 0


def _demo_and_take(env: dict[str, str]) -> None:
    subprocess.run([sys.executable, "manage.py", "demo", "--exit"], cwd=ROOT, env=env, check=True)
    server = subprocess.Popen(
        [sys.executable, "manage.py", "serve", "--port", str(PORT)],
        cwd=ROOT,
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait()
        _take()
    finally:
        server.terminate()
        server.wait()


def _wait() -> None:
    for _ in range(150):
        try:
            with urllib.request.urlopen(f"{BASE}/healthz", timeout=2):
                return
        except OSError:
            time.sleep(0.2)
    raise TimeoutError("the portal does not answer")


def _take() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable(), args=FLAGS)
        page = browser.new_page(viewport=SIZE, color_scheme="light")
        _sign_in(page, "pathologist@demo.example")
        _shot(page, "/cases/", "cases")
        _open_case(page, "D-1001")
        _shot(page, page.url.removeprefix(BASE), "case")
        page.locator('a[href^="/canvases/"]').first.click()
        page.wait_for_url("**/canvases/**")
        page.locator(".roi-row").first.click()
        page.wait_for_timeout(2500)
        page.screenshot(path=OUT / "viewer.png")
        roi = page.locator('a[href*="/similar/"]').first.get_attribute("href")
        _shot(page, roi or "/cases/", "similar", wait_ms=2000)
        _open_case(page, "D-2001")
        page.locator('a[href^="/mosaics/"]').first.click()
        page.wait_for_url("**/mosaics/**")
        _shot(page, page.url.removeprefix(BASE), "mosaic", wait_ms=1500)
        _shot(page, "/jobs/", "jobs")
        browser.close()


def _sign_in(page: Page, email: str) -> None:
    page.goto(f"{BASE}/accounts/login/")
    page.fill('input[name="login"]', email)
    page.fill('input[name="password"]', PASSWORD)
    page.press('input[name="password"]', "Enter")
    page.wait_for_url("**/cases/")


def _open_case(page: Page, accession: str) -> None:
    page.goto(f"{BASE}/cases/")
    page.get_by_role("link", name=accession).first.click()
    page.wait_for_url("**/cases/*-*/")


def _shot(page: Page, path: str, name: str, *, wait_ms: int = 600) -> None:
    page.goto(f"{BASE}{path}")
    page.wait_for_timeout(wait_ms)
    page.screenshot(path=OUT / f"{name}.png")


if __name__ == "__main__":
    sys.exit(main())
