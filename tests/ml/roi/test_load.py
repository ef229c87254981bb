"""Region encoders by name or file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from ml.errors import BadInputError, UnknownNameError, WeightsError
from ml.networks.gcn import RoiGcn
from ml.networks.vlad import Vlad, VladConfig
from ml.roi import load_encoder
from ml.roi.config import EncoderConfig
from ml.roi.embed import RoiEncoder
from ml.roi.keypoints.encoder import KeypointEncoder, KeypointEncoderConfig
from ml.roi.keypoints.weights import save_keypoint_encoder
from ml.roi.load import list_encoders, load_graph_encoder
from ml.roi.protocol import RegionEncoder
from ml.roi.weights import save_encoder

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def graph_file(tmp_path):
    torch.manual_seed(0)
    config = EncoderConfig()
    path = tmp_path / "graph.safetensors"
    save_encoder(path, name="graph", version="1", config=config, network=RoiGcn(config.network))
    return path


@pytest.fixture
def keypoint_file(tmp_path):
    config = KeypointEncoderConfig(vlad=VladConfig(words=4, out_dim=16))
    path = tmp_path / "points.safetensors"
    save_keypoint_encoder(path, name="p", version="1", config=config, network=Vlad(config.vlad))
    return path


def test_the_file_determines_the_type_of_encoder(graph_file, keypoint_file):
    graph, points = load_encoder(str(graph_file)), load_encoder(str(keypoint_file))
    assert isinstance(graph, RoiEncoder) and isinstance(points, KeypointEncoder)
    assert isinstance(graph, RegionEncoder) and isinstance(points, RegionEncoder)
    assert (graph.kind, points.kind) == ("histology", "endoscopy")
    assert (graph.normalises, graph.stain_method) == (False, "ruifrok")
    assert (points.normalises, points.stain_method) == (False, "none")


def test_a_graph_encoder_cannot_be_loaded_from_other_files(graph_file, keypoint_file):
    assert load_graph_encoder(str(graph_file)) is load_encoder(str(graph_file))
    with pytest.raises(BadInputError, match="graphs"):
        load_graph_encoder(str(keypoint_file))


def test_a_missing_or_invalid_file_raises_an_error(tmp_path, graph_file):
    with pytest.raises(WeightsError, match="weights file"):
        load_encoder(str(tmp_path / "none.safetensors"))
    graph_file.write_bytes(graph_file.read_bytes()[:99])
    with pytest.raises(WeightsError, match="safetensors"):
        load_encoder(str(graph_file))


def test_weights_of_another_network_raise_an_error():
    from ml.files import WEIGHTS_FOLDER

    with pytest.raises(WeightsError, match=r"'tessera'.*'roi-gcn'"):
        load_encoder(str(WEIGHTS_FOLDER / "tessera.safetensors"))


def test_the_default_encoder_has_no_graph_part_and_loads_no_library_of_graphs():
    code = (
        "import sys, numpy as np\n"
        "from ml.roi.load import load_graph_encoder; from ml.roi.graph import build_graph\n"
        "encoder = load_graph_encoder()\n"
        "x = np.ones((2, encoder.config.network.in_dim), np.float32)\n"
        "assert len(encoder.embed_graph(build_graph(x, np.eye(2)))) == encoder.dim\n"
        "sys.exit('torch_geometric' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(UnknownNameError, match=r"'resnet'.*default"):
        load_encoder("resnet")


def test_one_encoder_of_each_kind_is_shipped_and_one_with_a_graph_part():
    histology, endoscopy, graph = list_encoders()
    assert (graph.name, graph.kind) == ("roi-graph", "histology")
    assert load_encoder("graph").config_hash == graph.config_hash
    assert (histology.name, histology.kind) == ("roi-default", "histology")
    assert (endoscopy.name, endoscopy.kind, endoscopy.dim) == ("roi-endoscopy", "endoscopy", 512)
    encoder = load_graph_encoder("default")
    assert (encoder.config_hash, encoder.dim) == (histology.config_hash, histology.dim)
    assert load_encoder("default") is load_encoder("default")
