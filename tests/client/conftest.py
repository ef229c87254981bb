"""A portal with its worker, as ``manage.py serve`` starts it, and a token of an annotator."""

from __future__ import annotations

import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.killing.harness import Portal
from tests.killing.uploads import CONTROL
from tests.ports import HOST, free_port

SOURCES = Path(__file__).resolve().parents[2] / "clients" / "python"
PATIENCE_S = 120.0


@dataclass(frozen=True)
class Seat:
    """Where the portal answers, and to whom: an annotator, and managers of two other labs."""

    url: str
    token: str
    managers: str
    others: str


@pytest.fixture(scope="package")
def seat(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seat]:
    """Started once, which takes seconds, and ended with the last test that asks it."""
    folder = tmp_path_factory.mktemp("client")
    portal = Portal(folder, f"sqlite:///{folder / 'db.sqlite3'}", "filesystem://", lambda: None)
    try:
        token = portal.ask(CONTROL, "seat", "client")["token"]
        managers = portal.ask(CONTROL, "seat", "managed", "manager")["token"]
        others = portal.ask(CONTROL, "seat", "others", "manager")["token"]
        portal.env["TESSERA_JOB_LEASE_S"] = "60"  # nobody is killed here
        url = f"http://{HOST}:{free_port()}"
        portal.start([sys.executable, "manage.py", "serve", "--port", url.rpartition(":")[2]])
        deadline = time.monotonic() + PATIENCE_S
        while True:
            with suppress(urllib.error.URLError, OSError):
                urllib.request.urlopen(f"{url}/healthz", timeout=5).close()
                break
            assert time.monotonic() < deadline, portal.output.read_text()[-2000:]
            time.sleep(0.2)
        yield Seat(url, token, managers, others)
    finally:
        portal.ask_no_more()
        portal.close()
