"""``python -m tests.browser.screenshots [--only NAME...] [--keep FOLDER] [--out FOLDER]``."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.browser.screenshots.pages import PAGES
from tests.browser.screenshots.portal import ROOT, served
from tests.browser.screenshots.states import STATES
from tests.browser.screenshots.studio import studio
from tests.browser.screenshots.work import WORK

OUT = ROOT / "docs"


def main() -> int:
    """Run the demo, serve, take the pictures; says how long each part took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", default=[], help="pictures or states of these names")
    parser.add_argument("--keep", type=Path, help="a folder for the demo, used again next time")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    wanted = {
        name: take
        for name, take in (PAGES | STATES | WORK).items()
        if not options.only or name in options.only
    }
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, served(options.keep or Path(folder)) as portal:
        print(f"portal: {time.monotonic() - began:.0f} s")
        with studio(portal, options.out) as open_studio:
            for name, take in wanted.items():
                began = time.monotonic()
                take(open_studio)
                open_studio.clear()
                print(f"{name}: {time.monotonic() - began:.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
