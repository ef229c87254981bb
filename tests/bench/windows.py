"""ROIs of a window: how long the server takes and how much it sends, at 1,000 to 100,000 ROIs."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.bench.measure import Row, Section, each, median_ms
from tests.bench.portal import BenchPortal

COUNTS = (1_000, 10_000, 100_000)
LIMIT = 3_000
"""Largest number of ROIs that the viewer requests for one window."""
_REPEATS = 7
_CORNERS = 24
_AGAINST = "plain SQL of the same rows, json.loads and json.dumps of them"


def rois_per_window(portal: BenchPortal) -> Section:
    """The full image and a quarter of its sides, as in the viewer, against the plainest way."""
    from portal.annotations.models import Roi

    section = Section(
        "ROIs per window",
        f"`GET /api/v1/rois/` in process as the viewer asks: session, permission, count, the "
        f"largest {LIMIT:,} of the window with outlines of {_CORNERS} corners, JSON. Medians of "
        f"{_REPEATS}. The alternative selects the same rows by SQL, parses their JSON columns and "
        "serialises them again, without permissions, count or order by size.",
    )
    rng = np.random.default_rng(7)
    before = 0
    Roi.all_objects.filter(canvas=portal.canvas).delete()  # what other sections left
    for count in COUNTS:
        _fill(portal, rng, count - before)
        before = count
        for what, share in (("the whole image", 1.0), ("a window of 1/16 of the image", 0.25)):
            section.rows += _measured(portal, f"{count:,} ROIs, {what}", share)
    Roi.all_objects.filter(canvas=portal.canvas).delete()
    return section


def _fill(portal: BenchPortal, rng: np.random.Generator, count: int) -> None:
    """Round outlines of 8 to 36 px, the size of nuclei, anywhere on the canvas."""
    from portal.annotations.models import Roi

    canvas = portal.canvas
    angles = np.linspace(0, math.tau, _CORNERS + 1)
    around = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    around[-1] = around[0]
    rows = []
    for x, y, radius in rng.uniform((20, 20, 4), _far(canvas), (count, 3)):
        ring = np.round(around * radius + (x, y), 2).tolist()
        rows.append(
            Roi(
                lab=portal.lab,
                canvas=canvas,
                created_by=portal.user,
                geometry={"type": "Polygon", "coordinates": [ring]},
                left=x - radius,
                top=y - radius,
                right=x + radius,
                bottom=y + radius,
                centroid_x=x,
                centroid_y=y,
                area_px=math.pi * radius**2,
            )
        )
    Roi.all_objects.bulk_create(rows, batch_size=2_000)


def _far(canvas: Any) -> tuple[float, float, float]:
    return canvas.width_px - 20, canvas.height_px - 20, 18


def _measured(portal: BenchPortal, what: str, share: float) -> list[Row]:
    from rest_framework.test import APIClient

    client = APIClient(SERVER_NAME="localhost")
    client.force_login(portal.user)
    canvas = portal.canvas
    right, bottom = canvas.width_px * share, canvas.height_px * share
    params = {"canvas": str(canvas.pk), "left": 0, "top": 0, "right": right, "bottom": bottom}

    def ask() -> int:
        answer = client.get("/api/v1/rois/", {**params, "limit": LIMIT})
        if answer.status_code != 200:
            raise RuntimeError(f"the list answered {answer.status_code}")
        return len(answer.content)

    plain = _plainest(canvas, right, bottom)
    sent_bytes, plain_bytes = ask(), plain()
    took_ms = median_ms(each(lambda _: ask(), range(_REPEATS)))
    plain_ms = median_ms(each(lambda _: plain(), range(_REPEATS)))
    kib = sent_bytes / 1024
    return [
        Row(what, took_ms, "ms", _AGAINST, plain_ms / took_ms),
        Row(f"{what}: sent", kib, "KiB", _AGAINST, plain_bytes / sent_bytes),
    ]


def _plainest(canvas: Any, right: float, bottom: float) -> Callable[[], int]:
    """Selects, parses and writes the rows; answers the number of bytes."""
    from django.db import connection

    columns = (
        '"id", "canvas_id", "geometry", "left", "top", "right", "bottom", "centroid_x", '
        '"centroid_y", "area_px", "label_id", "name", "shape", "track", "is_locked", '
        '"review_state", "version", "created_by_id", "created_at", "updated_at"'
    )
    sql = (
        f'SELECT {columns} FROM "annotations_roi" WHERE "canvas_id" = %s AND "deleted_at" IS NULL '
        'AND "right" >= 0 AND "bottom" >= 0 AND "left" <= %s AND "top" <= %s '
        f'ORDER BY "area_px" DESC, "id" LIMIT {LIMIT}'
    )
    names = [name.strip('" ') for name in columns.split(",")]
    of_json = [names.index(name) for name in ("geometry", "track")]

    def ask() -> int:
        with connection.cursor() as cursor:
            cursor.execute(sql, [canvas.pk.hex, right, bottom])
            rows = [list(row) for row in cursor.fetchall()]
        for row in rows:
            for at in of_json:
                row[at] = json.loads(row[at])
        text = json.dumps(
            [dict(zip(names, row, strict=True)) for row in rows], separators=(",", ":"), default=str
        )
        return len(text.encode())

    return ask
