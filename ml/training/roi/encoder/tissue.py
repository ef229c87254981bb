"""Features of tissue of many patients under several looks, for the metric."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np

from ml.errors import BadInputError
from ml.files import write_npz
from ml.roi.encoders.protocol import PatchEncoder
from ml.roi.measures.features import PATCH_PX, tissue_share
from ml.roi.patches import cut_patch
from ml.roi.stain.deconvolution import published_stains
from ml.training.roi.encoder.augment import random_look, with_look
from ml.training.roi.encoder.pool import MIN_TISSUE_SHARE
from ml.training.roi.patches.blocks import Block, read_blocks
from ml.types import ArrayF32, ImageU8, Progress

_MIN_MPP = 0.44
"""Least microns per pixel of a block of 508 px that holds a patch at 1 um per pixel."""


def load_or_measure(
    data: Path,
    atlas: Path | None,
    cache: Path,
    *,
    slides: Sequence[tuple[str, str, float]] = (),
    encoder: PatchEncoder,
    looks: int,
    stain: float,
    seed: int,
    progress: Progress,
) -> list[ArrayF32]:
    """Read or compute (V, N, C) features of N patches of each patient under V looks.

    Args:
        data: folder the sources are in.
        atlas: table of tiles; None for none.
        cache: ``.npz`` file, read if it exists.
        slides: further sources, see ``read_blocks``.
        stain: strength of the looks, see ``random_look``.
    Raises:
        BadInputError: see ``read_blocks``; or no source holds a whole patch of tissue.
    """
    if cache.is_file():
        stored = np.load(cache, allow_pickle=False)
        return [stored[name] for name in sorted(stored.files)]
    blocks = read_blocks(data, atlas, slides, progress)
    measured: dict[str, ArrayF32] = {}
    for number, patient_blocks in enumerate(blocks.of_patient):
        rng = np.random.default_rng((seed, 7, number))
        patches = [patch for block in patient_blocks for patch in _patches(block, rng)]
        if patches:
            rows = [_features(patch, encoder, looks, stain, rng) for patch in patches]
            measured[f"{number:04d}"] = np.stack(rows, axis=1)
        progress(number + 1, len(blocks.of_patient), "features of tissue")
    if not measured:
        raise BadInputError(f"no source holds {PATCH_PX} x {PATCH_PX} um of tissue")
    write_npz(cache, measured)
    return [measured[name] for name in sorted(measured)]


def _patches(block: Block, rng: np.random.Generator) -> list[ImageU8]:
    """Patches of a block at 1 um per pixel: one, or two if it would hold four."""
    if block.mpp < _MIN_MPP:
        return []
    # Coarser blocks are not enlarged, as that would blur them.
    scale = min(block.mpp, 1.0)
    pixels = cv2.resize(block.mips[0], None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    pixels_1um = np.asarray(pixels, np.uint8)
    if min(pixels_1um.shape[:2]) < PATCH_PX:
        return []
    count = 2 if pixels_1um.shape[0] >= 2 * PATCH_PX - PATCH_PX // 4 else 1
    patches = []
    for _ in range(count):
        x, y = (int(rng.integers(0, side - PATCH_PX + 1)) for side in pixels_1um.shape[1::-1])
        patch = cut_patch(pixels_1um, (x, y), PATCH_PX)
        if tissue_share(patch) >= MIN_TISSUE_SHARE:
            patches.append(patch)
    return patches


def _features(
    patch: ImageU8, encoder: PatchEncoder, looks: int, stain: float, rng: np.random.Generator
) -> ArrayF32:
    """(V, C) features of a patch, unchanged and under random stains."""
    views = [patch]
    views += [with_look(patch, random_look(rng, stain=stain, zoom=0.0)) for _ in range(looks - 1)]
    return np.concatenate([encoder.encode([view], published_stains(view)) for view in views])
