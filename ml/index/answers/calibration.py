"""What a distance means: how often unrelated tissue comes as close. Read without torch.

A search always returns something. The null distribution, distances between regions that have
nothing to do with each other, tells whether the nearest is any nearer than chance.
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
"""Where nothing related is searched, this share of searches calls its nearest close."""
_TAIL = 0.02
"""The nearest of many may be nearer than any pair that was measured: below the lowest quantile the
share goes on falling at the mean rate at which it falls below this one."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """The null distribution of one encoder's distances, as quantiles.

    Attributes:
        probabilities: ascending, above 0 and below 1.
        distances: the distance that this share of unrelated pairs stays under; ascending.
        config_hash: of the encoder; another encoder, other distances.
        pairs, regions: how many the quantiles were taken from. groups: what was held unrelated.
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
        """A checked calibration.

        Raises:
            ShapeError: not two ascending lists of one length, finite, probabilities in (0, 1).
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
        """Share of unrelated pairs that come as close as ``distance`` or closer, 0 to 1.

        Between quantiles it is interpolated; below the lowest of them it falls exponentially, or
        where too few quantiles say how fast, evenly to 0 at distance 0. NaN if ``distance`` is.
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
        """How often the nearest of ``searched`` unrelated regions comes as close, 0 to 1.

        Source: Sidak 1967. Regions of one image are no independent draws, so it is rather too high.
        Raises:
            BadInputError: fewer than one searched.
        """
        if searched < 1:
            raise BadInputError(f"searched: expected at least 1, got {searched}")
        p = self.p_value(distance)
        return p if math.isnan(p) or p == 1.0 else -math.expm1(searched * math.log1p(-p))

    def says_nothing_close(
        self, distance: float, searched: int = 1, *, level: float = LEVEL
    ) -> bool:
        """True if the nearest result is no nearer than that of an archive of nothing related.

        Args:
            searched: regions that it is the nearest of: of more, the nearest is nearer by chance.
        """
        return not self.nearest_p_value(distance, searched) <= level


def calibration_path(weights: str | Path) -> Path:
    """Where the calibration of a weights file stands: beside it."""
    weights = Path(weights)
    return weights.with_name(weights.stem + SUFFIX)


def write_calibration(path: str | Path, calibration: Calibration) -> None:
    """Write it as JSON, whole or not at all."""
    write_json(Path(path), asdict(calibration))


def read_calibration(path: str | Path) -> Calibration:
    """Read what ``write_calibration`` wrote.

    Raises:
        CorruptFileError: missing, or not a calibration.
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
    """The calibration of an encoder by its configuration's hash; None if there is none."""
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        calibration = read_calibration(path)
        if calibration.config_hash == config_hash:
            return calibration
    return None


@lru_cache(maxsize=64)
def _tail_rate(probabilities: tuple[float, ...], distances: tuple[float, ...]) -> float:
    """By how much the logarithm of the share grows with distance in the tail; 0 unknown."""
    p, d = np.asarray(probabilities), np.asarray(distances)
    low = p <= _TAIL
    if low.sum() < 2 or d[low][-1] <= d[0]:
        return 0.0
    return float(np.polyfit(d[low], np.log(p[low]), 1)[0])
