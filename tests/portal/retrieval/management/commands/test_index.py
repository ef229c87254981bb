"""``manage.py index``: what it says of a file that is right, and of one that is not."""

from __future__ import annotations

from io import StringIO

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from ml.index import open_index
from portal.annotations.services import roi_delete
from portal.archive import storage
from portal.retrieval.models import Embedding, Encoder, IndexSnapshot


def said(*arguments):
    out = StringIO()
    call_command("index", *arguments, stdout=out)
    return out.getvalue()


@pytest.fixture
def rois(world):
    canvas = world.canvas(world.case("A1"))
    return [world.embedded(canvas, 30 * i, 10) for i in range(6)]


def test_a_file_is_built_told_and_verified(world, rois):
    name = f"{world.lab.name}, box 1"
    assert said("status") == f"{name}: no file; 6 searched from the database\n"
    assert said("verify") == f"{name}: no file yet, so nothing to verify\n"
    assert said("rebuild", "--now") == f"{name}: version 1 is in use\n"
    world.embedded(rois[0].canvas, 200, 200)
    roi_delete(roi=rois[0], user=world.user, expected_version=1)
    told = said("status", "--lab", world.lab.slug)
    assert "version 1, flat, 6 vectors" in told and "1 newer, 1 masked" in told
    assert "5 checked, 0 missing, 0 orphans, 0 of 6 altered, recall 1.0000" in said("verify")
    assert "version 1 is new enough" in said("rebuild", "--older-than", "60")
    assert "version 2 is waiting for the worker" in said("rebuild")
    world.run_jobs()
    assert "6 checked, 0 missing" in said("verify")


def test_what_is_wrong_with_a_file_is_counted(world, rois):
    said("rebuild", "--now")
    snapshot, encoder = IndexSnapshot.objects.get(), Encoder.objects.get()
    ids = list(Embedding.objects.order_by("pk").values_list("pk", flat=True))
    folder = storage.resolve(snapshot.path)
    index = open_index(folder, dim=encoder.dim)
    index.remove([ids[0], ids[1]])
    index.add([ids[1], 10**6], np.full((2, encoder.dim), 7, dtype=np.float32))
    out = StringIO()
    with pytest.raises(CommandError, match="1 of 1 are not correct"):
        call_command("index", "verify", stdout=out)
    assert "6 checked, 1 missing, 1 orphans, 1 of 5 altered" in out.getvalue()
    (folder / "manifest.json").write_text("{")
    out = StringIO()
    with pytest.raises(CommandError, match="1 of 1 are not correct"):
        call_command("index", "verify", stdout=out)
    assert "the file cannot be read" in out.getvalue()
    assert "CANNOT BE READ" in said("status")


def test_an_unknown_lab_is_named(world):
    with pytest.raises(CommandError, match="no lab 'nobody'"):
        said("status", "--lab", "nobody")
    assert said("status") == "There are no embeddings, so there is nothing to index.\n"
