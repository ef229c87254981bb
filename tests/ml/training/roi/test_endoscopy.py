"""The endoscopy encoder, fitted to tiny stills."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.numpy import load_file
from shapely.geometry import box

from ml.cli import main
from ml.errors import BadInputError
from ml.networks.vlad import Vlad, VladConfig
from ml.roi import load_encoder
from ml.roi.keypoints.encoder import KeypointEncoder, KeypointEncoderConfig
from ml.training.common.run import TrainingRun
from ml.training.roi.endoscopy import (
    EndoscopyTrainConfig,
    _set_projection,
    drawn_views,
    train_endoscopy,
)
from tests.ml.roi.conftest import draw_mucosa

TINY = EndoscopyTrainConfig(
    name="tiny",
    source="stills",
    left_out=("b-",),
    regions=14,
    side_px=(60.0, 90.0),
    rows=20,
    rounds=3,
    encoder=KeypointEncoderConfig(side_px=64, step_px=16, vlad=VladConfig(words=3, out_dim=6)),
)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    (folder / "stills").mkdir()
    for seed, name in enumerate(("a-0.png", "a-1.png", "b-0.png")):
        Image.fromarray(draw_mucosa(220, 260, seed=seed)).save(folder / "stills" / name)
    return folder


@pytest.fixture(scope="module")
def fitted(data, tmp_path_factory):
    out = tmp_path_factory.mktemp("out")
    return out, train_endoscopy(TrainingRun(TINY, out), data=data)


def test_a_fit_gives_an_encoder_of_endoscopy(fitted):
    out, summary = fitted
    encoder = load_encoder(str(out / "tiny.safetensors"))
    assert isinstance(encoder, KeypointEncoder)
    assert (encoder.name, encoder.version, encoder.kind, encoder.dim) == (
        "tiny",
        "2.0",
        "endoscopy",
        6,
    )
    vector = encoder.embed(draw_mucosa(220, 260, seed=5), box(60, 60, 160, 160))
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)
    assert summary["regions"] == 14 and 0 < summary["kept_variance"] <= 1
    assert json.loads((out / "log.json").read_text())["regions"] == 14


def test_the_same_configuration_gives_the_same_weights(fitted, data, tmp_path):
    train_endoscopy(TrainingRun(TINY, tmp_path), data=data)
    expected, result = (load_file(p / "tiny.safetensors") for p in (fitted[0], tmp_path))
    assert all(np.array_equal(expected[key], result[key]) for key in expected)


def views(data, config):
    encoder = KeypointEncoder(
        name="x",
        version="1",
        config_hash="",
        config=config.encoder,
        network=Vlad(config.encoder.vlad),
        descriptor=None,
    )
    return drawn_views(encoder, config, data)


def test_regions_are_squares_of_the_window_of_stills_that_are_not_left_out(data):
    view_list = views(data, TINY)
    assert len(view_list) == 14
    for view in view_list:
        assert view.downsample**2 * 1.01 >= 60**2 / 64**2 and view.downsample <= 90 / 64 * 1.01
        assert view.inside.sum() == pytest.approx(64**2, rel=0.1)
    more = views(data, dataclasses.replace(TINY, left_out=("a-",), regions=2))
    assert not any(np.array_equal(view.image, row.image) for view in view_list for row in more)


def test_whitened_directions_have_one_variance():
    rng = np.random.default_rng(0)
    rows = torch.from_numpy(rng.normal(size=(60, 8)) * np.arange(8, 0, -1)).float()
    network = Vlad(VladConfig(words=2, in_dim=4, out_dim=3))
    variance = _set_projection(network, rows, 0.5)
    shown = (rows - network.mean) @ network.projection
    moment = (shown.T @ shown / len(rows)).numpy()
    assert np.allclose(moment, np.eye(3), atol=1e-4)
    value = np.linalg.eigvalsh(np.cov(rows.numpy().T, bias=True))[::-1]
    assert variance == pytest.approx(value[:3].sum() / value.sum(), rel=1e-4)
    _set_projection(network, rows, 0.0)
    gram = network.projection.T @ network.projection
    assert torch.allclose(gram, torch.eye(3), atol=1e-5)


def test_too_few_regions_raise_an_error(data, tmp_path):
    few = dataclasses.replace(TINY, regions=6)
    with pytest.raises(BadInputError, match=r"regions: .*6 .*got 6"):
        train_endoscopy(TrainingRun(few, tmp_path), data=data)
    none = dataclasses.replace(TINY, left_out=("a-", "b-"))
    with pytest.raises(BadInputError, match="stills"):
        train_endoscopy(TrainingRun(none, tmp_path), data=data)
    assert not (tmp_path / "tiny.safetensors").exists()


def test_the_command_without_stills_fails_in_one_line(tmp_path, capsys):
    words = ["train", "endoscopy", "--data", str(tmp_path), "--out", str(tmp_path / "out")]
    assert main(words) == 2
    error = capsys.readouterr().err
    assert error == "error: source 'endoscopy/laparoscopy-stills' is not in the data folder\n"


def test_a_fit_from_an_encoder_moves_its_vocabulary(fitted, data, tmp_path):
    start = fitted[0] / "tiny.safetensors"
    still = dataclasses.replace(TINY, rounds=0)
    train_endoscopy(TrainingRun(still, tmp_path, start=start), data=data)
    words = [load_file(path / "tiny.safetensors")["words"] for path in (fitted[0], tmp_path)]
    assert np.array_equal(*words)
