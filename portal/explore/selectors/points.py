"""Points of a map in columns, since a hundred thousand are sent at once."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from portal.annotations.models import Label, ReviewState
from portal.archive.selectors.scanners import scanner_name
from portal.explore.selectors.maps import VisibleMap

K = TypeVar("K")

COLOURS = ("label", "organ", "diagnosis", "stain", "case", "scanner", "review_state")
"""Attributes that points can be coloured by."""


@dataclass(frozen=True, slots=True)
class ColourValue:
    """A value of a colouring.

    Attributes:
        color: Colour of a label, else empty.
        count: Number of points with the value.
    """

    value: str
    name: str
    color: str
    count: int


@dataclass(frozen=True, slots=True)
class Colouring:
    """A way to colour the points.

    Attributes:
        values: Most frequent first.
        at: Index into ``values`` for each point, -1 for none.
    """

    name: str
    values: tuple[ColourValue, ...]
    at: list[int]


@dataclass(frozen=True, slots=True)
class MapPoints:
    """Points, one entry each in every list.

    Attributes:
        x, y: 0 to 65535, y down.
        canvas: Index into ``canvases``, which have id, name and accession.
    """

    rois: list[uuid.UUID]
    versions: list[int]
    x: list[int]
    y: list[int]
    canvas: list[int]
    canvases: list[tuple[uuid.UUID, str, str]]
    colourings: tuple[Colouring, ...]


def map_points(visible: VisibleMap) -> MapPoints:
    """Visible points of the map, with present labels and cases. Two queries."""
    labels = {label.pk: label for label in Label.objects.filter(lab_id=visible.map.lab_id)}
    rows = list(visible.rows.values())
    positions = visible.positions
    number: dict[uuid.UUID, int] = {}
    canvas = [number.setdefault(row.canvas_id, len(number)) for row in rows]
    canvas_rows = [visible.canvases[pk] for pk in number]

    def word_of(words: Iterable[str | None]) -> list[_Value]:
        return [((word or "").lower(), word or "", "") for word in words]

    def label_of(key: uuid.UUID | None) -> _Value:
        label = labels.get(key) if key else None
        return (str(label.pk), label.name, label.color) if label else ("", "", "")

    cases: list[_Value] = [
        (str(canvas_row.case_id), canvas_row.accession, "") for canvas_row in canvas_rows
    ]
    # Values are computed once; points refer to them by index.
    ways: dict[str, tuple[list[_Value], list[int]]] = {
        "label": _number_values([row.label_id for row in rows], label_of),
        "organ": (word_of(canvas_row.organ for canvas_row in canvas_rows), canvas),
        "diagnosis": (word_of(canvas_row.diagnosis for canvas_row in canvas_rows), canvas),
        "stain": (word_of(canvas_row.stain for canvas_row in canvas_rows), canvas),
        "case": (cases, canvas),
        "scanner": ([_scanner(canvas_row.scanner or "") for canvas_row in canvas_rows], canvas),
        "review_state": _number_values(
            [row.review_state for row in rows], lambda key: (key, ReviewState(key).label, "")
        ),
    }
    return MapPoints(
        rois=[row.roi_id for row in rows],
        versions=[row.version for row in rows],
        x=positions[:, 0].tolist(),
        y=positions[:, 1].tolist(),
        canvas=canvas,
        canvases=[
            (canvas_row.pk, canvas_row.name, canvas_row.accession) for canvas_row in canvas_rows
        ],
        colourings=tuple(_colouring(name, *ways[name]) for name in COLOURS),
    )


_Value = tuple[str, str, str]
"""Value, display name and colour; three empty strings for none."""


def _scanner(vendor: str) -> _Value:
    return vendor.lower(), scanner_name(vendor), ""


def _number_values(keys: list[K], values: Callable[[K], _Value]) -> tuple[list[_Value], list[int]]:
    """Distinct values, and the index of each point's value."""
    number: dict[K, int] = {}
    at = [number.setdefault(key, len(number)) for key in keys]
    return [values(key) for key in number], at


def _colouring(name: str, values: list[_Value], at: list[int]) -> Colouring:
    """Merge values that differ only in case, named as for the first point."""
    points = np.array(at, np.int64)
    point_counts = np.bincount(points, minlength=len(values)).tolist()
    counts: Counter[str] = Counter()
    names: dict[str, tuple[str, str]] = {}
    for (value, text, color), count in zip(values, point_counts, strict=True):
        if value and count:
            counts[value] += count
            names.setdefault(value, (text, color))
    ordered = sorted(counts, key=lambda value: (-counts[value], names[value][0].lower(), value))
    number = {value: place for place, value in enumerate(ordered)}
    positions = np.array([number.get(value, -1) for value, _, _ in values], np.int64)
    return Colouring(
        name,
        tuple(ColourValue(value, *names[value], counts[value]) for value in ordered),
        positions[points].tolist() if len(values) else [],
    )
