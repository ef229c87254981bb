"""The targets for a mosaic of one sequence, beside what it reaches."""

from __future__ import annotations

import math
from collections.abc import Mapping

NCC_LACK = 0.01
"""NCC of any two frames in the mosaic may lie this far below that of the pair matched by itself."""

MOSAIC, PAIRS = "tessera", "SIFT pairs"
"""Ways of registering frames, by the names they have in NCC tables."""

CYCLE_PX = {"1": 0.2, "5": 0.6, "20": 1.2, "60": 2.0}
"""Distance in frames -> how far apart a forward and a backward run may place the view."""


def asked_lines(
    ncc: Mapping[str, Mapping[str, float | None]], cycle_px: Mapping[str, float | None]
) -> list[str]:
    """A line for each target that was measured: the target, whether it is met, and the result.

    Args:
        ncc: mean NCC by way of registering and by distance. cycle_px: by distance, in the view.
    """
    lines = []
    if PAIRS in ncc:
        least = {d: _less(value) for d, value in ncc[PAIRS].items()}
        cells = _cells(ncc[MOSAIC], least, sign=1)
        lines.append(f"- NCC at least that of SIFT pairs minus {NCC_LACK}: {cells}")
    if cycle_px:
        cells = _cells(cycle_px, CYCLE_PX, sign=-1)
        lines.append(f"- distance of forward and backward run in the view at most, px: {cells}")
    return lines


def _less(value: float | None) -> float | None:
    return None if value is None else value - NCC_LACK


def _cells(
    reached: Mapping[str, float | None], asked: Mapping[str, float | None], *, sign: int
) -> str:
    """``sign`` 1: the result must be at least the target; -1: at most."""
    cells = []
    for distance, wanted in asked.items():
        found = reached.get(distance)
        if wanted is None or found is None or math.isnan(wanted) or math.isnan(found):
            continue
        is_met = sign * found >= sign * wanted
        told = "met" if is_met else "not met"
        cells.append(f"{wanted:.3f} at {distance}, {told} with {found:.3f}")
    return "; ".join(cells)
