"""A lab's regions leave as a folder to train on: by a manager's order, noted, without names."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from PIL import Image

from ml.config import config_from_file
from ml.training.roi.endoscopy import EndoscopyTrainConfig
from ml.training.roi.patches.blocks import read_blocks
from ml.training.roi.patches.config import PatchTrainConfig
from ml.training.tessera.config import TesseraTrainConfig
from ml.training.vit.config import VitTrainConfig
from ml.types import no_progress
from portal.annotations.services import roi_delete
from portal.audit.models import AuditEntry
from portal.core.errors import ForbiddenError, InvalidInputError
from portal.keeping.services import training_set_write
from tests.portal.retrieval.conftest import SIDE, World


@pytest.fixture
def world(lab, annotator, storage):
    return World(lab, annotator, storage)


def drawn(world, accession, patient, lab=None, **options):
    """A canvas with texture and one region of 300 x 300 px at 0.25 um per pixel."""
    canvas = world.canvas(world.case(accession, patient, lab=lab))
    rng = np.random.default_rng(len(accession))
    pixels = rng.integers(60, 200, (SIDE, SIDE, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(world.storage / canvas.pixels_path)
    canvas.mpp_x = canvas.mpp_y = 0.25
    canvas.save()
    return world.roi(canvas, 50, 40, 300, **options)


def test_regions_are_written_without_names_and_the_order_is_noted(world, manager, lab, tmp_path):
    for accession, patient in (("S-1", "Doe"), ("S-2", "Doe"), ("S-3", "Roe")):
        drawn(world, accession, patient)
    gone = drawn(world, "S-4", "Poe")
    roi_delete(roi=gone, user=world.user, expected_version=1)
    unreadable = drawn(world, "S-5", "Moe")
    (world.storage / unreadable.canvas.pixels_path).unlink()
    out = tmp_path / "set"
    done = training_set_write(lab=lab, user=manager, out=out, mpp=0.5)
    assert (done.regions, done.patients, done.unreadable) == (3, 2, 1)
    rows = list(csv.DictReader((out / "index.csv").open()))
    assert {row["mpp"] for row in rows} == {"0.5000"}
    assert all(np.asarray(Image.open(out / row["file"])).shape == (150, 150, 3) for row in rows)
    told = "".join(path.read_text() for path in out.glob("*.*"))
    told += "".join(str(path) for path in out.rglob("*"))
    assert not any(name in told for name in ("Doe", "Roe", "S-1", "S-3"))
    entry = AuditEntry.objects.get(action="roi.exported")
    assert (entry.actor_id, entry.lab_id) == (manager.pk, lab.pk)
    assert entry.details["count"] == 4


def test_schemes_read_what_was_written(world, manager, lab, tmp_path):
    drawn(world, "S-1", "Doe")
    out = tmp_path / "set"
    call_command("training_set", lab.slug, str(out), by=manager.email, mpp=0.5)
    config = config_from_file(PatchTrainConfig(), out / "patches.json")
    slides = [tuple(slide) for slide in config.slides]
    blocks = read_blocks(out, None, slides, no_progress)
    assert len(blocks.of_patient) == 1 and blocks.of_patient[0][0].mpp == pytest.approx(0.5)
    for name, default in (
        ("default", TesseraTrainConfig()),
        ("endoscopy", EndoscopyTrainConfig()),
        ("vit", VitTrainConfig()),
    ):
        read = config_from_file(default, out / f"{name}.json")
        source = getattr(read, "source", None) or read.sources[0]
        assert len(list((out / source).iterdir())) == 1


def test_only_a_manager_of_the_lab_may_and_nothing_is_written_over(
    world, manager, stranger, lab, other_lab, tmp_path
):
    drawn(world, "S-1", "Doe")
    out = tmp_path / "set"
    for user in (world.user, stranger):
        with pytest.raises(ForbiddenError):
            training_set_write(lab=lab, user=user, out=out)
    assert not out.exists() and not AuditEntry.objects.filter(action="roi.exported").exists()
    with pytest.raises(InvalidInputError, match="no such region"):
        training_set_write(lab=lab, user=manager, out=out, kinds=("video",))
    out.mkdir()
    (out / "mine.txt").write_text("kept")
    with pytest.raises(InvalidInputError, match="choose an empty folder"):
        training_set_write(lab=lab, user=manager, out=out)
    assert json.dumps([path.name for path in out.iterdir()]) == '["mine.txt"]'


def test_the_command_says_what_is_wrong(lab, manager, tmp_path):
    with pytest.raises(CommandError, match="no such lab or person"):
        call_command("training_set", "nowhere", str(tmp_path), by=manager.email)
    with pytest.raises(CommandError, match="above 0"):
        call_command("training_set", lab.slug, str(tmp_path / "x"), by=manager.email, mpp=0.0)
