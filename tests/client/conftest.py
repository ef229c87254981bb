"""A portal with its worker, as ``manage.py serve`` starts it, and a token of an annotator."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.killing.harness import Portal
from tests.killing.uploads import CONTROL
from tests.ports import HOST, free_port
from tests.processes import wait_until_served

SOURCES = Path(__file__).resolve().parents[2] / "clients" / "python"
PATIENCE_S = 120.0


@dataclass(frozen=True)
class Seat:
    """The portal, and tokens of an annotator and of managers of two other labs."""

    portal: Portal
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
        command = [sys.executable, "manage.py", "serve", "--port", url.rpartition(":")[2]]
        wait_until_served(portal.start(command), f"{url}/healthz", within_s=PATIENCE_S)
        yield Seat(portal, url, token, managers, others)
    finally:
        portal.ask_no_more()
        portal.close()
