"""Patches of triplets: anchors around key points, positives in perspective."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from ml.errors import BadInputError
from ml.keypoints.descriptors.patches import cut_patches
from ml.training.descriptors.views import KeypointStill, StillViewConfig, other_light
from ml.types import ArrayI64, ImageU8

_WINDOW = 1.5
"""Side of the window of a positive, in patches: it holds any tilted patch."""

_CHUNK = 128
"""Number of patches warped at once, to bound the memory."""


@dataclass(frozen=True, slots=True)
class PerspectiveConfig:
    """Difference of a positive from its anchor."""

    rotation_deg: float = 15.0  # largest, in either direction
    scale: float = 0.15  # largest log scale, in either direction
    tilt: float = 0.1  # largest shift of each corner, as a share of the side
    shift_px: float = 1.0  # largest shift of the patch, as of a detector


@dataclass(frozen=True, slots=True)
class TripletSet:
    """Anchors and positives, (N, 1, S, S) uint8; row i of both is triplet i of ``still[i]``."""

    anchors: Tensor
    positives: Tensor
    still: ArrayI64

    def __len__(self) -> int:
        return len(self.anchors)


def draw_triplets(
    rng: np.random.Generator,
    stills: Sequence[KeypointStill],
    *,
    count: int,
    patch_px: int,
    perspective: PerspectiveConfig,
    light: StillViewConfig,
) -> TripletSet:
    """Draw key points of the stills, and cut both patches of each.

    Args:
        count: N, at most the number of key points.
        light: its photometric part is applied to its share of the positives.
    Raises:
        BadInputError: fewer than 2 key points.
    Source: adaptive-triplet-endoscopic-matching, section 2.2 and figure 4.
    """
    origin = np.concatenate([np.full(len(still.xy), i) for i, still in enumerate(stills)])
    xy = np.concatenate([still.xy for still in stills])
    if len(xy) < 2:
        raise BadInputError(f"triplets: expected at least 2 key points, got {len(xy)}")
    chosen = rng.permutation(len(xy))[:count]
    chosen = chosen[np.argsort(origin[chosen], kind="stable")]
    side = round(_WINDOW * patch_px)
    anchors, positives = [], []
    for i in np.unique(origin[chosen]):
        points = np.ascontiguousarray(xy[chosen[origin[chosen] == i]])
        windows = cut_patches(stills[i].equalised, points, side_px=side, support_px=float(side))
        edge = (side - patch_px) // 2
        anchors.append(_as_u8(windows[:, :, edge : edge + patch_px, edge : edge + patch_px]))
        warped = perspective_patches(rng, windows, patch_px=patch_px, config=perspective)
        positives.append(_relit(rng, _as_u8(warped), light))
    order = rng.permutation(len(chosen))
    still = origin[chosen][order].astype(np.int64)
    return TripletSet(torch.cat(anchors)[order], torch.cat(positives)[order], still)


def perspective_patches(
    rng: np.random.Generator, windows: Tensor, *, patch_px: int, config: PerspectiveConfig
) -> Tensor:
    """Cut a patch of each window, rotated, scaled and tilted at random about its centre.

    Args:
        windows: (N, 1, W, W) in [0, 1], W > patch_px.
    Returns:
        (N, 1, patch_px, patch_px) in [0, 1].
    """
    maps = np.stack([_corner_map(rng, patch_px, config) for _ in range(len(windows))])
    step = torch.arange(patch_px, dtype=torch.float32, device=windows.device) + 0.5 - patch_px / 2
    v, u = torch.meshgrid(step, step, indexing="ij")
    plane = torch.stack([u, v, torch.ones_like(u)], dim=-1).reshape(-1, 3)
    parts = []
    for start in range(0, len(windows), _CHUNK):
        matrix = torch.from_numpy(maps[start : start + _CHUNK]).float().to(windows.device)
        moved = plane @ matrix.transpose(1, 2)
        grid = moved[..., :2] / moved[..., 2:] * (2.0 / windows.shape[-1])
        parts.append(
            functional.grid_sample(
                windows[start : start + _CHUNK],
                grid.reshape(-1, patch_px, patch_px, 2),
                padding_mode="reflection",
                align_corners=False,
            )
        )
    return torch.cat(parts)


def random_negatives(rng: np.random.Generator, count: int) -> ArrayI64:
    """Draw for each of ``count`` triplets a row of [anchors; positives] of another triplet.

    Source: adaptive-triplet-endoscopic-matching, section 2.2: "chosen randomly from the rest of the
        anchors and positive samples of other triplets".
    """
    other = (np.arange(count) + rng.integers(1, count, count)) % count
    return np.asarray(other + count * rng.integers(0, 2, count), np.int64)


def still_batches(rng: np.random.Generator, still: ArrayI64, size: int) -> list[ArrayI64]:
    """Divide rows into random batches, grouped by still as far as possible.

    Random negatives of such a batch are mostly patches of the same image, as in matching.

    Args:
        still: (N,) of each row.
        size: of a batch, at least 1; the last one may be smaller.
    Returns:
        batches: every row once.
    """
    shuffled = rng.permutation(len(still))
    turn = rng.permutation(int(still.max(initial=-1)) + 1)
    rows = shuffled[np.argsort(turn[still[shuffled]], kind="stable")]
    batches = [rows[i : i + size] for i in range(0, len(rows), size)]
    return [batches[i] for i in rng.permutation(len(batches))]


def as_patches(stored: Tensor) -> Tensor:
    """Convert uint8 patches to float32 in [0, 1]."""
    return stored.float() / 255.0


def _corner_map(rng: np.random.Generator, patch_px: int, config: PerspectiveConfig) -> np.ndarray:
    """(3, 3) map of pixels from the patch's centre to pixels from the window's centre."""
    half = patch_px / 2
    corners = np.array([[-half, -half], [half, -half], [half, half], [-half, half]], np.float32)
    angle = np.radians(rng.uniform(-config.rotation_deg, config.rotation_deg))
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    scale = np.exp(rng.uniform(-config.scale, config.scale))
    moved = scale * corners @ turn.T + rng.uniform(-config.tilt, config.tilt, (4, 2)) * patch_px
    tilt = cv2.getPerspectiveTransform(corners, np.asarray(moved, np.float32))
    centre = tilt[:2, 2] / tilt[2, 2]  # the key point stays in the centre, before the shift
    back = np.eye(3)
    back[:2, 2] = rng.uniform(-config.shift_px, config.shift_px, 2) - centre
    return np.asarray(back @ tilt)


def _relit(rng: np.random.Generator, patches: Tensor, light: StillViewConfig) -> Tensor:
    relit: list[ImageU8] = []
    for patch in patches[:, 0].numpy():
        changed = rng.random() < light.photometric
        relit.append(other_light(rng, patch, light) if changed else patch)
    return torch.from_numpy(np.stack(relit))[:, None]


def _as_u8(patches: Tensor) -> Tensor:
    return (patches * 255.0 + 0.5).clamp(0, 255).to(torch.uint8)
