"""The points of a map, in columns: a hundred thousand of them are sent and drawn at once."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from portal.annotations.models import Label, ReviewState
from portal.retrieval.selectors.browse.maps import SeenMap

K = TypeVar("K")

COLOURS = ("label", "organ", "diagnosis", "stain", "case", "scanner", "review_state")
"""What points are coloured by."""


@dataclass(frozen=True, slots=True)
class ColourValue:
    """One value. ``count``: points that have it. ``color``: a label's own, else empty."""

    value: str
    name: str
    color: str
    count: int


@dataclass(frozen=True, slots=True)
class Colouring:
    """One way to colour the points.

    Attributes:
        values: the most frequent first. at: of each point the number of its value, -1 for none.
    """

    name: str
    values: tuple[ColourValue, ...]
    at: list[int]


@dataclass(frozen=True, slots=True)
class MapPoints:
    """Points, one entry each in every list.

    Attributes:
        x, y: 0 to 65535, y down. canvas: number in ``canvases``: id, name, accession.
    """

    rois: list[uuid.UUID]
    versions: list[int]
    x: list[int]
    y: list[int]
    canvas: list[int]
    canvases: list[tuple[uuid.UUID, str, str]]
    colourings: tuple[Colouring, ...]


def map_points(seen: SeenMap) -> MapPoints:
    """What the person may see, with present labels and cases. Two queries."""
    labels = {label.pk: label for label in Label.objects.filter(lab_id=seen.map.lab_id)}
    rows = list(seen.rows.values())
    places = seen.places
    number: dict[uuid.UUID, int] = {}
    canvas = [number.setdefault(row.canvas_id, len(number)) for row in rows]
    known = [seen.canvases[pk] for pk in number]

    def word_of(words: Iterable[str | None]) -> list[_Said]:
        return [((word or "").lower(), word or "", "") for word in words]

    def label_of(key: uuid.UUID | None) -> _Said:
        label = labels.get(key) if key else None
        return (str(label.pk), label.name, label.color) if label else ("", "", "")

    cases: list[_Said] = [(str(one.case_id), one.accession, "") for one in known]
    # What many points have is worked out once, and each point names it by a number.
    ways: dict[str, tuple[list[_Said], list[int]]] = {
        "label": _numbered([row.label_id for row in rows], label_of),
        "organ": (word_of(one.organ for one in known), canvas),
        "diagnosis": (word_of(one.diagnosis for one in known), canvas),
        "stain": (word_of(one.stain for one in known), canvas),
        "case": (cases, canvas),
        "scanner": (word_of(one.scanner for one in known), canvas),
        "review_state": _numbered(
            [row.review_state for row in rows], lambda key: (key, ReviewState(key).label, "")
        ),
    }
    return MapPoints(
        rois=[row.roi_id for row in rows],
        versions=[row.version for row in rows],
        x=places[:, 0].tolist(),
        y=places[:, 1].tolist(),
        canvas=canvas,
        canvases=[(one.pk, one.name, one.accession) for one in known],
        colourings=tuple(_coloured(name, *ways[name]) for name in COLOURS),
    )


_Said = tuple[str, str, str]
"""A value, what it is called, and its colour; three empty texts for none."""


def _numbered(keys: list[K], said: Callable[[K], _Said]) -> tuple[list[_Said], list[int]]:
    """What is said about each different key, and the number of each point's."""
    number: dict[K, int] = {}
    at = [number.setdefault(key, len(number)) for key in keys]
    return [said(key) for key in number], at


def _coloured(name: str, said: list[_Said], at: list[int]) -> Colouring:
    """Values that differ only in upper and lower case are one, as the first point has it."""
    points = np.array(at, np.int64)
    own = np.bincount(points, minlength=len(said)).tolist()
    counts: Counter[str] = Counter()
    names: dict[str, tuple[str, str]] = {}
    for (value, text, color), count in zip(said, own, strict=True):
        if value and count:
            counts[value] += count
            names.setdefault(value, (text, color))
    ordered = sorted(counts, key=lambda value: (-counts[value], names[value][0].lower(), value))
    number = {value: place for place, value in enumerate(ordered)}
    places = np.array([number.get(value, -1) for value, _, _ in said], np.int64)
    return Colouring(
        name,
        tuple(ColourValue(value, *names[value], counts[value]) for value in ordered),
        places[points].tolist() if len(said) else [],
    )
