"""The vectors of a region's patches: read by several threads, encoded one by one or in batches."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor

from ml.roi.encoders.protocol import PatchEncoder
from ml.roi.measures.features import tissue_share
from ml.roi.patches import Corner, PatchSource
from ml.roi.stain import StainEstimate
from ml.types import ArrayF32, ImageU8, Progress

MIN_TISSUE_SHARE = 0.05
"""A patch with less tissue than this is not a vertex."""


def patch_vectors(  # noqa: PLR0917
    source: PatchSource,
    corners: list[Corner],
    patch_px: int,
    stains: StainEstimate,
    encoder: PatchEncoder,
    progress: Progress,
) -> list[ArrayF32 | None]:
    """The vector (dim,) float32 of each patch, None if it holds next to no tissue.

    Args:
        corners: of the patches, in pixels of the encoder.
        stains: of their region.
        progress: called after each patch; may raise ``CancelledError``.
    """

    def has_tissue(patch: ImageU8) -> bool:
        return tissue_share(patch) >= MIN_TISSUE_SHARE

    def one(corner: Corner) -> ArrayF32 | None:
        patch = source.read(corner, patch_px)
        return encoder.encode([patch], stains)[0] if has_tissue(patch) else None

    def several(patches: list[ImageU8]) -> list[ArrayF32 | None]:
        kept = [has_tissue(patch) for patch in patches]
        chosen = [patch for patch, keep in zip(patches, kept, strict=True) if keep]
        vectors = iter(encoder.encode(chosen, stains) if chosen else ())
        return [next(vectors) if keep else None for keep in kept]

    with ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as pool:
        if encoder.batch == 1:
            return _collected(pool.map(one, corners), len(corners), progress)
        batches = _read_batches(source, corners, patch_px, encoder.batch, pool)
        found = (vector for patches in batches for vector in several(patches))
        return _collected(found, len(corners), progress)


def _read_batches(
    source: PatchSource, corners: list[Corner], patch_px: int, size: int, pool: Executor
) -> Iterator[list[ImageU8]]:
    """Patches in batches, the next one being read while the caller is busy with the last."""

    def submitted(start: int) -> list[Future[ImageU8]]:
        batch = corners[start : start + size]
        return [pool.submit(source.read, corner, patch_px) for corner in batch]

    ahead = submitted(0)
    for start in range(0, len(corners), size):
        patches = [future.result() for future in ahead]
        ahead = submitted(start + size)
        yield patches


def _collected(
    results: Iterable[ArrayF32 | None], total: int, progress: Progress
) -> list[ArrayF32 | None]:
    out = []
    for vector in results:
        out.append(vector)
        progress(len(out), total, "patches")
    return out
