"""The index on a Milvus server against the index in files: recall and time, plain and filtered.

``python -m tests.bench.milvus`` starts the PyPI package's server (``python -m tests.milvus_server``
installs it), fills it with 1,000,000 vectors and writes the section; ``--sizes`` names others.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import faiss
import numpy as np

from ml.index import open_index
from ml.index.milvus.engine import open_milvus
from ml.index.protocol import VectorIndex
from ml.index.selection import Selection
from tests.bench.index import DIM, LEFT_OUT, QUERIES, SHARES, K, exact_rows, vectors_made
from tests.bench.measure import Row, Section, median_ms, p95_ms
from tests.milvus_server import RunningMilvus

SIZES = (1_000_000,)
TITLE = "Index on Milvus"


def milvus_against_files(folder: Path, sizes: tuple[int, ...] = SIZES) -> Section:
    """Both answer each filter, one after the other."""
    section = Section(
        TITLE,
        f"{K} nearest of vectors of {DIM} values, clustered as real ones are; {QUERIES} queries, "
        f"{LEFT_OUT} ids left out of each, elapsed times. Filters permit rows by chance, or whole "
        "clusters. Milvus 2.3.5 runs standalone on the same machine; the alternative is the index "
        "in files. Recall is against exact search.",
    )
    server_folder = folder / "server"
    server_folder.mkdir()
    running = RunningMilvus(server_folder)
    try:
        for size in sizes:
            for row in _measure(folder, running, size):
                line = f"{row.what:<70} {row.value:10.3f} {row.unit}  {row.against}"
                print(line, flush=True)
                section.rows.append(row)
    finally:
        running.kill()
    return section


def _measure(folder: Path, running: RunningMilvus, size: int) -> Iterator[Row]:
    vectors, clusters = vectors_made(folder, size)
    ids, name = np.arange(size), f"{size:,} vectors"
    began = time.perf_counter()
    files = open_index(folder / str(size), dim=DIM)
    files.build(ids, vectors)
    files_s = time.perf_counter() - began
    began = time.perf_counter()
    served = open_milvus(running.server, f"bench/{size}", DIM)
    served.build(ids, vectors)
    served_s = time.perf_counter() - began
    kinds = f"{served.stats.kind} on Milvus, {files.stats.kind} in files"
    yield Row(f"{name}: build, {kinds}", served_s, "s", f"files {files_s:.1f} s")
    rng = np.random.default_rng(2)
    rows = rng.integers(0, size, QUERIES)
    queries = vectors[rows] + rng.standard_normal((QUERIES, DIM)).astype(np.float32) * 0.02
    left_out = [np.unique(np.r_[row, rng.integers(0, size, LEFT_OUT - 1)]) for row in rows]
    few = np.isin(clusters, rng.choice(clusters.max() + 1, 200, replace=False))
    filters: dict[str, np.ndarray | None] = {
        "plain" if share is None else f"filter {share:.2%}": (
            None if share is None else np.flatnonzero(rng.random(size) < share)
        )
        for share in SHARES
    }
    filters[f"filter of clusters {few.mean():.1%}"] = np.flatnonzero(few)
    for filter_name, permitted in filters.items():
        if permitted is not None and len(permitted) <= K:
            continue
        truth = exact_rows(vectors, queries, permitted, left_out)
        selection = None if permitted is None else Selection(permitted)
        recall, seconds = {}, {}
        for engine, index in {"milvus": served, "files": files}.items():
            answers = _asked(index, queries, selection, left_out)
            seconds[engine] = [item for item, _ in answers[1:]]
            shares = [np.isin(*both).mean() for both in zip(truth, _ids(answers), strict=True)]
            recall[engine] = np.mean(shares)
        yield Row(
            f"{name}, {filter_name}: recall {recall['milvus']:.4f}, "
            f"p95 {p95_ms(seconds['milvus']):.1f} ms; median",
            median_ms(seconds["milvus"]),
            "ms",
            f"files: recall {recall['files']:.4f}, p95 {p95_ms(seconds['files']):.1f} ms, median "
            f"{median_ms(seconds['files']):.1f} ms",
        )


def _ids(found: list[tuple[float, np.ndarray]]) -> list[np.ndarray]:
    return [ids for _, ids in found]


def _asked(
    index: VectorIndex,
    queries: np.ndarray,
    selection: Selection | None,
    left_out: list[np.ndarray],
) -> list[tuple[float, np.ndarray]]:
    """Seconds and ids of each query."""
    latencies = []
    for q, gone in zip(queries, left_out, strict=True):
        began = time.perf_counter()
        ids, _ = index.search(q, K, allowed=selection, excluded=gone)
        latencies.append((time.perf_counter() - began, ids))
    return latencies


def main() -> int:
    """Measure, print, write the section into the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--no-report", action="store_true")
    options = parser.parse_args()
    faiss.omp_set_num_threads(1)
    from tests.bench import report

    with tempfile.TemporaryDirectory() as name:
        section = milvus_against_files(Path(name), tuple(options.sizes))
    if not options.no_report:
        report.replace(section, after="Index of vectors")
    return 0


if __name__ == "__main__":
    sys.exit(main())
