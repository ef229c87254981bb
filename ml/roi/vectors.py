"""Vectors of the patches of a region, read by several threads and encoded in batches."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor

from ml.roi.encoders.protocol import PatchEncoder
from ml.roi.measures.features import tissue_share
from ml.roi.patches import Corner, PatchSource
from ml.roi.stain.deconvolution import StainEstimate
from ml.types import ArrayF32, ImageU8, Progress

MIN_TISSUE_SHARE = 0.05
"""Smallest share of tissue of a vertex."""


def patch_vectors(  # noqa: PLR0917
    source: PatchSource,
    corners: list[Corner],
    patch_px: int,
    stains: StainEstimate,
    encoder: PatchEncoder,
    progress: Progress,
) -> list[ArrayF32 | None]:
    """Vector (dim,) float32 of each patch; None without tissue.

    Args:
        corners: Corners of the patches, in pixels of the encoder.
        stains: Stains of the region.
        progress: Called after each patch; may raise ``CancelledError``.
    """

    def has_tissue(patch: ImageU8) -> bool:
        return tissue_share(patch) >= MIN_TISSUE_SHARE

    def encode_one(corner: Corner) -> ArrayF32 | None:
        patch = source.read(corner, patch_px)
        return encoder.encode([patch], stains)[0] if has_tissue(patch) else None

    def encode_batch(patches: list[ImageU8]) -> list[ArrayF32 | None]:
        masks = [has_tissue(patch) for patch in patches]
        tissue_patches = [
            patch for patch, is_tissue in zip(patches, masks, strict=True) if is_tissue
        ]
        vectors = iter(encoder.encode(tissue_patches, stains) if tissue_patches else ())
        return [next(vectors) if is_tissue else None for is_tissue in masks]

    with ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as pool:
        if encoder.batch == 1:
            return _collect(pool.map(encode_one, corners), len(corners), progress)
        batches = _read_batches(source, corners, patch_px, encoder.batch, pool)
        encoded = (vector for patches in batches for vector in encode_batch(patches))
        return _collect(encoded, len(corners), progress)


def _read_batches(
    source: PatchSource, corners: list[Corner], patch_px: int, size: int, pool: Executor
) -> Iterator[list[ImageU8]]:
    """Yield patches in batches, with the next batch read concurrently."""

    def submit(start: int) -> list[Future[ImageU8]]:
        batch = corners[start : start + size]
        return [pool.submit(source.read, corner, patch_px) for corner in batch]

    next_batch = submit(0)
    for start in range(0, len(corners), size):
        patches = [future.result() for future in next_batch]
        next_batch = submit(start + size)
        yield patches


def _collect(
    results: Iterable[ArrayF32 | None], total: int, progress: Progress
) -> list[ArrayF32 | None]:
    out = []
    for vector in results:
        out.append(vector)
        progress(len(out), total, "patches")
    return out
