"""What every encoder of regions is, whatever it looks at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from shapely.geometry.base import BaseGeometry

from ml.errors import BadInputError
from ml.imaging.slides import SlideImage
from ml.roi.embedded import Embedded
from ml.roi.several import SlideRegions
from ml.roi.stain import StainEstimate
from ml.types import ArrayF32, ImageU8, Progress, no_progress


@runtime_checkable
class RegionEncoder(Protocol):
    """Turns regions into vectors whose Euclidean distance ranks; its methods are thread-safe.

    Attributes:
        name, version: of the weights.
        config_hash: over the configuration and the weights: another hash, another vector.
        dim: length of a vector.
        kind: "histology" or "endoscopy": what it was made for.
    """

    name: str
    version: str
    config_hash: str
    dim: int
    kind: str

    @property
    def normalises(self) -> bool:
        """Whether it wants the stains of a slide, found once, as ``stain``."""

    @property
    def stain_method(self) -> str:
        """How the stains are found, see ``StainConfig``."""

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
            mpp: microns per pixel; None follows the rule of ``geometry.downsample_for``.
            stain: stains of the image found before; None finds them, where they are needed.
        Returns:
            (dim,) float32.
        Raises:
            ShapeError: another array.
            InvalidGeometryError, EmptyRegionError: see ``checked_region``; or nothing inside.
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
    ) -> Embedded:
        """As ``embed``, with where the vector comes from."""

    def embed_region(
        self,
        slide: SlideImage,
        polygon_l0: BaseGeometry | None,
        mpp: float | None = None,
        progress: Progress = ...,
        *,
        stain: StainEstimate | None = None,
    ) -> Embedded:
        """Embed a region of a slide, mosaic or still, without loading all of it."""

    def embed_regions(
        self,
        slide: SlideImage,
        polygons_l0: Sequence[BaseGeometry],
        mpp: float | None = None,
        progress: Progress = ...,
        *,
        stain: StainEstimate | None = None,
    ) -> list[Embedded | BadInputError]:
        """Embed several regions: for each what ``embed_region`` gives, or the error it raises."""

    def embed_slides(
        self, slides: Sequence[SlideRegions], progress: Progress = no_progress
    ) -> list[list[Embedded | BadInputError]]:
        """``embed_regions`` of several slides: the same vectors, sooner where a GPU takes them
        together."""
        return [
            self.embed_regions(one.slide, one.polygons_l0, one.mpp, progress, stain=one.stain)
            for one in slides
        ]
