"""The device is chosen in one place."""

from __future__ import annotations

import pytest
import torch

from ml.errors import BadInputError
from ml.networks.device import VARIABLE, chosen_device


def test_the_argument_goes_before_the_environment(monkeypatch):
    monkeypatch.setenv(VARIABLE, "nonsense")
    assert chosen_device("cpu") == torch.device("cpu")
    with pytest.raises(BadInputError, match="expected auto, cpu, cuda or cuda:N, got 'nonsense'"):
        chosen_device()


@pytest.mark.parametrize("gpus", [0, 2])
def test_auto_takes_a_gpu_where_there_is_one(monkeypatch, gpus):
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    assert chosen_device().type == ("cuda" if gpus else "cpu")
    if gpus:
        assert chosen_device("cuda:1") == torch.device("cuda", 1)
    with pytest.raises(BadInputError, match=f"this machine has {gpus} usable GPUs"):
        chosen_device("cuda:2")
