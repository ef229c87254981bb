"""Training of the patch encoder on a tiny configuration."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import load_file

from ml.cli import main
from ml.errors import BadInputError, CancelledError
from ml.networks.patch_cnn import PatchCnnConfig
from ml.roi.encoders.patch_cnn import load_patch_cnn
from ml.roi.stain import fixed_stains
from ml.training.common.run import TrainingRun
from ml.training.roi.patch_views import (
    PatchImage,
    PatchViewConfig,
    draw_view,
    stain_sample,
    stained_views,
)
from ml.training.roi.patches import train_patches
from ml.training.roi.patches_config import PatchTrainConfig

TINY = PatchTrainConfig(
    sources=("a.png", "b.png"),
    steps=5,
    batch=4,
    warmup=2,
    head_hidden=8,
    head_dim=4,
    checkpoint_every=2,
    view=PatchViewConfig(crop_px=32),
    network=PatchCnnConfig(widths=(4, 6, 8, 10)),
)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    for name in ("a.png", "b.png"):
        noise = rng.integers(90, 220, (50, 50, 3), dtype=np.uint8)
        Image.fromarray(noise).resize((1000, 1000)).save(folder / name)
    return folder


@pytest.mark.parametrize("scheme", ["simclr", "byol"])
def test_interrupted_and_resumed_the_weights_are_the_same(data, tmp_path, scheme):
    config = dataclasses.replace(TINY, scheme=scheme)

    def stop(done, total, phase):
        if phase.startswith("training") and done == 3:
            raise CancelledError("stop")

    train_patches(TrainingRun(config, tmp_path / "straight"), data=data)
    with pytest.raises(CancelledError):
        train_patches(TrainingRun(config, tmp_path / "broken", progress=stop), data=data)
    train_patches(TrainingRun(config, tmp_path / "broken"), data=data)
    expected = load_file(tmp_path / "straight" / "patch-cnn.safetensors")
    found = load_file(tmp_path / "broken" / "patch-cnn.safetensors")
    assert [key for key in expected if not np.array_equal(expected[key], found[key])] == []


def test_a_run_gives_an_encoder_and_refuses_another_configuration(data, tmp_path):
    summary = train_patches(TrainingRun(TINY, tmp_path), data=data)
    encoder = load_patch_cnn(tmp_path / "patch-cnn.safetensors")
    patch = np.asarray(Image.open(data / "a.png"))[:224, :224]
    assert encoder.encode([patch], fixed_stains(patch)).shape == (1, 18)
    assert summary["patches"] > 10 and np.isfinite(summary["loss_last"])
    with pytest.raises(BadInputError, match="checkpoint of another configuration"):
        train_patches(TrainingRun(dataclasses.replace(TINY, seed=1), tmp_path), data=data)


def test_the_command_refuses_an_unknown_key_in_one_line(data, tmp_path, capsys):
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"learning": 1}))
    words = ["train", "patches", "--data", str(data), "--out", str(tmp_path / "out")]
    assert main([*words, "--config", str(config)]) == 2
    assert capsys.readouterr().err.startswith("error: config.json: unknown key 'learning'")


def test_sources_without_tissue_are_refused(tmp_path):
    Image.fromarray(np.full((600, 600, 3), 255, np.uint8)).save(tmp_path / "white.png")
    config = dataclasses.replace(TINY, sources=("white.png",))
    with pytest.raises(BadInputError, match="no source holds tissue"):
        train_patches(TrainingRun(config, tmp_path / "out"), data=tmp_path)


def test_without_augmentation_a_view_is_what_the_encoder_sees():
    rng = np.random.default_rng(0)
    pixels = rng.integers(60, 230, (300, 300, 3), dtype=np.uint8)
    still = PatchViewConfig(32, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    source = PatchImage(pixels, np.array([[150.0, 150.0]]), stain_sample([pixels], rng))
    views = [draw_view(source, 0, rng, still) for _ in range(3)]
    x = stained_views(views, [source.sample_od] * 3, rng, still)
    assert x.shape == (3, 3, 32, 32) and float(x.min()) >= 0 and float(x.max()) <= 2
    strong = stained_views(views, [source.sample_od] * 3, rng, PatchViewConfig(crop_px=32))
    assert not np.allclose(x, strong)
