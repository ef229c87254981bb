"""Path and options of chromium on a machine without a screen or a network."""

from __future__ import annotations

import os
import shutil

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def executable() -> str | None:
    """Path in TESSERA_CHROMIUM, or of the system's chromium; None leaves it to Playwright.

    Debian's headless shell first: the same engine without the windows of a desktop browser, which
    nobody sees and which take two thirds of the processor time of these tests.
    """
    named = os.environ.get("TESSERA_CHROMIUM")
    return named or next(filter(None, map(shutil.which, NAMES)), None)
