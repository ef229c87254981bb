"""A document of a gigabyte to its very end: ``python -m tests.bench.large_import [--mib 1024]``.

``--write`` puts it into the report. A GeoJSON of outlines of 90,000 vertices, which is near the
most that an ROI may have, with small ones, a double, a broken and a much too large one between, is
staged and imported as from the page, by the job, in a process of its own. Reported are whether
every feature is stored or refused with its reason, and the peak memory of that process.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.bench import report
from tests.bench.measure import Row, Section
from tests.bench.portal import portal_open

TITLE = "Import of a large document"
VERTICES, SMALL = 90_000, 60
SMALL_EVERY = 10  # small outlines after each large one
PARTS = 100  # progress is printed so often
BUDGET_MIB = 4096  # of a worker


def outline(vertices: int, centre: tuple[float, float], radius: float) -> list[list[float]]:
    """A ring that is sound, and no two of which are the same."""
    turn = np.linspace(0, 2 * np.pi, vertices, endpoint=False)
    away = radius * (1 + 0.05 * np.sin(41 * turn) + 0.02 * np.sin(173 * turn))
    ring = np.stack([centre[0] + away * np.cos(turn), centre[1] + away * np.sin(turn)], axis=1)
    pairs: list[list[float]] = np.round(ring, 2).tolist()
    return [*pairs, pairs[0]]


def features(size_bytes: int, width: int, height: int, made: Counter[str]) -> Iterator[str]:
    """Until the document has about so many bytes; ``made`` counts what becomes of them."""
    centre, written, number = (width / 2, height / 2), 0, 0
    refused = [
        (feature([[0, 0], [float("nan"), 1], [2, 2], [0, 0]]), "no number"),
        (feature(outline(100_001, centre, 0.3 * height)), "too many vertices"),
        (feature([[5, 5], [5, 5], [5, 5], [5, 5]]), "no area"),
    ]
    for text, _ in refused:
        made["refused"] += 1
        written += len(text)
        yield text
    while written < size_bytes:
        for at in range(1 + SMALL_EVERY):
            is_large = at == 0
            middle = (centre[0] + number * 0.01, centre[1] + at)
            radius = 0.4 * min(width, height) if is_large else 20.0 + at
            text = feature(outline(VERTICES if is_large else SMALL, middle, radius))
            made["created"] += 1
            written += len(text)
            yield text
        number += 1
    yield text  # once more: the same object
    made["refused"] += 1


def feature(ring: list[list[float]]) -> str:
    """A feature as QuPath writes it, without an id."""
    geometry = {"type": "Polygon", "coordinates": [ring]}
    properties = {"objectType": "annotation", "classification": {"name": "Tumor"}}
    return json.dumps({"type": "Feature", "geometry": geometry, "properties": properties})


def write(path: Path, texts: Iterator[str]) -> None:
    """The document, feature by feature."""
    with path.open("w") as file:
        file.write('{"type":"FeatureCollection","features":[')
        for at, text in enumerate(texts):
            file.write(("," if at else "") + text)
        file.write("]}")


def imported(env: dict[str, str], job_id: uuid.UUID, out: Any) -> None:
    """In a process of its own: run the job, tell the most memory it took."""
    os.environ.update(env)
    import django

    django.setup()
    from portal.jobs.models import Job, JobState
    from portal.jobs.worker.runner import job_run

    before = peak_mib()
    began = time.monotonic()
    while Job.objects.filter(pk=job_id, state=JobState.QUEUED).exists():
        job_run(job_id)  # it goes back into the queue now and then
    out.put((before, peak_mib(), time.monotonic() - began))


def peak_mib() -> float:
    """The most that this process ever held. (``getrusage`` would count its parent's as well.)"""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def measured(size_mib: int) -> Section:
    """Write, stage, import, count."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        portal = portal_open(folder)
        from portal.annotations.models import Roi, RoiImport
        from portal.annotations.services.exchange import ImportChoices
        from portal.annotations.services.staged import roi_import_stage
        from portal.jobs.models import Job

        canvas, made, path = portal.canvas, Counter[str](), folder / "large.geojson"
        write(path, features(size_mib * 2**20, canvas.width_px, canvas.height_px, made))
        size = path.stat().st_size
        with path.open("rb") as file:
            row = roi_import_stage(
                canvas=canvas,
                user=portal.user,
                file=file,
                choices=ImportChoices(),
                is_preview=False,
            )
        path.unlink()
        # Spawned: a fork would count what this process took to write the document.
        context = multiprocessing.get_context("spawn")
        out = context.Queue()
        child = context.Process(target=imported, args=(portal.env, row.job_id, out))
        child.start()
        shown = 0
        while child.is_alive():
            child.join(5)
            done = RoiImport.objects.values_list("done", flat=True).get(pk=row.pk)
            if done * PARTS // sum(made.values()) > shown:
                shown = done * PARTS // sum(made.values())
                print(f"  {done:,} of {sum(made.values()):,} features", flush=True)
        if child.exitcode:
            raise SystemExit(f"the importing process ended with {child.exitcode}")
        before, peak, seconds = out.get()
        row.refresh_from_db()
        job = Job.objects.get(pk=row.job_id)
        import_report = row.report or {"refused": 0, "groups": []}
        there = Roi.objects.filter(canvas=canvas).count()
        print(f"job {job.state} {job.error_message}; {seconds:.0f} s here")
        for group in import_report["groups"]:
            print(f"  {group['status']} {group['count']}: {group['reason']}")
        return section_of(size, made, import_report["refused"], there, before, peak)


def section_of(
    size: int, made: Counter[str], refused: int, there: int, before: float, peak: float
) -> Section:
    """Section of the report."""
    section = Section(
        TITLE,
        f"A GeoJSON of {size / 2**30:.2f} GiB: {sum(made.values()):,} features, outlines of "
        f"{VERTICES:,} vertices and small ones, {made['refused']} of them to be refused; staged "
        "and imported by the job, on SQLite, in a process of "
        f"{before:.0f} MiB before the start.",
    )
    section.rows.append(Row("imported features", there, "regions"))
    lost = made["created"] - there
    section.rows.append(Row("missing features", lost, "features", budget="0"))
    missed = abs(made["refused"] - refused)
    section.rows.append(
        Row("refused features, difference from the expected number", missed, "", budget="0")
    )
    section.rows.append(
        Row("peak memory of the process", peak, "MiB", budget=f"under {BUDGET_MIB} MiB")
    )
    return section


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=1024, help="size of the document")
    parser.add_argument("--write", action="store_true", help="into docs/benchmarks.md")
    options = parser.parse_args()
    section = measured(options.mib)
    print(section.note)
    report.tell(section, after="Import", write=options.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
