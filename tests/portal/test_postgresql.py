"""Tests of the portal's queries again, on PostgreSQL: locks, JSON and constraints differ there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import services

ROOT = Path(__file__).resolve().parents[2]
# Without the access matrix: permissions are tested by the same queries as on SQLite.
AGAIN = (
    "annotations",
    "archive",
    "audit",
    "core/api",
    "embeddings",
    "explore",
    "inbox",
    "interop",
    "jobs",
    "backups",
    "erasure",
    "labs",
    "model_training",
    "mosaics",
    "reader_studies",
    "review",
    "search",
    "webhooks",
)
# The rule: again only where a query of its own kind is sent, or rows are locked or constrained. So
# not the pages, commands and addresses of what services and selectors do, which are tested here;
# not the sweeps of who may see what; not what computes, reads files or opens sockets between
# queries by a key; and no file whose statements (but for a few in a thousand) the others send too,
# counted by their text.
ONCE = (
    "*/formats/*",
    "*/isolation/*",
    "*/management/*",
    "*/storage/*",
    "*/test_*page*.py",
    "*/test_tasks.py",
    "*/test_views.py",
    "*/tiles/*",
    "*/views/*",
    "annotations/api/test_long_outlines.py",
    "annotations/api/test_outlines.py",
    "annotations/services/test_going_on.py",
    "annotations/services/test_preview.py",
    "annotations/services/test_qupath_versions.py",
    "annotations/services/test_round_trip.py",
    "annotations/services/test_undoing.py",
    "annotations/test_colors.py",
    "annotations/test_documents.py",
    "annotations/test_geometry.py",
    "annotations/test_nesting.py",
    "archive/api/test_access.py",
    "archive/api/test_canvases.py",
    "archive/api/test_clips.py",
    "archive/api/test_items.py",
    "archive/services/test_display.py",
    "archive/services/test_gate.py",
    "archive/services/test_items.py",
    "archive/services/test_redaction*.py",
    "archive/services/test_watching.py",
    "archive/test_flooding.py",
    "archive/test_frames_of_joined_parts.py",
    "archive/test_inspection.py",
    "backups/services/test_full_disk.py",
    "core/api/test_fields.py",
    "core/api/test_parsers.py",
    "core/api/test_problems.py",
    "core/api/test_schema_document.py",
    "embeddings/selectors/index_files/test_readers.py",
    "embeddings/selectors/test_encoder_comparison.py",
    "embeddings/services/test_index_on_milvus.py",
    "embeddings/services/test_modality.py",
    "embeddings/tasks/test_embedding.py",
    "erasure/services/test_every_place.py",
    "explore/selectors/test_unannotated.py",
    "explore/services/test_maps.py",
    "interop/dicomweb/test_clients.py",
    "interop/dicomweb/test_sparse.py",
    "interop/fhir/*",
    "interop/iiif/*",
    "interop/rocrate/imports/test_checks.py",
    "interop/rocrate/imports/test_hostile.py",
    "interop/rocrate/imports/test_import.py",
    "interop/rocrate/imports/test_over_rest.py",
    "interop/rocrate/imports/test_refused_over_rest.py",
    "jobs/worker/test_batching.py",
    "jobs/worker/test_limits.py",
    "labs/adapters/*",
    "model_training/services/*",
    "model_training/test_endoscopy_training.py",
    "model_training/training/*",
    "mosaics/api/*",
    "mosaics/services/test_followups.py",
    "mosaics/tasks/*",
    "mosaics/test_build_cache.py",
    "mosaics/test_downloads.py",
    "reader_studies/test_results.py",
    "search/selectors/test_calibration.py",
    "search/selectors/test_nearest.py",
    "search/selectors/test_similar_cases.py",
    "search/services/test_explanations.py",
    "search/services/test_judgements.py",
    "search/services/test_reports.py",
    "search/services/test_similar_cases.py",
    "search/test_api.py",
    "search/test_report_pictures.py",
    "search/test_scale.py",
    "search/test_shared_search.py",
    "search/test_stain_filter.py",
)


@pytest.mark.services
@pytest.mark.slow
@pytest.mark.endurance
@pytest.mark.timeout(2400)
def test_the_portals_tests_pass_on_postgresql() -> None:
    tests = ROOT / "tests" / "portal"
    assert [pattern for pattern in ONCE if not any(tests.rglob(pattern))] == []
    with services.own_database() as url:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-n0"),
                *("-p", "tests.portal.database_tests"),
                *("-m", "not services and not browser and not endurance"),
                *(f"--ignore-glob={tests}/{pattern}" for pattern in ONCE),
                *(f"tests/portal/{app}" for app in AGAIN),
            ],
            cwd=ROOT,
            env=os.environ
            | {"TESSERA_DATABASE_URL": url, "PGOPTIONS": "-c synchronous_commit=off"},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-4000:]
