"""Dense matching by ``vit``."""

from __future__ import annotations

import dataclasses

import cv2
import numpy as np
import pytest
import torch

from ml.errors import BadInputError
from ml.keypoints.descriptors.vit import VitDescriptor, descriptor_from_file
from ml.keypoints.descriptors.vit_dense import (
    DenseConfig,
    distance_ratios,
    match_dense,
    mutual_patches,
)
from ml.keypoints.descriptors.vit_weights import save_network
from ml.networks.vit_adapter import VitConfig, VitMatcher


def texture(shape, seed=0):
    noise = np.random.default_rng(seed).integers(0, 256, (*shape, 3)).astype(np.uint8)
    return cv2.GaussianBlur(noise, (0, 0), 2.5)


class Ramp(torch.nn.Module):
    """Simulated network whose descriptor of a patch is its mean colour."""

    width, patch_px = 3, 4
    config = VitConfig(max_tokens=400)

    def forward(self, pixels):
        means = torch.nn.functional.avg_pool2d(pixels, 4) - 0.5
        return torch.nn.functional.normalize(means, dim=1)


def test_mutual_patches_equal_a_slow_version():
    rng = np.random.default_rng(0)
    a, b = (rng.normal(0, 1, (n, 4)).astype(np.float32) for n in (1500, 40))
    similarity = a @ b.T
    slow = [
        [i, j]
        for i in range(len(a))
        for j in range(len(b))
        if similarity[i].argmax() == j and similarity[:, j].argmax() == i
    ]
    pairs, value = mutual_patches(a, b)
    assert pairs.tolist() == slow
    assert np.allclose(value, similarity[pairs[:, 0], pairs[:, 1]])


def test_no_patches_give_no_pairs():
    none, some = np.zeros((0, 4), np.float32), np.ones((3, 4), np.float32)
    for a, b in ((none, some), (some, none), (none, none)):
        assert mutual_patches(a, b)[0].shape == (0, 2)


def test_identical_images_match_in_place(tiny):
    image = texture((60, 80))
    matches = match_dense(image, image, descriptor=tiny, config=DenseConfig(ratio=0.0))
    assert len(matches) >= 0.98 * 15 * 20 and np.allclose(matches.score, 1, atol=1e-4)
    assert np.allclose(matches.xy_a, matches.xy_b, atol=1e-3)


def test_refinement_estimates_the_shift_within_a_patch():
    # b shows the scene 1 px further left than a: x_a = x_b + 1
    scene = texture((80, 101))
    a, b = scene[:, :-1], scene[:, 1:]
    descriptor = VitDescriptor("ramp", Ramp())
    config = DenseConfig(ratio=0.0, threshold=0.9)
    coarse = match_dense(
        a, b, descriptor=descriptor, config=dataclasses.replace(config, refine=False)
    )
    fine = match_dense(a, b, descriptor=descriptor, config=config)
    near = np.abs(coarse.xy_a - coarse.xy_b).max(axis=1) < 0.5
    assert near.sum() > 30
    away = fine.xy_a[near] - fine.xy_b[near]
    assert np.median(np.abs(away - (1, 0)).max(axis=1)) < 0.2


def test_threshold_and_resampling_change_the_matches(tiny):
    a, b = texture((60, 80)), texture((60, 80), 1)
    all_ = match_dense(a, b, descriptor=tiny, config=DenseConfig(ratio=0.0, refine=False))
    sure = match_dense(
        a, b, descriptor=tiny, config=DenseConfig(ratio=0.0, threshold=0.99, refine=False)
    )
    assert len(sure) <= len(all_) and (sure.score > 0.99).all()
    assert (np.diff(all_.score) <= 0).all()
    finer = match_dense(a, a, descriptor=tiny, config=DenseConfig(refine=False, resample=2))
    assert len(finer) > 2 * 15 * 20
    with pytest.raises(BadInputError, match="resample, window_px"):
        match_dense(a, b, descriptor=tiny, config=DenseConfig(resample=0))


def test_distance_ratios_equal_a_slow_version():
    rng = np.random.default_rng(0)
    a, b = (rng.normal(0, 1, (n, 6)) for n in (9, 40))
    a, b = (np.float32(x / np.linalg.norm(x, axis=1, keepdims=True)) for x in (a, b))
    at_b = rng.uniform(0, 30, (40, 2)).astype(np.float32)
    pairs, _ = mutual_patches(a, b)
    slow = [
        np.linalg.norm(a[i] - b[j])
        / min(
            np.linalg.norm(a[i] - b[other])
            for other in range(40)
            if np.abs(at_b[other] - at_b[j]).max() > 8
        )
        for i, j in pairs
    ]
    assert np.allclose(distance_ratios(a, b, pairs, at_b, min_rival_px=8), slow, atol=2e-3)
    everywhere = distance_ratios(a, b, pairs, at_b, min_rival_px=100)
    assert (everywhere < 1e-3).all()  # nothing is far enough to be a rival


def test_the_ratio_rejects_repeated_structures():
    scene, ramp = texture((60, 40)), VitDescriptor("ramp", Ramp())
    twice = np.concatenate([scene, scene], axis=1)
    strict, loose = DenseConfig(refine=False), DenseConfig(ratio=0.0, refine=False)
    assert len(match_dense(scene, scene, descriptor=ramp, config=strict)) > 140
    assert len(match_dense(scene, twice, descriptor=ramp, config=loose)) > 100
    assert len(match_dense(scene, twice, descriptor=ramp, config=strict)) == 0


def test_matches_are_in_pixels_of_each_image(tiny):
    image = texture((60, 80))
    small = cv2.resize(image, (40, 30), interpolation=cv2.INTER_AREA)
    matches = match_dense(image, small, descriptor=tiny, config=DenseConfig(ratio=0.0))
    assert matches.xy_a[:, 0].max() > 41 and matches.xy_b[:, 0].max() < 40


def test_a_published_architecture_is_adapted_and_matches(published, tmp_path):
    network = VitMatcher(VitConfig(backbone=published, heads=2))
    path = tmp_path / "adapted.safetensors"
    save_network(path, network, version="1")
    descriptor = descriptor_from_file(path)
    image = texture((84, 112))
    matches = match_dense(image, image, descriptor=descriptor)
    assert len(matches) >= 0.9 * 6 * 8 and np.allclose(matches.xy_a, matches.xy_b, atol=1e-3)
