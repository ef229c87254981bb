"""Reproducible figures of a result."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ml.types import JsonObject

RUN_KEYS = frozenset(
    ("seconds", "wall_s", "cpu_s", "cpu_seconds", "cpu_ms_a_frame", "plots", "pictures")
)
"""Keys of values that differ between runs: times and names of files."""

ROW_KEYS = frozenset(("scored_pairs", "history"))
"""Keys of raw rows."""


def figures_of(result: Mapping[str, Any]) -> JsonObject:
    """Convert a result to JSON types, without times, rows of single pairs and points of curves."""
    figures: JsonObject = _trim(to_jsonable(result))
    return figures


def to_jsonable(value: Any) -> Any:
    """Convert a value to JSON types: arrays become lists, dataclasses objects, NaN null."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_jsonable(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple | set | frozenset):
        return [to_jsonable(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    return str(value)


def _trim(value: Any, *, in_curves: bool = False) -> Any:
    if isinstance(value, Mapping):
        return {
            key: _trim(item, in_curves=in_curves or key == "curves")
            for key, item in value.items()
            if key not in RUN_KEYS | ROW_KEYS and not (in_curves and isinstance(item, list))
        }
    return [_trim(item) for item in value] if isinstance(value, list) else value
