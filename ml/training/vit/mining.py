"""Triplets of a still and its novel view: cycle-consistent pairs, hardest negatives, losses.

Source: dinov2-adaptation-endoscopic-matching, section III-C, eq. 13-15.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from ml.training.vit.novel_view import NovelView
from ml.types import ArrayBool, ArrayF32, ArrayI64

_SMALL = 1e-6
"""Keeps the square root of eq. 14 differentiable at zero distance."""


@dataclass(frozen=True, slots=True)
class TruePatchPairs:
    """Patches of the source with their partner in the view.

    Attributes:
        source: (K,) int64, patch of the source, counted along rows.
        target: (K,) int64, patch of the view that holds p_gt.
        xy_t: (K, 2) float32, p_gt of the source patch's centre, pixels of the view.
    """

    source: ArrayI64
    target: ArrayI64
    xy_t: ArrayF32

    def __len__(self) -> int:
        return len(self.source)


def patch_centres(shape: tuple[int, int], patch_px: int) -> ArrayF32:
    """(h * w, 2) float32 centres in pixels, pixel centres at whole numbers, counted along rows."""
    rows, columns = np.mgrid[: shape[0], : shape[1]]
    xy = np.stack([columns.ravel(), rows.ravel()], axis=1)
    return ((xy + 0.5) * patch_px - 0.5).astype(np.float32)


def patch_pairs(
    view: NovelView,
    *,
    patch_px: int,
    valid: ArrayBool | None = None,
    cycle_px: float | None = None,
) -> TruePatchPairs:
    """Pair the patch of p_s with the patch of p_gt.

    A pair is cycle-consistent if the source position at p_gt is within ``cycle_px`` of p_s, which
    excludes occluded patches.

    Args:
        view: of sides that are multiples of the patch.
        valid: (H, W) bool of the source; patches with an invalid pixel give no pair.
        cycle_px: None keeps every pair whose p_gt is inside the view.
    Source: dinov2-adaptation-endoscopic-matching, section III-C, "cycle-consistency constraint".
    """
    height, width = view.xy_t.shape[:2]
    shape = (height // patch_px, width // patch_px)
    centres = patch_centres(shape, patch_px)
    xy_t = _sample_field(view.xy_t, centres)
    inside = np.isfinite(xy_t).all(axis=1)
    inside &= (xy_t > -0.5).all(axis=1)
    inside &= (xy_t[:, 0] < width - 0.5) & (xy_t[:, 1] < height - 0.5)
    if valid is not None:
        blocks = valid[: shape[0] * patch_px, : shape[1] * patch_px]
        blocks = blocks.reshape(shape[0], patch_px, shape[1], patch_px)
        inside &= blocks.all(axis=(1, 3)).ravel()
    if cycle_px is not None:
        back = _sample_field(view.xy_s, np.where(inside[:, None], xy_t, 0))
        distances = np.linalg.norm(back - centres, axis=1)
        inside &= np.isfinite(distances) & (distances <= cycle_px)
    source = np.flatnonzero(inside)
    cell = np.floor((xy_t[source] + 0.5) / patch_px).astype(np.int64)
    return TruePatchPairs(
        source, cell[:, 1] * shape[1] + cell[:, 0], xy_t[source].astype(np.float32)
    )


def sample_map(features: Tensor, xy: Tensor, *, patch_px: int) -> Tensor:
    """Unit descriptors at points between the patch centres, bilinear.

    Args:
        features: (E, h, w).
        xy: (K, 2) pixels.
    Returns:
        (K, E), unit length. Points beyond the outermost centres take the nearest.
    """
    height, width = features.shape[1:]
    cell = (xy + 0.5) / patch_px - 0.5
    scale = torch.tensor([max(width - 1, 1), max(height - 1, 1)], dtype=xy.dtype, device=xy.device)
    grid = (cell / scale * 2 - 1)[None, :, None]
    values = functional.grid_sample(
        features[None], grid.to(features), padding_mode="border", align_corners=True
    )
    return functional.normalize(values[0, :, :, 0].T, dim=1)


def cosine_distance(a: Tensor, b: Tensor) -> Tensor:
    """(N, M) distances sqrt(2 - 2 cos) between the rows of (N, E) and (M, E).

    Source: dinov2-adaptation-endoscopic-matching, eq. 14.
    """
    cosine = functional.normalize(a, dim=1) @ functional.normalize(b, dim=1).T
    return (2 - 2 * cosine).clamp(min=_SMALL).sqrt()


def row_distance(a: Tensor, b: Tensor) -> Tensor:
    """(N,) distances of eq. 14 between corresponding rows of (N, E) and (N, E)."""
    return (2 - 2 * functional.cosine_similarity(a, b, dim=1)).clamp(min=_SMALL).sqrt()


def near_patches(xy_t: ArrayF32, shape: tuple[int, int], patch_px: int, reach: float) -> ArrayBool:
    """(K, h * w) bool: patches near p_gt, which are no negatives of a pair.

    Args:
        xy_t: (K, 2) p_gt.
        reach: in patches, along each axis; 0 excludes only the patch that holds
            p_gt, as the paper does.
    """
    centres = patch_centres(shape, patch_px)
    distances = np.abs(centres[None] - xy_t[:, None]).max(axis=2)
    cell = np.floor((xy_t + 0.5) / patch_px).astype(np.int64)
    near = distances < reach * patch_px
    near[np.arange(len(xy_t)), cell[:, 1] * shape[1] + cell[:, 0]] = True
    return np.asarray(near)


def hardest_negatives(anchor: Tensor, positive: Tensor, target: Tensor, near: Tensor) -> Tensor:
    """Row of the view nearest to the anchor or the positive.

    Args:
        anchor, positive: (K, E).
        target: (M, E), M_t.
        near: (K, M) bool, excluded.
    Returns:
        (K,) int64 rows of ``target``.
    Source: dinov2-adaptation-endoscopic-matching, eq. 15.
    """
    with torch.no_grad():
        distance = torch.minimum(cosine_distance(anchor, target), cosine_distance(positive, target))
        return distance.masked_fill(near, torch.inf).argmin(dim=1)


def random_negatives(near: Tensor, generator: torch.Generator) -> Tensor:
    """Draw (K,) rows from those that (K, M) ``near`` does not exclude."""
    chance = torch.rand(near.shape, generator=generator).masked_fill(near.cpu(), -1.0)
    return chance.argmax(dim=1).to(near.device)


def triplet_loss(anchor: Tensor, positive: Tensor, negative: Tensor, *, margin: float) -> Tensor:
    """Mean over (K, E) rows of max(0, d(A, P) - d(A, N) + m).

    Source: dinov2-adaptation-endoscopic-matching, eq. 13.
    """
    gap = row_distance(anchor, positive) - row_distance(anchor, negative)
    return (gap + margin).clamp(min=0).mean()


def contrastive_loss(
    anchor: Tensor, positive: Tensor, target: Tensor, near: Tensor, *, temperature: float
) -> Tensor:
    """Cross-entropy of the positive against all patches of the view that are not near.

    Hardest negatives collapse an untrained network; the paper starts from DINOv2.
    """
    to_all = (
        functional.normalize(anchor, dim=1) @ functional.normalize(target, dim=1).T
    ) / temperature
    to_positive = functional.cosine_similarity(anchor, positive, dim=1) / temperature
    logits = torch.cat([to_positive[:, None], to_all.masked_fill(near, -torch.inf)], dim=1)
    return -(to_positive - torch.logsumexp(logits, dim=1)).mean()


def _sample_field(field: ArrayF32, xy: ArrayF32) -> ArrayF32:
    """Bilinear values of an (H, W, 2) field at (K, 2) points inside; NaN if one of four is."""
    height, width = field.shape[:2]
    xy = np.clip(np.nan_to_num(xy), 0, (width - 1, height - 1))
    low = np.minimum(np.floor(xy).astype(np.int64), (max(width - 2, 0), max(height - 2, 0)))
    part = (xy - low).astype(np.float32)
    x, y = low[:, 0], low[:, 1]
    x1, y1 = np.minimum(x + 1, width - 1), np.minimum(y + 1, height - 1)
    px, py = part[:, :1], part[:, 1:]
    top = field[y, x] * (1 - px) + field[y, x1] * px
    bottom = field[y1, x] * (1 - px) + field[y1, x1] * px
    return np.asarray(top * (1 - py) + bottom * py, np.float32)
