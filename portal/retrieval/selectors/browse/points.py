"""The points of a map, in columns: a hundred thousand of them are sent and drawn at once."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from portal.annotations.models import Label, ReviewState
from portal.retrieval.selectors.browse.maps import SeenMap, SeenRow

COLOURS = ("label", "organ", "diagnosis", "case", "scanner", "review_state")
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
    """What the person may see, with labels and cases of now. Two queries."""
    labels = {label.pk: label for label in Label.objects.filter(lab_id=seen.map.lab_id)}
    rows = list(seen.rows.values())
    places = seen.places
    number: dict[uuid.UUID, int] = {}
    canvas = [number.setdefault(row.canvas_id, len(number)) for row in rows]
    known = [seen.canvases[pk] for pk in number]

    def of_canvas(name: str) -> Callable[[SeenRow], tuple[str, str, str]]:
        def found(row: SeenRow) -> tuple[str, str, str]:
            word = str(seen.canvases[row.canvas_id][name] or "")
            return word.lower(), word, ""

        return found

    def label_of(row: SeenRow) -> tuple[str, str, str]:
        label = labels.get(row.label_id) if row.label_id else None
        return (str(label.pk), label.name, label.color) if label else ("", "", "")

    def case_of(row: SeenRow) -> tuple[str, str, str]:
        of = seen.canvases[row.canvas_id]
        return str(of["case_id"]), of["case__accession"], ""

    def state_of(row: SeenRow) -> tuple[str, str, str]:
        return row.review_state, ReviewState(row.review_state).label, ""

    ways: dict[str, Callable[[SeenRow], tuple[str, str, str]]] = {
        "label": label_of,
        "organ": of_canvas("case__organ"),
        "diagnosis": of_canvas("case__diagnosis"),
        "case": case_of,
        "scanner": of_canvas("slide__vendor"),
        "review_state": state_of,
    }
    return MapPoints(
        rois=[row.roi_id for row in rows],
        versions=[row.version for row in rows],
        x=places[:, 0].tolist(),
        y=places[:, 1].tolist(),
        canvas=canvas,
        canvases=[(one["pk"], one["name"], one["case__accession"]) for one in known],
        colourings=tuple(_coloured(name, rows, ways[name]) for name in COLOURS),
    )


def _coloured(
    name: str, rows: list[SeenRow], value_of: Callable[[SeenRow], tuple[str, str, str]]
) -> Colouring:
    found = [value_of(row) for row in rows]
    counts = Counter(value for value, _, _ in found if value)
    said = {value: (text, color) for value, text, color in reversed(found)}
    ordered = sorted(counts, key=lambda value: (-counts[value], said[value][0].lower(), value))
    at = {value: number for number, value in enumerate(ordered)}
    return Colouring(
        name,
        tuple(ColourValue(value, *said[value], counts[value]) for value in ordered),
        [at.get(value, -1) for value, _, _ in found],
    )
