"""What a search leaves out is looked up by index, however much the lab holds."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from portal.retrieval import selectors, services
from portal.retrieval.indexes import Scope
from portal.retrieval.models import Encoder
from portal.retrieval.selectors.candidates import ids_masked


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL scans tables of few rows")
def test_what_is_masked_is_found_without_a_walk_over_the_lab(world):
    world.embedded(world.canvas(world.case("A1", "p1")), 100, 150)
    scope = Scope(Encoder.objects.get(), world.lab.pk)
    services.index_build_submit(scope=scope, version=1)
    world.run_jobs()
    snapshot = selectors.snapshot_latest(scope)
    with CaptureQueriesContext(connection) as asked:
        ids_masked(scope, snapshot)
    superseded, binned = (_plan(query["sql"]) for query in asked.captured_queries)
    assert "superseded_at>?" in superseded
    assert "canvas_id=?" in binned


def _plan(sql: str) -> str:
    """How the rows of embeddings are looked up."""
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN QUERY PLAN " + sql)
        lines = [str(row[3]) for row in cursor.fetchall()]
    return next(line for line in lines if "retrieval_embedding " in line)
