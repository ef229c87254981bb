"""A metric learned without labels, by whitening within patients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ml.types import ArrayF32


@dataclass(frozen=True, slots=True)
class Metric:
    """An affine map of raw features, ``((x - mean) * scale) @ matrix``.

    Attributes:
        mean, scale: (C,) float32.
        matrix: (C, D) float32, orthogonal directions by falling variance; mapped features have a
            mean squared length of one.
    """

    mean: ArrayF32
    scale: ArrayF32
    matrix: ArrayF32


def learn_metric(
    features: Sequence[ArrayF32], *, dim: int, ridge: float, power: float = 0.5
) -> Metric:
    """Whiten by the covariance around each patient's own mean.

    Differences between patients (laboratory, scanner) are between the means, differences between
    tissues within. Patients are weighted by the square root of their number of patches.

    Args:
        features: for each patient (V, N, C): V looks of N patches.
        dim: D, main directions to keep.
        ridge: added to the variances, in units of their mean.
        power: exponent of the variances that directions are divided by; 0.5 whitens.
    Source: PCA whitening (Jegou and Chum 2012, section 3) within classes, the class being a
        patient (Hatch, Kajarekar and Stolcke 2006).
    """
    # torch aligns its memory: with one thread, the same input gives the same bits.
    slabs = [torch.from_numpy(slab.reshape(-1, slab.shape[-1])).double() for slab in features]
    share = np.sqrt([slab.shape[1] for slab in features])
    share /= share.sum()
    parts = list(zip(slabs, share.tolist(), strict=True))
    mean = sum((slab.mean(dim=0) * part for slab, part in parts), torch.zeros(()).double())
    spread = sum(
        ((slab - mean).square().mean(dim=0) * part for slab, part in parts),
        torch.zeros(()).double(),
    )
    scale = 1 / spread.clamp(min=1e-6).sqrt()
    within = torch.zeros(len(scale), len(scale)).double()
    for slab, part in parts:
        centred = (slab - slab.mean(dim=0)) * scale
        within += centred.T @ centred * (part / len(slab))
    value, vector = torch.linalg.eigh(within)
    value, main = value.flip(0).clamp(min=0), vector.flip(1)[:, :dim]
    matrix = main / (value[:dim] + ridge * value.mean()).pow(power)
    unit = ((matrix * (within @ matrix)).sum()).clamp(min=1e-12).sqrt()
    return Metric(
        mean.float().numpy(), scale.float().numpy(), np.asarray((matrix / unit).float().numpy())
    )
