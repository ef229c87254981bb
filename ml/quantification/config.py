"""Thresholds and scales by which a region is measured."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from ml.errors import BadInputError

MAX_NUCLEUS_MPP = 1.0
"""Largest pixel size at which nuclei are counted: a small lymphocyte has 5 pixels across."""
MAX_AREA_MM2 = 25.0
"""Largest region: 100 million pixels of 0.5 microns, some minutes on one core."""
MAX_OD = 3.0
"""Largest threshold: 8 bits show no larger optical density than 2.4."""


class Staining(StrEnum):
    """The stains of a section, and where its marker is."""

    DAB_NUCLEAR = "dab-nuclear"  # haematoxylin and DAB, the marker in nuclei: Ki-67, ER, PR
    DAB = "dab"  # haematoxylin and DAB, the marker in cytoplasm or membranes
    HE = "he"  # haematoxylin and eosin


@dataclass(frozen=True, slots=True)
class QuantificationConfig:
    """Configuration of a measurement; its hash is stored with the figures.

    Optical densities are decadic, of unmixed stains, against a white of 255: the scale of QuPath,
    whose usual limits of weak, moderate and strong nuclei are the defaults.
    """

    staining: Staining = Staining.DAB_NUCLEAR
    version: int = 2  # of the algorithm: raised when the same pixels would give other figures
    mpp: float = 0.5  # microns per pixel at which nuclei are found
    nucleus_od: float = 0.1  # smallest density of a pixel of a nucleus
    contrast_od: float = 0.045  # smallest contrast (LoG response) of a nucleus to its surroundings
    min_area_um2: float = 10.0  # smaller ones are debris
    max_area_um2: float = 400.0  # larger ones are folds and clumps
    split_depth: float = 0.1  # relative depth of the saddle by which two touching nuclei are two
    weak_od: float = 0.2  # mean DAB density from which a nucleus is 1+, and a pixel positive
    moderate_od: float = 0.4  # from which a nucleus is 2+
    strong_od: float = 0.6  # from which a nucleus is 3+
    tissue_od: float = 0.06  # smallest of tissue in its densest channel; clear glass is below 0.05

    def __post_init__(self) -> None:
        numbers = (self.nucleus_od, self.weak_od, self.moderate_od, self.strong_od, self.tissue_od)
        if not all(math.isfinite(od) and 0 < od <= MAX_OD for od in numbers):
            raise BadInputError(f"optical densities: expected 0 to {MAX_OD:g}, got {numbers}")
        if not self.weak_od < self.moderate_od < self.strong_od:
            raise BadInputError(
                "expected weak below moderate below strong, got "
                f"{self.weak_od:g}, {self.moderate_od:g}, {self.strong_od:g}"
            )
        if not 0 < self.min_area_um2 < self.max_area_um2 < math.inf:
            raise BadInputError(
                "areas of nuclei: expected 0 below the smallest below the largest, got "
                f"{self.min_area_um2:g} and {self.max_area_um2:g}"
            )
