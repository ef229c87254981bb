"""``manage.py index``: what it says of a file that is right, and of one that is not."""

from __future__ import annotations

from io import StringIO

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from ml.index import open_index
from portal.annotations.services.rois import roi_delete
from portal.archive.storage import files as storage
from portal.embeddings.models import Embedding, Encoder, IndexSnapshot


def output_of(*arguments):
    out = StringIO()
    call_command("index", *arguments, stdout=out)
    return out.getvalue()


@pytest.fixture
def rois(world):
    canvas = world.canvas(world.case("A1"))
    return [world.embedded(canvas, 30 * i, 10) for i in range(6)]


def test_an_index_file_is_built_listed_and_verified(world, rois):
    name = f"{world.lab.name}, box 1"
    assert output_of("status") == f"{name}: no file; 6 searched from the database\n"
    assert output_of("verify") == f"{name}: no file yet, so nothing to verify\n"
    assert output_of("rebuild", "--now") == f"{name}: version 1 is in use\n"
    world.embedded(rois[0].canvas, 200, 200)
    roi_delete(roi=rois[0], user=world.user, expected_version=1)
    output = output_of("status", "--lab", world.lab.slug)
    assert "version 1, flat, 6 vectors" in output and "1 newer, 1 masked" in output
    assert "5 checked, 0 missing, 0 orphans, 0 of 6 altered, recall 1.0000" in output_of("verify")
    assert "version 1 is new enough" in output_of("rebuild", "--older-than", "60")
    assert "version 2 is waiting for the worker" in output_of("rebuild")
    world.run_jobs()
    assert "6 checked, 0 missing" in output_of("verify")


def test_verification_counts_errors_of_a_file(world, rois):
    output_of("rebuild", "--now")
    snapshot, encoder = IndexSnapshot.objects.get(), Encoder.objects.get()
    ids = list(Embedding.objects.order_by("pk").values_list("pk", flat=True))
    folder = storage.resolve(snapshot.path)
    index = open_index(folder, dim=encoder.dim)
    index.remove([ids[0], ids[1]])
    index.add([ids[1], 10**6], np.full((2, encoder.dim), 7, dtype=np.float32))
    out = StringIO()
    with pytest.raises(CommandError, match="1 of 1"):
        call_command("index", "verify", stdout=out)
    assert "6 checked, 1 missing, 1 orphans, 1 of 5 altered" in out.getvalue()
    (folder / "manifest.json").write_text("{")
    out = StringIO()
    with pytest.raises(CommandError, match="1 of 1"):
        call_command("index", "verify", stdout=out)
    assert "the file cannot be read" in out.getvalue()
    assert "CANNOT BE READ" in output_of("status")


def test_an_unknown_lab_is_an_error(world):
    with pytest.raises(CommandError, match="'nobody'"):
        output_of("status", "--lab", "nobody")
    assert output_of("status") == "There are no embeddings, so there is nothing to index.\n"
