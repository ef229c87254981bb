"""A large import beside somebody who draws: ``python -m tests.bench.imports [COUNT]``.

Imports so many ROIs onto a slide while two workers run, draws one more by hand, and says how long
the import took and after how many seconds the drawn one could be searched with.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.bench.portal import portal_open

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 900.0
_SIDE_PX = 60


def document(count: int, *, width_px: int, height_px: int) -> list[dict[str, Any]]:
    """So many squares over the whole canvas, as QuPath writes detections."""
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


def main(count: int) -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as name:
        bench = portal_open(Path(name))
        from portal.annotations.services import roi_create, roi_import
        from portal.config.processes import worker
        from portal.retrieval.models import Embedding, Unembeddable

        canvas = bench.canvas
        features = document(count, width_px=canvas.width_px, height_px=canvas.height_px)
        command = list(worker(concurrency=2).command)
        process = subprocess.Popen(command, cwd=ROOT, env=os.environ | bench.env)
        try:
            time.sleep(8)  # it has started
            started = time.monotonic()
            for at in range(0, count, 2000):
                part = features[at : at + 2000]
                roi_import(canvas=canvas, user=bench.user, document=part)
            print(f"import of {count}: {time.monotonic() - started:.1f} s", flush=True)
            geometry = feature(500, 500)["geometry"]
            drawn = roi_create(canvas=canvas, user=bench.user, geometry=geometry).roi
            started = time.monotonic()
            while not (
                Embedding.objects.filter(roi=drawn).exists()
                or Unembeddable.objects.filter(roi=drawn).exists()  # it may lie on blank glass
            ):
                if time.monotonic() - started > PATIENCE_S:
                    print(f"drawn ROI: not done after {PATIENCE_S:.0f} s")
                    break
                time.sleep(0.1)
            else:
                print(f"drawn ROI: done after {time.monotonic() - started:.1f} s")
            print(f"embedded meanwhile: {Embedding.objects.count()}", flush=True)
        finally:
            process.terminate()
            process.wait(20)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 12_000)
