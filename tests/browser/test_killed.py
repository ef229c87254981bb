"""The server dies in the middle of a save, and comes back: what was done is there, once."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import settings as django_settings

from tests import databases
from tests.browser.killed_portal import ORDER
from tests.browser.viewer_page import ViewerPage
from tests.ports import HOST, free_port
from tests.processes import wait_until_served

pytestmark = [pytest.mark.browser, pytest.mark.endurance]

FIRST = [(700, 500), (1000, 500), (1000, 800), (700, 800)]
SECOND = [(1050, 500), (1250, 500), (1250, 800), (1050, 800)]


class Killable:
    """uvicorn with the portal, on one port, over one SQLite file."""

    def __init__(self, folder: Path, slide: Path) -> None:
        self.database, self.order = folder / "db.sqlite3", folder / "order"
        self.port = free_port()
        self.base = f"http://{HOST}:{self.port}"
        self.env = os.environ | {
            "DJANGO_SETTINGS_MODULE": "portal.config.settings.development",
            "TESSERA_DATABASE_URL": databases.migrated(self.database),
            "TESSERA_STORAGE": str(folder / "storage"),
            "TESSERA_BROKER_FOLDER": str(folder / "broker"),
            ORDER: str(self.order),
        }
        made = subprocess.run(
            [sys.executable, "-m", "tests.browser.killed_portal", str(slide)],
            cwd=django_settings.ROOT,
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert made.returncode == 0, made.stderr[-2000:]
        self.canvas = SimpleNamespace(**json.loads(made.stdout.splitlines()[-1]))
        self.start()

    def start(self) -> None:
        """Until it answers."""
        command = ["uvicorn", "tests.browser.killed_portal:application", "--lifespan", "off"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", *command, "--host", HOST, "--port", str(self.port)],
            cwd=django_settings.ROOT,
            env=self.env,
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_until_served(self.process, f"{self.base}/healthz")

    def wait_dead(self) -> None:
        """Until all of it was killed."""
        assert self.process.wait(timeout=30) == -signal.SIGKILL
        assert not self.order.exists()

    def rois(self) -> list[tuple[int, int]]:
        """Version and number of revisions of each ROI there is, deleted or not."""
        counted = (
            "SELECT version, (SELECT count(*) FROM annotations_roirevision v WHERE v.roi_id = r.id)"
            " FROM annotations_roi r"
        )
        with sqlite3.connect(self.database) as connection:
            return connection.execute(counted).fetchall()

    def close(self) -> None:
        """Kill what is left."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def portal(tmp_path: Path, slide_file: Path) -> Iterator[Killable]:
    """A portal of its own."""
    if not (django_settings.ROOT / "static" / "dist" / "viewer.js").exists():
        pytest.skip("static/dist is not built: run `npm run build`")
    made = Killable(tmp_path, slide_file)
    yield made
    made.close()


def test_edits_made_while_the_server_is_killed_are_saved_once(
    portal: Killable, browser: Any
) -> None:
    context = browser.new_context(viewport={"width": 1366, "height": 768})
    cookie = {"name": "sessionid", "value": portal.canvas.session, "url": portal.base}
    context.add_cookies([cookie])
    viewer = ViewerPage(context.new_page(), portal.base, portal.canvas, nullcontext())
    viewer.centred()
    for when, outline, at_death, at_last in (("before", FIRST, 0, 1), ("after", SECOND, 2, 2)):
        portal.order.write_text(when)
        viewer.polygon(outline)
        portal.wait_dead()
        viewer.wait_save_state("retry")
        assert portal.rois() == [(1, 1)] * at_death, when
        portal.start()
        viewer.wait_save_state("saved")
        assert portal.rois() == [(1, 1)] * at_last, when
    for when, at_death in (("before", 1), ("after", 3)):  # both at once: deleted, and back again
        portal.order.write_text(when)
        if when == "before":
            viewer.key("Control+a")
            viewer.key("Delete")
        else:
            viewer.key("Control+z")
        portal.wait_dead()
        viewer.wait_save_state("retry")
        assert portal.rois() == [(at_death, at_death)] * 2, when
        portal.start()
        viewer.wait_save_state("saved")
    assert portal.rois() == [(3, 3)] * 2
    viewer.centred()
    viewer.wait_count(2)
    assert viewer.problems == []
    context.close()
