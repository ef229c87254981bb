"""Index files."""

from __future__ import annotations

import os
import time

from portal.embeddings import indexes
from portal.embeddings.indexes import Scope
from portal.embeddings.models import Embedding, Encoder, IndexSnapshot
from portal.embeddings.selectors.index_files.readers import readers
from portal.embeddings.services.indexes import index_build_submit
from portal.jobs.worker.runner import job_run
from tests.portal.embedded_rois import jobs


def test_enough_changes_submit_one_index_build(world, monkeypatch):
    monkeypatch.setattr("portal.embeddings.services.indexes.MIN_REBUILD", 3)
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
    for _ in range(3):
        index_build_submit(scope=scope)
        world.run_jobs()
    folder = indexes.scope_folder(scope)
    assert len(list(folder.iterdir())) == 3
    for path in folder.iterdir():
        os.utime(path, (0, time.time() - 7200))
    index_build_submit(scope=scope)
    world.run_jobs()
    stored = IndexSnapshot.objects.order_by("-version").values_list("pk", flat=True)[:2]
    assert {path.name for path in folder.iterdir()} == {str(pk) for pk in stored}


def test_no_index_is_written_without_embeddings(world):
    world.embedded(world.canvas(world.case("A1")))
    Embedding.objects.all().delete()
    index_build_submit(scope=Scope(Encoder.objects.get(), world.lab.pk))
    world.run_jobs()
    assert IndexSnapshot.objects.count() == 0
