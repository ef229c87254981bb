"""Encoder of regions of interest by a graph of patches."""

from __future__ import annotations

import copy
import dataclasses
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial

import numpy as np
import torch
from shapely.geometry.base import BaseGeometry

from ml.errors import BadInputError, EmptyRegionError, UnknownNameError
from ml.imaging.slides.slide import SlideImage
from ml.networks.gcn import RoiGcn
from ml.networks.vertex_mean import VertexMean
from ml.roi.batching import (
    SampledRegion,
    SlideRegions,
    prefetch_pool_for,
    prefetched_batches,
    start_reading,
    vectors_of_regions,
)
from ml.roi.config import EncoderConfig
from ml.roi.embedding import RegionEmbedding
from ml.roi.encoders.classical import ClassicalEncoder
from ml.roi.encoders.protocol import PatchEncoder
from ml.roi.geometry import Region, checked_region, downsample_for
from ml.roi.graph import RoiGraph, tissue_graph
from ml.roi.patches import (
    ImagePatches,
    PatchSource,
    SlidePatches,
    checked_image,
    isotropic_mpp,
    patch_corners,
)
from ml.roi.protocol import RegionEncoder
from ml.roi.sampling import PatchSample, sample_patches
from ml.roi.stain.deconvolution import StainEstimate
from ml.roi.stain.estimate import StainConfig, estimate_stain, estimate_stain_of_image
from ml.roi.stained import NORMALISED, STAINS, stained_patches
from ml.roi.vectors import patch_vectors
from ml.types import ArrayF32, ArrayF64, ImageU8, Progress, no_progress

RegionOfImage = tuple[ImageU8, BaseGeometry | None, float | None]
"""An image, a polygon on it and microns per pixel, as ``RoiEncoder.embed`` takes them."""
RegionRead = tuple[PatchSource, PatchSample, Callable[[], StainEstimate]]
"""Source of the patches of a region, their positions, and a function that estimates the stains."""


class RoiEncoder(RegionEncoder):
    """Encodes regions as vectors that are compared by Euclidean distance; see ``load_encoder``.

    Attributes:
        name, version: Name and version of the weights.
        patches: Patch encoder.
        config_hash: Hash of configuration and weights; it identifies the vectors.
        dim: Length of a vector.
        kind: Training domain, "histology"; other images can be embedded too.
    """

    def __init__(
        self,
        *,
        name: str,
        version: str,
        config_hash: str,
        config: EncoderConfig,
        network: RoiGcn | VertexMean,
        patches: PatchEncoder | None = None,
    ) -> None:
        self.name, self.version, self.config_hash = name, version, config_hash
        if config.stain not in STAINS:
            raise UnknownNameError("stain normalisation", config.stain, list(STAINS))
        self.config, self.kind = config, config.kind
        self.dim = config.network.embedding_dim
        self._network = network.eval()
        self.patches = patches or ClassicalEncoder()

    def embed_image(
        self,
        image: ImageU8,
        polygon: BaseGeometry | None = None,
        *,
        mpp: float | None = None,
        stain: StainEstimate | None = None,
        progress: Progress = no_progress,
    ) -> RegionEmbedding:
        """Embed like ``embed`` and return patches and stains too.

        Raises:
            EmptyRegionError: Also if the region has no tissue.
        """
        started = time.perf_counter()
        return self._embed_read(self.read_image(image, polygon, mpp, stain), started, progress)

    def embed_region(
        self,
        slide: SlideImage,
        polygon_l0: BaseGeometry | None,
        mpp: float | None = None,
        progress: Progress = no_progress,
        *,
        stain: StainEstimate | None = None,
    ) -> RegionEmbedding:
        """Embed a region of a slide; only the tiles under its patches are read.

        Args:
            slide: Open slide or still.
            polygon_l0: Polygon in level-0 pixels; None for the complete slide.
            mpp: Microns per pixel; None for that of the file.
            progress: Called after each patch; may raise ``CancelledError``.
            stain: Stains of the slide; None estimates them if needed.
        Raises:
            InvalidGeometryError, EmptyRegionError: See ``embed``.
        """
        started = time.perf_counter()
        return self._embed_read(self.read_region(slide, polygon_l0, mpp, stain), started, progress)

    def embed_regions(
        self,
        slide: SlideImage,
        polygons_l0: Sequence[BaseGeometry],
        mpp: float | None = None,
        progress: Progress = no_progress,
        *,
        stain: StainEstimate | None = None,
    ) -> list[RegionEmbedding | BadInputError]:
        """Embed several regions with shared batches of patches; vectors equal ``embed_region``.

        Args:
            slide, mpp, progress, stain: See ``embed_region``.
        Returns:
            The result of each polygon, or the error that ``embed_region`` would have raised.
        """
        return self.embed_slides([SlideRegions(slide, polygons_l0, mpp, stain)], progress)[0]

    def embed_slides(
        self, slides: Sequence[SlideRegions], progress: Progress = no_progress
    ) -> list[list[RegionEmbedding | BadInputError]]:
        """Embed regions of several slides with shared batches of patches."""
        by_slide: list[dict[int, RegionEmbedding | BadInputError]] = [{} for _ in slides]
        regions: list[SampledRegion] = []
        for number, part in enumerate(slides):
            stain = part.stain
            if stain is None and self.normalises:
                stain = self._stains_of(part.slide, part.mpp, None)()
            estimate = self._stains_of(part.slide, part.mpp, stain)
            for at, polygon in enumerate(part.polygons_l0):
                try:
                    sample = self._slide_sample(part.slide, polygon, part.mpp)
                except BadInputError as error:
                    by_slide[number][at] = error
                else:
                    regions.append(SampledRegion((number, at), part.slide, sample, estimate))
        begin = partial(
            start_reading, pool=prefetch_pool_for(self.patches), make=self._slide_source
        )
        with closing(prefetched_batches(regions, begin)) as batches:
            for batch, plain in batches:
                results = self._embed_batch(batch, plain, progress)
                for region, result in zip(batch, results, strict=True):
                    by_slide[region.place[0]][region.place[1]] = result
        return [[results[at] for at in sorted(results)] for results in by_slide]

    def _embed_batch(
        self, regions: Sequence[SampledRegion], plain: Sequence[PatchSource], progress: Progress
    ) -> list[RegionEmbedding | BadInputError]:
        started = time.perf_counter()
        patch_px, edge_px = self.config.sampling.patch_px, self.config.edge_px
        sources = []
        for region, pixels in zip(regions, plain, strict=True):
            corners = patch_corners(region.sample.centre_px, patch_px)
            source, stains = stained_patches(pixels, corners, self.config, region.estimate)
            sources.append((source, corners, stains))
        features = vectors_of_regions(sources, patch_px, self.patches, progress)
        seconds = (time.perf_counter() - started) / max(1, len(regions))
        embeddings: list[RegionEmbedding | BadInputError] = []
        for region, (_, corners, stains), vectors in zip(regions, sources, features, strict=True):
            try:
                graph, tissue_rows = tissue_graph(vectors, region.sample.centre_px, edge_px=edge_px)
                corner_px = np.array(corners, np.float64)[tissue_rows]
                embeddings.append(self._result(region.sample, graph, corner_px, stains, seconds))
            except EmptyRegionError as error:
                embeddings.append(error)
        return embeddings

    def image_graph(self, region: RegionOfImage) -> RoiGraph:
        """Graph of a region of an image with raw features, the input of ``embed_graph``."""
        return self.graph_with_corners(self.read_image(*region, None))[0]

    def read_image(
        self,
        image: ImageU8,
        polygon: BaseGeometry | None,
        mpp: float | None,
        stain: StainEstimate | None,
    ) -> RegionRead:
        """Sample the patches of a region of an image; return their source and positions."""
        image = checked_image(image)
        sample = self._sample(polygon, (image.shape[1], image.shape[0]), mpp)
        measure_stain = partial(
            estimate_stain_of_image, image, mpp=mpp, config=self._stain_config()
        )
        return (
            ImagePatches(image, downsample=sample.downsample),
            sample,
            lambda: stain or measure_stain(),
        )

    def read_region(
        self,
        slide: SlideImage,
        polygon_l0: BaseGeometry | None,
        mpp: float | None,
        stain: StainEstimate | None,
    ) -> RegionRead:
        """``read_image`` for a region of a slide."""
        sample = self._slide_sample(slide, polygon_l0, mpp)
        return self._slide_source(slide, sample), sample, self._stains_of(slide, mpp, stain)

    @property
    def network(self) -> RoiGcn | VertexMean:
        """Network from a graph to a vector."""
        return self._network

    @property
    def normalises(self) -> bool:
        """Return whether patches are normalised to the target slide, which needs ``stain``."""
        return self.config.stain in NORMALISED

    @property
    def stain_method(self) -> str:
        """Method of stain estimation."""
        return self.config.stain

    def _stain_config(self) -> StainConfig:
        return StainConfig(method=self.config.stain)

    def _stains_of(
        self, slide: SlideImage, mpp: float | None, stain: StainEstimate | None
    ) -> Callable[[], StainEstimate]:
        return lambda: stain or estimate_stain(slide, mpp=mpp, config=self._stain_config())

    def _slide_sample(
        self,
        slide: SlideImage,
        polygon_l0: BaseGeometry | None,
        mpp: float | None,
    ) -> PatchSample:
        info = slide.info
        known_mpp = mpp if mpp is not None else isotropic_mpp(info.mpp_x, info.mpp_y)
        return self._sample(polygon_l0, (info.width_px, info.height_px), known_mpp)

    def _slide_source(self, slide: SlideImage, sample: PatchSample) -> SlidePatches:
        patch_px = self.config.sampling.patch_px
        return SlidePatches(
            slide,
            downsample=sample.downsample,
            corners_px=patch_corners(sample.centre_px, patch_px),
            patch_px=patch_px,
        )

    def with_stain(self, stain: str) -> RoiEncoder:
        """Copy of the encoder with another of ``STAINS``."""
        other = copy.copy(self)
        other.config = dataclasses.replace(self.config, stain=stain)
        return other

    def embed_graph(self, graph: RoiGraph) -> ArrayF32:
        """Embed a graph with raw patch features ``x``: (dim,) float32."""
        x, edges = torch.from_numpy(graph.x), torch.from_numpy(graph.edge_index)
        with torch.inference_mode():
            vector = self._network(x, edges, torch.zeros(len(graph), dtype=torch.int64))[0]
        return np.asarray(vector.numpy().copy(), dtype=np.float32)

    def _sample(
        self,
        polygon: BaseGeometry | None,
        size_l0: tuple[int, int],
        mpp: float | None,
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

    def _embed_read(self, read: RegionRead, started: float, progress: Progress) -> RegionEmbedding:
        embedded = self.graph_with_corners(read, progress)
        return self._result(read[1], *embedded, time.perf_counter() - started)

    def _result(
        self,
        sample: PatchSample,
        graph: RoiGraph,
        corner_px: ArrayF64,
        stains: StainEstimate,
        seconds: float,
    ) -> RegionEmbedding:
        patch_px = self.config.sampling.patch_px
        boxes = np.concatenate([corner_px, corner_px + patch_px], axis=1) * sample.downsample
        return RegionEmbedding(
            vector=self.embed_graph(graph),
            n_patches=len(graph),
            patch_boxes_l0=boxes,
            seconds=seconds,
            stain=f"{stains.method}: {stains.reason}" if stains.reason else stains.method,
            downsample=sample.downsample,
            density=sample.density,
        )

    def graph_with_corners(
        self, read: RegionRead, progress: Progress = no_progress
    ) -> tuple[RoiGraph, ArrayF64, StainEstimate]:
        """Graph of raw features, corners of its patches (N, 2), and stains of the region."""
        source, sample, estimate = read
        patch_px = self.config.sampling.patch_px
        corners = patch_corners(sample.centre_px, patch_px)
        source, stains = stained_patches(source, corners, self.config, estimate)
        features = patch_vectors(source, corners, patch_px, stains, self.patches, progress)
        graph, tissue_rows = tissue_graph(features, sample.centre_px, edge_px=self.config.edge_px)
        return graph, np.array(corners, np.float64)[tissue_rows], stains
