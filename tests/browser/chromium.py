"""Where the browser is, and how it runs on a machine without a screen or a network."""

from __future__ import annotations

import os
import shutil

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
    """Debian's chromium, or what TESSERA_CHROMIUM names; None leaves it to Playwright."""
    named = os.environ.get("TESSERA_CHROMIUM")
    return named or shutil.which("chromium") or shutil.which("chromium-browser")
