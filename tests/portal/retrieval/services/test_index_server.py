"""Indexes on a server: the same answers, the same truth, and a server that is away."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from ml.errors import IndexUnreachableError
from ml.index.qdrant import records
from portal.annotations.services import roi_delete
from portal.retrieval import indexes, services
from portal.retrieval.indexes import Scope
from portal.retrieval.models import Encoder, IndexSnapshot
from portal.retrieval.selectors import SimilarQuery, index_server_answers, readers, similar_search

pytest.importorskip("qdrant_client")
HERE = {"url": ":memory:"}
AWAY = {"url": "http://127.0.0.1:9", "timeout_s": 1.0}


def said(*arguments):
    out = StringIO()
    call_command("index", *arguments, stdout=out)
    return out.getvalue()


@pytest.fixture
def archive(world):
    asked = world.embedded(world.canvas(world.case("A0", patient="a")), 0, 10)
    canvases = [world.canvas(world.case(f"A{n}", patient=f"p{n}")) for n in range(1, 7)]
    rois = [world.embedded(one, 30 * n, 10) for n, one in enumerate(canvases)]
    said("rebuild", "--now")
    return asked, canvases[0], rois


@pytest.fixture
def on_server(settings):
    settings.TESSERA_INDEX_ENGINE, settings.TESSERA_QDRANT = "qdrant", HERE


def found(world, asked, **options):
    query = SimilarQuery(roi=asked, encoder=Encoder.objects.get(), k=5, **options)
    result = similar_search(world.user, query)
    return [(hit.roi.pk, round(hit.distance, 6)) for hit in result.hits], result.index


def on(scope):
    return {one.name for one in records.records_of(indexes.server(), indexes._group(scope))}


def test_switching_changes_where_is_searched_and_no_answer(world, archive, on_server, settings):
    asked, canvas, rois = archive
    before, used = found(world, asked)
    assert (used.version, used.in_file) == (1, 7)
    assert "version 2 is in use" in said("switch")
    assert "version 2 is in qdrant" in said("switch"), "nothing is left to do"
    after, used = found(world, asked)
    assert after == before and (used.version, used.in_file, used.newer) == (2, 7, 0)
    assert "on qdrant" in said("status")
    assert "7 checked, 0 missing, 0 orphans, 0 of 7 altered, recall 1.0000" in said("verify")
    newest = world.embedded(canvas, 1, 10)
    roi_delete(roi=rois[0], user=world.user, expected_version=1)
    hits, used = found(world, asked)
    assert hits[0][0] == newest.pk and rois[0].pk not in dict(hits)
    assert (used.newer, used.masked) == (1, 1)
    settings.TESSERA_INDEX_ENGINE = "files"
    assert "version 3 is in use" in said("switch")
    assert found(world, asked)[0] == hits
    assert IndexSnapshot.objects.get(version=3).engine == "files"


def test_older_ones_go_and_an_erased_labs_go_at_once(world, archive, on_server):
    scope = Scope(Encoder.objects.get(), world.lab.pk)
    for version in (2, 3, 4):
        services.index_build_submit(scope=scope, version=version)
        world.run_jobs()
    assert on(scope) == {f"{indexes._group(scope)}/{n}" for n in (3, 4)}
    services.indexes_forget(lab_id=world.lab.pk)
    assert on(scope) == set()


def test_a_server_that_is_away_costs_time_and_no_answer(world, archive, on_server, settings):
    asked, _, _ = archive
    said("switch")
    before, _ = found(world, asked)
    settings.TESSERA_QDRANT = AWAY
    readers._opened.clear()  # another process
    hits, used = found(world, asked)
    assert hits == before and (used.version, used.newer) == (0, 7)
    assert "CANNOT BE READ" in said("status")
    assert not index_server_answers()
    with pytest.raises(CommandError, match="1 of 1 are not correct"):
        said("verify")
    with pytest.raises(IndexUnreachableError):
        services.indexes_forget(lab_id=world.lab.pk)
    assert IndexSnapshot.objects.filter(engine="qdrant").exists(), "nothing was forgotten"


def test_one_that_goes_away_within_a_search_is_left_for_the_database(
    world, archive, on_server, monkeypatch
):
    asked, _, _ = archive
    said("switch")
    before, _ = found(world, asked)

    def gone(*_args, **_kwargs):
        raise IndexUnreachableError("reset")

    monkeypatch.setattr("ml.index.qdrant.engine.QdrantIndex.search", gone)
    hits, used = found(world, asked)
    assert hits == before and (used.version, used.newer) == (0, 7)
