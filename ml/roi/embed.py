"""From a region of interest to its vector: the encoder behind similar cases."""

from __future__ import annotations

import copy
import dataclasses
import os
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from shapely.geometry.base import BaseGeometry

from ml.errors import EmptyRegionError
from ml.imaging.slides import Slide
from ml.networks.gcn import RoiGcn
from ml.roi.config import EncoderConfig
from ml.roi.encoders.classical import ClassicalEncoder
from ml.roi.encoders.protocol import PatchEncoder
from ml.roi.features import tissue_share
from ml.roi.geometry import Region, checked_region, downsample_for
from ml.roi.graph import RoiGraph, build_graph
from ml.roi.patches import (
    Corner,
    ImagePatches,
    PatchSource,
    SlidePatches,
    checked_image,
    isotropic_mpp,
    patch_corners,
)
from ml.roi.sampling import PatchSample, sample_patches
from ml.roi.stain import RUIFROK_HE, StainEstimate, estimate_stains, fixed_stains
from ml.types import ArrayF32, ArrayF64, ImageU8, Progress, no_progress

MIN_TISSUE_SHARE = 0.05
"""A patch with less tissue than this is no vertex."""
_STAIN_PATCHES = 24
_STAIN_STEP = 4
_USUAL_SCALE = (0.75, 0.6)
"""Haematoxylin and eosin of a usual slide (99th percentile), where the slide's own is not used."""
_USUAL_DENSITY = 0.6


@dataclass(frozen=True, slots=True)
class Embedded:
    """The vector of a region and where it comes from.

    Attributes:
        vector: (D,) float32.
        n_patches: vertices of the graph: patches that hold tissue.
        patch_boxes_l0: (n_patches, 4) float64: left, top, right, bottom in level-0 pixels.
        seconds: wall time.
        stain: how the stains were found, with the reason where an estimate was not trusted.
        downsample: level-0 pixels per pixel of the encoder.
        density: patches per patch area after the vertex budget.
    """

    vector: ArrayF32
    n_patches: int
    patch_boxes_l0: ArrayF64
    seconds: float
    stain: str
    downsample: float
    density: float


class RoiEncoder:
    """Turns regions into vectors whose Euclidean distance ranks; made by ``load_encoder``.

    Attributes:
        name, version: of the weights.
        patches: the encoder of its patches.
        config_hash: over the configuration and the weights: another hash, another vector.
        dim: length of a vector.
        kind: "histology"; stills, frames and mosaics of other kinds are embedded all the same.
    """

    def __init__(
        self,
        *,
        name: str,
        version: str,
        config_hash: str,
        config: EncoderConfig,
        network: RoiGcn,
        patches: PatchEncoder | None = None,
    ) -> None:
        self.name, self.version, self.config_hash = name, version, config_hash
        self.config, self.kind = config, config.kind
        self.dim = config.network.embedding_dim
        self._network = network.eval()
        self.patches = patches or ClassicalEncoder()

    def embed(
        self,
        image: ImageU8,
        polygon: BaseGeometry | None = None,
        mpp: float | None = None,
    ) -> ArrayF32:
        """Embed a region of an image in memory.

        Args:
            image: (H, W, 3) uint8 RGB, or (H, W) grey.
            polygon: Polygon or MultiPolygon in pixels of the image; None for all of it.
            mpp: microns per pixel; None follows the rule of ``geometry.downsample_for``.
        Returns:
            (dim,) float32.
        Raises:
            ShapeError: another array.
            InvalidGeometryError, EmptyRegionError: see ``checked_region``; or no tissue inside.
        """
        return self.embed_image(image, polygon, mpp=mpp).vector

    def embed_image(
        self,
        image: ImageU8,
        polygon: BaseGeometry | None = None,
        *,
        mpp: float | None = None,
        progress: Progress = no_progress,
    ) -> Embedded:
        """As ``embed``, with where the vector comes from."""
        started = time.perf_counter()
        image = checked_image(image)
        size = (image.shape[1], image.shape[0])
        sample = self._sample(polygon, size, mpp)
        source = ImagePatches(image, downsample=sample.downsample)
        return self._embedded(source, sample, started, progress)

    def embed_region(
        self,
        slide: Slide,
        polygon_l0: BaseGeometry | None,
        mpp: float | None = None,
        progress: Progress = no_progress,
    ) -> Embedded:
        """Embed a region of a slide, without ever loading more of it than the patches need.

        Args:
            slide: open slide or still.
            polygon_l0: in level-0 pixels; None for the whole slide.
            mpp: overrides what the file says.
            progress: told after each patch; may raise ``CancelledError``.
        Raises:
            InvalidGeometryError, EmptyRegionError: as ``embed``.
        """
        started = time.perf_counter()
        sample = self._slide_sample(slide, polygon_l0, mpp)
        return self._embedded(self._slide_source(slide, sample), sample, started, progress)

    def region_graph(
        self,
        slide: Slide,
        polygon_l0: BaseGeometry | None,
        mpp: float | None = None,
        *,
        grid: bool = False,
    ) -> RoiGraph:
        """The graph of a region, its vertices in the learned metric: what other networks train on.

        Args:
            grid: patches on a grid instead of Sobol points, for comparison.
        Raises:
            InvalidGeometryError, EmptyRegionError: as ``embed``.
        """
        sample = (self.on_grid() if grid else self)._slide_sample(slide, polygon_l0, mpp)
        graph = self._graph(self._slide_source(slide, sample), sample, no_progress)[0]
        with torch.inference_mode():
            vertices = self._network.vertices(torch.from_numpy(graph.x)).numpy().copy()
        return RoiGraph(vertices, graph.pos, graph.edge_index)

    def _slide_sample(
        self, slide: Slide, polygon_l0: BaseGeometry | None, mpp: float | None
    ) -> PatchSample:
        info = slide.info
        known_mpp = mpp if mpp is not None else isotropic_mpp(info.mpp_x, info.mpp_y)
        return self._sample(polygon_l0, (info.width_px, info.height_px), known_mpp)

    def _slide_source(self, slide: Slide, sample: PatchSample) -> SlidePatches:
        patch_px = self.config.sampling.patch_px
        return SlidePatches(
            slide,
            downsample=sample.downsample,
            corners_px=patch_corners(sample.centre_px, patch_px),
            patch_px=patch_px,
        )

    def on_grid(self) -> RoiEncoder:
        """The same weights over patches on a grid instead of Sobol points."""
        other = copy.copy(self)
        sampling = dataclasses.replace(self.config.sampling, pattern="grid")
        other.config = dataclasses.replace(self.config, sampling=sampling)
        return other

    def without_stain_normalisation(self) -> RoiEncoder:
        """The same weights, told nothing of a slide's stain: what normalising it is worth."""
        other = copy.copy(self)
        other.config = dataclasses.replace(self.config, stain="none")
        return other

    def embed_graph(self, graph: RoiGraph) -> ArrayF32:
        """(dim,) float32 of a graph whose ``x`` holds raw patch features."""
        data = graph.to_data()
        batch = torch.zeros(len(graph), dtype=torch.int64)
        with torch.inference_mode():
            vector = self._network(data.x, data.edge_index, batch)[0]
        return np.asarray(vector.numpy().copy(), dtype=np.float32)

    def _sample(
        self, polygon: BaseGeometry | None, size_l0: tuple[int, int], mpp: float | None
    ) -> PatchSample:
        width, height = size_l0
        sampling = self.config.sampling
        region: Region = checked_region(polygon, width_px=width, height_px=height)
        downsample = downsample_for(
            mpp=mpp,
            target_mpp=sampling.target_mpp,
            patch_px=sampling.patch_px,
            width_px=width,
            height_px=height,
        )
        return sample_patches(
            region, downsample=downsample, width_l0=width, height_l0=height, config=sampling
        )

    def _embedded(
        self, source: PatchSource, sample: PatchSample, started: float, progress: Progress
    ) -> Embedded:
        graph, corner_px, stains = self._graph(source, sample, progress)
        patch_px = self.config.sampling.patch_px
        boxes = np.concatenate([corner_px, corner_px + patch_px], axis=1) * sample.downsample
        return Embedded(
            vector=self.embed_graph(graph),
            n_patches=len(graph),
            patch_boxes_l0=boxes,
            seconds=time.perf_counter() - started,
            stain=f"{stains.method}: {stains.reason}" if stains.reason else stains.method,
            downsample=sample.downsample,
            density=sample.density,
        )

    def _graph(
        self, source: PatchSource, sample: PatchSample, progress: Progress
    ) -> tuple[RoiGraph, ArrayF64, StainEstimate]:
        """The graph of raw features, the corners of its patches, and the region's stains."""
        patch_px = self.config.sampling.patch_px
        corners = patch_corners(sample.centre_px, patch_px)
        stains = region_stains(source, corners, self.config)
        features = _all_features(source, corners, patch_px, stains, self.patches, progress)
        kept = [i for i, vector in enumerate(features) if vector is not None]
        if not kept:
            raise EmptyRegionError("the region holds no tissue: all of it is blank background")
        x = np.stack([vector for vector in features if vector is not None])
        graph = build_graph(x, sample.centre_px[kept], edge_px=self.config.edge_px)
        return graph, np.array(corners, np.float64)[kept], stains


def region_stains(
    source: PatchSource, corners: list[Corner], config: EncoderConfig
) -> StainEstimate:
    """Stains of a region, from patches spread evenly over those it is sampled by."""
    step = max(1, len(corners) // _STAIN_PATCHES)
    patch_px = config.sampling.patch_px
    thin = [
        source.read(corner, patch_px)[::_STAIN_STEP, ::_STAIN_STEP].reshape(-1, 3)
        for corner in corners[::step]
    ]
    pixels = np.concatenate(thin)
    if config.stain == "macenko":
        return estimate_stains(pixels)
    if config.stain == "none":
        published = RUIFROK_HE / np.linalg.norm(RUIFROK_HE, axis=1, keepdims=True)
        return StainEstimate(
            published, np.array(_USUAL_SCALE), _USUAL_DENSITY, "none", "switched off"
        )
    return fixed_stains(pixels, reason="")


def _all_features(  # noqa: PLR0917
    source: PatchSource,
    corners: list[Corner],
    patch_px: int,
    stains: StainEstimate,
    encoder: PatchEncoder,
    progress: Progress,
) -> list[ArrayF32 | None]:
    def one(corner: Corner) -> ArrayF32 | None:
        patch = source.read(corner, patch_px)
        if tissue_share(patch) < MIN_TISSUE_SHARE:
            return None
        return encoder.encode([patch], stains)[0]

    with ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as pool:
        return _collected(pool.map(one, corners), len(corners), progress)


def _collected(
    results: Iterable[ArrayF32 | None], total: int, progress: Progress
) -> list[ArrayF32 | None]:
    out = []
    for vector in results:
        out.append(vector)
        progress(len(out), total, "patches")
    return out
