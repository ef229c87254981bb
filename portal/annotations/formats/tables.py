"""CSV: one line a region, with its measures."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator

from portal.annotations.formats.seams import ExportChoices, Plane, Rois
from portal.annotations.measures import MEASURES, measures_of
from portal.annotations.models import Label

_FORMULA = re.compile(r"[\t\r\n]|[^\w!-~]*[=+@＝＋－＠-]")
"""Signs that begin a formula, full-width ones too, also behind spaces and invisible characters."""
_HEAD = (
    *("id", "name", "label", "shape", "review", "frame", "locked"),
    *("centroid_x_px", "centroid_y_px"),
)
_KEYS_MOST = 500  # columns of properties: beyond, no spreadsheet is readable


class Table:
    """Comma-separated, UTF-8 with a byte order mark, so that spreadsheets read it."""

    name, title = "csv", "Measurements (CSV)"
    suffix, media_type = ".csv", "text/csv; charset=utf-8"
    for_video = True

    def write(self, rois: Rois, plane: Plane, choices: ExportChoices) -> Iterator[bytes]:
        """A line of names, then one for each region; a column for each property that any has."""
        keys = sorted({key for roi in rois() for key in roi.properties})[:_KEYS_MOST]
        said = ("description", *(cell(f"property.{key}") for key in keys))
        yield b"\xef\xbb\xbf" + _line([*_HEAD, *(measure.key for measure in MEASURES), *said])
        for roi in rois():
            label = roi.label.name if isinstance(roi.label, Label) else ""
            measured = measures_of(roi.geometry, mpp_x=plane.mpp_x, mpp_y=plane.mpp_y)
            frame = "" if roi.frame_index is None else roi.frame_index
            head = [roi.pk, cell(roi.name), cell(label), roi.shape, roi.review_state, frame]
            where = [int(roi.is_locked), roi.centroid_x, roi.centroid_y]
            texts = [cell(roi.description), *(cell(roi.properties.get(key, "")) for key in keys)]
            yield _line([*head, *where, *measured.values(), *texts])


def cell(text: str) -> str:
    """What a spreadsheet does not take for a formula."""
    return f"'{text}" if _FORMULA.match(text) else text


def _line(values: list[object]) -> bytes:
    stream = io.StringIO()
    csv.writer(stream).writerow(["" if value is None else value for value in values])
    return stream.getvalue().encode()
