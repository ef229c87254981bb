"""Verification of matches by local affine maps of their neighbours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from ml.keypoints.verification.a_contrario import log10_false_alarms
from ml.types import ArrayBool, ArrayF32, ArrayF64, ArrayI64

_MIN_FOR_NEIGHBOURS = 6
"""Smallest number of matches: a seed and ``MIN_NEIGHBOURS``."""

MIN_NEIGHBOURS = 5
"""Smallest number of neighbours: two determine a map with the seed, three more must agree."""

SAMPLE = 3
"""Matches that determine an affine map: the seed and two neighbours."""

SEED_SHARE = 0.25
"""Radius of non-maximum suppression of seeds relative to that of neighbourhoods, so that each
match is in several neighbourhoods."""

MIN_SINE = 0.15
"""Smallest sine of the angle between the two neighbours of a trial at the seed, about 9 degrees."""

MIN_ROUNDNESS = 0.12
"""Smallest determinant of a local map relative to its squared Frobenius norm: a ratio of the axes
of eight, more than a tilt at which texture is visible."""

IMPLAUSIBLE = 1e6
"""Entries of rejected maps, with which no match agrees."""

TINY_RIDGE = 1e-6
"""Ridge of the refit, for neighbourhoods without votes."""

_CHUNK = 64
"""Seeds per chunk: four arrays of 2 MB with 128 trials and 64 neighbours."""


@dataclass(frozen=True, slots=True)
class LocalAffineConfig:
    """Configuration of verification; chosen on the development sequences
    (docs/models/keypoints.md).

    Attributes:
        radius_share: Radius of a neighbourhood relative to the square root of the image area.
        neighbours: Largest number of nearest matches in a neighbourhood.
        trials: Number of affine maps tried per neighbourhood.
        tolerance_share: Largest residual of an inlier relative to the radius.
        max_log10_nfa: Largest log10 of the number of false alarms of a neighbourhood.
        max_stretch: Largest change of scale of a local map.
        random_seed: Seed of the trials.
    """

    radius_share: float = 0.22
    neighbours: int = 64
    trials: int = 128
    tolerance_share: float = 0.02
    max_log10_nfa: float = -3.0
    max_stretch: float = 3.0
    random_seed: int = 5


def consistent_matches(
    xy_a: ArrayF32,
    xy_b: ArrayF32,
    score: ArrayF32,
    *,
    area_px: tuple[float, float],
    config: LocalAffineConfig = LocalAffineConfig(),
) -> ArrayBool:
    """Find matches that are supported by at least one meaningful neighbourhood.

    Seeds are local maxima of the score. The matches near a seed in both images vote for random
    affine maps through the seed, and the best map is refitted. A neighbourhood is meaningful if its
    number of false alarms is low; random partners of a match are in the disc around the partner of
    the seed.

    Args:
        xy_a, xy_b: (N, 2) float32 pixels.
        score: (N,), larger is better.
        area_px: Visible area of a and of b, square pixels.
    Returns:
        (N,) bool, supported matches.
    Source: Cavalli et al. 2020 (AdaLAM), section 3; departs from it by a fixed tolerance and by
        the a-contrario count (Moisan and Stival 2004) in place of its residual ratio.
    """
    n = len(xy_a)
    keep = np.zeros(n, np.bool_)
    if n < _MIN_FOR_NEIGHBOURS:
        return keep
    a, b = xy_a.astype(np.float64), xy_b.astype(np.float64)
    radius_a, radius_b = (config.radius_share * float(np.sqrt(area)) for area in area_px)
    index, is_near = _neighbours(a, b, radius_a, radius_b, config)
    seeds = _seeds(a, score, index, is_near, radius_a * SEED_SHARE)
    seeds = seeds[is_near[seeds].sum(axis=1) >= MIN_NEIGHBOURS]
    for start in range(0, len(seeds), _CHUNK):
        part = seeds[start : start + _CHUNK]
        inlier, seed_agrees = _vote(
            a, b, part, index[part], is_near[part], radius_b=radius_b, config=config
        )
        votes, rows = inlier.sum(axis=1) + 1, is_near[part].sum(axis=1) + 1
        share = np.full(len(part), config.tolerance_share**2)
        log_nfa = log10_false_alarms(
            votes, rows, sample=SAMPLE, share=share, models=float(len(seeds))
        )
        good = log_nfa < config.max_log10_nfa
        keep[part[good & seed_agrees]] = True
        keep[index[part[good]][inlier[good]]] = True
    return keep


def _neighbours(
    a: ArrayF64, b: ArrayF64, radius_a: float, radius_b: float, config: LocalAffineConfig
) -> tuple[ArrayI64, ArrayBool]:
    """Nearest other matches (N, K), and a mask of those near in both images."""
    count = min(config.neighbours + 1, len(a))
    distance, index = cKDTree(a).query(a, k=count, distance_upper_bound=radius_a)
    is_neighbour = np.isfinite(distance)
    index = np.where(is_neighbour, index, 0)
    is_self = index == np.arange(len(a))[:, None]
    distance_b = np.linalg.norm(b[index] - b[:, None], axis=2)
    return index.astype(np.int64), np.asarray(
        is_neighbour & ~is_self & (distance_b < radius_b), np.bool_
    )


def _seeds(
    a: ArrayF64, score: ArrayF32, index: ArrayI64, is_near: ArrayBool, radius_px: float
) -> ArrayI64:
    """Rows without a better neighbour within ``radius_px``; ties go to the lower row."""
    rank = np.empty(len(a), np.int64)
    rank[np.argsort(-score, kind="stable")] = np.arange(len(a))
    is_close = is_near & (np.linalg.norm(a[index] - a[:, None], axis=2) < radius_px)
    is_beaten = (is_close & (rank[index] < rank[:, None])).any(axis=1)
    return np.flatnonzero(~is_beaten)


def _vote(
    a: ArrayF64,
    b: ArrayF64,
    seeds: ArrayI64,
    index: ArrayI64,
    is_near: ArrayBool,
    *,
    radius_b: float,
    config: LocalAffineConfig,
) -> tuple[ArrayBool, ArrayBool]:
    """Masks of the neighbours (S, K) and seeds (S,) that agree with the best map."""
    offset_a, offset_b = a[index] - a[seeds][:, None], b[index] - b[seeds][:, None]
    tolerance = config.tolerance_share * radius_b
    linear = _trial_maps(offset_a, offset_b, is_near, config).astype(np.float32)
    from_x, from_y = (offset_a[:, None, :, c].astype(np.float32) for c in (0, 1))
    to_x, to_y = (offset_b[:, None, :, c].astype(np.float32) for c in (0, 1))
    # explicit, as a batch of 2 x 2 products is ten times slower
    error_x = linear[..., 0, 0, None] * from_x + linear[..., 0, 1, None] * from_y - to_x
    error_y = linear[..., 1, 0, None] * from_x + linear[..., 1, 1, None] * from_y - to_y
    agrees = (error_x**2 + error_y**2 < tolerance**2) & is_near[:, None]
    votes = agrees.sum(axis=2)
    best = votes.argmax(axis=1)
    inlier = agrees[np.arange(len(seeds)), best]
    inlier[votes.max(axis=1) < SAMPLE] = False
    return _refit(offset_a, offset_b, is_near, inlier, tolerance)


def _trial_maps(
    offset_a: ArrayF64, offset_b: ArrayF64, is_near: ArrayBool, config: LocalAffineConfig
) -> ArrayF64:
    """Linear maps (S, T, 2, 2) from pairs of neighbours; rejected ones are ``IMPLAUSIBLE``."""
    rng = np.random.default_rng(config.random_seed)
    count = is_near.sum(axis=1)
    order = np.argsort(~is_near, axis=1, kind="stable")  # near neighbours first
    first = rng.random((len(count), config.trials)) * count[:, None]
    step = 1 + rng.random((len(count), config.trials)) * np.maximum(count - 1, 0)[:, None]
    i = first.astype(np.int64)
    j = (i + step.astype(np.int64)) % np.maximum(count, 1)[:, None]
    i, j = np.take_along_axis(order, i, 1), np.take_along_axis(order, j, 1)
    rows = np.arange(len(count))[:, None]
    source = np.stack([offset_a[rows, i], offset_a[rows, j]], axis=3)
    target = np.stack([offset_b[rows, i], offset_b[rows, j]], axis=3)
    area = source[..., 0, 0] * source[..., 1, 1] - source[..., 0, 1] * source[..., 1, 0]
    size = np.linalg.norm(source, axis=2).prod(axis=2)
    is_spread = np.abs(area) > MIN_SINE * np.maximum(size, 1e-9)  # not collinear with the seed
    adjugate = np.empty_like(source)
    adjugate[..., 0, 0], adjugate[..., 1, 1] = source[..., 1, 1], source[..., 0, 0]
    adjugate[..., 0, 1], adjugate[..., 1, 0] = -source[..., 0, 1], -source[..., 1, 0]
    linear = target @ adjugate / np.where(is_spread, area, 1.0)[..., None, None]
    determinant = linear[..., 0, 0] * linear[..., 1, 1] - linear[..., 0, 1] * linear[..., 1, 0]
    norm = np.sqrt((linear**2).sum(axis=(2, 3)))
    limit = config.max_stretch
    # 1.5 as the norm of two axes, slightly above the square root of 2
    is_plausible = (determinant > 1 / limit**2) & (norm < 1.5 * limit)
    is_plausible &= determinant > MIN_ROUNDNESS * norm**2
    linear[~(is_spread & is_plausible)] = IMPLAUSIBLE
    return np.asarray(linear, np.float64)


def _refit(
    offset_a: ArrayF64, offset_b: ArrayF64, is_near: ArrayBool, inlier: ArrayBool, tolerance: float
) -> tuple[ArrayBool, ArrayBool]:
    """Masks of neighbours and seeds that agree with a least-squares fit to the inliers."""
    design = np.concatenate([offset_a, np.ones((*offset_a.shape[:2], 1))], axis=2)
    weighted = design * inlier[:, :, None]
    normal = weighted.transpose(0, 2, 1) @ design
    normal[:, range(3), range(3)] += TINY_RIDGE
    solved = np.linalg.solve(normal, weighted.transpose(0, 2, 1) @ offset_b)
    error = np.linalg.norm(design @ solved - offset_b, axis=2)
    has_votes = np.asarray(inlier.any(axis=1))
    refitted: ArrayBool = (error < tolerance) & is_near & has_votes[:, None]
    is_better = refitted.sum(axis=1) >= inlier.sum(axis=1)
    seed_agrees = np.hypot(*solved[:, 2].T) < tolerance
    return np.asarray(np.where(is_better[:, None], refitted, inlier)), np.asarray(seed_agrees)
