"""Tests of the portal's queries again, on PostgreSQL: locks, JSON and constraints differ there."""

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
    "core/api",
    "exchange",
    "hooks",
    "jobs",
    "keeping",
    "labs",
    "mosaics",
    "reading",
    "retrieval",
    "review",
)
# The rule: again only where a query of its own kind is asked, or rows are locked or constrained. So
# not the pages, which show what selectors found and the API answers too; not the sweeps of who may
# see what; not what computes, reads files or opens sockets between queries by a key; and no file
# whose statements (but for a few in a thousand) the others ask too, counted by their text.
ONCE = (
    "annotations/api/test_outlines.py",
    "annotations/formats",
    "annotations/services/test_preview.py",
    "annotations/services/test_qupath_versions.py",
    "annotations/services/test_round_trip.py",
    "annotations/test_documents.py",
    "annotations/test_geometry.py",
    "annotations/test_nesting.py",
    "annotations/test_property_pages.py",
    "annotations/test_views.py",
    "archive/api/test_access.py",
    "archive/api/test_canvases.py",
    "archive/api/test_items.py",
    "archive/services/test_items.py",
    "archive/storage",
    "archive/test_flooding.py",
    "archive/test_inspection.py",
    "archive/test_tasks.py",
    "archive/tiles",
    "archive/views",
    "exchange/test_fhir.py",
    "exchange/test_iiif_validator.py",
    "jobs/test_views.py",
    "jobs/worker/test_limits.py",
    "jobs/worker/test_together.py",
    "keeping/services/test_backup.py",
    "labs/adapters",
    "labs/views",
    "mosaics/services/test_followups.py",
    "mosaics/tasks",
    "mosaics/test_build_cache.py",
    "mosaics/test_downloads.py",
    "mosaics/views",
    "retrieval/management",
    "retrieval/selectors/files/test_readers.py",
    "retrieval/selectors/test_calibration.py",
    "retrieval/selectors/test_comparison.py",
    "retrieval/selectors/test_nearest.py",
    "retrieval/selectors/test_search.py",
    "retrieval/selectors/test_unannotated.py",
    "retrieval/services/test_bulk.py",
    "retrieval/services/test_judgements.py",
    "retrieval/services/learning/test_acts.py",
    "retrieval/services/test_search.py",
    "retrieval/test_api.py",
    "retrieval/isolation",
    "retrieval/test_scale.py",
    "retrieval/test_shared_search.py",
    "retrieval/test_views.py",
)


@pytest.mark.services
@pytest.mark.slow
@pytest.mark.endurance
@pytest.mark.timeout(2400)
def test_the_portals_tests_pass_on_postgresql() -> None:
    assert [path for path in ONCE if not (ROOT / "tests/portal" / path).exists()] == []
    with services.own_database() as url:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-n0"),
                *("-p", "tests.portal.asking_the_database"),
                *("-p", "no:schemathesis"),
                *("-m", "not slow and not services and not browser"),
                *(f"--ignore=tests/portal/{path}" for path in ONCE),
                *(f"tests/portal/{app}" for app in AGAIN),
            ],
            cwd=ROOT,
            env=os.environ | {"TESSERA_DATABASE_URL": url},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-4000:]
