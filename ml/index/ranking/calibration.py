"""Calibration of distances by the null distribution of unrelated regions, without torch.

A search always returns something. The distances between unrelated regions show whether the nearest
result is nearer than by chance.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from ml.errors import BadInputError, CorruptFileError, ShapeError
from ml.files import WEIGHTS_FOLDER, write_json

SUFFIX = ".calibration.json"
LEVEL = 0.05
"""Share of searches without related regions whose nearest hit is called close."""
_TAIL = 0.02
"""Probability below which the decay of the null distribution is fitted. It extrapolates below the
lowest quantile, as the nearest of many may be nearer than all measured pairs."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """The null distribution of one encoder's distances, as quantiles.

    Attributes:
        probabilities: Ascending, above 0 and below 1.
        distances: Quantiles of the distance of unrelated pairs, ascending.
        config_hash: Configuration hash of the encoder.
        pairs, regions: Number of pairs and regions that the quantiles were computed from.
        groups: Groups whose regions were taken as unrelated.
    """

    probabilities: tuple[float, ...]
    distances: tuple[float, ...]
    config_hash: str = ""
    pairs: int = 0
    regions: int = 0
    groups: tuple[str, ...] = ()

    @classmethod
    def from_quantiles(
        cls,
        probabilities: Sequence[float],
        distances: Sequence[float],
        *,
        config_hash: str = "",
        pairs: int = 0,
        regions: int = 0,
        groups: Sequence[str] = (),
    ) -> Calibration:
        """Create a calibration from checked quantiles.

        Raises:
            ShapeError: Not two ascending, finite lists of equal length, or probabilities not in
                (0, 1).
        """
        p, d = np.asarray(probabilities, np.float64), np.asarray(distances, np.float64)
        if p.ndim != 1 or p.shape != d.shape or p.size < 2:
            raise ShapeError(
                "quantiles", expected="two lists of one length", actual=f"{p.shape}, {d.shape}"
            )
        ascending = (np.diff(p) > 0).all() and (np.diff(d) >= 0).all()
        if not (np.isfinite(d).all() and ascending and p[0] > 0 and p[-1] < 1 and d[0] >= 0):
            raise ShapeError(
                "quantiles",
                expected="ascending distances of ascending probabilities between 0 and 1",
                actual=f"{p[0]:g} to {p[-1]:g}, distances {d[0]:g} to {d[-1]:g}",
            )
        return cls(tuple(p.tolist()), tuple(d.tolist()), config_hash, pairs, regions, tuple(groups))

    def p_value(self, distance: float) -> float:
        """Share of unrelated pairs at most ``distance`` apart, 0 to 1; NaN for NaN.

        Interpolated between quantiles. Below the lowest one it decays exponentially, or linearly
        to 0 at distance 0 if there are too few quantiles to fit a rate.
        """
        if math.isnan(distance):
            return math.nan
        if distance > self.distances[-1]:
            return 1.0
        rate = _tail_rate(self.probabilities, self.distances)
        if distance < self.distances[0] and rate:
            return self.probabilities[0] * math.exp(rate * (distance - self.distances[0]))
        return float(
            np.interp(distance, (0.0, *self.distances), (0.0, *self.probabilities))
            if self.distances[0] > 0
            else np.interp(distance, self.distances, self.probabilities)
        )

    def nearest_p_value(self, distance: float, searched: int = 1) -> float:
        """Probability that the nearest of ``searched`` unrelated regions is as close, 0 to 1.

        Source: Sidak 1967. Regions of one image are not independent, so it is an overestimate.
        Raises:
            BadInputError: ``searched`` is below 1.
        """
        if searched < 1:
            raise BadInputError(f"searched: expected at least 1, got {searched}")
        p = self.p_value(distance)
        return p if math.isnan(p) or p == 1.0 else -math.expm1(searched * math.log1p(-p))

    def is_nothing_close(self, distance: float, searched: int = 1, *, level: float = LEVEL) -> bool:
        """Return True if the nearest result is not significantly near.

        Args:
            distance: Distance of the nearest result.
            searched: Number of regions searched.
            level: Significance level.
        """
        return not self.nearest_p_value(distance, searched) <= level


def calibration_path(weights: str | Path) -> Path:
    """Path of the calibration of a weights file, in the same folder."""
    weights = Path(weights)
    return weights.with_name(weights.stem + SUFFIX)


def write_calibration(path: str | Path, calibration: Calibration) -> None:
    """Write a calibration as JSON, atomically."""
    write_json(Path(path), asdict(calibration))


def read_calibration(path: str | Path) -> Calibration:
    """Read the output of ``write_calibration``.

    Raises:
        CorruptFileError: Missing, or not a calibration.
    """
    path = Path(path)
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        return Calibration.from_quantiles(
            values["probabilities"],
            values["distances"],
            config_hash=str(values["config_hash"]),
            pairs=int(values["pairs"]),
            regions=int(values["regions"]),
            groups=values["groups"],
        )
    except (OSError, ValueError, KeyError, TypeError, ShapeError) as error:
        raise CorruptFileError(f"{path.name}: not a calibration") from error


@lru_cache(maxsize=64)
def calibration_of(config_hash: str, folder: Path = WEIGHTS_FOLDER) -> Calibration | None:
    """Find the calibration of an encoder by its configuration hash; None if there is none."""
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        calibration = read_calibration(path)
        if calibration.config_hash == config_hash:
            return calibration
    return None


@lru_cache(maxsize=64)
def _tail_rate(probabilities: tuple[float, ...], distances: tuple[float, ...]) -> float:
    """Slope of the logarithmic probability with distance in the tail; 0 if unknown."""
    p, d = np.asarray(probabilities), np.asarray(distances)
    low = p <= _TAIL
    if low.sum() < 2 or d[low][-1] <= d[0]:
        return 0.0
    return float(np.polyfit(d[low], np.log(p[low]), 1)[0])
