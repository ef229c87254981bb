"""``python -m ml train``: every scheme says where it is to run."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from ml.cli import main, train
from ml.gpu import VARIABLE

OPTIONS = ["--data", "nowhere", "--out", "nowhere"]
METRIC = ["vectors.json", "--out", "nowhere"]


@pytest.fixture
def asked(monkeypatch):
    """What each run saw of the environment; nothing is trained."""
    found = []
    scheme = SimpleNamespace(run=lambda args, progress: found.append(os.environ[VARIABLE]) or {})
    monkeypatch.setattr(train, "module_of", lambda registry, name: scheme)
    return found


@pytest.mark.parametrize(
    "scheme", sorted(set(train.SCHEMES) - {"metric", "calibration", "letters"})
)
def test_every_training_takes_the_device_that_it_is_given(scheme, asked, monkeypatch):
    monkeypatch.setenv(VARIABLE, "auto")
    assert main(["train", scheme, *OPTIONS, "--device", "cpu"]) == 0
    assert main(["train", scheme, *OPTIONS]) == 0
    assert asked == ["cpu", "auto"]
    assert os.environ[VARIABLE] == "auto"


def test_a_device_that_is_not_there_is_refused_before_anything_is_read(asked, monkeypatch, capsys):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert main(["train", "metric", *METRIC, "--device", "cuda:7"]) == 2
    assert "'cuda:7' was asked for, but this machine has" in capsys.readouterr().err
    assert main(["train", "metric", *METRIC, "--device", "gpu"]) == 2
    assert "expected auto, cpu, cuda or cuda:N, got 'gpu'" in capsys.readouterr().err
    assert asked == [] and VARIABLE not in os.environ
