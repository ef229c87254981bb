"""Timing, and the structure of the report."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TypeVar

import numpy as np

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Row:
    """One thing measured.

    Attributes:
        value, unit: what was measured, of ``what``.
        against: the named alternative, and ``ratio`` = how many times faster than it we are.
        budget: what the design asks for, where it does.
    """

    what: str
    value: float
    unit: str
    against: str = ""
    ratio: float | None = None
    budget: str = ""


@dataclass(slots=True)
class Section:
    """A table of the report, and one more of its own columns where ``over_time`` has lines."""

    title: str
    note: str
    rows: list[Row] = field(default_factory=list)
    over_time: list[list[str]] = field(default_factory=list)


def each(function: Callable[[Item], object], items: Iterable[Item]) -> np.ndarray:
    """Seconds of each call, (N,) float64."""
    seconds = []
    for item in items:
        began = time.perf_counter()
        function(item)
        seconds.append(time.perf_counter() - began)
    return np.array(seconds)


def each_used(function: Callable[[Item], object], items: Iterable[Item]) -> np.ndarray:
    """Processor seconds of each call, all threads of this process together, (N,) float64."""
    seconds = []
    for item in items:
        began = time.process_time()
        function(item)
        seconds.append(time.process_time() - began)
    return np.array(seconds)


def median_ms(seconds: np.ndarray) -> float:
    """The middle call, in milliseconds."""
    return float(np.median(seconds) * 1e3)


def p95_ms(seconds: np.ndarray) -> float:
    """The 95th percentile, in milliseconds."""
    return float(np.percentile(seconds, 95) * 1e3)


@cache
def constant_of(module: Path, name: str) -> int:
    """A whole number that a TypeScript module names: a bench does as the page does."""
    match = re.search(rf"const {name} = ([\d_]+);", module.read_text())
    if match is None:
        raise LookupError(f"{module.name} has no {name}")
    return int(match[1].replace("_", ""))
