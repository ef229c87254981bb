"""The compute device is detected without torch in this process."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

from ml.gpu import VARIABLE, device_line


@pytest.fixture
def driver(monkeypatch):
    """A driver is there; what the process that looks says."""

    def says(returncode, stdout="", stderr=""):
        monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
        done = subprocess.CompletedProcess([], returncode, stdout, stderr)
        monkeypatch.setattr(subprocess, "run", lambda *args, **options: done)

    return says


def test_without_a_driver_the_device_is_the_cpu_and_a_requested_gpu_is_missing(monkeypatch):
    def no_driver(name):
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", no_driver)
    monkeypatch.setenv(VARIABLE, "auto")
    assert device_line() == "CPU"
    monkeypatch.setenv(VARIABLE, "cuda")
    assert device_line() == "device: 'cuda' was requested, but this machine has 0 usable GPUs"


def test_with_a_driver_a_separate_process_probes_the_gpu(driver):
    driver(0, "Some GPU (cuda:0, 40 GiB)\n")
    assert device_line() == "Some GPU (cuda:0, 40 GiB)"
    driver(0, "CPU (cpu)\n")
    assert device_line() == "CPU"
    driver(1, "", "Traceback\nml.errors.BadInputError: device: 'cuda:7' was requested\n")
    assert device_line() == "device: 'cuda:7' was requested"
    driver(-9)
    assert device_line() == "unknown"


def test_a_probe_that_times_out_reports_an_unknown_device(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())

    def slow(*args, **options):
        raise subprocess.TimeoutExpired("python", options["timeout"])

    monkeypatch.setattr(subprocess, "run", slow)
    assert device_line() == "unknown"


def test_the_probe_does_not_import_torch():
    code = "import sys, ml.gpu; ml.gpu.device_line(); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
