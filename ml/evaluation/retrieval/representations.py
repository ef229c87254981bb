"""The vectors that are compared: those of the encoder and of everything it has to beat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ml.errors import BadInputError, EmptyRegionError, InvalidGeometryError
from ml.evaluation.retrieval.baselines import (
    bags_of_words,
    hsv_histogram,
    region_pixels,
    sift_descriptors,
    stain_patterns,
)
from ml.evaluation.retrieval.manifest import RoiRecord
from ml.imaging.slides import open_slide
from ml.roi import RoiEncoder
from ml.types import ArrayF32, Progress

VERTEX_MEAN = "vertex_mean"
NO_NORMALISATION = "no_stain_normalisation"


@dataclass(frozen=True, slots=True)
class Representations:
    """One vector per region and method.

    Attributes:
        vectors: (N, D) float32 by method; the encoder's own is the first.
        seconds: the encoder's mean time per region.
    """

    vectors: dict[str, ArrayF32]
    seconds: float


def representations(
    records: Sequence[RoiRecord],
    encoder: RoiEncoder,
    *,
    seed: int,
    without_stain: bool,
    progress: Progress,
) -> Representations:
    """Read each region once and represent it by every method.

    Args:
        without_stain: embed it a second time with the encoder's stain normalisation switched off.
    Raises:
        BadInputError: naming the image whose region cannot be embedded.
    """
    # Encoders that have no such switch are simply not measured without it.
    switch = getattr(encoder, "with_stain", None)
    plain: RoiEncoder | None = switch("none") if switch is not None and without_stain else None
    learned, bare, colours, patterns, descriptors, seconds = [], [], [], [], [], []
    for done, record in enumerate(records, 1):
        vector, taken = _embedded(record, encoder)
        learned.append(vector)
        seconds.append(taken)
        if plain is not None:
            bare.append(_embedded(record, plain)[0])
        pixels, mask = region_pixels(record)
        colours.append(hsv_histogram(pixels, mask))
        patterns.append(stain_patterns(pixels, mask))
        descriptors.append(sift_descriptors(pixels, mask))
        progress(done, len(records), "regions")
    vectors = {encoder.name: np.stack(learned)}
    if bare:
        vectors[NO_NORMALISATION] = np.stack(bare)
    vertex_dim = int(getattr(encoder.config.network, "vertex_dim", 0))
    if 0 < vertex_dim < encoder.dim:
        vectors[VERTEX_MEAN] = vectors[encoder.name][:, :vertex_dim]
    vectors |= {
        "hsv_histogram": np.stack(colours),
        "lbp_of_stains": np.stack(patterns),
        "bag_of_sift": bags_of_words(descriptors, seed=seed),
    }
    return Representations(vectors, float(np.mean(seconds)))


def _embedded(record: RoiRecord, encoder: RoiEncoder) -> tuple[ArrayF32, float]:
    with open_slide(record.image) as slide:
        try:
            embedded = encoder.embed_region(slide, record.geometry, mpp=record.mpp)
        except (EmptyRegionError, InvalidGeometryError) as error:
            raise BadInputError(f"{record.image.name}: {error}") from error
    return embedded.vector, embedded.seconds
