"""The device is chosen in one place."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ml.errors import BadInputError
from ml.gpu import MEMORY_VARIABLE, VARIABLE, memory_bound_gib
from ml.networks import device
from ml.networks.device import (
    REFERENCE,
    chosen_compute,
    chosen_device,
    device_report,
    in_batches,
)


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


def test_the_processor_computes_the_reference(monkeypatch):
    assert chosen_compute("cpu") == REFERENCE
    assert not REFERENCE.batched
    monkeypatch.setenv(VARIABLE, "cpu")
    assert str(device_report()) == "CPU (cpu)"


@pytest.mark.parametrize("text", ["nonsense", "0", "-3", "inf", "nan"])
def test_a_bound_of_memory_is_a_number_above_nothing(monkeypatch, text):
    monkeypatch.setenv(MEMORY_VARIABLE, text)
    with pytest.raises(BadInputError, match="expected a number above 0"):
        memory_bound_gib()


def test_workers_share_a_gpu_by_a_bound_of_memory(monkeypatch):
    """The share is set for the process, and said where the device is shown."""
    shares = []
    properties = type("Properties", (), {"total_memory": 40 * 2**30, "name": "Some GPU"})
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: properties)
    monkeypatch.setattr(
        torch.cuda, "set_per_process_memory_fraction", lambda *given: shares.append(given)
    )
    monkeypatch.setenv(MEMORY_VARIABLE, "10")
    compute = chosen_compute("cuda")
    assert compute.batched and compute.device == torch.device("cuda", 0)
    assert shares == [(0.25, torch.device("cuda", 0))]
    assert str(device_report("cuda")) == "Some GPU (cuda:0, 10 GiB)"


def test_rows_go_through_a_network_in_batches(fast):
    layer = torch.nn.Linear(6, 3).to(fast.device)
    rows = np.random.default_rng(0).standard_normal((11, 6)).astype(np.float32)
    found = fast.forward(layer, rows, reference=1, batch=4)
    expected = rows @ layer.weight.detach().cpu().numpy().T + layer.bias.detach().cpu().numpy()
    assert found.dtype == np.float32 and np.allclose(found, expected, atol=1e-3)


def test_what_does_not_fit_into_memory_is_tried_at_half_the_size():
    tried = []

    def step(part):
        tried.append((part.start, part.stop))
        if part.stop - part.start > 3:
            raise torch.OutOfMemoryError
        return np.arange(part.start, part.stop)

    found = np.concatenate(list(in_batches(step, 10, 8)))
    assert np.array_equal(found, np.arange(10))
    assert tried == [(0, 8), (0, 4), (0, 2), (2, 4), (4, 6), (6, 8), (8, 10)]


def test_a_row_that_does_not_fit_alone_ends_the_work():
    def step(part):
        raise torch.OutOfMemoryError("full")

    with pytest.raises(torch.OutOfMemoryError, match="full"):
        list(in_batches(step, 2, 2))


def test_the_device_is_logged_once(monkeypatch, caplog):
    device._say_once.cache_clear()
    monkeypatch.setenv(VARIABLE, "cpu")
    with caplog.at_level("INFO", logger="ml.networks.device"):
        device.chosen_compute()
        device.chosen_compute()
    assert caplog.messages == ["networks run on CPU (cpu)"]
