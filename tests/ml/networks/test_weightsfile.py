"""Reading and writing weights files, and errors."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import nn

from ml.errors import WeightsError
from ml.networks.weightsfile import (
    half_precision_tensors,
    load_tensors,
    network_tensors,
    read_tensors,
    write_file,
    write_tensors,
)


@dataclass(frozen=True)
class Sizes:
    width: int = 2


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "w.safetensors"


def _written(path: Path) -> nn.Linear:
    network = nn.Linear(2, 1)
    write_tensors(
        path, network_tensors(network), architecture="line", name="it", version="3", config=Sizes()
    )
    return network


def test_a_written_file_is_read_and_no_other_file_remains(path: Path) -> None:
    network = _written(path)
    metadata, tensors = read_tensors(path, "plane", "line")
    expected = {"architecture": "line", "name": "it", "version": "3", "config": '{"width": 2}'}
    assert metadata == expected
    again = load_tensors(nn.Linear(2, 1), tensors, path.name)
    torch.testing.assert_close(again.weight, network.weight)
    assert [p.name for p in path.parent.iterdir()] == ["w.safetensors"]


def test_half_precision_tensors_load_into_a_float32_network() -> None:
    network = nn.Linear(2, 1)
    tensors = half_precision_tensors(network)
    assert tensors["weight"].dtype == torch.float16
    again = load_tensors(nn.Linear(2, 1), tensors, "w")
    assert again.weight.dtype == torch.float32
    torch.testing.assert_close(again.weight, network.weight, atol=1e-3, rtol=1e-3)


def test_another_architecture_raises_an_error(path: Path) -> None:
    _written(path)
    with pytest.raises(WeightsError, match=r"'line'.*'plane' or 'space'"):
        read_tensors(path, "plane", "space")


@pytest.mark.parametrize(
    ("metadata", "problem"),
    [
        ({"name": "it", "config": "{}"}, "without 'version'"),
        ({"name": "it", "version": "3", "config": "{}", "mood": "good"}, "unknown key 'mood'"),
    ],
)
def test_missing_and_unknown_metadata_keys_raise_an_error(
    path: Path, metadata: dict[str, str], problem: str
) -> None:
    write_file(path, {"x": torch.zeros(1)}, {"architecture": "line", **metadata})
    with pytest.raises(WeightsError, match=problem):
        read_tensors(path, "line")


def test_tensors_of_another_size_or_not_finite_raise_an_error() -> None:
    tensors = network_tensors(nn.Linear(2, 1))
    with pytest.raises(WeightsError, match=r"w: 'weight': expected \(1, 3\), got \(1, 2\)"):
        load_tensors(nn.Linear(3, 1), tensors, "w")
    tensors["bias"] = torch.tensor([float("nan")])
    with pytest.raises(WeightsError, match=r"'bias': .*NaN"):
        load_tensors(nn.Linear(2, 1), tensors, "w")
