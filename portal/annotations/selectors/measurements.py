"""The measurements table: each ROI of an image or of a case, one unit a column.

There are columns for lines and for points only if there are any.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.template.defaultfilters import floatformat

from portal.annotations.fixed_sizes import FixedSize, GridSum, fixed_size, grid_sums
from portal.annotations.formats.types import NO_LABEL
from portal.annotations.measures import (
    MEASURES,
    UM2_PER_MM2,
    Measure,
    area_unit,
    measures_of,
)
from portal.annotations.models import Roi, RoiKind
from portal.archive.models import Canvas, Case
from portal.labs.models import User

MAX_ROWS = 2_000  # on a page; the file has all
_SHOWN = ("area", "perimeter", "feret", "circularity", "solidity")
_OF_MARKS = {RoiKind.LINE.value: "length", RoiKind.POINT.value: "points"}
_FORMATS = {"circularity": "2", "solidity": "2", "points": "0g"}  # lengths have one decimal
_SCALED = {
    **{"area": "area_um2", "perimeter": "perimeter_um"},
    **{"feret": "feret_um", "length": "length_um"},
}
_UNSCALED = {
    **{"area": "area_px", "perimeter": "perimeter_px"},
    **{"feret": "feret_px", "length": "length_px"},
}


@dataclass(frozen=True, slots=True)
class MeasuredRoi:
    """A row: values in the order of the columns."""

    roi: Roi
    values: tuple[float | int | None, ...]
    fixed_size: FixedSize | None


@dataclass(frozen=True, slots=True)
class LabelSum:
    """Number of rows with a label, and their area in the unit of the table."""

    name: str
    color: str
    count: int
    area: float


@dataclass(frozen=True, slots=True)
class Measurements:
    """A table.

    Attributes:
        total: of all ROIs; ``rows`` are the largest ``MAX_ROWS`` at most.
        grids: sums of the grids of fields.
        unscaled: images without a pixel size: for their sake every length is in pixels.
        area_unit: of the first column and of the sums.
    """

    columns: tuple[Measure, ...]
    rows: list[MeasuredRoi]
    sums: list[LabelSum]
    grids: list[GridSum]
    total: int
    unscaled: list[Canvas]
    area_unit: str

    @property
    def area_format(self) -> str:
        """Decimals of areas, for ``floatformat``."""
        return "3g" if self.area_unit == "mm²" else "0g"

    @property
    def cells(self) -> list[tuple[MeasuredRoi, list[str]]]:
        """Rows with the texts of their values; each column has one number of decimals."""
        formats = [
            self.area_format,
            *(_FORMATS.get(measure.key, "1g") for measure in self.columns[1:]),
        ]
        return [
            (row, [floatformat(*cell) for cell in zip(row.values, formats, strict=True)])
            for row in self.rows
        ]

    @property
    def has_fixed_sizes(self) -> bool:
        """True if a row is of a fixed size."""
        return any(row.fixed_size for row in self.rows)


def measurements_of(
    user: User, *, canvas: Canvas | None = None, case: Case | None = None
) -> Measurements:
    """Measurements of one image, or of all images of a case, which must be visible to the user."""
    rois = Roi.objects.visible_to(user).live().select_related("canvas", "label").defer("foreign")
    rois = rois.filter(canvas=canvas) if canvas else rois.filter(canvas__case=case)
    measured_rois = list(rois.order_by("-area_px", "id")[:MAX_ROWS])
    canvases = {roi.canvas_id: roi.canvas for roi in measured_rois}
    if canvas is not None:
        canvases = {canvas.pk: canvas}
    unscaled = [
        measured_canvas
        for measured_canvas in canvases.values()
        if not (measured_canvas.mpp_x and measured_canvas.mpp_y)
    ]
    units = _UNSCALED if unscaled else _SCALED
    kinds = {roi.shape for roi in measured_rois}
    marks = [name for kind, name in _OF_MARKS.items() if kind in kinds]
    keys = [units.get(name, name) for name in (*_SHOWN, *marks)]
    columns = [next(measure for measure in MEASURES if measure.key == key) for key in keys]
    rows = [MeasuredRoi(roi, _values(roi, keys), _fixed_size(roi)) for roi in measured_rois]
    unit = "px²" if unscaled else area_unit(row.values[0] for row in rows)
    columns[0] = replace(columns[0], title=f"Area [{unit}]")
    if unit == "mm²":
        rows = [replace(row, values=(_to_mm2(row.values[0]), *row.values[1:])) for row in rows]
    grids = list(grid_sums(row.fixed_size for row in rows).values())
    total = len(measured_rois) if len(measured_rois) < MAX_ROWS else rois.count()
    return Measurements(tuple(columns), rows, _sums(rows), grids, total, unscaled, unit)


def _values(roi: Roi, keys: Sequence[str]) -> tuple[float | int | None, ...]:
    measures = measures_of(roi.geometry, mpp_x=roi.canvas.mpp_x, mpp_y=roi.canvas.mpp_y)
    return tuple(measures[key] for key in keys)


def _to_mm2(area_um2: float | None) -> float | None:
    return None if area_um2 is None else area_um2 / UM2_PER_MM2


def _fixed_size(roi: Roi) -> FixedSize | None:
    canvas = roi.canvas
    return fixed_size(roi.properties, area_px=roi.area_px, mpp_x=canvas.mpp_x, mpp_y=canvas.mpp_y)


def _sums(rows: Sequence[MeasuredRoi]) -> list[LabelSum]:
    by_label: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        label = row.roi.label
        key = (label.name, label.color) if label else (NO_LABEL, "")
        by_label.setdefault(key, []).append(float(row.values[0] or 0))
    sums = [LabelSum(*key, len(areas), sum(areas)) for key, areas in by_label.items()]
    return sorted(sums, key=lambda label_sum: (-label_sum.count, label_sum.name))
