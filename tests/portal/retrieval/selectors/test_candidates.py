"""What a search leaves out is looked up by index, however much the lab holds."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from portal.retrieval import selectors, services
from portal.retrieval.indexes import Scope
from portal.retrieval.models import Encoder
from portal.retrieval.selectors.candidates import ids_hidden, ids_masked, ids_of_patient


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL scans tables of few rows")
def test_what_is_masked_is_found_without_a_walk_over_the_lab(world):
    world.embedded(world.canvas(world.case("A1", "p1")), 100, 150)
    scope = Scope(Encoder.objects.get(), world.lab.pk)
    services.index_build_submit(scope=scope, version=1)
    world.run_jobs()
    snapshot = selectors.snapshot_latest(scope)
    with CaptureQueriesContext(connection) as asked:
        ids_masked(scope, snapshot)
    superseded, canvases = (query["sql"] for query in asked.captured_queries)
    assert "superseded_at>?" in _plan(superseded)
    assert "retrieval_embedding" not in canvases  # nothing is in the bin


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL scans tables of few rows")
def test_a_patients_embeddings_are_asked_for_by_the_ids_of_their_images(world):
    """One query with a subquery ran for minutes on a PostgreSQL that had not counted its rows."""
    case = world.case("A1", "p1")
    embedded = [world.embedded(world.canvas(case), 100 + 20 * n, 150) for n in range(2)]
    with CaptureQueriesContext(connection) as asked:
        ids = ids_of_patient(Scope(Encoder.objects.get(), world.lab.pk), case)
    assert len(ids) == len(embedded)
    _, _, embeddings = (query["sql"] for query in asked.captured_queries)
    assert "canvas_id=?" in _plan(embeddings) and "archive_case" not in embeddings


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL scans tables of few rows")
def test_where_nothing_is_read_blindly_embeddings_are_not_asked(world):
    world.embedded(world.canvas(world.case("A1", "p1")), 100, 150)
    scope = Scope(Encoder.objects.get(), world.lab.pk)
    with CaptureQueriesContext(connection) as asked:
        assert ids_hidden(scope, world.user).size == 0
    (query,) = asked.captured_queries
    assert "id=?" in _plan(query["sql"], "annotations_roi ")


def _plan(sql: str, table: str = "retrieval_embedding ") -> str:
    """How the rows of a table are looked up."""
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN QUERY PLAN " + sql)
        lines = [str(row[3]) for row in cursor.fetchall()]
    return next(line for line in lines if table in line)
