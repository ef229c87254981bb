"""A hit of a search, and what its distance means."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, replace

from ml.errors import MlError
from ml.index.answers.calibration import Calibration, calibration_of
from portal.annotations.models import Roi
from portal.retrieval.models import Embedding, Encoder

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Hit:
    """One similar ROI.

    Attributes:
        distance: Euclidean, between the vectors of the two ROIs, however the hits are ordered.
        p_value: share of unrelated regions that come as close; None if the encoder is not
            calibrated.
        is_close: nearer than the nearest of as many unrelated regions as were searched usually is;
            None as ``p_value``.
        also: where there is one hit for each case, the case's other hits, the best first.
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
        """Percent of unrelated regions that stay farther away, rounded down: "99.7"; "" if unknown.

        Never 100: the calibration is of a limited number of pairs.
        """
        return closer_than(self.p_value)


def closer_than(p_value: float | None) -> str:
    """As ``Hit.closer_than``."""
    if p_value is None:
        return ""
    return f"{min(math.floor(round((1 - p_value) * 1000, 6)), 999) / 10:.1f}"


@dataclass(frozen=True, slots=True)
class Meaning:
    """What distances mean in one search.

    Attributes:
        calibration: of the encoder; None if nothing is known of it.
        searched: regions that could be found: the nearest of more is nearer by chance.
    """

    calibration: Calibration | None
    searched: int

    def is_close(self, distance: float | None) -> bool | None:
        """Nearer than the nearest of this many unrelated regions usually is; None if unknown."""
        if distance is None or self.calibration is None:
            return None
        return not self.calibration.says_nothing_close(distance, max(self.searched, 1))


def hit_of(rank: int, row: Embedding, distance: float, meaning: Meaning) -> Hit:
    """A hit with what its distance means."""
    calibration = meaning.calibration
    return Hit(
        rank,
        distance,
        row.pk,
        row.roi,
        p_value=None if calibration is None else calibration.p_value(distance),
        is_close=meaning.is_close(distance),
    )


def one_a_case(hits: tuple[Hit, ...]) -> tuple[Hit, ...]:
    """The best hit of each case, ranked anew, with the case's others in ``also``."""
    by_case: dict[object, list[Hit]] = {}
    for hit in hits:
        by_case.setdefault(hit.roi.canvas.case_id, []).append(hit)
    return tuple(
        replace(first, rank=rank, also=tuple(others))
        for rank, (first, *others) in enumerate(by_case.values(), start=1)
    )


def p_value_of(encoder: Encoder, distance: float | None) -> float | None:
    """Share of unrelated regions that come as close; None if nothing is known of it."""
    calibration = calibration_for(encoder)
    return None if calibration is None or distance is None else calibration.p_value(distance)


def calibration_for(encoder: Encoder) -> Calibration | None:
    """What the encoder's distances mean; without a readable file, none is claimed."""
    try:
        if encoder.lab_id is not None:
            return (
                Calibration.from_quantiles(**encoder.calibration) if encoder.calibration else None
            )
        return calibration_of(encoder.config_hash)
    except MlError:
        logger.exception("The calibration of %s cannot be read", encoder)
        return None
