"""The tables of a crate in the order and in the batches in which they are written and compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from django.db import models

from portal.annotations.marks import rings_of
from portal.annotations.models import Roi, RoiRevision
from portal.interop.rocrate.services.imports.rows import TABLES, CaseRows

_BATCH = 500  # rows asked for or written at once: SQLite takes a thousand parameters
_BATCH_VERTICES = 200_000  # fewer rows where outlines are long: 500 of the longest fill the memory
BY_ID = ("case", "canvases", "slides", "videos", "mosaics", "mosaic_components")
STREAMED = ("mosaic_frames", "rois", "roi_revisions")


def table_rows(rows: CaseRows, table: str) -> Iterable[Any]:
    """Rows of a table, with the ids and references they get in this lab."""
    return rows.stream(table) if table in STREAMED else held(rows, table)


def held(rows: CaseRows, table: str) -> list[Any]:
    """Rows of a small table, with existing assets of the lab instead of those of the crate."""
    if table in ("slides", "videos"):
        items = [row for row in rows.items.values() if isinstance(row, TABLES[table])]
        for item in items:
            item.asset_id = rows.assets.get(item.asset_id, item.asset_id)
        return items
    rows_of_table: dict[str, Iterable[Any]] = {
        "case": [rows.case],
        "canvases": rows.canvases.values(),
        "mosaics": rows.mosaics.values(),
        "mosaic_components": rows.components.values(),
    }
    return list(rows_of_table[table])


def batches(rows: Iterable[Any]) -> Iterator[list[Any]]:
    """Few enough rows at a time for a query, and for the memory."""
    batch: list[Any] = []
    vertices = 0
    for row in rows:
        batch.append(row)
        vertices += _vertices(row)
        if len(batch) == _BATCH or vertices >= _BATCH_VERTICES:
            yield batch
            batch, vertices = [], 0
    if batch:
        yield batch


def _vertices(row: models.Model) -> int:
    """Number of vertices of a region's outlines, on its own frame and on others."""
    if not isinstance(row, Roi | RoiRevision):
        return 0
    outlines = [row.geometry, *(key_frame["geometry"] for key_frame in row.track)]
    return sum(len(ring) for outline in outlines if outline for ring in rings_of(outline))
