"""The portal's tests once more, on PostgreSQL: locks, JSON and constraints differ from SQLite's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import services

ROOT = Path(__file__).resolve().parents[2]
# Not the table of access: who may do what is asked of the same queries as in the others.
AGAIN = (
    "annotations",
    "archive",
    "audit",
    "jobs",
    "keeping",
    "labs",
    "mosaics",
    "retrieval",
    "review",
)


@pytest.mark.services
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_portals_tests_pass_on_postgresql() -> None:
    with services.own_database() as url:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-n0"),
                *("-p", "tests.portal.asking_the_database"),
                *("-m", "not slow and not services and not browser"),
                *(f"tests/portal/{app}" for app in AGAIN),
            ],
            cwd=ROOT,
            env=os.environ | {"TESSERA_DATABASE_URL": url},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-4000:]
