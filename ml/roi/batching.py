"""Embedding of several regions with shared batches of patches."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from shapely.geometry.base import BaseGeometry

from ml.imaging.slides.prefetch import (
    PatchRequest,
    PrefetchedPatches,
    PrefetchPool,
    default_process_count,
    prefetch_pool,
    prefetch_process_count,
)
from ml.imaging.slides.slide import SlideImage
from ml.imaging.videos.prefetch import prefetch
from ml.networks.device import select_compute
from ml.roi.encoders.protocol import PatchEncoder
from ml.roi.patches import BATCH, Corner, PatchSource, SlidePatches
from ml.roi.sampling import PatchSample
from ml.roi.stain.deconvolution import StainEstimate
from ml.roi.stain.storage import stain_to_dict
from ml.roi.vectors import patch_vectors
from ml.types import ArrayF32, ImageU8, Progress

T = TypeVar("T")
ON_GPU, ON_CPU = 16, 1
"""Number of regions of different requests that are embedded together. A CPU encodes patch by patch,
so that waiting for others would gain nothing."""


def embed_batch_size() -> int:
    """Number of regions to embed together on the selected device.

    Raises:
        BadInputError: See ``select_compute``.
    """
    return ON_GPU if select_compute().batched else ON_CPU


@dataclass(frozen=True, slots=True)
class SlideRegions:
    """Regions of one slide.

    Attributes:
        slide: Open slide or still.
        polygons_l0: Polygons in level-0 pixels.
        mpp: Microns per pixel; None for that of the file.
        stain: Stains of the slide; None estimates them if needed.
    """

    slide: SlideImage
    polygons_l0: Sequence[BaseGeometry]
    mpp: float | None = None
    stain: StainEstimate | None = None


@dataclass(frozen=True, slots=True)
class SampledRegion:
    """A region of a slide with its patches.

    Attributes:
        place: Index of the slide and of the region.
        estimate: Function that estimates the stains of the slide.
    """

    place: tuple[int, int]
    slide: SlideImage
    sample: PatchSample
    estimate: Callable[[], StainEstimate]


class JoinedPatches:
    """Patches of several regions as one source; a corner is (region, patch)."""

    def __init__(self, regions: Sequence[tuple[PatchSource, list[Corner]]]) -> None:
        self._regions = regions
        self.corners: list[Corner] = [
            (at, patch) for at, (_, corners) in enumerate(regions) for patch in range(len(corners))
        ]

    def read(self, corner_px: Corner, patch_px: int) -> ImageU8:
        """See ``PatchSource``."""
        source, corners = self._regions[corner_px[0]]
        return source.read(corners[corner_px[1]], patch_px)


def vectors_of_regions(
    regions: Sequence[tuple[PatchSource, list[Corner], StainEstimate]],
    patch_px: int,
    encoder: PatchEncoder,
    progress: Progress,
) -> list[list[ArrayF32 | None]]:
    """``patch_vectors`` of several regions; regions with equal stains share batches, or all if the
    encoder does not use stains.

    Args:
        regions: Source, corners and stains of each region.
    """
    by_region: list[list[ArrayF32 | None]] = [[] for _ in regions]
    groups: dict[str, list[int]] = {}
    for at, (_, _, stains) in enumerate(regions):
        key = json.dumps(stain_to_dict(stains)) if encoder.uses_stains else ""
        groups.setdefault(key, []).append(at)
    for members in groups.values():
        joined = JoinedPatches([regions[at][:2] for at in members])
        stains = regions[members[0]][2]
        vectors = patch_vectors(joined, joined.corners, patch_px, stains, encoder, progress)
        for (member, _), vector in zip(joined.corners, vectors, strict=True):
            by_region[members[member]].append(vector)
    return by_region


def prefetched_frames(frames: Iterable[T]) -> Iterable[T]:
    """Prefetch frames in a thread if the encoder runs on a GPU; on a CPU return them unchanged.

    ``TESSERA_READERS`` overrides this: 0 disables and other numbers enable prefetching.

    Raises:
        BadInputError: See ``prefetch_process_count`` and ``select_compute``.
    """
    return (
        prefetch(frames)
        if prefetch_process_count(default=int(select_compute().batched))
        else frames
    )


def prefetch_pool_for(encoder: PatchEncoder) -> PrefetchPool | None:
    """Pool of processes that prefetch for an encoder; None if it would not be faster.

    Raises:
        BadInputError: See ``prefetch_process_count``.
    """
    count = prefetch_process_count(default=default_process_count() if encoder.batch > 1 else 0)
    return prefetch_pool(count) if count else None


def start_reading(
    region: SampledRegion,
    pool: PrefetchPool | None,
    make: Callable[[SlideImage, PatchSample], SlidePatches],
) -> PatchSource:
    """Start reading the patches of a region, in another process if there is a pool.

    Args:
        make: Creates the patch source of this process.
    """
    patches_source = make(region.slide, region.sample)
    # larger regions are read tile by tile, as they may not fit into memory
    if pool is None or region.slide.path is None or len(patches_source.corners) > BATCH:
        return patches_source
    request = PatchRequest(
        region.slide.path,
        region.sample.downsample,
        patches_source.corners,
        patches_source.patch_px,
        region.slide.info.display_range,
    )
    return pool.start(request, lambda: patches_source)


def prefetched_batches(
    regions: Sequence[SampledRegion], begin: Callable[[SampledRegion], PatchSource]
) -> Generator[tuple[list[SampledRegion], list[PatchSource]], None, None]:
    """Yield batches of regions with their sources, prefetched during the previous batch."""
    counts = [len(region.sample.centre_px) for region in regions]
    batches = [[regions[i] for i in batch] for batch in batches_by_patches(counts)]
    sources: list[PatchSource] = []
    next_sources: list[PatchSource] = []
    try:
        for batch, next_batch in zip(batches, [*batches[1:], []], strict=False):
            sources = next_sources or [begin(item) for item in batch]
            next_sources = [begin(item) for item in next_batch]
            yield batch, sources
    finally:
        for source in (*sources, *next_sources):
            if isinstance(source, PrefetchedPatches):
                source.close()


def batches_by_patches(counts: Sequence[int]) -> Iterator[list[int]]:
    """Group regions into batches of at most ``BATCH`` patches, to bound memory.

    A larger region is a batch by itself.

    Args:
        counts: Number of patches of each region.
    Yields:
        Indices of the regions of a batch.
    """
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
