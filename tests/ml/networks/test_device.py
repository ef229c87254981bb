"""The device is chosen in one place."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ml.errors import BadInputError
from ml.gpu import COMPILE_VARIABLE, MEMORY_VARIABLE, VARIABLE, is_compiling, memory_bound_gib
from ml.networks import device
from ml.networks.device import (
    REFERENCE,
    Compute,
    chosen_compute,
    chosen_device,
    compiled,
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


@pytest.mark.parametrize(("kind", "pinned"), [("cuda", ["pinned"]), ("cpu", [])])
def test_rows_go_to_a_gpu_from_pinned_memory_beside_its_work(monkeypatch, kind, pinned):
    done = []

    def to(tensor, device, *, non_blocking):
        done.append((device.type, non_blocking))
        return tensor

    def pin_memory(tensor):
        done.append("pinned")
        return tensor

    monkeypatch.setattr(torch.Tensor, "to", to)
    monkeypatch.setattr(torch.Tensor, "pin_memory", pin_memory)
    Compute(torch.device(kind), batched=True).sent(np.zeros((2, 3), np.float32))
    assert done == [*pinned, (kind, True)]


def test_networks_learn_in_bfloat16_there_and_in_float32_where_the_reference_is(fast):
    layer, rows = torch.nn.Linear(4, 4).to(fast.device), torch.ones(2, 4, device=fast.device)
    with fast.learning():
        assert layer(rows).dtype == torch.bfloat16
    with REFERENCE.learning():
        assert torch.nn.Linear(4, 4)(torch.ones(2, 4)).dtype == torch.float32


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


def test_networks_are_compiled_on_request_and_never_where_the_reference_is_computed(monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda network, dynamic: lambda rows: network(rows) + 1)
    fast, network = Compute(torch.device("cpu"), batched=True), torch.nn.Identity()
    monkeypatch.delenv(COMPILE_VARIABLE, raising=False)
    assert compiled(network, fast) is network
    monkeypatch.setenv(COMPILE_VARIABLE, "1")
    assert compiled(network, REFERENCE) is network
    assert float(compiled(network, fast)(torch.zeros(1))) == 1.0
    monkeypatch.setenv(COMPILE_VARIABLE, "yes")
    with pytest.raises(BadInputError, match="TESSERA_COMPILE: expected 0 or 1, got 'yes'"):
        is_compiling()


def test_a_network_that_cannot_be_compiled_runs_as_it_is_and_the_log_says_so(monkeypatch, caplog):
    """By dynamo itself, with a backend that fails."""
    calls = []

    def backend(graph, inputs):
        calls.append(graph)
        raise ValueError("no compiler here")

    real = torch.compile
    monkeypatch.setattr(
        torch, "compile", lambda n, dynamic: real(n, dynamic=dynamic, backend=backend)
    )
    network = device.Compiled(torch.nn.Linear(3, 2).eval())
    rows = torch.ones(4, 3)
    with caplog.at_level("WARNING", logger="ml.networks.device"), torch.inference_mode():
        assert torch.equal(network(rows), network(rows))
    said = [r.getMessage() for r in caplog.records if r.name == "ml.networks.device"]
    assert len(calls) == 1 and len(said) == 1
    assert "it runs uncompiled" in said[0] and "no compiler here" in said[0]


def test_memory_that_runs_out_is_no_failure_of_compiling(monkeypatch):
    def full(rows):
        raise torch.OutOfMemoryError

    monkeypatch.setattr(torch, "compile", lambda network, dynamic: full)
    with pytest.raises(torch.OutOfMemoryError):
        device.Compiled(torch.nn.Identity())(torch.zeros(1))
