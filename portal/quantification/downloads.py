"""Figures of a case as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping

from django.http import StreamingHttpResponse

from portal.annotations.fixed_sizes import GridSum, grid_sums
from portal.annotations.formats.tables import SIZE_HEAD, cell, size_cells
from portal.archive.models import Case
from portal.core.http.downloads import attachment
from portal.quantification.models import RoiQuantification
from portal.quantification.selectors import THRESHOLDS, is_stale, size_of

_STAINS = ("haematoxylin", "dab", "eosin")
_HEAD = (
    *("image", "region", "name", "label", "staining", "is_stale", "measured_at", "config_hash"),
    *("area_mm2", "tissue_mm2", "nucleus_count", "nuclei_per_mm2"),
    *("nuclei_0", "nuclei_1", "nuclei_2", "nuclei_3", "positive_percent", "h_score"),
    *("positive_area_percent", *(f"mean_od_{stain}" for stain in _STAINS), "nuclei_missing"),
    *SIZE_HEAD,
    *THRESHOLDS,
)


def figures_download(case: Case, rows: Iterable[RoiQuantification]) -> StreamingHttpResponse:
    """A line for each measured region, UTF-8 with a byte order mark for spreadsheets."""
    return StreamingHttpResponse(
        _lines(rows),
        content_type="text/csv; charset=utf-8",
        headers={
            "Content-Disposition": attachment(
                f"{case.accession}-measurements", ".csv", fallback="measurements"
            )
        },
    )


def _lines(rows: Iterable[RoiQuantification]) -> Iterator[str]:
    yield "\ufeff" + _line(_HEAD)
    quantifications = list(rows)
    sums = grid_sums(size_of(row.roi) for row in quantifications)
    for row in quantifications:
        yield _line(_values(row, sums))


def _values(row: RoiQuantification, sums: Mapping[str, GridSum]) -> list[object]:
    roi = row.roi
    return [
        cell(roi.canvas.name),
        roi.pk,
        cell(roi.name),
        cell(roi.label.name) if roi.label else "",
        row.staining,
        int(is_stale(row, roi)),
        row.measured_at.isoformat(timespec="seconds"),
        row.config_hash,
        *(row.area_mm2, row.tissue_mm2, row.nucleus_count, row.nuclei_per_mm2),
        *(row.bin_counts or [None] * 4),
        *(row.positive_percent, row.h_score, row.positive_area_percent),
        *(row.mean_od.get(stain) for stain in _STAINS),
        row.nuclei_missing,
        *size_cells(size_of(roi), sums),
        *(row.config[name] for name in THRESHOLDS),
    ]


def _line(values: Iterable[object]) -> str:
    stream = io.StringIO()
    csv.writer(stream).writerow(["" if value is None else value for value in values])
    return stream.getvalue()
