"""Every shipped network can be fine-tuned by its scheme."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from ml.files import WEIGHTS_FOLDER
from ml.keypoints.descriptors.learned_weights import read_descriptor
from ml.keypoints.descriptors.tessera import read_tessera
from ml.keypoints.descriptors.vit_weights import read_network
from ml.networks.vlad import Vlad
from ml.roi.encoders.patch_cnn import load_patch_cnn
from ml.roi.keypoints.weights import load_keypoint_encoder
from ml.roi.weights import read_graph_encoder
from ml.training.common.run import TrainingRun
from ml.training.common.start import take_weights
from ml.training.descriptors.contrast import ContrastLearner
from ml.training.descriptors.contrast_config import ContrastConfig
from ml.training.descriptors.graph import graph_config
from ml.training.descriptors.triplet_config import TripletConfig
from ml.training.descriptors.triplet_learner import TripletLearner
from ml.training.roi.encoder.command import train_roi
from ml.training.roi.encoder.config import RoiTrainConfig
from ml.training.roi.endoscopy import EndoscopyTrainConfig
from ml.training.roi.patches.command import PatchLearner
from ml.training.roi.patches.config import PatchTrainConfig
from ml.training.tessera.config import TesseraTrainConfig
from ml.training.tessera.learner import TesseraLearner
from ml.training.vit.config import VitTrainConfig
from ml.training.vit.learner import VitLearner


def shipped(name: str) -> Path:
    return WEIGHTS_FOLDER / f"{name}.safetensors"


def assert_holds(network: nn.Module, stored: nn.Module) -> None:
    weights, expected = network.state_dict(), stored.state_dict()
    assert weights.keys() == expected.keys()
    assert [key for key in weights if not torch.equal(weights[key], expected[key])] == []


@pytest.mark.parametrize("name", ["cnn", "graph"])
def test_cnn_and_graph_start_from_the_shipped_weights(name):
    config = ContrastConfig() if name == "cnn" else graph_config()
    learner = ContrastLearner(config, [], start=shipped(name))
    stored = read_descriptor(shipped(name))
    assert_holds(learner.network, stored.network)
    if name == "graph":
        assert_holds(learner.graph, stored.graph)


def test_key_point_descriptors_start_from_the_shipped_weights():
    triplet = TripletLearner(TripletConfig(), [], [], start=shipped("triplet"))
    assert_holds(triplet.network, read_descriptor(shipped("triplet")).network)
    tessera = TesseraLearner(TesseraTrainConfig(), [], start=shipped("tessera"))
    assert_holds(tessera.network, read_tessera(shipped("tessera")))
    vit = VitLearner(VitTrainConfig(), [], [], start=shipped("vit"))
    assert_holds(vit.network, read_network(shipped("vit"))[0])


@pytest.mark.slow
def test_encoders_of_regions_start_from_the_shipped_weights(tmp_path):
    config = PatchTrainConfig()
    patches = PatchLearner(config, lambda step: torch.zeros(0), start=shipped("patch-cnn"))
    assert_holds(patches.average, load_patch_cnn(shipped("patch-cnn")).network)
    start = shipped("roi-endoscopy")
    words = Vlad(EndoscopyTrainConfig().encoder.vlad)
    take_weights(words, load_keypoint_encoder(start).network, start)

    rng = np.random.default_rng(0)
    tissue = rng.integers(60, 200, (64, 64, 3), dtype=np.uint8)
    Image.fromarray(tissue).resize((512, 512)).save(tmp_path / "a.png")
    tuned = dataclasses.replace(
        RoiTrainConfig(), name="tuned", atlas="", slides=(("a.png", "p1", 1.0),), looks=1
    )
    run = TrainingRun(tuned, tmp_path / "out", start=shipped("roi-default"))
    train_roi(run, data=tmp_path)
    made, stored = read_graph_encoder(run.weights), read_graph_encoder(shipped("roi-default"))
    assert_holds(made.patches.network, stored.patches.network)
    assert not torch.equal(made.network.metric, stored.network.metric)
