"""Figures of one region."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ml.types import ArrayF32, ArrayF64

BIN_COUNT = 4
"""0, 1+, 2+ and 3+."""


@dataclass(frozen=True, slots=True)
class NucleusTable:
    """Nuclei of a region, one row each.

    Attributes:
        xy_l0: (N, 2) float64, centroids in level-0 pixels, x right, y down.
        radius_um: (N,) float32, of a disk of the same area.
        dab_od: (N,) float32, mean density of DAB; 0 where the section has none.
        bins: (N,) uint8, 0 to 3 for 0, 1+, 2+ and 3+.
    """

    xy_l0: ArrayF64
    radius_um: ArrayF32
    dab_od: ArrayF32
    bins: npt.NDArray[np.uint8]

    def __len__(self) -> int:
        return int(self.xy_l0.shape[0])


@dataclass(frozen=True, slots=True)
class Quantification:
    """Measurements of one region.

    Attributes:
        area_mm2: Area of the outline inside the image.
        tissue_mm2: Part of it that is not clear or tinted glass.
        mean_od: Mean density of each stain over the tissue, by its name; 0 without tissue.
        positive_area_percent: Share of the tissue with DAB; None without DAB or without tissue.
        nuclei: Nuclei whose centroid is inside the outline; None if they cannot be counted.
        nuclei_missing: Reason for no nuclei, "too-coarse"; otherwise empty.
        has_nuclear_marker: Whether nuclei are classed as positive and negative.
        working_mpp: Microns per pixel at which was measured.
    """

    area_mm2: float
    tissue_mm2: float
    mean_od: dict[str, float]
    positive_area_percent: float | None
    nuclei: NucleusTable | None
    nuclei_missing: str
    has_nuclear_marker: bool
    working_mpp: float

    @property
    def nucleus_count(self) -> int | None:
        """Number of nuclei."""
        return None if self.nuclei is None else len(self.nuclei)

    @property
    def nuclei_per_mm2(self) -> float | None:
        """Nuclei per square millimetre of the region, glass included."""
        return None if self.nuclei is None else len(self.nuclei) / self.area_mm2

    @property
    def bin_counts(self) -> tuple[int, ...] | None:
        """Nuclei that are 0, 1+, 2+ and 3+; None without a nuclear marker."""
        if self.nuclei is None or not self.has_nuclear_marker:
            return None
        return tuple(int(n) for n in np.bincount(self.nuclei.bins, minlength=BIN_COUNT))

    @property
    def positive_percent(self) -> float | None:
        """Share of positive nuclei; None without nuclei."""
        counts = self.bin_counts
        return 100 * sum(counts[1:]) / sum(counts) if counts and sum(counts) else None

    @property
    def h_score(self) -> float | None:
        """Per cent of 1+, twice that of 2+ and three times that of 3+: 0 to 300."""
        counts = self.bin_counts
        if not counts or not sum(counts):
            return None
        return 100 * sum(weight * n for weight, n in enumerate(counts)) / sum(counts)
