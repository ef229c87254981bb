"""Hits of a search and the significance of their distance."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, replace

from ml.errors import MlError
from ml.index.ranking.calibration import Calibration, calibration_of
from portal.annotations.models import Roi
from portal.embeddings.models import Embedding, Encoder

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Hit:
    """A similar ROI.

    Attributes:
        distance: Euclidean distance between the vectors of the two ROIs, whatever the order of
            hits.
        p_value: Share of unrelated regions at least as close; None if the encoder is not
            calibrated.
        is_close: Closer than the nearest of as many unrelated regions usually is; None as
            ``p_value``.
        also: Other hits of the case, best first, if there is one hit per case.
    """

    rank: int
    distance: float
    embedding_id: int
    roi: Roi
    p_value: float | None = None
    is_close: bool | None = None
    also: tuple[Hit, ...] = ()

    @property
    def closer_than(self) -> str:
        """Percentage of unrelated regions that are farther away, rounded down: "99.7"; "" if
        unknown.

        Never 100, since the calibration has a limited number of pairs.
        """
        return closer_than(self.p_value)


def closer_than(p_value: float | None) -> str:
    """Text of ``Hit.closer_than`` for a p-value."""
    if p_value is None:
        return ""
    return f"{min(math.floor(round((1 - p_value) * 1000, 6)), 999) / 10:.1f}"


@dataclass(frozen=True, slots=True)
class Significance:
    """Significance of distances in one search.

    Attributes:
        calibration: Calibration of the encoder; None if unknown.
        searched: Number of searched regions; the nearest of more is nearer by chance.
    """

    calibration: Calibration | None
    searched: int

    def is_close(self, distance: float | None) -> bool | None:
        """Closer than the nearest of as many unrelated regions usually is; None if unknown."""
        if distance is None or self.calibration is None:
            return None
        return not self.calibration.is_nothing_close(distance, max(self.searched, 1))


def hit_of(rank: int, row: Embedding, distance: float, significance: Significance) -> Hit:
    calibration = significance.calibration
    return Hit(
        rank,
        distance,
        row.pk,
        row.roi,
        p_value=None if calibration is None else calibration.p_value(distance),
        is_close=significance.is_close(distance),
    )


def best_per_case(hits: tuple[Hit, ...]) -> tuple[Hit, ...]:
    """Best hit of each case, ranked again, with the other hits of the case in ``also``."""
    by_case: dict[object, list[Hit]] = {}
    for hit in hits:
        by_case.setdefault(hit.roi.canvas.case_id, []).append(hit)
    return tuple(
        replace(first, rank=rank, also=tuple(further))
        for rank, (first, *further) in enumerate(by_case.values(), start=1)
    )


def p_value_of(encoder: Encoder, distance: float | None) -> float | None:
    """Share of unrelated regions at least as close; None if unknown."""
    calibration = calibration_for(encoder)
    return None if calibration is None or distance is None else calibration.p_value(distance)


def calibration_for(encoder: Encoder) -> Calibration | None:
    """Calibration of an encoder's distances; None if it cannot be read."""
    try:
        if encoder.lab_id is not None:
            return (
                Calibration.from_quantiles(**encoder.calibration) if encoder.calibration else None
            )
        return calibration_of(encoder.config_hash)
    except MlError:
        logger.exception("The calibration of %s cannot be read", encoder)
        return None
