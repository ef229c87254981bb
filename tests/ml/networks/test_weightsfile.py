"""A weights file says what it is; what it is not is refused by name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import nn

from ml.errors import WeightsError
from ml.networks.weightsfile import (
    filled,
    halved,
    read_tensors,
    whole,
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
    write_tensors(path, whole(network), architecture="line", name="it", version="3", config=Sizes())
    return network


def test_what_was_written_is_read_and_nothing_else_lies_there(path: Path) -> None:
    network = _written(path)
    metadata, tensors = read_tensors(path, "plane", "line")
    expected = {"architecture": "line", "name": "it", "version": "3", "config": '{"width": 2}'}
    assert metadata == expected
    again = filled(nn.Linear(2, 1), tensors, path.name)
    torch.testing.assert_close(again.weight, network.weight)
    assert [p.name for p in path.parent.iterdir()] == ["w.safetensors"]


def test_half_precision_fills_a_network_of_single_precision() -> None:
    network = nn.Linear(2, 1)
    tensors = halved(network)
    assert tensors["weight"].dtype == torch.float16
    again = filled(nn.Linear(2, 1), tensors, "w")
    assert again.weight.dtype == torch.float32
    torch.testing.assert_close(again.weight, network.weight, atol=1e-3, rtol=1e-3)


def test_another_architecture_is_refused_with_those_expected(path: Path) -> None:
    _written(path)
    with pytest.raises(WeightsError, match="architecture 'line', expected 'plane' or 'space'"):
        read_tensors(path, "plane", "space")


@pytest.mark.parametrize(
    ("metadata", "problem"),
    [
        ({"name": "it", "config": "{}"}, "without 'version'"),
        ({"name": "it", "version": "3", "config": "{}", "mood": "good"}, "unknown key 'mood'"),
    ],
)
def test_metadata_that_lacks_or_adds_a_key_is_refused(
    path: Path, metadata: dict[str, str], problem: str
) -> None:
    write_file(path, {"x": torch.zeros(1)}, {"architecture": "line", **metadata})
    with pytest.raises(WeightsError, match=problem):
        read_tensors(path, "line")


def test_tensors_of_another_size_or_not_finite_are_refused() -> None:
    tensors = whole(nn.Linear(2, 1))
    with pytest.raises(WeightsError, match=r"w: 'weight': expected \(1, 3\), got \(1, 2\)"):
        filled(nn.Linear(3, 1), tensors, "w")
    tensors["bias"] = torch.tensor([float("nan")])
    with pytest.raises(WeightsError, match="w: 'bias': holds NaN or infinity"):
        filled(nn.Linear(2, 1), tensors, "w")
