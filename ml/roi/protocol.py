"""Interface of region encoders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from shapely.geometry.base import BaseGeometry

from ml.errors import BadInputError
from ml.imaging.slides.slide import SlideImage
from ml.roi.batching import SlideRegions
from ml.roi.embedding import RegionEmbedding
from ml.roi.stain.deconvolution import StainEstimate
from ml.types import ArrayF32, ImageU8, Progress, no_progress


@runtime_checkable
class RegionEncoder(Protocol):
    """Encodes regions as vectors that are compared by Euclidean distance. Thread-safe.

    Attributes:
        name, version: Name and version of the weights.
        config_hash: Hash of configuration and weights; it identifies the vectors.
        dim: Length of a vector.
        kind: Training domain, "histology" or "endoscopy".
    """

    name: str
    version: str
    config_hash: str
    dim: int
    kind: str

    @property
    def normalises(self) -> bool:
        """Return whether the stains of a slide are used, and should be passed as ``stain``."""

    @property
    def stain_method(self) -> str:
        """Method of stain estimation, see ``StainConfig``."""

    def embed(
        self,
        image: ImageU8,
        polygon: BaseGeometry | None = None,
        mpp: float | None = None,
        *,
        stain: StainEstimate | None = None,
    ) -> ArrayF32:
        """Embed a region of an image in memory.

        Args:
            image: (H, W, 3) uint8 RGB, or (H, W) grey.
            polygon: Polygon or MultiPolygon in pixels of the image; None for all of it.
            mpp: Microns per pixel; None for the default of ``geometry.downsample_for``.
            stain: Stains of the image; None estimates them if needed.
        Returns:
            (dim,) float32.
        Raises:
            ShapeError: Another array.
            InvalidGeometryError: See ``checked_region``.
            EmptyRegionError: See ``checked_region``; or the region has no content.
        """
        return self.embed_image(image, polygon, mpp=mpp, stain=stain).vector

    def embed_image(
        self,
        image: ImageU8,
        polygon: BaseGeometry | None = None,
        *,
        mpp: float | None = None,
        stain: StainEstimate | None = None,
        progress: Progress = ...,
    ) -> RegionEmbedding:
        """Embed like ``embed`` and return the patches too."""

    def embed_region(
        self,
        slide: SlideImage,
        polygon_l0: BaseGeometry | None,
        mpp: float | None = None,
        progress: Progress = ...,
        *,
        stain: StainEstimate | None = None,
    ) -> RegionEmbedding:
        """Embed a region of a slide, mosaic or still, without loading all of it."""

    def embed_regions(
        self,
        slide: SlideImage,
        polygons_l0: Sequence[BaseGeometry],
        mpp: float | None = None,
        progress: Progress = ...,
        *,
        stain: StainEstimate | None = None,
    ) -> list[RegionEmbedding | BadInputError]:
        """Embed several regions; the result of ``embed_region`` or the error of each."""

    def embed_slides(
        self, slides: Sequence[SlideRegions], progress: Progress = no_progress
    ) -> list[list[RegionEmbedding | BadInputError]]:
        """Embed regions of several slides; vectors equal ``embed_regions``."""
        return [
            self.embed_regions(
                slide.slide, slide.polygons_l0, slide.mpp, progress, stain=slide.stain
            )
            for slide in slides
        ]
