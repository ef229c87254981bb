"""``python -m tests.swapping``: 10,000 searches, four writers, an index swapped all the while.

Every search is held against what was surely true while it ran: a region that was deleted before
it began may not come back, and one that was saved before it began, and is not being deleted, may
not be missing where it is nearer than the last hit. A process that ends with an error fails the
run. It runs on SQLite, or with ``--postgresql`` on a cluster of its own.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import numpy as np

WRITERS, SEARCHERS, DIM, K = 4, 2, 16, 20
PROCESSES = {"writers": WRITERS, "searchers": SEARCHERS, "builders of indexes": 1}
FIRST = 600  # regions before anything begins: above what makes an index file due


@dataclass
class Log:
    """Messages of the writers, one file each; the reader remembers its position."""

    folder: Path
    places: dict[Path, int] = field(default_factory=dict)
    saved: dict[str, float] = field(default_factory=dict)
    leaving: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)

    def read(self) -> None:
        """Read the new messages."""
        for path in self.folder.glob("*.log"):
            with path.open("rb") as file:
                file.seek(self.places.get(path, 0))
                text = file.read()
            lines_read = text[: text.rfind(b"\n") + 1]
            self.places[path] = self.places.get(path, 0) + len(lines_read)
            for line in lines_read.decode().splitlines():
                word, roi, distance = line.split()
                if word == "saved":
                    self.saved[roi] = float(distance)
                else:
                    (self.leaving if word == "deleting" else self.gone).add(roi)


@dataclass(frozen=True)
class Story:
    """State that every process knows."""

    folder: Path
    canvas_ids: tuple[Any, ...]
    roi_id: Any
    user_id: Any
    lab_id: Any
    stop: Event


def origin() -> np.ndarray:
    """The vector that is searched with, (DIM,)."""
    return np.full(DIM, 0.25, dtype=np.float32)


def save(canvas: Any, user: Any, number: int, rng: np.random.Generator) -> tuple[str, float]:
    """Draw a region whose vector is nearer to the origin than all before: its id and distance."""
    from portal.annotations.services.rois import roi_create
    from portal.embeddings.models import Encoder
    from portal.embeddings.services.embeddings import embedding_save

    left = 10 + number % 300
    ring = [[left, 10], [left + 20, 10], [left + 20, 30], [left, 30], [left, 10]]
    roi = roi_create(
        canvas=canvas, user=user, geometry={"type": "Polygon", "coordinates": [ring]}
    ).roi
    away = rng.standard_normal(DIM)
    vector = (origin() + away / np.linalg.norm(away) * 10 / (number + 10)).astype(np.float32)
    embedding_save(
        roi_id=roi.pk,
        geometry=roi.geometry,
        encoder=Encoder.objects.get(name="swapping"),
        vector=vector,
        patch_count=1,
        seconds=0.0,
    )
    distance = np.linalg.norm(vector.astype(np.float64) - origin().astype(np.float64))
    return str(roi.pk), float(distance)


def write(story: Story, n: int) -> None:
    """Save and delete until stopped, logging each write before and after."""
    from portal.annotations.services.rois import roi_delete
    from portal.archive.models import Canvas
    from portal.labs.models import User

    user = User.objects.get(pk=story.user_id)
    canvas = Canvas.objects.get(pk=story.canvas_ids[n])
    rng, mine, number = np.random.default_rng(n), [], FIRST
    with (story.folder / f"{n}.log").open("a", buffering=1) as log:
        while not story.stop.is_set():
            number += 1
            roi, distance = save(canvas, user, number, rng)
            log.write(f"saved {roi} {distance!r}\n")
            mine.append(roi)
            if rng.random() < 0.6:
                from portal.annotations.models import Roi

                doomed = mine.pop(int(rng.integers(max(0, len(mine) - 6), len(mine))))
                log.write(f"deleting {doomed} 0\n")
                roi_delete(roi=Roi.objects.get(pk=doomed), user=user, expected_version=1)
                log.write(f"deleted {doomed} 0\n")


def swap(story: Story) -> None:
    """Build index files, one after the other."""
    from portal.embeddings.indexes import Scope
    from portal.embeddings.models import Encoder
    from portal.embeddings.services.indexes import index_build_submit
    from portal.jobs.worker.runner import job_run

    scope = Scope(Encoder.objects.get(name="swapping"), story.lab_id)
    while not story.stop.is_set():
        job_run(index_build_submit(scope=scope).pk)


def search(story: Story, n: int, count: int) -> None:
    """Search ``count`` times and hold each answer against the logs; write what was found."""
    from portal.annotations.models import Roi
    from portal.embeddings.models import Encoder
    from portal.labs.models import User
    from portal.search.selectors.similar_cases import SimilarQuery, similar_search

    user = User.objects.get(pk=story.user_id)
    roi = Roi.objects.select_related("canvas__case").get(pk=story.roi_id)
    query = SimilarQuery(roi=roi, encoder=Encoder.objects.get(name="swapping"), k=K)
    log, wrong, versions, seconds = Log(story.folder), [], set(), []
    for _ in range(count):
        log.read()
        gone, saved = set(log.gone), dict(log.saved)
        began = time.perf_counter()
        result = similar_search(user, query)  # an error ends the process, and the run says so
        seconds.append(time.perf_counter() - began)
        versions.add(result.index.version)
        log.read()
        distances = {str(hit.roi.pk): hit.distance for hit in result.hits}
        wrong += [f"deleted, yet found: {roi}" for roi in distances if roi in gone]
        reach = max(distances.values()) if len(distances) == K else np.inf
        wrong += [
            f"missing: {roi} at {distance}, reach {reach}"
            for roi, distance in saved.items()
            if distance < reach - 1e-6 and roi not in distances and roi not in log.leaving
        ]
    counts = {
        "searches": count,
        "wrong": wrong,
        "versions": len(versions),
        "p50_ms": float(np.median(seconds) * 1e3),
        "p95_ms": float(np.percentile(seconds, 95) * 1e3),
        "saved": len(log.saved),
        "deleted": len(log.gone),
    }
    (story.folder / f"searcher-{n}.json").write_text(json.dumps(counts))


@contextmanager
def cluster() -> Iterator[dict[str, str]]:
    """The settings of an empty PostgreSQL, which ends with the run."""
    from tests.chaos.clusters import Postgres

    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)  # PostgreSQL runs as another user below root
        postgres = Postgres(Path(name))
        try:
            postgres.wait()
            yield {"TESSERA_DATABASE_URL": postgres.url}
        finally:
            postgres.kill()


@contextmanager
def on_milvus(folder: Path) -> Iterator[dict[str, str]]:
    """A Milvus server of its own that holds the indexes."""
    from tests.milvus_server import RunningMilvus

    folder.mkdir()
    running = RunningMilvus(folder)
    try:
        yield {"TESSERA_INDEX_ENGINE": "milvus", "TESSERA_MILVUS_URL": running.url}
    finally:
        running.kill()


def run(searches: int, folder: Path, servers: dict[str, str] | None = None) -> dict[str, Any]:
    """Start the processes, wait, and add up what they found."""
    from tests.bench.portal import portal_open

    portal = portal_open(folder, servers)
    from django.db import connections

    from portal.archive.models import Canvas, Case
    from portal.embeddings.models import Encoder

    Encoder.objects.update(is_default=False)
    Encoder.objects.create(
        name="swapping", version="1", config_hash="0" * 64, dim=DIM, is_default=True
    )
    canvases = [
        Canvas.objects.create(
            lab=portal.lab,
            case=Case.objects.create(lab=portal.lab, accession=f"W-{n}", patient_key=f"w{n}"),
            kind="still",
            name="W",
            width_px=400,
            height_px=400,
            pixels_path="none",
            content_hash="0" * 64,
        )
        for n in range(WRITERS + 1)
    ]
    rng = np.random.default_rng(0)
    searched, _ = save(canvases[WRITERS], portal.user, 10**9, rng)
    with (folder / "first.log").open("w") as log:
        for number in range(min(FIRST, searches)):
            roi, distance = save(canvases[number % WRITERS], portal.user, number, rng)
            log.write(f"saved {roi} {distance!r}\n")
    connections.close_all()
    context = multiprocessing.get_context("fork")
    story = Story(
        folder,
        tuple(canvas.pk for canvas in canvases),
        searched,
        portal.user.pk,
        portal.lab.pk,
        context.Event(),
    )
    makers = [context.Process(target=write, args=(story, n)) for n in range(WRITERS)]
    makers.append(context.Process(target=swap, args=(story,)))
    share = -(-searches // SEARCHERS)
    askers = [context.Process(target=search, args=(story, n, share)) for n in range(SEARCHERS)]
    for process in [*makers, *askers]:
        process.start()
    for process in askers:
        process.join()
    story.stop.set()
    for process in makers:
        process.join()
    failed = [process.name for process in [*makers, *askers] if process.exitcode]
    reports = [json.loads(path.read_text()) for path in folder.glob("searcher-*.json")]
    return {
        "searches": sum(report["searches"] for report in reports),
        "wrong": [line for report in reports for line in report["wrong"]],
        "failed": failed,
        "versions": max((report["versions"] for report in reports), default=0),
        "saved": max((report["saved"] for report in reports), default=0),
        "deleted": max((report["deleted"] for report in reports), default=0),
        "p50_ms": max((report["p50_ms"] for report in reports), default=0.0),
        "p95_ms": max((report["p95_ms"] for report in reports), default=0.0),
    }


def main() -> int:
    """Run, print, and end with 1 where an answer was wrong or a process failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--searches", type=int, default=10_000)
    parser.add_argument("--json", type=Path, help="also here, without what hangs on the machine")
    parser.add_argument("--postgresql", action="store_true", help="instead of SQLite")
    parser.add_argument("--milvus", action="store_true", help="indexes there instead of in files")
    options = parser.parse_args()
    servers = cluster() if options.postgresql else nullcontext({})
    with tempfile.TemporaryDirectory() as name, servers as addresses:
        indexes = on_milvus(Path(name) / "milvus") if options.milvus else nullcontext({})
        with indexes as more:
            report = run(options.searches, Path(name), addresses | more or None)
    report["wrong"] = report["wrong"][:20]
    print(json.dumps(report, indent=1))
    if options.json:
        figures = {name: value for name, value in report.items() if not name.endswith("_ms")}
        options.json.write_text(json.dumps(figures | {"processes": PROCESSES}, indent=1) + "\n")
    return 1 if report["wrong"] or report["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
