"""Excluded regions of a search are looked up by a database index."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from portal.embeddings.indexes import Scope
from portal.embeddings.models import Encoder
from portal.embeddings.selectors.index_files.delta import ids_masked
from portal.embeddings.selectors.index_files.snapshots import snapshot_latest
from portal.embeddings.services.indexes import index_build_submit
from portal.search.selectors.candidates import ids_hidden, ids_of_patient


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL scans tables of few rows")
def test_masked_ids_are_found_by_an_index(world):
    world.embedded(world.canvas(world.case("A1", "p1")), 100, 150)
    scope = Scope(Encoder.objects.get(), world.lab.pk)
    index_build_submit(scope=scope)
    world.run_jobs()
    snapshot = snapshot_latest(scope)
    with CaptureQueriesContext(connection) as requested:
        ids_masked(scope, snapshot)
    superseded, canvases = (query["sql"] for query in requested.captured_queries)
    assert "superseded_at>?" in _plan(superseded)
    assert "embeddings_embedding" not in canvases  # nothing is in the trash


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL scans tables of few rows")
def test_embeddings_of_a_patient_are_queried_by_canvas_id(world):
    """One query with a subquery ran for minutes on a PostgreSQL that had not counted its rows."""
    case = world.case("A1", "p1")
    embedded = [world.embedded(world.canvas(case), 100 + 20 * n, 150) for n in range(2)]
    with CaptureQueriesContext(connection) as requested:
        ids = ids_of_patient(Scope(Encoder.objects.get(), world.lab.pk), case)
    assert len(ids) == len(embedded)
    _, _, embeddings = (query["sql"] for query in requested.captured_queries)
    assert "canvas_id=?" in _plan(embeddings) and "archive_case" not in embeddings


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL scans tables of few rows")
def test_hidden_ids_take_no_query_of_embeddings_without_blind_readings(world):
    world.embedded(world.canvas(world.case("A1", "p1")), 100, 150)
    scope = Scope(Encoder.objects.get(), world.lab.pk)
    with CaptureQueriesContext(connection) as requested:
        assert ids_hidden(scope, world.user).size == 0
    (query,) = requested.captured_queries
    assert "id=?" in _plan(query["sql"], "annotations_roi ")


def _plan(sql: str, table: str = "embeddings_embedding ") -> str:
    """Line of the query plan for a table."""
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN QUERY PLAN " + sql)
        lines = [str(row[3]) for row in cursor.fetchall()]
    return next(line for line in lines if table in line)
