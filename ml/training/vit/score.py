"""Patch matching on synthetic pairs with exact truth, by the paper's matcher."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from ml.keypoints.descriptors.vit_dense import mutual_patches
from ml.networks.vit_adapter import VitMatcher
from ml.training.vit.mining import patch_centres, patch_pairs
from ml.training.vit.pairs import NovelViewPair


def score_pairs(network: VitMatcher, pairs: Sequence[NovelViewPair]) -> dict[str, float]:
    """Score the mutual arg-max between the patches of each pair.

    Returns:
        ``precision``: share of the mutual matches of visible patches within one patch of p_gt,
        along each axis. ``recall``: share of the visible patches that are matched so. NaN without
        any.
    """
    network.eval()
    tallies = np.zeros(3)
    for pair in pairs:
        tallies += _tally(network, pair)
    matched, right, visible = tallies.tolist()
    return {
        "precision": right / matched if matched else float("nan"),
        "recall": right / visible if visible else float("nan"),
    }


def _tally(network: VitMatcher, pair: NovelViewPair) -> np.ndarray:
    """(3,) numbers of matches, of right ones, and of visible patches."""
    patch_px = network.patch_px
    images = np.stack([pair.source, pair.view.image])
    pixels = torch.from_numpy(images).permute(0, 3, 1, 2).float().div(255)
    device = next(network.parameters(), torch.empty(0)).device
    with torch.inference_mode():
        maps = network(pixels.to(device)).cpu()
    source, target = (m.flatten(1).T.numpy() for m in maps)
    matches, _ = mutual_patches(source, target)
    truth = patch_pairs(pair.view, patch_px=patch_px, valid=pair.valid, cycle_px=1.5)
    xy_t = np.full((len(source), 2), np.nan, np.float32)
    xy_t[truth.source] = truth.xy_t
    has_target = np.isfinite(xy_t[matches[:, 0], 0])
    matched_px = patch_centres((maps.shape[2], maps.shape[3]), patch_px)[matches[has_target, 1]]
    error = np.abs(matched_px - xy_t[matches[has_target, 0]]).max(axis=1)
    return np.array([has_target.sum(), (error <= patch_px).sum(), len(truth)])
