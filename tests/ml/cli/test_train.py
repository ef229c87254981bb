"""``python -m ml train``: every scheme has a device."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from ml.cli import main, train
from ml.gpu import VARIABLE

OPTIONS = ["--data", "nowhere", "--out", "nowhere"]
METRIC = ["vectors.json", "--out", "nowhere"]


@pytest.fixture
def recorded_runs(monkeypatch):
    """Record the environment of each run without training."""
    calls = []
    scheme = SimpleNamespace(run=lambda args, progress: calls.append(os.environ[VARIABLE]) or {})
    monkeypatch.setattr(train, "module_of", lambda registry, name: scheme)
    return calls


@pytest.mark.parametrize("scheme", sorted(set(train.SCHEMES) - {"metric", "calibration"}))
def test_every_training_uses_the_requested_device(scheme, recorded_runs, monkeypatch):
    monkeypatch.setenv(VARIABLE, "auto")
    assert main(["train", scheme, *OPTIONS, "--device", "cpu"]) == 0
    assert main(["train", scheme, *OPTIONS]) == 0
    assert recorded_runs == ["cpu", "auto"]
    assert os.environ[VARIABLE] == "auto"


def test_a_missing_device_raises_an_error_before_data_is_read(recorded_runs, monkeypatch, capsys):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert main(["train", "metric", *METRIC, "--device", "cuda:7"]) == 2
    assert "'cuda:7'" in capsys.readouterr().err
    assert main(["train", "metric", *METRIC, "--device", "gpu"]) == 2
    assert "expected auto, cpu, cuda or cuda:N, got 'gpu'" in capsys.readouterr().err
    assert recorded_runs == [] and VARIABLE not in os.environ
