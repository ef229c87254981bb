"""A large import while somebody draws: ``python -m tests.bench.imports [COUNT]``.

Imports so many ROIs onto a slide while two workers run, draws one more by hand, and says how long
the import took and after how many seconds the drawn one could be searched with.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.bench.measure import Row, Section
from tests.bench.portal import BenchPortal, portal_open
from tests.polling import wait_until

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 900.0
COUNT = 10_000
_SIDE_PX = 60


def document(count: int, *, width_px: int, height_px: int) -> list[dict[str, Any]]:
    """Squares over the canvas, as QuPath writes detections."""
    columns = max(1, int((count * width_px / height_px) ** 0.5))
    step_x = (width_px - _SIDE_PX) / columns
    step_y = (height_px - _SIDE_PX) / (count // columns + 1)
    return [
        feature(round(n % columns * step_x, 2), round(n // columns * step_y, 2))
        for n in range(count)
    ]


def feature(left: float, top: float) -> dict[str, Any]:
    """One square."""
    right, bottom = left + _SIDE_PX, top + _SIDE_PX
    ring = [[left, top], [right, top], [right, bottom], [left, bottom], [left, top]]
    return {
        "type": "Feature",
        "geometry": {"type": "Polygon", "coordinates": [ring]},
        "properties": {
            "objectType": "detection",
            "classification": {"name": "Tumor", "color": [200, 0, 0]},
            "measurements": {"Nucleus: Area": 31.5},
        },
    }


def import_of_many(portal: BenchPortal, *, count: int = COUNT) -> Section:
    """A document of so many features onto a canvas, and its undoing, against the plainest way."""
    from portal.annotations.documents import features_read
    from portal.annotations.models import RoiImport
    from portal.annotations.services.exchange import roi_import, roi_import_preview
    from portal.annotations.services.imports import roi_import_undo
    from portal.annotations.services.reading import source_of

    canvas, user = portal.canvas, portal.user
    features = document(count, width_px=canvas.width_px, height_px=canvas.height_px)
    text = json.dumps({"type": "FeatureCollection", "features": features})
    plain_s = _seconds(lambda: _plainest(portal, text))
    section = Section(
        "Import",
        f"A GeoJSON of {count:,} squares as QuPath writes detections, read as a stream and written "
        "in short transactions that let others save: rows, first revisions, events and audit "
        "entries. The alternative is `json.loads`, `shapely`'s validity check and one bulk insert "
        "of the rows alone.",
    )

    def read() -> Any:
        return source_of(lambda: features_read(io.BytesIO(text.encode())))

    preview_s = _seconds(lambda: roi_import_preview(canvas=canvas, user=user, document=read()))
    import_s = _seconds(lambda: roi_import(canvas=canvas, user=user, document=read()))
    row = RoiImport.objects.latest("created_at")
    undo_s = _seconds(lambda: roi_import_undo(roi_import=row, user=user))
    against = "json.loads, shapely, one bulk insert"
    for what, seconds, budget in (
        (f"import of {count:,}", import_s, "under 10 s"),
        ("its preview", preview_s, ""),
        ("undone as one step", undo_s, ""),
    ):
        section.rows.append(Row(what, seconds, "s", against, plain_s / seconds, budget))
    return section


def _seconds(function: Callable[[], object]) -> float:
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def _plainest(portal: BenchPortal, text: str) -> None:
    """Rows and nothing else; they are taken away again."""
    from django.db import transaction
    from shapely.geometry import shape

    from portal.annotations.models import Roi

    rois = []
    for raw in json.loads(text)["features"]:
        outline = shape(raw["geometry"])
        if not outline.is_valid:
            raise ValueError("the document holds sound outlines")
        left, top, right, bottom = outline.bounds
        rois.append(
            Roi(
                lab=portal.lab,
                canvas=portal.canvas,
                geometry=raw["geometry"],
                left=left,
                top=top,
                right=right,
                bottom=bottom,
                area_px=outline.area,
                created_by=portal.user,
            )
        )
    with transaction.atomic():
        Roi.all_objects.bulk_create(rois)
        transaction.set_rollback(True)


def main(count: int) -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as name:
        bench = portal_open(Path(name))
        from portal.annotations.services.exchange import roi_import
        from portal.annotations.services.rois import roi_create
        from portal.embeddings.models import Embedding, Unembeddable
        from portal.jobs.selectors.jobs import workers_alive
        from portal.operations.processes import worker

        canvas = bench.canvas
        features = document(count, width_px=canvas.width_px, height_px=canvas.height_px)
        command = list(worker(concurrency=2).command)
        process = subprocess.Popen(command, cwd=ROOT, env=os.environ | bench.env)
        try:
            wait_until(workers_alive().exists, "the worker", within_s=120)
            started = time.monotonic()
            for at in range(0, count, 2000):
                part = features[at : at + 2000]
                roi_import(canvas=canvas, user=bench.user, document=part)
            print(f"import of {count}: {time.monotonic() - started:.1f} s", flush=True)
            geometry = feature(500, 500)["geometry"]
            drawn = roi_create(canvas=canvas, user=bench.user, geometry=geometry).roi
            started = time.monotonic()

            def is_done() -> bool:
                embedded = Embedding.objects.filter(roi=drawn).exists()
                return embedded or Unembeddable.objects.filter(roi=drawn).exists()  # blank glass

            try:
                wait_until(is_done, "the drawn ROI", within_s=PATIENCE_S)
            except TimeoutError as error:
                print(error)
            else:
                print(f"drawn ROI: done after {time.monotonic() - started:.1f} s")
            print(f"embedded in the meantime: {Embedding.objects.count()}", flush=True)
        finally:
            process.terminate()
            process.wait(20)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 12_000)
