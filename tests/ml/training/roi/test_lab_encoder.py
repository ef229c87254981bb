"""Fine-tuning of encoders on a tiny training set of a lab."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import load_file

from ml.errors import BadInputError, CancelledError
from ml.roi import load_encoder
from ml.roi.weights import read_graph_encoder
from ml.training.roi import lab_encoder
from ml.training.roi.lab_encoder import PATCHES, train_lab_encoder, within_memory
from ml.training.roi.patches.views import ViewConfig

TINY = dataclasses.replace(
    PATCHES, batch=4, warmup=1, checkpoint_every=2, view=ViewConfig(crop_px=32)
)


@pytest.fixture(scope="module")
def data(tmp_path_factory, tissue):
    """Four patients to learn from and one to look at, as a lab's training set has them."""
    folder = tmp_path_factory.mktemp("lab")
    (folder / "histology").mkdir()
    rows = []
    for number in range(5):
        pixels = tissue(520, 520, seed=number, nuclei_per_mpx=500 + 300 * number)
        name = f"histology/p{number}-r1.png"
        Image.fromarray(pixels).save(folder / name)
        rows.append([name, f"p{number}", 0.5])
    sources = {"atlas": "", "slides": rows[:4], "held_out": rows[4:]}
    (folder / "patches.json").write_text(json.dumps(sources))
    return folder


@pytest.mark.slow
def test_a_killed_training_resumes_to_the_result_of_an_uninterrupted_one(data, tmp_path):
    base = load_encoder("default")
    plain = train_lab_encoder(base, data, tmp_path / "plain", steps=5, patches=TINY)
    assert len(plain.losses) == len(plain.held_out) == 5
    assert np.isfinite(plain.losses).all() and not plain.stopped_early
    assert (plain.regions, plain.patients) == (4, 4)

    def killed(done, total, phase):
        if phase.startswith("training") and done == 3:
            raise CancelledError

    work = tmp_path / "killed"
    with pytest.raises(CancelledError):
        train_lab_encoder(base, data, work, steps=5, patches=TINY, progress=killed)
    steps = []

    def report(done, total, phase):
        if phase.startswith("training"):
            steps.append(done)

    again = train_lab_encoder(base, data, work, steps=5, patches=TINY, progress=report)
    assert steps == [3, 4, 5]  # from the checkpoint of the second step
    assert again.losses == plain.losses
    files = [load_file(run.weights) for run in (plain, again)]
    assert all(np.array_equal(files[0][key], files[1][key]) for key in files[0])
    lab_encoder = read_graph_encoder(plain.weights)
    assert (lab_encoder.dim, lab_encoder.config) == (base.dim, base.config)
    image = np.asarray(Image.open(data / "histology/p4-r1.png"))
    moved = np.linalg.norm(lab_encoder.embed(image, mpp=0.5) - base.embed(image, mpp=0.5))
    assert 0 < moved < 2  # unit vectors: another encoder, and one at all


@pytest.mark.slow
def test_training_ends_after_its_hours_with_weights(data, tmp_path):
    base = load_encoder("default")
    summary = train_lab_encoder(base, data, tmp_path, steps=9, hours=1e-9, patches=TINY)
    assert summary.stopped_early and len(summary.losses) == 1
    assert read_graph_encoder(summary.weights).dim == base.dim


@pytest.mark.slow
def test_the_result_counts_the_regions_that_fitted_into_memory(data, tmp_path, monkeypatch):
    monkeypatch.setattr(lab_encoder, "MAX_BYTES", 3 * 520 * 520 * 5)
    base = load_encoder("default")
    summary = train_lab_encoder(base, data, tmp_path, steps=1, patches=TINY)
    assert (summary.regions, summary.patients) == (3, 3)


@pytest.mark.slow
def test_a_loss_that_is_not_finite_fails(data, tmp_path):
    wild = dataclasses.replace(TINY, learning_rate=float("inf"))
    with pytest.raises(BadInputError, match="loss at step 2"):
        train_lab_encoder(load_encoder("default"), data, tmp_path, steps=3, patches=wild)


def test_unusable_training_sets_raise_an_error(tmp_path):
    for name, words in (("default", "slide or still"), ("endoscopy", "video or mosaic")):
        with pytest.raises(BadInputError, match=words):
            train_lab_encoder(load_encoder(name), tmp_path, tmp_path / name, steps=1)


def test_excess_images_are_dropped_evenly_per_patient(data):
    rows = [(f"histology/p{n}-r1.png", f"p{n % 2}", 0.5) for n in range(4)]
    still_bytes = 520 * 520 * 5
    assert within_memory(rows, data, 4 * still_bytes) == tuple(rows)
    assert within_memory(rows, data, 2 * still_bytes) == (rows[0], rows[1])
    assert within_memory(rows, data, 1) == (rows[0],)  # one at least
