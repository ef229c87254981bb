"""How well the patches of a pair with exact truth are matched: the paper's matcher on our pairs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from ml.keypoints.descriptors.vit_dense import distance_ratios, mutual_patches
from ml.networks.vit_adapter import VitMatcher
from ml.training.vit.mining import patch_centres, patch_pairs
from ml.training.vit.pairs import NovelViewPair

THRESHOLDS = (0.6, 0.7, 0.8, 0.9, 0.95)
"""Similarities at which the end of a run is scored; the last one is the paper's."""

RATIOS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
"""Ratios at which it is scored; Lowe's is 0.8."""


def score_pairs(
    network: VitMatcher,
    pairs: Sequence[NovelViewPair],
    *,
    threshold: float = 0.95,
    ratio: float = 0.0,
) -> dict[str, float]:
    """Mutual arg-max between the patches of each pair, against its exact correspondence.

    Returns:
        ``precision``: share of mutual matches of visible patches that end within one patch of
        p_gt; ``recall``: share of the visible patches matched so; ``sure_precision``,
        ``sure_recall``: the same over the matches above ``threshold`` and, unless it is 0, below
        ``ratio`` (NaN if there is none).
    """
    network.eval()
    tallies = np.zeros(5)
    for pair in pairs:
        tallies += _tally(network, pair, threshold, ratio)
    matched, right, sure, sure_right, visible = tallies.tolist()
    return {
        "precision": right / matched if matched else float("nan"),
        "recall": right / visible if visible else float("nan"),
        "sure_precision": sure_right / sure if sure else float("nan"),
        "sure_recall": sure_right / visible if visible else float("nan"),
    }


def score_rules(network: VitMatcher, pairs: Sequence[NovelViewPair]) -> dict[str, dict[str, float]]:
    """By rule of a match: precision and recall of what it keeps, and F1 of the two."""
    asked = {f"similarity > {value:g}": (value, 0.0) for value in THRESHOLDS}
    asked |= {f"ratio < {value:g}": (-1.0, value) for value in RATIOS}
    rules = {}
    for name, (threshold, ratio) in asked.items():
        found = score_pairs(network, pairs, threshold=threshold, ratio=ratio)
        precision, recall = found["sure_precision"], found["sure_recall"]
        f1 = 2 * precision * recall / max(precision + recall, 1e-9)
        rules[name] = {"precision": precision, "recall": recall, "f1": f1}
    return rules


def _tally(network: VitMatcher, pair: NovelViewPair, threshold: float, ratio: float) -> np.ndarray:
    patch_px = network.patch_px
    images = np.stack([pair.source, pair.view.image])
    pixels = torch.from_numpy(images).permute(0, 3, 1, 2).float().div(255)
    device = next(network.parameters(), torch.empty(0)).device
    with torch.inference_mode():
        maps = network(pixels.to(device)).cpu()
    source, target = (m.flatten(1).T.numpy() for m in maps)
    matches, similarity = mutual_patches(source, target)
    truth = patch_pairs(pair.view, patch_px=patch_px, valid=pair.valid, cycle_px=1.5)
    xy_t = np.full((len(source), 2), np.nan, np.float32)
    xy_t[truth.source] = truth.xy_t
    known = np.isfinite(xy_t[matches[:, 0], 0])
    found = patch_centres((maps.shape[2], maps.shape[3]), patch_px)[matches[known, 1]]
    away = np.abs(found - xy_t[matches[known, 0]]).max(axis=1)
    is_right, is_sure = away <= patch_px, similarity[known] > threshold
    if ratio:
        centres = patch_centres((maps.shape[2], maps.shape[3]), patch_px)
        ratios = distance_ratios(source, target, matches[known], centres, apart=patch_px)
        is_sure &= ratios < ratio
    return np.array(
        [known.sum(), is_right.sum(), is_sure.sum(), (is_right & is_sure).sum(), len(truth)]
    )
