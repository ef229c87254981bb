"""Explanation of the similarity of two regions of images or slides."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from shapely.geometry.base import BaseGeometry

from ml.imaging.slides.slide import SlideImage
from ml.roi.embed import RegionRead, RoiEncoder
from ml.roi.explain.colour import colour_histogram
from ml.roi.explain.pairs import PAIRS, PairExplanation, Vertices, explain_pair
from ml.roi.patches import patch_corners
from ml.roi.stain.deconvolution import StainEstimate
from ml.roi.stained import NORMALISED
from ml.types import ArrayF32, ImageU8, Progress, no_progress

_COLOUR_PATCHES = 24  # approximate number of patches for the colour histogram
_NORMALISES = "nuclei"  # stain method for encoders without normalisation, see ``STAINS``


@dataclass(frozen=True, slots=True)
class PlacedRegion:
    """A region in an image or slide.

    Attributes:
        pixels: Image (H, W, 3) uint8 RGB, or an open slide.
        polygon: Polygon in pixels of the image, or level-0 pixels; None for all of it.
        mpp: Microns per pixel; see ``RegionEncoder.embed``.
        stain: Known stains; None estimates them if needed.
    """

    pixels: ImageU8 | SlideImage
    polygon: BaseGeometry | None = None
    mpp: float | None = None
    stain: StainEstimate | None = None


def explain_regions(
    encoder: RoiEncoder,
    a: PlacedRegion,
    b: PlacedRegion,
    *,
    max_pairs: int = PAIRS,
    progress: Progress = no_progress,
) -> tuple[PairExplanation, Vertices, Vertices]:
    """Decompose the similarity of two regions, see ``explain_pair``.

    Returns:
        The decomposition, and the contributions of the patches of both regions.
    Raises:
        InvalidGeometryError, EmptyRegionError: See ``RoiEncoder.embed``.
    """
    first, second = (region_vertices(encoder, region, progress) for region in (a, b))
    return explain_pair(first, second, max_pairs=max_pairs), first, second


def region_vertices(
    encoder: RoiEncoder, region: PlacedRegion, progress: Progress = no_progress
) -> Vertices:
    """Contributions of the patches of a region to its vector.

    Raises:
        InvalidGeometryError, EmptyRegionError: See ``RoiEncoder.embed``.
    """
    where = region.polygon, region.mpp, region.stain
    if isinstance(region.pixels, np.ndarray):
        read = encoder.read_image(region.pixels, *where)
    else:
        read = encoder.read_region(region.pixels, *where)
    graph, corner_px, stains = encoder.graph_with_corners(read, progress)
    with torch.inference_mode():
        x, edges = torch.from_numpy(graph.x), torch.from_numpy(graph.edge_index)
        rows = encoder.network.parts(x, edges).numpy().copy()
    patch_px = encoder.config.sampling.patch_px
    boxes = np.concatenate([corner_px, corner_px + patch_px], axis=1) * read[1].downsample
    return Vertices(
        rows=rows,
        boxes_l0=boxes,
        colours=_colours(read, patch_px),
        is_normalised=stains.method in NORMALISED,
        stain_note=stains.reason if encoder.normalises else "",
    )


def stain_counterpart(encoder: RoiEncoder) -> RoiEncoder:
    """Copy of an encoder with stain normalisation toggled, to show the influence of the stain.

    An encoder without normalisation gets it, and one with normalisation loses it.
    """
    return encoder.with_stain("none" if encoder.normalises else _NORMALISES)


def _colours(read: RegionRead, patch_px: int) -> ArrayF32:
    source, sample, _ = read
    corners = patch_corners(sample.centre_px, patch_px)
    step = max(1, len(corners) // _COLOUR_PATCHES)
    return colour_histogram(source.read(corner, patch_px) for corner in corners[::step])
