"""Several regions of one slide at once: their patches go through the encoder in common batches."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from ml.roi.encoders.protocol import PatchEncoder
from ml.roi.patches import BATCH, Corner, PatchSource
from ml.roi.stain import StainEstimate, stain_to_dict
from ml.roi.vectors import patch_vectors
from ml.types import ArrayF32, ImageU8, Progress


class JoinedPatches:
    """The patches of several regions as one source: a corner is (region, its patch)."""

    def __init__(self, regions: Sequence[tuple[PatchSource, list[Corner]]]) -> None:
        self._regions = regions
        self.corners: list[Corner] = [
            (at, patch) for at, (_, corners) in enumerate(regions) for patch in range(len(corners))
        ]

    def read(self, corner_px: Corner, patch_px: int) -> ImageU8:
        """See ``PatchSource``."""
        source, corners = self._regions[corner_px[0]]
        return source.read(corners[corner_px[1]], patch_px)


def vectors_of_several(
    regions: Sequence[tuple[PatchSource, list[Corner], StainEstimate]],
    patch_px: int,
    encoder: PatchEncoder,
    progress: Progress,
) -> list[list[ArrayF32 | None]]:
    """``patch_vectors`` of each region; those measured by the same stains share their batches.

    Args:
        regions: source, corners and stains of each.
    """
    found: list[list[ArrayF32 | None]] = [[] for _ in regions]
    alike: dict[str, list[int]] = {}
    for at, (_, _, stains) in enumerate(regions):
        alike.setdefault(json.dumps(stain_to_dict(stains)), []).append(at)
    for members in alike.values():
        joined = JoinedPatches([regions[at][:2] for at in members])
        stains = regions[members[0]][2]
        vectors = patch_vectors(joined, joined.corners, patch_px, stains, encoder, progress)
        for (member, _), vector in zip(joined.corners, vectors, strict=True):
            found[members[member]].append(vector)
    return found


def batches_by_patches(counts: Sequence[int]) -> Iterator[list[int]]:
    """Regions that are worked on together, by the number of their patches: at most so many that
    their pixels fit into memory; a larger region alone."""
    batch: list[int] = []
    patches = 0
    for at, count in enumerate(counts):
        if batch and patches + count > BATCH:
            yield batch
            batch, patches = [], 0
        batch.append(at)
        patches += count
    if batch:
        yield batch
