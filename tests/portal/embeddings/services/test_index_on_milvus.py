"""Indexes on a server: the same answers, the same truth, and a server that is away."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from ml.errors import IndexUnreachableError
from portal.annotations.services.rois import roi_delete
from portal.embeddings import indexes
from portal.embeddings.indexes import Scope
from portal.embeddings.models import Encoder, IndexSnapshot
from portal.embeddings.selectors.index_files.readers import readers
from portal.embeddings.selectors.index_files.verification import index_server_answers
from portal.embeddings.services.indexes import index_build_submit, indexes_delete
from portal.search.selectors.similar_cases import SimilarQuery, similar_search

pytestmark = pytest.mark.timeout(300)
AWAY = {"url": "http://127.0.0.1:9"}


def output_of(*arguments):
    out = StringIO()
    call_command("index", *arguments, stdout=out)
    return out.getvalue()


@pytest.fixture
def archive(world):
    requested = world.embedded(world.canvas(world.case("A0", patient="a")), 0, 10)
    canvases = [world.canvas(world.case(f"A{n}", patient=f"p{n}")) for n in range(1, 7)]
    rois = [world.embedded(item, 30 * n, 10) for n, item in enumerate(canvases)]
    output_of("rebuild", "--now")
    return requested, canvases[0], rois


@pytest.fixture
def on_server(settings, milvus):
    settings.TESSERA_INDEX_ENGINE, settings.TESSERA_MILVUS = "milvus", {"url": milvus.url}


def found(world, requested, **options):
    query = SimilarQuery(roi=requested, encoder=Encoder.objects.get(), k=5, **options)
    result = similar_search(world.user, query)
    return [(hit.roi.pk, round(hit.distance, 6)) for hit in result.hits], result.index


def on(scope):
    group = indexes._group(scope).replace("-", "_").replace("/", "_")
    held = indexes.server().call("list_collections")
    return {name.split("_")[-2] for name in held if group in name}


@pytest.mark.slow
@pytest.mark.services
def test_switching_the_engine_gives_equal_results(world, archive, on_server, settings):
    requested, canvas, rois = archive
    before, used = found(world, requested)
    assert (used.version, used.in_file) == (1, 7)
    assert "version 2 is in use" in output_of("switch")
    assert "version 2 is in milvus" in output_of("switch"), "nothing is left to do"
    after, used = found(world, requested)
    assert after == before and (used.version, used.in_file, used.newer) == (2, 7, 0)
    assert "on milvus" in output_of("status")
    assert "7 checked, 0 missing, 0 orphans, 0 of 7 altered, recall 1.0000" in output_of("verify")
    newest = world.embedded(canvas, 1, 10)
    roi_delete(roi=rois[0], user=world.user, expected_version=1)
    hits, used = found(world, requested)
    assert hits[0][0] == newest.pk and rois[0].pk not in dict(hits)
    assert (used.newer, used.masked) == (1, 1)
    settings.TESSERA_INDEX_ENGINE = "files"
    assert "version 3 is in use" in output_of("switch")
    assert found(world, requested)[0] == hits
    assert IndexSnapshot.objects.get(version=3).engine == "files"


@pytest.mark.endurance
def test_older_snapshots_and_those_of_an_erased_lab_are_removed(world, archive, on_server):
    scope = Scope(Encoder.objects.get(), world.lab.pk)
    for _ in range(3):
        index_build_submit(scope=scope)
        world.run_jobs()
    assert on(scope) == {"3", "4"}
    indexes_delete(lab_id=world.lab.pk)
    assert on(scope) == set()


@pytest.mark.slow
@pytest.mark.services
def test_searches_work_without_the_index_server(world, archive, on_server, settings):
    requested, _, _ = archive
    output_of("switch")
    before, _ = found(world, requested)
    settings.TESSERA_MILVUS = AWAY
    readers._opened.clear()  # another process
    hits, used = found(world, requested)
    assert hits == before and (used.version, used.newer) == (0, 7)
    assert "CANNOT BE READ" in output_of("status")
    assert not index_server_answers()
    with pytest.raises(CommandError, match="1 of 1"):
        output_of("verify")
    with pytest.raises(IndexUnreachableError):
        indexes_delete(lab_id=world.lab.pk)
    assert IndexSnapshot.objects.filter(engine="milvus").exists(), "nothing was forgotten"


@pytest.mark.endurance
def test_a_search_falls_back_to_the_database_if_the_server_fails(
    world, archive, on_server, monkeypatch
):
    requested, _, _ = archive
    output_of("switch")
    before, _ = found(world, requested)

    def unreachable(*_args, **_kwargs):
        raise IndexUnreachableError("reset")

    monkeypatch.setattr("ml.index.milvus.engine.MilvusIndex.search", unreachable)
    hits, used = found(world, requested)
    assert hits == before and (used.version, used.newer) == (0, 7)
