"""Encoder of regions of frames and mosaics by aggregated descriptors on a grid of points.

The scale of an endoscopic image is unknown and changes with the distance. Each region is therefore
scaled to the same area first, so that its vector does not depend on the distance.
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
from ml.imaging.slides.slide import SlideImage
from ml.keypoints.descriptors.tessera import TesseraDescriptor
from ml.keypoints.masks import scope_mask
from ml.networks.vlad import Vlad, VladConfig
from ml.roi.embedding import RegionEmbedding
from ml.roi.geometry import Region, checked_region
from ml.roi.patches import checked_image
from ml.roi.protocol import RegionEncoder
from ml.roi.stain.deconvolution import StainEstimate
from ml.types import ArrayBool, ArrayF32, ImageU8, Keypoints, Progress, no_progress

_MAX_UPSAMPLING = 2.0
"""Largest magnification of a small region; more gives no further detail."""
_RIM_LEVEL = 14
"""Largest grey level of empty pixels and of the rim of a mosaic."""


@dataclass(frozen=True, slots=True)
class KeypointEncoderConfig:
    """Configuration of a ``KeypointEncoder``."""

    kind: str = "endoscopy"  # training domain; any image can be embedded
    side_px: int = 128  # square root of the area that regions are scaled to
    step_px: int = 8  # spacing of the points
    margin: float = 0.35  # of surroundings, relative to half the size of the region
    size_px: float = 16.0  # size of the points, which sets the support of descriptors
    vlad: VladConfig = field(default_factory=VladConfig)


@dataclass(frozen=True, slots=True)
class RegionView:
    """A region at the scale of the encoder.

    Attributes:
        image: (h, w, 3) uint8, the region with surroundings.
        inside: (h, w) bool, pixels of the region inside the field of view.
        downsample: Level-0 pixels per pixel of ``image``.
        origin_l0: x and y of the upper left corner of ``image``.
    """

    image: ImageU8
    inside: ArrayBool
    downsample: float
    origin_l0: tuple[float, float]


class KeypointEncoder(RegionEncoder):
    """Encodes regions as vectors that are compared by Euclidean distance; see ``load_encoder``.

    Attributes:
        name, version: Name and version of the weights.
        config_hash: Hash of configuration and weights; it identifies the vectors.
        dim: Length of a vector.
        kind: Training domain, "endoscopy".
        normalises, stain_method: Stains are not used.
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
        """Network from descriptors to a vector."""
        return self._network

    def embed_image(
        self,
        image: ImageU8,
        polygon: BaseGeometry | None = None,
        *,
        mpp: float | None = None,
        stain: StainEstimate | None = None,
        progress: Progress = no_progress,
    ) -> RegionEmbedding:
        """Embed like ``embed`` and return the key points too.

        Args:
            mpp, stain: Not used; the size of the region sets the scale.
        Raises:
            EmptyRegionError: The region is outside the field of view.
        """
        started = time.perf_counter()
        return self._embed_view(self.view_of_image(image, polygon), started, progress)

    def embed_region(
        self,
        slide: SlideImage,
        polygon_l0: BaseGeometry | None,
        mpp: float | None = None,
        progress: Progress = no_progress,
        *,
        stain: StainEstimate | None = None,
    ) -> RegionEmbedding:
        """Embed a region of a mosaic or still; only the region is read.

        Args:
            slide: Open mosaic or still.
            polygon_l0: Polygon in level-0 pixels; None for all of it.
            mpp, stain: Not used, see ``embed_image``.
            progress: Called before and after; may raise ``CancelledError``.
        Raises:
            InvalidGeometryError, EmptyRegionError: See ``embed``.
        """
        started = time.perf_counter()
        return self._embed_view(self.view_of_region(slide, polygon_l0), started, progress)

    def view_of_region(
        self, slide: SlideImage, polygon_l0: BaseGeometry | None, *, zoom: float = 1.0
    ) -> RegionView:
        """View of a region of a mosaic or still.

        Args:
            zoom: Magnification relative to that of the encoder.
        Raises:
            InvalidGeometryError, EmptyRegionError: See ``embed``.
        """
        info = slide.info
        region = checked_region(polygon_l0, width_px=info.width_px, height_px=info.height_px)
        left, top, right, bottom = self._window(region, (info.width_px, info.height_px))
        downsample = self._downsample(region, zoom)
        image = slide.read_scaled((left, top), (right - left, bottom - top), downsample)
        inside = _polygon_mask(region, (left, top), downsample, image.shape[:2])
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
    ) -> list[RegionEmbedding | BadInputError]:
        """Embed regions one by one; the result or the error of each."""
        embeddings: list[RegionEmbedding | BadInputError] = []
        for polygon in polygons_l0:
            try:
                embeddings.append(self.embed_region(slide, polygon, mpp, progress, stain=stain))
            except BadInputError as error:
                embeddings.append(error)
        return embeddings

    def view_of_image(
        self, image: ImageU8, polygon: BaseGeometry | None = None, *, zoom: float = 1.0
    ) -> RegionView:
        """View of a region of an image.

        Args:
            zoom: Magnification relative to that of the encoder.
        Raises:
            InvalidGeometryError, EmptyRegionError: See ``embed``.
        """
        image = checked_image(image)
        region = checked_region(polygon, width_px=image.shape[1], height_px=image.shape[0])
        grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
        visible = scope_mask(np.asarray(grey, np.uint8))
        left, top, right, bottom = self._window(region, (image.shape[1], image.shape[0]))
        crop = image[top:bottom, left:right]
        downsample = self._downsample(region, zoom)
        size = (
            max(1, round((right - left) / downsample)),
            max(1, round((bottom - top) / downsample)),
        )
        interpolation = cv2.INTER_AREA if downsample > 1 else cv2.INTER_LINEAR
        small = np.asarray(cv2.resize(crop, size, interpolation=interpolation), np.uint8)
        inside = _polygon_mask(region, (left, top), downsample, small.shape[:2])
        visible_small = cv2.resize(
            visible[top:bottom, left:right].astype(np.uint8), size, interpolation=cv2.INTER_NEAREST
        )
        inside &= np.asarray(visible_small, np.bool_)
        return RegionView(small, inside, downsample, (left, top))

    def describe(self, view: RegionView) -> tuple[ArrayF32, ArrayF32]:
        """Points (N, 2) float32 in pixels of the view, and their descriptors (N, D) float32.

        Raises:
            EmptyRegionError: The region is outside the field of view, or has no texture.
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

    def _embed_view(self, view: RegionView, started: float, progress: Progress) -> RegionEmbedding:
        progress(0, 1, "describing")
        xy, rows = self.describe(view)
        with torch.inference_mode():
            vector = self._network(torch.from_numpy(rows)).numpy().copy()
        progress(1, 1, "describing")
        half = self.config.step_px / 2
        corners = np.concatenate([xy - half, xy + half], axis=1).astype(np.float64)
        return RegionEmbedding(
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
        """Left, top, right, bottom of the region with its margin, in integer pixels."""
        left, top, right, bottom = region.bounds
        margin = self.config.margin * max(right - left, bottom - top) / 2
        return (
            max(math.floor(left - margin), 0),
            max(math.floor(top - margin), 0),
            min(math.ceil(right + margin), size[0]),
            min(math.ceil(bottom + margin), size[1]),
        )


def _polygon_mask(
    region: Region, origin_l0: tuple[float, float], downsample: float, shape: tuple[int, ...]
) -> ArrayBool:
    """Mask (h, w) bool of the region in a view."""
    shifted = affinity.translate(region, -origin_l0[0], -origin_l0[1])
    scaled = affinity.scale(shifted, 1 / downsample, 1 / downsample, origin=(0, 0))
    plane = np.zeros(shape, np.uint8)
    for polygon in shapely.get_parts(scaled):
        rings = [polygon.exterior, *polygon.interiors]
        outlines = [np.asarray(ring.coords).round().astype(np.int32) for ring in rings]
        cv2.fillPoly(plane, outlines, 1)
    return plane.astype(np.bool_)
