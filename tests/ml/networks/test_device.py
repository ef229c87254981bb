"""Selection of the device, and batches on it."""

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
    compile_network,
    device_report,
    in_batches,
    select_compute,
    select_device,
)


def test_the_argument_overrides_the_environment(monkeypatch):
    monkeypatch.setenv(VARIABLE, "nonsense")
    assert select_device("cpu") == torch.device("cpu")
    with pytest.raises(BadInputError, match=r"cuda:N.*'nonsense'"):
        select_device()


@pytest.mark.parametrize("gpus", [0, 2])
def test_auto_selects_a_gpu_if_there_is_one(monkeypatch, gpus):
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    assert select_device().type == ("cuda" if gpus else "cpu")
    if gpus:
        assert select_device("cuda:1") == torch.device("cuda", 1)
    with pytest.raises(BadInputError, match=f"this machine has {gpus} usable GPUs"):
        select_device("cuda:2")


def test_the_cpu_is_the_reference(monkeypatch):
    assert select_compute("cpu") == REFERENCE
    assert not REFERENCE.batched
    monkeypatch.setenv(VARIABLE, "cpu")
    assert str(device_report()) == "CPU (cpu)"


@pytest.mark.parametrize("text", ["nonsense", "0", "-3", "inf", "nan"])
def test_an_invalid_memory_bound_raises_an_error(monkeypatch, text):
    monkeypatch.setenv(MEMORY_VARIABLE, text)
    with pytest.raises(BadInputError, match="above 0"):
        memory_bound_gib()


def test_the_memory_bound_is_set_and_reported(monkeypatch):
    """The memory fraction is set for the process and part of the report."""
    shares = []
    properties = type("Properties", (), {"total_memory": 40 * 2**30, "name": "Some GPU"})
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: properties)
    monkeypatch.setattr(
        torch.cuda, "set_per_process_memory_fraction", lambda *given: shares.append(given)
    )
    monkeypatch.setenv(MEMORY_VARIABLE, "10")
    compute = select_compute("cuda")
    assert compute.batched and compute.device == torch.device("cuda", 0)
    assert shares == [(0.25, torch.device("cuda", 0))]
    assert str(device_report("cuda")) == "Some GPU (cuda:0, 10 GiB)"


def test_forward_applies_a_network_in_batches(fast):
    layer = torch.nn.Linear(6, 3).to(fast.device)
    rows = np.random.default_rng(0).standard_normal((11, 6)).astype(np.float32)
    output = fast.forward(layer, rows, reference=1, batch=4)
    expected = rows @ layer.weight.detach().cpu().numpy().T + layer.bias.detach().cpu().numpy()
    assert output.dtype == np.float32 and np.allclose(output, expected, atol=1e-3)


@pytest.mark.parametrize(("kind", "pinned"), [("cuda", ["pinned"]), ("cpu", [])])
def test_rows_are_copied_to_a_gpu_from_pinned_memory(monkeypatch, kind, pinned):
    done = []

    def to(tensor, device, *, non_blocking):
        done.append((device.type, non_blocking))
        return tensor

    def pin_memory(tensor):
        done.append("pinned")
        return tensor

    monkeypatch.setattr(torch.Tensor, "to", to)
    monkeypatch.setattr(torch.Tensor, "pin_memory", pin_memory)
    Compute(torch.device(kind), batched=True).to_device(np.zeros((2, 3), np.float32))
    assert done == [*pinned, (kind, True)]


def test_training_uses_bfloat16_if_batched_and_float32_otherwise(fast):
    layer, rows = torch.nn.Linear(4, 4).to(fast.device), torch.ones(2, 4, device=fast.device)
    with fast.training_precision():
        assert layer(rows).dtype == torch.bfloat16
    with REFERENCE.training_precision():
        assert torch.nn.Linear(4, 4)(torch.ones(2, 4)).dtype == torch.float32


def test_a_batch_that_does_not_fit_is_halved():
    tried = []

    def step(part):
        tried.append((part.start, part.stop))
        if part.stop - part.start > 3:
            raise torch.OutOfMemoryError
        return np.arange(part.start, part.stop)

    rows = np.concatenate(list(in_batches(step, 10, 8)))
    assert np.array_equal(rows, np.arange(10))
    assert tried == [(0, 8), (0, 4), (0, 2), (2, 4), (4, 6), (6, 8), (8, 10)]


def test_a_single_row_that_does_not_fit_raises_an_error():
    def step(part):
        raise torch.OutOfMemoryError("full")

    with pytest.raises(torch.OutOfMemoryError, match="full"):
        list(in_batches(step, 2, 2))


def test_the_device_is_logged_once(monkeypatch, caplog):
    device._log_device.cache_clear()
    monkeypatch.setenv(VARIABLE, "cpu")
    with caplog.at_level("INFO", logger="ml.networks.device"):
        device.select_compute()
        device.select_compute()
    assert caplog.messages == ["networks run on CPU (cpu)"]


def test_networks_are_compiled_on_request_except_for_the_reference(monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda network, dynamic: lambda rows: network(rows) + 1)
    fast, network = Compute(torch.device("cpu"), batched=True), torch.nn.Identity()
    monkeypatch.delenv(COMPILE_VARIABLE, raising=False)
    assert compile_network(network, fast) is network
    monkeypatch.setenv(COMPILE_VARIABLE, "1")
    assert compile_network(network, REFERENCE) is network
    assert float(compile_network(network, fast)(torch.zeros(1))) == 1.0
    monkeypatch.setenv(COMPILE_VARIABLE, "yes")
    with pytest.raises(BadInputError, match=r"TESSERA_COMPILE: .*'yes'"):
        is_compiling()


def test_a_network_that_cannot_be_compiled_runs_uncompiled_with_a_warning(monkeypatch, caplog):
    """By dynamo, with a backend that fails."""
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
    messages = [r.getMessage() for r in caplog.records if r.name == "ml.networks.device"]
    assert len(calls) == 1 and len(messages) == 1
    assert "it runs uncompiled" in messages[0] and "no compiler here" in messages[0]


def test_out_of_memory_is_not_a_compilation_failure(monkeypatch):
    def full(rows):
        raise torch.OutOfMemoryError

    monkeypatch.setattr(torch, "compile", lambda network, dynamic: full)
    with pytest.raises(torch.OutOfMemoryError):
        device.Compiled(torch.nn.Identity())(torch.zeros(1))
