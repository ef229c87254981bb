"""Regions of frames and mosaics to vectors: the descriptors of a grid of points, aggregated.

An endoscope has no microns, and comes near and goes away. A region is therefore brought to one size
first, by its own area: seen from twice as far, its outline is half as wide and its vector the same.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import cv2
import numpy as np
import shapely
import torch
from shapely import affinity
from shapely.geometry.base import BaseGeometry

from ml.errors import BadInputError, EmptyRegionError
from ml.imaging.slides import SlideImage
from ml.keypoints.descriptors.tessera import TesseraDescriptor
from ml.keypoints.masks import scope_mask
from ml.networks.vlad import Vlad, VladConfig
from ml.roi.embedded import Embedded
from ml.roi.geometry import Region, checked_region
from ml.roi.patches import checked_image
from ml.roi.protocol import RegionEncoder
from ml.roi.stain import StainEstimate
from ml.types import ArrayBool, ArrayF32, ImageU8, Keypoints, Progress, no_progress

_MAX_UPSAMPLING = 2.0
"""Beyond it a small region has no more detail to show."""
_RIM_LEVEL = 14
"""Grey level up to which a pixel of a mosaic is empty or rim."""


@dataclass(frozen=True, slots=True)
class KeypointEncoderConfig:
    """All that decides what vector a region gets, apart from the weights."""

    kind: str = "endoscopy"  # what it was trained for; it embeds any image
    side_px: int = 128  # root of the area that every region is brought to
    step_px: int = 8  # between the points that are described
    margin: float = 0.35  # of surroundings read around a region, as share of its half size
    size_px: float = 16.0  # of the points: the support of their descriptors, see tessera.zoom_of
    vlad: VladConfig = field(default_factory=VladConfig)


@dataclass(frozen=True, slots=True)
class RegionView:
    """A region at the encoder's size.

    Attributes:
        image: (h, w, 3) uint8, the region with some surroundings.
        inside: (h, w) bool, pixels of the region that the scope sees.
        downsample: pixels of level 0 per pixel of ``image``.
        origin_l0: x and y of the upper left corner of ``image``.
    """

    image: ImageU8
    inside: ArrayBool
    downsample: float
    origin_l0: tuple[float, float]


class KeypointEncoder(RegionEncoder):
    """Turns regions into vectors whose Euclidean distance ranks; made by ``load_encoder``.

    Attributes:
        name, version: of the weights.
        config_hash: over the configuration and all weights: another hash, another vector.
        dim: length of a vector.
        kind: "endoscopy".
        normalises, stain_method: no stain is needed.
    """

    normalises = False
    stain_method = "none"

    def __init__(
        self,
        *,
        name: str,
        version: str,
        config_hash: str,
        config: KeypointEncoderConfig,
        network: Vlad,
        descriptor: TesseraDescriptor,
    ) -> None:
        self.name, self.version, self.config_hash = name, version, config_hash
        self.config, self.kind = config, config.kind
        self.dim = config.vlad.out_dim
        self._network, self._descriptor = network.eval(), descriptor

    @property
    def network(self) -> Vlad:
        """What makes a vector of descriptors."""
        return self._network

    def embed_image(
        self,
        image: ImageU8,
        polygon: BaseGeometry | None = None,
        *,
        mpp: float | None = None,
        stain: StainEstimate | None = None,
        progress: Progress = no_progress,
    ) -> Embedded:
        """As ``embed``, with where the vector comes from.

        Args:
            mpp, stain: not used: the region's own size sets the scale, and nothing is stained.
        Raises:
            EmptyRegionError: the scope sees nothing of the region.
        """
        started = time.perf_counter()
        return self._embedded(self.view_of_image(image, polygon), started, progress)

    def embed_region(
        self,
        slide: SlideImage,
        polygon_l0: BaseGeometry | None,
        mpp: float | None = None,
        progress: Progress = no_progress,
        *,
        stain: StainEstimate | None = None,
    ) -> Embedded:
        """Embed a region of a mosaic or still, reading no more of it than the region.

        Args:
            slide: open mosaic or still.
            polygon_l0: in level-0 pixels; None for all of it.
            mpp, stain: not used, see ``embed_image``.
            progress: called before and after; may raise ``CancelledError``.
        Raises:
            InvalidGeometryError, EmptyRegionError: as ``embed``.
        """
        started = time.perf_counter()
        return self._embedded(self.view_of_region(slide, polygon_l0), started, progress)

    def view_of_region(
        self, slide: SlideImage, polygon_l0: BaseGeometry | None, *, zoom: float = 1.0
    ) -> RegionView:
        """What is described of a region of a mosaic or still; raises as ``embed`` does.

        Args:
            zoom: pixels of the view per pixel that the encoder would have.
        """
        info = slide.info
        region = checked_region(polygon_l0, width_px=info.width_px, height_px=info.height_px)
        left, top, right, bottom = self._window(region, (info.width_px, info.height_px))
        downsample = self._downsample(region, zoom)
        image = slide.read_scaled((left, top), (right - left, bottom - top), downsample)
        inside = _drawn(region, (left, top), downsample, image.shape[:2])
        inside &= image.max(axis=2) > _RIM_LEVEL
        return RegionView(image, inside, downsample, (left, top))

    def embed_regions(
        self,
        slide: SlideImage,
        polygons_l0: Sequence[BaseGeometry],
        mpp: float | None = None,
        progress: Progress = no_progress,
        *,
        stain: StainEstimate | None = None,
    ) -> list[Embedded | BadInputError]:
        """``embed_region`` of each: what it gave, or the error it raised. Each has pixels of its
        own at a scale of its own, so that nothing is shared but the open slide."""
        found: list[Embedded | BadInputError] = []
        for polygon in polygons_l0:
            try:
                found.append(self.embed_region(slide, polygon, mpp, progress, stain=stain))
            except BadInputError as error:
                found.append(error)
        return found

    def view_of_image(
        self, image: ImageU8, polygon: BaseGeometry | None = None, *, zoom: float = 1.0
    ) -> RegionView:
        """What is described of a region of an image; raises as ``embed`` does.

        Args:
            zoom: pixels of the view per pixel that the encoder would have.
        """
        image = checked_image(image)
        region = checked_region(polygon, width_px=image.shape[1], height_px=image.shape[0])
        grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
        sees = scope_mask(np.asarray(grey, np.uint8))
        left, top, right, bottom = self._window(region, (image.shape[1], image.shape[0]))
        cut = image[top:bottom, left:right]
        downsample = self._downsample(region, zoom)
        size = (
            max(1, round((right - left) / downsample)),
            max(1, round((bottom - top) / downsample)),
        )
        how = cv2.INTER_AREA if downsample > 1 else cv2.INTER_LINEAR
        small = np.asarray(cv2.resize(cut, size, interpolation=how), np.uint8)
        inside = _drawn(region, (left, top), downsample, small.shape[:2])
        seen = cv2.resize(
            sees[top:bottom, left:right].astype(np.uint8), size, interpolation=cv2.INTER_NEAREST
        )
        inside &= np.asarray(seen, np.bool_)
        return RegionView(small, inside, downsample, (left, top))

    def describe(self, view: RegionView) -> tuple[ArrayF32, ArrayF32]:
        """Points (N, 2) float32 in pixels of the view, and their descriptors (N, D) float32.

        Raises:
            EmptyRegionError: the scope sees nothing of the region, or nothing has any texture.
        """
        step = self.config.step_px
        height, width = view.inside.shape
        y, x = np.mgrid[step // 2 : height : step, step // 2 : width : step]
        xy = np.stack([x.ravel(), y.ravel()], axis=1)
        xy = xy[view.inside[xy[:, 1], xy[:, 0]]].astype(np.float32)
        if not len(xy):
            raise EmptyRegionError("the region lies outside what the scope sees, or is too thin")
        ones = np.ones(len(xy), np.float32)
        points = Keypoints(xy, ones, ones * self.config.size_px, -ones)
        rows = self._descriptor.describe_keypoints(view.image, points)
        textured = rows.any(axis=1)
        if not textured.any():
            raise EmptyRegionError("the region shows no texture to recognise it by")
        return xy[textured], rows[textured]

    def _embedded(self, view: RegionView, started: float, progress: Progress) -> Embedded:
        progress(0, 1, "describing")
        xy, rows = self.describe(view)
        with torch.inference_mode():
            vector = self._network(torch.from_numpy(rows)).numpy().copy()
        progress(1, 1, "describing")
        half = self.config.step_px / 2
        corners = np.concatenate([xy - half, xy + half], axis=1).astype(np.float64)
        return Embedded(
            vector=np.asarray(vector, np.float32),
            n_patches=len(xy),
            patch_boxes_l0=corners * view.downsample + np.tile(view.origin_l0, 2),
            seconds=time.perf_counter() - started,
            stain="none",
            downsample=view.downsample,
            density=1.0,
        )

    def _downsample(self, region: Region, zoom: float) -> float:
        return max(math.sqrt(region.area) / (self.config.side_px * zoom), 1 / _MAX_UPSAMPLING)

    def _window(self, region: Region, size: tuple[int, int]) -> tuple[int, int, int, int]:
        """Left, top, right, bottom of the region with its surroundings, whole pixels."""
        left, top, right, bottom = region.bounds
        around = self.config.margin * max(right - left, bottom - top) / 2
        return (
            max(math.floor(left - around), 0),
            max(math.floor(top - around), 0),
            min(math.ceil(right + around), size[0]),
            min(math.ceil(bottom + around), size[1]),
        )


def _drawn(
    region: Region, origin_l0: tuple[float, float], downsample: float, shape: tuple[int, ...]
) -> ArrayBool:
    """(h, w) bool: the region's pixels in a view."""
    moved = affinity.translate(region, -origin_l0[0], -origin_l0[1])
    placed = affinity.scale(moved, 1 / downsample, 1 / downsample, origin=(0, 0))
    plane = np.zeros(shape, np.uint8)
    for polygon in shapely.get_parts(placed):
        rings = [polygon.exterior, *polygon.interiors]
        outlines = [np.asarray(ring.coords).round().astype(np.int32) for ring in rings]
        cv2.fillPoly(plane, outlines, 1)
    return plane.astype(np.bool_)
