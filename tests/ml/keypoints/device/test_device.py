"""Matching on a device, simulated on the CPU if there is no GPU."""

from __future__ import annotations

import os
import subprocess
import sys

import cv2
import numpy as np
import pytest
import torch

from ml.keypoints import match as match_module
from ml.keypoints import match_images
from ml.keypoints.device import gpu_compute
from ml.keypoints.device.nearest import nearest_on
from ml.keypoints.match import match_descriptors, match_mutual


@pytest.fixture
def on_device(fast, monkeypatch):
    """Switches matching to the device."""

    def switch():
        monkeypatch.setattr(match_module, "gpu_compute", lambda: fast)

    return switch


@pytest.fixture
def rows():
    rng = np.random.default_rng(3)
    a = rng.standard_normal((700, 32)).astype(np.float32)
    b = np.concatenate([a[rng.permutation(700)[:500]], rng.standard_normal((90, 32))])
    b = (b + 0.3 * rng.standard_normal(b.shape)).astype(np.float32)
    a[5], b[7] = 0, 0
    return a, b


def textured(shift=(0.0, 0.0), size=(240, 320)):
    rng = np.random.default_rng(1)
    noise = cv2.GaussianBlur(rng.standard_normal(size), (0, 0), 2.5)
    image = np.uint8(np.clip(128 + 300 * noise, 0, 255))
    matrix = np.array([[1.0, 0.0, shift[0]], [0.0, 1.0, shift[1]]])
    return cv2.warpAffine(image, matrix, size[::-1], flags=cv2.INTER_CUBIC)


def test_without_a_gpu_or_torch_the_cpu_matches(monkeypatch):
    monkeypatch.setenv("TESSERA_DEVICE", "cpu")
    assert gpu_compute() is None
    monkeypatch.setenv("TESSERA_DEVICE", "nonsense")
    monkeypatch.setattr("ml.keypoints.device.has_driver", lambda: False)
    monkeypatch.delitem(sys.modules, "torch")
    assert gpu_compute() is None


def test_torch_is_loaded_only_with_a_driver_and_without_the_cpu_setting():
    code = """
import sys
import ml.keypoints.device as device
device.has_driver = lambda: True
device.gpu_compute()
sys.exit("torch" in sys.modules)
"""
    for name, is_loaded in (("cpu", 0), ("auto", 1)):
        env = os.environ | {"TESSERA_DEVICE": name}
        assert subprocess.call([sys.executable, "-c", code], env=env) == is_loaded


def test_a_selected_gpu_is_used(monkeypatch, fast):
    monkeypatch.setattr("ml.networks.device.select_compute", lambda: fast)
    assert gpu_compute() is fast


@pytest.mark.parametrize("strategy", ["nn", "mutual", "ratio"])
def test_neighbours_equal_those_of_the_cpu(rows, on_device, strategy):
    options = {"strategy": strategy, "ratio": 0.9 if strategy == "ratio" else None}
    pairs, distance = match_descriptors(*rows, **options)
    on_device()
    device_pairs, apart = match_descriptors(*rows, **options)
    assert len(pairs) > 200 and np.array_equal(device_pairs, pairs)
    assert np.allclose(apart, distance, atol=1e-3)


def test_scores_of_mutual_neighbours_equal_those_of_the_cpu(rows, on_device):
    a, b = rows
    expected = match_mutual(a, b, ratio=0.95), match_mutual(a, b[:1], ratio=0.95)
    on_device()
    for (pairs, score), other in zip(expected, (b, b[:1]), strict=True):
        device_pairs, scores = match_mutual(a, other, ratio=0.95)
        assert np.array_equal(device_pairs, pairs) and np.allclose(scores, score, atol=1e-3)


def test_blocks_that_do_not_fit_are_halved(rows, fast, monkeypatch):
    a, b = rows
    expected = nearest_on(fast, a, b)
    real, sizes = torch.addmm, []

    def small(lengths, block, *args, **options):
        sizes.append(len(block))
        if len(block) > 200:
            raise torch.OutOfMemoryError
        return real(lengths, block, *args, **options)

    monkeypatch.setattr(torch, "addmm", small)
    for first, other in zip(nearest_on(fast, a, b), expected, strict=True):
        assert np.allclose(first, other, atol=1e-4)
    assert sum(size for size in sizes if size <= 200) == 700


def test_matches_of_images_agree_with_the_cpu(on_device):
    images = textured(), textured((6.0, 3.0))
    expected = match_images(*images)
    on_device()
    matches = match_images(*images)
    assert len(expected.xy_a) > 100
    assert abs(len(matches.xy_a) - len(expected.xy_a)) < 0.05 * len(expected.xy_a)
    near = np.abs(matches.xy_b - matches.xy_a - [6, 3]).max(axis=1)
    assert np.median(near) < 0.1 and (near < 1).mean() > 0.98
