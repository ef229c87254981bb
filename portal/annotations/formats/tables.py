"""CSV: one line a region, with its measures."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping

from portal.annotations.fixed_sizes import (
    SIZE_KEYS,
    FixedSize,
    GridSum,
    fixed_size,
    grid_sums,
)
from portal.annotations.formats.types import ExportChoices, Plane, Rois
from portal.annotations.measures import MEASURES, measures_of
from portal.annotations.models import Label, Roi

_FORMULA = re.compile(r"[\t\r\n]|[^\w!-~]*[=+@＝＋－＠-]")
"""Signs that begin a formula, full-width ones too, also behind spaces and invisible characters."""
_HEAD = (
    *("id", "name", "label", "shape", "review", "frame", "locked"),
    *("centroid_x_px", "centroid_y_px"),
)
SIZE_HEAD = ("fixed_size", "nominal_mm2", "grid", "grid_fields", "grid_mm2")
_MAX_KEYS = 500  # columns of properties: beyond, no spreadsheet is readable


class Table:
    """Comma-separated, UTF-8 with a byte order mark, so that spreadsheets read it."""

    name, title = "csv", "Measurements (CSV)"
    suffix, media_type = ".csv", "text/csv; charset=utf-8"
    for_video = True

    def write(self, rois: Rois, plane: Plane, choices: ExportChoices) -> Iterator[bytes]:
        """A line of names, then one for each region; a column for each property that any has."""
        keys: set[str] = set()
        sizes: list[FixedSize | None] = []
        for roi in rois():
            keys |= roi.properties.keys() - SIZE_KEYS
            sizes.append(_fixed_size(roi, plane))
        sums = grid_sums(sizes)
        property_keys = sorted(keys)[:_MAX_KEYS]
        text_columns = ("description", *(cell(f"property.{key}") for key in property_keys))
        yield b"\xef\xbb\xbf" + _line(
            [*_HEAD, *(measure.key for measure in MEASURES), *SIZE_HEAD, *text_columns]
        )
        for roi in rois():
            label = roi.label.name if isinstance(roi.label, Label) else ""
            measured = measures_of(roi.geometry, mpp_x=plane.mpp_x, mpp_y=plane.mpp_y)
            frame = "" if roi.frame_index is None else roi.frame_index
            size = _fixed_size(roi, plane)
            head = [roi.pk, cell(roi.name), cell(label), roi.shape, roi.review_state, frame]
            where = [int(roi.is_locked), roi.centroid_x, roi.centroid_y]
            texts = [
                cell(roi.description),
                *(cell(roi.properties.get(key, "")) for key in property_keys),
            ]
            yield _line([*head, *where, *measured.values(), *size_cells(size, sums), *texts])


def size_cells(
    size: FixedSize | None, sums: Mapping[str, GridSum]
) -> tuple[str | float | None, ...]:
    """Values of ``SIZE_HEAD``: kind and nominal area, and the grid with its sum on every field."""
    if size is None:
        return (None,) * len(SIZE_HEAD)
    grid = sums.get(size.grid)
    if grid is None:
        return (size.text, size.area_mm2, None, None, None)
    return (size.text, size.area_mm2, cell(size.grid), grid.count, round(grid.area_mm2, 6))


def _fixed_size(roi: Roi, plane: Plane) -> FixedSize | None:
    return fixed_size(roi.properties, area_px=roi.area_px, mpp_x=plane.mpp_x, mpp_y=plane.mpp_y)


def cell(text: str) -> str:
    """Escape a text that a spreadsheet would take for a formula."""
    return f"'{text}" if _FORMULA.match(text) else text


def _line(values: list[object]) -> bytes:
    stream = io.StringIO()
    csv.writer(stream).writerow(["" if value is None else value for value in values])
    return stream.getvalue().encode()
