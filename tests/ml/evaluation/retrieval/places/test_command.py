"""``python -m ml evaluate places`` on a tiny data folder."""

from __future__ import annotations

import json
import shutil

import pytest
import torch
from PIL import Image

from ml.cli import main
from ml.errors import BadInputError
from ml.evaluation.retrieval.places import command
from ml.evaluation.retrieval.places.command import PlacesConfig, read_scenes, scores_table
from ml.evaluation.retrieval.places.scores import PlaceScore
from ml.evaluation.retrieval.places.sequences import SequenceConfig
from ml.evaluation.retrieval.places.sweeps import StillSweepConfig
from ml.networks.vlad import Vlad, VladConfig
from ml.roi.keypoints.encoder import KeypointEncoderConfig
from ml.roi.keypoints.weights import save_keypoint_encoder
from ml.types import no_progress
from tests.ml.roi.conftest import draw_mucosa

SWEEP = StillSweepConfig(size_px=200, frames=4, step=1, side_px=50.0, spacing_px=60.0, near_gap=1)
SFM = SequenceConfig(step=6, spacing_share=0.35, near_gap=3, far_gap=12)


@pytest.fixture(scope="module")
def data(sequence, tmp_path_factory):
    """Stills of three operations, two of them left out of training, and a sequence."""
    folder = tmp_path_factory.mktemp("data")
    stills = folder / "endoscopy" / "laparoscopy-stills"
    stills.mkdir(parents=True)
    for seed, name in enumerate(("00001-a.jpg", "00010-a.jpg", "00011-a.jpg")):
        Image.fromarray(draw_mucosa(400, 420, seed=seed)).save(stills / name)
    shutil.copytree(sequence, folder / "endoscopy" / "sinus-4584")
    return folder


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(command, "StillSweepConfig", lambda: SWEEP)
    monkeypatch.setattr(command, "SequenceConfig", lambda: SFM)
    monkeypatch.setattr(command, "PlacesConfig", lambda stills=9: PlacesConfig(stills, 12))


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    config = KeypointEncoderConfig(step_px=16, vlad=VladConfig(words=4, out_dim=32))
    network = Vlad(config.vlad)
    generator = torch.Generator().manual_seed(0)
    network.words.copy_(0.1 * torch.randn(network.words.shape, generator=generator))
    path = tmp_path_factory.mktemp("weights") / "mine.safetensors"
    save_keypoint_encoder(path, name="mine", version="1", config=config, network=network)
    return path


@pytest.mark.slow
@pytest.mark.endurance
def test_encoders_and_baselines_are_scored_and_written(data, small, weights, tmp_path, capsys):
    card = tmp_path / "card.md"
    card.write_text("# mine\n\n<!-- places -->\n<!-- /places -->\n")
    out = tmp_path / "out.json"
    words = ["evaluate", "places", "--data", str(data), "--encoder", str(weights)]
    assert main([*words, "--stills", "1", "--rerank", "2", "--json", str(out)]) == 0
    report = json.loads(out.read_text())
    assert report["scenes"] == ["00010-a", "00010-a", "sinus-4584"] and report["regions"] > 10
    assert list(report["scores"]) == [
        "HSV histogram",
        "bag of RootSIFT",
        "mine 1",
        "the same, 2 queries",
        "reranked",
    ]
    near = report["scores"]["mine 1"]["sweep"]["near"]
    assert near["low"] <= near["score"] <= near["high"] <= 1 and 0 < near["chance"] < 1


def test_sweeps_use_only_operations_excluded_from_training(data, small):
    scenes = read_scenes(data, PlacesConfig(stills=5), no_progress)
    assert [(scene.name, scene.truth) for scene in scenes] == [
        ("00010-a", "sweep"),
        ("00010-a", "kinds"),
        ("00011-a", "sweep"),
        ("00011-a", "kinds"),
        ("sinus-4584", "sfm"),
    ]
    assert all(len(scene.regions) >= 2 for scene in scenes)


def test_missing_held_out_stills_raise_one_clear_error(data, tmp_path):
    stills = tmp_path / "endoscopy" / "laparoscopy-stills"
    stills.mkdir(parents=True)
    shutil.copy(data / "endoscopy/laparoscopy-stills/00001-a.jpg", stills)
    with pytest.raises(BadInputError, match="no still of 00010-, 00011-, 00015-"):
        read_scenes(tmp_path, PlacesConfig(), no_progress)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--stills", "0"], "--stills: expected at least 1, got 0"),
        (["--rerank", "-1"], "--rerank: expected 0 or more, got -1"),
        ([], "source 'endoscopy/laparoscopy-stills' is not in the data folder"),
    ],
)
def test_bad_input_is_refused_in_one_line(tmp_path, capsys, words, message):
    assert main(["evaluate", "places", "--data", str(tmp_path), *words]) == 2
    assert capsys.readouterr().err == f"error: {message}\n"


def test_the_table_has_a_row_for_each_method_and_chance():
    def score(value):
        return PlaceScore(value, value - 0.1, value + 0.1, 0.05, 7)

    table = scores_table(
        {
            "HSV": {("sweep", "far"): score(0.25), ("sweep", "near"): score(0.5)},
            "mine 1": {("sweep", "near"): score(0.75)},
        }
    )
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    assert lines[0] == ["method", "sweep, near", "sweep, far"]
    assert ["chance", "0.050", "0.050"] in lines
    assert ["HSV", "0.500 (0.40 to 0.60)", "0.250 (0.15 to 0.35)"] in lines
    assert ["mine 1", "0.750 (0.65 to 0.85)", ""] in lines
