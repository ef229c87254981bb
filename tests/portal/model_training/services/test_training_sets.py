"""A lab's regions leave as a folder to train on: by a manager's order, noted, without names."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
import shapely
from django.core.management import CommandError, call_command
from PIL import Image

from ml.config import config_from_file
from ml.evaluation.retrieval.manifest import read_manifest
from ml.training.descriptors.contrast_config import ContrastConfig
from ml.training.descriptors.triplet_config import TripletConfig
from ml.training.roi.encoder.config import RoiTrainConfig
from ml.training.roi.endoscopy import EndoscopyTrainConfig
from ml.training.roi.patches.blocks import read_blocks
from ml.training.roi.patches.config import PatchTrainConfig
from ml.training.tessera.command import held_out_files, training_files
from ml.training.tessera.config import TesseraTrainConfig
from ml.training.vit.config import VitTrainConfig
from ml.types import no_progress
from portal.annotations.models import Roi
from portal.annotations.services.rois import roi_create, roi_delete
from portal.audit.models import AuditEntry
from portal.core.errors import ForbiddenError, InvalidInputError
from portal.model_training.services.training_sets import _held_out, training_set_write
from tests.portal.embedded_rois import SIDE


def drawn(world, accession, patient, lab=None, kind="still", side=300, **options):
    """A canvas with texture and one region at 0.25 um per pixel."""
    canvas = world.canvas(world.case(accession, patient, lab=lab), kind)
    rng = np.random.default_rng(len(accession))
    pixels = rng.integers(60, 200, (SIDE, SIDE, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(world.storage / canvas.pixels_path)
    canvas.mpp_x = canvas.mpp_y = 0.25
    canvas.save()
    return world.roi(canvas, 50, 40, side, **options)


def rows_of(path):
    return list(csv.DictReader(path.open()))


def test_regions_are_written_without_names_and_the_export_is_audited(world, manager, lab, tmp_path):
    (label,) = world.labels("Gland")
    for accession, patient in (("S-1", "Doe"), ("S-2", "Doe"), ("S-3", "Roe")):
        drawn(world, accession, patient, label=label, name=f"of {patient}")
    deleted = drawn(world, "S-4", "Poe")
    roi_delete(roi=deleted, user=world.user, expected_version=1)
    unreadable = drawn(world, "S-5", "Moe")
    (world.storage / unreadable.canvas.pixels_path).unlink()
    point = {"type": "Point", "coordinates": [9, 9]}
    roi_create(canvas=unreadable.canvas, user=world.user, geometry=point)
    out = tmp_path / "set"
    done = training_set_write(lab=lab, user=manager, out=out, mpp=0.5)
    assert (done.regions, done.patients, done.labels, done.unreadable) == (3, 2, 1, 1)
    rows = rows_of(out / "index.csv")
    assert {row["mpp"] for row in rows} == {"0.5000"}
    for row in rows:  # the canvas is smaller than what is written of a small region
        assert np.asarray(Image.open(out / row["file"])).shape == (SIDE // 2, SIDE // 2, 3)
        assert shapely.from_wkt(row["geometry"]).bounds == (25, 20, 175, 170)
    text = "".join(path.read_text() for path in out.glob("**/*.*") if path.suffix != ".png")
    text += "".join(str(path) for path in out.rglob("*"))
    assert not any(name in text for name in ("Doe", "Roe", "S-1", "S-3"))
    entry = AuditEntry.objects.get(action="roi.exported")
    assert (entry.actor_id, entry.lab_id) == (manager.pk, lab.pk)
    assert entry.details["count"] == 4


def test_some_patients_are_held_out_and_stay_so(world, manager, lab, tmp_path):
    for number in range(8):
        drawn(world, f"S-{number}", f"patient {number % 4}")
    split = []
    for name in ("one", "two"):
        done = training_set_write(lab=lab, user=manager, out=tmp_path / name, held_out=0.4)
        rows = rows_of(tmp_path / name / "index.csv")
        uses = {row["patient"]: row["use"] for row in rows}
        assert all(uses[row["patient"]] == row["use"] for row in rows)
        assert done.held_out == list(uses.values()).count("held-out")
        split.append(uses)
        config = json.loads((tmp_path / name / "patches.json").read_text())
        stored = {patient for _, patient, _ in config["slides"]}
        watched = {patient for _, patient, _ in config["held_out"]}
        assert stored | watched == set(uses) and not stored & watched and watched
        assert all(uses[patient] == "train" for patient in stored)
    assert split[0] == split[1]
    drawn(world, "S-8", "")  # a case without a patient's key is a patient of its own
    none = training_set_write(lab=lab, user=manager, out=tmp_path / "none", held_out=0.0)
    assert none.held_out == 0 and none.patients == 5


@pytest.mark.slow
def test_a_held_out_patient_stays_held_out_when_others_are_added(world, lab):
    for number in range(30):
        drawn(world, f"S-{number}", f"patient {number}")
    before = _held_out(lab, Roi.objects.filter(lab=lab), 0.3)
    for number in range(30, 40):
        drawn(world, f"S-{number}", f"patient {number}")
    after = _held_out(lab, Roi.objects.filter(lab=lab), 0.3)
    old = {f"patient {number}" for number in range(30)}
    assert before and after & old == before and 0 < len(after) < 40


def test_schemes_parse_their_serialised_form(world, manager, lab, tmp_path):
    (label,) = world.labels("Gland")
    for number in range(4):
        drawn(world, f"S-{number}", f"patient {number}", label=label)
        drawn(world, f"E-{number}", f"patient {number}", kind="mosaic")
    out = tmp_path / "set"
    call_command("training_set", lab.slug, str(out), by=manager.email, mpp=0.5)
    schemes = ("cnn", "default", "endoscopy", "graph", "patches", "roi", "triplet", "vit")
    assert [path.stem for path in sorted(out.glob("*.json"))] == list(schemes)
    patches = config_from_file(PatchTrainConfig(), out / "patches.json")
    blocks = read_blocks(out, None, patches.slides, no_progress)
    held_out = read_blocks(out, None, patches.held_out, no_progress)
    assert blocks.of_patient[0][0].mpp == pytest.approx(0.5)
    assert len(blocks.of_patient) + len(held_out.of_patient) == 4
    roi = config_from_file(RoiTrainConfig(), out / "roi.json")
    assert roi.slides == patches.slides and (out / roi.sources[0]).is_file() and not roi.atlas
    assert roi.held_out == tuple(file for file, *_ in patches.held_out) and roi.held_out
    tessera = config_from_file(TesseraTrainConfig(), out / "default.json")
    learned, watched = training_files(tessera, out), held_out_files(tessera, out)
    assert len(learned) + len(watched) == 4 and watched and not set(learned) & set(watched)
    endoscopy = config_from_file(EndoscopyTrainConfig(), out / "endoscopy.json")
    assert (out / endoscopy.source).is_dir() and set(endoscopy.left_out) == set(tessera.held_out)
    vit = config_from_file(VitTrainConfig(), out / "vit.json")
    assert [out / source for source in vit.sources] == [out / endoscopy.source]
    for name, default in (("cnn", ContrastConfig()), ("triplet", TripletConfig())):
        stills = config_from_file(default, out / f"{name}.json").stills
        assert stills.folder == "endoscopy" and set(stills.held_out) == set(tessera.held_out)
    assert len(read_manifest(out / "train")) == len(blocks.of_patient)
    assert {record.label for record in read_manifest(out / "held-out")} == {"Gland"}


def test_only_accepted_regions_are_written_on_request(world, manager, lab, tmp_path):
    drawn(world, "S-1", "Doe")
    with pytest.raises(InvalidInputError, match="region"):
        training_set_write(lab=lab, user=manager, out=tmp_path / "set", accepted=True)
    Roi.objects.update(review_state="accepted")
    done = training_set_write(lab=lab, user=manager, out=tmp_path / "set", accepted=True)
    assert done.regions == 1
    with pytest.raises(InvalidInputError, match="below 1"):
        training_set_write(lab=lab, user=manager, out=tmp_path / "x", held_out=1.0)


def test_only_a_manager_may_export_and_files_are_not_overwritten(
    world, manager, stranger, lab, other_lab, tmp_path
):
    drawn(world, "S-1", "Doe")
    out = tmp_path / "set"
    for user in (world.user, stranger):
        with pytest.raises(ForbiddenError):
            training_set_write(lab=lab, user=user, out=out)
    assert not out.exists() and not AuditEntry.objects.filter(action="roi.exported").exists()
    with pytest.raises(InvalidInputError, match="region"):
        training_set_write(lab=lab, user=manager, out=out, kinds=("video",))
    out.mkdir()
    (out / "mine.txt").write_text("kept")
    with pytest.raises(InvalidInputError, match="empty"):
        training_set_write(lab=lab, user=manager, out=out)
    assert json.dumps([path.name for path in out.iterdir()]) == '["mine.txt"]'


def test_the_command_fails_with_a_reason(lab, manager, tmp_path):
    with pytest.raises(CommandError, match="lab"):
        call_command("training_set", "nowhere", str(tmp_path), by=manager.email)
    with pytest.raises(CommandError, match="above 0"):
        call_command("training_set", lab.slug, str(tmp_path / "x"), by=manager.email, mpp=0.0)
