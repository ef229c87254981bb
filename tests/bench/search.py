"""Similar cases at the REST edge: 10,000 and 100,000 ROIs of 400 patients.

``python -m tests.bench.search --rois 1000000 --write`` measures among a million: filling takes
minutes.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from tests.bench import report
from tests.bench.measure import Row, Section, each, each_used, median_ms, p95_ms
from tests.bench.portal import BenchPortal, portal_open
from tests.bench.processes import restart_as_web_process

SIZES = (10_000, 100_000)
BUDGETS = {100_000: "p95 under 50 ms at 100k", 1_000_000: "p95 under 120 ms at 1M"}
TITLE, AFTER = "Similar cases", "ROIs per window"
PATIENTS, QUERIES, K = 400, 100, 20
BATCH = 2_000


def search_at_the_rest_edge(
    portal: BenchPortal, sizes: Sequence[int] = SIZES, *, title: str = TITLE
) -> Section:
    """Time of ``POST /api/v1/search/`` in process: sign-in, permission, filter, search, JSON."""
    from rest_framework.test import APIClient

    from portal.embeddings.models import Encoder

    section = Section(
        title,
        f"`POST /api/v1/search/`, {K} hits, the same patient excluded, in process: token, "
        f"permission, search, the rows of the hits, JSON. {QUERIES} queries of different ROIs; "
        "random vectors of the default encoder's size. Each query is diffused over its 200 "
        "nearest, the portal's default; rows `by distance` are without diffusion. Processor time "
        "does not depend on other load. The alternative computes every distance with numpy from "
        "vectors in memory, and does nothing else.",
    )
    encoder = Encoder.objects.create(
        name="bench", version="1", config_hash="0" * 64, dim=_default_dim(), is_default=True
    )
    Encoder.objects.exclude(pk=encoder.pk).update(is_default=False)
    client = APIClient(HTTP_HOST="localhost")
    client.force_authenticate(portal.user)
    rng = np.random.default_rng(1)
    matrix = np.empty((0, encoder.dim), np.float32)
    rois: list[uuid.UUID] = []
    for size in sizes:
        more, vectors = _fill(portal, encoder, size - len(rois), rng)
        rois, matrix = rois + more, np.vstack([matrix, vectors])
        _build_index(portal, encoder)
        chosen = [rois[i] for i in rng.integers(0, len(rois), QUERIES)]
        ask, ask_plain = _asker(client), _asker(client, expand=0)
        each(ask, chosen[:5])
        seconds, plain = each(ask, chosen), each(ask_plain, chosen)
        brute = each(_brute(matrix), list(rng.integers(0, len(rois), QUERIES)))
        section.rows.append(
            Row(
                f"{size:,} ROIs, p95 (median {median_ms(seconds):.1f} ms)",
                p95_ms(seconds),
                "ms",
                "numpy over all vectors, p95, search alone",
                p95_ms(brute) / p95_ms(seconds),
                BUDGETS.get(size, ""),
            )
        )
        section.rows.append(
            Row(
                f"{size:,} ROIs, processor time of the server for one search, median",
                median_ms(each_used(ask, chosen)),
                "ms",
            )
        )
        section.rows.append(
            Row(
                f"{size:,} ROIs, by distance, p95 (median {median_ms(plain):.1f} ms)",
                p95_ms(plain),
                "ms",
            )
        )
    return section


def _default_dim() -> int:
    from ml.roi import load_encoder

    return load_encoder("default").dim


def _asker(client: object, **options: int) -> Callable[[uuid.UUID], None]:
    def ask(roi_id: uuid.UUID) -> None:
        body = {"roi": str(roi_id), "k": K, **options}
        answer = client.post("/api/v1/search/", body, format="json")  # type: ignore[attr-defined]
        if answer.status_code != 200 or len(answer.json()["results"]) != K:
            raise RuntimeError(f"{answer.status_code}: {answer.content[:300]!r}")

    return ask


def _brute(matrix: np.ndarray) -> Callable[[int], None]:
    def search(row: int) -> None:
        distance = ((matrix - matrix[row]) ** 2).sum(axis=1)
        np.argpartition(distance, K)[:K]

    return search


def _fill(
    portal: BenchPortal, encoder: object, count: int, rng: np.random.Generator
) -> tuple[list[uuid.UUID], np.ndarray]:
    from portal.annotations.models import Roi
    from portal.archive.models import Canvas, Case
    from portal.embeddings.models import Embedding

    canvases = list(Canvas.objects.filter(name="bench").select_related("case"))
    if not canvases:
        cases = Case.objects.bulk_create(
            Case(lab=portal.lab, accession=f"S-{n}", patient_key=f"p{n}") for n in range(PATIENTS)
        )
        canvases = Canvas.objects.bulk_create(
            Canvas(
                lab=portal.lab,
                case=case,
                kind="slide",
                name="bench",
                width_px=9999,
                height_px=9999,
                pixels_path="none",
                content_hash="0" * 64,
            )
            for case in cases
        )
    box = {"type": "Polygon", "coordinates": [[[0, 0], [9, 0], [9, 9], [0, 9], [0, 0]]]}
    vectors = rng.standard_normal((count, encoder.dim)).astype(np.float32)  # type: ignore[attr-defined]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    ids: list[uuid.UUID] = []
    for start in range(0, count, BATCH):
        rois = Roi.objects.bulk_create(
            Roi(
                lab=portal.lab,
                canvas=canvases[n % PATIENTS],
                geometry=box,
                left=0,
                top=0,
                right=9,
                bottom=9,
                area_px=81,
            )
            for n in range(start, min(count, start + BATCH))
        )
        Embedding.objects.bulk_create(
            Embedding(
                lab=portal.lab,
                encoder=encoder,
                roi=roi,
                canvas_id=roi.canvas_id,
                roi_version=1,
                vector=vectors[start + n].tobytes(),
            )
            for n, roi in enumerate(rois)
        )
        ids += [roi.pk for roi in rois]
    return ids, vectors


def _build_index(portal: BenchPortal, encoder: object) -> None:
    from portal.embeddings.indexes import Scope
    from portal.embeddings.services.indexes import index_build_if_due
    from portal.jobs.models import Job, JobState
    from portal.jobs.worker.runner import job_run

    job = index_build_if_due(scope=Scope(encoder=encoder, lab_id=portal.lab.pk))  # type: ignore[arg-type]
    if job is not None:
        job_run(job.pk)
        if Job.objects.get(pk=job.pk).state != JobState.SUCCEEDED:
            raise RuntimeError(Job.objects.get(pk=job.pk).traceback)


def main() -> int:
    """Measure, print, write the section into the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rois", type=int, help="one gallery instead of those of make bench")
    parser.add_argument("--write", action="store_true", help="into docs/benchmarks.md")
    options = parser.parse_args()
    restart_as_web_process()
    sizes = (options.rois,) if options.rois else SIZES
    title = f"{TITLE} among {options.rois:,} ROIs" if options.rois else TITLE
    with tempfile.TemporaryDirectory() as name:
        section = search_at_the_rest_edge(portal_open(Path(name)), sizes, title=title)
    report.tell(section, after=TITLE if options.rois else AFTER, write=options.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
