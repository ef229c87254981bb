"""A metric learned without labels: what changes with the look of a patch should count little."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ml.types import ArrayBool, ArrayF32, ArrayF64


@dataclass(frozen=True, slots=True)
class Metric:
    """An affine map of raw features, ``((x - mean) * scale) @ matrix``.

    Attributes:
        mean, scale: (C,) float32.
        matrix: (C, D) float32, orthogonal directions by falling variance; the mean square of what
            it gives is one.
    """

    mean: ArrayF32
    scale: ArrayF32
    matrix: ArrayF32


def learn_metric(
    features: Sequence[ArrayF32],
    share: ArrayF64,
    *,
    block_scale: ArrayF32,
    alike: ArrayBool | None = None,
    dim: int,
    ridge: float,
) -> Metric:
    """Standardise, whiten by the covariance between looks of one patch, keep the main directions.

    Args:
        features: for each slide (V, N, C): V looks of N patches.
        share: (slides,) how much each slide counts, summing to one.
        block_scale: (C,) factors after standardisation, see ``PatchEncoder``.
        alike: (C,) features that share one deviation, see ``PatchEncoder``.
        dim: D, directions to keep.
        ridge: added to the covariance, in units of its mean eigenvalue.
    Source: within-class covariance normalisation (Hatch, Kajarekar and Stolcke 2006), the class
        being a patch and its members the augmented looks of it.
    """
    means = [slab.mean(axis=(0, 1), dtype=np.float64) for slab in features]
    mean = np.average(means, axis=0, weights=share)
    spread = [np.square(slab - mean).mean(axis=(0, 1)) for slab in features]
    variance = np.average(spread, axis=0, weights=share)
    if alike is not None and alike.any():
        variance[alike] = variance[alike].mean()
    deviation = np.sqrt(np.maximum(variance, 1e-6))
    scale = block_scale / deviation
    within = _scatter([(slab - slab.mean(axis=0)) * scale for slab in features], share)
    ridged = within + ridge * within.trace() / len(within) * torch.eye(len(within)).double()
    whiten = torch.linalg.cholesky(torch.linalg.inv(ridged))
    total = whiten.T @ _scatter([(slab - mean) * scale for slab in features], share) @ whiten
    value, vector = torch.linalg.eigh((total + total.T) / 2)
    main = vector.flip(1)[:, :dim]
    matrix = (whiten @ main / value.flip(0)[:dim].mean().clamp(min=1e-12).sqrt()).numpy()
    return Metric(
        mean.astype(np.float32), scale.astype(np.float32), np.asarray(matrix, dtype=np.float32)
    )


def _scatter(slabs: Sequence[ArrayF64], share: ArrayF64) -> Tensor:
    """(C, C) float64: second moment over looks and patches, averaged over slides by their share.

    In torch, whose memory is aligned: with one thread the same input gives the same bits.
    """
    moments = []
    for slab in slabs:
        rows = torch.from_numpy(slab.reshape(-1, slab.shape[-1])).double().clone()
        moments.append(rows.T @ rows / len(rows))
    return sum(
        (m * float(s) for m, s in zip(moments, share, strict=True)), torch.zeros(()).double()
    )
