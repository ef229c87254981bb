"""A whole archive at once: vectors laid out on a plane, their pairs, and who stands beside whom."""

from __future__ import annotations

from ml.index.maps.layout import LayoutConfig, lay_out
from ml.index.maps.pairs import Pairs, nearest_distances, neighbours_elsewhere, pairs_within

__all__ = [
    "LayoutConfig",
    "Pairs",
    "lay_out",
    "nearest_distances",
    "neighbours_elsewhere",
    "pairs_within",
]
