"""Comparison of a mosaic's scores with the targets of one sequence."""

from __future__ import annotations

import math
from collections.abc import Mapping

MAX_NCC_LOSS = 0.01
"""Largest allowed loss of NCC against direct matching of the pair."""

MOSAIC, PAIRS = "tessera", "SIFT pairs"
"""Names of methods in NCC tables."""

CYCLE_PX = {"1": 0.2, "5": 0.6, "20": 1.2, "60": 2.0}
"""Largest distance between a forward and a backward run, by distance in frames."""


def target_lines(
    ncc: Mapping[str, Mapping[str, float | None]], cycle_px: Mapping[str, float | None]
) -> list[str]:
    """Markdown line for each measured target: the target, the verdict and the result.

    Args:
        ncc: mean NCC by method and distance.
        cycle_px: by distance, in the view.
    """
    lines = []
    if PAIRS in ncc:
        min_ncc = {d: v - MAX_NCC_LOSS for d, v in ncc[PAIRS].items() if v is not None}
        cells = _cells(ncc[MOSAIC], min_ncc, sign=1)
        lines.append(f"- NCC at least that of SIFT pairs minus {MAX_NCC_LOSS}: {cells}")
    if cycle_px:
        cells = _cells(cycle_px, CYCLE_PX, sign=-1)
        lines.append(f"- distance of forward and backward run in the view at most, px: {cells}")
    return lines


def _cells(results: Mapping[str, float | None], targets: Mapping[str, float], *, sign: int) -> str:
    """Cells of one target; ``sign`` is 1 for a least and -1 for a largest value."""
    cells = []
    for distance, target in targets.items():
        score = results.get(distance)
        if score is None or math.isnan(target) or math.isnan(score):
            continue
        is_met = sign * score >= sign * target
        verdict = "met" if is_met else "not met"
        cells.append(f"{target:.3f} at {distance}, {verdict} with {score:.3f}")
    return "; ".join(cells)
