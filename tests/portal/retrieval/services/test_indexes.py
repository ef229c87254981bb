"""Index files."""

from __future__ import annotations

import os
import time

from portal.jobs.worker.runner import job_run
from portal.retrieval import indexes, services
from portal.retrieval.indexes import Scope
from portal.retrieval.models import Embedding, Encoder, IndexSnapshot
from portal.retrieval.selectors import readers
from tests.portal.retrieval.conftest import jobs


def test_enough_changes_submit_one_index_build(world, monkeypatch):
    monkeypatch.setattr("portal.retrieval.services.indexes.REBUILD_LEAST", 3)
    canvas = world.canvas(world.case("A1"))
    for i in range(5):
        world.roi(canvas, i * 30, 10)
    for job in jobs():
        job_run(job.pk)
    (build,) = jobs("index_build")
    job_run(build.pk)
    snapshot = IndexSnapshot.objects.get()
    assert (snapshot.version, snapshot.count) == (1, 5)
    assert snapshot.last_embedding_id == Embedding.objects.latest("pk").pk
    index = readers.get(snapshot, Encoder.objects.get())
    assert (index.stats.count, index.stats.tag) == (5, "box/1/abc")


def test_old_index_folders_go_after_an_hour_and_never_the_newest(world):
    canvas = world.canvas(world.case("A1"))
    world.embedded(canvas)
    scope = Scope(Encoder.objects.get(), world.lab.pk)
    for version in (1, 2, 3):
        services.index_build_submit(scope=scope, version=version)
        world.run_jobs()
    folder = indexes.scope_folder(scope)
    assert len(list(folder.iterdir())) == 3
    for one in folder.iterdir():
        os.utime(one, (0, time.time() - 7200))
    services.index_build_submit(scope=scope, version=4)
    world.run_jobs()
    kept = IndexSnapshot.objects.order_by("-version").values_list("pk", flat=True)[:2]
    assert {one.name for one in folder.iterdir()} == {str(pk) for pk in kept}


def test_an_index_of_nothing_is_not_written(world):
    world.embedded(world.canvas(world.case("A1")))
    Embedding.objects.all().delete()
    services.index_build_submit(scope=Scope(Encoder.objects.get(), world.lab.pk), version=1)
    world.run_jobs()
    assert IndexSnapshot.objects.count() == 0
