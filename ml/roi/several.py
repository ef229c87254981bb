"""Several regions at once: their patches go through the encoder in common batches."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from shapely.geometry.base import BaseGeometry

from ml.imaging.slides import SlideImage
from ml.imaging.slides.ahead import (
    ReadAhead,
    SlideReaders,
    default_readers,
    readers_asked,
    slide_readers,
)
from ml.imaging.videos.ahead import ahead
from ml.networks.device import chosen_compute
from ml.roi.encoders.protocol import PatchEncoder
from ml.roi.patches import BATCH, Corner, PatchSource, SlidePatches
from ml.roi.sampling import PatchSample
from ml.roi.stain import StainEstimate, stain_to_dict
from ml.roi.vectors import patch_vectors
from ml.types import ArrayF32, ImageU8, Progress

T = TypeVar("T")
ON_GPU, ON_CPU = 16, 1
"""Regions that different people wait for and that are embedded together. A processor encodes patch
by patch: the first would wait for the others, and nobody would gain."""


def regions_together() -> int:
    """How many regions are worth embedding together on the chosen device.

    Raises:
        BadInputError: see ``chosen_compute``.
    """
    return ON_GPU if chosen_compute().batched else ON_CPU


@dataclass(frozen=True, slots=True)
class SlideRegions:
    """Regions of one slide.

    Attributes:
        slide: open slide or still.
        polygons_l0: in level-0 pixels.
        mpp: overrides what the file says.
        stain: stains of the slide found before; None finds them, where they are needed.
    """

    slide: SlideImage
    polygons_l0: Sequence[BaseGeometry]
    mpp: float | None = None
    stain: StainEstimate | None = None


@dataclass(frozen=True, slots=True)
class SampledRegion:
    """A region of a slide with its patches.

    Attributes:
        place: which slide's, and which of its regions.
        estimate: finds the stains of the slide.
    """

    place: tuple[int, int]
    slide: SlideImage
    sample: PatchSample
    estimate: Callable[[], StainEstimate]


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
    """``patch_vectors`` of each region; those measured by the same stains share their batches, and
    all do where the encoder looks at no stains.

    Args:
        regions: source, corners and stains of each.
    """
    found: list[list[ArrayF32 | None]] = [[] for _ in regions]
    alike: dict[str, list[int]] = {}
    for at, (_, _, stains) in enumerate(regions):
        key = json.dumps(stain_to_dict(stains)) if encoder.uses_stains else ""
        alike.setdefault(key, []).append(at)
    for members in alike.values():
        joined = JoinedPatches([regions[at][:2] for at in members])
        stains = regions[members[0]][2]
        vectors = patch_vectors(joined, joined.corners, patch_px, stains, encoder, progress)
        for (member, _), vector in zip(joined.corners, vectors, strict=True):
            found[members[member]].append(vector)
    return found


def frames_ahead(frames: Iterable[T]) -> Iterable[T]:
    """The same frames of a video, decoded by a thread ahead of a GPU; unchanged on a processor.

    ``TESSERA_READERS`` overrides that: 0 reads none ahead, any other number does.

    Raises:
        BadInputError: see ``readers_asked`` and ``chosen_compute``.
    """
    return ahead(frames) if readers_asked(default=int(chosen_compute().batched)) else frames


def readers_for(encoder: PatchEncoder) -> SlideReaders | None:
    """The processes that read ahead of an encoder; None if nothing is gained by any.

    Raises:
        BadInputError: see ``readers_asked``.
    """
    count = readers_asked(default=default_readers() if encoder.batch > 1 else 0)
    return slide_readers(count) if count else None


def begun(
    region: SampledRegion,
    readers: SlideReaders | None,
    make: Callable[[SlideImage, PatchSample], SlidePatches],
) -> PatchSource:
    """What reads the patches of a region; a reader, if there are any, begins at once.

    Args:
        make: gives what reads them in this process.
    """
    plain = make(region.slide, region.sample)
    # a larger region is swept along its tiles: all of it in memory would be too much
    if readers is None or region.slide.path is None or len(plain.corners) > BATCH:
        return plain
    downsample = region.sample.downsample
    return readers.begin(
        region.slide.path,
        downsample,
        plain.corners,
        plain.patch_px,
        lambda: plain,
        display_range=region.slide.info.display_range,
    )


def in_turn(
    regions: Sequence[SampledRegion], begin: Callable[[SampledRegion], PatchSource]
) -> Generator[tuple[list[SampledRegion], list[PatchSource]], None, None]:
    """Each batch of regions with their sources, begun while the last batch was worked on."""
    counts = [len(one.sample.centre_px) for one in regions]
    batches = [[regions[i] for i in batch] for batch in batches_by_patches(counts)]
    now: list[PatchSource] = []
    ahead: list[PatchSource] = []
    try:
        for batch, following in zip(batches, [*batches[1:], []], strict=False):
            now = ahead or [begin(one) for one in batch]
            ahead = [begin(one) for one in following]
            yield batch, now
    finally:
        for source in (*now, *ahead):
            if isinstance(source, ReadAhead):
                source.close()


def batches_by_patches(counts: Sequence[int]) -> Iterator[list[int]]:
    """Regions that are worked on together, by the number of their patches: at most ``BATCH``,
    so that their pixels fit into memory; a larger region goes alone."""
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
