"""Two regions of images or slides, and why an encoder finds them alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from shapely.geometry.base import BaseGeometry

from ml.imaging.slides import SlideImage
from ml.roi.embed import RegionRead, RoiEncoder
from ml.roi.explain.colour import colour_histogram
from ml.roi.explain.pairs import PAIRS, Explained, Vertices, explain_pair
from ml.roi.patches import patch_corners
from ml.roi.stain import StainEstimate
from ml.roi.stained import NORMALISED
from ml.types import ArrayF32, ImageU8, Progress, no_progress

_LOOKED_AT = 24  # patches of a region, or some more, whose colours are counted
_NORMALISES = "nuclei"  # how stains are found where an encoder does without, see ``STAINS``


@dataclass(frozen=True, slots=True)
class PlacedRegion:
    """A region where it lies.

    Attributes:
        pixels: an image (H, W, 3) uint8 RGB in memory, or an open slide.
        polygon: in its pixels, or level-0 pixels; None for all of it.
        mpp: microns per pixel; None as ``RegionEncoder.embed`` says.
        stain: stains found before; None finds them where they are needed.
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
    most: int = PAIRS,
    progress: Progress = no_progress,
) -> tuple[Explained, Vertices, Vertices]:
    """Why the encoder finds two regions as alike as it does: see ``explain_pair``.

    Returns:
        What each patch and pair adds, and the patches of both.
    Raises:
        InvalidGeometryError, EmptyRegionError: as ``RoiEncoder.embed``.
    """
    first, second = (region_vertices(encoder, one, progress) for one in (a, b))
    return explain_pair(first, second, most=most), first, second


def region_vertices(
    encoder: RoiEncoder, placed: PlacedRegion, progress: Progress = no_progress
) -> Vertices:
    """A region as the patches that its vector is made of; raises as ``RoiEncoder.embed``."""
    where = placed.polygon, placed.mpp, placed.stain
    if isinstance(placed.pixels, np.ndarray):
        read = encoder.read_image(placed.pixels, *where)
    else:
        read = encoder.read_region(placed.pixels, *where)
    graph, corner_px, stains = encoder.placed_graph(read, progress)
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
    """The same weights with stain treated the other way, to see what stain has to do with it.

    An encoder that looks at slides as they are gets both brought to one stain first; one that
    does so already gets them as they are.
    """
    return encoder.with_stain("none" if encoder.normalises else _NORMALISES)


def _colours(read: RegionRead, patch_px: int) -> ArrayF32:
    source, sample, _ = read
    corners = patch_corners(sample.centre_px, patch_px)
    step = max(1, len(corners) // _LOOKED_AT)
    return colour_histogram(source.read(corner, patch_px) for corner in corners[::step])
